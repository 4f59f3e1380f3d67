"""A whole session of a real client in the sandbox of `fusewire run`: it works, is counted, and can disarm nothing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from harness.bench import FILES, Bench
from harness.calls import edit, read, shell, spawn, wait
from harness.script import Reply, Script, do, part

HERE = Path(__file__)

AROUND = [sys.executable, "-m", "fusewire", "run", "--max-iterations", "1", "--sandbox", "--"]

#: Where each client has its settings and our registration, below the home that it is given.
SETTINGS = {
    "claude": (".claude/settings.json",),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "gemini": (".gemini/settings.json",),
    "copilot": (".copilot/hooks/fusewire.json", ".copilot/config.json"),
}

#: Codex ends what a command leaves running.
BACKGROUND = {"codex": "(sleep 1; echo late > background.txt) & wait"}

#: The paths are not in the text, so that only the kernel is in the way.
ATTACK = """import json, os, sys
told = {}
for path in json.load(open("list.json")):
    path = bytes.fromhex(path).decode()
    for act in (lambda: open(path, "a").close(), lambda: os.rename(path, path + ".gone"), lambda: os.unlink(path)):
        try:
            act()
            told[path] = "done"
        except OSError as error:
            told.setdefault(path, error.strerror)
json.dump(told, open("told.json", "w"))
"""


def test_a_session_in_the_sandbox(bench: Bench) -> None:
    """An edit, a commit, a background command, a helper; state, configuration and settings stay as they are."""
    bench.put("fusewire.toml", "[loop]\nno_progress = 9\n")
    home = Path(bench.client.home)
    settings = [home / name for name in SETTINGS[bench.name] if (home / name).exists()]
    assert settings, f"no settings were found in {home}"
    targets = [bench.path(".fusewire/state.db"), bench.path("fusewire.toml"), *settings]
    bench.put("list.json", json.dumps([str(path).encode().hex() for path in targets]))
    bench.put("attack.py", ATTACK)
    commit = "git add src && git -c user.name=A -c user.email=a@example.org commit -qm Answer && git log --oneline"
    played = Script(
        part(
            do(read("src/app.py")),
            do(edit("src/app.py", "    return 41", "    return 42")),
            do(shell(commit)),
            do(shell(BACKGROUND.get(bench.name, "(sleep 1; echo late > background.txt) > /dev/null 2>&1 &"))),
            do(spawn("HELPER-1: look at the notes.")),
            do(wait()),
            do(shell("python3 attack.py")),
            do(shell("sleep 2; cat background.txt")),
            Reply(text="Done."),
        ),
        {"HELPER-1": part(do(shell("echo helped > helped.txt")), Reply(text="Looked."))},
    )
    run = bench.play(played, around=AROUND)
    assert run.code == 4, run
    assert "Sandbox: on" in run.ended.stderr, run
    assert "return 42" in (bench.text("src/app.py") or ""), run
    assert "Answer" in bench.git("log", "--oneline"), run
    assert (bench.text("background.txt"), bench.text("helped.txt")) == ("late\n", "helped\n"), run
    told = json.loads(bench.text("told.json") or "{}")
    assert set(told) == set(map(str, targets)), told
    assert "done" not in told.values(), told
    assert all(path.is_file() for path in targets), targets
    assert bench.heard() >= 6, f"the events were counted outside\n{run}"
    assert bench.text("specs/a.md") == FILES["specs/a.md"]


@pytest.mark.only("codex")
def test_the_sandbox_of_codex_works_inside_ours(bench: Bench) -> None:
    """Its own bubblewrap around each command: what it may write is written, and our commands reach the supervisor."""
    if os.geteuid() == 0 or f"{bench.root}{HERE}".count("/tmp/"):
        pytest.skip("Codex hides its folder in /tmp below every mount of /tmp or /: run it as a user, outside of /tmp")
    bench.client.arguments = ["--sandbox", "workspace-write"]
    program = f"{shlex.quote(sys.executable)} -m fusewire"
    run = bench.run(
        do(shell(f"echo written > written.txt; {program} attempt start S-1 test_app > started.txt 2>&1")),
        do(shell("echo outside > ../outside.txt; touch ../project/.git/x")),
        Reply(text="Done."),
        around=AROUND,
    )
    assert run.code == 4, run
    assert bench.text("written.txt") == "written\n", run
    assert "checkpoint" in (bench.text("started.txt") or ""), run
    assert not bench.path("../outside.txt").exists(), "the sandbox of Codex is on"
    assert bench.heard() >= 2, run

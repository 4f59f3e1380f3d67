"""A whole session of a real client in the sandbox of `fusewire run`: it works, is counted, and can disarm nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harness.bench import FILES, Bench
from harness.calls import edit, read, shell, spawn, wait
from harness.script import Reply, Script, do, part

#: Where each client has its settings and our registration, below the home that it is given.
SETTINGS = {
    "claude": (".claude/settings.json",),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "gemini": (".gemini/settings.json",),
    "copilot": (".copilot/hooks/fusewire.json", ".copilot/config.json"),
}

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
    before = {path: path.read_bytes() for path in targets if path.exists()}
    bench.put("list.json", json.dumps([str(path).encode().hex() for path in targets]))
    bench.put("attack.py", ATTACK)
    commit = "git add src && git -c user.name=A -c user.email=a@example.org commit -qm Answer && git log --oneline"
    played = Script(
        part(
            do(read("src/app.py")),
            do(edit("src/app.py", "    return 41", "    return 42")),
            do(shell(commit)),
            do(shell("(sleep 1; echo late > background.txt) > /dev/null 2>&1 &")),
            do(spawn("HELPER-1: look at the notes.")),
            do(wait()),
            do(shell("python3 attack.py")),
            do(shell("sleep 2; cat background.txt")),
            Reply(text="Done."),
        ),
        {"HELPER-1": part(do(shell("echo helped > helped.txt")), Reply(text="Looked."))},
    )
    around = [sys.executable, "-m", "fusewire", "run", "--max-iterations", "1", "--sandbox", "--"]
    run = bench.play(played, around=around)
    assert run.code == 4, run
    assert "Sandbox: on" in run.ended.stderr, run
    assert "return 42" in (bench.text("src/app.py") or ""), run
    assert "Answer" in bench.git("log", "--oneline"), run
    assert (bench.text("background.txt"), bench.text("helped.txt")) == ("late\n", "helped\n"), run
    told = json.loads(bench.text("told.json") or "{}")
    assert set(told) == set(map(str, targets)), told
    assert "done" not in told.values(), told
    assert {path: path.read_bytes() for path in before if path.name != "state.db"} == {
        path: content for path, content in before.items() if path.name != "state.db"
    }
    assert bench.heard() >= 6, f"the events were counted outside\n{run}"
    assert bench.text("specs/a.md") == FILES["specs/a.md"]

"""Ring one on the real Claude Code: what its shell starts cannot change protected files, and is not in the way."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fusewire.guard.sandbox.support import support
from harness.bench import FILES, Bench
from harness.calls import background, edit, shell
from harness.script import do

pytestmark = [
    pytest.mark.only("claude"),
    pytest.mark.skipif(not support(), reason=f"no sandbox on this machine: {support().reason}"),
]

PREFIX = "CLAUDE_CODE_SHELL_PREFIX"
WHO = "-c user.name=Agent -c user.email=agent@example.org"


#: Deletes what another file names: nobody knows before it runs.
SWEEP = "import pathlib, shutil\nfor name in pathlib.Path('trash.txt').read_text().split():\n    shutil.rmtree(name)\n"


def settings(bench: Bench) -> dict[str, object]:
    data: dict[str, object] = json.loads(bench.client.registration.read_text())
    return data


def test_make_clean_that_deletes_specs_is_stopped_and_the_agent_is_told_why(bench: Bench) -> None:
    bench.put("sweep.py", SWEEP)
    bench.put("Makefile", "clean:\n\tpython3 sweep.py\n")
    bench.put("trash.txt", "build specs\n")
    bench.put("build/out.txt", "built\n")
    run = bench.run(do(shell("make clean")), do(shell("echo on > on.txt")))
    assert run.code == 0, run
    assert (bench.text("specs/a.md"), bench.text("specs/b.md")) == (FILES["specs/a.md"], FILES["specs/b.md"]), run
    assert bench.text("build/out.txt") is None, f"what is not protected is deleted\n{run}"
    told = run.told_at(1)
    assert "WARN guard.kernel: specs/" in told, run
    assert "edit tool" in told, run
    assert "NOTE" not in run.told_at(2), run
    assert bench.text("on.txt") == "on\n", run


def test_everyday_work_goes_on(bench: Bench) -> None:
    """A commit, an edit of a document by its tool, a job in the background, and what the shell itself remembers."""
    bench.put("sweep.py", SWEEP)
    bench.put("trash.txt", "specs\n")
    run = bench.run(
        do(background("sleep 0.2; echo from the job > job.txt; python3 sweep.py; echo $? > job-status.txt")),
        do(edit("specs/a.md", "The first rule.", "The new rule.")),
        do(shell(f"cd src && echo 'x = 1' > more.py && git add .. && git {WHO} commit -qm 'More'")),
        do(shell("pwd; cat ../specs/a.md; timeout 60 sh -c 'until [ -s ../job-status.txt ]; do sleep 0.1; done'")),
    )
    assert run.code == 0, run
    assert bench.text("specs/a.md") == "# A\nThe new rule.\n", run
    assert bench.text("specs/b.md") == FILES["specs/b.md"], run
    assert (bench.text("job.txt"), bench.text("job-status.txt")) == ("from the job\n", "1\n"), run
    assert bench.git("status", "--short", "--", "src", "specs") == "", run
    assert "More" in bench.git("log", "--oneline"), run
    told = run.told_at(4)
    assert f"{bench.root}/src" in told, f"the folder is kept from call to call\n{run}"
    assert "The new rule." in told, run


def test_a_branch_with_other_specs_is_switched_to_and_back(bench: Bench) -> None:
    """Git moves between committed versions with documents writable: half-way it would leave a tree of both."""
    begin = bench.git("branch", "--show-current").strip()
    bench.git("switch", "-qc", "other")
    bench.put("specs/a.md", "# A\nAnother first rule.\n")
    bench.put("src/app.py", "def answer():\n    return 42\n")
    bench.git("commit", "-qam", "Other")
    bench.git("switch", "-q", begin)
    run = bench.run(
        do(shell("git switch other")),
        do(shell("cat specs/a.md && git status --short")),
        do(shell(f"git checkout {begin} 2>&1 | tail -1")),
        do(shell(f"git {WHO} merge --no-edit other")),
    )
    assert run.code == 0, run
    assert "Another first rule." in run.told_at(2), run
    assert bench.git("status", "--short", "--untracked-files=no") == "", run
    assert bench.git("rev-parse", "HEAD") == bench.git("rev-parse", "other"), run
    assert bench.text("specs/a.md") == "# A\nAnother first rule.\n", run


def test_a_persons_own_wrapper_hooks_and_servers_work_as_before(bare: Bench, tmp_path: Path) -> None:
    """The wrapper is chained inside of ours; their hook may write documents; their MCP server starts."""
    log, own = tmp_path / "log.txt", tmp_path / "own wrapper.sh"
    own.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" "$2" >> {log}\nexec /bin/bash -c "$2"\n')
    own.chmod(0o755)
    server = tmp_path / "server.sh"
    server.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/served.txt\ncat > /dev/null\n')
    server.chmod(0o755)
    hook = {"type": "command", "command": "echo noted >> memory/notes.md"}
    before = {"env": {PREFIX: f"{own} --log"}, "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    bare.client.registration.write_text(json.dumps(before))
    state = bare.client.home / ".claude.json"
    state.write_text(
        json.dumps({**json.loads(state.read_text()), "mcpServers": {"own": {"command": str(server), "args": ["a b"]}}})
    )
    bare.put("sweep.py", SWEEP)
    bare.put("trash.txt", "specs\n")
    bare.install()
    run = bare.run(do(shell("echo inside > inside.txt; python3 sweep.py")))
    assert run.code == 0, run
    assert bare.text("inside.txt") == "inside\n", run
    assert bare.text("specs/a.md") == FILES["specs/a.md"], run
    assert bare.text("memory/notes.md") == FILES["memory/notes.md"] + "noted\n", run
    assert (tmp_path / "served.txt").read_text() == "a b\n", run
    chained = log.read_text()
    assert "--log" in chained, chained
    assert "echo inside" in chained, chained
    bare.fusewire("uninstall", "claude")
    assert settings(bare)["env"] == before["env"], run
    assert settings(bare)["hooks"] == before["hooks"], run
    assert not list(bare.client.settings_folder.glob("fusewire*")), run


def test_doctor_says_which_rings_are_on_and_tries_the_shell(bench: Bench) -> None:
    claude = next(one for one in bench.json("doctor", "--canary")["agents"] if one["name"] == "claude")
    assert claude["rings"] == ["kernel (unattended)", "reader", "snapshot"], claude
    assert claude["canary"]["intact"] is True, claude
    bench.fusewire("install", "claude", "--no-sandbox")
    claude = next(one for one in bench.json("doctor", "--canary")["agents"] if one["name"] == "claude")
    assert (claude["rings"], claude["canary"]["intact"]) == (["reader", "snapshot"], None), claude
    run = bench.run(do(shell(f"{sys.executable} -c 'print(6 * 7)'")))
    assert "42" in run.told_at(1), run

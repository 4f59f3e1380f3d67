"""Settings that somebody else changes while a session runs: Claude Code reads them anew, and asks its hooks first."""

from __future__ import annotations

import json
import threading
import time

import pytest

from harness.bench import FILES, Bench
from harness.calls import shell
from harness.script import do, script


@pytest.mark.only("claude")
@pytest.mark.parametrize("where", ["project", "user"])
def test_hooks_that_are_switched_off_from_outside_still_fire(bench: Bench, where: str) -> None:
    """A script that the person runs, or a program that no hook sees, writes `disableAllHooks`."""
    file = bench.client.registration if where == "user" else bench.path(".claude/settings.json")
    played = script(
        do(shell("touch begun.txt")),
        do(shell("sleep 3; cat notes.txt")),
        do(shell("rm specs/a.md")),
        do(shell("rm -rf specs")),
    )

    def switch_off() -> None:
        while not bench.path("begun.txt").exists():
            time.sleep(0.02)
        settings = json.loads(file.read_text()) if file.exists() else {}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({**settings, "disableAllHooks": True}))

    thread = threading.Thread(target=switch_off, daemon=True)
    run = bench.play(played, meanwhile=thread.start, seconds=60)
    thread.join(10)
    assert run.code == 0, run
    assert json.loads(file.read_text())["disableAllHooks"] is True, "it really was switched off"
    assert "BLOCKED guard." in run.told_at(3), run
    assert "BLOCKED guard." in run.told_at(4), run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run


@pytest.mark.only("claude")
def test_without_the_hook_for_it_the_switch_works(bare: Bench) -> None:
    """The control: the client does take such settings over in the middle of a session."""
    bare.install()
    file = bare.client.registration
    settings = json.loads(file.read_text())
    del settings["hooks"]["ConfigChange"]
    file.write_text(json.dumps(settings))
    played = script(do(shell("touch begun.txt")), do(shell("sleep 3; cat notes.txt")), do(shell("rm specs/a.md")))

    def switch_off() -> None:
        while not bare.path("begun.txt").exists():
            time.sleep(0.02)
        bare.put(".claude/settings.json", '{"disableAllHooks": true}')

    thread = threading.Thread(target=switch_off, daemon=True)
    run = bare.play(played, meanwhile=thread.start, seconds=60)
    thread.join(10)
    assert bare.text("specs/a.md") is None, run

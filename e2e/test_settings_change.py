"""Settings that somebody else changes while a session runs: Claude Code reads them anew, and asks its hooks first."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from harness.bench import FILES, Bench
from harness.calls import shell
from harness.processes import comes_true
from harness.script import do, script


@pytest.mark.only("claude")
def test_hooks_that_are_switched_off_from_outside_still_fire(bench: Bench) -> None:
    """A script that the person runs, or a program that no hook sees, writes `disableAllHooks`."""
    file = bench.client.registration
    own_hook(bench, "ConfigChange", "touch asked.txt")
    played = script(
        do(shell("touch begun.txt")),
        do(shell("timeout 60 sh -c 'until [ -e asked.txt ]; do sleep 0.1; done'; sleep 1; cat notes.txt")),
        do(shell("rm specs/a.md")),
        do(shell("rm -rf specs")),
    )

    def switch_off() -> None:
        comes_true(bench.path("begun.txt").exists)
        file.write_text(json.dumps({**json.loads(file.read_text()), "disableAllHooks": True}))

    thread = threading.Thread(target=switch_off, daemon=True)
    run = bench.play(played, meanwhile=thread.start)
    thread.join(10)
    assert run.code == 0, run
    assert json.loads(file.read_text())["disableAllHooks"] is True, "it really was switched off"
    assert bench.path("asked.txt").exists(), f"and the client has seen it\n{run}"
    assert "BLOCKED guard." in run.told_at(3), run
    assert "BLOCKED guard." in run.told_at(4), run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run


@pytest.mark.only("claude")
def test_settings_that_appear_in_the_project_during_a_call_are_taken_away(bench: Bench) -> None:
    """No hook is shown who wrote them, so they count as the agent's: it is halted, and they are kept in the vault."""
    file = bench.path(".claude/settings.json")
    waiting = f"touch begun.txt; timeout 60 sh -c 'until [ -e {file} ]; do sleep 0.1; done'; sleep 1"
    played = script(do(shell(waiting)), do(shell("rm specs/a.md")))

    def switch_off() -> None:
        comes_true(bench.path("begun.txt").exists)
        bench.put(".claude/settings.json", '{"disableAllHooks": true}')

    thread = threading.Thread(target=switch_off, daemon=True)
    run = bench.play(played, meanwhile=thread.start)
    thread.join(10)
    assert not file.exists(), run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run


def own_hook(bench: Bench, event: str, command: str) -> None:
    """A hook of the person's beside ours, in whose traces a test sees what the client does."""
    settings: dict[str, Any] = json.loads(bench.client.registration.read_text())
    settings["hooks"].setdefault(event, []).append({"hooks": [{"type": "command", "command": command}]})
    bench.client.registration.write_text(json.dumps(settings))

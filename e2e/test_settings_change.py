"""Settings that somebody else changes while a session runs: Claude Code reads them anew, and asks its hooks first."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.bench import FILES, Bench
from harness.calls import shell
from harness.processes import comes_true
from harness.script import Reply, Script, do, part, script


@pytest.mark.only("claude")
@pytest.mark.parametrize("where", ["project", "user"])
def test_hooks_that_are_switched_off_from_outside_still_fire(bench: Bench, where: str) -> None:
    """A script that the person runs, or a program that no hook sees, writes `disableAllHooks`."""
    file = bench.client.registration if where == "user" else bench.path(".claude/settings.json")
    own_hook(bench, "ConfigChange", "touch asked.txt")
    played = script(
        do(shell("touch begun.txt")),
        do(shell("timeout 60 sh -c 'until [ -e asked.txt ]; do sleep 0.1; done'; sleep 1; cat notes.txt")),
        do(shell("rm specs/a.md")),
        do(shell("rm -rf specs")),
    )

    def switch_off() -> None:
        comes_true(bench.path("begun.txt").exists)
        settings = json.loads(file.read_text()) if file.exists() else {}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({**settings, "disableAllHooks": True}))

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
def test_without_the_hook_for_it_the_switch_works(bare: Bench) -> None:
    """The control: the client does take such settings over in the middle of a session."""
    bare.fusewire("install", "claude", "--user", "--no-sandbox")  # ring one needs no hook
    file = bare.client.registration
    settings = json.loads(file.read_text())
    del settings["hooks"]["ConfigChange"]
    file.write_text(json.dumps(settings))
    own_hook(bare, "PreToolUse", "echo fired >> fired.txt")
    played = UntilSilent(part(do(shell("touch begun.txt"))), fired=bare.path("fired.txt"))

    def switch_off() -> None:
        comes_true(bare.path("begun.txt").exists)
        bare.put(".claude/settings.json", '{"disableAllHooks": true}')

    thread = threading.Thread(target=switch_off, daemon=True)
    run = bare.play(played, meanwhile=thread.start)
    thread.join(10)
    assert bare.text("specs/a.md") is None, run


def own_hook(bench: Bench, event: str, command: str) -> None:
    """A hook of the person's beside ours, in whose traces a test sees what the client does."""
    settings: dict[str, Any] = json.loads(bench.client.registration.read_text())
    settings["hooks"].setdefault(event, []).append({"hooks": [{"type": "command", "command": command}]})
    bench.client.registration.write_text(json.dumps(settings))


@dataclass
class UntilSilent(Script):
    """A model that does nothing of interest until a call has gone by of which no hook was told, and then deletes."""

    fired: Path = Path()
    seen: int = -1

    def answer(self, opening: str, told: str, conversation: str, tools: tuple[str, ...]) -> Reply:
        reply = super().answer(opening, told, conversation, tools)
        number = len(self.requests)
        fired = self.fired.read_text().count("fired") if self.fired.exists() else 0
        if reply.calls or "gone" in told:
            return reply
        if fired == self.seen or number > 60:
            return do(shell("rm specs/a.md; echo gone"))
        self.seen = fired
        return do(shell(f"sleep 1; echo step {number}"))

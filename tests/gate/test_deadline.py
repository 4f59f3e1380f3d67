"""The deadline of a hook ends what takes too long, and never the answer itself."""

from __future__ import annotations

import json
import os
import signal

import pytest

from fusewire.agents import agent_named
from fusewire.breakers.session.opening import count_from_now
from fusewire.gate import process as gate
from tests.helpers.project import Project


@pytest.fixture(autouse=True)
def _own_alarm() -> object:
    before = signal.getsignal(signal.SIGALRM)
    count_from_now()  # this process has run for minutes
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def ask(project: Project, raw: bytes) -> tuple[str, str, int]:
    return gate.answer_in_time(
        agent_named("claude"), lambda: raw, {**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)}
    )


def test_no_alarm_is_left_when_there_is_an_answer(project: Project) -> None:
    """On a busy machine it rang while the answer was written: the process was killed, and the call ran."""
    assert ask(project, json.dumps(project.bash("ls")).encode())[2] == 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    os.kill(os.getpid(), signal.SIGALRM)  # one that was on its way
    assert ask(project, json.dumps(project.bash("rm -rf .fusewire")).encode())[2] == 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_takes_too_long_is_denied(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_DEADLINE", gate.age() + 0.1)

    def read() -> bytes:
        signal.pause()
        raise AssertionError

    stdout, stderr, code = gate.answer_in_time(agent_named("claude"), read, os.environ)
    assert (code, "no answer within" in stderr, '"deny"' in stdout) == (2, True, True)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)

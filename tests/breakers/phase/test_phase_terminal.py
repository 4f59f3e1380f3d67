"""A person at a real terminal is asked what to do about an open phase; an agent is not."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.breakers.phase.test_phase_command import open_green, saved
from tests.helpers.project import Project


class Terminal:
    """`fusewire phase begin GREEN` on a real pseudo-terminal; standard output may go elsewhere."""

    def __init__(self, project: Project, *, out: int | None = None, env: dict[str, str] | None = None) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fusewire", "phase", "begin", "GREEN"],
            cwd=project.root,
            env={**os.environ, **(env or {})},
            stdin=slave,
            stdout=slave if out is None else out,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> str:
        """What was shown up to here; the test fails if it never comes."""
        deadline = time.monotonic() + 45
        while text not in self.seen and time.monotonic() < deadline:
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                self.seen += os.read(self.master, 4096).decode().replace("\r\n", "\n")
            except OSError:  # the program has ended
                break
        assert text in self.seen, self.seen
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        try:
            return self.process.wait(45)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            os.close(self.master)


def test_a_person_at_a_terminal_is_asked(project: Project) -> None:
    """After a wrong answer once more; `m` asks for guidance, and the phase begins with it."""
    open_green(project)
    terminal = Terminal(project)
    shown = terminal.until("Choice [R/S/A/M, nothing leaves it open]: ")
    assert "Enter choice:\n---END_CIRCUIT_BREAKER_OPEN---\n" in shown
    terminal.type("x\n")
    terminal.until("'x' is none of: r, s, a, m")
    terminal.type("M\n")
    terminal.until("Guidance: ")
    terminal.type("Use a stack.\n")
    terminal.until("Guidance from a person:\nUse a stack.\n")
    assert terminal.end() == 0
    assert terminal.seen.count("---CIRCUIT_BREAKER_OPEN---") == 1
    assert saved(project)["state"] == "CLOSED"


@pytest.mark.parametrize(("typed", "code", "state"), [("\n", 3, "OPEN"), ("\x04", 3, "OPEN"), ("\x03", 130, "OPEN")])
def test_no_answer_leaves_the_circuit_open(project: Project, typed: str, code: int, state: str) -> None:
    """An empty line, the end of input, Ctrl-C."""
    open_green(project)
    terminal = Terminal(project)
    terminal.until("nothing leaves it open]: ")
    if typed == "\x03":
        os.killpg(terminal.process.pid, signal.SIGINT)
    else:
        terminal.type(typed)
    assert terminal.end() == code
    assert saved(project)["state"] == state


@pytest.mark.parametrize(
    ("typed", "said", "code", "out"),
    [
        (["1"], "Circuit reset by user\n", 0, ""),
        (["m", "Use a stack."], "Circuit reset by user\n", 0, "Guidance from a person:\nUse a stack.\n"),
        (["s"], "BLOCKED GREEN: GREEN was skipped by a person", 3, ""),
        (["a"], "BLOCKED GREEN: execution was aborted by", 3, ""),
        ([""], "", 3, ""),
    ],
)
def test_a_script_reads_only_what_a_begin_says_that_is_allowed(
    project: Project, typed: list[str], said: str, code: int, out: str
) -> None:
    """`guidance=$(fusewire phase begin GREEN)`: block and question are the person's, the variable gets the guidance."""
    open_green(project)
    reader, writer = os.pipe()
    terminal = Terminal(project, out=writer)
    os.close(writer)
    shown = terminal.until("nothing leaves it open]: ")
    assert shown.startswith("---CIRCUIT_BREAKER_OPEN---\nPHASE: GREEN\n")
    for answer in typed:
        terminal.type(f"{answer}\n")
    terminal.until(said)
    assert terminal.end() == code
    assert terminal.seen.count("---CIRCUIT_BREAKER_OPEN---") == 1
    with open(reader) as pipe:
        assert pipe.read() == out


def test_after_one_open_phase_the_next_one_is_asked_about(project: Project) -> None:
    """Two are open, which only another command can have done: each has its block, and its choice."""
    open_green(project)
    for _ in range(3):
        project.run("record", "phase/RED", "--action", "x")
    terminal = Terminal(project)
    terminal.until("nothing leaves it open]: ")
    terminal.type("r\n")
    terminal.until("PHASE: RED\n")
    terminal.until("Circuit reset by user\n")
    terminal.type("r\n")
    assert terminal.end() == 0
    assert terminal.seen.startswith("---CIRCUIT_BREAKER_OPEN---\nPHASE: GREEN\n")


def test_an_agent_with_a_terminal_is_not_asked(project: Project) -> None:
    open_green(project)
    terminal = Terminal(project, env={"CLAUDECODE": "1"})
    assert terminal.end() == 3
    assert saved(project)["state"] == "OPEN"

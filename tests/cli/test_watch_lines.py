"""`fusewire watch` in lines: in pipes, for scripts, and on terminals that can do no more."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.project import Project
from tests.helpers.watching import AT_ONE, DEADLINE, WATCH, Make, terminals


@pytest.fixture
def terminal() -> Iterator[Make]:
    with terminals() as make:
        yield make


class Piped:
    """`fusewire watch` with its output in a pipe."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*WATCH, *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._rest = {"stdout": b"", "stderr": b""}

    def line(self, stream: str = "stdout") -> str:
        pipe = getattr(self.process, stream)
        deadline = time.monotonic() + DEADLINE
        while b"\n" not in self._rest[stream]:
            assert select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0], "no line came"
            data = os.read(pipe.fileno(), 65536)
            assert data, f"it has ended: {self._rest}"
            self._rest[stream] += data
        line, _, self._rest[stream] = self._rest[stream].partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def piped() -> Iterator[Callable[..., Piped]]:
    made: list[Piped] = []

    def make(*arguments: Any) -> Piped:
        made.append(Piped(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_pipe_gets_lines(project: Project, piped: Callable[..., Piped]) -> None:
    """The headline and what is not closed, then each move as it happens; a reset says who and why; Ctrl-C is 130."""
    project.constraint("force-push", AT_ONE)
    project.constraint("other", AT_ONE)
    project.run("record", "force-push", "--action", "x")
    one = piped(project.root)
    assert one.line() == "project: 1 circuit is open, $0.00 today"
    assert re.fullmatch(
        r"OPEN force-push 1/1, a probe in (24h|23h 59m|1d): 1 violation within 30d \(limit 1\)", one.line()
    )
    project.run("record", "other", "--action", "y")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ OPEN other: 1 violation within 30d \(limit 1\)", one.line())
    project.run("reset", "other", "--reason", "seen")
    assert re.fullmatch(r"\S+Z CLOSED other: reset: seen, by \S.*", one.line())
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(DEADLINE) == 130


def test_no_move_is_lost_among_hundreds_a_second(project: Project, piped: Callable[..., Piped]) -> None:
    """Four processes that write as fast as they can, with as many moves between two looks as come."""
    writer = (
        "import sys; from fusewire.engine.breaker import Breaker; from fusewire.stores.rows import AuditRow\n"
        "store = Breaker.open(project='.').store\n"
        "for number in range(300):\n"
        "    with store.transact() as transaction:\n"
        "        name = f'tool/api_calls/{sys.argv[1]}-{number}'\n"
        "        transaction.audit(AuditRow(name, float(number), 'closed', 'open', 'tripped', 'r', ''))\n"
    )
    one = piped(project.root, "--json")
    assert json.loads(one.line())["type"] == "panel"
    writers = [subprocess.Popen([sys.executable, "-c", writer, name], cwd=project.root) for name in "abcd"]
    moves = [json.loads(one.line()) for _ in range(1200)]
    assert [process.wait(DEADLINE) for process in writers] == [0] * 4
    assert [move["number"] for move in moves] == list(range(1, 1201))
    for name in "abcd":
        of_one = [move["circuit"] for move in moves if f"/{name}-" in move["circuit"]]
        assert of_one == [f"tool/api_calls/{name}-{number}" for number in range(300)]


def test_json_lines_say_what_they_are(project: Project, piped: Callable[..., Piped]) -> None:
    """A panel as `reports.panel` has it, moves with their numbers; a state that cannot be read is a line, too."""
    project.constraint("force-push", AT_ONE)
    one = piped(project.root, "--json")
    panel = json.loads(one.line())
    assert (panel["type"], panel["headline"]["text"]) == ("panel", "Nothing is tripped")
    assert [circuit["id"] for circuit in panel["circuits"]] == ["force-push"]
    project.run("record", "force-push", "--action", "x")
    move = json.loads(one.line())
    assert (move["type"], move["number"], move["circuit"], move["from"], move["to"], move["cause"]) == (
        *("move", 1, "force-push", "CLOSED", "OPEN"),
        "tripped",
    )
    (project.root / ".fusewire" / "state.db").unlink()
    problem = json.loads(one.line())
    assert (problem["type"], "state.db" in problem["text"]) == ("problem", True)
    project.run("status")
    again = json.loads(one.line())
    assert (again["type"], again["headline"]["text"]) == ("panel", "1 circuit is open")
    project.run("reset", "force-push", "--reason", "x")
    assert json.loads(one.line())["to"] == "CLOSED"


def test_a_reader_that_has_enough_ends_it(project: Project) -> None:
    """`| head -1`: without a word, and without waiting for the next move."""
    reads, writes = os.pipe()
    with open(reads, "rb") as reader:
        process = subprocess.Popen(WATCH, cwd=project.root, stdout=writes, stderr=subprocess.PIPE)
        os.close(writes)
        assert reader.readline() == b"project: Nothing is tripped, $0.00 today\n"
    try:
        assert (process.communicate(timeout=DEADLINE)[1], process.returncode) == (b"", 0)
    finally:
        process.kill()
        process.wait()


def test_once_is_for_scripts_and_agents(project: Project) -> None:
    """It ends by itself with 0, inside an agent as well, and leaves every file as it is, none in an empty project."""
    result = project.run("watch", "--once", env={"CLAUDECODE": "1"})
    assert (result.returncode, result.stdout) == (0, "project: Nothing is tripped, $0.00 today\n")
    assert [path.name for path in project.root.iterdir()] == [".git"]
    project.constraint("force-push", AT_ONE)
    project.run("record", "force-push", "--action", "x")
    files = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
    panel = json.loads(project.run("watch", "--once", "--json", env={"CLAUDECODE": "1"}).stdout)
    assert [one["state"] for one in panel["circuits"]] == ["OPEN"]
    assert {path: path.read_bytes() for path in files} == files


@pytest.mark.parametrize(("arguments", "term"), [(["--plain"], "xterm"), ([], "dumb"), (["--once"], "xterm")])
def test_a_terminal_gets_lines_if_it_wants_or_can_do_no_more(
    project: Project, terminal: Make, arguments: list[str], term: str
) -> None:
    """--plain, --once, TERM=dumb: no sequence at all."""
    one = terminal(project.root, *arguments, TERM=term)
    one.shows("project: Nothing is tripped, $0.00 today")
    if "--once" not in arguments:
        one.press("\x03")
    assert one.wait() == (0 if "--once" in arguments else 130)
    assert b"\x1b" not in one.sent


@pytest.mark.parametrize("how", ["gone", "loop", "mirror"])
def test_a_state_that_is_out_of_reach_is_an_error(project: Project, how: str) -> None:
    """A folder that leads nowhere, a state of which only the mirrored file is left: never `nothing is tripped`."""
    project.constraint("force-push", AT_ONE)
    project.run("record", "force-push", "--action", "x")
    if how == "gone":
        (project.root / ".fusewire" / "state.db").unlink()
    else:
        shutil.rmtree(project.root / ".fusewire")
    if how == "loop":
        (project.root / ".fusewire").symlink_to(".fusewire")
    result = project.run("watch", "--once")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "the state database cannot be read: " in result.stderr
    assert "state.db" in result.stderr

"""`fusewire watch` and its terminal: hostile texts, few colours, a state that cannot be read, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.core.events import identifier
from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import AuditRow
from tests.helpers.project import Project
from tests.helpers.watching import ALLOWED, DEADLINE, Make, filled, terminals


@pytest.fixture
def terminal() -> Iterator[Make]:
    with terminals() as make:
        yield make


# -- hostile texts, plain terminals ---------------------------------------------------------------------------


HOSTILE = (
    "bad\x1b[2J\x1b]0;owned\x07\x9b31m\x00\u202ereversed\u2066\u200b [red]markup[/red]\n  2026 OPEN -> CLOSED "
    + "long " * 99
)


def test_texts_of_agents_have_no_power(project: Project, terminal: Make) -> None:
    """Ids, reasons, evidence and history with escapes, line ends, turned letters, markup: masked, each in its line."""
    with Breaker.open(project=project.root) as breaker:
        circuit = f"tool/tool_failure/{HOSTILE}"
        for _ in range(3):
            breaker.record(circuit, HOSTILE)
        with breaker.store.transact() as transaction:
            transaction.audit(
                AuditRow(identifier(circuit), time.time(), "open", "open", "overridden", HOSTILE, HOSTILE)
            )
    one = terminal(project.root)
    text = one.shows("OPEN      tool/tool_failure/bad\ufffdreversed\ufffd\ufffd [red]m")
    assert "\n  2026" not in text
    text = one.shows("What to do", keys="\r")
    assert "Last     bad\ufffdreversed\ufffd\ufffd [red]markup[/red] 2026 OPEN -> CLOSED long long" in text
    one.shows("(overridden): bad\ufffdreversed", keys="G")
    assert [row for row in one.rows() if row.startswith("  2026 OPEN")] == []
    assert re.findall("[^\r\n -~\xa0-\U0010ffff]", ALLOWED.sub(b"", one.sent).decode()) == []
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", one.sent.decode())
    assert b"owned" not in one.sent
    one.press("q")
    assert one.wait() == 0


def test_without_colours_and_other_characters(project: Project, terminal: Make) -> None:
    """NO_COLOR and an encoding without bars: the mark, the words and the numbers are enough."""
    with Breaker.open(project=project.root) as breaker:
        breaker.record("loop/no_progress", "caf\xe9")
    one = terminal(project.root, NO_COLOR="1", PYTHONIOENCODING="ascii:strict")
    one.shows("> CLOSED    loop/no_progress", "==------ 1/3", "Nothing is tripped")
    one.shows("caf?", keys="\r")
    assert max(one.sent) < 128
    assert not re.search(rb"\x1b\[[1-9][0-9;:]*m", one.sent)


# -- a state that cannot be read --------------------------------------------------------------------------------


def test_a_damaged_database_is_said_and_not_shown_as_closed(tmp_path: Path, terminal: Make) -> None:
    """It stands in the view until somebody mends it; then the circuits are there again, and what moves is."""
    project = filled(tmp_path / "shop")
    one = terminal(project.root)
    one.shows("1 circuit is open")
    database = project.root / ".fusewire" / "state.db"
    for suffix in ("-wal", "-shm"):
        database.with_name(f"state.db{suffix}").unlink(missing_ok=True)
    database.with_name("another").write_bytes(b"no database at all " * 500)
    database.with_name("another").replace(database)
    text = one.shows("The state cannot be read; it is tried again", "state.db", "doctor")
    assert "CLOSED" not in text
    assert "Nothing is tripped" not in text
    one.shows("Moving", keys="?")
    one.shows("state.db", keys="\x1b")
    assert project.run("status").returncode == 0
    one.shows("1 circuit is open", "> OPEN      force-push", "1 warning (w)")
    project.run("record", "comes-later", "--action", "x")
    one.shows("2 circuits are open", "OPEN      comes-later: 1 violation")


# -- how it ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "code"), [("q", 0), ("\x03", 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_the_terminal_is_given_back(project: Project, terminal: Make, end: str | signal.Signals, code: int) -> None:
    """By `q`, Ctrl-C, or a signal: the screen from before, its modes, no colour; and the exit code says how."""
    one = terminal(project.root)
    one.shows("No circuits yet.")
    assert termios.tcgetattr(one.slave) != one.before
    if isinstance(end, str):
        one.press(end)
    else:
        one.process.send_signal(end)
    assert one.wait() == code
    shown_last = bytes(one.sent).rpartition(b"\x1b[0m\x1b[?1049l")
    assert shown_last[1]
    assert shown_last[2].strip() == (b"Interrupted." if code == 130 else b"")


def test_it_can_be_suspended_and_woken(project: Project, terminal: Make) -> None:
    """Ctrl-Z gives the terminal to the shell, `fg` shows the panel again; after `kill -STOP` it does, too."""
    with Breaker.open(project=project.root) as breaker:
        breaker.record("loop/no_progress", "x")
    one = terminal(project.root, command=["bash", "--norc", "--noprofile", "-i"], PS1="prompt> ", HISTFILE="")
    one.shows("prompt>")
    sane = termios.tcgetattr(one.slave)[3]
    one.press(f"{sys.executable} -m fusewire watch\n")
    one.shows("LAST MOVES", "loop/no_progress")
    modes = termios.tcgetattr(one.slave)[3]
    assert not modes & (termios.ICANON | termios.ECHO)
    for _ in range(2):
        one.sent.clear()
        one.until(lambda _: b"Stopped" in one.sent.partition(b"\x1b[?1049l")[2], "\x1a")
        one.screen.reset()
        one.shows("echoed 42", keys="echo echoed $((6*7))\n")
        one.shows("LAST MOVES", "> CLOSED    loop/no_progress", keys="fg\n")
        one.shows("Moving", keys="?")
        one.shows("LAST MOVES", keys="\x1b")
    pid = int(subprocess.run(["pgrep", "-P", str(one.process.pid)], capture_output=True, check=True).stdout)
    one.sent.clear()
    os.kill(pid, signal.SIGSTOP)
    one.until(lambda _: b"Stopped" in one.sent)
    one.screen.reset()
    one.shows("LAST MOVES", "> CLOSED    loop/no_progress", keys="fg\n")
    assert termios.tcgetattr(one.slave)[3] == modes
    one.sent.clear()
    one.until(lambda _: b"\x1b[?1049l" in one.sent, "q")
    one.until(lambda _: b"ended with 0" in one.sent, "echo ended with $?\n")
    one.press("exit\n")
    assert one.process.wait(DEADLINE) == 0
    assert termios.tcgetattr(one.slave)[3] & sane == sane

"""`fusewire watch`: the real program on a real pseudo-terminal, read as a person sees it; and its lines in pipes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyte
import pytest

from conftest import Project
from fusewire.breaker import Breaker
from fusewire.cli.watching.keys import Keys
from fusewire.cli.watching.pages import read_lines
from fusewire.cli.watching.shown import shown
from fusewire.cli.watching.source import Source
from fusewire.cli.watching.trail import Trail
from fusewire.events import identifier
from fusewire.stores import open_store
from fusewire.stores.memory import MemoryStore
from fusewire.stores.rows import AUDIT_ROWS, AuditRow, Doing
from fusewire.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from fusewire.stores import Store

#: Seconds after which what has not come will not come.
DEADLINE = 30

WATCH = [sys.executable, "-m", "fusewire", "watch"]

AT_ONE = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
AT_FIVE = "circuit_breaker:\n  violation_threshold: 5\n  dedup_seconds: 0\n"

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"

#: Everything that the screen may send besides text: colours, places, erasing, and a screen of its own.
ALLOWED = re.compile(rb"\x1b\[[0-9;:]*m|\x1b\[[0-9]+;[0-9]+H|\x1b\[K|\x1b\[2J|\x1b\[\?1049[hl]")


class Terminal:
    """A pseudo-terminal with a program on it, `fusewire watch` unless told otherwise."""

    def __init__(
        self, root: Path, *arguments: str, columns: int = 110, lines: int = 30, command: list[str] = WATCH, **env: str
    ) -> None:
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.sent = bytearray()
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=root,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.slave = slave

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self, seconds: float) -> bool:
        """Feed the screen with what has come; whether anything has."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        data = os.read(self.master, 65536)
        self.sent += data
        self.stream.feed(data)
        return True

    def until(self, seen: Callable[[str], object], keys: str = "") -> str:
        """Press keys and wait until the screen is as wanted; what stands on it then."""
        if keys:
            self.press(keys)
        deadline = time.monotonic() + DEADLINE
        while self.read(0) or not self._whole() or not seen(self.text()):
            assert time.monotonic() < deadline, f"after {keys!r}:\n{self.text()}"
            self.read(0.1)
        return self.text()

    def _whole(self) -> bool:
        """Whether what has come ends with the place of the cursor, as every picture of the view does."""
        return (
            b"\x1b[?1049h" not in self.sent
            or re.search(rb"\x1b\[\d+;\d+H\Z|1049l.*\Z", self.sent[-5000:], re.DOTALL) is not None
        )

    def shows(self, *words: str, keys: str = "", without: str = "\0") -> str:
        return self.until(lambda text: all(word in text for word in words) and without not in text, keys)

    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.rows())

    def chosen(self) -> str:
        """The row with the mark; the cursor stands on it."""
        marked = [at for at, row in enumerate(self.rows()) if row.startswith("> ")]
        assert marked == [self.screen.cursor.y], self.text()
        return self.rows()[marked[0]]

    def color_of(self, word: str) -> str:
        for y, row in enumerate(self.screen.display):
            if word in row:
                return str(self.screen.buffer[y][row.index(word)].fg)
        raise AssertionError(f"{word!r} is not on the screen:\n{self.text()}")

    def wait(self) -> int:
        """The exit code; what was sent until then has been read, and the terminal's modes are as they were."""
        deadline = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        while self.read(0):
            pass
        code = self.process.wait(0)
        assert termios.tcgetattr(self.slave) == self.before
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def make(*arguments: Any, **options: Any) -> Terminal:
        made.append(Terminal(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


Make = Callable[..., Terminal]


def filled(root: Path) -> Project:
    """A project with one open circuit, one near its limit, 40 closed ones, a halted session and a loop."""
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    project = Project(root)
    project.constraint("force-push", AT_ONE, "# Never force-push\n")
    project.constraint("no-secrets", AT_FIVE, "# No secrets here\n")
    project.constraint("comes-later", AT_ONE)
    with Breaker.open(project=root) as breaker:
        breaker.record("force-push", "git push --force origin main", session=SESSION)
        for number in range(4):
            breaker.record("no-secrets", f"cat .env {number}")
        for number in range(40):
            breaker.record(f"tool/tool_failure/Bash(program-{number:02})/{SESSION}", "exit 1")
        breaker.record("loop/no_progress", "nothing")
        now = time.time()
        with breaker.store.transact() as transaction:
            facts = {"at": now, "halted": {"text": "HALTED tool.repetition: six times the same\nmore"}}
            transaction.remember(f"session/{SESSION}", {**facts, "spend": {"usd": 1.25}}, now)
            transaction.remember("session/over", {"at": now - 100, "ended": now - 90}, now - 90)
            transaction.happened(Doing(SESSION, "", now, "refused", "Bash", "git push --force"))
            transaction.notice("something was mended", now)
    return project


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Terminal]]:
    """One project and one view on it for all that is only looked at."""
    project = filled(tmp_path_factory.mktemp("watched") / "shop")
    one = Terminal(project.root)
    yield project, one
    one.close()


@pytest.fixture
def watched(shared: tuple[Project, Terminal]) -> Terminal:
    """On the panel, nothing filtered, the first row chosen."""
    one = shared[1]
    if (one.screen.columns, one.screen.lines) != (110, 30):
        one.resize(110, 30)
    one.shows("LAST MOVES", "> OPEN", "1-", keys="\x1bag", without="(a shows all)")
    return one


# -- the panel --------------------------------------------------------------------------------------------


def test_the_panel_answers_at_a_glance(watched: Terminal) -> None:
    """Project, money and warnings; what is tripped; open ones first with level, time left and reason; moves; keys."""
    head, headline, titles, first, second, *rest = watched.rows()
    assert re.fullmatch(r"FUSEWIRE shop +\$0\.00 today   1 warning \(w\)   \d\d:\d\d:\d\d UTC", head)
    assert headline == "1 circuit is open and 1 session is halted"
    assert re.fullmatch(r"  STATE     CIRCUIT +LEVEL +LEFT +REASON +1-\d+ of 44", titles)
    assert re.fullmatch(
        r"> OPEN      force-push +━━━━━━━━ 1/1 +(23h 59m|1d) +1 violations within 30d \(limit 1\)", first
    )
    assert re.fullmatch(r"  CLOSED    no-secrets +━━━━━━── 4/5 +the next one may open it", second)
    assert re.search(r"\n  LAST MOVES\n  \d\d:\d\d:\d\d OPEN      force-push: 1 violations within 30d", watched.text())
    assert rest[-1].startswith("q quit  ? help  Enter open  / filter")


def test_states_have_a_colour_and_a_word(watched: Terminal) -> None:
    """The chosen row is turned round, and has a mark: neither colour nor turning is needed to read it."""
    assert watched.color_of("OPEN      force-push") == "red"
    assert watched.color_of("CLOSED    no-secrets") == "green"
    assert watched.screen.buffer[3][5].reverse
    assert not watched.screen.buffer[4][5].reverse
    assert watched.chosen().startswith("> OPEN      force-push")


def test_a_trip_of_another_process_is_there_at_once(watched: Terminal, shared: tuple[Project, Terminal]) -> None:
    """On top, and among the moves; a person's reset takes it away again. The row that was chosen stays chosen."""
    assert watched.chosen().startswith("> OPEN      force-push")
    assert shared[0].run("record", "comes-later", "--action", "oops").returncode == 0
    seen = watched.shows("2 circuits are open", "OPEN      comes-later:").split("\n")
    assert seen[3].startswith("  OPEN      comes-later")
    assert watched.chosen().startswith("> OPEN      force-push")
    assert shared[0].run("reset", "comes-later", "--reason", "looked at it").returncode == 0
    watched.shows("1 circuit is open", "CLOSED    comes-later: reset: looked at it, by ")


def test_keys_move_the_mark(watched: Terminal) -> None:
    """Arrows in both modes, letters, pages, ends; the cursor follows, and the rows scroll with it."""
    circuits = [row.split()[2 if row[0] == ">" else 1] for row in watched.rows()[3:7]]
    for keys, place in (("j", 1), ("\x1b[B", 2), ("\x1bOB", 3), ("k", 2), ("\x1b[A", 1), ("\x1bOA", 0), ("k", 0)):
        watched.until(lambda _, at=place: watched.rows()[3 + at].startswith("> "), keys)  # type: ignore[misc]
        assert watched.chosen().split()[2] == circuits[place], keys
    room = int(re.findall(r"1-(\d+) of 44", watched.text())[0])
    watched.shows(f"{2}-{room + 1} of 44", keys="j" * room)
    for keys in ("G", "\x1b[F", "\x1b[4~", "\x1bOF"):
        watched.shows(f"{45 - room}-44 of 44", keys=keys)
        assert watched.rows()[2 + room] == watched.chosen()
        watched.shows(f"1-{room} of 44", keys={"G": "g", "\x1b[F": "\x1b[H", "\x1b[4~": "\x1b[1~"}.get(keys, "\x1bOH"))
        assert watched.rows()[3] == watched.chosen()
    watched.until(lambda _: watched.rows()[2 + room].startswith("> "), "\x1b[6~")
    watched.until(lambda _: watched.rows()[3].startswith("> "), "\x1b[5~")


def test_enter_opens_a_circuit(watched: Terminal, shared: tuple[Project, Terminal]) -> None:
    """Why, what was last, what to do and by which command, settings and where they come from, history; and back."""
    text = watched.shows("History, last 30 days", keys="\r")
    for words in (
        "force-push  OPEN\nNever force-push, ",
        "docs/constraints/force-push.md\n\nWhy      1 violations within 30d (limit 1)",
        "Last     git push --force origin main",
        "Level    ━━━━━━━━━━━━ 1/1 within 30d; 1 in all, 1 trip",
        'a person can run: fusewire reset force-push --reason "..."',
        "  violation_threshold  1   docs/constraints/force-push.md",
        "  window_days          30  default",
        "CLOSED -> OPEN (tripped): 1 violations within 30d (limit 1)",
        "violation  git push --force origin main",
    ):
        assert words in text
    watched.shows("LAST MOVES", "> OPEN      force-push", keys="\x1b")
    watched.shows("History, last 30 days", keys="\r")
    watched.shows("LAST MOVES", "> OPEN      force-push", keys="\x7f")
    assert shared[0].run("status", "force-push").stdout.startswith("force-push  OPEN")


def test_a_long_page_scrolls(watched: Terminal) -> None:
    """On a low terminal; up to its last line and not beyond, and back to its first."""
    watched.resize(60, 9)
    watched.shows("> OPEN      force-push", without="LAST MOVES")
    watched.shows("force-push  OPEN", keys="\r", without="History")
    watched.shows("---- the window starts", keys="GGjj")
    watched.shows("Never force-push", keys="g", without="window starts")
    watched.shows("Why ", keys="jj", without="Never force-push")
    watched.shows("FUSEWIRE shop", "> OPEN      force-push", keys="\x1b")


def test_a_filter_is_typed_live(watched: Terminal) -> None:
    """Words of state, id and reason in any case; Enter keeps it, Escape clears it; letters are no commands then."""
    watched.shows("/PROGRAM-3", "Bash(program-30", "Bash(program-39", keys="/PROGRAM-3", without="force-push  ")
    watched.until(lambda text: text.count("program-3") == 1, "5")
    assert watched.screen.cursor.x == len("/PROGRAM-35")
    watched.shows("filter: PROGRAM-35 (Esc clears it)", "q quit  ? help", keys="\r")
    assert "Bash(program-35" in watched.chosen()
    watched.shows("of 44", keys="\x1b", without="filter:")
    watched.shows("Nothing fits the filter qoslaw", keys="/qoslaw")
    watched.shows("Nothing fits the filter qosl.", keys="\x7f\x7f")
    watched.shows("/closed secrets", "no-secrets", keys="\x15closed secrets", without="program")
    watched.shows("of 44", keys="\x1b", without="/closed")


def test_open_ones_only_and_all(watched: Terminal) -> None:
    """`o` and `a`; both are asked for on any page and answered on the panel."""
    text = watched.shows("open only (a shows all)", keys="o", without="CLOSED    no-secrets")
    assert sum(row[2:].startswith("OPEN ") for row in text.split("\n")[:20]) == 1
    watched.shows("Moving", keys="?")
    watched.shows("CLOSED    no-secrets", keys="a", without="(a shows all)")


def test_sessions_loop_warnings_and_help_are_pages(watched: Terminal) -> None:
    """Each has its key; a session opens like a circuit; Escape leads back one page at a time."""
    text = watched.shows("STATE    HEARD", keys="s")
    assert re.search(rf"\n> HALTED   \d+s ago +\$1\.25    0      {SESSION}: HALTED tool.repetition", text)
    assert re.search(r"\n  ended    1m \d+s ago +\$0\.00    0      over", text)
    opened = watched.shows("What it did, newest first", keys="\r")
    assert "The agent is halted, until a person says something to it: HALTED tool.repetition: six" in opened
    assert re.search(r"\n  \d\d:\d\d:\d\d refused Bash git push --force", opened)
    watched.shows("STATE    HEARD", keys="\x1b")
    watched.shows("No iteration of a supervised loop", keys="l")
    watched.shows("something was mended", "fusewire doctor --acknowledge", keys="w")
    watched.shows("Moving\n", "a person acts", keys="?")
    watched.shows("something was mended", keys="\x1b")
    watched.shows("LAST MOVES", keys="\x1b")


def test_it_fits_every_size(watched: Terminal) -> None:
    """40 by 10 shows the open ones with their time; one row has the headline; nothing is left of a larger one."""
    watched.resize(40, 10)
    text = watched.shows("> OPEN      force-push         23h 59m", without="LAST MOVES")
    assert text.startswith("FUSEWIRE shop               $0.00 today\n1 circuit is open and 1 session is hal…")
    assert all(len(row) < 40 for row in watched.rows())
    for columns, lines in ((20, 3), (7, 2), (30, 1), (1, 1), (2, 4)):
        watched.resize(columns, lines)
        watched.until(lambda text, width=columns: text.startswith("1 circuit is open and 1"[: max(0, width - 2)]))  # type: ignore[misc]
        assert all(len(row) < max(2, columns) for row in watched.rows())
    watched.resize(200, 60)
    watched.shows("LAST MOVES", "Bash(program-39)/479528ae…")


def test_rules_that_change_are_followed(watched: Terminal, shared: tuple[Project, Terminal]) -> None:
    """A constraint that is written while it runs is there; and time goes on without anybody writing."""
    shared[0].constraint("brand-new", AT_FIVE, "# Fresh\n")
    watched.shows("/fresh", "CLOSED    brand-new", "0/5", keys="/fresh")
    clock = watched.rows()[0][-12:]
    watched.until(lambda _: watched.rows()[0][-12:] != clock)
    (shared[0].root / "docs" / "constraints" / "brand-new.md").unlink()
    watched.shows("Nothing fits the filter fresh.")


def test_nothing_but_text_colours_and_places_is_sent(watched: Terminal) -> None:
    """And while nothing changes but the clock, little of it."""
    assert re.findall("[^\r\n -~\xa0-\U0010ffff]", ALLOWED.sub(b"", watched.sent).decode()) == []
    assert watched.sent.count(b"\x1b[?1049h") == 1
    watched.read(0)
    watched.sent.clear()
    watched.until(lambda _: watched.sent.count(b" UTC") >= 2)
    assert len(watched.sent) < 1000


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
    text = one.shows("The state cannot be read; it is tried again", "state.db (file is", "fusewire doctor")
    assert "CLOSED" not in text
    assert "Nothing is tripped" not in text
    one.shows("Moving", keys="?")
    one.shows("state.db (file is", keys="\x1b")
    assert project.run("status").returncode == 0
    one.shows("1 circuit is open", "> OPEN      force-push", "1 warning (w)")
    project.run("record", "comes-later", "--action", "x")
    one.shows("2 circuits are open", "OPEN      comes-later: 1 violations")


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


# -- lines ------------------------------------------------------------------------------------------------------


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
        r"OPEN force-push 1/1, a probe in (24h|23h 59m|1d): 1 violations within 30d \(limit 1\)", one.line()
    )
    project.run("record", "other", "--action", "y")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ OPEN other: 1 violations within 30d \(limit 1\)", one.line())
    project.run("reset", "other", "--reason", "seen")
    assert re.fullmatch(r"\S+Z CLOSED other: reset: seen, by \S.*", one.line())
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(DEADLINE) == 130


def test_no_move_is_lost_among_hundreds_a_second(project: Project, piped: Callable[..., Piped]) -> None:
    """Four processes that write as fast as they can, with as many moves between two looks as come."""
    writer = (
        "import sys; from fusewire.breaker import Breaker; from fusewire.stores.rows import AuditRow\n"
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


# -- the parts --------------------------------------------------------------------------------------------------


def test_keys_may_come_in_pieces() -> None:
    """A sequence or a character of several bytes that is cut; Escape alone only if nothing follows."""
    keys = Keys()
    assert keys.of(b"j\x1b[") == ["j"]
    assert keys.waiting
    assert keys.of(b"5~\xc3") == ["pgup"]
    assert keys.of("é漢".encode()[1:]) == ["é", "漢"]
    assert keys.of(b"\x1b") == []
    assert keys.end() == ["esc"]
    assert not keys.waiting
    assert keys.of(b"\x1bq\x1b\x1b[A") == ["esc", "q", "esc", "up"]
    assert keys.of(b"\x1b[200~\x1b[1;5A\x01\xff\r\n\x7f \t") == ["enter", "enter", "backspace", " "]
    assert keys.end() == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\n b\tc", "a b c"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\u202eevil\u2069\ufeff", "\ufffdevil\ufffd\ufffd"),
        ("漢字 é", "漢字 é"),
        ("\udce9", "\ufffd"),
        ("x" * 9000, "x" * 4000 + " [...]"),
    ],
)
def test_texts_are_shown_harmless(text: str, seen: str) -> None:
    """One line, no escapes, no turned or hidden characters, not too long."""
    assert shown(text) == seen


def moved(number: int, at: float | None = None) -> AuditRow:
    return AuditRow(f"loop/{number}", float(number) if at is None else at, "closed", "open", "tripped", "why", "")


def written(store: Store, *rows: AuditRow) -> None:
    with store.transact() as transaction:
        for row in rows:
            transaction.audit(row)


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else open_store(f"sqlite:{tmp_path / 'state.db'}")


def test_a_trail_gives_every_move_once(store: Store) -> None:
    """From where it began, with the last few before; also if the store was empty then."""
    empty = Trail(5)
    assert empty.news(store) == []
    written(store, *map(moved, range(1, 9)))
    assert [number for number, _ in empty.news(store)] == list(range(1, 9))
    late, later = Trail(0), Trail(3)
    assert late.news(store) == []
    assert [row for _, row in later.news(store)] == [moved(6), moved(7), moved(8)]
    written(store, moved(9), moved(10))
    for trail in (empty, late, later):
        assert [row for _, row in trail.news(store)] == [moved(9), moved(10)]
        assert trail.news(store) == []
        assert trail.lost == 0


def test_a_trail_says_what_it_has_missed(tmp_path: Path) -> None:
    """More moves between two looks than the store keeps: the rest is given, and how many are not."""
    store = SqliteStore(str(tmp_path / "state.db"))
    written(store, moved(1))
    trail = Trail(0)
    trail.news(store)
    for first in range(2, 4002, 500):
        written(store, *map(moved, range(first, first + 500)))
    found = trail.news(store)
    assert found[-1] == (4001, moved(4001))
    assert AUDIT_ROWS <= len(found) < 4000
    assert trail.lost == 4000 - len(found)


def test_a_trail_goes_on_in_a_database_that_counts_anew(tmp_path: Path) -> None:
    """Rebuilt from the text beside it, with other numbers, or with nothing of what was known: no move comes twice."""
    store = SqliteStore(str(tmp_path / "state.db"))
    written(store, *(moved(number, 1000.0004 + number) for number in range(1, 4)))
    trail = Trail(0)
    trail.news(store)
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    (tmp_path / "audit.jsonl").write_text(lines[-1] + "\n")
    (tmp_path / "state.db").unlink()
    written(store, moved(4, 2000.0))
    assert store.last_move() == 2
    assert trail.news(store) == [(2, moved(4, 2000.0))]
    assert trail.news(store) == []
    for path in tmp_path.glob("*"):
        path.unlink()
    written(store, moved(3, 1003.0), moved(5, 3000.0))
    assert trail.news(store) == [(2, moved(5, 3000.0))]
    assert trail.lost == 0


def test_a_panel_that_takes_long_is_collected_less_often(project: Project) -> None:
    """Looking ten times in a row collects once; what is written is seen at the next look all the same."""
    with Breaker.open(project=project.root) as breaker:
        breaker.record("loop/no_progress", "x")
        source = Source(str(project.root), recent=5)
        source.look()
        seen = source.panel
        source.look()
        assert source.panel is seen
        breaker.record("loop/no_progress", "x")
        deadline = time.monotonic() + DEADLINE
        while source.panel is seen and time.monotonic() < deadline:
            source.look()
        assert source.panel is not None
        assert source.panel["circuits"][0]["level"] == 2
        source.close()


def test_the_loop_has_a_page(project: Project) -> None:
    """Its state, score and metrics as `status loop` tells them, in rows that are not too wide."""
    project.run("loop", "begin")
    project.run("loop", "end")
    source = Source(str(project.root))
    source.look()
    rows = [row.plain for row in read_lines(source, "loop", "", 40)]
    source.close()
    assert rows[0].startswith("LOOP CLOSED: 1 iteration")
    assert "METRICS" in rows
    assert max(map(len, rows)) <= 40


def test_a_score_that_fell_too_far_is_full_while_its_probe_is_awaited(project: Project) -> None:
    """Its limit is 0, of which nothing is a share."""
    for _ in range(3):
        project.run("loop", "begin")
        project.run("loop", "end")
    project.run("reset", "loop", "--reason", "the network is back")
    source = Source(str(project.root))
    source.look()
    rows = [row.plain for row in read_lines(source, "circuit", "loop/score", 100)]
    source.close()
    assert rows[0] == "loop/score  HALF_OPEN"
    assert next(row for row in rows if row.startswith("Level")).startswith(f"Level    {'━' * 12} -")

"""A run on a terminal: the real view in a process of its own, on a real pseudo-terminal, read as a person sees it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

#: Does what it is told, line by line, as the supervisor would; a NUL, which no terminal shows, says that it is done.
DRIVER = r"""
import json, os, sys, threading, time
from fusewire.agents.output.answer import AgentOutput
from fusewire.cli.live import LiveView
from fusewire.worktree.difference import TreeChange
from fusewire.worktree.snapshot import Snapshot
from fusewire.breakers.loop.advice import Advice
from fusewire.breakers.loop.types import IterationResult, IterationStart
from fusewire.run.process import ProcessEnd, run_agent

now = 1000.0

def later(seconds):
    global now
    now += seconds

def began(number=7, state="CLOSED", scores=(), calls=93, advice=(), neutral=0):
    history = [{"score": score, "kind": "progress"} for score in scores] + [{"score": 0, "kind": "neutral"}] * neutral
    memory = {"history": history}
    view.began(IterationStart("token", number, state, Advice(advice), calls, Snapshot(""), (), memory, ()))

def judged(number=7, state="CLOSED", score=3, cost=None, kind="progress", calls=92, seconds=61.0):
    entry = {"calls_left": calls, "cost": cost, "tests": None, "risk": "LOW", "blocked": "the model is away"}
    answer = AgentOutput(cost=cost)
    view.judged(
        IterationResult(number, state, kind, score, {}, TreeChange(), answer, "exit", (), False, "", "", "", entry),
        ProcessEnd("exit", 0, "", seconds, 0),
    )

view = LiveView() if sys.argv[1:] == ["real"] else LiveView(lambda: now)
with view:
    for line in sys.stdin:
        exec(json.loads(line))
        os.write(2, b"\0")
"""

#: Everything that the view may send besides text: colours, erasing below and to the right, and up to its footer.
ALLOWED = re.compile(rb"\x1b\[[0-9;:]*m|\x1b\[[JK]|\x1b\[[1-3]A")


def controls(sent: bytes) -> list[str]:
    """What else could move or switch something; the NUL is the driver's."""
    return re.findall("[^\0\r\n\t -~\xa0-\U0010ffff]", ALLOWED.sub(b"", sent).decode())


class Terminal:
    """A pseudo-terminal with the view on it."""

    def __init__(self, columns: int = 100, lines: int = 30, real: bool = False, out: int | None = None, **env: str):
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.resize(columns, lines)
        self.sent = bytearray()
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *(["real"] if real else [])],
            stdin=subprocess.PIPE,
            stdout=slave if out is None else out,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **env},
            start_new_session=True,
        )
        os.close(slave)

    def renew(self) -> None:
        """Another view on an empty screen: half a second less than another process."""
        self.do("view.__exit__(None, None, None); now = 1000.0; view = LiveView(lambda: now)")
        self.screen.reset()
        self.sent.clear()

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def tell(self, code: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(code).encode() + b"\n")
        self.process.stdin.flush()

    def do(self, code: str) -> bytes:
        """Let the driver run this; what it has sent to the terminal meanwhile."""
        self.tell(code)
        return self._read(until=b"\0")

    def end(self) -> bytes:
        """No more orders; what it sends at its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.rest()

    def rest(self) -> bytes:
        sent = self._read(until=None)
        self.process.wait(45)
        return sent

    def _read(self, until: bytes | None) -> bytes:
        got = bytearray()
        while until is None or not got.endswith(until):
            try:
                data = os.read(self.master, 65536)
            except OSError:  # nobody has the other end any more
                data = b""
            if not data:
                assert until is None, f"the driver has ended: {bytes(got[-3000:]).decode()}"
                break
            got += data
        self.sent += got
        if len(got) < 100_000:  # a flood is counted, not looked at
            self.stream.feed(bytes(got))
        return bytes(got.replace(b"\0", b""))

    def rows(self) -> list[str]:
        """What stands on the screen, without the empty rows below."""
        rows = [row.rstrip() for row in self.screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def color_of(self, word: str) -> str:
        """Of the last place where it stands."""
        for y, row in reversed(list(enumerate(self.screen.display))):
            if word in row:
                return str(self.screen.buffer[y][row.index(word)].fg)
        raise AssertionError(f"{word!r} is not on the screen: {self.rows()}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass


@pytest.fixture(scope="module")
def ordinary() -> Iterator[list[Terminal]]:
    """Terminals of the usual kind; the last one may still be used."""
    made: list[Terminal] = []
    yield made
    for one in made:
        one.close()


@pytest.fixture
def terminal(ordinary: list[Terminal]) -> Iterator[Callable[..., Terminal]]:
    special: list[Terminal] = []

    def make(*arguments: int, **options: object) -> Terminal:
        if arguments or options:
            special.append(Terminal(*arguments, **options))  # type: ignore[arg-type]
            return special[-1]
        if ordinary and ordinary[-1].process.poll() is None:
            ordinary[-1].renew()
        else:
            ordinary.append(Terminal())
        return ordinary[-1]

    yield make
    for one in special:
        one.close()


Make = Callable[..., Terminal]

# -- the footer -------------------------------------------------------------------------------------------


def test_the_footer_says_where_the_loop_is(terminal: Make) -> None:
    """Number, state, time of the iteration, bars, the last three, calls, money, time of the run; output is above it."""
    one = terminal()
    one.do("began(6, scores=[5, -3, 1, 4])")
    one.do("later(61); judged(6, score=2, cost=0.7, calls=91)")
    one.do("judged(6, score=2, cost=0.5, calls=91)")
    one.do("later(30); began(7, scores=[5, -3, 1, 4, 2], calls=90, neutral=2)")
    one.do("later(42.4); view.tick(42.4); view.output('hello from the agent\\n')")
    one.do("later(1); view.tick(43.4)")
    assert one.rows() == [
        "[6] CLOSED, 93 calls left",
        *["[6] score +2; no file changed; 1m 1s; risk LOW"] * 2,
        "[7] CLOSED, 90 calls left",
        "hello from the agent",
        "[7] CLOSED · 43s · █▁▅▇▅ last 3: +7 · 90 calls left · $1.20 · run 2m 14s",
    ]


def test_what_is_not_known_is_left_out(terminal: Make) -> None:
    """No score before the first judgement, no money from an agent that does not tell, no footer before the start."""
    one = terminal()
    one.do("view.tells('Iteration 3 was cut off')")
    assert one.rows() == ["Iteration 3 was cut off"]
    one.do("began(4, calls=1)")
    assert one.rows()[-1] == "[4] CLOSED · 0s · 1 call left · run 0s"
    one.do("judged(4, kind='neutral', score=0)")
    assert one.rows()[-2:] == [
        "[4] the model is away; no file changed; 1m 1s; risk LOW",
        "[4] CLOSED · 1m 1s · 92 calls left · run 0s",
    ]


@pytest.mark.parametrize(("state", "color"), [("CLOSED", "green"), ("HALF_OPEN", "brown"), ("OPEN", "red")])
def test_the_state_has_its_colour(terminal: Make, state: str, color: str) -> None:
    """Green, yellow (which terminals call brown), red; a judgement may change it."""
    one = terminal()
    one.do(f"began(); judged(state={state!r})")
    assert one.color_of(f"{state} ·") == color
    assert b"\x1b[2m \xc2\xb7 \x1b[0m92 calls left" in one.sent


def test_waiting_counts_down_with_a_bar(terminal: Make) -> None:
    """What is waited for is said once above the footer and stands beside the bar, which fills up."""
    one = terminal()
    one.do("began(); judged(state='OPEN')")
    one.do("view.waits('no_progress: 3 times nothing', 1800.0, 1800.0)")
    said, status, bar = one.rows()[-3:]
    assert said == "waiting 30m: no_progress: 3 times nothing"
    assert status == "[7] OPEN · ▄ last 3: +3 · 92 calls left · run 0s"
    assert bar == f"waiting 30m {'─' * 24} no_progress: 3 times nothing"
    one.do("later(600); view.waits('no_progress: 3 times nothing', 1199.5, 1800.0)")
    assert one.rows()[-1] == f"waiting 20m {'━' * 8}{'─' * 16} no_progress: 3 times nothing"
    assert [row for row in one.rows() if row.startswith("waiting 30m")] == [said]
    one.do("began(8, state='HALF_OPEN')")
    assert one.rows()[-2:] == ["[8] HALF_OPEN, 93 calls left", "[8] HALF_OPEN · 0s · 93 calls left · run 10m"]
    assert not [row for row in one.rows() if "━" in row]
    one.do("view.waits('no_progress: 3 times nothing', 3600.0, 3600.0)")
    assert one.rows()[-3] == "waiting 1h: no_progress: 3 times nothing"


def test_a_wait_before_the_first_iteration_has_a_footer_too(terminal: Make) -> None:
    """A circuit that is open since yesterday: nothing is known but what is waited for."""
    one = terminal()
    one.do("view.waits('score:\\nbelow zero', 30.2, 60.0)")
    assert one.rows() == [
        "waiting 31s: score: below zero",
        "run 0s",
        f"waiting 31s {'━' * 12}{'─' * 12} score: below zero",
    ]


def test_a_footer_in_which_nothing_happens_is_not_painted_again(terminal: Make) -> None:
    """Four ticks a second, one change a second."""
    one = terminal()
    one.do("began()")
    sent = [one.do(f"later(0.25); view.tick({tick} * 0.25)") for tick in range(1, 41)]
    assert sum(bool(data) for data in sent) == 10


def test_a_shorter_footer_leaves_nothing_of_a_longer_one(terminal: Make) -> None:
    """59 seconds have a character more than a minute."""
    one = terminal()
    one.do("began(); later(59); view.tick(59.0)")
    assert one.rows()[-1] == "[7] CLOSED · 59s · 93 calls left · run 59s"
    one.do("later(1); view.tick(60.0)")
    assert one.rows()[-1] == "[7] CLOSED · 1m · 93 calls left · run 1m"


def test_lines_that_come_one_by_one_are_gathered(terminal: Make) -> None:
    """Lines of one second make four repaints, none is lost, and the first is there at once."""
    one = terminal(100, 120)
    one.do("began(); later(5)")
    assert b"line 0" in one.do("view.output('line 0\\n')")
    sent = [one.do(f"later(1 / 64); view.output('line {number}\\n')") for number in range(1, 65)]
    assert sum(bool(data) for data in sent) == 4
    one.do("later(0.25); view.tick(6)")
    assert one.rows()[1:-1] == [f"line {number}" for number in range(65)]


# -- room and characters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [200, 79, 40, 20, 7, 2, 1])
def test_a_narrow_terminal_cuts_the_footer(terminal: Make, columns: int) -> None:
    """Each of its rows stays one row, and the last column stays free."""
    one = terminal(columns, 40)
    one.do("began(scores=[1] * 20); judged(cost=100.0)")
    one.do("later(1); view.waits('no_progress: ' + '漢字 and words ' * 20, 4.0, 9.0); view.output('x\\n')")
    one.do("later(1); view.waits('no progress, ' * 9, 2.0, 9.0)")
    footer = one.rows()[-2:]
    assert footer[0].startswith("[7] CLOSED"[: max(0, columns - 2)])
    assert footer[1].startswith("waiting"[: max(0, columns - 2)])
    assert all(len(row) < max(2, columns) for row in footer)
    assert (one.screen.cursor.x, one.screen.cursor.y) == (0, len(one.rows()) - 2)
    if 10 < columns < 79:
        assert all(row.endswith("…") for row in footer)


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_low_terminal_shows_the_last_rows(terminal: Make, lines: int) -> None:
    """Rows for which there is no room are left out: going up to them is not possible."""
    one = terminal(60, lines)
    one.do("began(); later(1); view.output('half'); later(1); view.waits('why', 9.0, 9.0)")
    sent = one.do("later(1); view.output('half'); later(1); view.waits('why', 8.0, 9.0)")
    assert sent.count(b"\n") == min(lines, 2) - 1 + lines - 1
    wanted = ["half", "[7] CLOSED · 93 calls left · run 4s", f"waiting 8s {'━' * 2}{'─' * 13} why"]
    assert one.rows() == wanted[-lines:]
    assert (one.screen.cursor.x, one.screen.cursor.y) == (0, 0)


def test_a_footer_fits_again_after_the_window_was_made_smaller(terminal: Make) -> None:
    """The size is asked for at every repaint, and nothing of the wide one is left."""
    one = terminal(100, 30)
    one.do("began(scores=[1, 2, 3])")
    one.resize(40, 10)
    one.do("later(0.25); view.tick(0.25)")
    assert one.rows()[-1] == "[7] CLOSED · 0s · ▁▅█ last 3: +6 · 93 …"
    assert len(one.rows()) == 2


def test_an_encoding_without_bars_gets_ascii(terminal: Make) -> None:
    """The footer in other characters, the agent's text with question marks; never an error."""
    one = terminal(PYTHONIOENCODING="ascii:strict")
    one.do("began(scores=[1, 8]); view.waits('why', 5.0, 10.0)")
    one.do("later(1); view.output('caf\\xe9 \\udce9\\n')")
    assert max(one.sent) < 128
    assert one.rows()[-3:] == [
        "caf? ?",
        "[7] CLOSED | _# last 3: +9 | 93 calls left | run 1s",
        "waiting 5s ============------------ why",
    ]


def test_no_color_means_none(terminal: Make) -> None:
    """Neither the footer's nor the agent's."""
    one = terminal(NO_COLOR="1")
    one.do("began(); judged(state='OPEN'); view.waits('why', 5.0, 10.0)")
    one.do("later(1); view.output('\\x1b[31mred\\x1b[0m and \\x1b[1mbold\\n')")
    one.do("later(1); view.tick(1.0)")
    one.end()
    assert "red and bold" in one.rows()
    assert not re.search(rb"\x1b\[[0-9;:]*m", one.sent)


# -- the agent's output -----------------------------------------------------------------------------------


def test_a_line_without_end_is_shown_after_a_while(terminal: Make) -> None:
    """Its end is shown above the footer, and it stays there as a whole once it has ended."""
    one = terminal(40, 20)
    one.do("began(); later(1); view.output('Working')")
    assert len(one.rows()) == 2
    one.do("later(0.6); view.tick(1.6)")
    assert one.rows()[1] == "Working"
    one.do("later(0.3); view.output(' hard' * 10)")
    assert one.rows()[1] == ("Working" + " hard" * 10)[-39:]
    one.do("later(0.3); view.output(' indeed\\nnext')")
    assert "".join(one.rows()[1:3]) == "Working" + " hard" * 10 + " indeed"
    assert len(one.rows()) == 4
    one.do("view.tells('and that was it')")
    assert one.rows()[3:5] == ["next", "and that was it"]
    one.do("view.output('漢字' * 30 + 'Z'); later(1); view.tick(4.0)")
    assert one.rows()[5:-1] == [("漢字" * 30)[-19:] + "Z"]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (["10 %\r", "20 %\r", "done\n"], "done"),
        (["windows\r", "\n"], "windows"),
        (["windows\r\n"], "windows"),
        (["x" * 3999 + "\r", "y" * 10 + "\r", "ok\n"], "ok"),
        (["a\tb\n"], "a       b"),
        (["漢字 ", "and é\n"], "漢字 and é"),
    ],
)
def test_a_line_that_is_written_over_shows_its_last_state(terminal: Make, output: list[str], shown: str) -> None:
    """As a terminal would, without moving the cursor; and ordinary text is as it was."""
    one = terminal(40, 20)
    one.do("began()")
    for text in output:
        one.do(f"later(1); view.output({text!r})")
    assert one.rows()[-2] == shown


def test_colours_go_on_over_lines_and_end_before_the_footer(terminal: Make) -> None:
    """What the agent switches on holds for its next lines, never for ours, and not in its next iteration."""
    one = terminal()
    one.do("began(); later(1); view.output('\\x1b[1;31mred\\nstill\\n\\x1b[0;34mblue\\n\\x1b[mplain\\n')")
    one.do("later(1); view.output('\\x1b[35mlate\\n'); view.tells('ours'); later(1); view.output('after\\n')")
    expected = {
        "red": "red",
        "still": "red",
        "blue": "blue",
        "plain": "default",
        "late": "magenta",
        "ours": "default",
        "after": "default",
        "93 calls": "default",
    }
    assert {word: one.color_of(word) for word in expected} == expected


HOSTILE = {
    "clear": "\x1b[2J\x1b[H\x1b[3J",
    "cursor": "\x1b[99A\x1b[1;1H\x1b[5D\x1b[s\x1b[u\x1b7\x1b8\x1bM\x1bD",
    "alternate screen": "\x1b[?1049h\x1b[?47h",
    "hidden cursor": "\x1b[?25l",
    "mouse": "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?2004h",
    "keyboard": "\x1b[>4;2m\x1b[>1u\x1b[?1h\x1b=",
    "title": "\x1b]0;owned\x07\x1b]2;owned\x1b\\",
    "title without end": "\x1b]0;owned",
    "clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "link": "\x1b]8;;http://example.com\x1b\\\x1b]8;;\x1b\\",
    "device": '\x1bP$q"p\x1b\\\x1b_owned\x1b\\\x1b^owned\x1b\\\x1bXowned\x1b\\',
    "question": "\x1b[c\x1b[6n\x1b[>q\x1bZ",
    "region": "\x1b[3;5r\x1b[?6h\x1b[?7l\x1b[4h\x1b[20h",
    "character set": "\x1b(0\x1b)0\x0e\x1b%@",
    "reset": "\x1bc\x1b[!p\x1b#8",
    "eight bits": "\x9b2J\x9b31m\x85\x84\x8d\x90",
    "controls": "\x00\x01\x05\x07\x08\x0b\x0c\x0e\x0f\x11\x13\x1a\x7f",
    "broken": "\x1b\x1b[\x1b[1;\x1b[3\x081\x1b",
    "in each other": "\x1b[\x1b[2J\x1b\x00[2J\x1b]0;\x1b[2J\x07\x1b\x1b]0;owned\x07c",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_agent_has_no_power_over_the_terminal(terminal: Make, name: str) -> None:
    """Whatever it prints, whole or byte by byte: what was there stays, and so do modes and footer."""
    one = terminal()
    one.do("began(); view.tells('before')")
    modes, text = set(one.screen.mode), f"bad{HOSTILE[name]}\n"
    for part in (*text, text):
        one.do(f"later(0.6); view.output({part!r})")
    one.do(f"later(1); view.output('after\\n'); view.tells({text!r}); view.waits({text!r}, 5.0, 10.0)")
    rows = one.rows()
    assert rows[:2] == ["[7] CLOSED, 93 calls left", "before"]
    assert [row for row in rows if row.startswith("bad")] == [*rows[2:4], rows[5]]
    assert rows[4] == "after"
    assert rows[-2].startswith("[7] CLOSED · 93 calls left")
    assert rows[-1].startswith(f"waiting 5s {'━' * 12}{'─' * 12} bad")
    assert (one.screen.mode, one.screen.title, one.screen.margins) == (modes, "", None)
    assert not one.screen.cursor.hidden
    assert not controls(one.sent)
    assert b"owned" not in one.sent


def test_chance_has_no_power_over_the_terminal_either(terminal: Make) -> None:
    """Thousands of lines of what sequences are made of, in pieces of any length."""
    one = terminal()
    one.do("began()")
    sent = one.do(
        "import random; chance = random.Random(7)\n"
        "parts = ['\\x1b', '\\x1b[', '\\x1b]', '\\x9b', '\\x9d', '\\x07', '\\x1b\\\\', '\\r', '\\n']\n"
        "parts += '0123456789;?>:mHJKhlABcP_^X( '\n"
        "for _ in range(3000):\n"
        "    view.output(''.join(chance.choices(parts, k=chance.randrange(1, 12)))); later(0.1)\n"
        "view.tells('the end')"
    )
    assert sent.count(b"\n") > 500
    assert not controls(sent)


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_output_that_goes_elsewhere_goes_there_as_it_is(terminal: Make, tmp_path: Path, kind: str) -> None:
    """Byte for byte, escapes and unended lines too; the footer is on the terminal, and gives way to a pipe's reader."""
    if kind == "pipe":
        reads, writes = os.pipe()
    else:
        writes = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
        reads = os.open(tmp_path / "out", os.O_RDONLY)
    text = "\x1b[2Jcaf\xe9 漢\r\n\x1b]0;title\x07" + "x" * 9000 + "\nno end"
    one = terminal(out=writes, PYTHONIOENCODING="ascii")
    os.close(writes)
    try:
        one.do("began()")
        one.do(f"later(1); view.output({text!r})")
        assert os.read(reads, 65536) == text.encode()
        assert (one.rows()[-1].startswith("[7] CLOSED | 0s")) == (kind == "file")
        one.do("later(0.25); view.tick(1.25)")
        assert one.rows()[-1] == "[7] CLOSED | 1s | 93 calls left | run 1s"
        one.do("view.tells('told')")
        assert one.rows()[-2] == "told"
        one.end()
        assert os.read(reads, 65536) == b""
    finally:
        os.close(reads)


def test_what_tee_prints_does_not_meet_the_footer(terminal: Make) -> None:
    """`fusewire run | tee log`: the reader's lines arrive on the terminal by another way, and are not painted over."""
    reads, writes = os.pipe()
    one = terminal(out=writes)
    os.close(writes)
    one.do("began()")
    for number in range(3):
        one.do(f"later(1); view.output('line {number}\\n')")
        one.stream.feed(os.read(reads, 65536).replace(b"\n", b"\r\n"))
        one.do(f"later(0.25); view.tick({number} * 1.25)")
    os.close(reads)
    assert one.rows()[1:] == ["line 0", "line 1", "line 2", "[7] CLOSED · 2s · 93 calls left · run 3s"]


# -- floods -----------------------------------------------------------------------------------------------

NOTE = re.compile(rb"\[fusewire: (\d+) lines not shown here; their beginning and end are in ([^\]]*)\]")


def test_a_flood_does_not_slow_the_run(terminal: Make) -> None:
    """100 MB of a real agent: a part is shown, every line is shown or counted, and the end is always there."""
    one = terminal(real=True)
    one.do("began(12)")
    sent = one.do(
        "began_at, cpu = time.monotonic(), time.process_time()\n"
        "run_agent(['sh', '-c', 'yes flood | head -n 16666666; echo the end'], cwd='/', environment=os.environ,"
        " given=b'', timeout=60.0, idle=None, on_output=lambda data: view.output(data.decode()), on_error=print,"
        " on_tick=lambda: view.tick(time.monotonic() - began_at), stop=lambda: False, mark='flood')\n"
        "judged(12); view.tells(f'took {time.monotonic() - began_at:.1f} {time.process_time() - cpu:.1f}')"
    )
    took = re.search(rb"took ([0-9.]+) ([0-9.]+)", sent)
    assert took is not None
    shown = len(re.findall(rb"flood\n|flood\r\n", sent))
    hidden = [int(count) for count, log in NOTE.findall(sent)]
    assert shown + sum(hidden) == 16666666
    assert shown <= 2040 * (float(took[1]) + 2)
    assert len(hidden) <= float(took[1]) + 2
    assert NOTE.findall(sent)[0][1] == b".fusewire/loop/output/iteration-000012.log"
    assert re.search(rb"flood\r?\nthe end\r?\n\[12\] score", sent)
    assert float(took[2]) < 4


def test_the_next_second_shows_lines_again(terminal: Make) -> None:
    """Up to the limit all, then the count and the last ones, then again all."""
    one = terminal()
    one.do("began()")
    text = "\n".join(f"line {number}" for number in range(3000))
    first = one.do(f"later(1); view.output({text!r} + '\\n')")
    assert (b"line 1999\r" in first, b"line 2000\r" in first) == (True, False)
    second = one.do("later(1.1); view.tick(2.0)")
    assert re.findall(rb"line (\d+)", second) == [str(number).encode() for number in range(2980, 3000)]
    assert NOTE.findall(second) == [(b"980", b".fusewire/loop/output/iteration-000007.log")]
    assert b"and on" in one.do("later(1); view.output('and on\\n')")


def test_long_lines_count_as_several(terminal: Make) -> None:
    """6 MB in lines of 3,000 characters: a terminal is not given more of them than of short ones."""
    one = terminal()
    one.do("began()")
    assert len(one.do("later(1); view.output(('z' * 3000 + '\\n') * 2000)")) < 500_000
    assert NOTE.search(one.do("later(1.1); view.tick(2.0)"))


@pytest.mark.parametrize("end", ["\n", "\r", ""])
def test_endless_lines_are_cut(terminal: Make, end: str) -> None:
    """10 MB in lines of 100,000 characters, or in none at all: little of it is sent, and little is kept."""
    one = terminal()
    one.do("began()")
    sent = one.do(
        "import tracemalloc; tracemalloc.start()\n"
        f"for _ in range(100): view.output('x' * 100000 + {end!r}); later(0.01)\n"
        "later(2); view.tick(3.0)\n"
        "peak = tracemalloc.get_traced_memory()[1]"
    )
    one.do("view.tells(f'peak {peak}')")
    assert len(sent) < 700_000
    (peak,) = re.findall(rb"peak (\d+)", bytes(one.sent))
    assert int(peak) < 3_000_000


# -- the end ----------------------------------------------------------------------------------------------


def is_restored(one: Terminal) -> bool:
    """The cursor is seen, at the start of an empty row below everything, and nothing is coloured."""
    cursor = one.screen.cursor
    return not cursor.hidden and (cursor.x, cursor.y) == (0, len(one.rows())) and cursor.attrs.fg == "default"


def test_at_the_end_the_footer_is_gone(terminal: Make) -> None:
    """What was not shown yet is; what comes next stands at the start of a row."""
    one = terminal(100)
    one.do("began(); later(1); view.output('one\\n'); view.output('two\\n\\x1b[31mthree')")
    one.end()
    assert one.rows() == ["[7] CLOSED, 93 calls left", "one", "two", "three"]
    assert is_restored(one)
    assert one.process.returncode == 0


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("how", ["exception", "interrupt"])
def test_the_terminal_is_restored_whatever_happens(terminal: Make, how: str, waits: bool) -> None:
    """An exception or Ctrl-C while it runs or waits: the footer is gone before anything is said about it."""
    one = terminal(200, 60)
    one.do("began(); later(1); view.output('out\\nhalf'); later(1); view.tick(2.0)")
    if waits:
        one.do("view.waits('why', 5.0, 10.0)")
    if how == "exception":
        one.tell("raise RuntimeError('boom')")
    else:
        one.process.send_signal(signal.SIGINT)
    one.rest()
    assert is_restored(one)
    told = ["half", "waiting 5s: why"] if waits else ["half"]
    assert one.rows()[1 : 3 + len(told)] == ["out", *told, "Traceback (most recent call last):"]
    assert one.rows()[-1] == ("RuntimeError: boom" if how == "exception" else "KeyboardInterrupt")


def test_even_a_kill_leaves_a_usable_terminal(terminal: Make) -> None:
    """The cursor stands, seen and uncoloured, where the footer begins: a shell's prompt is written over it."""
    one = terminal()
    one.do("began(); judged(state='OPEN'); later(1); view.output('\\x1b[31mred\\n'); view.waits('why', 5.0, 10.0)")
    one.process.kill()
    one.rest()
    cursor = one.screen.cursor
    assert (cursor.hidden, cursor.x, cursor.attrs.fg) == (False, 0, "default")
    assert one.rows()[cursor.y].startswith("[7] OPEN")


def test_a_terminal_that_is_gone_does_not_end_the_run(terminal: Make, tmp_path: Path) -> None:
    """A closed window or a lost connection: the view falls silent."""
    one = terminal(100)
    on = tmp_path / "on"
    one.do("began()")
    assert one.process.stdin is not None
    os.close(one.master)
    one.master = os.open(os.devnull, os.O_RDONLY)
    one.tell(f"later(1); view.tells('x'); view.output('y\\n'); view.tick(2.0); open({str(on)!r}, 'w').close()")
    one.process.wait(45)
    assert on.exists()


def test_a_terminal_that_does_not_wait_gets_everything(terminal: Make) -> None:
    """Programs that share a terminal may have switched it so that a write which finds no room fails."""
    one = terminal()
    one.do("began(); os.set_blocking(2, False)")
    sent = one.do("later(1); view.output('x' * 99 + '\\n' + ('y' * 99 + '\\n') * 1500); os.set_blocking(2, True)")
    assert sent.count(b"y" * 99 + b"\r\n") == 1500


def test_there_is_no_thread(terminal: Make) -> None:
    """The warden and the agents are forked from this process."""
    one = terminal()
    one.do("began(); later(1); view.output('x\\n'); view.waits('why', 5.0, 10.0)")
    one.do("view.tells(f'{threading.active_count()} thread')")
    assert "1 thread" in one.rows()


def test_nobody_else_pays_for_rich() -> None:
    """It is imported with the live view only."""
    code = "import sys, fusewire.cli.run, fusewire.cli.plain; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

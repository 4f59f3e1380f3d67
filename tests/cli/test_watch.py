"""`fusewire watch`: the panel and its pages, on a real pseudo-terminal, read as a person sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.helpers.project import Project
from tests.helpers.watching import ALLOWED, AT_FIVE, SESSION, Terminal, filled


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


def test_the_panel_answers_at_a_glance(watched: Terminal) -> None:
    """Project, money and warnings; what is tripped; open ones first with level, time left and reason; moves; keys."""
    head, headline, titles, first, second, *rest = watched.rows()
    assert re.fullmatch(r"FUSEWIRE shop +\$0\.00 today   1 warning \(w\)   \d\d:\d\d:\d\d UTC", head)
    assert headline == "1 circuit is open and 1 session is halted"
    assert re.fullmatch(r"  STATE     CIRCUIT +LEVEL +LEFT +REASON +1-\d+ of 44", titles)
    assert re.fullmatch(
        r"> OPEN      force-push +━━━━━━━━ 1/1 +(23h 59m|1d) +1 violation within 30d \(limit 1\)", first
    )
    assert re.fullmatch(r"  CLOSED    no-secrets +━━━━━━── 4/5 +the next one may open it", second)
    assert re.search(r"\n  LAST MOVES\n  \d\d:\d\d:\d\d OPEN      force-push: 1 violation within 30d", watched.text())
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
        "docs/constraints/force-push.md\n\nWhy      1 violation within 30d (limit 1)",
        "Last     git push --force origin main",
        "Level    ━━━━━━━━━━━━ 1/1 within 30d; 1 in all, 1 trip",
        'a person can run: fusewire reset force-push --reason "..."',
        "  violation_threshold  1      docs/constraints/force-push.md",
        "  window_days          30     default",
        "CLOSED -> OPEN (tripped): 1 violation within 30d (limit 1)",
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
    halted = rf"\n> HALTED   \d+s ago +\$1\.25    0      \w+ [^\n]*\({SESSION[:8]}\): HALTED tool.repetition"
    assert re.search(halted, text)
    assert re.search(r"\n  ended    1m \d+s ago +\$0\.00    0      \w+ [^\n]*\(over\)", text)
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

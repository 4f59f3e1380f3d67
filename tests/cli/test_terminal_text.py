"""What an agent wrote is text on a person's terminal: it moves no cursor, turns nothing around, makes no line."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator

import pytest
import yaml

from fusewire.engine.breaker import Breaker
from fusewire.util.text import in_line
from tests.helpers import SOURCE
from tests.helpers.project import Project
from tests.helpers.session_hook import Session
from tests.helpers.watching import Make, Terminal, terminals

ID = "git-safety"
TITLE = "Never \x1b[8mpush\x9b2J"
FRONT = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
FUSEWIRE = [sys.executable, "-m", "fusewire"]

#: Erases the two lines above, and everything below.
ERASES = "\x1b[2A\r\x1b[J"

FORGED = "2026-01-01T00:00:00Z  OPEN -> CLOSED (reset): all is well"
HOSTILE = f"\x1b[31mred\x1b[0m \x1b]0;owned\x07 \u202eevil\x9b2J{ERASES}\x7f line1\n  {FORGED}\r\nOPEN (0)\u2028x\x85y"
SHOWN = "[U+001B][31mred[U+001B][0m [U+001B]]0;owned[U+0007] [U+202E]evil[U+009B]2J[U+001B][2A"

#: Letters of any script, and signs that are made of several.
PLAIN = "grüße 中文 עברית 👩\u200d👧 a  b"

COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def terminal() -> Iterator[Make]:
    with terminals() as make:
        yield make


def printed(terminal: Make, project: Project, *arguments: str, **env: str) -> str:
    """What a command sends to a terminal, standard error too; the terminal's own line ends are taken back."""
    one: Terminal = terminal(project.root, *arguments, command=FUSEWIRE, columns=500, lines=100, **env)
    one.wait()
    return one.sent.decode().replace("\r\n", "\n")


def is_harmless(text: str) -> bool:
    """Nothing but lines, tabs and our own colours; and no line that somebody else began."""
    seen = COLOR.sub("", text)
    forged = [line for line in seen.split("\n") if line.lstrip().startswith((FORGED, "OPEN (0)"))]
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", seen) and not forged


# -- one command after the other ----------------------------------------------------------------------------------


def test_an_action_forges_no_line_of_the_history(project: Project, terminal: Make) -> None:
    project.constraint(ID, FRONT)
    project.run("record", ID, "--action", HOSTILE)
    text = printed(terminal, project, "history", ID)
    assert is_harmless(text), text
    told = [line for line in text.split("\n") if SHOWN in line]
    assert f" line1   {FORGED} OPEN (0) x y" in told[0]
    assert len(text.strip().split("\n")) == 4  # the heading, the violation, the trip, the window


def test_a_program_with_a_name_of_escapes_erases_nothing(project: Project, terminal: Make) -> None:
    """Its calls failed three times: `status --all` still begins with what is open."""
    session = Session(project)
    for _ in range(3):
        session.fails(f"'x{ERASES}y\nOPEN (0)'")
    one = terminal(project.root, "status", "--all", command=FUSEWIRE, columns=500, lines=100)
    one.wait()
    assert is_harmless(one.sent.decode().replace("\r\n", "\n"))
    assert one.rows()[0] == "OPEN (1)"
    assert one.rows()[1].startswith("  tool/tool_failure/")
    assert "x[U+001B][2A [U+001B][Jy OPEN (0)" in one.rows()[1]


def test_neither_does_it_in_the_overview_of_a_session(project: Project, terminal: Make) -> None:
    session = Session(project)
    for _ in range(3):
        session.fails(f"'x{ERASES}y\nOPEN (0)'")
    text = printed(terminal, project, "status", "--session")
    assert is_harmless(text), text
    assert "  • tool_failure Bash(x[U+001B][2A [U+001B][Jy OPEN (0)): OPEN" in text


CIRCUIT = f"tool/tool_failure/Bash({HOSTILE})"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("status",), 0),
        (("status", "--all"), 0),
        (("status", CIRCUIT), 0),
        (("status", ID), 0),
        (("check", CIRCUIT), 3),
        (("check", ID), 3),
        (("enforce", "--tool", "Bash", "--command", f"git push '{HOSTILE}'"), 3),
        (("record", CIRCUIT, "--action", HOSTILE, "--session", HOSTILE), 0),
        (("history", CIRCUIT), 0),
        (("config", CIRCUIT), 0),
        (("reset", CIRCUIT, "--reason", HOSTILE), 0),
        (("override", ID, "--reason", HOSTILE), 0),
        (("doctor",), 1),
        (("guard", "explain", "--command", f"rm 'a{HOSTILE}'"), 0),
        (("scope", "set", "S-1", HOSTILE), 1),
        (("scope", "check", HOSTILE, HOSTILE), 1),
        (("spend",), 0),
        (("memory",), 0),
        (("replay", "."), 1),
    ],
)
def test_what_agents_wrote_is_shown_as_text(
    project: Project, terminal: Make, arguments: tuple[str, ...], code: int
) -> None:
    """Ids, actions, reasons, actors, titles, sessions, files, in whatever command shows them."""
    project.constraint(ID, f"{FRONT}match:\n  - tool: Bash\n    command: git push\n", f"# {TITLE}\n")
    (project.root / f"{HOSTILE.replace('/', '')}.jsonl").write_text("{")
    (project.root / "fusewire.toml").write_text('[tool]\n"a\\u001b[2J\\u202e\\nOPEN (0)" = 1\n')
    with Breaker.open(project=project.root) as breaker:
        for circuit in (CIRCUIT, ID):
            for _ in range(3):
                breaker.record(circuit, HOSTILE, session=HOSTILE)
    one = terminal(project.root, *arguments, command=FUSEWIRE, columns=500, lines=100)
    assert one.wait() == code, one.text()
    text = one.sent.decode().replace("\r\n", "\n")
    assert is_harmless(text), text


def test_so_it_is_with_slices_and_their_tests(project: Project, terminal: Make) -> None:
    """What a test printed keeps its lines, below its own name and to the right of the margin."""
    (project.root / "a.py").write_text("x\n")
    error = project.root / "error.txt"
    error.write_text(f"Failed {HOSTILE}\nsecond line\n")
    for number in range(3):
        project.run("attempt", "start", "S-1", HOSTILE)
        project.run(
            "attempt", "record", "S-1", HOSTILE, "--fail", "--error-file", str(error), "--strategy", f"{number}"
        )
    for arguments in (
        ("status",),
        ("status", "S-1"),
        ("start", "S-1", HOSTILE),
        ("arch-stop", "S-1", "--reason", HOSTILE),
    ):
        text = printed(terminal, project, "attempt", *arguments)
        assert is_harmless(text), (arguments, text)


def test_a_report_with_turned_text_is_yaml_all_the_same(project: Project, terminal: Make) -> None:
    """What is written for it begins as a list does; and what has several lines keeps them."""
    (project.root / "error.txt").write_text("AssertionError: one\nFAILED two\n")
    project.run("attempt", "start", "S-1", "\u202etest")
    fields = ("--fail", "--error-file", "error.txt", "--strategy", "\u202ex")
    project.run("attempt", "record", "S-1", "\u202etest", *fields)
    mind = ("--test-expectation", "it adds", "--best-hypothesis", "two\nlines", "--specific-question", "which one?")
    text = printed(terminal, project, "attempt", "report", "S-1", *mind)
    assert is_harmless(text), text
    report = yaml.safe_load(text)
    assert report["test_name"] == "[U+202E]test"
    assert report["best_hypothesis"] == "two\nlines"
    assert "best_hypothesis: |-\n  two\n  lines\n" in text


# -- errors and warnings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", f"no{HOSTILE}"),
        ("history", HOSTILE),
        (HOSTILE,),
        ("status", f"--{HOSTILE}"),
        ("--project", HOSTILE, "status"),
    ],
)
def test_an_error_is_one_harmless_line(project: Project, terminal: Make, arguments: tuple[str, ...]) -> None:
    text = printed(terminal, project, *arguments)
    assert is_harmless(text), text
    assert [line.startswith("Error: ") for line in text.strip().split("\n")].count(True) == 1


# -- what must stay as it is ----------------------------------------------------------------------------------


def test_other_letters_stay_as_they_are(project: Project, terminal: Make) -> None:
    """Umlauts, other scripts, signs with joiners, two spaces; on a terminal and in a pipe."""
    project.constraint(ID, FRONT, f"# {PLAIN}\n")
    project.run("record", ID, "--action", PLAIN)
    for arguments in (("history", ID), ("status", ID)):
        for text in (printed(terminal, project, *arguments), project.run(*arguments).stdout):
            assert f"  violation  {PLAIN}\n" in text
            assert f"  {PLAIN}, docs/constraints/" in text or arguments[0] == "history"
            assert "\x1b" not in text


def test_json_says_exactly_what_was_recorded(project: Project, terminal: Make) -> None:
    project.constraint(ID, FRONT)
    project.run("record", ID, "--action", HOSTILE)
    text = printed(terminal, project, "history", ID, "--json")
    assert json.loads(text)["entries"][0]["action"] == HOSTILE
    assert "\\u001b[31mred\\u001b[0m" in text
    assert "\u202eevil" in text


def test_our_colours_stay(project: Project, terminal: Make) -> None:
    """Red what is blocked, yellow what warns; NO_COLOR and a pipe have none."""
    project.constraint(ID, FRONT)
    project.run("record", ID, "--action", HOSTILE)
    (project.root / "fusewire.toml").write_text("unknown = 1\n")
    text = printed(terminal, project, "check", ID)
    assert text.startswith(f"\x1b[31mBLOCKED constraint:{ID}")
    assert "\x1b[33mWarning: " in text
    assert text.count("\x1b[0m") == 2
    assert "\x1b" not in printed(terminal, project, "check", ID, NO_COLOR="1")
    assert "\x1b" not in project.run("check", ID).stdout


# -- the one place ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("as it is", "as it is"),
        ("  two\r\nlines\n", "  two lines"),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\rh", "a b c d e f g h"),
        ("a\tb\x1b[2J", "a\tb[U+001B][2J"),
        ("", ""),
    ],
)
def test_a_line_is_one_line(text: str, line: str) -> None:
    assert in_line(text) == line


def test_commands_print_through_one_module() -> None:
    """Whoever prints past it could forget that an agent may have written the text."""
    past = []
    for path in sorted((SOURCE / "cli").rglob("*.py")):
        if path.name == "agent.py":
            continue  # the demonstration's agent: a program of its own
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "print"):
                past.append(f"{path.name}:{node.lineno}")
    assert [place for place in past if not place.startswith("streams.py:")] == []

"""`fusewire export`: the history as JSON lines and CSV, read back by the modules that everybody reads them with."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire.core.events import plain
from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import AuditRow, Doing, LogRow
from fusewire.util.durations import parse_time
from fusewire.views.export import COLUMNS, Wanted, as_lines, as_table, exported
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

if TYPE_CHECKING:
    from fusewire.stores import Transaction

ID = "git-safety"
NOW = 1_794_000_000.0

#: Texts that have broken tables, lines and spreadsheets.
HOSTILE = [
    'a "quoted" word, and a comma',
    "two\nlines\r\nand\rmore",
    "=HYPERLINK(\"http://x\")",
    "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "'=1", "'", "''",
    "nul \0 inside",
    "a\u2028b\u2029c\x85d\x0be",
    "größer 日本 \U0001f4a5",
    "",
    " ",
    "\ufeff=1",
    "echo x;=cmd|' /C calc'!A0", "a; =1|@b", 'a;"=1', 'a;""=1;+', "a\n=1\r\n-1", "a;'=1;''b\n'", "a\t=1",
]  # fmt: skip


#: By these a spreadsheet knows a formula.
SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def rows_of(project: Project, *options: str) -> list[dict[str, Any]]:
    """What is printed, line by line: any reader of lines finds whole objects."""
    result = project.run("export", *options)
    assert (result.returncode, result.stderr) == (0, ""), result
    return [json.loads(line) for line in result.stdout.splitlines()]


def table_of(text: str) -> list[dict[str, str]]:
    """CSV by its own reader, and the apostrophes taken off as the documentation says."""
    first, *rest = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert first == [*COLUMNS]
    assert {len(cells) for cells in rest} <= {len(COLUMNS)}
    return [
        dict(zip(first, (re.sub(r"(^|[;|\t\r\n])'", r"\1", cell) for cell in cells), strict=True)) for cells in rest
    ]


@pytest.fixture
def lived_in(project: Project) -> Project:
    """A constraint that was broken, tripped and reset, and a session in which a tool failed."""
    project.constraint(ID, "circuit_breaker:\n  violation_threshold: 1\n")
    project.run("record", ID, "--action", "git push --force", "--session", "s-1")
    project.run("check", ID)
    project.run("reset", ID, "--reason", "looked at it")
    project.starts_hooks = False
    session = Session(project)
    session.says("go")
    session.bash("ls", "a.py")
    for number in range(3):
        session.fails("pytest -q", f"Exit code 1\n{number} failed")
    return project


def reached(transaction: Transaction, row: LogRow) -> None:
    """A row of the log, with the circuit that it belongs to."""
    transaction.save(row.circuit, "loop", "closed", {"since": NOW}, NOW, log=row)


def fill(project: Project, texts: list[str]) -> None:
    """Each text in each place where somebody's words are kept."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for number, text in enumerate(texts):
            at = NOW + number
            transaction.audit(AuditRow("loop/no_progress", at, "closed", "open", "tripped", text, text))
            reached(transaction, LogRow("loop/no_progress", at, "bad", "no_progress", text, text, 1.0, "counted"))
            transaction.happened(Doing("s", text, at, "ok", text, text, 0.5))
        transaction.remember("session/s", {"at": NOW}, NOW)


# -- what there is ----------------------------------------------------------------------------------------


def test_everything_that_happened_is_one_stream_in_time(lived_in: Project) -> None:
    """Moves, what reached circuits, and what agents did: oldest first, each with its own fields."""
    rows = rows_of(lived_in)
    assert {row["row"] for row in rows} == {"move", "log", "doing"}
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    moves = [row for row in rows if row["row"] == "move"]
    assert [row["number"] for row in moves] == [1, 2, 3]
    assert [(row["circuit"], row["from"], row["to"], row["cause"]) for row in moves[:2]] == [
        (ID, "CLOSED", "OPEN", "tripped"),
        (ID, "OPEN", "CLOSED", "reset"),
    ]
    assert (moves[0]["actor"], moves[1]["reason"], moves[1]["to_phase"]) == ("s-1", "looked at it", "closed")
    logged = [row for row in rows if row["row"] == "log" and row["circuit"] == ID]
    assert [(row["kind"], row["signal"], row["text"], row["effect"]) for row in logged] == [
        ("bad", "violation", "git push --force", "counted"),
        ("ask", "action", "", "refused"),
        ("reset", "reset", "looked at it", None),
    ]
    doings = [row for row in rows if row["row"] == "doing"]
    assert [row["kind"] for row in doings] == ["prompt", "ok", "failed", "failed", "failed", "told"]
    assert {row["session"] for row in doings} == {Session(lived_in).id}
    assert all(row["at"].endswith("Z") and parse_time(row["at"]) for row in rows)


def test_both_formats_say_the_same(lived_in: Project) -> None:
    """Every field of every row is in the table under its own name; what a row does not have is empty."""
    rows = rows_of(lived_in)
    table = table_of(lived_in.run("export", "--format", "csv").stdout)
    assert len(table) == len(rows)
    for row, cells in zip(rows, table, strict=True):
        assert set(row) <= set(COLUMNS)
        assert cells == {name: "" if row.get(name) is None else str(row[name]) for name in COLUMNS}


def test_json_is_the_same_as_lines(lived_in: Project) -> None:
    """The option of every command has one meaning here."""
    assert lived_in.run("export", "--json").stdout == lived_in.run("export").stdout
    assert lived_in.run("export", "--format", "jsonl", "--json").returncode == 0


# -- what is asked for ------------------------------------------------------------------------------------


def test_kinds_can_be_chosen(lived_in: Project) -> None:
    """Some of the three, in any order."""
    assert {row["row"] for row in rows_of(lived_in, "--what", "moves")} == {"move"}
    assert {row["row"] for row in rows_of(lived_in, "--what", "doings, log")} == {"log", "doing"}


def test_a_circuit_or_a_pattern_of_them(lived_in: Project) -> None:
    """Doings are of no circuit, so there are none then."""
    rows = rows_of(lived_in, "--circuit", ID)
    assert ({row["row"] for row in rows}, {row["circuit"] for row in rows}) == ({"move", "log"}, {ID})
    rows = rows_of(lived_in, "--circuit", "tool/tool_failure/*")
    assert {row["circuit"] for row in rows} == {f"tool/tool_failure/Bash(pytest)/{Session(lived_in).id}"}
    assert rows_of(lived_in, "--circuit", "phase/*") == []


def test_an_id_with_brackets_is_taken_literally(project: Project) -> None:
    """Tests have names like this one."""
    for name in ("test_a[1]", "test_a1"):
        project.run("attempt", "record", "S-1", name, "--fail")
    rows = rows_of(project, "--circuit", "attempt/S-1/test_a[1]", "--what", "log")
    assert "attempt/S-1/test_a[1]" in {row["circuit"] for row in rows}


def test_a_session_has_its_moves_its_log_and_its_doings(lived_in: Project) -> None:
    """Of circuits of its own, and of others that it moved."""
    rows = rows_of(lived_in, "--session", Session(lived_in).id)
    assert {row["row"] for row in rows} == {"move", "log", "doing"}
    assert {row["session"] for row in rows if "session" in row} == {Session(lived_in).id}
    rows = rows_of(lived_in, "--session", "s-1")  # known only because it broke the constraint
    assert [(row["row"], row["circuit"]) for row in rows] == [("move", ID), ("log", ID)]


def test_days_reach_so_far_back_and_no_further(project: Project) -> None:
    """Rows of each kind."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for days in (10, 1):
            at = time.time() - days * 86400
            transaction.audit(AuditRow("loop/rate", at, "closed", "open", "tripped", f"{days}", ""))
            reached(transaction, LogRow("loop/rate", at, "bad", "x", f"{days}", "s", 1.0, ""))
            transaction.happened(Doing("s", "", at, "ok", "Bash", f"{days}"))
        transaction.remember("session/s", {"at": NOW}, NOW)
    assert len(rows_of(project)) == 6
    recent = rows_of(project, "--days", "7")
    assert sorted(row["row"] for row in recent) == ["doing", "log", "move"]
    assert {row.get("text", row.get("reason")) for row in recent} == {"1"}


def test_a_move_that_was_written_late_keeps_its_place_among_moves(project: Project) -> None:
    """A cooldown that passed in the night is written in the morning; numbers still rise, and nothing is lost."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for number, at in enumerate((100.0, 300.0, 200.0, 400.0)):
            transaction.audit(AuditRow("loop/rate", NOW + at, "closed", "open", "tripped", str(number), ""))
        for at in (150.0, 350.0):
            reached(transaction, LogRow("loop/rate", NOW + at, "bad", "x", "", None, 1.0, ""))
    rows = rows_of(project)
    assert [row.get("number", "log") for row in rows] == [1, "log", 2, 3, "log", 4]


def test_more_moves_than_a_page_are_all_there(project: Project) -> None:
    """They are read in pages, and a page that has no row that is wanted is not the end."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for number in range(1200):
            circuit = "loop/rate" if number == 1199 else "loop/no_progress"
            transaction.audit(AuditRow(circuit, NOW + number, "closed", "open", "tripped", "", ""))
    assert [row["number"] for row in rows_of(project)] == [*range(1, 1201)]
    assert [row["number"] for row in rows_of(project, "--circuit", "loop/rate")] == [1200]


# -- hostile texts ----------------------------------------------------------------------------------------


def test_hostile_texts_come_back_as_they_were(project: Project) -> None:
    """Through the store, the program, the pipe, and both readers."""
    fill(project, HOSTILE)
    for kind, field in (("move", "reason"), ("log", "text"), ("doing", "text"), ("doing", "tool")):
        rows = [row for row in rows_of(project) if row["row"] == kind]
        assert [row[field] for row in rows] == HOSTILE
        table = [row for row in table_of(raw(project, "--format", "csv").decode()) if row["row"] == kind]
        assert [row[field] for row in table] == [text.replace("\0", "␀") for text in HOSTILE]


def test_no_cell_is_a_formula_to_a_spreadsheet(project: Project) -> None:
    """As a spreadsheet sees them, before anything is taken off; numbers stay numbers."""
    fill(project, HOSTILE)
    text = raw(project, "--format", "csv").decode()
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("\t", "\r", "\n", *SIGNS))]
    assert "\0" not in text
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        reached(transaction, LogRow("loop/rate", NOW, "note", "x", "", None, -1.5, ""))
    assert "-1.5" in [row["value"] for row in table_of(raw(project, "--format", "csv").decode())]


@given(st.text("a=-@;|\t\r\n'\", \uff0b"))
def test_a_reader_with_another_separator_finds_no_formula_either(text: str) -> None:
    """It cuts texts where nobody meant it to, and quotes keep nothing together for it."""
    table = b"".join(as_table([{"row": "move", "text": text, "reason": text}])).decode()
    for separator in ",;|\t":
        rows = csv.reader(io.StringIO(table, newline=""), delimiter=separator)
        assert not [cell for row in rows for cell in row if cell.strip().startswith(SIGNS)]
    assert [row["text"] for row in table_of(table)] == [text]


@given(st.text(alphabet=st.characters(codec=None)), st.text())
def test_any_text_survives_both_formats(one: str, other: str) -> None:
    """Also lone surrogates, which the store has made characters of before."""
    with Breaker.open("memory:") as breaker:
        with breaker.store.transact() as transaction:
            transaction.audit(AuditRow(one, NOW, "closed", "open", "tripped", one, other))
            transaction.log(LogRow(other, NOW, "bad", "x", one, other, 1.0, ""), kept=True)
        rows = list(exported(breaker, Wanted()))
    (move, log) = map(json.loads, b"".join(as_lines(rows)).decode().splitlines())
    assert (move["reason"], move["actor"] or "", log["text"]) == (plain(one), plain(other), plain(one))
    table = table_of(b"".join(as_table(rows)).decode())
    assert [row["circuit"] for row in table] == [plain(one).replace("\0", "␀"), plain(other).replace("\0", "␀")]


def test_lines_end_as_the_standard_says(lived_in: Project) -> None:
    """CRLF in a table, LF in lines, UTF-8 whatever the locale says."""
    lived_in.run("record", ID, "--action", "größer")
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    table, lines = (raw(lived_in, "--format", form, env=odd) for form in ("csv", "jsonl"))
    assert table.count(b"\r\n") == table.count(b"\n") == len(table_of(table.decode())) + 1
    assert (lines.endswith(b"\n"), b"\r" in lines) == (True, False)
    assert "größer" in table.decode()
    assert "größer" in lines.decode()


def raw(project: Project, *options: str, env: dict[str, str] | None = None) -> bytes:
    """The very bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "fusewire", "export", *options],
        cwd=project.root,
        env={**os.environ, **(env or {})},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return done.stdout


# -- nothing, and damage ----------------------------------------------------------------------------------


def test_an_empty_project_has_no_rows_and_is_not_touched(project: Project) -> None:
    """Nothing is made by looking; a table has its header."""
    assert rows_of(project) == []
    assert project.run("export", "--format", "csv").stdout.strip() == ",".join(COLUMNS)
    assert list(project.root.iterdir()) == [project.root / ".git"]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_damaged_database_is_one_line_and_is_left_alone(lived_in: Project, form: str, tmp_path: Path) -> None:
    """Exit 1, nothing on standard output, no file; who only reads mends nothing."""
    database = lived_in.root / ".fusewire" / "state.db"
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    database.write_bytes(b"this is no database " * 500)
    before = database.read_bytes()
    wanted = tmp_path / "out"
    for options in ((), ("--output", str(wanted))):
        result = lived_in.run("export", "--format", form, *options)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result
        assert "cannot be read" in result.stderr
    assert database.read_bytes() == before
    assert list(tmp_path.iterdir()) == [lived_in.root]


@pytest.mark.parametrize("at", ["'soon'", "1e300", "x'ff'"])
def test_a_row_that_is_none_is_one_line(lived_in: Project, at: str) -> None:
    """SQLite keeps anything in any column."""
    connection = sqlite3.connect(lived_in.root / ".fusewire" / "state.db")
    connection.execute(f"UPDATE log SET at = {at}")
    connection.commit()
    connection.close()
    result = lived_in.run("export")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result
    assert "a row of the history cannot be read" in result.stderr


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "complaint"),
    [
        (("--format", "xml"), 2, "xml"),
        (("--what", "everything"), 2, "'everything' is nothing to export; allowed: moves, log, doings"),
        (("--what", ""), 2, "is nothing to export"),
        (("--what", "moves,,log"), 2, "is nothing to export"),
        (("--days", "0"), 2, "--days 0.0 is refused"),
        (("--days", "nan"), 2, "--days nan is refused"),
        (("--days", "soon"), 2, "soon"),
        (("--json", "--format", "csv"), 2, "two formats"),
        (("--force",), 2, "--force is for --output"),
        (("--what", "doings", "--circuit", ID), 2, "leave out either doings or --circuit"),
        (("--circuit", "nope"), 1, "Constraint not found: nope"),
        (("--circuit", "loop/nope"), 1, "Circuit not found: loop/nope"),
        (("--circuit", ""), 1, "not found"),
        (("--session", "nobody"), 1, "no session 'nobody' has been heard of"),
        (("--output", "nowhere/x.csv"), 1, "Error: nowhere/x.csv: No such file or directory"),
        (("--output", "docs"), 1, "docs is no regular file"),
        (("--output", "docs", "--force"), 1, "docs is no regular file"),
        (("--output", "/dev/null", "--force"), 1, "/dev/null is no regular file"),
        (("extra",), 2, "extra"),
    ],
)
def test_bad_input_is_said_with_its_exit_code(
    lived_in: Project, options: tuple[str, ...], code: int, complaint: str
) -> None:
    """What, and what is allowed; nothing on standard output, no traceback, no file."""
    before = sorted(lived_in.root.rglob("*"))
    result = lived_in.run("export", *options)
    assert (result.returncode, result.stdout) == (code, ""), result
    assert complaint in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.count("\n") == 1
    left = {path for path in lived_in.root.rglob("*") if not path.name.startswith("state.db-")}
    assert left == {path for path in before if not path.name.startswith("state.db-")}


# -- files and pipes --------------------------------------------------------------------------------------


def test_a_file_is_new_or_replaced_only_by_force(lived_in: Project) -> None:
    """Whole or not at all, and nothing is left beside it."""
    target = lived_in.root / "out" / "history.jsonl"
    target.parent.mkdir()
    said = lived_in.run("export", "--output", "out/history.jsonl")
    rows = rows_of(lived_in)
    assert (said.returncode, said.stdout) == (0, f"{len(rows)} rows -> out/history.jsonl\n")
    assert [json.loads(line) for line in target.read_text().splitlines()] == rows
    target.write_text("mine")
    refused = lived_in.run("export", "--output", "out/history.jsonl")
    assert (refused.returncode, target.read_text()) == (1, "mine")
    assert "is there already; --force replaces it" in refused.stderr
    written = lived_in.json("export", "--format", "csv", "--output", "out/history.jsonl", "--force")
    assert written == {"file": "out/history.jsonl", "format": "csv", "rows": len(rows)}
    assert len(table_of(target.read_bytes().decode())) == len(rows)
    assert list(target.parent.iterdir()) == [target]


def test_a_link_is_followed_and_stays_one(lived_in: Project) -> None:
    """What it leads to is replaced."""
    real, link = lived_in.root / "real.csv", lived_in.root / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    assert lived_in.run("export", "--output", "link.csv").returncode == 1
    assert lived_in.run("export", "--format", "csv", "--output", "link.csv", "--force").returncode == 0
    assert link.is_symlink()
    assert real.read_text().startswith("row,number,at")


def test_a_full_disk_leaves_the_old_file(lived_in: Project) -> None:
    """One line, exit 1, nothing beside it; the limit on a file's size stands for the disk."""
    fill(lived_in, ["x" * 250] * 60)
    target = lived_in.root / "history.jsonl"
    target.write_text("mine")
    program = shlex.join([sys.executable, "-m", "fusewire", "export", "--output", "history.jsonl", "--force"])
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; ulimit -f 32; exec {program}"],
        cwd=lived_in.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: history.jsonl: File too large\n"), done
    assert target.read_text() == "mine"
    assert not list(lived_in.root.glob("*.tmp-*"))


def test_inside_an_agent_rows_are_printed_and_no_file_is_written(lived_in: Project) -> None:
    """A file could be a setting; a redirection does the same, and the guard sees it."""
    agent = {"CLAUDECODE": "1"}
    assert lived_in.run("export", env=agent).stdout == lived_in.run("export").stdout != ""
    refused = lived_in.run("export", "--output", "fusewire.toml", env=agent)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("BLOCKED")
    assert not (lived_in.root / "fusewire.toml").exists()


def test_a_reader_that_has_enough_ends_it_quietly(project: Project) -> None:
    """`| head -1` with far more rows than a pipe holds."""
    fill(project, ["x" * 300] * 900)
    program = shlex.join([sys.executable, "-m", "fusewire", "export"])
    done = subprocess.run(
        ["bash", "-c", f"{program} | head -1"],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(done.stdout)["row"] == "move"
    assert done.stderr == ""


def test_nothing_is_written_by_an_export(lived_in: Project) -> None:
    """Not even the audit trail knows of it."""
    database = lived_in.root / ".fusewire" / "state.db"

    def dump() -> list[str]:
        connection = sqlite3.connect(database)
        try:
            return list(connection.iterdump())
        finally:
            connection.close()

    before = dump()
    rows_of(lived_in)
    assert dump() == before

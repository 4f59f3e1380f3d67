"""`fusewire watch --all`: everything of a person on a real pseudo-terminal, and in lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.many_projects import abandon, damage, end, halt, make_repository, remove, violate_once, work
from tests.helpers.program import fusewire
from tests.helpers.project import Project
from tests.helpers.watching import ALLOWED, Make, terminals


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """One project of each kind; the halted one has a second worktree, in which an agent works."""
    code = tmp_path / "code"
    (quiet,), (waiting,), (halted, tree), (phase,) = (
        make_repository(code / "quiet"),
        make_repository(code / "waiting"),
        make_repository(code / "halted", "tree"),
        make_repository(code / "phase"),
    )
    end(work(quiet, "s-quiet"))
    end(work(waiting, "s-waiting"))
    violate_once(waiting)
    end(work(phase, "s-phase"))
    abandon(phase)
    halt(halted, "s-halted", "make the \x1b[31mtests\u202e pass")
    work(tree, "s-tree", "rename the column")
    (tmp_path / "elsewhere").mkdir()
    return code


def run(code: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    import os

    return fusewire("watch", "--all", *arguments, cwd=code.parent / "elsewhere", env=dict(os.environ))


def lines(code: Path) -> list[str]:
    done = run(code, "--once")
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_what_needs_a_person_comes_first(code: Path) -> None:
    headline, first, second, third, fourth, rest = lines(code)
    assert headline == "2 things need you, in 2 projects; 1 session runs, $0.00 today"
    assert first.startswith('NEEDS YOU halted: claude "make the')
    assert "halted: tool.repetition" in first
    assert second.startswith("NEEDS YOU phase: phase/GREEN: open: No progress")
    assert third == 'running halted-tree: claude "rename the column" (s-tree)'
    assert fourth == "waiting waiting: no-force-push OPEN"
    assert rest == "1 quiet project"
    assert "\x1b" not in first
    assert "\u202e" not in first


def test_json_is_the_overview(code: Path) -> None:
    done = run(code, "--once", "--json")
    (found,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (found["type"], found["needs"]) == ("overview", 2)
    assert [one["name"] for one in found["projects"]] == ["halted", "phase", "waiting", "quiet"]


def test_lines_go_on_with_what_changes(code: Path) -> None:
    command = [sys.executable, "-m", "fusewire", "watch", "--all", "--plain"]
    process = subprocess.Popen(command, cwd=code.parent / "elsewhere", stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        while (line := process.stdout.readline()) != "1 quiet project\n":
            assert line
        halt(Project(code / "quiet", starts_hooks=False), "s-new", "write the docs")
        seen: list[str] = []
        while not any('NEEDS YOU quiet: claude "write the docs" (s-new): halted' in line for line in seen):
            seen.append(process.stdout.readline())
            assert seen[-1]
        work(Project(code / "quiet", starts_hooks=False), "s-new", "try something else")
        while not any("no longer: NEEDS YOU quiet" in line for line in seen):
            seen.append(process.stdout.readline())
            assert seen[-1]
        assert all(line[:2] == "20" and "Z " in line for line in seen), seen
    finally:
        process.stdout.close()
        assert process.wait(30) == 0  # nobody reads any more


def test_a_deleted_and_a_damaged_project(code: Path) -> None:
    remove(Project(code / "quiet"))
    damage(Project(code / "waiting"))
    found = lines(code)
    assert any(line.startswith("NEEDS YOU waiting: the state database cannot be read: ") for line in found)
    assert found[-1] == f"1 folder no longer there: {code / 'quiet'}"


def test_the_terminal_shows_everything_and_opens_a_project(code: Path) -> None:
    """Enter opens the page that the row is about; Esc leads back step by step, and q at once."""
    with terminals() as make:
        one = open_all(make, code)
        text = one.shows("2 things need you", "> NEEDS YOU halted", "waiting", "1 quiet project")
        assert " quiet  " not in text.replace("1 quiet project", "")
        assert one.color_of("NEEDS YOU") == "red"
        one.shows("1 session is halted", "Session claude", "q back", keys="\r")
        one.shows("STATE     CIRCUIT", keys="\x1b")
        one.shows("FUSEWIRE everything", "> NEEDS YOU halted", keys="\x1b")
        one.shows("> NEEDS YOU phase", keys="j")
        one.shows("FUSEWIRE phase", "phase/GREEN", "What to do", keys="\r")
        one.shows("FUSEWIRE everything", "> NEEDS YOU phase", keys="q")
        one.press("q")
        assert one.wait() == 0
        assert not [part for part in ALLOWED.sub(b"", bytes(one.sent)).split(b"\n") if b"\x1b" in part]


def test_the_terminal_filters_and_folds(code: Path) -> None:
    with terminals() as make:
        one = open_all(make, code)
        one.shows("> NEEDS YOU halted")
        one.shows("quiet     quiet", keys="a")
        one.shows("1 quiet project", keys="a")
        one.shows("needs you only", keys="o", without="running ")
        one.shows("running ", keys="a")
        one.shows("quiet     quiet", keys="/qui", without="phase/GREEN")  # also what is folded away
        one.shows("NEEDS YOU phase", keys="\x1b")
        one.shows("a run asks", keys="?")
        one.shows("NEEDS YOU phase", keys="\x1b")


def test_something_new_comes_by_itself(code: Path) -> None:
    with terminals() as make:
        one = open_all(make, code)
        one.shows("2 things need you")
        (new,) = make_repository(code / "new")
        halt(new, "s-new", "write the docs")
        one.shows("3 things need you", "NEEDS YOU new")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 10), (20, 4), (200, 50)])
def test_every_size_has_the_first_need(code: Path, columns: int, rows: int) -> None:
    with terminals() as make:
        one = open_all(make, code, columns=columns, lines=rows)
        text = one.shows("> NEEDS")
        assert all(len(row) < columns for row in text.split("\n"))


def test_nobody_was_heard_of(tmp_path: Path) -> None:
    with terminals() as make:
        one = open_all(make, tmp_path)
        one.shows("Nothing needs you; nothing runs", "No agent has been heard of yet")
        one.press("\rjkG/x\x1bq")
        assert one.wait() == 0


def open_all(make: Make, code: Path, **size: Any) -> Any:
    elsewhere = code.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return make(elsewhere, "--all", **size)

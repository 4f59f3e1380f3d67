"""The audit trail as it is followed: every move once and in order, also where it is trimmed, rebuilt or lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fusewire.stores import open_store
from fusewire.stores.memory import MemoryStore
from fusewire.stores.rows import AUDIT_ROWS, AuditRow
from fusewire.stores.sqlite import SqliteStore
from fusewire.util.errors import StoreError
from fusewire.views.trail import Trail

if TYPE_CHECKING:
    from fusewire.stores import Store


def moved(number: int, at: float | None = None) -> AuditRow:
    return AuditRow(f"loop/{number}", float(number) if at is None else at, "closed", "open", "tripped", "why", "")


def rows_of(moves: list[tuple[int, AuditRow]]) -> list[AuditRow]:
    return [row for _, row in moves]


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


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


class State:
    """A folder with a database, its trail as text, one that writes and one that only looks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database, self.text = folder / "state.db", folder / "audit.jsonl"
        self.writer = SqliteStore(str(self.database))
        self.reader = open_store(f"sqlite:{self.database}", read_only=True)

    def write(self, *rows: AuditRow) -> None:
        written(self.writer, *rows)

    def lose(self) -> None:
        """The database, so that whoever writes next rebuilds it from the text."""
        self.writer.close()
        self.reader.close()
        for path in self.folder.glob("state.db*"):
            path.unlink()

    def keep_lines(self, kept: slice) -> None:
        self.text.write_text("".join(self.text.read_text().splitlines(keepends=True)[kept]))


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


def test_a_trail_that_was_empty_says_what_it_has_missed_too(state: State) -> None:
    """Looked at before anything had moved, and then not for very many moves."""
    state.write()
    trail = Trail()
    assert trail.news(state.reader) == []
    for first in range(1, 4001, 500):
        state.write(*map(moved, range(first, first + 500)))
    found = trail.news(state.reader)
    assert trail.lost == found[0][0] - 1 == 4000 - len(found) > 0
    assert trail.trails == 1


def test_moves_with_the_same_words_are_all_given(store: Store) -> None:
    """The last one is known by its number first."""
    written(store, moved(1))
    trail = Trail()
    trail.news(store)
    written(store, moved(1), moved(1))
    assert trail.news(store) == [(2, moved(1)), (3, moved(1))]
    assert trail.news(store) == []
    assert trail.trails == 1


def test_a_rebuilt_trail_with_the_same_numbers_is_the_same(state: State) -> None:
    """From the text beside a damaged file: nothing comes twice, nothing is lost, numbers still mean what they did."""
    state.write(*(moved(number, 1000.0004 + number) for number in range(1, 4)))
    trail = Trail()
    trail.news(state.reader)
    state.writer.close()
    state.database.write_bytes(b"this is no database " * 500)
    state.write(moved(4, 2000.0))
    assert trail.news(state.reader) == [(4, moved(4, 2000.0))]
    assert (trail.trails, trail.number, trail.lost) == (1, 4, 0)


def test_a_rebuilt_trail_that_counts_anew_is_another_one_once(state: State) -> None:
    """The last move is found under its new number, whether or not something is behind it."""
    state.write(*(moved(number, 1000.0004 + number) for number in range(1, 6)))
    trail = Trail()
    trail.news(state.reader)
    assert (trail.trails, trail.number) == (1, 5)
    state.lose()
    state.keep_lines(slice(-2, None))
    state.write()
    for _ in range(3):
        assert trail.news(state.reader) == []
        assert (trail.trails, trail.number) == (2, 2)
    state.write(moved(6, 2000.0))
    assert trail.news(state.reader) == [(3, moved(6, 2000.0))]
    assert (trail.trails, trail.number, trail.lost) == (2, 3, 0)


@pytest.mark.parametrize("behind", [-0.1, 0.0, 0.1])
def test_a_rebuilt_trail_without_the_last_moves_repeats_nothing(state: State, behind: float) -> None:
    """Also not if moves were written out of the order of their times, or with times that the text rounds up."""
    state.write(moved(1, 1000.0), moved(2, 1010.0006), moved(3, 1010.0006 + behind))
    trail = Trail()
    trail.news(state.reader)
    state.lose()
    state.keep_lines(slice(0, 2))
    state.write(moved(4, 1020.0), moved(5, 1005.0))
    assert rows_of(trail.news(state.reader)) == [moved(4, 1020.0), moved(5, 1005.0)]
    assert (trail.trails, trail.number, trail.lost) == (2, 4, 0)
    assert trail.news(state.reader) == []


def test_another_trail_is_followed_although_the_clock_was_set_back(state: State) -> None:
    """What was there at the first look may have been told before; what comes behind it was not."""
    state.write(moved(1, 5000.0), moved(2, 5001.0))
    trail = Trail()
    trail.news(state.reader)
    state.lose()
    state.text.unlink()
    state.write(moved(3, 1000.0))
    assert trail.news(state.reader) == []
    state.write(moved(4, 1001.0))
    assert trail.news(state.reader) == [(2, moved(4, 1001.0))]
    assert (trail.trails, trail.lost) == (2, 0)


def test_a_trail_that_was_away_is_known_again(state: State, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With its text: then there is nothing to read, which is no other trail."""
    state.write(moved(1), moved(2))
    trail = Trail()
    trail.news(state.reader)
    state.writer.close()
    state.reader.close()
    away = tmp_path_factory.mktemp("away")
    for path in list(state.folder.iterdir()):
        path.rename(away / path.name)
    assert trail.news(state.reader) == []
    for path in list(away.iterdir()):
        path.rename(state.folder / path.name)
    assert trail.news(state.reader) == []
    state.write(moved(3))
    assert trail.news(state.reader) == [(3, moved(3))]
    assert (trail.trails, trail.lost) == (1, 0)


def test_a_store_that_cannot_be_read_changes_no_place(state: State) -> None:
    """Before the first look and after it; once it is mended, the trail goes on where it was."""
    state.write(moved(1))
    early, late = Trail(5), Trail()
    late.news(state.reader)
    state.writer.close()
    state.reader.close()
    whole = state.database.read_bytes()
    state.database.write_bytes(b"this is no database " * 500)
    for trail in (early, late):
        with pytest.raises(StoreError):
            trail.news(state.reader)
    assert (early.trails, late.trails, late.number) == (0, 1, 1)
    state.database.write_bytes(whole)
    state.write(moved(2))
    assert rows_of(early.news(state.reader)) == [moved(1), moved(2)]
    assert rows_of(late.news(state.reader)) == [moved(2)]
    assert (early.trails, late.trails, late.lost) == (1, 1, 0)


def test_two_readers_have_places_of_their_own(state: State) -> None:
    """One looks after every move, the other after all of them and a rebuild: each gets every move once."""
    state.write(moved(1, 1001.0))
    often, rarely = Trail(), Trail()
    often.news(state.reader)
    rarely.news(state.reader)
    got = []
    for number in range(2, 6):
        state.write(moved(number, 1000.0 + number))
        got += rows_of(often.news(state.reader))
    state.lose()
    state.keep_lines(slice(1, None))
    state.write(moved(6, 2000.0))
    got += rows_of(often.news(state.reader))
    assert got == rows_of(rarely.news(state.reader)) == [*(moved(n, 1000.0 + n) for n in range(2, 6)), moved(6, 2000.0)]

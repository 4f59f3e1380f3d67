"""The moves of a project's circuits, each of them once and in order, however many there are between two looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusewire.stores import Store
    from fusewire.stores.rows import AuditRow

    Move = tuple[int, AuditRow]

_BATCH = 1000


class Trail:
    """A place in the audit trail: it goes on behind the last move that was seen, known by its number and its words."""

    def __init__(self, recent: int) -> None:
        self._recent = recent
        self._begun = False
        self._last: Move | None = None
        #: moves that were forgotten before they could be read, since this was last set to 0
        self.lost = 0

    def news(self, store: Store) -> list[Move]:
        """What has moved since the last time; the first time, the last few moves."""
        if not self._begun:
            found = _behind(store, max(0, store.last_move() - max(1, self._recent)))
            told = found[-self._recent :] if self._recent else []
        else:
            found = told = _behind(store, 0) if self._last is None else self._since(store, *self._last)
        self._begun = True
        self._last = found[-1] if found else self._last
        return told

    def _since(self, store: Store, number: int, row: AuditRow) -> list[Move]:
        """The last move is asked for again: if it is not there any more, this is another trail."""
        found = _behind(store, number - 1)
        if found and found[0][0] == number and _same(found[0][1], row):
            return found[1:]
        return self._found_again(_behind(store, 0), number, row)

    def _found_again(self, found: list[Move], number: int, row: AuditRow) -> list[Move]:
        """A rebuilt database may count anew; one that got very many moves has forgotten the oldest."""
        for place in range(len(found) - 1, -1, -1):
            if _same(found[place][1], row):
                return found[place + 1 :]
        if found and found[0][0] > number:
            self.lost += found[0][0] - number - 1
            return found
        return [move for move in found if move[1].at > row.at]


def _behind(store: Store, number: int) -> list[Move]:
    found: list[Move] = []
    while batch := store.moves(number, _BATCH):
        found += batch
        number = batch[-1][0]
        if len(batch) < _BATCH:
            break
    return found


def _same(one: AuditRow, other: AuditRow) -> bool:
    """The text beside the database, from which it is rebuilt, knows times to the millisecond."""
    return abs(one.at - other.at) < 0.002 and one.replace(at=0.0) == other.replace(at=0.0)

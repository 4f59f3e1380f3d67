"""Follow the audit trail: each move once and in order, however many there are between two looks.

A trail forgets its oldest moves. One that was rebuilt may count from 1 again, and may lack what came last. A follower
gets what is new all the same, and how many moves were forgotten before they could be read.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fusewire.stores.rows import AUDIT_ROWS

if TYPE_CHECKING:
    from fusewire.stores import Store
    from fusewire.stores.rows import AuditRow

    Move = tuple[int, AuditRow]

#: More than a trail ever keeps: all of it is read at one moment, so that no rebuild comes between two halves of it.
_ALL = 10 * AUDIT_ROWS

#: Seconds. The text beside the database, from which it is rebuilt, knows times to the millisecond.
_FINE = 0.002


class Trail:
    """A place in the audit trail: behind the last move that was seen, which is known by its number and its words.

    If the store cannot be read, the place stays as it was. It is for one thread at a time.
    """

    def __init__(self, recent: int = 0) -> None:
        self._recent = recent
        self._last: Move | None = None
        #: no move that was seen is later
        self._latest = -inf
        #: trails that were seen so far: in each of them numbers from before mean nothing
        self.trails = 0
        #: moves that were forgotten before they could be read, since this was last set to 0
        self.lost = 0

    @property
    def number(self) -> int:
        """That of the last move that was seen; 0 if there was none."""
        return self._last[0] if self._last is not None else 0

    def news(self, store: Store) -> list[Move]:
        """What has moved since the last time; the first time, the last few moves."""
        if not self.trails:
            found = store.moves(0, _ALL)
            self.trails = 1
            new = found[-self._recent :] if self._recent else []
        else:
            found = self._from_the_last(store)
            new = self._behind_the_last(found)
        if found:
            self._last = found[-1]
            self._latest = max(self._latest, *(row.at for _, row in found))
        return new

    def _from_the_last(self, store: Store) -> list[Move]:
        """The last move and what is behind it; all moves, if it is not where it was."""
        if self._last is not None:
            number, row = self._last
            found = store.moves(number - 1, _ALL)
            if found and found[0][0] == number and _same(found[0][1], row):
                return found
        return store.moves(0, _ALL)

    def _behind_the_last(self, found: list[Move]) -> list[Move]:
        place = self._place_of_the_last(found)
        if place is not None:
            self.trails += found[place][0] != self.number
            return found[place + 1 :]
        if not found:  # perhaps only for now: a trail that comes back is known again
            return []
        if found[0][0] > self.number:
            self.lost += found[0][0] - self.number - 1
            return found
        self.trails += 1
        return self._later(found)

    def _place_of_the_last(self, found: list[Move]) -> int | None:
        """Of moves with the same words, the one with the nearest number."""
        if self._last is None:
            return None
        number, row = self._last
        places = [place for place, (_, other) in enumerate(found) if _same(other, row)]
        return min(places, key=lambda place: abs(found[place][0] - number), default=None)

    def _later(self, found: list[Move]) -> list[Move]:
        """In a trail without the last move: the first one later than all that were seen, and whatever follows it."""
        later = (place for place, (_, row) in enumerate(found) if row.at > self._latest + _FINE)
        return found[next(later, len(found)) :]


def _same(one: AuditRow, other: AuditRow) -> bool:
    return abs(one.at - other.at) < _FINE and one.replace(at=0.0) == other.replace(at=0.0)

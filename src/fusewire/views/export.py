"""Export the whole history as rows for other programs: moves, signals, what agents did."""

from __future__ import annotations

import csv
import heapq
import io
import json
import math
import re
from itertools import chain
from typing import TYPE_CHECKING

from fusewire.breakers.session.names import is_session, session_ids
from fusewire.core.events import identifier, plain
from fusewire.util.durations import show_time
from fusewire.util.errors import NotFound, StoreError, in_a_line
from fusewire.util.globs import matches
from fusewire.views.models import to_json
from fusewire.views.moves import moved_in, numbered_move

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import AuditRow, Doing, LogRow
    from fusewire.util.fast_json import JsonObject as Row

#: What there is to export.
KINDS = ("moves", "log", "doings")

#: Moves that are read at once.
_PAGE = 500

_GLOB = frozenset("*?[")

#: The columns of a table, the same for every kind of row.
COLUMNS = (
    *("row", "number", "at", "circuit", "session", "agent", "kind", "signal", "tool", "text", "value", "effect"),
    *("from", "to", "from_phase", "to_phase", "cause", "reason", "actor"),
)

#: Where a spreadsheet would see the beginning of a formula: at that of a text, and, if it reads the file with another
#: separator, behind that and behind the end of a line; quotes keep nothing together then, and are lost in front.
#: An apostrophe is among the signs so that one can be taken off.
_FORMULA = re.compile("^(?=[\t\r\n])|(?:^|[;|\t\r\n])(?=[ \"]*[=+\\-@\uff1d\uff0b\uff0d\uff20'])")

#: Characters that JSON allows inside a text, and that end a line for some readers.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


class Wanted:
    """Which rows are asked for; the default is all of them."""

    def __init__(
        self, kinds: Iterable[str] = KINDS, circuit: str | None = None, session: str | None = None, since: float = 0.0
    ) -> None:
        self.kinds = frozenset(kinds)
        self.circuit = None if circuit is None else plain(circuit)
        self.session = None if session is None else plain(session)
        self.since = since

    def takes(self, circuit: str) -> bool:
        """A name of a test may have brackets in it, so that an id is taken literally, too."""
        wanted = self.circuit
        return wanted is None or circuit == wanted or circuit == identifier(wanted) or matches(circuit, wanted)


def exported(breaker: Breaker, wanted: Wanted) -> Iterator[Row]:
    """Rows of all kinds in one stream, oldest first; NotFound, before the first, for ids that nobody knows.

    Within a kind they keep the order in which they were written: that a cooldown has passed is written when somebody
    looks, and bears the time at which it passed.
    """
    _require_known(breaker, wanted)
    streams: list[Iterator[tuple[float, Row]]] = []
    if "moves" in wanted.kinds:
        streams.append(_in_time(_moves(breaker, wanted)))
    if "log" in wanted.kinds:
        streams.append(_in_time(_log(breaker, wanted)))
    if "doings" in wanted.kinds and wanted.circuit is None:
        streams += [_in_time(_doings(breaker, wanted, session)) for session in _sessions(breaker, wanted)]
    return _readable(heapq.merge(*streams, key=lambda pair: pair[0]))


def _readable(rows: Iterable[tuple[float, Row]]) -> Iterator[Row]:
    """SQLite keeps anything in any column: what is no row of ours is said in a line."""
    try:
        for _, row in rows:
            yield row
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise StoreError(f"a row of the history cannot be read ({in_a_line(error)}); see: fusewire doctor") from error


def _in_time(rows: Iterable[tuple[float, Row]]) -> Iterator[tuple[float, Row]]:
    """A place in time for each row that no row before it has passed."""
    latest = -math.inf
    for at, row in rows:
        latest = max(latest, at)
        yield latest, row


def _require_known(breaker: Breaker, wanted: Wanted) -> None:
    store, circuit, session = breaker.store, wanted.circuit, wanted.session
    if circuit is not None and _GLOB.isdisjoint(circuit):
        name = identifier(circuit)
        if store.circuit(name) is None and not store.audit_of(name):
            breaker.rules.policy(circuit)
    if session is not None and not (is_session(store, session) or store.doings(session)):
        moved = moved_in(breaker, session)
        if not any(row.session == session for row in store.logs()) and not any(map(moved, store.audit_of(None))):
            raise NotFound(f"no session {session!r} has been heard of in this project")


# -- the three kinds --------------------------------------------------------------------------------------


def _moves(breaker: Breaker, wanted: Wanted) -> Iterator[tuple[float, Row]]:
    moved = None if wanted.session is None else moved_in(breaker, wanted.session)
    after = 0
    while page := breaker.store.moves(after, _PAGE):
        for number, move in page:
            if move.at >= wanted.since and wanted.takes(move.circuit) and (moved is None or moved(move)):
                yield move.at, _move(number, move)
        after = page[-1][0]


def _log(breaker: Breaker, wanted: Wanted) -> Iterator[tuple[float, Row]]:
    for one in breaker.store.logs(wanted.since):
        if wanted.takes(one.circuit) and wanted.session in (None, one.session):
            yield one.at, _reached(one)


def _doings(breaker: Breaker, wanted: Wanted, session: str) -> Iterator[tuple[float, Row]]:
    for one in breaker.store.doings(session, wanted.since):
        yield one.at, _done(one)


def _sessions(breaker: Breaker, wanted: Wanted) -> list[str]:
    """Those that something is remembered of; what their agents remember beside them is none."""
    if wanted.session is not None:
        return [wanted.session]
    return sorted(session_ids(breaker.store))


def _move(number: int, move: AuditRow) -> Row:
    return {"row": "move", **to_json(numbered_move(number, move))}


def _reached(one: LogRow) -> Row:
    return {
        "row": "log",
        "at": show_time(one.at),
        "circuit": one.circuit,
        "kind": one.kind,
        "signal": one.name,
        "text": one.text,
        "session": one.session,
        "value": _number(one.value),
        "effect": one.effect or None,
    }


def _done(one: Doing) -> Row:
    return {
        "row": "doing",
        "at": show_time(one.at),
        "session": one.session,
        "agent": one.agent or None,
        "kind": one.kind,
        "tool": one.tool,
        "text": one.text,
        "value": _number(one.value),
    }


def _number(value: float) -> float | None:
    """Neither JSON nor a spreadsheet has a word for what is endless."""
    return value if math.isfinite(value) else None


# -- formats: read back, every text is what it was ---------------------------------------------------------


def as_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    """JSON lines: one object a line, with the fields of its kind."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS).encode() + b"\n"


def as_table(rows: Iterable[Row]) -> Iterator[bytes]:
    """CSV as RFC 4180 has it, its header first; no cell is a formula to a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text)
    for cells in chain([COLUMNS], ([_cell(row.get(name)) for name in COLUMNS] for row in rows)):
        writer.writerow(cells)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def _cell(value: object) -> object:
    """What could be a formula gets an apostrophe in front; NUL, which no table has, becomes its picture."""
    return _FORMULA.sub(r"\g<0>'", value.replace("\0", "\u2400")) if isinstance(value, str) else value


FORMATS = {"jsonl": as_lines, "csv": as_table}

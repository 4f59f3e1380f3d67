"""Exported rows as JSON lines and as CSV: read back, every text is what it was."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Row = dict[str, Any]

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

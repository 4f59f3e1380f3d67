"""Read what is known of transcripts from a table.

The table is CSV: `file` (a name, or a path that ends like the transcript's), `resolved` (1, 0 or nothing) and `label`
(`loop`: it should have been stopped; `paging`: it looks like a loop and is none); other columns are for people.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable

from fusewire.replay.replayed import Replayed
from fusewire.util.errors import FusewireError

_OUTCOMES = {"1": "resolved", "0": "unresolved", "": ""}


def read_labels(path: str) -> dict[str, tuple[str, str]]:
    """Of each file its outcome and its label; FusewireError if the table cannot be read."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise FusewireError(f"{path}: the labels cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not rows or "file" not in rows[0]:
        raise FusewireError(f"{path}: no table of labels; allowed: CSV with a column `file`")
    found = {}
    for number, row in enumerate(rows, 2):
        resolved = (row.get("resolved") or "").strip()
        if resolved not in _OUTCOMES:
            raise FusewireError(f"{path}: line {number}: resolved is {resolved!r}; allowed: 1, 0 or nothing")
        found[os.path.basename(row["file"] or "")] = _OUTCOMES[resolved], (row.get("label") or "").strip()
    return found


def put_labels(replays: Iterable[Replayed], labels: dict[str, tuple[str, str]]) -> None:
    """Add what the table says of each."""
    for one in replays:
        outcome, one.label = labels.get(os.path.basename(one.path), ("", ""))
        one.outcome = outcome or one.outcome

"""Shorten the lists in a session's state that grow without bound: the evidence ledger and the tool history.

`evidence_ledger_summary` sums up what the ledger drops, together with what was dropped before.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from fusewire.janitor import files
from fusewire.janitor.limits import read_state, surplus_lists, why_untouchable
from fusewire.janitor.names import TEMPORARY
from fusewire.util.durations import show_time
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fusewire.janitor.limits import Limits
    from fusewire.janitor.report import Cleanup

SUMMARY = "evidence_ledger_summary"


def truncate(folder: str, names: list[str], limits: Limits, cleanup: Cleanup, now: float) -> None:
    """Shorten the states that stay. One that changes meanwhile is left for the next run."""
    for name in names:
        try:
            _truncate(os.path.join(folder, name), path_shown(name), limits, cleanup, now)
        except FileNotFoundError:
            continue
        except ValueError as error:
            cleanup.left(f"{path_shown(name)}: {error}: left alone")
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be shortened", error)


def _truncate(path: str, shown: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    facts = os.lstat(path)
    state = read_state(path)
    if why_not := why_untouchable(facts) or ("" if isinstance(state, dict) else "is not a JSON object"):
        cleanup.left(f"{shown} {why_not}: left alone")
        return
    assert isinstance(state, dict)
    most = surplus_lists(state, limits)
    if not most:
        return
    if "evidence_ledger" in most:
        state[SUMMARY] = merge_summary(state.get(SUMMARY), state["evidence_ledger"][: -most["evidence_ledger"]], now)
    what = ", ".join(f"{key} {len(state[key])} -> {limit}" for key, limit in most.items())
    state |= {key: state[key][-limit:] for key, limit in most.items()}
    new = _serialise(state, files.read(path, facts.st_size))
    freed = facts.st_size - len(new)
    if not cleanup.dry_run and (files.has_writer(path, now) or not replace_state(path, facts, new)):
        cleanup.did(f"left {shown} for the next run: another process writes to it")
        return
    cleanup.ledgers_truncated += 1
    cleanup.did(f"{'would shorten' if cleanup.dry_run else 'shortened'} {shown}: {what}", freed)


def merge_summary(earlier: object, dropped: list[object], now: float) -> Mapping[str, object]:
    """Add dropped entries to a summary; ValueError if the earlier one is not ours.

    The average is over the entries that have a boost; `boosts` counts them.
    """
    before: Any = {"count": 0} if earlier is None else earlier
    if not isinstance(before, dict):
        raise ValueError(f"{SUMMARY} is not a summary")
    count: Any = before.get("count")
    average: Any = before.get("average_boost")
    weight: Any = 0 if average is None else before.get("boosts", count)
    if not _is_count(count) or not _is_count(weight) or not (average is None or _is_number(average)):
        raise ValueError(f"{SUMMARY} is not a summary")
    boosts = [entry["boost"] for entry in dropped if isinstance(entry, dict) and _is_number(entry.get("boost"))]
    total = weight + len(boosts)
    return {
        **before,
        "count": count + len(dropped),
        "average_boost": round(((average or 0) * weight + sum(boosts)) / total, 6) if total else None,
        "boosts": total,
        "last_dropped_at": show_time(now),
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _serialise(state: object, old: bytes) -> bytes:
    """Write JSON in the form of the old content: indented or not, escaped or not."""
    indent = 2 if b"\n" in old.strip() else None
    try:
        new = json.dumps(state, indent=indent, ensure_ascii=old.isascii()).encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can express
        new = json.dumps(state, indent=indent).encode()
    return new + b"\n" if old.endswith(b"\n") else new


def replace_state(path: str, before: os.stat_result, content: bytes) -> bool:
    """Replace a state unless it has changed since it was read. Mode and time of change stay."""
    temporary = os.path.join(os.path.dirname(path), TEMPORARY)
    try:
        with open(files.create(temporary, before), "wb") as file:
            file.write(content)
            file.flush()
            os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
            os.fsync(file.fileno())
        if not files.is_unchanged(path, before):
            return False
        files.rename(temporary, path)
    finally:
        files.remove(temporary)
    return True

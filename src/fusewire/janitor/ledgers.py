"""Lists in a session's state that grow without end: the evidence ledger and the tool history keep their last entries.

What the ledger drops is summed up in `evidence_ledger_summary`, together with what was dropped before.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from fusewire.janitor.due import LARGEST_STATE, surplus
from fusewire.janitor.names import TEMPORARY
from fusewire.janitor.packing import remove_temporary, unchanged
from fusewire.janitor.writers import has_writer
from fusewire.util.durations import show_time
from fusewire.util.fast_json import loads
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.cleanup import Cleanup
    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits

SUMMARY = "evidence_ledger_summary"


def truncate(folder: Folder, names: list[str], limits: Limits, cleanup: Cleanup, now: float) -> None:
    """Shorten the states that stay, each in one step. One that changes meanwhile is left for the next run."""
    for name in names:
        try:
            _truncate(folder, name, limits, cleanup, now)
        except FileNotFoundError:
            continue
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be shortened", error)


def _truncate(folder: Folder, name: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    facts = folder.look(name)
    content = folder.read(name, LARGEST_STATE + 1)
    state = _parsed(content)
    if facts is None or not isinstance(state, dict):
        cleanup.left(f"{path_shown(name)} is no JSON object: left alone")
        return
    lists = surplus(state, limits)
    if not lists:
        return
    lengths = {key: len(state[key]) for key in lists}
    try:
        shorten(state, limits, now)
    except ValueError as error:
        cleanup.left(f"{path_shown(name)}: {error}: left alone")
        return
    what = ", ".join(f"{key} {lengths[key]} -> {len(state[key])}" for key in lists)
    new = _written(state, content)
    cleanup.ledgers_truncated += 1
    if cleanup.dry_run:
        cleanup.did(f"would shorten {path_shown(name)}: {what}", len(content) - len(new))
        return
    if has_writer(folder, name, now) or not replace(folder, name, facts, new):
        cleanup.ledgers_truncated -= 1
        cleanup.did(f"left {path_shown(name)} for the next run: another process writes to it")
        return
    cleanup.did(f"shortened {path_shown(name)}: {what}", len(content) - len(new))


def _parsed(content: bytes) -> Any:
    if len(content) > LARGEST_STATE:
        return None
    try:
        return loads(content.decode("utf-8"))
    except ValueError:
        return None


def shorten(state: dict[str, Any], limits: Limits, now: float) -> None:
    """Keep the last entries; ValueError if there is a summary that is none of ours."""
    if "evidence_ledger" in surplus(state, limits):
        dropped = state["evidence_ledger"][: -limits.evidence_ledger_max]
        state[SUMMARY] = merged(state.get(SUMMARY), dropped, now)
        state["evidence_ledger"] = state["evidence_ledger"][-limits.evidence_ledger_max :]
    if "tool_history" in surplus(state, limits):
        state["tool_history"] = state["tool_history"][-limits.tool_history_max :]


def merged(earlier: Any, dropped: list[Any], now: float) -> dict[str, Any]:
    """The summary of what was dropped before and now. The average is over the entries that have a boost: `boosts`."""
    before: Any = {"count": 0, "average_boost": None} if earlier is None else earlier
    if not isinstance(before, dict) or not _is_count(before.get("count")):
        raise ValueError(f"{SUMMARY} is no summary")
    average = before.get("average_boost")
    if average is not None and not _is_number(average):
        raise ValueError(f"{SUMMARY} is no summary")
    weight: Any = before.get("boosts", before["count"]) if average is not None else 0
    if not _is_count(weight):
        raise ValueError(f"{SUMMARY} is no summary")
    boosts = [entry["boost"] for entry in dropped if isinstance(entry, dict) and _is_number(entry.get("boost"))]
    together = weight + len(boosts)
    total = (average or 0) * weight + sum(boosts)
    return {
        **before,
        "count": before["count"] + len(dropped),
        "average_boost": round(total / together, 6) if together else None,
        "boosts": together,
        "last_dropped_at": show_time(now),
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _written(state: dict[str, Any], old: bytes) -> bytes:
    """As the old content was written: in lines or in one, with its characters as they were."""
    indent = 2 if b"\n" in old.strip() else None
    try:
        new = json.dumps(state, indent=indent, ensure_ascii=old.isascii()).encode()
    except UnicodeEncodeError:  # half a character, which only an escape can say
        new = json.dumps(state, indent=indent).encode()
    return new + b"\n" if old.endswith(b"\n") else new


def replace(folder: Folder, name: str, before: os.stat_result, content: bytes) -> bool:
    """Put a new content in the place of the old one, unless that has changed since it was read.

    Mode and time of change stay: what was shortened by us is not younger for it.
    """
    try:
        with open(folder.create(TEMPORARY), "wb") as file:
            file.write(content)
            file.flush()
            folder.dress(file.fileno(), before)
            os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
            os.fsync(file.fileno())
        if not unchanged(folder, name, before):
            remove_temporary(folder)
            return False
        folder.rename(TEMPORARY, name)
    except BaseException:
        remove_temporary(folder)
        raise
    folder.sync()
    return True

"""What there is to do, found by looking only: the start of a session asks this first, and mostly that is all.

Nothing slow is imported here: no `json`, no `re`, no `zlib`.
"""

from __future__ import annotations

import stat

from fusewire.janitor.names import PRUNING, TEMPORARY, is_telemetry, rotation, session_of
from fusewire.util.durations import number, parse_time, show_duration
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from typing import Any

    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits

#: Where a line of telemetry says when it was written.
_TIMES = ("timestamp", "time", "ts", "at")

#: Bytes of a session's state that are read; more is not looked into.
LARGEST_STATE = 64 << 20

#: Characters of a shortened session id that still name one session.
_SHORT = 8


def anything_due(folder: Folder, limits: Limits, active: Collection[str], now: float) -> bool:
    """Whether a run would find something to do."""
    entries = folder.entries()
    for name, facts in entries.items():
        if not _plain(facts):
            continue
        if name == TEMPORARY or session_of(name, PRUNING) or is_aside(name, limits):
            return True
        if is_telemetry(name, limits.telemetry) and rotation_reason(folder, name, facts, limits, now):
            return True
    leaving = sessions_to_prune(entries, limits, active, now)
    if leaving:
        return True
    for name, facts in entries.items():
        if session_of(name) and _plain(facts):
            try:
                if surplus(loads(folder.read(name, LARGEST_STATE).decode("utf-8")), limits):
                    return True
            except (OSError, ValueError):
                continue
    return sum(facts.st_size for _, facts in folder.walk()) > limits.total_max_bytes


def is_aside(name: str, limits: Limits) -> bool:
    """Whether a file was set aside by a rotation of ours."""
    known = rotation(name)
    return known is not None and not known.packed and is_telemetry(known.live, limits.telemetry)


def _plain(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1


def why_left_alone(facts: os.stat_result) -> str:
    """Why a file of a known name is not touched; empty if it may be."""
    if stat.S_ISLNK(facts.st_mode):
        return "is a symbolic link"
    if not stat.S_ISREG(facts.st_mode):
        return "is no regular file"
    return "has another name somewhere (a hard link)" if facts.st_nlink > 1 else ""


# -- telemetry ----------------------------------------------------------------------------------------


def rotation_reason(folder: Folder, name: str, facts: os.stat_result, limits: Limits, now: float) -> str:
    """Why a file is to be rotated: too large, too many lines, too old; empty if it is not. An empty one never is."""
    if not facts.st_size:
        return ""
    if facts.st_size > limits.telemetry_max_bytes:
        return f"over {number(limits.telemetry_max_bytes / 1024)} KB"
    try:
        content = folder.read(name, limits.telemetry_max_bytes)
    except OSError:
        return ""  # it is gone, or not ours to read
    if lines_in(content) > limits.telemetry_max_lines:
        return f"over {limits.telemetry_max_lines} lines"
    begun = first_time(content, now)
    age = now - (facts.st_mtime if begun is None else begun)
    return f"older than {show_duration(limits.telemetry_max_age)}" if age > limits.telemetry_max_age else ""


def lines_in(content: bytes) -> int:
    """Lines, the last one also if nobody has ended it."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def first_time(content: bytes, now: float) -> float | None:
    """When the first line was written, if it says so and that can be."""
    try:
        entry = loads(content.partition(b"\n")[0].decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    value = next((entry[key] for key in _TIMES if key in entry), None)
    try:
        moment = parse_time(value) if isinstance(value, str) else value
    except (ValueError, OverflowError):
        return None
    if isinstance(moment, bool) or not isinstance(moment, (int, float)):
        return None
    moment = moment / 1000 if moment > 1e11 else moment  # in milliseconds
    return moment if 0 < moment <= now + 86400 else None


# -- sessions -----------------------------------------------------------------------------------------


def is_active(session: str, active: Collection[str]) -> bool:
    """Whether a session is under way; files may bear a shortened id."""
    return any(
        session == one
        or (min(len(session), len(one)) >= _SHORT and (session.startswith(one) or one.startswith(session)))
        for one in active
    )


def sessions_to_prune(
    entries: dict[str, os.stat_result], limits: Limits, active: Collection[str], now: float
) -> dict[str, str]:
    """File -> why: the old ones, and of too many the oldest. One that is active never."""
    states = {name: facts for name, facts in entries.items() if session_of(name) and stat.S_ISREG(facts.st_mode)}
    idle = [name for name, facts in states.items() if _plain(facts) and not is_active(session_of(name), active)]
    idle.sort(key=lambda name: (states[name].st_mtime_ns, name))
    found = {}
    for name in idle:
        if now - states[name].st_mtime > limits.session_max_age:
            found[name] = f"older than {show_duration(limits.session_max_age)}"
        elif len(states) - len(found) > limits.session_max_active:
            found[name] = f"more than {limits.session_max_active} sessions"
    return found


def surplus(state: Any, limits: Limits) -> list[str]:
    """Which of a session's lists are too long."""
    if not isinstance(state, dict):
        return []
    most = {"evidence_ledger": limits.evidence_ledger_max, "tool_history": limits.tool_history_max}
    return [key for key, limit in most.items() if isinstance(state.get(key), list) and len(state[key]) > limit]

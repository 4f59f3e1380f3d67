"""Define the memory limits, and tell which files exceed them.

Loaded at every start of a session, so nothing slow is imported: no `json`, `re`, `zlib` or `dataclasses`.
"""

from __future__ import annotations

import stat

from fusewire.janitor.files import read
from fusewire.janitor.names import PRUNING, session_of
from fusewire.util.durations import number, parse_time, show_duration
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping
    from typing import Any

_DAY = 86400.0

#: Keys under which a line of telemetry has its time.
_TIMES = ("timestamp", "time", "ts", "at")

#: Bytes of a session's state that are read; a larger one is left alone.
_LARGEST_STATE = 64 << 20

#: Characters of a shortened session id that still identify one session.
_SHORT = 8


class Limits:
    """The memory limits of one project, with the settings' own names: the seed's figures, then ours."""

    telemetry_max_lines: int = 1000
    telemetry_max_kb: int = 50
    telemetry_max_age_days: float = 7 * _DAY  # ages are in seconds, as settings are once they are parsed
    telemetry_keep_rotations: int = 5
    session_max_active: int = 10
    session_max_age_days: float = 7 * _DAY
    evidence_ledger_max: int = 100
    tool_history_max: int = 50
    total_max_kb: int = 5000
    folder: str = ".claude/memory"
    telemetry: tuple[str, ...] = ("*_telemetry.jsonl", "circuit_breaker_incidents.jsonl")
    other_folders: tuple[str, ...] = ()

    def __init__(self, **given: Any) -> None:
        for key, value in given.items():
            if key not in Limits.__annotations__:
                raise TypeError(f"no such limit: {key}")
            setattr(self, key, tuple(value) if isinstance(value, list) else value)
        self.telemetry_max_bytes = self.telemetry_max_kb * 1024
        self.total_max_bytes = self.total_max_kb * 1024

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Limits:
        """Take the limits from the parsed settings of the tool breaker; the others have their defaults."""
        names = {key: f"memory_limits.{key}" for key in cls.__annotations__}
        return cls(**{key: settings[name] for key, name in names.items() if name in settings})


def why_untouchable(facts: os.stat_result) -> str:
    """Say why a file with a known name is left alone; empty if it is a regular file with one name."""
    if stat.S_ISLNK(facts.st_mode):
        return "is a symbolic link"
    if not stat.S_ISREG(facts.st_mode):
        return "is not a regular file"
    return "has another name somewhere (a hard link)" if facts.st_nlink > 1 else ""


# -- telemetry ----------------------------------------------------------------------------------------


def rotation_reason(path: str, facts: os.stat_result, limits: Limits, now: float) -> str:
    """Say why a file has to be rotated: size, lines or age; empty if it is within its limits, or empty itself."""
    if not facts.st_size:
        return ""
    if facts.st_size > limits.telemetry_max_bytes:
        return f"over {number(limits.telemetry_max_kb)} KB"
    try:
        content = read(path, limits.telemetry_max_bytes)
    except OSError:
        return ""  # removed meanwhile, or not readable for us
    if content.count(b"\n") + (not content.endswith(b"\n")) > limits.telemetry_max_lines:
        return f"over {limits.telemetry_max_lines} lines"
    started = first_time(content, now)
    age = now - (facts.st_mtime if started is None else started)
    return f"older than {show_duration(limits.telemetry_max_age_days)}" if age > limits.telemetry_max_age_days else ""


def first_time(content: bytes, now: float) -> float | None:
    """Read the time of the first line; None without one, or with an impossible one."""
    try:
        entry = loads(content.partition(b"\n")[0].decode("utf-8"))
        value = next((entry[key] for key in _TIMES if key in entry), None) if isinstance(entry, dict) else None
        moment = parse_time(value) if isinstance(value, str) else value
    except (ValueError, OverflowError):
        return None
    if isinstance(moment, bool) or not isinstance(moment, (int, float)):
        return None
    moment = moment / 1000 if moment > 1e11 else moment  # milliseconds
    return moment if 0 < moment <= now + _DAY else None


# -- sessions -----------------------------------------------------------------------------------------


def is_active(session: str, active: Collection[str]) -> bool:
    """Tell whether a session is running; a file name may have a shortened id."""
    return any(
        session == one
        or (min(len(session), len(one)) >= _SHORT and (session.startswith(one) or one.startswith(session)))
        for one in active
    )


def sessions_to_prune(
    entries: Mapping[str, os.stat_result], limits: Limits, active: Collection[str], now: float
) -> dict[str, str]:
    """Map each state to be pruned to the reason: too old, or the oldest of too many. An active session never is."""
    known = {name: facts for name, facts in entries.items() if session_of(name) and stat.S_ISREG(facts.st_mode)}
    found = {name: "an earlier run was interrupted" for name in known if name.endswith(PRUNING)}
    states = {name: facts for name, facts in known.items() if name not in found}
    idle = [name for name, facts in states.items() if facts.st_nlink == 1 and not is_active(session_of(name), active)]
    left = len(states)
    for name in sorted(idle, key=lambda name: (states[name].st_mtime_ns, name)):
        if now - states[name].st_mtime > limits.session_max_age_days:
            found[name] = f"older than {show_duration(limits.session_max_age_days)}"
        elif left > limits.session_max_active:
            found[name] = f"more than {limits.session_max_active} sessions"
        left -= name in found
    return found


def read_state(path: str) -> object:
    """Parse a session's state; None if it cannot be read or is too large."""
    try:
        content = read(path, _LARGEST_STATE + 1)
        return loads(content.decode("utf-8")) if len(content) <= _LARGEST_STATE else None
    except (OSError, ValueError):
        return None


def surplus_lists(state: object, limits: Limits) -> dict[str, int]:
    """Map each list of a session's state that is too long to the number of entries it may keep."""
    if not isinstance(state, dict):
        return {}
    most = {"evidence_ledger": limits.evidence_ledger_max, "tool_history": limits.tool_history_max}
    return {key: limit for key, limit in most.items() if isinstance(state.get(key), list) and len(state[key]) > limit}

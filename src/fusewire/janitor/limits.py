"""What the janitor keeps to: the tool seed's `memory_limits`, and which files it may touch at all."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_DAY = 86400.0

#: The seed's figures, and ours below them. Ages are in seconds, as settings are once they are parsed.
_DEFAULTS: dict[str, Any] = {
    "telemetry_max_lines": 1000,
    "telemetry_max_kb": 50,
    "telemetry_max_age_days": 7 * _DAY,
    "telemetry_keep_rotations": 5,
    "session_max_active": 10,
    "session_max_age_days": 7 * _DAY,
    "evidence_ledger_max": 100,
    "tool_history_max": 50,
    "total_max_kb": 5000,
    "folder": ".claude/memory",
    "telemetry": ("*_telemetry.jsonl", "circuit_breaker_incidents.jsonl"),
    "other_folders": (),
}


class Limits:
    """One project's limits. Loaded at every start of a session: no dataclass, which would cost more than the look."""

    __slots__ = (
        "evidence_ledger_max",
        "folder",
        "other_folders",
        "session_max_active",
        "session_max_age",
        "telemetry",
        "telemetry_keep_rotations",
        "telemetry_max_age",
        "telemetry_max_bytes",
        "telemetry_max_lines",
        "tool_history_max",
        "total_max_kb",
    )

    def __init__(self, **given: Any) -> None:
        unknown = sorted(set(given) - set(_DEFAULTS))
        if unknown:
            raise TypeError(f"no such limit: {', '.join(unknown)}")
        values = {**_DEFAULTS, **given}
        self.telemetry_max_lines: int = values["telemetry_max_lines"]
        self.telemetry_max_bytes: int = values["telemetry_max_kb"] * 1024
        self.telemetry_max_age: float = values["telemetry_max_age_days"]
        self.telemetry_keep_rotations: int = values["telemetry_keep_rotations"]
        self.session_max_active: int = values["session_max_active"]
        self.session_max_age: float = values["session_max_age_days"]
        self.evidence_ledger_max: int = values["evidence_ledger_max"]
        self.tool_history_max: int = values["tool_history_max"]
        self.total_max_kb: int = values["total_max_kb"]
        self.folder: str = values["folder"]
        self.telemetry: tuple[str, ...] = tuple(values["telemetry"])
        self.other_folders: tuple[str, ...] = tuple(values["other_folders"])

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Limits:
        """From the parsed settings of the tool breaker; what is not among them has its default."""
        prefix = "memory_limits."
        given = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
        return cls(**{key: value for key, value in given.items() if key in _DEFAULTS})

    @property
    def total_max_bytes(self) -> int:
        return self.total_max_kb * 1024

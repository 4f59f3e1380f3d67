"""Write the seed's `circuit-breaker.json` from a record, and read it back field by field.

The database is the truth and the file its mirror; but a file that was written by hand, or that has outlived its
database, can be imported. So every field is checked, and the error names the first one that is wrong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusewire.breakers.phase.detect import BY_TESTS, METRICS, PHASES, SHOWN, TESTS_RUN, first_marks
from fusewire.breakers.phase.state import HISTORY, Face, PhaseEvent, PhaseRecord
from fusewire.core.events import TEXT_LIMIT, plain
from fusewire.util.durations import parse_time, show_time
from fusewire.util.errors import ConfigError
from fusewire.util.fast_json import loads

if TYPE_CHECKING:
    from fusewire.util.fast_json import JsonObject

_STATES = ("CLOSED", "HALF_OPEN", "OPEN")
_EVENTS = ("state_change", "progress", "error")
_COUNT = 10**6
_LARGEST = 10**9
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


@dataclass
class Taken:
    """What a file says: one phase's circuit, the marks of all four, the history."""

    face: Face
    phase: str = ""
    error_hash: str = ""
    marks: dict[str, dict[str, float]] = field(default_factory=dict)
    history: list[PhaseEvent] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        """Whether it makes no difference which phase it is about."""
        return self.face.state == "CLOSED" and not self.face.no_progress and not self.face.same_error


def render(record: PhaseRecord) -> bytes:
    """The file of a record: the seed's keys in the seed's order, and which phase they are about."""
    phase = record.shown_phase()
    face = record.face(phase)
    data = {
        "state": face.state,
        "no_progress_count": face.no_progress,
        "same_error_count": face.same_error,
        "last_progress_metric": {name: marks_in_order(name, record.marks[name]) for name in PHASES},
        "last_error_hash": record.errors[phase]["hash"] or None if phase in record.errors else None,
        "opened_at": whole_seconds(face.opened_at),
        "open_reason": face.reason if face.state == "OPEN" else None,
        "history": [history_entry(entry) for entry in record.history],
        "phase": phase or None,
    }
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def history_entry(entry: PhaseEvent) -> JsonObject:
    return {
        "timestamp": whole_seconds(entry["at"]),
        "event": entry["event"],
        "from_state": entry["from"],
        "to_state": entry["to"],
        "reason": entry["reason"],
        "phase": entry["phase"] or None,
    }


def whole_seconds(moment: float | None) -> str | None:
    """As the seed writes times; not every tool takes a fraction."""
    return None if moment is None else show_time(int(moment))


def marks_in_order(phase: str, marks: dict[str, float]) -> dict[str, float]:
    """The seed's metric first; the same order whether a mark was just set or comes from the store."""
    return {name: marks[name] for name in (SHOWN[phase], *sorted(marks)) if name in marks}


def parse(content: bytes, shown: str, phase: str = "") -> Taken:
    """What a file says; ConfigError names the first field that cannot be used. `phase` goes before the file's own."""
    try:
        data = loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(shown, "file", str(error), "JSON in UTF-8") from None
    if not isinstance(data, dict):
        raise ConfigError(shown, "file", type(data).__name__, "an object with state, no_progress_count, ...")
    reader = _FieldReader(shown)
    state = reader.one_of(data, "state", _STATES, required=True)
    no_progress, same_error = reader.count(data, "no_progress_count"), reader.count(data, "same_error_count")
    opened_at, reason = reader.time(data, "opened_at"), reader.text(data, "open_reason")
    face = Face(state, no_progress, same_error)
    if state == "OPEN":
        face = Face(state, no_progress, same_error, opened_at, reason or "open in an imported file")
    return Taken(
        face,
        phase or reader.one_of(data, "phase", PHASES),
        reader.hash(data, "last_error_hash"),
        reader.marks(data),
        reader.history(data),
    )


def record_of(taken: Taken, now: float) -> PhaseRecord:
    """The record of a file's state; no file has how often a phase has ended."""
    record = PhaseRecord(since=now, phase=taken.phase, marks=taken.marks, history=taken.history)
    if taken.phase:
        record.iterations = {taken.phase: max(taken.face.no_progress, taken.face.same_error)}
        record.faces = {taken.phase: taken.face}
        if taken.error_hash:
            record.errors = {taken.phase: {"hash": taken.error_hash, "text": ""}}
    return record


class _FieldReader:
    """One field at a time; what is missing or null has its initial value."""

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def refuse(self, key: str, value: object, allowed: str) -> ConfigError:
        return ConfigError(self.shown, key, value, allowed)

    def one_of(
        self, data: JsonObject, key: str, names: tuple[str, ...], where: str = "", required: bool = False
    ) -> str:
        value = data.get(key)
        if value is None and not required:
            return ""
        if value not in names:
            raise self.refuse(where + key, value, ", ".join(names))
        return str(value)

    def count(self, data: JsonObject, key: str) -> int:
        value = data.get(key, 0)
        if type(value) is not int or not 0 <= value <= _COUNT:
            raise self.refuse(key, value, f"a whole number from 0 to {_COUNT}")
        return value

    def time(self, data: JsonObject, key: str, where: str = "", required: bool = False) -> float | None:
        value = data.get(key)
        if value is None and not required:
            return None
        try:
            moment = parse_time(value)  # type: ignore[arg-type]
            show_time(moment)  # so that it can be written again
            return moment
        except (ValueError, TypeError, OverflowError, OSError):
            allowed = "an ISO 8601 time, such as 2026-02-12T10:30:00Z"
            raise self.refuse(where + key, value, allowed + ("" if required else ", or null")) from None

    def text(self, data: JsonObject, key: str, where: str = "") -> str:
        value = data.get(key)
        if value is not None and not isinstance(value, str):
            raise self.refuse(where + key, value, "a text, or null")
        return plain(value or "", TEXT_LIMIT)

    def hash(self, data: JsonObject, key: str) -> str:
        value = data.get(key)
        match = _HASH.fullmatch(value) if isinstance(value, str) else None
        if value is not None and match is None:
            raise self.refuse(key, value, "64 hexadecimal digits, or null")
        return match[1] if match else ""

    def marks(self, data: JsonObject) -> dict[str, dict[str, float]]:
        table = data.get("last_progress_metric") or {}
        if not isinstance(table, dict):
            raise self.refuse("last_progress_metric", table, f"an object of {', '.join(PHASES)}")
        found = {}
        for phase in PHASES:
            key, given = f"last_progress_metric.{phase}", table.get(phase) or {}
            if not isinstance(given, dict):
                raise self.refuse(key, given, "an object of metrics")
            known = [*METRICS[phase], *([TESTS_RUN] if phase in BY_TESTS else [])]
            found[phase] = first_marks(phase)
            for name in [name for name in known if given.get(name) is not None and METRICS[phase].get(name) != "flag"]:
                value = given[name]
                whole = METRICS[phase].get(name) != "number"
                if type(value) not in ((int,) if whole else (int, float)) or not 0 <= value <= _LARGEST:
                    raise self.refuse(f"{key}.{name}", value, f"a {'whole ' * whole}number from 0 to {_LARGEST}")
                found[phase][name] = value
        return found

    def history(self, data: JsonObject) -> list[PhaseEvent]:
        items = data.get("history") or []
        if not isinstance(items, list):
            raise self.refuse("history", items, "a list")
        entries: list[PhaseEvent] = []
        for number, item in list(enumerate(items))[-HISTORY:]:
            where = f"history[{number}]"
            if not isinstance(item, dict):
                raise self.refuse(where, item, "an object with timestamp, event, from_state, to_state, reason")
            where += "."
            entries.append(
                {
                    "at": self.time(item, "timestamp", where, required=True) or 0.0,
                    "event": self.one_of(item, "event", _EVENTS, where, required=True),
                    "from": self.one_of(item, "from_state", _STATES, where, required=True),
                    "to": self.one_of(item, "to_state", _STATES, where, required=True),
                    "reason": self.text(item, "reason", where),
                    "phase": self.one_of(item, "phase", PHASES, where),
                }
            )
        return entries

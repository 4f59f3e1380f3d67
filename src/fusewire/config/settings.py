"""Define settings: what may be configured, which values are allowed, and where each one came from.

Later layers win: the policy's default < the user's file < the project's file < a constraint's front matter.
A value that cannot be used leaves the layer below in force and becomes a warning, never a crash.
"""

from __future__ import annotations

import difflib
import functools
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from fusewire.util.durations import UNITS, number, parse_duration, show_duration
from fusewire.util.errors import ConfigError
from fusewire.util.quiet_hours import parse_hours

KINDS = ("constraint", "loop", "phase", "tool", "attempt", "provider")

#: Tables that may be configured: the kinds of circuits, and those that have none.
TABLES = (*KINDS, "guard", "sandbox", "notify")

#: How much a message matters, from little to much.
SEVERITIES = ("info", "warning", "trip", "alert")

#: Longer lists than anybody writes.
_LONGEST_LIST = 500

#: Longer than anybody waits; keeps states and schedules finite.
_LONGEST = 10 * 365 * UNITS["d"]
_LARGEST = 1000

#: Names that are listed where a key is unknown and none of them is near.
_LISTED = 8

#: Steps of a schedule of cooldowns.
_MOST_STEPS = 20

#: Instead of a window: failures in a row.
CONSECUTIVE = "consecutive"

#: Units that settings are written in.
_SECONDS = {"days": UNITS["d"], "hours": UNITS["h"], "seconds": UNITS["s"]}


@dataclass(frozen=True)
class Setting:
    """One thing that may be configured."""

    key: str
    default: Any
    type: str
    help: str = ""
    least: float | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What a value must be, in words."""
        least = self.least or 0
        match self.type:
            case "count" | "turns":
                return f"a whole number from {1 if self.least is None else 0} to {self.most or _LARGEST}"
            case "duration":
                shortest = f"of at least {show_duration(least)}" if self.least is not None else "above 0"
                return f'a duration {shortest}, such as "45m" or "2h", up to 10 years'
            case "window":
                return f'"{CONSECUTIVE}", or a duration above 0, such as "1h"'
            case "schedule":
                return f'a duration above 0, such as "5m", or a list of up to {_MOST_STEPS} of them'
            case "share":
                return "a number above 0 and up to 1"
            case "flag":
                return "true or false"
            case "usd":
                return "an amount of dollars, " + ("0 (no limit) or more" if self.least == 0 else "above 0")
            case "size":
                return "a whole number of 1 or more"
            case "clock":
                return 'hours of the day, such as "23:00-07:00", or "" for none'
            case "texts":
                return "a list of texts"
            case "text":
                return "a text"
            case "severity" | "choice":
                return ", ".join(self.names)
            case "path":
                return "the path of a file or folder"
            case "paths":
                return "a list of paths or globs, relative to a root of the project, or starting with / or ~"
            case "grants":
                return 'a list of texts "TOOL: PATTERN", such as "mcp__notes__*: memory/"'
            case unit:
                most = number(_LONGEST / _SECONDS[unit])
                return f"a number of {unit}, {'0 or more' if self.least == 0 else 'above 0'}, up to {most}"

    def allowed_instead(self, value: Any) -> str:
        """The same for a value that is none of these: with the nearest choice, where it has some."""
        return f"{self.allowed}{suggest(value, self.names) if isinstance(value, str) else ''}"

    @property
    def names(self) -> tuple[str, ...]:
        """All that a value may be, where they are few."""
        return (self.choices or SEVERITIES) if self.type in ("severity", "choice") else ()

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the most that a number may be, as it is written."""
        if self.type in ("count", "turns", "size"):
            most = self.most or (_LONGEST if self.type == "size" else _LARGEST)
            return 1 if self.least is None else 0, most
        unit = _SECONDS.get(self.type, 1)
        return (self.least or 0) / unit, 1 if self.type == "share" else _LONGEST / unit

    def parse(self, value: Any) -> Any:
        """The value as the core wants it (seconds, counts, tuples); ValueError if it is not allowed."""
        if self.type in ("paths", "grants"):
            return _texts(value, self.type == "grants")
        if self.type == "texts":
            return _words(value)
        if self.type == "text":
            return _words([value])[0]
        if self.type in ("severity", "choice"):
            return _require(value in self.names, value)
        if self.type == "path":
            return _texts([value], False)[0]
        if self.type == "window":
            return None if value == CONSECUTIVE else _seconds(value)
        if self.type == "schedule":
            steps = value if isinstance(value, list) else [value]
            _require(1 <= len(steps) <= _MOST_STEPS, value)
            return tuple(map(_seconds, steps))
        if self.type == "clock":
            return parse_hours(_require(isinstance(value, str), value))
        if self.type == "flag":
            return _require(isinstance(value, bool), value)
        amount = parse_duration(value) if self.type == "duration" and isinstance(value, str) else value
        _require(type(amount) in (int, float) and -_LONGEST <= amount <= _LONGEST, value)
        lowest, highest = self.bounds
        if self.type in ("count", "turns", "size"):
            return _require(isinstance(amount, int) and lowest <= amount <= highest, amount)
        _require(self.type != "duration" or isinstance(value, str), value)
        _require(lowest <= amount <= highest and (amount != 0 or self.least == 0), value)
        return amount * _SECONDS.get(self.type, 1)


def _require(holds: bool, value: Any) -> Any:
    """The value; ValueError if what it needs does not hold."""
    if not holds:
        raise ValueError(value)
    return value


def _seconds(value: Any) -> float:
    """Seconds of a duration above 0, written as text."""
    seconds = parse_duration(value) if isinstance(value, str) else 0
    _require(0 < seconds <= _LONGEST, value)
    return seconds


def _texts(value: Any, grants: bool) -> tuple[Any, ...]:
    """A list of texts without empty ones; as grants, each told apart into its tool and its pattern."""
    _require(all(text.strip("/. ") + text.strip("/ ") for text in _words(value)), value)
    if not grants:
        return tuple(value)
    pairs = [text.partition(": ") for text in value]
    _require(all(tool.strip() and pattern.strip() for tool, _, pattern in pairs), value)
    return tuple((tool.strip(), pattern.strip()) for tool, _, pattern in pairs)


def _words(value: Any) -> tuple[str, ...]:
    _require(isinstance(value, list) and len(value) <= _LONGEST_LIST, value)
    _require(all(isinstance(text, str) and text.strip() and "\0" not in text for text in value), value)
    return tuple(value)


@dataclass
class Values:
    """The settings in force, each with the place that it came from."""

    parsed: dict[str, Any] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)
    #: what the layers below say of it, each with its source, the lowest first
    covered: dict[str, tuple[tuple[Any, str], ...]] = field(default_factory=dict)

    def copy(self) -> Values:
        return Values(dict(self.parsed), dict(self.written), dict(self.source), dict(self.covered))

    def put(self, setting: Setting, value: Any, source: str) -> None:
        self.parsed[setting.key] = setting.parse(value)
        if setting.key in self.source:
            below = (self.written[setting.key], self.source[setting.key])
            self.covered[setting.key] = (*self.covered.get(setting.key, ()), below)
        self.written[setting.key] = value
        self.source[setting.key] = source


@dataclass(frozen=True)
class PolicyFile:
    """One seed's TOML: its settings, its locked numbers, its circuits."""

    kind: str
    settings: Mapping[str, Setting]
    locked: Mapping[str, Any]
    table: Mapping[str, Any]

    def keys_of(self, circuit_id: str) -> list[str]:
        """The settings that one circuit of this file refers to."""
        used = next(table for table in self.table["circuit"] if table["id"] == circuit_id)
        text = repr({**self.table.get("defaults", {}), **used, "cooldown": self._cooldown(used)})
        section = f"{used['name'].rpartition('.')[2]}."
        return [key for key in self.settings if f"'${key}'" in text or key.startswith(section)]

    def _cooldown(self, circuit: Mapping[str, Any]) -> Mapping[str, Any]:
        own = circuit.get("cooldown", {})
        return dict(own) if own.get("schedule") else {**self.table.get("defaults", {}).get("cooldown", {}), **own}

    def defaults(self) -> Values:
        values = Values()
        for setting in self.settings.values():
            values.put(setting, setting.default, "default")
        return values


@functools.cache
def read_policy_file(kind: str) -> PolicyFile:
    text = resources.files("fusewire.config").joinpath(f"policies/{kind}.toml").read_text("utf-8")
    table = tomllib.loads(text)
    return PolicyFile(kind, settings_of(table.get("settings", {})), table.get("locked", {}), table)


def settings_of(table: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings that a table of a policy file describes."""
    settings = {}
    for key, data in table.items():
        least = data.get("least")
        settings[key] = Setting(
            key,
            data["default"],
            data["is"],
            data.get("help", ""),
            parse_duration(least) if isinstance(least, str) else least,
            data.get("most"),
            tuple(data.get("choices", ())),
        )
    return settings


#: What we write to a path of: a project names none outside of itself; only the user's own file, which is named by its
#: absolute path, may.
_INSIDE = frozenset(("incidents",))


def overlay(
    policy: PolicyFile, values: Values, table: Mapping[str, Any], source: str, section: str
) -> Iterator[ConfigError]:
    """Put one layer over `values`; yield a warning for every key that was left as it was."""
    for key, value in _flatten(table, policy.settings):
        shown = f"{section} {key}".strip()
        setting = policy.settings.get(key)
        if setting is None:
            if key in policy.locked:
                allowed = f"it is locked at {policy.locked[key]} and not configurable"
                yield ConfigError(source, shown, value, allowed)
            else:
                of_it = "..." if isinstance(value, Mapping) else value  # it may be a table with a secret in it
                yield unknown(source, shown, of_it, key, [*policy.settings])
            continue
        try:
            if key in _INSIDE and not os.path.isabs(source) and _leads_outside(value):
                raise ValueError(value)
            values.put(setting, value, source)
        except ValueError:
            in_force = f"using {values.written[key]!r} ({values.source[key]})"
            yield ConfigError(source, shown, value, f"{setting.allowed_instead(value)}; {in_force}")


def _leads_outside(value: Any) -> bool:
    path = os.path.normpath(str(value))
    return path.startswith(("/", "~")) or path.split("/")[0] == ".."


def unknown(file: str, shown: str, value: object, key: str, names: Sequence[str]) -> ConfigError:
    """A key that nobody knows, in one short line: with the nearest name, else with all of them if they are few."""
    hint = suggest(key, names)
    allowed = "" if hint else ", ".join(names) if len(names) <= _LISTED else "what `fusewire config show` lists"
    return ConfigError(file, shown, value, allowed, f"no such setting{hint}")


def suggest(key: str, names: Sequence[str]) -> str:
    """A hint at the known name that is closest, whole or behind its last dot; empty if none is close."""
    by_letters = {name.lower(): name for name in reversed(names)}
    close = difflib.get_close_matches(key.lower(), by_letters, n=1)
    if not close:
        by_end = {name.rpartition(".")[2].lower(): name.lower() for name in reversed(names)}
        close = [by_end[one] for one in difflib.get_close_matches(key.rpartition(".")[2].lower(), by_end, n=1)]
    return f" (did you mean {by_letters[close[0]]}?)" if close else ""


def _flatten(table: Mapping[str, Any], known: Iterable[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value; a table in which nothing is known is one."""
    for key, value in table.items():
        inner = f"{prefix}{key}."
        if isinstance(value, Mapping) and any(name.startswith(inner) for name in known):
            yield from _flatten(value, known, inner)
        else:
            yield f"{prefix}{key}", value

"""Merge the tables `[notify.targets.NAME]` of every configuration layer by name.

A URL may be a secret, so no message says more of a value here than is known to be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fusewire.config.settings import SEVERITIES, PolicyFile, Setting, Values, read_policy_file, settings_of, unknown
from fusewire.util.errors import ConfigError
from fusewire.util.globs import matches

#: Where a target is; each has one of them, and only the layer that names the target first may say it.
ADDRESSES = ("url", "url_env", "url_file")

_MOST = 20
_LONGEST_NAME = 40
_LONGEST_ADDRESS = 2000


@cache
def target_settings() -> dict[str, Setting]:
    """What `[notify.targets.NAME]` may say."""
    return settings_of(read_policy_file("notify").table["target"])


@dataclass(frozen=True, slots=True)
class Target:
    """One place to send messages to, and which of them."""

    name: str
    #: the file that says where it is, by which of the `ADDRESSES`, and what it says there
    source: str
    kind: str
    address: str
    circuits: tuple[str, ...]
    severity: str
    enabled: bool

    def wants(self, names: tuple[str, ...], severity: str) -> bool:
        """Whether it is to be told of something that goes under these names."""
        enough = SEVERITIES.index(severity) >= SEVERITIES.index(self.severity)
        return enough and any(matches(name, pattern) for name in names for pattern in self.circuits)


@dataclass
class Targets:
    """What every layer says of targets, by their names."""

    values: dict[str, Values] = field(default_factory=dict)
    #: the files that named them first
    named_in: dict[str, str] = field(default_factory=dict)

    def enabled(self) -> list[Target]:
        return [target for target in self.usable() if target.enabled]

    def usable(self) -> list[Target]:
        """Those that have one address, switched on or not."""
        return [_target(name, values) for name, values in self.values.items() if len(_addresses(values)) == 1]

    def problems(self) -> Iterator[ConfigError]:
        """Once every layer is in: targets that lead nowhere, or to two places."""
        for name, values in self.values.items():
            found = _addresses(values)
            # A project may switch off what only some of its users have.
            if len(found) != 1 and values.parsed.get("enabled", True):
                shown = " and ".join(found) or "no address"
                yield ConfigError(
                    self.named_in[name], f"[notify.targets.{name}]", shown, f"one of {', '.join(ADDRESSES)}"
                )

    def taken(
        self, table: Mapping[str, Any], source: str, policy: PolicyFile
    ) -> tuple[Mapping[str, Any], list[ConfigError]]:
        """One layer's `[notify]`: its targets are taken in; the settings beside them, and what is wrong."""
        problems: list[ConfigError] = []
        settings = {}
        for key, value in table.items():
            if key == "targets":
                problems += self._put_all(value, source)
            elif key in policy.settings:
                settings[key] = value
            else:
                names = (*policy.settings, "targets")
                problems.append(unknown(source, f"[notify] {key}", "...", key, names))
        return settings, problems

    def _put_all(self, tables: Any, source: str) -> Iterator[ConfigError]:
        if not isinstance(tables, Mapping):
            yield ConfigError(source, "[notify] targets", "...", "tables [notify.targets.NAME]")
            return
        for name, table in tables.items():
            if not _is_name(name):
                allowed = f"letters, digits, - and _, up to {_LONGEST_NAME} of them"
                yield ConfigError(source, "[notify.targets]", name[:_LONGEST_NAME], allowed)
            elif not isinstance(table, Mapping):
                allowed = f"a table with {', '.join(target_settings())}"
                yield ConfigError(source, f"[notify.targets.{name}]", "...", allowed)
            elif name not in self.values and len(self.values) >= _MOST:
                yield ConfigError(source, f"[notify.targets.{name}]", "...", f"up to {_MOST} targets")
            else:
                yield from self._put(name, table, source)

    def _put(self, name: str, table: Mapping[str, Any], source: str) -> Iterator[ConfigError]:
        values = self.values.setdefault(name, Values())
        self.named_in.setdefault(name, source)
        owner = next((values.source[key] for key in ADDRESSES if key in values.source), source)
        for key, value in table.items():
            section = f"[notify.targets.{name}] {key}"
            setting = target_settings().get(key)
            if setting is None:
                yield unknown(source, section, "...", key, tuple(target_settings()))
            elif key in ADDRESSES and owner != source:
                # Or a project could have everything that its user is told sent elsewhere.
                yield ConfigError(source, section, "...", f"nothing: where {name} leads is said in {owner}")
            elif key in ADDRESSES and not _is_address(key, value):
                yield ConfigError(source, section, "...", _ALLOWED[key])
            else:
                try:
                    values.put(setting, value, source)
                except ValueError:
                    shown = "..." if key in ADDRESSES or "://" in str(value) else value
                    yield ConfigError(source, section, shown, setting.allowed_instead(value))


_ALLOWED = {
    "url": "desktop: or SCHEME://...",
    "url_env": "the name of an environment variable",
    "url_file": "the path of a file",
}


def is_url(text: str) -> bool:
    scheme, colon, rest = text.partition(":")
    known = scheme.isascii() and scheme.isalnum() and bool(colon) and len(text) <= _LONGEST_ADDRESS
    return known and text.isprintable() and " " not in text and (scheme == "desktop" or rest.startswith("//"))


def _is_address(key: str, value: Any) -> bool:
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _LONGEST_ADDRESS:
        return False
    if key == "url":
        return is_url(value)
    return "://" not in value and (key == "url_file" or value.isidentifier())


def _is_name(name: str) -> bool:
    plain = name.replace("-", "").replace("_", "")
    return plain.isascii() and plain.isalnum() and len(name) <= _LONGEST_NAME


def _addresses(values: Values) -> list[str]:
    return [key for key in ADDRESSES if key in values.parsed]


def _target(name: str, values: Values) -> Target:
    (kind,) = _addresses(values)
    given = {key: setting.parse(setting.default) for key, setting in target_settings().items() if setting.default != ""}
    given |= values.parsed
    return Target(name, values.source[kind], kind, given[kind], given["circuits"], given["severity"], given["enabled"])

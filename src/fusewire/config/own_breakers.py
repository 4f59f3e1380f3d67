"""Compile user-defined breakers, from `[breakers.NAME]` or `Breaker.define`, to a `Policy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusewire.config.settings import PolicyFile, Values, overlay, read_policy_file
from fusewire.core.circuit import Policy
from fusewire.core.meters import Meter
from fusewire.util.errors import ConfigError

KIND = "own"

#: Characters of a name beside ASCII letters and digits; it becomes part of a circuit's id.
_ALSO = "_-."

_LONGEST_NAME = 64

_ALLOWED_NAME = f"a name of up to {_LONGEST_NAME} letters, digits, '_', '-' and '.'"

_CONSECUTIVE = "{level} failure{s} in a row (limit {limit})"
_WINDOW = "{level} failure{s} within {span} (limit {limit})"


def own_file() -> PolicyFile:
    """The settings that a breaker of one's own has."""
    return read_policy_file(KIND)


def check_name(name: object, source: str) -> ConfigError | None:
    """What is wrong with the name of a breaker, if anything is."""
    right = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isascii() and name[0].isalnum()
    if right and all(letter.isalnum() or letter in _ALSO for letter in str(name)):
        return None
    return ConfigError(source, "[breakers]", name, _ALLOWED_NAME)


def put_breakers(own: dict[str, Values], table: object, source: str) -> Iterator[ConfigError]:
    """Put one layer's `[breakers]` over those of the layers below; yield a warning for everything not used."""
    if not isinstance(table, Mapping):
        yield ConfigError(source, "breakers", table, "a table [breakers.NAME] for each breaker")
        return
    for name, words in table.items():
        problem = check_name(name, source)
        if problem is not None:
            yield problem
        elif not isinstance(words, Mapping):
            yield ConfigError(source, f"[breakers] {name}", words, f"a table [breakers.{name}] of settings")
        else:
            values = own.setdefault(name, own_file().defaults())
            yield from overlay(own_file(), values, words, source, f"[breakers.{name}]")


def own_policy(name: str, values: Values) -> Policy:
    """The policy of the circuit `own/NAME`."""
    words = values.parsed
    consecutive = words["within"] is None
    meter = Meter(
        "failures",
        "streak" if consecutive else "window",
        "failure",
        words["failures"],
        span=words["within"] or 0,
        resets_on=("success",) if consecutive else (),
        reason=_CONSECUTIVE if consecutive else _WINDOW,
    )
    by_person = words["reset"] == "person"
    steps: tuple[float, ...] = words["cooldown"]
    return Policy(
        id=f"{KIND}/{name}",
        name=f"{KIND}.{name}",
        kind=KIND,
        meters=(meter,),
        schedule="none" if by_person else "fixed" if len(steps) == 1 else "ladder",
        cooldown=() if by_person else steps,
        lease=words["lease"],
        reset="close" if by_person else "probe",
    )

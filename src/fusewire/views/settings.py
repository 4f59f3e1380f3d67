"""List the settings in force for a circuit, and the source of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.config.rulebook import read_rulebook

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


@dataclass(frozen=True)
class SettingInForce:
    """A setting with its value as it was written."""

    key: str
    value: Any
    source: str


def settings_of(breaker: Breaker, circuit: str) -> list[SettingInForce]:
    """Every setting that the circuit's policy uses."""
    policy = breaker.rules.policy(circuit)
    book = read_rulebook(None if breaker.root is None else Path(breaker.root))
    if policy.kind == "own":
        own = book.own.get(policy.id.partition("/")[2])
        return [] if own is None else [SettingInForce(key, own.written[key], own.source[key]) for key in own.written]
    values = book.values_for(policy.kind, circuit)
    locked = [SettingInForce(key, value, "locked") for key, value in book.files[policy.kind].locked.items()]
    used = book.files[policy.kind].keys_of(policy.id)
    return [SettingInForce(key, values.written[key], values.source[key]) for key in used] + locked

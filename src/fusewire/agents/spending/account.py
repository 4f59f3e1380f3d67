"""Add up the cost of whole transcripts, for people: the hook's ledger, read to the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.agents.spending.ledger import UNREADABLE, read_on
from fusewire.core.money import KINDS
from fusewire.util.errors import FusewireError
from fusewire.util.fast_json import JsonObject

if TYPE_CHECKING:
    from fusewire.core.money import Prices


@dataclass
class Account:
    """Tokens and dollars by model, and the models that have no price."""

    path: str = ""
    usd: float = 0.0
    #: model -> tokens in the order of `KINDS`, then dollars
    models: dict[str, list[Any]] = field(default_factory=dict)
    unknown: dict[str, list[int]] = field(default_factory=dict)
    problem: str = ""

    def to_json(self) -> JsonObject:
        return {
            "path": self.path,
            "usd": round(self.usd, 6),
            "models": {
                name: {**dict(zip(KINDS, row[:6], strict=True)), "usd": round(row[6], 6)}
                for name, row in self.models.items()
            },
            "unknown": {name: dict(zip(KINDS, row, strict=True)) for name, row in self.unknown.items()},
            "problem": self.problem or None,
        }


def account_of(path: str, prices: Prices) -> Account:
    """What a transcript cost, with those of its sub-agents; FusewireError if it cannot be read."""
    memory: JsonObject = {}
    while (after := read_on(memory, path, prices)) is not memory:
        memory = after
    problem = memory.get("problem", "")
    if problem.startswith(UNREADABLE):
        raise FusewireError(f"{path}: {problem}")
    return Account(path, memory.get("usd", 0.0), memory.get("models", {}), memory.get("unknown", {}), problem)


def together(accounts: Iterable[Account]) -> Account:
    """The sum of several."""
    total = Account()
    for one in accounts:
        total.usd += one.usd
        for table, rows in ((total.models, one.models), (total.unknown, one.unknown)):
            for name, row in rows.items():
                before = table.get(name, [0] * len(row))
                table[name] = [old + new for old, new in zip(before, row, strict=True)]
    return total

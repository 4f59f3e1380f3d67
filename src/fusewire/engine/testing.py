"""For the tests of programs that use Fusewire: every breaker opened inside is in memory, on a clock moved by hand.

with fusewire.testing() as clock:
    ...                      # the program under test calls Breaker.open() as always
    clock.advance("24h")
with fusewire.testing(block=False):
    ...                      # nothing is ever refused
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fusewire.core.decision import Decision
from fusewire.core.events import Signal
from fusewire.engine import breaker as breaker_module
from fusewire.engine.breaker import Breaker, default_rules
from fusewire.engine.engine import Engine
from fusewire.stores.memory import MemoryStore
from fusewire.util.durations import parse_duration


class Clock:
    """Time that moves only when it is told to."""

    def __init__(self, start: float = 1_767_225_600.0) -> None:
        self.now = start

    def __call__(self) -> float:
        return self.now

    def advance(self, duration: float | str) -> None:
        self.now += parse_duration(duration) if isinstance(duration, str) else duration


class _NeverBlocks(Engine):
    def apply(self, signals: Iterable[Signal], actor: str = "") -> tuple[list[Decision], set[str]]:
        decisions, written = super().apply(signals, actor)
        return [one if one.allowed else one.replace(verdict="allow") for one in decisions], written


@contextmanager
def testing(*, block: bool = True, clock: Clock | None = None) -> Iterator[Clock]:
    """Within it, all breakers of this process share one fresh store in memory, whatever URL they name."""
    clock = clock or Clock()
    store, rules = MemoryStore(), default_rules()

    def stand_in() -> Breaker:
        breaker = Breaker(store, rules, clock)
        if not block:
            breaker.engine = _NeverBlocks(store, rules, clock)
        return breaker

    before = breaker_module._stand_in
    breaker_module._stand_in = stand_in
    try:
        yield clock
    finally:
        breaker_module._stand_in = before

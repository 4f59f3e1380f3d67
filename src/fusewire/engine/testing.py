"""Test programs that use Fusewire: state in memory, a temporary project, a clock that is moved by hand.

with fusewire.testing() as clock:
    ...                      # the program under test calls Breaker.open(), Loop.open(), Attempts.open() as always
    clock.advance("24h")
with fusewire.testing(block=False):
    ...                      # nothing is ever refused
"""

from __future__ import annotations

import os
import tempfile
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
    """Time that moves only by `advance`; `root` is the temporary project while it is the clock of `testing()`."""

    def __init__(self, start: float = 1_767_225_600.0) -> None:
        self.now = start
        self.root = ""

    def __call__(self) -> float:
        return self.now

    def advance(self, duration: float | str) -> None:
        """Move the time on by seconds, or by a duration such as "1h 30m"."""
        self.now += parse_duration(duration) if isinstance(duration, str) else duration


class _NeverBlocks(Engine):
    def apply(self, signals: Iterable[Signal], actor: str = "") -> tuple[list[Decision], set[str]]:
        decisions, written = super().apply(signals, actor)
        return [one if one.allowed else one.replace(verdict="allow") for one in decisions], written


@contextmanager
def testing(*, block: bool = True, clock: Clock | None = None) -> Iterator[Clock]:
    """Give all breakers of this process one fresh store in memory and one temporary project, whatever they name.

    The same goes for what works on a breaker: `Loop`, `Phases`, `Attempts`, `ScopeLock`. The project is an empty git
    repository at `root` of the clock. With `block=False` nothing is refused.
    """
    clock = clock or Clock()
    store, rules = MemoryStore(), default_rules()
    before, root_before = breaker_module._stand_in, clock.root
    with tempfile.TemporaryDirectory(prefix="fusewire-testing-", ignore_cleanup_errors=True) as folder:
        root = os.path.realpath(folder)
        _make_repository(root)

        def stand_in() -> Breaker:
            breaker = Breaker(store, rules, clock, root)
            if not block:
                breaker.engine = _NeverBlocks(store, rules, clock)
            return breaker

        breaker_module._stand_in, clock.root = stand_in, root
        try:
            yield clock
        finally:
            breaker_module._stand_in, clock.root = before, root_before


def _make_repository(root: str) -> None:
    """Make an empty git repository, without the time that `git init` takes."""
    for name in ("objects", "refs/heads"):
        os.makedirs(os.path.join(root, ".git", name))
    for name, content in (("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\trepositoryformatversion = 0\n")):
        with open(os.path.join(root, ".git", name), "w", encoding="utf-8") as file:
            file.write(content)

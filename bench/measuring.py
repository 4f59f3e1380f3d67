"""What the parts share: a clock that can be moved, samples, their quantiles, and tables of plain text."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: A fake clock goes on by this much for each event: far enough that a constraint's window never fills.
STEP = 10 * 86400.0

ACTION = "git push --force origin main"


class Clock:
    """Time as the benchmark sets it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Contender:
    """One thing to be measured; `prepare` gives the operation for one round, and is not measured itself."""

    name: str
    prepare: Callable[[], Callable[[], object]]
    note: str = ""
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return quantile(self.samples, 0.5)


def interleave(contenders: Sequence[Contender], *, rounds: int, calls: int, warm_up: int = 10) -> None:
    """Every contender in every round, so that a busy machine is busy for all of them.

    In an order that is shuffled anew: whoever follows a like one finds warm caches, and that must not stay the same.
    """
    dice = random.Random(0)
    for _ in range(rounds):
        for contender in dice.sample(contenders, len(contenders)):
            operation = contender.prepare()
            for _ in range(warm_up):
                operation()
            gc.collect()
            for _ in range(calls):
                started = time.perf_counter()
                operation()
                contender.samples.append(time.perf_counter() - started)


def quantile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def milli(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def times(seconds: float, base: float) -> str:
    return f"{seconds / base:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right, as wide as they need."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = []
    for row in (head, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def goal(text: str, reached: bool) -> str:
    return f"  [{'reached' if reached else 'MISSED'}] {text}"

"""What a turn of the real Claude Code costs: without hooks, with all of them processes, and with reports over HTTP.

python e2e/measure.py [TURNS]     after `make test-agents` has installed the client; about a minute

A turn is the time from one request of the client to the next: its model, which answers at once, the hooks, one short
command. The set-ups take turns, so that a busy machine is busy for all; what counts are the ratios.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.bench import Bench, make_project
from harness.calls import shell
from harness.clients import client_of, installed
from harness.script import Reply, Script, do, part
from harness.serving import serving

ROUNDS = 4

#: The first turns warm up what the others find warm.
WARM_UP = 2


@dataclass
class Timed(Script):
    """A script that notes when it was asked."""

    asked: list[float] = field(default_factory=list)

    def answer(self, opening: str, told: str, conversation: str, tools: tuple[str, ...]) -> Reply:
        reply = super().answer(opening, told, conversation, tools)
        self.asked.append(time.perf_counter())
        return reply


@dataclass
class SetUp:
    name: str
    bench: Bench
    turns: list[float] = field(default_factory=list)

    def round(self, number: int) -> None:
        played = Timed(part(*(do(shell(f"echo {turn} > out.txt")) for turn in range(number))))
        run = self.bench.play(played, seconds=120)
        if run.code != 0 or run.count() != number + 1:
            raise RuntimeError(f"{self.name}: {run}")
        times = [after - before for before, after in zip(played.asked, played.asked[1:], strict=False)]
        self.turns += times[WARM_UP:]


def bench_in(folder: Path) -> Bench:
    (folder / "home").mkdir(parents=True, mode=0o700)
    make_project(folder / "project")
    return Bench(client_of("claude", folder / "home", folder / "project"))


@contextmanager
def set_ups(folder: Path) -> Iterator[list[SetUp]]:
    none, processes, http = (bench_in(folder / name) for name in ("none", "processes", "http"))
    processes.install()
    with serving(http) as port:
        http.fusewire("install", "claude", "--http", "--port", str(port))
        yield [SetUp("no hooks", none), SetUp("all processes", processes), SetUp("reports over HTTP", http)]


def main(turns: int) -> int:
    if installed("claude") is None:
        print("claude is not installed; run: make test-agents", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="fusewire-measure-") as folder, set_ups(Path(folder)) as measured:
        for _ in range(ROUNDS):
            for one in measured:
                one.round(turns)
    base = statistics.median(measured[0].turns)
    print(f"one turn of Claude Code, ms ({ROUNDS} rounds of {turns} turns)\n")
    print(f"  {'':<20}{'p50':>8}{'p90':>8}{'beyond no hooks':>18}{'x no hooks':>12}")
    for one in measured:
        middle, high = statistics.median(one.turns), statistics.quantiles(one.turns, n=10)[-1]
        more, times = 1000 * (middle - base), middle / base
        print(f"  {one.name:<20}{1000 * middle:>8.1f}{1000 * high:>8.1f}{more:>18.1f}{times:>12.2f}")
    processes, http = (statistics.median(one.turns) for one in measured[1:])
    print(f"\n  reports over HTTP / all processes: {http / processes:.2f}; of what the hooks cost:", end=" ")
    print(f"{(http - base) / (processes - base):.2f}" if processes > base else "too little to tell")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 12))

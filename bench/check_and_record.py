"""Part 1: one check and one record, at three lengths of history, beside what else there is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable

import others
from fusewire import Breaker
from fusewire.stores import open_store
from measuring import ACTION, STEP, Clock, Contender, goal, interleave, micro, quantile, table, times
from redis_server import RedisServer

HISTORIES = (20_000, 200_000)

_ROUNDS, _CALLS = 12, 250

#: The history is spread over so many constraints that stay closed; each tenth event goes to one that trips.
_CALM = 20

#: Seconds between two events that are not the same one, and yet so near that the circuit is soon open.
_SOON = 301.0

_GOAL = 100e-6
_SAME = 1.15


def report(folder: str, redis: RedisServer) -> str:
    started = time.perf_counter()
    paths = _fill(folder)
    filling = time.perf_counter() - started

    empty = Contender("Fusewire, SQLite, no history", _fresh(folder), "yes")
    filled = [Contender(f"Fusewire, SQLite, {count:,} events", _on(paths[count]), "yes") for count in HISTORIES]
    ours = [empty, *filled]
    opened = Contender("  the same, its circuit open", _on(paths[HISTORIES[-1]], step=_SOON), "yes")
    memory = Contender("Fusewire, memory", _always(_operation("memory:", Clock(), STEP)), "no")
    in_process, shared = _others(redis)
    everything = [*ours, opened, memory, *in_process, *shared]
    interleave(everything, rounds=_ROUNDS, calls=_CALLS)
    _expect(paths[HISTORIES[-1]], STEP, "closed")
    _expect(paths[HISTORIES[-1]], _SOON, "open")

    base = filled[-1].median
    rows = [
        (one.name, one.note, micro(one.median), micro(quantile(one.samples, 0.99)), times(one.median, base))
        for one in everything
    ]
    medians = [one.median for one in ours]
    lines = [
        "1. One check and one record (two transactions), µs",
        "",
        table(("", "shared by processes", "p50", "p99", "x 200,000"), rows),
        "",
        f"  {_ROUNDS} interleaved rounds of {_CALLS} calls. The history was really recorded through the engine, with a",
        f"  fake clock, in {filling:.0f} s; what is left of it on disk: {_rows_in(paths[HISTORIES[-1]])}.",
        '  "No history" is a new database each round, so at most that many events. The other libraries make one call',
        "  through a closed breaker that fails and is counted; none of them has a rolling window or a log.",
    ]
    if redis.port is None:
        lines.append(f"  pybreaker on Redis was not measured: {redis.missing}.")
    lines += [
        "",
        goal(f"at most {_GOAL * 1e6:.0f} µs at the median: {micro(max(medians))}", max(medians) <= _GOAL),
        goal(
            f"flat: 200,000 events cost {times(medians[-1], medians[0])} x no history (up to {_SAME} is the same)",
            medians[-1] <= _SAME * medians[0],
        ),
    ]
    lines += [
        goal(
            f"ahead of {other.name}: it takes {times(other.median, base)} x ours (up to {_SAME} is the same)",
            other.median > _SAME * base,
        )
        for other in shared
    ]
    if shared:
        lines += [
            "  Not a stable lead: with both cores kept busy otherwise, Redis answered up to three times as fast",
            "  and the two were about level. It seems to wait for an idle core to wake up. Compare several runs.",
        ]
    return "\n".join(lines)


def _others(redis: RedisServer) -> tuple[list[Contender], list[Contender]]:
    """Those that keep their state in the process, and those that share it."""
    in_process, shared = [], []
    try:
        in_process.append(Contender("circuitbreaker, memory", _always(others.circuitbreaker_call()), "no"))
        breaker = others.pybreaker_in_memory()
        in_process.append(Contender("pybreaker, memory", _always(others.pybreaker_call(breaker)), "no"))
    except ImportError as error:
        print(f"  ({error.name} is not installed: make bench installs it)")
    if redis.port is not None:
        on_redis = others.pybreaker_call(others.pybreaker_on_redis(redis.port, "latency"))
        shared.append(Contender("pybreaker, Redis", _always(on_redis), "yes"))
    return in_process, shared


def _fill(folder: str) -> dict[int, str]:
    """Databases with so many recorded events; the longer history goes on from the shorter."""
    paths = {}
    here = os.path.join(folder, "filling")
    clock = Clock()
    recorded = 0
    for count in HISTORIES:
        with Breaker.open(f"sqlite:{here}/state.db", clock=clock) as breaker:
            for number in range(recorded, count):
                clock.now += STEP / _CALM
                constraint = "noisy" if number % 10 == 9 else f"calm-{number % _CALM}"
                breaker.record(constraint, ACTION, session=f"session-{number // 100}")
        recorded = count
        there = os.path.join(folder, f"history-{count}")
        shutil.copytree(here, there)
        paths[count] = os.path.join(there, "state.db")
    return paths


def _rows_in(path: str) -> str:
    connection = sqlite3.connect(path)
    (log,) = connection.execute("SELECT count(*) FROM log").fetchone()
    (audit,) = connection.execute("SELECT count(*) FROM audit").fetchone()
    connection.close()
    size = sum(entry.stat().st_size for entry in os.scandir(os.path.dirname(path)))
    return f"{log:,} log rows and {audit:,} moves, {size / 1e6:.1f} MB"


def _operation(url: str, clock: Clock, step: float) -> Callable[[], object]:
    breaker = Breaker.open(url, clock=clock)

    def check_and_record() -> None:
        clock.now += step
        breaker.check("calm-0")
        breaker.record("calm-0", ACTION, session="bench")

    return check_and_record


def _always(operation: Callable[[], object]) -> Callable[[], Callable[[], object]]:
    return lambda: operation


def _fresh(folder: str) -> Callable[[], Callable[[], object]]:
    rounds = iter(range(10**6))
    return lambda: _operation(f"sqlite:{folder}/empty-{next(rounds)}/state.db", Clock(), STEP)


def _on(path: str, step: float = STEP) -> Callable[[], Callable[[], object]]:
    """On a copy of a filled database; with a small step the circuit opens in the warm-up and stays so."""
    copied = _copy_of(path, step)
    shutil.copytree(os.path.dirname(path), copied)
    operation = _operation(f"sqlite:{copied}/state.db", Clock(2e10), step)
    return _always(operation)


def _copy_of(path: str, step: float) -> str:
    return f"{os.path.dirname(path)}-step-{step:.0f}"


def _expect(path: str, step: float, phase: str) -> None:
    """That what was measured is what it is said to be: every record counted, and the circuit in that phase."""
    (row,) = [row for row in open_store(f"sqlite:{_copy_of(path, step)}/state.db").circuits() if row.id == "calm-0"]
    recorded = HISTORIES[-1] // _CALM + _ROUNDS * (_CALLS + 10)
    if row.phase != phase or row.state is None or row.state["total"] != recorded:
        raise RuntimeError(f"{row}, but {recorded} records and {phase} were expected")

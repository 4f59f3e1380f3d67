"""Part 2: many processes that record on one constraint. What counts is that every record is counted."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import others
from fusewire import Breaker, StoreError
from measuring import ACTION, STEP, goal, table
from redis_server import RedisServer

PROCESSES = (1, 8, 32)

#: Records of all processes together.
_RECORDS = 4096

#: fork, so that no process pays for imports while the others write already
_context = multiprocessing.get_context("fork")


def report(folder: str, redis: RedisServer) -> str:
    rows = []
    lost_of_ours = 0
    for count in PROCESSES:
        url = f"sqlite:{folder}/writers-{count}/state.db"
        clock = _context.Value("d", 1_700_000_000.0)
        seconds, refused = _run(count, partial(_fusewire, url, clock))
        with Breaker.open(url) as breaker:
            _, state = breaker.engine.view("shared")
        lost = _RECORDS - refused - state.total
        lost_of_ours += lost + refused
        rows.append(("Fusewire, SQLite", str(count), f"{_RECORDS / seconds:,.0f}", str(lost), str(refused)))
    for count in PROCESSES if redis.port is not None else ():
        name = f"writers-{count}"
        port = redis.port
        assert port is not None
        seconds, refused = _run(count, partial(_pybreaker, port, name))
        counted = others.pybreaker_on_redis(port, name).fail_counter
        lost = _RECORDS - refused - counted
        rows.append(("pybreaker, Redis", str(count), f"{_RECORDS / seconds:,.0f}", str(lost), str(refused)))
    lines = [
        f"2. Processes that record on one circuit, {_RECORDS:,} records in all",
        "",
        table(("", "processes", "records/s", "lost", "refused (locked)"), rows),
        "",
        "  From the first start to the last end. A fake clock that the processes share keeps the circuit closed.",
        "  pybreaker counts with one INCR; Fusewire writes a window, a log and a state in one transaction.",
    ]
    if redis.port is None:
        lines.append(f"  pybreaker on Redis was not measured: {redis.missing}.")
    return "\n".join([*lines, "", goal(f"no update lost or refused: {lost_of_ours}", lost_of_ours == 0)])


def _run(count: int, prepare: Callable[[], Callable[[], object]]) -> tuple[float, int]:
    """Seconds from the first start to the last end, and how many records the store would not take."""
    gate = _context.Barrier(count)
    results = _context.SimpleQueue()
    workers = [_context.Process(target=_work, args=(prepare, gate, results, _RECORDS // count)) for _ in range(count)]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return max(end for _, end, _ in found) - min(start for start, _, _ in found), sum(refused for *_, refused in found)


def _work(prepare: Callable[[], Callable[[], object]], gate: Any, results: Any, records: int) -> None:
    record = prepare()
    refused = 0
    gate.wait()
    started = time.monotonic()
    for _ in range(records):
        try:
            record()
        except StoreError:
            refused += 1
    results.put((started, time.monotonic(), refused))


def _fusewire(url: str, clock: Any) -> Callable[[], object]:
    def later() -> float:
        with clock.get_lock():
            clock.value += STEP
            now: float = clock.value
        return now

    breaker = Breaker.open(url, clock=later)
    return lambda: breaker.record("shared", ACTION)


def _pybreaker(port: int, name: str) -> Callable[[], object]:
    return others.pybreaker_call(others.pybreaker_on_redis(port, name))

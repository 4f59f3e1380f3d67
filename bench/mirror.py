"""Part 4: what the state file that mirrors the database costs a record."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from fusewire import Breaker
from fusewire.config.rules import STATE_FOLDER, load_rules
from fusewire.stores import open_store
from measuring import ACTION, STEP, Clock, Contender, interleave, micro, quantile, table, times

#: Few calls in each round, and each round on a new copy, so that the history stays as long as it is said to be.
_ROUNDS, _CALLS = 9, 5

#: (constraints, violations of each so far)
_PROJECTS = ((1, 5), (10, 5), (10, 500))


def report(folder: str) -> str:
    rows = []
    for constraints, violations in _PROJECTS:
        root = os.path.join(folder, f"mirrored-{constraints}-{violations}")
        clock = Clock()
        _fill(root, clock, constraints, violations)
        pair = [Contender("without", _record(root, clock, False)), Contender("with", _record(root, clock, True))]
        interleave(pair, rounds=_ROUNDS, calls=_CALLS, warm_up=2)
        size = os.path.getsize(os.path.join(root + "-1", "docs", "constraints", ".circuit-state.json"))
        rows.append(
            (
                f"constraints: {constraints}, violations of each: {violations}",
                micro(pair[0].median),
                micro(pair[1].median),
                micro(quantile(pair[1].samples, 0.9)),
                times(pair[1].median, pair[0].median),
                f"{size / 1e3:,.1f}",
            )
        )
    head = ("", "without p50", "with p50", "with p90", "x without", "file, kB")
    lines = ["4. One record without and with the mirrored state file, µs", "", table(head, rows), ""]
    return "\n".join([*lines, "  The file is written whole, under a lock, by rename."])


def _fill(root: str, clock: Clock, constraints: int, violations: int) -> None:
    os.makedirs(os.path.join(root, "docs", "constraints"))
    for number in range(constraints):
        with open(os.path.join(root, "docs", "constraints", f"rule-{number}.md"), "w", encoding="utf-8") as file:
            file.write(f"---\nid: rule-{number}\n---\n# Rule {number}\n")
    with _open(root, clock, mirrored=False) as breaker:
        for number in range(constraints * violations):
            clock.now += STEP
            breaker.record(f"rule-{number % constraints}", ACTION)


def _open(root: str, clock: Clock, *, mirrored: bool) -> Breaker:
    if mirrored:
        return Breaker.open(project=root, clock=clock)
    return Breaker(open_store(f"sqlite:{root}/{STATE_FOLDER}/state.db"), load_rules(root), clock)


def _record(filled: str, clock: Clock, mirrored: bool) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        root = f"{filled}-{int(mirrored)}"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(filled, root)
        breaker = _open(root, clock, mirrored=mirrored)

        def record() -> None:
            clock.now += STEP
            breaker.record("rule-0", ACTION)

        return record

    return prepare

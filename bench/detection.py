"""How well loops are detected: trips, misses and false trips by rule. `make bench`, or by itself:

python bench/detection.py                      the corpus in tests/data/transcripts, held to its labels
fusewire replay FOLDER --pace 2,5,15,30        the last table for transcripts of your own; with --labels by outcome

Thresholds are changed only with these figures.
"""

from __future__ import annotations

import time
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusewire.engine.breaker import default_rules
from fusewire.replay.files import replay
from fusewire.replay.replayed import ACTIONS, STRICT, Manner, Replayed
from fusewire.replay.tables import by_kind, side_by_side

CORPUS = Path(__file__).parents[1] / "tests" / "data" / "transcripts"

#: One call every so many seconds: a model that is quick, and commands that take their time.
_PACES = (2, 5, 15, 30)

#: Limits with a known end: they refuse for a while, and what meets them again after it is no loop.
_LIMITS = {"agents", "agent_spawn", "external_api"}

#: What a long session costs is no judgement of its work.
RULES = default_rules()
RULES.modes = (("tool.spend*", "off"),)


@dataclass(frozen=True)
class Label:
    """What a sensible person says of one transcript; see labels.toml for the fields."""

    name: str
    path: Path
    format: str
    honest: bool
    why: str
    rules: tuple[str, ...] = ()
    begins: int = 1
    told_by: int | None = None
    blocked_by: int | None = None
    timed: bool = False


def labels() -> list[Label]:
    data = tomllib.loads((CORPUS / "labels.toml").read_text("utf-8"))
    return [_label(part, name, fields) for part, all_of_it in data.items() for name, fields in all_of_it.items()]


def _label(part: str, name: str, fields: dict[str, Any]) -> Label:
    ending = "traj" if fields["format"] == "swe-agent" else "jsonl"
    return Label(
        name,
        CORPUS / part / f"{name}.{ending}",
        fields["format"],
        part == "honest",
        fields["why"],
        tuple(fields.get("rules", ())),
        fields.get("begins", 1),
        fields.get("told_by"),
        fields.get("blocked_by"),
        fields.get("timed", False),
    )


@dataclass(frozen=True)
class Verdict:
    """How one transcript of the corpus was judged: `fine`, or what is wrong, for which rule, in words."""

    kind: str
    rule: str
    words: str
    calls: int | None = None


def verdicts(label: Label, one: Replayed) -> list[Verdict]:
    """False trips, and whether the loop was caught in time: told, and blocked where that is wanted."""
    found = [
        Verdict(f"false {trip.action}", trip.rule, f"{ACTIONS[trip.action]} at call {trip.call}: {trip.evidence}")
        for trip in one.trips
        if label.honest or trip.call < label.begins
    ]
    return found if label.honest else [*found, _caught(label, one)]


def _caught(label: Label, one: Replayed) -> Verdict:
    in_loop = Replayed(one.path, trips=[trip for trip in one.trips if trip.call >= label.begins])
    told = in_loop.first(rules=label.rules)
    blocked = in_loop.first(*STRICT, rules=label.rules)
    if told is None:
        others = ", ".join(sorted({trip.rule for trip in in_loop.trips}))
        return Verdict(
            "missed", label.rules[0], f"never told by {' or '.join(label.rules)}; spoke: {others or 'nobody'}"
        )
    calls = told.call - label.begins + 1
    if label.blocked_by is not None and blocked is None:
        return Verdict("missed", label.rules[0], f"told by {told.rule} at call {told.call}, never blocked", calls)
    for trip, limit in ((told, label.told_by), (blocked, label.blocked_by)):
        if trip is not None and limit is not None and trip.call > limit:
            words = f"{ACTIONS[trip.action]} by {trip.rule} at call {trip.call}, at the latest was {limit}"
            return Verdict("late", trip.rule, words, calls)
    return Verdict("caught", told.rule, f"told at call {told.call}", calls)


_KINDS = ("caught", "missed", "late", "false tell", "false block", "false halt")


def report(folder: str = "") -> str:
    """The corpus against its labels."""
    started = time.perf_counter()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    until: dict[str, list[int]] = defaultdict(list)
    wrong: list[str] = []
    known = labels()
    calls = 0
    halts: list[int] = []
    for label in known:
        (one,) = replay(str(label.path), [Manner(RULES)])
        calls += one.calls
        halt = None if label.honest else one.first("halt")
        halts += [halt.call - label.begins + 1] if halt else []
        for rule in {trip.rule for trip in one.trips}:
            counts[rule]["trips"] += 1
        for verdict in verdicts(label, one):
            counts[verdict.rule][verdict.kind] += 1
            if verdict.calls is not None:
                until[verdict.rule].append(verdict.calls)
            if verdict.kind != "caught":
                wrong.append(f"  {verdict.kind}: {label.path.name}: {verdict.rule}: {verdict.words}")
        if one.problem:
            wrong.append(f"  not readable: {label.path.name}: {one.problem}")
    rows = [_row(rule, counts[rule], until[rule]) for rule in sorted(counts)]
    rows.append(_row("all", sum(counts.values(), Counter()), [one for some in until.values() for one in some]))
    honest = sum(label.honest for label in known)
    took = time.perf_counter() - started
    lines = [
        f"10. Detection on the corpus: {honest} honest transcripts, {len(known) - honest} loops, {calls:,} calls, "
        f"{took / max(1, calls) * 1e6:,.0f} µs a call",
        "",
        _table(("rule", "trips", *_KINDS, "calls: median", "max"), rows),
        "",
        f"  {len(halts)} of {len(known) - honest} loops end in a halt, after {_middle(halts)} calls of the loop "
        f"(median), {max(halts, default=0)} (max)",
        *wrong,
    ]
    total = sum(counts.values(), Counter())
    for words, kinds in (
        ("no honest transcript is blocked or halted", ("false block", "false halt")),
        ("every loop is caught in time", ("missed", "late")),
    ):
        lines.append(f"  [{'MISSED' if any(total[kind] for kind in kinds) else 'reached'}] {words}")
    return "\n".join([*lines, "", paces(known)])


def paces(known: list[Label]) -> str:
    """What is stopped at which pace: an obvious loop is one that is to be blocked, and meets no limit with an end."""
    manners = [Manner(RULES, pace, name=f"{pace} s") for pace in _PACES]
    columns: list[list[Replayed]] = [[] for _ in manners]
    for label in (one for one in known if not one.timed):
        is_obvious = label.blocked_by is not None and not _LIMITS.intersection(label.rules)
        for column, one in zip(columns, replay(str(label.path), manners), strict=True):
            one.outcome = "resolved" if label.honest else ""
            one.label = "paging" if label.honest and "paging" in label.name else "loop" if is_obvious else ""
            column.append(one)
    head, *rows = side_by_side(manners, columns)
    goals = []
    kinds = [by_kind(column) for column in columns]
    for words, reached in (
        ("95 % of the obvious loops are refused", all(_share(one, "loop", "refused") >= 0.95 for one in kinds)),
        ("90 % of them are halted", all(_share(one, "loop", "halted") >= 0.9 for one in kinds)),
        (
            "at most 1 % of the resolved runs are halted",
            all(_share(one, "resolved", "halted") <= 0.01 for one in kinds),
        ),
        ("no paging run is halted", not any(_share(one, "paging", "halted") for one in kinds)),
    ):
        goals.append(f"  [{'reached' if reached else 'MISSED'}] {words}, at every pace")
    return "\n".join([_table(("a call every", *head[1:]), rows), "", *goals])


def _share(kinds: dict[str, dict[str, int]], kind: str, what: str) -> float:
    return kinds[kind][what] / kinds[kind]["transcripts"]


def _row(rule: str, counts: Counter[str], until: list[int]) -> tuple[str, ...]:
    found = (str(counts[kind]) for kind in _KINDS)
    return rule, str(counts["trips"]), *found, _middle(until), str(max(until, default="-"))


def _middle(numbers: list[int]) -> str:
    return str(sorted(numbers)[len(numbers) // 2]) if numbers else "-"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    from measuring import table

    return table(head, rows)


if __name__ == "__main__":
    print(report())

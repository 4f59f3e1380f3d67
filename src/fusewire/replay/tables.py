"""Count what replays found: by rule, by outcome and label, and by the manner in which they were replayed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fusewire.replay.replayed import ACTIONS, STRICT

if TYPE_CHECKING:
    from fusewire.replay.replayed import Manner, Replayed

    Rows = list[tuple[str, ...]]
    Counts = dict[str, dict[str, int]]


def by_rule(replays: Iterable[Replayed]) -> Counts:
    """For each rule: in how many transcripts it told, asked, refused and halted, and how often it spoke in all."""
    table: Counts = {}
    for one in replays:
        for trip in one.trips:
            row = table.setdefault(trip.rule, dict.fromkeys((*ACTIONS.values(), "answers"), 0))
            row[ACTIONS[trip.action]] += 1
            row["answers"] += trip.times
    return dict(sorted(table.items()))


def by_kind(replays: Iterable[Replayed]) -> Counts:
    """Of all transcripts, of each outcome and of each label: how many were told, asked, refused, halted."""
    table: Counts = {}
    for one in replays:
        if one.problem and not one.calls:
            continue
        for kind in filter(None, ("all", one.outcome, one.label)):
            row = table.setdefault(kind, dict.fromkeys(("transcripts", *ACTIONS.values()), 0))
            row["transcripts"] += 1
            for action, word in ACTIONS.items():
                wanted = STRICT if action == "block" else (action,)
                row[word] += one.first(*wanted) is not None
    return table


def rules_table(*sets: Counts) -> Rows:
    """Each number is of transcripts, the last one of answers; of several sets where they differ, each one's."""
    names = sorted({name for table in sets for name in table})
    none = dict.fromkeys((*ACTIONS.values(), "answers"), 0)
    rows: Rows = [("rule", *none)] if names else []
    for name in names:
        numbers = zip(*(table.get(name, none).values() for table in sets), strict=True)
        rows.append((name, *(" / ".join(map(str, each if len(set(each)) > 1 else each[:1])) for each in numbers)))
    return rows


def side_by_side(manners: Sequence[Manner], columns: Sequence[Sequence[Replayed]]) -> Rows:
    """A column for each manner: what was said and stopped, what that saved, and how it fits what is known."""
    kinds = [by_kind(column) for column in columns]
    if not kinds[0]:
        return []
    rows: Rows = [("transcripts", *(manner.name or "number" for manner in manners))]
    for kind in kinds[0]:
        known = [table[kind] for table in kinds]
        rows.append((kind, *(str(one["transcripts"]) for one in known)))
        for word in ACTIONS.values():
            if any(one[word] for one in known):
                rows.append((f"  {word}", *(_share(one[word], one["transcripts"]) for one in known)))
    for action in STRICT:
        lived = [sum(any(trip.action == action for trip in one.in_life) for one in some) for some in columns]
        if any(lived):
            rows.append((f"{ACTIONS[action]} in life", *map(str, lived)))
    rows.append(("calls after the halt", *(f"{sum(one.calls_after_halt for one in some):,}" for some in columns)))
    saved = [sum(one.usd_after_halt for one in some) for some in columns]
    if any(one.usd for one in columns[0]):
        rows.append(("dollars after the halt", *(f"${usd:.2f}" for usd in saved)))
    if any(one.is_known for one in columns[0]):
        rows.append(("false stops", *(str(sum(one.is_false_stop for one in some)) for some in columns)))
    return rows


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.0f} %)" if count else "0"

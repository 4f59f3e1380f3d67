"""Group what was spent by day, week, month, window, project, branch, agent, model or session.

From the person's ledger, or straight from transcripts: there a request that was copied to another transcript (a fork, a
resume) counts once, where it is met first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.agents.spending.ledger import Booking, read_on
from fusewire.core.burn import WINDOW, windows
from fusewire.core.money import price_of
from fusewire.scopes.budgets import week_start
from fusewire.scopes.ledger import EXTERNAL, QUARTER, day_start, moment_of, month_start
from fusewire.stores.rows import FAR
from fusewire.util.durations import show_time
from fusewire.views.spend import Spent

if TYPE_CHECKING:
    from fusewire.core.money import Prices
    from fusewire.stores import Store
    from fusewire.views.session_names import SessionNames

#: What a report may be by, and the columns of the ledger that it needs beside time and model.
KINDS_OF_REPORT = ("today", "daily", "weekly", "monthly", "project", "branch", "agent", "model", "session", "blocks")
_OF_TIME = ("today", "daily", "weekly", "monthly", "blocks")

#: Requests of transcripts that are known, so that a copy is not counted again: some 100 MB.
_MOST_KNOWN = 1_000_000

#: time, name (of what the report is by), part of it, model, then dollars, tokens by kind, calls, starts
Row = tuple[Any, ...]


@dataclass
class SpendLine:
    """One line of a report."""

    name: str
    spent: Spent = field(default_factory=Spent)
    models: set[str] = field(default_factory=set)
    #: of a line by time: when it begins and ends
    since: float | None = None
    until: float | None = None
    #: of a session: its name, and its sub-agents
    label: str = ""
    parts: dict[str, Spent] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        times = {"since": show_time(self.since), "until": show_time(self.until)} if self.since is not None else {}
        parts = {"helpers": {name: spent.to_json() for name, spent in self.parts.items()}} if self.parts else {}
        label = {"label": self.label} if self.label else {}
        return {"name": self.name, **label, **times, **self.spent.to_json(), "models": sorted(self.models), **parts}


@dataclass
class SpendReport:
    """Lines, what they add up to, and what has no price."""

    kind: str
    lines: list[SpendLine]
    total: Spent
    unknown: list[str]
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.kind,
            "lines": [line.to_json() for line in self.lines],
            "total": self.total.to_json(),
            "unknown_models": self.unknown,
            "problems": self.problems,
        }


def from_ledger(store: Store, kind: str, since: float, until: float, where: Mapping[str, str]) -> Iterator[Row]:
    """The rows of a report from the person's ledger."""
    name = kind if kind not in (*_OF_TIME, "model") else "agent"
    for at, named, helper, model, *sums in store.spent(("at", name, "helper", "model"), since, until, where):
        yield (at, named, helper, model, *sums)


def label_sessions(shown: SpendReport, names: SessionNames) -> None:
    """Call each session by its name."""
    for line in shown.lines:
        line.label = names.name(line.name)


class TranscriptRows:
    """The rows of a report straight from transcripts, one after the other, in bounded memory."""

    def __init__(self, kind: str, prices: Prices) -> None:
        self.kind, self.prices = kind, prices
        self.problems: list[str] = []
        self._known: set[int] = set()

    def of(self, paths: Iterable[str]) -> Iterator[Row]:
        for path in paths:
            yield from self._of_file(path)

    def _of_file(self, path: str) -> Iterator[Row]:
        found: list[Booking] = []
        memory: dict[str, Any] = {}
        while (after := read_on(memory, path, self.prices, "", found.append)) is not memory:
            memory = after
            yield from self._rows(found, path)
            found.clear()
        if problem := memory.get("problem"):
            self.problems.append(f"{path}: {problem}")

    def _rows(self, found: list[Booking], path: str) -> Iterator[Row]:
        for one in found:
            if one.identity and one.calls:
                mark = hash((one.agent, one.identity))
                if mark in self._known:
                    continue
                if len(self._known) < _MOST_KNOWN:
                    self._known.add(mark)
            at = (moment_of(one.when) or 0.0) // QUARTER * QUARTER
            yield (at, self._name(one, path), one.helper, one.model, one.usd, *one.tokens, one.calls, 0)

    def _name(self, one: Booking, path: str) -> str:
        if self.kind == "session":
            return os.path.splitext(os.path.basename(path))[0]
        if self.kind == "project":
            return os.path.basename(os.path.dirname(path))
        return "" if self.kind == "branch" else one.agent


def report(kind: str, rows: Iterable[Row], prices: Prices, problems: list[str]) -> SpendReport:
    """Add rows up; in order of time, or the dearest first."""
    lines: dict[str, SpendLine] = {}
    total, models = Spent(), set[str]()
    of_time = [] if kind != "blocks" else (rows := list(rows))
    place = _place(kind, [(at, usd, sum(tokens[:5])) for at, _, _, _, usd, *tokens in of_time])
    for at, name, helper, model, *sums in rows:
        total.add(sums)
        if not model and not any(sums[:-1]) and kind in ("today", "model"):
            continue  # a start, which is of no model
        key, since, until = place(at, name, model)
        line = lines.setdefault(key, SpendLine(key, since=since, until=until))
        line.spent.add(sums)
        if model:
            line.models.add(model)
            models.add(model)
        if kind == "session" and helper:
            line.parts.setdefault(helper, Spent()).add(sums)
    unknown = sorted(name for name in models if name != EXTERNAL and " " not in name and not price_of(name, prices))
    by_time = kind in _OF_TIME
    in_order = sorted(lines.values(), key=lambda line: (line.since or 0.0) if by_time else -line.spent.usd)
    return SpendReport(kind, in_order, total, unknown, problems)


def _place(
    kind: str, usage: list[tuple[float, float, int]]
) -> Callable[[float, str, str], tuple[str, float | None, float | None]]:
    """A function that says to which line a row belongs."""
    begins = {"today": day_start, "daily": day_start, "weekly": week_start, "monthly": month_start}
    if kind in begins:
        begin, form = begins[kind], "%Y-%m" if kind == "monthly" else "%Y-%m-%d"

        def by_time(at: float, name: str, model: str) -> tuple[str, float | None, float | None]:
            if kind == "today":
                return model or "(no model)", begin(at), begin(at, 1)
            return time.strftime(form, time.localtime(begin(at))), begin(at), begin(at, 1)

        return by_time
    if kind == "blocks":
        found = windows(usage)

        def by_window(at: float, name: str, model: str) -> tuple[str, float | None, float | None]:
            since = next((one.since for one in reversed(found) if one.since <= at), at)
            return time.strftime("%Y-%m-%d %H:%M", time.localtime(since)), since, since + WINDOW

        return by_window
    return lambda at, name, model: ((model if kind == "model" else name) or "(not known)", None, None)


def stretch_of(kind: str, since: str | None, until: str | None, now: float) -> tuple[float, float]:
    """The time that is asked for: days where the person is, or ISO times; ValueError for anything else."""
    begin = _moment(since, 0) if since else (day_start(now) if kind == "today" else 0.0)
    return begin, _moment(until, 1) if until else FAR


def _moment(text: str, days: int) -> float:
    if len(text) == 10:
        return day_start(time.mktime(time.strptime(text, "%Y-%m-%d")), days)
    from fusewire.util.durations import parse_time

    return parse_time(text)

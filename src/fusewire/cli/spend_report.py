"""Print what was spent: tables, JSON, CSV; today, how fast, and when a budget or window will be used up."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click

from fusewire.cli.common import print_json
from fusewire.cli.streams import hand_over, progress, tell, warn
from fusewire.config.prices import load_prices
from fusewire.replay.files import transcripts as transcripts_below
from fusewire.scopes.user import open_user_store
from fusewire.util.durations import show_time
from fusewire.util.tables import columns
from fusewire.util.text import in_line
from fusewire.util.worktrees import project_key
from fusewire.views.session_names import SessionNames
from fusewire.views.spend import Spent, budget_json, outlook, today, zone_of
from fusewire.views.spend_report import SpendReport, TranscriptRows, from_ledger, label_sessions, report, stretch_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fusewire.engine.breaker import Breaker

#: What stands above the first column, where it is not what the report is by.
_COLUMNS = {"today": "day", "daily": "day", "weekly": "week from", "monthly": "month", "blocks": "window from"}

_HEADINGS = ("input", "output", "cache read", "cache write", "calls", "usd")


def show_report(
    breaker: Breaker,
    kind: str,
    paths: tuple[str, ...],
    since: str | None,
    until: str | None,
    everything: bool,
    as_json: bool,
    as_csv: bool,
) -> int:
    """One table: by what was asked for, from the ledger or from transcripts."""
    now = breaker.engine.clock()
    everything = everything or kind == "blocks"  # a provider counts them together
    try:
        begin, end = stretch_of(kind, since, until, now)
    except ValueError:
        raise click.UsageError("--since and --until take a day, such as 2026-11-19, or an ISO time") from None
    prices = breaker.rules.prices or load_prices()
    if paths:
        found = TranscriptRows(kind, prices)
        rows = (row for row in found.of(_counted(paths)) if begin <= row[0] < end)
        shown = report(kind, rows, prices, found.problems)
        where = "in the transcripts"
    else:
        condition = {} if everything else {"project": project_key(breaker.root or "")}
        store = open_user_store(read_only=True)
        shown = report(kind, from_ledger(store, kind, begin, end, condition), prices, [])
        if kind == "session":
            label_sessions(shown, SessionNames(None, now))
        store.close()
        where = "in all projects" if everything else "in this project with its worktrees"
    if as_json:
        print_json({**shown.to_json(), "at_list_price": True, "plan": breaker.rules.plans or None})
    elif as_csv:
        _csv(shown)
    else:
        _table(shown, where, now, breaker)
    for problem in shown.problems:
        warn(f"not everything could be counted: {problem}")
    return 0


def _counted(paths: tuple[str, ...]) -> Iterator[str]:
    """The transcripts that are meant; on a terminal it is shown how many were read."""
    for number, path in enumerate(transcripts_below(paths), 1):
        if number % 10 == 0:
            progress(f"{number} transcripts")
        yield path
    progress("")


def _table(shown: SpendReport, where: str, now: float, breaker: Breaker) -> None:
    if not shown.lines:
        source = "" if "transcripts" in where else ", as far as the hooks have counted"
        tell(f"Nothing was spent {where}{source}.")
        return
    rows: list[tuple[str, ...]] = [(_COLUMNS.get(shown.kind, shown.kind), *_HEADINGS)]
    for line in shown.lines:
        name = line.label or line.name
        rows.append((name, *_cells(line.spent)))
        rows += [(f"  {name}", *_cells(part)) for name, part in sorted(line.parts.items())]
    rows.append(("total", *_cells(shown.total)))
    tell(*columns(rows, numbers=True))
    tell(f"{_price_note(breaker)}; {where}; days and times in {zone_of(now)}", err=True)
    warn_of_unknown(shown.unknown)


def _price_note(breaker: Breaker) -> str:
    if plans := breaker.rules.plans:
        names = ", ".join(f"{agent}: {name}" if agent else name for agent, name in plans.items())
        return f"With your plan ({names}) you do not pay this: dollars are what it would be at list price"
    return "Dollars at list price"


def _cells(spent: Spent) -> tuple[str, ...]:
    counts = (spent.input, spent.output, spent.cache_read, spent.cache_write, spent.calls)
    usd = f"${spent.usd:,.2f}" if spent.usd or not spent.tokens else "unknown"
    return (*(f"{count:,}" for count in counts), usd)


def _csv(shown: SpendReport) -> None:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = list(shown.total.to_json())
    writer.writerow((shown.kind, *names))
    for line in shown.lines:
        writer.writerow((_plain(line.name), *line.spent.to_json().values()))
    hand_over(file.getvalue(), nl=False)


def _plain(text: str) -> str:
    """A spreadsheet takes what begins with one of these for a formula."""
    text = in_line(text)
    return f"'{text}" if text[:1] in "=+-@" else text


def show_outlook(breaker: Breaker, everything: bool) -> dict[str, Any]:
    """Today, how fast, and when what will be used up: for JSON."""
    now = breaker.engine.clock()
    spent, ahead = today(None if everything else breaker.root, now), outlook(breaker, now)
    return {
        "today": {**spent.project.to_json(), "since": _iso(spent.since), "all_usd": round(spent.everything.usd, 6)},
        "burn": spent.burn.to_json(),
        "budgets": [{**budget_json(use), "used_up_at": _iso(at)} for use, at in ahead.budgets],
        "window": ahead.window_json(),
        "plan": breaker.rules.plans or None,
    }


def tell_outlook(breaker: Breaker, everything: bool) -> bool:
    """The same in words; whether there was anything to say."""
    now = breaker.engine.clock()
    spent, ahead = today(None if everything else breaker.root, now), outlook(breaker, now)
    if spent.problem:
        warn(f"what was spent across projects cannot be read: {spent.problem}")
    if not spent.is_known and not ahead.budgets:
        return False
    where = "in all projects" if everything else "in this project"
    more = "" if everything else f", ${spent.everything.usd:,.2f} in all projects"
    plan = bool(breaker.rules.plans)
    if plan:
        tell(
            f"today   {spent.project.tokens:,} tokens {where}, {spent.everything.tokens:,} in all projects"
            f" (at list price it would be ${spent.everything.usd:,.2f})"
        )
    else:
        tell(f"today   ${spent.project.usd:,.2f} {where}{more}; {spent.project.tokens:,} tokens")
    if spent.burn.tokens:
        rate = f"${spent.burn.usd:,.2f} and " if not plan else ""
        tell(f"rate    {rate}{spent.burn.tokens:,.0f} tokens an hour, as of the last hour")
    tell(*ahead.lines(now))
    return True


def warn_of_unknown(models: Iterable[str]) -> None:
    if names := ", ".join(sorted(models)):
        warn(f"no price is known for {names}: not in the total, and not free")


def _iso(moment: float | None) -> str | None:
    return show_time(moment)

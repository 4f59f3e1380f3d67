"""`fusewire spend` and `fusewire grant`: what sessions cost, and how much more they may."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import require_person
from fusewire.agents.spending.account import Account, account_of, together
from fusewire.breakers.session.grants import add_cost, dollars, grant, grant_api_calls, grant_budget, whole_calls
from fusewire.breakers.session.state import SPEND, ProjectSpend
from fusewire.cli.common import print_json, project_command, show_result
from fusewire.cli.spend_report import show_outlook, show_report, tell_outlook, warn_of_unknown
from fusewire.cli.streams import tell, warn
from fusewire.config.prices import load_prices, source_of_prices
from fusewire.core.events import NAME_LIMIT, plain
from fusewire.util.durations import show_time
from fusewire.util.file_names import path_shown
from fusewire.util.tables import columns
from fusewire.views.session_names import SessionNames
from fusewire.views.spend import budget_json
from fusewire.views.spend_report import KINDS_OF_REPORT

if TYPE_CHECKING:
    from fusewire.core.money import Prices
    from fusewire.engine.breaker import Breaker

#: Sessions that are listed where nothing else is asked for.
_SESSIONS = 10

_HEADINGS = ("model", "input", "output", "cache read", "cache write", "usd")


@click.command("spend")
@click.argument("what", metavar="[BY] [TRANSCRIPT|FOLDER]...", nargs=-1, type=click.Path())
@click.option("--since", metavar="DAY", help="From this day on (YYYY-MM-DD, where you are), or an ISO time.")
@click.option("--until", metavar="DAY", help="Up to the end of this day, or an ISO time.")
@click.option("--all", "everything", is_flag=True, help="All projects, not only this one with its worktrees.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a table as CSV.")
@click.option("--source", metavar="NAME", help="With `add`: what has cost it, such as oracle.")
@click.option("--session", metavar="ID", help="With `add`: for this session (default: the agent's own, else the last).")
@project_command
def spend_command(
    breaker: Breaker,
    what: tuple[str, ...],
    since: str | None,
    until: str | None,
    everything: bool,
    as_csv: bool,
    source: str | None,
    session: str | None,
    as_json: bool,
) -> int:
    """Show what was spent: today, how fast, when a budget will be used up; or a table BY one of these:

    today, daily, weekly, monthly, project, branch, agent, model, session, blocks (five-hour windows).

    All of it at list price, which subscriptions do not pay, and as the hooks have counted it; or, with transcripts or
    folders of them, as these say. Models without a price are named and are not in the total. Set a price in
    fusewire.toml: [prices."model"] with input, output, cache_read, cache_write.

    \b
    fusewire spend daily --all --since 2026-11-01
    fusewire spend model ~/.claude/projects
    fusewire spend session-1.jsonl
    fusewire spend add 0.12 --source oracle

    The last one reports what a call of an external API has cost, where its script does not print it.
    """
    if what[:1] == ("add",):
        if len(what) != 2 or not (source or "").strip():
            raise click.UsageError("say how many dollars, and of what: fusewire spend add 0.12 --source oracle")
        return _add(breaker, what[1], str(source).strip(), session, as_json)
    if source is not None or session is not None:
        raise click.UsageError("--source and --session belong to `fusewire spend add USD`")
    kind = what[0] if what and what[0] in KINDS_OF_REPORT else ""
    transcripts = what[1:] if kind else what
    for path in transcripts:
        if not os.path.lexists(path) and os.sep not in path and "." not in path:
            raise click.UsageError(f"{path!r} is no file and no folder, nor one of: {', '.join(KINDS_OF_REPORT)}, add")
    if as_csv and as_json:
        raise click.UsageError("give only one of --json and --csv")
    of_folders = any(map(os.path.isdir, transcripts))
    if kind or of_folders or as_csv or since or until:
        by = kind or ("model" if transcripts else "daily")
        return show_report(breaker, by, transcripts, since, until, everything, as_json, as_csv)
    if not transcripts:
        return _known(breaker, everything, as_json)
    prices = _prices(breaker)
    accounts = [account_of(path, prices) for path in transcripts]
    if as_json:
        total = together(accounts)
        print_json(
            {
                "usd": round(total.usd, 6),
                "prices_as_of": prices[0] if prices else None,
                "unknown_models": sorted(total.unknown),
                "transcripts": [account.to_json() for account in accounts],
            }
        )
        return 0
    for account in accounts:
        tell(path_shown(account.path))
        _show(account)
    if len(accounts) > 1:
        tell(f"all {len(accounts)}")
        _show(together(accounts))
    if prices:
        tell(f"Prices of {prices[0]} ({source_of_prices()}).", err=True)
    return 0


def _add(breaker: Breaker, amount: str, source: str, session: str | None, as_json: bool) -> int:
    names = SessionNames.of(breaker)
    own = names.resolve(session) if session else os.environ.get("CLAUDE_CODE_SESSION_ID")
    told = add_cost(breaker, dollars(amount, places=4), plain(source, NAME_LIMIT), own)
    if as_json:
        print_json(told)
        return 0
    allowed = told["limit_usd"] + told["granted_usd"]
    usd, all_of_it = f"${told['usd']:.4f}".removesuffix("00"), f"${told['api_usd']:.2f} of ${allowed:.2f}"
    tell(
        f"Added {usd} of {told['source']}: session {names.name(told['session'])} has spent {all_of_it} on external APIs"
    )
    return 0


def _prices(breaker: Breaker) -> Prices:
    """Those of the project, with what its configuration says."""
    prices: Prices = breaker.rules.prices or load_prices()
    return prices


def _show(account: Account) -> None:
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for name, told in sorted(account.models.items(), key=lambda item: -item[1][6]):
        rows.append((name, *_counts(told), f"${told[6]:.4f}"))
    for name, told in sorted(account.unknown.items()):
        rows.append((name, *_counts(told), "unknown"))
    if len(rows) > 1:
        tell(*(f"  {row}" for row in columns(rows, numbers=True)))
    else:
        tell("  no tokens are reported in it")
    more = " and what the unknown models cost" if account.unknown else ""
    tell(f"  total ${account.usd:.2f} at list price{more}")
    warn_of_unknown(account.unknown)
    if account.problem:
        warn(f"not everything could be counted: {account.problem}")


def _counts(row: list[Any]) -> tuple[str, ...]:
    """Input, output, read from and written to the cache."""
    return tuple(f"{count:,}" for count in (row[0], row[1], row[2], row[3] + row[4]))


@dataclass(frozen=True, slots=True)
class SessionSpend:
    """What the hook has counted of one session."""

    session: str
    usd: float
    at: float
    #: models without a price
    unknown: list[str]
    #: of external APIs
    api_usd: float = 0.0

    def to_json(self) -> dict[str, object]:
        usd, at = round(self.usd, 6), show_time(self.at)
        return {"session": self.session, "usd": usd, "api_usd": self.api_usd, "at": at, "unknown": self.unknown}


def _sessions(stored: object) -> list[SessionSpend]:
    """The sessions in the memory of the hook, the latest first; what cannot be read is left out."""
    found = [
        SessionSpend(
            name,
            float(told["usd"]),
            float(told["at"]),
            [one for one in told.get("unknown", ()) if isinstance(one, str)],
            float(told["api_usd"]) if type(told.get("api_usd")) in (int, float) else 0.0,
        )
        for name, told in (stored.items() if isinstance(stored, dict) else ())
        if isinstance(told, dict) and all(type(told.get(key)) in (int, float) for key in ("usd", "at"))
    ]
    return sorted(found, key=lambda session: (-session.at, session.session))


def _known(breaker: Breaker, everything: bool, as_json: bool) -> int:
    memory = ProjectSpend.recalled(breaker.store, SPEND)
    days = {day: usd for day, usd in memory.days.items() if type(usd) in (int, float)}
    total = float(memory.usd)
    sessions = _sessions(memory.sessions)
    unknown = sorted({name for session in sessions for name in session.unknown})
    if as_json:
        told = [session.to_json() for session in sessions]
        found = {"usd": round(total, 6), "days": days, "sessions": told, "unknown_models": unknown}
        print_json({**found, **show_outlook(breaker, everything)})
        return 0
    in_ledger = tell_outlook(breaker, everything)
    if in_ledger and everything:
        return 0
    if not sessions and not days:
        tell("Nothing yet: the hook counts while an agent works. Of a transcript: fusewire spend FILE")
        return 0
    shown, names = sessions[:_SESSIONS] if in_ledger else sessions, SessionNames.of(breaker)
    tell(
        *(
            f"{_day_and_time(one.at)}  ${one.usd:>8.2f}  {names.name(one.session)}"
            f"{f', and ${one.api_usd:.2f} on external APIs' if one.api_usd else ''}"
            for one in shown
        )
    )
    if len(shown) < len(sessions):
        tell(f"and {len(sessions) - len(shown)} more: fusewire spend session", err=True)
    if not in_ledger:  # there, days are those of the person, and say when it was spent
        tell(*(f"{day}            ${days[day]:>8.2f}" for day in sorted(days, reverse=True)))
    tell(f"total ${total:.2f} at list price")
    warn_of_unknown(unknown)
    return 0


def _day_and_time(moment: float) -> str:
    """Where the person is; the zone is said once for all."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


@click.command("grant")
@click.argument("amount", metavar="AMOUNT")
@click.option("--calls", is_flag=True, help="AMOUNT is calls of external APIs, for a session.")
@click.option("--session", metavar="ID", help="For this session (default: the most recent one).")
@click.option("--day", is_flag=True, help="For all sessions of today (UTC).")
@click.option("--project-total", is_flag=True, help="For all sessions of the project.")
@click.option("--budget", metavar="NAME", help="For this budget, as [budgets.NAME] has it.")
@click.option("--tokens", is_flag=True, help="With --budget: AMOUNT is tokens.")
@click.option("--starts", is_flag=True, help="With --budget: AMOUNT is starts of an agent.")
@click.option("--reason", required=True, help="Why; kept in the audit trail.")
@project_command
def grant_command(
    breaker: Breaker,
    amount: str,
    calls: bool,
    budget: str | None,
    tokens: bool,
    starts: bool,
    session: str | None,
    day: bool,
    project_total: bool,
    reason: str,
    as_json: bool,
) -> int:
    """Allow more spend: AMOUNT dollars (or calls) on top of the limit. For a person: refused inside an agent.

    Dollars of a session are for the budget that is nearer to its end: the agent's own tokens, or external APIs.

    \b
    fusewire grant 5 --reason "the migration is worth it"
    fusewire grant 20 --calls --reason "the last batch of questions"
    fusewire grant 10 --budget daily --reason "the release is today"
    """
    actor = require_person("`fusewire grant`", breaker.root)
    names = SessionNames.of(breaker)
    session = names.resolve(session) if session else None
    if budget is not None:
        if day or project_total or sum((calls, tokens, starts)) > 1:
            raise click.UsageError("with --budget give at most one of --calls, --tokens and --starts")
        what = "calls" if calls else "tokens" if tokens else "starts" if starts else "usd"
        return _grant_budget(breaker, budget, amount, what, session, reason, actor, as_json)
    if tokens or starts:
        raise click.UsageError("--tokens and --starts belong to --budget NAME")
    if sum((session is not None or calls, day, project_total)) > 1:
        raise click.UsageError("give only one of --session (or --calls), --day and --project-total")
    if not reason.strip():
        raise click.UsageError("--reason must say why")
    if calls:
        return _grant_calls(breaker, amount, session, reason, actor, as_json)
    whom = "day" if day else "project" if project_total else "session"
    granted = grant(breaker, dollars(amount), whom, session, reason, actor)
    if as_json:
        print_json({**granted, "at": show_time(granted["at"])})
        return 0
    where = {
        "day": f"Today ({granted['key']})",
        "project": "The project",
        "session": f"Session {names.name(granted['key'])}",
    }[whom]
    where += {"external": ", external APIs", "tokens": ", tokens at list price"}.get(granted["budget"], "")
    tell(
        f"{where}: ${granted['allowed_usd']:.2f} allowed now (limit ${granted['limit_usd']:.2f}"
        f" and ${granted['granted_usd']:.2f} granted), ${granted['spent_usd']:.2f} spent so far"
    )
    if not granted["limit_usd"]:
        tell(f"There is no limit for that, so nothing changes: {granted['setting']} is 0.", err=True)
    return 0


def _grant_budget(
    breaker: Breaker, name: str, amount: str, what: str, session: str | None, reason: str, actor: str, as_json: bool
) -> int:
    if not reason.strip():
        raise click.UsageError("--reason must say why")
    number = dollars(amount) if what == "usd" else float(whole_calls(amount, 1e12, what))
    use = grant_budget(breaker, name, number, what, session, reason, actor)
    line = f"Budget {name}: {use.words()}" + ("; it is still used up" if use.is_reached else "")
    return show_result(as_json, budget_json(use), line)


def _grant_calls(breaker: Breaker, amount: str, session: str | None, reason: str, actor: str, as_json: bool) -> int:
    granted = grant_api_calls(breaker, whole_calls(amount), session, reason, actor)
    if as_json:
        print_json({**granted, "at": show_time(granted["at"])})
        return 0
    limit = f"limit {granted['limit_calls']} and {granted['granted_calls']} granted"
    name = SessionNames.of(breaker).name(granted["key"])
    tell(f"Session {name}: {granted['allowed_calls']} calls of external APIs allowed now ({limit})")
    return 0

"""`fusewire log` and `fusewire why`: what agents were refused, asked and told, and one of it in full."""

from __future__ import annotations

import json
import math
import os
import sys
from collections import deque
from typing import TYPE_CHECKING

import click

from fusewire.cli.common import common_options, duration, print_json, project_root, show_result, show_warnings
from fusewire.cli.streams import hand_over, reader_is_gone, silence, tell, warn
from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import DECISIONS
from fusewire.util.durations import parse_time, show_duration
from fusewire.util.errors import FusewireError
from fusewire.util.local_time import local_time
from fusewire.views.decisions import DecisionLine, Decisions
from fusewire.views.models import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fusewire.stores.rows import DecisionRow
    from fusewire.views.decisions import DecisionInFull

#: Decisions that are listed unless somebody asks for more or fewer.
_SHOWN = 20

#: Seconds between two looks.
_POLL = 0.25

#: Characters of a value of a setting on a line.
_VALUE = 60


@click.command("log")
@click.option("--session", metavar="ID", help="Only this session; the beginning of its id is enough.")
@click.option(
    "--rule", metavar="RULE", help="Only this rule, its family, or a pattern: guard, tool.repetition, 'tool.*'."
)
@click.option("--since", metavar="2h", type=duration, help="Only what is not older.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help=f"How many at most (default: {_SHOWN}).")
@click.option("--all", "everything", is_flag=True, help="All that are kept: the newest 2000 of a project.")
@click.option("--follow", is_flag=True, help="Print what comes from now on, too, until Ctrl-C; the newest at the end.")
@common_options
def log_command(
    session: str | None,
    rule: str | None,
    since: float | None,
    limit: int | None,
    everything: bool,
    follow: bool,
    project: str | None,
    as_json: bool,
) -> int:
    """List every answer that was not a plain allow, newest first.

    An agent was told something, a person was asked, a call was refused, a session was halted; `logged` is what a rule
    in log mode, or one that is paused, would have answered. `fusewire why CODE` explains one of them in full.

    \b
    fusewire log --since 2h --rule guard
    fusewire log --follow --json | jq -r .rule
    """
    if everything and limit is not None:
        raise click.UsageError("--all and --limit are two answers to how many: give one of them")
    with Breaker.open(project=project_root(project), read_only=True) as breaker:
        found = Decisions(breaker, session, rule)
        last = breaker.store.last_decision()  # before they are read: what comes in between is followed
        rows = found.rows(since=0.0 if since is None else breaker.engine.clock() - since)
        rows = [pair for pair in rows if pair[0] <= last]
        shown = rows if everything else rows[-(limit or _SHOWN) :]
        if follow:
            _follow(breaker, found, shown, last, as_json)
            return 0
        lines = [found.line(*row) for row in reversed(shown)]
        show_result(as_json, {"decisions": to_json(lines), "more": len(rows) - len(shown)}, *_listed(lines, found))
        if len(rows) > len(shown) and not as_json:
            tell(f"{len(rows) - len(shown)} older: fusewire log --all", err=True)
        show_warnings(breaker)
    return 0


def _listed(lines: list[DecisionLine], found: Decisions) -> list[str]:
    if not lines:
        of_session = f" of {found.names.name(found.session)}" if found.session else ""
        return [f"Nothing was refused, asked, told or logged{of_session} in this project, as far as is asked for."]
    return [text for line in lines for text in _lines(line)]


def _lines(line: DecisionLine) -> Iterator[str]:
    yield f"{local_time(parse_time(line.at), seconds=True)}  {line.code}  {line.kind} {line.rule}: {line.reason}"
    who = f"{line.name or 'no session'}{f', helper {line.helper}' if line.helper else ''}"
    yield f"    {': '.join(filter(None, (who, _call(line))))}"


def _call(line: DecisionLine) -> str:
    """`Bash: rm -rf specs`; a tool that has no command has its name before what it works on already."""
    if line.call.startswith(line.tool):
        return line.call
    return f"{line.tool}: {line.call}" if line.call else line.tool


def _follow(breaker: Breaker, found: Decisions, shown: list[tuple[int, DecisionRow]], last: int, as_json: bool) -> None:
    """Print what is known, oldest first, then each that is new, until the reader is gone.

    Numbers only grow, in the order of the commits. Should the database be lost and made anew, they begin again: then
    codes tell what was printed.
    """
    if sys.stdout is None:
        raise FusewireError("standard output is closed")
    printed: deque[str] = deque(maxlen=2 * DECISIONS)
    problem = ""
    try:
        _print(found, shown, as_json, printed)
        while not reader_is_gone(_POLL):
            try:
                newest = breaker.store.last_decision()
                rows = found.rows(after=last if newest > last else 0) if newest != last else []
                problem = ""
            except FusewireError as error:
                if str(error) != problem:
                    warn(f"{error}; it is tried again and again")
                problem = str(error)
                continue
            _print(found, [pair for pair in rows if pair[1].code not in printed], as_json, printed)
            last = max([newest, *(number for number, _ in rows)])
    except BrokenPipeError:
        silence(1)


def _print(found: Decisions, rows: Iterable[tuple[int, DecisionRow]], as_json: bool, printed: deque[str]) -> None:
    for row in rows:
        printed.append(row[1].code)
        line = found.line(*row)
        if as_json:
            hand_over(json.dumps(to_json(line)))
        else:
            tell(*_lines(line))


# -- one of them in full ----------------------------------------------------------------------------------


@click.command("why")
@click.argument("code", metavar="[CODE]", required=False)
@common_options
def why_command(code: str | None, project: str | None, as_json: bool) -> int:
    """Explain the last refusal, or the decision with this code, in full.

    What was refused, when and in which session; the rule, the fact and the evidence; what would have passed; how a
    person can lift it; the settings behind it, and where each comes from. Inside a session of Claude Code it is the
    last refusal of that session.
    """
    with Breaker.open(project=project_root(project), read_only=True) as breaker:
        found = Decisions(breaker)
        own = os.environ.get("CLAUDE_CODE_SESSION_ID")
        if code is not None:
            pair = found.with_code(code)
        else:
            found.session = own if own in found.names.ids else None
            last = found.last_refusal()
            if last is None:
                where = "session" if found.session else "project"
                return show_result(as_json, None, f"Nothing has been refused in this {where} yet.")
            pair = last
        view = found.in_full(*pair)
        if as_json:
            print_json(to_json(view))
        else:
            tell(*_explained(view, found, breaker.engine.clock()))
        show_warnings(breaker)
    return 0


def _explained(view: DecisionInFull, found: Decisions, now: float) -> Iterator[str]:
    at, head = parse_time(view.at), view.message.partition("\n")[0]
    is_row = view.kind == "halted" and view.reason not in head  # why it was more than a refusal
    yield f"{view.code}: {view.kind} {view.rule}, {local_time(at, seconds=True)} ({show_duration(int(now - at))} ago)"
    rows = [
        ("Session", found.names.facts(view.session).line if view.session else ""),
        ("Helper", view.helper or ""),
        ("Call", _call(view) and f"{_call(view)}{f' (in {view.cwd})' if view.cwd else ''}"),
        ("Why", view.reason),
        ("Why", head if is_row else ""),
        *(("Evidence", one) for one in view.evidence),
        *(("Also", one) for one in view.also),
        *(("What passes", one) for one in view.next),
        ("Again", _again(view)),
        ("Circuit", f"{view.circuit}, now {view.state}" if view.circuit and view.state else view.circuit or ""),
        *(("Lifted by", one) for one in view.by_person),
        ("Mode", f"{view.mode} (by [rules] or a pause)" if view.mode != "enforce" else ""),
        *(("Setting", _setting(view.table, one.key, one.value, one.source)) for one in view.settings),
        ("Read more", view.docs),
    ]
    said = ""
    for label, text in rows:
        if text:
            yield f"  {'' if label == said else label:<12}{text}"
            said = label
    if not view.evidence and not view.next:
        yield "The agent was answered:"
        yield from (f"  {line}" for line in view.message.splitlines())


def _again(view: DecisionInFull) -> str:
    if view.until is None or view.retry_after is None:
        return ""
    when = local_time(parse_time(view.until))
    return f"at {when} (in {show_duration(math.ceil(view.retry_after))})" if view.retry_after else f"since {when}"


def _setting(table: str, key: str, value: object, source: str) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cut = text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
    return f"{f'{table}.' if table else ''}{key} = {cut} ({source})"

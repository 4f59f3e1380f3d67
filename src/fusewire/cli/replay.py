"""`fusewire replay`: run past sessions through the rules."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from fusewire.cli.common import common_options, print_json, project_root, rules_of
from fusewire.cli.streams import tell
from fusewire.config.rules import compile_rules
from fusewire.replay.files import PROFILES, replay_all, transcripts
from fusewire.replay.labels import put_labels, read_labels
from fusewire.replay.replayed import Manner
from fusewire.replay.report import differences, in_words, render
from fusewire.replay.tables import by_kind, by_rule, rules_table, side_by_side
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError
from fusewire.util.files import replace_file
from fusewire.util.tables import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fusewire.replay.replayed import Replayed

#: How many transcripts on which two sets of rules differ are printed; a report has all of them.
_SHOWN = 20

#: From so many transcripts on, a bar on a terminal says how far it has come.
_MANY = 20


def _paces(ctx: click.Context, option: click.Parameter, value: str) -> tuple[float | None, ...]:
    try:
        paces = tuple(float(one) for one in value.split(",")) if value else ()
    except ValueError:
        paces = (0.0,)
    if not all(0.01 <= pace <= 86400 for pace in paces):
        raise click.BadParameter(f"{value!r} is no pace; allowed: seconds from 0.01 to 86400, such as 5 or 2,5,15,30")
    return paces or (None,)


def _report_file(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value and not value.endswith((".md", ".html")):
        raise click.BadParameter(f"{value!r} is no report; allowed: a file that ends with .md or .html")
    return value


@click.command("replay")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="How many processes read in parallel (default: 1).")
@click.option(
    "--pace",
    "paces",
    metavar="SECONDS,...",
    default="",
    callback=_paces,
    help="One call every so many seconds, whatever the times; several of them side by side.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="auto",
    metavar="WHO",
    help="Whether a person was there: attended, unattended, or auto, as each says (default).",
)
@click.option(
    "--compare",
    type=click.Path(exists=True, dir_okay=False),
    help="Other settings in place of fusewire.toml, side by side with the project's.",
)
@click.option("--labels", type=click.Path(exists=True), help="A table (CSV) with file, resolved and label.")
@click.option(
    "--report",
    metavar="FILE",
    callback=_report_file,
    help="Write what was found, with the sessions worth a look first, as Markdown (.md) or HTML (.html).",
)
@common_options
def replay_command(
    paths: tuple[str, ...],
    jobs: int,
    paces: tuple[float | None, ...],
    profile: str,
    compare: str | None,
    labels: str | None,
    report: str | None,
    project: str | None,
    as_json: bool,
) -> int:
    """Run past sessions through the rules, to see what they would have done.

    PATH is a transcript or a folder (searched for *.jsonl, *.traj and *.json) of Claude Code, Codex, Copilot, Gemini,
    opencode or SWE-agent. Prints a line for each, then tables. The rules are the project's: its guard, its
    constraints, its limits. Rules in `log` mode show what they would have done. Nothing is blocked or stored.
    """
    known = read_labels(labels) if labels else {}
    manners = _manners(project_root(project), paces, profile, compare)
    found: list[list[Replayed]] = []
    with _progress(paths, is_quiet=as_json) as step:
        for some in replay_all(paths, jobs, manners):
            put_labels(some, known)
            found.append(some)
            step(some)
    columns_of = [list(column) for column in zip(*found, strict=True)] or [[] for _ in manners]
    if report:
        try:
            replace_file(report, render(manners, columns_of, html=report.endswith(".html")).encode())
        except OSError as error:
            raise FusewireError(f"{report}: the report cannot be written: {error.strerror}") from None
    if as_json:
        every = [_json(column) for column in columns_of]
        named = [{"name": manner.name, **one} for manner, one in zip(manners, every, strict=True)]
        print_json(every[0] if len(every) == 1 else {"manners": named})
    else:
        _show(manners, columns_of)
    return 0 if any(one.calls or not one.problem for one in columns_of[0]) else 1


def _manners(root: str, paces: tuple[float | None, ...], profile: str, compare: str | None) -> list[Manner]:
    """Every pace under every set of rules; one is named where there are several."""
    rules = [("", rules_of(root))]
    if compare:
        other = compile_rules(root, instead=compare)
        wrong = [warning for warning in other.warnings if warning.startswith(f"{compare}: ")]
        if wrong:
            raise FusewireError(wrong[0])
        rules = [("the project's", rules[0][1]), (os.path.basename(compare), other)]
    return [
        Manner(own, pace, profile, ", ".join(filter(None, (name, f"{pace:g} s" if pace and len(paces) > 1 else ""))))
        for pace in paces
        for name, own in rules
    ]


@contextmanager
def _progress(paths: tuple[str, ...], *, is_quiet: bool) -> Iterator[Callable[[list[Replayed]], None]]:
    """What is called with each transcript's replays: it prints a line, or behind a bar on a terminal all at the end."""
    lines: list[str] = []
    total = sum(1 for _ in transcripts(paths)) if sys.stderr.isatty() and not is_quiet else 0
    if total < _MANY:
        yield lambda some: None if is_quiet or len(some) > 1 else tell(in_words(some[0]))
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    bar = Progress(
        *(*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn()),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("Replaying", total=total)

        def step(some: list[Replayed]) -> None:
            bar.advance(task)
            lines.extend([in_words(some[0])] if len(some) == 1 else [])

        yield step
    tell(*lines)


def _show(manners: list[Manner], columns_of: list[list[Replayed]]) -> None:
    replays = columns_of[0]
    unreadable = sum(bool(one.problem) for one in replays)
    calls = sum(one.calls for one in replays)
    if len(manners) == 1:
        tell("")
    tell(f"{counted(len(replays), 'transcript')}, {unreadable} of them not readable, {counted(calls, 'call')}")
    # Each number is of transcripts, the last one of answers.
    rows = rules_table(*map(by_rule, columns_of)) if len(manners) <= 2 else []
    for table in filter(None, (rows, side_by_side(manners, columns_of))):
        tell("", *columns(table, numbers=True))
    differing = differences(manners, columns_of)
    if differing:
        tell("", f"{counted(len(differing), 'transcript')} with another answer:", *differing[:_SHOWN])
        if len(differing) > _SHOWN:
            tell(f"and {len(differing) - _SHOWN} more (all of them: --report FILE)")


def _json(replays: list[Replayed]) -> dict[str, object]:
    return {
        "transcripts": [one.to_json() for one in replays],
        "rules": by_rule(replays),
        "kinds": by_kind(replays),
        "unreadable": sum(bool(one.problem) for one in replays),
    }

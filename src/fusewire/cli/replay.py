"""`fusewire replay`: run past transcripts through the breakers of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fusewire.breakers.session.replay import ACTIONS, PROFILES, Manner, by_rule, replay_all
from fusewire.breakers.session.replay_labels import by_kind, labelled, read_labels
from fusewire.cli.common import common_options, print_json, project_root, rules_of
from fusewire.cli.streams import tell
from fusewire.util.durations import counted
from fusewire.util.tables import columns

if TYPE_CHECKING:
    from fusewire.breakers.session.replay import Replayed


@click.command("replay")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="How many processes read in parallel (default: 1).")
@click.option("--pace", type=click.FloatRange(0.01, 86400), help="One call every so many seconds, whatever the times.")
@click.option(
    "--profile", type=click.Choice(PROFILES), default="auto", help="Whether a person was there (default: as each says)."
)
@click.option("--labels", type=click.Path(exists=True), help="A table (CSV) with file, resolved and label.")
@common_options
def replay_command(
    paths: tuple[str, ...],
    jobs: int,
    pace: float | None,
    profile: str,
    labels: str | None,
    project: str | None,
    as_json: bool,
) -> int:
    """Run past transcripts through the breakers of a session, to see what they would have done.

    PATH is a file or a folder (searched for *.jsonl, *.traj and *.json) of Claude Code, Codex, Copilot, Gemini,
    opencode or SWE-agent. Prints a line for each, then tables. The limits are the project's. Nothing is stored.
    """
    known = read_labels(labels) if labels else {}
    replays = []
    for one in labelled(replay_all(paths, jobs, rules_of(project_root(project)), Manner(pace, profile)), known):
        replays.append(one)
        if not as_json:
            tell(_line(one))
    if as_json:
        print_json(_json(replays))
        return _code(replays)
    unreadable = sum(bool(one.problem) for one in replays)
    calls = sum(one.calls for one in replays)
    tell("", f"{counted(len(replays), 'transcript')}, {unreadable} of them not readable, {counted(calls, 'call')}")
    rows = _rows(by_rule(replays))
    if rows:
        # Each number is of transcripts, the last one of answers.
        tell(*columns([("rule", *ACTIONS.values(), "answers"), *rows], numbers=True))
    kinds = by_kind(replays)
    if kinds:
        tell("", *columns([("transcripts", "number", *list(kinds["all"])[1:]), *_rows(kinds)], numbers=True))
    return _code(replays)


def _rows(table: dict[str, dict[str, int]]) -> list[tuple[str, ...]]:
    return [(name, *map(str, row.values())) for name, row in table.items()]


def _code(replays: list[Replayed]) -> int:
    """1 if there was nothing that could be read."""
    return 0 if any(one.calls or not one.problem for one in replays) else 1


def _line(one: Replayed) -> str:
    if one.problem and not one.calls:
        return f"{one.path}: cannot be read: {one.problem}"
    parts = [f"{one.path}: {counted(one.calls, 'call')}, {counted(one.turns, 'turn')}"]
    parts[0] += f", {'attended' if one.attended else 'unattended'} ({one.attended_by})"
    parts += filter(None, (one.outcome, one.label))
    for trip in one.trips:
        again = f" and {trip.times - 1} more" if trip.times > 1 else ""
        parts.append(f"{ACTIONS[trip.action]} by {trip.rule} at call {trip.call}{again}")
    if not one.trips:
        parts.append("nothing to say")
    if one.calls_after_halt:
        parts.append(f"{counted(one.calls_after_halt, 'call')} after the halt")
    first = one.first()
    line = "; ".join(parts) + (f": {first.evidence}" if first else "")
    return f"{line} (read only so far: {one.problem})" if one.problem else line


def _json(replays: list[Replayed]) -> dict[str, object]:
    return {
        "transcripts": [one.to_json() for one in replays],
        "rules": by_rule(replays),
        "kinds": by_kind(replays),
        "unreadable": sum(bool(one.problem) for one in replays),
    }

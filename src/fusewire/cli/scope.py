"""`fusewire scope`: which files a slice may change, and justifications for changes to others."""

from __future__ import annotations

import os

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.attempt.scope.boundary import BLOCKED
from fusewire.breakers.attempt.scope.lock import ScopeAnswer, ScopeLock
from fusewire.breakers.attempt.scope.patterns import unmatched
from fusewire.breakers.attempt.scope.sources import slice_name
from fusewire.breakers.attempt.scope.state import Justification, Unjustifiable, how_to_justify, justification_lines
from fusewire.breakers.attempt.tracker import Attempts
from fusewire.cli.common import print_json, project_command, show_result, tell_stops
from fusewire.cli.streams import tell, warn
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown

#: Justify commands that are printed at once.
_NAMED = 5

_ALONE = "leave it alone, or ask the user"


@click.group("scope")
def scope_command() -> None:
    """The scope lock: which files a slice may change, and justifications for changes to others."""


@scope_command.command("check")
@click.argument("slice_id", metavar="SLICE")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--staged", is_flag=True, help="Check what is staged for the next commit.")
@click.option("--since-checkpoint", is_flag=True, help="Check what has changed since the attempts began.")
@project_command
def check_command(
    breaker: Breaker, slice_id: str, paths: tuple[str, ...], staged: bool, since_checkpoint: bool, as_json: bool
) -> int:
    """May these paths be changed in SLICE? Exit 0 if all of them may, 3 if one is BLOCKED, or the slice is stopped."""
    if not paths and not staged and not since_checkpoint:
        raise click.UsageError("give a PATH, --staged or --since-checkpoint")
    attempts, lock = Attempts(breaker), ScopeLock(breaker)
    stop = attempts.refusal(slice_name(slice_id))
    if stop is not None:
        reason = f"{slice_id} is stopped: {stop.reason}"
        answers = [ScopeAnswer(path, BLOCKED, "", reason) for path in paths]
    else:
        answers = lock.check(slice_id, paths)
    diff: list[str] = []
    if staged:
        diff += _staged(lock.root)
    if since_checkpoint:
        diff += [os.path.join(lock.root, name) for name in attempts.files_touched(slice_id)]
    answers += lock.check(slice_id, diff, follows=False) if diff or stop is None else []
    answers = list(dict.fromkeys(answers))
    blocked = [answer for answer in answers if not answer.allowed]
    steps = [*stop.next, *stop.by_person] if stop else _next(slice_id, blocked)
    if as_json:
        rule = stop.rule if stop else f"scope.{slice_id}"
        verdict = {"rule": rule, "decision": "BLOCKED" if blocked or stop else "ALLOWED"}
        print_json({"slice": slice_id, **verdict, "paths": [answer.to_json() for answer in answers], "next": steps})
        return 3 if blocked or stop else 0
    for answer in answers:
        _say(answer)
    if stop:
        tell_stops([stop], breaker.engine.clock())
        return 3
    if not answers:
        tell("nothing is staged" if staged and not since_checkpoint else "nothing has changed", err=True)
    tell(*(f"Next: {step}" for step in steps), err=True)
    return 3 if blocked else 0


def _say(answer: ScopeAnswer) -> None:
    if answer.allowed:
        tell(f"{answer.decision.replace('_', ' ')} {path_shown(answer.path)} ({path_shown(answer.source)})")
    else:
        tell(f"BLOCKED {path_shown(answer.path)}: {answer.reason}", fg="red")


def _next(slice_id: str, blocked: list[ScopeAnswer]) -> list[str]:
    """What can be done about blocked paths: justify the change, or ask for a decision."""
    outside = list(dict.fromkeys(answer.opens for answer in blocked if answer.opens))
    steps = [how_to_justify(slice_id, path) for path in outside[:_NAMED]]
    if len(outside) > _NAMED:
        steps.append(f"the same for {len(outside) - _NAMED} more")
    if any(not answer.opens for answer in blocked):
        steps.append(f"{'what no justification opens' if outside else 'no justification opens it'}: {_ALONE}")
    if blocked:
        steps.append(
            f"if no honest justification can be written: fusewire attempt arch-stop {slice_id} --reason '<why>'"
        )
    return steps


def _staged(root: str) -> list[str]:
    """The files that the next commit would add, change or delete, and both ends of a rename."""
    from fusewire.util.git import GitFailure, git
    from fusewire.util.gitdir import top_above

    try:
        top = top_above(os.path.realpath(root)) or root
        names = git(top, "diff", "--cached", "--name-only", "--no-renames", "--ignore-submodules=dirty", "-z")
    except GitFailure as error:
        raise FusewireError(f"the staged files cannot be listed: {error}; allowed: a git repository") from None
    return [os.path.join(top, name) for name in names.decode("utf-8", "surrogateescape").split("\0") if name]


@scope_command.command("justify")
@click.argument("slice_id", metavar="SLICE")
@click.argument("path", metavar="PATH")
@click.option("--test", required=True, help="The exact name of the failing test that needs the change.")
@click.option("--reason", required=True, help="Why this file has to change to make the test pass.")
@click.option("--relationship", required=True, help="How the file relates to the boundary of the slice's contract.")
@project_command
def justify_command(
    breaker: Breaker, slice_id: str, path: str, test: str, reason: str, relationship: str, as_json: bool
) -> int:
    """Record why SLICE has to change a file outside its scope; from then on exactly that file may be changed."""
    lock = ScopeLock(breaker)
    try:
        record = lock.justify(slice_id, path, test=test, reason=reason, relationship=relationship)
    except Unjustifiable as error:
        steps = [f"leave it alone, or: fusewire attempt arch-stop {slice_id} --reason '<why>'"]
        if as_json:
            rule = f"scope.{slice_id}"
            print_json({"slice": slice_id, "rule": rule, "decision": "BLOCKED", "reason": str(error), "next": steps})
        else:
            tell(f"BLOCKED scope.{slice_id}: {error}", f"Next: {steps[0]}", fg="red", err=True)
        return 3
    data = {"slice": slice_id, "rule": f"scope.{slice_id}", "decision": "JUSTIFIED", **_timed(record)}
    return show_result(as_json, data, *justification_lines(record))


@scope_command.command("set")
@click.argument("slice_id", metavar="SLICE")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--clear", is_flag=True, help="Remove the list; contracts and GRAPH.json count again.")
@project_command
def set_command(breaker: Breaker, slice_id: str, patterns: tuple[str, ...], clear: bool, as_json: bool) -> int:
    """Set the `files_in_scope` of SLICE: paths, folders and globs from the project's root. For a person."""
    if clear and patterns:
        raise click.UsageError("--clear takes the whole list back, so give no PATTERN with it")
    if not clear and not patterns:
        raise click.UsageError("give at least one PATTERN, or --clear")
    require_person("`fusewire scope set`", breaker.root)
    lock = ScopeLock(breaker)
    given = lock.set(slice_id, patterns)
    for pattern in unmatched(lock.root, given):
        warn(f"nothing is there now that {path_shown(pattern)} matches")
    now = f"only these are in scope now: {', '.join(map(path_shown, given))}"
    line = f"{slice_id}: {now if given else 'the list is taken back; contracts and GRAPH.json count again'}"
    return show_result(as_json, {"slice": slice_id, "files_in_scope": given}, line)


@scope_command.command("show")
@click.argument("slice_id", metavar="SLICE")
@project_command
def show_command(breaker: Breaker, slice_id: str, as_json: bool) -> int:
    """Show what is in scope of SLICE, where that is defined, and which other changes were justified."""
    lock = ScopeLock(breaker)
    scope = lock.scope(slice_id)
    records = lock.justifications(slice_id)
    sessions = lock.sessions(slice_id)
    if as_json:
        print_json(
            {
                "slice": slice_id,
                "explicit": scope.explicit,
                "scope": [{"pattern": pattern, "source": source} for pattern, source in scope.entries],
                "justifications": [_timed(record) for record in records],
                "under_way": bool(sessions),
                "sessions": [session for session in sessions if session is not None],
            }
        )
        return 0
    tell(f"In scope of {slice_id}")
    for pattern, source in scope.entries:
        tell(f"  {path_shown(pattern)}  ({path_shown(source)})")
    tell("Justified", *([] if records else ["  nothing"]))
    for record in records:
        tell(*(f"  {line}" for line in justification_lines(record)))
    where = "every session" if None in sessions else f"session {', '.join(filter(None, sessions))}"
    idle = f"Not under way: the hook holds nobody to it until: fusewire attempt start {slice_id} TEST"
    tell(f"Under way in {where}" if sessions else idle)
    return 0


def _timed(record: Justification) -> dict[str, object]:
    return {**record, "at": show_time(record["at"])}

"""Commands of the constraint breaker alone: enforce, override, archive, import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.constraint.detect import violated
from fusewire.breakers.constraint.lifecycle import ARCHIVE_FILE
from fusewire.cli.circuits import warn_of
from fusewire.cli.common import archiving_retired, print_json, project_command, show_result
from fusewire.cli.streams import tell, warn
from fusewire.config.rules import STATE_FILE
from fusewire.core.decision import merge
from fusewire.core.events import Event
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import LONGEST_OVERRIDE
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.shell.paths import in_project
from fusewire.util.durations import parse_duration, show_duration
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


@click.command("enforce")
@click.option("--tool", required=True, help="The tool that would be used, such as Bash or Edit.")
@click.option("--command", "command_line", help="The command line that it would run.")
@click.option("--path", "paths", multiple=True, help="A file that it would change, relative to the project.")
@click.option("--session", help="The session that acts.")
@project_command
@archiving_retired
def enforce_command(
    breaker: Breaker,
    tool: str,
    command_line: str | None,
    paths: tuple[str, ...],
    session: str | None,
    as_json: bool,
) -> int:
    """Check an action against the constraints, and record the violation if it breaks one.

    Exit 0: allowed (a violation is counted). Exit 3: blocked, because the circuit of a constraint is open.
    """
    root = breaker.root or os.getcwd()
    event = Event(
        "before_tool",
        tool=tool,
        command=command_line,
        paths=tuple(name for path in paths for name in in_project(path, root, root)),
        session=session,
    )
    commands = simple_commands(command_line) if command_line else []
    names = violated(breaker.rules.matchers(), event, commands)
    decisions = breaker.enforce(names, event) if names else []
    decision = merge(decisions)
    if as_json:
        print_json({**decision.to_json(), "violations": [one.to_json() for one in decisions]})
        return 0 if decision.allowed else 3
    now = breaker.engine.clock()
    for one in decisions:
        if not one.allowed:
            tell(*message_lines(one, now), fg="red")
        else:
            word = "ALLOWED" if decision.allowed else "ALSO VIOLATED"
            tell(f"{word} {one.circuit}: this is a violation; {one.reason}; {one.state}")
            warn_of(breaker, one)
    if not decisions:
        tell("ALLOWED: no constraint forbids it")
    return 0 if decision.allowed else 3


@click.command("override")
@click.argument("circuit", metavar="ID")
@click.option("--reason", help="Why; kept in the audit trail. Required unless --end.")
@click.option("--for", "duration", default="1h", help="How long, up to 24h (default: 1h).")
@click.option("--end", is_flag=True, help="End an override early.")
@project_command
@archiving_retired
def override_command(
    breaker: Breaker, circuit: str, reason: str | None, duration: str, end: bool, as_json: bool
) -> int:
    """Let actions pass an open circuit for a limited time, without closing it: for emergencies, by a person."""
    actor = require_person("`fusewire override`", breaker.root)
    if not end and not (reason and reason.strip()):
        raise click.UsageError("an override needs --reason TEXT")
    try:
        seconds = 0.0 if end else parse_duration(duration)
    except ValueError:
        raise click.UsageError(f"--for {duration!r} is no duration; allowed: 30m, 2h, up to 24h") from None
    if not end and not 0 < seconds <= LONGEST_OVERRIDE:
        raise click.UsageError(f"--for {duration} is refused; allowed: above 0, up to 24h")
    decision = breaker.override(circuit, reason or "ended early", seconds)
    data = {**decision.to_json(), "override_until": breaker.status(circuit).to_json()["override_until"]}
    line = f"overridden for {show_duration(seconds)} by {actor}: {reason}; still {decision.state}"
    return show_result(as_json, data, f"{circuit}: {f'the override is over; {decision.state}' if end else line}")


@click.command("archive")
@click.argument("circuit", metavar="ID")
@project_command
def archive_command(breaker: Breaker, circuit: str, as_json: bool) -> int:
    """Move a constraint's circuit into the archive. For a person; `status: retired` in its file does it, too."""
    from fusewire.breakers.constraint.lifecycle import archive

    actor = require_person("`fusewire archive`", breaker.root)
    if "/" in circuit:
        raise FusewireError(f"only constraints are archived, not {circuit}")
    entry = archive(breaker, circuit, actor=actor)
    if as_json:
        print_json({circuit: entry})
        return 0
    tell(
        f"{circuit}: archived in {ARCHIVE_FILE} ({entry['final_state']}, {entry['total_violations']} violations,"
        f" {entry['total_trips']} trips, {entry['lifetime_days']} days)"
    )
    constraint = breaker.rules.constraints.get(circuit)
    if constraint is not None and not constraint.retired:
        tell(f"{constraint.file} is still active: the next violation starts a new circuit.", err=True)
    return 0


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@project_command
@archiving_retired
def import_command(breaker: Breaker, file: str | None, as_json: bool) -> int:
    """Import circuits from a state file (default: the project's own, after an edit by hand). For a person."""
    from fusewire.breakers.constraint.lifecycle import import_states

    actor = require_person("`fusewire import`", breaker.root)
    path = Path(file) if file else Path(breaker.root or ".") / STATE_FILE
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise FusewireError(f"{path}: it is not UTF-8 text") from None
    taken, problems = import_states(breaker, text, str(file or STATE_FILE), actor=actor)
    warn(*problems)
    if problems and not taken:
        raise FusewireError("nothing was imported")
    lines = [f"{name}: {state}" for name, state in taken.items()] + [f"{len(taken)} circuits imported"]
    data = {"imported": taken, "problems": [str(problem) for problem in problems]}
    return show_result(as_json, data, *lines, code=1 if problems else 0)

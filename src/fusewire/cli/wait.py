"""`fusewire wait`: start a command once the provider's limit has reset, but not in the person's quiet hours."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from fusewire.agents.caller import require_person
from fusewire.agents.provider import agent_of_program, provider_circuit
from fusewire.cli.common import common_options, print_json, project_root, require_not_halted, show_refusal
from fusewire.cli.plain import PlainView
from fusewire.cli.screen import Screen
from fusewire.cli.streams import say, tell
from fusewire.core.decision import Blocked
from fusewire.scopes.providers import Providers
from fusewire.scopes.user import open_user_store
from fusewire.util.durations import show_duration, show_time
from fusewire.util.errors import ConfigError, FusewireError, StoreError
from fusewire.util.local_time import local_time
from fusewire.util.processes import process_identity
from fusewire.util.quiet_hours import end_of_quiet, next_at, parse_clock
from fusewire.util.text import in_line

if TYPE_CHECKING:
    from fusewire.core.decision import Decision

#: Seconds to wait after a limit that does not say when it ends, and after the second at which one ends.
_UNKNOWN = 300.0
_MARGIN = 2.0


@dataclass(frozen=True)
class Start:
    """When the command may start, and what it waits for."""

    at: float
    why: str
    limit: str | None = None
    session: str | None = None
    #: the circuit of the provider that is waited for
    circuit: str = ""


@click.command("wait", context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--until-reset", is_flag=True, help="Wait until the usage limit of this project's last session has reset."
)
@click.option("--at", metavar="HH:MM", help="Wait until this time of day, for clients that record no limit.")
@click.option("--check", is_flag=True, help="Show when the command would start, and start nothing.")
@common_options
def wait_command(
    project: str | None, command: tuple[str, ...], until_reset: bool, at: str | None, check: bool, as_json: bool
) -> int:
    """Wait for a usage limit to reset, with a countdown, then start a command.

    \b
    fusewire wait --until-reset -- claude --continue
    fusewire wait --at 15:00 -- copilot --continue
    fusewire wait --until-reset --check

    The limit and its reset are read from what Claude Code and Codex record of the last session in this project. If it
    ran into none, or the limit has reset, the command starts at once. Nothing starts in the quiet hours, such as
    quiet = "23:00-07:00" in [loop] of the configuration: then it waits until they end. Ctrl-C ends the wait, and
    nothing is started. The command takes the place of this program, with its terminal.

    Exit codes: the command's own; 1 if there is no session to read or no such program; 3 inside an agent, or while a
    person has halted the project (fusewire halt); 130 after Ctrl-C while it waits.
    """
    if until_reset == (at is not None):
        raise click.UsageError("say what to wait for: either --until-reset or --at HH:MM")
    if check == bool(command):
        raise click.UsageError("give a command, fusewire wait [OPTIONS] -- COMMAND..., or --check")
    if as_json and not check:
        raise click.UsageError("--json belongs to --check")
    root = project_root(project)
    if not check:
        require_person("`fusewire wait`", root)
        if shutil.which(command[0]) is None:
            raise FusewireError(f"no such program: {command[0]}")
    if check:
        return _check(_start(root, "", at), as_json)
    try:
        require_not_halted(root)
        while not _may_start(start := _start(root, command[0], at)):
            _wait(start, root)
    except Blocked as halted:
        return show_refusal(False, halted.decision, time.time())
    say(f"Starting: {start.why}.")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise FusewireError(f"{command[0]} cannot be started: {error.strerror}") from error


def _start(root: str, program: str, at: str | None) -> Start:
    """When it may start: after the limit, or at the time of day, and not in the quiet hours."""
    from fusewire.config.rulebook import read_rulebook

    book = read_rulebook(Path(root))
    for warning in book.warnings:
        if isinstance(warning, ConfigError) and warning.key == "[loop] quiet":
            raise warning  # whoever wrote it wants nothing to start at some hours
        say(f"Warning: {warning}")
    start = _reset(root, program) if at is None else _time_of_day(at)
    quiet = book.values["loop"]
    ended = end_of_quiet(quiet.parsed["quiet"], max(start.at, time.time()))
    if ended <= max(start.at, time.time()):
        return start
    return replace(start, at=ended, why=f"{start.why}; quiet hours {quiet.written['quiet']}", circuit="")


def _time_of_day(at: str) -> Start:
    try:
        return Start(next_at(parse_clock(at), time.time()), f"until {at}")
    except ValueError:
        raise click.UsageError(f'--at {at!r} is refused; allowed: a time of day, such as "15:00"') from None


def _reset(root: str, program: str) -> Start:
    """After the limit of the provider, whichever session of the person met it; else after that of the last session."""
    from fusewire.agents.last_session import last_session

    session = last_session(root, program, os.environ)
    circuit = provider_circuit(agent_of_program(program) or (session.agent if session else ""), os.environ)
    now, refused, answered = time.time(), *_of_provider(circuit)
    if refused is not None:
        at = now + (refused.retry_after or 1.0)
        met = Providers().met(open_user_store(read_only=True), circuit)
        return Start(at, f"{refused.rule}: {refused.reason}", met.kind if met else None, circuit=circuit)
    if session is None and answered is not None:
        return Start(now, "the provider's limit is over", circuit=circuit)
    if session is None:
        raise FusewireError("no session of Claude Code or Codex is recorded for this project; name a time: --at 15:00")
    if session.limit is None:
        return Start(now, f"the last {session.agent} session ran into no limit", session=session.path, circuit=circuit)
    until, kind = session.limit.resets_at, session.limit.kind
    if answered is not None and answered > session.at:
        return Start(now, "the provider has answered another session since", kind, session.path, circuit)
    if until is None:
        why = f"the {session.agent} session was limited ({kind}), and nothing says until when"
        return Start(session.at + _UNKNOWN, why, kind, session.path)
    why = f"the {session.agent} limit ({kind}) resets at {local_time(until, now)}"
    return Start(until + _MARGIN, why, kind, session.path)


def _of_provider(circuit: str) -> tuple[Decision | None, float | None]:
    """Why the provider is not to be asked now, and when it has answered since it refused a request for the last time;
    0 if it has not yet, and None if it never refused any."""
    providers = Providers()
    try:
        if not circuit or providers.is_empty:
            return None, None
        decision, (_, state) = providers.look(circuit), providers.engine.view(circuit)
    except (StoreError, OSError) as error:
        say(f"Warning: what other sessions know of the provider cannot be read: {error}")
        return None, None
    refused = None if decision.allowed else decision
    return refused, (state.last_reset or 0.0 if state.phase == "closed" else 0.0) if state.trips else None


def _may_start(start: Start) -> bool:
    """Whether it is time; after a limit, one of all that wait is the probe. The command keeps the number of this
    process, so that the probe is its own until it ends."""
    if start.at > time.time():
        return False
    if not start.circuit:
        return True
    try:
        return Providers().ask(start.circuit, f"{process_identity(os.getpid())} wait").allowed
    except (StoreError, OSError):
        return True


def _check(start: Start, as_json: bool) -> int:
    left = max(0.0, start.at - time.time())
    if as_json:
        data = {"starts_at": show_time(start.at) if left else None, "seconds": round(left, 3)}
        print_json({**data, "reason": start.why, "limit": start.limit, "session": start.session})
    elif left:
        tell(f"It would start at {local_time(start.at, time.time())} (in {show_duration(int(left))}): {start.why}.")
    else:
        tell(f"It would start at once: {start.why}.")
    return 0


def _wait(start: Start, root: str) -> None:
    """Count down, by the wall clock: a machine that slept meanwhile does not wait longer."""
    require_not_halted(root)
    view = PlainView()
    screen = Screen(sys.stderr) if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    try:
        while (left := start.at - time.time()) > 0 and not (start.circuit and _of_provider(start.circuit)[0] is None):
            if screen is not None:
                screen.measure()
                screen.paint([], [Text(in_line(f"waiting {show_duration(int(left) + 1)}: {start.why}"))])
            else:
                view.waits(start.why, left, left)
            time.sleep(min(0.5, left))
            require_not_halted(root)
    except KeyboardInterrupt:
        say("", "Stopped waiting; nothing was started. The same command waits on.")
        raise
    if screen is not None:
        screen.clear()

"""What the commands share: the project, options and their types, warnings, JSON or text."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click

from fusewire.breakers.session.ordered import RULE as HALTED_BY_PERSON
from fusewire.cli.streams import hand_over, tell, warn
from fusewire.config.rules import Rules, find_project, load_rules
from fusewire.core.decision import Blocked, Decision
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import counted, parse_duration
from fusewire.util.errors import FusewireError, NotFound, StoreError
from fusewire.util.files import STATE_FOLDER
from fusewire.util.text import in_line
from fusewire.views.warnings import notices, warnings

Command = Callable[..., Any]

#: In the context of a command that has told the warnings, or what a person has ordered, itself.
_TOLD, _ORDERS_TOLD = "fusewire.warnings_told", "fusewire.orders_told"

#: Warnings of the configuration that one command shows; the doctor shows all.
_MOST_WARNINGS = 10

#: Bytes of a file that a command reads at once.
_LARGEST = 64 << 20

#: In days; further back than anything is kept.
_LONGEST_HISTORY = 36500


def common_options(command: Command) -> Command:
    """`--project` and `--json`, as on every command that prints."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
    return click.option(
        "--project",
        type=click.Path(file_okay=False),
        help="The project's folder (default: the git top level above this folder, else this folder).",
    )(command)


def project_command(command: Command) -> Command:
    """The common options, and the project's breaker as first argument."""
    return common_options(with_breaker(command))


def circuit_command(command: Command) -> Command:
    """The same with `--store`, where circuits are asked and told."""
    store = click.option("--store", metavar="URL", help="Another store than the project's: postgresql://HOST/DATABASE.")
    return store(project_command(command))


def with_breaker(command: Command) -> Command:
    """Open the project's breaker for a command; print a refusal and what is wrong with configuration or state."""

    @functools.wraps(command)
    def wrapped(project: str | None, store: str | None = None, **options: Any) -> Any:
        with _open_breaker(project, store, options.get("circuit") or "") as breaker:
            try:
                return command(breaker, **options)
            except Blocked as blocked:
                return show_refusal(options["as_json"], blocked.decision, breaker.engine.clock())
            except NotFound as error:
                from fusewire.views.settings import hint

                raise NotFound(f"{error}{hint(breaker, options.get('circuit') or '')}") from None
            finally:
                show_warnings(breaker)

    return wrapped


def _open_breaker(project: str | None, store: str | None, circuit: str) -> Breaker:
    """The breaker that a circuit belongs to: the person's for a provider, the project's for all others; or the one on a
    store that was named."""
    from fusewire.scopes.providers import PREFIX, open_providers

    root = project_root(project)
    return open_providers() if store is None and circuit.startswith(PREFIX) else Breaker.open(store, project=root)


class CommandBehindDashes(click.Command):
    """A command that runs another one: `--` must stand before it, so that a person or a guard sees where it begins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        behind = args[args.index("--") + 1 :] if "--" in args else []
        rest = super().parse_args(ctx, args)
        if list(ctx.params["command"]) != behind:
            raise click.UsageError("put the command behind --, after the other arguments and the options", ctx)
        return rest


def archiving_retired(command: Command) -> Command:
    """Archive the circuits of retired constraints first: for commands that change circuits, not for those that look."""

    @functools.wraps(command)
    def wrapped(breaker: Breaker, **options: Any) -> Any:
        from fusewire.breakers.constraint.lifecycle import archive_retired

        try:
            for name in archive_retired(breaker) if breaker.is_own else ():
                tell(f"Archived the circuit of {name}: its constraint is retired.", err=True)
        except (StoreError, OSError) as error:
            warn(f"a retired constraint could not be archived: {error}")
        return command(breaker, **options)

    return wrapped


def given_project(project: str | None) -> str | None:
    """What `--project` says, before or behind the command."""
    return project or (click.get_current_context().find_root().obj or {}).get("project")


def named_project(project: str | None) -> str | None:
    """The folder that `--project` names; None without one."""
    given = given_project(project)
    if given is not None and not os.path.isdir(given):
        raise FusewireError(f"no such folder: {given}")
    return None if given is None else os.path.abspath(given)


def project_root(project: str | None) -> str:
    """The project's folder: the named one, else the one around the current folder."""
    try:
        return named_project(project) or find_project(os.getcwd())
    except FileNotFoundError:
        raise FusewireError("the current folder is gone; name the project with --project") from None


def own_project(project: str | None) -> list[str]:
    """The named project, or the one around the current folder if it has a state: for commands about all projects, which
    know those in which an agent was heard of since there is a register."""
    try:
        root = project_root(project)
    except FusewireError:
        if given_project(project):
            raise
        return []
    return [root] if given_project(project) or os.path.isdir(os.path.join(root, STATE_FOLDER)) else []


def rules_of(root: str) -> Rules:
    """The project's rules; what is wrong with its configuration is shown once by every command."""
    shown = click.get_current_context().meta.setdefault("warned", set())
    rules = load_rules(root)
    warn(*rules.warnings if root not in shown else ())
    shown.add(root)
    return rules


def warnings_told() -> None:
    """Say that the command's own output has the warnings: they are not repeated behind it."""
    click.get_current_context().meta[_TOLD] = True


def orders_told() -> None:
    """The same for what a person has ordered."""
    click.get_current_context().meta[_ORDERS_TOLD] = True


def require_not_halted(root: str) -> None:
    """Blocked, if a person has halted the agents of this project: nothing begins meanwhile."""
    from fusewire.breakers.session.ordered import halt_here

    halted = halt_here(root)
    if halted is not None:
        raise Blocked(halted)


def show_warnings(breaker: Breaker) -> None:
    """What a person has ordered here, and what is wrong; not what the command has told already."""
    from fusewire.views.orders import orders_view

    told = click.get_current_context().meta
    if breaker.root is not None and not told.get(_ORDERS_TOLD):
        tell(*map(in_line, orders_view(breaker.root).lines), err=True, fg="red")
    if told.get(_TOLD):
        return
    known, found, configured = notices(breaker), warnings(breaker), len(breaker.rules.warnings)
    if configured > _MOST_WARNINGS:
        more = f"and {counted(configured - _MOST_WARNINGS, 'more setting')} that cannot be used: fusewire doctor"
        found[_MOST_WARNINGS:configured] = [more]
    hint = " (seen it? fusewire doctor --acknowledge)"
    warn(*(f"{warning}{hint if warning in known else ''}" for warning in found))


def duration(value: str) -> float:
    """The type of an option: a duration as people write it, in seconds."""
    try:
        length = parse_duration(value)
    except ValueError:
        length = 0.0
    if not 0 < length < 1e9:
        raise click.BadParameter(f'{value!r} is no duration; allowed: such as "90s", "15m", "1h 30m"')
    return length


def check_days(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Check how far back `--days` goes."""
    if value is not None and not 0 < value <= _LONGEST_HISTORY:
        raise click.UsageError(f"--days {value} is refused; allowed: above 0, up to {_LONGEST_HISTORY}")
    return value


def read_input(path: str, what: str) -> bytes:
    """A file that the command was given; `-` is standard input."""
    try:
        with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise FusewireError(f"{what} cannot be read: {path}: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise FusewireError(f"{what} cannot be read: {path} is larger than {_LARGEST >> 20} MB")
    return data


def show_result(as_json: bool, data: object, *lines: str, code: int = 0) -> int:
    """Print what a command found, as JSON or in lines for a person; returns the exit code."""
    if as_json:
        print_json(data)
    else:
        tell(*lines)
    return code


def show_refusal(as_json: bool, decision: Decision, now: float) -> int:
    """Print a denial; returns the exit code."""
    if as_json:
        print_json(decision.to_json())
    else:
        tell_stops([decision], now)
    return 3


def tell_stops(decisions: Iterable[Decision], now: float) -> None:
    """Print what stops the work, each with what to do."""
    for decision in decisions:
        if decision.rule == HALTED_BY_PERSON:
            orders_told()
        tell(*message_lines(decision, now), fg="red", err=True)


def print_json(data: object) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # names of files need not be characters
        text = json.dumps(data, indent=2)
    hand_over(text)

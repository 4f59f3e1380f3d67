"""What the commands share: the project, warnings, JSON or text, and who is asking."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from fusewire.cli.streams import hand_over, tell, warn
from fusewire.config.rules import find_project
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import parse_duration
from fusewire.util.errors import FusewireError, StoreError
from fusewire.views.warnings import warnings

Command = Callable[..., Any]

#: Bytes of a file that a command reads at once.
_LARGEST = 64 << 20


def common_options(command: Command) -> Command:
    """`--project` and `--json`, as on every command that prints."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
    return click.option(
        "--project",
        type=click.Path(file_okay=False),
        help="The project's folder (default: the git top level above this folder, else this folder).",
    )(command)


def with_breaker(command: Command) -> Command:
    """Open the project's breaker for a command, and show what is wrong with its configuration or its state."""

    @functools.wraps(command)
    def wrapped(project: str | None, **options: Any) -> Any:
        with Breaker.open(project=project_root(project)) as breaker:
            try:
                return command(breaker, **options)
            finally:
                show_warnings(breaker)

    return wrapped


def archiving_retired(command: Command) -> Command:
    """Archive the circuits of retired constraints first: for commands that change circuits, not for those that look."""

    @functools.wraps(command)
    def wrapped(breaker: Breaker, **options: Any) -> Any:
        from fusewire.breakers.constraint.lifecycle import archive_retired

        try:
            for name in archive_retired(breaker):
                tell(f"Archived the circuit of {name}: its constraint is retired.", err=True)
        except (StoreError, OSError) as error:
            warn(f"a retired constraint could not be archived: {error}")
        return command(breaker, **options)

    return wrapped


def named_project(project: str | None) -> str | None:
    """The folder that `--project` names, before or behind the command; None without one."""
    given = project or (click.get_current_context().find_root().obj or {}).get("project")
    if given is not None and not os.path.isdir(given):
        raise FusewireError(f"no such folder: {given}")
    return None if given is None else os.path.abspath(given)


def project_root(project: str | None) -> str:
    """The project's folder: the named one, else the one around the current folder."""
    try:
        return named_project(project) or find_project(os.getcwd())
    except FileNotFoundError:
        raise FusewireError("the current folder is gone; name the project with --project") from None


def show_warnings(breaker: Breaker) -> None:
    notices = breaker.store.notices()
    for warning in warnings(breaker):
        hint = " (seen it? fusewire doctor --acknowledge)" if warning in notices else ""
        warn(f"{warning}{hint}")


def seconds(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """An option's duration as people write it."""
    if value is None:
        return None
    try:
        length = parse_duration(value)
    except ValueError:
        length = 0.0
    if not 0 < length < 1e9:
        raise click.BadParameter(f'{value!r} is no duration; allowed: such as "90s", "15m", "1h 30m"')
    return length


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


def print_json(data: object) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # names of files need not be characters
        text = json.dumps(data, indent=2)
    hand_over(text)


def title(text: str) -> None:
    """A heading of the demonstrations."""
    tell("", f"== {text}", bold=True)

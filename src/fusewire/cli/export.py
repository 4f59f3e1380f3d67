"""`fusewire export`: the history of a project as JSON lines or CSV, for other programs."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_person
from fusewire.cli.common import check_days, common_options, project_root, show_result, show_warnings
from fusewire.cli.streams import hand_over
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError, NotFound
from fusewire.views.export import FORMATS, KINDS, Wanted, exported
from fusewire.views.session_names import SessionNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: Bytes that are gathered before they are written: a state that cannot be read is found before the first of them.
_BLOCK = 1 << 16


def _kinds(value: str) -> tuple[str, ...]:
    """The type of --what."""
    kinds = tuple(part.strip() for part in value.split(","))
    unknown = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown is not None:
        raise click.BadParameter(f"{unknown!r} is nothing to export; allowed: {', '.join(KINDS)}, with commas between")
    return kinds


@click.command("export")
@click.option("--format", "form", type=click.Choice([*FORMATS]), help="JSON lines (the default) or CSV.")
@click.option(
    "--what", metavar="KINDS", type=_kinds, help="Some of moves,log,doings, with commas between (default: all)."
)
@click.option("--circuit", metavar="ID", help="Only this circuit, or those that match: 'tool/*'. Leaves out doings.")
@click.option("--session", metavar="ID", help="Only this session; the beginning of its id is enough.")
@click.option("--days", type=float, callback=check_days, help="How far back (default: everything that is kept).")
@click.option("--output", metavar="FILE", help="Write to a new file instead. Refused inside an agent.")
@click.option("--force", is_flag=True, help="Let --output replace a file.")
@common_options
def export_command(
    form: str | None,
    what: tuple[str, ...] | None,
    circuit: str | None,
    session: str | None,
    days: float | None,
    output: str | None,
    force: bool,
    project: str | None,
    as_json: bool,
) -> int:
    """Export the history: moves of circuits, the signals they received (log), what agents did in sessions (doings).

    One stream, oldest first. --json means --format jsonl, but with --output it prints a summary as JSON.

    \b
    fusewire export --days 7 | jq -r 'select(.row == "move") | .circuit'
    fusewire export --format csv --what moves --output moves.csv
    """
    if circuit is not None and "doings" in (what or ()):
        raise click.UsageError("doings belong to sessions, not to circuits: leave out either doings or --circuit")
    if as_json and form == "csv" and output is None:
        raise click.UsageError("--json and --format csv are two formats: give one of them")
    if force and output is None:
        raise click.UsageError("--force is for --output, and there is none")
    root = project_root(project)
    if output is not None:  # a redirection does the same, and is seen by the guard
        require_person("`fusewire export --output`", root)
    with Breaker.open(project=root, read_only=True) as breaker:
        session = _resolved(breaker, session)
        since = 0.0 if days is None else breaker.engine.clock() - days * 86400
        rows = exported(breaker, Wanted(what or KINDS, circuit, session, since))
        lines = FORMATS[form or "jsonl"](rows)
        if output is None:
            _write_blocks(lines, lambda block: hand_over(block, nl=False))
        else:
            _say(as_json, output, form or "jsonl", _write_file(lines, output, force))
        show_warnings(breaker)
    return 0


def _resolved(breaker: Breaker, session: str | None) -> str | None:
    """The session whose id begins so; one that only the log or the audit trail knows has to be named in full."""
    try:
        return SessionNames.of(breaker).resolve(session) if session else session
    except NotFound:
        return session


def _write_blocks(lines: Iterable[bytes], write: Callable[[bytes], object]) -> int:
    """Write lines in blocks; returns how many there were."""
    block = bytearray()
    count = 0
    for line in lines:
        block += line
        count += 1
        if len(block) >= _BLOCK:
            write(bytes(block))
            block.clear()
    write(bytes(block))
    return count


def _write_file(lines: Iterator[bytes], path: str, force: bool) -> int:
    """Write a temporary file and rename it, so that the file is never seen half written; returns the lines written."""
    place = os.path.realpath(path)
    temporary = f"{place}.tmp-{os.getpid()}"
    try:
        _require_free(path, place, force)
        with open(temporary, "xb") as file:
            count = _write_blocks(lines, file.write)
        _require_free(path, place, force)
        os.replace(temporary, place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    return count


def _require_free(path: str, place: str, force: bool) -> None:
    try:
        facts = os.lstat(place)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(facts.st_mode):
        raise FusewireError(f"{path} is no regular file; allowed: a new file, or with --force one to replace")
    if not force:
        raise FusewireError(f"{path} is there already; --force replaces it")


def _say(as_json: bool, path: str, form: str, lines: int) -> None:
    rows = lines - 1 if form == "csv" else lines
    show_result(as_json, {"file": path, "format": form, "rows": rows}, f"{counted(rows, 'row')} -> {path}")

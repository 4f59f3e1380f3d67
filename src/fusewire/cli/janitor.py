"""`fusewire janitor` and `fusewire memory`: keep the agents' memory folder small, and show what is in it."""

from __future__ import annotations

import time

import click

from fusewire.breakers.session.start import at_work
from fusewire.cli.common import print_json, project_command, show_result
from fusewire.cli.streams import tell, warn
from fusewire.engine.breaker import Breaker
from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
from fusewire.janitor.report import MemoryFile, space
from fusewire.util.durations import counted
from fusewire.util.file_names import path_shown
from fusewire.util.tables import columns


@click.command("janitor")
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@project_command
def janitor_command(breaker: Breaker, dry_run: bool, as_json: bool) -> int:
    """Rotate telemetry, prune old sessions, shorten ledgers, keep the memory folder within its limit."""
    cleanup = _janitor(breaker).clean(time.time(), dry_run=dry_run)
    report = f"{cleanup.report()}{' (dry run: nothing was changed)' if dry_run else ''}"
    show_result(as_json, cleanup.to_json(), *cleanup.actions, report)
    warn(*cleanup.problems)
    return 1 if cleanup.failures else 0


@click.command("memory")
@project_command
def memory_command(breaker: Breaker, as_json: bool) -> int:
    """Show how full the agents' memory folder is, and with what."""
    usage = _janitor(breaker).usage()
    if as_json:
        print_json(usage.to_json())
        return 0
    if not usage.exists:
        tell(f"Nothing yet: there is no {path_shown(usage.folder)}")
        return 0
    tell("Memory Health:", *(f"  • {line}" for line in usage.lines()))
    if usage.files:
        rows = [(path_shown(file.name), space(file.bytes), _details(file)) for file in usage.files]
        tell("", path_shown(usage.folder), *(f"  {row}" for row in columns(rows)))
    return 0


def _details(file: MemoryFile) -> str:
    if file.lines is None:
        return file.kind
    return f"{file.kind}, {counted(file.lines, 'line')}, {100 * (file.share or 0):.0f}% of its limit"


def _janitor(breaker: Breaker) -> Janitor:
    active = at_work(breaker.store, breaker.engine.clock())
    return Janitor(breaker.root or ".", Limits.from_settings(breaker.rules.tool), active=active)

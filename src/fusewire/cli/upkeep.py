"""Commands around the breaker itself: the hook's entry, and the doctor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fusewire.agents import AGENTS
from fusewire.cli.common import common_options, print_json, warnings, with_breaker
from fusewire.durations import counted
from fusewire.person import require_person
from fusewire.rules import STATE_FOLDER

if TYPE_CHECKING:
    from fusewire.breaker import Breaker


@click.command("hook")
@click.argument("agent", metavar="AGENT", type=click.Choice(AGENTS))
def hook_command(agent: str) -> None:
    """What an agent calls on every tool call: its JSON on standard input, the answer in its protocol.

    For speed, register `python3 -I -S .../fusewire/hook.py AGENT` by absolute path (`fusewire doctor` prints it).
    """
    from fusewire.gate import main

    main([agent])


@click.command("doctor")
@click.option("--acknowledge", is_flag=True, help="I have read the notices; do not show them again. For a person.")
@common_options
@with_breaker
def doctor_command(breaker: Breaker, acknowledge: bool, as_json: bool) -> int:
    """Is everything in order? Configuration, state database, notices, and how to register the hook."""
    if acknowledge:
        actor = require_person("`fusewire doctor --acknowledge`", breaker.root)
        with breaker.store.transact() as transaction:
            count = transaction.acknowledge()
        click.echo(f"{count} notices acknowledged by {actor}", err=True)
    damage = breaker.verify() + _unwritable(breaker.root or ".")
    findings = [*damage, *warnings(breaker)]
    if as_json:
        print_json(
            {
                "healthy": not findings,
                "damage": damage,
                "warnings": warnings(breaker),
                "hook": hook_command_line(),
            }
        )
    else:
        click.echo(f"project        {breaker.root}")
        click.echo(f"constraints    {sum(not c.retired for c in breaker.rules.constraints.values())} active")
        click.echo(f"state          {'; '.join(damage) or 'readable'}")
        click.echo(f"hook (claude)  {hook_command_line()}")
        click.echo(counted(len(findings), "finding") if findings else "all in order")
    return 1 if findings else 0


def _unwritable(root: str) -> list[str]:
    folder = os.path.join(root, STATE_FOLDER)
    place = folder if os.path.lexists(folder) else root
    if os.path.isdir(place) and os.access(place, os.W_OK):
        return []
    return [f"{place} cannot be written: violations cannot be recorded, and the hook denies what is forbidden"]


def hook_command_line() -> str:
    """The hook by absolute path: the fastest way to start it."""
    import shlex
    import sys
    from pathlib import Path

    import fusewire

    hook = Path(fusewire.__file__).with_name("hook.py").resolve()
    return shlex.join([sys.executable, "-I", "-S", str(hook), "claude"])

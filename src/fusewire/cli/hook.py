"""The hook as a command of the program."""

from __future__ import annotations

import click

from fusewire.agents import AGENTS


@click.command("hook")
@click.argument("agent", metavar="AGENT", type=click.Choice(AGENTS))
def hook_command(agent: str) -> None:
    """What an agent calls on every tool call: its JSON on standard input, the answer in its protocol.

    `fusewire install AGENT` registers the same as `python3 -I -S .../fusewire/hook.py AGENT`, which starts faster.
    """
    from fusewire.gate.process import main

    main([agent])

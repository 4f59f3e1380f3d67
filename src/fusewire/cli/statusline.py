"""`fusewire statusline`: one line about the session for the foot of an agent's screen."""

from __future__ import annotations

import os

import click

from fusewire.cli.common import common_options, named_project, print_json
from fusewire.cli.streams import hand_over
from fusewire.util.errors import StoreError


@click.command("statusline")
@click.option("--color", is_flag=True, help="With colours; NO_COLOR forbids them.")
@common_options
def statusline_command(color: bool, project: str | None, as_json: bool) -> int:
    """One line for Claude Code's statusLine: state, what is nearest to its limit, spend, time left.

    It reads the JSON that Claude Code gives to a status line on standard input, and only looks: nothing is written. For
    speed, register `python3 -I -S .../fusewire/hook.py statusline --color` by absolute path.

    \b
    echo '{"session_id": "..."}' | fusewire statusline
    fusewire CLOSED · $0.42 of $5 · tool_failure Bash(pytest) 2/3
    """
    from fusewire.gate.statusline import UNREADABLE, glance, read_payload, status_line

    payload = read_payload()
    try:
        seen = glance(payload, os.environ, named_project(project))
    except Exception as error:
        if as_json:
            raise StoreError(f"the state cannot be read: {error}") from error
        hand_over(UNREADABLE)
        return 0
    if as_json:
        print_json(seen.to_json())
    else:
        hand_over(status_line(seen, color=color and not os.environ.get("NO_COLOR")), color=True)
    return 0

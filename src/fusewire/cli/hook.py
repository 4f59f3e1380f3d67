"""Commands that other programs call: the hook of an agent, its status line, and a hook of your own behind a breaker."""

from __future__ import annotations

import os

import click

from fusewire.agents import AGENTS
from fusewire.cli.common import CommandBehindDashes, common_options, given_project, named_project, print_json
from fusewire.cli.streams import hand_over
from fusewire.util.errors import StoreError


@click.command("hook")
@click.argument("agent", metavar="AGENT", type=click.Choice(AGENTS))
def hook_command(agent: str) -> None:
    """Answer an agent's hook: reads its JSON on standard input, answers in its protocol.

    `fusewire install AGENT` registers the same as `python3 -I -S .../fusewire/hook.py AGENT`, which starts faster.
    """
    from fusewire.gate.process import main

    main([agent])


@click.command("statusline")
@click.option("--color", is_flag=True, help="Use colours, unless NO_COLOR is set.")
@common_options
def statusline_command(color: bool, project: str | None, as_json: bool) -> int:
    """Print one line for Claude Code's statusLine: state, what is nearest to its limit, spend, time left.

    Reads the JSON that Claude Code gives to a status line on standard input; writes nothing. For speed, register
    `python3 -I -S .../fusewire/hook.py statusline --color` by absolute path.

    \b
    echo '{"session_id": "..."}' | fusewire statusline
    fusewire CLOSED · $0.42 of $5 · tool_failure Bash(pytest) 2/3
    """
    from fusewire.gate.statusline import UNREADABLE, glance, read_payload, status_line, to_json

    payload = read_payload()
    try:
        seen = glance(payload, os.environ, named_project(project))
    except Exception as error:
        if as_json:
            raise StoreError(f"the state cannot be read: {error}") from error
        hand_over(UNREADABLE)
        return 0
    if as_json:
        print_json(to_json(seen))
    else:
        hand_over(status_line(seen, color=color and not os.environ.get("NO_COLOR")), color=True)
    return 0


@click.command("wrap", cls=CommandBehindDashes)
@click.argument("name", metavar="NAME")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--session", help="The session (default: the one that standard input or the environment names).")
@common_options
def wrap_command(name: str, command: tuple[str, ...], session: str | None, project: str | None, as_json: bool) -> int:
    """Run a hook of yours behind the hook_recursion breaker; refused (exit 3) if it keeps triggering itself.

    Standard input, output, error and the exit code are the command's own; only a refusal is printed, with --json as
    JSON. Counted are runs inside a run of the same NAME, repeated runs for one event, and runs that do not say what
    they are for; runs for another tool call never are.

    \b
    fusewire wrap format -- ruff format .
    """
    from fusewire.breakers.session.wrap import Wrapped, wrap

    return wrap(Wrapped(name, command, session=session, project=given_project(project)), as_json=as_json)

"""Commands about an agent's session: `wrap` puts a hook behind a breaker, `grant` allows more spend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_person
from fusewire.cli.common import common_options, given_project, print_json, project_command
from fusewire.cli.streams import tell
from fusewire.util.durations import show_time

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


class _BehindDashes(click.Command):
    """A command line that runs another one has to say where that begins: nothing of it is taken for ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args and not {"-h", "--help"} & set(args):
            raise click.UsageError("put -- in front of the command: fusewire wrap NAME -- COMMAND...", ctx)
        return super().parse_args(ctx, args)


@click.command("wrap", cls=_BehindDashes)
@click.argument("name", metavar="NAME")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--session", help="The session (default: the one that standard input or the environment names).")
@common_options
def wrap_command(name: str, command: tuple[str, ...], session: str | None, project: str | None, as_json: bool) -> int:
    """Run a hook of yours behind the hook_recursion breaker; refused (exit 3) if it keeps setting itself off.

    Standard input, output, errors and the exit code are the command's own; only a refusal is printed as JSON, if that
    is asked for. What is counted: runs inside a run of the same NAME, runs for the same event again, and runs that do
    not say what they are for; never runs for another tool call.

    \b
    fusewire wrap format -- ruff format .
    """
    from fusewire.breakers.session.wrap import Wrapped, wrap

    return wrap(Wrapped(name, command, session=session, project=given_project(project)), as_json=as_json)


@click.command("grant")
@click.argument("amount", metavar="AMOUNT")
@click.option("--session", metavar="ID", help="For this session (default: the one heard of last).")
@click.option("--day", is_flag=True, help="For all sessions of today (UTC).")
@click.option("--project-total", is_flag=True, help="For all sessions of the project.")
@click.option("--reason", required=True, help="Why; kept in the audit trail.")
@project_command
def grant_command(
    breaker: Breaker, amount: str, session: str | None, day: bool, project_total: bool, reason: str, as_json: bool
) -> int:
    """Allow more spend: AMOUNT dollars on top of the limit. For a person: refused inside an agent.

    \b
    fusewire grant 5 --reason "the migration is worth it"
    """
    actor = require_person("`fusewire grant`", breaker.root)
    if sum((session is not None, day, project_total)) > 1:
        raise click.UsageError("give only one of --session, --day and --project-total")
    if not reason.strip():
        raise click.UsageError("--reason must say why")
    from fusewire.breakers.session.grants import dollars, grant

    whom = "day" if day else "project" if project_total else "session"
    granted = grant(breaker, dollars(amount), whom, session, reason, actor)
    if as_json:
        print_json({**granted, "at": show_time(granted["at"])})
        return 0
    where = {"day": f"Today ({granted['key']})", "project": "The project", "session": f"Session {granted['key']}"}[whom]
    tell(
        f"{where}: ${granted['allowed_usd']:.2f} allowed now (limit ${granted['limit_usd']:.2f}"
        f" and ${granted['granted_usd']:.2f} granted), ${granted['spent_usd']:.2f} spent so far"
    )
    if not granted["limit_usd"]:
        tell(f"There is no limit for that, so nothing changes: {granted['setting']} is 0.", err=True)
    return 0

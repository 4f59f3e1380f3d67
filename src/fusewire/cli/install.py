"""`fusewire install` and `fusewire uninstall`: the hook into an agent's settings, and out again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents import AGENTS
from fusewire.agents.caller import require_person
from fusewire.agents.claude.shell_wrapper import choose_wrapper
from fusewire.agents.doctor.http_reports import proxy_problem
from fusewire.agents.install.command import hook_line
from fusewire.agents.install.files import settings_of
from fusewire.agents.install.http import Http
from fusewire.agents.install.installer import SettingsChange, install, lacks_cache, prove, uninstall
from fusewire.agents.install.merge import InstallOptions, has_our_status_line
from fusewire.agents.install.registrations import registrations
from fusewire.agents.registry import client_named
from fusewire.cli.common import print_json, project_root
from fusewire.cli.limits import limits_in_force
from fusewire.cli.limits import line as limit_line
from fusewire.cli.streams import tell, tell_text
from fusewire.guard.sandbox.active import PREFIX
from fusewire.guard.uninstalling import own_environment
from fusewire.util.quoting import quoted
from fusewire.util.server_address import PORT

if TYPE_CHECKING:
    from fusewire.agents.install.client import Client, SettingsPlace

_NAMES = f"AGENT is one of: {', '.join(AGENTS)}."


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose a settings file and whether it is written."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--dry-run", is_flag=True, help="Only show what would change; nothing is written."),
        click.option("--local", is_flag=True, help="Your own settings of this project, not shared (Claude Code only)."),
        click.option("--project", "shared", is_flag=True, help="The project's settings, shared with everybody by git."),
        click.option("--user", is_flag=True, help="Your own settings, for all projects (this is the default)."),
    ):
        command = option(command)
    return click.argument("agent", metavar="AGENT", type=click.Choice(AGENTS))(command)


@click.command("install", epilog=_NAMES)
@_options
@click.option(
    "--statusline", is_flag=True, help="Also show Fusewire in the status line, if you have none (Claude Code)."
)
@click.option(
    "--http", "over_http", is_flag=True, help="Send what is only reported to `fusewire serve` (Claude Code, --user)."
)
@click.option("--port", type=click.IntRange(1, 65535), help="The port of that server (default: 3873).")
@click.option(
    "--sandbox/--no-sandbox",
    default=None,
    help="Run shell commands with protected files read-only, in all sessions or in none"
    " (Claude Code, --user; default: in those that nobody attends).",
)
def install_command(
    agent: str,
    user: bool,
    shared: bool,
    local: bool,
    dry_run: bool,
    as_json: bool,
    statusline: bool,
    over_http: bool,
    port: int | None,
    sandbox: bool | None,
) -> int:
    """Register the hook with an agent. For a person.

    Only Fusewire's own entries in the agent's settings file are changed: comments, order and your entries stay. The
    difference is shown, and the previous file is kept beside it (.fusewire-backup). Entries of an earlier installation
    are replaced; a second call changes nothing. Before anything is written, the hook must refuse a forbidden call.
    `fusewire --project DIR install ... --project` names the project; the default is the git top level.
    The last five lines say which limits are in force there, with a person in front of the agent and without.

    With --http, events that are only reported (such as results) start no process: they are sent to `fusewire serve`,
    which must be running and show the project. While it is not, calls are still judged, but their results are not
    seen. Installing without --http goes back to a process for each event.
    """
    client, place, root = _choose_place(agent, user, shared, local)
    if statusline and not client.has_status_line:
        raise click.UsageError("--statusline: only Claude Code has a status line")
    _refuse_http(client, place, over_http, port)
    if sandbox and (not client.wraps_shell or place.scope != "user"):
        raise click.UsageError("--sandbox: the shell wrapper is for Claude Code and your own settings; allowed: --user")
    require_person("`fusewire install`", root)
    line, http = hook_line(client.name), _server(port, dry_run) if over_http else None
    wrapper, ring = choose_wrapper(client, place, settings_of(place.path), sandbox)
    wanted = InstallOptions(client, line, http, statusline, wrapper)
    change = install(wanted, place, dry_run=True)
    if not dry_run:
        if change.changes:
            prove(client, line)
        change = install(wanted, place)
    notes = [_done(client, change, dry_run), *ring, *_shared(root)]
    if place.scope == "project" and change.changes and _is_in_git(root):
        instead = "--local" if client.unshared else "--user"
        notes.append(f"git shares this file, and it names paths of this machine; for yourself: {instead}")
    gate = client.gate_handler(line)
    others = [one for one in registrations(client, root) if one.file != place.path]
    others = [one for one in others if client.adds_calls(gate, one.gate(client))]
    notes += [f"also registered in {one.file} ({one.scope}): every call would be judged twice" for one in others]
    if statusline and change.after and not has_our_status_line(change.after, place.path):
        notes.append("you have a status line already, and it stays")
    notes += [] if http is None else _over_http(client, place, http)
    if not dry_run:
        mine = [one for one in registrations(client, root) if one.file == place.path]
        notes += [f"{what}. Now: {do}" for one in mine for what, do in client.distrust(one, root)]
        notes += client.undecided(root)
        notes += filter(None, [lacks_cache(line)])
        notes.append("see that it works: fusewire doctor --canary")
    reports = None if http is None else {"url": http.url(client.name), "events": list(client.reports)}
    limits = limits_in_force(root, client)
    notes += [] if as_json else map(limit_line, limits)
    more = {
        "limits": limits,
        "hook": line,
        "events": list(client.events),
        "http": reports,
        "shell_wrapper": wrapper or None,
    }
    _show(client, place, change, dry_run, notes, as_json, more)
    return 0


@click.command("uninstall", epilog=_NAMES)
@_options
def uninstall_command(agent: str, user: bool, shared: bool, local: bool, dry_run: bool, as_json: bool) -> int:
    """Remove the hook from an agent's settings: exactly what `install` added. For a person.

    Your own later changes stay. A file or folder that was created for the hook alone is removed, and so is the backup.
    """
    client, place, root = _choose_place(agent, user, shared, local)
    require_person("`fusewire uninstall`", root)
    change = uninstall(client, place, dry_run=dry_run)
    notes = [_undone(client, change, dry_run)]
    if client.wraps_shell and PREFIX in change.diff():
        notes.append("restart running sessions of Claude Code: the shell wrapper that they use is gone")
    notes += [
        f"still registered in {one.file}; to remove it: {client.uninstall_line(one.scope)}"
        for one in registrations(client, root)
        if one.file != place.path
    ]
    _show(client, place, change, dry_run, notes, as_json, {})
    return 0


def _choose_place(agent: str, user: bool, shared: bool, local: bool) -> tuple[Client, SettingsPlace, str]:
    """The agent, its settings file, and the project."""
    client = client_named(agent)
    if user + shared + local > 1:
        raise click.UsageError("--user, --project and --local are three different files; name one")
    if local and client.unshared is None:
        raise click.UsageError(f"--local: {client.title} has no such file; allowed: --user, --project")
    root = project_root(None)
    return client, client.places(root)["local" if local else "project" if shared else "user"], root


def _refuse_http(client: Client, place: SettingsPlace, over_http: bool, port: int | None) -> None:
    if port is not None and not over_http:
        raise click.UsageError("--port: that is the port of the server for --http")
    if over_http and not client.reports:
        raise click.UsageError(f"--http: {client.title} is not known to report over HTTP; allowed: claude")
    if over_http and place.scope != "user":
        raise click.UsageError(f"--http: a token is written, and {place.path} may be shared; allowed: --user")


def _server(port: int | None, dry_run: bool) -> Http:
    """Where `fusewire serve` listens, with the token that it asks agents for."""
    from fusewire.server.access import kept_token, token_file

    made = not dry_run or os.path.exists(token_file("hooks"))
    return Http(port or PORT, kept_token("hooks") if made else "made-when-it-is-written")


def _over_http(client: Client, place: SettingsPlace, http: Http) -> list[str]:
    """What a person must know about reports over HTTP."""
    notes = [f"what {client.title} reports is seen only while `fusewire serve{http.option}` runs and shows the project"]
    astray = proxy_problem(client)
    if astray is not None:
        notes.append(". Now: ".join(astray))
    try:
        if os.stat(place.path).st_mode & 0o077:
            notes.append(f"others can read {place.path}, and the token in it: chmod 600 {quoted(place.path)}")
    except OSError:
        pass  # it is not there yet
    return notes


def _shared(root: str) -> list[str]:
    """Warn where Fusewire is installed in the project's own environment, which `uv sync` may rebuild without it."""
    own = os.path.realpath(own_environment() or sys.prefix)
    active = [os.path.realpath(os.environ.get(name) or "/") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    if sys.prefix == sys.base_prefix or not (own.startswith(f"{os.path.realpath(root)}/") or own in active):
        return []
    return [
        f"Fusewire runs from {own}, where `uv sync` and the like remove it; install it apart: uv tool install fusewire"
    ]


def _is_in_git(root: str) -> bool:
    return any((folder / ".git").exists() for folder in (Path(root), *Path(root).parents))


def _done(client: Client, change: SettingsChange, dry_run: bool) -> str:
    if not change.changes:
        return f"{client.title}: already installed in {change.path}; nothing was changed"
    if dry_run:
        return f"{client.title}: {change.path} would be changed so (dry run: nothing was written)"
    kept = f"; as it was: {change.backup}" if change.backup else ""
    return f"{client.title}: installed in {change.path}{kept}"


def _undone(client: Client, change: SettingsChange, dry_run: bool) -> str:
    if not change.changes:
        return f"{client.title}: nothing of Fusewire is in {change.path}"
    if dry_run:
        return f"{client.title}: {change.path} would be changed so (dry run: nothing was written)"
    gone = ", which was created for it and is removed, too" if change.after is None else ""
    return f"{client.title}: removed from {change.path}{gone}"


def _show(
    client: Client,
    place: SettingsPlace,
    change: SettingsChange,
    dry_run: bool,
    notes: list[str],
    as_json: bool,
    more: Mapping[str, object],
) -> None:
    if as_json:
        print_json(
            {
                "agent": client.name,
                "scope": place.scope,
                "file": change.path,
                "changed": change.changes,
                "dry_run": dry_run,
                "backup": change.backup,
                "diff": change.diff(),
                "notes": notes,
                **more,
            }
        )
        return
    tell_text(change.diff(), nl=False)
    tell(*notes, err=True)

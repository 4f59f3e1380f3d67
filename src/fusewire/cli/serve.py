"""`fusewire serve`: the dashboard in a browser."""

from __future__ import annotations

import os
import re
import stat
import sys
import threading
from typing import TYPE_CHECKING, TextIO

import click

from fusewire.cli.common import common_options, own_project, print_json, project_root
from fusewire.cli.streams import tell
from fusewire.config.rules import find_project
from fusewire.util.errors import FusewireError
from fusewire.util.server_address import PORT

if TYPE_CHECKING:
    from fusewire.server.serving import Serving

#: Seconds in which the browser that we open must have logged in: everybody can see its command line.
_TO_OPEN = 120.0

_NAME = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?")


@click.command("serve")
@click.argument("folders", metavar="[PROJECT]...", nargs=-1)
@click.option("--all", "shows_all", is_flag=True, help="Every project in which an agent of yours was heard of.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="The port (default: 3873; 0: a free one).")
@click.option("--expose", is_flag=True, help="Needed for an address or a name that other machines can reach.")
@click.option("--name", "names", multiple=True, help="A host name[:port] that browsers use for it, with --expose.")
@click.option("--halt-token", is_flag=True, help="Make the token with which a gateway may halt agents.")
@click.option("--open", "opens", is_flag=True, help="Open the dashboard in a browser.")
@common_options
def serve_command(
    folders: tuple[str, ...],
    shows_all: bool,
    host: str,
    port: int | None,
    expose: bool,
    names: tuple[str, ...],
    halt_token: bool,
    opens: bool,
    project: str | None,
    as_json: bool,
) -> int:
    """Serve a live dashboard of circuits, sessions, attempts and memory, for this project or for all that are named.

    With --all the first page is everything that you have: what needs an answer first, then what runs.

    It listens on this machine only and asks for the key that it prints. Needs: pip install 'fusewire[server]'

    \b
    fusewire serve --open
    fusewire serve ~/code/api ~/code/web
    fusewire serve --all
    """
    try:
        from fusewire.server.serving import Serving, is_loopback
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise FusewireError(f"{missing} is not installed: pip install 'fusewire[server]'") from error
    if not host:
        raise click.UsageError("--host is empty; allowed: an address of this machine, such as 127.0.0.1")
    if not is_loopback(host) and not expose:
        raise click.UsageError(
            f"{host} can be reached from other machines: everybody there who gets the key can read what your agents"
            " do and reset circuits, and what is sent is not encrypted. If that is wanted, add --expose"
        )
    if names and not expose:
        raise click.UsageError("--name is for --expose: on this machine it is known as 127.0.0.1 and localhost")
    for name in names:
        if not _NAME.fullmatch(name):
            raise click.UsageError(f"--name {name!r} is none; allowed: such as example.org or example.org:443")
    if folders and project is not None:
        raise click.UsageError("--project names one project, and PROJECT... all of them; allowed: one of the two")
    if folders and shows_all:
        raise click.UsageError("--all is every project, and PROJECT... some; allowed: one of the two")
    # A folder inside of a project means the project, as it does where a command is run in it.
    roots = [find_project(project_root(folder)) for folder in folders]
    roots = roots or (own_project(project) if shows_all else [project_root(project)])
    serving = Serving(roots, host, PORT if port is None else port, names, shows_all=shows_all)
    if halt_token:
        from fusewire.server.access import kept_token, token_file

        kept_token("halt")
        tell(f"The token for POST /api/v1/halt is in {token_file('halt')}", err=True)

    def ready() -> None:
        if as_json:
            print_json(
                {
                    "address": serving.address,
                    "login": serving.login(),
                    "token": serving.access.person,
                    "pid": os.getpid(),
                    "projects": [{"name": one.name, "root": one.root} for one in serving.projects],
                    "read_only": serving.app.state.read_only or None,
                }
            )
        else:
            _say(serving, exposed=expose)
        if opens:
            # Some browsers run in this terminal, and would be waited for.
            threading.Thread(target=_open, args=[serving.login(_TO_OPEN)], daemon=True).start()

    serving.run(ready)
    return 0


def _say(serving: Serving, *, exposed: bool) -> None:
    tell("Fusewire listens. Open this in your browser; it works once:", "", f"  {serving.login()}", "")
    tell(f"Later, or in another browser, open {serving.address} and paste this key; keep it secret:", "")
    tell(f"  {serving.access.person}", "")
    roots = [one.root for one in serving.projects]
    everything = f"every project in which an agent was heard of: {len(roots)} now, and those that come"
    tell(f"It shows {everything if serving.app.state.shows_all else ', '.join(roots)}")
    if _is_file(sys.stdout):
        tell("The key is in a file now: everybody who can read that file has it, agents too.", err=True)
    if exposed:
        tell("Other machines can reach it, and what is sent is not encrypted.", err=True)
    if serving.app.state.read_only:
        tell(f"It shows, and changes nothing: {serving.app.state.read_only}", err=True)
    tell("Ctrl-C ends it.", err=True)


def _is_file(stream: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _open(login: str) -> None:
    import webbrowser

    if not webbrowser.open(login):
        tell("No browser could be opened here.", err=True)

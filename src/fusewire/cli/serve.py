"""`fusewire serve`: the dashboard in a browser."""

from __future__ import annotations

import os

import click

from fusewire.cli.common import common_options, print_json, project_root
from fusewire.errors import FusewireError


@click.command("serve")
@click.argument("folders", metavar="[PROJECT]...", nargs=-1)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="The port (default: 3873; 0: a free one).")
@click.option("--expose", is_flag=True, help="Needed to listen on an address that other machines can reach.")
@click.option("--name", "names", multiple=True, help="A name under which browsers may ask for it, with --expose.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@common_options
def serve_command(
    folders: tuple[str, ...],
    host: str,
    port: int | None,
    expose: bool,
    names: tuple[str, ...],
    opens: bool,
    project: str | None,
    as_json: bool,
) -> int:
    """Show circuits, sessions, attempts and memory in a browser, live. For this project, or for all that are named.

    It listens on this machine only and asks for the token that it prints. Needs the extra: pip install
    'fusewire[server]'.

    \b
    fusewire serve --open
    fusewire serve ~/work/api ~/work/web
    """
    try:
        from fusewire.server.serving import PORT, Serving, is_loopback
    except ImportError as error:
        raise FusewireError(f"{error.name or error} is not installed: pip install 'fusewire[server]'") from error
    if not is_loopback(host) and not expose:
        raise click.UsageError(
            f"{host} can be reached from other machines: everybody there who gets the token can read what your agents"
            " do and reset circuits, and what is sent is not encrypted. If that is wanted, add --expose"
        )
    if names and not expose:
        raise click.UsageError("--name is for --expose: on this machine it is known as 127.0.0.1 and localhost")
    roots = [project_root(folder) for folder in folders] or [project_root(project)]
    serving = Serving(roots, host, PORT if port is None else port, names)

    def ready() -> None:
        if as_json:
            print_json(
                {
                    "address": serving.address,
                    "login": serving.login(),
                    "pid": os.getpid(),
                    "projects": [{"name": one.name, "root": one.root} for one in serving.projects],
                    "read_only": serving.app.state.read_only or None,
                }
            )
        else:
            _say(serving.login(), serving.app.state.read_only, expose and not is_loopback(host))
        if opens:
            _open(serving.login(once=True))

    serving.run(ready)
    return 0


def _say(login: str, read_only: str, exposed: bool) -> None:
    click.echo(f"Fusewire listens. Open this, and tell it to nobody (the part behind # is the key):\n\n  {login}\n")
    if exposed:
        click.echo("Other machines can reach it, and what is sent is not encrypted.", err=True)
    if read_only:
        click.echo(f"It shows, and changes nothing: {read_only}", err=True)
    click.echo("Ctrl-C ends it.", err=True)


def _open(login: str) -> None:
    import webbrowser

    if not webbrowser.open(login):
        click.echo("No browser could be opened here.", err=True)

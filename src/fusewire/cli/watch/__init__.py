"""`fusewire watch`: the panel in a terminal, live; plain lines elsewhere."""

from __future__ import annotations

import os
import sys

import click

from fusewire.cli.common import common_options, own_project, project_root
from fusewire.util.errors import FusewireError

#: Earlier moves to start with.
_RECENT = 200


@click.command("watch")
@click.option("--all", "shows_all", is_flag=True, help="Every project in which an agent of yours was heard of.")
@click.option("--plain", is_flag=True, help="Print lines on a terminal, too: what is not closed, then every move.")
@click.option("--once", is_flag=True, help="Print what is not closed, and exit.")
@common_options
def watch_command(project: str | None, shows_all: bool, plain: bool, once: bool, as_json: bool) -> int:
    """Watch the circuits of a project, live.

    On a terminal: every circuit with its state, level, time left and reason, open ones first, and the last moves. Keys
    filter, open a circuit and show sessions and the loop; `?` lists them, `q` quits. Elsewhere, or with one of the
    options: a line for each circuit that is not closed, then a line for each move, until the reader is gone. Watching
    changes nothing.

    With --all: every project and worktree that you have, what needs an answer first. Enter opens one.

    \b
    fusewire watch
    fusewire watch --all
    fusewire watch --plain | tee trips.log
    fusewire watch --json | jq -r 'select(.type == "move") | .circuit'
    """
    from fusewire.cli.watch.lines import JsonLines, LineFormat, print_once, watch_lines
    from fusewire.cli.watch.source import Source

    if sys.stdout is None:
        raise FusewireError("standard output is closed")
    live = not (plain or once or as_json) and _is_terminal()
    if shows_all:
        _watch_all(own_project(project), live, once, as_json)
        return 0
    source = Source(project_root(project), recent=_RECENT if live else 0)
    try:
        if live:
            from fusewire.cli.watch.live import ProjectScreen, watch_live

            watch_live(ProjectScreen(source))
        else:
            lines = JsonLines() if as_json else LineFormat()
            print_once(source, lines) if once else watch_lines(source, lines)
    finally:
        source.close()
    return 0


def _watch_all(roots: list[str], live: bool, once: bool, as_json: bool) -> None:
    from fusewire.cli.watch.all_lines import JsonOverview, OverviewLines, watch_overview
    from fusewire.views.overview_all import Everything

    everything = Everything(roots)
    if live:
        from fusewire.cli.watch.all_screen import OverviewScreen
        from fusewire.cli.watch.live import watch_live

        watch_live(OverviewScreen(everything, _RECENT))
        return
    watch_overview(everything, JsonOverview() if as_json else OverviewLines(), once=once)


def _is_terminal() -> bool:
    """Whether input and output are a terminal that can move its cursor."""
    keyboard = sys.stdin is not None and sys.stdin.isatty()
    return keyboard and sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb")

"""`fusewire watch`: the panel in a terminal, live; plain lines elsewhere."""

from __future__ import annotations

import os
import sys

import click

from fusewire.cli.common import common_options, project_root
from fusewire.util.errors import FusewireError

#: Earlier moves to start with.
_RECENT = 200


@click.command("watch")
@click.option("--plain", is_flag=True, help="Print lines on a terminal, too: what is not closed, then every move.")
@click.option("--once", is_flag=True, help="Print what is not closed, and exit.")
@common_options
def watch_command(project: str | None, plain: bool, once: bool, as_json: bool) -> int:
    """Watch the circuits of a project, live.

    On a terminal: every circuit with its state, level, time left and reason, open ones first, and the last moves. Keys
    filter, open a circuit and show sessions and the loop; `?` lists them, `q` quits. Elsewhere, or with one of the
    options: a line for each circuit that is not closed, then a line for each move, until the reader is gone. Watching
    changes nothing.

    \b
    fusewire watch
    fusewire watch --plain | tee trips.log
    fusewire watch --json | jq -r 'select(.type == "move") | .circuit'
    """
    from fusewire.cli.watch.lines import JsonLines, LineFormat, print_once, watch_lines
    from fusewire.cli.watch.source import Source

    if sys.stdout is None:
        raise FusewireError("standard output is closed")
    live = not (plain or once or as_json) and _is_terminal()
    source = Source(project_root(project), recent=_RECENT if live else 0)
    try:
        if live:
            from fusewire.cli.watch.live import watch_live

            watch_live(source)
        else:
            lines = JsonLines() if as_json else LineFormat()
            print_once(source, lines) if once else watch_lines(source, lines)
    finally:
        source.close()
    return 0


def _is_terminal() -> bool:
    """Whether input and output are a terminal that can move its cursor."""
    keyboard = sys.stdin is not None and sys.stdin.isatty()
    return keyboard and sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb")

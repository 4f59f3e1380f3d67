"""What is read line by line: one session, the loop, warnings, help; and how lines become rows."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from fusewire.cli.watch_view.circuit_page import circuit_page
from fusewire.cli.watch_view.words import harmless, heading, shown
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.cli.watch_view.source import Source

#: Of what a session did, the newest.
_DOINGS = 200

HELP = """\
Moving
  up down j k      the row above, below; in a text, scroll
  PgUp PgDn        a screen up, down (also Ctrl-B, Ctrl-F, space)
  Home End g G     the first, the last
  Enter            open the circuit or the session
  Esc, Backspace   back (also left, h); on the panel: no filter

Showing
  /                filter by words, while you type; Enter keeps it, Esc clears it
  o                open circuits only
  a                all circuits, no filter
  s                sessions of agents
  l                the supervised loop
  w                warnings
  q                quit; Ctrl-C too

States
  CLOSED           nothing is stopped
  HALF_OPEN        a warning, or one probe after a cooldown
  OPEN             matching actions are refused until the time has passed or a person acts

LEVEL is how much has been counted, against the limit.
LEFT is how long until a probe is allowed; where it says "a person", one must act.
Nothing is changed from here: a circuit's page shows the commands to run."""


def read_lines(source: Source, kind: str, subject: str, width: int) -> list[Text]:
    """A page's lines, in rows of this width; made once for what was seen."""
    key = (kind, subject, width)
    if key not in source.drawn:
        try:
            lines = _PAGES[kind](source, subject)
        except FusewireError as error:
            lines = [Text(shown(error), style="bold red")]
        source.drawn[key] = wrapped(lines, width)
    return source.drawn[key]


_console = Console(file=io.StringIO())


def wrapped(lines: Iterable[Text], width: int) -> list[Text]:
    """Each in as many rows as it needs, the later ones further to the right."""
    rows: list[Text] = []
    for line in lines:
        if line.cell_len <= width:
            rows.append(line)
            continue
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        hang = " " * min(indent + 2, width // 4)
        first, *_ = line.wrap(_console, width, overflow="fold")
        rest = line[len(line.plain) - len(line.plain[len(first.plain) :].lstrip(" ")) :]
        rows.append(first)
        rows += [Text(hang) + row for row in rest.wrap(_console, max(1, width - len(hang)), overflow="fold")]
    return rows


def _session(source: Source, name: str) -> list[Text]:
    from fusewire.breakers.session.overview import overview
    from fusewire.breakers.session.report import dashboard

    breaker = source.breaker()
    doings = breaker.store.doings(name)
    lines = [Text(f"Session {shown(name)}", style="bold"), Text()]
    lines += [Text(harmless(line)) for line in dashboard(overview(breaker, name))[2:]]
    lines += heading("What it did, newest first")
    told = [one for one in reversed(doings) if one.kind != "spend"]
    for one in told[:_DOINGS]:
        style = {"refused": "red", "halted": "bold red", "failed": "yellow", "told": "yellow"}.get(one.kind, "")
        agent = f" (agent {shown(one.agent)})" if one.agent else ""
        when = (show_time(int(one.at)) or "")[11:19]
        what = " ".join(part for part in (shown(one.tool), shown(one.text)) if part)
        lines.append(Text.assemble((f"  {when} ", "dim"), (f"{one.kind:<7}", style), f" {what}{agent}"))
    return lines if told else [*lines, Text("  nothing that was kept")]


def _loop(source: Source, _: str) -> list[Text]:
    from fusewire.breakers.loop.report import details

    assert source.panel is not None
    loop = source.panel.loop
    if not loop.iterations:
        return [Text("No iteration of a supervised loop has run yet in this project (fusewire run, fusewire loop).")]
    return [Text(harmless(line)) for line in details(loop)]


def _warnings(source: Source, _: str) -> list[Text]:
    assert source.panel is not None
    lines = [Text(shown(one)) for one in source.panel.warnings]
    if not lines:
        return [Text("Nothing is wrong with the configuration or the state.")]
    return [*lines, Text(), Text("Notices stay until a person runs: fusewire doctor --acknowledge", style="dim")]


def _help(source: Source, _: str) -> list[Text]:
    return [Text(line, style="bold" if line.isalpha() else "") for line in HELP.split("\n")]


_PAGES = {"circuit": circuit_page, "session": _session, "loop": _loop, "warnings": _warnings, "help": _help}

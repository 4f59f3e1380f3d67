"""The pages that are read line by line: one circuit, one session, the loop, warnings, help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fusewire.breakers.constraint import report as layout
from fusewire.breakers.loop.report import details
from fusewire.breakers.session.overview import overview
from fusewire.breakers.session.report import dashboard
from fusewire.cli.watch.rows import (
    CONSOLE,
    bar_of,
    harmless,
    level_of,
    shown,
    standing,
    state_text,
    to_second,
)
from fusewire.core.events import identifier
from fusewire.util.durations import counted, show_time
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.quoting import quoted
from fusewire.util.tables import columns
from fusewire.views.cards import policy_of
from fusewire.views.circuits import window_start
from fusewire.views.session_names import SessionNames
from fusewire.views.settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.cli.watch.source import Source
    from fusewire.views.cards import CircuitCard

#: Days of history on the page of a circuit, and how many of the newest lines.
_DAYS, _HISTORY = 30, 200

#: The newest entries of what a session did.
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


def wrapped(lines: Iterable[Text], width: int) -> list[Text]:
    """Each in as many rows as it needs, the later ones further to the right."""
    rows: list[Text] = []
    for line in lines:
        if line.cell_len <= width:
            rows.append(line)
            continue
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        hang = " " * min(indent + 2, width // 4)
        first, *_ = line.wrap(CONSOLE, width, overflow="fold")
        rest = line[len(line.plain) - len(line.plain[len(first.plain) :].lstrip(" ")) :]
        rows.append(first)
        rows += [Text(hang) + row for row in rest.wrap(CONSOLE, max(1, width - len(hang)), overflow="fold")]
    return rows


def _circuit(source: Source, name: str) -> list[Text]:
    """Why a circuit is as it is, what to do, its configuration and where that is from, and its history."""
    assert source.panel is not None
    found = next((one for one in source.panel.circuits if one.id == name), None)
    if found is None:
        return [Text(f"{shown(name)} is no longer there.")]
    return [*_state(source, found), *_steps(found), *_configuration(source, found), *_history(source, found)]


def _state(source: Source, circuit: CircuitCard) -> list[Text]:
    constraint = source.breaker().rules.constraints.get(circuit.id)
    lines = [Text.assemble((shown(circuit.id), "bold"), "  ", state_text(circuit.state))]
    if constraint is not None:
        about = (constraint.title, constraint.severity, constraint.file)
        lines.append(Text(", ".join(shown(part) for part in about if part), style="dim"))
    lines.append(Text())
    if circuit.reason:
        lines.append(_labelled("Why", shown(circuit.reason)))
    if circuit.evidence:
        lines.append(_labelled("Last", shown(circuit.evidence)))
    level = f" {level_of(circuit)}{circuit.window}; {circuit.total} in all, {counted(circuit.trips, 'trip')}"
    lines.append(_labelled("Level", Text.assemble(bar_of(circuit, 12), level)))
    if circuit.phase == "open":
        opened = to_second(circuit.opened_at)
        lines.append(
            _labelled("Open", f"{f'since {opened}' if opened else 'the limit is reached'}, {standing(circuit)}")
        )
    elif circuit.phase != "closed":
        lines.append(_labelled("Now", standing(circuit)))
    if circuit.override_until:
        lines.append(_labelled("Passes", f"until {to_second(circuit.override_until)}: a person has let it pass"))
    if circuit.last_trip:
        reset = f", last reset {to_second(circuit.last_reset)}" if circuit.last_reset else ""
        lines.append(_labelled("Tripped", f"last {to_second(circuit.last_trip)}{reset}"))
    return lines


def _steps(circuit: CircuitCard) -> list[Text]:
    if not circuit.next:
        return []
    steps = [Text(f"  {shown(step)}") for step in circuit.next]
    return [*_heading("What to do (run it in another terminal: nothing is changed from here)"), *steps]


def _configuration(source: Source, circuit: CircuitCard) -> list[Text]:
    try:
        settings = settings_of(source.breaker(), circuit.id)
    except NotFound:
        settings = []
    rows = columns((one.key, shown(one.value), shown(one.source)) for one in settings)
    lines = [Text(f"  {row}") for row in rows] or [Text("  its constraint's file is gone")]
    return [*_heading("Configuration, and where each value comes from"), *lines]


def _history(source: Source, circuit: CircuitCard) -> list[Text]:
    """Texts are escaped one by one: a line end in one of them must not make another line."""
    breaker, name = source.breaker(), identifier(circuit.id)
    now = breaker.engine.clock()
    since = now - _DAYS * 86400
    log = [row.replace(text=shown(row.text)) for row in breaker.store.log_of(name, since)]
    moves = breaker.store.audit_of(name, since)
    moves = [row.replace(reason=shown(row.reason), actor=shown(row.actor)) for row in moves]
    title, *lines = layout.history(shown(name), log, moves, window_start(policy_of(breaker, circuit.id), now), _DAYS)
    more = [f"  {len(lines) - _HISTORY} older lines: fusewire history {quoted(name)}"] if len(lines) > _HISTORY else []
    return [
        *_heading("History" + title.removeprefix(shown(name))),
        *(Text(harmless(one)) for one in lines[:_HISTORY] + more),
    ]


def _labelled(label: str, text: Text | str) -> Text:
    return Text.assemble((f"{label:<9}", "dim"), text)


def _heading(text: str) -> list[Text]:
    return [Text(), Text(text, style="bold")]


def _session(source: Source, name: str) -> list[Text]:
    breaker = source.breaker()
    doings = breaker.store.doings(name)
    lines = [
        Text(f"Session {shown(SessionNames.of(breaker).facts(name).line)}", style="bold"),
        Text(shown(name), style="dim"),
        Text(),
    ]
    lines += [Text(harmless(line)) for line in dashboard(overview(breaker, name))[2:]]
    lines += _heading("What it did, newest first")
    done = [one for one in reversed(doings) if one.kind != "spend"]
    for one in done[:_DOINGS]:
        style = {"refused": "red", "halted": "bold red", "failed": "yellow", "told": "yellow"}.get(one.kind, "")
        agent = f" (agent {shown(one.agent)})" if one.agent else ""
        when = (show_time(int(one.at)) or "")[11:19]
        what = " ".join(part for part in (shown(one.tool), shown(one.text)) if part)
        lines.append(Text.assemble((f"  {when} ", "dim"), (f"{one.kind:<7}", style), f" {what}{agent}"))
    return lines if done else [*lines, Text("  nothing that was kept")]


def _loop(source: Source, _: str) -> list[Text]:
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


_PAGES = {"circuit": _circuit, "session": _session, "loop": _loop, "warnings": _warnings, "help": _help}

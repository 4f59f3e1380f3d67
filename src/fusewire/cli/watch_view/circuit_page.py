"""One circuit: why it is as it is, what to do, how it is configured and where from, what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fusewire.breakers.constraint import report as layout
from fusewire.cli.watch_view.words import bar_of, harmless, heading, level_of, shown, standing, state_text, to_second
from fusewire.core.events import identifier
from fusewire.util.durations import counted
from fusewire.util.errors import NotFound
from fusewire.util.quoting import quoted
from fusewire.util.tables import columns

if TYPE_CHECKING:
    from fusewire.cli.watch_view.source import Source
    from fusewire.views.cards import CircuitCard

_DAYS = 30
_DAY = 86400

#: Lines of a history that are shown, the newest.
_HISTORY = 200

_LABEL = 9


def circuit_page(source: Source, name: str) -> list[Text]:
    """As the panel has it by now."""
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
    return [*heading("What to do (run it in another terminal: nothing is changed from here)"), *steps]


def _configuration(source: Source, circuit: CircuitCard) -> list[Text]:
    from fusewire.views.settings import settings_of

    try:
        settings = settings_of(source.breaker(), circuit.id)
    except NotFound:
        settings = []
    rows = columns((one.key, shown(one.value), shown(one.source)) for one in settings)
    lines = [Text(f"  {row}") for row in rows] or [Text("  its constraint's file is gone")]
    return [*heading("Configuration, and where each value comes from"), *lines]


def _history(source: Source, circuit: CircuitCard) -> list[Text]:
    """Texts are made harmless one by one: a line end in one of them must not make another line."""
    from fusewire.views.cards import policy_of
    from fusewire.views.circuits import window_start

    breaker, name = source.breaker(), identifier(circuit.id)
    now = breaker.engine.clock()
    since = now - _DAYS * _DAY
    log = [row.replace(text=shown(row.text)) for row in breaker.store.log_of(name, since)]
    moves = breaker.store.audit_of(name, since)
    moves = [row.replace(reason=shown(row.reason), actor=shown(row.actor)) for row in moves]
    title, *lines = layout.history(shown(name), log, moves, window_start(policy_of(breaker, circuit.id), now), _DAYS)
    more = [f"  {len(lines) - _HISTORY} older lines: fusewire history {quoted(name)}"] if len(lines) > _HISTORY else []
    return [
        *heading("History" + title.removeprefix(shown(name))),
        *(Text(harmless(one)) for one in lines[:_HISTORY] + more),
    ]


def _labelled(label: str, text: Text | str) -> Text:
    return Text.assemble((f"{label:<{_LABEL}}", "dim"), text)

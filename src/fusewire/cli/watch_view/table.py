"""The rows of the lists: circuits, sessions, and what moved last. Columns depend on the width alone, so none jumps."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from rich.text import Text

from fusewire.cli.watch_view.words import (
    STYLES,
    at_second,
    bar_of,
    level_of,
    move_words,
    reason_of,
    short,
    shown,
    state_text,
    time_left,
)
from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.durations import parse_time, show_duration

if TYPE_CHECKING:
    from fusewire.stores.rows import AuditRow
    from fusewire.views.cards import CircuitCard
    from fusewire.views.session_list import SessionLine

_STATE, _LEVEL, _BAR, _LEFT = 9, 10, 8, 8

#: Widths from which on there is room for each.
_WITH_LEVEL, _WITH_REASON, _WITH_BAR = 54, 72, 90


def cell(text: Text | str, room: int) -> Text:
    """Exactly so wide; nothing where there is no room."""
    if room <= 0:
        return Text()
    one = text.copy() if isinstance(text, Text) else Text(text)
    one.truncate(room, overflow="ellipsis", pad=True)
    return one


def _row(*cells: Text) -> Text:
    return Text(" ").join(one for one in cells if one.plain)


def _columns(width: int) -> tuple[int, int, int, int]:
    """Room for circuit, bar, level and reason: what a narrow terminal has no room for is on the circuit's own page."""
    bar = _BAR if width >= _WITH_BAR else 0
    level = _LEVEL if width >= _WITH_LEVEL else 0
    rest = width - sum(one + 1 for one in (_STATE, bar, level, _LEFT) if one)
    circuit = rest if width < _WITH_REASON else min(64, max(20, rest // 2))
    return circuit, bar, level, max(0, rest - circuit - 1)


def circuit_titles(width: int) -> Text:
    circuit, bar, level, reason = _columns(width)
    both = bar + 1 + level if bar else level
    rooms = (_STATE, circuit, both, _LEFT, reason)
    return _row(
        *(cell(name, room) for name, room in zip("STATE CIRCUIT LEVEL LEFT REASON".split(), rooms, strict=True))
    )


def circuit_row(circuit: CircuitCard, width: int) -> Text:
    name, bar, level, reason = _columns(width)
    return _row(
        cell(state_text(circuit.state), _STATE),
        cell(short(circuit.id), name),
        bar_of(circuit, bar),
        cell(level_of(circuit), level),
        cell(time_left(circuit), _LEFT),
        cell(reason_of(circuit), reason),
    )


def session_titles(width: int) -> Text:
    return _row(cell("STATE", 8), cell("HEARD", 11), cell("COST", 8), cell("AGENTS", 6), Text("SESSION"))


def session_row(session: SessionLine, width: int) -> Text:
    ago = time.time() - parse_time(session.heard) if session.heard else math.inf
    why = f": {shown(session.halted)}" if session.halted else ""
    return _row(
        cell(_session_state(session), 8),
        cell("?" if ago == math.inf else f"{show_duration(max(1, int(ago)))} ago", 11),
        cell(f"${session.usd:.2f}", 8),
        cell(str(session.agents), 6),
        Text(f"{shown(session.id)}{why}"),
    )


def _session_state(session: SessionLine) -> Text:
    style = {"halted": STYLES["OPEN"], "running": STYLES["CLOSED"]}.get(session.state, "dim")
    return Text("HALTED" if session.state == "halted" else session.state, style=style)


def move_row(row: AuditRow) -> Text:
    state = PUBLIC_STATE.get(row.target, row.target.upper())
    return _row(
        Text(at_second(row.at)[11:19], style="dim"),
        cell(state_text(state), _STATE),
        Text(short(f"{row.circuit}: {move_words(row)}")),
    )

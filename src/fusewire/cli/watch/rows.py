"""Circuits, sessions and moves as rows of a table and as sentences; agent-supplied text is escaped here."""

from __future__ import annotations

import io
import math
import re
import time
import unicodedata
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fusewire.cli.agent_lines import PLAIN
from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.durations import counted, number, parse_time, show_duration, show_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from fusewire.stores.rows import AuditRow
    from fusewire.views.cards import CircuitCard
    from fusewire.views.panel import Panel
    from fusewire.views.session_list import SessionLine

STYLES = {"OPEN": "bold red", "HALF_OPEN": "bold yellow", "CLOSED": "green"}

#: Lays out tables and wraps lines; the screen renders them.
CONSOLE = Console(file=io.StringIO(), markup=False, highlight=False, emoji=False)

_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

#: Invisible characters that turn, join or hide others, and surrogates.
_INVISIBLE = ("Cf", "Cs")

_STATE, _LEVEL, _BAR, _LEFT = 9, 10, 8, 8

#: Widths from which on there is room for each.
_WITH_LEVEL, _WITH_REASON, _WITH_BAR = 54, 72, 90


# -- escaping ---------------------------------------------------------------------------------------------


def shown(text: object) -> str:
    """Any text as one escaped line."""
    return harmless(" ".join(str(text).split()))


def harmless(line: str) -> str:
    """A line without control characters, and without invisible ones that change how it reads."""
    line = PLAIN.shown(" ".join(line.splitlines())).expandtabs()
    if line.isascii():
        return line
    return "".join("\ufffd" if unicodedata.category(char) in _INVISIBLE else char for char in line)


def short(circuit: str) -> str:
    """An id for a list: the beginning of a session's id is enough there."""
    return _UUID.sub(r"\1…", shown(circuit))


# -- tables -----------------------------------------------------------------------------------------------


def circuit_table(circuits: Sequence[CircuitCard], chosen: str, width: int) -> list[Text]:
    """Titles and a row for each circuit; a narrow terminal leaves out the bar, the level, the reason."""
    inner = width - 2
    has_level, has_reason, has_bar = inner >= _WITH_LEVEL, inner >= _WITH_REASON, inner >= _WITH_BAR
    level = _LEVEL + (_BAR + 1) * has_bar
    rest = inner - (_STATE + 1) - (_LEFT + 1) - (level + 1)
    columns = [("STATE", _STATE), ("CIRCUIT", min(64, max(20, rest // 2)) if has_reason else None)]
    columns += [("LEVEL", level)] * has_level + [("LEFT", _LEFT)] + [("REASON", None)] * has_reason
    rows: dict[str, list[Text | str]] = {}
    for one in circuits:
        full = Text.assemble(bar_of(one, _BAR), " ", level_of(one)) if has_bar else level_of(one)
        cells = [state_text(one.state), short(one.id), *[full] * has_level, time_left(one)]
        rows[one.id] = cells + [reason_of(one)] * has_reason
    return draw_table(columns, rows, chosen, width)


def session_table(sessions: Sequence[SessionLine], chosen: str, width: int) -> list[Text]:
    columns = [("STATE", 8), ("HEARD", 11), ("COST", 8), ("AGENTS", 6), ("SESSION", None)]
    rows: dict[str, list[Text | str]] = {
        one.id: [
            _session_state(one),
            f"{show_duration(max(1, int(time.time() - parse_time(one.heard))))} ago" if one.heard else "?",
            f"${one.usd:.2f}",
            str(one.agents),
            shown(one.name) + (f": {shown(one.halted)}" if one.halted else ""),
        ]
        for one in sessions
    }
    return draw_table(columns, rows, chosen, width)


def _session_state(session: SessionLine) -> Text:
    style = {"halted": STYLES["OPEN"], "running": STYLES["CLOSED"]}.get(session.state, "dim")
    return Text("HALTED" if session.state == "halted" else session.state, style=style)


def draw_table(
    columns: Iterable[tuple[str, int | None]], rows: dict[str, list[Text | str]], chosen: str, width: int
) -> list[Text]:
    """One line for the titles and each row; widths of columns depend on the terminal alone, so that none jumps."""
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for title, room in [("", 1), *columns]:
        table.add_column(title, width=room, ratio=None if room else 1, no_wrap=True, overflow="ellipsis")
    for name, cells in rows.items():
        mark, style = (">", "reverse") if name == chosen else ("", None)
        table.add_row(mark, *cells, style=style)
    return lay_out(table, width)


def lay_out(renderable: RenderableType, width: int) -> list[Text]:
    """What rich renders, line by line."""
    lines = CONSOLE.render_lines(renderable, CONSOLE.options.update(width=width), pad=False)
    return [Text.assemble(*((part.text, part.style or "") for part in line)) for line in lines]


def move_row(row: AuditRow) -> Text:
    name = PUBLIC_STATE.get(row.target, row.target.upper())
    when, state = (at_second(row.at)[11:19], "dim"), (f"{name:<{_STATE}}", STYLES.get(name, ""))
    return Text.assemble(when, " ", state, " ", short(f"{row.circuit}: {move_words(row)}"))


# -- parts of rows and sentences --------------------------------------------------------------------------


def state_text(state: str) -> Text:
    return Text(state, style=STYLES.get(state, ""))


def level_of(circuit: CircuitCard) -> str:
    """`3/5`; dollars and shares in their own unit: `$2.40/$5`, `40%/70%`."""
    if circuit.measure.startswith("$") or "%" in circuit.measure:
        return circuit.measure.replace(".00", "").replace(" of ", "/")
    return f"{number(circuit.level)}/{number(circuit.threshold)}"


def bar_of(circuit: CircuitCard, room: int) -> Text:
    """How full it is; an open circuit is full, whatever its level has become since."""
    full = room if circuit.phase == "open" else math.floor(circuit.full * room)
    style = STYLES[circuit.state] if not circuit.near else "yellow"
    return Text.assemble(("━" * full, style), ("─" * (room - full), "dim"))


def time_left(circuit: CircuitCard) -> str:
    """For a column: the time left, or who must act."""
    left = circuit.retry_after
    if circuit.phase == "open":
        return "a person" if left is None else _whole(left)
    if circuit.phase == "probe":
        return "ready" if left is None else "probing"
    return ""


def standing(circuit: CircuitCard) -> str:
    """The same in a sentence."""
    left = circuit.retry_after
    if circuit.phase == "open":
        return "a person must act" if left is None else f"a probe in {_whole(left)}"
    if circuit.phase == "probe":
        return "the next check is the one probe" if left is None else f"a probe is under way, for up to {_whole(left)}"
    return "a warning, nothing is stopped" if circuit.phase == "watch" else ""


def reason_of(circuit: CircuitCard) -> str:
    parts = [f"passes until {to_second(circuit.override_until)}"] if circuit.override_until else []
    if circuit.phase != "closed" and circuit.reason:
        parts.append(shown(circuit.reason))
    elif circuit.near:
        parts.append("the next one may open it")
    elif circuit.title:
        parts.append(shown(circuit.title))
    return ", ".join(parts)


def circuit_line(circuit: CircuitCard) -> str:
    """One circuit that is not closed, in plain words."""
    how = ", ".join(part for part in (level_of(circuit), standing(circuit)) if part)
    why = reason_of(circuit)
    return f"{circuit.state} {shown(circuit.id)} {how}" + (f": {why}" if why else "")


def headline(panel: Panel) -> str:
    """The project in a line: what is tripped, what it costs, what is wrong."""
    parts = [panel.headline.text, f"{money(panel)} today"]
    if panel.warnings:
        parts.append(counted(len(panel.warnings), "warning"))
    return f"{shown(panel.project.name)}: {', '.join(parts)}"


def money(panel: Panel) -> str:
    return f"${panel.spend.today_usd:.2f}"


def move_line(row: AuditRow) -> str:
    """One move: when, what the circuit is now, which, why, and who did it."""
    state = PUBLIC_STATE.get(row.target, row.target.upper())
    return f"{at_second(row.at)} {state} {shown(row.circuit)}: {move_words(row)}"


def move_words(row: AuditRow) -> str:
    """Why and by whom; the cause is named where the state does not imply it."""
    cause = "" if row.cause == "tripped" else row.cause
    why = ": ".join(part for part in (cause, shown(row.reason)) if part) or "no reason given"
    return why + (f", by {shown(row.actor)}" if row.actor else "")


def to_second(moment: str | None) -> str:
    """A time in ISO format without its milliseconds."""
    return re.sub(r"\.\d+Z$", "Z", moment or "")


def at_second(moment: float) -> str:
    return show_time(math.floor(moment)) or ""


def _whole(seconds: float) -> str:
    """In whole seconds, rounded up: after that time a probe is allowed."""
    return show_duration(math.ceil(seconds))

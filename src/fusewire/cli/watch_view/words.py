"""Words and signs that the views share; whatever comes from an agent is made harmless here."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

from rich.text import Text

from fusewire.cli.agent_lines import PLAIN
from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.durations import counted, number, show_duration, show_time

if TYPE_CHECKING:
    from fusewire.stores.rows import AuditRow
    from fusewire.views.cards import CircuitCard
    from fusewire.views.panel import Panel

STYLES = {"OPEN": "bold red", "HALF_OPEN": "bold yellow", "CLOSED": "green"}

_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

#: Characters that are not seen but turn, join or hide others, and halves of characters.
_UNSEEN = ("Cf", "Cs")


def shown(text: object) -> str:
    """Any text in one line, harmless."""
    return harmless(" ".join(str(text).split()))


def harmless(line: str) -> str:
    """A line without power over the terminal, and without what reads otherwise than it looks."""
    line = PLAIN.shown(" ".join(line.splitlines())).expandtabs()
    if line.isascii():
        return line
    return "".join("\ufffd" if unicodedata.category(char) in _UNSEEN else char for char in line)


def short(circuit: str) -> str:
    """An id for a list: of a session's own id the beginning tells it from others."""
    return _UUID.sub(r"\1…", shown(circuit))


def heading(text: str) -> list[Text]:
    return [Text(), Text(text, style="bold")]


def state_text(state: str) -> Text:
    return Text(state, style=STYLES.get(state, ""))


def level_of(circuit: CircuitCard) -> str:
    """`3/5`; dollars and shares are said as such: `$2.40/$5`, `40%/70%`."""
    if circuit.measure.startswith("$") or "%" in circuit.measure:
        return circuit.measure.replace(".00", "").replace(" of ", "/")
    return f"{number(circuit.level)}/{number(circuit.threshold)}"


def bar_of(circuit: CircuitCard, room: int) -> Text:
    """How full it is; what is open is full, whatever its level has become since."""
    full = room if circuit.phase == "open" else math.floor(circuit.full * room)
    style = STYLES[circuit.state] if not circuit.near else "yellow"
    return Text.assemble(("━" * full, style), ("─" * (room - full), "dim"))


def time_left(circuit: CircuitCard) -> str:
    """In a column: how long still, or who must act."""
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
    """What the project is like, in a line: what is tripped, what it costs, what is wrong."""
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
    """Why; what a move is called is said where its state does not say it."""
    called = "" if row.cause == "tripped" else row.cause
    said = ": ".join(part for part in (called, shown(row.reason)) if part) or "no reason given"
    return said + (f", by {shown(row.actor)}" if row.actor else "")


def to_second(moment: str | None) -> str:
    """A time as reports have it, without its milliseconds."""
    return re.sub(r"\.\d+Z$", "Z", moment or "")


def at_second(moment: float) -> str:
    return show_time(math.floor(moment)) or ""


def _whole(seconds: float) -> str:
    """In whole seconds, rounded up: whoever waits that long is not refused again."""
    return show_duration(math.ceil(seconds))

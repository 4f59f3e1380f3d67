"""Turn the events of the views into rows, newest first, and into a chart over time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fusewire.breakers.constraint.report import EFFECTS
from fusewire.server.drawing.charts import Lane, Mark, Marker, timeline
from fusewire.util.durations import counted, parse_time, show_duration
from fusewire.views.moves import LoggedSignal

if TYPE_CHECKING:
    from markupsafe import Markup

    from fusewire.views.circuits import CircuitView
    from fusewire.views.moves import History, HistoryMove, Step
    from fusewire.views.sessions import SessionView, ShownDoing
    from fusewire.views.trips import PastTrip

#: Rows of a list; what is older is counted.
ROWS = 200

_DAY = 86400

_DONE = {
    "ok": ("call", "worked"),
    "failed": ("failed", "failed"),
    "told": ("warned", "warned"),
    "asked": ("warned", "a person was asked"),
    "refused": ("refused", "refused"),
    "halted": ("refused", "halted"),
    "logged": ("warned", "only logged"),
    "prompt": ("said", "message"),
}
_SIGNALS = {"ask": "asked", "good": "went well"}
_BY_PEOPLE = ("reset", "override")


@dataclass
class TimelineRow:
    """One thing that happened; `key` is the same whenever it is shown."""

    at: str
    kind: str
    what: str
    text: str
    note: str = ""
    key: str = ""


def newest(rows: Iterable[TimelineRow]) -> tuple[list[TimelineRow], int]:
    """The rows to show, each with a key of its own, and how many were left out; of one moment the first stays first."""
    in_order = sorted(rows, key=lambda row: parse_time(row.at), reverse=True)
    seen: dict[str, int] = {}
    for row in reversed(in_order):
        said = "\0".join((row.at, row.kind, row.what, row.text, row.note)).encode("utf-8", "replace")
        name = hashlib.sha256(said).hexdigest()[:12]
        seen[name] = seen.get(name, 0) + 1
        row.key = f"{name}-{seen[name]}"
    return in_order[:ROWS], max(0, len(in_order) - ROWS)


# -- a circuit --------------------------------------------------------------------------------------------


def circuit_rows(history: History) -> tuple[list[TimelineRow], int]:
    """Signals and moves; the window's boundary goes where `before_window` says."""
    signals = (_signal(one) for one in history.entries if one.kind not in _BY_PEOPLE)
    moves = (_move(one, one.timestamp) for one in history.transitions)
    return newest([*moves, *signals])


def before_window(rows: Sequence[TimelineRow], window_start: str | None) -> int | None:
    """The place of the newest row that the window no longer holds."""
    if window_start is None:
        return None
    start = parse_time(window_start)
    return next((place for place, row in enumerate(rows) if parse_time(row.at) <= start), None)


def circuit_chart(view: CircuitView, now: float) -> Markup | None:
    """When it was open, what was counted, what people did, where its window begins; None if nothing happened."""
    history, trips, cooldown = view.history, view.trips, view.cooldown
    counts = [one for one in history.entries if one.kind == "bad" and one.effect in (None, "counted")]
    others = [one for one in history.entries if one.kind == "bad" and one not in counts]
    well = [one for one in history.entries if one.kind == "good"]
    people = [one for one in history.transitions if one.cause in ("reset", "overridden", "retried", "resolved")]
    if not (history.entries or history.transitions):
        return None
    lanes = [Lane("open", "open", [_trip(one, now) for one in trips])]
    if cooldown.until is not None:
        until = parse_time(cooldown.until)
        waits = Mark(now, f"cooldown, {show_duration(until - now)} left", until, "cooling")
        lanes.append(Lane("cooldown", "cooling", [waits]))
    named: Sequence[tuple[str, str, Sequence[LoggedSignal | HistoryMove]]] = (
        ("counted", "failed", counts),
        ("not counted", "warned", others),
        ("went well", "call", well),
        ("by people", "said", people),
    )
    for name, kind, found in named:
        if found or name == "counted":
            lanes.append(Lane(name, kind, [_at(one) for one in found]))
    moments, lines = [now], [Marker(now, "now", "now")]
    moments += [parse_time(one.timestamp) for one in history.entries]
    moments += [parse_time(one.timestamp) for one in history.transitions]
    began = None if history.window_start is None else parse_time(history.window_start)
    if began is not None and began >= now - view.days * _DAY:
        moments.append(began)
        lines.append(Marker(began, "window begins", "window"))
    first = min([*moments, *(mark.at for lane in lanes for mark in lane.marks)])
    last = max([now, *(mark.until or mark.at for lane in lanes for mark in lane.marks)])
    room = max(1.0, 0.03 * (last - first))
    facts = (
        f"{counted(len(trips), 'trip')}, {len(counts)} counted, {len(others)} not counted, {len(people)} by people;"
        f" {view.state.replace('_', '-')} now"
    )
    return timeline("History over time", facts, lanes, first - room, last + room, lines)


def _signal(one: LoggedSignal) -> TimelineRow:
    name = _SIGNALS.get(one.kind, one.signal)
    effect = EFFECTS.get(one.effect or "", "")
    kind = "call" if one.kind == "good" else "failed" if one.kind == "bad" and not effect else "warned"
    notes = [effect, f"session {one.session}" if one.session else ""]
    return TimelineRow(one.timestamp, kind, name, one.action, ", ".join(filter(None, notes)))


def _move(one: Step, at: str, circuit: str = "") -> TimelineRow:
    source, target = one.from_.replace("_", "-"), one.to.replace("_", "-")
    what = f"{source} → {target}" if source != target else one.cause
    kind = {"OPEN": "refused", "CLOSED": "call"}.get(one.to, "warned") if source != target else "said"
    note = ", ".join(filter(None, [circuit, one.cause, f"by {one.actor}" if one.actor else ""]))
    return TimelineRow(at, kind, what, one.reason, note)


def _trip(one: PastTrip, now: float) -> Mark:
    began = parse_time(one.opened_at)
    until = began + (one.seconds or 0.0)
    return Mark(began, f"open for {show_duration(until - began)}: {one.reason} ({one.method})", min(until, now))


def _at(one: LoggedSignal | HistoryMove) -> Mark:
    text = one.action if isinstance(one, LoggedSignal) else one.reason
    return Mark(parse_time(one.timestamp), f"{one.timestamp}: {text}")


# -- a session --------------------------------------------------------------------------------------------


def session_rows(view: SessionView) -> tuple[list[TimelineRow], int]:
    """Calls, warnings, refusals, messages and moves of circuits."""
    whose = view.session
    done = [_doing(one, whose) for one in reversed(view.doings) if one.kind in _DONE]
    moves = [replace(one, actor=None) if one.actor == whose else one for one in reversed(view.moves)]
    return newest([*(_move(one, one.at, one.circuit.removesuffix(f"/{whose}")) for one in moves), *done])


def session_span(view: SessionView) -> tuple[float, float] | None:
    """From the first to the last that is known; None if nothing is."""
    moments = [parse_time(at) for at in (*(one.at for one in view.doings), *(one.at for one in view.moves))]
    moments += [at for at, _ in view.spend_curve]
    return (min(moments), max(moments)) if moments else None


def session_chart(view: SessionView, start: float, end: float) -> Markup:
    """Calls, failures, warnings, refusals, trips and messages, each in a lane."""
    by_kind: dict[str, list[Mark]] = {}
    for one in view.doings:
        by_kind.setdefault(_DONE.get(one.kind, ("", ""))[0], []).append(_told(one))
    trips = [one for one in view.moves if one.to == "OPEN" and one.from_ != "OPEN"]
    lanes = [
        Lane("messages", "said", by_kind.get("said", [])),
        Lane("calls that worked", "call", by_kind.get("call", [])),
        Lane("failed", "failed", by_kind.get("failed", [])),
        Lane("warned", "warned", by_kind.get("warned", [])),
        Lane("refused", "refused", by_kind.get("refused", [])),
        Lane("trips", "open", [Mark(parse_time(one.at), f"{one.circuit}: {one.reason}") for one in trips]),
    ]
    facts = ", ".join(f"{len(lane.marks)} {lane.name}" for lane in lanes)
    room = max(0.5, 0.02 * (end - start))
    return timeline("What happened in the session", facts, lanes, start - room, end + room)


def _doing(one: ShownDoing, session: str) -> TimelineRow:
    """Whose session it is stands above the list, and not in every row."""
    kind, what = _DONE[one.kind]
    note = ", ".join(filter(None, [one.tool, f"agent {one.agent}" if one.agent else ""]))
    text = one.text.replace(f"/{session}", "")
    return TimelineRow(one.at, kind, what, text, note or ("a person wrote to the agent" if kind == "said" else ""))


def _told(one: ShownDoing) -> Mark:
    return Mark(parse_time(one.at), f"{one.at}: {one.tool} {one.text}".strip())

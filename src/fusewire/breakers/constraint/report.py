"""Render the text layouts of the constraint seed: status, history, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.meters import within
from fusewire.util.durations import counted, number, show_duration, show_time
from fusewire.util.tables import columns

if TYPE_CHECKING:
    from fusewire.config.rules import Constraint
    from fusewire.core.circuit import Policy
    from fusewire.engine.status import Status
    from fusewire.stores.rows import AuditRow, LogRow

#: Open first: these matter most.
GROUPS = ("OPEN", "HALF_OPEN", "CLOSED")

#: What became of a signal, where it was not simply counted.
EFFECTS = {"duplicate": "not counted: same as the last", "refused": "refused", "late": "late"}


def groups(statuses: list[Status]) -> list[str]:
    """Circuits by state with their counts."""
    lines = []
    width = max((len(status.id) for status in statuses), default=0)
    for name in GROUPS:
        members = [status for status in statuses if status.state == name]
        lines.append(f"{name} ({len(members)})")
        lines += [f"  {status.id:<{width}}  {_line(status)}" for status in members]
    if not statuses:
        lines.append("No circuits yet. Constraints are Markdown files in docs/constraints/.")
    return lines


def _line(status: Status) -> str:
    parts = [f"{number(status.level)}/{number(status.threshold)}"]
    if status.kind == "constraint":
        parts[0] += " violations"
    if status.phase == "open":
        parts.append(_waiting(status))
    elif status.phase == "probe":
        parts.append("a probe is under way" if status.retry_after else "ready to probe")
    if status.override_until is not None:
        parts.append(f"overridden until {show_time(status.override_until)}")
    if status.trips:
        parts.append(counted(status.trips, "trip"))
    return ", ".join(parts)


def _waiting(status: Status) -> str:
    opened = show_time(status.opened_at)
    since = f"open since {opened}" if opened else "the limit is reached"
    if status.retry_after is None:
        return f"{since}, a person must act"
    return f"{since}, a probe in {show_duration(status.retry_after)}"


def ended(status: Status) -> str:
    """What people must know of the circuit of a session that has ended."""
    return f"its session ended {show_time(status.session_ended)}: this is history, unless that session is resumed"


def detail(
    status: Status,
    policy: Policy,
    constraint: Constraint | None,
    settings: list[tuple[str, str, str]],
    log: list[LogRow],
) -> list[str]:
    """One circuit: state, violations, configuration, recent activity."""
    lines = [f"{status.id}  {status.state}"]
    if constraint is not None:
        about = [constraint.title, constraint.severity, constraint.file]
        lines.append("  " + ", ".join(part for part in about if part))
    lines += ["", "State", f"  {status.state} (phase {status.phase})"]
    if status.phase == "open":
        lines.append(f"  {_waiting(status)}")
    elif status.phase == "probe":
        lines.append("  a probe is under way" if status.retry_after else "  the next check is the one probe")
    if status.session_ended is not None:
        lines.append(f"  {ended(status)}")
    if status.reason:
        lines.append(f"  reason: {status.reason}")
    if status.evidence:
        lines.append(f"  last: {status.evidence}")
    if status.override_until is not None:
        lines.append(f"  overridden until {show_time(status.override_until)}: {status.override_reason}")
    lines += ["", "Violations" if status.kind == "constraint" else "Level"]
    span = within(policy.meters[0])
    trips = counted(status.trips, "trip")
    lines.append(f"  {number(status.level)} of {number(status.threshold)}{span}; {status.total} in all, {trips}")
    lines.append(
        f"  last trip {show_time(status.last_trip) or 'never'}, last reset {show_time(status.last_reset) or 'never'}"
    )
    lines += ["", "Configuration", *(f"  {row}" for row in columns(settings))]
    lines += ["", "Recent activity"]
    lines += [f"  {activity(row)}" for row in reversed(log[-5:])] or ["  none"]
    return lines


def activity(row: LogRow) -> str:
    what = row.text or row.name
    notes = [part for part in (EFFECTS.get(row.effect, ""), row.session and f"session {row.session}") if part]
    kind = {"bad": row.name, "ask": "asked", "good": "went well"}.get(row.kind, row.kind)
    return f"{show_time(row.at)}  {kind:<9}  {what}" + (f"  ({', '.join(notes)})" if notes else "")


def history(
    circuit: str, rows: list[LogRow], audit: list[AuditRow], window_start: float | None, days: float
) -> list[str]:
    """Newest first, with the boundary of the rolling window between what counts and what is only kept."""
    if not rows and not audit:
        return [f"{circuit}: nothing in the last {number(days)} days"]
    lines = [f"{circuit}, last {number(days)} days, newest first"]
    entries = [(row.at, 1, activity(row)) for row in rows if row.kind not in ("reset", "override")]
    entries += [(move.at, 2, f"{show_time(move.at)}  {_move(move)}") for move in audit]
    marked = window_start is None
    for at, _, text in sorted(entries, key=lambda item: item[:2], reverse=True):
        if not marked and window_start is not None and at <= window_start:
            lines.append(_boundary(window_start, "below: kept, no longer counted"))
            marked = True
        lines.append(f"  {text}")
    if not marked and window_start is not None:
        lines.append(_boundary(window_start, "everything above is inside"))
    return lines


def _boundary(start: float, words: str) -> str:
    return f"  ---- the window starts {show_time(start)} ({words}) ----"


def _move(row: AuditRow) -> str:
    source, target = (PUBLIC_STATE.get(phase, phase) for phase in (row.source, row.target))
    moved = f"{source} -> {target}" if source != target else source
    by = f", by {row.actor}" if row.actor else ""
    return f"{moved} ({row.cause}): {row.reason or 'no reason given'}{by}"

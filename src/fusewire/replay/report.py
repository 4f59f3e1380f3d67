"""Word what replays found: a line for each transcript, and a report with those worth a look first."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fusewire.replay.replayed import ACTIONS, SPOKEN
from fusewire.replay.tables import by_rule, rules_table, side_by_side
from fusewire.util.durations import counted
from fusewire.util.text import in_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.replay.replayed import Manner, Replayed, Trip
    from fusewire.replay.tables import Rows

#: Sessions that a report lists.
_LISTED = 200

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #8884; padding: .25rem .75rem; text-align: left; vertical-align: top; }
td { white-space: pre-wrap; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } }"""

_WHY = (
    "halted, although it is known to be honest work",
    "a loop that nothing halted",
    "halted in life",
    "halted",
    "refused",
    "asked",
    "told",
    "logged",
)


def in_words(one: Replayed) -> str:
    """One transcript on a line: what is known of it, what was said, and the first evidence."""
    if one.problem and not one.calls:
        return f"{one.path}: cannot be read: {one.problem}"
    situation = f"{'attended' if one.attended else 'unattended'} ({one.attended_by})"
    parts = [f"{one.path}: {counted(one.calls, 'call')}, {counted(one.turns, 'turn')}, {situation}"]
    first = one.first()
    line = "; ".join([*parts, *filter(None, (one.outcome, one.label)), _said(one)]) + (
        f": {first.evidence}" if first else ""
    )
    return f"{line} (read only so far: {one.problem})" if one.problem else line


def _said(one: Replayed) -> str:
    parts = [_trip(trip, " in life") for trip in one.in_life] + [_trip(trip) for trip in one.trips]
    if one.calls_after_halt:
        usd = f" (${one.usd_after_halt:.2f})" if one.usd_after_halt else ""
        parts.append(f"{counted(one.calls_after_halt, 'call')}{usd} after the halt")
    return "; ".join(parts) or "nothing to say"


def _trip(trip: Trip, when: str = "") -> str:
    again = f" and {trip.times - 1} more" if trip.times > 1 else ""
    return f"{ACTIONS[trip.action]}{when} by {trip.rule} at call {trip.call}{again}"


def differences(manners: Sequence[Manner], columns: Sequence[Sequence[Replayed]]) -> list[str]:
    """The transcripts that two sets of rules answer in another way, in words: first those that one of them stops.

    Nothing is compared across paces.
    """
    found: list[tuple[list[bool], str]] = []
    for at in range(len(manners) - 1):
        if manners[at].pace == manners[at + 1].pace:
            for old, new in zip(columns[at], columns[at + 1], strict=True):
                if old.trips != new.trips:
                    pair = zip(manners[at : at + 2], (old, new), strict=True)
                    said = "; ".join(f"{manner.name}: {_said(one)}" for manner, one in pair)
                    alike = [(old.first(action) is None) == (new.first(action) is None) for action in reversed(SPOKEN)]
                    found.append((alike, f"{old.path}: {said}"))
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def _why(one: Replayed) -> int:
    """Which of the reasons to look at it is the weightiest; behind the last there is none."""
    if one.is_false_stop:
        return 0
    if one.label == "loop" and one.first("halt") is None:
        return 1
    if any(trip.action == "halt" for trip in one.in_life):
        return 2
    strictest = next((action for action in reversed(SPOKEN) if one.first(action)), "log" if one.trips else "")
    order = ("halt", "block", "ask", "tell", "log")
    return 3 + order.index(strictest) if strictest else len(_WHY)


def render(manners: Sequence[Manner], columns: Sequence[Sequence[Replayed]], *, html: bool) -> str:
    """The report as Markdown, or as one page of HTML that needs nothing else; the sessions are those of the first."""
    first = columns[0]
    calls = sum(one.calls for one in first)
    looked_at = sorted((one for one in first if _why(one) < len(_WHY)), key=_order)
    sessions: Rows = [("why", "transcript", "calls", "cost", "what would have been done", "first evidence")]
    for one in looked_at[:_LISTED]:
        trip = one.first() or next(iter(one.in_life), None)
        known = ", ".join(filter(None, (one.outcome, one.label)))
        name = f"{one.path} ({known})" if known else one.path
        cost = f"${one.usd:.2f}" if one.usd else ""
        sessions.append((_WHY[_why(one)], name, str(one.calls), cost, _said(one), trip.evidence if trip else ""))
    unread: Rows = [("transcript", "problem"), *((one.path, one.problem) for one in first if one.problem)]
    differing: Rows = [("another answer",), *((line,) for line in differences(manners, columns))]
    silent = len(first) - len(looked_at)
    parts: list[tuple[str, str, Rows]] = [
        ("Replay", f"{counted(len(first), 'transcript')}, {counted(calls, 'call')}.", []),
        ("Summary", "", side_by_side(manners, columns)),
        ("Rules", "Of each rule, in how many transcripts it spoke.", rules_table(*map(by_rule, columns))),
        ("Differences", "", differing),
        ("Worth a look", f"{counted(silent, 'transcript')} more with nothing to say.", sessions),
        ("Not readable", "", unread),
    ]
    shown = [(title, text, rows) for title, text, rows in parts if len(rows) > 1 or text]
    return _html(shown) if html else _markdown(shown)


def _order(one: Replayed) -> tuple[float, ...]:
    return _why(one), -one.usd_after_halt, -one.calls_after_halt, -one.calls


def _markdown(parts: list[tuple[str, str, Rows]]) -> str:
    lines = []
    for at, (title, text, rows) in enumerate(parts):
        lines += [f"{'#' if not at else '##'} {title}", "", *([text, ""] if text else [])]
        for number, row in enumerate(rows):
            lines.append(f"| {' | '.join(map(_cell, row))} |")
            lines += [f"|{' --- |' * len(row)}"] if not number else []
        lines += [""] if rows else []
    return "\n".join(lines)


def _cell(text: str) -> str:
    """What a transcript says is no markup of ours."""
    text = escape(in_line(text), quote=False)
    indent = len(text) - len(text.lstrip())
    return "&nbsp;" * indent + "".join(f"\\{char}" if char in "\\`*_[]|~" else char for char in text[indent:])


def _html(parts: list[tuple[str, str, Rows]]) -> str:
    lines = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8"><title>Fusewire replay</title>']
    lines += [f"<style>\n{_STYLE}\n</style></head><body>"]
    for at, (title, text, rows) in enumerate(parts):
        level = 2 if at else 1
        lines += [f"<h{level}>{title}</h{level}>", *([f"<p>{escape(text)}</p>"] if text else [])]
        lines += ["<table>"] if rows else []
        for number, row in enumerate(rows):
            tag = "td" if number else "th"
            lines.append(f"<tr>{''.join(f'<{tag}>{escape(in_line(cell))}</{tag}>' for cell in row)}</tr>")
        lines += ["</table>"] if rows else []
    return "\n".join([*lines, "</body></html>", ""])

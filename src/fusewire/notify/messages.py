"""Word a notification: what happened to what; why; what to do next, and who may lift it. Plain text."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.messages import goes_on
from fusewire.breakers.session.state import SessionMemory, session_name
from fusewire.config.rules import rule_id
from fusewire.config.settings import SEVERITIES
from fusewire.core.circuit import cooled_at, fill_in
from fusewire.core.decision import PUBLIC_STATE, Decision
from fusewire.core.messages import message_lines
from fusewire.engine.engine import by_person
from fusewire.notify.news import ACTS, subject_of
from fusewire.util.durations import counted, seconds_until, show_time
from fusewire.util.errors import NotFound

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.notify.news import Item
    from fusewire.stores.rows import AuditRow

#: Characters. Evidence, not an archive; and phones show less.
_LONGEST = 2000

#: Of messages that tell of many things: characters of a line, and of what is said beside the lines; and how many
#: things a webhook gets as facts.
_LONGEST_LINE = 160
_AROUND = 250
_MOST = 100

#: Behind these a character without width goes, so that chats see neither a mention nor a link.
_OBEYED = re.compile(r"@|\](?=[(\[:])")


@dataclass(frozen=True, slots=True)
class Message:
    """What a target gets. `fields` are the same facts for programs; a webhook gets them beside the text."""

    title: str
    body: str
    severity: str = "info"
    fields: dict[str, Any] = field(default_factory=dict)


def message_of(
    item: Item, breaker: Breaker, now: float, *, again: int = 0, since: float = 0.0, lost: int = 0
) -> Message:
    """The message of an item; `again` times since then the same was not told, and so many messages were lost."""
    lines = _lines(item, breaker, now)
    if again:
        lines.append(f"And {counted(again, 'more time')} since {_clock(since)}, which was not told one by one.")
    body = "\n".join(lines + _lost(lost))
    shown = f"session {item.session[:8]}" if item.kind == "answers" else "" if item.kind == "notices" else item.subject
    project = os.path.basename(breaker.root or "") or "fusewire"
    return Message(
        _title(item.severity, f"{item.what} {_readable(shown)}".strip(), project),
        body if len(body) <= _LONGEST else f"{body[: _LONGEST - 3]}...",
        item.severity,
        {"project": _line(project), **_facts(item)},
    )


def message_of_many(items: list[Item], breaker: Breaker, *, lost: int = 0) -> Message:
    """One message of many items, what matters most first; nothing is left out without being counted."""
    ranked = sorted(items, key=lambda item: (not item.is_urgent, -SEVERITIES.index(item.severity)))
    lines = list(dict.fromkeys(_line_of(item) for item in ranked))
    shown = lines[: _most_lines(lines)]
    rest = [] if len(shown) == len(lines) else [f"... and {len(lines) - len(shown)} others; see: fusewire status --all"]
    first = f"And {len(items)} more, told together because so much came at once:"
    project = os.path.basename(breaker.root or "") or "fusewire"
    severity = ranked[0].severity
    facts = {**dict.fromkeys(_facts(ranked[0])), "event": "more", "severity": severity}
    facts |= {"reason": first[:-1], "at": show_time(items[-1].at), "items": [_facts(item) for item in ranked[:_MOST]]}
    body = "\n".join([first, *shown, *rest, *_lost(lost)])
    title = _title(severity, f"and {len(items)} more", project)
    return Message(title, body, severity, {"project": _line(project), **facts})


def _title(severity: str, what: str, project: str) -> str:
    return f"Fusewire: {'ALERT, ' if severity == 'alert' else ''}{what} (project {_readable(project)})"


def _facts(item: Item) -> dict[str, Any]:
    return {
        "circuit": None if item.move is None else item.move.circuit,
        "event": item.what.lower(),
        "severity": item.severity,
        "reason": _line(item.text),
        "session": item.session or None,
        "at": show_time(item.at),
    }


def _lost(count: int) -> list[str]:
    return (
        [f"{counted(count, 'message')} before this one could not be delivered; see: fusewire notify"] if count else []
    )


def _line_of(item: Item) -> str:
    """An item in a line."""
    subject = "" if item.kind == "notices" else f" {_readable(item.subject)}"
    alert = "ALERT, " if item.severity == "alert" else ""
    line = f"{alert}{item.what}{subject}: {_readable(item.text)}"
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..."


def _most_lines(lines: list[str]) -> int:
    """How many of them fit into a message, with room for what stands around them."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return sum(size <= _LONGEST - _AROUND for size in sizes)


def test_message(root: str, now: float) -> Message:
    project = os.path.basename(root) or "fusewire"
    body = f"This is a test of `fusewire notify test`, sent at {_clock(now)}. Nothing has happened."
    fields = {
        "project": _line(project),
        "circuit": None,
        "event": "test",
        "severity": "info",
        "reason": "a test",
        "session": None,
        "at": show_time(now),
    }
    return Message(f"Fusewire: test (project {_readable(project)})", body, "info", fields)


def _lines(item: Item, breaker: Breaker, now: float) -> list[str]:
    if item.kind == "notices":
        return [_readable(item.text), "A person who has seen it can run: fusewire doctor --acknowledge"]
    if item.kind == "answers":
        return _answer_lines(item, breaker)
    assert item.move is not None
    return _move_lines(item.move, breaker, now)


def _answer_lines(item: Item, breaker: Breaker) -> list[str]:
    halted = item.what == "HALTED"
    state = SessionMemory.recalled(breaker.store, session_name(item.session))
    said = state.last_halt if halted else state.last_told
    rule = item.subject.partition(" ")[2]
    what = "stopped" if halted else "warned"
    # Without its prompt, which may hold a secret: a message leaves this machine.
    since = f"since {_clock(state.since)}" if state.since is not None else ""
    name = f"{_readable(item.session)} ({', '.join(filter(None, (_readable(state.client), since)))})"
    head = [f"The agent of session {name} was {what} at {_clock(item.at)} by {_readable(rule)}."]
    call = [f"It wanted: {_readable(item.text)}"] if item.text else []
    lines = [_readable(line) for line in said.split("\n") if line]
    return [*head, *call, *lines, f"It {goes_on(rule, 'you speak')}." if halted else "It goes on."]


def _move_lines(row: AuditRow, breaker: Breaker, now: float) -> list[str]:
    by = f", by {_readable(row.actor)}" if row.actor and row.cause in ACTS else ""
    when = f"{PUBLIC_STATE.get(row.source, row.source)} -> {PUBLIC_STATE.get(row.target, row.target)}"
    when = f"{row.cause} at {_clock(row.at)}{by}" if row.source == row.target else f"{when} at {_clock(row.at)}{by}"
    try:
        policy, state = breaker.engine.view(row.circuit)
    except NotFound:
        return [f"{_readable(subject_of(row.circuit))}: {_readable(row.reason) or row.cause}.", f"{when}."]
    rule = _readable(rule_id(policy, subject_of(row.circuit)))
    if row.target != "open" or state.phase != "open":
        lines = [f"{rule}: {_readable(row.reason) or row.cause}.", f"{when}."]
        moved_on = state.phase != row.target and row.target in PUBLIC_STATE
        return [*lines, f"It has moved on since: it is {PUBLIC_STATE[state.phase]} now."] if moved_on else lines
    evidence = [f"last: {_readable(state.evidence)}"] if state.evidence else []
    evidence += [f"{state.trips} trips so far"] if state.trips > 1 else []
    session = [f"session: {_readable(row.actor)}"] if row.actor and not by else []
    until = cooled_at(policy, state, now)
    decision = Decision(
        "deny",
        circuit=row.circuit,
        rule=rule,
        reason=_readable(row.reason),
        evidence=(f"{when}", *evidence, *session),
        retry_after=None if until is None else seconds_until(until, now),
        next=tuple(map(_readable, fill_in(policy.next, policy, row.circuit))),
        by_person=tuple(map(_readable, by_person(policy, row.circuit, state.phase))),
        phase=state.phase,
        tripped=True,
    )
    return message_lines(decision, now)


def _readable(text: str) -> str:
    """In one line, without what a terminal, a phone or a chat would obey: a link under another name, a mention."""
    return _OBEYED.sub("\\g<0>\u200b", _line(text))


def _line(text: str) -> str:
    """In one line, and otherwise as it was."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _clock(moment: float) -> str:
    return f"{(show_time(moment) or '')[:16].replace('T', ' ')} UTC"

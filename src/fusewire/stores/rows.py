"""The rows that stores keep, and how many of them: a store never grows with its history."""

from __future__ import annotations

from fusewire.core.events import Noun, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.util.fast_json import JsonObject

#: Rows of one circuit's log that changed something, and of those that did not (refusals, duplicates).
KEPT_ROWS = 500
OTHER_ROWS = 100

#: Rows of all logs together, of the audit trail, and circuits (those of constraints are never dropped).
LOG_ROWS = 5000
AUDIT_ROWS = 1500
CIRCUITS = 1000
NOTICES = 100

#: What agents did in sessions, of all of them together.
DOINGS = 5000

#: Kinds of doings that people may want to hear of.
ANSWERS = ("told", "halted")

#: Seconds for which a circuit of a session is kept although nobody asks it, open or not.
SESSION_KEPT = 7 * 86400

#: Every so many writes the limits above are enforced: often enough to hold, rarely enough to cost nothing.
TRIM_EVERY = 128

_set = object.__setattr__


class CircuitRow(Noun):
    """A circuit as stored; `state` is None if it cannot be read."""

    __slots__ = ("id", "kind", "phase", "state")

    def __init__(self, id: str, kind: str, phase: str, state: JsonObject | None) -> None:
        _set(self, "id", id)
        _set(self, "kind", kind)
        _set(self, "phase", phase)
        _set(self, "state", state)

    id: str
    kind: str
    phase: str
    state: JsonObject | None


class LogRow(Noun):
    """One signal that reached a circuit, and what it did there."""

    __slots__ = ("at", "circuit", "effect", "kind", "name", "session", "text", "value")

    def __init__(
        self,
        circuit: str,
        at: float,
        kind: str,
        name: str,
        text: str,
        session: str | None,
        value: float,
        effect: str,
    ) -> None:
        _set(self, "circuit", plain(circuit))
        _set(self, "at", at)
        _set(self, "kind", kind)
        _set(self, "name", name)
        _set(self, "text", plain(text))
        _set(self, "session", None if session is None else plain(session))
        _set(self, "value", value)
        #: counted, duplicate, refused, late, or nothing in particular
        _set(self, "effect", effect)

    circuit: str
    at: float
    kind: str
    name: str
    text: str
    session: str | None
    value: float
    effect: str


class AuditRow(Noun):
    """One move of a circuit, or one act of a person."""

    __slots__ = ("actor", "at", "cause", "circuit", "reason", "source", "target")

    def __init__(self, circuit: str, at: float, source: str, target: str, cause: str, reason: str, actor: str) -> None:
        _set(self, "circuit", plain(circuit))
        _set(self, "at", at)
        _set(self, "source", source)
        _set(self, "target", target)
        _set(self, "cause", cause)
        _set(self, "reason", plain(reason))
        _set(self, "actor", plain(actor))

    circuit: str
    at: float
    source: str
    target: str
    cause: str
    reason: str
    actor: str


class Doing(Noun):
    """One thing that an agent did in a session, or that happened to it there."""

    __slots__ = ("agent", "at", "kind", "session", "text", "tool", "value")

    def __init__(
        self, session: str, agent: str, at: float, kind: str, tool: str, text: str, value: float = 0.0
    ) -> None:
        _set(self, "session", plain(session))
        _set(self, "agent", plain(agent))
        _set(self, "at", at)
        #: ok, failed, told, refused, halted (of a call); prompt (a person spoke); spend (value: dollars so far)
        _set(self, "kind", kind)
        _set(self, "tool", plain(tool))
        _set(self, "text", plain(text))
        _set(self, "value", value)

    session: str
    agent: str
    at: float
    kind: str
    tool: str
    text: str
    value: float

"""Define the rows that stores keep, and how many: a store never grows with its history."""

from __future__ import annotations

from fusewire.core.events import Noun, mark, plain
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

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

#: Answers that were not a plain allow, of all sessions together.
DECISIONS = 2000

#: What their codes are written with: nothing that looks like something else.
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE = 5

#: Kinds of doings that people may want to hear of.
ANSWERS = ("told", "halted")

#: Seconds for which a circuit of a session is kept although nobody asks it, open or not.
SESSION_KEPT = 7 * 86400

#: Later than any time, and no condition on what was spent.
FAR = 1e12
EVERYTHING: Mapping[str, str] = {}

#: Every so many writes the limits above are enforced: often enough to hold, rarely enough to cost nothing.
TRIM_EVERY = 128


class CircuitRow(Noun):
    """A circuit as stored; `state` is None if it cannot be read."""

    id: str
    kind: str
    phase: str
    state: JsonObject | None


class LogRow(Noun):
    """One signal that reached a circuit, and what it did there."""

    circuit: str
    at: float
    kind: str
    name: str
    text: str
    session: str | None
    value: float
    #: counted, duplicate, refused, late, or nothing in particular
    effect: str

    def _normalize(self, values: dict[str, Any]) -> None:
        values["circuit"], values["text"] = plain(self.circuit), plain(self.text)
        values["session"] = None if self.session is None else plain(self.session)


class AuditRow(Noun):
    """One move of a circuit, or one act of a person."""

    circuit: str
    at: float
    source: str
    target: str
    cause: str
    reason: str
    actor: str

    def _normalize(self, values: dict[str, Any]) -> None:
        values.update((name, plain(values[name])) for name in ("circuit", "reason", "actor"))


class Doing(Noun):
    """One thing that an agent did in a session, or that happened to it there."""

    session: str
    agent: str
    at: float
    #: ok, failed, told, refused, halted (of a call); prompt (a person spoke); spend (value: dollars so far)
    kind: str
    tool: str
    text: str
    value: float = 0.0

    def _normalize(self, values: dict[str, Any]) -> None:
        values.update((name, plain(values[name])) for name in ("session", "agent", "tool", "text"))


class DecisionRow(Noun):
    """An answer to an agent that was not a plain allow, or what a rule in `log` mode would have answered."""

    at: float
    session: str
    #: told, asked, refused, halted, logged
    kind: str
    rule: str
    #: see `breakers.session.decided`
    data: JsonObject
    #: what people call it; the store gives it
    code: str = ""

    def _normalize(self, values: dict[str, Any]) -> None:
        values.update((name, plain(values[name])) for name in ("session", "kind", "rule"))

    def coded(self, attempt: int = 0) -> DecisionRow:
        """With a code of its own, another one at each attempt."""
        number = int(mark(repr(self.at), self.session, self.rule, dumps(self.data), str(attempt)), 16)
        code = ""
        while len(code) < _CODE:
            number, letter = divmod(number, len(_LETTERS))
            code += _LETTERS[letter]
        coded: DecisionRow = self.replace(code=code)
        return coded


class SpendRow(Noun):
    """What a session has spent in one quarter of an hour, with one model, on one branch, by one agent in it."""

    session: str
    #: seconds since 1970, at the beginning of the quarter
    at: int
    branch: str
    model: str
    #: the sub-agent; empty for the session's own agent
    helper: str
    #: the run or slice that it was spent for
    task: str
    agent: str
    usd: float
    #: in the order of `money.KINDS`
    tokens: tuple[int, ...]
    #: requests to a model, and starts of an agent
    calls: int = 0
    starts: int = 0
    #: which store it was copied from, and the project of that
    source: str = ""
    project: str = ""
    version: int = 0

    def _normalize(self, values: dict[str, Any]) -> None:
        names = ("session", "branch", "model", "helper", "task", "agent", "project")
        values.update((name, plain(values[name])) for name in names)

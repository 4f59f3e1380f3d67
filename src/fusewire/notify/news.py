"""Collect what there is to tell: moves of circuits, warned and halted agents, notices, in the order of the store.

They were written by the transaction that made them, so that nothing is told that did not happen, and nothing that
happened is lost. Each kind has numbers of its own; how far somebody has been told is one number for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING

from fusewire.breakers.loop.questions import ASKED
from fusewire.breakers.session.ended import EndedSessions
from fusewire.breakers.session.state import KEYED
from fusewire.core.decision import PUBLIC_STATE
from fusewire.stores.rows import AuditRow
from fusewire.util.errors import NotFound

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import Doing

#: The kinds of news; each has numbers of its own.
KINDS = ("moves", "answers", "notices")

#: Causes of moves that are acts of people; behind all others stands a session, or nobody.
ACTS = frozenset(("reset", "retried", "overridden", "override ended", "archived", "imported", "ended"))


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to tell. Without a severity nobody is told of it."""

    kind: str
    number: int
    at: float
    #: under these it is asked for in a target's `circuits`
    names: tuple[str, ...]
    severity: str
    #: what happened in a word, and to what; together they say whether it is the same as something that was told
    what: str
    subject: str
    text: str
    move: AuditRow | None = None
    session: str = ""

    @property
    def key(self) -> str:
        return f"{self.severity} {self.what} {self.subject}"

    @property
    def is_urgent(self) -> bool:
        """An alert, or a constraint that was broken: tried also where a target is left alone."""
        of_constraint = self.move is not None and "/" not in self.move.circuit
        return self.severity == "alert" or (self.severity == "trip" and of_constraint)


def news(breaker: Breaker, upto: dict[str, int]) -> list[Item]:
    """What came behind the numbers, in order."""
    store = breaker.store
    noticed = [_noticed(*row) for row in store.notices_after(upto["notices"])]
    answered = [_answered(breaker, *row) for row in store.answers(upto["answers"])]
    moved = [_moved(breaker, *row) for row in store.moves(upto["moves"])]
    return list(merge(moved, answered, noticed, key=lambda item: item.at))


def openings(breaker: Breaker, since: float, number: int) -> list[Item]:
    """Of circuits that have opened since then and still are, but whose move is no longer in the audit trail."""
    found = []
    ended = EndedSessions(breaker.store, breaker.engine.clock())
    for circuit in breaker.store.circuits():
        if circuit.phase == "closed" or ended.of(circuit.id) is not None:
            continue
        try:
            _, state = breaker.engine.view(circuit.id)
        except NotFound:
            continue
        opened = state.opened_at
        if opened is None or opened <= since or any(map(_opens, breaker.store.audit_of(circuit.id, opened))):
            continue
        row = AuditRow(circuit.id, opened, "closed", "open", "tripped", state.reason, "")
        found.append(_moved(breaker, number, row))
    return sorted(found, key=lambda item: item.at)


def _opens(row: AuditRow) -> bool:
    return row.source != row.target == "open"


def _moved(breaker: Breaker, number: int, row: AuditRow) -> Item:
    severity = _severity(breaker, row)
    stays = row.source == row.target or row.target not in PUBLIC_STATE
    what = row.cause.upper() if stays else PUBLIC_STATE[row.target]
    stands = severity == "alert" and row.circuit.startswith("tool/")  # in `status`, see `views.warnings.alerts`
    names = (row.circuit, "notice") if stands else (row.circuit,)
    return Item(
        *("moves", number, row.at, names, severity, what),
        *(subject_of(row.circuit), row.reason, row, "" if row.cause in ACTS else row.actor),
    )


def _answered(breaker: Breaker, number: int, row: Doing) -> Item:
    rule, _, call = row.text.partition(": ")
    circuit = _circuit_of(rule)
    names: tuple[str, ...] = ("halt", circuit)
    severity, what = "alert", "HALTED"
    if row.kind == "told":
        names, what = (circuit,), "WARNED"
        severity = "warning" if _is_limit(breaker, circuit) else ""
    subject = f"{row.session} {rule}"
    return Item("answers", number, row.at, names, severity, what, subject, call, session=row.session)


def _is_limit(breaker: Breaker, circuit: str) -> bool:
    """A limit has no move to its warning level, so that what the agent is told there is all that there is to tell."""
    try:
        policy, _ = breaker.engine.view(circuit)
    except NotFound:
        return False
    return any(meter.limits for meter in policy.meters)


def _noticed(number: int, at: float, text: str) -> Item:
    return Item("notices", number, at, ("notice",), "alert", "NOTICE", text, text)


def _severity(breaker: Breaker, row: AuditRow) -> str:
    if row.cause == ASKED:
        return "alert"
    if row.source == row.target or row.target not in ("open", "watch"):
        return "info"
    if row.target == "watch":
        return "warning"
    try:
        policy, state = breaker.engine.view(row.circuit)
    except NotFound:
        return "trip"
    again = policy.alert_from and state.last_trip == row.at and state.in_a_row >= policy.alert_from
    return "alert" if again or row.reason.endswith("after a recovery") else "trip"


def subject_of(circuit: str) -> str:
    """A circuit without the session in its id: what happens to one session after the other is the same."""
    kind, *rest = circuit.split("/")
    if kind != "tool" or not rest:
        return circuit
    breaker, *parts = rest
    named = (parts[:-1] or parts) if breaker in KEYED else []
    return "/".join((kind, breaker, *named))


def _circuit_of(rule: str) -> str:
    """The circuit behind a rule: `tool/spend/S` of `tool.spend:S`."""
    name, _, key = rule.partition(":")
    kind, dot, breaker = name.partition(".")
    return "/".join(part for part in (kind, breaker, key) if part) if dot else key or name

"""Ids as people write them: circuits inside a session have it in their id, and nobody types a session's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.decision import merge
from fusewire.core.events import Signal, identifier
from fusewire.util.errors import NotFound

if TYPE_CHECKING:
    from fusewire.core.decision import Decision
    from fusewire.engine.breaker import Breaker

_KIND = "tool/"


def resolve_ids(breaker: Breaker, circuit: str) -> list[str]:
    """The circuit itself if it has a state; else all stored `ID/...` of sessions; else what was written."""
    if not circuit.startswith(_KIND) or breaker.store.circuit(identifier(circuit)) is not None:
        return [circuit]
    prefix = f"{circuit.rstrip('/')}/"
    found = [row.id for row in breaker.store.circuits() if row.id.startswith(prefix) and is_known(breaker, row.id)]
    return found or [circuit]


def is_known(breaker: Breaker, circuit: str) -> bool:
    try:
        breaker.rules.policy(circuit)
    except NotFound:
        return False
    return True


def strictest(breaker: Breaker, circuits: list[str]) -> Decision:
    """What the strictest of several would answer. Nothing is counted, and nobody's one probe is taken."""
    decisions = []
    for circuit in circuits:
        name = breaker.rules.policy(circuit).asks()
        decision = breaker.engine.foresee(Signal("ask", circuit, name))
        if decision.lease is not None:
            decision = decision.replace(lease=None, reason=decision.reason.replace("this is the one", "ready for one"))
        decisions.append(decision)
    return merge(decisions)

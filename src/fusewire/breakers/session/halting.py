"""Halt a session until a person speaks, whichever of its agents asks next.

A halt that falls in a helper ends, in some programs, that helper alone; in others it is no more than a refusal. So it
is remembered with the session, and every agent in it gets the same answer. One that keeps asking is ended as a process:
a model that is only refused goes on for ever, and every refusal costs another of its replies.
"""

from __future__ import annotations

from fusewire.breakers.session.state import Repeats, SessionHalt, SessionMemory, amend
from fusewire.core.decision import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.stores import Store

#: Halts that one agent did not heed, after which the process is ended. Of helpers at work together each is told once.
_UNHEEDED = 3


def halt(unit: UnitOfWork, rule: str, text: str, *, circuit: str = "", call: str = "", stays: bool = True) -> Decision:
    """The answer that stops the agent. `circuit` is the one that is open, if one is: closed by a person, it lifts the
    halt. One that does not stay is decided anew at every call."""
    unit.state.last_halt = text
    if stays:
        unit.state.halted = SessionHalt(rule, text, circuit, unit.now)
    return _answer(unit, rule, text, call)


def still_halted(unit: UnitOfWork, call: str = "") -> Decision | None:
    """The same answer again, if the session is halted."""
    known = unit.state.halted
    if known is None or unit.rules.is_softened(known.rule):
        return None
    if known.circuit and _is_closed(unit, known.circuit):
        unit.state.halted = None
        return None
    return _answer(unit, known.rule, known.text, call)


def lift_guard_halts(store: Store, now: float) -> None:
    """A person has accepted the protected files as they are: sessions that were halted for them may go on."""
    for name, _ in store.remembered("session/"):
        halted = SessionMemory.recalled(store, name).halted
        if halted is not None and halted.rule.startswith("guard."):
            amend(store, name, now, halted=None)


def _answer(unit: UnitOfWork, rule: str, text: str, call: str) -> Decision:
    if not call:
        return Decision("halt", rule=rule, text=text)
    halts = unit.lane.halts = unit.lane.halts or Repeats.none()
    halts.add(unit.turn, call, unit.event.call)
    return Decision("halt", rule=rule, text=text, unheeded=halts.times > _UNHEEDED)


def _is_closed(unit: UnitOfWork, circuit: str) -> bool:
    if not unit.is_on(circuit):
        return True
    state = unit.engine.load(unit.transaction, unit.rules.policy(circuit), circuit, unit.now)
    return state is not None and state.phase == "closed"

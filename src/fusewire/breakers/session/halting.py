"""A session that is halted stays so until a person speaks, whichever of its agents asks next.

A halt that falls in a helper ends, in some programs, that helper alone; in others it is no more than a refusal. So it
is remembered with the session, and everybody in it is told the same. Who asks again and again all the same is ended as
a process: a model that is only refused goes on for ever, and every refusal costs another of its replies.
"""

from __future__ import annotations

from fusewire.breakers.session.unit_of_work import counted_again
from fusewire.core.decision import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.session.unit_of_work import Moment
    from fusewire.stores import Store

#: Halts that one agent did not heed, after which the process is ended. Of helpers at work together each is told once.
_UNHEEDED = 3


def halt(moment: Moment, rule: str, text: str, *, circuit: str = "", call: str = "", stays: bool = True) -> Decision:
    """The answer that stops the agent. `circuit` is the one that is open, if one is: closed by a person, it lifts the
    halt. One that does not stay is decided anew at every call."""
    moment.record["last_halt"] = text
    if stays:
        moment.record["halted"] = {"rule": rule, "text": text, "circuit": circuit, "at": moment.now}
    return _answer(moment, rule, text, call)


def still_halted(moment: Moment, call: str = "") -> Decision | None:
    """The same answer again, if the session is halted."""
    known = moment.record["halted"]
    circuit = known.get("circuit")
    if circuit and isinstance(circuit, str) and _is_closed(moment, circuit):
        del moment.record["halted"]
        return None
    return _answer(moment, str(known.get("rule", "")), str(known.get("text", "")), call)


def lift_guard_halts(store: Store, now: float) -> None:
    """A person has accepted the protected files as they are: sessions that were halted for them may go on."""
    from fusewire.breakers.session.state import amend, recalled

    for name, _ in store.remembered("session/"):
        if str(recalled(store, name).get("halted", {}).get("rule", "")).startswith("guard."):
            amend(store, name, now, halted=None)


def _answer(moment: Moment, rule: str, text: str, call: str) -> Decision:
    if not call:
        return Decision("halt", rule=rule, text=text)
    halts = moment.lane["halts"] = counted_again(moment.lane.get("halts"), moment, call)
    return Decision("halt", rule=rule, text=text, unheeded=halts[0] > _UNHEEDED)


def _is_closed(moment: Moment, circuit: str) -> bool:
    if not moment.is_on(circuit):
        return True
    state = moment.engine.load(moment.transaction, moment.rules.policy(circuit), circuit, moment.now)
    return state is not None and state.phase == "closed"

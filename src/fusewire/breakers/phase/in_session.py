"""Refuse an agent's edits in its session while the phase that it has begun is open.

Only the session that has begun the phase is refused, and only until a person has decided about the phase or has
prompted the agent: work on something else has nothing to do with a phase, however long it is open. Commands pass: they
may be needed for the diagnosis.
"""

from __future__ import annotations

import os

from fusewire.breakers.session.opening import PATIENCE
from fusewire.config.rules import PHASE_FILE
from fusewire.util.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.stores import Store

    Commands = list[list[str]]

#: The phases' state file begins with their state.
_OPEN = b'"state": "OPEN"'
_HEAD = 64


def are_in_use(home: str) -> bool:
    """One look: without this file no phase has been begun or ended yet."""
    return os.path.lexists(os.path.join(home, PHASE_FILE))


def after_call(event: Event, commands: Commands | None, home: str) -> None:
    """Note which phase an agent has begun."""
    for call in event.calls or (event,):
        line = call.command or ""
        if call.failed is False and "fusewire" in line and " phase " in line and are_in_use(home):
            _note_begun(call, None if event.calls else commands, home)


def _note_begun(call: Event, commands: Commands | None, home: str) -> None:
    from fusewire.breakers.attempt.test_commands import own_act
    from fusewire.breakers.phase.detect import PHASES
    from fusewire.breakers.session.calls import commands_of
    from fusewire.engine.breaker import Breaker

    for words in commands_of(call) if commands is None else commands:
        act, operands = own_act(words, "phase")
        phase = operands[0].upper() if operands else ""
        if act == "begin" and phase in PHASES:
            with Breaker.open(project=home, patience=PATIENCE) as breaker, breaker.store.transact() as transaction:
                transaction.remember(_name(call), {"phase": phase, "told": False}, breaker.engine.clock())


def before_call(event: Event, home: str) -> Decision | None:
    """An edit while the phase that this session has begun is open: warned once, then refused."""
    from fusewire.core.events import changes_files

    if not changes_files(event.tool) or not event.paths or not _may_be_open(home):
        return None
    from fusewire.breakers.phase.detect import circuit_of
    from fusewire.breakers.phase.end import RESOLVE
    from fusewire.core.events import Signal
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=home, patience=PATIENCE) as breaker:
        begun = _recall(breaker.store, event)
        if begun is None:
            return None
        phase, warned = begun
        decision = breaker.engine.foresee(Signal("ask", circuit_of(phase), "action"))
        if decision.allowed:
            return None
        refused: Decision = decision.replace(next=("stop working on it, and report to the user",), by_person=(RESOLVE,))
        if warned:
            return refused
        with breaker.store.transact() as transaction:
            transaction.remember(_name(event), {"phase": phase, "told": True}, breaker.engine.clock())
        last = "this edit is the last that passes: further ones are refused."
        warning: Decision = refused.replace(verdict="tell", evidence=(*refused.evidence, last))
        return warning


def spoken(event: Event, home: str) -> None:
    """A person has said something: what the agent does now is that person's task, until it begins a phase again."""
    if not are_in_use(home):
        return
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=home, patience=PATIENCE) as breaker:
        if _recall(breaker.store, event) is not None:
            with breaker.store.transact() as transaction:
                transaction.drop(_name(event))


def _may_be_open(home: str) -> bool:
    try:
        return _OPEN in read_regular(os.path.join(home, PHASE_FILE), _HEAD)
    except OSError:
        return False


def _recall(store: Store, event: Event) -> tuple[str, bool] | None:
    """The phase that the session has begun, and whether the agent was warned that it is open."""
    from fusewire.breakers.phase.detect import PHASES
    from fusewire.breakers.session.state import recalled

    known = recalled(store, _name(event))
    phase = known.get("phase")
    return (phase, known.get("told") is True) if phase in PHASES else None


def _name(event: Event) -> str:
    """Below the session's own memory, so that it goes with it."""
    return f"session/{event.session or 'none'}/~phase"

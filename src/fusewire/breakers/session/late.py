"""Answer events that could not be counted in time by what holds without the write lock, and count them later."""

from __future__ import annotations

import os

from fusewire.breakers.session.state import SessionHalt
from fusewire.breakers.session.unit_of_work import ALLOWED, HALTED_AT
from fusewire.config.rules import STATE_FOLDER
from fusewire.core.decision import Decision, strictest
from fusewire.core.events import Event
from fusewire.stores import spool
from fusewire.stores.dry_run import DryRun
from fusewire.stores.rows import DecisionRow
from fusewire.util.errors import in_a_line, is_broken, is_exhaustion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.session.calls import Commands
    from fusewire.breakers.session.tool_calls import ToolCallBreakers
    from fusewire.stores import Transaction
    from fusewire.util.fast_json import JsonObject

#: Characters of a result that are kept: enough to tell it from another.
_RESULT = 8000

#: Fields of an event that are tuples; JSON has lists.
_TUPLES = ("paths", "running")


def answer(
    watch: ToolCallBreakers,
    event: Event,
    commands: Commands | None,
    looks: bool,
    refused_by: str,
    problem: str,
    earlier: Sequence[Decision] = (),
) -> Decision:
    """The answer to an event that could not be counted: a halt and an open circuit hold all the same.

    What has happened is counted later. A call that was asked for and passes is not: its result will be.
    """
    found = Decision("allow", remarks=(problem,))
    if event.kind == "before_tool" or event.kind in HALTED_AT:
        try:
            standing = _standing(watch, event, commands, looks, refused_by)
            if standing is not None:
                found = standing.replace(text=f"{standing.text}\n{problem}")
        except Exception as error:  # it cannot be read either, but for the second copy of a halt
            if is_broken(error):
                raise
            on_file = watch.store.halt_on_file(event.session or "none")
            if on_file:
                halted = SessionHalt.from_data(on_file)
                found = Decision("halt", rule=halted.rule, text=f"{halted.text}\n{problem}")
            elif is_exhaustion(error) and event.kind == "before_tool":
                text = f"BLOCKED fusewire.failure: the state of this session cannot be read: {in_a_line(error)}"
                found = Decision("deny", rule="fusewire.failure", text=f"{text}\n{problem}")
    whole = strictest((*earlier, found))
    if watch.root is not None and whole is not None and whole.verdict != "allow":
        from fusewire.breakers.session.decided import note_later

        found = found.replace(code=note_later(event, whole, watch.root, watch.clock()).code)
    if event.kind == "before_tool" or watch.root is None:
        return found
    try:
        spool.put(os.path.join(watch.root, STATE_FOLDER), {"event": _data(event), "looks": looks})
    except (OSError, ValueError, TypeError) as error:
        return _not_counted(found, error)
    # Only who begins hears that it was late: the folder was not tidied up.
    return ALLOWED if found.verdict == "allow" and event.kind != "session_start" else found


def _not_counted(found: Decision, error: Exception) -> Decision:
    why = f"; not counted: {in_a_line(error)}"
    if found.verdict == "allow":
        return Decision("allow", remarks=tuple(f"{remark}{why}" for remark in found.remarks), code=found.code)
    worded: Decision = found.replace(text=f"{found.text}{why}")
    return worded


def _standing(
    watch: ToolCallBreakers, event: Event, commands: Commands | None, looks: bool, refused_by: str
) -> Decision | None:
    """What refuses the event as things stand; nothing is written, and no lock is waited for."""
    transaction = DryRun(watch.store)
    unit = watch.unit(transaction, event, watch.clock())
    on_file = watch.store.halt_on_file(unit.session) if unit.state.halted is None else None
    if on_file:
        unit.state.halted = SessionHalt.from_data(on_file)
    found = watch.count(unit, commands, looks, refused_by)
    if not found.allowed:  # No process is ended because of what was not counted.
        return Decision(found.verdict, rule=found.rule, text=found.text)
    if transaction.probes:
        circuit = transaction.probes[0]
        text = f"BLOCKED {circuit}: its cooldown is over, but its one probe cannot be granted now.\nNext: try again."
        return Decision("deny", rule=circuit, text=text)
    return None


def fold(watch: ToolCallBreakers, transaction: Transaction, now: float) -> tuple[list[JsonObject], list[str]]:
    """Count what waits. Returns the incidents to be logged, and the files to be removed after the commit."""
    assert watch.root is not None
    waiting, files = spool.take(os.path.join(watch.root, STATE_FOLDER), transaction, now)
    incidents: list[JsonObject] = []
    for data in waiting:
        try:
            if "decision" in data:
                transaction.decided(DecisionRow(**data["decision"]))
                continue
            event = _event(data["event"])
            unit = watch.unit(transaction, event, now)
            if event.kind == "prompt" and unit.state.halted is not None:  # anybody can put a file there
                transaction.notice("a message that came late lifts no halt; it has to be sent again", now)
                continue
            found = watch.count(unit, None, data["looks"] is True, "")
            if found.verdict != "allow":
                from fusewire.breakers.session.decided import note

                note(transaction, event, now, found, unit)
            if found.verdict == "tell":  # with its next result
                unit.state.untold = "\n".join(filter(None, (unit.state.untold, found.text)))
            unit.save()
            incidents += unit.incidents
        except Exception as error:  # whatever lies there, it must not stop the events that come after it
            transaction.notice(f"an event that came late could not be counted: {in_a_line(error)}", now)
    return incidents, files


def _data(event: Event) -> JsonObject:
    data = {name: getattr(event, name) for name in Event.fields if getattr(event, name) not in (None, "", ())}
    if event.result:
        data["result"] = event.result[:_RESULT]
    if event.calls:
        data["calls"] = [_data(call) for call in event.calls]
    return {name: list(value) if name in _TUPLES else value for name, value in data.items()}


def _event(data: JsonObject) -> Event:
    fields: JsonObject = {name: tuple(map(str, data[name])) if name in _TUPLES else data[name] for name in data}
    fields["calls"] = tuple(map(_event, data.get("calls", ())))
    texts = (fields.get(name, "") for name in ("kind", "tool", "text", "hook", "session", "call", "subagent", "result"))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("not an event")
    return Event(**fields)

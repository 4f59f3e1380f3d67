"""Count the result of a call: it goes into the history, and what repeats there to the circuits."""

from __future__ import annotations

from fusewire.breakers.session.calls import (
    ACT,
    ANSWERING_PROGRAMS,
    LOOK,
    READING,
    SEARCHING,
    SPAWNING_TOOLS,
    WAIT,
    WATCHING_PROGRAMS,
    bare,
    call_of,
    name_of,
    program_of,
)
from fusewire.breakers.session.detect import (
    NO_PROGRAM,
    NOTHING,
    REFUSED,
    PastCall,
    counted_failures,
    error_key,
    findings,
    is_change,
)
from fusewire.breakers.session.masking import masked
from fusewire.breakers.session.state import HOOKS, Alarm, LaneMemory, PendingCall, WarnedLoop
from fusewire.breakers.session.unit_of_work import ALLOWED
from fusewire.core.decision import Decision
from fusewire.core.events import mark
from fusewire.core.meters import explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.breakers.session.calls import Commands
    from fusewire.breakers.session.detect import Repetition
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.events import Event

#: Results of so many last calls are known to be on record already: an agent may report a call alone and in its batch.
_SETTLED = 64

#: A call that never ran, because the tool does not exist or was given the wrong arguments.
MALFORMED = ("<tool_use_error>InputValidationError", "<tool_use_error>Error: No such tool")

#: What the model is shown of a call that nobody permitted, and of one that a person or the agent's program ended.
DENIED = ("Permission to use ",)
CANCELLED = (
    "[Request interrupted by user",
    "The user doesn't want to ",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled: ",
)

#: How a search says that there is nothing, where it does not just say nothing.
_FOUND_NOTHING = ("No files found", "No matches found", "(Bash completed with no output)", "Found 0 ")
_NOT_THERE = ("No such file or directory", "does not exist", "not found", "no matches found")

#: Seconds after which another look at what runs elsewhere is a look again, and no haste.
_LATER = 20

#: Calls of one reply, at most, as models go.
_LONGEST_REPLY = 20

#: Loops that an agent was told of and that are remembered.
_WATCHED = 32

#: Calls of a loop that are refused, at most.
_IN_A_LOOP = 50

#: Programs that say so with another status: what they are asked about is refused, or is not done yet.
_SAYS_NO = {"fusewire": "Exit code 3", "gh": "Exit code 8"}

#: Breakers whose circuits another change ends: the call may bring something else now.
_ENDED_BY_CHANGE = frozenset(
    ("repetition", "cycle", "long_cycle", "same_mutation", "missing_program", "barren_search", "tool_failure")
)


def after(unit: UnitOfWork, commands: Commands | None, looks: bool) -> Decision:
    """One result, or those of a whole reply. A batch also shows calls that nobody was asked about: wrong arguments."""
    event = unit.event
    found: list[Decision] = []
    if event.hook == "PostToolBatch":
        if unit.state.batched is not True:
            unit.state.batched = True
            unit.transaction.remember(HOOKS, {"batched": True}, unit.now)
        last = event.calls[-1].call if event.calls else None
        if last and unit.lane.batch == last:
            return ALLOWED  # reported twice: we are registered in two places
        unit.lane.batch = last
        for call in event.calls:
            found += _settle(unit, call, None, False)
        unit.next_turn()
    else:
        _doubt_batches(unit)
        found += _settle(unit, event, commands, looks)
    if not found:
        return ALLOWED
    from fusewire.breakers.session.messages import refusal_text, warning_text

    for decision in found:
        if decision.verdict == "deny":  # nobody was asked before the call, so all that is left is to stop here
            from fusewire.breakers.session.halting import halt

            unit.grounds = decision
            return halt(unit, decision.rule, refusal_text(decision, unit, 1), circuit=decision.circuit)
    unit.grounds = found[0]
    return Decision("tell", rule=found[0].rule, text=warning_text(found, unit))


def _doubt_batches(unit: UnitOfWork) -> None:
    """Batches were assumed, because the sessions before had them: so many results without one, and they are not."""
    assumed = unit.state.batched
    if assumed is not False and assumed is not True:
        unit.state.batched = assumed + 1 if assumed < _LONGEST_REPLY else False


def _settle(unit: UnitOfWork, event: Event, commands: Commands | None, looks: bool) -> list[Decision]:
    lane = unit.lane
    if event.call and event.call in lane.settled:
        return []
    text = event.result or ""
    if unit.state.api_open:
        from fusewire.breakers.session.api_cost import call_ended

        call_ended(unit, event.call or call_of(event, commands, looks).mark, text)
    if event.failed is None and text.startswith("PreToolUse:"):
        return []  # refused by a hook; if it was ours, it is on record
    if event.result is None or text.startswith(CANCELLED):
        return _give_back(unit, event, commands, looks)
    pending = lane.calls.pop(event.call or "", None)
    unasked = False
    if pending is None:
        call = call_of(event, commands, looks)
        pending = lane.calls.pop(call.mark, None)
        unasked = pending is None
        pending = pending or PendingCall(call.tool, call.mark, call.nature, call.shown, [], unit.now)
    if event.call:
        lane.settled.append(event.call)
        del lane.settled[:-_SETTLED]
    # An agent that was only launched says nothing of the others that the same reply launches.
    lane.settled_any = lane.settled_any or not event.running
    lease = event.call or pending.mark
    _note_helpers(unit, event, lease)
    lane.settled_began = max(pending.began, lane.settled_began)
    tool, nature = pending.tool, pending.nature
    failed = bool(event.failed) and not _is_answer(text, program_of(tool))
    if unasked and failed and text.startswith(MALFORMED):
        tool, nature = event.tool or "unknown", ACT
    if not failed and text.startswith(DENIED):
        nature = LOOK  # nothing was changed
    if nature == LOOK and _watches(lane, pending):
        nature = WAIT
    finished = PastCall(
        *(tool, pending.mark, _result(text, failed, pending.mark), nature, failed),
        *(lane.changes, unit.turn, False, pending.shown, round(unit.now, 1)),
        absent=_absent(text, failed, tool, nature),
    )
    return _learn(unit, finished, pending.leases, lease, unasked)


def _give_back(unit: UnitOfWork, event: Event, commands: Commands | None, looks: bool) -> list[Decision]:
    """A person or the agent's program ended the call: it says nothing about the agent, and a probe that it was may be
    tried again."""
    lane = unit.lane
    lease = event.call or call_of(event, commands, looks).mark
    pending = lane.calls.pop(lease, None)
    for circuit in filter(unit.is_on, pending.leases if pending else ()):
        unit.signal("release", circuit, "release", lease=lease)
    if event.call:
        lane.settled = [*lane.settled, event.call][-_SETTLED:]
    lane.settled_any = True
    _note_helpers(unit, event, lease)
    return []


def _watches(lane: LaneMemory, pending: PendingCall) -> bool:
    """Whether the call looks after something elsewhere again, some time after the last look."""
    last = lane.past[-1] if lane.past else None
    if last is None or last.mark != pending.mark or pending.began - last.at < _LATER:
        return False
    return program_of(pending.tool) in WATCHING_PROGRAMS


def _is_answer(text: str, program: str) -> bool:
    """Whether an exit status is no failure, but says no: nothing was found, or our own program refuses something."""
    if program in _SAYS_NO:
        return text.partition("\n")[0] == _SAYS_NO[program]
    return text.strip() in ("", "Exit code 1") and program in ANSWERING_PROGRAMS


def _absent(text: str, failed: bool, tool: str, nature: str) -> str:
    """What was not there: the program, or what a search looked for."""
    name = program_of(tool)
    beginning = text[:400]
    if name and any(f"{sign}{name}" in beginning for sign in ("command not found: ", "Unknown command: ")):
        return NO_PROGRAM
    if name and any(f"{name}: {sign}" in beginning for sign in ("command not found", "not found")):
        return NO_PROGRAM
    if nature == LOOK and failed and name_of(tool) in SEARCHING | READING and any(map(beginning.count, _NOT_THERE)):
        return NOTHING
    is_empty = not text.strip() or text.startswith(_FOUND_NOTHING)
    return NOTHING if nature == LOOK and is_empty and name_of(tool) in SEARCHING else ""


def _result(text: str, failed: bool, call_mark: str) -> str:
    """The mark of a masked result. A failure that says nothing but that it failed, or that time was up, is only the
    same if the call is."""
    if text.startswith("<tool_use_error>"):
        text = text.partition("\n")[0]  # behind it, what was given is repeated
    says_nothing = failed and (
        ("\n" not in text.strip() and text.startswith("Exit code "))
        or text.startswith("Exit code 124")
        or "timed out" in text[:200].lower()
    )
    return mark("failed" if failed else "", call_mark if says_nothing else "", masked(text))


def _learn(unit: UnitOfWork, call: PastCall, leases: list[str], lease: str, unasked: bool) -> list[Decision]:
    lane, history = unit.lane, unit.lane.past
    moves = is_change(call, history)
    earlier = [old for old in history if old.mark == call.mark and old.result != REFUSED]
    history.append(call)
    unit.log_doing("failed" if call.failed else "ok", call.tool, call.shown)
    del history[: -unit.settings["memory_limits.tool_history_max"]]
    found = findings(history, unit.settings)
    tripped = _settle_probes(unit, call, leases, lease, earlier, {one.rule: one.level for one in found})
    if moves or (not tripped and call.nature != WAIT and all(old.result != call.result for old in earlier)):
        lane.refused = {}  # other work
    tripped += _count_failures(unit, history, leases)
    for one in found:
        tripped += _report(unit, one, leases, unasked)
    if earlier and earlier[-1].result != call.result:
        _something_new(unit, call)
    if moves:
        if not unasked:  # a result out of nowhere is no proof that anything was done
            _end_loops(unit, call)
        lane.changes += 1
    return tripped


def _settle_probes(
    unit: UnitOfWork, call: PastCall, leases: list[str], lease: str, earlier: list[PastCall], levels: dict[str, int]
) -> list[Decision]:
    """The one trial after a cooldown: a failure, or the same again, and the circuit opens for longer."""
    tripped = []
    before = earlier[-1] if earlier else None
    for circuit in filter(unit.is_on, leases):
        breaker = circuit.split("/")[1]
        if breaker in ("tool_failure", "external_api"):
            bad = call.failed
        elif breaker in ("sequential_tools", "agent_spawn"):
            bad = False
        elif breaker == "same_error":
            bad = call.failed and circuit.endswith(error_key(call))
        elif breaker in ("missing_program", "barren_search"):
            bad = bool(call.absent)
        elif breaker == "same_mutation":
            bad = before is not None and before.failed == call.failed
        else:
            bad = any(old.result == call.result for old in earlier)
        name = {"tool_failure": "tool_failed", "external_api": "api_call"}.get(breaker, "repeated")
        times = levels.get(breaker, 1 + sum(old.result == call.result for old in earlier))
        kind, name = ("bad", name) if bad else ("good", "success")
        decision = unit.signal(kind, circuit, name, value=times, lease=lease, text=call.shown)
        if decision.tripped:
            tripped.append(decision)
        elif not bad:
            unit.state.alarms.pop(circuit, None)
            unit.state.watched.pop(circuit, None)
    return tripped


def _count_failures(unit: UnitOfWork, history: list[PastCall], leases: list[str]) -> list[Decision]:
    if not unit.has("tool/tool_failure/{tool}"):
        return []
    tool, circuit = _failing(unit, history[-1].tool)
    tripped = []
    counted, anew = counted_failures(history, literal=unit.settings["tool_failure.literal"])
    if anew and circuit not in unit.state.alarms:
        unit.signal("restart", circuit, "restart", text="it fails otherwise now")
    for call in counted:
        call.counted = True
        if circuit in leases:
            continue  # it was the probe, and is settled
        decision = unit.signal("bad", circuit, "tool_failed", text=call.shown, turn=call.turn)
        if decision.tripped:
            unit.state.alarms[circuit] = Alarm(unit.agent, tool, [])
            tripped.append(decision)
    return tripped


def _failing(unit: UnitOfWork, tool: str) -> tuple[str, str]:
    """By what failures of a tool are counted, with what it works on or bare where that is wanted, and the circuit."""
    name = bare(tool) if unit.settings["tool_failure.literal"] else tool
    return name, f"tool/tool_failure/{name}/{unit.lane_id}"


def _report(unit: UnitOfWork, found: Repetition, leases: list[str], unasked: bool) -> list[Decision]:
    """Tell a loop's circuit how far it has come; it says whether the agent is told, or the call refused from now on."""
    circuit = f"tool/{found.rule}/{unit.lane_id}/{found.key}"
    if circuit in leases:
        return []  # it was the probe, and is settled
    decision = unit.signal("note", circuit, "repeated", value=found.level, text=found.evidence)
    if unasked and decision.phase in ("open", "probe") and not decision.tripped:
        return [unit.signal("ask", circuit, "action", text=found.evidence)]
    if decision.phase in ("open", "probe"):
        alarms = unit.state.alarms
        known = alarms[circuit].calls if circuit in alarms else []
        calls = [*known, *(call for call in found.calls if call not in known)][-_IN_A_LOOP:]
        alarms[circuit] = Alarm(unit.agent, found.tool, calls)
    if decision.phase == "watch" and not _is_news(unit, circuit, found):
        return []
    if decision.tripped or decision.verdict == "tell":
        words: dict[str, Any] = {"evidence": (f"last: {found.evidence}",)}
        if found.reason:
            words |= {"reason": found.reason, "next": found.next, "by_person": ()}
        elif found.times > found.level:  # one count in one message, and the limit is one of levels
            meter = unit.rules.policy(circuit).meters[0]
            words["reason"] = explain(meter, found.times).partition(" (limit ")[0]
        return [decision.replace(**words)]
    return []


def _is_news(unit: UnitOfWork, circuit: str, found: Repetition) -> bool:
    """Whether the agent has not been told yet that the loop has come so far."""
    watched = unit.state.watched
    last = watched.pop(circuit, None)
    level = last.level if last else 0
    # What goes on across changes is not over because of the next one.
    watched[circuit] = WarnedLoop(unit.agent, max(level, found.level), None if found.reason else list(found.calls))
    while len(watched) > _WATCHED:
        del watched[next(iter(watched))]
    return found.level > level


def _something_new(unit: UnitOfWork, call: PastCall) -> None:
    """The same call brought another result: no abuse, and the row starts anew."""
    row = unit.lane.row
    if row is None or row.tool != call.tool or call.mark not in row.times:
        return
    if row.times[call.mark] > 1:
        unit.signal("note", f"tool/sequential_tools/{call.tool}/{unit.lane_id}", "other_call")
    row.times[call.mark] = 0


def _end_loops(unit: UnitOfWork, call: PastCall) -> None:
    """Something else was changed: what was refused because nothing moved may be tried again, and failures that were
    counted before it are how work goes."""
    alarms, watched = unit.state.alarms, unit.state.watched
    loops: list[tuple[str, Alarm | WarnedLoop]] = [*alarms.items(), *watched.items()]
    ended = {
        circuit
        for circuit, loop in loops
        if circuit.split("/")[1] in _ENDED_BY_CHANGE
        and loop.agent == unit.agent
        and loop.calls is not None
        and call.mark not in loop.calls
        and not (isinstance(loop, Alarm) and not loop.calls and loop.tool == call.tool)
    }
    if unit.has("tool/tool_failure/{tool}"):
        counted = (old.tool for old in unit.lane.past if old.counted and old.changes == call.changes)
        ended.update(_failing(unit, tool)[1] for tool in counted if tool != call.tool)
    for circuit in sorted(ended):
        unit.signal("restart", circuit, "restart", text=f"something else was changed: {call.shown}")
        alarms.pop(circuit, None)
        watched.pop(circuit, None)


def _note_helpers(unit: UnitOfWork, event: Event, lease: str) -> None:
    if event.tool in SPAWNING_TOOLS or unit.state.agents:
        from fusewire.breakers.session.spawning import call_ended

        call_ended(unit, event, lease)

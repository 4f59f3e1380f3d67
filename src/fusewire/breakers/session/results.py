"""After a call: what came back goes into the history, and what repeats in it to the circuits."""

from __future__ import annotations

from fusewire.breakers.session.calls import ACT, ANSWERING_PROGRAMS, LOOK, WAIT, WATCHING_PROGRAMS, call_of
from fusewire.breakers.session.detect import (
    AT,
    CALL,
    COUNTED,
    FAILED,
    RESULT,
    SHOWN,
    TOOL,
    TURN,
    counted_failures,
    findings,
    is_change,
)
from fusewire.breakers.session.masking import masked
from fusewire.breakers.session.state import HOOKS
from fusewire.breakers.session.unit_of_work import ALLOWED, next_turn
from fusewire.core.decision import Decision
from fusewire.core.events import mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.breakers.session.calls import Commands
    from fusewire.breakers.session.detect import Repetition
    from fusewire.breakers.session.unit_of_work import Moment
    from fusewire.core.events import Event

#: Results of so many last calls are known to be on record already: an agent may report a call alone and in its batch.
_SETTLED = 64

#: A call that never ran, because the tool does not exist or was given the wrong arguments.
MALFORMED = ("<tool_use_error>InputValidationError", "<tool_use_error>Error: No such tool")

#: What the model is shown of a call that a person interrupted, and of one that nobody permitted: neither ended.
_INTERRUPTED = "[Request interrupted by user"
DENIED = ("Permission to use ", "The user doesn't want to proceed")

#: Seconds after which another look at what runs elsewhere is a look again, and no haste.
_LATER = 20

#: Calls of one reply, at most, as models go.
_LONGEST_REPLY = 20

#: Loops that an agent was told of and that are remembered.
_WATCHED = 32

#: Programs that say so with another status: what they are asked about is refused, or is not done yet.
_SAYS_NO = {"fusewire": "Exit code 3", "gh": "Exit code 8"}

#: Circuits of loops that another change ends: the call may bring something else now.
_ENDED_BY_CHANGE = ("tool/repetition/", "tool/cycle/", "tool/same_mutation/")


def after(moment: Moment, commands: Commands | None, looks: bool) -> Decision:
    """One result, or those of a whole reply. A batch also shows calls that nobody was asked about: wrong arguments."""
    event = moment.event
    told: list[Decision] = []
    if event.hook == "PostToolBatch":
        if moment.record.get("batched") is not True:
            moment.record["batched"] = True
            moment.transaction.remember(HOOKS, {"batched": True}, moment.now)
        last = event.calls[-1].call if event.calls else None
        if last and moment.lane.get("batch") == last:
            return ALLOWED  # told twice: we are registered in two places
        moment.lane["batch"] = last
        for call in event.calls:
            told += _settle(moment, call, None, False)
        next_turn(moment)
    else:
        _doubt_batches(moment)
        told += _settle(moment, event, commands, looks)
    if not told:
        return ALLOWED
    from fusewire.breakers.session.messages import refusal_text, told_text

    for decision in told:
        if decision.verdict == "deny":  # nobody was asked before the call, so all that is left is to stop here
            from fusewire.breakers.session.halting import halt

            return halt(moment, decision.rule, refusal_text(decision, moment, 1), circuit=decision.circuit)
    return Decision("tell", rule=told[0].rule, text=told_text(told, moment))


def _doubt_batches(moment: Moment) -> None:
    """Batches were assumed, because the sessions before had them: so many results without one, and they are not."""
    assumed = moment.record.get("batched")
    if assumed is not None and assumed is not True:
        moment.record["batched"] = assumed + 1
        if assumed >= _LONGEST_REPLY:
            del moment.record["batched"]


def _settle(moment: Moment, event: Event, commands: Commands | None, looks: bool) -> list[Decision]:
    lane = moment.lane
    settled = lane.setdefault("settled", [])
    if event.call and event.call in settled:
        return []
    text = event.result or ""
    if event.failed is None and text.startswith("PreToolUse:"):
        return []  # refused by a hook; if it was ours, it is on record
    if event.result is None or text.startswith(_INTERRUPTED):
        return _give_back(moment, event, commands, looks)
    begun = lane.setdefault("calls", {}).pop(event.call or "", None)
    unasked = False
    if begun is None:
        call = call_of(event, commands, looks)
        begun = lane["calls"].pop(call.mark, None)
        unasked = begun is None
        begun = begun or [call.tool, call.mark, call.nature, call.shown, [], moment.now]
    if event.call:
        settled.append(event.call)
        del settled[:-_SETTLED]
    # An agent that was only launched says nothing of the others that the same reply launches.
    lane["settled_any"] = lane.get("settled_any") or not event.running
    tool, call_mark, nature, shown, leases, began = begun
    _note_helpers(moment, event, event.call or call_mark)
    lane["settled_began"] = max(began, lane.get("settled_began", 0))
    failed = bool(event.failed) and not _is_answer(text, _program(tool))
    if unasked and failed and text.startswith(MALFORMED):
        tool, nature = event.tool or "unknown", ACT
    if not failed and text.startswith(DENIED):
        nature = LOOK  # nothing was changed
    if nature == LOOK and _watches(lane, tool, call_mark, began):
        nature = WAIT
    entry = [tool, call_mark, _result(text, failed, call_mark), nature, failed, lane.get("changes", 0), moment.turn]
    entry += [False, shown, round(moment.now, 1)]
    return _learn(moment, entry, leases, event.call or call_mark, unasked)


def _give_back(moment: Moment, event: Event, commands: Commands | None, looks: bool) -> list[Decision]:
    """A person interrupted the call: it says nothing about the agent, and a probe that it was may be tried again."""
    lane = moment.lane
    lease = event.call or call_of(event, commands, looks).mark
    begun = lane.setdefault("calls", {}).pop(lease, None)
    for circuit in filter(moment.is_on, begun[4] if begun else ()):
        moment.signal("release", circuit, "release", lease=lease)
    if event.call:
        lane["settled"] = [*lane["settled"], event.call][-_SETTLED:]
    lane["settled_any"] = True
    _note_helpers(moment, event, lease)
    return []


def _watches(lane: dict[str, Any], tool: str, call_mark: str, began: float) -> bool:
    """Whether the call looks after something elsewhere again, some time after the last look."""
    history = lane.get("history")
    if not history or history[-1][CALL] != call_mark or began - history[-1][AT] < _LATER:
        return False
    return _program(tool) in WATCHING_PROGRAMS


def _is_answer(text: str, program: str) -> bool:
    """Whether an exit status is no failure, but says no: nothing was found, or our own program refuses something."""
    if program in _SAYS_NO:
        return text.partition("\n")[0] == _SAYS_NO[program]
    return text.strip() in ("", "Exit code 1") and program in ANSWERING_PROGRAMS


def _program(tool: str) -> str:
    return tool.partition("(")[2].rstrip(")")


def _result(text: str, failed: bool, call_mark: str) -> str:
    """The mark of a masked result. A failure that says nothing is only the same if the call is."""
    if text.startswith("<tool_use_error>"):
        text = text.partition("\n")[0]  # behind it, what was given is repeated
    says_nothing = failed and "\n" not in text.strip() and text.startswith("Exit code ")
    return mark("failed" if failed else "", call_mark if says_nothing else "", masked(text))


def _learn(moment: Moment, entry: list[Any], leases: list[str], lease: str, unasked: bool) -> list[Decision]:
    lane = moment.lane
    history = lane.setdefault("history", [])
    moves = is_change(entry, history)
    before = next((old for old in reversed(history) if old[CALL] == entry[CALL]), None)
    history.append(entry)
    moment.did("failed" if entry[FAILED] else "ok", entry[TOOL], entry[SHOWN])
    del history[: -moment.settings["memory_limits.tool_history_max"]]
    told = _settle_probes(moment, entry, leases, lease, before)
    told += _count_failures(moment, history, leases)
    for found in findings(history, moment.settings):
        told += _report(moment, found, leases, unasked)
    if before is not None and before[RESULT] != entry[RESULT]:
        _something_new(moment, entry)
    if moves:
        lane["changes"] = lane.get("changes", 0) + 1
        _end_loops(moment, entry)
    return told


def _settle_probes(
    moment: Moment, entry: list[Any], leases: list[str], lease: str, before: list[Any] | None
) -> list[Decision]:
    """The one trial after a cooldown: a failure, or the same again, and the circuit opens for longer."""
    told = []
    for circuit in filter(moment.is_on, leases):
        breaker = circuit.split("/")[1]
        if breaker in ("tool_failure", "external_api"):
            bad = entry[FAILED]
        elif breaker in ("sequential_tools", "agent_spawn"):
            bad = False
        elif breaker == "same_error":
            bad = entry[FAILED] and circuit.endswith(mark(entry[TOOL], entry[RESULT]))
        else:
            bad = before is not None and before[RESULT] == entry[RESULT]
        name = {"tool_failure": "tool_failed", "external_api": "api_call"}.get(breaker, "repeated")
        times = sum(old[CALL] == entry[CALL] and old[RESULT] == entry[RESULT] for old in moment.lane["history"])
        kind, name = ("bad", name) if bad else ("good", "success")
        decision = moment.signal(kind, circuit, name, value=max(1, times), lease=lease, text=entry[SHOWN])
        if decision.tripped:
            told.append(decision)
        elif not bad:
            moment.alarms.pop(circuit, None)
    return told


def _count_failures(moment: Moment, history: list[list[Any]], leases: list[str]) -> list[Decision]:
    if not moment.has("tool/tool_failure/{tool}"):
        return []
    entry = history[-1]
    circuit = f"tool/tool_failure/{entry[TOOL]}/{moment.lane_id}"
    told = []
    for one in counted_failures(history, literal=moment.settings["tool_failure.literal"]):
        one[COUNTED] = True
        if circuit in leases:
            continue  # it was the probe, and is settled
        decision = moment.signal("bad", circuit, "tool_failed", text=one[SHOWN], turn=one[TURN])
        if decision.tripped:
            moment.alarms[circuit] = [moment.agent, entry[TOOL], []]
            told.append(decision)
    return told


def _report(moment: Moment, found: Repetition, leases: list[str], unasked: bool) -> list[Decision]:
    """Tell a loop's circuit how far it has come; it says whether the agent is told, or the call refused from now on."""
    circuit = f"tool/{found.rule}/{moment.lane_id}/{found.key}"
    if circuit in leases:
        return []  # it was the probe, and is settled
    decision = moment.signal("note", circuit, "repeated", value=found.level, text=found.evidence)
    if unasked and decision.phase in ("open", "probe") and not decision.tripped:
        return [moment.signal("ask", circuit, "action", text=found.evidence)]
    if decision.tripped:
        moment.alarms[circuit] = [moment.agent, found.tool, list(found.calls)]
    elif decision.phase == "watch" and not _is_news(moment, circuit, found):
        return []
    if decision.tripped or decision.verdict == "tell":
        words = {"reason": found.reason, "next": found.next} if found.reason else {}
        return [decision.replace(evidence=(found.evidence,), **words)]
    return []


def _is_news(moment: Moment, circuit: str, found: Repetition) -> bool:
    """Whether the agent has not been told yet that the loop has come so far."""
    watched = moment.record.setdefault("watched", {})
    _, told, _ = watched.pop(circuit, ("", 0, ()))
    # What goes on across changes is not over because of the next one.
    watched[circuit] = [moment.agent, max(told, found.level), None if found.reason else list(found.calls)]
    while len(watched) > _WATCHED:
        del watched[next(iter(watched))]
    return bool(found.level > told)


def _something_new(moment: Moment, entry: list[Any]) -> None:
    """The same call brought another result: no abuse, and the row starts anew."""
    row = moment.lane.get("row")
    if not row or row[0] != entry[TOOL] or entry[CALL] not in row[2]:
        return
    if row[2][entry[CALL]] > 1:
        moment.signal("note", f"tool/sequential_tools/{entry[TOOL]}/{moment.lane_id}", "other_call")
    row[2][entry[CALL]] = 0


def _end_loops(moment: Moment, entry: list[Any]) -> None:
    """Something else was changed: calls that were refused because nothing moved may be tried again."""
    watched = moment.record.get("watched", {})
    for circuits in (moment.alarms, watched):
        for circuit, (agent, *_, calls) in list(circuits.items()):
            ends = circuit.startswith(_ENDED_BY_CHANGE) and agent == moment.agent and calls is not None
            if ends and entry[CALL] not in calls:
                moment.signal("restart", circuit, "restart", text=f"something else was changed: {entry[SHOWN]}")
                del circuits[circuit]


def _note_helpers(moment: Moment, event: Event, lease: str) -> None:
    from fusewire.breakers.session.calls import SPAWNING_TOOLS

    if event.tool in SPAWNING_TOOLS or moment.record.get("agents"):
        from fusewire.breakers.session.spawning import call_ended

        call_ended(moment, event, lease)

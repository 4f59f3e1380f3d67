"""The breakers inside a session: asked before every tool call, told of its result, and of what people say.

Every event is one transaction: what is remembered of the session is read, what the event adds up to is counted, the
circuits that it concerns are asked or told, and everything is written together. Most calls concern no circuit, and
then none is loaded.

The verdicts, from mild to strict: `allow`, `tell` (the call passes, the agent is told what Fusewire sees), `deny` (this
call is refused), `halt` (the agent is stopped as well: a model that is only refused asks again and again). A halt that
was `unheeded` ends the agent's process.
"""

from __future__ import annotations

import os
import time

from fusewire.breakers.session.calls import SPAWNING_TOOLS, call_of, shown
from fusewire.breakers.session.unit_of_work import ALLOWED, HALTED_AT, Moment, counted_again, next_turn
from fusewire.config.rules import STATE_FOLDER
from fusewire.core.decision import Decision
from fusewire.guard.known_agents import AGENTS_BY_NAME, STARTING_PROGRAMS
from fusewire.util.errors import StoreRebuilt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fusewire.breakers.session.calls import Call, Commands
    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.stores import Store

#: Calls that were begun and whose result nobody has seen are forgotten after so many others.
_OPEN = 64

#: Seconds that a model needs at least for another reply.
_REPLY = 1.0

#: Refusals of any kind in a row that halt the agent, in multiples of those of one kind; and how many kinds are known.
_ANY_REFUSALS = 4

#: Seconds in which the same call, without an id, is one.
_ONE_CALL = 60

#: Turns after which a refusal is no longer one of a row.
_LONG_AGO = 50

_REFUSALS = 32


#: It is there while events wait to be counted, see `late`.
_LATE = os.path.join(STATE_FOLDER, "late")


#: How an answer that is not just `allow` is called in the record of what was done; anything else was refused.
_ANSWERED = {"tell": "told", "halt": "halted"}


class ToolCallBreakers:
    """A project's sessions: a store, the rules, a clock."""

    def __init__(
        self, store: Store, rules: Rules, clock: Callable[[], float] = time.time, root: str | None = None
    ) -> None:
        self.store, self.rules, self.clock, self.root = store, rules, clock, root

    def handle(
        self, event: Event, commands: Commands | None = None, *, looks: bool = False, refused_by: str = ""
    ) -> Decision:
        """The answer to one event. `commands` is what a command line would run, `looks` that it changes nothing;
        `refused_by` names the rule outside the session that has refused the call already."""
        try:
            return self._handle(event, commands, looks, refused_by)
        except StoreRebuilt:  # the damage showed in the middle; nothing was written, and now it is mended
            return self._handle(event, commands, looks, refused_by)

    def count(self, moment: Moment, commands: Commands | None, looks: bool, refused_by: str) -> Decision:
        """Count an event inside a transaction that the caller has begun; the caller saves the moment."""
        return count(moment, self.store, prepare(moment.event, commands, looks, refused_by), refused_by)

    def _handle(self, event: Event, commands: Commands | None, looks: bool, refused_by: str) -> Decision:
        act = prepare(event, commands, looks, refused_by)
        incidents: list[dict[str, Any]] = []
        late: list[str] = []
        with self.store.transact() as transaction:
            now = self.clock()
            if self.root is not None and os.path.lexists(os.path.join(self.root, _LATE)):
                from fusewire.breakers.session.late import fold

                incidents, late = fold(self, transaction, now)
            moment = Moment(transaction, self.rules, event, now)
            answer = count(moment, self.store, act, refused_by)
            if event.kind == "after_tool" and "untold" in moment.record:
                text = "\n".join(filter(None, (moment.record.pop("untold"), answer.text)))
                answer = answer.replace(verdict="tell" if answer.verdict == "allow" else answer.verdict, text=text)
            moment.save()
        incidents += moment.incidents
        if late and self.root is not None:
            from fusewire.stores.spool import remove

            remove(os.path.join(self.root, STATE_FOLDER), late)
        if incidents and self.root is not None:
            from fusewire.breakers.session.incidents import write

            write(self.root, self.rules.tool["incidents"], incidents, moment.now)
        if not moment.remarks:
            return answer
        if answer.verdict == "allow":
            return Decision("allow", remarks=tuple(moment.remarks))
        return Decision(
            answer.verdict,
            rule=answer.rule,
            text="\n".join([answer.text, *moment.remarks]).strip(),
            unheeded=answer.unheeded,
        )


def count(moment: Moment, store: Store, act: Callable[[Moment], Decision], refused_by: str) -> Decision:
    """The answer to an event, counted in the moment's memories and circuits; the caller saves it."""
    if moment.damaged or "since" not in moment.record:
        _find_alarms(moment, store)
    answer = act(moment)
    if answer.verdict != "allow" or refused_by:
        _note_answer(moment, answer, refused_by)
    return answer


def _note_answer(moment: Moment, answer: Decision, refused_by: str) -> None:
    """For people who look: what the agent was answered."""
    kind = _ANSWERED.get(answer.verdict, "refused")
    event = moment.event
    if kind == "told":
        moment.record["last_told"] = answer.text
    moment.did(kind, event.tool or "", f"{answer.rule or refused_by}: {shown(event)}" if event.tool else answer.rule)


def _find_alarms(moment: Moment, store: Store) -> None:
    """What is remembered of the session is new, damaged, or lost with the database: which circuits refuse something
    is looked up where they are. Each says in its id whose it is and what it concerns."""
    halted = store.halt_on_file(moment.session)
    if halted:
        moment.record.setdefault("halted", halted)
    if moment.damaged:
        moment.remarks.append("fusewire: what was remembered of this session was damaged; what is open stays open")
    for row in store.circuits():
        _, breaker, *rest = row.id.split("/", 3) if row.kind == "tool" and row.phase in ("open", "probe") else ("", "")
        if len(rest) < 2:
            continue
        by_tool = breaker in ("tool_failure", "sequential_tools", "hook_recursion")
        lane, what = (rest[1], rest[0]) if by_tool else (rest[0], rest[1])
        session, _, agent = lane.partition(":")
        if session != moment.session:
            continue
        if breaker == "hook_recursion":
            moment.alarms[row.id] = [agent, what, [what]]
        elif by_tool or breaker == "same_error":
            moment.alarms[row.id] = [agent, what.partition("/")[0], []]
        elif breaker in ("repetition", "cycle", "same_mutation"):
            moment.alarms[row.id] = [agent, "", what.split("-")]


def prepare(event: Event, commands: Commands | None, looks: bool, refused_by: str) -> Callable[[Moment], Decision]:
    """What will answer the event. All that needs no lock is loaded and read here, before others wait for it."""
    if event.kind == "before_tool":
        call = call_of(event, commands, looks)
        return lambda moment: _asked(moment, call, looks, refused_by)
    if event.kind == "after_tool":
        from fusewire.breakers.session.results import after

        return lambda moment: _unless_halted(moment, after(moment, commands, looks))
    from fusewire.breakers.session import lifecycle as doings

    return lambda moment: _unless_halted(moment, doings.answer(moment))


def _asked(moment: Moment, call: Call, looks: bool, refused_by: str) -> Decision:
    # A session that was halted for a protected file may look.
    if "halted" in moment.record and not (looks and moment.record["halted"].get("rule") == "guard.integrity"):
        from fusewire.breakers.session.halting import still_halted

        _begin_turn(moment)
        halted = still_halted(moment, call.mark)
        if halted is not None:
            moment.lane["refused_at"] = moment.now
            return halted
    return _refused_elsewhere(moment, call, refused_by) if refused_by else _before(moment, call)


def _unless_halted(moment: Moment, answer: Decision) -> Decision:
    if "halted" in moment.record and moment.event.kind in HALTED_AT:
        from fusewire.breakers.session.halting import still_halted

        return still_halted(moment) or answer
    return answer


# -- before a call --------------------------------------------------------------------------------------


def _before(moment: Moment, call: Call) -> Decision:
    _begin_turn(moment)
    event, lane = moment.event, moment.lane
    lease = event.call or call.mark
    leases: list[str] = []
    told: list[Decision] = []
    for decision in _questions(moment, call, lease):
        if decision.allowed:
            leases += [decision.circuit] if decision.lease == lease else []
            told += [decision] if decision.verdict == "tell" and decision.lease is None else []
            continue
        for circuit in leases:
            moment.signal("release", circuit, "release", lease=lease)
        return _refuse(moment, call, decision)
    calls = lane.setdefault("calls", {})
    while len(calls) >= _OPEN:
        del calls[next(iter(calls))]
    calls[lease] = [call.tool, call.mark, call.nature, call.shown, leases, moment.now]
    moment.record.pop("in_a_row", None)
    lane.pop("halts", None)
    if told:
        from fusewire.breakers.session.messages import told_text

        return Decision("tell", rule=told[0].rule, text=told_text(told, moment))
    return ALLOWED


def _begin_turn(moment: Moment) -> None:
    """A new reply of the model has begun, if all calls of the last one are settled and nobody tells us of batches."""
    lane = moment.lane
    if moment.record.get("batched"):
        return
    refused = moment.now - lane.get("refused_at", moment.now) >= _REPLY
    # One that began before another which is over has no result that anybody will see: a person said no to it.
    waits = any(call[5] >= lane.get("settled_began", 0) for call in lane.get("calls", {}).values())
    # Nobody tells us of results at all: then only time tells one reply from the next.
    unheard = not lane.get("history") and lane.get("calls") and max(call[5] for call in lane["calls"].values())
    if ((lane.get("settled_any") or refused) and not waits) or (unheard and moment.now - unheard >= 3 * _REPLY):
        next_turn(moment)


def _questions(moment: Moment, call: Call, lease: str) -> Any:
    """Every circuit that this call concerns, one after the other, until one says no."""
    event = moment.event
    if _may_have_spent(moment):
        from fusewire.breakers.session.spend import limits_on_spend

        yield from limits_on_spend(moment)
    for circuit, (agent, tool, calls) in list(moment.alarms.items()):
        if agent == moment.agent and (call.mark in calls if calls else tool == call.tool):
            decision = moment.signal("ask", circuit, "action", lease=lease, text=call.shown)
            if decision.allowed:
                moment.record.get("refusals", {}).pop(circuit, None)
                if decision.phase == "closed":
                    del moment.alarms[circuit]
            yield decision
    if _asked_already(moment, lease):
        return  # it is one call
    yield from _sequence(moment, call)
    if _may_call_api(moment.settings, event):
        from fusewire.breakers.session.external import limits_on_api

        yield from limits_on_api(moment, call, lease)
    # Last, because an agent runs from here on: nothing behind it may refuse the call.
    if event.tool in SPAWNING_TOOLS or (event.command and _may_start_agent(event.command)):
        from fusewire.breakers.session.spawning import limits_on_spawning

        yield from limits_on_spawning(moment, call, lease)


def _asked_already(moment: Moment, lease: str) -> bool:
    """Whether the same call was asked for before. Where calls have no ids, one that is long ago was never made."""
    begun = moment.lane.get("calls", {}).get(lease)
    if begun is not None:
        return bool(moment.event.call) or moment.now - begun[5] < _ONE_CALL
    return lease in moment.lane.get("settled", ())


def _may_have_spent(moment: Moment) -> bool:
    """A quick look: the transcript has grown, or a limit is near."""
    path = moment.event.transcript
    known = AGENTS_BY_NAME.get(moment.event.agent or "")
    if path and known and known.unnamed_helpers and os.path.isdir(os.path.join(os.path.dirname(path), moment.session)):
        return True  # helpers write into files there
    if path:
        try:
            facts = os.stat(_written_by(path, moment.agent))
            seen = [facts.st_size, facts.st_mtime_ns]
        except (OSError, ValueError):
            seen = [0, 0]
        if seen != moment.lane.get("transcript"):  # at first always: other sessions may have spent what this one may
            moment.lane["transcript"] = seen
            return True
    return "spend_near" in moment.record


def _written_by(transcript: str, agent: str) -> str:
    """The file that one agent of the session writes: a helper of Claude Code has its own, below that of the session."""
    own = f"{transcript.removesuffix('.jsonl')}/subagents/agent-{agent}.jsonl" if agent else ""
    return own if own and os.path.exists(own) else transcript


def _may_start_agent(command: str) -> bool:
    return any(name in command for name in STARTING_PROGRAMS)


def _may_call_api(settings: dict[str, Any], event: Event) -> bool:
    """A quick look; whether it really does is found out elsewhere."""
    if settings["external_api.tools"]:
        return True
    line = (event.command or "").lower()
    names = (*settings["external_api.commands"], *settings["external_api.hosts"])
    return bool(line) and any(_literal(name) in line for name in names)


def _literal(pattern: str) -> str:
    """The longest part of a pattern that stands for itself; of a script without its ending, as a module has none."""
    parts = pattern.lower().removesuffix(".py").replace("?", "*").partition("[")[0].split("*")
    return max(parts, key=len)


def _sequence(moment: Moment, call: Call) -> Any:
    """The same tool in a row within one turn. What brings something new is not counted, unless that is wanted."""
    if not moment.has("tool/sequential_tools/{tool}"):
        return
    literal = moment.settings["sequential_tools.literal"]
    row = moment.lane.get("row")
    if not row or row[0] != call.tool or row[1] != moment.turn:
        if row and row[1] == moment.turn and max(row[2].values(), default=0) > 1:
            moment.signal("note", _sequence_circuit(moment, row[0]), "other_call")
        row = moment.lane["row"] = [call.tool, moment.turn, {}]
    key = "any" if literal else call.mark
    times = row[2][key] = row[2].pop(key, 0) + 1
    while len(row[2]) > _OPEN:
        del row[2][next(iter(row[2]))]
    circuit = _sequence_circuit(moment, call.tool)
    if times < 2 or circuit in moment.alarms:
        return
    if times == 2:  # the first of them was nothing special then
        yield moment.signal("ask", circuit, "call", text=call.shown)
    decision = moment.signal("ask", circuit, "call", text=call.shown)
    if decision.tripped:
        moment.alarms[circuit] = [moment.agent, call.tool, []]
    yield decision


def _sequence_circuit(moment: Moment, tool: str) -> str:
    return f"tool/sequential_tools/{tool}/{moment.lane_id}"


# -- refusals -------------------------------------------------------------------------------------------


def _refuse(moment: Moment, call: Call, decision: Decision) -> Decision:
    """A refused call is on record, so that asking for it again and again ends in a halt."""
    from fusewire.breakers.session.messages import refusal_text

    times, _ = _count_refusal(moment, call, decision.circuit)
    if decision.phase in ("closed", "watch"):  # a limit, not an open circuit
        moment.note("resource_limit", decision)
    over_budget = decision.rule.startswith("tool.spend")
    if times < moment.settings["loops.halt_after"] and not over_budget:
        return Decision("deny", rule=decision.rule, text=refusal_text(decision, moment, 0))
    from fusewire.breakers.session.halting import halt

    circuit = decision.circuit if decision.phase in ("open", "probe") else ""
    text = refusal_text(decision, moment, times)
    return halt(moment, decision.rule, text, circuit=circuit, call=call.mark, stays=not over_budget)


def _refused_elsewhere(moment: Moment, call: Call, rule: str) -> Decision:
    """The guard or a constraint said no, and says why; the agent is halted if it keeps asking."""
    _begin_turn(moment)
    times, in_a_row = _count_refusal(moment, call, f"{rule} {moment.agent} {call.mark}")
    most = moment.settings["loops.halt_after"]
    if times < most and in_a_row < most * _ANY_REFUSALS:
        return ALLOWED
    from fusewire.breakers.session.halting import halt

    what = f"The same call was refused {times} times" if times >= most else f"{in_a_row} calls were refused"
    return halt(moment, rule, f"{what} in a row, so the agent is stopped: a person should look.", call=call.mark)


def _count_refusal(moment: Moment, call: Call, by: str) -> tuple[int, int]:
    """How often the same rule has refused the agent now, and how often any has, with no call that passed in between."""
    from fusewire.breakers.session.detect import REFUSED

    lane, record = moment.lane, moment.record
    entry = [call.tool, call.mark, REFUSED, call.nature, False, lane.get("changes", 0), moment.turn, False, call.shown]
    history = lane.setdefault("history", [])
    history.append([*entry, round(moment.now, 1)])
    del history[: -moment.settings["memory_limits.tool_history_max"]]
    lane["refused_at"] = moment.now
    refusals: dict[str, list[Any]] = record.setdefault("refusals", {})
    last = refusals.pop(by, None)
    if last and last[1:2] and moment.turn - last[1] > _LONG_AGO:
        last = None
    refusals[by] = count = counted_again(last, moment, call.mark)
    again = last is None or count[0] > last[0]
    while len(refusals) > _REFUSALS:
        del refusals[next(iter(refusals))]
    record["in_a_row"] = record.get("in_a_row", 0) + again
    return refusals[by][0], record["in_a_row"]

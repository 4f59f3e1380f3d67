"""Run the breakers inside a session: before every tool call, at its result, and at what people say.

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

from fusewire.breakers.session.calls import LOOK, SEARCHES, SPAWNING_TOOLS, bare, call_of, family, is_search, shown
from fusewire.breakers.session.state import KEYED, Alarm, PendingCall, Repeats, SessionHalt, Streak
from fusewire.breakers.session.unit_of_work import ALLOWED, HALTED_AT, UnitOfWork
from fusewire.config.rules import STATE_FOLDER
from fusewire.core.decision import Decision, strictest
from fusewire.guard.known_agents import AGENTS_BY_NAME, STARTING_PROGRAMS
from fusewire.util.errors import StoreRebuilt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from fusewire.breakers.session.calls import Call, Commands
    from fusewire.breakers.session.state import LaneMemory
    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

#: Calls that were begun and whose result nobody has seen are forgotten after so many others.
_OPEN = 64

#: Seconds that a model needs at least for another reply.
_REPLY = 1.0

#: Breakers whose refusals have a known end: they never halt, however often an agent asks.
_NEVER_HALT = frozenset(("agents", "agent_spawn", "api_calls", "api_cost", "external_api"))

#: Breakers of loops that are more than one call: there the calls of the loop that are refused are a row.
_MANY_CALLS = frozenset(("cycle", "long_cycle", "missing_program", "barren_search"))

#: Elsewhere they are none; but so many times as many are an agent that goes on although it is told not to.
_GOES_ON = 4

#: Refused calls that are remembered.
_REFUSALS = 32

#: Seconds in which the same call, without an id, is one.
_ONE_CALL = 60

#: Beside the moments at which something was spent: when what could not be copied to the person's ledger is copied.
_COPIED_AT = frozenset(("session_start", "stop", "session_end"))

#: It is there while events wait to be counted, see `late`.
_LATE = os.path.join(STATE_FOLDER, "late")


#: How an answer that is not just `allow` is called in the record of what was done; anything else was refused.
_ANSWERED = {"tell": "told", "ask": "asked", "halt": "halted"}


class ToolCallBreakers:
    """A project's sessions: a store, the rules, a clock."""

    def __init__(
        self,
        store: Store,
        rules: Rules,
        clock: Callable[[], float] = time.time,
        root: str | None = None,
        *,
        is_attended: bool = False,
        asks: bool = False,
        task: str | Callable[[], str] = "",
    ) -> None:
        self.task = task
        self.store, self.rules, self.clock, self.root = store, rules, clock, root
        #: whether a person can answer, and whether the agent's program can ask one before this call
        self.is_attended, self.asks = is_attended, asks

    def handle(
        self,
        event: Event,
        commands: Commands | None = None,
        *,
        looks: bool = False,
        refused_by: str = "",
        logged: Sequence[Decision] = (),
        earlier: Sequence[Decision] = (),
    ) -> Decision:
        """The answer to one event. `commands` is what a command line would run, `looks` that it changes nothing;
        `refused_by` names the rule outside the session that has refused the call already; `logged` is what rules in
        `log` mode would have answered, `earlier` what rules outside the session have: it is written down here."""
        try:
            return self._handle(event, commands, looks, refused_by, logged, earlier)
        except StoreRebuilt:  # the damage showed in the middle; nothing was written, and now it is mended
            return self._handle(event, commands, looks, refused_by, logged, earlier)

    def unit(self, transaction: Transaction, event: Event, now: float) -> UnitOfWork:
        """One event of a session, inside a transaction."""
        about = {"is_attended": self.is_attended, "asks": self.asks, "root": self.root, "task": self.task}
        return UnitOfWork(transaction, self.rules, event, now, **about)  # type: ignore[arg-type]

    def count(self, unit: UnitOfWork, commands: Commands | None, looks: bool, refused_by: str) -> Decision:
        """Count an event inside a transaction that the caller has begun; the caller saves the unit."""
        return count(unit, self.store, prepare(unit.event, commands, looks, refused_by), refused_by)

    def _handle(
        self,
        event: Event,
        commands: Commands | None,
        looks: bool,
        refused_by: str,
        logged: Sequence[Decision],
        earlier: Sequence[Decision],
    ) -> Decision:
        act = prepare(event, commands, looks, refused_by)
        incidents: list[JsonObject] = []
        late: list[str] = []
        with self.store.transact() as transaction:
            now = self.clock()
            if self.root is not None and os.path.lexists(os.path.join(self.root, _LATE)):
                from fusewire.breakers.session.late import fold

                incidents, late = fold(self, transaction, now)
            unit = self.unit(transaction, event, now)
            unit.logged += logged
            answer = count(unit, self.store, act, refused_by)
            if earlier or unit.logged or answer.verdict != "allow":
                from fusewire.breakers.session.decided import note

                whole = strictest((*earlier, answer))
                answer = answer.replace(code=note(transaction, event, now, whole, unit))
            if event.kind == "after_tool" and unit.state.untold:
                text = "\n".join(filter(None, (unit.state.untold, answer.text)))
                unit.state.untold = ""
                answer = answer.replace(verdict="tell" if answer.verdict == "allow" else answer.verdict, text=text)
            for one in unit.logged:
                unit.log_doing("logged", event.tool, f"{one.rule}: {one.verdict}: {one.reason}")
            unit.save()
        if self.root is not None and (unit.has_spent or event.kind in _COPIED_AT):
            copy_spend_of(unit, self.store)
        incidents += unit.incidents
        if late and self.root is not None:
            from fusewire.stores.spool import remove

            remove(os.path.join(self.root, STATE_FOLDER), late)
        if incidents and self.root is not None:
            from fusewire.breakers.session.incidents import write

            write(self.root, self.rules.tool["incidents"], incidents, unit.now)
        if unit.logged:
            answer = answer.replace(logged=tuple(unit.logged))
        if not unit.remarks:
            return answer
        if answer.verdict == "allow":
            return Decision("allow", remarks=tuple(unit.remarks), logged=answer.logged, code=answer.code)
        worded: Decision = answer.replace(text="\n".join([answer.text, *unit.remarks]).strip())
        return worded


def copy_spend_of(unit: UnitOfWork, store: Store) -> None:
    """Bring what a session has spent to the person's ledger, and its budgets up to date."""
    from fusewire.scopes.budgets import Spender, noting
    from fusewire.scopes.ledger import copy_spend
    from fusewire.util.worktrees import project_key

    if unit.root is not None:
        spender = Spender(project_key(unit.root), unit.session, unit.branch, unit.task, unit.event.agent or "")
        copy_spend(store, unit.root, unit.now, then=noting(unit.rules.budgets, spender, unit.now))


def count(unit: UnitOfWork, store: Store, act: Callable[[UnitOfWork], Decision], refused_by: str) -> Decision:
    """The answer to an event, counted in the unit's memories and circuits; the caller saves it."""
    if unit.state.damaged or unit.state.since is None:
        _find_alarms(unit, store)
    answer = act(unit)
    if answer.verdict != "allow" or refused_by:
        _note_answer(unit, answer, refused_by)
    return answer


def _note_answer(unit: UnitOfWork, answer: Decision, refused_by: str) -> None:
    """For people who look: what the agent was answered."""
    kind = _ANSWERED.get(answer.verdict, "refused")
    event = unit.event
    if kind == "told":
        unit.state.last_told = answer.text
    unit.log_doing(
        kind, event.tool or "", f"{answer.rule or refused_by}: {shown(event)}" if event.tool else answer.rule
    )


def _find_alarms(unit: UnitOfWork, store: Store) -> None:
    """What is remembered of the session is new, damaged, or lost with the database: which circuits refuse something
    is looked up where they are. Each says in its id whose it is and what it concerns."""
    halted = store.halt_on_file(unit.session)
    if halted and unit.state.halted is None:
        unit.state.halted = SessionHalt.from_data(halted)
    if unit.state.damaged:
        unit.remarks.append("fusewire: what was remembered of this session was damaged; what is open stays open")
    for row in store.circuits():
        _, breaker, *rest = row.id.split("/", 3) if row.kind == "tool" and row.phase in ("open", "probe") else ("", "")
        if len(rest) < 2:
            continue
        by_tool = breaker in KEYED
        lane, what = (rest[1], rest[0]) if by_tool else (rest[0], rest[1])
        session, _, agent = lane.partition(":")
        if session != unit.session:
            continue
        if breaker == "hook_recursion":
            unit.state.alarms[row.id] = Alarm(agent, what, [what])
        elif by_tool or breaker == "same_error":
            unit.state.alarms[row.id] = Alarm(agent, what.partition("/")[0], [])
        elif breaker == "missing_program":
            unit.state.alarms[row.id] = Alarm(agent, "", [f"Bash({what})"])
        elif breaker == "barren_search":
            unit.state.alarms[row.id] = Alarm(agent, "", [SEARCHES])
        elif breaker in ("repetition", "cycle", "same_mutation"):
            unit.state.alarms[row.id] = Alarm(agent, "", what.split("-"))


def prepare(event: Event, commands: Commands | None, looks: bool, refused_by: str) -> Callable[[UnitOfWork], Decision]:
    """What will answer the event. All that needs no lock is loaded and read here, before others wait for it."""
    if event.kind == "before_tool":
        call = call_of(event, commands, looks)
        return lambda unit: _asked(unit, call, looks, refused_by)
    if event.kind == "after_tool":
        from fusewire.breakers.session.results import after

        return lambda unit: _unless_halted(unit, after(unit, commands, looks))
    from fusewire.breakers.session import lifecycle

    return lambda unit: _unless_halted(unit, lifecycle.answer(unit))


def _asked(unit: UnitOfWork, call: Call, looks: bool, refused_by: str) -> Decision:
    # A session that was halted for a protected file may look.
    known = unit.state.halted
    if known is not None and not (looks and known.rule == "guard.integrity"):
        from fusewire.breakers.session.halting import still_halted

        _begin_turn(unit)
        halted = still_halted(unit, call.mark)
        if halted is not None:
            unit.lane.refused_at = unit.now
            return halted
    return _refused_elsewhere(unit, call, refused_by) if refused_by else _before(unit, call)


def _unless_halted(unit: UnitOfWork, answer: Decision) -> Decision:
    if unit.state.halted is not None and unit.event.kind in HALTED_AT:
        from fusewire.breakers.session.halting import still_halted

        return still_halted(unit) or answer
    return answer


# -- before a call --------------------------------------------------------------------------------------


def _before(unit: UnitOfWork, call: Call) -> Decision:
    _begin_turn(unit)
    event, lane = unit.event, unit.lane
    lease = event.call or call.mark
    leases: list[str] = []
    told: list[Decision] = []
    asked: Decision | None = None
    for decision in _questions(unit, call, lease):
        if decision.verdict == "ask" or (unit.asks and _may_be_asked(decision)):
            asked = asked or decision
        elif decision.allowed:
            leases += [decision.circuit] if decision.lease == lease else []
            told += [decision] if decision.verdict == "tell" and decision.lease is None else []
        else:
            for circuit in leases:
                unit.signal("release", circuit, "release", lease=lease)
            return _refuse(unit, call, decision)
    while len(lane.calls) >= _OPEN:
        del lane.calls[next(iter(lane.calls))]
    lane.calls[lease] = PendingCall(call.tool, call.mark, call.nature, call.shown, leases, unit.now)
    lane.halts = None
    unit.grounds = asked or next(iter(told), None)
    if asked is not None:
        from fusewire.breakers.session.messages import question_text

        return Decision("ask", rule=asked.rule, text=question_text(asked))
    if told:
        from fusewire.breakers.session.messages import warning_text

        return Decision("tell", rule=told[0].rule, text=warning_text(told, unit))
    return ALLOWED


def _may_be_asked(decision: Decision) -> bool:
    """Whether a person may let pass what is refused: not where money is at an end, of which a person grants more."""
    return decision.verdict == "deny" and not decision.rule.startswith("tool.spend")


def _begin_turn(unit: UnitOfWork) -> None:
    """A new reply of the model has begun, if all calls of the last one are settled and nobody tells us of batches."""
    lane = unit.lane
    if unit.state.batched:
        return
    refused = lane.refused_at is not None and unit.now - lane.refused_at >= _REPLY
    # One that began before another which is over has no result that anybody will see: a person said no to it.
    waits = any(call.began >= lane.settled_began for call in lane.calls.values())
    # Nobody tells us of results at all: then only time tells one reply from the next.
    newest = max((call.began for call in lane.calls.values()), default=None) if not lane.history else None
    unheard = newest is not None and unit.now - newest >= 3 * _REPLY
    if ((lane.settled_any or refused) and not waits) or unheard:
        unit.next_turn()


def _questions(unit: UnitOfWork, call: Call, lease: str) -> Any:
    """Every circuit that this call concerns, one after the other, until one says no."""
    event = unit.event
    if _may_have_spent(unit):
        from fusewire.breakers.session.spend import limits_on_spend

        yield from limits_on_spend(unit)
    alarms = unit.state.alarms
    for circuit, alarm in list(alarms.items()):
        if alarm.agent == unit.agent and _concerns(alarm, call):
            decision = unit.signal("ask", circuit, "action", lease=lease, text=call.shown)
            if decision.phase == "closed":
                del alarms[circuit]
            yield decision
    if _asked_already(unit, lease):
        return  # it is one call
    yield from _sequence(unit, call)
    if _may_call_api(unit.settings, event):
        from fusewire.breakers.session.external import limits_on_api

        yield from limits_on_api(unit, call, lease)
    # Last, because an agent runs from here on: nothing behind it may refuse the call.
    if event.tool in SPAWNING_TOOLS or (event.command and _may_start_agent(event.command)):
        from fusewire.breakers.session.spawning import limits_on_spawning

        yield from limits_on_spawning(unit, call, lease)


def _concerns(alarm: Alarm, call: Call) -> bool:
    """Whether a call is one of those that an open circuit refuses: by what it is, or by its tool."""
    refused = alarm.calls or [alarm.tool]
    if SEARCHES in refused and is_search(call):
        return True
    return any(name in refused for name in (call.mark, call.tool, family(call.tool), bare(call.tool)))


def _asked_already(unit: UnitOfWork, lease: str) -> bool:
    """Whether the same call was asked for before. Where calls have no ids, one that is long ago was never made."""
    pending = unit.lane.calls.get(lease)
    if pending is not None:
        return bool(unit.event.call) or unit.now - pending.began < _ONE_CALL
    return lease in unit.lane.settled


def _may_have_spent(unit: UnitOfWork) -> bool:
    """A quick look: the transcript has grown, or a limit is near."""
    seen = has_grown(unit.event, unit.lane)
    if seen:  # at first always: other sessions may have spent what this one may
        unit.lane.transcript = seen
    return bool(seen) or unit.state.spend_near


def has_grown(event: Event, lane: LaneMemory) -> list[int]:
    """Size and time of the agent's transcript, if it was not seen so before; empty if it was."""
    path = event.transcript
    if not path:
        return []
    try:
        facts = os.stat(_written_by(path, event.subagent or ""))
        seen = [facts.st_size, facts.st_mtime_ns]
    except (OSError, ValueError):
        seen = [0, 0]
    known = AGENTS_BY_NAME.get(event.agent or "")
    if known and known.unnamed_helpers and os.path.isdir(os.path.join(os.path.dirname(path), event.session or "none")):
        return seen  # helpers write into files there
    return seen if seen != lane.transcript else []


def _written_by(transcript: str, agent: str) -> str:
    """The file that one agent of the session writes: a helper of Claude Code has its own, below that of the session."""
    own = f"{transcript.removesuffix('.jsonl')}/subagents/agent-{agent}.jsonl" if agent else ""
    return own if own and os.path.exists(own) else transcript


def _may_start_agent(command: str) -> bool:
    return any(name in command for name in STARTING_PROGRAMS)


def _may_call_api(settings: Mapping[str, Any], event: Event) -> bool:
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


def _sequence(unit: UnitOfWork, call: Call) -> Any:
    """The same tool in a row within the window. What brings something new is not counted, unless that is wanted."""
    if not unit.has("tool/sequential_tools/{tool}"):
        return
    window, literal = unit.settings["sequential_tools.window_turns"], unit.settings["sequential_tools.literal"]
    tool = bare(call.tool) if literal else call.tool
    row = unit.lane.row
    goes_on = row is not None and unit.turn - row.turn < window
    if row is None or row.tool != tool or not goes_on:
        if row is not None and goes_on and max(row.times.values(), default=0) > 1:
            unit.signal("note", _sequence_circuit(unit, row.tool), "other_call")
        row = unit.lane.row = Streak(tool, unit.turn, {}, {})
    key = "any" if literal else call.mark
    last = row.turns.pop(key, row.turn)
    times = row.times.pop(key, 0) + 1 if unit.turn - last < window else 1
    row.times[key], row.turns[key], row.turn = times, unit.turn, unit.turn
    while len(row.times) > _OPEN:
        oldest = next(iter(row.times))
        del row.times[oldest], row.turns[oldest]
    circuit = _sequence_circuit(unit, tool)
    if times < 2 or circuit in unit.state.alarms:
        return
    if times == 2:  # the first of them was nothing special then
        yield unit.signal("ask", circuit, "call", text=call.shown, turn=last)
    decision = unit.signal("ask", circuit, "call", text=call.shown)
    if decision.tripped:
        unit.state.alarms[circuit] = Alarm(unit.agent, tool, [])
    yield decision


def _sequence_circuit(unit: UnitOfWork, tool: str) -> str:
    return f"tool/sequential_tools/{tool}/{unit.lane_id}"


# -- refusals -------------------------------------------------------------------------------------------


def _refuse(unit: UnitOfWork, call: Call, decision: Decision) -> Decision:
    """A refused call is on record, so that asking for it again and again ends in a halt."""
    from fusewire.breakers.session.messages import refusal_text

    breaker = decision.circuit.split("/")[1]
    unit.grounds = decision
    _note_refusal(unit, call)
    times, in_all = _count_refusal(unit, call, call.mark), _count_refusal(unit, call, decision.circuit)
    if decision.phase in ("closed", "watch"):  # a limit, not an open circuit
        unit.log_incident("resource_limit", decision)
    over_budget = decision.rule.startswith("tool.spend")
    most = unit.settings["loops.halt_after"]
    goes_on = in_all >= most * (1 if breaker in _MANY_CALLS else _GOES_ON)
    # Looking once more does no harm.
    is_row = goes_on or times >= most + (breaker == "repetition" and call.nature == LOOK)
    if (not is_row or breaker in _NEVER_HALT) and not over_budget:
        return Decision("deny", rule=decision.rule, text=refusal_text(decision, unit, 0))
    from fusewire.breakers.session.halting import halt

    circuit = decision.circuit if decision.phase in ("open", "probe") else ""
    text = refusal_text(decision, unit, max(times, in_all))
    return halt(unit, decision.rule, text, circuit=circuit, call=call.mark, stays=not over_budget)


def _refused_elsewhere(unit: UnitOfWork, call: Call, rule: str) -> Decision:
    """The guard or a constraint said no, and says why; the agent is halted if it keeps asking for the same."""
    _begin_turn(unit)
    _note_refusal(unit, call)
    times = _count_refusal(unit, call, call.mark)
    if times < unit.settings["loops.halt_after"]:
        return ALLOWED
    from fusewire.breakers.session.halting import halt
    from fusewire.breakers.session.messages import STOP, goes_on

    what = f"the same call was refused {times} times in a row, so the agent is stopped; it {goes_on(rule)}"
    return halt(unit, rule, f"HALTED {rule}: {what}.\nNext: {STOP}.", call=call.mark)


def _note_refusal(unit: UnitOfWork, call: Call) -> None:
    from fusewire.breakers.session.detect import REFUSED, PastCall

    lane = unit.lane
    refused = PastCall(
        *(call.tool, call.mark, REFUSED, call.nature, False),
        *(lane.changes, unit.turn, False, call.shown, round(unit.now, 1)),
    )
    lane.past.append(refused)
    del lane.past[: -unit.settings["memory_limits.tool_history_max"]]
    lane.refused_at = unit.now


def _count_refusal(unit: UnitOfWork, call: Call, what: str) -> int:
    """How often this was refused now, with no other work in between."""
    lane = unit.lane
    known = lane.refused.pop(what) if what in lane.refused else Repeats.none()
    lane.refused[what] = known
    known.add(unit.turn, call.mark, unit.event.call)
    while len(lane.refused) > _REFUSALS:
        del lane.refused[next(iter(lane.refused))]
    return known.times

"""One event of a session inside one transaction: what is remembered of the session, and its circuits.

Two memories: the session's own (what all of its agents add up to) and one for each agent in it, the main one and
every helper, because their calls come in between each other and must not be taken for one row.
"""

from __future__ import annotations

from fusewire.breakers.session.state import HOOKS, lane_name, recall, session_name
from fusewire.core.decision import Decision
from fusewire.core.events import Signal
from fusewire.stores.rows import Doing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.engine.engine import Engine
    from fusewire.stores import Transaction

#: More helpers than a session may start are remembered; those not heard of for longest are forgotten first.
_LANES = 32
_ALARMS = 64

#: A message of a person starts the windows anew: every window that counts turns is shorter than this.
_FAR = 10_000


#: Calls of one turn that a count of repetitions knows.
_CALLS = 64

#: Beside the question before a call: what of a halted session is answered with the halt.
HALTED_AT = frozenset(("after_tool", "stop", "permission"))


ALLOWED = Decision("allow")


class Moment:
    """What one event has at hand: the time, the event, the memories, and a way to the circuits."""

    def __init__(self, transaction: Transaction, rules: Rules, event: Event, now: float) -> None:
        self.transaction = transaction
        self.rules = rules
        self.settings = rules.tool
        self.event = event
        self.now = now
        self.session = event.session or "none"
        self.agent = event.subagent or ""
        #: for circuits of one agent's calls: the session, and who in it
        self.lane_id = f"{self.session}:{self.agent}" if self.agent else self.session
        self.record, self.damaged = recall(transaction, session_name(self.session), now)
        for memory in (self.record.get("alarms", {}), self.record.get("watched", {})):
            for circuit in [name for name in memory if not self.is_on(name)]:
                del memory[circuit]  # a person has switched the breaker off
        self._halted = self.record.get("halted")
        self.lane = self.lane_of(self.agent)
        if not self.record and event.agent in (None, "claude") and recall(transaction, HOOKS, now)[0]:
            self.record["batched"] = 1  # it is assumed, as in the sessions before this one; no other agent has batches
        #: what a person is told beside the answer, and not the agent
        self.remarks: list[str] = []
        #: what people are told of, once the transaction is written
        self.incidents: list[dict[str, Any]] = []
        self._engine: Engine | None = None

    # -- memories -----------------------------------------------------------------------------------

    def lane_of(self, agent: str) -> dict[str, Any]:
        """What one agent of the session has done lately."""
        return recall(self.transaction, lane_name(self.session, agent), self.now)[0]

    def save(self) -> None:
        lanes = [name for name in self.record.get("lanes", ()) if name not in ("", self.agent)]
        for gone in lanes[: 1 - _LANES]:
            self.transaction.drop(lane_name(self.session, gone))
        self.record["lanes"] = ["", *[*lanes, self.agent][-_LANES:]] if self.agent else ["", *lanes[-_LANES:]]
        while len(self.alarms) > _ALARMS:
            del self.alarms[next(iter(self.alarms))]
        self.record["at"] = self.now
        self.record.setdefault("since", self.now)
        self.transaction.remember(session_name(self.session), self.record, self.now)
        if self.record.get("halted") != self._halted:
            self.transaction.note_halt(self.session, self.record.get("halted"), self.now)
        self.transaction.remember(lane_name(self.session, self.agent), self.lane, self.now)

    def begin_anew(self) -> None:
        """A person spoke: nothing that was counted before is held against what comes."""
        for agent in self.record.get("lanes", ()):
            lane = self.lane if agent == self.agent else self.lane_of(agent)
            turn, replies = lane.get("turn", 0) + _FAR, lane.get("replies", 0)
            lane.clear()
            lane.update(turn=turn, replies=replies)
            if lane is not self.lane:
                self.transaction.remember(lane_name(self.session, agent), lane, self.now)
        for circuit in [*self.alarms, *self.record.pop("watched", {})]:
            self.step(Signal("restart", circuit, "restart", text="a person spoke to the agent", session=self.session))
        self.record["alarms"] = {}
        self.record.pop("refusals", None)
        for name in ("in_a_row", "stops", "halted", "untold"):
            self.record.pop(name, None)

    @property
    def turn(self) -> int:
        turn: int = self.lane.get("turn", 0)
        return turn

    @property
    def alarms(self) -> dict[str, list[Any]]:
        """Circuits of this session that are not closed: [agent, tool, calls] says what each of them concerns."""
        found: dict[str, list[Any]] = self.record.setdefault("alarms", {})
        return found

    # -- circuits -----------------------------------------------------------------------------------

    def has(self, template: str) -> bool:
        """Whether the breaker is on."""
        return template in self.rules.policies

    def is_on(self, circuit: str) -> bool:
        """The same for a circuit that there was once."""
        breaker = circuit.partition("/")[2].partition("/")[0]
        return any(template.split("/")[:2] == ["tool", breaker] for template in self.rules.policies)

    def step(self, signal: Signal) -> Decision:
        decision = self.engine.step(self.transaction, signal, self.now)
        if decision.tripped:
            self.note("circuit_trip", decision)
            if decision.alert:
                self.transaction.notice(f"{decision.circuit}: {decision.reason}; a person should look", self.now)
        return decision

    def foresee(self, circuit: str, name: str) -> Decision:
        """What a circuit would answer to a question; nothing is written and nothing counted."""
        from fusewire.engine.engine import foreseen

        policy = self.rules.policy(circuit)
        signal = Signal("ask", circuit, name, turn=self.turn)
        state = self.engine.load(self.transaction, policy, signal.circuit, self.now)
        return foreseen(policy, state, signal, self.now)

    def signal(self, kind: Any, circuit: str, name: str, **more: Any) -> Decision:
        """One signal of this session to a circuit, counted in the turns of the agent that did it."""
        more.setdefault("turn", self.turn)
        return self.step(Signal(kind, circuit, name, session=self.session, **more))

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            from fusewire.engine.engine import Engine

            # It is only stepped inside this transaction, and needs neither store nor clock.
            self._engine = Engine(None, self.rules, lambda: self.now)  # type: ignore[arg-type]
        return self._engine

    def room(self, circuit: str) -> int:
        """How many more times the limits of a circuit may be used now."""
        from fusewire.core import meters

        policy = self.rules.policy(circuit)
        state = self.engine.load(self.transaction, policy, circuit, self.now)
        used = {} if state is None else state.meters
        left = (meter.trip - meters.level(meter, used.get(meter.name, []), self.now) for meter in policy.meters)
        return max(0, int(min(left)))

    def did(self, kind: str, tool: str = "", text: str = "", value: float = 0.0) -> None:
        """Something that people may want to see when they look at the session."""
        self.transaction.happened(Doing(self.session, self.agent, self.now, kind, tool, text, value))

    def note(self, kind: str, decision: Decision) -> None:
        """Something that belongs into the log of incidents."""
        self.incidents.append(
            {
                "type": kind,
                "breaker": decision.circuit.split("/")[1],
                "circuit": decision.circuit,
                "session": self.session,
                "agent": self.agent,
                "turn": self.lane.get("replies", 0) + 1,
                "reason": decision.reason,
                "evidence": list(decision.evidence),
                "cooldown_seconds": decision.retry_after,
                "alert": decision.alert,
            }
        )


def next_turn(moment: Moment) -> None:
    lane = moment.lane
    lane["turn"] = lane.get("turn", 0) + 1
    lane["replies"] = lane.get("replies", 0) + 1
    lane["settled_any"] = False
    lane.pop("refused_at", None)


def counted_again(last: list[Any] | None, moment: Moment, mark: str) -> list[Any]:
    """[how often, in which turn, the calls of that turn with their ids], one more than the last time if it is another
    reply. The calls of one reply were all asked for before any of them was answered. One that comes again
    belongs to the next, unless it has the same id: then we are registered in two places."""
    turn, call = moment.turn, moment.event.call
    times, last_turn, marks = last if last and len(last) == 3 and isinstance(last[2], dict) else (0, None, {})
    is_next = mark in marks and not (call and marks[mark] == call)
    if last_turn != turn or is_next:
        return [times + 1, turn, {mark: call}]
    marks = {**marks, mark: call}
    return [times, turn, dict(list(marks.items())[-_CALLS:])]

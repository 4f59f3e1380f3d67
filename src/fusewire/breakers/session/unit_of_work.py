"""Handle one event of a session inside one transaction: what is remembered of the session, and its circuits.

Two memories: the session's own (what all of its agents add up to) and one for each agent in it, the main one and
every helper, because their calls come in between each other and must not be taken for one row.
"""

from __future__ import annotations

from fusewire.breakers.session.state import HOOKS, LaneMemory, SessionMemory, lane_name, recall, session_name
from fusewire.config.rules import rule_id
from fusewire.core.decision import Decision
from fusewire.core.events import Signal
from fusewire.stores.rows import Doing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fusewire.config.rules import Rules
    from fusewire.core.decision import Verdict
    from fusewire.core.events import Event
    from fusewire.engine.engine import Engine
    from fusewire.stores import Transaction
    from fusewire.util.fast_json import JsonObject

#: More helpers than a session may start are remembered; those not heard of for longest are forgotten first.
_LANES = 32
_ALARMS = 64

#: A message of a person resets the windows: every window that counts turns is shorter than this.
_FAR = 10_000

#: Beside the question before a call: what of a halted session is answered with the halt.
HALTED_AT = frozenset(("after_tool", "stop", "permission"))

ALLOWED = Decision("allow")


class UnitOfWork:
    """What one event has at hand: the time, the event, the memories, and a way to the circuits."""

    def __init__(
        self,
        transaction: Transaction,
        rules: Rules,
        event: Event,
        now: float,
        *,
        is_attended: bool = False,
        asks: bool = False,
        root: str | None = None,
        task: str | Callable[[], str] = "",
    ) -> None:
        #: whether a person can answer, and whether one can be asked before this call
        self.is_attended, self.asks = is_attended, asks
        self.root = root
        self._task = task
        #: whether there is something new for the person's ledger
        self.has_spent = False
        self.transaction = transaction
        self.rules = rules
        self.settings = rules.tool
        self.event = event
        self.now = now
        self.session = event.session or "none"
        self.agent = event.subagent or ""
        #: for circuits of one agent's calls: the session, and who in it
        self.lane_id = f"{self.session}:{self.agent}" if self.agent else self.session
        self.state = state = SessionMemory.recall(transaction, session_name(self.session), now)
        state.attended = is_attended
        for memory in (state.alarms, state.watched):
            for circuit in [name for name in memory if not self.is_on(name)]:
                del memory[circuit]  # a person has switched the breaker off
        self._halted = state.halted
        self.lane = self.lane_of(self.agent)
        if state.is_new and event.agent in (None, "claude") and recall(transaction, HOOKS, now)[0]:
            state.batched = 1  # it is assumed, as in the sessions before this one; no other agent has batches
        #: for the person, beside the answer to the agent
        self.remarks: list[str] = []
        #: what rules in `log` mode would have answered
        self.logged: list[Decision] = []
        #: what a circuit or a limit has decided that the answer was made of
        self.grounds: Decision | None = None
        #: for the log of incidents, once the transaction is written
        self.incidents: list[JsonObject] = []
        self._engine: Engine | None = None

    # -- memories -----------------------------------------------------------------------------------

    def lane_of(self, agent: str) -> LaneMemory:
        """What one agent of the session has done lately."""
        return LaneMemory.recall(self.transaction, lane_name(self.session, agent), self.now)

    def save(self) -> None:
        state = self.state
        lanes = [name for name in state.lanes if name not in ("", self.agent)]
        for gone in lanes[: 1 - _LANES]:
            self.transaction.drop(lane_name(self.session, gone))
        state.lanes = ["", *[*lanes, self.agent][-_LANES:]] if self.agent else ["", *lanes[-_LANES:]]
        while len(state.alarms) > _ALARMS:
            del state.alarms[next(iter(state.alarms))]
        state.at = self.now
        state.client = self.event.agent or state.client
        if state.since is None:
            state.since = self.now
        self.transaction.remember(session_name(self.session), state.to_data(), self.now)
        if state.halted is not self._halted:
            self.transaction.note_halt(self.session, state.halted.to_data() if state.halted else None, self.now)
        self._save_lane(self.agent, self.lane)

    def _save_lane(self, agent: str, lane: LaneMemory) -> None:
        self.transaction.remember(lane_name(self.session, agent), lane.to_data(), self.now)

    def reset_windows(self) -> None:
        """A person spoke: nothing that was counted before is held against what comes."""
        state = self.state
        for agent in state.lanes:
            old = self.lane if agent == self.agent else self.lane_of(agent)
            lane = LaneMemory()
            lane.turn, lane.replies = old.turn + _FAR, old.replies
            if agent == self.agent:
                self.lane = lane
            else:
                self._save_lane(agent, lane)
        for circuit in [*state.alarms, *state.watched]:
            self.step(Signal("restart", circuit, "restart", text="a person spoke to the agent", session=self.session))
        state.alarms, state.watched, state.stops = {}, {}, 0
        state.halted, state.untold = None, ""

    def next_turn(self) -> None:
        """Another reply of the model begins."""
        lane = self.lane
        lane.turn += 1
        lane.replies += 1
        lane.settled_any = False
        lane.refused_at = None

    @property
    def task(self) -> str:
        """The run that the session is a part of, else the slice that it works on, which is looked up when spend is
        booked: most events book none."""
        if not isinstance(self._task, str):
            self._task = self._task()
        return self._task

    @property
    def run(self) -> str:
        """The run that the session is a part of."""
        return self._task if isinstance(self._task, str) and self._task.startswith("run-") else ""

    @property
    def branch(self) -> str:
        """The branch that is worked on."""
        from fusewire.util.worktrees import branch_of

        return branch_of(self.root) if self.root else ""

    @property
    def turn(self) -> int:
        return self.lane.turn

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
        self.logged += decision.logged
        if decision.tripped:
            self.log_incident("circuit_trip", decision)
        return decision

    def decide(self, circuit: str, verdict: Verdict, reason: str, **more: Any) -> Decision:
        """The answer of a limit that depends on more than the level of its circuit."""
        rule = rule_id(self.rules.policy(circuit), circuit)
        said = self.rules.as_set(Decision(verdict, circuit=circuit, rule=rule, reason=reason, **more))
        self.logged += said.logged
        return said

    def dry_run(self, circuit: str, name: str) -> Decision:
        """What a circuit would answer to a question; nothing is written and nothing counted."""
        from fusewire.engine.engine import foreseen

        policy = self.rules.policy(circuit)
        signal = Signal("ask", circuit, name, turn=self.turn)
        state = self.engine.load(self.transaction, policy, signal.circuit, self.now)
        return self.rules.as_set(foreseen(policy, state, signal, self.now))

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

    def level(self, circuit: str, name: str, turn: int | None = None) -> float:
        """How full one meter of a circuit is."""
        from fusewire.core import meters

        policy = self.rules.policy(circuit)
        state = self.engine.load(self.transaction, policy, circuit, self.now)
        meter = next(meter for meter in policy.meters if meter.name == name)
        return meters.level(meter, state.meters.get(name, []) if state else [], self.now, turn)

    def log_doing(self, kind: str, tool: str = "", text: str = "", value: float = 0.0) -> None:
        """Something that people may want to see when they look at the session."""
        self.transaction.happened(Doing(self.session, self.agent, self.now, kind, tool, text, value))

    def log_incident(self, kind: str, decision: Decision) -> None:
        """Something that belongs into the log of incidents."""
        self.incidents.append(
            {
                "type": kind,
                "breaker": decision.circuit.split("/")[1],
                "circuit": decision.circuit,
                "session": self.session,
                "agent": self.agent,
                "turn": self.lane.replies + 1,
                "reason": decision.reason,
                "evidence": list(decision.evidence),
                "cooldown_seconds": decision.retry_after,
                "alert": decision.alert,
            }
        )

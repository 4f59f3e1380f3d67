"""Apply one event in one transaction: load the circuits of its signals, step each, write, decide.

The engine knows neither SQL nor any agent, prints nothing and reads no clock of its own: it is given one, and
reads it once it holds the write lock, so that times in a store are in the order of its transactions.
"""

from __future__ import annotations

from fusewire.config.rules import rule_id
from fusewire.core import circuit as circuits
from fusewire.core import meters
from fusewire.core.decision import Decision
from fusewire.core.events import Signal, identifier
from fusewire.stores.rows import AuditRow, LogRow
from fusewire.util.durations import number, seconds_until, show_duration
from fusewire.util.errors import InvalidTransition, StoreError, StoreRetry
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from fusewire.config.rules import Rules
    from fusewire.core.circuit import CircuitState, Policy, StepResult
    from fusewire.stores import Store, Transaction
    from fusewire.stores.rows import CircuitRow

    Found = TypeVar("Found")

#: So often is a unit of work done again; of two that wait for each other, one is done at once.
_RETRIES = 3


class BreakerTransaction:
    """One transaction of a breaker: what its circuits are sent and what it keeps is written together, or not at all."""

    def __init__(self, engine: Engine, transaction: Transaction, now: float) -> None:
        self.engine, self.transaction, self.now = engine, transaction, now

    def send(self, signal: Signal) -> Decision:
        """Step the circuit that a signal names."""
        return self.engine.step(self.transaction, signal, self.now)

    def state(self, circuit: str) -> CircuitState:
        """Return a circuit as it is now; one that nothing happened to is closed."""
        policy = self.engine.rules.policy(circuit)
        return circuits.view(policy, self.engine.load(self.transaction, policy, circuit, self.now), self.now)


class Engine:
    """Rules, a store and a clock."""

    def __init__(self, store: Store, rules: Rules, clock: Callable[[], float]) -> None:
        self.store = store
        self.rules = rules
        self.clock = clock

    def apply(self, signals: Iterable[Signal], actor: str = "") -> tuple[list[Decision], set[str]]:
        """Send signals to their circuits in one transaction; one decision a signal, and the circuits written."""
        policies = [(signal, self.rules.policy(signal.circuit)) for signal in signals]

        def step_all(transaction: Transaction, now: float) -> tuple[list[Decision], set[str]]:
            written: set[str] = set()
            return [self._step(transaction, policy, one, now, actor, written) for one, policy in policies], written

        return self.transact(step_all, [signal.circuit for signal, _ in policies])

    def transact(self, work: Callable[[Transaction, float], Found], circuits: Iterable[str] = ()) -> Found:
        """What is done with a transaction and the time, all of it or nothing; with which `circuits`, if that is known.

        Nothing was written where damage showed only in the middle, which is now mended, or where two waited for each
        other: it is done again.
        """
        for _ in range(_RETRIES):
            try:
                return self._transact(work, circuits)
            except StoreRetry:
                continue
        return self._transact(work, circuits)

    def _transact(self, work: Callable[[Transaction, float], Found], circuits: Iterable[str]) -> Found:
        with self.store.transact(circuits) as transaction:
            return work(transaction, self.clock())

    def step(self, transaction: Transaction, signal: Signal, now: float) -> Decision:
        """Step one circuit inside a transaction of the caller, who has more to write in it."""
        return self._step(transaction, self.rules.policy(signal.circuit), signal, now, "", set())

    def run(self, work: Callable[[BreakerTransaction], Found]) -> Found:
        """Do the work of a breaker, which steps circuits and writes its record, in one transaction."""
        return self.transact(lambda transaction, now: work(BreakerTransaction(self, transaction, now)))

    def enforce(
        self, violated: list[str], action: str, session: str | None, call: str | None, cannot_ask: str
    ) -> tuple[list[Decision], set[str]]:
        """An action that violates constraints: ask each of them, then record what was asked. One decision each.

        What a person is asked about is not recorded. `cannot_ask` says why nobody can be asked; empty if one can.
        """
        lease = call or "enforcer"  # so that a call which is refused cannot speak for somebody else's probe
        policies = [self.rules.policy(constraint) for constraint in violated]
        asks = [policy.mode == "ask" and not cannot_ask for policy in policies]
        signals = []
        for constraint, policy, is_asked in zip(violated, policies, asks, strict=True):
            signals.append(Signal("ask", constraint, "action", text=action, session=session, lease=lease))
            own = lease if policy.mode == "count" else None  # nobody probes what never passes
            bad = Signal("bad", constraint, "violation", text=action, session=session, lease=own)
            signals += [] if is_asked else [bad]
        decisions, written = self.apply(signals)
        answers = iter(decisions)
        found = []
        for policy, is_asked in zip(policies, asks, strict=True):
            asked = next(answers)
            found.append(asked if is_asked else _enforced(policy, asked, next(answers), cannot_ask))
        return found, written

    def _step(
        self, transaction: Transaction, policy: Policy, signal: Signal, now: float, actor: str, written: set[str]
    ) -> Decision:
        if self.rules.modes and self.rules.mode(rule_id(policy, signal.circuit)) == "off":
            return Decision("allow", circuit=signal.circuit)
        before = self.load(transaction, policy, signal.circuit, now)
        after, outcome = circuits.step(policy, before, signal, now)
        # A circuit that nothing has happened to needs no row.
        changed = after is not before and (before is not None or outcome.counted)
        row = _log_row(signal, outcome, now, changed)
        if changed:
            kept = row if row is not None and row.effect != "duplicate" else None
            transaction.save(signal.circuit, policy.kind, after.phase, after.to_data(), now, log=kept)
            written.add(signal.circuit)
            row = row if kept is None else None
        if row is not None:
            transaction.log(row, kept=False)
        if outcome.transitions or signal.kind == "override":
            _write_audit(transaction, signal, outcome, after, now, actor)
        return self.rules.as_set(decide(policy, signal, after, outcome, now))

    def load(self, transaction: Transaction, policy: Policy, circuit: str, now: float) -> CircuitState | None:
        """The stored state of a circuit; one that cannot be read is folded anew from the circuit's log."""
        try:
            data = transaction.load(circuit)
            return None if data is None else read_state(policy, data)
        except ValueError:
            state = refold(policy, circuit, transaction, now)
            transaction.notice(f"the state of {circuit} could not be read and was rebuilt from its log", now)
            transaction.save(circuit, policy.kind, state.phase, state.to_data(), now)
            return state

    # -- reading ------------------------------------------------------------------------------------

    def foresee(self, signal: Signal) -> Decision:
        """What a circuit would answer now; nothing is written and nothing counted."""
        policy, state = self.view(signal.circuit)
        return self.rules.as_set(foreseen(policy, state, signal, self.clock()))

    def view(self, circuit: str) -> tuple[Policy, CircuitState]:
        """The circuit as it is now; nothing is written, a circuit that nothing happened to is closed."""
        policy = self.rules.policy(circuit)
        return policy, self.state_of(circuit, policy)

    def state_of(self, circuit: str, policy: Policy) -> CircuitState:
        """The same for a circuit whose policy is known; one that cannot be read is mended."""
        return self.state_in(self.store.circuit(identifier(circuit)), circuit, policy)

    def state_in(self, row: CircuitRow | None, circuit: str, policy: Policy) -> CircuitState:
        """The same from its row, for whoever has read those of all circuits at once."""
        now = self.clock()
        if row is None:
            return circuits.view(policy, None, now)
        try:
            state: CircuitState | None = read_state(policy, row.state)
        except ValueError:
            try:
                with self.store.transact() as transaction:
                    state = self.load(transaction, policy, circuit, now)
            except StoreError:  # it cannot be written now, or not by us: shown as it would be mended
                state = refold(policy, circuit, self.store, now)
        return circuits.view(policy, state, now)


def _enforced(policy: Policy, asked: Decision, recorded: Decision, cannot_ask: str) -> Decision:
    """One answer from the question and the record: refused, or counted, or passed by an override."""
    if asked.logged:  # what the mode `log` keeps from being said
        told: Decision = asked.replace(logged=(_enforced(policy, asked.logged[0], recorded, cannot_ask),))
        return told
    if not asked.allowed and asked.phase != "open":
        why = f"{asked.reason}, and {cannot_ask}" if asked.verdict == "ask" else asked.reason
        refused: Decision = asked.replace(
            verdict="deny", reason=why, evidence=(recorded.reason,), next=policy.next[:1], phase=recorded.phase
        )
        return refused
    if not asked.allowed:
        return asked
    if recorded.tripped and policy.meters[0].trip <= 1:  # the first one is one too many
        stopped: Decision = recorded.replace(verdict="deny", tripped=False)
        return stopped
    if asked.verdict == "tell" and not recorded.tripped:
        passed: Decision = recorded.replace(verdict="tell", evidence=(*recorded.evidence, asked.reason))
        return passed
    return recorded


def read_state(policy: Policy, data: object) -> CircuitState:
    """A state from stored data; ValueError if it cannot be one of this policy's."""
    state = circuits.CircuitState.from_data(data)
    if not state.fits(policy):
        raise ValueError("not this circuit's state")
    return state


def _log_row(signal: Signal, outcome: StepResult, now: float, changed: bool) -> LogRow | None:
    """What the log keeps of a signal: bad ones, refusals, acts of people, and what moved the circuit."""
    effect = _effect(signal, outcome)
    worth = (
        signal.kind in ("bad", "reset", "restart", "override")
        or effect == "refused"
        or (changed and outcome.transitions)
    )
    if not worth:
        return None
    return LogRow(signal.circuit, now, signal.kind, signal.name, signal.text, signal.session, signal.value, effect)


def _write_audit(
    transaction: Transaction, signal: Signal, outcome: StepResult, after: CircuitState, now: float, actor: str
) -> None:
    who = actor or signal.session or ""
    for move in outcome.transitions:
        mover = "" if move.cause in ("cooled", "quiet") else who  # time is nobody
        row = AuditRow(signal.circuit, move.at, move.source, move.target, move.cause, move.reason, mover)
        transaction.audit(row, after.to_data() if move is outcome.transitions[-1] else None)
    if signal.kind == "override":
        cause = "overridden" if signal.value > 0 else "override ended"
        reason = f"{signal.text} (for {show_duration(signal.value)})" if signal.value > 0 else signal.text
        transaction.audit(AuditRow(signal.circuit, now, after.phase, after.phase, cause, reason, who), after.to_data())


def _effect(signal: Signal, outcome: StepResult) -> str:
    if signal.kind == "ask" and outcome.verdict == "deny":
        return "refused"
    if outcome.duplicate:
        return "duplicate"
    if outcome.late:
        return "late"
    return "counted" if outcome.counted else ""


def refold(policy: Policy, circuit: str, source: Transaction | Store, now: float) -> CircuitState:
    """A state from the circuit's log; if the audit trail says that it was open, it stays open."""
    state: CircuitState | None = None
    for row in source.log_of(circuit):
        if row.effect in ("refused", "duplicate"):
            continue
        kind: Any = row.kind
        signal = Signal(kind, circuit, row.name, text=row.text, session=row.session, value=row.value)
        try:
            state, _ = circuits.step(policy, state, signal, row.at)
        except InvalidTransition:
            continue
    state = state.copy() if state is not None else circuits.fresh(now)
    trail = source.audit_of(circuit)
    if trail and trail[-1].target == "open" and state.phase != "open":
        state.phase, state.opened_at, state.last_trip = "open", trail[-1].at, trail[-1].at
        state.reason = trail[-1].reason
        state.in_a_row = max(state.in_a_row, 1)
        state.trips = max(state.trips, 1)
        wait = circuits.cooldown(policy, state.in_a_row)
        state.until = None if wait is None else trail[-1].at + wait
    return state


# -- from outcomes to words -----------------------------------------------------------------------------


def foreseen(policy: Policy, state: CircuitState | None, signal: Signal, now: float) -> Decision:
    """What a step would answer; nothing is written and nothing counted."""
    after, outcome = circuits.step(policy, state, signal, now)
    return decide(policy, signal, after, outcome, now)


def decide(policy: Policy, signal: Signal, state: CircuitState, outcome: StepResult, now: float) -> Decision:
    """What a step means to whoever asked or reported."""
    verdict = outcome.verdict
    reason = outcome.reason
    if signal.kind == "bad":
        reason = _recorded(policy, state, outcome, now)
        if outcome.tripped or circuits.near(policy, state, now):
            verdict = "tell"
    evidence: tuple[str, ...] = ()
    if verdict != "allow" or outcome.tripped:
        evidence = _evidence(state, outcome)
        if signal.kind == "bad" and not outcome.tripped:
            evidence = (*evidence, _left(policy, state, now))
    retry_after = None if outcome.retry_at is None else seconds_until(outcome.retry_at, now)
    is_stopped = verdict == "deny" or outcome.tripped
    return Decision(
        verdict,
        circuit=signal.circuit,
        rule=rule_id(policy, signal.circuit),
        reason=reason,
        evidence=evidence,
        retry_after=retry_after,
        next=circuits.fill_in(policy.next, policy, signal.circuit) if is_stopped else (),
        by_person=by_person(policy, signal.circuit, state.phase) if is_stopped else (),
        phase=state.phase,
        lease=outcome.lease,
        tripped=outcome.tripped,
        alert=outcome.alert,
    )


def _recorded(policy: Policy, state: CircuitState, outcome: StepResult, now: float) -> str:
    if outcome.tripped:
        return outcome.reason if outcome.transitions[-1].cause == "tripped" else state.reason
    closest = circuits.nearest(policy, state, now)
    if closest is None:
        return "recorded"
    meter, height = closest
    amount = f"{number(height)} of {number(meter.trip)}{meters.within(meter)}"
    if outcome.duplicate:
        return f"within {show_duration(policy.dedup)} of the last counted one, so not counted again ({amount})"
    return f"recorded ({amount})"


def _evidence(state: CircuitState, outcome: StepResult) -> tuple[str, ...]:
    found = []
    if state.evidence and state.evidence not in state.reason:
        found.append(f"last: {state.evidence}")
    if state.trips > 1:
        found.append(f"{state.trips} trips so far")
    if outcome.alert:
        again = f"{state.in_a_row} trips in a row" if state.in_a_row > 1 else "again right after a recovery"
        found.append(f"{again}: a person should look at this")
    return tuple(found)


def _left(policy: Policy, state: CircuitState, now: float) -> str:
    closest = circuits.nearest(policy, state, now)
    left = 1 if closest is None else max(1, closest[0].trip - closest[1])
    return f"close to the limit: {number(left)} more opens the circuit"


def next_steps(policy: Policy, circuit: str, phase: str) -> tuple[str, ...]:
    """What to do now, and how a person can lift it."""
    return (*circuits.fill_in(policy.next, policy, circuit), *by_person(policy, circuit, phase))


def by_person(policy: Policy, circuit: str, phase: str) -> tuple[str, ...]:
    steps = circuits.fill_in(policy.by_person, policy, circuit)
    if phase == "open" and policy.reset in ("close", "probe"):
        does = "" if policy.reset == "close" else " (ends the cooldown, one probe decides)"
        name = quoted(policy.group or circuit)
        steps += (f'a person can run: fusewire reset {name} --reason "..."{does}',)
    if policy.override:
        steps += (f'a person can let it pass for a while: fusewire override {quoted(circuit)} --for 1h --reason "..."',)
    return steps

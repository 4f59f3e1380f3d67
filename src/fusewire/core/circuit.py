"""Step a circuit: one small state machine that serves every breaker. Policy is data, time is an argument.

Theory of operation
===================

Rule 1: there are four phases.

    closed   work goes on, meters count
    watch    work goes on, but a warning level has been reached (people read HALF_OPEN)
    open     work is refused; the cooldown runs from the trip on or, where the policy says so, from the first refusal
    probe    the cooldown is over; exactly one trial may run (people read HALF_OPEN)

Rule 2: what moves a circuit is a *cause*, and `PHASES` below lists every cause that each phase knows. A
pair that is not in the table is an error (`InvalidTransition`), and nothing has changed.

    closed --warned--> watch --recovered--> closed
    closed, watch --tripped--> open
    open --cooled--> probe            the cooldown has passed (nobody has to be running for that)
    open --reset--> closed            a person acts, where the policy says that this closes
    open --retried--> probe           a person acts, where the policy says that one probe decides
    watch, open, probe --restarted--> closed    the work itself starts anew, and so does every count
    probe --succeeded, quiet--> closed
    probe --failed--> open            the cooldown starts anew, by the policy's schedule

Rule 3: time moves circuits only in `advance`, which both `step` and `view` call first. So a reader sees
"ready to probe" at the right second although nobody wrote anything, and the next step writes it down.

Rule 4: a probe is one, and it is leased. The first question after the cooldown takes the lease; others are
refused until it is settled by its holder or runs out. A result whose lease is no longer the current one is
counted, but moves nothing: it speaks of a trial that has been given up.

Rule 5: trip conditions are tested when their own meter has just counted, in every phase. Trip goes before
warn. A circuit that kept its counts after a probe therefore does not trip by itself, but does at the next
bad signal.

Rule 6: what happens while the circuit is open is counted, but it does not prolong the cooldown; unless the
policy takes the end from the signals, and one of them knows of a later end.

Rule 7: `step` never changes its arguments. It returns a new state, or the very same object when nothing
changed, so that the caller need not write.

Rule 8: a clock that was set back never opens anything early: a cooldown ends at a moment, not after ticks.
"""

from __future__ import annotations

from fusewire.core import meters
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import TEXT_LIMIT, plain
from fusewire.core.state import CircuitState, Policy, fresh
from fusewire.util.durations import show_duration
from fusewire.util.errors import InvalidTransition

__all__ = [
    "PHASES",
    "CircuitState",
    "Policy",
    "StepResult",
    "Transition",
    "advance",
    "cooldown",
    "cooled_at",
    "fresh",
    "nearest",
    "overridden",
    "probe_free_at",
    "step",
    "view",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.core.decision import Verdict
    from fusewire.core.events import Signal

PHASES: dict[tuple[str, str], str] = {
    ("closed", "warned"): "watch",
    ("closed", "tripped"): "open",
    ("watch", "tripped"): "open",
    ("watch", "recovered"): "closed",
    ("watch", "restarted"): "closed",
    ("open", "cooled"): "probe",
    ("open", "reset"): "closed",
    ("open", "retried"): "probe",
    ("open", "restarted"): "closed",
    ("probe", "succeeded"): "closed",
    ("probe", "quiet"): "closed",
    ("probe", "failed"): "open",
    ("probe", "restarted"): "closed",
}


#: Why a circuit that is not open lets nothing pass, by its policy's mode.
MODES = {"ask": "this needs a person's consent (mode ask)", "block": "this is refused from the first time (mode block)"}


class Transition:
    """One move from phase to phase, for the audit trail."""

    __slots__ = ("at", "cause", "reason", "source", "target")

    def __init__(self, at: float, source: str, target: str, cause: str, reason: str) -> None:
        self.at, self.source, self.target, self.cause, self.reason = at, source, target, cause, reason

    def __repr__(self) -> str:
        return f"Transition({self.source} -> {self.target}, {self.cause}: {self.reason})"


class StepResult:
    """What one step found, before it is put into words for anybody."""

    __slots__ = (
        "alert",
        "counted",
        "duplicate",
        "late",
        "lease",
        "meter",
        "reason",
        "retry_at",
        "transitions",
        "tripped",
        "verdict",
    )

    def __init__(self) -> None:
        self.verdict: Verdict = "allow"
        self.reason = ""
        self.retry_at: float | None = None
        self.lease: str | None = None
        #: the signal moved a meter
        self.counted = False
        #: it fell into the deduplication window of the last counted one
        self.duplicate = False
        #: it came from a probe that is over
        self.late = False
        #: this very step opened the circuit
        self.tripped = False
        #: often enough in a row that a person should be told
        self.alert = False
        #: the meter that decided
        self.meter: str | None = None
        self.transitions: list[Transition] = []


def step(policy: Policy, state: CircuitState | None, signal: Signal, now: float) -> tuple[CircuitState, StepResult]:
    """The circuit after one signal, and what that means for whoever sent it."""
    outcome = StepResult()
    before = state if state is not None else fresh(now)
    current = advance(policy, before, now, outcome)
    handle = _HANDLERS.get(signal.kind)
    if handle is None:
        raise InvalidTransition(f"a circuit does not take the signal {signal.kind!r}")
    return handle(policy, current, signal, now, outcome), outcome


def advance(policy: Policy, state: CircuitState, now: float, outcome: StepResult) -> CircuitState:
    """What the passing of time alone has done to the circuit; the same object if nothing."""
    if state.phase == "open" and state.until is not None and now >= state.until:
        state = _move(state, "cooled", state.until, "cooldown over", outcome)
        state.probe_at = state.until
        state.lease = state.lease_until = None
    if state.phase == "probe":
        quiet_until = _quiet_until(policy, state)
        if quiet_until is not None and now >= quiet_until:
            reason = f"no bad signal for {show_duration(policy.quiet or 0)}"
            state = _close(policy, state, "quiet", quiet_until, reason, outcome)
    return state


def view(policy: Policy, state: CircuitState | None, now: float) -> CircuitState:
    """The circuit as it is at this moment, for readers; writes nothing."""
    return advance(policy, state if state is not None else fresh(now), now, StepResult())


def fill_in(found: tuple[str, ...], policy: Policy, circuit: str) -> tuple[str, ...]:
    """Put the parts of a circuit's id into a policy's next steps: `attempt retry {slice}`."""
    for part, value in zip(policy.id.split("/"), circuit.split("/"), strict=False):
        if part[:1] == "{":
            found = tuple(step.replace(part, value) for step in found)
    return found


def near(policy: Policy, state: CircuitState, now: float) -> bool:
    """Whether the next bad signal may trip: one step below the limit, or 80 % of it."""
    if state.phase not in ("closed", "watch"):
        return False
    for meter in policy.meters:
        memory = state.meters.get(meter.name, [])
        height = meters.level(meter, memory, now)
        if meter.family == "share":
            if height and meters.reached(meter, meters.count(meter, memory, 1, None, now, None), now):
                return True
        elif meter.trip_by in ("at", "ask") and height:
            one_less = meter.trip - 1 if meter.family != "trend" else meter.trip
            if height >= min(one_less, 0.8 * meter.trip):
                return True
    return False


def nearest(policy: Policy, state: CircuitState, now: float) -> tuple[meters.Meter, float] | None:
    """The meter that is closest to its limit, and its level."""
    best: tuple[float, meters.Meter, float] | None = None
    for meter in policy.meters:
        height = meters.level(meter, state.meters.get(meter.name, []), now)
        closeness = -height if meter.trip_by == "below" else height / meter.trip if meter.trip else height
        if best is None or closeness > best[0]:
            best = (closeness, meter, height)
    return best and (best[1], best[2])


# -- one handler a signal kind --------------------------------------------------------------------------


def _ask(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    if overridden(state, now) and (state.phase in ("open", "probe") or policy.mode in MODES):
        reason = state.reason or MODES.get(policy.mode)
        outcome.verdict, outcome.reason = "tell", f"overridden ({state.override_reason}): {reason}"
        return state
    if state.phase == "open":
        until = cooled_at(policy, state, now)
        outcome.verdict, outcome.reason, outcome.retry_at = "deny", state.reason, until
        if until != state.until:
            state = state.copy()
            state.until = until
        return state
    if policy.mode in MODES:
        outcome.verdict, outcome.reason = "ask" if policy.mode == "ask" else "deny", MODES[policy.mode]
        return state
    if state.phase == "probe":
        return _ask_for_probe(policy, state, signal, now, outcome)
    if _at_a_limit(policy, state, signal, now, outcome):
        return state
    for meter in policy.meters:
        if not meter.asked(signal.name):
            continue
        memory = state.meters.get(meter.name, [])
        if not meter.limits and meters.reached(meter, memory, now, signal.turn):
            _blame(outcome, meter, memory, now, signal)
            opened = _open(policy, state, "tripped", outcome.reason, signal, now, outcome)
            outcome.verdict, outcome.retry_at = "deny", opened.until
            return opened
        if meters.warned(meter, memory, now, signal.turn):
            outcome.verdict = "tell"
            _blame(outcome, meter, memory, now, signal)
    listening = _listening(policy, signal)
    if listening:
        state = _count(state, listening, signal, now, outcome)
    if state.phase == "watch":
        outcome.verdict, outcome.reason = "tell", outcome.reason or state.reason
    return state


def _at_a_limit(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> bool:
    """Whether a limit that this question is about is full; it refuses, but opens nothing."""
    for meter in policy.meters:
        memory = state.meters.get(meter.name, [])
        if meter.limits and meter.asked(signal.name) and meters.reached(meter, memory, now, signal.turn):
            _blame(outcome, meter, memory, now, signal)
            outcome.verdict = "deny"
            outcome.retry_at = meters.free_at(meter, memory, now)
            return True
    return False


def _ask_for_probe(
    policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult
) -> CircuitState:
    taken = _is_leased(state, now)
    if taken and signal.lease != state.lease:
        outcome.verdict, outcome.retry_at = "deny", probe_free_at(policy, state)
        outcome.reason = f"a probe is under way after: {state.reason}"
        return state
    if not taken:
        if _at_a_limit(policy, state, signal, now, outcome):
            return state
        state = _count(state, _listening(policy, signal), signal, now, outcome)
        state.probes += 1
        state.lease = signal.lease or f"probe-{state.probes}"
        state.lease_until = now + policy.lease
    outcome.lease = state.lease
    outcome.verdict, outcome.reason = "tell", f"this is the one probe after: {state.reason}"
    return state


def probe_free_at(policy: Policy, state: CircuitState) -> float | None:
    """When a probe that is under way stops standing in the way: its lease runs out, or it was quiet long enough."""
    ends = [state.lease_until, _quiet_until(policy, state)]
    return min((end for end in ends if end is not None), default=None)


def cooled_at(policy: Policy, state: CircuitState, now: float) -> float | None:
    """When the cooldown of an open circuit is over; where it has not begun, that is if somebody asks now."""
    if state.until is None and policy.cools_from == "refusal":
        return now + (cooldown(policy, state.in_a_row) or 0)
    return state.until


def _quiet_until(policy: Policy, state: CircuitState) -> float | None:
    if policy.quiet is None or state.probe_at is None:
        return None
    return max(state.probe_at, state.last_counted or 0) + policy.quiet


def _is_leased(state: CircuitState, now: float) -> bool:
    """Whether a probe is under way; a lease that ran out is gone, and so is what its holder may still say."""
    return state.lease is not None and state.lease_until is not None and now < state.lease_until


def _holds(state: CircuitState, signal: Signal, now: float) -> bool:
    return _is_leased(state, now) and signal.lease == state.lease


def overridden(state: CircuitState, now: float) -> bool:
    """Whether a person's emergency override lets actions pass; it closes nothing."""
    return state.override_until is not None and now < state.override_until


def _bad(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    probing = state.phase == "probe"
    # A violation during a probe always counts: it is the probe's answer, not a hasty retry.
    # Absolute, because a clock may be set back a little between two of them.
    if not probing and state.last_counted is not None and abs(now - state.last_counted) < policy.dedup:
        outcome.duplicate = True
        return state
    listening = _listening(policy, signal)
    state = _clear(state, policy, signal)
    state = _count(state, listening, signal, now, outcome)
    if state.phase == "open" and policy.cools_from == "signal":
        state.until = max(state.until or now, signal.value)  # whoever is refused as well may know of a later end
    if state.phase == "open" or overridden(state, now):
        return state
    if probing:
        if signal.lease is not None and not _holds(state, signal, now):
            outcome.late = True
            return state
        if listening:
            first = listening[0]
            _blame(outcome, first, state.meters.get(first.name, []), now, signal)
        reason = f"the probe failed: {outcome.reason or signal.text or signal.name}"
        return _open(policy, state, "failed", reason, signal, now, outcome)
    after = _trip_or_warn(policy, state, listening, signal, now, outcome)
    if after.vigil:  # bad, but not what the circuit recovered from
        after = after.copy()
        after.vigil -= 1
    return after


def _recurs(state: CircuitState, meter: meters.Meter, signal: Signal) -> bool:
    """Whether this is what the circuit has just recovered from; where marks differ, the same mark."""
    return state.vigil > 0 and (not meter.marked or signal.fingerprint == state.mark)


def _trip_or_warn(
    policy: Policy,
    state: CircuitState,
    counted: list[meters.Meter],
    signal: Signal,
    now: float,
    outcome: StepResult,
) -> CircuitState:
    for meter in counted:
        memory = state.meters.get(meter.name, [])
        trips = meter.trip_by != "ask" and not meter.limits and meters.reached(meter, memory, now, signal.turn)
        if trips or (signal.kind == "bad" and _recurs(state, meter, signal)):
            _blame(outcome, meter, memory, now, signal)
            if not trips:
                outcome.reason += f", within {policy.vigil} iterations after a recovery"
                outcome.alert = True
            return _open(policy, state, "tripped", outcome.reason, signal, now, outcome)
    for meter in counted:
        memory = state.meters.get(meter.name, [])
        if meters.warned(meter, memory, now, signal.turn):
            outcome.verdict = "tell"
            _blame(outcome, meter, memory, now, signal)
            if state.phase == "closed" and not meter.limits:
                state = _move(state, "warned", now, outcome.reason, outcome)
                state.reason = outcome.reason
            break
    return state


def _good(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    listening = _listening(policy, signal)
    if listening:
        state = _count(state, listening, signal, now, outcome)
    if state.phase == "probe":
        anyone = policy.settles == "anyone" and signal.lease is None
        if _holds(state, signal, now) or (anyone and _is_leased(state, now)):
            return _close(policy, state, "succeeded", now, "the probe succeeded", outcome)
        outcome.late = signal.lease is not None
        return state
    if state.phase == "open":
        outcome.late = signal.lease is not None
        return state
    state = _clear(state, policy, signal)
    if state.vigil:
        state = state.copy()
        state.vigil -= 1
    if listening and state.phase in ("closed", "watch"):
        state = _trip_or_warn(policy, state, listening, signal, now, outcome)
    if state.phase == "watch" and not any(
        meters.warned(meter, state.meters.get(meter.name, []), now, signal.turn) for meter in policy.meters
    ):
        state = _move(state, "recovered", now, "progress", outcome)
        state.reason = state.evidence = ""
    return state


def _note(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    """A neutral fact: it is counted where a meter listens, and can trip, but settles no probe."""
    state = _clear(state, policy, signal)
    listening = _listening(policy, signal)
    if not listening:
        return state
    state = _count(state, listening, signal, now, outcome)
    if state.phase in ("closed", "watch"):
        return _trip_or_warn(policy, state, listening, signal, now, outcome)
    return state


def _release(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    """A prober gives its probe back without a result; the next one may try."""
    if state.phase != "probe" or state.lease is None or signal.lease != state.lease:
        outcome.late = True
        return state
    state = state.copy()
    state.lease = state.lease_until = None
    return state


def _reset(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    instead = fill_in((*policy.next, *policy.by_person), policy, signal.circuit)
    other_way = f"{policy.name} has no reset of its own: {'; '.join(instead)}"
    if state.phase != "open":
        # What only limits never opens: people may see it as open while it is reached, and try.
        limits = policy.reset == "refuse" and all(meter.limits for meter in policy.meters)
        raise InvalidTransition(f"Invalid transition from {PUBLIC_STATE[state.phase]}{f'; {other_way}' * limits}")
    if policy.reset == "refuse":
        raise InvalidTransition(other_way)
    if policy.reset == "probe":
        state = _move(state, "retried", now, signal.text, outcome)
        state.until = state.probe_at = now
        state.lease = state.lease_until = None
        state.last_reset = now
        return state
    return _anew(_move(state, "reset", now, signal.text, outcome), now)


def _restart(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    """What is counted here is over, open or not: another session, or the same work from its checkpoint."""
    if state.phase != "closed":
        return _anew(_move(state, "restarted", now, signal.text, outcome), now)
    return _anew(state.copy(), now) if state.meters or state.vigil else state


def _override(policy: Policy, state: CircuitState, signal: Signal, now: float, outcome: StepResult) -> CircuitState:
    if state.phase not in ("open", "probe") and policy.mode not in MODES:
        raise InvalidTransition(f"Invalid transition from {PUBLIC_STATE[state.phase]}: nothing to override")
    if not policy.override:
        raise InvalidTransition(f"{policy.name} cannot be overridden: {'; '.join((*policy.next, *policy.by_person))}")
    state = state.copy()
    state.override_until = now + signal.value if signal.value > 0 else None
    state.override_reason = signal.text if signal.value > 0 else ""
    return state


_HANDLERS = {
    "ask": _ask,
    "bad": _bad,
    "good": _good,
    "note": _note,
    "release": _release,
    "reset": _reset,
    "restart": _restart,
    "override": _override,
}


# -- the moves they share -------------------------------------------------------------------------------


def _move(state: CircuitState, cause: str, at: float, reason: str, outcome: StepResult) -> CircuitState:
    target = PHASES.get((state.phase, cause))
    if target is None:
        raise InvalidTransition(f"Invalid transition from {PUBLIC_STATE[state.phase]}: {cause}")
    outcome.transitions.append(Transition(at, state.phase, target, cause, reason))
    state = state.copy()
    state.phase = target
    return state


def _open(
    policy: Policy, state: CircuitState, cause: str, reason: str, signal: Signal, now: float, outcome: StepResult
) -> CircuitState:
    state = _move(state, cause, now, reason, outcome)
    state.in_a_row += 1
    state.trips += 1
    state.opened_at = state.last_trip = now
    wait = cooldown(policy, state.in_a_row) if policy.cools_from != "refusal" else None
    state.until = None if wait is None else now + wait
    if policy.cools_from == "signal" and signal.value > now:
        state.until = signal.value
    state.probe_at = state.lease = state.lease_until = None
    state.reason, state.evidence = plain(reason, TEXT_LIMIT), signal.text
    state.mark = signal.fingerprint or state.mark
    state.vigil = 0
    outcome.tripped = True
    outcome.retry_at = state.until
    outcome.alert = outcome.alert or bool(policy.alert_from and state.in_a_row >= policy.alert_from)
    return state


def _close(
    policy: Policy, state: CircuitState, cause: str, at: float, reason: str, outcome: StepResult
) -> CircuitState:
    state = _move(state, cause, at, reason, outcome)
    if not policy.keeps:
        # A limit is no reason to trip, so recovering from a trip does not empty it.
        limits = [meter.name for meter in policy.meters if meter.limits]
        state.meters = {name: memory for name, memory in state.meters.items() if name in limits}
        state.last_counted = None
    state.opened_at = state.until = state.probe_at = state.lease = state.lease_until = None
    state.override_until = None
    state.reason = state.evidence = state.override_reason = ""
    state.in_a_row = 0
    state.vigil = policy.vigil
    return state


def _anew(state: CircuitState, now: float) -> CircuitState:
    """The (closed) state with nothing counted; what has been, has been."""
    state.meters = {}
    state.opened_at = state.until = state.probe_at = state.lease = state.lease_until = None
    state.last_counted = state.override_until = None
    state.reason = state.evidence = state.override_reason = ""
    state.in_a_row = state.vigil = 0
    state.last_reset = now
    return state


def cooldown(policy: Policy, in_a_row: int) -> float | None:
    """Seconds to wait after the n-th trip in a row; None where only a person ends it."""
    if policy.schedule == "none":
        return None
    if policy.schedule == "fixed":
        return policy.cooldown[0]
    if policy.schedule == "doubling":
        return float(policy.cooldown[0] * 2 ** min(in_a_row - 1, 20))
    return policy.cooldown[min(in_a_row, len(policy.cooldown)) - 1]


def _listening(policy: Policy, signal: Signal) -> list[meters.Meter]:
    return [meter for meter in policy.meters if meter.on == signal.name]


def _count(
    state: CircuitState, listening: list[meters.Meter], signal: Signal, now: float, outcome: StepResult
) -> CircuitState:
    state = state.copy()
    state.meters = dict(state.meters)
    for meter in listening:
        memory = state.meters.get(meter.name, [])
        state.meters[meter.name] = meters.count(
            meter, memory, signal.value, signal.fingerprint, round(now, 3), signal.turn
        )
        outcome.counted = True
    if signal.kind == "bad":
        outcome.counted = True
        state.total += 1
        state.last_counted = now
    return state


def _clear(state: CircuitState, policy: Policy, signal: Signal) -> CircuitState:
    """Without the memories that this signal ends: a row is broken by what is not part of it."""
    names = [meter.name for meter in policy.meters if signal.name in meter.resets_on]
    if not any(name in state.meters for name in names):
        return state
    state = state.copy()
    state.meters = {name: memory for name, memory in state.meters.items() if name not in names}
    return state


def _blame(outcome: StepResult, meter: meters.Meter, memory: list[Any], now: float, signal: Signal) -> None:
    """Say which meter decided, with its number and its limit."""
    outcome.meter = meter.name
    outcome.reason = meters.explain(meter, meters.level(meter, memory, now, signal.turn), signal.name)

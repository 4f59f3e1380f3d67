"""Brief an agent when its session starts: circuits of the project that are not closed, and the work under way.

Nothing is said where there is nothing to say: an agent whose context begins with the state of things that work reads
past it when something does not.
"""

from __future__ import annotations

import os
import time

from fusewire.breakers.session.opening import PATIENCE
from fusewire.config.rules import DATABASE, PHASE_FILE, SCOPE_FILE
from fusewire.util.durations import show_duration, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.config.rules import Rules
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status
    from fusewire.stores import Store

#: How much of a context it may take.
_LINES = 12
_CHARACTERS = 599
_LINE = 240

#: Seconds after which a phase that nobody has ended since is not under way any more.
_RECENT = 86400

#: What an agent does, and who lifts it, by the kind of a circuit.
_DO = {
    "constraint": "what it forbids is refused",
    "loop": "no loop runs on this project",
    "phase": "no phase begins; a person decides: fusewire phase resolve reset|skip|abort|modify",
    "attempt": "stop these attempts and report; a person decides: fusewire attempt retry",
}
_WATCH = {
    "constraint": "one action that keeps to it closes it",
    "loop": "one iteration is tried, and must make progress",
    "phase": "make progress, or it opens",
    "attempt": "one more failure stops it",
}


def for_agent(store: Store, root: str, rules: Rules, home: str, session: str | None = None) -> str:
    """The project in a few lines, for an agent; empty if all is well. `store` and `rules` are those of `root`."""
    from fusewire.engine.breaker import Breaker

    guarded = at_home = Breaker(store, rules, time.time, root)
    lines = list(_circuits(guarded))
    if home != root:  # the command line has found another project than the hook, below the one with the constraints
        if not os.path.lexists(os.path.join(home, DATABASE)):
            return _shortened(lines)
        at_home = Breaker.open(project=home, patience=PATIENCE)
        lines += _circuits(at_home)
    lines += _phase(at_home, home)
    lines += _slices(at_home, home, session)
    return _shortened(lines)


def _shortened(lines: list[str]) -> str:
    if not lines:
        return ""
    kept = ["Fusewire guards this project. What holds now:"]
    for at, line in enumerate(lines):
        more = f"- and {len(lines) - at} more: fusewire status --all"
        line = f"- {line if len(line) <= _LINE else line[: _LINE - 1] + chr(0x2026)}"
        rest = 0 if at == len(lines) - 1 else len(more) + 1
        if len(kept) + 1 + bool(rest) > _LINES or sum(map(len, kept)) + len(kept) + len(line) + rest > _CHARACTERS:
            return "\n".join([*kept, more])
        kept.append(line)
    return "\n".join(kept)


# -- circuits -----------------------------------------------------------------------------------------------------


def _circuits(breaker: Breaker) -> Iterator[str]:
    """Those that are open come first."""
    now = breaker.engine.clock()
    for status in sorted(_not_closed(breaker), key=lambda one: (one.phase != "open", one.kind, one.id)):
        yield _line(status, now)


def _not_closed(breaker: Breaker) -> Iterator[Status]:
    """Of the project, not of one session. The rows tell which to look at: a thousand closed ones cost little."""
    from fusewire.util.errors import NotFound

    for row in breaker.store.circuits():
        if row.kind in _DO and row.phase != "closed":
            try:
                status = breaker.status(row.id)
            except NotFound:
                continue  # its rule is gone
            if status.phase != "closed":
                yield status


def _line(status: Status, now: float) -> str:
    """`OPEN loop/no_progress: why; what to do; until when; who may lift it`."""
    is_open = status.phase == "open"
    parts = [status.reason or "no reason is known", (_DO if is_open else _WATCH)[status.kind]]
    if is_open and status.retry_after is not None:
        until = (show_time(now + status.retry_after) or "")[:16].replace("T", " ")
        parts.append(f"until {until} UTC (in {show_duration(status.retry_after)})")
    if is_open and status.kind in ("constraint", "loop"):
        parts.append(f"a person can run: fusewire reset {'loop' if status.kind == 'loop' else status.id}")
    return f"{status.state} {status.id}: {'; '.join(parts)}"


# -- work under way -----------------------------------------------------------------------------------------------


def _phase(breaker: Breaker, home: str) -> Iterator[str]:
    """A phase that was worked on lately and is not closed by its end; one that is open is among the circuits."""
    if not os.path.lexists(os.path.join(home, PHASE_FILE)):
        return
    from fusewire.breakers.phase.action import face_of, threshold
    from fusewire.breakers.phase.detect import circuit_of
    from fusewire.breakers.phase.state import PhaseRecord

    record = PhaseRecord.recalled(breaker.store)
    now = breaker.engine.clock()
    written = next((at for name, at in breaker.store.remembered("phases") if name == "phases"), 0.0)
    if record is None or not record.phase or record.phase in record.finished or now - written > _RECENT:
        return
    if record.aborted:
        yield f"The phases were aborted: {record.aborted}; a person can start anew: fusewire phase start"
        return
    policy, state = breaker.engine.view(circuit_of(record.phase))
    face = face_of(policy, state, now)
    if face.state == "CLOSED":
        left = f"{face.no_progress} of {threshold(policy, 'no_progress')} iterations without progress"
        yield f"Phase {record.phase} is under way: {left}; tell what each brought: fusewire phase end {record.phase}"


def _slices(breaker: Breaker, home: str, session: str | None) -> Iterator[str]:
    """The slices that hold for the session: what is left of them, and what they may change."""
    if not os.path.lexists(os.path.join(home, SCOPE_FILE)):
        return
    from fusewire.breakers.attempt.scope.active import load
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.util.errors import FusewireError

    attempts = Attempts(breaker)
    try:
        active = [one for one in load(home, PATIENCE) if one.holds_for(session)]
    except FusewireError as error:
        yield f"The slices under way cannot be told: {error}"
        return
    for one in active:
        of_test, of_slice = attempts.limits(one.slice)
        yield f"Slice {one.slice} is under way: {attempts.failures(one.slice)} of {of_slice} failed attempts" + (
            f"; change only: {one.summary()}" if one.entries else ""
        )
        for test, entry in attempts.record(one.slice).tests.items():
            if entry.checkpoint and attempts.refusal(one.slice, test) is None:
                count = attempts.state(one.slice, test)["attempt_count"]
                yield f"{one.slice} {test}: {count} of {of_test} failed attempts; your test runs count"
        if one.problem:
            yield f"The scope of {one.slice} cannot be told, so nothing may be changed: {one.problem}"

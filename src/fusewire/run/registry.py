"""Register the runs of a project: at most so many at once; the oldest can be ended for a new one.

A run is identified by its process id and start time, so that a reused id is neither counted nor signalled. A run that
was killed loses its place at the next look. The run that ends the oldest one inherits its place, so that no third one
can take it in between.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.messages import LIMIT
from fusewire.core.decision import Decision
from fusewire.core.events import plain
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import counted, show_duration
from fusewire.util.errors import FusewireError
from fusewire.util.processes import is_alive, look, process_identity
from fusewire.util.quoting import quoted
from fusewire.util.reaper import send

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusewire.engine.engine import Engine
    from fusewire.stores import Store, Transaction

#: What it is remembered under, and what its audit trail is called.
NAME = "agents/runs"
CIRCUIT = "tool/agents/runs"

#: Seconds that a run gets to end in order, that the system gets to end it after that, and between two looks.
_GRACE, _KILLING, _AGAIN = 10.0, 5.0, 0.05

#: Characters of a command that people are shown.
_SHOWN = 80


@dataclass(frozen=True)
class RegisteredRun:
    """One run that is under way, or whose place another run is about to inherit."""

    #: as `process_identity` names it
    process: str
    #: what it runs, in words
    command: str
    #: when it began
    at: float
    #: the process that ends it in order to take its place
    heir: str = ""

    @property
    def pid(self) -> int:
        return int(self.process.partition(":")[0])

    def shown(self, now: float) -> str:
        ending = ", being ended" if self.heir else ""
        return f"pid {self.pid} ({show_duration(max(1.0, round(now - self.at)))}{ending}) {self.command}"


def under_way(store: Store | Transaction) -> list[RegisteredRun]:
    """The runs of the project, the oldest first; those that have died are left out."""
    try:
        entries = (store.recall(NAME) or {}).get("runs")
    except ValueError:  # damaged: those that run go on, and are counted again when they are started again
        entries = None
    found = []
    for entry in entries if isinstance(entries, list) else ():
        run = _read(entry)
        if run is not None and run.heir and not is_alive(run.heir):
            run = replace(run, heir="")
        if run is not None and (run.heir or is_alive(run.process)):
            found.append(run)
    return found


class RunPlace:
    """One run's place among those of its project, from its start to its end."""

    def __init__(self, engine: Engine, limit: int, command: Sequence[str]) -> None:
        self._engine = engine
        self._limit = limit
        self._process = process_identity(os.getpid()) or ""
        self._command = _in_words(command)
        self._since = 0.0

    def take(self) -> Decision | None:
        """Take a place; why not, if there is none."""
        return self._engine.transact(self._take)

    def inherit(self, person: str, stop: Callable[[], bool], tell: Callable[[str], None]) -> Decision | None:
        """Take a place, and end the oldest run if there is none; why not, if even that does not help.

        `stop` says whether to give up waiting; `tell` shows a line to the person.
        """
        oldest, refused = self._engine.transact(lambda transaction, now: self._claim(transaction, now, person))
        if oldest is None:
            return refused
        tell(f"ending the oldest run to make room: {oldest.shown(self._engine.clock())} ...")
        try:
            ended = self._end(oldest, stop)
        except BaseException:
            self.leave()
            raise
        if ended:
            return self.take()
        self.leave()
        runs = under_way(self._engine.store)
        return _refusal(runs, self._limit, self._engine.clock(), f"pid {oldest.pid} could not be ended")

    def keep(self) -> None:
        """Say again that this run is under way, if that was lost: an agent may have removed the whole state."""
        if self._process and all(run.process != self._process for run in under_way(self._engine.store)):
            self._engine.transact(self._restore)

    def heir(self) -> int | None:
        """The process that ends this run in order to take its place, if one does."""
        try:
            mine = [run for run in under_way(self._engine.store) if run.process == self._process and run.heir]
        except FusewireError:
            return None
        return int(mine[0].heir.partition(":")[0]) if mine else None

    def leave(self) -> None:
        """Give the place up, or the claim to one; where that cannot be written, the next look finds us gone."""
        try:
            self._engine.transact(self._leave)
        except FusewireError:
            pass

    # -- inside a transaction ---------------------------------------------------------------------------

    def _take(self, transaction: Transaction, now: float) -> Decision | None:
        others = self._others(transaction)
        if len(others) >= self._limit:
            return _refusal(others, self._limit, now)
        self._since = now
        self._restore(transaction, now)
        return None

    def _restore(self, transaction: Transaction, now: float) -> None:
        if self._process:
            mine = RegisteredRun(self._process, self._command, self._since)
            _remember(transaction, sorted([*self._others(transaction), mine], key=lambda run: run.at), now)

    def _claim(self, transaction: Transaction, now: float, person: str) -> tuple[RegisteredRun | None, Decision | None]:
        """The run whose place is ours as soon as it has ended; or that we have one already, or why we get none."""
        refused = self._take(transaction, now)
        if refused is None:
            return None, None
        others = self._others(transaction)
        oldest = next((run for run in others if not run.heir), None)
        if oldest is None:
            return None, _refusal(others, self._limit, now, "each of them is being ended for another run already")
        if len(others) > self._limit:
            return None, _refusal(others, self._limit, now, "ending the oldest one would not make room")
        _remember(transaction, [replace(run, heir=self._process) if run is oldest else run for run in others], now)
        reason = f"ended to make room for pid {self._process.partition(':')[0]}: {oldest.shown(now)}"
        transaction.audit(AuditRow(CIRCUIT, now, "closed", "closed", "ended", reason, person))
        return oldest, None

    def _leave(self, transaction: Transaction, now: float) -> None:
        runs = []
        for run in under_way(transaction):
            if run.heir == self._process:
                run = replace(run, heir="")
            if run.process != self._process or run.heir:
                runs.append(run)
        _remember(transaction, runs, now)

    def _others(self, transaction: Transaction) -> list[RegisteredRun]:
        """The places of other runs, without the one that we have inherited."""
        return [run for run in under_way(transaction) if self._process not in (run.process, run.heir)]

    # -- the oldest one ---------------------------------------------------------------------------------

    def _end(self, run: RegisteredRun, stop: Callable[[], bool]) -> bool:
        """In order if it can; else as if by accident, and then its warden ends its agent."""
        _signal(run, signal.SIGTERM)
        _signal(run, signal.SIGCONT)  # a stopped one has to go on in order to end
        if _wait_for(run, _GRACE, stop):
            return True
        if not stop():
            _signal(run, signal.SIGKILL)
        return _wait_for(run, _KILLING, stop)


def _signal(run: RegisteredRun, number: signal.Signals) -> None:
    """Only to the process that has registered itself."""
    process = look(run.pid)
    if process is not None and process_identity(run.pid) == run.process:
        send(process, number)


def _wait_for(run: RegisteredRun, seconds: float, stop: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while is_alive(run.process):
        if time.monotonic() >= until or stop():
            return False
        time.sleep(_AGAIN)
    return True


def _refusal(runs: list[RegisteredRun], limit: int, now: float, more: str = "") -> Decision:
    fact = f"{counted(len(runs), 'run')} of this project {'is' if len(runs) == 1 else 'are'} under way (limit {limit})"
    return Decision(
        "deny",
        circuit=CIRCUIT,
        rule="tool.agents",
        reason=f"{LIMIT} {fact}{f', and {more}' if more else ''}",
        evidence=("running, the oldest first:", *(f"  {run.shown(now)}" for run in runs)),
        next=("wait until one of them has ended",),
        by_person=(
            "a person can end the oldest one and start this one instead: fusewire run --end-oldest ...",
            "a person can allow more: resource_limits.max_concurrent_agents under [tool] in fusewire.toml",
        ),
    )


def _remember(transaction: Transaction, runs: list[RegisteredRun], now: float) -> None:
    """As many as may run at once; the dead were dropped when they were read."""
    transaction.remember(NAME, {"runs": [dict(vars(run)) for run in runs]}, now)


def _read(entry: Any) -> RegisteredRun | None:
    """One run that was remembered; None for anything else."""
    try:
        run = RegisteredRun(**entry)
        known = run.pid > 1 and isinstance(run.at, (int, float))
    except (TypeError, ValueError, AttributeError):
        return None
    return run if known and isinstance(run.command, str) and isinstance(run.heir, str) else None


def _in_words(command: Sequence[str]) -> str:
    """On one line, and without what would move a terminal's cursor."""
    text = " ".join(quoted(word) for word in command)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return plain(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}...")

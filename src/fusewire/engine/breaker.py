"""The public API: a `Breaker` on a project or a store.

breaker = Breaker.open()                      # the project around the current folder
with breaker.guard("git-safety-force-push", action="git push --force"):
    ...                                       # not reached while the circuit is open: Blocked is raised
"""

from __future__ import annotations

import os
import time

from fusewire.config.rules import DATABASE, Rules, compile_rules, find_project, is_shared, load_rules, shared_root
from fusewire.core.circuit import CircuitState
from fusewire.core.events import Signal, fingerprint, identifier
from fusewire.engine.engine import Engine, read_state
from fusewire.engine.guarded import Guarded
from fusewire.engine.parts import above
from fusewire.stores import open_store
from fusewire.stores.scoped import ScopedStore
from fusewire.util.durations import show_duration
from fusewire.util.errors import FusewireError, InvalidTransition, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import Literal

    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.core.state import Policy
    from fusewire.engine.define import Duration, OwnBreaker
    from fusewire.engine.status import Status
    from fusewire.stores import Store
    from fusewire.stores.rows import AuditRow, LogRow

#: Seconds. An emergency lasts hours; a need for more is a reason to change the rule.
LONGEST_OVERRIDE = 24 * 3600

#: What judges an agent: no agent moves these by hand.
_JUDGES = ("loop", "tool", "phase", "attempt", "provider")

#: Set by `fusewire.testing()`: what to open instead of the real thing, in the users' own tests.
_stand_in: Callable[[], Breaker] | None = None


class Breaker:
    """Asks circuits, tells them what happened, and shows them. Safe to share between threads."""

    #: whether its store is the project's own, so that the files in the project follow it
    is_own = True

    def __init__(self, store: Store, rules: Rules, clock: Callable[[], float], root: str | None = None) -> None:
        self.store = store
        self.rules = rules
        self.root = root
        self.engine = Engine(store, rules, clock)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        project: str | os.PathLike[str] | None = None,
        rules: Rules | None = None,
        clock: Callable[[], float] | None = None,
        patience: float = 2.0,
        read_only: bool = False,
    ) -> Breaker:
        """A breaker on a project's own store, or on that of a URL (`sqlite:PATH`, `memory:`, `postgresql://...`).

        Without a project to look in (a URL and no `project`), every bare id is a constraint with the default policy.
        Without a `clock` times are the store's: those of this machine, or of the PostgreSQL server. `patience` is how
        many seconds each of the three attempts waits for a locked database. One that is `read_only` shows circuits and
        changes nothing.
        """
        if _stand_in is not None:
            return _stand_in()
        if url is not None and project is None:
            store = open_store(url, check=CircuitState.from_data, patience=patience, read_only=read_only)
            return cls(store, default_rules(), clock or store.clock)
        root = os.path.abspath(project) if project is not None else find_project(os.getcwd())
        rules = rules or load_rules(root)

        def opened(root: str, url: str | None = None) -> Store:
            own = f"sqlite:{os.path.join(root, DATABASE)}"
            backup = above().backup(root, rules, clock or time.time)
            store = open_store(
                own if url is None else url,
                backup=backup,
                check=CircuitState.from_data,
                patience=patience,
                read_only=read_only,
            )
            if rules.notify and url in (None, own):  # the delivery process reads the project's own store
                store.after_news = lambda: above().start_delivery(root)
            return store

        store, main = opened(root, url), shared_root(root) if url is None else None
        if main is not None:
            store = ScopedStore(store, lambda: opened(main), is_shared)
        breaker = cls(store, rules, clock or store.clock, root)
        breaker.is_own = url in (None, f"sqlite:{os.path.join(root, DATABASE)}")
        return breaker

    # -- asking and telling -------------------------------------------------------------------------

    def check(self, circuit: str, *, session: str | None = None, lease: str | None = None) -> Decision:
        """May an action go on? After a cooldown the first to ask gets the one probe.

        Where a circuit counts the questions themselves (a rate limit), an allowed one is counted.
        """
        name = self.rules.policy(circuit).asks()
        return self._send(Signal("ask", circuit, name, session=session, lease=lease))

    def record(
        self,
        circuit: str,
        action: str = "",
        *,
        session: str | None = None,
        lease: str | None = None,
        signal: str | None = None,
    ) -> Decision:
        """A violation, a failure: something bad happened. `signal` names it where a circuit knows several."""
        policy = self.rules.policy(circuit)
        actor = self._judge(policy, circuit)
        name = signal or policy.meters[0].on
        # Where only the same thing in a row counts, what happened says whether it is the same.
        marked = any(meter.marked and meter.on == name for meter in policy.meters)
        mark = fingerprint(name, action) if marked else None
        given = Signal("bad", circuit, name, text=action, session=session, lease=lease, fingerprint=mark)
        return self._send(given, actor)

    def record_success(
        self, circuit: str, *, session: str | None = None, lease: str | None = None, signal: str | None = None
    ) -> Decision:
        """An action that was asked for went well: settles a probe, breaks a row of failures."""
        policy = self.rules.policy(circuit)
        actor = self._judge(policy, circuit)
        name = signal or policy.settles_with()
        return self._send(Signal("good", circuit, name, session=session, lease=lease), actor)

    def guard(self, circuit: str, *, action: str = "", session: str | None = None) -> Guarded:
        """A context manager that asks before and settles after; an exception inside counts as bad."""
        return Guarded(self, circuit, action, session)

    def define(
        self,
        name: str,
        *,
        failures: int = 3,
        within: str | float | timedelta = "consecutive",
        cooldown: Duration | Sequence[Duration] = "5m",
        reset: Literal["probe", "person"] = "probe",
        lease: Duration = "10m",
        ignore: type[BaseException] | tuple[type[BaseException], ...] = (),
        fallback: Callable[..., object] | None = None,
    ) -> OwnBreaker:
        """Define a breaker of one's own, the circuit `own/NAME`: a decorator and a context manager, `async` as well.

        It opens after so many `failures`, in a row or `within` a time. With `reset="probe"` one probe decides after the
        `cooldown` (of a list, one step for each trip in a row); with `"person"` only `reset` ends it. Exceptions to
        `ignore` count as success. While it is open a decorated function answers with `fallback`, called with the same
        arguments; without one, `Blocked` is raised. Where the project's `fusewire.toml` has `[breakers.NAME]`, that is
        in force instead of the first five.
        """
        from fusewire.engine.define import define

        words = {"failures": failures, "within": within, "cooldown": cooldown, "reset": reset, "lease": lease}
        return define(self, name, words, ignore, fallback)

    def enforce(
        self, violated: list[str], event: Event, *, cannot_ask: str = "nobody can be asked here"
    ) -> list[Decision]:
        """The enforcer's flow for an action that violates these constraints: check, record, trip.

        In mode `ask` the decision is to ask a person first; where `cannot_ask` says why that is impossible, it refuses.
        """
        decisions, written = self.engine.enforce(violated, event.described(), event.session, event.call, cannot_ask)
        self.mirror(written)
        return decisions

    # -- acts of a person ---------------------------------------------------------------------------

    def reset(self, circuit: str, reason: str = "") -> Decision:
        """End an open circuit as its policy allows; InvalidTransition if it is not open."""
        return self._act(Signal("reset", circuit, "reset", text=reason))

    def reset_group(self, name: str, circuits: list[str], reason: str = "") -> list[Decision]:
        """The same with all of these that are open, which people know by one name; InvalidTransition if none is."""
        is_open = [circuit for circuit in circuits if self.status(circuit).phase == "open"]
        if not is_open:
            raise InvalidTransition(f"Invalid transition from CLOSED: no circuit of {name} is open")
        return [self.reset(circuit, reason) for circuit in is_open]

    def override(self, circuit: str, reason: str, seconds: float) -> Decision:
        """Let actions pass an open circuit for a while without closing it; 0 seconds ends that."""
        if not reason.strip() or not 0 <= seconds <= LONGEST_OVERRIDE:
            raise FusewireError(f"an override needs a reason, and a time of up to {show_duration(LONGEST_OVERRIDE)}")
        return self._act(Signal("override", circuit, "override", text=reason, value=seconds))

    def _act(self, signal: Signal) -> Decision:
        return self._send(signal, self._person(f"{signal.kind} of a circuit"))

    def _judge(self, policy: Policy, circuit: str) -> str:
        """Who speaks in the place of what measures the agent, if it is such a circuit."""
        return self._person(f"to record on {circuit}") if policy.kind in _JUDGES else ""

    def _person(self, act: str) -> str:
        from fusewire.stores.memory import MemoryStore

        # A store in this process's memory disarms nothing.
        return "person" if isinstance(self.store, MemoryStore) else above().require_person(act, self.root)

    # -- looking ------------------------------------------------------------------------------------

    def status(self, circuit: str) -> Status:
        """One circuit as it is now."""
        from fusewire.engine.status import status_of

        policy, state = self.engine.view(circuit)
        (status,) = above().present(self, [status_of(circuit, policy, state, self.engine.clock())])
        return status

    def statuses(self) -> list[Status]:
        """Every active constraint, every breaker of one's own, and every other circuit that has a state.

        Circuits of retired constraints are left out, and those of sessions that have ended.
        """
        from fusewire.engine.status import status_of

        statuses = []
        stored = {row.id: row for row in self.store.circuits()}
        retired = {name for name, constraint in self.rules.constraints.items() if constraint.retired}
        own = {name for name in self.rules.policies if name.startswith("own/")}
        for name in sorted(({*self.rules.constraints} | own | set(stored)) - retired):
            row = stored.get(name)
            try:
                policy = self.rules.policy(name)
            except NotFound:
                if row is None or row.kind != "constraint":
                    continue
                policy = self.rules.constraint_policy(name)  # its file is gone, but what it did is not
            state = self.engine.state_in(row, name, policy)
            statuses.append(status_of(name, policy, state, self.engine.clock()))
        return [one for one in above().present(self, statuses) if one.session_ended is None]

    def probe_of(self, circuit: str) -> str | None:
        """The lease of the probe that is under way, if one is."""
        return self.engine.view(circuit)[1].lease

    def history(self, circuit: str, *, days: float = 30) -> list[LogRow]:
        """What reached the circuit in the last days, oldest first."""
        self.rules.policy(circuit)
        return self.store.log_of(identifier(circuit), self.engine.clock() - days * 86400)

    def audit(self, circuit: str | None = None, *, days: float = 30) -> list[AuditRow]:
        """The moves of a circuit (or of all) and the acts of people, oldest first."""
        return self.store.audit_of(circuit, self.engine.clock() - days * 86400)

    def verify(self) -> list[str]:
        """What is wrong with the stored state; empty if nothing is."""
        found = self.store.verify()
        for row in self.store.circuits():
            try:
                read_state(self.rules.policy(row.id), row.state)
            except NotFound:
                continue
            except ValueError:
                found.append(f"{row.id}: its state cannot be read")
        return sorted(set(found))

    # -- the rest -----------------------------------------------------------------------------------

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Breaker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, signal: Signal, actor: str = "") -> Decision:
        (decision,), written = self.engine.apply([signal], actor)
        self.mirror(written)
        return decision

    def mirror(self, written: set[str]) -> None:
        """After the commit: the state files of the constraints and of the phases follow the database."""
        if self.root is None or not self.is_own or not written:
            return
        for warning in above().after_commit(self, written):
            if warning not in self.store.notices():
                with self.store.transact() as transaction:
                    transaction.notice(warning, self.engine.clock())


def default_rules() -> Rules:
    """The policies as shipped, for a breaker that belongs to no project."""
    return compile_rules(None)

"""Know when a provider refuses requests: one circuit for each provider and account, for all agents of the person.

The circuits lie in the person's store and are stepped like all others, so that after a reset exactly one probe runs.
A refusal opens one, whoever reports it; an answer closes it, whatever the clock says. While one is not closed, the file
`providers.json` lies beside the store: a hook looks for it where a session begins or is spoken to, and at no call.
"""

from __future__ import annotations

import os
import time

from fusewire.core.decision import PUBLIC_STATE, Decision
from fusewire.core.events import Noun, Signal, plain
from fusewire.core.pacing import Window
from fusewire.engine.engine import Engine
from fusewire.scopes.user import LIMITED, SESSION, database_path, open_user_store
from fusewire.util.fast_json import dumps
from fusewire.util.local_time import local_time
from fusewire.util.processes import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fusewire.config.rules import Rules
    from fusewire.core.circuit import CircuitState
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.stores import Store

KIND = "provider"
PREFIX = f"{KIND}/"

#: Seconds after the second at which a limit ends, before anybody tries.
_MARGIN = 2.0

#: A limit that ends later than this was misread: the longest that providers have is a month.
_FARTHEST = 35 * 86_400

#: Seconds until a limit is tried that does not say when it ends; doubled with every probe that fails, up to an hour.
_UNKNOWN, _LONGEST_UNKNOWN = 300.0, 3600.0

#: Accounts that are remembered; those not heard of for longest are forgotten first.
_MOST = 100

#: Names of what is remembered of the windows of limits.
_WINDOWS = "windows/"

_TEXT = 200


class Refusal(Noun):
    """A provider's refusal, as its structure says, and who met it."""

    #: `five_hour`, `429`, ...; of an outage what the client said
    kind: str
    #: when it ends, where that was said
    resets_at: float | None = None
    is_outage: bool = False
    agent: str = ""
    session: str = ""
    root: str = ""
    #: when it was met
    at: float = 0.0

    @property
    def what(self) -> str:
        what = "the model could not be reached" if self.is_outage else "the provider's limit is reached"
        return f"{what} ({self.kind})" if self.kind else what

    @property
    def seen_by(self) -> str:
        """`claude session 479528ae in shop`, as far as it is known."""
        session = f"{self.agent or 'a'} session {self.session[:8]}".rstrip()
        return f"{session} in {os.path.basename(self.root)}" if self.root else session

    def to_data(self) -> dict[str, Any]:
        return dict(vars(self))


def believable(resets_at: float | None, now: float) -> float | None:
    """A time at which a limit can end; None for one that has passed or is too far away: then it is not known."""
    return resets_at if resets_at is not None and now < resets_at <= now + _FARTHEST else None


class Providers:
    """The circuits of the person's providers. Errors of the store are raised as StoreError."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        *,
        patience: float = 2.0,
        store: Store | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._clock, self._patience, self._store = clock, patience, store
        #: rules of a project, which have the same policies: to compile them takes longer than all else
        self._rules = rules
        self._made: Engine | None = None

    @property
    def engine(self) -> Engine:
        if self._made is None:
            self._made = Engine(
                self._store or open_user_store(patience=self._patience), provider_rules(self._rules), self._clock
            )
        return self._made

    @property
    def is_empty(self) -> bool:
        """Whether there is no store yet, so that nothing was ever refused."""
        return self._store is None and self._made is None and not os.path.lexists(database_path())

    # -- asking -------------------------------------------------------------------------------------------

    def look(self, circuit: str) -> Decision:
        """Whether a start may go on now; nothing is taken. The probe of a process that has died is free again."""
        if self.is_empty:
            return Decision("allow", circuit=circuit)
        lease = self.engine.view(circuit)[1].lease
        if lease is not None and _is_dead(lease):
            self.engine.run(lambda work: _free(work, circuit))
        return self._explained(circuit, self.engine.foresee(Signal("ask", circuit, "start", lease="nobody")))

    def ask(self, circuit: str, lease: str) -> Decision:
        """The same, and after the reset the first to ask gets the one probe."""
        if self.is_empty:
            return Decision("allow", circuit=circuit)

        def ask(work: BreakerTransaction) -> Decision:
            _free(work, circuit)
            return work.send(Signal("ask", circuit, "start", lease=lease))

        return self._explained(circuit, self.engine.run(ask))

    def release(self, circuit: str, lease: str) -> None:
        """Give a probe back that has decided nothing."""
        self.engine.run(lambda work: work.send(Signal("release", circuit, "release", lease=lease)))

    # -- telling ------------------------------------------------------------------------------------------

    def refused(self, circuit: str, refusal: Refusal) -> None:
        """A request was refused: the circuit opens, or stays open, until the limit ends."""

        def record(work: BreakerTransaction) -> None:
            state = work.state(circuit)
            met = refusal.replace(
                kind=_short(refusal.kind), resets_at=believable(refusal.resets_at, work.now), at=work.now
            )
            # Without a lease: a refusal is evidence, whoever holds the probe.
            work.send(
                Signal(
                    "bad",
                    circuit,
                    "outage" if met.is_outage else "limit",
                    value=_end(met, state, work.now),
                    text=f"{met.what}, seen by {met.seen_by}",
                    session=met.session or None,
                )
            )
            known = self.met(work.transaction, circuit) if state.phase == "open" else None
            if known is None or (met.resets_at or 0.0) > (known.resets_at or 0.0):
                since = {} if known is None else {"at": known.at}
                work.transaction.remember(circuit, {**met.to_data(), **since}, work.now)
                for name, _ in self.engine.store.remembered(PREFIX)[_MOST:]:
                    work.transaction.drop(name)
            _write_hint(self.engine, work)

        self.engine.run(record)

    def answered(self, circuit: str, session: str = "", *, lease: str | None = None, at: float | None = None) -> bool:
        """A request was answered: that closes the circuit, unless it was refused after `at`; whether it did."""
        if self.is_empty or self.engine.view(circuit)[1].phase == "closed":
            return False

        def close(work: BreakerTransaction) -> bool:
            state, met = work.state(circuit), self.met(work.transaction, circuit)
            if state.phase == "closed" or (at is not None and met is not None and at < met.at):
                return False
            if lease is not None and state.lease == lease:
                work.send(Signal("good", circuit, "answered", session=session or None, lease=lease))
            if work.state(circuit).phase != "closed":
                text = "the provider has answered a request"
                work.send(Signal("restart", circuit, "restart", text=text, session=session or None))
            _write_hint(self.engine, work)
            return True

        return self.engine.run(close)

    def reset(self, circuit: str, reason: str, actor: str) -> None:
        """A person ends the wait; one probe decides. InvalidTransition if nothing is waited for."""
        self.engine.apply([Signal("reset", circuit, "reset", text=reason)], actor)

    # -- looking ------------------------------------------------------------------------------------------

    def limits(self) -> list[tuple[str, CircuitState, Refusal]]:
        """The circuits that are not closed now, each with its refusal."""
        if self.is_empty:
            return []
        found = []
        for row in self.engine.store.circuits():
            if row.kind == KIND and row.phase != "closed":
                state = self.engine.state_in(row, row.id, self.engine.rules.policy(row.id))
                if state.phase != "closed":
                    found.append((row.id, state, self.met(self.engine.store, row.id) or Refusal("", at=state.since)))
        return found

    def untold(self, session: str, circuit: str) -> list[Refusal]:
        """The limit of a circuit, if it is in force and the session has not been told of it; from now on it has."""
        limits = self.limits()
        if not limits:  # quiet for so long that they have closed by themselves
            self.engine.run(lambda work: _write_hint(self.engine, work))
        found = [met for name, state, met in limits if name == circuit and state.phase == "open"]

        def note(work: BreakerTransaction) -> list[Refusal]:
            name = f"{SESSION}{session}"
            facts = _recalled(work.transaction, name)
            if facts.get("limit") == [circuit, found[0].at]:
                return []
            work.transaction.remember(name, {**facts, "limit": [circuit, found[0].at]}, work.now)
            return found

        return self.engine.run(note) if found else []

    # -- windows ------------------------------------------------------------------------------------------

    def note_windows(self, circuit: str, windows: tuple[Window, ...]) -> None:
        """Remember how far the windows of a limit are used, for whoever paces the starts."""
        if not windows:
            return

        def note(work: BreakerTransaction) -> None:
            work.transaction.remember(
                f"{_WINDOWS}{circuit}", {"windows": [dict(vars(one)) for one in windows]}, work.now
            )
            for name, _ in self.engine.store.remembered(_WINDOWS)[_MOST:]:
                work.transaction.drop(name)

        self.engine.run(note)

    def windows(self, circuit: str) -> tuple[Window, ...]:
        """The windows of a limit as somebody saw them last."""
        if self.is_empty:
            return ()
        try:
            return tuple(
                Window(**one) for one in _recalled(self.engine.store, f"{_WINDOWS}{circuit}").get("windows", ())
            )
        except TypeError:  # written by another version
            return ()

    def met(self, source: Any, circuit: str) -> Refusal | None:
        """The refusal that a circuit was opened by, as a store or a transaction has it."""
        data = _recalled(source, circuit)
        try:
            return Refusal(**data) if data else None
        except TypeError:  # written by another version
            return None

    def _explained(self, circuit: str, decision: Decision) -> Decision:
        """The decision with what there is to say for people: what, since when, until when, seen by whom."""
        met = self.met(self.engine.store, circuit) if decision.verdict != "allow" else None
        if met is None:
            return decision
        probing = "a probe is under way after: " if decision.phase == "probe" and not decision.allowed else ""
        explained: Decision = decision.replace(
            reason=f"{probing}{explain(met, self._clock())}",
            evidence=tuple(one for one in decision.evidence if not one.startswith("last: ")),
        )
        return explained


def explain(met: Refusal, now: float) -> str:
    """A refusal in a line for people."""
    until = f", until {local_time(met.resets_at, now)}" if met.resets_at is not None else ""
    return f"{met.what} since {local_time(met.at, now)}{until}; seen by {met.seen_by}"


def open_providers() -> Breaker:
    """The breaker behind the ids `provider/...`, as the commands use it."""
    from fusewire.engine.breaker import Breaker

    return Breaker(open_user_store(), provider_rules(), time.time)


def provider_rules(compiled: Rules | None = None) -> Rules:
    """The policies of the circuits: as shipped, whatever a project's files say."""
    from fusewire.config.rules import Rules

    if compiled is not None:
        return Rules({key: data for key, data in compiled.policies.items() if key.startswith(PREFIX)}, {}, (), False)
    from fusewire.config.compiler import compile_policies
    from fusewire.config.settings import read_policy_file

    file = read_policy_file(KIND)
    return Rules({policy.id: policy.to_data() for policy in compile_policies(file, file.defaults())}, {}, (), False)


def _end(met: Refusal, state: CircuitState, now: float) -> float:
    """When it is worth trying again; 0 leaves that to the policy's own steps."""
    if met.resets_at is not None:
        return met.resets_at + _MARGIN
    if met.is_outage:
        return 0.0
    failed = state.in_a_row if state.phase == "probe" else 0
    return float(now + min(_LONGEST_UNKNOWN, _UNKNOWN * 2 ** min(failed, 10)))


def _short(text: str) -> str:
    """A limit's name as it is; of what a client says of an outage, enough to know it again."""
    line = plain(" ".join(text.split()), _TEXT)
    return line if len(line) <= _TEXT // 2 else f"{line[: _TEXT // 2]}..."


def _is_dead(lease: str) -> bool:
    """Whether the process that took a probe has ended; a lease begins with who holds it."""
    holder = lease.partition(" ")[0]
    return ":" in holder and not is_alive(holder)


def _free(work: BreakerTransaction, circuit: str) -> None:
    lease = work.state(circuit).lease
    if lease is not None and _is_dead(lease):
        work.send(Signal("release", circuit, "release", lease=lease))


def _recalled(source: Any, name: str) -> dict[str, Any]:
    try:
        return source.recall(name) or {}
    except ValueError:
        return {}


def _write_hint(engine: Engine, work: BreakerTransaction) -> None:
    """Let the hint follow the circuits, while nobody else can change them."""
    from fusewire.stores.memory import MemoryStore
    from fusewire.util.files import replace_file

    if isinstance(engine.store, MemoryStore):
        return
    ids = [row.id for row in engine.store.circuits() if row.kind == KIND]
    states = {circuit: work.state(circuit).phase for circuit in ids}
    limited = {circuit: PUBLIC_STATE[phase] for circuit, phase in states.items() if phase != "closed"}
    path = os.path.join(os.path.dirname(database_path()), LIMITED)
    if limited:
        replace_file(path, dumps(limited).encode(), mode=0o600)
    elif os.path.lexists(path):
        os.unlink(path)

"""The scope lock: answers what a slice may change, and records what was justified beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.active import LOCK, invalidate, renew
from fusewire.breakers.attempt.scope.boundary import BLOCKED, IN_SCOPE, Boundary
from fusewire.breakers.attempt.scope.patterns import normal_pattern
from fusewire.breakers.attempt.scope.places import by_products, closed, files_below, is_own, place
from fusewire.breakers.attempt.scope.sources import NoScope, Scope, read_scope, slice_name
from fusewire.breakers.attempt.scope.state import (
    SESSIONS,
    SLICES,
    Justification,
    Unjustifiable,
    added,
    check_justification,
    recall_active,
    recall_slice,
    remember_active,
    remember_slice,
)
from fusewire.config.rules import SCOPE_FILE
from fusewire.guard.known_agents import SESSION_VARIABLES
from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown
from fusewire.util.files import FileLock, make_folder

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.stores import Transaction
    from fusewire.util.fast_json import JsonObject

#: Patterns that a scope may have.
_PATTERNS = 500

_ELSEWHERE = "outside the project"


def session_of(environment: Mapping[str, str]) -> str | None:
    """The agent's session that a process runs in; None outside of an agent."""
    return next((environment[name] for name in SESSION_VARIABLES if environment.get(name)), None)


@dataclass(frozen=True)
class ScopeAnswer:
    """May this path be changed?"""

    path: str
    #: IN_SCOPE, JUSTIFIED or BLOCKED
    decision: str
    #: where the scope names it, or which justification does; empty if it is blocked
    source: str
    #: why it is blocked; empty if it is not
    reason: str
    #: the file that a justification would open; empty if none would
    opens: str = ""

    @property
    def allowed(self) -> bool:
        return self.decision != BLOCKED

    def to_json(self) -> JsonObject:
        return {"path": self.path, "decision": self.decision, "source": self.source or None, "reason": self.reason}


class ScopeLock:
    """The scope lock of one project."""

    def __init__(self, breaker: Breaker) -> None:
        if breaker.root is None:
            raise FusewireError("a scope needs a project: open the breaker on one")
        self.breaker = breaker
        self.root = breaker.root

    # -- reading ------------------------------------------------------------------------------------------

    def scope(self, slice: str) -> Scope:
        """What is in scope, and who says so; NoScope if no source does, FusewireError if that cannot be used."""
        given, _ = recall_slice(self.breaker.store, slice_name(slice))
        return read_scope(self.root, slice, given)

    def check(
        self, slice: str, paths: Iterable[str], cwd: str | None = None, *, follows: bool = True
    ) -> list[ScopeAnswer]:
        """May these paths be changed? Relative ones are meant from `cwd`, or from the project if they are not there.

        Writing to a link writes to its target. In a diff (`follows=False`) a link is a file of its own,
        and what Fusewire itself keeps is left out.
        """
        boundary = boundary_of(self, slice)
        answers = []
        for path in paths:
            name = place(self._absolute(path, cwd), self.root, follows=follows)
            if name is None:
                answers.append(ScopeAnswer(path, BLOCKED, "", _ELSEWHERE))
                continue
            if not follows and is_own(name):
                continue
            decision, why = boundary.answer(name)
            if decision == BLOCKED:
                answers.append(ScopeAnswer(name, decision, "", why, "" if closed(name) else name))
            else:
                answers.append(ScopeAnswer(name, decision, why, ""))
        return [self._of_a_folder(answer, boundary) for answer in self._without_by_products(answers)]

    def violations(self, slice: str, files: Sequence[str]) -> list[dict[str, str]] | None:
        """Those of the project's files that are not in scope, each with its justification; None without a scope.

        A report must not fail because a graph is broken: then no file is known to be in scope, and each says why.
        """
        try:
            answers = self.check(slice, files, cwd=self.root, follows=False)
        except NoScope:
            return None
        except FusewireError as error:
            text = f"the scope cannot be told: {error}"
            return [{"file": file, "justification": text} for file in files if not is_own(file)]
        records = {record["file"]: record for record in self.justifications(slice)}
        found = []
        for answer in answers:
            if answer.decision != IN_SCOPE:
                record = records.get(answer.path)
                text = f"{record['reason']} — {record['relationship']}" if record else "none given"
                found.append({"file": answer.path, "justification": text})
        return found

    def justifications(self, slice: str) -> list[Justification]:
        """What was justified for a slice, oldest first: file, test, reason, relationship, at (seconds)."""
        return recall_slice(self.breaker.store, slice_name(slice))[1]

    def sessions(self, slice: str) -> list[str | None]:
        """The sessions that the slice is under way in; None stands for every one."""
        return recall_active(self.breaker.store).get(slice_name(slice), [])

    # -- changing -----------------------------------------------------------------------------------------

    def set(self, slice: str, patterns: Iterable[str]) -> list[str]:
        """The orchestrator's list of files, which counts alone from now on; an empty one takes it back."""
        given = [normal_pattern(text, self.root, "scope set") for text in patterns]
        given = list(dict.fromkeys(given))
        if len(given) > _PATTERNS:
            raise FusewireError(f"scope set: {len(given)} patterns; allowed: {_PATTERNS}")
        slice_name(slice)

        def act(transaction: Transaction, now: float) -> None:
            _, records = recall_slice(transaction, slice) if given else ([], self._records(transaction, slice))
            remember_slice(transaction, slice, given, records, now)

        self._change(act)
        return given

    def justify(
        self, slice: str, path: str, *, test: str, reason: str, relationship: str, cwd: str | None = None
    ) -> Justification:
        """Record why a file outside the scope must change; Unjustifiable if nothing is said, or nothing can be."""
        boundary = boundary_of(self, slice)
        full = self._absolute(path, cwd)
        name = place(full, self.root)
        if name is None:
            raise Unjustifiable(f"{path_shown(path)} is {_ELSEWHERE}")
        self._refuse_protected(name)
        decision, why = boundary.answer(name)
        if decision == IN_SCOPE:
            raise FusewireError(f"{path_shown(name)} is in scope of {slice} already ({why}); it needs no justification")
        if os.path.isdir(os.path.join(self.root, name)):
            raise FusewireError(f"{path_shown(name)} is a folder; allowed: one file at a time")
        record = check_justification(name, test, reason, relationship, self.breaker.engine.clock())

        def act(transaction: Transaction, now: float) -> None:
            given, records = recall_slice(transaction, slice)
            remember_slice(transaction, slice, given, added(records, record), now)

        self._change(act)
        return record

    def activate(self, slice: str, session: str | None) -> None:
        """The slice is under way: the hook holds this session (or all, for None) to its scope."""
        slice_name(slice)

        def act(transaction: Transaction, now: float) -> None:
            active = recall_active(transaction)
            sessions = [one for one in active.pop(slice, []) if one != session]
            if len(active) >= SLICES:
                raise FusewireError(
                    f"{slice}: {SLICES} slices are under way already, and no more are allowed; the oldest is"
                    f" {next(iter(active))}; if it is done: fusewire attempt finish {next(iter(active))}"
                )
            sessions = [*sessions, session]
            # Too many, or all of them: no session is released because another one came.
            active[slice] = [None] if None in sessions or len(sessions) > SESSIONS else sessions
            remember_active(transaction, active, now)

        self._change(act, always=True)

    def deactivate(self, slice: str) -> None:
        """The slice is no longer under way, in no session."""
        slice_name(slice)

        def act(transaction: Transaction, now: float) -> None:
            active = recall_active(transaction)
            if active.pop(slice, None) is not None:
                remember_active(transaction, active, now)

        self._change(act)

    def renew(self) -> None:
        """A circuit was opened or closed: what the hook reads of it is made again, now or at its next look."""
        try:
            self._change(lambda transaction, now: None, always=True)
        except FusewireError:
            invalidate(self.root)

    # -- within -------------------------------------------------------------------------------------------

    def _absolute(self, path: str, cwd: str | None) -> str:
        if not path or "\0" in path:
            raise FusewireError(f"{path!r} is no path; allowed: the path of a file or folder")
        full = os.path.join(cwd or os.getcwd(), path)
        there = os.path.join(self.root, path)
        return there if not os.path.lexists(full) and os.path.lexists(there) else full

    def _without_by_products(self, answers: list[ScopeAnswer]) -> list[ScopeAnswer]:
        """Build output, caches and the like are not work. Git is asked only about what would be blocked."""
        asked = [one.opens for one in answers if one.opens]
        free = by_products(self.root, asked) if asked else set()
        return [
            ScopeAnswer(one.path, IN_SCOPE, "a by-product, or ignored by git", "") if one.opens in free else one
            for one in answers
        ]

    def _of_a_folder(self, answer: ScopeAnswer, boundary: Boundary) -> ScopeAnswer:
        """A folder is justified file by file, so the first file of it that needs that is named."""
        full = os.path.join(self.root, answer.path)
        if not answer.opens or not os.path.isdir(full) or os.path.islink(full):
            return answer
        below = [name for name in files_below(self.root, answer.path)[0] if not boundary.allows(name)]
        free = by_products(self.root, [name for name in below if not closed(name)]) if below else set()
        first = next((name for name in below if name not in free), "")
        if not first:
            return ScopeAnswer(answer.path, BLOCKED, "", f"{answer.reason} as a folder; ask for one file at a time")
        why = closed(first)
        reason = f"a folder, and {path_shown(first)} in it is {answer.reason}"
        if why:
            reason = f"a folder, and {path_shown(first)} in it {why.removeprefix('it ')}"
        return ScopeAnswer(answer.path, BLOCKED, "", reason, "" if why else first)

    def _refuse_protected(self, name: str) -> None:
        """Some files no justification opens: what defines the scope, what Fusewire and the agents are set up with."""
        from fusewire.guard.policy import protected_of
        from fusewire.guard.protected import CONFIGURATION

        why = closed(name)
        if why:
            raise Unjustifiable(f"{path_shown(name)} {why.removeprefix('it ')}")
        full = os.path.join(os.path.realpath(self.root), name)
        if protected_of(self.root, self.breaker.rules).kind_of(full) == CONFIGURATION:
            raise Unjustifiable(f"{path_shown(name)} is protected, and only a person may change it")

    def _records(self, transaction: Transaction, slice: str) -> list[Justification]:
        """Justifications that outlive a scope which is taken back, also if what is stored beside them is damaged."""
        try:
            return recall_slice(transaction, slice)[1]
        except FusewireError:
            return []

    def _change(self, act: Callable[[Transaction, float], None], *, always: bool = False) -> None:
        """Change the store, and what the hook reads of it."""
        make_folder(self.root, os.path.dirname(SCOPE_FILE))
        try:
            with FileLock(os.path.join(self.root, LOCK)):
                if not always and not os.path.lexists(os.path.join(self.root, SCOPE_FILE)):
                    self._transact(act)
                    return
                invalidate(self.root)
                try:
                    self._transact(act)
                finally:
                    renew(self.breaker, self.root)
        except BlockingIOError:
            raise FusewireError("another process is changing the scopes of this project; try again") from None

    def _transact(self, act: Callable[[Transaction, float], None]) -> None:
        with self.breaker.store.transact() as transaction:
            act(transaction, self.breaker.engine.clock())


def boundary_of(lock: ScopeLock, slice: str) -> Boundary:
    """The scope of a slice with what was justified beside it; NoScope or FusewireError as of `ScopeLock.scope`."""
    given, records = recall_slice(lock.breaker.store, slice_name(slice))
    justified = {record["file"]: record["test"] for record in records}
    return Boundary(slice, read_scope(lock.root, slice, given).entries, justified)

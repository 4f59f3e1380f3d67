"""Remember the project's files at the last attempt that was counted in a session, test by test.

An attempt is a whole cycle: without a change since the last one it is only another look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.places import by_products, is_own
from fusewire.breakers.session.state import recalled
from fusewire.worktree.checkpoint import Checkpoint, Gone

if TYPE_CHECKING:
    from fusewire.breakers.attempt.state import SliceRecord, TestRecord
    from fusewire.breakers.attempt.tracker import Attempts

#: Tests of a slice that something is remembered of, and seconds after which nothing is remembered of a slice.
_REMEMBERED = 50
_FORGOTTEN = 30 * 86400

_NAME = "attempt-seen:"


class LastAttempts:
    """Of one slice. While files are looked at, that is on record: a look that never came to its end, because the hook
    ran out of time, is not begun again."""

    def __init__(self, attempts: Attempts, slice_id: str, life: int) -> None:
        self.attempts, self.slice, self.life = attempts, slice_id, life
        self.name = f"{_NAME}{slice_id}"
        data = recalled(attempts.breaker.store, self.name)
        known = data.get("tests") if data.get("life") == life else None
        #: test -> the number of the attempt, and the files as it left them
        self.tests: dict[str, tuple[int, Checkpoint]] = {}
        for test, one in known.items() if isinstance(known, dict) else ():
            try:
                self.tests[test] = one["attempt"], Checkpoint.from_data(one["files"])
            except (TypeError, KeyError, ValueError):
                continue
        #: looks take too long in this project
        self.given_up = data.get("life") == life and data.get("looking") is True

    def __enter__(self) -> LastAttempts:
        self._remember(looking=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):  # else the hook has run out of time
            self._remember(looking=False)

    def give_up(self) -> None:
        self._remember(looking=True)

    def _remember(self, *, looking: bool) -> None:
        newest = list(self.tests.items())[-_REMEMBERED:]
        tests = {test: {"attempt": number, "files": files.to_data()} for test, (number, files) in newest}
        with self.attempts.breaker.store.transact() as transaction:
            data = {"life": self.life, "tests": tests, "looking": looking}
            now = self.attempts.engine.clock()
            transaction.remember(self.name, data, now)
            transaction.forget(_NAME, now - _FORGOTTEN)

    def same_as(self, record: SliceRecord, test: str) -> str:
        """Since when no work has been done at a test that is still there; empty if some has."""
        entry = record.tests[test]
        last = self._files_after(entry, test) or (record.after if entry.log else None)
        bases = {"since the last attempt": last, "since the attempts began": entry.checkpoint}
        return next((words for words, base in bases.items() if base and not self._differs(entry, base)), "")

    def is_last(self, record: SliceRecord, test: str) -> bool:
        """Whether the last attempt at a test was counted here, and nothing was changed since."""
        entry = record.tests.get(test)
        files = self._files_after(entry, test) if entry is not None and entry.log else None
        return entry is not None and files is not None and not self._differs(entry, files)

    def _files_after(self, entry: TestRecord, test: str) -> Checkpoint | None:
        """The files after the last attempt at a test, or after a look since; None if no run has told."""
        number, files = self.tests.get(test, (0, None))
        return files if number == _number(entry) else None

    def _differs(self, entry: TestRecord, base: Checkpoint) -> bool:
        try:
            files = self.attempts.checkpoints.changed_since(base)
        except Gone:
            return True
        files = [path for path in files if not is_own(path)]
        if files:
            files = sorted(set(files) - by_products(self.attempts.root, files))
        return bool(self.attempts.own_files(self.slice, files, entry.began))

    def note(self, test: str) -> None:
        """The run that was just recorded; what it has written itself is no work."""
        record = self.attempts.record(self.slice)
        entry = record.tests.get(test)
        if entry is not None and record.after:
            self.tests.pop(test, None)
            self.tests[test] = _number(entry), record.after

    def keep(self, test: str) -> None:
        """The same, at once."""
        self.note(test)
        self._remember(looking=self.given_up)


def _number(entry: TestRecord) -> int:
    """Of the last attempt at a test; 0 before the first."""
    return entry.log[-1]["attempt"] if entry.log else 0

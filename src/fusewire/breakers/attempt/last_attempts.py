"""The project's files at the last attempt that was counted in a session, test by test.

An attempt is a whole cycle: without a change since the last one it is only another look.
"""

from __future__ import annotations

from fusewire.breakers.session.state import recalled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.breakers.attempt.state import SliceRecord
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
        known = known if isinstance(known, dict) else {}
        self.tests: dict[str, Any] = {
            test: one for test, one in known.items() if isinstance(one, dict) and one.keys() == {"attempt", "files"}
        }
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
        newest = dict(list(self.tests.items())[-_REMEMBERED:])
        with self.attempts.breaker.store.transact() as transaction:
            data = {"life": self.life, "tests": newest, "looking": looking}
            now = self.attempts.engine.clock()
            transaction.remember(self.name, data, now)
            transaction.forget(_NAME, now - _FORGOTTEN)

    def is_changed(self, record: SliceRecord, test: str) -> bool:
        """Whether work has been done since the last attempt at a test, and is still there."""
        entry = record.tests[test]
        last = self._last(record, test)
        bases = [entry.checkpoint] if last is None else [last, entry.checkpoint]
        return all(self._differs(record, test, base) for base in bases)

    def is_last(self, record: SliceRecord, test: str) -> bool:
        """Whether the last attempt at a test was counted here, and nothing was changed since."""
        known = self.tests.get(test)
        entry = record.tests.get(test)
        if known is None or entry is None or not entry.log or known["attempt"] != entry.log[-1]["attempt"]:
            return False
        return not self._differs(record, test, known["files"])

    def _last(self, record: SliceRecord, test: str) -> dict[str, Any] | None:
        """Where the last attempt left the files: one that was recorded otherwise left them as the slice knows."""
        entry, known = record.tests[test], self.tests.get(test)
        if not entry.log:
            return None
        if known is not None and known["attempt"] == entry.log[-1]["attempt"]:
            files: dict[str, Any] = known["files"]
            return files
        return record.after or None

    def _differs(self, record: SliceRecord, test: str, base: dict[str, Any]) -> bool:
        from fusewire.breakers.attempt.ownership import without_others
        from fusewire.breakers.attempt.scope.places import by_products, is_own
        from fusewire.worktree.checkpoint import Checkpoint, Gone

        try:
            files = self.attempts.checkpoints.changed_since(Checkpoint.from_data(base))
        except (Gone, ValueError):
            return True
        files = [path for path in files if not is_own(path)]
        if files:
            files = sorted(set(files) - by_products(self.attempts.root, files))
        others = self.attempts.others(self.slice, record.tests[test].began)
        return bool(without_others(self.attempts.lock, self.slice, files, others) if others else files)

    def note(self, test: str) -> None:
        """The attempt that was just recorded."""
        record = self.attempts.record(self.slice)
        entry = record.tests.get(test)
        if entry is not None and entry.log and record.after:
            self.tests.pop(test, None)
            self.tests[test] = {"attempt": entry.log[-1]["attempt"], "files": record.after}

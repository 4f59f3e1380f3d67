"""After every operation: are the protected files still what they were?

A session starts from a snapshot. What a permitted tool has updated is taken into it; what is missing or emptied is
restored and the agent is halted; what was changed otherwise is told, once, and left for a person to judge.
"""

from __future__ import annotations

import os

from fusewire.guard import session as files
from fusewire.guard.integrity import Integrity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fusewire.guard.integrity import Finding
    from fusewire.guard.protected import Protected

#: Paths that a message names.
_NAMED = 8


class Watch:
    """The protected files of one project, over one session."""

    def __init__(self, protected: Protected) -> None:
        self.protected = protected
        self.root = protected.root
        self.integrity = Integrity(protected.root, protected.files)

    def begin(self, session: str | None, now: float, *, lifts: bool = True) -> None:
        """The first call of a session that may change something: what was changed before is not its doing.

        One that `lifts` nothing leaves everything as it is where somebody was halted. A folder with nothing to
        protect, in which Fusewire has never been, stays as it is.
        """
        if not os.path.isdir(os.path.join(self.root, ".fusewire")) and next(self.protected.files_here(), None) is None:
            return
        stays = (not lifts and files.read(self.root, "halt")) or files.others_busy(self.root, session, now)
        if not self.integrity.exists() or not stays:
            self.integrity.snapshot(now, session=session or "")
            self.lift()
        files.begin(self.root, session)

    def permitted(self, paths: Iterable[str], now: float) -> None:
        """A tool that may has updated these."""
        mine = [
            path
            for path in map(self._full, paths)
            if self.protected.kind_of(os.path.realpath(path)) and _has_content(path)
        ]
        if mine and self.integrity.exists():
            self.integrity.snapshot(now, only=mine)

    def after(self, cause: str, session: str | None, now: float, *, strict: Collection[str] = ()) -> tuple[str, str]:
        """After a call: ("halt", text), ("tell", text), or ("", "") if everything is as it should be.

        Of what is `strict` any change is as bad as a loss.
        """
        if not self.integrity.exists():
            problem = self.integrity.problem
            return (
                ("tell", f"WARN guard.integrity: {problem}; a new snapshot is taken before the next call")
                if problem
                else ("", "")
            )
        findings = self.integrity.verify()
        lost = [
            finding
            for finding in findings
            if finding.kind in ("missing", "emptied", "type") or (finding.kind == "changed" and finding.path in strict)
        ]
        if lost:
            text = self._restore(lost, cause, now)
            files.write(self.root, "halt", f"{session or ''}\n{text}")
            return "halt", text
        changed = [finding for finding in findings if finding.kind != "new"]
        text = "\n".join(f"{finding.kind} {finding.path}" for finding in changed)
        if not changed or files.read(self.root, "told") == text:
            return "", ""
        files.write(self.root, "told", text)
        return "tell", self._tell(changed, cause)

    def lift(self) -> None:
        """A person has spoken, or another session has begun."""
        files.forget(self.root, "halt")
        files.forget(self.root, "told")

    def _restore(self, lost: list[Finding], cause: str, now: float) -> str:
        restored = self.integrity.restore(now, [self._full(finding.path) for finding in lost])
        words = {
            "missing": "is gone",
            "emptied": "was emptied",
            "type": "was replaced by something else",
            "changed": "was changed",
        }
        lines = [f"BLOCKED guard.integrity: {_names(lost)} {words[lost[0].kind]} after: {cause[:300]}"]
        for one in restored[:_NAMED]:
            kept = f" (what was there is kept in {one.kept})" if one.kept else ""
            lines.append(
                f"{one.path}: could not be restored: {one.problem}" if one.problem else f"{one.path}: restored{kept}"
            )
        lines.append("Next: do not do it again; find out what in it removes or changes protected files; ask the user.")
        return "\n".join(lines)

    def _tell(self, changed: list[Finding], cause: str) -> str:
        return (
            f"WARN guard.integrity: {_names(changed)} was changed by no tool that may, after: {cause[:300]}\n"
            "Next: tell the user. A person can run: fusewire guard verify, and then fusewire guard restore"
            " (or fusewire guard snapshot, to take it as it is)."
        )

    def _full(self, path: str) -> str:
        return os.path.join(self.protected.root, path)


def _has_content(path: str) -> bool:
    """A file that is gone or empty was not updated, whatever tool is said to have done it."""
    try:
        return os.path.isfile(path) and os.stat(path).st_size > 0
    except OSError:
        return False


def _names(findings: list[Finding]) -> str:
    names = [finding.path for finding in findings]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

"""After every operation: are the protected files still what they were?

A session starts from a snapshot. What a permitted tool has updated is taken into it; what is missing or emptied is
restored and the agent is halted; what was changed otherwise is told, once, and left for a person to judge.
"""

from __future__ import annotations

import os

from fusewire.guard.integrity import Integrity
from fusewire.stores.folder import ensure_state_folder, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.guard.integrity import Finding
    from fusewire.guard.protected import Protected

#: Paths that a message names.
_NAMED = 8


class Watch:
    """The protected files of one project, over one session."""

    def __init__(self, root: str, protected: Protected) -> None:
        self.root = root
        self.protected = protected
        self.integrity = Integrity(protected.root, protected.files)
        self._folder = os.path.join(protected.root, ".fusewire", "guard")

    def begin(self, session: str | None, now: float) -> None:
        """Before a call: a session that has no snapshot yet gets one; what changed before it is not its doing."""
        if not self.integrity.exists() or self.integrity.session != session:
            self.integrity.snapshot(now, session=session or "")
            self.lift()

    def between(self, now: float) -> None:
        """What was changed since the last call was changed by somebody else, and becomes what is right."""
        findings = self.integrity.verify()
        paths = [self._full(finding.path) for finding in findings]
        if paths:
            self.integrity.snapshot(now, only=paths)

    def permitted(self, paths: Iterable[str], now: float) -> None:
        """A tool that may has updated these."""
        mine = [path for path in map(self._full, paths) if self.protected.kind_of(os.path.realpath(path))]
        if mine and self.integrity.exists():
            self.integrity.snapshot(now, only=mine)

    def after(self, cause: str, now: float) -> tuple[str, str]:
        """After a call: ("halt", text), ("tell", text), or ("", "") if everything is as it should be."""
        if not self.integrity.exists():
            return "", ""
        findings = self.integrity.verify()
        lost = [finding for finding in findings if finding.kind in ("missing", "emptied", "type")]
        if lost:
            text = self._restore(lost, cause, now)
            self._keep("halt", f"{self.integrity.session or ''}\n{text}")
            return "halt", text
        changed = [finding for finding in findings if finding.kind != "new"]
        text = "\n".join(f"{finding.kind} {finding.path}" for finding in changed)
        if not changed or self._kept("told") == text:
            return "", ""
        self._keep("told", text)
        return "tell", self._tell(changed, cause)

    def halted(self, session: str | None) -> str:
        """Why the session was halted, if nobody has lifted it since."""
        owner, _, text = self._kept("halt").partition("\n")
        return text if text and owner == (session or "") else ""

    def lift(self) -> None:
        """A person has spoken, or another session has begun."""
        for name in ("halt", "told"):
            try:
                os.unlink(os.path.join(self._folder, name))
            except OSError:
                pass

    def _restore(self, lost: list[Finding], cause: str, now: float) -> str:
        restored = self.integrity.restore(now, [self._full(finding.path) for finding in lost])
        words = {"missing": "is gone", "emptied": "was emptied", "type": "was replaced by something else"}
        lines = [f"BLOCKED guard.integrity: {_names(lost)} {words[lost[0].kind]} after: {cause[:300]}"]
        for one in restored[:_NAMED]:
            kept = f" (what was there is kept in {one.kept})" if one.kept else ""
            lines.append(f"{one.path}: could not be restored: {one.problem}" if one.problem else f"{one.path}: restored{kept}")
        lines.append("Next: do not run it again; find out what in it removes protected files; ask the user.")
        return "\n".join(lines)

    def _tell(self, changed: list[Finding], cause: str) -> str:
        return (
            f"WARN guard.integrity: {_names(changed)} was changed by no tool that may, after: {cause[:300]}\n"
            "Next: tell the user. A person can run: fusewire guard verify, and then fusewire guard restore"
            " (or fusewire guard snapshot, to take it as it is)."
        )

    def _full(self, path: str) -> str:
        return os.path.join(self.protected.root, path)

    def _keep(self, name: str, text: str) -> None:
        ensure_state_folder(os.path.dirname(self._folder))
        os.makedirs(self._folder, exist_ok=True)
        replace_file(os.path.join(self._folder, name), text.encode("utf-8", "surrogatepass"))

    def _kept(self, name: str) -> str:
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                return file.read(65536).decode("utf-8", "surrogatepass")
        except OSError:
            return ""


def _names(findings: list[Finding]) -> str:
    names = [finding.path for finding in findings]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

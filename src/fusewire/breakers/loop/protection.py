"""Record the protected files before an iteration, compare them after it, and restore those that are lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.config.rules import STATE_FOLDER
from fusewire.core.messages import agent_message
from fusewire.guard import calls as marks
from fusewire.guard.integrity_check import IntegrityCheck
from fusewire.guard.policy import OWN, protected_of
from fusewire.guard.protected import DOCUMENT
from fusewire.util.files import file_stamp, free_name

if TYPE_CHECKING:
    from fusewire.config.rules import Rules
    from fusewire.guard.integrity import IntegrityFinding

#: The project's settings.
SETTINGS = "fusewire.toml"

#: The loop's name among the sessions that watch a project.
_SESSION = "loop"

#: What would disarm the breaker or its hooks if an agent added it.
_STRICT = tuple(path for path in OWN if not path.endswith("/"))


class Protection:
    """A halt of the guard is a halt of the loop."""

    def __init__(self, root: str, rules: Rules) -> None:
        self.root = root
        self.check = IntegrityCheck(protected_of(root, rules), rules)
        self._began = False
        #: the agent is in a sandbox that makes configuration read-only
        self.confined = False
        self._stamps = self._settings()

    def begin(self, now: float) -> None:
        self._stamps = self._settings()
        self.check.renew(now)
        self.check.lift()
        self._began = True

    def halt(self, text: str) -> None:
        """Halt the loop until a person lifts it."""
        self.check.halt(_SESSION, text)

    def halted(self) -> bool:
        return bool(marks.read(self.root, "halt"))

    def after(self, cause: str, now: float) -> tuple[str, str]:
        """("halt", text), ("tell", text) or ("", ""). The agent may update documents; that is its work."""
        halted_by_hook = marks.read(self.root, "halt").partition("\n")[2]
        if halted_by_hook:
            return "halt", halted_by_hook
        integrity = self.check.integrity
        if self._began and not integrity.exists():
            text = f"BLOCKED guard.integrity: the copies of protected files were removed after: {cause}"
            self.halt(text)
            return "halt", text
        findings = integrity.verify()
        added = self._set_aside_new(findings)
        decision = self.check.after(cause, now, permitted=[*self._updated_documents(findings), *self._by_person()])
        verdict, text = (decision.verdict, agent_message(decision)) if decision is not None else ("", "")
        if added:
            verdict, text = "halt", "\n".join(part for part in (added, text if verdict == "halt" else "") if part)
        if verdict == "halt":
            self.halt(text)
        return verdict, text

    def _set_aside_new(self, findings: list[IntegrityFinding]) -> str:
        """Configuration that was not there before and would be in force from the next start on; nothing is lost."""
        lines = []
        for finding in findings:
            if finding.kind == "new" and finding.path in _STRICT:
                kept = free_name(os.path.join(self.root, STATE_FOLDER, f"added-{finding.path.replace('/', '-')}"))
                os.rename(os.path.join(self.check.root, finding.path), kept)
                where = os.path.join(STATE_FOLDER, os.path.basename(kept))
                lines.append(f"BLOCKED guard.integrity: {finding.path} was added by an agent; it is now {where}.")
        return "\n".join([*lines, "Next: a person decides whether it is wanted."]) if lines else ""

    def _settings(self) -> list[tuple[int, int, int] | None]:
        return [file_stamp(os.path.join(self.root, name)) for name in (SETTINGS, "pyproject.toml")]

    def _by_person(self) -> list[str]:
        return [SETTINGS] if self.changed_by_person() else []

    def changed_by_person(self) -> bool:
        """Whether a person has edited the settings in the meantime: the kernel lets no agent do so."""
        before, now = self._stamps, self._settings()
        return self.confined and None not in (before[0], now[0]) and before[0] != now[0] and before[1] == now[1]

    def _updated_documents(self, findings: list[IntegrityFinding]) -> list[str]:
        protected = self.check.protected
        return [
            finding.path
            for finding in findings
            if finding.kind in ("changed", "new", "mode")
            and protected.kind_of(os.path.realpath(os.path.join(protected.root, finding.path))) == DOCUMENT
        ]

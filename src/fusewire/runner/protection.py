"""The protected files around an iteration: recorded before it, compared after it, restored where they are lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.guard import session as marks
from fusewire.guard.policy import OWN, protected_of
from fusewire.guard.protected import DOCUMENT
from fusewire.guard.watch import Watch

if TYPE_CHECKING:
    from fusewire.rules import Rules

#: The loop's name among the sessions that watch a project.
_SESSION = "loop"

#: What would disarm the breaker or its hooks: a change of these is undone, and the loop halted.
_STRICT = tuple(path for path in OWN if not path.endswith("/"))


class Protection:
    """A halt of the guard is a halt of the loop."""

    def __init__(self, root: str, rules: Rules) -> None:
        self.root = root
        self.watch = Watch(protected_of(root, rules))

    def begin(self, now: float) -> None:
        self.watch.begin(_SESSION, now)

    def after(self, cause: str, now: float) -> tuple[str, str]:
        """("halt", text), ("tell", text) or ("", ""). The agent may update documents; that is its work."""
        halted_by_hook = marks.read(self.root, "halt").partition("\n")[2]
        if halted_by_hook:
            return "halt", halted_by_hook
        self.watch.permitted(self._updated_documents(), now)
        return self.watch.after(cause, _SESSION, now, strict=_STRICT)

    def _updated_documents(self) -> list[str]:
        protected = self.watch.protected
        return [
            finding.path
            for finding in self.watch.integrity.verify()
            if finding.kind in ("changed", "new", "mode")
            and protected.kind_of(os.path.realpath(os.path.join(protected.root, finding.path))) == DOCUMENT
        ]

"""The plan: a Markdown file whose boxes are ticked as tasks are done."""

from __future__ import annotations

import os

from fusewire.core.events import fingerprint
from fusewire.util.errors import FusewireError
from fusewire.util.files import read_regular
from fusewire.worktree.tasks import boxes

#: ticked, open
Boxes = tuple[list[str], list[str]]

#: Where agents usually keep their plan.
USUAL = ("IMPLEMENTATION_PLAN.md", "fix_plan.md", "@fix_plan.md", ".ralph/fix_plan.md", ".ralph/@fix_plan.md")

#: Tasks of a plan that are compared: its last ones.
_TASKS = 500

#: Larger than any plan.
_LIMIT = 1024 * 1024


class WorkPlan:
    """The plan of one project, or none."""

    def __init__(self, root: str, path: str | None = None) -> None:
        self.path = None
        if path is not None:
            self.path = os.path.join(root, path)
            if not os.path.isfile(self.path):
                raise FusewireError(f"no such plan: {path}")
        else:
            usual = (os.path.join(root, name) for name in USUAL)
            self.path = next((place for place in usual if os.path.isfile(place)), None)
        #: a plan that was found, not named, and has nothing open ends no loop
        self._ends = path is not None or bool(self._boxes()[1])

    def finished(self, before: Boxes) -> str:
        """Why the plan ends the loop; empty if it does not. Boxes that were open `before` and are gone are not done."""
        ticked, still_open = self._boxes()
        if not (self._ends or before[1]) or still_open or not ticked:
            return ""
        if len(ticked) - len(before[0]) < len(before[1]):
            return ""
        return f"no box of {os.path.basename(self.path or '')} is open any more ({len(ticked)} ticked)"

    def boxes(self) -> Boxes:
        """The tasks that are done and those that are open, each by a short mark of its text."""
        ticked, still_open = self._boxes()
        return _marks(ticked), _marks(still_open)

    def _boxes(self) -> tuple[list[str], list[str]]:
        if self.path is None:
            return [], []
        try:
            return boxes(read_regular(self.path, _LIMIT).decode("utf-8", "replace"))
        except OSError:
            return [], []


def completed(before: Boxes, after: Boxes) -> list[str]:
    """The tasks that were ticked in between: open before, or reworded while they were ticked."""
    new = [mark for mark in after[0] if mark not in set(before[0])]
    known = [mark for mark in new if mark in set(before[1])]
    return known or new[: max(0, len(before[1]) - len(after[1]))]


def _marks(texts: list[str]) -> list[str]:
    return [fingerprint(text)[7:19] for text in texts[-_TASKS:]]

"""The plan: a Markdown file whose boxes are ticked as tasks are done."""

from __future__ import annotations

import os

from fusewire.errors import FusewireError
from fusewire.events import fingerprint
from fusewire.progress.plan import boxes

#: Where agents keep their plan, if nobody says where.
USUAL = ("IMPLEMENTATION_PLAN.md", "fix_plan.md", "@fix_plan.md", ".ralph/fix_plan.md", ".ralph/@fix_plan.md")

#: Tasks that are told apart: the last ones of a plan.
_TASKS = 500

#: Larger than any plan.
_LIMIT = 1024 * 1024


class Plan:
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
        #: a plan that nobody named and that has nothing open ends no loop
        self._ends = path is not None or self.is_open()

    def finished(self, *, was_open: bool = False) -> str:
        """Why the plan ends the loop; empty if it does not. `was_open`: a box was open when the iteration began."""
        ticked, still_open = self._boxes()
        if not (self._ends or was_open) or still_open or not ticked:
            return ""
        return f"no box of {os.path.basename(self.path or '')} is open any more ({len(ticked)} ticked)"

    def ticked(self) -> tuple[str, ...]:
        """The tasks that are done, each by a short mark of its text."""
        return tuple(fingerprint(text)[7:19] for text in self._boxes()[0][-_TASKS:])

    def is_open(self) -> bool:
        return bool(self._boxes()[1])

    def _boxes(self) -> tuple[list[str], list[str]]:
        if self.path is None:
            return [], []
        try:
            with open(self.path, "rb") as file:
                return boxes(file.read(_LIMIT).decode("utf-8", "replace"))
        except OSError:
            return [], []

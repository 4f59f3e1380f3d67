"""The plan: a Markdown file whose boxes are ticked as tasks are done."""

from __future__ import annotations

import os

from fusewire.errors import FusewireError
from fusewire.progress.plan import boxes

#: Where agents keep their plan, if nobody says where.
USUAL = ("IMPLEMENTATION_PLAN.md", "fix_plan.md", "@fix_plan.md", ".ralph/fix_plan.md", ".ralph/@fix_plan.md")

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
        self._ends = path is not None or self._boxes()[1] > 0

    def ticked(self) -> int:
        return self._boxes()[0]

    def finished(self) -> str:
        """Why the plan ends the loop; empty if it does not."""
        ticked, still_open = self._boxes()
        if not self._ends or still_open or not ticked:
            return ""
        return f"all {ticked} boxes of {os.path.basename(self.path or '')} are ticked"

    def _boxes(self) -> tuple[int, int]:
        if self.path is None:
            return 0, 0
        try:
            with open(self.path, "rb") as file:
                return boxes(file.read(_LIMIT).decode("utf-8", "replace"))
        except OSError:
            return 0, 0

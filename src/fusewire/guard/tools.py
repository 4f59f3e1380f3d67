"""Structured tools: which of them may change which protected path.

An agent's edit tools may update the documents; nobody but a person changes the configuration; no tool deletes,
moves away or empties any of them.
"""

from __future__ import annotations

import os

from fusewire.guard.protected import CONFIGURATION, DOCUMENT
from fusewire.guard.verdict import Verdict
from fusewire.paths import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.protected import Protected


def check_tool(
    tool: str, paths: tuple[str, ...], *, root: str, protected: Protected, change: str = "update"
) -> Verdict:
    """May a structured tool change these paths? `change` is update, empty or delete."""
    for path in paths:
        if "\0" in path:
            continue
        full = os.path.join(root, path)
        kinds = {protected.kind_of(os.path.realpath(full)), protected.kind_of(normal(full))} - {None}
        same = protected.same_file(full)
        if same is not None:
            kinds.add(protected.kind_of(same))
        if not kinds and change == "delete" and protected.below(os.path.realpath(full)):
            kinds = {CONFIGURATION}
        if not kinds:
            continue
        name = protected.shown(os.path.realpath(full))
        if change == "update" and (kinds == {DOCUMENT} or protected.grants(tool, name)):
            continue
        verb = {"empty": "empty", "delete": "delete"}.get(change, "change")
        who = "no tool may do that" if kinds == {DOCUMENT} else "only a person may change it"
        return Verdict(
            "BLOCKED",
            f"guard.{verb}",
            f"{tool} would {verb} {name}, which is protected: {who}",
            affected=(name,),
            next=("update its content instead",)
            if kinds == {DOCUMENT}
            else ("go on without it, or ask the user to do it",),
        )
    return Verdict("ALLOWED")

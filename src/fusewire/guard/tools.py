"""Structured tools: which of them may change which protected path.

An agent's edit tools may update the documents. What its program takes for its own (commands, skills, agents, output
styles) they may update after a person was asked. Only a person changes the rest of the configuration; no tool deletes,
moves away or empties any of them.
"""

from __future__ import annotations

import os

from fusewire.guard.protected import CONFIGURATION, DOCUMENT
from fusewire.guard.shell.paths import normal
from fusewire.guard.verdict import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.guard.protected import Protected

#: Folders of Claude Code in a project and in the home folder that extend it, and register nothing.
_EXTENSIONS = ("commands", "skills", "agents", "output-styles")


def is_attended(environment: Mapping[str, str]) -> bool:
    """Whether a person can answer a question: Claude Code says so, and no other agent has started this one."""
    return environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "1" and not environment.get("FUSEWIRE_DEPTH")


def check_tool(
    tool: str,
    paths: tuple[str, ...],
    *,
    root: str,
    protected: Protected,
    change: str = "update",
    attended: bool = False,
) -> Verdict:
    """May a structured tool change these paths? `change` is update, empty or delete."""
    asks: list[str] = []
    for path in paths:
        if "\0" in path:
            continue
        full = os.path.join(root, path)
        same = protected.same_file(full)
        places = {os.path.realpath(full), normal(full), *((same,) if same is not None else ())}
        kinds = {protected.kind_of(place) for place in places} - {None}
        if not kinds and change == "delete" and protected.below(os.path.realpath(full)):
            kinds = {CONFIGURATION}
        if not kinds:
            continue
        name = protected.shown(os.path.realpath(full))
        if change == "update" and (kinds == {DOCUMENT} or protected.grants(tool, name)):
            continue
        if change == "update" and _extends(places, protected.root):
            asks.append(name)
            continue
        return _blocked(tool, name, change, kinds == {DOCUMENT})
    return _asked(tool, asks, attended) if asks else Verdict("ALLOWED")


def _extends(places: set[str], root: str) -> bool:
    """Whether a path lies in a folder that extends Claude Code, under each of its names."""
    bases = [f"{root}/.claude"]
    for home in ("~/.claude", os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"):
        bases += [os.path.expanduser(home), os.path.realpath(os.path.expanduser(home))]
    folders = tuple(f"{base}/{name}/" for base in bases for name in _EXTENSIONS)
    return all(place.startswith(folders) and not _is_linked(place) for place in places)


def _is_linked(path: str) -> bool:
    """Whether a file has another name, which may be that of the settings."""
    try:
        facts = os.stat(path)
    except OSError:
        return False
    return facts.st_nlink > 1 and not os.path.isdir(path)


def _asked(tool: str, names: list[str], attended: bool) -> Verdict:
    shown = ", ".join(names)
    reason = f"{tool} would change {shown}, which Claude Code loads by itself"
    if attended:
        return Verdict("ASK", "guard.change", f"{reason}: a person decides", affected=tuple(names))
    return Verdict(
        "BLOCKED",
        "guard.change",
        f"{reason}: it needs a person's consent, and no person attends this session",
        affected=tuple(names),
        next=("show the text in your answer and go on without it",),
    )


def _blocked(tool: str, name: str, change: str, is_document: bool) -> Verdict:
    verb = change if change in ("empty", "delete") else "change"
    who = "no tool may do that" if is_document else "only a person may change it"
    instead = "update its content instead" if is_document else "go on without it, or ask the user to do it"
    reason = f"{tool} would {verb} {name}, which is protected: {who}"
    return Verdict("BLOCKED", f"guard.{verb}", reason, affected=(name,), next=(instead,))

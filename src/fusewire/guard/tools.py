"""Decide which structured tools may change which protected path.

An agent's edit tools may update the documents. What its program takes for its own (commands, skills, agents, output
styles, scripts) they may update after a person was asked. Only a person changes the rest of the configuration, what
registers something above all; no tool deletes, moves away or empties any of them.
"""

from __future__ import annotations

import os

from fusewire.core.decision import Decision
from fusewire.guard.protected import CONFIGURATION, DOCUMENT
from fusewire.guard.shell.paths import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.protected import Protected

#: Folders of Claude Code in a project and in the home folder that extend it, and register nothing.
_EXTENSIONS = ("commands", "skills", "agents", "output-styles", "scripts")

_CONSENT = "A person decides."

#: Why no person can be asked.
UNATTENDED = "no person attends this session"


def check_tool(
    tool: str,
    paths: tuple[str, ...],
    *,
    root: str,
    protected: Protected,
    change: str = "update",
) -> Decision:
    """May a structured tool change these paths? `change` is update, empty or delete. A person may have to be asked."""
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
    if not asks:
        return Decision("allow")
    reason = f"{tool} would change {', '.join(asks)}, which Claude Code uses by itself"
    return Decision("ask", rule="guard.change", reason=reason, evidence=(_CONSENT,), affected=tuple(asks))


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


def refuse_question(question: Decision, why: str) -> Decision:
    """Deny what a person would have to be asked about, where that is not possible: `why` says so."""
    refused: Decision = question.replace(
        verdict="deny",
        reason=f"{question.reason}: it needs a person's consent, and {why}",
        evidence=(),
        next=("show the text in your answer and go on without it",),
    )
    return refused


def _blocked(tool: str, name: str, change: str, is_document: bool) -> Decision:
    verb = change if change in ("empty", "delete") else "change"
    who = "no tool may do that" if is_document else "only a person may change it"
    instead = "update its content instead" if is_document else "go on without it, or ask the user to do it"
    reason = f"{tool} would {verb} {name}, which is protected: {who}"
    return Decision("deny", rule=f"guard.{verb}", reason=reason, affected=(name,), next=(instead,))

"""Attempts of an agent to disarm its own breaker: the acts that only a person may do."""

from __future__ import annotations

from fusewire.globs import path_matches
from fusewire.shell import program, simple_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.events import Event

#: Commands of the program that change a circuit, its rules or its registration by hand.
PERSON_ONLY = frozenset(("reset", "config", "override", "archive", "import", "acknowledge", "uninstall"))

#: Where Fusewire keeps its state and its rules; relative to the project.
OWN_FILES = (
    ".fusewire/**",
    "fusewire.toml",
    "docs/constraints/**",
)


def disarming(event: Event, changing_tools: tuple[str, ...]) -> str:
    """What the event would disarm, in words; empty if it is harmless."""
    if event.command and "fusewire" in event.command:
        for words in simple_commands(event.command):
            act = _own_command(words)
            if act:
                return f"`fusewire {act}` is for a person at a terminal"
    if event.tool in changing_tools:
        for path in event.paths:
            if any(path_matches(path, pattern) for pattern in OWN_FILES):
                return f"{path} belongs to Fusewire and is for a person to change"
    return ""


def _own_command(words: list[str]) -> str:
    """The person-only command that these words run, if they run Fusewire at all."""
    name = program(words)
    if name.startswith("python") and "-m" in words:
        words = words[words.index("-m") + 1 :]
        name = program(words)
    if name.removesuffix(".exe") != "fusewire":
        return ""
    return next((word for word in words[1:] if word in PERSON_ONLY), "")

"""Attempts of an agent to disarm its own breaker: the acts that only a person may do."""

from __future__ import annotations

from fusewire.globs import path_matches
from fusewire.wrappers import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.events import Event

#: Commands of the program that change a circuit, its rules or its registration by hand.
PERSON_ONLY = frozenset(("reset", "config", "override", "archive", "import", "uninstall"))

#: Global options of the program that take a value.
_VALUED = frozenset(("--project",))

#: Where Fusewire keeps its state and its rules; relative to the project.
OWN_FILES = (
    ".fusewire/**",
    "fusewire.toml",
    "docs/constraints/**",
)

#: What a one-liner in Python would have to call.
_CALLS = ("reset(", "override(", "archive(", "import_states(", "acknowledge(")


def disarming(event: Event, commands: list[list[str]], changing_tools: tuple[str, ...], user_config: str) -> str:
    """What the event would disarm, in words; empty if it is harmless."""
    for words in commands:
        act = _own_command(words)
        if act:
            return f"`{act}` is for a person at a terminal"
    if event.tool in changing_tools:
        for path in event.paths:
            if path == user_config or any(path_matches(path, pattern) for pattern in OWN_FILES):
                return f"{path} belongs to Fusewire and is for a person to change"
    return ""


def _own_command(words: list[str]) -> str:
    """The person-only act of Fusewire that these words run, if any."""
    name = program(words)
    if name.startswith("python"):
        code = next((word for word in words[1:] if "fusewire" in word and "(" in word), "")
        if code:
            return next((f"fusewire's {call}...)" for call in _CALLS if call in code), "")
        words = _module_run(words)
        name = program(words)
    if name.removesuffix(".exe") != "fusewire":
        return ""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    command = words[at] if at < len(words) else ""
    if command in PERSON_ONLY:
        return f"fusewire {command}"
    return "fusewire doctor --acknowledge" if command == "doctor" and "--acknowledge" in words else ""


def _module_run(words: list[str]) -> list[str]:
    """The module and its arguments behind `python -m`, also as `-Im fusewire` and `-mfusewire`."""
    for at, word in enumerate(words[1:], 1):
        if not word.startswith("-") or word.startswith("--"):
            break
        flags, m, module = word[1:].partition("m")
        if m and flags.isalpha() | (not flags):
            return [module, *words[at + 1 :]] if module else words[at + 1 :]
    return []

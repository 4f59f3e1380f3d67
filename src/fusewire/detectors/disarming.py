"""Attempts of an agent to disarm its own breaker: the acts that only a person may do."""

from __future__ import annotations

from fusewire.detectors.calls import STARTING_PROGRAMS
from fusewire.globs import path_matches
from fusewire.wrappers import is_wrapper, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.events import Event

#: Commands of the program that change a circuit, its rules or its registration by hand.
PERSON_ONLY = frozenset(("reset", "config", "override", "archive", "import", "uninstall", "hook", "grant"))

#: Commands with acts of both kinds: those that only a person may do.
PERSON_ONLY_ACTS = {
    "attempt": frozenset(("retry", "restore")),
    "guard": frozenset(("snapshot", "restore")),
    "phase": frozenset(("resolve", "start", "import")),
    "scope": frozenset(("set",)),
}

#: Options of the program, and of Python, that take a value.
_VALUED = frozenset(("--project",))
_PYTHON_VALUED = frozenset(("-X", "-W", "--check-hash-based-pycs"))

#: Where Fusewire keeps its state and its rules; relative to the project, and to projects inside it.
OWN_FOLDERS = (
    *("**/.fusewire/**", "**/docs/constraints/**", "**/.prp-session/circuit-breaker*"),
    "**/.claude/memory/circuit_breaker_*",
)

#: Code that imports Fusewire and names one of these could lift a circuit; what stays in memory cannot.
_LIFTING = (
    *("Breaker", "breaker", "cli", "constraints", "engine", "stores", "__main__", "gate"),
    *("attempts", "Attempts", "phases", "Phases", "scope", "ScopeLock", "checkpoints", "runner", "guard.session"),
)


#: How deep an agent is among agents that started agents; one that could change it would start as many as it likes.
_DEPTH = "FUSEWIRE_DEPTH"
_CLEANING = frozenset(("-i", "-", "--ignore-environment"))

#: Where checkpoints are kept alive, and the commands of git that could let go of them.
_OWN_REFS = "refs/fusewire"
_GIT_MOVES = frozenset(("update-ref", "push", "fetch", "symbolic-ref", "pack-refs", "replace", "filter-branch"))


def disarming(event: Event, commands: list[list[str]], own_paths: tuple[str, ...]) -> str:
    """What the event would disarm, in words; empty if it is harmless.

    `own_paths` are the paths of the event that a changing tool names, if it is one.
    """
    for words in commands:
        act = _own_command(words)
        if act:
            return f"`{act}` is for a person at a terminal"
        if event.command and _hides_depth(words, event.command):
            return f"{_DEPTH} says how deep agents start agents; to change it is for a person"
        if _moves_refs(words):
            return f"{_OWN_REFS} keeps the checkpoints, and is for Fusewire to change"
        if _is_python(words) and event.command and _lifts(event.command):
            return "code that opens the project's breaker is for a person to run"
    for path in own_paths:
        if is_own_file(path):
            return f"{path} belongs to Fusewire and is for a person to change"
    return ""


def is_own_file(path: str) -> bool:
    return path == "fusewire.toml" or any(path_matches(path, pattern) for pattern in OWN_FOLDERS)


def _hides_depth(words: list[str], line: str) -> bool:
    """Whether a line starts an agent that would not know how deep it is."""
    if program(words) == "env" and not _CLEANING.isdisjoint(words):
        return any(word.rsplit("/", 1)[-1] in STARTING_PROGRAMS for word in words)
    if program(words) not in STARTING_PROGRAMS or _DEPTH not in line:
        return False
    return any(f"{before}{_DEPTH}" in line for before in ("unset ", "-u ", "--unset=")) or f"{_DEPTH}=" in line


def _moves_refs(words: list[str]) -> bool:
    """Whether git would let go of a checkpoint, or may: what it reads from its input nobody knows."""
    if program(words) != "git" or _GIT_MOVES.isdisjoint(words):
        return False
    return any(_OWN_REFS in word for word in words) or ("update-ref" in words and "--stdin" in words)


def _lifts(code: str) -> bool:
    imports = "import fusewire" in code or "from fusewire" in code
    return imports and "memory:" not in code and any(name in code for name in _LIFTING)


def _is_python(words: list[str]) -> bool:
    return program(words).startswith(("python", "pypy"))


def _own_command(words: list[str]) -> str:
    """The person-only act of Fusewire that these words run, if any."""
    if _is_python(words):
        words = _python_target(words)
    elif is_wrapper(program(words)) and not _is_fusewire(words[0]):  # a runner, whatever its options
        at = next((at for at, word in enumerate(words) if at and _is_fusewire(word)), len(words))
        words = words[at:]
    if not words or not _is_fusewire(words[0]) or {"--help", "-h", "--version"} & set(words):
        return ""
    if words[0].endswith("hook.py"):
        return "fusewire hook"
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    command = words[at] if at < len(words) else ""
    if command in PERSON_ONLY:
        return f"fusewire {command}"
    act = next((word for word in words[at + 1 :] if not word.startswith("-")), "")
    if act in PERSON_ONLY_ACTS.get(command, ()):
        return f"fusewire {command} {act}"
    if (command, act) == ("attempt", "finish") and "--force" in words:
        return "fusewire attempt finish --force"
    return "fusewire doctor --acknowledge" if command == "doctor" and "--acknowledge" in words else ""


def _is_fusewire(word: str) -> bool:
    """The program by name or path, with a version, as a module, or as its file."""
    if word.endswith(("fusewire/__main__.py", "fusewire/hook.py")):
        return True
    name = word.rsplit("/", 1)[-1].partition("@")[0].partition("=")[0].removesuffix(".exe")
    return name == "fusewire" or name.startswith("fusewire.")


def _python_target(words: list[str]) -> list[str]:
    """The module or script that Python runs, with its arguments; also as `-Im fusewire` and `-mfusewire`."""
    at = 1
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        word = words[at]
        if word in _PYTHON_VALUED:
            at += 2
            continue
        flags, m, module = word[1:].partition("m")
        if m and not word.startswith("--") and (flags.isalpha() or not flags) and "c" not in flags:
            return [module, *words[at + 1 :]] if module else words[at + 1 :]
        if not word.startswith("--") and "c" in word[1:]:
            return []
        at += 1
    return words[at:]

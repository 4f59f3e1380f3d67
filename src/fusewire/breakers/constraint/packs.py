"""Find the rules of bundled packs that a command line would break; what the rules are is in `policies/packs.toml`.

Loaded only where a person has switched a pack on. The line is read by the guard's reader, so that wrappers, variables,
scripts and pipes are followed; what a rule needs to know beyond the words is a function of the same name here.
"""

from __future__ import annotations

import os

from fusewire.breakers.constraint.detect import runs, word_fits
from fusewire.core.events import Noun
from fusewire.guard.effects import DELETE, WRITE
from fusewire.guard.shell import tree
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN
from fusewire.guard.shell.wrappers import SHELLS, is_wrapper, program, reads_input, shell_operands, unwrapped
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fusewire.core.events import PackEntry
    from fusewire.guard.check import Reading

#: Seconds that git may take to say whether there is uncommitted work.
_PATIENCE = 5.0

_DEVICES = tuple(f"/dev/{name}" for name in "sd* hd* vd* xvd* nvme* mmcblk* disk* rdisk* md* dm-* mapper/*".split())

#: Folders that no project lies in as a whole.
_SYSTEM = frozenset(
    "/bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /srv /sys /usr /usr/bin /usr/lib /usr/local /var"
    " /Applications /Library /System /Users".split()
)

_FETCHING = ("curl", "wget")
_CLIENTS = ("psql", "pgcli", "mysql", "mariadb", "sqlite3", "duckdb")

#: Statements, and what in a text is none: comments, texts and quoted names.
_DROPS = r"\s*DROP\s+(TABLE|DATABASE|SCHEMA)\b"
_EMPTIES = r"\s*TRUNCATE\b|\s*(WITH\b.*)?DELETE\s+FROM\b(?!.*\bWHERE\b)"
_INERT = r"(--[^\n]*|/\*.*?\*/)|'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|\$\$.*?\$\$"


class Run(Noun):
    """A command: its words, its folder, its input, and its place among all that the line runs."""

    words: list[str]
    cwd: str
    stdin: str | None
    reading: Reading
    line: list[list[str]]
    at: int


def broken_rules(rules: list[tuple[str, tuple[PackEntry, ...]]], reading: Reading) -> list[str]:
    """The ids of the rules that a line would break."""
    found = list(reading.effects.commands)
    if reading.effects.unreadable:
        found += [(words, UNKNOWN, None) for words in simple_commands(reading.command)]
    line = [words for words, _, _ in found]
    heads = {pattern[0] for _, entries in rules for patterns, _, _ in entries for pattern in patterns}
    calls = [
        Run(words, cwd, stdin, reading, line, at)
        for at, (words, cwd, stdin) in enumerate(found)
        if any(_may_run(words, head) for head in heads)
    ]
    return [name for name, entries in rules if any(_breaks(entry, calls, reading) for entry in entries)]


def _breaks(entry: PackEntry, calls: list[Run], reading: Reading) -> bool:
    patterns, unless, when = entry
    if not patterns:
        return LINES[when](reading)
    return any(
        any(runs(call.words, pattern) for pattern in patterns if _may_run(call.words, pattern[0]))
        and "--help" not in call.words
        and not any(word_fits(word, stop) for word in call.words[1:] for stop in unless)
        and (not when or CALLS[when](call))
        for call in calls
    )


def _may_run(words: list[str], head: str) -> bool:
    """A quick look at the program, before the words are compared with a pattern."""
    name = program(words)
    return head in (name, words[0]) or is_wrapper(name) or ("*" in head and matches(name, head))


# -- git --------------------------------------------------------------------------------------------------------


def _changed(call: Run) -> bool:
    """Whether tracked files have changes that no commit has, and that the line has not put away before."""
    return _is_dirty(call, "-uno")


def _untracked(call: Run) -> bool:
    """Whether there are files that git neither knows nor ignores."""
    names = call.words[call.words.index("clean") + 1 :]
    return _is_dirty(call, "-unormal", *(name for name in names if name[:1] != "-"))


def _is_dirty(call: Run, untracked: str, *paths: str) -> bool:
    from fusewire.util.git import GitFailure, GitUnanswered, git
    from fusewire.util.gitdir import choose

    if any(words[:2] in (["git", "stash"], ["git", "commit"]) for words in call.line[: call.at]):
        return False
    folder = _folder(call)
    if UNKNOWN in folder + "".join(paths):
        return True
    repository = choose(folder, "", "", {})
    if repository is None:
        return False  # git refuses
    words = ("status", "--porcelain", untracked, "--ignore-submodules=all", "--", *paths)
    try:
        text = git(repository, *words, limit=_PATIENCE, cwd=folder)
    except GitUnanswered:
        return True
    except GitFailure:
        return False
    return (untracked == "-uno" and bool(text)) or b"?? " in text


def _folder(call: Run) -> str:
    """Where git works: the folder of the command, and what `-C` makes of it."""
    folder = call.cwd
    for option, value in zip(call.words, call.words[1:], strict=False):
        if option == "-C":
            folder = os.path.join(folder, value)
    return folder


def _to_main(call: Run) -> bool:
    """Whether a push goes to the main branch, named or checked out."""
    names = [word for word in call.words[call.words.index("push") + 1 :] if word[:1] != "-"][1:]
    targets = [name.rpartition(":")[2].removeprefix("refs/heads/") for name in names]
    if not targets or "HEAD" in targets:
        from fusewire.util.gitdir import choose

        folder = _folder(call)
        repository = choose(folder, "", "", {}) if UNKNOWN not in folder else None
        head = call.reading.disk.read(f"{repository.folder}/HEAD") if repository is not None else None
        targets.append((head or "").strip().removeprefix("ref: refs/heads/"))
    return not {"main", "master"}.isdisjoint(targets)


# -- files ------------------------------------------------------------------------------------------------------


def _removed(reading: Reading) -> Iterator[str]:
    """What would be deleted with all that is below it."""
    for effect in reading.effects.found:
        if effect.kind == DELETE and (effect.recursive or effect.rule == "guard.find"):
            path = normal(effect.path)
            yield path if UNKNOWN in path else reading.disk.real(path, last=effect.follows)


def _home(reading: Reading) -> str:
    return os.path.realpath(reading.walk.environment.get("HOME") or os.path.expanduser("~"))


def _removes_home(reading: Reading) -> bool:
    gone, home = set(_removed(reading)), _home(reading)
    if any(path == "/" or path in _SYSTEM or f"{home}/".startswith(f"{path}/") for path in gone):
        return True
    if not gone or "*" not in reading.command:
        return False
    try:
        names = os.listdir(home)
    except OSError:
        return False
    groups = ([f"{home}/{name}" for name in names if (name[0] == ".") is hidden] for hidden in (False, True))
    return any(paths and gone.issuperset(paths) for paths in groups)


def _removes_repository(reading: Reading) -> bool:
    gone = list(_removed(reading))
    folder = reading.cwd
    while gone and folder != "/":
        place = os.path.realpath(f"{folder}/.git")
        if os.path.lexists(place):
            inside = (place, f"{place}/objects", f"{place}/refs", folder)
            return any(path in inside or f"{folder}/".startswith(f"{path}/") for path in gone)
        folder = os.path.dirname(folder)
    return False


def _removes_variable(reading: Reading) -> bool:
    """Whether `rm -r` begins at a variable that nothing sets: with its text missing, something else would go."""
    heads = {path.partition(UNKNOWN)[0].rstrip("/") for path in _removed(reading) if UNKNOWN in path}
    if heads.isdisjoint(("", _home(reading))):
        return False
    for node in _line_nodes(reading):
        if isinstance(node, tree.Simple) and "rm" in (program([_text(word)]) for word in node.words):
            for word in node.words:
                if not isinstance(word, str) and any(_is_unset(part, reading) for part in word):
                    return True
    return False


def _is_unset(part: Any, reading: Reading) -> bool:
    return part[0] == tree.PARAMETER and part[1] in reading.walk.unset and part[2] not in (":?", "?", ":-", "-")


def _is_device(path: str) -> bool:
    return any(matches(path, pattern) for pattern in _DEVICES)


def _writes_device(reading: Reading) -> bool:
    return any(effect.kind == WRITE and _is_device(normal(effect.path)) for effect in reading.effects.found)


def _names_device(call: Run) -> bool:
    return any(map(_is_device, call.words))


# -- what is downloaded and run -----------------------------------------------------------------------------------


def _runs_download(reading: Reading) -> bool:
    """`curl URL | sh`, `bash <(curl URL)`, `sh -c "$(curl URL)"`, `eval "$(curl URL)"`."""
    return any(_pipes(node) if isinstance(node, tree.Pipeline) else _takes(node) for node in _line_nodes(reading))


def _pipes(node: tree.Pipeline) -> bool:
    fetches = False
    for one in node.commands:
        if fetches and isinstance(one, tree.Simple) and _is_reader(_stages(one)[-1:]):
            return True
        fetches = fetches or _fetches(one)
    return False


def _is_reader(stages: list[list[str]]) -> bool:
    """Whether a shell or another interpreter takes its program from its input."""
    words = stages[0] if stages else []
    name = program(words).rstrip("0123456789.")
    return reads_input(words) or (name in ("python", "node", "perl", "ruby") and words[1:] in ([], ["-"]))


def _takes(node: Any) -> bool:
    """Whether a shell is given what a substitution downloads."""
    if not isinstance(node, tree.Simple):
        return False
    for words in _stages(node)[-1:]:
        name = program(words)
        given = node.words[len(node.words) - len(words) + 1 :]
        if name in SHELLS:
            operands = shell_operands(words)[1]
            given = given[len(given) - len(operands) :][:1]
        elif name not in ("eval", "source", "."):
            given = []
        return any(_fetches(part[1]) for word in given if not isinstance(word, str) for part in word if _is_inner(part))
    return False


def _is_inner(part: Any) -> bool:
    return part[0] in (tree.COMMAND, tree.PROCESS)


def _fetches(node: Any) -> bool:
    simple = (one for one in _nodes(node) if isinstance(one, tree.Simple))
    return any(program(words) in _FETCHING for one in simple for words in _stages(one)[-1:])


def _stages(node: tree.Simple) -> list[list[str]]:
    return unwrapped([_text(word) for word in node.words])


def _text(word: Any) -> str:
    if isinstance(word, str):
        return word
    return "".join(part[1] if part[0] in (tree.TEXT, tree.QUOTED) else UNKNOWN for part in word)


def _line_nodes(reading: Reading) -> Iterator[tree.Node]:
    """The parse tree of the line, and of the texts in it that a shell runs; not of scripts on the disk."""
    for text, node in reading.walk.parsed.items():
        if text in reading.command:
            yield from _nodes(node)


def _nodes(thing: Any) -> Iterator[tree.Node]:
    if isinstance(thing, (list, tuple)):
        for part in thing:
            yield from _nodes(part)
    elif isinstance(thing, tree.Node):
        yield thing
        for name in thing.__slots__:
            yield from _nodes(getattr(thing, name, None))


# -- databases ----------------------------------------------------------------------------------------------------


def _drops(call: Run) -> bool:
    return _has_statement(call, _DROPS)


def _empties(call: Run) -> bool:
    return _has_statement(call, _EMPTIES)


def _has_statement(call: Run, pattern: str) -> bool:
    """Whether a client of a database is given such a statement: as an argument, a file, or its input."""
    import re

    start = next((at for at, word in enumerate(call.words) if program([word]) in _CLIENTS), None)
    in_container = start and {"exec", "run"}.isdisjoint(call.words[:start])
    if start is None or in_container or ":memory:" in call.words:
        return False
    words = call.words[start + 1 :]
    texts = [call.stdin or ""]
    for at, word in enumerate(words):
        if word in ("-f", "--file") and words[at + 1 : at + 2]:
            texts.append(call.reading.walk.read_file(os.path.join(call.cwd, words[at + 1])) or "")
        elif word.startswith("--file="):
            texts.append(call.reading.walk.read_file(os.path.join(call.cwd, word[7:])) or "")
        else:
            texts.append(word.partition("=")[2] if word[:2] == "--" else word[2:] if word[:1] == "-" else word)
    for text in texts:
        statements = re.sub(_INERT, lambda part: " " if part[1] else "x", text, flags=re.DOTALL).split(";")
        undone = any(one.split()[:1] in (["ROLLBACK"], ["rollback"]) for one in statements)
        found = any(re.match(pattern, one, re.IGNORECASE | re.DOTALL) for one in statements)
        if found and not undone:
            return True
    return False


#: What a rule's `when` asks of a command, and of the whole line.
CALLS: dict[str, Callable[[Run], bool]] = {
    "changed": _changed,
    "drops": _drops,
    "empties": _empties,
    "names_device": _names_device,
    "to_main": _to_main,
    "untracked": _untracked,
}
LINES: dict[str, Callable[[Reading], bool]] = {
    "removes_home": _removes_home,
    "removes_repository": _removes_repository,
    "removes_variable": _removes_variable,
    "runs_download": _runs_download,
    "writes_device": _writes_device,
}

"""Check a tool call against the scope lock: which paths would it change, and may the active slices change them?

Only what is known counts. Reading, files outside the project, git's own data, by-products, commands whose effects
are unknown, and git's moves of the whole tree (checkout, stash, merge) are none of its business, as long as these
do not touch what defines the scope.
"""

from __future__ import annotations

import os

from fusewire.breakers.attempt.scope.active import load
from fusewire.breakers.attempt.scope.places import (
    by_products,
    closed,
    defines_scope,
    defining_below,
    files_below,
    place,
)
from fusewire.core.decision import Decision
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: (a path of the project, whether it goes with all that is in it, whether it is only guessed)
    Change = tuple[str, bool, bool]

    from fusewire.breakers.attempt.scope.boundary import Boundary
    from fusewire.core.events import Event
    from fusewire.guard.check import Reading
    from fusewire.guard.effects import Effect

#: git commands that put the tree into another state as a whole, or put files back. They write no work of the agent's;
#: but another version of what defines the scope would be another scope.
_WHOLE_TREE = frozenset(
    f"guard.git.{name}"
    for name in (
        "bisect checkout cherry-pick clone fetch init merge pull read-tree rebase reset restore"
        " revert sparse-checkout stash submodule subtree switch worktree"
    ).split()
)

#: A folder is no file; git does not even know it.
_MKDIR = "guard.mkdir"

#: The guard's rule for what may be a report, or no file at all.
_GUESSED = "guard.output"

#: Endings of the files that test runners and linters write their findings to, and words that say it.
_REPORTS = (".xml", ".html", ".json", ".txt", ".sarif", ".lcov", ".info", ".tap", ".prof", ".out")
_SAYS_REPORT = r"report|junit|cov(?:er|erage)?\b|coverage|results?\b|lcov"

#: How options end that have a value and no target.
_NO_TARGET = ("config", "template", "format", "level", "style", "stdout", "timeout")


def check_scope(
    event: Event, changed: tuple[str, ...], reading: Reading | None, root: str, patience: float
) -> Decision | None:
    """Refuse a call that would change something outside of the scope; None if it may go on."""
    from fusewire.util.errors import FusewireError

    paths = _by_tool(event, changed, root) + (_by_command(reading, root) if reading is not None else [])
    paths = [one for one in dict.fromkeys(paths) if not _is_gits(one[0])]
    if not paths:
        return None
    try:
        active = [one for one in load(root, patience) if one.holds_for(event.session) and one.locks]
    except FusewireError as error:
        return _broken("scope", str(error))
    if not active:
        return None
    outside = _outside(paths, active, root)
    return _refused(outside, active, root) if outside else None


def _by_tool(event: Event, changed: tuple[str, ...], root: str) -> list[Change]:
    found = [place(os.path.join(root, path), root) for path in changed if "\0" not in path]
    return [(path, event.change == "delete", False) for path in found if path is not None]


def _by_command(reading: Reading, root: str) -> list[Change]:
    """The same for a command."""
    from fusewire.guard.effects import DELETE, MOVE, READ, WRITE

    found = []
    for effect in reading.effects.found:
        if effect.kind == READ or effect.rule == _MKDIR or UNKNOWN in effect.path:
            continue
        if effect.rule == _GUESSED and effect.kind == WRITE:
            places = [place(reading.disk.real(name), root) for name in _guessed_paths(effect)]
            found += [(path, False, True) for path in places if path is not None and _counts(root, path)]
            continue
        destroys = effect.kind in (DELETE, MOVE)
        if destroys and not os.path.lexists(effect.path):
            continue  # nothing is there, or what the line itself has made
        path = place(reading.disk.real(effect.path, last=effect.follows), root, follows=effect.follows)
        if path is not None and (effect.rule not in _WHOLE_TREE or defines_scope(path)):
            found.append((path, destroys or effect.recursive, False))
    return found


def _counts(root: str, path: str) -> bool:
    """A guess counts where it would overwrite something, or define another scope."""
    return os.path.isfile(os.path.join(root, path)) or defines_scope(path)


def _is_gits(path: str) -> bool:
    """Git's own data; but what it ignores is free, so the file that says what is ignored is held to the scope."""
    return ".git" in path.split("/") and not path.endswith("/info/exclude")


def _outside(paths: list[Change], active: list[Boundary], root: str) -> str:
    """The first path that may not be changed; git is asked only about what would be refused."""
    for path, whole, is_guess in paths:
        full = os.path.join(root, path)
        whole = whole and os.path.isdir(full) and not os.path.islink(full)
        locked = path if closed(path) else defining_below(root, path) if whole else ""
        if locked:
            return locked
        if _may(path, active) or by_products(root, [path]):
            continue
        if is_guess and _is_report(root, path):
            continue
        outside = _first_in(path, active, root) if whole else path
        if outside:
            return outside
    return ""


def _may(path: str, active: list[Boundary]) -> bool:
    return any(one.allows(path) for one in active if not one.problem and not one.stopped)


def _first_in(path: str, active: list[Boundary], root: str) -> str:
    """The first file of a folder that may not be changed: a folder is as good as all that is in it."""
    inside, is_all = files_below(root, path)
    out = [name for name in inside if not _may(name, active)]
    free = by_products(root, out) if out else ()
    return next((name for name in out if name not in free), "" if is_all else path)


# -- guesses ------------------------------------------------------------------------------------------------
#
# Writes that the guard only guesses: the value of an option, of a program whose files are not known for certain. To
# guard what is protected, `--reporter=dot` is taken for a file. The scope lock would refuse half of all test runs if it
# did so, too; it refuses a guess only where it would overwrite a file that holds work.


def _guessed_paths(effect: Effect) -> list[str]:
    """The absolute paths that a guess may mean."""
    words = effect.command
    ours = _is_ours(words)
    if ours:  # it writes nothing but its state; what it runs may
        words = words[words.index("--") + 1 :] if "--" in words else []
    options = _options(words, effect.path)
    if not options:
        return [] if ours else [effect.path]
    values = {value for option, value in options if value != "-" and not _has_no_target(option.lower())}
    found = [effect.path] if values else []
    for value in values:
        kind, colon, target = value.partition(":")  # html:FOLDER
        found += [effect.path.removesuffix(value) + target] if colon and kind and target else []
    return found


def _is_report(root: str, path: str) -> bool:
    """Whether a file of the project holds the findings of an earlier run of a program."""
    import re

    if not path.endswith(_REPORTS):
        return False
    return re.search(_SAYS_REPORT, os.path.basename(path), re.IGNORECASE) is not None or not _is_committed(root, path)


def _has_no_target(option: str) -> bool:
    """Whether an option says something else than a file, or reads it; `--no-output` takes no value."""
    return option.startswith("--no-") or option.endswith(_NO_TARGET)


def _options(words: list[str], path: str) -> list[tuple[str, str]]:
    """The options that have a path as their value, each with the value as it is written."""
    found = []
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals:
            value = "".join(words[at + 1 : at + 2])
            if word[:2] == "-o" and len(word) > 2:
                name, value = "-o", word[2:]
        if name[:1] == "-" and value and f"/{path}".endswith(f"/{value.removeprefix('./')}"):
            found.append((name, value.removeprefix("./")))
    return found


def _is_ours(words: list[str]) -> bool:
    name = words[0].rpartition("/")[2]
    if name.startswith(("python", "pypy")) and "-m" in words:
        name = "".join(words[words.index("-m") + 1 :][:1])
    return name == "fusewire"


def _is_committed(root: str, path: str) -> bool:
    from fusewire.util.git import GitFailure, git

    try:
        return bool(git(root, "ls-tree", "--name-only", "-z", "HEAD", "--", path))
    except GitFailure:
        return False  # no repository, or nothing committed: the ending has to do


# -- refusals -----------------------------------------------------------------------------------------------


def _refused(path: str, active: list[Boundary], root: str) -> Decision:
    from fusewire.breakers.attempt.scope.state import how_to_justify
    from fusewire.util.file_names import path_shown

    newest = active[0]
    rule = f"scope.{newest.slice}"
    broken = next((one for one in active if one.problem), None)
    if broken is not None:
        return _broken(f"scope.{broken.slice}", broken.problem)
    stopped = next((one for one in active if one.stops(path)), None)
    if stopped is not None:
        return _stopped(stopped)
    why = closed(path).removeprefix("it ")
    if why:
        while_it_is = f" while {newest.slice} is under way" if defines_scope(path) else ""
        reason = f"{path_shown(path)} {why}{while_it_is}"
        return Decision("deny", rule=rule, reason=reason, next=("go on without it, or ask the user to do it",))
    names = ", ".join(one.slice for one in active)
    full = os.path.join(root, path)
    temporary = "" if os.path.lexists(full) else " (what is only temporary belongs outside of the project)"
    is_folder = os.path.isdir(full) and not os.path.islink(full)
    needs = "one of its files" if is_folder else "this file"
    justify = (
        f"if a failing test needs {needs}, say why first:",
        how_to_justify(newest.slice, "" if is_folder else path),
        f"If no honest justification can be written: fusewire attempt arch-stop {newest.slice} --reason '<why>'",
    )
    return Decision(
        "deny",
        rule=rule,
        reason=f"{path_shown(path)} is outside the scope of {names}",
        evidence=tuple(f"In scope of {one.slice}: {one.summary()}" for one in active[:3]),
        next=(f"change only what is in scope{temporary}", "\n".join(justify)),
    )


def _stopped(one: Boundary) -> Decision:
    rule, why, *steps = one.stopped
    return Decision(
        "deny",
        rule=rule,
        reason=f"{one.slice} is stopped, and nothing of it may be changed: {why}",
        next=(f"stop all work on {one.slice}", *steps),
        by_person=(f'a person or the orchestrator can run: fusewire attempt retry {one.slice} --guidance "..."',),
    )


def _broken(rule: str, problem: str) -> Decision:
    return Decision(
        "deny",
        rule=rule,
        reason=f"what is in scope cannot be told: {problem}",
        next=("ask the user to mend it", "until then only files outside the project and reading are free"),
    )

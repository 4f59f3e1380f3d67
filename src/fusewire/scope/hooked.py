"""The scope lock as the hook asks it: which paths would a call change, and may the slices under way do that?

Only what is known counts. Reading, files outside the project, git's own data, by-products, commands whose effects
nobody can tell, and git's moves of the whole tree (checkout, stash, merge) are none of its business, as long as these
do not touch what defines the scope.
"""

from __future__ import annotations

import os

from fusewire.scope.active import load
from fusewire.scope.boundary import BLOCKED
from fusewire.scope.places import by_products, defines_scope, defining_below, place
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.events import Event
    from fusewire.guard.check import Reading
    from fusewire.guard.effects import Effect
    from fusewire.scope.active import Active

#: git commands that put the tree into another state as a whole, or put files back. They write no work of the agent's;
#: but another version of what defines the scope would be another scope.
_WHOLE_TREE = frozenset(
    f"guard.git.{name}"
    for name in (
        "am bisect checkout checkout-index cherry-pick clone fetch init merge pull read-tree rebase reset restore"
        " revert sparse-checkout stash submodule subtree switch worktree"
    ).split()
)

#: A folder is no file; git does not even know it.
_MKDIR = "guard.mkdir"

#: Programs that write a report where they are told to, and the endings of such files.
_REPORTING = frozenset(
    f"guard.{name}" for name in "output pytest coverage go cargo jest vitest mypy ruff eslint tox nox flake8".split()
)
_REPORTS = (".xml", ".html", ".json", ".txt", ".sarif", ".lcov", ".info", ".tap", ".prof", ".out")

#: Files of a folder that are looked at one by one.
_MOST = 1000


def refusal(event: Event, changed: tuple[str, ...], reading: Reading | None, root: str, patience: float) -> str:
    """Why the scope lock refuses this call; empty if it does not."""
    from fusewire.errors import FusewireError

    paths = _by_tool(event, changed, root) + (_by_command(reading, root) if reading is not None else [])
    paths = [(path, whole) for path, whole in dict.fromkeys(paths) if not _is_gits(path)]
    if not paths:
        return ""
    try:
        active = [one for one in load(root, patience) if one.holds_for(event.session) and one.locks]
    except FusewireError as error:
        return _broken("scope", str(error))
    if not active:
        return ""
    outside = _outside(paths, active, root)
    return _refused(outside, active, root) if outside else ""


def _by_tool(event: Event, changed: tuple[str, ...], root: str) -> list[tuple[str, bool]]:
    """The project's paths that a structured tool would change, and whether each goes with all that is in it."""
    found = [place(os.path.join(root, path), root) for path in changed if "\0" not in path]
    return [(path, event.change == "delete") for path in found if path is not None]


def _by_command(reading: Reading, root: str) -> list[tuple[str, bool]]:
    """The same for a command."""
    from fusewire.guard.effects import DELETE, MOVE, READ

    found = []
    for effect in reading.effects.found:
        if effect.kind == READ or effect.rule == _MKDIR or UNKNOWN in effect.path or _is_report(effect):
            continue
        destroys = effect.kind in (DELETE, MOVE)
        if destroys and not os.path.lexists(effect.path):
            continue  # nothing is there, or what the line itself has made
        path = place(reading.disk.real(effect.path, last=effect.follows), root, follows=effect.follows)
        if path is not None and (effect.rule not in _WHOLE_TREE or defines_scope(path)):
            found.append((path, destroys or effect.recursive))
    return found


def _is_report(effect: Effect) -> bool:
    """What a test runner or a linter was told to write its findings to: no work either."""
    return effect.rule in _REPORTING and effect.path.endswith(_REPORTS)


def _is_gits(path: str) -> bool:
    """Git's own data; but what it ignores is free, so whoever says what is ignored is held to the scope."""
    return ".git" in path.split("/") and not path.endswith("/info/exclude")


def _outside(paths: list[tuple[str, bool]], active: list[Active], root: str) -> str:
    """The first path that may not be changed; git is asked only about what would be refused."""
    for path, whole in paths:
        full = os.path.join(root, path)
        whole = whole and os.path.isdir(full) and not os.path.islink(full)
        defining = path if defines_scope(path) else defining_below(root, path) if whole else ""
        if defining:
            return defining
        if _may(path, active) or by_products(root, [path]):
            continue
        outside = _first_in(path, active, root) if whole else path
        if outside:
            return outside
    return ""


def _may(path: str, active: list[Active]) -> bool:
    return any(one.boundary.answer(path)[0] != BLOCKED for one in active if not one.problem)


def _first_in(path: str, active: list[Active], root: str) -> str:
    """The first file of a folder that may not be changed: a folder is as good as all that is in it."""
    inside: list[str] = []
    for folder, folders, names in os.walk(os.path.join(root, path)):
        folders[:] = [name for name in folders if name != ".git"]
        inside += [os.path.relpath(os.path.join(folder, name), root) for name in names]
        if len(inside) > _MOST:
            return path
    out = [name for name in inside if not _may(name, active)]
    free = by_products(root, out) if out else ()
    return next((name for name in out if name not in free), "")


def _refused(path: str, active: list[Active], root: str) -> str:
    from fusewire.scope.justification import command

    newest = active[0]
    rule = f"scope.{newest.slice}"
    broken = next((one for one in active if one.problem), None)
    if broken is not None:
        return _broken(f"scope.{broken.slice}", broken.problem)
    if defines_scope(path):
        return (
            f"BLOCKED {rule}: {path} defines what is in scope, and only a person may change it while {newest.slice} is"
            f" under way.\nNext: go on without it, or ask the user to do it."
        )
    names = ", ".join(one.slice for one in active)
    temporary = "" if os.path.lexists(os.path.join(root, path)) else " (what is only temporary belongs outside of it)"
    return "\n".join(
        (
            f"BLOCKED {rule}: {path} is outside the scope of {names}.",
            *(f"In scope of {one.slice}: {one.boundary.shown()}" for one in active[:3]),
            f"Next: change only what is in scope{temporary}; if a failing test needs this file, say why first:",
            command(newest.slice, path),
            f"If no honest justification can be written: fusewire attempt arch-stop {newest.slice} --reason '<why>'",
        )
    )


def _broken(rule: str, problem: str) -> str:
    return (
        f"BLOCKED {rule}: what is in scope cannot be told: {problem}.\n"
        f"Next: ask the user to mend it; until then only files outside the project and reading are free."
    )

"""Find where the scope of a slice is defined, and where a path lies in the project. On the hook's path.

The files that define a scope are never in one: an agent that may change them could open everything to itself.
"""

from __future__ import annotations

import os

from fusewire.config.rules import PHASE_FILE, STATE_FILE, STATE_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Stamp = tuple[str, int, int, int, int]

GRAPHS = ("GRAPH.json", ".greenlight/GRAPH.json")
CONTRACT_FILES = ("CONTRACTS.md", ".greenlight/CONTRACTS.md")
CONTRACT_FOLDERS = ("contracts", ".greenlight/contracts")

#: More contract files than these are not looked at; no project has so many.
_MOST = 1000

#: Files of a folder that are looked at one by one.
MOST_FILES = 1000

#: How the names of our own files begin that are not in the state folder: the mirrors, and what was set aside of them.
_OWN = tuple(name.removesuffix(".json") for name in (PHASE_FILE, STATE_FILE))
_OWN_IGNORE = os.path.join(os.path.dirname(PHASE_FILE), ".gitignore")


def closed(path: str) -> str:
    """Why no scope and no justification opens a path of the project; empty if one could."""
    if defines_scope(path):
        return "it defines what is in scope, and only a person may change it"
    if is_own(path):
        return "it is Fusewire's own, and nobody else changes it"
    if ".git" in path.split("/"):
        return "it is git's own data, and belongs to no slice"
    return ""


def is_own(path: str) -> bool:
    """Whether a path of the project is where Fusewire keeps its state."""
    return path in (STATE_FOLDER, _OWN_IGNORE) or path.startswith((f"{STATE_FOLDER}/", *_OWN))


def defines_scope(path: str) -> bool:
    """Whether a path of the project is one of the files that say what is in scope, there or not."""
    if path in GRAPHS or path in CONTRACT_FILES:
        return True
    folder, _, name = path.rpartition("/")
    return folder in CONTRACT_FOLDERS and name.endswith(".md")


def contract_files(root: str) -> list[str]:
    """The files with contracts that are there, in a fixed order."""
    found = [name for name in CONTRACT_FILES if os.path.lexists(os.path.join(root, name))]
    for folder in CONTRACT_FOLDERS:
        try:
            names = sorted(os.listdir(os.path.join(root, folder)))
        except OSError:
            continue
        found += [f"{folder}/{name}" for name in names if name.endswith(".md")]
    return found[:_MOST]


def defining_below(root: str, folder: str) -> str:
    """A file that defines a scope and would go with a folder; empty if there is none."""
    inside = "" if folder == "." else f"{folder}/"
    there = [name for name in GRAPHS if os.path.lexists(os.path.join(root, name))] + contract_files(root)
    return next((name for name in there if name.startswith(inside)), "")


def files_below(root: str, folder: str) -> tuple[list[str], bool]:
    """The files in a folder of the project and below, without git's own, and whether these are all."""
    found: list[str] = []
    for here, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(name for name in folders if name != ".git")
        found += [os.path.relpath(os.path.join(here, name), root) for name in sorted(names) if name != ".git"]
        if len(found) > MOST_FILES:
            return found[:MOST_FILES], False
    return found, True


def stamps(root: str) -> tuple[Stamp, ...]:
    """What tells whether a scope that was read is still the scope: every place that could define one."""
    names = [*GRAPHS, *CONTRACT_FILES, *CONTRACT_FOLDERS]
    names += [name for name in contract_files(root) if name not in CONTRACT_FILES]
    return tuple(_stamp(root, name) for name in names)


def _stamp(root: str, name: str) -> Stamp:
    try:
        facts = os.stat(os.path.join(root, name))
    except OSError:
        return name, 0, 0, 0, 0
    return name, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def place(path: str, root: str, *, follows: bool = True) -> str | None:
    """An absolute path as the project names it, with its links resolved; None outside the project.

    Links are resolved because a link in scope to a file outside of it would be a way round; `follows` says whether
    one at the end is meant too, as for writing, or stands for itself, as for removing.
    """
    try:
        top = os.path.realpath(root)
        stripped = path.rstrip("/") or "/"
        name = os.path.basename(stripped)
        if follows or name in ("", ".", ".."):
            real = os.path.realpath(path)
        else:
            real = os.path.join(os.path.realpath(os.path.dirname(stripped)), name)
    except ValueError:
        return None  # no file can have such a name
    if real == top:
        return "."
    inside = top.rstrip("/") + "/"
    return real[len(inside) :] if real.startswith(inside) else None


def by_products(root: str, paths: Sequence[str]) -> set[str]:
    """Those of the project's paths that are by-products: lock files, logs, caches, and what git ignores."""
    from fusewire.util.git import GitFailure, git
    from fusewire.util.gitdir import top_above
    from fusewire.worktree.path_kinds import CACHES, is_by_product

    caches = CACHES - {".git"}
    found = {path for path in paths if is_by_product(os.path.basename(path)) or not caches.isdisjoint(path.split("/"))}
    by_top: dict[str, list[str]] = {}
    for path in paths:
        top = top_above(os.path.dirname(os.path.join(os.path.realpath(root), path)))
        if top and path != ".":
            by_top.setdefault(top, []).append(path)
    for top, names in by_top.items():
        full = {os.path.join(os.path.realpath(root), name): name for name in names}
        given = "\0".join(full).encode("utf-8", "surrogateescape")
        try:
            answer = git(top, "check-ignore", "-z", "--stdin", given=given)
        except GitFailure:
            continue  # git also ends like this if it ignores none of them
        found |= {full[name] for name in answer.decode("utf-8", "surrogateescape").split("\0") if name in full}
    return found

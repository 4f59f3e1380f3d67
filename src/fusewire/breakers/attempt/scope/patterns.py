"""Turn what people write (paths, folders, globs, packages) into patterns that start at the project's root."""

from __future__ import annotations

import os
import re

from fusewire.breakers.attempt.scope.boundary import covers
from fusewire.util.errors import FusewireError, shown
from fusewire.worktree.path_kinds import CACHES

_LONGEST = 500

#: Files that are looked through for whether a pattern matches any.
_SEEN = 20_000

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

#: Endings of files that contracts speak of.
ENDINGS = frozenset(
    (
        "bash bat c cc cfg cjs clj conf cpp cs css csv cts dart erl ex exs fs go gradle graphql groovy h hpp hs html"
        " ini ipynb java jl js json jsonc jsx kt kts less lock lua m md mdx mjs mm mod mts php pl prisma proto ps1 py"
        " pyi pyx r rb rs rst sass scala scss sh sol sql sum svelte svg swift tf toml ts tsx txt vue xml yaml yml zig"
    ).split()
)


def normal_pattern(text: object, root: str, where: str) -> str:
    """A path, folder or glob in its one spelling; FusewireError if it is none, or leaves the project."""
    if not isinstance(text, str) or not text.strip():
        raise FusewireError(f"{where}: {shown(text)} is refused; allowed: the path of a file or folder, or a glob")
    if "\0" in text or "\n" in text or len(text) > _LONGEST:
        raise FusewireError(f"{where}: {shown(text)} is refused; allowed: one line of up to {_LONGEST} characters")
    given = text.strip()
    is_folder = given.endswith("/")
    path = given
    if path.startswith("/"):
        for top in (os.path.abspath(root), os.path.realpath(root)):
            if path == top or path.startswith(top.rstrip("/") + "/"):
                path = path[len(top) :].lstrip("/") or "."
                break
    path = os.path.normpath(path)
    if path == ".." or path.startswith(("/", "~", "../")):
        raise FusewireError(f"{where}: {shown(text)} leaves the project; allowed: paths inside of it")
    return f"{path}/" if is_folder and path != "." else path


def package_patterns(text: object, root: str, where: str) -> list[str]:
    """The patterns of a package: a folder by its path, or a dotted name as Python finds it, also below `src/`."""
    if isinstance(text, str):
        text = text.strip()
        text = text.removesuffix("/...") if text != "./..." else "."
    pattern = normal_pattern(text, root, where)
    given = str(text)
    if "/" in given or not _DOTTED.fullmatch(pattern) or ending(pattern) in ENDINGS:
        return [pattern]
    path = pattern.replace(".", "/")
    return [path, f"src/{path}", f"{path}.py", f"src/{path}.py"]


def unmatched(root: str, patterns: list[str]) -> list[str]:
    """Those patterns that nothing in the project matches now; in one too large to look through, names without globs."""
    missing = [pattern for pattern in patterns if not os.path.lexists(os.path.join(root, pattern))]
    globs = {pattern for pattern in missing if any(mark in pattern for mark in "*?[")}
    left = set(globs)
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in CACHES]
        paths = [os.path.relpath(os.path.join(folder, name), root) for name in names]
        left = {pattern for pattern in left if not any(covers(pattern, path) for path in paths)}
        seen += len(paths)
        if not left or seen > _SEEN:
            break
    found = globs - left if seen <= _SEEN else globs
    return [pattern for pattern in missing if pattern not in found]


def ending(path: str) -> str:
    """`ts` of `src/users/service.ts`; empty if there is none."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name[1:] else ""

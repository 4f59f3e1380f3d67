"""Keep files of ours out of `git status`, and leave the person's `.gitignore` as it is.

A folder that we have made gets a `.gitignore` of its own, with our names alone. In a folder of the person's nothing is
added: the names go to `info/exclude` in the git directory, which is no part of any commit. Git itself is not run.
"""

from __future__ import annotations

import os

from fusewire.util.files import replace_file
from fusewire.util.gitconfig import read_small
from fusewire.util.gitdir import common_of, resolve, top_above
from fusewire.util.globs import literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD = "# Fusewire: written by the program, no work of yours; put a # before a line to see these files"

_IGNORE = ".gitignore"


def hide(folder: str, names: Sequence[str], *, made: bool) -> None:
    """Hide files of ours in a folder; `made` says that we have just made the folder. Best effort, and done once:
    what a person has changed in our lines stays."""
    folder = os.path.realpath(folder)
    ignore = os.path.join(folder, _IGNORE)
    try:
        if made and not os.path.lexists(ignore):
            replace_file(ignore, _block([f"/{name}" for name in (*names, _IGNORE)]))
        elif names[0].encode() not in read_small(ignore):
            _exclude(folder, names)
    except OSError:
        pass  # the files are seen, and nothing else is wrong


def _exclude(folder: str, names: Sequence[str]) -> None:
    top = top_above(folder)
    place = resolve(os.path.join(top, ".git")) if top else ""
    if not top or not place:
        return
    below = os.path.relpath(folder, top)
    above = "" if below == "." else f"{literal(below)}/"
    lines = [f"/{above}{name}" for name in names]
    info = os.path.join(common_of(place), "info")
    if os.path.islink(info) or "\n" in above:
        return
    if not os.path.isdir(info):
        os.mkdir(info)
    path = os.path.join(info, "exclude")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        there = read_small(path)
        size = os.fstat(descriptor).st_size
        if len(there) == size and lines[0].encode("utf-8", "surrogateescape") not in there:
            os.write(descriptor, b"\n" * (there[-1:] not in (b"", b"\n")) + _block(lines))
    finally:
        os.close(descriptor)


def _block(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_HEAD, *lines)).encode("utf-8", "surrogateescape")

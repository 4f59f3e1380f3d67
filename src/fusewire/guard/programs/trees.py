"""Folders with what is in them, as `find`, `fd` and `grep -r` go through them."""

from __future__ import annotations

import os

from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import Call

#: Entries of a tree that are looked at.
_ENTRIES = 50_000


class Entry:
    """One path of a tree: as it is shown, where it is, how deep, and its kind (`f`, `d`, `l`, else unknown)."""

    __slots__ = ("depth", "full", "kind", "pruned", "shown")

    def __init__(self, shown: str, full: str, depth: int, kind: str) -> None:
        self.shown = shown
        self.full = full
        self.depth = depth
        self.kind = kind
        self.pruned = False

    @property
    def name(self) -> str:
        return self.shown.rstrip("/").rsplit("/", 1)[-1] or "/"


def _kind(path: str, follows: bool) -> str:
    if os.path.islink(path) and not (follows and os.path.exists(path)):
        return "l"
    return "d" if os.path.isdir(path) else "f" if os.path.isfile(path) else "" if os.path.lexists(path) else "-"


def tree(call: Call, start: str, *, follows: bool, follows_start: bool, deepest: int) -> Iterator[Entry]:
    """A folder and what is in it, each folder before its content, which is left out if the entry is `pruned`."""
    full = call.disk.real(call.path(start)) if call.disk.links else call.path(start)
    kind = _kind(full, follows or follows_start)
    if UNKNOWN in full or (kind == "-" and not call.walk.pristine):
        inner = start if UNKNOWN in full and not deepest else f"{start}/{UNKNOWN}"
        yield Entry(inner, call.path(inner), 1, "")
        return
    if kind == "-":
        return
    seen = set()
    todo = [Entry(start, full, 0, kind)]
    count = 0
    while todo:
        entry = todo.pop()
        count += 1
        if count > _ENTRIES:
            yield Entry(f"{start.rstrip('/')}/{UNKNOWN}", f"{full}/{UNKNOWN}", 999, "")
            break
        yield entry
        if entry.kind != "d" or entry.pruned or entry.depth >= deepest:
            continue
        if follows:
            real = os.path.realpath(entry.full)
            if real in seen:
                continue
            seen.add(real)
        for name in reversed(_in_order(call, entry.full)):
            path = f"{entry.full.rstrip('/')}/{name}"
            todo.append(Entry(f"{entry.shown.rstrip('/')}/{name}", path, entry.depth + 1, _kind(path, follows)))
    yield from _made(call, start, full)


def _in_order(call: Call, folder: str) -> list[str]:
    """The names in a folder in the order in which they are read, which is what `head` sees of them."""
    names = call.disk.listing(folder)
    try:
        places = {name: place for place, name in enumerate(os.listdir(folder))}
    except (OSError, ValueError):
        return names
    return sorted(names, key=lambda name: places.get(name, len(places)))


def _made(call: Call, start: str, full: str) -> Iterator[Entry]:
    """The files that the line itself has put there."""
    base = full.rstrip("/").removesuffix("/.") + "/"
    for path in call.walk.files:
        path = path.replace("/./", "/")
        if path.startswith(base) and not os.path.lexists(path):
            inner = path[len(base) :]
            yield Entry(f"{start.rstrip('/')}/{inner}", path, inner.count("/") + 1, "f")

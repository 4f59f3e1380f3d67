"""Look at the disk as a command line sees it: links resolved, also those that the line makes; globs; small files."""

from __future__ import annotations

import os

from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import EXTENDED, QUERY, REST, SET, STAR, UNKNOWN, cleaned, deactivated, has_glob
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.shell.world import World

#: Files that are read to see what a command would make of them.
_READ_LIMIT = 256 * 1024

#: Entries that one glob or one folder is followed into; what lies beyond is unknown.
MOST = 20_000


class Disk:
    def __init__(self) -> None:
        #: links that the line has made: path -> what it points to
        self.links: dict[str, str] = {}
        #: names that the line has made: folder -> names
        self._made: dict[str, set[str]] = {}
        #: those of them that are folders
        self._made_folders: dict[str, set[str]] = {}
        #: a glob fits more names than were looked at
        self.cut = False

    def made_folder(self, path: str) -> None:
        self.made(path)
        folder, _, name = path.rpartition("/")
        self._made_folders.setdefault(folder, set()).add(name)

    def made(self, path: str) -> None:
        """The line has made this, and the folders on the way to it."""
        while len(path) > 1:
            folder, _, name = path.rpartition("/")
            names = self._made.setdefault(folder or "/", set())
            if name in names or os.path.lexists(path):
                names.add(name)
                return
            names.add(name)
            path = folder

    def real(self, path: str, *, last: bool = True) -> str:
        """The path with its links resolved; the last part only if `last`. What is unknown is left as it is."""
        if UNKNOWN in path:
            head, mark, tail = path.partition(UNKNOWN)
            folder, slash, name = head.rpartition("/")
            if not slash:
                return path
            return os.path.join(self.real(folder or "/"), name) + mark + tail
        if path.startswith(("/dev/fd/", "/dev/std", "/dev/null", "/dev/tty")):
            return path
        if not last:
            stripped = path.rstrip("/")
            folder, _, name = stripped.rpartition("/")
            if name in ("", ".", ".."):
                return self.real(path)
            return os.path.join(self.real(folder or "/"), name)
        try:
            return self._stepwise(path) if self.links else os.path.realpath(path)
        except (OSError, ValueError):
            return normal(path)

    def _stepwise(self, path: str) -> str:
        """Part by part, because a link that the line has made is on no disk."""
        here, rest, steps = "/", path.split("/"), 0
        while rest and steps < 1000:
            steps += 1
            part = rest.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                here = here.rpartition("/")[0] or "/"
                continue
            there = f"{here.rstrip('/')}/{part}"
            target = self.links.get(there)
            if target is None and os.path.islink(there):
                target = os.readlink(there)
            if target is None:
                here = there
                continue
            here = "/" if target[:1] == "/" else here
            rest = target.split("/") + rest
        return here

    def exists(self, path: str) -> bool:
        try:
            return os.path.lexists(path)
        except ValueError:
            return False

    def is_folder(self, path: str) -> bool:
        if UNKNOWN in path:
            return False
        try:
            if os.path.isdir(self.real(path) if self.links else path):
                return True
        except ValueError:
            return False
        if not self._made:
            return False
        path = normal(path)
        return path in self._made or path.rpartition("/")[2] in self._made_folders.get(path.rpartition("/")[0], ())

    def is_empty(self, path: str) -> bool:
        try:
            with os.scandir(path) as entries:
                return next(entries, None) is None
        except OSError:
            return False

    def read(self, path: str) -> str | None:
        """The text of a small file; None if it has none that can be read."""
        try:
            path = self.real(path)
            facts = os.stat(path)
            import stat

            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _READ_LIMIT:
                return None
            with open(path, "rb") as file:
                return cleaned(file.read(_READ_LIMIT).decode("utf-8", "surrogateescape"))
        except (OSError, ValueError):
            return None

    def tree(self, path: str) -> Iterator[str]:
        """All files below a folder, or the file itself; links are not followed."""
        if os.path.islink(path) or not os.path.isdir(path):
            if os.path.lexists(path):
                yield path
            return
        folders, count = [path], 0
        while folders and count < MOST:
            folder = folders.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry.path

    def listing(self, folder: str) -> list[str]:
        made = self._made.get(normal(folder), ()) if self._made else ()
        try:
            return sorted({*os.listdir(self.real(folder) if self.links else folder), *made})
        except (OSError, ValueError):
            return sorted(made)

    # -- globs ------------------------------------------------------------------------------------------

    def glob(self, field: str, world: World) -> list[str]:
        """What a pattern stands for here: names as they would be given to the command; itself if nothing fits."""
        absolute = field[:1] == "/"
        if UNKNOWN in field or UNKNOWN in world.cwd:
            unknown = field.replace(STAR, UNKNOWN).replace(QUERY, UNKNOWN).replace(SET, UNKNOWN)
            return [unknown]
        found = [("/" if absolute else "", "/" if absolute else world.cwd)]
        parts = field.split("/")
        for at, part in enumerate(parts):
            if not part:
                if at and at == len(parts) - 1:
                    found = [(shown + "/", path) for shown, path in found if self.is_folder(path)]
                continue
            last = at == len(parts) - 1
            if not has_glob(part):
                name = deactivated(part)
                found = [(_join(shown, name), f"{path}/{name}") for shown, path in found]
                if at or absolute or last:
                    found = [
                        (shown, path)
                        for shown, path in found
                        if not last or os.path.lexists(path) or name in (".", "..")
                    ]
                continue
            found = self._matching(part, found, world, last)
            if not found:
                break
        if len(found) >= MOST:
            self.cut = True
            rest = field.replace(f"{STAR}{STAR}/", REST)
            for mark in (STAR, QUERY, SET):
                rest = rest.replace(mark, REST)
            return [*(shown for shown, _ in found[:MOST]), rest]
        if found:
            return [shown for shown, _ in found]
        return [] if "nullglob" in world.options else [deactivated(field)]

    def _matching(self, part: str, found: list[tuple[str, str]], world: World, last: bool) -> list[tuple[str, str]]:
        if part == STAR + STAR and "globstar" in world.options:
            return self._everything(found, "dotglob" in world.options)
        pattern = _plain(part)
        folds = "nocaseglob" in world.options
        pattern = pattern.lower() if folds else pattern
        hidden = pattern[:1] == "." or "dotglob" in world.options
        result = []
        for shown, path in found:
            names = self.listing(path)
            names = [".", "..", *names] if pattern[:1] == "." and "dotglob" not in world.options else names
            for name in names:
                if (hidden or name[:1] != ".") and _fits(name.lower() if folds else name, pattern):
                    inner = f"{path}/{name}"
                    if last or self.is_folder(inner):
                        result.append((_join(shown, name), inner))
                if len(result) >= MOST:
                    return result
        return result

    def _everything(self, found: list[tuple[str, str]], hidden: bool) -> list[tuple[str, str]]:
        result = list(found)
        for shown, path in result:
            if len(result) >= MOST:
                break
            for name in self.listing(path):
                if (hidden or name[:1] != ".") and os.path.isdir(f"{path}/{name}"):
                    result.append((_join(shown, name), f"{path}/{name}"))
        return [(shown, path) for shown, path in result if shown]


def _join(shown: str, name: str) -> str:
    return f"{shown}/{name}" if shown and shown != "/" else shown + name


def _plain(part: str) -> str:
    """A pattern for `matches`: its active marks as they are, the others meaning themselves."""
    text = ""
    for char in part:
        if char in "*?[":
            text += f"[{char}]"
        else:
            text += {STAR: "*", QUERY: "?", SET: "["}.get(char, char)
    return text


def _fits(name: str, pattern: str) -> bool:
    """Whether a name fits, also where the pattern has `!(a|b)` in it (which `extglob` allows)."""
    before, found, rest = pattern.partition(EXTENDED)
    if not found:
        return matches(name, pattern)
    inside, _, behind = rest[1:].partition(")")
    if EXTENDED in behind or "(" in inside:
        return True  # nested: it may fit
    mark, before = before[-1:], before[:-1]
    fits = any(matches(name, before + choice + behind) for choice in inside.split("|"))
    if mark == "!":
        return matches(name, f"{before}*{behind}") and not fits
    return fits or mark in "*?+"

"""Decide which paths are protected, and what a change could hit.

Patterns are relative to each root of the project and start there (`specs/` is not `src/specs/`; write `**/specs/` for
that); a pattern that starts with `/` or `~` names a place outside. A folder protects all that is in it.
"""

from __future__ import annotations

import os

from fusewire.guard.shell.values import UNKNOWN
from fusewire.util.globs import matches, path_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: What an agent's edit tools may update.
DOCUMENT = "document"
#: What only a person may change.
CONFIGURATION = "configuration"

#: More files than are looked at to answer one question, and to answer whether a folder may be destroyed.
_MOST = 50_000
_MOST_BELOW = 500_000


class Protected:
    """The protected paths of one project."""

    def __init__(
        self,
        root: str,
        entries: tuple[tuple[str, str], ...],
        ignored: tuple[str, ...] = (),
        roots: tuple[str, ...] = (".",),
        grants: tuple[tuple[str, str], ...] = (),
        unwatched: tuple[str, ...] = (),
        always: tuple[str, ...] = (),
    ) -> None:
        self.root = os.path.realpath(root)
        self.ignored = ignored
        self._grants = grants
        #: protected, but not copied: what Fusewire itself writes all the time
        self._unwatched = frozenset(os.path.normpath(os.path.join(self.root, place)) for place in unwatched)
        #: absolute path without globs -> kind
        self.places: dict[str, str] = {}
        #: (absolute folder to start from, pattern below it, kind)
        self.patterns: list[tuple[str, str, str]] = []
        self._inodes: dict[tuple[int, int], str] | None = None
        #: the last folder that was looked through has more files
        self._cut = False
        self._folders = {self.root: self.root}
        for pattern in always:
            self._add(self.root, os.path.expanduser(pattern), CONFIGURATION)
        #: what no setting takes out
        self._always = frozenset(self.places)
        for pattern, kind in entries:
            for base in roots:
                self._add(os.path.join(self.root, base), os.path.expanduser(pattern), kind)

    def _add(self, base: str, pattern: str, kind: str) -> None:
        if pattern.startswith("/"):
            base = "/"
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        plain = next((at for at, part in enumerate(parts) if any(mark in part for mark in "*?[")), len(parts))
        place = os.path.normpath(os.path.join(base, *parts[:plain]))
        folder, _, name = place.rpartition("/")
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = os.path.realpath(folder or "/")
        place = os.path.join(real, name)
        if plain == len(parts):
            self.places.setdefault(place, kind)
            if os.path.islink(place):
                self.places.setdefault(os.path.realpath(place), kind)
        else:
            rest = "/".join(parts[plain:]) + ("/" if pattern.endswith("/") else "")
            self.patterns.append((place, rest, kind))

    # -- what is protected --------------------------------------------------------------------------------

    def kind_of(self, path: str) -> str | None:
        """Whether a path (absolute, links resolved) is protected, and as what."""
        found = self._kind_of(path)
        if found is not None and self.ignored and self._is_ignored(path):
            return None
        return found

    def _kind_of(self, path: str) -> str | None:
        place = path
        while len(place) > 1:
            kind = self.places.get(place)
            if kind is not None:
                return kind
            place = place.rpartition("/")[0]
        for base, pattern, kind in self.patterns:
            if path.startswith(base.rstrip("/") + "/") and _fits(path[len(base.rstrip("/")) + 1 :], pattern):
                return kind
        return None

    def _is_ignored(self, path: str) -> bool:
        if any(path == place or path.startswith(f"{place}/") for place in self._always):
            return False
        name = self.shown(path)
        return any(path_matches(name, pattern) for pattern in self.ignored)

    def mentioned_in(self, line: str) -> str:
        """A protected path of the project that a text mentions; empty if there is none."""
        for place in self.places:
            name = self.shown(place)
            at = line.find(name) if name[:1] != "/" else -1
            while at >= 0:
                before, behind = line[at - 1 : at], line[at + len(name) : at + len(name) + 1]
                if not (before.isalnum() or before in ("_", "-")) and not (behind.isalnum() or behind in ("_", "-")):
                    return name
                at = line.find(name, at + 1)
        return ""

    def grants(self, tool: str, name: str) -> bool:
        """Whether a tool was allowed to update this path."""
        return any(matches(tool, one) and path_matches(name, pattern) for one, pattern in self._grants)

    def same_file(self, path: str) -> str | None:
        """The protected file that is the same one under another name: a hard link, another case."""
        try:
            facts = os.stat(path)
        except (OSError, ValueError):
            return None
        import stat

        if not stat.S_ISREG(facts.st_mode):
            return None
        lower = path.lower()
        if facts.st_nlink < 2 and not any(lower.startswith(place.lower()) for place in self.places):
            return None
        if self._inodes is None:
            self._inodes = {}
            for name in self.files():
                try:
                    known = os.stat(name)
                except OSError:
                    continue
                self._inodes[known.st_dev, known.st_ino] = name
        return self._inodes.get((facts.st_dev, facts.st_ino))

    def forget(self) -> None:
        """The disk may have changed since."""
        self._inodes = None

    def below(self, folder: str, most: int = 20) -> list[str]:
        """Protected paths that exist inside a folder (absolute, links resolved)."""
        inside = folder.rstrip("/") + "/"
        found = [place for place in self.places if place.startswith(inside) and os.path.lexists(place)]
        if self.ignored:
            found = [place for place in found if any(path[-1] != "/" for path in self._files_of(place))]
        for base, _, _ in self.patterns:
            if len(found) >= most:
                break
            if inside.startswith(base.rstrip("/") + "/") or base.startswith(inside) or base == folder:
                start = folder if inside.startswith(base.rstrip("/") + "/") else base
                inner = self._walk(start, _MOST_BELOW)
                found += [path for path in inner if self.kind_of(path) and path not in found][:most]
                found += [start] if self._cut else []
        return found[:most]

    def files(self) -> Iterator[str]:
        """All protected files and links that exist."""
        return (path for path in self.entries() if path[-1] != "/")

    def entries(self) -> Iterator[str]:
        """The same with the folders that they lie in, each before its content, and with a slash behind its name."""
        seen: set[str] = set()
        for place in self.places:
            for path in self._files_of(place) if place not in self._unwatched else ():
                if path not in seen and self._is_watched(path):
                    seen.add(path)
                    yield path
        for base, pattern, _ in self.patterns:
            size = len(base.rstrip("/")) + 1
            for path in self._walk(base, folders=True):
                if path not in seen and _fits(path[size:], pattern) and self.kind_of(path) and self._is_watched(path):
                    seen.add(path)
                    yield path

    def _is_watched(self, path: str) -> bool:
        """Not what Fusewire itself writes, also where a folder around it is protected."""
        if path in self._unwatched:
            return False
        return path in self._always or not any(path.startswith(f"{place}/") for place in self._unwatched)

    def files_here(self) -> Iterator[str]:
        """Those in the project itself."""
        return (path for path in self.files() if path.startswith(self.root + "/"))

    def _files_of(self, place: str) -> Iterator[str]:
        if os.path.isdir(place) and not os.path.islink(place):
            for path in self._walk(place, folders=True):
                if not self.ignored or not self._is_ignored(path):
                    yield path
        elif os.path.lexists(place) and not (self.ignored and self._is_ignored(place)):
            yield place

    def _walk(self, folder: str, most: int = _MOST, *, folders: bool = False) -> Iterator[str]:
        todo = [folder]
        count = 0
        self._cut = False
        own = os.path.join(self.root, ".fusewire")
        while todo and count < most:
            here = todo.pop()
            if folders:
                yield f"{here}/"
            try:
                entries = list(os.scandir(here))
            except OSError:
                continue
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git" and entry.path != own:
                        todo.append(entry.path)
                else:
                    yield entry.path
        self._cut = bool(todo)

    def shown(self, path: str) -> str:
        """A path as people of this project name it."""
        return path[len(self.root) + 1 :] if path.startswith(self.root + "/") else path

    # -- what is not known --------------------------------------------------------------------------------

    def may_be(self, path: str, *, open_ended: bool, recursive: bool) -> str | None:
        """A protected path that a partly unknown one could be.

        If it is `open_ended`, it is held against everything that it could be, also folders above; else only if the
        part that is known already points there.
        """
        head = path.partition(UNKNOWN)[0]
        folder = head.rpartition("/")[0]
        if head and self.kind_of(os.path.realpath(folder) if folder else head):
            return folder
        if folder in ("/tmp", "/var/tmp", os.environ.get("TMPDIR", "/tmp").rstrip("/")):
            return None  # a name of its own among the temporary files
        pattern = _pattern(path)
        if not open_ended:
            if "/" not in path.rpartition(UNKNOWN)[2].rstrip("/"):
                return None  # not even its name is known
            return next((place for place in self.places if matches(place, pattern)), None)
        for place in self.places:
            if os.path.lexists(place) and (
                matches(place, pattern) or (recursive and any(matches(above, pattern) for above in _above(place)))
            ):
                return place
        return next((name for name in self.files() if matches(name, pattern)), None)


def _fits(name: str, pattern: str) -> bool:
    """Whether a path below a root fits a pattern, or lies in a folder that does."""
    if not pattern.startswith("**/") and "/" not in pattern.rstrip("/"):
        return matches(name.partition("/")[0], pattern.rstrip("/"))
    if path_matches(name, pattern):
        return True
    return path_matches(name, pattern.rstrip("/") + "/**")


def _pattern(path: str) -> str:
    text = ""
    for char in path:
        text += "*" if char == UNKNOWN else f"[{char}]" if char in "*?[" else char
    return text.rstrip("/") or "/"


def _above(place: str) -> list[str]:
    found = []
    while len(place) > 1:
        place = place.rpartition("/")[0] or "/"
        found.append(place)
    return found

"""Record a folder for a checkpoint: which of its files are kept, and the tree that holds them byte for byte."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from fusewire.util.git import GitFailure
from fusewire.worktree.shadow import Shadow
from fusewire.worktree.status import list_refs

#: Bytes of a file; larger ones are not kept.
LARGEST = 100 * 1000 * 1000

_USUAL = frozenset((0o644, 0o664, 0o755, 0o775))
_NOT_OPENED = re.compile(r"could not open directory '(.*?)/?': ", re.DOTALL)

#: mode and id of a file, as git has them
TreeEntry = tuple[str, str]


@dataclass
class Kept:
    """One repository, or the part of it below the root, at one moment; paths are relative to its folder."""

    shadow: Shadow
    #: whether git lists it, or it is ignored now and kept only because it was wanted
    is_listed: bool = field(default=True, kw_only=True)
    #: the user's commit and branch
    head: str | None = None
    branch: str | None = None
    tree: str = ""
    entries: Mapping[str, TreeEntry] = field(default_factory=dict)
    #: what git lists now; an entry that is not listed is ignored now and kept only because it was wanted
    listed: AbstractSet[str] = frozenset()
    ignored: list[str] = field(default_factory=list)
    #: wanted files that are not there: of others that are not kept, this is unknown
    absent: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    #: permissions of the files that have unusual ones
    modes: dict[str, int] = field(default_factory=dict)
    #: repositories inside
    nested: list[str] = field(default_factory=list)
    refs: Mapping[str, str] = field(default_factory=dict)


@dataclass
class PinFacts:
    """What is known of a commit of ours, stored as JSON beside it; paths are relative to the repository."""

    tree: str
    #: the user's commit and branch
    head: str | None
    branch: str | None
    left_out: list[str]
    ignored: list[str]
    absent: list[str]
    modes: dict[str, int]
    #: of the root: repositories inside -> their commits, and what was left out in all of them
    nested: dict[str, str] = field(default_factory=dict)
    all_left_out: list[str] = field(default_factory=list)
    ref: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Level:
    """One repository of a checkpoint, as it was kept."""

    shadow: Shadow
    facts: PinFacts
    entries: Mapping[str, TreeEntry]

    @property
    def known(self) -> set[str]:
        """Files of which it is known what they were: kept, or not there."""
        return {*self.entries, *self.facts.absent}

    def may_have_had(self, paths: Iterable[str]) -> set[str]:
        """Those that the checkpoint does not hold, but that may have been there: what was ignored is not known."""
        ignored, known = frozenset(self.facts.ignored), self.known
        return {path for path in paths if path not in known and is_below(path, ignored)}


def keep(shadow: Shadow, wanted: Collection[str] = ()) -> Kept:
    """The folder as it is now, with all files that git lists and those that are wanted although it does not."""
    shadow.make()
    problems: list[str] = []
    with ThreadPoolExecutor(3) as pool:  # git goes through all folders twice: at the same time
        refs, ignored, head = pool.submit(refs_of, shadow), pool.submit(shadow.ignored), pool.submit(shadow.head)
        listed = shadow.listed(problems)
    kept = Kept(shadow, *head.result(), refs=refs.result(), ignored=ignored.result(), listed=listed)
    kept.left_out = _not_opened(shadow, problems)
    files = _files(kept, listed | set(wanted))
    try:
        _write_tree(kept, files)
    except GitFailure:  # objects were collected, or a file became another while git looked: once more, from nothing
        drop_index(shadow)
        _write_tree(kept, _files(kept, listed | set(wanted)))
    missing = [path for path in wanted if path not in kept.entries]
    kept.absent = sorted(path for path in missing if not os.path.lexists(os.path.join(shadow.folder, path)))
    return kept


def refs_of(shadow: Shadow) -> dict[str, str]:
    """Our refs and what they point to."""
    return list_refs(shadow.refs, "refs/fusewire/")


def entries_of(shadow: Shadow, tree: str) -> dict[str, TreeEntry]:
    """The files of a tree that was kept."""
    return _parsed(shadow.own("ls-tree", "-r", "-z", tree, reading=True))


def drop_index(shadow: Shadow) -> None:
    for name in ("index", "index.lock"):  # the process that held git's own lock is dead: we hold ours
        try:
            os.unlink(os.path.join(shadow.private, name))
        except FileNotFoundError:
            pass


def is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of the places, or lies in one."""
    at = path
    while at:
        if at in places or f"{at}/" in places:
            return True
        at = at.rpartition("/")[0]
    return False


def is_inside(level: str, path: str) -> bool:
    """Whether a repository lies in another one."""
    return bool(path) and path != level and (not level or path.startswith(f"{level}/"))


def full_paths(level: str, paths: Iterable[str]) -> list[str]:
    """Paths of a repository inside, relative to the root."""
    return [os.path.join(level, path) for path in paths]


def _not_opened(shadow: Shadow, problems: Iterable[str]) -> list[str]:
    found = [match[1] for match in map(_NOT_OPENED.search, problems) if match]
    start = f"{shadow.prefix}/" if shadow.prefix else ""
    return [path.removeprefix(start) for path in found]


def _files(kept: Kept, paths: Collection[str]) -> list[str]:
    """Those that can be kept; the others are sorted into the rooms where they belong."""
    folder = kept.shadow.folder
    real: dict[str, bool] = {"": True}
    kept.modes, kept.nested = {}, []
    left_out = set(kept.left_out)
    files = []
    for path in sorted(paths):
        path = path.rstrip("/")
        if not _is_real(folder, path.rpartition("/")[0], real):
            continue
        full = f"{folder}/{path}"
        try:
            seen = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            left_out.add(path)
            continue
        mode = seen.st_mode
        if stat.S_ISDIR(mode):
            if path in kept.listed or f"{path}/" in kept.listed:
                _sort_in_folder(kept, path, left_out)
        elif stat.S_ISLNK(mode):
            files.append(path)
        elif stat.S_ISREG(mode) and seen.st_size <= LARGEST and (mode & 0o444 == 0o444 or os.access(full, os.R_OK)):
            files.append(path)
            if mode & 0o777 not in _USUAL:
                kept.modes[path] = mode & 0o777
        else:
            left_out.add(path)
    kept.left_out = sorted(left_out)
    return files


def _sort_in_folder(kept: Kept, path: str, left_out: set[str]) -> None:
    """A folder where git knows of one thing: a repository inside, a submodule without one, or a file until lately."""
    full = os.path.join(kept.shadow.folder, path)
    if os.path.lexists(os.path.join(full, ".git")):
        kept.nested.append(path)
        return
    if kept.shadow.is_submodule(path):  # git does not look into it, and so cannot say what is in there
        try:
            if not os.listdir(full):
                return
        except OSError:
            pass
        left_out.add(path)


def _is_real(folder: str, path: str, real: dict[str, bool]) -> bool:
    """Whether every folder on the way is a folder and not a link to one."""
    if path not in real:
        try:
            is_folder = stat.S_ISDIR(os.lstat(os.path.join(folder, path)).st_mode)
        except OSError:
            is_folder = False
        real[path] = is_folder and _is_real(folder, path.rpartition("/")[0], real)
    return real[path]


def _write_tree(kept: Kept, files: list[str]) -> None:
    shadow = kept.shadow
    shadow.own("update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=_joined(files))
    entries, tree = _written(shadow)
    gone = entries.keys() - set(files)
    if gone:
        shadow.own("update-index", "-z", "--force-remove", "--stdin", given=_joined(sorted(gone)))
        entries, tree = _written(shadow)
    refused = [path for path in files if path not in entries and os.path.lexists(os.path.join(shadow.folder, path))]
    kept.left_out = sorted({*kept.left_out, *refused})  # names that git has no room for, such as .GIT/x
    kept.entries, kept.tree = entries, tree


def _written(shadow: Shadow) -> tuple[dict[str, TreeEntry], str]:
    """What the index has, and the tree of it."""
    with ThreadPoolExecutor(1) as pool:
        tree = pool.submit(shadow.own, "write-tree")
        entries = _parsed(shadow.own("ls-files", "-s", "-z"))
    return entries, tree.result().decode().strip()


def _parsed(said: bytes) -> dict[str, TreeEntry]:
    entries = {}
    for row in os.fsdecode(said).split("\0")[:-1]:
        facts, _, path = row.partition("\t")
        mode, *_ = words = facts.split(" ")
        entries[path] = (mode, max(words, key=len))  # beside the id a tree's row has a type, the index's a stage
    return entries


def _joined(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)

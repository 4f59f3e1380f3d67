"""Work on a repository privately: the user's objects and refs, but an index and settings of our own.

The user's index, HEAD, branches, stash, configuration and hooks are never written. Our settings switch off everything
by which git changes a file's bytes on their way in or out (line ends, filters, encodings).
"""

from __future__ import annotations

import os

from fusewire.config.rules import PHASE_FILE, STATE_FILE, STATE_FOLDER
from fusewire.util.files import make_folder, replace_file
from fusewire.util.git import GitFailure, author, git, is_ignored, only
from fusewire.util.gitdir import GitDir, find, persons_excludes, top_above
from fusewire.worktree.path_kinds import CACHES

#: Our own files of the project's root, beside the state folder: what a breaker knows is not rolled back.
_OWN = frozenset((STATE_FILE, PHASE_FILE))

#: Hashing a large project for the first time takes its time.
_TIME_LIMIT = 600.0

_ATTRIBUTES = b"* -text !eol !crlf -ident !filter !working-tree-encoding\n"
_SETTINGS = {
    "core.filemode": "true",
    "core.symlinks": "true",
    "core.ignorecase": "false",
    "core.precomposeunicode": "false",
    "core.protecthfs": "false",
    "core.protectntfs": "false",
    "core.autocrlf": "false",
    "core.untrackedcache": "false",
    "core.splitindex": "false",
    "core.sparsecheckout": "false",
}

_AUTHOR = author("fusewire", "fusewire@localhost")


class Shadow:
    """The private side of one folder: a repository, a part of one, or a folder outside of any."""

    def __init__(self, folder: str, private: str, *, is_root: bool) -> None:
        self.folder = folder
        self.private = private
        self.is_root = is_root
        #: the top of the user's repository; None if the folder is in none
        self.top: str | None = None
        #: the folder, relative to the top; empty if it is the top
        self.prefix = ""
        self.repository: GitDir | None = None
        self._part = os.path.join(private, "part")
        self._find_repository()

    def _find_repository(self) -> None:
        top = top_above(self.folder)
        if top is None:
            return
        prefix = "" if top == self.folder else os.path.relpath(self.folder, top)
        repository = find(top)
        if repository is None:
            raise GitFailure(f"not a git repository: {top}")
        # once a part of the repository, always one: an ignore rule that comes later must not hide the checkpoints
        if repository.top and not (prefix and not os.path.exists(self._part) and is_ignored(top, prefix)):
            self.top, self.prefix, self.repository = top, prefix, repository

    @property
    def width(self) -> int:
        """Digits of an object's id."""
        return 64 if self.repository is not None and self.repository.format == "sha256" else 40

    def make(self) -> None:
        """Make the private directory unless it is there."""
        for folder in ("objects", "refs"):
            self._make(folder)
        if self.prefix and not os.path.exists(self._part):
            replace_file(self._part, b"")

    def _make(self, folder: str) -> None:
        root, _, inside = self.private.rpartition(f"/{STATE_FOLDER}/")
        make_folder(root, os.path.join(STATE_FOLDER, inside, folder).rstrip("/"))

    def own(
        self, *arguments: str, given: bytes = b"", reading: bool = False, index: str = "index", users: bool = False
    ) -> bytes:
        """Ask git about the private directory; `reading` also sees what was kept before there was a repository."""
        own = GitDir(self.private, self.folder, _SETTINGS | (persons_excludes() if users else {}))
        own.index = os.path.join(self.private, index)
        # what is excluded here counts only outside of repositories
        own.info = {"attributes": _ATTRIBUTES, "exclude": "".join(f"{name}/\n" for name in sorted(CACHES)).encode()}
        variables = dict(_AUTHOR)
        if self.repository is not None:
            own.objects = self.repository.objects
            shared = ("extensions.objectformat", "core.sharedrepository")
            own.settings |= {name: value for name, value in self.repository.settings.items() if name in shared}
            if reading:  # never when writing: what the private one has would then be missing in the user's
                variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{_quoted(self.private)}/objects"'
        return git(own, *arguments, given=given, variables=variables, limit=_TIME_LIMIT)

    def refs(self, *arguments: str, given: bytes = b"") -> bytes:
        """Ask git where our refs are: in the user's repository, so that a person finds them, or else in our own."""
        return git(self.top, *arguments, given=given) if self.top else self.own(*arguments, given=given)

    def asked(self, *arguments: str) -> str:
        """One line from the user's repository; empty if there is none, or if git has no answer."""
        if self.top is None:
            return ""
        try:
            return git(self.top, *arguments).decode("utf-8", "surrogateescape").rstrip("\n")
        except GitFailure:
            return ""

    def head(self) -> tuple[str | None, str | None]:
        """The user's commit and branch; None for what there is none of."""
        commit, _, branch = self.asked("rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD").partition("\n")
        if not commit:  # before the first commit
            branch = self.asked("symbolic-ref", "-q", "HEAD")
        return commit or None, branch.removeprefix("refs/heads/") if branch.startswith("refs/heads/") else None

    def listed(self, problems: list[str]) -> set[str]:
        """What the user's repository knows or would add, relative to the folder; repositories inside end in a slash."""
        paths = self._ls_files("--cached", "--others", "--exclude-standard", problems=problems)
        return {path for path in paths if not self._is_ours(path)}

    def ignored(self) -> list[str]:
        """What is there and ignored; a folder that is ignored as a whole ends in a slash."""
        paths = sorted(self._ls_files("--others", "--ignored", "--exclude-standard", "--directory"))
        followed = zip(paths, [*paths[1:], ""], strict=False)
        # git also names a folder that merely holds nothing else than ignored files, and then those files
        return [path for path, following in followed if not (path.endswith("/") and following.startswith(path))]

    def is_submodule(self, path: str) -> bool:
        """Whether the user's index has a repository at a path, checked out or not."""
        return self.asked("ls-files", "-s", "--", *only(os.path.join(self.prefix, path))).startswith("160000 ")

    def _ls_files(self, *options: str, problems: list[str] | None = None) -> set[str]:
        if self.top is None:
            said = self.own("ls-files", "-z", *options, index="none", users=True)
        else:
            said = git(self.top, "ls-files", "-z", *options, "--", *only(self.prefix), problems=problems)
        paths = os.fsdecode(said).split("\0")
        start = f"{self.prefix}/" if self.prefix else ""
        return {path[len(start) :] for path in paths if path.startswith(start)} - {""}

    def _is_ours(self, path: str) -> bool:
        return (STATE_FOLDER in path and STATE_FOLDER in path.split("/")) or (self.is_root and path in _OWN)


def _quoted(path: str) -> str:
    """As git reads a path between quotes: a colon in it would end it otherwise."""
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

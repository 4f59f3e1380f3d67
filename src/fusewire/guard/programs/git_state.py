"""Asking git: what a repository has and what its files are, without changing anything.

Only commands that look are run, by way of `fusewire.util.git`. What earlier commands of the same line would have done
to HEAD and to the index is kept beside it.
"""

from __future__ import annotations

import os

from fusewire.guard.effects import READ, WRITE
from fusewire.guard.programs.git_line import Moves, line_of
from fusewire.guard.programs.git_raw import parent_of, raw_changes
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN, cleaned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.guard.effects import Call
    from fusewire.util.gitdir import GitDir

    #: from what a command would leave to what there is now: "A" would vanish, everything else would be written
    Changes = list[tuple[str, str]]

#: The tree without files, which every repository knows.
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

#: Files of one command that are reported one by one.
MOST = 5000

_OUTPUT_LIMIT = 8 * 1024 * 1024
_SECONDS = 3.0

#: Settings that change which files git means, and that cannot run anything.
_HARMLESS = (
    *("clean.", "core.excludesfile", "core.worktree", "core.bare", "core.ignorecase", "core.filemode", "core.symlinks"),
    *("core.autocrlf", "core.eol", "core.quotepath", "core.precomposeunicode", "core.abbrev", "safe.directory"),
    *("init.defaultbranch", "status.", "branch.", "remote."),
)


class Repo:
    """The repository that one git command works on."""

    def __init__(self, call: Call, folder: str, options: list[str], settings: list[tuple[str, str]]) -> None:
        self.call = call
        self.folder = folder
        self.line = line_of(call.walk)
        #: (name in small letters, value) of `-c` and of the environment
        self.settings = settings
        #: the same, after those that the line has written
        self.given = [*self.line.settings.items(), *settings]
        harmless = [setting for setting in self.given if setting[0].startswith(_HARMLESS) and UNKNOWN not in setting[1]]
        self._harmless = dict(harmless)
        #: what chooses the repository, in git's own words
        self.options = options
        #: the command's name
        self.command = ""
        self.known = UNKNOWN not in folder and not any(UNKNOWN in word for word in options)
        self._top: str | None = None

    @property
    def rule(self) -> str:
        return f"guard.git.{self.command}"

    # -- asking -------------------------------------------------------------------------------------------

    def ask(self, *words: str, limit: int = 0, objects: str = "", stdin: str = "", at: str = "") -> str | None:
        """What git prints, in another repository `at` a git directory; None if it fails, takes or prints too much."""
        if not self.known or any(UNKNOWN in word or "\0" in word for word in words):
            return None
        index = variable(self.call, "GIT_INDEX_FILE") or ""
        key = (*words, self.folder, at, *self.options, repr(self._harmless), objects, index, stdin)
        if key not in self.line.answers:
            self.line.answers[key] = self._run(words, limit or _OUTPUT_LIMIT, objects, index, stdin, at)
        return self.line.answers[key]

    def _run(self, words: tuple[str, ...], limit: int, objects: str, index: str, stdin: str, at: str) -> str | None:
        from time import monotonic

        from fusewire.util.git import GitFailure, GitLimit, git

        found = self._repository(at)
        if found is None:
            return None
        if index and UNKNOWN not in index:
            found.index = self.path(index)
        options = [word for word in self.options if word.endswith("-pathspecs")]
        variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects} if objects else {}
        given = stdin.encode("utf-8", "surrogateescape")
        seconds = min(_SECONDS, self.line.seconds)
        started = monotonic()
        try:
            output = git(
                found,
                *options,
                *words,
                given=given,
                variables=variables,
                limit=max(seconds, 0.01),
                most=limit,
                cwd=self.folder,
            )
        except GitFailure as failure:
            self.line.cut = self.line.cut or isinstance(failure, GitLimit)
            return None
        finally:
            self.line.seconds -= monotonic() - started
        return cleaned(output.decode("utf-8", "surrogateescape"))

    def _repository(self, at: str = "") -> GitDir | None:
        """The repository that the command works on, as the line's own options and settings choose it."""
        from fusewire.util.gitdir import choose

        chosen = dict(word[2:].split("=", 1) for word in self.options if "=" in word)
        git_dir = at or chosen.get("git-dir") or (self.folder if "--bare" in self.options else "")
        tree = "" if at else chosen.get("work-tree") or self.line.settings.get("core.worktree", "")
        return choose(self.folder, git_dir, tree, self._harmless)

    def configured(self, name: str) -> str:
        """A setting of the repository or of the person; empty if there is none."""
        found = self._repository() if self.known else None
        return found.settings.get(name, "") if found is not None else ""

    def names(self, *words: str) -> list[str] | None:
        """The names that a command prints with -z."""
        text = self.ask(*words)
        return None if text is None else [name for name in text.split("\0") if name]

    # -- where it is --------------------------------------------------------------------------------------

    @property
    def top(self) -> str:
        """The folder of the working tree; "" if there is none, or none that can be asked."""
        if self._top is None:
            found = self._repository() if self.known else None
            top = found.top if found is not None else ""
            self._top = "" if self.has_changed("/.git", exactly=top) else top
        return self._top

    def has_changed(self, *ends: str, exactly: str = "") -> bool:
        """Whether the line itself has removed or written a file of that name."""
        for effect in self.call.effects.found:
            if effect.kind == READ or not effect.path.endswith(ends):
                continue
            if not exactly or (effect.kind != WRITE and normal(effect.path) == exactly + ends[0]):
                return True
        return False

    @property
    def git_dir(self) -> str:
        found = self._repository() if self.known else None
        return found.folder if found is not None else ""

    def around(self) -> str:
        """A folder with a repository in it, from here upwards, by the look of it."""
        if not self.known:
            return self.folder
        place = normal(self.folder)
        while True:
            if place in self.line.made or os.path.lexists(f"{place.rstrip('/')}/.git"):
                return place
            if place in ("/", ""):
                return ""
            place = place.rpartition("/")[0] or "/"

    def path(self, text: str) -> str:
        """A path as the command understands it, which may be told to work elsewhere."""
        return text if text[:1] == "/" else f"{self.folder}/{text}"

    @property
    def moves(self) -> Moves:
        later, self.line.later = self.line.later, []
        for find_out in later:
            find_out()
        return self.line.moves.setdefault(self.git_dir or self.folder, Moves())

    @property
    def untouched(self) -> bool:
        """Nothing in the line has changed what there is, so that git's refusals can be foretold."""
        return self.call.walk.pristine and not self.has_moved

    @property
    def has_moved(self) -> bool:
        return bool(self.line.moves or self.line.later) and self.moves.any()

    def setting(self, name: str) -> str | None:
        """A setting that the line itself gives."""
        found = [value for key, value in self.given if key == name]
        return found[-1] if found else None

    # -- revisions ----------------------------------------------------------------------------------------

    def revision(self, text: str, kind: str = "commit") -> str | None:
        """The id of a commit (or tree); None if there is none of that name."""
        if text == "-":
            text = "@{-1}"
        text = self._moved(text)
        if not text or text[:1] == "-":
            return None
        found = self.ask("rev-parse", "--verify", "-q", "--end-of-options", text + "^{" + kind + "}")
        return found.strip() or None if found is not None else None

    def make_ref(self, name: str, start: str, kind: str = "heads") -> None:
        """A branch or tag that is made here: later commands of the line may go there."""
        target = self.revision(start)
        if target is None or UNKNOWN in name:
            return
        here = (self.moves.head, self.moves.commits) if start in ("HEAD", "@") else None
        self.line.refs[name] = (target, here)
        self.call.disk.made(normal(f"{self.git_dir}/refs/{kind}/{name}"))

    def known_ref(self, text: str) -> str:
        """A name that the line has made as what it stands for: HEAD if that has not moved since, else a commit."""
        name = text.partition("~")[0].partition("^")[0]
        for prefix in ("", "refs/heads/", "heads/", "refs/tags/", "tags/"):
            made = self.line.refs.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
            if made is not None:
                target, here = made
                same = here is not None and here == (self.moves.head, self.moves.commits)
                return ("HEAD" if same else target) + text[len(name) :]
        return text

    def _moved(self, text: str) -> str:
        """A revision in terms of where HEAD really is."""
        text = self.known_ref(text) if self.line.refs else text
        for head in ("HEAD", "@"):
            rest = text[len(head) :]
            if not text.startswith(head) or rest[:1] not in ("", "~", "^"):
                continue
            moves = self.moves
            for _ in range(moves.commits):
                if not rest:
                    break
                rest = parent_of(rest)
            return (moves.head or "HEAD") + rest
        return text

    @property
    def head(self) -> str | None:
        return self.revision("HEAD")

    # -- differences --------------------------------------------------------------------------------------

    def between(self, target: str, present: str, paths: Iterable[str] = (), objects: str = "") -> Changes | None:
        """What differs between two commits."""
        text = self.ask(
            "diff-tree", "-r", "--raw", "-z", "--no-renames", target, present, "--", *paths, objects=objects
        )
        return None if text is None else [(status, name) for status, name, _, _, _ in raw_changes(text)]

    def against(self, target: str, paths: Iterable[str] = ()) -> Changes | None:
        """What differs between a commit and the working tree."""
        return self._contents(self.ask("diff-index", *_RAW, target, "--", *paths))

    def staged(self, target: str, paths: Iterable[str] = ()) -> Changes | None:
        """What differs between a commit and the index."""
        text = self.ask("diff-index", "--cached", *_RAW, target, "--", *paths)
        return None if text is None else [(status, name) for status, name, _, _, _ in raw_changes(text)]

    def unstaged(self, paths: Iterable[str] = ()) -> Changes | None:
        """What differs between the index and the working tree."""
        return self._contents(self.ask("diff-files", *_RAW, "--", *paths))

    def _contents(self, text: str | None) -> Changes | None:
        """Without the files that only seem to differ, because they were touched."""
        if text is None:
            return None
        changes = raw_changes(text)
        seem = [name for status, name, old, new, same in changes if status == "M" and same and old and not new]
        hashes = self._hashes(seem)
        return [(status, name) for status, name, old, _, _ in changes if not (name in hashes and hashes[name] == old)]

    def _hashes(self, names: list[str]) -> dict[str, str]:
        from fusewire.util.gitfiles import blob_id, committed_ids

        hashes: dict[str, str] = {}
        files = []
        for name in dict.fromkeys(names):
            path = f"{self.top}/{name}"
            if os.path.islink(path):
                hashes[name] = blob_id(os.fsencode(os.readlink(path)))
            elif os.path.isfile(path):
                files.append(name)
        repository = self._repository() if files else None
        if repository is not None:
            hashes |= committed_ids(repository, files, limit=max(min(_SECONDS, self.line.seconds), 0.01))
        return hashes

    def untracked(self, paths: Iterable[str] = (), *, ignored: bool = False) -> list[str] | None:
        """Files that git does not know; nested repositories are not looked into."""
        standard = [] if ignored else ["--exclude-standard"]
        names = self.names("ls-files", "-o", "-z", "--full-name", *standard, "--", *(paths or self._everything()))
        return None if names is None else [name for name in names if name[-1:] != "/"]

    def tracked(self, paths: Iterable[str] = ()) -> list[str] | None:
        names = self.names("ls-files", "-z", "--full-name", "--", *(paths or self._everything()))
        return None if names is None else list(dict.fromkeys(names))

    def _everything(self) -> list[str]:
        return [":/"]


_RAW = ("--raw", "-z", "--no-renames", "--ignore-submodules=all")


def setting_key(name: str) -> str:
    """Names of settings do not mind capital letters, but for their middle part."""
    section, _, rest = name.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{last.lower()}"


def variable(call: Call, name: str) -> str | None:
    value = call.world.variables.get(name, call.walk.environment.get(name))
    return value if isinstance(value, str) else None


def line_variable(call: Call, name: str) -> str:
    value = call.world.variables.get(name)
    return value if isinstance(value, str) else ""

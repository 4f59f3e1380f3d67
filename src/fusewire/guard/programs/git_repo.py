"""The repository that a git command works on: where it is, and what of it is committed nowhere.

Only commands that look are run, by way of `fusewire.util.git`, and only when a command of the line could lose
something. What earlier commands of the same line would have added and committed is taken into account.
"""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import REST, UNKNOWN, cleaned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.guard.effects import ProgramCall
    from fusewire.util.gitdir import GitDir

    #: name from the top -> its two letters of `git status --porcelain`
    State = dict[str, str]

_OUTPUT_LIMIT = 8 * 1024 * 1024
_SECONDS = 3.0

#: Seconds that git may take for all questions of one line.
_SECONDS_PER_LINE = 8.0

UNTRACKED, IGNORED = "??", "!!"


class GitLine:
    """What one line has asked git so far, and what it would have done to the index."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, ...], str | None] = {}
        self.seconds = _SECONDS_PER_LINE
        #: git took too long, or printed more than is read: what a command changes is not known
        self.cut = False
        #: settings that the line has written, by their names
        self.settings: dict[str, str] = {}
        #: paths that the line has added, and those of them that it has committed
        self.added: list[str] = []
        self.committed: list[str] = []
        #: it has committed what was staged, and with `-a` what was changed
        self.commits = self.commits_all = False
        #: what was staged is not any more
        self.unstages = False
        #: paths that it has taken out of the index, so that `git clean` removes them
        self.forgotten: list[str] = []
        #: what it takes out of the index goes from the working tree: it rewrites history
        self.rewrites = False
        #: HEAD has no commit any more
        self.orphan = False


class Repo:
    """The repository that one git command works on."""

    def __init__(self, call: ProgramCall, folder: str, options: list[str], settings: list[tuple[str, str]]) -> None:
        self.call = call
        self.folder = folder
        self.line = call.effects.git = call.effects.git or GitLine()
        #: (name in small letters, value) of `-c` and of the environment
        self.settings = settings
        #: the same, after those that the line has written
        self.given = [*self.line.settings.items(), *settings]
        #: what chooses the repository, in git's own words
        self.options = options
        #: the command's name
        self.command = ""
        self.known = UNKNOWN not in folder and not any(UNKNOWN in word for word in options)
        self._top: str | None = None

    @property
    def rule(self) -> str:
        return f"guard.git.{self.command}"

    # -- where it is --------------------------------------------------------------------------------------

    @property
    def top(self) -> str:
        """The folder of the working tree; "" if there is none, or none that can be asked."""
        if self._top is None:
            found = self._repository() if self.known else None
            self._top = found.top if found is not None else ""
        return self._top

    def is_in(self, *names: str) -> bool:
        """Whether git is in the middle of something that it keeps under one of these names."""
        found = self._repository() if self.known else None
        return found is not None and any(os.path.lexists(f"{found.folder}/{name}") for name in names)

    def has_conflict_markers(self, name: str) -> bool:
        """Whether a file is as a merge has left it, with both sides in it, and was not worked on to its end."""
        try:
            with open(f"{self.top}/{name}", "rb") as file:
                return b"<<<<<<< " in file.read(_OUTPUT_LIMIT)
        except OSError:
            return False

    def around(self) -> str:
        """A folder with a repository in it, from here upwards, by the look of it."""
        if not self.known:
            return self.folder
        place = normal(self.folder)
        while True:
            if os.path.lexists(f"{place.rstrip('/')}/.git"):
                return place
            if place in ("/", ""):
                return ""
            place = place.rpartition("/")[0] or "/"

    def path(self, text: str) -> str:
        """A path as the command understands it, which `-C` may send elsewhere."""
        return text if text[:1] == "/" else f"{self.folder}/{text}"

    def setting(self, name: str) -> str:
        """A setting that the line itself gives, or that of the repository or of the person."""
        found = [value for key, value in self.given if key == name]
        if found:
            return found[-1]
        repository = self._repository() if self.known else None
        return repository.settings.get(name, "") if repository is not None else ""

    # -- asking -------------------------------------------------------------------------------------------

    def ask(self, *words: str, limit: int = 0, stdin: str = "") -> str | None:
        """What git prints; None if it fails, takes too long or prints too much."""
        if not self.known or any(UNKNOWN in word or "\0" in word for word in words):
            return None
        key = (*words, self.folder, *self.options, stdin)
        if key not in self.line.answers:
            self.line.answers[key] = self._run(words, limit or _OUTPUT_LIMIT, stdin)
        return self.line.answers[key]

    def _run(self, words: tuple[str, ...], limit: int, stdin: str) -> str | None:
        from time import monotonic

        from fusewire.util.git import GitFailure, GitLimit, git

        found = self._repository()
        if found is None:
            return None
        options = [word for word in self.options if word.endswith("-pathspecs")]
        given = stdin.encode("utf-8", "surrogateescape")
        seconds = max(min(_SECONDS, self.line.seconds), 0.01)
        started = monotonic()
        try:
            output = git(found, *options, *words, given=given, limit=seconds, most=limit, cwd=self.folder)
        except GitFailure as failure:
            self.line.cut = self.line.cut or isinstance(failure, GitLimit)
            return None
        finally:
            self.line.seconds -= monotonic() - started
        return cleaned(output.decode("utf-8", "surrogateescape"))

    def _repository(self) -> GitDir | None:
        """The repository that the command works on, as the line's own options and settings choose it."""
        from fusewire.util.gitdir import choose

        chosen = dict(word[2:].split("=", 1) for word in self.options if "=" in word)
        git_dir = chosen.get("git-dir") or (self.folder if "--bare" in self.options else "")
        return choose(self.folder, git_dir, chosen.get("work-tree", ""), {})

    def names(self, *words: str) -> list[str]:
        """The names that a command prints with -z; none if it fails."""
        return [name for name in (self.ask(*words) or "").split("\0") if name]

    def commit(self, text: str) -> str:
        """The id of the commit of that name; empty if there is none."""
        text = "@{-1}" if text == "-" else text
        if not text or text[:1] == "-":
            return ""
        return (self.ask("rev-parse", "--verify", "-q", "--end-of-options", text + "^{commit}") or "").strip()

    def tracked(self, paths: Iterable[str] = ()) -> list[str] | None:
        """The files of the index among these paths."""
        text = self.ask("ls-files", "-z", "--full-name", "--", *(paths or [":/"]))
        return None if text is None else list(dict.fromkeys(name for name in text.split("\0") if name))

    def tracked_by(self, commit: str, names: Iterable[str]) -> list[str]:
        """Those of these files that a commit has."""
        wanted = list(names)
        return self.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", *wanted) if wanted else []

    def between(self, target: str, present: str, paths: Iterable[str] = ()) -> list[tuple[str, str]]:
        """(status, name) of what differs between two commits: "A" is only in the second one."""
        parts = self.names("diff-tree", "-r", "-z", "--name-status", "--no-renames", target, present, "--", *paths)
        return list(zip(parts[::2], parts[1::2], strict=False))

    # -- what is committed nowhere --------------------------------------------------------------------------

    def state(self, paths: Iterable[str] = (), *, untracked: bool = False, ignored: bool = False) -> State | None:
        """What differs from HEAD in the index or in the working tree, at these paths or at all that matter."""
        words = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"]
        words += ["-uall"] if untracked or self.line.added else ["-uno"]
        words += ["--ignored=traditional"] if ignored else []
        text = self.ask(*words, "--", *(paths or self.matters()))
        if text is None:
            return None
        found: State = {}
        for entry in text.split("\0"):
            name = entry[3:]
            if name and name[-1:] != "/":  # a repository inside of this one is not looked into
                letters = self._in_line(name, entry[:2])
                if letters and (untracked or ignored or letters not in (UNTRACKED, IGNORED)):
                    found[name] = letters
        for name in self._converted([name for name, letters in found.items() if letters == " M"]):
            del found[name]
        return found

    def _converted(self, names: list[str]) -> list[str]:
        """Those of these files that only seem to differ: git is run without their filters."""
        from fusewire.util.gitfiles import committed_ids

        repository = self._repository() if names else None
        ids = committed_ids(repository, (), names) if repository is not None else {}
        staged = self.names("ls-files", "-s", "-z", "--", *(f":(top,literal){name}" for name in ids)) if ids else []
        facts = (entry.partition("\t") for entry in staged)
        return [name for info, _, name in facts if ids.get(name) == info.split()[1]]

    def _in_line(self, name: str, letters: str) -> str:
        """The state of a file after what the line has added and committed; empty if it is committed then."""
        path = f"{self.top}/{name}"
        line = self.line
        if line.unstages and letters not in (UNTRACKED, IGNORED):
            letters = UNTRACKED if letters in ("A ", "AM") else " D" if letters[1] == "D" else " M"
        if letters in (UNTRACKED, IGNORED):
            if is_among(path, line.committed):
                return ""
            return "A " if letters == UNTRACKED and is_among(path, line.added) else letters
        if line.commits_all or is_among(path, line.committed) or (line.commits and letters[1] == " "):
            return ""
        return letters

    def matters(self) -> list[str]:
        """Pathspecs of what a verdict depends on: the protected paths, or everything if all files are to be listed."""
        protected = None if self.call.effects.lists else self.call.effects.protected
        inside = f"{self.top}/"
        if protected is None or not self.top or protected.kind_of(self.top):
            return [":/"]
        found = [f":(top,literal){place[len(inside) :]}" for place in protected.places if place.startswith(inside)]
        for base, pattern, _ in protected.patterns:
            if not f"{base}/".startswith(inside):
                return [":/"]
            head = f"{base}/"[len(inside) :]
            found += [f":(top,glob){head}{pattern.rstrip('/')}", f":(top,glob){head}{pattern.rstrip('/')}/**"]
        return found or [":/"]

    # -- telling ------------------------------------------------------------------------------------------

    def loses(self, kind: str, names: Iterable[str]) -> None:
        """Tell which files of the working tree change: git replaces a link, it does not write through it."""
        for name in names:
            self.call.effect(kind, f"{self.top}/{name}", follows=False, rule=self.rule)

    def may_lose(self, kind: str, paths: Iterable[str]) -> None:
        """Git could not be asked: everything that is named may change, if there is a repository at all."""
        place = self.around()
        for path in paths or [place] if place else ():
            path = path.removeprefix(":/").removeprefix(":(top)") if path[:1] == ":" else path
            self.call.effect(kind, self.path(path or place), recursive=True, rule=self.rule)

    def may_lose_anything(self) -> None:
        """Git was cut short in the middle of its answer."""
        place = self.around()
        if place:
            self.call.effect(DELETE, f"{place}/{REST}", rule=self.rule)


def is_among(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def is_unmerged(letters: str) -> bool:
    return "U" in letters or letters in ("AA", "DD")


def is_unknown(words: Iterable[str]) -> bool:
    return any(UNKNOWN in word for word in words)


def setting_key(name: str) -> str:
    """Names of settings do not mind capital letters, but for their middle part."""
    section, _, rest = name.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{last.lower()}"


def variable(call: ProgramCall, name: str) -> str | None:
    """A variable of the line or of the environment."""
    value = call.world.variables.get(name, call.walk.environment.get(name))
    return value if isinstance(value, str) else None


def unquoted(name: str) -> str:
    """A name as git prints it when it has special characters: "a\\tb"."""
    if name[:1] != '"' or name[-1:] != '"':
        return name
    raw = name[1:-1].encode("utf-8", "surrogateescape")
    return raw.decode("unicode_escape").encode("latin-1", "replace").decode("utf-8", "surrogateescape")

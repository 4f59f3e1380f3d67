"""Run git: the only place that starts it.

No call runs anything that a repository names: git sees a private directory (`fusewire.util.gitdir`) and an environment
of our own, not the repository's configuration, the person's, or the variables of the process above. Should something
be started nevertheless, it carries the mark of an agent, and acts for people are refused to it.
"""

from __future__ import annotations

import os
import subprocess

from fusewire.util.gitdir import PREFIX, GitDir, find, private_place, remove
from fusewire.util.programs import find_program, outermost, safe_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

TIME_LIMIT = 60.0

#: What `fusewire.agents.caller` takes for an agent's.
MARK = {"FUSEWIRE_AGENT": "git"}

#: Of the environment of this process; git needs no more of it.
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "USER", "LOGNAME", "TZ")

_ENVIRONMENT = {
    **MARK,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "LC_ALL": "C",
}


class GitFailure(Exception):
    """Git could not say; the text is one line."""


class GitUnanswered(GitFailure):
    """Git could not be run to its end: what was asked for is unknown, not missing."""


class GitLimit(GitUnanswered):
    """Git took longer, or printed more, than it may."""


class _Process:
    """One git process, and the private directory that it works with."""

    def __init__(
        self,
        repository: GitDir,
        words: tuple[str, ...],
        cwd: str = "",
        variables: Mapping[str, str] | None = None,
        *,
        talks: bool = True,
        hears: bool = False,
    ) -> None:
        self.repository = repository
        self.words = words
        self.cwd = cwd or repository.top or repository.folder
        self.variables = variables or {}
        self.talks = talks
        self.hears = hears
        self.project = outermost(self.cwd)
        self.base = f"{private_place(self.project)}/{PREFIX}{os.getpid()}-{os.urandom(8).hex()}"

    def __enter__(self) -> subprocess.Popen[bytes]:
        program = find_program("git", self.project)
        if program is None:
            raise GitUnanswered("git cannot be run: it is in no folder of the PATH that is outside the project")
        try:
            os.mkdir(self.base, 0o700)
            environment = self._environment()
            self.process = subprocess.Popen(
                (program, *self.words),
                cwd=self.cwd,
                env=environment,
                stdin=subprocess.PIPE if self.talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if self.hears else subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            remove(self.base)
            raise GitUnanswered(f"git cannot be run: {error}") from None
        return self.process

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        with self.process:  # closes its pipes, and waits
            pass
        remove(self.base)

    def _environment(self) -> dict[str, str]:
        repository = self.repository
        made = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ENVIRONMENT
        made |= {"PATH": safe_path(self.project), "HOME": self.base, "XDG_CONFIG_HOME": self.base}
        made |= {"GIT_DIR": repository.build(self.base), "GIT_INDEX_FILE": repository.index}
        made["GIT_OBJECT_DIRECTORY"] = repository.objects
        if repository.top:
            made["GIT_WORK_TREE"] = repository.top
        return made | dict(self.variables)


def git(
    where: str | GitDir,
    *arguments: str,
    given: bytes = b"",
    problems: list[str] | None = None,
    variables: Mapping[str, str] | None = None,
    limit: float = TIME_LIMIT,
    most: int = 0,
    cwd: str = "",
) -> bytes:
    """What git prints in a repository, or at the top of one; `problems` gets its warnings of folders.

    More than `most` bytes, or more time than the limit, is a failure.
    """
    repository = find(where) if isinstance(where, str) else where
    if repository is None:
        raise GitFailure(f"git {arguments[0]}: fatal: not a git repository: {where}")
    bounded = most > 0 and not given
    running = _Process(repository, arguments, cwd, variables, talks=bool(given), hears=not bounded)
    with running as process:
        try:
            printed, said = _read(process, most, limit) if bounded else process.communicate(given, limit)
        except subprocess.TimeoutExpired:
            raise GitLimit(f"git {arguments[0]} took longer than {limit:.0f} s") from None
        except (OSError, ValueError) as error:
            raise GitUnanswered(f"git cannot be run: {error}") from None
    said = repository.restored(said, running.base)
    if process.returncode:
        raise GitFailure(f"git {arguments[0]}: {_first_line(said) or f'exit status {process.returncode}'}")
    if problems is not None:
        problems += [line for line in _lines(said) if "could not open directory" in line]
    return repository.restored(printed, running.base)


def author(name: str, email: str) -> dict[str, str]:
    """The variables that name the author of a commit."""
    values = {"NAME": name, "EMAIL": email}
    return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in values.items()}


def is_ignored(top: str, path: str) -> bool:
    """Whether a repository ignores a path in it."""
    try:
        git(top, "check-ignore", "-q", f"./{path}")
    except GitFailure:  # exit status 1: it does not
        return False
    return True


def only(prefix: str) -> tuple[str, ...]:
    """The pathspec of one folder, by its very name."""
    return (f":(top,literal){prefix}",) if prefix else ()


class Objects:
    """One `git cat-file --batch`, asked for one object after the other; started when it is first asked."""

    def __init__(self, top: str) -> None:
        self.top = top
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Objects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._timer.cancel()
            self._running.__exit__(kind, error, trace)

    def read(self, name: str) -> tuple[str, bytes] | None:
        """The id and the content of an object; None if there is none."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
        except OSError:
            raise GitFailure("git cat-file ended early") from None
        head = process.stdout.readline().split()
        if len(head) != 3:
            if not head:
                raise GitFailure("git cat-file ended early")
            return None
        size = int(head[2])
        content = process.stdout.read(size + 1)
        if len(content) != size + 1:
            raise GitFailure("git cat-file ended early")
        return head[0].decode(), content[:size]

    def _start(self) -> subprocess.Popen[bytes]:
        import threading

        repository = find(self.top)
        if repository is None:
            raise GitFailure(f"git cat-file: fatal: not a git repository: {self.top}")
        self._running = _Process(repository, ("cat-file", "--batch"))
        process = self._process = self._running.__enter__()
        self._timer = threading.Timer(TIME_LIMIT, process.kill)
        self._timer.daemon = True
        self._timer.start()
        return process


def _read(process: subprocess.Popen[bytes], most: int, seconds: float) -> tuple[bytes, bytes]:
    """What a process prints within its time and up to its limit."""
    from select import select
    from time import monotonic

    assert process.stdout is not None
    ends = monotonic() + seconds
    output = b""
    while len(output) <= most:
        left = ends - monotonic()
        if left <= 0 or not select([process.stdout], [], [], left)[0]:
            raise subprocess.TimeoutExpired("git", seconds)
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            process.wait(timeout=1)
            return output, b""
        output += part
    raise GitLimit(f"git prints more than {most} bytes")


def _lines(message: bytes) -> list[str]:
    return [line.strip() for line in message.decode("utf-8", "replace").splitlines() if line.strip()]


def _first_line(message: bytes) -> str:
    """The line that says what failed; hints and warnings may come before it."""
    lines = _lines(message)
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "")[:300]

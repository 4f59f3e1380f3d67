"""Asking git: no locks, no hooks, no monitor, no network, and none of the variables of whoever started us."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping
from types import TracebackType

TIME_LIMIT = 60.0

_FLAGS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "protocol.allow=never"),  # a partial clone would fetch what it lacks
)
#: Where a person's own configuration is; everything else that begins with GIT_ speaks of another repository.
_KEPT = ("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT")
_KEPT_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")


class GitFailure(Exception):
    """Git could not say; the text is one line."""


def git(
    top: str,
    *arguments: str,
    given: bytes = b"",
    problems: list[str] | None = None,
    variables: Mapping[str, str] | None = None,
    limit: float = TIME_LIMIT,
) -> bytes:
    """What git prints in a repository; what it warns of goes to `problems`. `variables` are more of its environment."""
    whole = environment(top) | dict(variables or {})
    try:
        done = subprocess.run(command(*arguments), cwd=top, env=whole, input=given, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise GitFailure(f"git {arguments[0]} took longer than {limit:.0f} s") from None
    except (OSError, ValueError) as error:
        raise GitFailure(f"git cannot be run: {error}") from None
    if done.returncode:
        raise GitFailure(f"git {arguments[0]}: {_first_line(done.stderr) or f'exit status {done.returncode}'}")
    if problems is not None:
        problems += [line for line in _lines(done.stderr) if "could not open directory" in line]
    return done.stdout


def command(*arguments: str) -> tuple[str, ...]:
    return "git", *_FLAGS, *arguments


def environment(top: str) -> dict[str, str]:
    """The ceiling keeps git from taking the repository above for one that is broken."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    own["GIT_CEILING_DIRECTORIES"] = os.path.dirname(top)
    return own | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


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
            self._process.kill()
            with self._process:
                pass

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
        try:
            process = subprocess.Popen(
                command("cat-file", "--batch"),
                cwd=self.top,
                env=environment(self.top),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise GitFailure(f"git cannot be run: {error}") from None
        self._process = process
        self._timer = threading.Timer(TIME_LIMIT, process.kill)
        self._timer.daemon = True
        self._timer.start()
        return process


def _lines(message: bytes) -> list[str]:
    return [line.strip() for line in message.decode("utf-8", "replace").splitlines() if line.strip()]


def _first_line(message: bytes) -> str:
    """The line that says what failed; hints and warnings may come before it."""
    lines = _lines(message)
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "")[:300]

"""Results by name: the JUnit file that the command was said to write, or one of our own that pytest is asked for.

What a runner prints often names only the tests that failed; whether the one that matters ran at all is in the results.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from fusewire.util.environment import children_environment
from fusewire.util.files import read_regular

#: Bytes that are read.
_LARGEST = 50 << 20

#: What says that pytest could not take our option: its part that writes results is switched off.
_REFUSED = "unrecognized arguments: --junitxml="


class Results:
    """The results of one run of a command."""

    def __init__(self, given: str | None, own: str, command: Sequence[str]) -> None:
        self._explicit = given is not None
        self._given = given or _named_in(command)
        self._own = own
        self._stale = _stamp(self._given)
        #: whether we ask pytest for results because the command does not
        self.asks = self._given is None and _is_pytest(command)

    def variables(self) -> dict[str, str]:
        """What the command's environment needs beside its own; options of the command itself go before it."""
        if not self.asks:
            return {}
        before = children_environment().get("PYTEST_ADDOPTS", "")
        return {"PYTEST_ADDOPTS": f"{before} --junitxml={shlex.quote(self._own)}".strip()}

    def refused(self, output: str) -> bool:
        """Whether the command failed because of our option; then it is not asked for again."""
        if self.asks and _REFUSED in output:
            self.asks = False
            return True
        return False

    def read(self) -> bytes | None:
        """The results, if this run has written any; those of an earlier one say nothing about it."""
        path = self._own if self.asks else self._given
        if path is None or _stamp(path) in (None, self._stale):
            return None
        try:
            return read_regular(path, _LARGEST)
        except OSError:
            return None

    def problem(self, found: bytes | None) -> str:
        """Why the results that were named could not be used; empty if they could."""
        if not self._explicit or found is not None:
            return ""
        return f"{self._given} was not written by this command; it is judged by what it printed"

    def clear(self) -> None:
        try:
            os.unlink(self._own)
        except OSError:
            pass  # pytest was given another file, or is none


def _named_in(command: Sequence[str]) -> str | None:
    """The results that the command makes pytest write anyway."""
    for at, word in enumerate(command):
        name, equals, value = word.partition("=")
        if name in ("--junitxml", "--junit-xml"):
            return value if equals else "".join(command[at + 1 : at + 2]) or None
    return None


def _is_pytest(command: Sequence[str]) -> bool:
    return any(os.path.basename(word) in ("pytest", "py.test") for word in command[:6])


def _stamp(path: str | None) -> tuple[int, int, int] | None:
    """What tells an old file from a new one."""
    try:
        facts = os.stat(path) if path else None
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_ino, facts.st_size) if facts else None

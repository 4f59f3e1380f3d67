"""Read `.prp-session/circuit-breaker.json` before each action, and write it after it; no version is lost.

A version that Fusewire has not written is renamed before ours takes its place. The writer has read the database under
the lock, so the file never goes back in time; a process that is killed before leaves an old one, and the next action
writes it again.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from fusewire.breakers.phase.schema import parse, render
from fusewire.breakers.phase.state import PhaseRecord
from fusewire.config.rules import PHASE_FILE, STATE_FOLDER
from fusewire.core.events import fingerprint
from fusewire.util.errors import ConfigError, FusewireError
from fusewire.util.files import FileLock, free_name, make_folder, read_regular, replace_file

if TYPE_CHECKING:
    from fusewire.stores import Store

FILE = PHASE_FILE
FOLDER = os.path.dirname(FILE)

#: Versions of each kind that are kept beside it.
KEPT = 10

#: For git in that folder: what is ours is no work; what others keep there stays visible.
IGNORED = b"circuit-breaker*\n.gitignore\n"

#: Larger than any that we write.
LIMIT = 1024 * 1024


def digest(content: bytes) -> str:
    return fingerprint(content.decode("latin-1"))[7:23]


class StateFile:
    """The state file of one project."""

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, FILE)
        self._root = root

    def read(self) -> bytes | None:
        """Its content; None if there is none. What is no regular file, or too large, counts as broken."""
        try:
            content = read_regular(self.path, LIMIT + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise FusewireError(f"{FILE} cannot be read: {error.strerror}") from None
        except OSError:
            return b""
        return content if len(content) <= LIMIT else b""

    def write(self, store: Store) -> list[str]:
        """Bring it up to date; what a person must know about it, in words."""
        try:
            with FileLock(os.path.join(make_folder(self._root, STATE_FOLDER), "phases.lock")):
                record = PhaseRecord.recalled(store)
                return [] if record is None else self._write(record)
        except OSError as error:
            return [f"{FILE} could not be written: {error.strerror or error} (the state is safe in {STATE_FOLDER})"]

    def _write(self, record: PhaseRecord) -> list[str]:
        content, old, warnings = render(record), self.read(), []
        if old == content:
            return []
        make_folder(self._root, FOLDER)
        if old is not None and digest(old) not in record.written:
            warnings.append(self._set_aside(old))
        if old is None:
            self._hide_from_git()
        replace_file(self.path, content, f"{self.path}.tmp")
        return warnings

    def _hide_from_git(self) -> None:
        """Only where we create the file: a person who created it, or removed the rule, may want it in a commit."""
        ignore = os.path.join(os.path.dirname(self.path), ".gitignore")
        if not os.path.lexists(ignore):
            replace_file(ignore, IGNORED, f"{self.path}.tmp")

    def _set_aside(self, old: bytes) -> str:
        try:
            parse(old, FILE)
            kind, problem = "edited", "was changed by somebody else"
        except ConfigError as error:
            kind, problem = "broken", f"was broken ({str(error).removeprefix(f'{FILE}: ')})"
        aside = free_name(f"{self.path}.{kind}")
        os.rename(self.path, aside)
        self._prune(f"{os.path.basename(self.path)}.{kind}-")
        kept = os.path.join(FOLDER, os.path.basename(aside))
        way = f"; a person can take it over: fusewire phase import {kept}" if kind == "edited" else ""
        return f"{FILE} {problem}, and is kept as {kept}; what Fusewire knows holds{way}"

    def keep_old(self, now: float) -> tuple[str, bytes]:
        """A copy for a new start, named by the time, and what is in it; no name if there is nothing to keep."""
        content = self.read()
        if not content:
            return "", b""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        stem = self.path.removesuffix(".json")
        path, number = f"{stem}.{stamp}.json", 1
        while os.path.exists(path):
            path, number = f"{stem}.{stamp}-{number}.json", number + 1
        replace_file(path, content, f"{self.path}.tmp")
        self._prune("circuit-breaker.2", ".json")
        return os.path.join(FOLDER, os.path.basename(path)), content

    def _prune(self, start: str, end: str = "") -> None:
        folder = os.path.dirname(self.path)
        names = [name for name in os.listdir(folder) if name.startswith(start) and name.endswith(end)]
        paths = sorted((os.path.join(folder, name) for name in names), key=lambda path: (os.lstat(path).st_mtime, path))
        for path in paths[:-KEPT]:
            if not os.path.isdir(path):
                os.unlink(path)

"""The loop's files in `.fusewire/loop/`: snapshots from before an iteration, agents' output, the status log."""

from __future__ import annotations

import os
import time
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from fusewire.breakers.loop.report import log_entry
from fusewire.config.rules import STATE_FOLDER, sealed, unsealed
from fusewire.util.files import make_folder, open_file, read_file, replace_file

if TYPE_CHECKING:
    from fusewire.breakers.loop.state import HistoryEntry

#: Seconds after which a snapshot of no known iteration is waste.
_OLD = 3600

#: The status log is cut to its newer half beyond this size.
STATUS_LIMIT = 512 * 1024


class Places:
    """Where the loop of one project keeps its files."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.folder = os.path.join(root, STATE_FOLDER, "loop")
        self.outputs = os.path.join(self.folder, "output")
        self.status_log = os.path.join(self.folder, "status.md")

    def make(self) -> None:
        make_folder(self._root, f"{STATE_FOLDER}/loop/output")

    def output_of(self, number: int) -> str:
        return os.path.join(self.outputs, f"iteration-{number:06d}.log")

    def save_before(self, token: str, data: Any) -> None:
        self.make()
        replace_file(self._before(token), sealed(data))

    def before(self, token: str) -> Any:
        """What was saved; None if there is nothing that can be read."""
        try:
            return unsealed(read_file(self._before(token)))
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def forget(self, token: str) -> None:
        try:
            os.unlink(self._before(token))
        except OSError:
            pass

    def tidy(self, running: Container[str]) -> None:
        """Remove the snapshots of unknown iterations; a young one may belong to an iteration that is just beginning."""
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    token, _, suffix = entry.name.partition(".")
                    if suffix == "snapshot" and token != "last" and token not in running and _is_old(entry):
                        os.unlink(entry.path)
        except OSError:
            pass

    def _before(self, token: str) -> str:
        return os.path.join(self.folder, f"{token}.snapshot")

    def log_status(self, entry: HistoryEntry) -> None:
        """Append to the status log and keep it within its limit; a failure to write does not end the loop."""
        try:
            self.make()
            status_log = open_file(self.status_log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            with open(status_log, "r+b", buffering=0) as file:
                file.write(log_entry(entry).encode("utf-8", "replace") + b"\n")
                size = file.tell()
            if size > STATUS_LIMIT:
                kept = read_file(self.status_log)[-STATUS_LIMIT // 2 :]
                replace_file(self.status_log, kept[kept.find(b"## Iteration ") :])
        except OSError:
            pass


def _is_old(entry: os.DirEntry[str]) -> bool:
    return time.time() - entry.stat().st_mtime > _OLD

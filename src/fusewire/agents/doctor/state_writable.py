"""Check that the state can be written; if not, say why: a lock and its holder, a full disk, or a read-only one."""

from __future__ import annotations

import contextlib
import os
import tempfile

from fusewire.config.rules import DATABASE, STATE_FOLDER
from fusewire.engine.breaker import Breaker
from fusewire.util.errors import StoreError
from fusewire.util.quoting import quoted

#: Where in the `-shm` file SQLite locks the right to write.
_WRITE_LOCK = "120"

#: More than one event writes.
_SAMPLE = 256 * 1024


class _RollBack(Exception):
    """Ends a transaction without a trace."""


def write_problems(breaker: Breaker) -> list[tuple[str, str]]:
    """What keeps the state from being written, and what to do about it; nothing is changed."""
    folder = os.path.join(breaker.root or ".", STATE_FOLDER)
    if not os.path.isdir(folder):
        return []
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_SAMPLE))
    except OSError as error:
        what = f"{folder} cannot be written ({error.strerror}): nothing can be recorded"
        return [(what, f"make room on the disk of {quoted(folder)}, or raise the limit that is reached")]
    if not os.path.exists(os.path.join(breaker.root or ".", DATABASE)):
        return []
    try:
        with contextlib.suppress(_RollBack), breaker.store.transact() as transaction:
            transaction.notice("doctor", 0)
            raise _RollBack
    except StoreError as error:
        holder = _holder(os.path.join(breaker.root or ".", f"{DATABASE}-shm"))
        by = f" by {holder}" if holder else ""
        if "locked" in str(error):
            what = f"the state database is locked{by}: nothing can be recorded"
            return [(what, f"wait, or end {holder or 'the process that holds it'}")]
        return [(str(error), "mend what it says, and run: fusewire doctor")]
    return []


def _holder(path: str) -> str:
    """The process that has the right to write, where the system tells."""
    try:
        inode = str(os.stat(path).st_ino)
        with open("/proc/locks", encoding="ascii") as file:
            locks = [line.split() for line in file]
    except OSError:
        return ""
    for words in locks:
        if len(words) >= 8 and words[5].rpartition(":")[2] == inode and words[6] == _WRITE_LOCK and words[4] != "-1":
            try:
                with open(f"/proc/{words[4]}/comm", encoding="utf-8", errors="replace") as file:
                    return f"process {words[4]} ({file.read().strip()})"
            except OSError:
                return f"process {words[4]}"
    return ""

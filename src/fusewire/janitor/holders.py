"""Who still has a file open for writing, so that its next line must not be lost.

A process that opened a file before it was renamed goes on writing to it under its new name. Where /proc shows the
processes, they are asked; where nobody can be asked, a file counts as let go of when it has not changed for an hour.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Inode = tuple[int, int]

PROC = "/proc"

#: The bits of the flags that say whether a file is read or written.
_ACCESS = 3

#: Seconds without a change after which a file of unknown holders is held to be let go of.
QUIET = 3600.0

UNKNOWN = "a process that cannot be looked into, perhaps"


def inode(facts: os.stat_result) -> Inode:
    return facts.st_dev, facts.st_ino


def holders(files: Iterable[os.stat_result], now: float) -> dict[Inode, str]:
    """Those of the files that are held, and by whom."""
    wanted = {inode(facts): facts for facts in files}
    if not wanted:
        return {}
    found: dict[Inode, str] = {}
    hidden: set[int] = set()
    if not os.path.isdir(f"{PROC}/self/fd"):
        return {one: UNKNOWN for one, facts in wanted.items() if _moving(facts, now)}
    for pid in filter(str.isdecimal, os.listdir(PROC)):
        try:
            numbers = os.listdir(f"{PROC}/{pid}/fd")
        except PermissionError:
            hidden.add(_owner(pid))
            continue
        except OSError:
            continue  # it has ended
        for number in numbers:
            try:
                facts = os.stat(f"{PROC}/{pid}/fd/{number}")
            except OSError:
                continue
            if inode(facts) in wanted and _writes(pid, number):
                found[inode(facts)] = f"{_name(pid)} (pid {pid})"
    for one, facts in wanted.items():
        theirs = facts.st_uid in hidden or (hidden and facts.st_mode & 0o002)
        if one not in found and theirs and _moving(facts, now):
            found[one] = UNKNOWN
    return found


def _moving(facts: os.stat_result, now: float) -> bool:
    return now - facts.st_mtime < QUIET


def _owner(pid: str) -> int:
    try:
        return os.stat(f"{PROC}/{pid}").st_uid
    except OSError:
        return -1


def _writes(pid: str, number: str) -> bool:
    """Whoever only reads takes nothing with it."""
    try:
        with open(f"{PROC}/{pid}/fdinfo/{number}", "rb") as file:
            flags = next(line for line in file if line.startswith(b"flags:"))
        return int(flags.split()[1], 8) & _ACCESS != os.O_RDONLY
    except FileNotFoundError:
        return False  # closed meanwhile
    except (OSError, StopIteration, ValueError, IndexError):
        return True


def _name(pid: str) -> str:
    try:
        with open(f"{PROC}/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip() or "a process"
    except OSError:
        return "a process"

"""Read the process table of this machine: parents, groups, start times.

From /proc where there is one, else from `ps`. A pid alone names nobody: it is given again to somebody else, so that a
process is its pid together with the moment at which it was started.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

#: The folder of the process file system.
PROC = "/proc"

#: What comes after the name in /proc/PID/stat, counted from 0.
_STATE, _PARENT, _GROUP, _SESSION, _FLAGS, _THREADS, _START = 0, 1, 2, 3, 6, 17, 19
_ENVIRONMENT, _ENVIRONMENT_END = 47, 48

#: More processes above one another than anybody has.
_DEEPEST = 64

#: The flag of the kernel's own threads.
_OF_THE_KERNEL = 0x200000


class Process:
    """One process as it was when it was looked at."""

    __slots__ = ("dead", "group", "parent", "pid", "session", "start")

    def __init__(self, pid: int, parent: int, group: int, session: int, start: str, dead: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start
        #: It has ended, and only its exit code waits for its parent.
        self.dead = dead

    def key(self) -> tuple[int, str]:
        return self.pid, self.start


def has_proc() -> bool:
    return os.path.exists(f"{PROC}/self/stat")


def processes(known: Container[int]) -> dict[int, Process | None]:
    """Those whose numbers are not known yet, the newest first; None for what has ended before it was looked at."""
    if not has_proc():
        return {pid: process for pid, process in _listed("-A").items() if pid not in known}
    numbers = sorted((int(name) for name in os.listdir(PROC) if name.isdecimal()), reverse=True)
    return {pid: look(pid) for pid in numbers if pid not in known}


def look(pid: int) -> Process | None:
    """The process that has this number now."""
    if not has_proc():
        return _listed("-p", str(pid)).get(pid)
    fields = _fields(pid)
    if fields is None:
        return None
    # The first thread of a process may end before the others do: the process is alive, and its state says Z.
    dead = fields[_STATE] in (b"Z", b"X") and int(fields[_THREADS]) <= 1
    parent, group, session = (int(fields[at]) for at in (_PARENT, _GROUP, _SESSION))
    return Process(pid, parent, group, session, fields[_START].decode(), dead)


def ancestors(lowest: int | None = None) -> list[int]:
    """The processes above this one, the nearest first, or `lowest` and those above it; init is nobody's."""
    found = [os.getppid() if lowest is None else lowest]
    while len(found) < _DEEPEST and (process := look(found[-1])) is not None and process.parent > 1:
        found.append(process.parent)
    return found


def is_there(process: Process) -> bool:
    """Whether it is still the same one, and alive."""
    now = look(process.pid)
    return now is not None and now.start == process.start and not now.dead


def environment(pid: int) -> bytes:
    """What the process was started with, entries separated by NUL; empty if we may not know.

    In the middle of an exec the old one is gone and the new one is not there yet, and for an instant it looks as if
    there were none: an empty one is believed when it is still empty a little later.
    """
    empty = 0
    for _ in range(50):
        found = _read(f"{PROC}/{pid}/environ")
        fields = None if found else _fields(pid)
        if found is None or fields is None or not _has_memory(fields):
            return found or b""
        empty = empty + 1 if fields[_ENVIRONMENT] == fields[_ENVIRONMENT_END] != b"0" else 0
        if empty == 3:
            break
        time.sleep(0.001)
    return b""


def _has_memory(fields: list[bytes]) -> bool:
    """Neither those that have ended have any, nor the kernel's own threads."""
    return fields[_STATE] not in (b"Z", b"X") and not int(fields[_FLAGS]) & _OF_THE_KERNEL


def began(pid: int) -> float | None:
    """When a process was started, in seconds of the clock; None if nobody knows."""
    fields = _fields(pid)
    booted = next((line for line in (_read(f"{PROC}/stat") or b"").split(b"\n") if line.startswith(b"btime ")), b"")
    if fields is None or not booted:
        return None
    return int(booted.split()[1]) + int(fields[_START]) / os.sysconf("SC_CLK_TCK")


def started_as(pid: int) -> list[str]:
    """The words of its command line; none if we may not know."""
    found = _read(f"{PROC}/{pid}/cmdline")
    if found is None and not has_proc():
        return _words_of(pid)
    return (found or b"").decode("utf-8", "replace").rstrip("\0").split("\0")


def on_terminal(pid: int) -> bool:
    """Whether a process reads from a terminal and writes to it; not, where nobody knows."""
    try:
        places = [os.readlink(f"{PROC}/{pid}/fd/{number}") for number in (0, 1)]
    except OSError:
        return False
    return all(place.startswith(("/dev/pts/", "/dev/tty")) for place in places)


def process_identity(pid: int) -> str | None:
    """A text that names this process and no later one with the same number, not even after a restart."""
    process = look(pid)
    return None if process is None else f"{pid}:{process.start}:{_boot()}"


def is_alive(identity: str) -> bool:
    """Whether the process of `process_identity` still runs; what has ended and was not collected does not."""
    number, _, rest = identity.partition(":")
    process = look(int(number)) if number.isdecimal() else None
    return process is not None and not process.dead and rest == f"{process.start}:{_boot()}"


def _boot() -> str:
    return (_read(f"{PROC}/sys/kernel/random/boot_id") or b"").decode().strip()


def _fields(pid: int) -> list[bytes] | None:
    """/proc/PID/stat behind the name, which may contain anything, spaces and brackets too."""
    text = _read(f"{PROC}/{pid}/stat")
    fields = (text or b"").rpartition(b")")[2].split()
    return fields if len(fields) > _ENVIRONMENT_END else None


def _read(path: str) -> bytes | None:
    """The whole file; None if it is gone, or belongs to somebody else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _ps() -> str:
    from fusewire.util.programs import find_program

    return find_program("ps") or "/bin/ps"


def _words_of(pid: int) -> list[str]:
    import subprocess

    try:
        shown = subprocess.run([_ps(), "-o", "args=", "-p", str(pid)], capture_output=True, check=False)
    except OSError:
        return []
    return shown.stdout.decode(errors="replace").split()


def _listed(*which: str) -> dict[int, Process]:
    """The processes that `ps` shows; it knows no sessions in a form that all systems share."""
    import subprocess

    command = [_ps(), *which, "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat=", "-o", "lstart="]
    try:
        shown = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except OSError:
        return {}
    found = {}
    for line in shown.stdout.decode(errors="replace").splitlines():
        pid, parent, group, state, *start = line.split()
        found[int(pid)] = Process(int(pid), int(parent), int(group), 0, "-".join(start), state.startswith("Z"))
    return found

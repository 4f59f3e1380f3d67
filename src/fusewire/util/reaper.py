"""Find and end the orphans of an agent: its children, its daemons, and whatever they have started.

Everything that an agent starts inherits the entry FUSEWIRE_MARK=... of its environment, also what leaves its group and
its session. A signal goes only to a process that was looked at again after it could no longer be exchanged.
"""

from __future__ import annotations

import os
import signal
import time

from fusewire.util.processes import (
    Process,
    environment,
    has_proc,
    is_alive,
    is_there,
    look,
    process_identity,
    processes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MARK", "check_mark", "end", "end_marked", "find", "is_alive", "process_identity", "send"]

#: The variable that every process of an agent has.
MARK = "FUSEWIRE_MARK"

#: How often a search looks for what was started while it went on.
_PASSES = 20

#: Seconds between two searches while those that were asked to end are waited for.
_AGAIN = 0.2

#: Seconds after which what cannot be killed (it hangs in the kernel) is left alone.
_KILLING = 10.0

#: So many more processes than there were when they were asked to end: they will not end by being asked.
_MULTIPLYING = 50


def check_mark(mark: str) -> str:
    """The mark itself; ValueError for one that could be confused with another or cannot be passed on."""
    if not mark or not mark.isascii() or not mark.isprintable() or " " in mark:
        raise ValueError(f"not a mark: {mark!r}")
    return mark


def find(mark: str, leader: Process | None = None) -> list[Process]:
    """What is alive of the agent with this mark; `leader` is its first process, alive or not, if it is known.

    Looked through again until a look shows no new number: what was started meanwhile is found as well. The newest
    come first, because a process that forks and ends lives too short to be reached at the end of a long list.
    """
    leader = leader if leader is not None and _is_still_its_group(leader) else None
    seen: dict[int, Process | None] = {}
    ours: dict[int, Process] = {}
    for _ in range(_PASSES if has_proc() else 1):
        new = processes(seen)
        if not new:
            break
        seen |= new
        ours |= {pid: process for pid, process in new.items() if process and _belongs(process, mark, leader)}
    _add_relatives(ours, seen)
    return [process for process in ours.values() if not process.dead and _may_be_ended(process)]


def end_marked(mark: str, grace: float = 5.0) -> int:
    """End what a supervisor that has died left behind; how many they were."""
    return end(mark, None, grace)


def end(mark: str, leader: Process | None, grace: float, wait: Callable[[float], None] = time.sleep) -> int:
    """Ask all of them to end, wait so many seconds, kill the rest; how many they were.

    `wait` is how the caller passes the time: it goes on reading what they have to say.
    """
    check_mark(mark)
    met: set[tuple[int, str]] = set()
    present = _ask(find(mark, leader), met)
    present = _wait_for(present, met, mark, leader, time.monotonic() + grace, wait)
    met |= {process.key() for process in present}
    until = time.monotonic() + _KILLING
    while present and time.monotonic() < until:
        _kill_group(leader)
        for process in present:
            send(process, signal.SIGKILL)
        wait(0.002)
        present = find(mark, leader)
        met |= {process.key() for process in present}
    return len(met)


def _wait_for(
    present: list[Process],
    met: set[tuple[int, str]],
    mark: str,
    leader: Process | None,
    deadline: float,
    wait: Callable[[float], None],
) -> list[Process]:
    """What is still there at the deadline. Those that come while we wait may be asked to end, too."""
    limit = len(present) + _MULTIPLYING
    pause, again = 0.005, time.monotonic() + _AGAIN
    while present and len(present) < limit and (now := time.monotonic()) < deadline:
        wait(min(pause, deadline - now))
        pause = min(2 * pause, 0.05)
        present = [process for process in present if is_there(process)]
        if not present or time.monotonic() >= again:
            present = _ask(find(mark, leader), met)
            again = time.monotonic() + _AGAIN
    return present


def _ask(found: list[Process], met: set[tuple[int, str]]) -> list[Process]:
    """Ask those that were not asked yet; a stopped one has to go on in order to end.

    What those that were asked have started since is their clean-up: left alone for as long as they are there.
    """
    asked, there = frozenset(met), {process.pid: process for process in found}
    for process in found:
        if process.key() not in asked and not _is_started_by(process, asked, there):
            met.add(process.key())
            send(process, signal.SIGTERM)
            send(process, signal.SIGCONT)
    return found


def _is_started_by(process: Process, asked: frozenset[tuple[int, str]], there: dict[int, Process]) -> bool:
    """Whether somebody above it, with all in between still there, is one of those."""
    above = there.get(process.parent)
    for _ in range(len(there)):
        if above is None or above.key() in asked:
            break
        above = there.get(above.parent)
    return above is not None and above.key() in asked


def _belongs(process: Process, mark: str, leader: Process | None) -> bool:
    if process.pid in (1, os.getpid()):
        return False
    if leader is not None and leader.pid in (process.pid, process.group, process.session):
        return True
    if not has_proc() or process.dead or (leader is not None and int(process.start) < int(leader.start)):
        return False  # what is older than the agent was not started by it, and its environment need not be read
    return f"\0{MARK}={mark}\0".encode() in b"\0" + environment(process.pid) + b"\0"


def _add_relatives(ours: dict[int, Process], seen: dict[int, Process | None]) -> None:
    """Add the children and the sessions of those that were found: they may have no mark, but they have no other origin.

    A process can be in another session than its parent's only if it has opened that session itself.
    """
    never = (1, os.getpid())
    foreign = {0, 1, os.getsid(0)}
    while True:
        sessions = {process.session for process in ours.values()} - foreign
        others = [process for pid, process in seen.items() if process and pid not in ours and pid not in never]
        more = {one.pid: one for one in others if one.parent in ours or one.session in sessions}
        if not more:
            return
        ours |= more


def _may_be_ended(process: Process) -> bool:
    """Not what has become another user's: waiting for it would be in vain."""
    try:
        os.kill(process.pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass  # it has ended by now, which is as good
    return True


def _is_still_its_group(leader: Process) -> bool:
    """False once the number has been given to another process; a group whose first process has ended keeps it."""
    now = look(leader.pid)
    return now is None or now.key() == leader.key()


def send(process: Process, number: signal.Signals) -> None:
    """A signal to this process, and to nobody who has its number by now."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # an old kernel, another system
        handle = None
    try:
        if is_there(process):  # then it is the one that the handle holds
            if handle is None:
                os.kill(process.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        if handle is not None:
            os.close(handle)


def _kill_group(leader: Process | None) -> None:
    """All of them at once: none can fork while its turn has not come. Only while the first one keeps the number."""
    now = None if leader is None else look(leader.pid)
    if leader is not None and now is not None and now.key() == leader.key() and now.group == now.pid:
        try:
            os.killpg(leader.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

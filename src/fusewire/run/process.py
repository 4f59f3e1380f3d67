"""Run an agent once: start it, read it, end it when it is time, and leave nothing of it behind.

It never waits for something that may not come: neither for an agent that reads nothing or says nothing, nor for the
children that hold its pipes open after it has ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.run.pipes import Pipes
from fusewire.run.watchdog import Warden
from fusewire.util.processes import Process, look
from fusewire.util.reaper import MARK, check_mark, end, end_marked

if TYPE_CHECKING:
    from fusewire.run.sandbox import Entrance

#: Seconds between two ticks.
TICK = 0.25

#: After the agent has ended: silence after which nothing more is expected, and the longest time for all of it.
_QUIET, _DRAIN = 0.2, 2.0

#: Bytes of a program that tell a script from machine code.
_HEAD = 4096

#: Seconds between two polls for the agent's end, where the system has no pidfd.
_ASK = 0.02


@dataclass(frozen=True)
class ProcessEnd:
    """How a run has ended."""

    #: "exit" (by itself), "timeout", "idle", "stopped" (because `stop` said so), "launch" (it could not be started).
    why: str
    #: As a shell shows it: 128 + signal; 124 for timeout and idle; 127 and 126 for launch.
    code: int | None
    #: For "launch": what was wrong, in one line.
    problem: str
    seconds: float
    #: Processes that were still there after it had ended by itself, and had to be ended.
    left: int


def run_agent(
    command: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    given: bytes,
    timeout: float | None,
    idle: float | None,
    on_output: Callable[[bytes], None],
    on_error: Callable[[bytes], None],
    on_tick: Callable[[], None],
    stop: Callable[[], bool],
    mark: str,
    grace: float = 5.0,
    warden: Warden | None = None,
    entrance: Entrance | None = None,
) -> ProcessEnd:
    """Run it to its end, which comes at the latest `timeout` + `grace` and a few seconds from now, in the sandbox that
    `entrance` leads to.

    An exception of a callback, or of a signal handler, ends the agent and is passed on.
    """
    began = time.monotonic()
    environment = {**environment, MARK: check_mark(mark)}
    if warden is not None:
        warden.watch(0, mark)  # it must know the mark before there is anything that has it
    try:
        started = _start(command, cwd, environment, entrance)
        if isinstance(started, FailedLaunch):
            return ProcessEnd("launch", started.code, started.problem, time.monotonic() - began, 0)
        with _Agent(started, Pipes(started, given, on_output, on_error), mark, grace, on_tick, stop) as agent:
            if warden is not None:
                warden.watch(started.pid, mark)
            why = agent.watch(None if timeout is None else began + timeout, idle)
            left = agent.finish()
        code = 124 if why in ("timeout", "idle") else _as_a_shell_shows(started.returncode)
        return ProcessEnd(why, code, "", time.monotonic() - began, left if why == "exit" else 0)
    except BaseException:  # also one between the start and the entry into `_Agent`
        end_marked(mark, 0.0)
        raise
    finally:
        if warden is not None:
            warden.rest()


class _Agent:
    """The process that was started, until everything of it is gone."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        pipes: Pipes,
        mark: str,
        grace: float,
        on_tick: Callable[[], None],
        stop: Callable[[], bool],
    ) -> None:
        self._process = process
        self._pipes = pipes
        self._mark = mark
        self._grace = grace
        self._on_tick = on_tick
        self._stop = stop
        self._stopping = self._exited = self._finished = False
        self._tick = time.monotonic() + TICK
        self._leader: Process | None = look(process.pid)
        self._handle = _handle(process.pid)
        if self._handle is not None:
            pipes.wake_on(self._handle)

    def __enter__(self) -> _Agent:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if not self._finished:
                self._pipes.discard_output()
                self._on_tick, self._stop = _nothing, _never
                self._end(self._grace)
        finally:
            if not self._finished:  # interrupted a second time: do not wait
                self._end(0.0)
            try:
                self._process.wait(_DRAIN)
            except subprocess.TimeoutExpired:
                pass  # it hangs in the kernel
            self._let_go()
            self._pipes.close()

    def watch(self, deadline: float | None, idle: float | None) -> str:
        """Read until it has ended or has to be ended; why."""
        while True:
            self._turn(self._until_next(deadline, idle))
            if self._has_exited():
                return "exit"
            if self._stopping:
                return "stopped"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
            if idle is not None and self._pipes.looked >= self._pipes.last + idle:
                return "idle"

    def finish(self) -> int:
        """Read the rest of its output, and end what is still there; how many they were."""
        if self._has_exited():
            self._pipes.close_input()
            self._drain()
        ended = self._end(self._grace)
        self._drain()
        return ended

    def _end(self, grace: float) -> int:
        ended = end(self._mark, self._leader, grace, self._read_for)
        self._finished = True
        return ended

    def _until_next(self, deadline: float | None, idle: float | None) -> float:
        """Seconds to the next moment at which something has to be decided."""
        now = time.monotonic()
        seconds = TICK if self._handle is not None else _ASK
        if deadline is not None:
            seconds = min(seconds, deadline - now)
        if idle is not None:
            seconds = min(seconds, self._pipes.last + idle - now)
        return seconds

    def _turn(self, seconds: float) -> None:
        """Read once, for so long at most; tick if it is time."""
        self._pipes.pump(min(seconds, self._tick - time.monotonic()))
        if time.monotonic() >= self._tick:
            self._tick = time.monotonic() + TICK
            self._on_tick()
            self._stopping = self._stopping or self._stop()

    def _read_for(self, seconds: float) -> None:
        """Let the time pass, reading."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            self._turn(rest)
            self._has_exited()

    def _drain(self) -> None:
        """Read what is on its way; do not wait for a process that holds the pipes open and writes nothing."""
        began = time.monotonic()
        while self._pipes.open:
            now = time.monotonic()
            rest = min(max(self._pipes.last, began) + _QUIET, began + _DRAIN) - now
            if rest <= 0:
                return
            self._turn(rest)

    def _has_exited(self) -> bool:
        """Whether it has; it is not reaped yet, so that its group's number cannot be given to another."""
        if not self._exited:
            self._exited = _has_exited(self._process)
            if self._exited:
                self._let_go()
        return self._exited

    def _let_go(self) -> None:
        """Of the handle: it stays readable from now on, and would wake us all the time."""
        if self._handle is not None:
            self._pipes.forget(self._handle)
            os.close(self._handle)
            self._handle = None


@dataclass(frozen=True)
class FailedLaunch:
    """Why a program could not be started, and what a shell would end with."""

    code: int
    problem: str


def _start(
    command: Sequence[str], cwd: str, environment: Mapping[str, str], entrance: Entrance | None
) -> subprocess.Popen[bytes] | FailedLaunch:
    pipe = subprocess.PIPE
    failed = launch_problem(command, cwd, environment.get("PATH"))
    if failed is not None:
        return failed
    words, more = entrance.prepare(cwd) if entrance else ([], {})
    try:
        return subprocess.Popen(
            [*words, *command],
            cwd=cwd,
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
            **more,
        )
    except subprocess.SubprocessError:
        return FailedLaunch(126, "the sandbox cannot be entered (fusewire sandbox --check)")
    except ValueError as error:
        return FailedLaunch(126, f"cannot be passed to a program: {error}")
    except OSError as error:
        return FailedLaunch(126, f"{command[0]}: {error.strerror}")
    finally:
        for descriptor in more.get("pass_fds", ()):
            os.close(descriptor)


def launch_problem(command: Sequence[str], cwd: str, path: str | None) -> FailedLaunch | None:
    """Why this command cannot be started in this folder; None if nothing speaks against it."""
    if not command or not command[0]:
        return FailedLaunch(127, "no program is named")
    if not os.path.isdir(cwd):
        return FailedLaunch(126, f"no such folder: {cwd}")
    program = command[0]
    if "\0" in program:
        return None  # the system has words for it
    name = os.path.join(cwd, program) if "/" in program else program
    found = shutil.which(name, path=path)
    if found is None and name != program and os.path.lexists(name):
        return FailedLaunch(126, f"not executable: {program}")
    if found is None:
        return FailedLaunch(127, f"no such program: {program}")
    try:
        with open(found, "rb") as file:
            head = file.read(_HEAD)
    except OSError:  # it may be executable for those who cannot read it
        return None
    interpreter = head[2:].split(b"\n")[0].split()[:1] if head[:2] == b"#!" else []
    if interpreter and not os.path.exists(os.path.join(os.fsencode(cwd), interpreter[0])):
        return FailedLaunch(127, f"its interpreter is missing: {program}")
    if head[:2] != b"#!" and b"\0" not in head:
        return FailedLaunch(126, f"neither a program nor a script that names its interpreter: {program}")
    return None


def _handle(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where there is such a thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # the system collects children by itself
        return True


def _as_a_shell_shows(code: int | None) -> int | None:
    return 128 - code if code is not None and code < 0 else code


def _nothing() -> None:
    pass


def _never() -> bool:
    return False

"""Wait for a command in a child process: signals are passed on, and this process ends as the command did."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal as signal  # `signal` itself imports `enum`

#: What somebody may send to the command that they started. Those that stop a process reach both through the terminal.
_PASSED_ON = frozenset(
    (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
)
_WAITED_FOR = _PASSED_ON | {signal.SIGCHLD}

#: A signal with a code above comes from the kernel: the terminal has sent it to the command as well.
_FROM_A_PROCESS = 0


def run(become: Callable[[], object]) -> Callable[[], NoReturn]:
    """Run a command to its end; returns what ends this process in the same way."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    child = os.fork()
    if not child:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            become()
        except BaseException as error:
            os.write(2, f"fusewire: the sandbox could not be entered: {error}\n".encode())
        os._exit(126)
    while True:
        received = signal.sigwaitinfo(_WAITED_FOR)
        if received.si_signo != signal.SIGCHLD:
            if received.si_code <= _FROM_A_PROCESS:
                os.kill(child, received.si_signo)
            continue
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return lambda: _end(status)


def _end(status: int) -> NoReturn:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
        code = 128 - code
    os._exit(code)

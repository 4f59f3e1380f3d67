"""Find out which sandbox this machine can run, by trying; where there is none, why, and what would help."""

from __future__ import annotations

import os
import sys

from fusewire.guard.sandbox.namespaces import SandboxError, enter
from fusewire.guard.sandbox.plan import MountPlan
from fusewire.guard.sandbox.programs import BUBBLEWRAP, SEATBELT, words_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_ENOSPC = 28


class Support:
    """The means (`namespaces`, `bubblewrap`, `seatbelt`, or none), why not, and what would help."""

    __slots__ = ("help", "means", "reason")

    def __init__(self, means: str, reason: str = "", help: str = "") -> None:
        self.means = means
        self.reason = reason
        self.help = help

    def __bool__(self) -> bool:
        return bool(self.means)


def support() -> Support:
    """Try each means in a child process."""
    if sys.platform == "darwin":
        return Support("seatbelt") if os.access(SEATBELT, os.X_OK) else Support("", "there is no sandbox-exec")
    if not sys.platform.startswith("linux"):
        return Support("", f"{sys.platform} has no mount namespaces", "Linux or macOS")
    failure = attempt()
    if not failure:
        return Support("namespaces")
    if _bubblewrap_works():
        return Support("bubblewrap", failure)
    return Support("", failure, _help(failure))


def attempt() -> str:
    """Enter a sandbox in a child process, and look whether a folder is read-only there; returns what failed."""
    folder = os.path.dirname(os.path.realpath(__file__))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        text = "the read-only mount is writable"
        try:
            enter(MountPlan(folder, ((folder, True),), (os.path.dirname(folder),)))
            if os.statvfs(folder).f_flag & os.ST_RDONLY:
                text = ""
        except SandboxError as error:
            text = str(error)
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        text = file.read().decode()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"the attempt ended with {os.waitstatus_to_exitcode(status)}"


def _bubblewrap_works() -> bool:
    folder = os.path.dirname(os.path.realpath(__file__))
    plan = MountPlan(folder, ((folder, True),))
    child = os.fork()
    if not child:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        try:
            os.execvp(BUBBLEWRAP, [*words_before(plan, "bubblewrap"), "true"])
        except OSError:
            pass
        os._exit(127)
    return os.waitpid(child, 0)[1] == 0


def _help(failure: str) -> str:
    """What would help, for the causes that are known."""
    return next(text for holds, text in _CAUSES if holds(failure))


def _says(path: str, text: str) -> bool:
    try:
        with open(path) as file:
            return file.read().strip() == text
    except OSError:
        return False


def _is_container(failure: str) -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv")))


_CAUSES: tuple[tuple[Callable[[str], bool], str], ...] = (
    (
        lambda _: os.uname().release.endswith("-Microsoft"),
        "WSL 1 has no namespaces: convert the distribution to WSL 2 (wsl --set-version NAME 2)",
    ),
    (
        lambda _: _says("/proc/sys/user/max_user_namespaces", "0"),
        "user namespaces are switched off: sudo sysctl user.max_user_namespaces=10000",
    ),
    (
        lambda _: _says("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        "user namespaces are switched off: sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        lambda _: _says(_APPARMOR, "1"),
        "AppArmor restricts user namespaces: install bubblewrap with an AppArmor profile that allows it"
        " (/etc/apparmor.d/bwrap), or: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        _is_container,
        "the container forbids it (the default seccomp profile of Docker and Kubernetes): start it with a profile"
        " that allows unshare and mount, such as --security-opt seccomp=unconfined",
    ),
    (lambda failure: "_ctypes" in failure, "a Python that was built with libffi"),
    (lambda failure: os.strerror(_ENOSPC) in failure, "a higher limit: sysctl user.max_user_namespaces"),
    (lambda _: True, "a kernel and a security policy that allow user and mount namespaces"),
)

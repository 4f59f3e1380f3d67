"""Turn this process into a command inside the sandbox."""

import posix as os

from fusewire.guard.sandbox.namespaces import MountPlan, die_with_parent, enter, environment, read_small
from fusewire.guard.sandbox.namespaces import SandboxError as SandboxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import NoReturn
else:
    import _signal as signal  # `signal` itself imports `enum`

#: As a shell says that a program is not there, and that it cannot be run.
NOT_FOUND, NOT_RUNNABLE = 127, 126

_ENOENT, _ENOTDIR, _EACCES = 2, 20, 13

#: What Python sets where there is no locale (PEP 538).
_COERCED = (b"C.UTF-8", b"C.utf8", b"UTF-8")


def command(plan: MountPlan, argv: "Sequence[str]", *, means: str = "namespaces", required: bool = True) -> "NoReturn":
    """Become this command with the paths of a plan read-only; SandboxError if that is `required` and not possible.

    Where a placeholder has to be removed afterwards this process stays, passes signals on and ends as the command does.
    """
    if not plan.missing:
        _become(plan, argv, means, required=required)
    from fusewire.guard.sandbox.placeholders import hold, release
    from fusewire.guard.sandbox.waiting import run

    held = hold(plan.missing)
    mounts = (*plan.mounts, *((path, True) for path, _ in held))
    end = run(lambda: _become(MountPlan(plan.root, mounts, plan.pins), argv, means, waited_for=True, required=required))
    release(held)
    end()


def _become(
    plan: MountPlan, argv: "Sequence[str]", means: str, *, waited_for: bool = False, required: bool = True
) -> "NoReturn":
    if means == "namespaces":
        try:
            enter(plan)
        except Exception:
            if required:
                raise
        if waited_for:
            die_with_parent()
    elif means:
        from fusewire.guard.sandbox.programs import words_before

        argv = [*words_before(plan, means, die_with_parent=waited_for), *argv]
    execute(argv)


def execute(argv: "Sequence[str]") -> "NoReturn":
    """Become a program, or end as a shell does that cannot run it."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    variables = _given_variables()
    name = argv[0]
    folders = variables.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").decode("utf-8", "surrogateescape").split(":")
    worst = _ENOENT
    for path in [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in folders]:
        try:
            os.execve(path, [*argv], variables)
        except OSError as error:
            if error.errno not in (_ENOENT, _ENOTDIR) and (path == name or _exists(path)):
                worst = error.errno or _EACCES
        except ValueError:  # an empty name, or a null byte
            break
    text = "command not found" if worst == _ENOENT else os.strerror(worst)
    os.write(2, f"fusewire: {name}: {text}\n".encode("utf-8", "backslashreplace"))
    os._exit(NOT_FOUND if worst == _ENOENT else NOT_RUNNABLE)


def _exists(path: str) -> bool:
    """Not so in a folder that this user may not look into."""
    try:
        os.stat(path)
    except OSError:
        return False
    return True


def _given_variables() -> "dict[bytes, bytes]":
    """The environment without what Python itself has put there: a locale, where there was none."""
    variables = dict(environment())
    if variables.get(b"LC_CTYPE") in _COERCED:
        for line in (read_small("/proc/self/environ") or b"").split(b"\0"):
            if line.startswith(b"LC_CTYPE="):
                variables[b"LC_CTYPE"] = line.partition(b"=")[2]
                break
        else:
            del variables[b"LC_CTYPE"]
    return variables

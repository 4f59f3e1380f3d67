"""Turn this process into a command inside the sandbox."""

from __future__ import annotations

import os
import sys

from fusewire.guard.sandbox.namespaces import SandboxError as SandboxError
from fusewire.guard.sandbox.namespaces import enter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from fusewire.guard.sandbox.plan import Plan

#: As a shell says that a program is not there, and that it cannot be run.
NOT_FOUND, NOT_RUNNABLE = 127, 126


def command(plan: Plan, argv: Sequence[str], *, means: str = "namespaces") -> NoReturn:
    """Become this command with the paths of a plan read-only; SandboxError if that is not possible.

    Where a placeholder has to be removed afterwards this process stays, passes signals on and ends as the command does.
    """
    if not plan.missing:
        _become(plan, argv, means)
    from fusewire.guard.sandbox.placeholders import hold, release
    from fusewire.guard.sandbox.waiting import run

    held = hold(plan.missing)
    mounts = (*plan.mounts, *((path, True) for path, _ in held))
    ending = run(lambda: _become(type(plan)(plan.root, mounts, plan.pins), argv, means))
    release(held)
    ending()


def _become(plan: Plan, argv: Sequence[str], means: str) -> NoReturn:
    if means == "namespaces":
        enter(plan)
    else:
        if means == "bubblewrap":
            from fusewire.guard.sandbox.bubblewrap import arguments
        else:
            from fusewire.guard.sandbox.seatbelt import arguments
        argv = [*arguments(plan), *argv]
    execute(argv)


def execute(argv: Sequence[str]) -> NoReturn:
    """Become a program, or end as a shell does that cannot run it."""
    try:
        os.execvp(argv[0], [*argv])
    except (FileNotFoundError, NotADirectoryError):
        text, code = "command not found", NOT_FOUND
    except OSError as error:
        text, code = error.strerror or "cannot be run", NOT_RUNNABLE
    except ValueError:
        text, code = "a null byte is in the command", NOT_RUNNABLE
    sys.stderr.write(f"fusewire: {argv[0]}: {text}\n")
    sys.stderr.flush()
    os._exit(code)

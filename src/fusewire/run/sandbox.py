"""Sandbox the agents of a run: they can write neither our state nor any configuration.

Documents stay writable, because the agent's own edit tools run in there as well.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from fusewire.gate.relay import SUPERVISORS
from fusewire.guard.policy import protected_of
from fusewire.guard.sandbox import placeholders
from fusewire.guard.sandbox.namespaces import MountPlan, enter
from fusewire.guard.sandbox.plan import plan
from fusewire.guard.sandbox.support import support
from fusewire.run.hook_server import SUPERVISOR, HookServer
from fusewire.util.errors import FusewireError
from fusewire.util.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable

#: What `sandbox` may say.
AUTO, REQUIRE, OFF = "auto", "require", "off"


class NoSandbox(FusewireError):
    """A sandbox is required, and this machine has none."""


def confine(root: str, variables: dict[str, str], mode: str, tell: Callable[[str], None]) -> Confinement | None:
    """The sandbox of a run, in one line for people; None where it runs without one. NoSandbox if that must not be."""
    if mode == OFF:
        tell("Sandbox: off. The reader and the snapshot guard protected files.")
        return None
    found = support()
    problem = found.reason
    if found:
        try:
            made = Confinement(root, variables, found.means)
            tell(f"Sandbox: on ({found.means}). Configuration and Fusewire's state are read-only for the agent.")
            return made
        except OSError as error:
            problem = f"{error.filename or 'socket'}: {error.strerror}"
    if mode == REQUIRE:
        raise NoSandbox(f"a sandbox is required, and there is none here: {problem}; fusewire sandbox --check")
    tell(f"Sandbox: not available ({problem}). The reader and the snapshot guard protected files.")
    return None


class Confinement:
    """For one run, from before its first agent is started until after the last has ended."""

    def __init__(self, root: str, variables: dict[str, str], means: str) -> None:
        self.variables = {SUPERVISOR: str(os.getpid())}
        self.means = means
        self._root = root
        _make_folders_of_ours()
        missing = _plan(root).missing
        self._server = HookServer(root, {**variables, **self.variables})
        self._held = placeholders.hold(missing)

    def __enter__(self) -> Confinement:
        return self

    def __exit__(self, *about: object) -> None:
        try:
            self._server.close()
        finally:
            placeholders.release(self._held)

    def keep(self) -> None:
        """Restart the process that answers the hooks, if it has ended; called from time to time."""
        self._server.keep()

    def entrance(self) -> Entrance:
        """The sandbox for the next agent: files may have been added since the last one was started."""
        return Entrance(_plan(self._root), self.means)


class Entrance:
    """The way into a sandbox for one process."""

    def __init__(self, made: MountPlan, means: str) -> None:
        self._plan, self._means = made, means

    def prepare(self, cwd: str) -> tuple[list[str], dict[str, Any]]:
        """The words before a command, and what else `Popen` needs to start it in this folder; the descriptors that are
        passed on are the caller's to close."""
        if self._means != "namespaces":
            from fusewire.guard.sandbox.programs import words_before

            words = words_before(self._plan, self._means)
            files = [int(words[at + 1]) for at, word in enumerate(words) if word == "--file"]
            if "--chdir" in words:  # to where this process is
                words[words.index("--chdir") + 1] = cwd
            return words, {"pass_fds": files}
        import _ctypes  # noqa: F401  # loaded here: the new process should not import anything

        return [], {"preexec_fn": lambda: enter(self._plan)}


def entrance_of(root: str, means: str = "") -> Entrance:
    """The sandbox for what is started on behalf of an agent that is in one; NoSandbox if there is none any more."""
    if not means:
        found = support()
        means = found.means
        if not means:
            raise NoSandbox(f"the sandbox of the run cannot be entered again: {found.reason}")
    return Entrance(_plan(root), means)


def _plan(root: str) -> MountPlan:
    """What is read-only for an agent of this project; of missing folders, those that a run holds a place for."""
    found = plan(protected_of(root, also=tuple(_socket_folders(root))), documents=False)
    mounts = (*found.mounts, *((path, True) for path in found.missing if os.path.isdir(path)))
    return MountPlan(found.root, mounts, found.pins, found.missing, found.absent, found.warnings)


def _make_folders_of_ours() -> None:
    """The user's folders of ours: what does not exist cannot be read-only, and an agent could make it."""
    for variable, usual in (("XDG_CONFIG_HOME", "~/.config"), ("XDG_STATE_HOME", "~/.local/state")):
        folder = os.environ.get(variable) or os.path.expanduser(usual)
        with contextlib.suppress(OSError):
            if os.path.isabs(folder):
                os.makedirs(os.path.join(folder, "fusewire"), 0o700, exist_ok=True)


def _socket_folders(root: str) -> list[str]:
    """Where the supervisors of this project listen: an agent must not listen in their place."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(os.path.join(root, SUPERVISORS)):
            path = os.fsdecode(read_file(os.path.join(root, SUPERVISORS, name)))
            found.append(os.path.join(os.path.dirname(path), ""))
    return found

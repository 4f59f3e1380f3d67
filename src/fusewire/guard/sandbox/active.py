"""Tells whether ring one holds for what Claude Code's shell starts: from a hook's environment and what is on record.

Whether this machine can make a sandbox is found out by trying, which takes longer than a command: so the answer is kept
until the machine is started again, outside of what a sandboxed command can write.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variable by which Claude Code finds the wrapper, and the one that keeps a person's own.
PREFIX, OWN_PREFIX = "CLAUDE_CODE_SHELL_PREFIX", "FUSEWIRE_SHELL_PREFIX"

#: The wrapper that `install` writes beside the settings: for sessions without a person, or for all.
UNATTENDED, ALWAYS = "fusewire-shell", "fusewire-shell-always"

_NONE = "none"


def active(environment: Mapping[str, str]) -> bool:
    """Whether the shell commands of this session run with protected files read-only; False if that is not known."""
    wrapper = environment.get(PREFIX, "")
    name = os.path.basename(wrapper)
    if name != ALWAYS and (name != UNATTENDED or environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "1"):
        return False
    return os.access(wrapper, os.X_OK) and known_means() not in ("", _NONE)


def means_here() -> str:
    """The means by which this machine makes a sandbox; empty if there are none. Tried once after each start of it."""
    known = known_means()
    if not known:
        from fusewire.guard.sandbox.support import support

        known = support().means
        remember(known)
    return "" if known == _NONE else known


def known_means() -> str:
    """What was found out since the machine was started: a means, or `none`; empty if nothing was."""
    machine, _, means = _read(_record()).partition(" ")
    return means if machine and machine == _machine() else ""


def remember(means: str) -> None:
    """Keep what was found out; best effort."""
    from fusewire.util.files import replace_file

    try:
        path = _record()
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        replace_file(path, f"{_machine()} {means or _NONE}".encode())
    except OSError:
        pass


def _record() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "fusewire", "sandbox")


def _machine() -> str:
    """This machine since its start; a container on it is another one."""
    try:
        return f"{_read('/proc/sys/kernel/random/boot_id').strip()}/{os.readlink('/proc/self/ns/pid')}/{os.geteuid()}"
    except OSError:
        return f"unknown/{os.geteuid()}"


def _read(path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(file, 256).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)

"""Who is asking: acts that disarm a breaker are for a person, and an agent is not one."""

from __future__ import annotations

import os

from fusewire.errors import AgentRefused

#: What coding agents put into the environment of the commands that they run.
AGENT_VARIABLES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "COPILOT_CLI",
    "FUSEWIRE_AGENT",
    "GEMINI_CLI",
)


#: What `fusewire run` puts into the environment of its agent: the project whose loop it is in.
PROJECT = "FUSEWIRE_PROJECT"


def inside_loop(root: str) -> bool:
    """Whether this was started by an agent in this project's loop; also if it has cleaned its environment since."""
    from fusewire.runner.proctable import ancestors, environment

    if os.environ.get(PROJECT) == os.path.realpath(root):
        return True
    mark = f"{PROJECT}={os.path.realpath(root)}".encode()
    return any(mark in environment(pid).split(b"\0") for pid in ancestors())


def require_outside_loop(root: str) -> None:
    """Refuse an agent in this project's loop: it neither begins nor ends iterations of it."""
    if inside_loop(root):
        raise AgentRefused("this runs inside an iteration of this project's own loop")


def require_person(act: str, root: str | None = None) -> str:
    """Refuse from inside an agent; the name of the person otherwise."""
    inside = next((name for name in AGENT_VARIABLES if os.environ.get(name)), None)
    if not inside and root is not None and inside_loop(root):
        inside = PROJECT
    if inside:
        raise AgentRefused(f"{act} is for a person at a terminal, and this runs inside an agent ({inside} is set)")
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "person"

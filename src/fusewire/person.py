"""Who is asking: acts that disarm a breaker are for a person, and an agent is not one."""

from __future__ import annotations

import os

from fusewire.detectors.calls import AGENT_VARIABLES as AGENT_VARIABLES
from fusewire.errors import AgentRefused

#: What `fusewire run` puts into the environment of its agent: the project whose loop it is in.
PROJECT = "FUSEWIRE_PROJECT"


def inside_loop(root: str) -> bool:
    """Whether this was started by an agent in this project's loop; also if it has cleaned its environment since."""
    from fusewire.runner.proctable import ancestors

    if os.environ.get(PROJECT) == os.path.realpath(root):
        return True
    return loop_among(ancestors(), root)


def loop_among(pids: list[int], root: str) -> bool:
    """Whether one of these processes was started by an agent in this project's loop."""
    from fusewire.runner.proctable import environment

    mark = os.fsencode(f"{PROJECT}={os.path.realpath(root)}")
    return any(mark in environment(pid).split(b"\0") for pid in pids)


def require_outside_loop(root: str) -> None:
    """Refuse an agent in this project's loop: it neither begins nor ends iterations of it."""
    if inside_loop(root):
        raise AgentRefused("this runs inside an iteration of this project's own loop")


def is_agent(words: list[str]) -> bool:
    """Whether a command line is that of a coding agent."""
    from fusewire.detectors.calls import AGENT_PACKAGES, AGENT_PROGRAMS, SCRIPT_RUNTIMES

    for at, word in enumerate(words):
        name = word.rpartition("/")[2].partition(".")[0]
        named = name in AGENT_PROGRAMS or (at == 0 and name.startswith("codex-"))
        if named or any(place in word for place in AGENT_PACKAGES):
            return True
        if at == 0 and name not in SCRIPT_RUNTIMES:
            return False
        if at and word[:1] != "-":
            return False  # the script that is run is another one
    return False


def _inside_agent() -> str:
    """Why this runs inside an agent; empty if it does not.

    Whoever has started this may have cleaned the environment since; but what every process above was started with is
    still on record, and an agent's shell is one of them. If it has given way to another program (`exec env -i`),
    its record is gone; but the agent itself is still above, and known by its name. A person whose terminal was opened
    from inside an agent is taken for it: one that was opened elsewhere will do.
    """
    inside = next((name for name in AGENT_VARIABLES if os.environ.get(name)), None)
    if inside:
        return f"{inside} is set"
    from fusewire.runner.proctable import ancestors

    return agent_among(ancestors())


def agent_among(pids: list[int]) -> str:
    """Which of these processes, one above the other, is an agent or was started by one; empty if none is."""
    from fusewire.runner.proctable import environment, started_as

    for pid in pids:
        if is_agent(started_as(pid)):
            return f"the process {pid} above it is an agent"
        for entry in environment(pid).split(b"\0"):
            name, _, value = entry.partition(b"=")
            if value and name.decode("ascii", "replace") in AGENT_VARIABLES:
                return f"{name.decode()} is set for the process {pid} above it"
    return ""


def require_person(act: str, root: str | None = None) -> str:
    """Refuse from inside an agent; the name of the person otherwise."""
    inside = _inside_agent()
    if not inside and root is not None and inside_loop(root):
        inside = f"{PROJECT} is set"
    if inside:
        raise AgentRefused(f"{act} is for a person at a terminal, and this runs inside an agent ({inside})")
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "person"

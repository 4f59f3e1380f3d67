"""Tell a person from an agent: acts that disarm a breaker are for a person."""

from __future__ import annotations

import os
import sys

from fusewire.guard.known_agents import AGENT_VARIABLES as AGENT_VARIABLES
from fusewire.util.environment import SET_ASIDE, altering
from fusewire.util.errors import AgentRefused

#: What `fusewire run` puts into the environment of its agent: the project whose loop it is in.
PROJECT = "FUSEWIRE_PROJECT"

#: What a client has in its environment that an agent has started; programs for people set the one that is left out.
_IN_AGENT = (*(name for name in AGENT_VARIABLES if name != "CLAUDE_CODE_ENTRYPOINT"), "FUSEWIRE_DEPTH")


def inside_loop(root: str) -> bool:
    """Whether this was started by an agent in this project's loop; also if it has cleaned its environment since."""
    from fusewire.util.processes import ancestors

    if os.environ.get(PROJECT) == os.path.realpath(root):
        return True
    return loop_among(ancestors(), root)


def loop_among(pids: list[int], root: str) -> bool:
    """Whether one of these processes was started by an agent in this project's loop."""
    from fusewire.util.processes import environment

    mark = os.fsencode(f"{PROJECT}={os.path.realpath(root)}")
    return any(mark in environment(pid).split(b"\0") for pid in pids)


def require_outside_loop(root: str) -> None:
    """Refuse an agent in this project's loop: it neither begins nor ends iterations of it."""
    if inside_loop(root):
        raise AgentRefused("this runs inside an iteration of this project's own loop")


def is_agent(words: list[str]) -> bool:
    """Whether a command line is that of a coding agent."""
    from fusewire.guard.known_agents import AGENTS_BY_NAME, SCRIPT_RUNTIMES, agent_of_package

    for at, word in enumerate(words):
        name = word.rpartition("/")[2].partition(".")[0]
        plain, platform, _ = name.partition("-")
        native = at == 0 and bool(platform) and plain in AGENTS_BY_NAME and AGENTS_BY_NAME[plain].native_binary
        named = name in AGENTS_BY_NAME or native
        if named or agent_of_package(word):
            return True
        if at == 0 and name not in SCRIPT_RUNTIMES:
            return False
        if at and word[:1] != "-":
            return False  # the script that is run is another one
    return False


def _inside_agent() -> str:
    """Why this runs inside an agent; empty if it does not.

    The command line may have cleaned the environment since; but what every process above was started with is still on
    record, and an agent's shell is one of them. If it has given way to another program (`exec env -i`),
    its record is gone; but the agent itself is still above, and known by its name. A person whose terminal was opened
    from inside an agent is taken for it: one that was opened elsewhere will do.
    """
    inside = next((name for name in AGENT_VARIABLES if os.environ.get(name)), None)
    if inside:
        return f"{inside} is set"
    from fusewire.util.processes import ancestors

    return agent_among(ancestors())


def agent_among(pids: list[int]) -> str:
    """Which of these processes, one above the other, is an agent or was started by one; empty if none is."""
    from fusewire.util.processes import environment, started_as

    for pid in pids:
        if is_agent(started_as(pid)):
            return f"the process {pid} above it is an agent"
        name = _mark_in(environment(pid))
        if name:
            return f"{name} is set for the process {pid} above it"
    return ""


def _mark_in(variables: bytes, marks: tuple[str, ...] = AGENT_VARIABLES) -> str:
    """The variable that says an agent has started a process with this environment; empty if there is none."""
    entries = (entry.partition(b"=") for entry in variables.split(b"\0"))
    names = (name.decode("ascii", "replace") for name, _, value in entries if value)
    return next((name for name in names if name in marks), "")


def is_interactive(name: str) -> bool:
    """Whether the client that has started this hook works at a terminal, with no option that says otherwise."""
    from fusewire.guard.known_agents import AGENTS_BY_NAME
    from fusewire.util.processes import on_terminal, started_as

    client, _ = _client()
    if not client or not on_terminal(client[0]):
        return False
    words, headless = started_as(client[0])[1:], AGENTS_BY_NAME[name].headless
    joined = any(word[:1] == "-" and word[1:2] != "-" and "p" in word for word in words)
    return not joined and headless.isdisjoint(word.partition("=")[0] for word in words)


def client_in_agent() -> bool:
    """Whether an agent has started the client that has started this hook, also if it has cleaned its environment."""
    from fusewire.util.processes import environment

    client, above = _client()
    return bool(client) and bool(_mark_in(environment(client[-1]), _IN_AGENT) or agent_among(above))


def _client() -> tuple[list[int], list[int]]:
    """The processes of the client that has started this hook, which may have started itself once more, and those above;
    the nearest first."""
    from fusewire.agents import client_process
    from fusewire.util.processes import ancestors, started_as

    pids = ancestors(client_process())
    agents = [is_agent(started_as(pid)) for pid in pids]
    first = agents.index(True) if True in agents else len(pids)
    last = next((at for at in range(first, len(pids)) if not agents[at]), len(pids))
    return pids[first:last], pids[last:]


def start_clean(arguments: list[str]) -> None:
    """Start Python again with these arguments, without what an agent has set to change this program; else return.

    A library loaded before all others can tell another time, and a module found before ours can do anything. Outside an
    agent that is a person's choice, and so is what the outermost agent itself was started with (conda, CUDA).
    """
    given = _given_to_agent()
    if given is None:
        return
    changed = {name for name in altering() if given.get(name) != os.environ[name]}
    if not changed:
        return
    kept = {f"{SET_ASIDE}{name}" if name in changed else name: value for name, value in os.environ.items()}
    os.execve(sys.executable, [sys.executable, *arguments], kept)


def _given_to_agent() -> dict[str, str] | None:
    """What the outermost agent above was started with; empty if that is not known, None outside an agent."""
    from fusewire.util.processes import ancestors, environment, started_as

    for pid in reversed(ancestors()):
        variables = environment(pid)
        if is_agent(started_as(pid)) or _mark_in(variables):
            entries = (entry.partition("=") for entry in os.fsdecode(variables).split("\0"))
            return {name: value for name, _, value in entries}
    return {} if any(os.environ.get(name) for name in AGENT_VARIABLES) else None


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

"""Limit how deep agents start agents; the depth is passed on in the environment.

FUSEWIRE_DEPTH says how many starts lie above a process. `fusewire run` gives its agent one more than it has itself; an
agent whose own start nobody supervised is told by its hook to give the commands that it runs one more. Each of them
costs what the first one cost, and nobody sees them all: so the chain ends at a limit, however slowly it grows.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: The variable that says it.
DEPTH = "FUSEWIRE_DEPTH"

#: What it says of an event that came by HTTP: whoever can read a file may have sent it, and no call is too deep.
BY_HTTP = "0"

#: In which an agent's hook may write what the agent's commands get in their environment.
_ENVIRONMENT_FILE = "CLAUDE_ENV_FILE"

#: More digits than any depth has, and more bytes than anybody writes into that file.
_DIGITS = 6
_LARGEST = 256 * 1024

RULE = "tool.hook_recursion"

NEXT = ("do the work yourself, or end here and report to whoever started you",)

BY_A_PERSON = "a person can allow more: hook_recursion.max_depth under [tool] in fusewire.toml"


def depth(environment: Mapping[str, str]) -> int:
    """How many starts lie above a process with this environment; what is no number is none."""
    return _number(environment.get(DEPTH, ""))


def true_depth(environment: Mapping[str, str]) -> int:
    """The same also if somebody on the way here has cleaned the environment; it costs a look at every ancestor."""
    from fusewire.util.processes import ancestors
    from fusewire.util.processes import environment as started_with

    mark = f"{DEPTH}=".encode()
    found = [depth(environment)]
    for pid in ancestors():
        for entry in started_with(pid).split(b"\0"):
            if entry.startswith(mark):
                found.append(_number(entry[len(mark) :].decode("ascii", "replace")))
    return max(found)


def too_deep(level: int, settings: Mapping[str, Any]) -> str:
    """Why an agent of this depth may not work, in the seed's words; empty if it may."""
    limit = settings["hook_recursion.max_depth"]
    if level <= limit or not settings["hook_recursion.enabled"]:
        return ""
    return f"Circuit breaker tripped: agents that start agents are {level} deep here (limit {limit})"


def refusal(environment: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """What an agent that is too deep is told; empty if it is not. Waiting changes nothing, so there is no cooldown."""
    reason = too_deep(depth(environment), settings)
    if not reason:
        return ""
    person = f"{BY_A_PERSON[:1].upper()}{BY_A_PERSON[1:]}"
    return f"BLOCKED {RULE}: {reason}.\nNext: {'; '.join(NEXT)}.\n{person}"


def pass_on(environment: Mapping[str, str]) -> None:
    """At the start of a session: what this agent's commands start is one deeper than the agent.

    The file is written once, also if a session starts again and again (it is resumed, or its memory is compacted).
    Without it an agent works as well as with it, so that whatever is wrong with it is nobody's concern.
    """
    path = environment.get(_ENVIRONMENT_FILE, "")
    if not os.path.isabs(path):
        return
    line = f"export {DEPTH}={depth(environment) + 1}"
    # Not through a link, which somebody may have put there, and without waiting for the other end of a pipe.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o600)
    except (OSError, ValueError):
        return
    try:
        _append(handle, line)
    except OSError:
        pass
    finally:
        os.close(handle)


def _append(handle: int, line: str) -> None:
    import stat

    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LARGEST:
        return
    text = os.read(handle, _LARGEST).decode("utf-8", "replace")
    ours = [one for one in text.splitlines() if one.startswith(f"export {DEPTH}=")]
    if ours[-1:] != [line]:
        broken = "\n" if text and not text.endswith("\n") else ""
        os.write(handle, f"{broken}{line}\n".encode())


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else 0

"""Inside a supervised sandbox: hand events and commands to the supervisor of the run, which stands outside.

There the state of the project is read-only. A file in `.fusewire/supervisors/` names each supervisor of the project by
its process id, and has the path of its socket in it. Both lie in folders that nothing inside can write, and no
variable decides who is asked: an agent that clears its environment, or listens itself, changes nothing.

The supervisor sends a byte as soon as it has found who asks. A request is two lengths of 4 bytes, a JSON object and the
body; an answer is the exit code in one byte, two lengths, standard output and standard error. One that ends early is
none.
"""

from __future__ import annotations

import os

from fusewire.guard.known_agents import VARIABLE_PREFIXES
from fusewire.util.fast_json import dumps
from fusewire.util.files import STATE_FOLDER, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

#: Where supervisors are named.
SUPERVISORS = os.path.join(STATE_FOLDER, "supervisors")

#: Beginnings of the names of variables in which an agent's program describes a session to its hooks.
SPOKEN = (*VARIABLE_PREFIXES, "FUSEWIRE_DEPTH", "FUSEWIRE_RUN")

#: Who gets this may ask.
WELCOME = b"+"

#: Seconds until it is there.
_WELCOMED = 5.0

#: Bytes in front of a request, and of an answer.
LENGTHS = 8
ANSWER_HEAD = 1 + LENGTHS

#: Commands that an agent is told to use, or that only look; each is as safe outside as inside. `attempt run` starts the
#: test command in a sandbox of its own; what a person alone may do is refused there as it is here.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "status": (),
    "check": (),
    "record": (),
    "history": (),
    "enforce": (),
    "spend": (),
    "attempt": ("start", "run", "record", "status", "report", "arch-stop", "prior", "finish"),
    "phase": ("begin", "end", "status"),
    "scope": ("check", "justify", "show"),
    "loop": ("lessons",),
}


class NoSupervisor(Exception):
    """No supervisor of this project answers."""


def is_sealed(root: str) -> bool:
    """Whether the state of the project is read-only here, and a supervisor outside keeps it."""
    return not os.access(os.path.join(root, STATE_FOLDER), os.W_OK) and os.path.isdir(os.path.join(root, SUPERVISORS))


def relay_hook(root: str, agent: str, raw: bytes, environment: Mapping[str, str], wait: float) -> tuple[str, str, int]:
    """What a supervisor answers to one event; NoSupervisor if none does so within `wait` seconds."""
    spoken = {name: value for name, value in environment.items() if name.startswith(SPOKEN)}
    stdout, stderr, code = _ask(root, ["hook", agent], raw, spoken, wait)
    if environment.get("CLAUDE_ENV_FILE"):  # a path that the agent chooses: nothing outside writes there
        from fusewire.breakers.session.nesting import pass_on

        pass_on(environment)
    return stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"), code


def relay_command(words: Sequence[str]) -> int | None:
    """The exit code of a command line that a supervisor has carried out; None if it is to be carried out here."""
    if not is_relayed(words):
        return None
    from fusewire.config.rules import find_project

    try:
        root = _project_of(words) or find_project(os.getcwd())
        if not is_sealed(root):
            return None
        return _ask(root, list(words), b"", dict(os.environ), None, (0, 1, 2))[2]
    except (OSError, NoSupervisor):
        return None  # what only looks works all the same; whatever writes says that it cannot


def is_relayed(words: Sequence[str]) -> bool:
    """Whether a command line may be carried out by a supervisor."""
    bare = list(words)
    if bare[:1] == ["--project"]:
        bare = bare[2:]
    elif bare and bare[0].startswith("--project="):
        bare = bare[1:]
    allowed = _COMMANDS.get(bare[0]) if bare else None
    return allowed is not None and (not allowed or bare[1:2] == [] or bare[1] in allowed)


def _project_of(words: Sequence[str]) -> str:
    for at, word in enumerate(words):
        if word == "--":
            break
        if word == "--project" and at + 1 < len(words):
            return os.path.abspath(words[at + 1])
        if word.startswith("--project="):
            return os.path.abspath(word.partition("=")[2])
    return ""


def _ask(
    root: str,
    words: list[str],
    body: bytes,
    environment: dict[str, str],
    wait: float | None,
    descriptors: tuple[int, ...] = (),
) -> tuple[bytes, bytes, int]:
    """The first answer of a supervisor of this project: one whose run this is not closes without a word."""
    try:
        here = os.getcwd()
    except FileNotFoundError:
        here = "/"
    head = dumps({"words": words, "cwd": here, "environment": environment}).encode()
    request = b"".join((len(head).to_bytes(4, "big"), len(body).to_bytes(4, "big"), head, body))
    problem = "there is none"
    folder = os.path.join(root, SUPERVISORS)
    for name in sorted(filter(str.isdecimal, os.listdir(folder))):
        try:
            return _exchange(os.fsdecode(read_file(os.path.join(folder, name))), int(name), request, wait, descriptors)
        except OSError as error:
            problem = str(error.strerror or error)
    raise NoSupervisor(problem)


def _exchange(
    path: str, pid: int, request: bytes, wait: float | None, descriptors: tuple[int, ...]
) -> tuple[bytes, bytes, int]:
    import _socket  # the public module takes as long to load as all of this

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_WELCOMED if wait is None else wait)
        connection.connect(path)
        listener, user = peer(connection)
        # 0: it is outside of the process namespace that we are in
        if user != os.geteuid() or listener not in (pid, 0):
            raise OSError(1, f"process {listener} listens in place of the supervisor {pid}")
        receive(connection, len(WELCOME))
        connection.settimeout(wait)
        if descriptors:
            rights = b"".join(number.to_bytes(4, "little") for number in descriptors)
            request = request[connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)]) :]
        connection.sendall(request)
        head = receive(connection, ANSWER_HEAD)
        out, err = (int.from_bytes(head[at : at + 4], "big") for at in (1, 5))
        return receive(connection, out), receive(connection, err), head[0]
    finally:
        connection.close()


def receive(connection: Any, size: int) -> bytes:
    """So many bytes; OSError if the other end closes before."""
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise OSError(104, "the connection was closed without an answer")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def peer(connection: Any) -> tuple[int, int]:
    """Process and user at the other end, as the kernel says: of a listener, who listened first."""
    import _socket
    from sys import byteorder

    if not hasattr(_socket, "SO_PEERCRED"):  # macOS: LOCAL_PEERPID, and LOCAL_PEERCRED with a version in front
        found = connection.getsockopt(0, 2, 4) + connection.getsockopt(0, 1, 76)[4:8]
    else:
        found = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(found[:4], byteorder), int.from_bytes(found[4:8], byteorder)

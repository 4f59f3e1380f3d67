"""Answer the hooks of one run from outside of its sandbox: the supervisor's end of `gate.relay`.

The supervisor listens, so that the kernel names it as the one who does, and a second process forks: each fork accepts
one request, and is to the hook what the hook's own process is without a sandbox, with the same code, deadline and
failure policy. If that process is killed, the supervisor starts another, and what waits in the queue is answered then.
It ends when the supervisor does, whatever kills it, because a pipe closes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from typing import Any, NoReturn

from fusewire import agents
from fusewire.breakers.session import opening
from fusewire.breakers.session.nesting import DEPTH, depth
from fusewire.config.rules import load_rules
from fusewire.gate import process as gate
from fusewire.gate import relay
from fusewire.util.environment import SET_ASIDE
from fusewire.util.fast_json import loads
from fusewire.util.files import make_folder, read_file, replace_file
from fusewire.util.processes import ancestors, environment, look, started_as
from fusewire.util.stdio import INPUT_LIMIT

#: The variable by which a process of a run is known, also where its parents have ended.
SUPERVISOR = "FUSEWIRE_SUPERVISOR"

#: Set for a command that is carried out for an agent: what it starts belongs into the agent's sandbox.
RELAYED = "FUSEWIRE_RELAYED"

#: Requests that are answered at the same time, while the others wait to be accepted; how many may wait; and processes
#: that wait for the next ones.
_AT_ONCE, _QUEUE, _AT_HAND = 16, 256, 2

#: Bytes of a path that a socket can have, and of what stands in front of an event.
_PATH, _HEAD = 100, 4 << 20

#: Seconds for a request to arrive, and after the run for what is still being answered.
_ARRIVING, _ENDING = 5.0, 5.0

#: Seconds between two starts of a process that ends again and again.
_AGAIN = 1.0

#: Loaded once, for all processes that answer: what calls need that touch a rule.
_LOADED = (
    *("agents.claude.hooks", "engine.breaker", "breakers.constraint.lifecycle", "gate.pipeline", "guard.tampering"),
    *("gate.context", "guard.around_calls"),
    *("guard.check", "guard.policy", "guard.tools", "guard.integrity_check", "core.messages", "breakers.session.late"),
    *("breakers.session.tool_calls", "stores.recovery", "stores.sqlite", "gate.in_progress"),
)

#: Names of the scripts that may ask.
_ASKING = ("hook.py", "fusewire", "__main__.py")

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from fusewire.run.hook_server import main; main()"
_COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from fusewire.__main__ import main; main()"


class HookServer:
    """One per run, from before its first agent is started until after the last has ended."""

    def __init__(self, root: str, variables: dict[str, str]) -> None:
        self._environment = {**os.environ, **variables}
        self.folder = tempfile.mkdtemp(prefix="fusewire-", dir=_runtime_folder())
        path = os.path.join(self.folder, "socket")
        self._root, self._file = root, os.path.join(root, relay.SUPERVISORS, str(os.getpid()))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        try:
            self._listener.bind(path)
            self._listener.listen(_QUEUE)
            self._register(path)
            self.keep()
        except BaseException:
            self.close()
            raise

    def _register(self, path: str) -> None:
        for last in (False, False, True):
            try:
                _remove_stale(make_folder(self._root, relay.SUPERVISORS))
                replace_file(self._file, os.fsencode(path))
                return
            except FileNotFoundError:  # another run has just ended, and removed the folder
                if last:
                    raise

    def keep(self) -> None:
        """Start the process that answers, if it does not run (any more)."""
        if self._process is not None and (self._process.poll() is None or time.monotonic() < self._started + _AGAIN):
            return
        self._started = time.monotonic()
        number = self._listener.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM, _source(), str(number), str(os.getpid()), self._root, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=self._environment,
            pass_fds=(number,),
            start_new_session=True,
        )

    def close(self) -> None:
        """Finish the requests that are being answered, and accept no more."""
        self._listener.close()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                self._process.wait(_ENDING + 1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        _remove(self._file, self.folder)


def _remove(file: str, folder: str) -> None:
    """What a supervisor is found by."""
    with contextlib.suppress(OSError):
        os.unlink(file)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(file))  # unless other runs have theirs there
    shutil.rmtree(folder, ignore_errors=True)


def _source() -> str:
    """The folder that has the package."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _runtime_folder() -> str:
    """Where sockets belong; a path of this kind must be short."""
    wanted = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    usable = (folder for folder in wanted if os.path.isabs(folder) and os.access(folder, os.W_OK | os.X_OK))
    return next((folder for folder in usable if len(os.fsencode(folder)) < _PATH - 30), "/tmp")


def _remove_stale(folder: str) -> None:
    """What supervisors that were killed have left."""
    for name in filter(str.isdecimal, os.listdir(folder)):
        with contextlib.suppress(OSError):
            if look(int(name)) is None:
                place = os.path.dirname(os.fsdecode(read_file(os.path.join(folder, name))))
                os.unlink(os.path.join(folder, name))
                if os.path.basename(place).startswith("fusewire-"):
                    shutil.rmtree(place, ignore_errors=True)


# -- the process that answers ---------------------------------------------------------------------------------


def main() -> None:
    """Have processes at hand for what comes, each for one request, until the supervisor has gone."""
    for name in _LOADED:
        import_module(f"fusewire.{name}")
    gc.disable()
    gc.freeze()  # a collection in a fork would copy all pages that it shares with this process
    for ending in _ENDING_SIGNALS:
        signal.signal(ending, signal.SIG_IGN)  # those who end the supervisor mean the supervisor
    number, supervisor, (root, folder) = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    listener = socket.socket(fileno=number)
    listener.setblocking(False)  # for all who wait for it one is the first
    reports, taken = os.pipe()
    children: set[int] = set()
    busy: set[int] = set()
    while True:
        children = {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0] == 0}
        busy &= children
        while len(children - busy) < _AT_HAND and len(children) < _AT_ONCE:
            children.add(os.fork() or _serve(listener, taken, supervisor, root))
        is_full = len(children) == _AT_ONCE
        ready, _, _ = select.select([0, reports], [], [], 0.02 if is_full else 1.0)
        if 0 in ready:
            break
        if ready:
            pids = os.read(reports, 4 * _AT_ONCE)
            busy |= {int.from_bytes(pids[at : at + 4], "big") for at in range(0, len(pids), 4)}
    listener.close()
    _remove(os.path.join(root, relay.SUPERVISORS, str(supervisor)), folder)  # it may have been killed
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _ENDING)
    for pid in children:
        os.waitpid(pid, 0)


def _serve(listener: socket.socket, taken: int, supervisor: int, root: str) -> NoReturn:
    """Wait for one request and answer it. Who may not ask, and what makes no sense, gets no answer."""
    try:
        _warm_up(root)
        while True:
            if 0 in select.select([0, listener.fileno()], [], [])[0]:
                os._exit(0)
            with contextlib.suppress(BlockingIOError):
                connection, _ = listener.accept()
                break
        opening.count_from_now()
        os.write(taken, os.getpid().to_bytes(4, "big"))
        for number in _ENDING_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        listener.close()
        pid, user = relay.peer(connection)
        if user == os.geteuid() and _is_of_run(pid, supervisor):
            signal.setitimer(signal.ITIMER_REAL, _ARRIVING)  # a slower one gets no answer
            connection.sendall(relay.WELCOME)
            words, body, descriptors = _receive(connection)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if words[:1] == ["hook"] and words[1] in agents.AGENTS:
                _reply(connection, *_hook(words[1], body, pid))
            elif relay.is_relayed(words) and len(descriptors) == 3:
                _reply(connection, "", "", _carry_out(words, descriptors, connection))
    finally:
        os._exit(0)


def _warm_up(root: str) -> None:
    """Have open and in memory what most events need, before the first one comes."""
    opening.kept = {}
    with contextlib.suppress(Exception):
        opening.quick_store(root, load_rules(root)).notices()


def _is_of_run(pid: int, supervisor: int) -> bool:
    """Whether a process belongs to the run, and was started as our hook or command. That keeps mistakes out; a
    process that takes the trouble to look like it can do what the hook can: report."""
    words = started_as(pid)[:6]
    if not any(word.rpartition("/")[2] in _ASKING or "fusewire.__main__" in word for word in words):
        return False
    return f"{SUPERVISOR}={supervisor}".encode() in environment(pid).split(b"\0") or supervisor in ancestors(pid)


def _receive(connection: socket.socket) -> tuple[list[str], bytes, list[int]]:
    """The words, the body and the descriptors of a request; this process then stands where the caller does."""
    first, descriptors, _, _ = socket.recv_fds(connection, relay.LENGTHS, 3)
    first += relay.receive(connection, relay.LENGTHS - len(first))
    head, body = int.from_bytes(first[:4], "big"), int.from_bytes(first[4:], "big")
    if head > _HEAD or body > INPUT_LIMIT + 1:
        raise ValueError("too large")
    request: Any = loads(relay.receive(connection, head).decode())
    raw = relay.receive(connection, body)
    _stand_in(request["cwd"], request["environment"])
    return [str(word) for word in request["words"]], raw, descriptors


def _stand_in(cwd: str, variables: dict[str, str]) -> None:
    """Take over the caller's folder and what its agent says of the session. Its other variables are for what is started
    on its behalf: here they could load other code, or name other settings."""
    deepest = max(depth(os.environ), depth(variables))
    for name, value in variables.items():
        spoken = name.startswith(relay.SPOKEN) and name != "CLAUDE_ENV_FILE"
        os.environ[name if spoken else f"{SET_ASIDE}{name}"] = value
    os.environ[DEPTH] = str(deepest)
    with contextlib.suppress(OSError):
        os.chdir(cwd)


def _hook(name: str, raw: bytes, pid: int) -> tuple[str, str, int]:
    process = look(pid)
    agents.answers_for = process.parent if process else 1
    return gate.answer_in_time(agents.agent_named(name), lambda: raw, os.environ)


def _carry_out(words: list[str], descriptors: list[int], connection: socket.socket) -> int:
    """The exit code of a command that writes to the caller's own terminal or pipes; it ends when the caller does."""
    streams: Any = dict(zip(("stdin", "stdout", "stderr"), descriptors, strict=True))
    command = [sys.executable, "-I", "-c", _COMMAND, _source(), *words]
    with subprocess.Popen(command, env={**os.environ, RELAYED: "1"}, start_new_session=True, **streams) as started:
        while started.poll() is None:
            if select.select([connection], [], [], 0.02)[0]:
                os.killpg(started.pid, signal.SIGTERM)
                break
    return started.returncode if started.returncode >= 0 else 128 - started.returncode


def _reply(connection: socket.socket, stdout: str, stderr: str, code: int) -> None:
    out, err = (text.encode("utf-8", "replace") for text in (stdout, stderr))
    head = bytes([code]) + b"".join(len(text).to_bytes(4, "big") for text in (out, err))
    connection.sendall(head + out + err)

"""`fusewire` in a process of its own, without starting an interpreter each time.

Most of what a command costs in a test is Python reading the same modules again. So one process for each worker of
pytest reads them once and forks for every call: the child has its own memory, folder, environment, streams and exit
code, and runs `__main__.py` from its first line to its exit. What only a new interpreter can show
(its options, what a module imports, an encoding) is started as one: `test_cli_contract.py` does so for every command.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import re
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

#: An interpreter looks at these when it starts, and never again.
AT_START = re.compile("PYTHON[A-Z]|LC_|LANG")
#: Not to be imported: they are programs. What the others import when they need it is imported here beforehand.
PROGRAMS = ("fusewire.__main__", "fusewire.hook", "fusewire.guard.sandbox.wrap")
NEEDED_LATER = """difflib runpy sqlite3 tomllib uuid xml.etree.ElementTree xml.parsers.expat yaml
rich.box rich.console rich.live rich.markup rich.panel rich.spinner rich.table rich.text"""

#: Words before a command that make file modes count for root as for everybody else. It stays the same user, who may
#: read this checkout and this Python wherever they lie.
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []

NUMBER = struct.Struct("!i")

_one_at_a_time = threading.Lock()
_forge: socket.socket | None = None


def fusewire(
    *arguments: str, cwd: str | os.PathLike[str], env: dict[str, str], stdin: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Run one command to its end. One that does not end in time is killed, and its code says so."""
    command = [sys.executable, "-m", "fusewire", *arguments]
    names = filter(AT_START.match, env.keys() | os.environ.keys())
    if any(env.get(name) != os.environ.get(name) for name in names):
        return subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
    umask = os.umask(0)
    os.umask(umask)
    request = json.dumps([arguments, os.fspath(cwd), env, umask]).encode()
    answers, theirs = socket.socketpair()
    (source, to_source), (from_output, output), (from_errors, errors) = (os.pipe() for _ in range(3))
    try:
        with _one_at_a_time:
            forge = _started()
            socket.send_fds(forge, [NUMBER.pack(len(request))], [source, output, errors, theirs.fileno()])
            forge.sendall(request)
    finally:
        theirs.close()
        for descriptor in (source, output, errors):
            os.close(descriptor)
    printed = {from_output: b"", from_errors: b""}

    def read(descriptor: int) -> None:
        with open(descriptor, "rb") as file:
            printed[descriptor] = file.read()

    readers = [threading.Thread(target=read, args=(descriptor,)) for descriptor in printed]
    with answers:
        limit = threading.Timer(timeout, os.kill, (_number(answers), signal.SIGKILL))
        for thread in (limit, *readers):
            thread.start()
        with contextlib.suppress(BrokenPipeError), open(to_source, "wb", buffering=0) as file:
            file.write(stdin)  # nobody need read it
        code = _number(answers)
        limit.cancel()
    for reader in readers:
        reader.join()
    return subprocess.CompletedProcess(command, code, printed[from_output], printed[from_errors])


def _started() -> socket.socket:
    """The process that forks; it ends when this one does."""
    global _forge
    if _forge is None:
        _forge, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        atexit.register(process.wait)
        atexit.register(_forge.close)
    return _forge


def _number(connection: socket.socket) -> int:
    received = connection.recv(NUMBER.size, socket.MSG_WAITALL)
    (number,) = NUMBER.unpack(received)
    return int(number)


def _serve(requests: socket.socket) -> None:
    """Fork for every request until no more can come; returns in a child that has become what was asked for."""
    running: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            for pid, answers in list(running.items()):
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    with running.pop(pid):
                        answers.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
        if requests in ready:
            length, descriptors, _, _ = socket.recv_fds(requests, NUMBER.size, 4)
            if not length:
                sys.exit()
            request = requests.recv(NUMBER.unpack(length)[0], socket.MSG_WAITALL)
            answers = socket.socket(fileno=descriptors.pop())
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (requests, answers, *running.values()):
                    other.close()
                os.close(ended)
                os.close(wake)
                _become(*json.loads(request), descriptors)
                return
            for descriptor in descriptors:
                os.close(descriptor)
            answers.sendall(NUMBER.pack(pid))
            running[pid] = answers


def _become(arguments: list[str], cwd: str, env: dict[str, str], umask: int, streams: list[int]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.umask(umask)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    package = importlib.import_module("fusewire")
    sys.argv = [os.path.join(*package.__path__, "__main__.py"), *arguments]
    sys.path[0] = cwd


def _finished() -> bool:
    """What an interpreter does at its end, but for taking its memory apart, which takes longer than all else here."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return False  # closed, or nobody reads: the interpreter itself has words for that
    return True


if __name__ == "__main__":
    for found in pkgutil.walk_packages(importlib.import_module("fusewire").__path__, "fusewire."):
        if found.name not in PROGRAMS:
            importlib.import_module(found.name)
    for name in NEEDED_LATER.split():
        importlib.import_module(name)
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("fusewire", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, int) and _finished():
            os._exit(ended.code)
        raise

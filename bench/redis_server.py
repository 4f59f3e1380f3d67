"""A Redis server of our own, where there is a binary: on a free port of this machine, in a temporary folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from types import TracebackType


class RedisServer:
    """Runs for the length of a `with`; `port` is None, and `missing` says why, where there is none.

    Nothing is written to disk by it, which is the fastest way to run it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.port: int | None = None
        self.missing = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RedisServer:
        program = shutil.which("redis-server")
        if program is None:
            self.missing = "no redis-server on this machine"
            return self
        try:
            import pybreaker  # noqa: F401
            import redis
        except ImportError as error:
            self.missing = f"{error.name} is not installed"
            return self
        port = _free_port()
        arguments = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", self.folder]
        arguments += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        self._process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                redis.Redis(port=port).ping()
                self.port = port
                return self
            except redis.RedisError:
                time.sleep(0.05)
        self.missing = "redis-server did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

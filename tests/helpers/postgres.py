"""A PostgreSQL server of the tests' own: found, started as an ordinary user, ended by its process id.

It listens on loopback, with passwords, and on a socket in its own folder, without. Tests share one, and each has a
schema of its own in it; tests that restart or kill a server start one for themselves.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

OLDEST = 15
MISSING = "PostgreSQL 15 or newer is needed for these tests: as root, apt-get install postgresql"
USER, PASSWORD = "fusewire", "s3cret-word"

_libc = ctypes.CDLL(None, use_errno=True)


def programs() -> Path:
    """The folder of the newest server's programs. Debian keeps them out of the PATH."""
    named = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    for folder in [*named, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        with contextlib.suppress(OSError):
            said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
            if int(re.search(r"(\d+)", said)[1]) >= OLDEST and (folder / "initdb").exists():  # type: ignore[index]
                return folder
    raise FileNotFoundError(MISSING)


def _ordinary_user() -> dict[str, Any]:
    """Whom the server runs as: PostgreSQL refuses root."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise LookupError("neither the user postgres nor nobody is there to run a server as")


def _end_with_the_tests() -> None:
    """Whatever happens to the tests: PR_SET_PDEATHSIG, 1."""
    _libc.prctl(1, signal.SIGQUIT)


class PostgresServer:
    """One cluster in a temporary folder. `durable` ones wait for the disk."""

    def __init__(self, *, durable: bool = False) -> None:
        self._programs = programs()
        self._as_user = _ordinary_user()
        self.folder = Path(tempfile.mkdtemp(prefix="fusewire-pg-", dir="/tmp"))  # names of sockets must be short
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            "shared_buffers": "32MB",
            "deadlock_timeout": "200ms",
            **({} if durable else {"fsync": "off", "full_page_writes": "off"}),
        }
        try:
            self._make()
            self.start()
        except BaseException:
            self.remove()
            raise

    def _make(self) -> None:
        words = self.folder / "password"
        words.write_text(PASSWORD)
        if self._as_user:
            for path in (self.folder, words):
                os.chown(path, self._as_user["user"], self._as_user["group"])
        subprocess.run(
            [
                *(self._programs / "initdb", "--no-sync", "--encoding=UTF8", "--locale=C", f"--username={USER}"),
                *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={words}", self.folder / "data"),
            ],
            **self._as_user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def start(self) -> None:
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *settings],
                **self._as_user,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.run("SELECT 1")
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()[-2000:]) from None
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT cuts all connections and ends in order; SIGKILL is what it is."""
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        deadline = time.monotonic() + 20
        while True:
            try:
                return self.start()
            except RuntimeError:  # processes of one that was killed go a little later than it
                if how != signal.SIGKILL or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- for tests ----------------------------------------------------------------------------------

    def run(self, query: str) -> Any:
        """The rows of a statement, as the server's owner."""
        with psycopg.connect(host=str(self.folder), port=self.port, user=USER, dbname="postgres", autocommit=True) as c:
            cursor = c.execute(query.encode())
            return cursor.fetchall() if cursor.description else None

    def schema(self) -> str:
        """A name that nobody has used yet."""
        return f"test_{next(self._numbers)}"

    def url(self, schema: str, **options: str) -> str:
        """Through the socket, without a password."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{USER}@/postgres?host={self.folder}&port={self.port}&fusewire_schema={schema}{more}"

    def loopback(self, schema: str = "fusewire", *, password: str = f":{PASSWORD}", database: str = "postgres") -> str:
        return f"postgresql://{USER}{password}@127.0.0.1:{self.port}/{database}?fusewire_schema={schema}"

"""A real `fusewire serve` in a process of its own, and a plain client for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

#: Seconds that a busy machine gets to start it.
_START = 60


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """The server on a free port; as a context manager it ends with the block, by its process id."""

    def __init__(
        self,
        *roots: object,
        arguments: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        program: tuple[str, ...] = ("-m", "fusewire"),
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", *map(str, roots), "--port", "0", "--json", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.pid = self.process.pid
        late = threading.Timer(_START, self.process.kill)
        late.start()
        try:
            self.said = self._first_object()
        finally:
            late.cancel()
        self.address: str = self.said["address"]
        self.token: str = self.said["token"]
        #: logs in as often as it is opened, unlike the address that the server gives
        self.login = f"{self.address}login#token={self.token}"
        self.host = self.address.removeprefix("http://").rstrip("/")
        self.cookie = ""

    def _first_object(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        text = b""
        for line in self.process.stdout:
            text += line
            if line == b"}\n":
                return json.loads(text)  # type: ignore[no-any-return]
        assert self.process.stderr is not None
        raise AssertionError(f"the server did not start: {text!r} {self.process.stderr.read()!r}")

    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
        *,
        bearer: str | None = None,
        timeout: float = 30,
    ) -> Answer:
        """One request; the cookie goes along if there is one and nothing else is said."""
        connection = http.client.HTTPConnection(self.host, timeout=timeout)
        sent = {**({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        if bearer is not None:
            sent["Authorization"] = f"Bearer {bearer}"
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Answer:
        return self.request("GET", path, **more)

    def post(self, path: str, fields: dict[str, str], headers: dict[str, str] | None = None, **more: Any) -> Answer:
        """A form, as a browser on our own page sends it."""
        origin = {"Origin": self.address.rstrip("/"), "Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, urlencode(fields), {**origin, **(headers or {})}, **more)

    def log_in(self) -> None:
        """Exchange the token for a cookie."""
        answer = self.post("/login", {"token": self.token})
        assert answer.status == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def form_secret(self, path: str = "/") -> str:
        """The word that forms of a page repeat."""
        found = re.search(r'name="form_secret" value="([^"]+)"', self.get(path).text)
        assert found is not None
        return found[1]

    def stop(self) -> tuple[int, str]:
        """End it as Ctrl-C does; its exit code and what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(2)
        try:
            _, errors = self.process.communicate(timeout=45)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        return self.process.returncode, errors.decode("utf-8", "replace")

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

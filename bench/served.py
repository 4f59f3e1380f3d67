"""A server that runs, and whoever asks it: a browser, a page that listens, an agent with many connections."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode


class Server:
    """One that runs, with its token and a browser's cookie."""

    def __init__(self, address: str, token: str) -> None:
        self.host = address.removeprefix("http://").rstrip("/")
        self.token = token
        self._browser = http.client.HTTPConnection(self.host, timeout=30)
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}"}
        self._browser.request("POST", "/login", urlencode({"token": token}), form)
        self._answer = self._browser.getresponse()
        self.cookie = {"Cookie": (self._answer.getheader("Set-Cookie") or "").partition(";")[0]}

    def finish(self) -> None:
        """The rest of the last answer, which nobody has measured."""
        self._answer.read()

    def first_byte(self, path: str) -> None:
        self._browser.request("GET", path, headers=self.cookie)
        self._answer = self._browser.getresponse()
        if self._answer.status != 200 or not self._answer.read(1):
            raise RuntimeError(f"{path}: HTTP {self._answer.status}")

    def loaded_anew(self, path: str, circuit: str) -> None:
        """The whole page, as it loads itself anew, with a circuit on it."""
        self._browser.request("GET", path, headers={**self.cookie, "Fusewire-Refresh": "1"})
        if circuit not in self._browser.getresponse().read().decode():
            raise RuntimeError(f"{circuit} is not on {path}")

    def reports(self, payloads: list[bytes], connections: int) -> tuple[list[float], float]:
        """Seconds of each event, and of all together."""
        started = time.perf_counter()
        with ThreadPoolExecutor(connections) as pool:
            found = pool.map(self._reported, (payloads[at::connections] for at in range(connections)))
            samples = [one for part in found for one in part]
        return samples, time.perf_counter() - started

    def _reported(self, payloads: list[bytes]) -> list[float]:
        line = http.client.HTTPConnection(self.host, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        samples = []
        for payload in payloads:
            started = time.perf_counter()
            line.request("POST", "/hooks/claude", payload, headers)
            answer = line.getresponse()
            said = answer.read()
            samples.append(time.perf_counter() - started)
            if answer.status != 200 or said:
                raise RuntimeError(f"HTTP {answer.status}: {said!r}")
        line.close()
        return samples

    @contextmanager
    def listening(self) -> Iterator[Page]:
        line = http.client.HTTPConnection(self.host, timeout=30)
        line.request("GET", "/events", headers=self.cookie)
        page = Page(line.getresponse())
        try:
            yield page
        finally:
            line.sock.shutdown(socket.SHUT_RDWR)
            page.thread.join()
            line.close()


class Page:
    """What listens to the stream of a page; it notes of which circuits it heard."""

    def __init__(self, stream: http.client.HTTPResponse) -> None:
        self._stream = stream
        self._heard: set[str] = set()
        self._news = threading.Condition()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        try:
            for line in self._stream:
                if line.startswith(b"data: [{"):
                    with self._news:
                        self._heard.update(move["circuit"] for move in json.loads(line.removeprefix(b"data: ")))
                        self._news.notify_all()
        except (OSError, http.client.HTTPException):
            pass  # nobody listens any more

    def wait_for(self, circuit: str) -> None:
        """Until it has heard of a trip."""
        with self._news:
            if not self._news.wait_for(lambda: circuit in self._heard, 30):
                raise RuntimeError(f"the page never heard of {circuit}")


@contextmanager
def served(roots: list[str], environment: dict[str, str]) -> Iterator[Server]:
    """A server of these projects on a free port, until the end of the block."""
    line = [sys.executable, "-m", "fusewire", "serve", *roots, "--port", "0", "--json"]
    streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, **streams) as process:
        late = threading.Timer(30, process.kill)
        late.start()
        try:
            said = json.loads(_first_object(process))
            late.cancel()
            yield Server(said["address"], said["token"])
        finally:
            late.cancel()
            process.send_signal(signal.SIGINT)


def _first_object(process: subprocess.Popen[bytes]) -> bytes:
    text = b""
    for line in process.stdout or ():
        text += line
        if line == b"}\n":
            return text
    raise RuntimeError(f"the server did not start: {text!r}; it needs the extra: pip install 'fusewire[server]'")

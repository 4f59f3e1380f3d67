"""`fusewire serve` beside a client: the same user, but not in the home by which a client's processes are ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.bench import Bench

#: Seconds that a busy machine gets to start it.
_START = 60


@contextmanager
def serving(bench: Bench) -> Iterator[int]:
    """The port of a server that shows the bench's project, until the end of the block."""
    with tempfile.TemporaryDirectory() as elsewhere:
        process = subprocess.Popen(
            [sys.executable, "-m", "fusewire", "serve", str(bench.root), "--port", "0", "--json"],
            env={
                "HOME": elsewhere,
                "XDG_STATE_HOME": str(bench.client.home / ".local" / "state"),
                "XDG_CONFIG_HOME": str(bench.client.home / ".config"),  # else each would compile the other's rules anew
                "PATH": bench.client.path,
                "LANG": "C.UTF-8",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        late = threading.Timer(_START, process.kill)
        late.start()
        try:
            port = int(_first_object(process)["address"].rstrip("/").rpartition(":")[2])
            late.cancel()
            yield port
        finally:
            late.cancel()
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()


def _first_object(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    text = b""
    for line in process.stdout or ():
        text += line
        if line == b"}\n":
            return json.loads(text)  # type: ignore[no-any-return]
    raise AssertionError(f"the server did not start: {text!r}")

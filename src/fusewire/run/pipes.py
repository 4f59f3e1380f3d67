"""Serve the three pipes of an agent: write its input while reading its output; neither waits for the other."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from functools import partial
from subprocess import Popen
from typing import IO

#: The most that a callback gets at once.
CHUNK = 65536

#: Chunks of one stream before the others have their turn.
_TURN = 16

OnData = Callable[[bytes], None]


class Pipes:
    """Everything here is done by `pump`; nothing else blocks."""

    def __init__(self, process: Popen[bytes], given: bytes, on_output: OnData, on_error: OnData) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        #: When the last byte came, and when it was last looked for one: callbacks may take long in between.
        self.last = self.looked = time.monotonic()
        self._input: IO[bytes] = process.stdin
        self._rest = memoryview(given)
        self._readers: dict[IO[bytes], OnData] = {process.stdout: on_output, process.stderr: on_error}
        self._selector = selectors.DefaultSelector()
        for pipe in (self._input, *self._readers):
            os.set_blocking(pipe.fileno(), False)
        for pipe in self._readers:
            self._selector.register(pipe, selectors.EVENT_READ, partial(self._read, pipe))
        if given:
            self._selector.register(self._input, selectors.EVENT_WRITE, self._write)
        else:
            self._input.close()

    @property
    def open(self) -> bool:
        """Whether a process may still write to one of them."""
        return any(not pipe.closed for pipe in self._readers)

    def wake_on(self, descriptor: int) -> None:
        """Let `pump` return when this descriptor becomes readable."""
        self._selector.register(descriptor, selectors.EVENT_READ, _nothing)

    def forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)

    def pump(self, seconds: float) -> None:
        """Pass on what is there; if there is nothing, wait so long for it."""
        ready = self._selector.select(max(0.0, seconds))
        self.looked = time.monotonic()
        for key, _ in ready:
            key.data()

    def discard_output(self) -> None:
        """From here on read and drop all output, so that no writer blocks."""
        self._readers = dict.fromkeys(self._readers, _drop)

    def close_input(self) -> None:
        """Close standard input: the agent has ended."""
        if not self._input.closed:
            self._close(self._input)

    def close(self) -> None:
        self.close_input()
        for pipe in self._readers:
            pipe.close()
        self._selector.close()

    def _read(self, pipe: IO[bytes]) -> None:
        for _ in range(_TURN):
            try:
                data = os.read(pipe.fileno(), CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._close(pipe)
                return
            self.last = time.monotonic()
            self._readers[pipe](data)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._input.fileno(), self._rest[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # closed by the agent before it had read everything
            self._rest = self._rest[:0]
        if not self._rest:
            self._close(self._input)

    def _close(self, pipe: IO[bytes]) -> None:
        if pipe.fileno() in self._selector.get_map():
            self._selector.unregister(pipe)
        pipe.close()


def _drop(data: bytes) -> None:
    pass


def _nothing() -> None:
    pass

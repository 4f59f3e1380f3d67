"""Read the JSON values of a transcript one by one: of lines, of an array, or of a document's arrays.

A transcript may be larger than memory, so no more than one value (and one buffer) is held at a time. Documents are
read with the decoder of the standard library, which can start anywhere in a text; only what stands around the
values (brackets, keys, commas) is read here.
"""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Iterator
from typing import IO, Any

from fusewire.util.errors import FusewireError
from fusewire.util.fast_json import JsonObject

#: The longest line or value; nothing that an agent writes comes near it. Then: how much is looked at to tell lines from
#: a document, and how much of a document is read at once.
LONGEST = 64 * 1024 * 1024
_HEAD = 1024 * 1024
_CHUNK = 1024 * 1024
_SPACE = " \t\r\n"

#: Names of the arrays that hold the steps of a document.
_ARRAYS = ("trajectory", "messages", "history")


class Records:
    """The records of one file as (key, value); the key of a line is empty, that of a document's value is its name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        #: lines and values that could not be read and were left out
        self.broken = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        with self._opened() as file:
            kind = _kind_of(file)
            file.seek(0)
            yield from self._lines(file) if kind == "lines" else self._document(file)

    def _opened(self) -> IO[bytes]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise FusewireError(f"{self.path}: not a regular file; allowed: an agent's transcript")
            return open(handle, "rb")
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise FusewireError(f"{self.path}: the transcript cannot be read: {said}") from None

    def _lines(self, file: IO[bytes]) -> Iterator[tuple[str, Any]]:
        while line := file.readline(LONGEST):
            if not line.endswith(b"\n") and len(line) >= LONGEST:
                self.broken += 1
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST)
                continue
            if not line.strip():
                continue
            try:
                yield "", json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                self.broken += 1

    def _document(self, file: IO[bytes]) -> Iterator[tuple[str, Any]]:
        text = _Text(file)
        try:
            if text.next() == "[":
                yield from (("", value) for value in text.array())
                return
            text.skip("{")
            while text.next() == '"':
                key = text.value()
                text.skip(":")
                if text.next() == "[":
                    yield from ((key, value) for value in text.array())
                else:
                    yield key, text.value()
                if text.next() == ",":
                    text.skip(",")
        except (ValueError, RecursionError):
            self.broken += 1  # cut off, or no JSON from here on


def _kind_of(file: IO[bytes]) -> str:
    """Lines are objects of their own, also if the first one is broken; a document is one that goes over lines."""
    head = file.read(_HEAD).lstrip()
    first, newline, rest = head.partition(b"\n")
    if first[:1] == b"[":
        return "document"
    if first[:1] != b"{":
        return "lines"
    value = _object(first)
    if value:
        return "document" if any(isinstance(value.get(key), list) for key in _ARRAYS) else "lines"
    if newline:
        return "lines" if _object(rest.partition(b"\n")[0]) else "document"
    # One line that is longer than what was looked at: a document has the name of an array near its beginning.
    return "document" if not file.read(1) or any(f'"{key}"'.encode() in head for key in _ARRAYS) else "lines"


def _object(line: bytes) -> JsonObject:
    """The object that a line is; nothing if it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Text:
    """The text of a document, of which a part is held at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = json.JSONDecoder()
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._at = 0
        self._ended = False

    def next(self) -> str:
        """The next character that is no white space, without taking it; nothing at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more(_CHUNK):
                return ""

    def skip(self, wanted: str) -> None:
        if self.next() != wanted:
            raise ValueError(f"{wanted} is expected")
        self._at += 1

    def value(self) -> Any:
        """The next value. It is tried again with twice as much text as long as it might only be incomplete."""
        self.next()
        size = _CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
                if end < len(self._held) or self._ended:  # a number may go on
                    self._at = end
                    return value
            except ValueError:
                if self._ended or len(self._held) - self._at > LONGEST:
                    raise
            self._more(size)
            size *= 2

    def array(self) -> Iterator[Any]:
        self.skip("[")
        while self.next() not in ("]", ""):
            yield self.value()
            if self.next() == ",":
                self.skip(",")
        self.skip("]")

    def _more(self, size: int) -> bool:
        data = self._file.read(size)
        self._ended = not data
        self._held = self._held[self._at :] + self._bytes.decode(data, not data)
        self._at = 0
        return not self._ended

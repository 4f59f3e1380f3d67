"""Cut a stream of bytes into plain text and what may be JSON, holding back no more than one JSON text; keep its end.

What may be JSON is a line that starts with `{` or `[{`, or the lines from a lone `{` to the next line with `}`. All
decisions depend on lines, never on chunks, so that chunks may end anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

#: A JSON text that is longer than this is read as plain text.
JSON_LIMIT = 4_194_304
_STEP = 262_144

#: Every message of an agent has one of these keys: a log in JSON need not be read.
_KEYS = (b'"type"', b'"session_id"', b'"response"')
_NOTABLE = (*_KEYS, b"{\n", b"{\r", b"{ ", b"{\t")

#: How a line inside of a printed object starts, and what its first letter is; nothing stands for one yet to come.
_INDENT = frozenset((b" ", b"\t", b"}", b"\r", b"\n"))
_INSIDE = frozenset(bytes([byte]) for byte in b'"}]{[-0123456789tfn') | {b""}


class Pieces:
    """`feed` and `rest` give (may be JSON, bytes) in the order of the stream."""

    def __init__(self) -> None:
        #: how many JSON texts were longer than the limit
        self.too_long = 0
        self._held: bytearray | None = None
        #: inside of a block that began with a lone bracket: where its current line starts
        self._line = 0
        self._block = False
        self._at_start = True

    def feed(self, data: bytes) -> Iterator[tuple[bool, bytes]]:
        for begin in range(0, len(data), _STEP):
            yield from self._feed(data[begin : begin + _STEP])

    def rest(self) -> Iterator[tuple[bool, bytes]]:
        """What was held back when the stream ended."""
        held, self._held = self._held, None
        if held:
            yield _may_be_json(held) and any(key in held for key in _KEYS), bytes(held)

    def _feed(self, data: bytes) -> Iterator[tuple[bool, bytes]]:
        position, bracket, array = 0, -2, -2
        looked = False
        while position < len(data):
            if self._held is None and not looked:
                looked = True
                end = _end_of_logs(data, position)
                if end > position:
                    yield False, data[position:end]
                    self._at_start, position = True, end
                    continue
            if self._held is not None:
                newline = data.find(b"\n", position)
                end = newline + 1 if newline >= 0 else len(data)
                self._held += data[position:end]
                position = end
                yield from self._grown(ended=newline >= 0)
                continue
            if self._at_start and data[position] in b"{[":
                self._held, self._line, self._block = bytearray(), 0, False
                continue
            # Noise is skipped at the speed of a search; each search runs once over the data.
            bracket = data.find(b"\n{", position) if -2 <= bracket < position and bracket != -1 else bracket
            array = data.find(b"\n[{", position) if -2 <= array < position and array != -1 else array
            starts = [found for found in (bracket, array) if found >= 0]
            end = min(starts) + 1 if starts else len(data)
            if not starts and data.endswith(b"\n[") and end - 1 > position:
                end -= 1  # whether this is an array is decided by the next chunk
            yield False, data[position:end]
            self._at_start = data[end - 1] == 10
            position = end

    def _grown(self, *, ended: bool) -> Iterator[tuple[bool, bytes]]:
        """What is held has grown, or a line of it is complete: let go of what is done and of what cannot be JSON."""
        held = self._held or bytearray()
        line = bytes(held[self._line : self._line + 64])
        if len(held) > JSON_LIMIT or (len(held) > 1 and not _may_be_json(held)):
            self.too_long += len(held) > JSON_LIMIT
            yield from self._let_go(False, ended)
        elif self._block and line and not (line[:1] in _INDENT and line.strip()[:1] in _INSIDE):
            foreign = bytes(held[self._line :])
            del held[self._line :]
            yield from self._let_go(False, True)
            yield from self._feed(foreign)
        elif ended and not self._block and line.strip() == b"{":
            self._block, self._line = True, len(held)
        elif ended and self._block and line[:1] != b"}":
            self._line = len(held)
        elif ended:
            yield from self._let_go(True, ended)

    def _let_go(self, may_be: bool, ended: bool) -> Iterator[tuple[bool, bytes]]:
        held, self._held = bytes(self._held or b""), None
        self._at_start = ended
        yield may_be and any(key in held for key in _KEYS), held


def _end_of_logs(data: bytes, position: int) -> int:
    """Where the last whole line ends, if no line that looks like JSON is an agent's: logs have many short ones."""
    if data.find(b"\n{", position) < 0 or any(data.find(mark, position) >= 0 for mark in _NOTABLE):
        return position
    return data.rfind(b"\n") + 1


def _may_be_json(held: bytearray) -> bool:
    return held[:1] == b"{" or held[:2] == b"[{"


class Tail:
    """The end of a stream, and how much there was of it: `count` is given everything, `keep` what is to be kept."""

    def __init__(self, limit: int) -> None:
        self.bytes = 0
        self._limit = limit
        self._newlines = 0
        self._open_line = False
        self._kept = bytearray()
        self._cut = False

    def count(self, data: bytes) -> None:
        if data:
            self.bytes += len(data)
            self._newlines += data.count(b"\n")
            self._open_line = data[-1] != 10

    def keep(self, data: bytes) -> None:
        self._kept += data if len(data) <= self._limit else data[-self._limit :]
        self._cut = self._cut or len(data) > self._limit
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]
            self._cut = True

    @property
    def lines(self) -> int:
        return self._newlines + self._open_line

    def text(self) -> str:
        """The last whole lines; a single line that is longer than the limit is cut."""
        kept = bytes(self._kept[-self._limit :])
        if self._cut or len(self._kept) > self._limit:
            kept = kept[kept.find(b"\n") + 1 :] or kept
            kept = kept.lstrip(bytes(range(0x80, 0xC0)))
        return kept.decode("utf-8", "replace")

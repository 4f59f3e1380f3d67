"""The end of a stream, and how much there was of it."""

from __future__ import annotations


class Tail:
    """`count` is told everything, `keep` only what is to be remembered."""

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

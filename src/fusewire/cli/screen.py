"""The terminal under a live view: lines that stay, and a footer that is painted anew."""

from __future__ import annotations

import io
import os
import select
from typing import TextIO

from rich.console import Console
from rich.text import Text

from fusewire.cli.streams import color

_ASCII = str.maketrans("▁▂▃▄▅▆▇█·…━─", "_.,:-=+#|~=-")


class Screen:
    """The terminal: lines that stay, and rows below them that are painted anew each time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: it only turns styles into colours: what it wrote itself would fail with the terminal
        self._console = Console(
            file=io.StringIO(), force_terminal=True, color_system="auto" if color() is None else None
        )
        self._encoding = stream.encoding or "ascii"
        self._fancy = _can_show("▁█·…━─", self._encoding)
        self._painted: tuple[int, list[str]] | None = None
        self.colors = self._console.color_system is not None
        self.width, self._height = 80, 24

    def measure(self) -> None:
        """How much room there is now: a person may resize a window at any time."""
        try:
            columns, lines = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return
        self.width, self._height = columns or 80, lines or 24

    def paint(self, above: list[str], rows: list[Text]) -> None:
        """Nothing is written if nothing has changed."""
        inked = [self._inked(row) for row in rows[-self._height :]]
        if not above and self._painted == (self.width, inked):
            return
        self._painted = (self.width, inked)
        stays = "\x1b[J" + "".join(f"{line}\n" for line in above) if above or not inked else ""
        back = f"\r\x1b[{len(inked) - 1}A" if len(inked) > 1 else "\r"
        footer = "\x1b[K\n".join(inked) + "\x1b[J" + back if inked else ""
        self._write(f"\r{stays}{footer}")

    def clear(self) -> None:
        """Take the rows away until they are painted again."""
        if self._painted is not None:
            self.paint([], [])
            self._painted = None

    def _inked(self, row: Text) -> str:
        """In the terminal's colours and characters; the last column stays free, or some terminals would wrap."""
        row = row.copy()
        row.expand_tabs(8)
        row.truncate(max(1, self.width - 1), overflow="ellipsis")
        with self._console.capture() as capture:
            self._console.print(row, end="", soft_wrap=True)
        return capture.get() if self._fancy else capture.get().translate(_ASCII)

    def _write(self, text: str) -> None:
        """What nobody can see any more must not end a run."""
        rest = memoryview(text.encode(self._encoding, "replace"))
        try:
            self._stream.flush()
            while rest:
                try:
                    rest = rest[os.write(self._stream.fileno(), rest) :]
                except BlockingIOError:  # somebody who shares the terminal has asked for that
                    select.select((), (self._stream.fileno(),), (), 0.1)
        except OSError:  # the terminal is gone
            pass


def _can_show(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True

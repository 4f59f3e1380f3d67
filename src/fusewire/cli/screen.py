"""The terminal under the live views: a footer below scrolling output, or a full screen with keys.

Everything that changes at one moment is one write, and the cursor stays visible where reading continues: a process
that is killed, suspended or resized leaves a usable terminal. That is why rich only turns styles into colours here:
its `Live` hides the cursor and repaints from a thread.
"""

from __future__ import annotations

import io
import os
import select
import signal
import termios
import tty
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.text import Text

from fusewire.cli.streams import color

if TYPE_CHECKING:
    from fusewire.cli.watch.frame import Frame

_ASCII = str.maketrans("▁▂▃▄▅▆▇█·…━─", "_.,:-=+#|~=-")

_ENTER = "\x1b[?1049h"
_LEAVE = "\x1b[0m\x1b[?1049l"


class Screen:
    """Lines that scroll, and a footer of rows below them that is repainted."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console = Console(
            file=io.StringIO(), force_terminal=True, color_system="auto" if color() is None else None
        )
        self._encoding = stream.encoding or "ascii"
        self._fancy = _can_encode("▁█·…━─", self._encoding)
        self._painted: tuple[int, list[str]] | None = None
        self.colors = self._console.color_system is not None
        self.width, self.height = 80, 24

    def measure(self) -> None:
        """Read the size of the window, which may change at any time."""
        try:
            columns, lines = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return
        self.width, self.height = columns or 80, lines or 24

    def paint(self, above: list[str], rows: list[Text]) -> None:
        """Print lines, and the footer below them; nothing is written if nothing has changed."""
        footer = [self._render(row) for row in rows[-self.height :]]
        if not above and self._painted == (self.width, footer):
            return
        self._painted = (self.width, footer)
        lines = "\x1b[J" + "".join(f"{line}\n" for line in above) if above or not footer else ""
        back = f"\r\x1b[{len(footer) - 1}A" if len(footer) > 1 else "\r"
        below = "\x1b[K\n".join(footer) + "\x1b[J" + back if footer else ""
        self._write(f"\r{lines}{below}")

    def clear(self) -> None:
        """Erase the footer until it is painted again."""
        if self._painted is not None:
            self.paint([], [])
            self._painted = None

    def _render(self, row: Text) -> str:
        """A row in the terminal's colours and characters; the last column stays free, or some terminals would wrap."""
        row = row.copy()
        row.expand_tabs(8)
        row.truncate(max(1, self.width - 1), overflow="ellipsis")
        with self._console.capture() as capture:
            self._console.print(row, end="", soft_wrap=True)
        return capture.get() if self._fancy else capture.get().translate(_ASCII)

    def _write(self, text: str) -> None:
        """Write all of it; a terminal that is gone must not end the run."""
        rest = memoryview(text.encode(self._encoding, "replace"))
        try:
            self._stream.flush()
            while rest:
                try:
                    rest = rest[os.write(self._stream.fileno(), rest) :]
                except BlockingIOError:  # another program on the terminal has made it non-blocking
                    select.select((), (self._stream.fileno(),), (), 0.1)
        except OSError:
            pass


class FullScreen(Screen):
    """The alternate screen with keys that need no Enter; the terminal is given back whatever happens."""

    def __init__(self, stream: TextIO, keyboard: int) -> None:
        super().__init__(stream)
        self._keyboard = keyboard
        self._modes: list[Any] | None = None
        self._shown: list[str] = []
        self._cursor = (0, 0)
        self._size = (0, 0)

    def __enter__(self) -> FullScreen:
        try:
            self.enter()
        except BaseException:  # a signal in the middle of it
            self.leave()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clean-up
        self.leave()
        signal.signal(signal.SIGINT, before)

    def enter(self) -> None:
        """Take the terminal, also after another program has used it meanwhile."""
        try:
            self._modes = self._modes or termios.tcgetattr(self._keyboard)
            tty.setcbreak(self._keyboard, termios.TCSANOW)
        except termios.error:  # the terminal is gone
            return
        self._size = (0, 0)
        self._write(_ENTER)

    def leave(self) -> None:
        if self._modes is None:
            return
        self._write(_LEAVE)
        modes, self._modes = self._modes, None
        try:
            termios.tcsetattr(self._keyboard, termios.TCSANOW, modes)
        except termios.error:
            pass

    def read_keys(self, seconds: float, other: int) -> bytes | None:
        """The bytes typed within this time; returns early if `other` can be read, and None if the terminal is gone."""
        ready = select.select((self._keyboard, other), (), (), max(0.0, seconds))[0]
        if self._keyboard not in ready:
            return b""
        try:
            return os.read(self._keyboard, 4096) or None
        except OSError:
            return None

    def show(self, frame: Frame) -> None:
        """Write the rows that have changed, and leave the cursor where a screen reader should look."""
        rows = [self._render(row) for row in frame.rows]
        parts = []
        if self._size != (self.width, self.height):
            self._size, self._shown = (self.width, self.height), []
            parts.append("\x1b[0m\x1b[2J")
        before = dict(enumerate(self._shown))
        parts += [f"\x1b[{at + 1};1H{row}\x1b[K" for at, row in enumerate(rows) if before.get(at) != row]
        if parts or self._cursor != frame.cursor:
            row, column = frame.cursor
            self._write("".join(parts) + f"\x1b[{row + 1};{column + 1}H")
        self._shown, self._cursor = rows, frame.cursor


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True

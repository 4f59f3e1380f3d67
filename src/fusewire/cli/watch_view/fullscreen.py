"""The whole terminal: a screen of its own, keys without Enter, and both given back whatever happens.

All of one moment is one write of the rows that have changed. The cursor stays visible, on the chosen row: there a
screen reader looks, too.
"""

from __future__ import annotations

import os
import select
import signal
import termios
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from fusewire.cli.screen import Screen

if TYPE_CHECKING:
    from fusewire.cli.watch_view.frame import Frame

_ENTER = "\x1b[?1049h"
_LEAVE = "\x1b[0m\x1b[?1049l"

_LOCAL, _CONTROLS = 3, 6


class FullScreen(Screen):
    """A terminal of which every row is ours."""

    def __init__(self, stream: TextIO, keyboard: int) -> None:
        super().__init__(stream)
        self._keyboard = keyboard
        self._before: list[Any] | None = None
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # whoever presses Ctrl-C twice wants a usable terminal, too
        self.leave()
        signal.signal(signal.SIGINT, before)

    @property
    def height(self) -> int:
        return self._height

    def enter(self) -> None:
        """Also after somebody else has used the terminal meanwhile."""
        try:
            mode = termios.tcgetattr(self._keyboard)
            self._before = self._before or mode.copy()
            mode[_LOCAL] &= ~(termios.ICANON | termios.ECHO)
            mode[_CONTROLS] = [*mode[_CONTROLS]]
            mode[_CONTROLS][termios.VMIN], mode[_CONTROLS][termios.VTIME] = 1, 0
            termios.tcsetattr(self._keyboard, termios.TCSANOW, mode)
        except termios.error:  # the terminal is gone
            return
        self._size = (0, 0)
        self._write(_ENTER)

    def leave(self) -> None:
        if self._before is None:
            return
        self._write(_LEAVE)
        before, self._before = self._before, None
        try:
            termios.tcsetattr(self._keyboard, termios.TCSANOW, before)
        except termios.error:
            pass

    def pressed(self, seconds: float, other: int) -> bytes | None:
        """What has been typed, after so many seconds at most, or as soon as `other` can be read; None at the end."""
        ready = select.select((self._keyboard, other), (), (), max(0.0, seconds))[0]
        if self._keyboard not in ready:
            return b""
        try:
            return os.read(self._keyboard, 4096) or None
        except OSError:
            return None

    def show(self, frame: Frame) -> None:
        """Nothing is written if nothing has changed."""
        rows = [self._inked(row) for row in frame.rows]
        parts = []
        if self._size != (self.width, self._height):
            self._size, self._shown = (self.width, self._height), []
            parts.append("\x1b[0m\x1b[2J")
        before = dict(enumerate(self._shown))
        parts += [f"\x1b[{at + 1};1H{row}\x1b[K" for at, row in enumerate(rows) if before.get(at) != row]
        if parts or self._cursor != frame.cursor:
            row, column = frame.cursor
            self._write("".join(parts) + f"\x1b[{row + 1};{column + 1}H")
        self._shown, self._cursor = rows, frame.cursor

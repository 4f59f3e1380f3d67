"""Read single keys of the person at the terminal while a run waits, without getting in the way of the shell."""

from __future__ import annotations

import os
import select
import termios
import tty
from typing import Any


class Keyboard:
    """The terminal on a descriptor; a process in the background neither reads nor changes it, as that would stop it."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._modes: list[Any] | None = None

    def pressed(self, key: str) -> bool:
        """Whether the key was pressed since the last look; what was typed before the first one does not count."""
        try:
            if os.tcgetpgrp(self._terminal) != os.getpgrp():
                return False
            modes = termios.tcgetattr(self._terminal)
            if modes[3] & termios.ICANON:  # the first look, or the first after Ctrl-Z and fg
                self._modes = modes
                tty.setcbreak(self._terminal, termios.TCSAFLUSH)
            if not select.select((self._terminal,), (), (), 0)[0]:
                return False
            return key.encode() in os.read(self._terminal, 4096).lower()
        except (OSError, termios.error):  # the terminal is gone
            return False

    def close(self) -> None:
        """Give the terminal back; in the background it has been taken back already."""
        modes, self._modes = self._modes, None
        try:
            if modes is not None and os.tcgetpgrp(self._terminal) == os.getpgrp():
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, modes)
        except (OSError, termios.error):
            pass

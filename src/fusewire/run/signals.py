"""Ctrl-C and its kin, while a run lasts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any


class Signals:
    """While a run lasts, Ctrl-C and its kin end it in order instead of in the middle."""

    _ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, act: Callable[[int], None]) -> None:
        self.act = act
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in self._ENDS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                self._before[number] = signal.signal(number, self._arrived)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.act(number)

"""`fusewire watch` on a terminal: looks, paints, and listens to keys and signals. There is no thread."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fusewire.cli.watch_view.frame import frame
from fusewire.cli.watch_view.fullscreen import FullScreen
from fusewire.cli.watch_view.keys import Keys
from fusewire.cli.watch_view.source import POLL
from fusewire.cli.watch_view.view import WatchView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.cli.watch_view.source import Source

#: Seconds after which Escape alone is a key: the rest of a longer one comes sooner.
_ESCAPE = 0.05

#: Signals that only have to be noticed, and those that end it.
_NOTICED = (signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """A signal says that it is over."""


def watch_live(source: Source) -> None:
    """Until a person has seen enough."""
    try:
        with _signals() as noticed, FullScreen(sys.stdout, sys.stdin.fileno()) as screen:
            _run(source, screen, noticed)
    except _Ended as ended:  # the terminal is as it was: now as if nobody had listened
        signal.signal(ended.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), ended.args[0])


def _run(source: Source, screen: FullScreen, noticed: int) -> None:
    view, keys = WatchView(), Keys()
    source.look()
    due = time.monotonic() + POLL
    while not view.over:
        screen.measure()
        screen.show(frame(view, source, screen.width, screen.height))
        data = screen.pressed(_ESCAPE if keys.waiting else due - time.monotonic(), noticed)
        if data is None:
            return
        for key in keys.of(data) if data else keys.end():
            if key == "redraw":
                screen.enter()
            view.press(key, source.panel)
        _heed(_read(noticed), screen)
        if time.monotonic() >= due:
            source.look()
            due = time.monotonic() + POLL


def _heed(signals: bytes, screen: FullScreen) -> None:
    if signal.SIGTSTP in signals:
        screen.leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # here it stands still until somebody wakes it
        signal.signal(signal.SIGTSTP, _nothing)
        screen.enter()
    elif signal.SIGCONT in signals:
        screen.enter()


@contextmanager
def _signals() -> Iterator[int]:
    """A pipe that says which signals have come."""
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    handlers = {one: signal.signal(one, _nothing) for one in _NOTICED}
    handlers |= {one: signal.signal(one, _end) for one in _ENDING}
    try:
        yield reads
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(before)
        os.close(reads)
        os.close(writes)


def _nothing(number: int, _: object) -> None:
    """The pipe has it."""


def _end(number: int, _: object) -> None:
    for one in _ENDING:
        signal.signal(one, signal.SIG_IGN)
    raise _Ended(number)


def _read(noticed: int) -> bytes:
    try:
        return os.read(noticed, 4096)
    except BlockingIOError:
        return b""

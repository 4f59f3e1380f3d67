"""`fusewire watch` on a terminal: poll, paint, and react to keys and signals, without a thread."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fusewire.cli.screen import FullScreen
from fusewire.cli.watch.frame import frame
from fusewire.cli.watch.keys import KeyDecoder
from fusewire.cli.watch.source import POLL
from fusewire.cli.watch.view import WatchView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from fusewire.cli.watch.frame import Frame
    from fusewire.cli.watch.source import Source

    class Showing(Protocol):
        """What is on the screen."""

        @property
        def over(self) -> bool: ...

        def look(self) -> None: ...

        def press(self, key: str) -> None: ...

        def frame(self, width: int, height: int) -> Frame: ...


#: Seconds after which Escape alone is a key: the rest of a longer one comes sooner.
_ESCAPE = 0.05

#: Signals that wake the loop, and those that end it.
_WAKING = (signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """A signal ends the view."""


class ProjectScreen:
    """One project's panel, and the pages above it."""

    def __init__(self, source: Source, view: WatchView | None = None) -> None:
        self.source, self.view = source, view or WatchView()

    @property
    def over(self) -> bool:
        return self.view.over

    def look(self) -> None:
        self.source.look()

    def press(self, key: str) -> None:
        self.view.press(key, self.source.panel)

    def frame(self, width: int, height: int) -> Frame:
        return frame(self.view, self.source, width, height)


def watch_live(showing: Showing) -> None:
    """Show it until a person quits."""
    try:
        with _signals() as wakeups, FullScreen(sys.stdout, sys.stdin.fileno()) as screen:
            _run(showing, screen, wakeups)
    except _Ended as ended:  # the terminal is restored: now end as if there were no handler
        signal.signal(ended.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), ended.args[0])


def _run(showing: Showing, screen: FullScreen, wakeups: int) -> None:
    keys = KeyDecoder()
    showing.look()
    due = time.monotonic() + POLL
    while not showing.over:
        screen.measure()
        screen.show(showing.frame(screen.width, screen.height))
        data = screen.read_keys(_ESCAPE if keys.waiting else due - time.monotonic(), wakeups)
        if data is None:
            return
        for key in keys.feed(data) if data else keys.flush():
            if key == "redraw":
                screen.enter()
            showing.press(key)
        _handle_signals(_read(wakeups), screen)
        if time.monotonic() >= due:
            showing.look()
            due = time.monotonic() + POLL


def _handle_signals(signals: bytes, screen: FullScreen) -> None:
    if signal.SIGTSTP in signals:
        screen.leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # stops here until SIGCONT
        signal.signal(signal.SIGTSTP, _wake)
        screen.enter()
    elif signal.SIGCONT in signals:
        screen.enter()


@contextmanager
def _signals() -> Iterator[int]:
    """Handle signals meanwhile; a pipe says which have come."""
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    handlers = {one: signal.signal(one, _wake) for one in _WAKING} | {one: signal.signal(one, _end) for one in _ENDING}
    try:
        yield reads
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(before)
        os.close(reads)
        os.close(writes)


def _wake(number: int, _: object) -> None:
    """The number is in the pipe already."""


def _end(number: int, _: object) -> None:
    for one in _ENDING:
        signal.signal(one, signal.SIG_IGN)
    raise _Ended(number)


def _read(wakeups: int) -> bytes:
    try:
        return os.read(wakeups, 4096)
    except BlockingIOError:
        return b""

"""Poll the watched project through a read-only connection."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING

from fusewire.config.rules import DATABASE, load_rules
from fusewire.engine.breaker import Breaker
from fusewire.scopes.orders import orders_path
from fusewire.util.errors import FusewireError, StoreError
from fusewire.util.files import file_stamp
from fusewire.views.panel import panel
from fusewire.views.trail import Trail

if TYPE_CHECKING:
    from rich.text import Text

    from fusewire.views.panel import Panel
    from fusewire.views.trail import Move

#: Seconds between two looks at whether something was written, and after which time alone has changed enough.
POLL = 0.25
_SECOND = 1.0

#: A panel that takes long to collect is collected less often: so many times as long lies between, if nothing was
#: written, and if something was.
_QUIET, _BUSY = 10, 4


class Source:
    """The current panel of a project, or None and the problem that prevents reading it."""

    def __init__(self, root: str, *, recent: int = 0) -> None:
        self.root = root
        self.panel: Panel | None = None
        self.problem = ""
        self.seen_at = time.time()
        self.moves: deque[Move] = deque(maxlen=recent)
        #: pages made from what was seen, until there is something else to see
        self.drawn: dict[tuple[str, str, int], list[Text]] = {}
        self.trail = Trail(recent)
        self._version: tuple[int, ...] | None = None
        #: when to collect again if nothing is written until then, and if something is
        self._due = (0.0, 0.0)
        self._breaker: Breaker | None = None

    def look(self) -> None:
        """Collect the panel again if anything may have changed since the last time."""
        began = time.monotonic()
        try:
            require_readable(self.root)
            version = (*self.breaker().store.version(), *(file_stamp(orders_path()) or ()))
            if began < self._due[version != self._version]:
                return
            self.moves.extend(self.news())
            self.panel = self.collected()
            self._version, self.problem = version, ""
        except (FusewireError, OSError) as error:
            self._version, self.panel, self.problem = None, None, str(error)
        took = time.monotonic() - began
        self._due = (began + max(_SECOND, _QUIET * took), began + _BUSY * took)
        self.seen_at = time.time()
        self.drawn.clear()

    def news(self) -> list[Move]:
        """The moves since the last time."""
        require_readable(self.root)
        return self.trail.news(self.breaker().store)

    def collected(self) -> Panel:
        """The panel as it is now, by the rules that the project has now."""
        self._breaker = Breaker(self.breaker().store, load_rules(self.root), time.time, self.root)
        return panel(self._breaker)

    def breaker(self) -> Breaker:
        if self._breaker is None:
            self._breaker = Breaker.open(project=self.root, read_only=True)
        return self._breaker

    def close(self) -> None:
        if self._breaker is not None:
            self._breaker.close()


def require_readable(root: str) -> None:
    """Raise if the state is out of reach, which must not look like a project without state."""
    try:
        os.stat(os.path.join(root, DATABASE))
    except FileNotFoundError:
        if not os.path.isdir(root):
            raise StoreError(f"no such folder: {root}") from None
    except OSError as error:
        raise StoreError(f"the state database cannot be read: {error.filename}: {error.strerror}") from error

"""The open pages, the chosen rows and the filter, and what each key changes about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.views.cards import CircuitCard
    from fusewire.views.panel import Panel
    from fusewire.views.session_list import SessionLine

    Rows = Sequence[CircuitCard | SessionLine]

#: Pages with rows of which one is chosen; the others are read.
_LISTS = ("panel", "sessions")

#: What Enter opens.
_INSIDE = {"panel": "circuit", "sessions": "session"}

_PAGES = {"s": "sessions", "l": "loop", "w": "warnings"}

_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1}
_LEAPS = {"pgup": -1, "pgdn": 1, " ": 1}
_FAR = 1 << 30
_ENDS = {"home": -_FAR, "g": -_FAR, "end": _FAR, "G": _FAR}

#: Characters of a filter.
_LONGEST = 200


@dataclass
class Page:
    """One page and the position in it."""

    kind: str
    #: the circuit or the session
    subject: str = ""
    #: the row that is chosen, by its id: rows change their places
    chosen: str = ""
    #: its place when it was last seen; in what is read, the first line that is shown
    place: int = 0
    #: the first row of a list that is shown
    top: int = 0


@dataclass
class WatchView:
    """The pages that are open, one above the other, and which circuits are shown."""

    pages: list[Page] = field(default_factory=lambda: [Page("panel")])
    words: str = ""
    typing: bool = False
    only_open: bool = False
    over: bool = False
    #: what `q` does, as it stands among the keys
    leaving: str = "q quit"
    #: how many rows of the page there is room for
    room: int = 1
    #: the last line of what is read with which a screen can begin
    furthest: int = 0

    @property
    def page(self) -> Page:
        return self.pages[-1]

    def rows(self, panel: Panel | None) -> Rows:
        """The rows of a list that pass the filter."""
        if panel is None:
            return []
        if self.page.kind == "sessions":  # one that waits for a person may be older than those that are listed
            return [*panel.halted, *(one for one in panel.sessions if one.state != "halted")]
        return [one for one in panel.circuits if self.page.kind != "panel" or self._wanted(one)]

    def _wanted(self, circuit: CircuitCard) -> bool:
        if self.only_open and circuit.state != "OPEN":
            return False
        text = " ".join((circuit.state, circuit.id, circuit.title, circuit.reason or "")).casefold()
        return all(word in text for word in self.words.casefold().split())

    def settle(self, rows: Rows) -> int:
        """The place of the chosen row; of its neighbour if it is gone."""
        page = self.page
        ids = [one.id for one in rows]
        place = ids.index(page.chosen) if page.chosen in ids else min(page.place, len(ids) - 1)
        page.place = max(0, place)
        page.chosen = ids[page.place] if ids else ""
        page.top = max(0, min(page.top, page.place, len(ids) - self.room), page.place - self.room + 1)
        return page.place

    def press(self, key: str, panel: Panel | None) -> None:
        if self.typing:
            self._type(key)
        elif key in _STEPS or key in _LEAPS or key in _ENDS:
            self._move(_STEPS.get(key) or _ENDS.get(key) or _LEAPS[key] * max(1, self.room - 1), panel)
        elif key in ("esc", "backspace", "left", "h"):
            self._back()
        elif key in ("enter", "right") and self.page.kind in _LISTS:
            self.settle(self.rows(panel))
            if self.page.chosen:
                self.pages.append(Page(_INSIDE[self.page.kind], self.page.chosen))
        elif key == "q":
            self.over = True
        elif key == "?" and self.page.kind != "help":
            self.pages.append(Page("help"))
        elif key in _PAGES and self.page.kind != _PAGES[key]:
            self.pages = [self.pages[0], Page(_PAGES[key])]
        elif key in ("/", "o", "a"):
            self._choose(key)

    def _choose(self, key: str) -> None:
        """Change which circuits are shown, and go to the panel from any page."""
        del self.pages[1:]
        self.page.top = 0
        if key == "/":
            self.typing = True
        else:
            self.only_open = key == "o"
            self.words = "" if key == "a" else self.words

    def _type(self, key: str) -> None:
        if key in ("enter", "esc"):
            self.typing = False
            self.words = "" if key == "esc" else self.words
        elif key == "backspace":
            self.typing, self.words = bool(self.words), self.words[:-1]
        elif key == "clear":
            self.words = ""
        elif len(key) == 1:
            self.words = (self.words + key)[:_LONGEST]
        elif key in ("up", "down"):
            self.typing = False

    def _back(self) -> None:
        if len(self.pages) > 1:
            self.pages.pop()
        else:
            self.words = ""

    def _move(self, amount: int, panel: Panel | None) -> None:
        page = self.page
        if page.kind not in _LISTS:
            page.place = max(0, min(page.place + amount, self.furthest))
            return
        rows = self.rows(panel)
        page.place = max(0, min(self.settle(rows) + amount, len(rows) - 1))
        page.chosen = rows[page.place].id if rows else ""

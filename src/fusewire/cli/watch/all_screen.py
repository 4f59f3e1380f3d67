"""Everything that a person has on a terminal: a row for each thing that needs an answer, then what runs.

Enter opens the project's own view, on the page that the row is about; leaving that comes back here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from fusewire.cli.watch.all_lines import NOBODY, STATES, left_out, overview_rows, provider_line
from fusewire.cli.watch.frame import Frame
from fusewire.cli.watch.live import ProjectScreen
from fusewire.cli.watch.pages import wrapped
from fusewire.cli.watch.rows import STYLES, draw_table, shown
from fusewire.cli.watch.source import Source
from fusewire.cli.watch.view import Page, WatchView
from fusewire.util.durations import show_time
from fusewire.views.overview_folder import show_age

if TYPE_CHECKING:
    from fusewire.cli.watch.all_lines import OverviewRow
    from fusewire.views.overview_all import Everything, PersonOverview
    from fusewire.views.overview_folder import OverviewRank

_COLORS: dict[OverviewRank, str] = {
    "answer": STYLES["OPEN"],
    "running": STYLES["CLOSED"],
    "waiting": STYLES["HALF_OPEN"],
    "quiet": "dim",
}

#: Widths from which on there is room for a text, and for money.
_WITH_TEXT, _WITH_MONEY = 60, 90

_KEYS = "q quit  ? help  Enter open  / filter  o needs you only  a quiet ones too"
_BACK = "q quit  Esc back  up down PgUp PgDn scroll"
_TYPING = "   Enter keeps it, Esc clears it"

_HELP = """\
Moving
  up down j k      the row above, below
  PgUp PgDn        a screen up, down (also Ctrl-B, Ctrl-F, space)
  Home End g G     the first, the last
  Enter            open the project, on the page that the row is about
  q, Esc           in a project: back to everything

Showing
  /                filter by words, while you type; Enter keeps it, Esc clears it
  o                only what needs you
  a                quiet projects and worktrees, too; again: without them
  q                quit; Ctrl-C too

States
  NEEDS YOU        a run asks, a session is halted, a circuit that only a person ends,
                   or a state that cannot be read
  running          a session was heard of within the hour, or the loop runs
  waiting          something is stopped, and time ends that
  quiet            nothing is stopped, and nothing runs

Nothing is changed from here: the pages of a project show the commands to run."""


class OverviewView(WatchView):
    """Which rows are shown, and which one is chosen."""

    shows_quiet = False

    def rows(self, overview: Any) -> list[Any]:
        found = overview_rows(overview)
        if self.only_open:
            found = [one for one in found if one.rank == "answer"]
        elif not self.shows_quiet and not self.words:
            found = [one for one in found if one.rank != "quiet"]
        return [one for one in found if one.has(self.words)]

    def press(self, key: str, overview: Any) -> None:
        if not self.typing and key in ("s", "l", "w"):
            return  # pages of one project
        if not self.typing and key == "a":
            was_all = self.shows_quiet and not self.only_open and not self.words
            self.shows_quiet = not was_all
        super().press(key, overview)


class OverviewScreen:
    """The list, or the project that was opened from it."""

    def __init__(self, everything: Everything, recent: int) -> None:
        self._everything, self._recent = everything, recent
        self.view = OverviewView()
        self.inside: ProjectScreen | None = None

    @property
    def over(self) -> bool:
        return self.view.over

    def look(self) -> None:
        if self.inside is not None:
            self.inside.look()
        else:
            self._everything.refresh()

    def press(self, key: str) -> None:
        if self.inside is None:
            if key in ("enter", "right") and not self.view.typing and self.view.page.kind == "panel":
                self._open()
            else:
                self.view.press(key, self._everything.overview)
            return
        view = self.inside.view
        leaves = key in ("esc", "backspace", "left", "h") and len(view.pages) == 1 and not view.words
        if not leaves or view.typing:
            self.inside.press(key)
        if (leaves and not view.typing) or view.over:
            self.inside.source.close()
            self.inside = None
            self._everything.refresh()

    def _open(self) -> None:
        rows = self.view.rows(self._everything.overview)
        if not rows:
            return
        row = rows[self.view.settle(rows)]
        pages = [Page("panel"), *([Page(*row.page)] if row.page else [])]
        self.inside = ProjectScreen(Source(row.folder.root, recent=self._recent), WatchView(pages, leaving="q back"))
        self.inside.look()

    def frame(self, width: int, height: int) -> Frame:
        if self.inside is not None:
            return self.inside.frame(width, height)
        return _frame(self.view, self._everything.overview, max(1, width - 1), height)


def _frame(view: OverviewView, overview: PersonOverview, width: int, height: int) -> Frame:
    """The last column stays free; a low terminal leaves out first what is around the rows."""
    top = [_head(overview, width), Text(overview.headline, style=STYLES["OPEN" if overview.needs else "CLOSED"])]
    if view.words and not view.typing:
        top[1].append(f"   filter: {shown(view.words)} (Esc clears it)", style="cyan")
    if view.only_open:
        top[1].append("   needs you only (a shows all)", style="cyan")
    top += wrapped((Text(shown(one), style=STYLES["OPEN"]) for one in overview.orders.lines[:3]), width)
    top += wrapped((Text(provider_line(one), style=STYLES["HALF_OPEN"]) for one in overview.providers), width)
    top += wrapped((Text(shown(one), style=STYLES["HALF_OPEN"]) for one in overview.problems), width)
    rest = left_out(overview)
    foot = [_foot(view)]
    if rest and not view.shows_quiet and view.page.kind == "panel":
        foot.insert(0, Text(rest, style="dim"))
    top, foot = top[: max(1, height // 3)], foot[-max(1, height // 4) :] if height >= 4 else []
    room = max(1, height - len(top) - len(foot))
    middle, place = _help(view, width, room) if view.page.kind == "help" else _list(view, overview, width, room)
    middle = middle[:room] + [Text()] * (room - len(middle))
    cursor = (min(len(top) + place, height - 1), 0)
    if view.typing and foot:
        cursor = (height - 1, min(width - 1, cell_len("/" + view.words)))
    for row in (*top, *foot):
        row.truncate(width, overflow="ellipsis")
    return Frame([*top, *middle, *foot][:height], cursor)


def _head(overview: PersonOverview, width: int) -> Text:
    clock = f"{(show_time(int(time.time())) or '')[11:19]} UTC"
    right = Text.assemble(f"${overview.today_usd:.2f} today   ", (clock, "dim"))
    name = Text.assemble(("FUSEWIRE ", "bold"), "everything")
    name.truncate(max(1, width - len(right) - 2), overflow="ellipsis", pad=True)
    return name + Text("  ") + right


def _foot(view: OverviewView) -> Text:
    if view.typing:
        return Text.assemble("/", shown(view.words) + " " * view.words.endswith(" "), (_TYPING, "dim"))
    return Text(_KEYS if view.page.kind == "panel" else _BACK, style="dim")


def _list(view: OverviewView, overview: PersonOverview, width: int, room: int) -> tuple[list[Text], int]:
    view.room = max(1, room - 1)
    rows = view.rows(overview)
    place, top = view.settle(rows), view.page.top
    if not rows:
        return wrapped([Text(f"  {_nothing(view, overview)}", style="dim")], width), 0
    titles, *lines = _table(rows[top : top + view.room], overview.at, view.page.chosen, width)
    if len(rows) > view.room:
        count = f" {top + 1}-{min(top + view.room, len(rows))} of {len(rows)}"
        titles.rstrip()
        titles.truncate(width - len(count), overflow="ellipsis", pad=True)
        titles.append(count, style="dim")
    return [titles, *lines], 1 + place - top


def _table(rows: list[OverviewRow], now: str, chosen: str, width: int) -> list[Text]:
    """A narrow terminal leaves out the money, then what each is about."""
    has_text, has_money = width >= _WITH_TEXT, width >= _WITH_MONEY
    columns: list[tuple[str, int | None]] = [("STATE", 9), ("PROJECT", min(32, width // 4) if has_text else None)]
    columns += [("TODAY", 8)] * has_money + [("HEARD", 5)] + [("WHAT", None)] * has_text
    cells: dict[str, list[Text | str]] = {}
    for one in rows:
        money = f"${one.folder.today_usd:.2f}" if one.folder.today_usd else ""
        state = Text(STATES[one.rank], style=_COLORS[one.rank])
        heard = show_age(one.folder.heard, now)
        cells[one.id] = [state, shown(one.name), *[money] * has_money, heard, *[shown(one.text)] * has_text]
    return draw_table(columns, cells, chosen, width)


def _nothing(view: OverviewView, overview: PersonOverview) -> str:
    if view.words:
        return f"Nothing fits the filter {shown(view.words)}."
    if view.only_open:
        return "Nothing needs you."
    if not overview.projects:
        return NOBODY
    return "Everything is quiet (a shows it)."


def _help(view: OverviewView, width: int, room: int) -> tuple[list[Text], int]:
    lines = wrapped((Text(line, style="bold" if line.isalpha() else "") for line in _HELP.split("\n")), width)
    view.room, view.furthest = room, max(0, len(lines) - room)
    view.page.place = min(view.page.place, view.furthest)
    return lines[view.page.place :], 0

"""One screen full: head, rows or lines, the last moves, keys. Everything has its place, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from fusewire.cli.watch.pages import read_lines, wrapped
from fusewire.cli.watch.rows import STYLES, circuit_table, money, move_row, session_table, shown
from fusewire.util.durations import counted, show_time

if TYPE_CHECKING:
    from fusewire.cli.watch.source import Source
    from fusewire.cli.watch.view import WatchView

#: Rows of a terminal from which on there is room for the keys and for the head.
_WITH_KEYS, _WITH_HEAD = 4, 5

#: Rows between head and keys from which on there is room for titles and for moves; how many moves there are then.
_WITH_TITLES, _WITH_MOVES = 6, 11
_MOVES = 8

#: Rows of a terminal from which on there is room for a person's orders, and how many of them are shown.
_WITH_ORDERS, _ORDERS = 8, 3

_LISTS: dict[str, Callable[[Any, str, int], list[Text]]] = {"panel": circuit_table, "sessions": session_table}

_KEYS = "? help  Enter open  / filter  o open only  a all  s sessions  l loop  w warnings"
_INSIDE = "? help  Esc back  Enter open"
_BACK = "? help  Esc back  up down PgUp PgDn scroll"
_TYPING = "   Enter keeps it, Esc clears it"


@dataclass
class Frame:
    """What stands on the screen, and where the cursor does: row and column, from 0."""

    rows: list[Text]
    cursor: tuple[int, int]


def frame(view: WatchView, source: Source, width: int, height: int) -> Frame:
    """The screen as it should be now; the last column stays free."""
    width = max(1, width - 1)
    above = [_head(source, width)] * (height >= _WITH_HEAD) + [_headline(view, source), *_orders(source, width, height)]
    below = [_foot(view)] * (height >= _WITH_KEYS)
    room = max(0, height - len(above) - len(below))
    if source.panel is None and view.page.kind != "help":
        middle, place = wrapped([Text(), Text(shown(source.problem))], width), 0
    elif view.page.kind in _LISTS:
        middle, place = _list(view, source, width, room)
    else:
        middle, place = _text(view, source, width, room), 0
    middle = middle[:room] + [Text()] * (room - len(middle))
    cursor = (min(len(above) + place, height - 1), 0)
    if view.typing and below:
        cursor = (height - 1, min(width - 1, cell_len("/" + _typed(view))))
    return Frame([*above, *middle, *below][:height], cursor)


def _head(source: Source, width: int) -> Text:
    """The project, what it costs, what is wrong with it, and a clock that shows that the view is alive."""
    parts = [Text(f"{(show_time(int(source.seen_at)) or '')[11:19]} UTC", style="dim")]
    if source.panel is not None:
        if faults := len(source.panel.warnings):
            parts.insert(0, Text(f"{counted(faults, 'warning')} (w)", style="yellow"))
        parts.insert(0, Text(f"{money(source.panel)} today"))
    while parts and sum(len(part) + 3 for part in parts) > width - 12:
        parts.pop()
    right = Text("   ").join(parts)
    name = Text.assemble(("FUSEWIRE ", "bold"), shown(source.root.rstrip("/").rpartition("/")[2]))
    name.truncate(width - len(right) - 2, overflow="ellipsis", pad=True)
    return name + Text("  ") + right


def _orders(source: Source, width: int, height: int) -> list[Text]:
    """What a person has ordered, where there is room for it below the headline."""
    lines = source.panel.orders.lines[:_ORDERS] if source.panel is not None and height >= _WITH_ORDERS else []
    rows = [Text(shown(line), style=STYLES["OPEN"]) for line in lines]
    for row in rows:
        row.truncate(width, overflow="ellipsis")
    return rows


def _headline(view: WatchView, source: Source) -> Text:
    if source.panel is None:
        return Text("The state cannot be read; it is tried again and again", style=STYLES["OPEN"])
    words = source.panel.headline
    stopped = words.open or "halted" in words.text
    style = STYLES["OPEN" if stopped else "HALF_OPEN" if words.half_open else "CLOSED"]
    line = Text.assemble((words.text, style))
    for one in source.panel.providers:
        line.append(f"   {shown(one.provider)}: {one.state}", style=STYLES[one.state])
    if view.words and not view.typing:
        line.append(f"   filter: {shown(view.words)} (Esc clears it)", style="cyan")
    if view.only_open:
        line.append("   open only (a shows all)", style="cyan")
    return line


def _foot(view: WatchView) -> Text:
    if view.typing:
        return Text.assemble("/", _typed(view), (_TYPING, "dim"))
    if len(view.pages) == 1:
        return Text(f"{view.leaving}  {_KEYS}", style="dim")
    return Text(f"{view.leaving}  {_INSIDE if view.page.kind in _LISTS else _BACK}", style="dim")


def _typed(view: WatchView) -> str:
    """With the space at its end."""
    return shown(view.words) + " " * view.words.endswith(" ")


def _list(view: WatchView, source: Source, width: int, room: int) -> tuple[list[Text], int]:
    """Titles, the rows around the chosen one, the last moves; and at which row of these the chosen one is."""
    moves = _last_moves(source, room) if view.page.kind == "panel" else []
    head = int(room >= _WITH_TITLES)
    view.room = max(1, room - head - len(moves))
    rows = view.rows(source.panel)
    place, top = view.settle(rows), view.page.top
    titles, *lines = _LISTS[view.page.kind](rows[top : top + view.room], view.page.chosen, width)
    lines = lines or [Text(f"  {_nothing(view)}", style="dim")]
    lines += [Text()] * (view.room - len(lines))
    if len(rows) > view.room:  # say which of the rows are visible
        count = f" {top + 1}-{top + view.room} of {len(rows)}"
        titles.rstrip()
        titles.truncate(width - len(count), overflow="ellipsis", pad=True)
        titles.append(count, style="dim")
    return [titles] * head + lines + moves, head + place - top


def _nothing(view: WatchView) -> str:
    if view.page.kind == "sessions":
        return "No session has been heard of yet in this project."
    if view.words:
        return f"Nothing fits the filter {shown(view.words)}."
    if view.only_open:
        return "No circuit is open."
    return "No circuits yet. Constraints are Markdown files in docs/constraints/."


def _last_moves(source: Source, room: int) -> list[Text]:
    """The newest first."""
    count = min(_MOVES, (room - _WITH_MOVES) // 3 + 2)
    if room < _WITH_MOVES:
        return []
    found = [move_row(row) for _, row in list(source.moves)[-count:][::-1]]
    lines = found or [Text("Nothing has moved yet.", style="dim")]
    lines += [Text()] * (count - len(lines))
    return [Text(), Text("  LAST MOVES", style="dim"), *(Text("  ") + line for line in lines)]


def _text(view: WatchView, source: Source, width: int, room: int) -> list[Text]:
    lines = read_lines(source, view.page.kind, view.page.subject, width)
    view.room = max(1, room)
    view.furthest = max(0, len(lines) - view.room)
    view.page.place = min(view.page.place, view.furthest)
    return lines[view.page.place :]

"""Everything that a person has as rows and as sentences: one for each thing that needs an answer, one for what runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.cli.streams import reader_is_gone, say, silence
from fusewire.cli.watch.lines import json_line, print_line
from fusewire.cli.watch.rows import shown, to_second
from fusewire.cli.watch.source import POLL
from fusewire.util.durations import counted, parse_time
from fusewire.util.local_time import local_time
from fusewire.views.models import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.views.overview_all import Everything, OverviewProject, PersonOverview
    from fusewire.views.overview_folder import OverviewFolder, OverviewRank
    from fusewire.views.providers import ProviderLimit

STATES: dict[OverviewRank, str] = {
    "answer": "NEEDS YOU",
    "running": "running",
    "waiting": "waiting",
    "quiet": "quiet",
}


#: What is said where there is nothing to show.
NOBODY = "No agent has been heard of yet. To begin, in a project: fusewire install claude"


@dataclass(frozen=True)
class OverviewRow:
    """One thing about a folder: what it needs, or what runs in it."""

    #: tells it from all others
    id: str
    rank: OverviewRank
    name: str
    text: str
    folder: OverviewFolder
    #: the page of the folder's own view that is about it: its kind and its subject
    page: tuple[str, str] | None = None

    def has(self, words: str) -> bool:
        text = f"{STATES[self.rank]} {self.name} {self.folder.root} {self.text}".casefold()
        return all(word in text for word in words.casefold().split())


def overview_rows(overview: PersonOverview) -> list[OverviewRow]:
    """What needs an answer, then the rest in the order of the overview: worktrees of a project stand together."""
    rows = [row for one in overview.projects for folder in one.folders for row in _rows_of(folder, _name(one, folder))]
    return sorted(rows, key=lambda row: row.rank != "answer")


def _name(project: OverviewProject, folder: OverviewFolder) -> str:
    """A worktree's name beside its project's, where it does not begin with it."""
    is_clear = len(project.folders) == 1 or folder.name.startswith(project.name)
    return folder.name if is_clear else f"{project.name}/{folder.name}"


_PAGES = {"session": "session", "circuit": "circuit", "question": "loop"}


def _rows_of(folder: OverviewFolder, name: str) -> Iterator[OverviewRow]:
    for need in folder.needs:
        page = (_PAGES[need.kind], need.subject) if need.kind in _PAGES else None
        key = f"{folder.root}\0{need.kind}\0{need.subject}"
        text = need.text if need.kind == "state" else f"{need.title}: {need.text}"
        yield OverviewRow(key, "answer", name, text, folder, page)
    if not folder.needs or folder.running or folder.loops:
        rank = "running" if folder.running or folder.loops else folder.rank
        yield OverviewRow(folder.root, rank, name, _what_runs(folder), folder)


def _what_runs(folder: OverviewFolder) -> str:
    running = [f"{one.name} (idle)" if one.idle else one.name for one in folder.sessions if one.state == "running"]
    parts = ["the supervised loop"] * bool(folder.loops) + running[:3]
    if folder.running > 3:
        parts.append(f"and {counted(folder.running - 3, 'session')} more")
    return "; ".join(parts + [f"{one.id} {one.state}" for one in folder.stops[:3]])


# -- lines ------------------------------------------------------------------------------------------------


class OverviewLines:
    """Plain words: everything that is not quiet, then what changes."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._warned: list[str] = []

    def overview(self, overview: PersonOverview) -> None:
        is_first = not self._said
        for text in overview.problems:
            if text not in self._warned:
                say(f"Warning: {shown(text)}")
        self._warned = overview.problems
        lines = _lines(overview)
        when = "" if is_first else f"{to_second(overview.at)} "
        for key, text in lines.items():
            if self._said.get(key) != text:
                print_line(f"{when}{text}")
        for key in self._said.keys() - lines.keys():
            print_line(f"{when}no longer: {self._said[key]}")
        self._said = lines


def _lines(overview: PersonOverview) -> dict[str, str]:
    lines = {"": f"{overview.headline}, ${overview.today_usd:.2f} today"}
    lines |= {text: shown(text) for text in overview.orders.lines}
    lines |= {one.id: provider_line(one) for one in overview.providers}
    rows = [row for row in overview_rows(overview) if row.rank != "quiet"]
    lines |= {row.id: f"{STATES[row.rank]} {shown(row.name)}: {shown(row.text)}" for row in rows}
    rest = left_out(overview) if overview.projects or overview.gone else NOBODY
    return lines | {"\0rest": rest} if rest else lines


def provider_line(limit: ProviderLimit) -> str:
    """A provider that refuses requests, without the time left."""
    until = f", until {local_time(parse_time(limit.resets_at))}" if limit.resets_at else ""
    return f"REFUSED {shown(limit.id)}: {shown(limit.kind)}{until}, met by {shown(limit.agent)}"


def left_out(overview: PersonOverview) -> str:
    """What is not shown, in a line."""
    quiet = sum(one.rank == "quiet" for one in overview.projects)
    parts = [f"{counted(quiet, 'quiet project')}"] if quiet else []
    if gone := len(overview.gone):
        parts.append(f"{counted(gone, 'folder')} no longer there: {shown(', '.join(overview.gone[:3]))}")
    return "; ".join(parts)


class JsonOverview(OverviewLines):
    """All of it as one JSON object a line, whenever something is new."""

    def overview(self, overview: PersonOverview) -> None:
        print_line(json_line("overview", to_json(overview)))


def watch_overview(everything: Everything, lines: OverviewLines, *, once: bool) -> None:
    """Follow it until the reader is gone."""
    seen = None
    try:
        while True:
            overview = everything.refresh()
            if overview is not seen:
                seen = overview
                lines.overview(overview)
            if once or reader_is_gone(POLL):
                return
    except BrokenPipeError:
        silence(1)

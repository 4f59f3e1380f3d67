"""`fusewire watch` in lines, for pipes, logs and terminals that can do no more: what is, then what moves."""

from __future__ import annotations

import json
import select
import sys
from typing import TYPE_CHECKING, Any, Protocol

from fusewire.cli.streams import hand_over, say, silence
from fusewire.cli.watch_view.source import POLL, require_readable
from fusewire.cli.watch_view.words import circuit_line, headline, move_line, shown
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError
from fusewire.views.models import to_json

if TYPE_CHECKING:
    from fusewire.cli.watch_view.source import Source
    from fusewire.views.panel import Panel
    from fusewire.views.trail import Move


class LineFormat(Protocol):
    """How it is told."""

    def panel(self, panel: Panel) -> None: ...

    def move(self, move: Move) -> None: ...

    def lost(self, count: int) -> None: ...

    def problem(self, problem: str) -> None: ...


class WordFormat:
    """In words: the headline, a line for each circuit that is not closed, a line for each move."""

    def panel(self, panel: Panel) -> None:
        for warning in panel.warnings:
            say(f"Warning: {shown(warning)}")
        _print(headline(panel))
        for circuit in panel.circuits:
            if circuit.state != "CLOSED":
                _print(circuit_line(circuit))

    def move(self, move: Move) -> None:
        _print(move_line(move[1]))

    def lost(self, count: int) -> None:
        say(f"Warning: {counted(count, 'move')} came and were forgotten before they could be read")

    def problem(self, problem: str) -> None:
        say(f"Warning: {shown(problem)}; it is tried again and again")


class JsonLines:
    """One JSON object a line; `type` says what it is."""

    def panel(self, panel: Panel) -> None:
        _print(_json("panel", to_json(panel)))

    def move(self, move: Move) -> None:
        from fusewire.views.moves import numbered_move

        _print(_json("move", to_json(numbered_move(*move))))

    def lost(self, count: int) -> None:
        _print(_json("lost", {"count": count}))

    def problem(self, problem: str) -> None:
        _print(_json("problem", {"text": problem}))


def _json(kind: str, fields: dict[str, Any]) -> str:
    return json.dumps({"type": kind, **fields})


def _print(text: str) -> None:
    """Characters that standard output cannot show must not end it."""
    hand_over(text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))


def print_once(source: Source, lines: LineFormat) -> None:
    require_readable(source.root)
    lines.panel(source.collected())


def watch_lines(source: Source, lines: LineFormat) -> None:
    """For ever, or until nobody reads any more."""
    problem: str | None = ""
    try:
        while True:
            problem = _told(source, lines, problem)
            if _nobody_reads():
                return
    except BrokenPipeError:
        silence(1)


def _told(source: Source, lines: LineFormat, problem: str | None) -> str | None:
    """Tell what is new, and everything if it could not be read before; gives what is in the way, None if nothing is."""
    try:
        panel = None if problem is None else source.collected()
        moves = source.news()  # last: what was read once is not read again
    except (FusewireError, OSError) as error:
        if str(error) != problem:
            lines.problem(str(error))
        return str(error)
    if source.trail.lost:
        lines.lost(source.trail.lost)
        source.trail.lost = 0
    for move in moves:
        lines.move(move)
    if panel is not None:
        lines.panel(panel)
    return None


def _nobody_reads() -> bool:
    """Whether the reader has gone (`| head`); takes as long as the pause between two looks."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(POLL * 1000))

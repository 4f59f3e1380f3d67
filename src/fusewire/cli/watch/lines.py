"""`fusewire watch` in lines, for pipes, logs and dumb terminals: the state now, then each move."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from fusewire.cli.streams import hand_over, reader_is_gone, say, silence
from fusewire.cli.watch.rows import circuit_line, headline, move_line, shown
from fusewire.cli.watch.source import POLL, require_readable
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError
from fusewire.views.models import to_json

if TYPE_CHECKING:
    from fusewire.cli.watch.source import Source
    from fusewire.views.panel import Panel
    from fusewire.views.trail import Move


class LineFormat:
    """Plain words: the headline, a line for each circuit that is not closed, a line for each move."""

    def panel(self, panel: Panel) -> None:
        for line in panel.orders.lines:
            print_line(shown(line))
        for warning in panel.warnings:
            say(f"Warning: {shown(warning)}")
        print_line(headline(panel))
        for circuit in panel.circuits:
            if circuit.state != "CLOSED":
                print_line(circuit_line(circuit))

    def move(self, move: Move) -> None:
        print_line(move_line(move[1]))

    def lost(self, count: int) -> None:
        say(f"Warning: {counted(count, 'move')} came and were forgotten before they could be read")

    def problem(self, problem: str) -> None:
        say(f"Warning: {shown(problem)}; it is tried again and again")


class JsonLines(LineFormat):
    """One JSON object a line; `type` says what it is."""

    def panel(self, panel: Panel) -> None:
        print_line(json_line("panel", to_json(panel)))

    def move(self, move: Move) -> None:
        from fusewire.views.moves import numbered_move

        print_line(json_line("move", to_json(numbered_move(*move))))

    def lost(self, count: int) -> None:
        print_line(json_line("lost", {"count": count}))

    def problem(self, problem: str) -> None:
        print_line(json_line("problem", {"text": problem}))


def json_line(kind: str, fields: dict[str, Any]) -> str:
    return json.dumps({"type": kind, **fields})


def print_line(text: str) -> None:
    """Replace characters that standard output cannot encode."""
    hand_over(text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))


def print_once(source: Source, lines: LineFormat) -> None:
    require_readable(source.root)
    lines.panel(source.collected())


def watch_lines(source: Source, lines: LineFormat) -> None:
    """Follow the project until the reader is gone."""
    problem: str | None = ""
    try:
        while True:
            problem = _print_news(source, lines, problem)
            if reader_is_gone(POLL):
                return
    except BrokenPipeError:
        silence(1)


def _print_news(source: Source, lines: LineFormat, problem: str | None) -> str | None:
    """Print what is new, after a problem everything; returns the problem that prevents reading, if any."""
    try:
        panel = None if problem is None else source.collected()
        moves = source.news()  # last: each move is returned only once
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

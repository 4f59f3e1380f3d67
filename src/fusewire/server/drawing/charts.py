"""Draw the three charts of the pages: events over time, amounts per interval, and a growing sum.

Pure: numbers in, a picture out. What a chart shows is also in its description, and on the page in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from fusewire.server.drawing.axes import FOOT, Axis
from fusewire.server.drawing.svg import across_line, box, element, group, mark, picture, upright_line, words
from fusewire.util.durations import number

#: Pixels of one lane: its name, and the marks below.
_LANE = 34
_NAME = 13

#: Marks of one lane that can be told apart; those that would lie on each other become one.
_PLACES = 400

#: Pixels of the charts with heights, and what is kept free above the highest.
_HEIGHT = 150
_HEAD = 18

#: Bars side by side at least: fewer are not drawn wider.
_SLOTS = 10

#: Bars that have room for their numbers.
_NUMBERED = 24


@dataclass(frozen=True)
class Mark:
    """Something at a moment, or from one until another."""

    at: float
    text: str
    until: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class Lane:
    """Things of one kind, in a row with a name."""

    name: str
    kind: str
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Marker:
    """A moment, or an amount, with a name."""

    at: float
    name: str
    kind: str


@dataclass(frozen=True)
class Bar:
    """One amount; `part` of it is drawn otherwise."""

    name: str
    value: float
    text: str
    kind: str = ""
    part: float = field(default=0.0)


def timeline(
    title: str, facts: str, lanes: Sequence[Lane], start: float, end: float, lines: Sequence[Marker] = ()
) -> Markup:
    """Lanes above each other, over the same time."""
    axis = Axis(start, end)
    head = 16 if lines else 0
    bottom = head + _LANE * len(lanes)
    parts = [axis.drawn(bottom)]
    for line in lines:  # first: the names of the lanes stand above them
        across = axis.place(line.at)
        parts += [upright_line(across, head - 4, bottom, f"line {line.kind}"), words(line.name, across, 10, "name")]
    parts += [_lane(lane, axis, head + _LANE * row) for row, lane in enumerate(lanes)]
    return picture(title, facts, bottom + FOOT, *parts)


def _lane(lane: Lane, axis: Axis, top: float) -> Markup:
    parts = [across_line(top + _LANE - 1, "grid"), words(f"{lane.name} ({len(lane.marks)})", 0, top + _NAME, "name")]
    at_once: dict[int, list[Mark]] = {}
    for one in lane.marks:
        across = axis.place(one.at)
        if one.until is None:
            at_once.setdefault(int(across * _PLACES / 100), []).append(one)
        else:
            kind = f"span {one.kind or lane.kind}"
            parts.append(box(across, top + _NAME + 5, axis.place(one.until) - across, 11, kind, one.text))
    for marks in at_once.values():
        more = f" (and {len(marks) - 1} more)" if len(marks) > 1 else ""
        across = min(99.5, axis.place(marks[-1].at))
        kind = f"mark {marks[-1].kind or lane.kind}"
        parts.append(mark(across, top + _NAME + 4, 13, kind, marks[-1].text + more))
    return group("lane", *parts)


def bars(title: str, facts: str, given: Sequence[Bar]) -> Markup:
    """Amounts side by side, those below zero under the line."""
    highest = max([0.0, *(bar.value for bar in given)])
    lowest = min([0.0, *(bar.value for bar in given)])
    foot = _HEAD if lowest < 0 else 4
    scale = (_HEIGHT - _HEAD - foot) / ((highest - lowest) or 1)
    zero = _HEAD + highest * scale
    width = 100 / max(_SLOTS, len(given))
    numbered, every = len(given) <= _NUMBERED, max(1, -(-len(given) // 5))
    parts = [across_line(zero, "zero")]
    for place, bar in enumerate(given):
        left = place * width + width * 0.12
        size = abs(bar.value) * scale
        top = zero - size if bar.value >= 0 else zero
        parts.append(box(left, top, width * 0.76, max(size, 1), f"bar {bar.kind}", bar.text))
        if bar.part:
            parts.append(box(left, zero - bar.part * scale, width * 0.76, bar.part * scale, "bar part", bar.text))
        middle = place * width + width / 2
        if numbered:
            down = top - 4 if bar.value >= 0 else top + size + 13
            parts.append(words(_signed(bar.value, lowest < 0), middle, down, "value", "middle"))
        if numbered or place % every == 0:
            parts.append(words(bar.name, middle, _HEIGHT + 15, "label", "middle" if numbered else None))
    if not numbered:
        parts += [across_line(_HEAD, "grid"), words(number(highest), 0, _HEAD - 4, "name")]
    return picture(title, facts, _HEIGHT + FOOT, *parts)


def _signed(value: float, signs: bool) -> str:
    return f"{'+' if signs and value > 0 else ''}{number(value)}"


def curve(
    title: str, facts: str, points: Sequence[tuple[float, float]], lines: Sequence[Marker], start: float, end: float
) -> Markup:
    """A sum that grows in steps, and the amounts that it must not reach."""
    axis = Axis(start, end)
    highest = max([0.01, *(amount for _, amount in points), *(line.at for line in lines)])
    scale = (_HEIGHT - _HEAD) / highest
    parts = [axis.drawn(_HEIGHT), across_line(_HEIGHT, "zero")]
    for line in lines:
        down = _HEIGHT - line.at * scale
        parts += [across_line(down, f"line {line.kind}"), words(line.name, 0, down - 4, "name")]
    parts.append(_stairs([(axis.place(at), _HEIGHT - amount * scale) for at, amount in points]))
    return picture(title, facts, _HEIGHT + FOOT, *parts)


def _stairs(points: Sequence[tuple[float, float]]) -> Markup:
    """Only a path can be long, and a path knows no percent: it has a canvas of its own that is 100 wide."""
    if not points:
        return Markup("")
    first = points[0]
    path = f"M{first[0]:.2f} {_HEIGHT}V{first[1]:.1f}" + "".join(f"H{x:.2f}V{y:.1f}" for x, y in points[1:]) + "H100"
    line = element("path", d=path, class_="curve", vector_effect="non-scaling-stroke")
    ground = element("path", d=f"{path}V{_HEIGHT}Z", class_="under")
    canvas = {"width": "100%", "viewBox": f"0 0 100 {_HEIGHT}", "preserveAspectRatio": "none"}
    return element("svg", ground, line, height=_HEIGHT, **canvas)

"""Write SVG: every word is escaped, and elements have classes instead of colours.

Positions across are percent and those down are pixels: a picture fits any width, is as high as the page expects, and
its words stay as large as the text around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from fusewire.util.text import visible

if TYPE_CHECKING:
    Value = str | float

#: Width of a mark in pixels, which it has at every width of the page.
MARK = 3


def element(name: str, *children: str, **attributes: Value | None) -> Markup:
    """`element("text", "a < b", x="5%", text_anchor="end")`: the words are escaped, None leaves an attribute out."""
    given = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _shown(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(
        name, given, Markup("").join(escape(visible(child)) for child in children)
    )


def picture(title: str, facts: str, height: int, *parts: Markup) -> Markup:
    """One picture, which a screen reader tells by its title and the facts in it."""
    said = (element("title", title), element("desc", facts))
    return element("svg", *said, *parts, class_="chart", role="img", width="100%", height=height)


def group(kind: str, *parts: Markup) -> Markup:
    return element("g", *parts, class_=kind)


def box(across: float, top: float, width: float, height: float, kind: str, hint: str = "") -> Markup:
    """A bar; `width` is percent, and however small it is, it can be seen."""
    said = (element("title", hint),) if hint else ()
    return element("rect", *said, class_=kind, x=percent(across), y=top, width=percent(max(width, 0.15)), height=height)


def mark(across: float, top: float, height: float, kind: str, hint: str = "") -> Markup:
    """A stroke at one moment."""
    said = (element("title", hint),) if hint else ()
    return element("rect", *said, class_=kind, x=percent(across), y=top, width=MARK, height=height, rx=1)


def words(text: str, across: float, down: float, kind: str = "label", anchor: str | None = None) -> Markup:
    """Text; close to an edge it leans to the inside, so that nothing of it is cut off."""
    leaning = "start" if across < 6 else "end" if across > 94 else "middle"
    return element("text", text, class_=kind, x=percent(across), y=down, text_anchor=anchor or leaning)


def across_line(down: float, kind: str) -> Markup:
    return element("line", class_=kind, x1="0%", x2="100%", y1=down, y2=down)


def upright_line(across: float, top: float, bottom: float, kind: str) -> Markup:
    return element("line", class_=kind, x1=percent(across), x2=percent(across), y1=top, y2=bottom)


def percent(value: float) -> str:
    return f"{_shown(value)}%"


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")

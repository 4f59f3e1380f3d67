"""Format numbers, times and states for templates."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from shlex import quote

from markupsafe import Markup, escape

from fusewire.janitor.report import format_limit, space
from fusewire.util.durations import number, show_duration
from fusewire.util.text import visible

#: A command in a sentence: up to the text that a person fills in, or to the end.
_COMMAND = re.compile(r'\bfusewire .*(?:"\.\.\.")|\bfusewire .*')

#: Characters of a name: what agents call their sessions has less than fifty.
_NAME = 120


def duration(seconds: float | None) -> str:
    return "" if seconds is None else show_duration(round(seconds))


def usd(amount: float | None) -> str:
    return "" if amount is None else f"${amount:,.2f}"


def limit(size: int) -> str:
    """Bytes that are a limit, as somebody has set them: 5000 kilobytes are 5 MB."""
    text = format_limit(size // 1024)
    return f"{text[:-2]} {text[-2:]}"


def step(text: str) -> Markup:
    """What to do, with the command in it as one that can be copied."""
    found = _COMMAND.search(text)
    if found is None:
        return escape(visible(text))
    parts = (text[: found.start()], found[0], text[found.end() :])
    return Markup("{}<code>{}</code>{}").format(*map(visible, parts))


def brief(name: str) -> str:
    """A name that anybody can read; of one that is longer than any honest one its beginning and its end."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 20]}…{name[-19:]}"


def when(moment: str | None) -> str:
    """A time as people read it: `16 Nov 14:32:07`; the whole of it is in the element's title."""
    if not moment:
        return ""
    at = datetime.fromisoformat(moment)
    year = "" if at.year == datetime.now(UTC).year else f" {at.year}"
    return f"{at.day} {at:%b}{year} {at:%H:%M:%S}"


def home(path: str) -> str:
    """A path as people write it, from their home."""
    own = os.path.expanduser("~")
    return f"~{path[len(own) :]}" if len(own) > 1 and path.startswith(f"{own}/") else path


FILTERS = {
    "brief": brief,
    "duration": duration,
    "home": home,
    "limit": limit,
    "number": number,
    "shell": quote,
    "space": space,
    "step": step,
    "usd": usd,
    "when": when,
}

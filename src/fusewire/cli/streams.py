"""Standard output and standard error: what an agent wrote is only text there, and nobody may be reading any more."""

from __future__ import annotations

import os
from typing import Any

import click

from fusewire.util.text import in_line, visible


def tell(*lines: str, err: bool = False, **style: Any) -> None:
    """Lines for a person, each of them one: no text of an agent can begin another."""
    text = "\n".join(map(in_line, lines))
    click.echo(click.style(text, **style) if style else text, err=err, color=color())


def tell_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Text for a person that may have several lines."""
    click.echo(visible(text), err=err, nl=nl, color=color())


def warn(text: object) -> None:
    tell(f"Warning: {text}", err=True, fg="yellow")


def hand_over(data: str | bytes, *, nl: bool = True, color: bool | None = None) -> None:
    """As it is: for programs, and for whoever asked for it as it is."""
    click.echo(data, nl=nl, color=color)


def say(*lines: str) -> None:
    """To the person, if one is there: a terminal that is gone must not end a run."""
    try:
        tell(*lines, err=True)
    except OSError:
        silence(2)


def silence(stream: int) -> None:
    """Nobody can read it; do not complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def color() -> bool | None:
    """None lets click look at the terminal; NO_COLOR wins."""
    return False if os.environ.get("NO_COLOR") else None

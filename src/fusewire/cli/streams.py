"""Standard output and standard error when nobody may be reading them any more."""

from __future__ import annotations

import os

import click


def silence(stream: int) -> None:
    """Nobody can read it; do not complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def color() -> bool | None:
    """None lets click look at the terminal; NO_COLOR wins."""
    return False if os.environ.get("NO_COLOR") else None


def say(text: str) -> None:
    """To the person, if one is there: a terminal that is gone must not end a run."""
    try:
        click.echo(text, err=True, color=color())
    except OSError:
        silence(2)

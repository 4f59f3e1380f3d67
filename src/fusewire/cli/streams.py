"""Print to standard output and standard error: agent-supplied text is escaped, and either may be closed."""

from __future__ import annotations

import os
import select
import sys
from typing import Any

import click

from fusewire.util.text import in_line, visible


def tell(*lines: str, err: bool = False, **style: Any) -> None:
    """Print lines for a person: escaped, and each of them one line, whatever it quotes."""
    if not lines:
        return
    text = "\n".join(map(in_line, lines))
    click.echo(click.style(text, **style) if style else text, err=err, color=color())


def tell_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print escaped text for a person that may have several lines."""
    click.echo(visible(text), err=err, nl=nl, color=color())


def warn(*texts: object) -> None:
    tell(*(f"Warning: {text}" for text in texts), err=True, fg="yellow")


def hand_over(data: str | bytes, *, nl: bool = True, color: bool | None = None) -> None:
    """Print data for programs, unescaped."""
    click.echo(data, nl=nl, color=color)


def progress(text: str) -> None:
    """Show on a terminal how far something has come, in the place of what was shown before; nothing elsewhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"\r\x1b[K{in_line(text)}", nl=False, err=True)


def say(*lines: str) -> None:
    """Print lines on standard error; a terminal that is gone must not end a run."""
    try:
        tell(*lines, err=True)
    except OSError:
        silence(2)


def silence(stream: int) -> None:
    """Discard what goes to a closed stream from now on, so that flushing it at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def reader_is_gone(wait: float) -> bool:
    """Whether the reader of standard output has closed the pipe (`| head`); waits up to `wait` seconds for it."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(wait * 1000))


def color() -> bool | None:
    """None lets click look at the terminal; NO_COLOR wins."""
    return False if os.environ.get("NO_COLOR") else None


def is_interactive() -> bool:
    """Whether a person can be asked: standard input and standard error are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))

"""What a scripted model does, in words that mean the same on every client; each client's module has its own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """One tool call: its kind is one of the functions below."""

    kind: str
    given: tuple[str, ...]


@dataclass(frozen=True)
class Tool:
    """The same call as a client knows it. `raw` is the input of a tool that takes a text, not an object; some tools are
    called with the name of their `namespace`."""

    name: str
    input: dict[str, Any]
    raw: str | None = None
    namespace: str = ""


def shell(command: str) -> Call:
    return Call("shell", (command,))


def background(command: str) -> Call:
    """A command that goes on while the agent does something else (Claude Code only)."""
    return Call("background", (command,))


def read(path: str) -> Call:
    return Call("read", (path,))


def write(path: str, text: str) -> Call:
    """A file with this text, new or not."""
    return Call("write", (path, text))


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit", (path, old, new))


def destroy(path: str, text: str) -> Call:
    """The worst that the client's own file tool can do to a file with this text: delete it, or else empty it."""
    return Call("destroy", (path, text))


def spawn(prompt: str) -> Call:
    """A helper with a prompt of its own; `HELPER-n` in the prompt names the part of the script that it follows."""
    return Call("spawn", (prompt,))


def wait() -> Call:
    """Until the helpers that were spawned are done, where a client does not wait by itself; else nothing at all."""
    return Call("wait", ())

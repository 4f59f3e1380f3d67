"""Format file names that no terminal can show: a line break in them, or bytes that are not UTF-8.

They are written as bash takes them (`$'a\\nb'`), so that a command that we print can be run as it stands. On the hook's
way when it refuses: nothing slow here.
"""

from __future__ import annotations

from fusewire.util.quoting import quoted

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "'": "\\'", "\\": "\\\\"}


def path_shown(path: str) -> str:
    """A path as a message names it: as it is, if that can be read."""
    return path if path.isprintable() else _escaped(path)


def path_word(path: str) -> str:
    """A path as a word of a command."""
    path = f"./{path}" if path.startswith("-") else path  # or it would be an option
    return quoted(path) if path.isprintable() else _escaped(path)


def _escaped(path: str) -> str:
    return "$'" + "".join(_ESCAPES.get(char) or _character(char) for char in path) + "'"


def _character(char: str) -> str:
    if char.isprintable():
        return char
    # octal, and always three digits: a digit that follows is not taken for a part of it
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))

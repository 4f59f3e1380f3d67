"""Read standard input whole, and write standard output and error whole, by their descriptors."""

from __future__ import annotations

import os

from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: More than any agent sends; beyond it nothing is read.
INPUT_LIMIT = 64 * 1024 * 1024


def read_input() -> bytes:
    """All of standard input; of what is too long, more than the limit."""
    parts = []
    size = 0
    while size <= INPUT_LIMIT:
        part = os.read(0, 1 << 20)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def payload_of(raw: bytes) -> Any:
    """The JSON behind it; ValueError if it is none."""
    return loads(raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))


def write_line(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "replace") + b"\n"
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        pass  # the descriptor is closed; the exit code still carries the verdict

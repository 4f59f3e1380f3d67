"""Name paths as the project does, and normalize them."""

from __future__ import annotations

import os

from fusewire.guard.shell.values import UNKNOWN


def in_project(path: str, cwd: str, root: str) -> list[str]:
    """The path relative to the project, as written and with its links resolved: neither may be a way round.

    One outside the project stays absolute.
    """
    path = os.path.join(cwd, os.path.expanduser(path))
    pairs = [(os.path.normpath(path), os.path.normpath(root))]
    try:
        pairs.append((os.path.realpath(path), os.path.realpath(root)))
    except ValueError:
        pass  # no file can have such a name
    names: list[str] = []
    for candidate, base in pairs:
        name = os.path.relpath(candidate, base) if candidate.startswith(base.rstrip(os.sep) + os.sep) else candidate
        if name not in names:
            names.append(name)
    return names


def normal(path: str) -> str:
    """Without `.`, `..` and doubled slashes, as `cd` does it: by the text alone. What is unknown stays in front."""
    if UNKNOWN in path:
        head, _, tail = path.rpartition(UNKNOWN)
        if ".." not in tail.split("/"):
            return (
                head
                + UNKNOWN
                + "/".join(part for at, part in enumerate(tail.split("/")) if part not in ("", ".") or not at)
            )
        return UNKNOWN
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)

"""Compute git's id of a tree as if everything in it were committed, without writing an object.

The same content has the same id, whether it is committed, staged, changed or untracked. Only the folders on the way
to what differs from HEAD are read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

FOLDER = 0o40000
LINK = 0o120000
MODULE = 0o160000

#: path -> (mode, id) of what is there, or None for what is not
Overrides = Mapping[str, tuple[int, str] | None]
ReadTree = Callable[[str], bytes]


def object_id(kind: str, content: bytes, width: int = 40) -> str:
    """The id as git would give it; 64 digits in a repository of SHA-256."""
    digest = hashlib.sha1(usedforsecurity=False) if width == 40 else hashlib.sha256()
    digest.update(f"{kind} {len(content)}\0".encode())
    digest.update(content)
    return digest.hexdigest()


def empty_tree(width: int = 40) -> str:
    return object_id("tree", b"", width)


def overlaid(tree: str | None, overrides: Overrides, read: ReadTree, width: int = 40) -> str:
    """The id of a tree with these in place of what it has."""
    branches: dict[bytes, Any] = {}
    for path, value in sorted(overrides.items()):
        *folders, name = os.fsencode(path).split(b"/")
        at = branches
        for folder in folders:
            if at.get(folder) is None:  # a folder may stand where a file was
                at[folder] = {}
            if not isinstance(at[folder], dict):  # what replaces the whole folder has the say
                break
            at = at[folder]
        else:
            at[name] = value
    return _rebuilt(tree, branches, read, width) or empty_tree(width)


def _rebuilt(tree: str | None, branches: dict[bytes, Any], read: ReadTree, width: int) -> str | None:
    """None if nothing is left: git knows no empty folders."""
    entries = parsed(read(tree), width) if tree else {}
    for name, value in branches.items():
        if isinstance(value, dict):
            mode, at = entries.get(name, (b"", ""))
            below = _rebuilt(at if mode == b"40000" else None, value, read, width)
            value = below and (FOLDER, below)
        if value is not None:
            entries[name] = (b"%o" % value[0], value[1])
        elif not isinstance(branches[name], dict) or entries.get(name, (b"",))[0] == b"40000":
            entries.pop(name, None)
    return object_id("tree", _joined(entries), width) if entries else None


def parsed(content: bytes, width: int) -> dict[bytes, tuple[bytes, str]]:
    """name -> (mode, id). The mode stays as it is written, so that what is not touched keeps its id."""
    entries = {}
    at = 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 1 + width // 2
        entries[name] = (mode, content[end + 1 : at].hex())
    return entries


def _joined(entries: dict[bytes, tuple[bytes, str]]) -> bytes:
    """Git sorts a folder as if its name ended in a slash."""
    rows = sorted((name + b"/" if mode == b"40000" else name, name, mode, at) for name, (mode, at) in entries.items())
    return b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(at)) for _, name, mode, at in rows)


def subtree(tree: str, prefix: str, read: ReadTree, width: int) -> str | None:
    """The id of a folder in a tree; None if it is not there."""
    at: str | None = tree
    for name in filter(None, os.fsencode(prefix).split(b"/")):
        mode, below = parsed(read(at), width).get(name, (b"", "")) if at else (b"", "")
        at = below if mode == b"40000" else None
    return at

"""The manifest's file, and the one question that every call asks of it: is everything as it was recorded?

The file has two parts, each behind its checksum: an index (the signatures of files and folders, the places where
nothing is), and the rest (digests, versions). The question reads the index alone, and costs one `lstat` a file.
"""

from __future__ import annotations

import os
import stat
from marshal import dumps, loads

from fusewire.guard.known_agents import HOME_VARIABLES
from fusewire.util.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.config.rules import Rules

NAME = "manifest.bin"

_MAGIC = b"fusewire guard 2\n"
_HASH = 20
_HEAD = len(_MAGIC) + 8 + 2 * _HASH

#: The version of `marshal` that every Python from 3.11 on reads and writes.
_FORMAT = 4

#: Where agents' settings lie outside of the project.
_HOMES = ("HOME", *HOME_VARIABLES, "XDG_CONFIG_HOME")


def rules_key(rules: Rules) -> str:
    """What the list of protected paths depends on."""
    return repr((rules.guard, rules.tool and rules.tool.get("incidents"), [os.environ.get(name) for name in _HOMES]))


def is_unchanged(folder: str, root: str, key: str) -> bool:
    """Whether every protected file, link and folder has the signature that was recorded, and none was added."""
    try:
        index = unpack(read_file(os.path.join(folder, NAME)), index=True)
        if index["key"] != key or index["busy"]:
            return False
        where = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False
    try:
        look = os.stat
        for name, known in index["files"].items():
            if signature(look(name, dir_fd=where, follow_symlinks=False)) != known:
                return False
        for name, known in index["folders"].items():
            if folder_signature(look(name, dir_fd=where, follow_symlinks=False), bool(known[2])) != known:
                return False
    except (OSError, ValueError):
        return False
    finally:
        os.close(where)
    return not any(map(os.path.lexists, index["absent"]))


def signature(found: os.stat_result) -> tuple[int, ...]:
    """What moves when a file is touched; the change time too, because `touch -r` cannot set it."""
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def folder_signature(found: os.stat_result, listed: bool) -> tuple[int, ...]:
    """What moves when a folder is replaced, and if its content is `listed`, when something is added to it."""
    return found.st_mode, found.st_ino, found.st_mtime_ns if listed and stat.S_ISDIR(found.st_mode) else 0


def pack(index: dict[str, object], rest: dict[str, object]) -> bytes:
    first, second = dumps(index, _FORMAT), dumps(rest, _FORMAT)
    return b"".join((_MAGIC, len(first).to_bytes(8, "big"), _digest(first), _digest(second), first, second))


def unpack(raw: bytes, *, index: bool = False) -> Any:
    """The index, or the rest; ValueError says what is wrong with the file."""
    if not raw.startswith(_MAGIC):
        raise ValueError("it is no manifest of this version")
    at = len(_MAGIC) + 8
    size = int.from_bytes(raw[at - 8 : at], "big")
    content = raw[_HEAD : _HEAD + size] if index else raw[_HEAD + size :]
    known = raw[at : at + _HASH] if index else raw[at + _HASH : _HEAD]
    if _digest(content) != known:
        raise ValueError("its checksum does not match")
    return loads(content)


def _digest(content: bytes) -> bytes:
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]  # the public module loads every kind of hash
    except ImportError:
        from hashlib import sha1
    digest: bytes = sha1(content, usedforsecurity=False).digest()
    return digest

"""Copies of protected files in memory: should the copies on disk be removed together with the files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from fusewire.util.files import read_regular

#: Bytes of one file, and of all together.
_FILE = 1 << 20
_ALL = 32 << 20


class Copies:
    """What the files were when the iteration began; large ones, and those beyond the limit, are only on disk."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, int, int], bytes, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def take(self, paths: Iterable[str]) -> None:
        """Read what has moved since the last time."""
        kept: dict[str, tuple[tuple[int, int, int], bytes, int]] = {}
        size = 0
        for path in paths:
            try:
                facts = os.stat(path, follow_symlinks=False)
                signature = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
                known = self._kept.get(path)
                if facts.st_size > _FILE or size + facts.st_size > _ALL:
                    continue
                same = known is not None and known[0] == signature
                kept[path] = known if same and known else (signature, read_regular(path), facts.st_mode & 0o777)
                size += facts.st_size
            except OSError:
                continue
        self._kept = kept

    def put_back(self, root: str) -> list[str]:
        """Write those that are gone; their paths."""
        restored = []
        for path, (_, content, mode) in self._kept.items():
            if os.path.lexists(path):
                continue
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                    file.write(content)
                restored.append(os.path.relpath(path, root))
            except OSError:
                continue
        return sorted(restored)

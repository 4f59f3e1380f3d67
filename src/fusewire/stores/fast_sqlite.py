"""Load SQLite for the hot path: the C module behind `sqlite3`, without what the public one imports.

The C module imports `functools`, and with it `collections` and five more, for `lru_cache` alone: a quarter of what
a hook does beside starting Python. While it is loaded, a stand-in gives it the C function that is behind that one.
Where anything has another shape, `sqlite3` itself serves: same results, later start.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any


def _load() -> Any:
    import _sqlite3

    return _sqlite3


def _quickly() -> Any:
    from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]

    stand_in: Any = type(sys)("functools")
    stand_in.lru_cache = lambda size: lambda function: _lru_cache_wrapper(function, size, False, tuple)
    sys.modules["functools"] = stand_in
    try:
        module = _load()
        # The module keeps the stand-in's function: it must serve here, not in the middle of somebody's call.
        connection = module.connect(":memory:", cached_statements=2)
        if connection.execute("SELECT 1").fetchone() != (1,) or connection.execute("SELECT 1").fetchone() != (1,):
            raise ImportError("the C functions of sqlite3 have another shape here")
        connection.close()
        return module
    finally:
        del sys.modules["functools"]


__all__ = ["BUSY", "CANNOT_OPEN", "FULL", "IO_ERROR", "LOGS", "READ_ONLY", "code_of", "is_damage", "sqlite3"]

#: SQLite's error codes.
ERROR, BUSY, READ_ONLY, IO_ERROR, CORRUPT, FULL, CANNOT_OPEN, NOT_A_DATABASE = 1, 5, 8, 10, 11, 13, 14, 26
_SHORT_READ = 522

#: What SQLite writes beside a database.
LOGS = ("-wal", "-shm", "-journal")


def code_of(error: Any) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: Any) -> bool:
    """Whether the file may be at fault; our statements are fixed, so one that is refused means lost tables."""
    if code_of(error) in (ERROR, CORRUPT, NOT_A_DATABASE) or getattr(error, "sqlite_errorcode", 0) == _SHORT_READ:
        return True
    return "decode to UTF-8" in str(error)  # Python's own, without a code


if not TYPE_CHECKING:
    try:
        sqlite3 = _load() if "functools" in sys.modules or "_sqlite3" in sys.modules else _quickly()
    except (ImportError, AttributeError, TypeError):
        import sqlite3

"""Store what sessions spent: rows that add up in a project's store, and copies of them in the person's.

A row of a project is a total that only grows, with a number that is higher each time. A copy replaces the one before
it, so that a row that is copied twice, or by two processes, counts once.

All statements of a project's store are such as PostgreSQL understands, too.
"""

from __future__ import annotations

from fusewire.stores.rows import SpendRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from fusewire.stores.fast_sqlite import sqlite3

_KEY = ("source", "session", "at", "branch", "model", "helper", "task")
_SUMS = (
    *("usd", "input", "output", "cache_read", "cache_write", "cache_write_1h", "web_search"),
    *("calls", "starts"),
)
_ALL = (*_KEY, "project", "agent", *_SUMS, "version")
COLUMNS = ", ".join(_ALL)
_MARKS = ", ".join("?" * len(_ALL))

#: What sums may be grouped by, and asked for.
DIMENSIONS = frozenset(("at", "source", "session", "branch", "model", "helper", "task", "project", "agent"))

_GROWN = ", ".join(f"{name} = spent.{name} + excluded.{name}" for name in _SUMS)
ADD = (
    f"INSERT INTO spent ({COLUMNS}) VALUES ({_MARKS[:-1]}(SELECT coalesce(max(version), 0) + 1 FROM spent))"
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {_GROWN}, version = excluded.version"
)
PUT = f"INSERT OR REPLACE INTO spent ({COLUMNS}) VALUES ({_MARKS})"
AFTER = f"SELECT {COLUMNS} FROM spent WHERE version > ? ORDER BY version"
#: The newest number stays, so that none is given twice.
FORGET = "DELETE FROM spent WHERE at < ? AND version <= ? AND version < (SELECT max(version) FROM spent)"


def values_of(row: SpendRow) -> tuple[Any, ...]:
    """In the order of `COLUMNS`."""
    key = (row.source, row.session, row.at, row.branch, row.model, row.helper, row.task)
    return (*key, row.project, row.agent, row.usd, *row.tokens, row.calls, row.starts, row.version)


def row_of(values: Sequence[Any]) -> SpendRow:
    source, session, at, branch, model, helper, task, project, agent, usd, *rest = values
    *tokens, calls, starts, version = rest
    return SpendRow(
        *(session, at, branch, model, helper, task, agent, usd, tuple(tokens), calls, starts),
        *(source, project, version),
    )


def sums_query(by: Sequence[str], since: float, until: float, where: Mapping[str, str]) -> tuple[str, tuple[Any, ...]]:
    """The query of sums by these columns; `where` is what columns must be, or with `not ` in front must not be."""
    _check(by, where)
    tests = "".join(f" AND {name.removeprefix('not ')} {'!=' if ' ' in name else '='} ?" for name in where)
    whole = (f"CAST(coalesce(sum({name}), 0) AS BIGINT)" for name in _SUMS[1:])
    columns = ", ".join((*by, "coalesce(sum(usd), 0.0)", *whole))
    group = f" GROUP BY {', '.join(by)} ORDER BY {', '.join(by)}" if by else ""
    query = f"SELECT {columns} FROM spent WHERE at >= ? AND at < ?{tests}{group}"
    return query, (since, until, *where.values())


def _check(by: Sequence[str], where: Mapping[str, str]) -> None:
    names = [*by, *(name.removeprefix("not ") for name in where)]
    if not DIMENSIONS.issuperset(names):
        raise ValueError(f"no such dimension: {names}")


def fold(connection: sqlite3.Connection, since: int, until: int, at: int, *, session: bool) -> None:
    """Put the rows of a stretch of time into one for each dimension, as if all had been spent `at` a time in it.

    Without `session` they are put together for all sessions; the agent stands in the place of the sub-agent then, so
    that the rows of two agents stay two.
    """
    first, second = ("session", "helper") if session else ("''", "agent")
    rows = connection.execute(
        f"SELECT source, {first}, ?, branch, model, {second}, task, max(project), max(agent),"
        f" {', '.join(f'sum({name})' for name in _SUMS)}, 0 FROM spent WHERE at >= ? AND at < ?"
        f" GROUP BY source, branch, model, task, {'session, helper' if session else 'agent'}",
        (at, since, until),
    ).fetchall()
    connection.execute("DELETE FROM spent WHERE at >= ? AND at < ?", (since, until))
    connection.executemany(PUT, rows)


def group(
    rows: Iterable[SpendRow], by: Sequence[str], since: float, until: float, where: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """The same sums of rows in memory."""
    _check(by, where)
    found: dict[tuple[Any, ...], list[Any]] = {} if by else {(): [0.0] + [0] * 8}
    for row in rows:
        fits = all((getattr(row, name.removeprefix("not ")) == value) != (" " in name) for name, value in where.items())
        if since <= row.at < until and fits:
            sums = found.setdefault(tuple(getattr(row, name) for name in by), [0.0] + [0] * 8)
            for index, value in enumerate((row.usd, *row.tokens, row.calls, row.starts)):
                sums[index] += value
    return [(*key, *sums) for key, sums in sorted(found.items())]

"""The audit trail as text, `audit.jsonl` beside the database: for people, and to rebuild from.

Each line is one move of a circuit with its whole state, appended under the database's write lock just before the
commit. If the database is lost, the last line of every circuit says what it was. (A process that is killed between a
line and its commit leaves a move on file that never was; it matters only if the database is lost too.)
"""

from __future__ import annotations

import os

from fusewire.quickjson import dumps, loads
from fusewire.util.files import open_file, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fusewire.stores.rows import AuditRow

#: Beyond this size the file is written anew with what a rebuild needs and the newest lines.
LIMIT = 256 * 1024
_STEP = LIMIT // 2


def path_of(folder: str) -> str:
    return os.path.join(folder, "audit.jsonl")


def append(folder: str, rows: list[tuple[AuditRow, dict[str, Any] | None]]) -> None:
    lines = "".join(dumps(_line(row, state)) + "\n" for row, state in rows).encode()
    descriptor = open_file(path_of(folder), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # a writer died in the middle of its line
        os.write(descriptor, lines)
    finally:
        os.close(descriptor)
    # Once a step, not at every move: what cannot be shortened must not be written anew again and again.
    grown = size + len(lines)
    if grown > LIMIT and size // _STEP != grown // _STEP:
        _shorten(folder)


def _line(row: AuditRow, state: dict[str, Any] | None) -> dict[str, Any]:
    from fusewire.durations import show_time

    line: dict[str, Any] = {
        "time": show_time(row.at),
        "circuit": row.circuit,
        "from": row.source,
        "to": row.target,
        "cause": row.cause,
        "reason": row.reason,
        "actor": row.actor,
    }
    if state is not None:
        line["state"] = state
    return line


def last_states(folder: str, check: Callable[[object], object] | None = None) -> dict[str, dict[str, Any]]:
    """The state of each circuit at its last move; `check` raises ValueError for what is none."""
    states: dict[str, dict[str, Any]] = {}
    for line in _lines(folder):
        circuit, state = line.get("circuit"), line.get("state")
        if not isinstance(circuit, str):
            continue
        if line.get("to") == "removed":
            states.pop(circuit, None)
        elif isinstance(state, dict):
            try:
                if check is not None:
                    check(state)
            except ValueError:
                continue  # the word before still counts
            states[circuit] = state
    return states


def rows(folder: str) -> list[AuditRow]:
    """The trail as rows, oldest first; lines that are none are left out."""
    from fusewire.durations import parse_time
    from fusewire.stores.rows import AuditRow

    found = []
    for line in _lines(folder):
        fields = [line.get(key) for key in ("circuit", "from", "to", "cause", "reason", "actor")]
        try:
            circuit, source, target, cause, reason, actor = (str(field or "") for field in fields)
            found.append(AuditRow(circuit, parse_time(line["time"]), source, target, cause, reason, actor))
        except (KeyError, ValueError, TypeError):
            continue
    return found


def _lines(folder: str) -> list[dict[str, Any]]:
    try:
        texts = read_file(path_of(folder)).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    lines = []
    for text in texts:
        try:
            line = loads(text)
        except (ValueError, RecursionError):
            continue  # cut off or damaged; the others still count
        if isinstance(line, dict):
            lines.append(line)
    return lines


def _shorten(folder: str) -> None:
    """Keep the newest half, and of the rest the last word on circuits that are not closed."""
    lines = _lines(folder)
    recent = lines[len(lines) // 2 :]
    spoken = {line.get("circuit") for line in recent}
    last = {line.get("circuit"): line for line in lines[: len(lines) // 2]}
    ended = ("closed", "removed")
    open_still = [line for circuit, line in last.items() if circuit not in spoken and line.get("to") not in ended]
    replace_file(path_of(folder), "".join(dumps(line) + "\n" for line in open_still + recent).encode())

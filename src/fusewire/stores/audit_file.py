"""Append the audit trail to `audit.jsonl`: readable, a source to rebuild from, and a second copy of every
halt.

Each line is one move of a circuit with its whole state, or a session that was halted or freed; it is appended under the
database's write lock just before the commit. The database remembers which file it knows and up to where, so that
either notices what the other has lost (see `recovery.agree`).
"""

from __future__ import annotations

import os

from fusewire.util.fast_json import dumps, loads
from fusewire.util.files import open_file, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.stores.rows import AuditRow
    from fusewire.util.fast_json import JsonObject

#: Beyond this size the file is written again with what a rebuild needs and the newest lines.
LIMIT = 256 * 1024
_STEP = LIMIT // 2

#: Bytes of it that are read: many times what it ever grows to.
_READ = 16 << 20

#: The lines of a session are under this name, those of a circuit under its id.
SESSION = "session/"

#: What a line says of something that needs no second copy any more.
_ENDED = ("closed", "removed", "lifted")


class Word:
    """The last usable line on a circuit or a session: when, where in the file, what it became, and its state."""

    __slots__ = ("at", "offset", "state", "to")

    def __init__(self, at: float, offset: int, to: str, state: JsonObject) -> None:
        self.at, self.offset, self.to, self.state = at, offset, to, state


def path_of(folder: str) -> str:
    return os.path.join(folder, "audit.jsonl")


def append(folder: str, rows: list[tuple[AuditRow, JsonObject | None]]) -> None:
    lines = "".join(dumps(_line(row, state)) + "\n" for row, state in rows).encode()
    descriptor = open_file(path_of(folder), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # a writer died in the middle of its line
        if os.write(descriptor, lines) != len(lines):
            os.ftruncate(descriptor, size)
            raise OSError(28, "No space left on device", path_of(folder))
    finally:
        os.close(descriptor)
    # Once a step, not at every move: what cannot be shortened must not be written again at each of them.
    grown = size + len(lines)
    if grown > LIMIT and size // _STEP != grown // _STEP:
        _shorten(folder)


def _line(row: AuditRow, state: JsonObject | None) -> JsonObject:
    from fusewire.util.durations import show_time

    line: JsonObject = {
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


def last_words(folder: str, check: Callable[[object], object] | None = None) -> dict[str, Word]:
    """The last word on every circuit and session; `check` raises ValueError for what is no circuit's state."""
    words: dict[str, Word] = {}
    for offset, line in _lines(folder):
        name, to, state = line.get("circuit"), line.get("to"), line.get("state")
        if not isinstance(name, str) or not isinstance(to, str):
            continue
        if to not in ("removed", "lifted"):
            if not isinstance(state, dict):
                continue  # a step on the way, or an act that changed nothing
            try:
                if check is not None and not name.startswith(SESSION):
                    check(state)
            except ValueError:
                continue  # the word before still counts
        words[name] = Word(_time(line), offset, to, state if isinstance(state, dict) else {})
    return words


def last_states(folder: str, check: Callable[[object], object] | None = None) -> dict[str, JsonObject]:
    """The state of each circuit at its last move."""
    words = last_words(folder, check).items()
    return {name: word.state for name, word in words if word.to != "removed" and not name.startswith(SESSION)}


def halt_of(folder: str, session: str) -> JsonObject | None:
    """The halt of a session, unless it was lifted."""
    try:
        if dumps(SESSION + session).encode() not in read_file(path_of(folder), _READ):
            return None  # as good as always: nothing need be parsed
    except OSError:
        return None
    word = last_words(folder).get(SESSION + session)
    return word.state if word is not None and word.to == "halted" else None


def rows(folder: str) -> list[AuditRow]:
    """The moves of circuits, oldest first; lines that are none are left out."""
    from fusewire.stores.rows import AuditRow
    from fusewire.util.durations import parse_time

    found = []
    for _, line in _lines(folder):
        fields = [line.get(key) for key in ("circuit", "from", "to", "cause", "reason", "actor")]
        try:
            circuit, source, target, cause, reason, actor = (str(field or "") for field in fields)
            if not circuit.startswith(SESSION):
                found.append(AuditRow(circuit, parse_time(line["time"]), source, target, cause, reason, actor))
        except (KeyError, ValueError, TypeError, OverflowError):
            continue
    return found


def _time(line: JsonObject) -> float:
    from fusewire.util.durations import parse_time

    try:
        return parse_time(line["time"])
    except (KeyError, ValueError, TypeError, OverflowError):
        return 0.0


def _lines(folder: str) -> list[tuple[int, JsonObject]]:
    """Each line that can be read, and where it begins."""
    try:
        content = read_file(path_of(folder), _READ)
    except OSError:
        return []
    lines, offset = [], 0
    for raw in content.splitlines(keepends=True):
        try:
            line = loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            line = None  # cut off or damaged; the others still count
        if isinstance(line, dict):
            lines.append((offset, line))
        offset += len(raw)
    return lines


def _shorten(folder: str) -> None:
    """Keep the newest half, and of the rest the last word on open circuits and halted sessions."""
    lines = _lines(folder)
    recent = lines[len(lines) // 2][0]
    still = {word.offset for word in last_words(folder).values() if word.to not in _ENDED}
    kept = [dumps(line) + "\n" for offset, line in lines if offset >= recent or offset in still]
    replace_file(path_of(folder), "".join(kept).encode())

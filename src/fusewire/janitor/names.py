"""Make and parse the names of the files that the janitor manages. A file with any other name is never touched.

    performance_telemetry.jsonl                                       the live file
    performance_telemetry.20261115T101112-123456Z.jsonl.rotating      set aside, perhaps still written to
    performance_telemetry.20261115T101112-123456Z.jsonl.gz            a rotation
    session_ID_state.json, session_ID_state.json.pruning              a session's state, and one that is being pruned
    session_archives/2026-11-15/ID_state.json.gz                      a session's archive

A name holds all that the next run needs if this one is killed.
"""

from __future__ import annotations

from fusewire.core.events import Noun
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ROTATING = ".rotating"
PRUNING = ".pruning"
ARCHIVED = ".gz"

#: The file that is being written. One name is enough, because one janitor at a time works in a folder.
TEMPORARY = ".fusewire-janitor.tmp"

SESSION_ARCHIVES = "session_archives"

_MICRO = 1_000_000


class Rotation(Noun):
    """A parsed rotation name: the live file's name, the time in microseconds, and whether it is compressed."""

    __slots__ = ("live", "micros", "packed")

    live: str
    micros: int
    packed: bool

    def __init__(self, live: str, micros: int, packed: bool) -> None:
        for name, value in zip(self.__slots__, (live, micros, packed), strict=True):
            object.__setattr__(self, name, value)


def rotation_name(live: str, micros: int, suffix: str) -> str:
    """Build a name with a UTC time of fixed length, so that names sort by time."""
    from datetime import UTC, datetime

    stem, _, extension = live.rpartition(".")
    seconds, rest = divmod(micros, _MICRO)
    return f"{stem}.{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}-{rest:06}Z.{extension}{suffix}"


def parse_rotation(name: str) -> Rotation | None:
    """Parse the name of a rotation; None for any other name."""
    suffix = next((one for one in (ARCHIVED, ROTATING) if name.endswith(one)), None)
    if suffix is None:
        return None
    rest, _, extension = name.removesuffix(suffix).rpartition(".")
    stem, _, stamp = rest.rpartition(".")
    if not stem or extension not in ("jsonl", "log") or stamp >= "9999":  # there is no year after that one
        return None
    from datetime import datetime

    try:
        micros = int(datetime.fromisoformat(f"{stamp[:15]}+00:00").timestamp()) * _MICRO + int(stamp[16:22])
    except ValueError:
        return None
    live = f"{stem}.{extension}"
    return Rotation(live, micros, suffix == ARCHIVED) if rotation_name(live, micros, suffix) == name else None


def next_moment(now: float, live: str, names: Iterable[str]) -> int:
    """Return a time after every rotation of a file, also within one second or after the clock was set back."""
    rotations = (parse_rotation(name) for name in names)
    last = max((one.micros for one in rotations if one is not None and one.live == live), default=-1)
    return max(int(now * _MICRO), last + 1)


def is_telemetry(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a file may be rotated: JSON lines, and a name that the settings list."""
    return name.endswith(".jsonl") and len(name) > 6 and any(matches(name, pattern) for pattern in patterns)


def is_aside(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a rotation has set a file aside and not yet compressed it."""
    known = parse_rotation(name)
    return known is not None and not known.packed and is_telemetry(known.live, patterns)


def session_of(name: str, suffix: str = "") -> str:
    """Return the id of the session whose state this is; empty for any other file."""
    head, tail = "session_", f"_state.json{suffix}"
    fits = name.startswith(head) and name.endswith(tail)
    return name[len(head) : -len(tail)] if fits and len(name) > len(head) + len(tail) else ""


def is_session_archive(parts: tuple[str, ...]) -> bool:
    """Tell whether a path below the memory folder is `session_archives/DATE/ID_state[.NUMBER].json.gz`."""
    if len(parts) != 3 or parts[0] != SESSION_ARCHIVES or not _is_date(parts[1]):
        return False
    head, marker, number = parts[2].removesuffix(".json.gz").rpartition("_state")
    numbered = not number or (number[0] == "." and number[1:].isdigit())
    return bool(marker and head and numbered) and parts[2].endswith(".json.gz")


def _is_date(text: str) -> bool:
    return len(text) == 10 and all(char.isdigit() if at not in (4, 7) else char == "-" for at, char in enumerate(text))

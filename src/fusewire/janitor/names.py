"""Make and parse the names of the files that the janitor manages. A file with any other name is never touched.

    performance_telemetry.jsonl                                       the live file
    performance_telemetry.20261115T101112-123456Z.jsonl.rotating      set aside, perhaps still written to
    performance_telemetry.20261115T101112-123456Z.jsonl.gz            a rotation
    session_ID_state.json                                             a session's state
    session_ID_state.json.pruning                                     one that version 0.1 had set aside
    session_archives/2026-11-15/ID_state.json.gz                      a session's archive

A name holds all that the next run needs if this one is killed.
"""

from __future__ import annotations

from fusewire.util.globs import literal, matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROTATING = ".rotating"
PRUNING = ".pruning"
ARCHIVED = ".gz"

#: The file that is being written. One name is enough, because one janitor at a time works in a folder.
TEMPORARY = ".fusewire-janitor.tmp"

_MICRO = 1_000_000

#: The end of 2099.
_LATEST = 4_102_444_799


#: Patterns of the names that rotations have, for git.
_ROTATIONS = (f".[0-9]*T[0-9]*Z.jsonl{ARCHIVED}", f".[0-9]*T[0-9]*Z.jsonl{ROTATING}")

#: What a cleanup leaves in a memory folder, likewise.
LEFT_BEHIND = (*(f"*{one}" for one in _ROTATIONS), "session_archives/", TEMPORARY)


def written_beside(live: str) -> list[str]:
    """Patterns for git of a log of ours and its rotations."""
    stem = literal(live.removesuffix(".jsonl"))
    return [literal(live), *(f"{stem}{one}" for one in _ROTATIONS)]


class Rotation:
    """A parsed rotation name: the live file's name, the time in microseconds, and whether it is compressed."""

    __slots__ = ("live", "micros", "packed")

    def __init__(self, live: str, micros: int, packed: bool) -> None:
        self.live = live
        self.micros = micros
        self.packed = packed


def rotation_name(live: str, micros: int, suffix: str) -> str:
    """Build a name with a UTC time of fixed length, so that names sort by time."""
    from datetime import UTC, datetime

    stem, _, extension = live.rpartition(".")
    seconds, rest = divmod(micros, _MICRO)
    return f"{stem}.{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}-{rest:06}Z.{extension}{suffix}"


def parse_rotation(name: str) -> Rotation | None:
    """Parse the name of a rotation; None for any other name."""
    if not name.endswith((ARCHIVED, ROTATING)):
        return None
    import re
    from datetime import UTC, datetime

    found = re.fullmatch(r"(?s)(.+)\.(\d{8}T\d{6}-\d{6})Z\.(jsonl|log)\.(gz|rotating)", name, re.ASCII)
    if found is None or found[2] >= "9999":  # there is no year after that one
        return None
    try:
        at = datetime.strptime(found[2], "%Y%m%dT%H%M%S-%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    micros = int(at.replace(microsecond=0).timestamp()) * _MICRO + at.microsecond
    return Rotation(f"{found[1]}.{found[3]}", micros, name.endswith(ARCHIVED))


def next_moment(now: float, live: str, names: Iterable[str]) -> int:
    """Return a time after every rotation of a file, also within one second or after the clock was set back."""
    rotations = (parse_rotation(name) for name in names)
    last = max((one.micros for one in rotations if one is not None and one.live == live), default=-1)
    return max(int(now * _MICRO), last + 1)


def is_telemetry(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a file may be rotated: JSON lines, and a name that the settings list."""
    return name.endswith(".jsonl") and len(name) > 6 and any(matches(name, pattern) for pattern in patterns)


def rotation_aside(name: str) -> Rotation | None:
    """Parse the name of a file that was set aside for rotation and is not yet compressed; None for any other name."""
    return parse_rotation(name) if name.endswith(ROTATING) else None


def session_of(name: str) -> str:
    """Return the id of the session whose state this is; empty for any other file."""
    name = name.removesuffix(PRUNING)
    head, tail = "session_", "_state.json"
    fits = name.startswith(head) and name.endswith(tail)
    return name[len(head) : -len(tail)] if fits and len(name) > len(head) + len(tail) else ""


def session_archives(name: str, changed: float) -> tuple[tuple[str, str], Iterator[str]]:
    """Return the folders of a state's archive, below the memory folder, and the names that it may get there.

    The day is that of the state's last change, so that an interrupted run finds the archive again.
    """
    from datetime import UTC, datetime
    from itertools import count

    day = f"{datetime.fromtimestamp(min(max(changed, 0), _LATEST), UTC):%Y-%m-%d}"  # a file's time can be anything
    stem = f"{session_of(name)}_state"
    return ("session_archives", day), (f"{stem}{'' if at == 1 else f'.{at}'}.json.gz" for at in count(1))

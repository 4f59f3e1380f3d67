"""Names of the files that the janitor knows. What has none of them is nobody's to touch.

    performance_telemetry.jsonl                                       grows
    performance_telemetry.20261115T101112-123456Z.jsonl.rotating      set aside, perhaps still written to
    performance_telemetry.20261115T101112-123456Z.jsonl.gz            a rotation
    session_ID_state.json, session_ID_state.json.pruning              a session's state, and one on its way out
    session_archives/2026-11-15/ID_state.json.gz                      a session's archive

A name says all that the next run has to know if this one is killed.
"""

from __future__ import annotations

from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ROTATING = ".rotating"
PRUNING = ".pruning"
ARCHIVED = ".gz"

#: What is being written. One name is enough, because only one janitor is at work in a folder.
TEMPORARY = ".fusewire-janitor.tmp"

SESSION_ARCHIVES = "session_archives"

#: The seed's configuration lies in the memory folder, too: known, and never touched.
CONFIGURATION = "circuit_breaker_config.json"

_MICRO = 1_000_000
_STAMP = "00000000T000000-000000Z"


class Rotation:
    """What a name says about a rotation: of which file, when, and whether it is packed."""

    __slots__ = ("extension", "live", "micros", "packed", "stem")

    def __init__(self, stem: str, micros: int, extension: str, packed: bool) -> None:
        self.stem = stem
        self.micros = micros
        self.extension = extension
        self.packed = packed
        #: the name of the file that grows
        self.live = f"{stem}.{extension}"


def stamp(micros: int) -> str:
    """A moment in UTC, of one length, so that names sort as moments do."""
    from datetime import UTC, datetime

    seconds, rest = divmod(micros, _MICRO)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}-{rest:06}Z"


def rotation_name(live: str, micros: int, suffix: str) -> str:
    stem, _, extension = live.rpartition(".")
    return f"{stem}.{stamp(micros)}.{extension}{suffix}"


def rotation(name: str) -> Rotation | None:
    """What a rotation's name says; None if it is no such name."""
    packed = name.endswith(ARCHIVED)
    if not packed and not name.endswith(ROTATING):
        return None
    rest, _, extension = name.removesuffix(ARCHIVED if packed else ROTATING).rpartition(".")
    stem, _, moment = rest.rpartition(".")
    micros = _moment(moment)
    if not stem or extension not in ("jsonl", "log") or micros is None:
        return None
    return Rotation(stem, micros, extension, packed)


def _moment(text: str) -> int | None:
    if len(text) != len(_STAMP) or not text.isascii():
        return None
    if any(char != mark if mark != "0" else not char.isdigit() for char, mark in zip(text, _STAMP, strict=True)):
        return None
    from datetime import datetime

    if text[:4] == "9999":
        return None  # there is no room behind it for a later one
    try:
        moment = datetime.fromisoformat(f"{text[:15]}+00:00")
    except ValueError:
        return None
    return round(moment.timestamp()) * _MICRO + int(text[16:22])


def next_moment(now: float, live: str, names: Iterable[str]) -> int:
    """Later than every rotation that this file has: also within one second, also after the clock was set back."""
    found = (rotation(name) for name in names)
    last = max((one.micros for one in found if one is not None and one.live == live), default=-1)
    return max(int(now * _MICRO), last + 1)


def is_telemetry(name: str, patterns: Iterable[str]) -> bool:
    """Whether a file may be rotated: JSON lines, and a name that the settings have."""
    return name.endswith(".jsonl") and len(name) > 6 and any(matches(name, pattern) for pattern in patterns)


def session_of(name: str, suffix: str = "") -> str:
    """The session whose state this is; empty if it is none."""
    head, tail = "session_", f"_state.json{suffix}"
    fits = name.startswith(head) and name.endswith(tail)
    return name[len(head) : -len(tail)] if fits and len(name) > len(head) + len(tail) else ""


def session_state(session: str, suffix: str = "") -> str:
    return f"session_{session}_state.json{suffix}"


def session_archive(session: str, number: int = 1) -> str:
    """A second archive of one session on one day has a number: what is there is not overwritten."""
    return f"{session}_state.json.gz" if number == 1 else f"{session}_state.{number}.json.gz"


def is_session_archive(parts: tuple[str, ...]) -> bool:
    if len(parts) != 3 or parts[0] != SESSION_ARCHIVES or not is_date(parts[1]):
        return False
    head, found, number = parts[2].removesuffix(".json.gz").rpartition("_state")
    numbered = not number or (number[0] == "." and number[1:].isdigit())
    return bool(found and head and numbered) and parts[2].endswith(".json.gz")


def is_date(text: str) -> bool:
    return len(text) == 10 and all(char.isdigit() if at not in (4, 7) else char == "-" for at, char in enumerate(text))

"""The log of incidents read back: what happened lately. However long the log is, only its end is looked at."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from typing import TYPE_CHECKING

from fusewire.janitor.names import parse_rotation
from fusewire.util.durations import parse_time
from fusewire.util.fast_json import loads
from fusewire.util.files import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.util.fast_json import JsonObject

#: Bytes that are read of all files together, and the most that one packed file may become.
_BYTES = 1 << 20
_UNPACKED = 8 << 20


def recent(root: str, path: str, since: float) -> list[JsonObject]:
    """Incidents since a moment, the oldest first; what cannot be read is left out, as the log is not the state."""
    place = os.path.join(root, os.path.expanduser(path))
    found: list[tuple[float, JsonObject]] = []
    left = _BYTES
    for file in _files(place, since):
        try:
            data = _end_of(file, left)
        except (OSError, zlib.error):
            continue
        left -= len(data)
        found += [(at, incident) for at, incident in _incidents(data) if at > since]
        if left <= 0:
            break
    return [incident for _, incident in sorted(found, key=lambda item: item[0])]


def summary(incidents: list[JsonObject]) -> JsonObject:
    """How many of each kind; trips by their breaker, too."""
    kinds = Counter(incident.get("type") for incident in incidents)
    trips = Counter(str(one.get("breaker") or "unknown") for one in incidents if one.get("type") == "circuit_trip")
    return {
        "circuit_trips": kinds["circuit_trip"],
        "by_breaker": dict(trips.most_common()),
        "memory_cleanups": kinds["memory_cleanup"],
        "resource_exhaustions": kinds["resource_limit"],
    }


def last_trips(incidents: list[JsonObject]) -> dict[str, JsonObject]:
    """The newest trip of each circuit."""
    return {str(one.get("circuit")): one for one in incidents if one.get("type") == "circuit_trip"}


def _files(place: str, since: float) -> Iterator[str]:
    """The log, then its rotations that were made since then, the newest first."""
    yield place
    folder, live = os.path.split(place)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    rotations = [(one.micros, name) for name in names if (one := parse_rotation(name)) is not None and one.live == live]
    for micros, name in sorted(rotations, reverse=True):
        if micros / 1e6 > since:
            yield os.path.join(folder, name)


def _end_of(path: str, most: int) -> bytes:
    """The last lines of a file, whole ones."""
    with open(open_file(path), "rb") as file:
        if path.endswith(".gz"):
            data = zlib.decompressobj(wbits=31).decompress(file.read(most), _UNPACKED)
        else:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most - 1))
            data = file.read(most + 1)
    return data if len(data) <= most else data[-most:].partition(b"\n")[2]


def _incidents(data: bytes) -> Iterator[tuple[float, JsonObject]]:
    for line in data.decode("utf-8", "replace").split("\n"):
        try:
            incident = loads(line) if line.strip() else None
            if isinstance(incident, dict):
                yield parse_time(str(incident.get("timestamp"))), incident
        except ValueError:  # a line that was cut, or somebody else's
            continue

"""Write the log of incidents that the seed asks for, and read its end back.

It has one JSON line for each trip, each limit reached, each cleanup. It is not the state: what cannot be written or
read is left out.
"""

from __future__ import annotations

import os
import zlib

from fusewire.util.durations import parse_time, show_time
from fusewire.util.fast_json import dumps, loads
from fusewire.util.files import make_folder, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.util.fast_json import JsonObject

#: Bytes that are read of all files together, and the most that one packed file may become.
_BYTES = 1 << 20
_UNPACKED = 8 << 20


def write(root: str, path: str, incidents: list[JsonObject], now: float) -> None:
    """Append; each line is one write, so that parallel processes do not mix theirs. The store has it all as well, so
    that a log that cannot be written stops nobody."""
    try:
        place = os.path.join(root, os.path.expanduser(path))
        folder = os.path.relpath(os.path.dirname(place), root)
        made = not os.path.lexists(os.path.dirname(place))
        if folder.split("/")[0] not in ("..", "."):
            make_folder(root, folder)
        if folder.split("/")[0] != ".." and not os.path.lexists(place):
            from fusewire.janitor.names import written_beside
            from fusewire.util.gitexclude import hide

            hide(os.path.dirname(place), written_beside(os.path.basename(place)), made=made)
        handle = open_file(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            for incident in incidents:
                line = dumps({"timestamp": show_time(now), **incident}) + "\n"
                os.write(handle, line.encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except OSError:
        pass


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
    from collections import Counter

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
    from fusewire.janitor.names import parse_rotation

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

"""The log of incidents that the seed asks for: one JSON line for each trip, each limit reached, each cleanup."""

from __future__ import annotations

import os

from fusewire.util.durations import show_time
from fusewire.util.fast_json import dumps
from fusewire.util.files import make_folder, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.util.fast_json import JsonObject


def write(root: str, path: str, incidents: list[JsonObject], now: float) -> None:
    """Append; each line is one write, so that parallel processes do not mix theirs. The store has it all as well, so
    that a log that cannot be written stops nobody."""
    try:
        place = os.path.join(root, os.path.expanduser(path))
        folder = os.path.relpath(os.path.dirname(place), root)
        if folder.split("/")[0] not in ("..", "."):
            make_folder(root, folder)
        handle = open_file(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            for incident in incidents:
                line = dumps({"timestamp": show_time(now), **incident}) + "\n"
                os.write(handle, line.encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except OSError:
        pass

"""Pack old transcripts and logs in other folders. Off unless a person names them, and listed before it is done.

Old `*.jsonl` and `*.log` files that no process writes to are packed beside themselves; nothing is ever removed there.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from fusewire.config.rules import STATE_FOLDER
from fusewire.janitor import files
from fusewire.janitor.archive import Aside, bytes_saved, set_aside, store
from fusewire.janitor.limits import why_untouchable
from fusewire.janitor.names import TEMPORARY, rotation_aside
from fusewire.janitor.report import Cleanup
from fusewire.util.durations import show_duration, show_time
from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown
from fusewire.util.files import FolderLock, make_folder, read_file, replace_file

if TYPE_CHECKING:
    from fusewire.janitor.limits import Limits

_EXTENSIONS = (".jsonl", ".log")

#: Never an agent's logs.
_SKIPPED = frozenset((".git", STATE_FOLDER))


def clean_others(root: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    """Clean each configured folder; the first run for a folder only lists what the next one will do."""
    memory = files.resolve(root, limits.folder)
    # the memory folder is among them if it is outside the project
    paths = {path: name for name in limits.other_folders if (path := files.resolve(root, name)) != memory}
    seen = _read_seen(root)
    for path, name in paths.items():
        try:
            if not _check(root, path, name):
                continue
            if cleanup.dry_run or path in seen:
                with FolderLock(path, wait=0):
                    _clean(path, name, memory, limits, cleanup, now)
                continue
            seen[path] = show_time(now)
            # what is only listed does not count in the report of a run that acts
            planned = Cleanup(dry_run=True)
            _clean(path, name, memory, limits, planned, now)
            cleanup.did(f"{name}: seen for the first time, so this is only what the next run will do")
            cleanup.actions += planned.actions
            cleanup.problems += planned.problems
        except FusewireError as error:
            cleanup.left(str(error))
        except BlockingIOError:
            cleanup.left(f"{path_shown(name)}: another janitor is at work there")
        except OSError as error:
            cleanup.failed(path_shown(name), error)
    if not cleanup.dry_run:
        _write_seen(root, {path: at for path, at in seen.items() if path in paths}, cleanup)


def _check(root: str, path: str, name: str) -> bool:
    """Tell whether a folder exists; FusewireError if it may not be cleaned."""
    real = os.path.realpath(path)
    if f"{root}/".startswith(f"{real.rstrip('/')}/") or real == os.path.realpath(os.path.expanduser("~")):
        allowed = "a folder of logs, not one around the project, nor a whole home"
        raise FusewireError(f"memory_limits.other_folders: {name!r} is refused; allowed: {allowed}")
    return files.check_folder(path, name)


def _clean(path: str, shown: str, memory: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    def failed(error: OSError) -> None:
        cleanup.failed(path_shown(error.filename), error)

    for folder, below, names in os.walk(path, onerror=failed):
        below[:] = [name for name in below if name not in _SKIPPED and os.path.join(folder, name) != memory]
        if not cleanup.dry_run:
            files.remove(os.path.join(folder, TEMPORARY))
        for name in names:
            try:
                _pack_old(folder, name, shown + folder[len(path) :], limits, cleanup, now)
            except FileNotFoundError:
                continue  # removed meanwhile
            except OSError as error:
                cleanup.failed(path_shown(os.path.join(folder, name)), error)


def _pack_old(folder: str, name: str, folder_shown: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    path = os.path.join(folder, name)
    known = rotation_aside(name)  # of an interrupted run
    shown = path_shown(os.path.join(folder_shown, known.live if known else name))
    facts = os.lstat(path)
    if known:
        if cleanup.dry_run or (files.is_same(os.path.join(folder, known.live), path) and why_untouchable(facts)):
            return
        aside = Aside(folder, known.live, known.micros)
    elif (
        not name.endswith(_EXTENSIONS)
        or name.startswith(".")
        or why_untouchable(facts)
        or not facts.st_size
        or now - facts.st_mtime <= limits.telemetry_max_age_days
        or files.has_writer(path, now)
    ):
        return
    elif cleanup.dry_run:
        cleanup.files_rotated += 1
        cleanup.did(
            f"would pack {shown} (older than {show_duration(limits.telemetry_max_age_days)})", bytes_saved(path)
        )
        return
    else:
        aside = set_aside(folder, name, now)
    state = store(aside.path, aside.archives, cleanup, now)
    if state in ("held", "failed"):
        back = files.put_back(aside.path, aside.live)
        if state == "held" and not back:
            cleanup.left(f"{shown} is open in another process: left for a later run")
    elif state != "gone":
        cleanup.files_rotated += 1
        cleanup.did(f"packed {shown} -> {path_shown(os.path.join(folder_shown, os.path.basename(state)))}")


# -- folders that were listed -----------------------------------------------------------------------------


def _read_seen(root: str) -> dict[str, object]:
    try:
        seen = json.loads(read_file(_file(root)))["shown"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # then it is listed again
    return seen if isinstance(seen, dict) else {}


def _write_seen(root: str, seen: dict[str, object], cleanup: Cleanup) -> None:
    try:
        make_folder(root, STATE_FOLDER)
        replace_file(_file(root), json.dumps({"shown": seen}, indent=2).encode())
    except OSError as error:
        cleanup.failed("the folders that were listed cannot be saved", error)


def _file(root: str) -> str:
    return os.path.join(root, STATE_FOLDER, "janitor.json")

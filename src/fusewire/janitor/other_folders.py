"""Pack old transcripts and logs in other folders. Off unless a person names them, and listed before it is done.

Old `*.jsonl` and `*.log` files that no process writes to are packed beside themselves; nothing is ever removed there.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

from fusewire.config.rules import STATE_FOLDER
from fusewire.janitor.archive import bytes_saved, rotation_aside, set_aside, store
from fusewire.janitor.folder import DEEPEST, open_folder, resolve
from fusewire.janitor.limits import why_untouchable
from fusewire.janitor.names import TEMPORARY, parse_rotation
from fusewire.janitor.report import Cleanup
from fusewire.util.durations import show_duration, show_time
from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown
from fusewire.util.files import make_folder, read_file, replace_file

if TYPE_CHECKING:
    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits

_EXTENSIONS = (".jsonl", ".log")

#: Never an agent's logs.
_SKIPPED = frozenset((".git", STATE_FOLDER))


def clean_others(root: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    """Clean each configured folder; the first run for a folder only lists what the next one will do."""
    memory = resolve(root, limits.folder)
    # the memory folder is among them if it is outside the project
    paths = {path: name for name in limits.other_folders if (path := resolve(root, name)) != memory}
    seen = _read_seen(root)
    for path, name in paths.items():
        is_new = path not in seen and not cleanup.dry_run
        # what is only listed does not count in the report of a run that acts
        run = Cleanup(dry_run=True) if is_new else cleanup
        try:
            folder = _open(root, path, name)
            if folder is None:
                continue
            with folder:
                if is_new:
                    seen[path] = show_time(now)
                    cleanup.did(f"{name}: seen for the first time, so this is only what the next run will do")
                if not run.dry_run:
                    folder.lock()
                _clean(folder, memory, path, limits, run, now, 0)
        except FusewireError as error:
            cleanup.left(str(error))
        except BlockingIOError:
            cleanup.left(f"{path_shown(name)}: another janitor is at work there")
        except OSError as error:
            cleanup.failed(path_shown(name), error)
        if is_new:
            cleanup.actions += run.actions
            cleanup.problems += run.problems
    if not cleanup.dry_run:
        _write_seen(root, {path: at for path, at in seen.items() if path in paths}, cleanup)


def _open(root: str, path: str, name: str) -> Folder | None:
    real = os.path.realpath(path)
    if root == real or root.startswith(real.rstrip("/") + "/") or real == os.path.realpath(os.path.expanduser("~")):
        allowed = "a folder of logs, not one around the project, nor a whole home"
        raise FusewireError(f"memory_limits.other_folders: {name!r} is refused; allowed: {allowed}")
    return open_folder(path, name)


def _clean(folder: Folder, memory: str, path: str, limits: Limits, cleanup: Cleanup, now: float, depth: int) -> None:
    entries = folder.entries()
    if not cleanup.dry_run:
        folder.unlink(TEMPORARY, missing_ok=True)
    for name, facts in entries.items():
        below = os.path.join(path, name)
        try:
            if not stat.S_ISDIR(facts.st_mode):
                _pack_old(folder, name, facts, limits, cleanup, now)
            elif name not in _SKIPPED and below != memory and depth < DEEPEST:
                with folder.sub(name) as inner:
                    _clean(inner, memory, below, limits, cleanup, now, depth + 1)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            cleanup.failed(path_shown(os.path.join(folder.shown, name)), error)


def _pack_old(folder: Folder, name: str, facts: os.stat_result, limits: Limits, cleanup: Cleanup, now: float) -> None:
    known = parse_rotation(name)
    shown = path_shown(os.path.join(folder.shown, name))
    if known is not None and not known.packed:  # of an interrupted run
        if cleanup.dry_run or (folder.is_same(known.live, facts) and folder.put_back(name, known.live)):
            return
        if why_untouchable(facts):
            return
        aside = rotation_aside(folder, known.live, known.micros)
    elif not _is_old(name, facts, limits, now) or folder.has_writer(name, now):
        return
    elif cleanup.dry_run:
        cleanup.files_rotated += 1
        age = show_duration(limits.telemetry_max_age_days)
        cleanup.did(f"would pack {shown} (older than {age})", bytes_saved(folder, name))
        return
    else:
        aside = set_aside(folder, name, now)
    state = store(aside, cleanup, now)
    if state == "packed":
        cleanup.files_rotated += 1
        packed, archive = (path_shown(os.path.join(folder.shown, one)) for one in (aside.live, aside.archive))
        cleanup.did(f"packed {packed} -> {archive}")
    elif state != "gone" and not folder.put_back(aside.name, aside.live) and state == "held":
        cleanup.left(f"{shown} is open in another process: left for a later run")


def _is_old(name: str, facts: os.stat_result, limits: Limits, now: float) -> bool:
    fits = name.endswith(_EXTENSIONS) and not name.startswith(".") and bool(facts.st_size)
    return fits and now - facts.st_mtime > limits.telemetry_max_age_days and not why_untouchable(facts)


# -- folders that were listed -----------------------------------------------------------------------------


def _file(root: str) -> str:
    return os.path.join(root, STATE_FOLDER, "janitor.json")


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

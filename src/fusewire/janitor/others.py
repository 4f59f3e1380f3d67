"""Other folders that grow: an agent's transcripts and logs. Off unless a person names them, and shown before done.

Old `*.jsonl` and `*.log` files that nobody has open are packed beside themselves; nothing there is ever removed.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

from fusewire.config.rules import STATE_FOLDER
from fusewire.janitor.cleanup import Cleanup
from fusewire.janitor.due import why_left_alone
from fusewire.janitor.finishing import finish
from fusewire.janitor.folder import Folder, open_elsewhere
from fusewire.janitor.names import ARCHIVED, TEMPORARY, rotation, rotation_name
from fusewire.janitor.packing import Aside, remove_temporary
from fusewire.janitor.telemetry import saved, set_aside
from fusewire.janitor.writers import has_writer
from fusewire.util.durations import show_duration, show_time
from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.limits import Limits

_EXTENSIONS = (".jsonl", ".log")

#: Not an agent's logs, whatever is in them.
_SKIPPED = frozenset((".git", STATE_FOLDER))

_DEEPEST = 16


def clean_others(root: str, limits: Limits, cleanup: Cleanup, now: float) -> None:
    """Each configured folder; the first time one is seen, what would be done is only said."""
    shown = _read_shown(root)
    wished = cleanup.dry_run
    memory = os.path.normpath(os.path.join(root, os.path.expanduser(limits.folder)))
    for name in limits.other_folders:
        path = os.path.normpath(os.path.join(root, os.path.expanduser(name)))
        if path == memory:
            continue  # named here so that the memory folder may lie outside of the project
        try:
            folder = _open(root, path, name)
        except FusewireError as error:
            cleanup.left(str(error))
            continue
        if folder is None:
            continue
        with folder:
            first = path not in shown
            if first and not wished:
                shown[path] = show_time(now)
                cleanup.did(f"{name}: seen for the first time, so this is only what the next run will do")
            # what is only shown counts for nothing in the report of a run that acts
            run = Cleanup(dry_run=True) if first and not wished else cleanup
            try:
                if run.dry_run or folder.lock():
                    _clean(folder, memory, path, limits, run, now, 0)
                else:
                    cleanup.left(f"{path_shown(name)}: another janitor is at work there")
            except OSError as error:
                cleanup.failed(path_shown(name), error)
            if run is not cleanup:
                cleanup.actions += run.actions
                cleanup.problems += run.problems
    if not wished:
        _write_shown(root, {path: at for path, at in shown.items() if path in _paths(root, limits)}, cleanup)


def _paths(root: str, limits: Limits) -> set[str]:
    return {os.path.normpath(os.path.join(root, os.path.expanduser(name))) for name in limits.other_folders}


def _open(root: str, path: str, name: str) -> Folder | None:
    real = os.path.realpath(path)
    if root == real or root.startswith(real.rstrip("/") + "/") or real == os.path.realpath(os.path.expanduser("~")):
        allowed = "a folder of logs, not one around the project, nor a whole home"
        raise FusewireError(f"memory_limits.other_folders: {name!r} is refused; allowed: {allowed}")
    return open_elsewhere(path, name)


def _clean(folder: Folder, memory: str, path: str, limits: Limits, cleanup: Cleanup, now: float, depth: int) -> None:
    entries = folder.entries()
    if TEMPORARY in entries and not cleanup.dry_run:
        remove_temporary(folder)
    _pack_old(folder, entries, limits, cleanup, now)
    for name, facts in entries.items():
        below = os.path.join(path, name)
        if not stat.S_ISDIR(facts.st_mode) or name in _SKIPPED or below == memory or depth == _DEEPEST:
            continue
        try:
            inner = folder.sub(name)
        except OSError:
            continue  # gone, or not ours to read
        with inner:
            _clean(inner, memory, below, limits, cleanup, now, depth + 1)


def _pack_old(folder: Folder, entries: dict[str, os.stat_result], limits: Limits, cleanup: Cleanup, now: float) -> None:
    asides: dict[Aside, str] = {}
    old = []
    for name, facts in entries.items():
        known = rotation(name)
        if known is not None and not known.packed:
            if not cleanup.dry_run and not folder.is_back(name, known.live) and not why_left_alone(facts):
                asides[Aside(folder, name, rotation_name(known.live, known.micros, ARCHIVED))] = known.live
        elif _is_old(name, facts, limits, now):
            old.append(name)
    for name in old:
        try:
            if has_writer(folder, name, now):
                continue
            if cleanup.dry_run:
                cleanup.files_rotated += 1
                age = show_duration(limits.telemetry_max_age)
                line = f"would pack {path_shown(os.path.join(folder.shown, name))} (older than {age})"
                cleanup.did(line, saved(folder, name))
            else:
                asides[set_aside(folder, name, now)] = name
        except OSError as error:
            cleanup.failed(path_shown(os.path.join(folder.shown, name)), error)
    finished = finish(list(asides), cleanup, now)
    for aside in finished.packed:
        cleanup.files_rotated += 1
        names = [path_shown(os.path.join(folder.shown, one)) for one in (asides[aside], aside.archive)]
        cleanup.did(f"packed {names[0]} -> {names[1]}")
    for aside in finished.failed:
        folder.put_back(aside.name, asides[aside])
    for aside in finished.held:
        if not folder.put_back(aside.name, asides[aside]):
            shown = path_shown(os.path.join(folder.shown, aside.name))
            cleanup.left(f"{shown} is open in another process: left for a later run")


def _is_old(name: str, facts: os.stat_result, limits: Limits, now: float) -> bool:
    mine = name.endswith(_EXTENSIONS) and not name.startswith(".") and bool(facts.st_size)
    return mine and now - facts.st_mtime > limits.telemetry_max_age and not why_left_alone(facts)


# -- what was shown -------------------------------------------------------------------------------------


def _file(root: str) -> str:
    return os.path.join(root, STATE_FOLDER, "janitor.json")


def _read_shown(root: str) -> dict[str, Any]:
    from fusewire.util.files import read_file

    try:
        shown = json.loads(read_file(_file(root)))["shown"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # then it is shown again
    return shown if isinstance(shown, dict) else {}


def _write_shown(root: str, shown: dict[str, Any], cleanup: Cleanup) -> None:
    from fusewire.util.files import make_folder, replace_file

    try:
        make_folder(root, STATE_FOLDER)
        replace_file(_file(root), json.dumps({"shown": shown}, indent=2).encode())
    except OSError as error:
        cleanup.failed("what was shown cannot be remembered", error)

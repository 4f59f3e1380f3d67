"""Find programs on the PATH, but never in the project that is guarded."""

from __future__ import annotations

import os


def find_program(name: str, project: str = "") -> str | None:
    """The absolute path of a program; None if there is none outside the project (the current folder unless given).

    A folder of the PATH that is relative ("." among them) or in the project holds what the repository ships.
    """
    top = outermost(project or os.getcwd())
    for folder in safe_path(top).split(os.pathsep):
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK) and os.path.isfile(path) and not is_inside(os.path.realpath(path), top):
            return path
    return None


def safe_path(project: str) -> str:
    """The folders of the PATH that are absolute and not in the project."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(one for one in folders if one[:1] == "/" and not is_inside(os.path.realpath(one), project))


def outermost(folder: str) -> str:
    """The outermost repository around a folder, or else the folder: a nested one belongs to the project too.

    The root of the file system and the home of the user are no projects, whatever lies in them.
    """
    found = at = os.path.realpath(folder)
    home = os.path.realpath(os.path.expanduser("~"))
    while at not in ("/", home):
        if os.path.lexists(f"{at}/.git"):
            found = at
        at = os.path.dirname(at)
    return found


def is_inside(path: str, folder: str) -> bool:
    return folder != "/" and (path == folder or path.startswith(f"{folder}/"))

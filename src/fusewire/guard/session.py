"""What the hook must know of a session before every call, in a few small files of `.fusewire/guard/`."""

from __future__ import annotations

import os

_FOLDER = os.path.join(".fusewire", "guard")

#: More than any of these files has.
_LIMIT = 65536


def begun(root: str, session: str | None) -> bool:
    """Whether the protected files were recorded for this session."""
    return read(root, "session") == f"session {session or ''}"


def halted(root: str, session: str | None) -> str:
    """Why the session was halted, if nobody has lifted it since."""
    owner, _, text = read(root, "halt").partition("\n")
    return text if owner == (session or "") else ""


def read(root: str, name: str) -> str:
    try:
        with open(os.path.join(root, _FOLDER, name), "rb") as file:
            return file.read(_LIMIT).decode("utf-8", "surrogatepass")
    except OSError:
        return ""


def write(root: str, name: str, text: str) -> None:
    from fusewire.stores.folder import ensure_state_folder, replace_file

    folder = os.path.join(root, _FOLDER)
    ensure_state_folder(os.path.dirname(folder))
    os.makedirs(folder, exist_ok=True)
    replace_file(os.path.join(folder, name), text.encode("utf-8", "surrogatepass")[:_LIMIT])


def forget(root: str, name: str) -> None:
    try:
        os.unlink(os.path.join(root, _FOLDER, name))
    except OSError:
        pass

"""What the hook must know of a session before every call, in a few small files of `.fusewire/guard/`."""

from __future__ import annotations

import os

from fusewire.util.files import make_folder, open_file, read_file, replace_file

_FOLDER = os.path.join(".fusewire", "guard")

#: More than any of these files has.
_LIMIT = 65536


#: Seconds after which a call that has not ended is held to be lost.
_BUSY = 1800


def begun(root: str, session: str | None) -> bool:
    """Whether the protected files are on record, and this session has begun."""
    return os.path.exists(os.path.join(root, _FOLDER, "manifest.json")) and bool(read(root, _name("session", session)))


def begin(root: str, session: str | None) -> None:
    write(root, _name("session", session), "begun")


def busy(root: str, session: str | None, is_busy: bool) -> None:
    """A call of the session that may change files has begun, or has ended."""
    if is_busy:  # begun already, so the folder is there; nothing is in the file that could be half written
        path = os.path.join(root, _FOLDER, _name("busy", session))
        descriptor = open_file(path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.utime(descriptor)
        os.close(descriptor)
    else:
        forget(root, _name("busy", session))


def others_busy(root: str, session: str | None, now: float) -> bool:
    """Whether a call of another session is under way: what it changes must not become what is right."""
    mine = _name("busy", session)
    try:
        with os.scandir(os.path.join(root, _FOLDER)) as entries:
            return any(
                entry.name.startswith("busy.") and entry.name != mine and now - entry.stat().st_mtime < _BUSY
                for entry in entries
            )
    except OSError:
        return False


def _name(kind: str, session: str | None) -> str:
    return f"{kind}." + "".join(char if char.isalnum() or char == "-" else "_" for char in (session or "none"))[:80]


def halted(root: str, session: str | None) -> str:
    """Why the session was halted, if nobody has lifted it since."""
    owner, _, text = read(root, "halt").partition("\n")
    return text if owner == (session or "") else ""


def read(root: str, name: str) -> str:
    try:
        return read_file(os.path.join(root, _FOLDER, name)).decode("utf-8", "surrogatepass")
    except OSError:
        return ""


def write(root: str, name: str, text: str) -> None:
    replace_file(os.path.join(make_folder(root, _FOLDER), name), text.encode("utf-8", "surrogatepass")[:_LIMIT])


def forget(root: str, name: str) -> None:
    try:
        os.unlink(os.path.join(root, _FOLDER, name))
    except OSError:
        pass

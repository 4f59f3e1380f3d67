"""Keep what the guard knows of a project in a folder, and which calls of agents are running there.

It lies outside of the project, in `$XDG_STATE_HOME/fusewire/guard/<name>-<hash of the path>/`, where `git clean -fdx`
does not reach; in `.fusewire/guard/` if that folder cannot be written. A project that was moved takes its folder along:
`.fusewire/guard.id` in it names the folder, which is renamed if the path that it was made for is gone.
"""

from __future__ import annotations

import os

from fusewire.config import user_state_folder
from fusewire.core.decision import Decision
from fusewire.core.events import Noun, mark
from fusewire.util.fast_json import dumps, loads
from fusewire.util.files import make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.core.events import Event

#: Seconds after which a call or a background command that has not ended is held to be lost.
_LOST = 1800

#: Seconds after which what was kept of a project that is gone may go as well.
_FORGOTTEN = 30 * 86_400

#: More than any of these files has.
_LIMIT = 65536

#: The rule of everything that is found by comparing protected files.
INTEGRITY = "guard.integrity"

_FALLBACK = os.path.join(".fusewire", "guard")
_MARKER = os.path.join(".fusewire", "guard.id")

#: What was found or made by this process.
_known: dict[tuple[str, str], str] = {}


# -- the folder -------------------------------------------------------------------------------------------


def base() -> str:
    """Where the folders of all projects lie; a relative path if there is no home."""
    return os.path.join(user_state_folder(), "guard")


def folder_of(root: str, *, make: bool = False) -> str:
    """The folder of a project; it need not be there unless it is to be made."""
    above = base()
    known = _known.get((above, root))
    if known and os.access(known, os.W_OK):
        return known
    real = os.path.realpath(root)
    name = "".join(char if char.isalnum() and char.isascii() else "-" for char in os.path.basename(real))[:40]
    folder = os.path.join(above, f"{name}-{mark(real)}")
    fallback = os.path.join(real, _FALLBACK)
    if not os.access(folder, os.W_OK) and not _follow(real, folder):
        if not make:
            return fallback if os.path.lexists(folder) or os.path.lexists(fallback) else folder
        folder = _make(real, folder) or make_folder(real, _FALLBACK)
    _known[above, root] = folder
    return folder


def is_fallback(root: str) -> bool:
    """Whether the project has its copies inside, for want of a better place."""
    folder = folder_of(root)
    return folder.endswith(os.sep + _FALLBACK) and os.path.isdir(folder)


def _follow(root: str, folder: str) -> bool:
    """Rename the folder of a project that was moved; one that was copied leaves it to the original."""
    try:
        name = read_file(os.path.join(root, _MARKER), 100).decode("ascii").strip()
        old = os.path.join(os.path.dirname(folder), name)
        if not name or "/" in name or name[0] == "." or os.path.exists(_text(os.path.join(old, "root"))):
            return False
        os.rename(old, folder)
        replace_file(os.path.join(folder, "root"), os.fsencode(root))
    except (OSError, ValueError):
        return False
    leave_marker(root, folder)
    return True


def _make(root: str, folder: str) -> str:
    """Make the folder, for its owner alone; empty if that is not possible."""
    if not os.path.isabs(folder):
        return ""
    try:
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.access(folder, os.W_OK) or os.lstat(folder).st_uid != os.geteuid():
            return ""
    except OSError:
        return ""
    replace_file(os.path.join(folder, "root"), os.fsencode(root))
    leave_marker(root, folder)
    _prune(os.path.dirname(folder))
    return folder


def leave_marker(root: str, folder: str) -> None:
    try:
        if not os.path.lexists(os.path.join(root, _MARKER)) or _text(os.path.join(root, _MARKER)) != _id(folder):
            make_folder(root, ".fusewire")
            replace_file(os.path.join(root, _MARKER), _id(folder).encode())
    except OSError:
        pass  # only a moved project would be looked for in vain


def _id(folder: str) -> str:
    return os.path.basename(folder)


def _prune(above: str) -> None:
    """Remove what was kept of projects that have been gone for a month."""
    import shutil
    import time

    with os.scandir(above) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                continue
            project = _text(os.path.join(entry.path, "root"))
            if project and not os.path.lexists(project) and time.time() - entry.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(entry.path, ignore_errors=True)


def _text(path: str) -> str:
    try:
        return os.fsdecode(read_file(path))
    except OSError:
        return ""


# -- running calls ----------------------------------------------------------------------------------------


class NotedCall(Noun):
    """A call that may change files: the file `name` that notes it, and when it started.

    `paths` are all that it can change, None if that is not known; `log` is the length of the reflog at its start.
    """

    name: str
    start: float
    paths: list[str] | None
    text: str
    tool: str
    log: int
    #: a person lets it change what it will
    allowed: bool = False

    @classmethod
    def from_data(cls, data: object, name: str, start: float) -> NotedCall | None:
        """Read what `start_call` has written; None if it is something else."""
        if not isinstance(data, dict):
            return None
        paths, log = data.get("paths"), data.get("log")
        return cls(
            name,
            start,
            [str(path) for path in paths] if isinstance(paths, list) else None,
            str(data.get("text", "")),
            str(data.get("tool", "")),
            log if isinstance(log, int) else 0,
            data.get("allowed") is True,
        )


def start_call(folder: str, root: str, event: Event, changed: tuple[str, ...], *, allowed: bool = False) -> None:
    """Note that a call which may change files begins; an edit tool can change none but the named ones."""
    paths = list(changed) if changed and not event.command else None
    try:
        log = os.stat(os.path.join(root, ".git", "logs", "HEAD")).st_size
    except OSError:
        log = 0
    noted = {"paths": paths, "text": event.described()[:2000], "tool": event.tool, "log": log, "allowed": allowed}
    replace_file(os.path.join(folder, _call_name(event)), dumps(noted).encode())


def end_call(folder: str, event: Event) -> list[NotedCall]:
    """What was noted of the call, or of all calls of one reply; a background command is running from now on."""
    ended = []
    for one in event.calls or (event,):
        name = _call_name(one)
        ended += _read_calls(folder, [name] if one.call else _names(folder, name))
        if (one.input or {}).get("run_in_background") is True and not one.failed:
            noted = {"paths": None, "text": one.described()[:2000], "tool": one.tool}
            replace_file(os.path.join(folder, "job" + name.removeprefix("call")), dumps(noted).encode())
    for one_call in ended:
        _unlink(os.path.join(folder, one_call.name))
    return ended


def running(folder: str, now: float, kind: str = "call") -> list[NotedCall]:
    """The calls (or jobs: commands in the background) of all sessions that have begun and not ended."""
    found = _read_calls(folder, _names(folder, f"{kind}."))
    for one in found:
        if now - one.start > _LOST:
            _unlink(os.path.join(folder, one.name))
    return [one for one in found if now - one.start <= _LOST]


def end_turn(folder: str, event: Event) -> None:
    """The agent waits for a person: a call of its own that has not ended was never permitted."""
    if event.kind in ("prompt", "relayed", "stop", "session_end"):
        for name in _names(folder, f"call.{_safe(event.session or 'none')}.."):
            _unlink(os.path.join(folder, name))


def end_jobs(folder: str, event: Event) -> None:
    """Forget the background commands of a session that have ended; those that the agent says run still count."""
    ended = event.kind == "session_end" or event.running == ()
    for name in _names(folder, f"job.{_safe(event.session or 'none')}.") if ended or event.running else ():
        _unlink(os.path.join(folder, name)) if ended else os.utime(os.path.join(folder, name))


def find_moved(root: str, folder: str) -> Decision | None:
    """What to say of a project that is gone after a call: halt if it was renamed, tell otherwise."""
    above = os.path.dirname(root)
    if not os.path.isdir(folder) or not os.path.isdir(above):
        return None
    for name in os.listdir(above):
        if _text(os.path.join(above, name, _MARKER)) == _id(folder):
            where = os.path.join(above, name)
            step = f"ask the user, who can move it back: {root} is where it is guarded"
            return Decision("halt", rule=INTEGRITY, reason=f"the project was moved to {where}", next=(step,))
    return Decision("tell", rule=INTEGRITY, reason=f"{root} is gone; copies of its protected files are in {folder}")


def _names(folder: str, prefix: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.startswith(prefix)]
    except OSError:
        return []


def _read_calls(folder: str, names: list[str]) -> list[NotedCall]:
    found = []
    for name in names:
        path = os.path.join(folder, name)
        try:
            start = os.lstat(path).st_mtime
            noted = NotedCall.from_data(loads(read_file(path).decode()), name, start)
        except (OSError, ValueError):
            continue
        if noted is not None:
            found.append(noted)
    return found


def _call_name(event: Event) -> str:
    return f"call.{_safe(event.session or 'none')}.{_safe(event.subagent or '')}.{_safe(event.call or '')}"


def _safe(text: str) -> str:
    return "".join(char if char.isalnum() or char == "-" else "_" for char in text)[:60]


# -- halts ------------------------------------------------------------------------------------------------


def halted(root: str, session: str | None) -> str:
    """Why the session was halted; empty if it was not, or if the halt was lifted."""
    owner, _, text = read(root, "halt").partition("\n")
    return text if owner == (session or "") else ""


def read(root: str, name: str) -> str:
    try:
        return read_file(os.path.join(folder_of(root), name)).decode("utf-8", "surrogatepass")
    except OSError:
        return ""


def write(root: str, name: str, text: str) -> None:
    folder = folder_of(root, make=True)
    replace_file(os.path.join(folder, name), text.encode("utf-8", "surrogatepass")[:_LIMIT])


def forget(root: str, name: str) -> None:
    _unlink(os.path.join(folder_of(root), name))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass

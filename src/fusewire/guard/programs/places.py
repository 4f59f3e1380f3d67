"""Where packed and copied files end up: what archives, rsync, patches and downloads have in common."""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call

    #: name, whether it is a folder, where it points to if it is a link
    Member = tuple[str, bool, str]


#: Members of an archive and files of a folder that are looked at one by one.
MOST = 5000


def under(folder: str, name: str) -> str:
    if folder == "." and name[:1] == UNKNOWN:
        return f"./{name}"  # somewhere here, not anywhere
    if name[:1] == "/" or folder in ("", "."):
        return name
    return f"{folder.rstrip('/')}/{name}"


def last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]


def missing(call: Call, name: str) -> bool:
    """Whether a file is certainly not there."""
    path = call.path(name)
    return UNKNOWN not in path and call.walk.pristine and path not in call.walk.files and not call.disk.exists(path)


def put(call: Call, name: str, *, folder: bool = False, link: str = "") -> None:
    """A file that is put in place of whatever has its name; a folder that is there stays as it is."""
    if folder:
        if not call.disk.exists(call.path(name.rstrip("/"))):
            call.effect(WRITE, name.rstrip("/"))
        return
    call.effect(WRITE, name, follows=False)
    if link:
        path = normal(call.path(name))
        call.disk.links[path] = normal(under(path.rpartition("/")[0], link))

"""Open, create, replace and lock files of ours: never through a link, only in folders of ours.

A repository can ship links, pipes and whole state folders. So a file of ours is a regular file, opened without
following a link and without waiting for the other end of a pipe, and with one name where it is written. What stands in
its place is set aside by renaming it, never what it points to, and `news` says so: the store keeps that as a notice,
the hook tells the agent. A state folder is trusted if the mark in it names the inodes of both (see `claim`).

Ours is what belongs to the effective user, to root, to the owner of the folder that it lies in (an agent that runs as
root in a container on a mounted project), or to anybody whom the folder's owner lets write there as a group.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

STATE_FOLDER = ".fusewire"

#: Says of a state folder that it was made or taken over here: a copy, or a clone, has other inodes.
MARK = "mark"

#: When a mark was changed last, in seconds: git gives the files that it writes the present time. FAT knows no time
#: before 1980, and no odd second.
MARKED_AT = 1_000_000_000

_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_DEVICE = "is a device"
_KINDS = {
    stat.S_IFLNK: "is a symbolic link",
    stat.S_IFIFO: "is a pipe",
    stat.S_IFSOCK: "is a socket",
    stat.S_IFDIR: "is a folder",
    stat.S_IFCHR: _DEVICE,
    stat.S_IFBLK: _DEVICE,
}

#: What this process has set aside, in sentences: those that the agent was not told of yet, and those, each with its
#: path, that are in no store yet.
news: list[str] = []
unwritten: list[tuple[str, str]] = []

#: State folders that were found to be ours, and their inodes.
_claimed: dict[str, int] = {}

#: Derived from other files, and read as `marshal` data: emptied, so that they are made again and not trusted.
_DERIVED = ".bin"

#: Entries of a folder that are looked at; git's objects are in folders of their own.
_MOST_ENTRIES = 20_000


class NotOurs(OSError):
    """Something else stands where a file or a folder of ours belongs."""


# -- files --------------------------------------------------------------------------------------------------


def open_file(path: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A descriptor of a file of ours. With O_CREAT, what stands in its place is set aside; otherwise NotOurs is raised.

    A file that is opened for writing has one name: of one that has more, a copy takes the place of this name.
    """
    try:
        descriptor = os.open(path, flags | _OPEN, mode)
    except FileNotFoundError:
        raise
    except OSError:
        fault = fault_at(path)
        if not fault:
            raise
    else:
        facts = os.fstat(descriptor)
        fault = fault_of(facts, path)
        shared = facts.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR)
        if not fault and not shared:
            return descriptor
        os.close(descriptor)
        if not fault:
            replace_file(path, read_file(path), mode=stat.S_IMODE(facts.st_mode))
            return os.open(path, flags | _OPEN, mode)
    if not flags & os.O_CREAT:
        raise NotOurs(22, fault, path)
    set_aside(path, fault)
    return os.open(path, flags | _OPEN | os.O_EXCL, mode)


def read_file(path: str, limit: int = -1) -> bytes:
    """The content of a file of ours; NotOurs if something else is there."""
    return _read(open_file(path), limit)


def read_regular(path: str, limit: int = -1) -> bytes:
    """The content of anybody's file, through links too; OSError if it is none: a pipe would never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "not a regular file", path)
    return _read(descriptor, limit)


def _read(descriptor: int, limit: int) -> bytes:
    with open(descriptor, "rb", buffering=0) as file:
        return (file.read() if limit < 0 else file.read(limit)) or b""


def replace_file(path: str, content: bytes, temporary: str | None = None, mode: int = 0o666) -> None:
    """Write beside and rename: a reader sees the old content or the new one, never a part."""
    temporary = temporary or f"{path}.tmp-{os.getpid()}-{get_ident()}"
    fault = fault_at(path)
    if fault:
        set_aside(path, fault)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN
    try:
        try:
            descriptor = os.open(temporary, flags, mode)
        except FileExistsError:  # of a writer that was killed, or a link that waits for us
            os.unlink(temporary)
            descriptor = os.open(temporary, flags, mode)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


def fault_at(path: str) -> str:
    """Why what is at a path can be no file of ours; empty if it can, or if nothing is there."""
    try:
        return fault_of(os.lstat(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return ""


def fault_of(facts: os.stat_result, path: str) -> str:
    if not stat.S_ISREG(facts.st_mode):
        return _KINDS.get(stat.S_IFMT(facts.st_mode), "is not a file")
    return fault_of_owner(facts, path)


def fault_of_owner(facts: os.stat_result, path: str) -> str:
    if facts.st_uid in (os.geteuid(), 0):
        return ""
    folder = os.stat(os.path.dirname(path))
    shared = folder.st_mode & (stat.S_ISVTX | stat.S_IWOTH | stat.S_IWGRP) == stat.S_IWGRP
    return "" if facts.st_uid == folder.st_uid or shared else f"belongs to another user (uid {facts.st_uid})"


def set_aside(path: str, fault: str) -> None:
    """Rename what stands in the place of something of ours; NotOurs if it has to stay, as a device has."""
    aside = free_name(f"{path}.set-aside")
    try:
        if fault == _DEVICE:
            raise PermissionError(1, "no repository has made it")
        os.rename(path, aside)
    except FileNotFoundError:
        return  # another process was faster
    except OSError as error:
        raise NotOurs(error.errno, f"it {fault} and cannot be set aside ({error.strerror})", path) from None
    folder, name = os.path.split(path)
    shown = name if name == STATE_FOLDER else os.path.join(os.path.basename(folder), name)
    text = f"{shown} {fault}: it was set aside as {os.path.basename(aside)}, and nothing was written to it"
    news.append(text)
    unwritten.append((path, text))


def advise_owner(folder: str) -> str:
    """What to do about files of another user in the state folder, as `sudo fusewire` leaves them; empty without any."""
    user = os.geteuid()
    owners = {user}
    try:
        owners.add(os.stat(folder).st_uid)
        owners.update(os.lstat(f"{folder}/{name}").st_uid for name in os.listdir(folder))
    except OSError:
        pass
    if owners == {user}:
        return ""
    from shlex import quote

    return f"; its files belong to different users; a person can run: sudo chown -R {user} {quote(folder)}"


def free_name(prefix: str) -> str:
    """The first of prefix-1, prefix-2, ... that no file has: what is set aside replaces nothing."""
    number = 1
    while os.path.lexists(f"{prefix}-{number}"):
        number += 1
    return f"{prefix}-{number}"


def uri_path(path: str) -> str:
    """A path inside a SQLite URI."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


# -- folders ------------------------------------------------------------------------------------------------


def make_folder(root: str, path: str) -> str:
    """The folder of ours at a relative path, made if need be; FileNotFoundError if there is no such project any more.

    Every part is a real folder. A link inside the state folder is set aside; one outside is a person's and stays, but
    nothing is written through it.
    """
    here, inside = root, False
    for part in path.split("/"):
        here = os.path.join(here, part)
        if part == STATE_FOLDER:
            ensure_state_folder(here)
            inside = True
            continue
        try:
            os.mkdir(here)
        except FileExistsError:
            kind = stat.S_IFMT(os.lstat(here).st_mode)
            if kind == stat.S_IFDIR:
                continue
            fault = _KINDS.get(kind, "is not a folder")
            if not inside:
                raise NotOurs(20, f"{fault}, and nothing is written through it", here) from None
            set_aside(here, fault)
            os.mkdir(here)
    return here


def ensure_state_folder(folder: str) -> None:
    """Make the folder; its own `.gitignore` keeps it out of every commit without touching the user's."""
    claim(folder)
    try:
        os.mkdir(folder)
        if is_state_folder(folder):
            write_mark(folder)
    except FileExistsError:
        pass
    ignore = os.path.join(folder, ".gitignore")
    if is_state_folder(folder) and not os.path.lexists(ignore):
        replace_file(ignore, b"*\n")


def is_state_folder(folder: str) -> bool:
    """Whether a folder is ours by its name; a store that somebody keeps elsewhere, by its URL, lies in theirs."""
    return os.path.basename(folder) == STATE_FOLDER


def claim(folder: str) -> None:
    """Before anything in a state folder is trusted: one that is not ours is set aside. NotOurs if it has to stay."""
    if not is_state_folder(folder):
        return
    try:
        facts = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    if _claimed.get(folder) == facts.st_ino:
        return
    if fits_mark(folder, facts):
        _claimed[folder] = facts.st_ino
        return
    _adopt_or_set_aside(folder, facts)


def _adopt_or_set_aside(folder: str, facts: os.stat_result) -> None:
    """Take over a state folder whose mark does not fit, or set it aside if it came with a clone.

    A folder of an earlier version, a copy of a project or a restored backup keeps its state; what git has in its index,
    or what belongs to another user, was not written by us. Looked at once: where the mark fits, the folder is ours
    whatever git says, so that adding it to the index frees no agent.
    """
    fault = _fault_of_folder(folder, facts)
    if fault:
        set_aside(folder, fault)
        return
    for path in _entries(folder):
        if not os.path.isdir(path) or os.path.islink(path):
            fault = fault_at(path)
            if fault:
                set_aside(path, fault)
    for path in _entries(folder):
        if path.endswith(_DERIVED):
            replace_file(path, b"")
    write_mark(folder)


def _fault_of_folder(folder: str, facts: os.stat_result) -> str:
    """Why a state folder is none of ours; empty if it is one."""
    if not stat.S_ISDIR(facts.st_mode):
        return fault_at(folder) or "is not a folder"
    fault = fault_of_owner(facts, folder)
    return fault or ("came with the repository (git has it in its index)" if _is_tracked(folder) else "")


def _is_tracked(folder: str) -> bool:
    """Whether git has anything of it; where git cannot say, the folder's owner has to do."""
    from fusewire.util.git import GitFailure, git, only
    from fusewire.util.gitdir import top_above

    top = top_above(os.path.dirname(folder))
    if top is None or not os.listdir(folder):
        return False

    try:
        return bool(git(top, "ls-files", "-z", "--", *only(os.path.relpath(folder, top))))
    except GitFailure:
        return False


def _entries(folder: str) -> Iterator[str]:
    """Everything in it, up to a limit; links are not followed."""
    left = _MOST_ENTRIES
    for here, folders, files in os.walk(folder):
        yield from (os.path.join(here, name) for name in (*folders, *files))
        left -= len(folders) + len(files)
        if left < 0:
            return


def fits_mark(folder: str, facts: os.stat_result | None = None) -> bool:
    """Whether a state folder was made or taken over here, by the looks of it."""
    try:
        facts = facts or os.lstat(folder)
        if not stat.S_ISDIR(facts.st_mode) or fault_of_owner(facts, folder):
            return False
        descriptor = os.open(os.path.join(folder, MARK), os.O_RDONLY | _OPEN)
    except OSError:
        return False
    try:
        mark = os.fstat(descriptor)
        if not stat.S_ISREG(mark.st_mode) or mark.st_mtime != MARKED_AT:
            return False
        return os.read(descriptor, 64) == _mark(facts, mark)
    finally:
        os.close(descriptor)


def write_mark(folder: str) -> None:
    """Take a folder for ours from now on; where that cannot be written down, in this process."""
    facts = os.lstat(folder)
    _claimed[folder] = facts.st_ino
    path = os.path.join(folder, MARK)
    temporary = f"{path}.tmp-{os.getpid()}-{get_ident()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o644)
        try:
            os.write(descriptor, _mark(facts, os.fstat(descriptor)))
            os.utime(descriptor, (MARKED_AT, MARKED_AT))
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError:
        pass


def _mark(folder: os.stat_result, mark: os.stat_result) -> bytes:
    return b"%d %d\n" % (folder.st_ino, mark.st_ino)


# -- locks --------------------------------------------------------------------------------------------------


class FileLock:
    """A lock between processes; the system lets go of it when its holder dies.

    `shared` holders exclude only exclusive ones. After `wait` seconds BlockingIOError is raised: a holder that was
    stopped must not hang every hook of the project. A process that has time may wait without a limit (None). A process
    that can read a file can hold its lock, so only the owner may read these.
    """

    def __init__(self, path: str, *, shared: bool = False, wait: float | None = 5.0) -> None:
        self.path = path
        self.shared = shared
        self.wait = wait

    def __enter__(self) -> FileLock:
        import fcntl

        self.descriptor = self._open()
        mode = fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX
        if self.wait is None:
            fcntl.flock(self.descriptor, mode)
            return self
        mode |= fcntl.LOCK_NB
        deadline = time.monotonic() + self.wait
        while True:
            try:
                fcntl.flock(self.descriptor, mode)
                return self
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(self.descriptor)
                    raise BlockingIOError(11, "another process holds the lock", self.path) from None
                time.sleep(0.002)

    def _open(self) -> int:
        claim(os.path.dirname(self.path))
        try:
            descriptor = open_file(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except NotOurs:
            raise
        except OSError:  # where we may only read, a lock that is there can still be taken
            try:
                return open_file(self.path)
            except PermissionError as error:
                advice = advise_owner(os.path.dirname(self.path))
                raise PermissionError(error.errno, f"{error.strerror}{advice}", self.path) from None
        facts = os.fstat(descriptor)
        if facts.st_mode & 0o077 and facts.st_uid == os.geteuid():  # older versions made locks that all could read
            os.fchmod(descriptor, 0o600)
        return descriptor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)


class FolderLock(FileLock):
    """The same on a folder that is there, anybody's: nothing is made in it."""

    def _open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)


def file_stamp(path: str | None) -> tuple[int, int, int] | None:
    """What tells an old file from a new one; None if there is none."""
    try:
        facts = os.stat(path) if path else None
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_ino, facts.st_size) if facts else None

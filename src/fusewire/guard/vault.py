"""The guard's store: contents by their digest, and the one way in which protected files are read.

A blob is written beside and renamed, read-only from then on, and believed only if its content still has the digest
that it is named after. Whoever writes holds the guard's lock.
"""

from __future__ import annotations

import os
import stat
import time

from fusewire.guard.baseline import signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fusewire.guard.manifest import FolderEntry

#: Bytes of all blobs together, and of one file: a backstop for rules and configuration, not a backup of the disk.
TOTAL_LIMIT = 256 * 1024 * 1024
FILE_LIMIT = 32 * 1024 * 1024

_CHUNK = 256 * 1024

#: A file that is being written may change while it is read; so often is it read again.
_TRIES = 3

#: File systems stamp times in ticks of up to 10 ms: a change in the same tick leaves no trace in them.
TICK_NS = 50_000_000

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def settled(found: os.stat_result, now_ns: int) -> tuple[int, ...]:
    """The signature, or one that never matches if the next change could have the same."""
    mode, size, modified, changed, inode = signature(found)
    return mode, size, modified, changed if changed < now_ns - TICK_NS else 0, inode


def copy(source: int, size: int, target: int | None = None) -> str:
    """Read a file of `size` in chunks, into another one if given; the digest of what was read."""
    import hashlib

    digest = hashlib.sha256()
    os.lseek(source, 0, os.SEEK_SET)
    left = size
    while left >= 0 and (chunk := os.read(source, _CHUNK)):  # one that grows for ever is not read for ever
        digest.update(chunk)
        left -= len(chunk)
        while target is not None and chunk:
            chunk = chunk[os.write(target, chunk) :]
    return digest.hexdigest()


def look(name: str, folder: int, vault: Vault | None = None) -> tuple[tuple[int, ...], str, bool]:
    """The signature and digest of a file or a link, and whether the vault, if one is given, has its content now."""
    now = time.time_ns()
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        import hashlib

        target = os.fsencode(os.readlink(name, dir_fd=folder))
        digest = hashlib.sha256(target).hexdigest()
        return settled(found, now), digest, vault is not None and vault.keep(target, digest, len(target))
    descriptor = os.open(name, READ, dir_fd=folder)
    try:
        for _ in range(_TRIES):
            now = time.time_ns()
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError("it is no regular file any more")
            digest = copy(descriptor, found.st_size)
            kept = vault is not None and vault.keep(descriptor, digest, found.st_size)
            if signature(os.fstat(descriptor)) == signature(found):
                return settled(found, now), digest, kept
    finally:
        os.close(descriptor)
    raise OSError("it changes faster than it can be read")


class Vault:
    """Contents by digest in `<folder>/<2 hex>/<sha256>`, the same content once."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        #: The contents that this writer needs, with their sizes; together they never exceed the limit.
        self.pinned: dict[str, int] = {}
        self.used = 0

    def path(self, digest: str) -> str:
        return os.path.join(self.folder, digest[:2], digest)

    def has(self, digest: str, size: int) -> bool:
        """Whether a blob of that size is there; its content is checked when it is used."""
        try:
            return os.lstat(self.path(digest)).st_size == size
        except OSError:
            return False

    def pin(self, digest: str, size: int) -> bool:
        """Claim room for a content that must stay; False if there is none."""
        if digest in self.pinned:
            return True
        if size > FILE_LIMIT or self.used + size > TOTAL_LIMIT:
            return False
        self.pinned[digest] = size
        self.used += size
        return True

    def unpin(self, digest: str) -> None:
        self.used -= self.pinned.pop(digest, 0)

    def keep(self, source: int | bytes, digest: str, size: int) -> bool:
        """Store an open file or some bytes; False if there is no room, or if they no longer have that digest."""
        if not self.pin(digest, size):
            return False
        if self.intact(digest, size) or self._write(source, digest, size):
            return True
        self.unpin(digest)
        return False

    def _write(self, source: int | bytes, digest: str, size: int) -> bool:
        incoming = os.path.join(self.folder, "incoming")  # one name will do: the writer holds the lock
        unlink(incoming)
        descriptor = os.open(incoming, _CREATE, 0o600)
        try:
            if isinstance(source, int):
                arrived = copy(source, size, descriptor) == digest
            else:
                arrived = os.write(descriptor, source) == size
            os.fchmod(descriptor, 0o400)  # what is copied may be a secret, such as the token in an agent's settings
        finally:
            os.close(descriptor)
        if arrived:
            try:
                os.replace(incoming, self.path(digest))
            except FileNotFoundError:
                os.makedirs(os.path.dirname(self.path(digest)), exist_ok=True)
                os.replace(incoming, self.path(digest))
        return arrived

    def intact(self, digest: str, size: int) -> bool:
        """Whether the blob is there and has the content that its name promises."""
        try:
            descriptor = os.open(self.path(digest), READ)
        except OSError:
            return False
        try:
            return copy(descriptor, size) == digest
        finally:
            os.close(descriptor)

    def read_link(self, digest: str) -> bytes:
        with open(self.path(digest), "rb") as file:
            return file.read()

    def write_file(self, digest: str, size: int, mode: int, name: str, folder: int) -> None:
        """Write a blob to a new file of that mode; what is there under the name already is removed."""
        unlink(name, folder)
        source = os.open(self.path(digest), READ)
        try:
            target = os.open(name, _CREATE, 0o600, dir_fd=folder)
            try:
                arrived = copy(source, size, target)
                os.fchmod(target, mode)
            finally:
                os.close(target)
        finally:
            os.close(source)
        if arrived != digest:
            unlink(name, folder)
            raise OSError("its kept content was damaged in this moment")

    def sweep(self, needed: Container[str], spare: int) -> None:
        """Remove every blob that is not needed, but leave the newest of them up to `spare` bytes."""
        orphans = []
        for shelf in os.listdir(self.folder):
            if len(shelf) == 2:
                with os.scandir(os.path.join(self.folder, shelf)) as blobs:
                    loose = [blob for blob in blobs if blob.name not in needed]
                orphans += [(blob.stat(follow_symlinks=False), blob.path) for blob in loose]
        for found, path in sorted(orphans, key=lambda orphan: orphan[0].st_mtime_ns, reverse=True):
            spare -= max(found.st_size, 1)
            if spare < 0:
                unlink(path)


def unlink(path: str, folder: int | None = None) -> None:
    try:
        os.unlink(path, dir_fd=folder)
    except FileNotFoundError:
        pass


# -- the way to a file ------------------------------------------------------------------------------------

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class Way:
    """Opens the folders of protected files step by step, so that no link is followed that was none at the snapshot.

    Everything is done relative to the folder that was opened: what is swapped afterwards leads nowhere else.
    """

    def __init__(self, root: str, folders: dict[str, FolderEntry]) -> None:
        self.root = os.open(root, _FOLDER)
        #: Each folder above a protected file, as the manifest has it.
        self.folders = folders
        self.made: list[str] = []
        #: Where that is now which stood in the way of a folder.
        self.moved: list[str] = []

    def close(self) -> None:
        os.close(self.root)

    def leads_elsewhere(self) -> list[str]:
        """The folders that are now links, and not those that they were."""
        found = []
        for name, known in self.folders.items():
            try:
                mode = os.stat(name, dir_fd=self.root, follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode) and os.readlink(name, dir_fd=self.root) != known.target:
                    found.append(name)
            except OSError:
                continue  # its files are missing then, which is said of each
        return found

    def parent(self, name: str, *, make: bool) -> int | None:
        """The open folder that a file lies in, made if it is missing and may be; None if it is missing."""
        so_far = "/" if name.startswith("/") else ""
        here = os.open(so_far or ".", _FOLDER, dir_fd=self.root)
        for part in name.removeprefix("/").split("/")[:-1]:
            so_far += part
            try:
                there = self._step(here, part, so_far, make)
            finally:
                os.close(here)
            if there is None:
                return None
            here = there
            so_far += "/"
        return here

    def _step(self, here: int, part: str, so_far: str, make: bool) -> int | None:
        try:
            mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return self._make(here, part, so_far) if make else None
        known = self.folders.get(so_far)
        if stat.S_ISLNK(mode):
            target = os.readlink(part, dir_fd=here)
            if known is None or known.target != target:
                raise OSError(f"{so_far} is now a link to {target}; nothing is written through it")
            return os.open(part, _FOLDER, dir_fd=here)
        if stat.S_ISDIR(mode):
            if known is not None and ~mode & known.mode & 0o700:
                os.chmod(part, stat.S_IMODE(known.mode), dir_fd=here)  # what was locked is opened again
            return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
        if not make:
            return None
        self.moved.append(os.path.join(os.path.dirname(so_far), move_aside(part, here)))
        return self._make(here, part, so_far)

    def _make(self, here: int, part: str, so_far: str) -> int:
        known = self.folders.get(so_far)
        if known is not None and known.target:
            raise OSError(f"{so_far} was a link to {known.target} and is gone")
        os.mkdir(part, 0o700, dir_fd=here)
        self.made.append(so_far)
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)

    def finish(self) -> None:
        """Give the folders that were made their modes, last of all: they may forbid to write."""
        for name in sorted(self.made, reverse=True):
            known = self.folders.get(name)
            try:
                here = self.parent(f"{name}/", make=False)
                if here is not None:
                    try:
                        os.chmod(".", stat.S_IMODE(known.mode) if known else 0o755, dir_fd=here)
                    finally:
                        os.close(here)
            except OSError:
                continue  # its files are back, and somebody is at work on it, or owns it


def move_aside(name: str, folder: int) -> str:
    """Rename a thing to `<name>.fusewire-aside-N`, so that it stays whatever it is; the new name."""
    start = os.fsdecode(os.fsencode(name)[:220])  # a name has 255 bytes
    number = 1
    while True:
        aside = f"{start}.fusewire-aside-{number}"
        try:
            os.stat(aside, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            return aside
        number += 1

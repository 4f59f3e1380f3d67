"""Move files into the place of others so that nothing is lost on the way and all of it can be undone.

A file that has to go is moved aside first and looked at there: if it is not the one that was saved, another process
changed it in this moment, and every step is undone. Folders are opened one by one and never through a link.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Mapping

from fusewire.util.errors import FusewireError
from fusewire.util.files import free_name
from fusewire.worktree.contents import TreeEntry
from fusewire.worktree.trees import object_id

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ChangedSince(FusewireError):
    """Files changed since the last attempt was recorded, or in this very moment; nothing was rolled back."""

    def __init__(self, paths: list[str], when: str) -> None:
        shown = ", ".join(path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n") for path in paths[:10])
        more = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
        super().__init__(f"changed {when}: {shown}{more}")
        self.paths = paths


def entry_at(full: str, width: int) -> TreeEntry | None:
    """What git would have of the file; None if there is no file."""
    try:
        seen = os.lstat(full)
        if stat.S_ISLNK(seen.st_mode):
            return "120000", object_id("blob", os.fsencode(os.readlink(full)), width)
        if not stat.S_ISREG(seen.st_mode):
            return None
        with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return "100755" if seen.st_mode & 0o100 else "100644", object_id("blob", file.read(), width)
    except OSError:
        return None


class Moves:
    """Steps in a root, from and to a folder of our own: `new` holds what is put in place, `aside` what had to go."""

    def __init__(self, root: str, room: str) -> None:
        self.root = root
        self.new = os.path.join(room, "new")
        self.aside = os.path.join(room, "aside")
        self._moved: list[str] = []
        self._places: list[str] = []
        self._placed: list[tuple[str, int]] = []

    def take_away(self, path: str, expected: TreeEntry) -> None:
        """Move a file aside; ChangedSince if it is not the expected one."""
        target = os.path.join(self.aside, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        folder, name = self._folder(path)
        try:
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                raise FileNotFoundError
            os.rename(name, target, src_dir_fd=folder)
        except FileNotFoundError:
            raise ChangedSince([path], "in this moment") from None
        finally:
            os.close(folder)
        self._moved.append(path)
        if entry_at(target, len(expected[1])) != expected:
            raise ChangedSince([path], "in this moment")

    def put_in_place(self, path: str) -> None:
        """Bring a new file to its place; ChangedSince if there is one already."""
        source = os.path.join(self.new, path)
        self._places.append(path)
        folder, name = self._folder(path, make=True)
        try:
            self._remove_empty(name, folder)
            try:
                os.link(source, name, dst_dir_fd=folder, follow_symlinks=False)
                os.unlink(source)
            except OSError as error:
                if error.errno == errno.EEXIST or os.path.lexists(os.path.join(self.root, path)):
                    raise ChangedSince([path], "in this moment") from None
                os.rename(source, name, dst_dir_fd=folder)  # a file system without hard links
            self._placed.append((path, os.lstat(name, dir_fd=folder).st_ino))
        finally:
            os.close(folder)

    def sweep(self, paths: list[str]) -> None:
        """Remove the folders that became empty when these files went."""
        for path in sorted(paths, reverse=True):
            while path := os.path.dirname(path):
                try:
                    folder, name = self._folder(path)
                except (OSError, ChangedSince):
                    continue  # gone already
                try:
                    os.rmdir(name, dir_fd=folder)
                except OSError:
                    break
                finally:
                    os.close(folder)

    def undo(self) -> bool:
        """Take every step back; False if a file stays aside because its place is taken: `recover` finds it there."""
        for path, inode in reversed(self._placed):
            full = os.path.join(self.root, path)
            try:
                if os.lstat(full).st_ino == inode:
                    os.unlink(full)
            except OSError:
                pass
        self.sweep(self._places)
        stuck = [path for path in reversed(self._moved) if not self.back(path)]
        return not stuck

    def back(self, path: str) -> bool:
        """Bring what was moved aside back to its place; False if something is there."""
        try:
            folder, name = self._folder(path, make=True)
        except (OSError, ChangedSince):
            return False
        try:
            source = os.path.join(self.aside, path)
            if os.path.lexists(os.path.join(self.root, path)):
                return False
            os.rename(source, name, dst_dir_fd=folder)
        except OSError:
            return False
        finally:
            os.close(folder)
        return True

    def recover(self, saved: Mapping[str, TreeEntry]) -> str | None:
        """After a kill: files aside that were not saved go back, or else into a folder for a person, which is given."""
        stuck = []
        for path in _files_below(self.aside):
            known = saved.get(path)
            is_saved = known is not None and entry_at(os.path.join(self.aside, path), len(known[1])) == known
            if not is_saved and not self.back(path):
                stuck.append(path)
        return self._set_aside(stuck) if stuck else None

    def _set_aside(self, paths: list[str]) -> str:
        folder = free_name(os.path.join(os.path.dirname(self.aside), "set-aside"))
        for path in paths:
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(os.path.join(self.aside, path), target)
        return folder

    def clear(self) -> None:
        for folder in (self.new, self.aside):
            shutil.rmtree(folder, ignore_errors=True)

    def _folder(self, path: str, *, make: bool = False) -> tuple[int, str]:
        """The folder that a file is in, opened, and the file's name; ChangedSince if the way there is none."""
        *names, last = path.split("/")
        folder = os.open(self.root, _FOLDER)
        for name in names:
            try:
                try:
                    inner = os.open(name, _FOLDER, dir_fd=folder)
                except FileNotFoundError:
                    if not make:
                        raise
                    os.mkdir(name, dir_fd=folder)
                    inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EEXIST):
                    raise ChangedSince([path], "in this moment") from None
                raise
            finally:
                os.close(folder)
            folder = inner
        return folder, last

    def _remove_empty(self, name: str, folder: int) -> None:
        """Remove a folder that holds nothing but empty folders, if one is in the way."""
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except OSError:
            return
        try:
            for below in os.listdir(inner):
                self._remove_empty(below, inner)
        finally:
            os.close(inner)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:
            pass


def _files_below(folder: str) -> list[str]:
    found = []
    for at, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        found += [os.path.relpath(os.path.join(at, name), folder) for name in files + links]
    return sorted(found)

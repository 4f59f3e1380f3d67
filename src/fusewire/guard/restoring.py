"""Put one protected file back without destroying anything.

What is in its place is moved aside by renaming, so that its inode survives and a late writer's text is kept. A read
lease from the kernel proves that no process has it open for writing; one that opens it meanwhile has to wait, we are
notified, and it is put back. The restored file gets the name only if the name is free.
"""

from __future__ import annotations

import os
import stat
import time

from fusewire.guard.baseline import signature
from fusewire.guard.manifest import Version, lstat, recordable
from fusewire.guard.vault import READ, Vault, Way, look, move_aside, settled, unlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.manifest import FileEntry

#: Seconds without a change after which a file counts as closed where the kernel gives no leases.
_QUIET = 2.0


class FileBusy(OSError):
    """Somebody is writing the file: it is left as it is, and looked at again."""


class Lease:
    """Whether a file has a writer, and whether one has come since."""

    def __init__(self, name: str, folder: int) -> None:
        self.descriptor = os.open(name, READ, dir_fd=folder)
        #: None where the kernel gives no leases: another user's file, a network file system, not Linux.
        self.granted: bool | None = None
        try:
            import fcntl
            import signal

            fcntl.fcntl(self.descriptor, fcntl.F_SETSIG, signal.SIGURG)  # one that is ignored
            fcntl.fcntl(self.descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            self.granted = True
        except BlockingIOError:
            self.granted = False
        except (OSError, AttributeError):
            pass

    def has_writer(self) -> bool:
        if self.granted is None:
            return time.time() - os.fstat(self.descriptor).st_ctime < _QUIET
        if not self.granted:
            return True
        import fcntl

        return fcntl.fcntl(self.descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def close(self) -> None:
        os.close(self.descriptor)  # and with it the lease


def has_writer(name: str, folder: int) -> bool:
    """Whether somebody has a regular file open for writing."""
    try:
        lease = Lease(name, folder)
    except OSError:
        return False
    try:
        return lease.has_writer()
    finally:
        lease.close()


class Restoration:
    """One file on its way back: first what is in its place is kept, then the recorded one is put there, if any."""

    def __init__(self, name: str, kind: str, entry: FileEntry | None) -> None:
        self.name = name
        self.base = os.path.basename(name)
        self.kind = kind
        self.entry = entry
        #: What is in its place, the version that the vault has of it, and where it was moved.
        self.found: os.stat_result | None = None
        self.version: Version | None = None
        self.aside = ""
        self._lease: Lease | None = None

    def keep_what_is_there(self, now: float, way: Way, vault: Vault) -> None:
        """Put what is there into the vault, if it has room; an OSError says why the file cannot be restored."""
        entry = self.entry
        if entry and self.kind != "mode" and not (entry.kept and vault.intact(entry.digest, entry.size)):
            raise OSError(entry.why_not_kept())
        parent = way.parent(self.name, make=False)
        if parent is None:
            return
        try:
            self.found = lstat(self.base, parent)
            if entry and self.found is not None and signature(self.found) == entry.signature:
                self.kind = "mode"  # its folder was locked, that is all
            if self.found is None or self.kind == "mode":
                return
            if stat.S_ISREG(self.found.st_mode):
                self._hold(parent)
            if recordable(self.found):
                seen, digest, kept = look(self.base, parent, vault)
                if kept:
                    self.version = Version(float(now), digest, seen[1], "replaced", seen[0])
        except FileBusy:
            raise
        except OSError:
            pass  # it cannot be read; it is moved aside
        finally:
            os.close(parent)

    def _hold(self, parent: int) -> None:
        self._lease = Lease(self.base, parent)
        if self._lease.has_writer():
            raise FileBusy("somebody is writing it; it is left as it is, and looked at again")

    def put_back(self, way: Way, vault: Vault) -> None:
        """Move aside what is there, and give the restored file its name."""
        parent = way.parent(self.name, make=self.entry is not None)
        if parent is None:
            return  # what was new is gone
        try:
            found = lstat(self.base, parent)
            if (found and signature(found)) != (self.found and signature(self.found)):
                raise FileBusy("it was changed while it was being restored; restore it again")
            if self.entry is None:
                aside = self._move_aside(parent) if found is not None else ""
                self.aside = os.path.join(os.path.dirname(self.name), aside) if aside else ""
                return
            if self.kind == "mode":
                os.chmod(self.base, stat.S_IMODE(self.entry.mode), dir_fd=parent)
            else:
                self._replace(self.entry, parent, vault)
            after = os.stat(self.base, dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)
        self.entry.signature = settled(after, after.st_ctime_ns)  # just written: the next look shall read it again
        if way.moved and not self.aside:
            self.aside = way.moved.pop()

    def _replace(self, entry: FileEntry, parent: int, vault: Vault) -> None:
        temporary = f".fusewire-restoring-{os.getpid()}"
        is_link = stat.S_ISLNK(entry.mode)
        if not is_link:
            vault.write_file(entry.digest, entry.size, stat.S_IMODE(entry.mode), temporary, parent)
        try:
            aside = self._move_aside(parent) if self.found is not None else ""
            try:
                if is_link:
                    os.symlink(vault.read_link(entry.digest), self.base, dir_fd=parent)
                else:
                    _give_name(temporary, self.base, parent)
            except FileExistsError:
                raise FileBusy("it was written while it was being restored; it is left as it is") from None
            if aside and self._lease and self._lease.granted and self._lease.has_writer():
                os.rename(aside, self.base, src_dir_fd=parent, dst_dir_fd=parent)
                raise FileBusy("somebody began to write it while it was being restored; it is left as it is")
        finally:
            unlink(temporary, parent)
        self.aside = os.path.join(os.path.dirname(self.name), aside) if aside else ""

    def _move_aside(self, parent: int) -> str:
        aside = move_aside(self.base, parent)
        moved = lstat(aside, parent)
        if moved is None or self.found is None or moved.st_ino != self.found.st_ino:  # saved in this moment
            try:
                _give_name(aside, self.base, parent)
                unlink(aside, parent)
            except FileExistsError:
                pass  # and once more: both are there
            raise FileBusy("it was replaced while it was being restored; restore it again")
        return aside

    def close(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None


def _give_name(source: str, target: str, folder: int) -> None:
    """Name a file without replacing another; FileExistsError if there is one."""
    try:
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if lstat(target, folder) is not None:
            raise FileExistsError(17, "it exists", target) from None
        os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)

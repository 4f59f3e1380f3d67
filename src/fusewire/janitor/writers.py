"""Tells whether a process has a file open for writing, so that its next line must not be lost.

A process that opened a file before it was renamed goes on writing to it under its new name. The kernel is asked with
a read lease, which it gives only while nothing has the file open for writing: unlike /proc that also answers for
processes of the same user that cannot be looked into (ssh-agent, a sandboxed browser, another container). Where it
gives no leases (another user's file, NFS, not Linux), a file has a writer until it has not changed for an hour.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.janitor.folder import Folder

#: Seconds without a change after which a file that gets no lease counts as closed.
QUIET = 3600.0


def has_writer(folder: Folder, name: str, now: float) -> bool:
    """Whether a line may still be added to a file."""
    import fcntl
    import signal

    try:
        descriptor = folder.open(name)
        try:
            # a process that opens it while we hold the lease makes the kernel send a signal: one that is ignored
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        finally:
            os.close(descriptor)  # and with it the lease
    except BlockingIOError:
        return True
    except (OSError, AttributeError):
        facts = folder.look(name)
        return facts is not None and now - facts.st_mtime < QUIET
    return False

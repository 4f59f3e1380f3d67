"""Find the files into which a run's own output goes: they grow with every iteration, and are nobody's work."""

from __future__ import annotations

import os
import stat

from fusewire.util.processes import PROC, processes

#: Our stdout and stderr.
_STREAMS = ("1", "2")


def own_outputs() -> list[str]:
    """The files behind our own streams, and behind the pipeline that they lead into (`| tee out.txt`)."""
    found, pipes = _targets(os.getpid(), _STREAMS)
    if pipes:
        group = os.getpgrp()
        others = [one.pid for one in processes(()).values() if one is not None and one.group == group]
        others = [pid for pid in others if pid != os.getpid()]
        seen: set[str] = set()
        while pipes - seen:
            seen |= pipes
            for pid in others:
                _, reads = _targets(pid, ("0",))
                if reads & seen:  # the next program of the pipeline
                    files, further = _targets(pid, None)
                    found |= files
                    pipes |= further - reads
    return sorted(found)


def _targets(pid: int, names: tuple[str, ...] | None) -> tuple[set[str], set[str]]:
    """The regular files that these descriptors of a process can write, and the pipes behind them."""
    folder = f"{PROC}/{pid}/fd"
    files, pipes = set(), set()
    try:
        for name in names or os.listdir(folder):
            target, mode = os.readlink(f"{folder}/{name}"), os.lstat(f"{folder}/{name}").st_mode
            if target.startswith("pipe:"):
                pipes.add(target)
            elif mode & stat.S_IWUSR and os.path.isfile(target):
                files.add(target)
    except OSError:
        pass  # it has ended, belongs to somebody else, or there is no /proc
    return files, pipes

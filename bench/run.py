"""`make bench`: medians, and ratios measured in one run. Each part prints what it found and whether a goal is reached.

python bench/run.py          all of it, in about seven minutes
python bench/run.py 1 3      some of the parts
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
import time

import check_and_record
import checkpoints
import contention
import detection
import guard
import mirror
import sandbox
import server
import session
import snapshots
import starts
import supervisor
import writers
from redis_server import RedisServer


def main(wanted: list[str]) -> None:
    started = time.perf_counter()
    print(f"Fusewire benchmark: Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, ", end="")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n", flush=True)
    os.environ.pop("CLAUDE_PROJECT_DIR", None)
    with tempfile.TemporaryDirectory(prefix="fusewire-bench-") as folder:
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "no-configuration")
        with RedisServer(folder) as redis:
            parts = {
                "1": lambda: check_and_record.report(folder, redis),
                "2": lambda: writers.report(folder, redis),
                "3": lambda: starts.report(folder),
                "4": lambda: mirror.report(folder),
                "5": lambda: guard.report(folder),
                "6": lambda: snapshots.report(folder),
                "7": lambda: supervisor.report(folder),
                "8": lambda: checkpoints.report(folder),
                "9": lambda: session.report(folder),
                "10": lambda: detection.report(folder),
                "11": lambda: server.report(folder),
                "12": lambda: contention.report(folder),
                "13": lambda: contention.report_long(folder),
                "14": lambda: sandbox.report(folder),
            }
            for name in wanted or parts:
                print(parts[name](), end="\n\n", flush=True)
        os.chdir("/")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])

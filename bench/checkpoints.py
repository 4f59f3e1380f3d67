"""Part 8: checkpoints of a repository and the way back to them, beside one plain `git status` in the same run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from fusewire.worktree.checkpoint import Checkpoints
from measuring import Contender, goal, interleave, milli, table, times
from snapshots import repository

_FILES, _EDITED = 5_000, 20
_ROUNDS = 9
#: x git status
_GOAL = 10.0


def run() -> None:
    with tempfile.TemporaryDirectory(prefix="fusewire-bench-") as folder:
        print(report(folder))


def report(folder: str) -> str:
    root = repository(os.path.join(folder, "checkpoints"), _FILES)
    checkpoints = Checkpoints(root)
    first = checkpoints.take("bench")
    command = ["git", "status", "--porcelain=v2"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}

    def rollback() -> Callable[[], object]:
        for number in range(_EDITED):
            path = Path(root, "part-0", f"module-{number}", f"file-{number * 50}.py")
            path.write_text("# edited\n", encoding="utf-8")
        return lambda: checkpoints.restore(first, name="bench")

    base = Contender("git status", lambda: lambda: subprocess.check_output(command, cwd=root, env=environment))
    take = Contender("a checkpoint, nothing changed", lambda: lambda: checkpoints.take("bench"))
    contenders = [
        base,
        take,
        Contender("what has changed since", lambda: lambda: checkpoints.changed_since(first)),
        Contender(f"the way back, {_EDITED} files edited", rollback),
    ]
    interleave(contenders, rounds=_ROUNDS, calls=1, warm_up=0)
    rows = [(one.name, milli(one.median), times(one.median, base.median)) for one in contenders]
    ratio = take.median / base.median
    lines = [f"8. Checkpoints of {_FILES:,} files, ms", "", table(("", "p50", "x git status"), rows), ""]
    return "\n".join([*lines, goal(f"a checkpoint at most {_GOAL} x git status: {ratio:.2f}", ratio <= _GOAL)])


if __name__ == "__main__":
    run()

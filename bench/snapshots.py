"""Part 6: snapshots of repositories of 1,000 to 50,000 files, beside one plain `git status` in the same run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from fusewire.worktree.snapshot import take
from measuring import Contender, goal, interleave, milli, table, times

#: files -> seconds that a snapshot may take
_SIZES = {1_000: None, 5_000: 0.02, 10_000: None, 50_000: 0.25}
_ROUNDS = 9
_EDITED = 20


def run() -> None:
    with tempfile.TemporaryDirectory(prefix="fusewire-bench-") as folder:
        print(report(folder))


def report(folder: str) -> str:
    rows, goals = [], []
    for files, limit in _SIZES.items():
        root = repository(os.path.join(folder, f"snapshots-{files}"), files)
        clean = _measured(root, "")
        _edit(root)
        for measured in (clean, _measured(root, f", {_EDITED} files edited")):
            base = measured[0].median  # of the same rounds: the machine was as busy for both
            rows += [(one.name, f"{files:,}", milli(one.median), times(one.median, base)) for one in measured]
        if limit is not None:
            goals.append(goal(f"{files:,} files within {milli(limit)} ms", clean[-1].median <= limit))
    lines = ["6. Snapshots of a repository, ms", "", table(("", "files", "p50", "x git status"), rows), "", *goals]
    return "\n".join(lines)


def _measured(root: str, state: str) -> list[Contender]:
    previous = take(root)
    command = ["git", "status", "--porcelain=v2"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    contenders = [
        Contender(f"git status{state}", lambda: lambda: subprocess.check_output(command, cwd=root, env=environment)),
        Contender(f"the first snapshot{state}", lambda: lambda: take(root)),
        Contender(f"the next one{state}", lambda: lambda: take(root, previous)),
    ]
    interleave(contenders, rounds=_ROUNDS, calls=1, warm_up=1)
    return contenders


def repository(root: str, files: int) -> str:
    for number in range(files):
        path = Path(root, f"part-{number // 1000}", f"module-{number // 50 % 20}", f"file-{number}.py")
        if number % 50 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"def function_{number}():\n    return {number}\n" * 5, encoding="utf-8")
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "files")):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def _edit(root: str) -> None:
    for number in range(_EDITED):
        with Path(root, "part-0", f"module-{number}", f"file-{number * 50}.py").open("a", encoding="utf-8") as file:
            file.write("# edited\n")


if __name__ == "__main__":
    run()

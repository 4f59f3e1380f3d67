"""Part 7: the supervised loop: what an iteration costs beside its agent, and the memory for 100 MB of output."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from measuring import goal, milli, quantile, table, times

_FILES = 5_000
_ITERATIONS = 10
_ROUNDS = 5
_GOAL = 0.05
_OUTPUT = 100_000_000
_MEMORY_GOAL = 64

#: A line in a file is progress; `sh` is the cheapest agent there is.
_AGENT = "echo $$ >> work.txt"

#: The least that a loop written by hand does: run the agent, and look whether anything has changed.
_BY_HAND = f"""
for i in $(seq $1); do
  before=$(git rev-parse HEAD; git status --porcelain)
  sh -c '{_AGENT}'
  after=$(git rev-parse HEAD; git status --porcelain)
  [ "$before" = "$after" ] && echo "no progress"
done
"""


def report(folder: str) -> str:
    root = _repository(os.path.join(folder, "supervised"))
    contenders = {
        "the agent alone": ["sh", "-c", f"for i in $(seq $1); do sh -c '{_AGENT}'; done", "sh"],
        "a loop by hand (bash and git status twice)": ["bash", "-c", _BY_HAND, "bash"],
        "fusewire run": [
            *(sys.executable, "-m", "fusewire", "run", "--no-wait", "--max-iterations", "{count}"),
            *("--", "sh", "-c", _AGENT),
        ],
    }
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(_ROUNDS):
        for name, command in contenders.items():
            samples[name].append(_each(root, command))
    agent = quantile(samples["the agent alone"], 0.5)
    base = quantile(samples["a loop by hand (bash and git status twice)"], 0.5) - agent
    rows = []
    for name, found in samples.items():
        cost = quantile(found, 0.5) - (0 if name == "the agent alone" else agent)
        rows.append((name, milli(cost), "" if name == "the agent alone" else times(cost, base)))
    own = quantile(samples["fusewire run"], 0.5) - agent
    memory = _memory(root)
    return "\n".join(
        [
            f"7. The supervised loop on {_FILES:,} files: cost of an iteration beside its agent, ms",
            "",
            table(("", "ms", "x by hand"), rows),
            "",
            goal(f"an iteration costs within {_GOAL * 1000:.0f} ms", own <= _GOAL),
            goal(f"100 MB of output in {memory} MB of memory, goal {_MEMORY_GOAL}", memory <= _MEMORY_GOAL),
        ]
    )


def _repository(root: str) -> str:
    for number in range(_FILES):
        path = Path(root, f"part-{number % 50}", f"{number}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n", encoding="utf-8")
    Path(root, "fusewire.toml").write_text("[loop]\nmax_calls_per_hour = 1000\n", encoding="utf-8")
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b@c", "commit", "-qm", "1"],
    ):
        subprocess.run(["git", "-C", root, *arguments], check=True)
    return root


def _each(root: str, command: list[str]) -> float:
    """Seconds of one iteration: many less one, so that the start of the loop itself is not in it."""
    taken = []
    for count in (1, _ITERATIONS + 1):
        line = [part.replace("{count}", str(count)) for part in command]
        line = line if line != command else [*command, str(count)]
        started = time.perf_counter()
        subprocess.run(line, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        taken.append(time.perf_counter() - started)
    return (taken[1] - taken[0]) / _ITERATIONS


def _memory(root: str) -> int:
    """The most that the supervisor had in memory, in MB, while its agent printed 100 MB."""
    agent = f"yes 'one more line of output that says nothing' | head -c {_OUTPUT}"
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "fusewire", "run", "--no-wait", "--max-iterations", "1", "--", "sh", "-c", agent],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(supervisor.pid, 0)
    supervisor.returncode = 0
    unit = 1 if sys.platform == "darwin" else 1024
    most: resource.struct_rusage = usage
    return round(most.ru_maxrss * unit / 1e6)

"""Parts 12 and 13: many agents in one project at once, and many hooks one after the other.

A call is two real hook processes; each must be answered and counted. Nothing lies between the calls of an agent, so
that as many hooks run all the time as there are agents.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field

import fusewire
from measuring import goal, quantile, table

HOOK = os.path.join(os.path.dirname(fusewire.__file__), "hook.py")

#: agents -> calls of each: about as many hooks in every row
LOADS = {8: 60, 32: 15, 64: 8, 200: 4}
_SLOWEST = 1.5

#: Hooks in a row. What is kept of 5,000 calls is the most that the database keeps.
_LONG = 5000


@dataclass
class Load:
    """What came of one load: seconds per hook, hooks that denied or could not ask, results that were not counted."""

    seconds: list[float] = field(default_factory=list)
    denied: int = 0
    unasked: int = 0
    lost: int = 0
    #: the largest size of the write-ahead log, in bytes
    log: int = 0


def report(folder: str) -> str:
    rows, found = [], {}
    for agents, calls in LOADS.items():
        found[agents] = load = run(os.path.join(folder, f"agents-{agents}"), agents, calls)
        rows.append(_row(f"{agents}", load))
    one = run(os.path.join(folder, "one-session"), 64, LOADS[64], one_session=True)
    rows.append(_row("64, one session", one))
    loads = [*found.values(), one]
    return "\n".join(
        [
            "12. Agents at once in one project, hooks without a pause (ms a hook)",
            "",
            table(("agents", "hooks", "p50", "p99", "max", "denied", "not asked", "lost"), rows),
            "",
            goal(f"64 agents: p99 under {_SLOWEST} s: {quantile(found[64].seconds, 0.99):.2f} s",
                 quantile(found[64].seconds, 0.99) < _SLOWEST),
            goal(f"nothing denied, nothing lost: {sum(load.denied + load.lost for load in loads)}",
                 not any(load.denied or load.lost for load in loads)),
        ]
    )  # fmt: skip


def _row(name: str, load: Load) -> tuple[str, ...]:
    times = [f"{1e3 * quantile(load.seconds, share):,.0f}" for share in (0.5, 0.99, 1)]
    return name, str(len(load.seconds)), *times, str(load.denied), str(load.unasked), str(load.lost)


def run(root: str, agents: int, calls: int, *, one_session: bool = False) -> Load:
    """So many agents, each with so many calls one after the other; what the store has counted of them at the end."""
    subprocess.run(["git", "init", "-q", "--template=", root], check=True)
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": root, "XDG_STATE_HOME": os.path.join(root, ".git", "state")}
    load = Load()
    running: dict[int, tuple[int, int, float]] = {}
    with tempfile.TemporaryDirectory() as files:

        def start(agent: int, step: int) -> None:
            with open(f"{files}/in-{agent}", "w") as file:
                json.dump(_payload(root, agent, step, one_session), file)
            streams = [
                (os.POSIX_SPAWN_OPEN, 0, f"{files}/in-{agent}", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, f"{files}/out-{agent}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ]
            began = time.perf_counter()
            line = (sys.executable, "-I", "-S", HOOK, "claude")
            running[os.posix_spawn(line[0], line, environment, file_actions=streams)] = (agent, step, began)

        for agent in range(agents):
            start(agent, 0)
        while running:
            pid, status = os.wait()
            agent, step, began = running.pop(pid)
            load.seconds.append(time.perf_counter() - began)
            with open(f"{files}/out-{agent}") as file:
                said = file.read()
            load.denied += status != 0 or "BLOCKED" in said
            load.unasked += "out of order" in said
            load.log = max(load.log, _size(f"{root}/.fusewire/state.db-wal"))
            if step + 1 < 2 * calls:
                start(agent, step + 1)
    load.lost = agents * calls - _counted(root)
    return load


def _payload(root: str, agent: int, step: int, one_session: bool) -> dict[str, object]:
    number, is_result = divmod(step, 2)
    call = {
        "session_id": "one" if one_session else f"session-{agent}",
        "cwd": root,
        "hook_event_name": "PostToolUse" if is_result else "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": f"cat src/{agent}/{number}.txt"},
        "tool_use_id": f"call-{agent}-{number}",
    }
    return {**call, "tool_response": {"stdout": f"content {agent} {number}", "stderr": ""}} if is_result else call


def _counted(root: str) -> int:
    """Results that the store knows of, or that wait to be counted."""
    with closing(sqlite3.connect(os.path.join(root, ".fusewire", "state.db"))) as connection:
        (counted,) = connection.execute("SELECT count(*) FROM doings WHERE kind = 'ok'").fetchone()
    late = os.path.join(root, ".fusewire", "late")
    return int(counted) + (len(os.listdir(late)) if os.path.isdir(late) else 0)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def report_long(folder: str) -> str:
    """Hooks of one agent after another, more than the log of the database may grow with."""
    load = run(os.path.join(folder, "long"), 1, _LONG // 2)
    parts = [load.seconds[at : at + _LONG // 5] for at in range(0, _LONG, _LONG // 5)]
    rows = [
        (f"{(at + 1) * len(part):,}", *(f"{1e3 * quantile(part, share):.1f}" for share in (0.5, 0.95, 0.99)))
        for at, part in enumerate(parts)
    ]
    grown = quantile(parts[-1], 0.5) / quantile(parts[0], 0.5)
    return "\n".join(
        [
            f"13. {_LONG:,} hooks one after the other (ms a hook)",
            "",
            table(("hooks so far", "p50", "p95", "p99"), rows),
            "",
            goal(f"the write-ahead log stays below 1 MB: {load.log / 1e6:.2f} MB", load.log < 1e6),
            goal(f"the last hooks take as long as the first: {grown:.2f} times", grown < 1.25),
        ]
    )

"""Many real processes that spend at once, and processes that are killed: every piece counts once."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fusewire.agents.spending.account import account_of, together
from fusewire.config.prices import load_prices
from fusewire.scopes.user import open_user_store
from fusewire.util.durations import format_time
from tests.helpers import SOURCE
from tests.helpers.paying import Paying, paying
from tests.helpers.project import Project


def projects(folder: Path, count: int) -> list[Project]:
    found = []
    for number in range(count):
        root = folder / f"project-{number}"
        for name in ("refs", "objects"):
            (root / ".git" / name).mkdir(parents=True)
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        found.append(Project(root))
    return found


def persons(text: str) -> None:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sessions(folder: Path, count: int, where: int) -> list[Paying]:
    homes = projects(folder, where)
    return [paying(homes[number % where], f"s{number}") for number in range(count)]


def recounted(several: list[Paying]) -> dict[str, list[float]]:
    """What the transcripts themselves say, by model."""
    account = together(account_of(one.transcript, load_prices()) for one in several)
    return {name: [round(row[6], 4), *row[:6]] for name, row in account.models.items()}


def in_ledger() -> dict[str, list[float]]:
    rows = open_user_store(read_only=True).spent(("model",))
    return {model: [round(usd, 4), *tokens[:6]] for model, usd, *tokens in rows if model}


def now() -> str:
    return format_time(time.time())


def test_thirty_processes_share_one_budget_exactly(tmp_path: Path) -> None:
    """The sum is exact, and no call passes that began after the limit was reached by anybody."""
    persons('[budgets.daily]\nper = "day"\nusd = 20\nwarn = 1.0\n')
    several = sessions(tmp_path, 30, 6)
    for one in several:
        one.asks()  # every store is there

    def spends(one: Paying) -> tuple[float, float, bool]:
        one.pays(1, at=now())
        began = time.monotonic()
        said = one.asks()
        return began, time.monotonic(), said.allowed

    with ThreadPoolExecutor(30) as pool:
        results = list(pool.map(spends, several))
    assert in_ledger() == recounted(several)
    assert in_ledger()["claude-opus-5-5"][0] == 30
    assert sum(allowed for *_, allowed in results) <= 19, "the twentieth dollar is the limit"
    reached = min(ended for _, ended, allowed in results if not allowed)
    assert not [began for began, _, allowed in results if allowed and began > reached]
    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(lambda one: one.asks().allowed, several[:8])), "in every project"


def start_hook(one: Paying, *before: str) -> subprocess.Popen[bytes]:
    one.calls += 1
    payload = {
        **one.project.bash(f"ls part{one.calls}"),
        "session_id": one.id,
        "transcript_path": one.transcript,
        "tool_use_id": f"toolu_{one.id}_{one.calls}",
    }
    process = subprocess.Popen(
        [*before, sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=one.project.root,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(one.project.root)},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(payload).encode())
    process.stdin.close()
    return process


def test_a_process_that_is_killed_anywhere_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    """Also between the commit of its project and that of the person; the next word of the session brings the rest."""
    several = sessions(tmp_path, 3, 2)
    chance = random.Random(7)
    for number in range(45):
        one = several[number % 3]
        one.pays(0.25, at=now(), agent="helper" if number % 5 == 0 else None)
        process = start_hook(one)
        time.sleep(chance.uniform(0.0, 0.12))
        process.send_signal(signal.SIGKILL)
        process.wait()
    for one in several:
        one.asks()
        one.send("Stop", stop_hook_active=False)
    assert in_ledger() == recounted(several)
    assert in_ledger()["claude-opus-5-5"][0] == 45 * 0.25


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt install strace)")
@pytest.mark.parametrize("budget", [False, True])
def test_killed_at_every_write_it_loses_nothing_and_counts_nothing_twice(tmp_path: Path, budget: bool) -> None:
    """At the first, second, third ... system call that writes, until one run ends by itself."""
    persons('[budgets.daily]\nper = "day"\nusd = 1000\n' if budget else "")
    (one,) = sessions(tmp_path, 1, 1)
    one.asks()
    calls, number = "write,pwrite64,ftruncate,rename,unlink", 0
    while number < 80:
        number += 1
        one.pays(0.25, at=now())
        strace = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}")
        process = start_hook(one, *strace, "-e", f"inject={calls}:signal=KILL:when={number}")
        if process.wait(timeout=60) == 0:
            break
    assert 5 < number < 80, "it was killed a few times, and ended by itself at last"
    one.send("Stop", stop_hook_active=False)
    assert in_ledger() == recounted([one])
    assert in_ledger()["claude-opus-5-5"][0] == number * 0.25


def many(tmp_path: Path, count: int, where: int, rounds: int) -> None:
    several = sessions(tmp_path, count, where)
    for number in range(rounds):
        for one in several:
            one.pays(0.5, at=now(), model="claude-haiku-4-5" if number % 2 else "claude-opus-5-5")
        running = [start_hook(one) for one in several]
        assert {process.wait(timeout=120) for process in running} <= {0}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: one.send("Stop", stop_hook_active=False), several))
    assert in_ledger() == recounted(several)
    rows = open_user_store(read_only=True).spent(("session",))
    assert len(rows) == count
    assert {row[-2] for row in rows} == {rounds}, "requests"


def test_sessions_of_many_projects_spend_at_once(tmp_path: Path) -> None:
    many(tmp_path, 24, 6, 2)


@pytest.mark.slow
def test_two_hundred_sessions_of_forty_projects_spend_at_once(tmp_path: Path) -> None:
    many(tmp_path, 200, 40, 2)

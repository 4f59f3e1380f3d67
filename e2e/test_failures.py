"""When the breaker itself fails: what the client then does with the call, and what the person sees of it.

Protected files and constraints are refused all the same, everything else passes, and somebody is told (decision 22).
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from harness.bench import FILES, Bench
from harness.calls import shell
from harness.processes import comes_true
from harness.script import do, script

SOURCE = Path(__file__).parents[1] / "src" / "fusewire"

HARMLESS = do(shell("echo done > done.txt"))
FORBIDDEN = do(shell("rm specs/a.md"))

RULE = """---
id: no-tagging
match:
  - command: git tag
---
# Releases are tagged by people
"""


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """A process of its own that holds the database and will not let go."""
    code = (
        "import sqlite3, sys, time\n"
        "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "held.execute('BEGIN EXCLUSIVE')\nprint('held', flush=True)\ntime.sleep(300)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(database)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
    finally:
        holder.kill()
        holder.communicate()


def begun(bench: Bench) -> None:
    """A session has been here before, so that there is a state."""
    bench.run(do(shell("touch begun.txt")))
    assert bench.path(".fusewire/state.db").exists()


def test_a_locked_store_lets_harmless_calls_pass_and_keeps_what_is_protected(bench: Bench) -> None:
    bench.put("docs/constraints/no-tagging.md", RULE)
    begun(bench)
    with locked(bench.path(".fusewire/state.db")):
        run = bench.run(HARMLESS, FORBIDDEN, do(shell("git tag v1")))
    assert run.code == 0, run
    assert bench.text("done.txt") == "done\n", run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run
    assert "BLOCKED guard." in run.told_at(2), run
    assert "BLOCKED constraint:no-tagging" in run.told_at(3), run
    assert bench.git("tag") == "", run
    assert "out of order" in run.shown, f"the person is told\n{run}"


def test_a_damaged_store_is_set_aside_and_said(bench: Bench) -> None:
    begun(bench)
    bench.put(".fusewire/state.db", "this is no database at all\n" * 500)
    run = bench.run(HARMLESS, FORBIDDEN)
    assert run.code == 0, run
    assert bench.text("done.txt") == "done\n", run
    assert "BLOCKED guard." in run.told_at(2), run
    assert list(bench.path(".fusewire").glob("state.db.corrupt*")), run
    with contextlib.closing(sqlite3.connect(bench.path(".fusewire/state.db"))) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    assert bench.json("status")["warnings"], "a notice until somebody acknowledges it"


def test_a_store_that_is_lost_in_the_middle_leaves_the_guard_standing(bench: Bench) -> None:
    """Somebody cleans up while the agent works."""

    def clean() -> None:
        if comes_true(bench.path("half.txt").exists):
            shutil.rmtree(bench.path(".fusewire"), ignore_errors=True)
            bench.put("cleaned.txt", "")

    thread = threading.Thread(target=clean)
    run = bench.run(
        do(shell("echo half > half.txt")),
        do(shell("while [ ! -e cleaned.txt ]; do sleep 0.1; done")),
        FORBIDDEN,
        HARMLESS,
        meanwhile=thread.start,
    )
    thread.join()
    assert run.code == 0, run
    assert bench.path("cleaned.txt").exists(), run
    assert "BLOCKED guard." in run.told_at(3), run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run
    assert bench.text("done.txt") == "done\n", run


#: Added to a copy of the package: the first hook that finds this file takes it away and hangs.
HANGS = """

_load_rules = load_rules


def load_rules(root, *, keeps=False):
    try:
        os.rename(os.path.join(root, "hang"), os.path.join(root, "hung"))
    except OSError:
        return _load_rules(root, keeps=keeps)
    import time

    time.sleep(60)
"""


def test_a_hook_that_hangs_denies_before_the_client_would_let_pass(bench: Bench, tmp_path: Path) -> None:
    """Only while the one call is judged."""
    copy = shutil.copytree(SOURCE, tmp_path / "slow" / "fusewire")
    with (copy / "config" / "rules.py").open("a") as rules:
        rules.write(HANGS)
    bench.fusewire("uninstall", bench.name, "--user")
    bench.fusewire("install", bench.name, "--user", env={"PYTHONPATH": str(copy.parent)})
    bench.client.trust()
    begun(bench)
    blocked = threading.Event()
    played = script(do(shell("touch judged.txt"), after=blocked))

    def block() -> None:
        comes_true(lambda: played.requests)
        bench.put("hang", "")
        blocked.set()

    thread = threading.Thread(target=block, daemon=True)
    run = bench.play(played, meanwhile=thread.start)
    thread.join()
    assert bench.path("hung").exists(), run
    assert run.code is not None, run
    assert not bench.path("judged.txt").exists(), run
    assert "no answer within 10 seconds" in run.told_at(1), run


def test_an_oversized_call_is_judged(bench: Bench) -> None:
    """Megabytes of command line, with the deletion at its end."""
    long = ": " + "x" * OVERSIZED[bench.name] + "\nrm -f specs/a.md"
    run = bench.run(do(shell(long)), FORBIDDEN)
    assert run.code is not None, run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run
    assert "BLOCKED" in run.told_at(1), run.told_at(1)[-2000:]
    assert "BLOCKED guard." in run.told_at(2), f"the hook still fires: {run.told_at(2)[-2000:]}"


#: As much as each client takes in its stride: with more, Copilot alone counts tokens for half a minute.
OVERSIZED = {"claude": 20_000_000, "codex": 20_000_000, "gemini": 10_000_000, "copilot": 3_000_000}

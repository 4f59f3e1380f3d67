"""A run that waits, in front of a person at a terminal: why, how to end the wait, and that Ctrl-C costs nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.engine.breaker import Breaker
from tests.helpers.agents.run_stage import IDLE, Stage, staged
from tests.helpers.watching import Make, terminals

RUN = [sys.executable, "-m", "fusewire", "run"]

#: An agent that gets nowhere until its probe.
STUCK = (
    f'echo "$FUSEWIRE_ITERATION" >> "$OUT/starts"; if [ "$FUSEWIRE_ITERATION" -lt 4 ]; then {IDLE}; else echo x > w; fi'
)

PRESS = "Press p to end the cooldown now; one probe decides."
SAFE = "Ctrl-C is safe: counts, cooldowns and lessons are kept, and the same command goes on from here."
EVIDENCE = "Last: the agent ended; no file changed, no task completed"


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Stage]:
    stage = staged(tmp_path, None)
    yield stage
    stage.close()


@pytest.fixture
def terminal() -> Iterator[Make]:
    with terminals() as make:
        yield make


def test_a_key_ends_the_cooldown_and_the_one_probe_decides(bare: Stage, terminal: Make) -> None:
    """As a person's reset does, in that person's name. No other key does it, nor one from before the wait."""
    one = terminal(bare.root, "--max-iterations", "4", "--", "sh", "-c", STUCK, command=RUN, OUT=str(bare.outside))
    one.press("p")
    shown = one.shows("waiting ", PRESS, SAFE, EVIDENCE)
    one.press("xq\r")
    time.sleep(1)
    assert bare.starts() == [1, 2, 3], shown
    one.press("p")
    one.shows("[4] HALF_OPEN (the one probe)", "CAPPED after 4 iterations")
    assert (one.wait(), bare.starts(), bare.loop()["state"]) == (4, [1, 2, 3, 4], "CLOSED")
    with Breaker.open(project=bare.root) as breaker:
        moves = [(move.source, move.target, move.reason) for move in breaker.audit("loop/no_progress", days=1)]
    assert ("open", "probe", "a key pressed at the terminal of the run") in moves


def test_ctrl_c_in_a_wait_is_safe_and_the_same_command_goes_on(bare: Stage, terminal: Make) -> None:
    """The second run says why it waits, with evidence, though it has not seen the circuit open."""
    for _ in range(2):
        one = terminal(bare.root, "--", "sh", "-c", STUCK, command=RUN, OUT=str(bare.outside))
        one.shows("waiting ", EVIDENCE, "Next: ", "fusewire reset loop --reason", PRESS, SAFE)
        one.press("\x03")
        one.shows("INTERRUPTED after ", "Nothing is lost: counts, cooldowns and lessons are kept")
        assert (one.wait(), bare.starts()) == (130, [1, 2, 3])


def test_inside_an_agent_no_key_ends_anything(bare: Stage, terminal: Make) -> None:
    """An agent with a terminal of its own is no person."""
    one = terminal(bare.root, "--", "sh", "-c", STUCK, command=RUN, OUT=str(bare.outside), CLAUDECODE="1")
    assert "Press" not in one.shows("waiting ", SAFE)
    one.press("p")
    time.sleep(1)
    assert bare.starts() == [1, 2, 3]
    one.press("\x03")
    assert one.wait() == 130


def test_a_run_in_the_background_leaves_the_terminal_to_the_shell(bare: Stage, terminal: Make) -> None:
    """It would be stopped if it read a key or changed a mode."""
    script = 'set -m; "$@" & wait $!; echo "ended with $?"'
    limits = ("--max-time", "4s")
    command = ["bash", "-c", script, "bash", *RUN, *limits, "--", "sh", "-c", STUCK]
    one = terminal(bare.root, command=command, OUT=str(bare.outside))
    one.shows("waiting ", SAFE, "ended with 4")
    assert one.wait() == 0


def test_a_full_hour_is_explained_and_no_key_opens_it(bare: Stage, terminal: Make) -> None:
    """The limit is never exceeded: nobody is offered what would not help."""
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 2\n")
    work = 'echo "$FUSEWIRE_ITERATION" >> "$OUT/starts"; echo x > w$FUSEWIRE_ITERATION'
    one = terminal(bare.root, "--", "sh", "-c", work, command=RUN, OUT=str(bare.outside))
    shown = one.shows("waiting ", "BLOCKED loop.rate: 2 of 2 calls within 1h", "There is room again at ", SAFE)
    assert "Press" not in shown
    one.press("p")
    time.sleep(1)
    one.press("\x03")
    assert (one.wait(), bare.starts()) == (130, [1, 2])


def test_without_a_terminal_the_wait_is_explained_once(bare: Stage) -> None:
    """Nobody could press a key there."""
    bare.run(IDLE)
    ended = bare.run(IDLE, "--max-time", "1s", wait=True)
    assert ended.returncode == 4, ended.stderr
    assert [ended.stderr.count(words) for words in (EVIDENCE, SAFE, "waiting ", "Press")] == [1, 1, 1, 0]

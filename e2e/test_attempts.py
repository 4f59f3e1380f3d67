"""A test command that the agent runs in its shell is an attempt, when a slice is open."""

from __future__ import annotations

from harness.bench import Bench
from harness.calls import edit, shell
from harness.script import do

CASE = """import sys
import unittest

sys.path.insert(0, "src")
from app import answer


class Cases(unittest.TestCase):
    def test_answer(self):
        self.assertEqual(answer(), 42)
"""

RUN = do(shell("python3 -B -m unittest tests/test_unit.py"))


def test_three_failed_attempts_stop_the_work_on_a_test(bench: Bench) -> None:
    bench.put("tests/test_unit.py", CASE)
    bench.fusewire("attempt", "start", "S-1", "test_answer")
    guesses = [do(edit("src/app.py", f"    return {41 - n}", f"    return {40 - n}")) for n in range(3)]
    run = bench.run(RUN, *(one for guess in guesses for one in (guess, RUN)))
    assert run.code == 0, run
    assert "counted" not in run.told_at(1), f"nothing was changed yet: that was a look\n{run}"
    assert "1 of 3 failed attempts" in run.told_at(3), run
    assert "2 of 3 failed attempts" in run.told_at(5), run
    assert "CIRCUIT OPEN attempt.test:S-1/test_answer" in run.told_at(7), run
    assert "attempt/S-1/test_answer" in bench.tripped()


def test_without_a_slice_the_same_runs_are_nobodys_attempts(bench: Bench) -> None:
    bench.put("tests/test_unit.py", CASE)
    run = bench.run(RUN, do(edit("src/app.py", "    return 41", "    return 40")), RUN)
    assert run.code == 0, run
    assert "attempt" not in run.told_at(1) + run.told_at(3), run
    assert bench.heard() >= 2
    assert not bench.tripped()

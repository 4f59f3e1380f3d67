"""A model that is stuck is stopped: after as many requests as the policy says, and the program ends by itself."""

from __future__ import annotations

from harness.bench import Bench
from harness.calls import shell, spawn, wait
from harness.script import Script, do, part, script

#: Fails for ever in the same way.
STUCK = do(shell("python3 -B tests/test_app.py"))

#: Two looks that bring nothing new, in turn.
AROUND = (do(shell("cat notes.txt")), do(shell("ls src")))

#: The same call is refused after its third failure in five turns, and whoever asks three times for it is halted.
FAILURES, REFUSALS = 3, 3
#: Rounds of the same calls after which they are refused.
ROUNDS = 4


def test_a_stuck_model_is_stopped_and_the_run_ends(bench: Bench) -> None:
    run = bench.play(script(STUCK, forever=True))
    assert run.code is not None, f"it did not end by itself\n{run}"
    assert FAILURES < run.count() <= FAILURES + REFUSALS + EXTRA[bench.name], run
    assert any(name.startswith("tool/tool_failure/Bash(python3 ") for name in bench.tripped()), bench.tripped()
    assert "BLOCKED tool.tool_failure" in run.told, "it was told why before it was stopped"
    assert "Next:" in run.told


def test_two_calls_in_turn_are_a_loop(bench: Bench) -> None:
    run = bench.play(script(*AROUND, forever=True))
    assert run.code is not None, f"it did not end by itself\n{run}"
    calls = 2 * ROUNDS
    assert calls <= run.count() <= calls + REFUSALS + IN_TURN[bench.name], run
    assert any(name.startswith("tool/cycle/") for name in bench.tripped()), bench.tripped()
    assert "WARNING tool.cycle" in run.told, "it was told before it was refused"
    assert run.told.index("WARNING tool.cycle") < run.told.index("BLOCKED tool.cycle")


def test_a_helper_that_is_stuck_stops_the_main_agent_too(bench: Bench) -> None:
    """The main agent would go on for as long as the helper: neither does."""
    helpers = {"HELPER-1": part(STUCK, forever=True)}
    replies = (do(spawn("HELPER-1: make the test pass.")), do(wait()))
    after = tuple(do(shell(f"echo {number} >> went-on.txt")) for number in range(40))
    run = bench.play(Script(part(*replies, *after), helpers))
    assert run.code is not None, f"it did not end by itself\n{run}"
    assert FAILURES < run.count("HELPER-1") <= FAILURES + REFUSALS + UNHEEDED[bench.name], run
    assert run.count() <= len(replies) + UNHEEDED[bench.name], run
    assert bench.text("went-on.txt") is None, f"the main agent went on\n{run}"
    assert bench.tripped()


def test_without_the_hook_it_goes_on(bare: Bench) -> None:
    """The control, with an end that the policy would never let it come to."""
    run = bare.run(*[STUCK] * 20)
    assert run.code == 0, run
    assert run.count() == 21, run


#: The same for two calls in turn, which are told from two calls of one reply only when the first comes again (or by the
#: second that a real model takes for a reply).
IN_TURN = {"claude": 0, "codex": 10, "gemini": 2, "copilot": 3}

#: The same inside a helper, where the halts of some clients end nothing but the one call; and one more request may be
#: on its way when the program is ended.
UNHEEDED = {"claude": 0, "codex": 5, "gemini": 5, "copilot": 5}

#: Requests beyond the policy's number: a client without a halt is told no three times more, then its program is ended.
EXTRA = {"claude": 0, "codex": 5, "gemini": 0, "copilot": 1}

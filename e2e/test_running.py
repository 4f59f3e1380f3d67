"""`fusewire run` around a real client, from its first iteration to its last."""

from __future__ import annotations

import sys

from harness.bench import FILES, Bench
from harness.calls import edit, read, shell
from harness.script import Reply, do, script


def around(*options: str) -> list[str]:
    return [sys.executable, "-m", "fusewire", "run", "--no-wait", *options, "--"]


def test_the_loop_ends_when_its_condition_holds(bench: Bench) -> None:
    """Each iteration is a session of its own; the second makes the test pass. The hook stands guard inside."""
    run = bench.run(
        do(read("src/app.py")),
        do(edit("src/app.py", "    return 41", "    return 40")),
        Reply(text="Not there yet."),
        do(shell("rm -rf specs")),
        do(read("src/app.py")),
        do(edit("src/app.py", "    return 40", "    return 42")),
        Reply(text="It should pass now."),
        around=around("--max-iterations", "5", "--until", "python3 -B tests/test_app.py"),
    )
    assert run.code == 0, run
    assert run.count() == 7, run
    assert "BLOCKED guard." in run.told_at(4), run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run
    assert "return 42" in (bench.text("src/app.py") or "")


def test_a_loop_without_progress_is_stopped(bench: Bench) -> None:
    played = script(do(shell("cat notes.txt")), Reply(text="I have looked at it."), forever=True)
    run = bench.play(played, around=around("--max-iterations", "9"))
    assert run.code == 3, run
    assert run.count() == 6, f"three iterations of two requests\n{run}"
    assert "loop/no_progress" in bench.tripped()
    assert "loop.no_progress" in run.ended.stderr, run

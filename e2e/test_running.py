"""`fusewire run` around a real client, from its first iteration to its last."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.bench import FILES, Bench
from harness.calls import edit, read, shell
from harness.clients import PATIENCE
from harness.script import Reply, do, script
from harness.server import model


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


README = Path(__file__).parents[1] / "README.md"


@pytest.mark.only("claude")
def test_the_line_of_the_readme_works_as_printed(agent: str, bench: Bench) -> None:
    """The client may edit and test with it, every call is shown as it comes, and a denial says what would allow it."""
    printed = re.search(r"(?m)^    fusewire run (.*\\\n.* claude .*)$", README.read_text())
    assert printed is not None
    words = shlex.split(printed[1].replace("\\\n", " "))
    bench.put("PROMPT.md", "Make the test pass.\n")
    bench.put("tests/test_app.py", "from src.app import answer\n\ndef test_answer():\n    assert answer() == 42\n")
    bench.put("conftest.py", "")
    played = script(
        do(read("src/app.py")),
        do(edit("src/app.py", "    return 41", "    return 42")),
        do(shell("pytest -q")),
        do(shell("npm install left-pad")),
        Reply(text="It should pass now."),
    )
    client = bench.client
    path = f"{Path(sys.executable).parent}:{client.path}"
    with model(client.vendor, played, client.tool) as port:
        ended = processes.run(
            [sys.executable, "-m", "fusewire", "run", *words],
            cwd=bench.root,
            environment={**client.environment(port), "PATH": path},
            home=client.home,
            seconds=PATIENCE,
        )
    assert ended.code == 0, ended
    assert "return 42" in (bench.text("src/app.py") or ""), ended
    assert "1 passed" in played.requests[3].told, ended
    calls = [line.partition("]")[0] for line in ended.stdout.splitlines() if line.startswith("[")]
    assert calls == ["[Read", "[Edit", "[Bash", "[Bash"], ended
    assert 'denied: Bash(npm install left-pad) (claude --allowedTools "Bash(npm:*)" allows it' in ended.stderr, ended


def test_a_loop_without_progress_is_stopped(bench: Bench) -> None:
    played = script(do(shell("cat notes.txt")), Reply(text="I have looked at it."), forever=True)
    run = bench.play(played, around=around("--max-iterations", "9"))
    assert run.code == 3, run
    assert run.count() == 6, f"three iterations of two requests\n{run}"
    assert "loop/no_progress" in bench.tripped()
    assert "loop.no_progress" in run.ended.stderr, run

"""A long honest session is never disturbed: not a word of ours reaches the model."""

from __future__ import annotations

from collections.abc import Iterator

from harness.bench import Bench
from harness.calls import Call, edit, read, shell, write
from harness.script import Reply, do

MODULES = 20


def module(number: int, factor: str) -> str:
    return f"def times(n):\n    return n * {factor}\n"


def case(number: int) -> str:
    return (
        "import sys\nsys.path.insert(0, 'src')\n"
        f"from part{number} import times\n"
        f"for n in range(5):\n    assert times(n) == n * {number}, (n, times(n))\nprint('5 passed')\n"
    )


def work(number: int) -> Iterator[tuple[Call, ...]]:
    """Ten calls on one module: look, see it fail, mend it badly, see it fail in another way, mend it, see it pass."""
    test = shell(f"python3 -B tests/test_part{number}.py")
    yield (shell("git log --oneline | head -3"), read(f"src/part{number}.py"))
    yield (shell(f"grep -n times src/part{number}.py tests/test_part{number}.py"),)
    yield (test,)
    yield (edit(f"src/part{number}.py", "    return n * 0", "    return n * 1"),)
    yield (test,)
    yield (edit(f"src/part{number}.py", "    return n * 1", f"    return n * {number}"),)
    yield (test,)
    yield (write(f"docs/part{number}.md", f"# Part {number}\nIt multiplies.\n"),)
    yield (shell(f"git add -A && git commit -qm 'Mend part {number}'"),)


def test_two_hundred_calls_of_honest_work(bench: Bench) -> None:
    bench.git("config", "user.name", "Agent")
    bench.git("config", "user.email", "agent@example.org")
    bench.put("docs/index.md", "# Parts\n")
    for number in range(2, MODULES + 2):
        bench.put(f"src/part{number}.py", module(number, "0"))
        bench.put(f"tests/test_part{number}.py", case(number))
    replies: list[Reply] = [do(*calls, tokens_in=300) for number in range(2, MODULES + 2) for calls in work(number)]
    assert sum(len(reply.calls) for reply in replies) == 200
    run = bench.run(*replies, seconds=600)
    assert run.code == 0, run
    assert run.count() == len(replies) + 1, run
    ours = ("fusewire", "BLOCKED", "HALTED", "WARNING tool", "CIRCUIT")
    spoken = [f"{one.number}: {one.told[-600:]}" for one in run.requests if any(word in one.told for word in ours)]
    assert not spoken, "\n".join(spoken)
    assert run.told.count("5 passed") == MODULES, run
    assert run.told.count("AssertionError") >= 2 * MODULES, run
    for number in range(2, MODULES + 2):
        assert bench.text(f"src/part{number}.py") == module(number, str(number)), number
        assert bench.text(f"docs/part{number}.md") == f"# Part {number}\nIt multiplies.\n", number
    assert bench.git("log", "--oneline").count("Mend part") == MODULES
    assert not bench.tripped()
    assert bench.heard() >= len(replies) - 5, bench.heard()

"""A protected file is not deleted, whichever way, and harmless calls pass and do what they should."""

from __future__ import annotations

from harness.bench import FILES, Bench
from harness.calls import destroy, edit, read, shell, write
from harness.script import do

#: Ways to lose a protected file through the shell; each is refused in a run of its own turn.
LOSING = {
    "rm": "rm specs/a.md",
    "rm -rf of its folder": "rm -rf specs",
    "mv": "mv AGENTS.md elsewhere.md",
    "redirection": "echo nothing > specs/a.md",
    "truncate": "truncate -s 0 specs/b.md",
    "python": "python3 -c \"import os; os.remove('specs/a.md')\"",
    "find -delete": "find specs -name '*.md' -delete",
    "git rm": "git rm -q -f specs/b.md",
    "sed -i": "sed -i 's/.*//' AGENTS.md",
    "cp over it": "cp notes.txt memory/notes.md",
    "a shell in a shell": "bash -c 'cd specs && rm -f b.md'",
    "env in front": "env LC_ALL=C FOO=1 rm -f specs/a.md",
}

#: Calls that pass, and the file that shows it.
HARMLESS = [
    (shell("mkdir -p build && echo built > build/out.txt"), "build/out.txt", "built\n"),
    (shell("cat specs/a.md > copy.md"), "copy.md", FILES["specs/a.md"]),
    (shell("cp specs/b.md b-copy.md"), "b-copy.md", FILES["specs/b.md"]),
    (shell("echo 'rm -rf specs' > said.txt"), "said.txt", "rm -rf specs\n"),
    (shell("grep -rn rule specs | wc -l > count.txt"), "count.txt", "2\n"),
    (shell("git status --short > status.txt; echo done >> status.txt"), "status.txt", None),
    (shell('python3 -c "print(6 * 7)" > result.txt'), "result.txt", "42\n"),
    (write("new.txt", "fresh\n"), "new.txt", "fresh\n"),
    (edit("notes.txt", "two", "2"), "notes.txt", "one\n2\nthree\n"),
    (shell("touch scratch.tmp && rm scratch.tmp && echo gone > cleaned.txt"), "cleaned.txt", "gone\n"),
    (read("specs/a.md"), "specs/a.md", FILES["specs/a.md"]),
    # The text of a protected document may be brought up to date by the agent's own edit tool.
    (edit("specs/b.md", "The second rule.", "The other rule."), "specs/b.md", "# B\nThe other rule.\n"),
]

PROTECTED = ("specs/a.md", "specs/b.md", "AGENTS.md", "memory/notes.md")


def test_a_protected_file_survives_every_way_to_lose_it(bench: Bench) -> None:
    ways = [shell(command) for command in LOSING.values()]
    # A harmless call between each two: calls that are refused in a row end in a halt, and that is not what is asked.
    replies = []
    for number, way in enumerate(ways):
        replies += [do(way), do(shell(f"echo step {number} > step.txt"))]
    run = bench.run(*replies)
    assert run.code == 0, run
    assert {name: bench.text(name) for name in PROTECTED} == {name: FILES[name] for name in PROTECTED}, run
    for number, way in enumerate(ways):
        told = run.told_at(2 * number + 1)
        assert "BLOCKED guard." in told, f"{way}: {told[-2000:]}\n{run}"
        assert "step" not in told, "only the refusal"
    assert bench.text("step.txt") == f"step {len(ways) - 1}\n", run
    assert not bench.tripped()


def test_the_own_file_tool_does_not_lose_it_either(bench: Bench) -> None:
    run = bench.run(do(read("specs/a.md")), do(destroy("specs/a.md", FILES["specs/a.md"])), do(shell("touch went-on")))
    assert run.code is not None, run
    assert bench.text("specs/a.md") == FILES["specs/a.md"], run
    if bench.name == "copilot":
        # It can neither delete nor write a file anew, only take all the text out of it by an edit. Edits may bring a
        # document up to date, so that one is found afterwards: undone, and the agent is halted.
        assert "specs/a.md" in run.told_at(2) + run.shown, run
        assert not bench.path("went-on").exists(), run
    else:
        assert "BLOCKED guard." in run.told_at(2), run
        assert bench.path("went-on").exists(), run


def test_harmless_calls_pass_and_have_their_effect(bench: Bench) -> None:
    run = bench.run(*(do(call) for call, _, _ in HARMLESS))
    assert run.code == 0, run
    assert "BLOCKED" not in run.told, run
    assert "fusewire" not in run.told, run
    assert bench.heard() >= len(HARMLESS) - 2, bench.heard()
    for call, name, text in HARMLESS:
        found = bench.text(name)
        assert found is not None if text is None else found == text, f"{call}: {found!r}\n{run}"


def test_without_the_hook_the_same_calls_lose_the_files(bare: Bench) -> None:
    """The control: what the two tests above rely on is the hook and nothing else."""
    run = bare.run(do(shell(LOSING["find -delete"])), do(shell(LOSING["sed -i"])), do(shell(LOSING["cp over it"])))
    assert run.code == 0, run
    assert bare.text("specs/a.md") is None, run
    assert bare.text("specs/b.md") is None, run
    assert bare.text("AGENTS.md") != FILES["AGENTS.md"], run
    assert bare.text("memory/notes.md") == FILES["notes.txt"], run


def test_without_the_hook_the_own_tool_loses_the_file(bare: Bench) -> None:
    run = bare.run(do(read("specs/a.md")), do(destroy("specs/a.md", FILES["specs/a.md"])))
    assert run.code == 0, run
    assert not (bare.text("specs/a.md") or "").strip(), run

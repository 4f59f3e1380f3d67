"""Part 14: what the sandbox adds to the start of a command, as multiples of `python3 -I -S -c pass`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import fusewire
from fusewire.guard.policy import protected_of
from fusewire.guard.sandbox.plan import plan
from fusewire.guard.sandbox.programs import BUBBLEWRAP, words_before
from fusewire.guard.sandbox.support import support
from measuring import Contender, goal, interleave, milli, quantile, table, times
from starts import environment_of, runner

_ROUNDS = 61
_GOAL = 1.4

_PACKAGE = os.path.dirname(fusewire.__file__)

#: What Claude Code's shell wrapper starts for a command.
_WRAPPER = os.path.join(_PACKAGE, "guard", "sandbox", "wrap.py")

_SCRIPT = """\
import sys
sys.path.append({source!r})
from fusewire.guard.sandbox.prepared import prepare
from fusewire.guard.sandbox.start import command
plan, means = prepare({root!r}, documents=True)[:2]
command(plan, ["/bin/true"], means=means)
"""


def report(folder: str) -> str:
    found = support()
    if found.means not in ("namespaces", "bubblewrap"):
        return f"14. The sandbox: none on this machine ({found.reason})"
    environment = environment_of(folder)
    root = _project(folder)
    script = os.path.join(folder, "enter.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_SCRIPT.format(source=os.path.dirname(_PACKAGE), root=root))

    def start(*words: str) -> Callable[[], Callable[[], None]]:
        run = runner(words, root, os.devnull, environment, 0)
        return lambda: run

    python = (sys.executable, "-I", "-S")
    base = Contender("python3 -I -S -c pass", start(*python, "-c", "pass"))
    nothing = Contender("/bin/true", start("/bin/true"))
    inside = Contender("/bin/true in the sandbox", start(*python, script))
    pairs = {"the sandbox": (inside, nothing)}
    if os.path.exists(_WRAPPER):
        shell = Contender("bash -c true", start("/bin/bash", "-c", "true"))
        wrapped = Contender("the same by the shell wrapper", start(*python, _WRAPPER, "true"))
        pairs["the shell wrapper"] = (wrapped, shell)
    contenders = [base, *(one for pair in pairs.values() for one in reversed(pair))]
    program = shutil.which(BUBBLEWRAP)
    if program:
        words = words_before(plan(protected_of(root), documents=True), "bubblewrap")
        contenders.append(Contender("/bin/true in bubblewrap", start(program, *words[1:], "/bin/true")))
    interleave(contenders, rounds=_ROUNDS, calls=1, warm_up=1)
    rows = [
        (one.name, milli(one.median), milli(quantile(one.samples, 0.9)), times(one.median, base.median))
        for one in contenders
    ]
    added = {name: (more.median - less.median) / base.median for name, (more, less) in pairs.items()}
    return "\n".join(
        [
            f"14. The sandbox, ms (by {found.means})",
            "",
            table(("", "p50", "p90", "x bare Python"), rows),
            "",
            f"  {_ROUNDS} interleaved rounds, all with {sys.executable}; the plan of the project is remembered.",
            "",
            *(goal(f"{name} adds at most {_GOAL} x bare Python: {x:.2f}", x <= _GOAL) for name, x in added.items()),
        ]
    )


def _project(folder: str) -> str:
    """With documents, settings and a constraint, as a project has them."""
    root = os.path.join(folder, "sandboxed")
    for name in ("AGENTS.md", "CLAUDE.md", "specs/a.md", "docs/constraints/c.md", ".claude/settings.json"):
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("text\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root

"""Part 3: new processes, as multiples of the barest start of the same Python: `python3 -I -S -c pass`."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import fusewire
from fusewire import Breaker, ScopeLock
from fusewire.guard.sandbox.support import support
from fusewire.run.sandbox import Confinement
from measuring import Contender, goal, interleave, milli, quantile, table, times

_ROUNDS = 31

HOOK = os.path.join(os.path.dirname(fusewire.__file__), "hook.py")
#: Quotes, a pipe and a redirection: no plain command.
_LINE = "cd src && grep -n 'def total' *.py | head -5 > found.txt"
_GOAL, _GOAL_OF_READING = 1.8, 2.2
#: What a call may pay for the person's halts and pauses, as a share of the barest start.
_GOAL_OF_PERSON = 0.1

#: Where the hook reads them, and what stands there in the copy that does not.
_READS_ORDERS = "read_orders(root) if rules is None else Orders()"

_CONSTRAINT = """---
id: {name}
circuit_breaker: {{violation_threshold: {threshold}, dedup_seconds: 0}}
match:
  - command: {command}
---
# {name}
"""


def report(folder: str) -> str:
    environment = environment_of(folder)
    bare = _project(folder, "bare", {})
    guarded = _project(folder, "guarded", {"force-push": ("git push --force", 1000)})
    tripped = _project(folder, "tripped", {"force-push": ("git push --force", 1)})
    harmless, forbidden = "git status --short", "git push --force origin main"

    locked = _locked(_project(folder, "locked", {"force-push": ("git push --force", 1000)}))

    def start(
        *arguments: str, cwd: str, command: str | None = None, file: str = "", code: int = 0
    ) -> Callable[[], Callable[[], None]]:
        stdin = os.devnull if command is None else _payload(cwd, command, file)
        run = runner((sys.executable, *arguments), cwd, stdin, environment, code)
        return lambda: run

    hook = ("-I", "-S", HOOK, "claude")
    base = Contender("python3 -I -S -c pass", start("-I", "-S", "-c", "pass", cwd=bare))
    allowing = Contender("hook, 10 constraints, none fits", start(*hook, cwd=guarded, command=harmless))
    read = Contender("hook, a line that must be read", start(*hook, cwd=guarded, command=_LINE))
    plain = ("-I", "-S", _without_import_cache(folder), "claude")
    uncached_root = _project(folder, "uncached", {"force-push": ("git push --force", 1000)})
    uncached = Contender("the same without the import cache", start(*plain, cwd=uncached_root, command=harmless))
    alone = ("-I", "-S", _without_person(folder), "claude")
    alone_root = _project(folder, "alone", {"force-push": ("git push --force", 1000)})
    without_person = Contender("the same without the person's scope", start(*alone, cwd=alone_root, command=harmless))
    nothing = Contender("hook, no constraints", start(*hook, cwd=bare, command=harmless))
    processes = [
        base,
        Contender("python3 -c pass (with site)", start("-c", "pass", cwd=bare)),
        nothing,
        allowing,
        uncached,
        without_person,
        read,
        Contender("hook, an edit", start(*hook, cwd=guarded, command="", file="src/app.py")),
        Contender("hook, an edit in the scope of a slice", start(*hook, cwd=locked, command="", file="src/app.py")),
        Contender("hook, a violation is recorded", start(*hook, cwd=guarded, command=forbidden)),
        Contender("hook, refused by an open circuit", start(*hook, cwd=tripped, command=forbidden, code=2)),
        Contender("fusewire check ID", start("-m", "fusewire", "check", "force-push", cwd=guarded)),
    ]
    _trip(start(*hook, cwd=tripped, command=forbidden, code=2))
    with _in_sandbox(guarded, _payload(guarded, harmless, ""), environment) as supervised:
        if supervised is not None:
            name = "hook, 10 constraints, none fits; in a sandbox, answered by the supervisor"
            processes.insert(5, Contender(name, lambda: supervised))
        interleave(processes, rounds=_ROUNDS, calls=1, warm_up=1)
    _expect(guarded, violations=2 * _ROUNDS, phase="closed")
    _expect(tripped, violations=1, phase="open")
    rows = [
        (one.name, milli(one.median), milli(quantile(one.samples, 0.9)), times(one.median, base.median))
        for one in processes
    ]
    ratio, reading = allowing.median / base.median, read.median / base.median
    saved = uncached.median - allowing.median
    paid = (allowing.median - without_person.median) / base.median
    return "\n".join(
        [
            "3. New processes, ms",
            "",
            table(("", "p50", "p90", "x bare Python"), rows),
            "",
            f"  {_ROUNDS} interleaved rounds, all with {sys.executable},",
            "  bytecode compiled, and no PYTHON* variables in the environment.",
            "",
            goal(f"the allowing hook at most {_GOAL} x bare Python: {ratio:.2f}", ratio <= _GOAL),
            goal(f"a line that must be read at most {_GOAL_OF_READING}: {reading:.2f}", reading <= _GOAL_OF_READING),
            goal(
                f"the person's scope costs at most {_GOAL_OF_PERSON} x bare Python: {paid:.2f}", paid <= _GOAL_OF_PERSON
            ),
            goal(f"the import cache saves {milli(saved)} ms of {milli(uncached.median)}", saved > 0),
        ]
    )


#: Runs in the sandbox: a hook for each byte that comes, and a byte when it has ended.
_STARTER = """
import os, sys
hook, stdin, words = sys.argv[1], sys.argv[2], sys.argv[3:]
files = [(os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
while os.read(0, 1):
    _, status = os.waitpid(os.posix_spawn(sys.executable, [sys.executable, *words], os.environ, file_actions=files), 0)
    os.write(1, b"0" if status == 0 and not os.access(hook, os.W_OK) else b"1")
"""


@contextmanager
def _in_sandbox(root: str, stdin: str, environment: dict[str, str]) -> Iterator[Callable[[], None] | None]:
    """What starts a hook inside the sandbox of a run; None where this machine has none."""
    means = support().means
    if not means:
        yield None
        return
    with Confinement(root, {}, means) as confinement:
        words, more = confinement.entrance().prepare(root)
        hook = ("-I", "-S", HOOK, "claude")
        starter = subprocess.Popen(
            [*words, sys.executable, "-c", _STARTER, os.path.join(root, ".fusewire"), stdin, *hook],
            cwd=root,
            env={**environment, **confinement.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            **more,
        )
        assert starter.stdin is not None
        assert starter.stdout is not None

        def run() -> None:
            starter.stdin.write(b".")
            if starter.stdout.read(1) != b"0":
                raise RuntimeError("a hook in the sandbox did not end as expected")

        yield run
        starter.communicate()


def _trip(prepare: Callable[[], Callable[[], None]]) -> None:
    """The first violation of a constraint with the threshold 1: it is refused, and the circuit is open."""
    prepare()()


def _expect(root: str, *, violations: int, phase: str) -> None:
    """That the processes did what they are said to have done."""
    with Breaker.open(project=root) as breaker:
        counted = [row for row in breaker.history("force-push") if row.effect == "counted"]
        status = breaker.status("force-push")
    if len(counted) < violations or status.phase != phase:
        raise RuntimeError(f"{root}: {len(counted)} violations and {status.phase}, not {violations} and {phase}")


def _project(folder: str, name: str, constraints: dict[str, tuple[str, int]]) -> str:
    """A project with these constraints, filled up to ten if there are any."""
    root = os.path.join(folder, name)
    os.makedirs(os.path.join(root, ".git"))
    if not constraints:
        return root
    os.makedirs(os.path.join(root, "docs", "constraints"))
    others = {f"rule-{number}": (f"tool-{number} --dangerous", 5) for number in range(10 - len(constraints))}
    for constraint, (command, threshold) in {**others, **constraints}.items():
        with open(os.path.join(root, "docs", "constraints", f"{constraint}.md"), "w", encoding="utf-8") as file:
            file.write(_CONSTRAINT.format(name=constraint, command=command, threshold=threshold))
    return root


def _without_import_cache(folder: str) -> str:
    """The hook of a copy of the package that finds its modules as Python does."""
    package = _copy_of_package(folder, "uncached-package")
    os.unlink(os.path.join(package, "gate", "import_cache.py"))
    return os.path.join(package, "hook.py")


def _without_person(folder: str) -> str:
    """The hook of a copy of the package that asks for no halt and no pause of the person."""
    package = _copy_of_package(folder, "package-alone")
    path = os.path.join(package, "gate", "context.py")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    if _READS_ORDERS not in source:
        raise RuntimeError(f"{path} no longer reads the person's orders as this benchmark expects")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source.replace(_READS_ORDERS, "Orders()"))
    compileall.compile_dir(package, quiet=2)
    return os.path.join(package, "hook.py")


def _copy_of_package(folder: str, name: str) -> str:
    package = os.path.join(folder, name, "fusewire")
    shutil.copytree(os.path.dirname(fusewire.__file__), package, ignore=shutil.ignore_patterns("*.bin"))
    return package


def _locked(root: str) -> str:
    """The same with a slice under way, whose scope is `src`."""
    with open(os.path.join(root, "GRAPH.json"), "w", encoding="utf-8") as file:
        json.dump({"slices": [{"id": "S-1", "packages": ["src"]}]}, file)
    with Breaker.open(project=root) as breaker:
        ScopeLock(breaker).activate("S-1", None)
    return root


def _payload(root: str, command: str, file: str) -> str:
    """A file with what Claude Code sends before a command, or before an edit of a file."""
    path = os.path.join(root, f"payload-{len(command)}-{len(file)}.json")
    tool, given = ("Edit", {"file_path": os.path.join(root, file)}) if file else ("Bash", {"command": command})
    payload = {
        "session_id": "78de178a-18fd-45e7-a6cf-6b8f7018e9ba",
        "transcript_path": os.path.join(root, "transcript.jsonl"),
        "cwd": root,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": {**given, "description": "A step of the work"},
        "tool_use_id": "toolu_01",
    }
    with open(path, "w", encoding="utf-8") as written:
        json.dump(payload, written)
    return path


def environment_of(folder: str) -> dict[str, str]:
    """A person's, without this benchmark's Python settings, the agent's variables or a configuration."""
    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "LANG": "C.UTF-8"}


def runner(
    arguments: tuple[str, ...], cwd: str, stdin: str, environment: dict[str, str], code: int
) -> Callable[[], None]:
    """Starts the process and waits for it; RuntimeError if it ends otherwise than expected."""

    def run() -> None:
        os.chdir(cwd)
        files = [
            (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        process = os.posix_spawn(arguments[0], arguments, environment, file_actions=files)
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if ended != code:
            raise RuntimeError(f"{' '.join(arguments)} in {cwd} ended with {ended}, not {code}")

    run.__doc__ = " ".join(arguments)
    return run

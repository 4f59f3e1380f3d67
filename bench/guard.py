"""Part 5: the reader: microseconds for each command of the corpus, and processes; the comparison of 5,000 files."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fusewire.config.rules import load_rules
from fusewire.guard.baseline import is_unchanged, rules_key
from fusewire.guard.calls import folder_of
from fusewire.guard.check import check_command
from fusewire.guard.integrity_check import IntegrityCheck
from fusewire.guard.policy import protected_of
from fusewire.guard.protected import Protected
from fusewire.guard.shell.parser import parse
from measuring import goal, micro, milli, quantile, table, times

_CORPUS = Path(__file__).parents[1] / "tests" / "data" / "guard_corpus"
_MEDIAN_GOAL, _SLOWEST_GOAL = 100e-6, 10e-3
_FILES, _VERIFY_GOAL = 5_000, 0.02

#: What Python reports when it starts a process.
_STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork", "_posixsubprocess.fork_exec"))


class _Processes:
    """Counts processes that are started; an audit hook cannot be removed, so there is one."""

    count = 0

    def __call__(self, event: str, _: object) -> None:
        self.count += event in _STARTS


_processes = _Processes()


def report(folder: str) -> str:
    root = os.path.join(folder, "guarded-files")
    protected = _project(root)
    sys.addaudithook(_processes)
    parsing: list[float] = []
    judging: list[float] = []
    with_git: list[float] = []
    asked_git = needless = 0
    for command, cwd in _commands():
        where = os.path.join(root, cwd)
        before = _processes.count
        check_command(command, cwd=where, root=root, protected=protected, lists=False)
        started = _processes.count - before
        asked_git += started > 0
        needless += started > 0 and "git" not in command
        took = _middle(lambda c=command, w=where: check_command(c, cwd=w, root=root, protected=protected, lists=False))
        judging.append(took)
        if started:
            with_git.append(took)
        parsing.append(_middle(lambda c=command: parse(c)))
    rows = [_row("parsed only", parsing), _row("judged", judging), _row("judged, git was asked", with_git)]
    return "\n".join(
        [
            "5. The reader on the commands of the corpus, µs",
            "",
            table(("", "p50", "p99", "commands"), rows),
            "",
            f"  git was asked for {asked_git:,} commands, {needless:,} of them without the word git",
            goal("a command, at the median, within 100 µs", quantile(judging, 0.5) <= _MEDIAN_GOAL),
            goal("99 of 100 commands within 10 ms", quantile(judging, 0.99) <= _SLOWEST_GOAL),
            goal("no git process where none is needed", not needless),
            "",
            *_verify(folder),
        ]
    )


def _row(name: str, samples: list[float]) -> tuple[str, ...]:
    return name, micro(quantile(samples, 0.5)), micro(quantile(samples, 0.99)), str(len(samples))


def _commands() -> Iterator[tuple[str, str]]:
    for file in sorted(_CORPUS.glob("*/*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            case = json.loads(line)
            yield case["cmd"], case.get("cwd", "")


def _middle(operation) -> float:  # type: ignore[no-untyped-def]
    """Of three calls the middle one counts."""
    samples = []
    for _ in range(3):
        started = time.perf_counter()
        operation()
        samples.append(time.perf_counter() - started)
    return sorted(samples)[1]


def _project(root: str) -> Protected:
    for name in (
        "specs/login.md",
        "specs/api/v1.md",
        "src/app.py",
        "src/memory/x.py",
        "memory/a.md",
        ".claude/settings.json",
    ):
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text("x\n", encoding="utf-8")
    for name in ("AGENTS.md", "CLAUDE.md", "IMPLEMENTATION_PLAN.md", "README.md"):
        Path(root, name).write_text("x\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", root], check=True)
    return protected_of(root)


def _verify(folder: str) -> list[str]:
    root = os.path.join(folder, "many-files")
    for number in range(_FILES):
        path = os.path.join(root, "specs", f"part-{number % 100}", f"{number}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(f"specification {number}\n", encoding="utf-8")
    rules = load_rules(root)
    watch = IntegrityCheck(protected_of(root, rules), rules)
    os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
    for _ in range(2):  # a file that was written just now would be read again
        watch.renew(time.time())
        time.sleep(0.1)
    place, key = folder_of(root), rules_key(rules)
    samples, walks = [], []
    for _ in range(9):
        gc.collect()
        started = time.perf_counter()
        assert is_unchanged(place, root, key)
        samples.append(time.perf_counter() - started)
        started = time.perf_counter()
        sum(os.lstat(path).st_size for path in watch.protected.files())
        walks.append(time.perf_counter() - started)
    took, walk = quantile(samples, 0.5), quantile(walks, 0.5)
    return [
        f"  {_FILES:,} protected files compared, nothing changed: {milli(took)} ms, "
        f"{times(took, walk)} x one walk with lstat",
        goal("5,000 files compared within 20 ms, around every call that may change them", took <= _VERIFY_GOAL),
    ]

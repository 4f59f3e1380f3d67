"""Every command of the corpus is run for real in a throw-away project, and each ring is held to what then happened.

The truth has three columns. Stopped before: the reader refuses the command. Intact under the sandbox: it ran with the
protected files read-only. Intact after the snapshot: it ran as a call of an agent, with the hook before and after it.
`corpus.py` has the lines and the throw-away projects.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.helpers import SOURCE
from tests.helpers.corpus import (
    ALWAYS,
    FILES,
    ROOM,
    TIME_LIMIT,
    Box,
    Case,
    Cell,
    State,
    cases,
    damage,
    differences,
    lost,
    protected_state,
    remove,
    walls,
    whole_state,
)
from tests.helpers.program import fusewire

#: Where a person wants every outcome to be written down.
REPORT = os.environ.get("CORPUS_REPORT")

FOLDERS = sorted({file.parent.name for file in FILES})

#: Of the commands that damage a protected file, the share that the reader stops before they run.
STOPPED = {"true_positives": 0.9, "edge_cases": 0.9, "bypass_attempts": 0.75, "opaque": 0.25}

#: The share of commands for which the sandbox need not hold; each such line says so itself.
BEYOND = 0.005


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Box:
    box = Box(tmp_path_factory.mktemp("guard") / "template")
    umask = os.umask(0o022)  # commands that take rights away change something
    box.make()
    os.umask(umask)
    return box


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where trees come and go by the hundred: in memory, if walls keep a command from its neighbours there."""
    memory = Path("/dev/shm")
    try:
        free = os.statvfs(memory)
    except OSError:
        free = None
    if not walls() or free is None or free.f_bavail * free.f_frsize < ROOM or not os.access(memory, os.W_OK):
        yield tmp_path_factory.mktemp("cells")
        return
    with tempfile.TemporaryDirectory(prefix="fusewire-corpus-", dir=memory, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def cells(place: Path) -> Iterator[list[Cell]]:
    made = [Cell(place / str(number)) for number in range(2 * (os.cpu_count() or 1))]
    yield made
    for cell in made:
        cell.close()


#: What a test does with one command, in a project made for it: the text is what is wrong.
Trial = Callable[[Cell, Box, Case], str]


class Court:
    """Tries every command of a file, each in a project of its own, as many at once as there are cells."""

    def __init__(self, template: Box, cells: list[Cell]) -> None:
        self.template = template
        self.cells = cells

    def try_all(self, file: Path, trial: Trial) -> list[str]:
        """What is wrong with the commands of a file, line by line."""
        free: SimpleQueue[Cell] = SimpleQueue()
        for cell in self.cells:
            free.put(cell)

        def line(number: int, case: Case) -> str:
            if not case.runs_here():
                return ""
            cell = free.get()
            try:
                box = prepared(self.template, cell.folder, number, case)
                wrong = trial(cell, box, case)
            finally:
                cell.clear()
                free.put(cell)
            return wrong and f"line {number}: {case.cmd!r}: {wrong}"

        found = cases(file)
        with ThreadPoolExecutor(len(self.cells)) as pool:
            return [text for text in pool.map(line, range(1, len(found) + 1), found) if text]

    def again(self, box: Box, case: Case) -> Box:
        """The same project as before the command, in the same place: paths are in what many a command writes."""
        remove(box.folder)
        return prepared(self.template, box.folder.parent, int(box.folder.name), case)


@pytest.fixture(scope="module")
def court(template: Box, cells: list[Cell]) -> Court:
    return Court(template, cells)


def prepared(template: Box, folder: Path, number: int, case: Case) -> Box:
    """The state in which the command will run."""
    box = Box(folder / str(number))
    shutil.copytree(template.folder, box.folder, symlinks=True)
    if case.setup:
        try:
            box.bash(case.setup)
        except subprocess.CalledProcessError as failed:
            pytest.fail(f"the setup of {case.cmd!r} fails: {failed.stderr.decode()}")
        box.age()  # a copy without one is as old as the template
    return box


def names(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


by_file = pytest.mark.parametrize("file", FILES, ids=names)


@by_file
def test_a_label_says_what_the_command_really_does(file: Path, court: Court) -> None:
    """A command changes a protected file exactly when its line says so, and a move of git loses nothing."""

    def trial(cell: Cell, box: Box, case: Case) -> str:
        before = protected_state(box.project)
        status = box.run(case.cmd, case.cwd, cell.entrance)
        after = protected_state(box.project)
        changed = differences(before, after)
        if status is None:
            return f"did not end within {TIME_LIMIT:.0f} s"
        if bool(changed) != (case.changes or case.moves):
            return f"says changes={case.changes}, but it changed {changed or 'nothing'}"
        if case.moves and (gone := lost(box, before, after)):
            return f"says that it only moves, but {gone} are lost or not as committed"
        return ""

    assert_none(court.try_all(file, trial), file)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_reader_stops_most_damage_and_no_harmless_command(
    folder: str, template: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked in the state in which the command would run, the reader refuses nothing that is harmless and most of
    what damages a protected file. It changes none by looking, so all cases of the same state share a tree."""
    from fusewire.guard.check import check_command
    from fusewire.guard.policy import protected_of

    for name in os.environ.keys() - {"PATH", "PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    boxes: dict[str, Box] = {}
    refused, missed, damaging = [], [], 0
    for file in (file for file in FILES if file.parent.name == folder):
        for number, case in enumerate(cases(file), 1):
            if not case.runs_here():
                continue
            new = case.setup not in boxes
            if new:
                boxes[case.setup] = prepared(template, tmp_path, len(boxes), case)
            box = boxes[case.setup]
            for name, value in box.environment.items():
                monkeypatch.setenv(name, value)
            if new:
                protected_of(str(box.project))  # compiles its rules, once, into its own folder if there is one
            before = protected_state(box.project)
            verdict = check_command(case.cmd, cwd=str(box.project / case.cwd), root=str(box.project), lists=False)
            assert protected_state(box.project) == before, f"{case.cmd!r}: the reader itself changed a protected file"
            damaging += case.changes
            line = f"{names(file)} line {number}: {case.cmd!r}"
            note("reader", file, case, verdict.rule or "passes")
            if case.changes and verdict.allowed:
                missed.append(line)
            elif not case.changes and not verdict.allowed:
                refused.append(f"{line}: {verdict.rule} {verdict.reason}")
    share = 1 - len(missed) / damaging if damaging else 1.0
    assert not refused, "\n".join([f"{len(refused)} harmless commands are refused:", *refused])
    assert share >= STOPPED.get(folder, 1.0), "\n".join([f"only {share:.1%} are stopped; not these:", *missed])


@by_file
def test_under_the_sandbox_protected_files_stay_and_harmless_commands_end_as_ever(file: Path, court: Court) -> None:
    """With the protected files read-only no command damages one, but for what the hook refuses in such a session, too.
    A harmless command leaves the same exit status and the same files behind as without the sandbox."""
    wrapper = wrapper_or_skip()

    def trial(cell: Cell, box: Box, case: Case) -> str:
        if case.changes:
            before = protected_state(box.project)
            box.run(case.cmd, case.cwd, cell.entrance, wrapper)
            changed = damage(before, protected_state(box.project))
            stopped = changed and stops_before(court.again(box, case), case)
            note("sandbox", file, case, "stopped" if stopped else "damaged" if changed else "intact")
            return f"damages {changed}" if changed and not stopped and "kernel" not in case.beyond else ""
        outside = box.run(case.cmd, case.cwd, cell.entrance), whole_state(box)
        box = court.again(box, case)
        inside = box.run(case.cmd, case.cwd, cell.entrance, wrapper), whole_state(box)
        if inside == outside:
            return ""
        box = court.again(box, case)  # times and process ids in files differ each time
        volatile = differences(outside[1], (box.run(case.cmd, case.cwd, cell.entrance), whole_state(box))[1])
        changed = [name for name in differences(outside[1], inside[1]) if name not in volatile]
        if (not changed and inside[0] == outside[0]) or "kernel" in case.beyond:
            return ""
        note("sandbox", file, case, "differs")
        return f"ends with {inside[0]} instead of {outside[0]}, differs in {changed}"

    def stops_before(box: Box, case: Case) -> bool:
        """Whether the hook refuses it although the shell is wrapped: such a command is never run."""
        agent = Agent(box, case)
        shell = box.folder / "fusewire-shell-always"
        shell.touch(0o755)
        agent.environment["CLAUDE_CODE_SHELL_PREFIX"] = str(shell)
        return not agent.may_run(case.cmd)

    assert_none(court.try_all(file, trial), file)


@by_file
def test_what_the_reader_lets_through_is_intact_or_restored_after_the_snapshot(file: Path, court: Court) -> None:
    """A command that runs as a call of an agent leaves every protected file as it was, or the hook has restored it, or
    it has told and `fusewire guard restore` brings it back. A harmless command is neither undone nor told."""

    def trial(cell: Cell, box: Box, case: Case) -> str:
        agent = Agent(box, case)
        stopped = not agent.may_run(case.cmd)
        if stopped and not REPORT:
            return ""  # never run; whoever wants a report learns what ring three alone would have done
        if stopped and not agent.may_run("./task"):
            return f"even ./task is refused: {agent.said}"
        before = others_state(box)
        status = box.run(case.cmd, case.cwd, cell.entrance)
        ran = others_state(box)
        agent.reports(status)
        after = others_state(box)
        if not case.changes:
            undone = differences(ran, after)
            return f"is undone in {undone}, with: {agent.said}" if undone or "guard." in agent.said else ""
        outcome = "restored" if damage(before, ran) else "intact"
        if damage(before, after) and agent.said:
            outcome = "told"
            agent.person_restores(damage(before, after))
            after = others_state(box)
        changed = damage(before, after)
        note("snapshot", file, case, "damaged" if changed else outcome)
        return f"damages {changed}; the hook says: {agent.said!r}" if changed and not stopped else ""

    assert_none(court.try_all(file, trial), file)


def others_state(box: Box) -> State:
    """The protected files without our own, which the hook writes."""
    return {name: facts for name, facts in protected_state(box.project).items() if not name.startswith(".fusewire")}


class Agent:
    """Claude Code in unattended use, as the hook sees it: one call of its Bash tool."""

    def __init__(self, box: Box, case: Case) -> None:
        self.box = box
        self.cwd = str(box.project / case.cwd)
        self.command = ""
        self.said = ""
        at_start = [name for name in os.environ if name.startswith(("PYTHON", "LC_", "LANG"))]
        self.environment = {name: value for name, value in box.environment.items() if name != "LANG"}
        self.environment |= {name: os.environ[name] for name in at_start}

    def may_run(self, command: str) -> bool:
        self.command = command
        return self._hook("PreToolUse") != 2

    def reports(self, status: int | None) -> None:
        if status:
            self._hook("PostToolUseFailure", error=f"Exit code {status}", is_interrupt=False)
        else:
            response = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}
            self._hook("PostToolUse", tool_response=response)

    def _hook(self, event: str, **more: object) -> int:
        payload = {
            "session_id": "479528ae-91f4-4945-992c-9db9f0bba192",
            "transcript_path": str(self.box.folder / "transcript.jsonl"),
            "cwd": self.cwd,
            "permission_mode": "bypassPermissions",
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": self.command, "description": "Run"},
            "tool_use_id": f"toolu_{hash(self.command)}",
            **more,
        }
        environment = {**self.environment, "CLAUDE_PROJECT_DIR": str(self.box.project)}
        done = fusewire(
            "hook", "claude", cwd=self.box.folder, env=environment, stdin=json.dumps(payload).encode(), timeout=60
        )
        self.said = (done.stdout + done.stderr).decode().strip()
        return done.returncode

    def person_restores(self, paths: list[str]) -> None:
        """What a person does who reads the message."""
        fusewire("guard", "restore", *paths, cwd=self.box.project, env=self.environment)


def wrapper_or_skip() -> list[str]:
    """The shell that `install` registers with Claude Code: it runs a command line in the sandbox."""
    from fusewire.guard.sandbox.support import support

    found = support()
    if not found:
        pytest.skip(f"no sandbox on this machine: {found.reason}")
    return [sys.executable, "-I", "-S", str(SOURCE / "guard" / "sandbox" / "wrap.py")]


def note(ring: str, file: Path, case: Case, outcome: str) -> None:
    """One line of the report that a person asked for."""
    if REPORT:
        with open(REPORT, "a", encoding="utf-8") as report:
            report.write(json.dumps([ring, names(file), case.changes, outcome, case.cmd]) + "\n")


def assert_none(wrong: list[str], file: Path) -> None:
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases(file))} lines of {names(file)} fail:", *wrong])


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    """There are five folders, at least 2,000 commands, and no command twice in the same state."""
    assert {file.parent.name for file in FILES} == {*ALWAYS, "edge_cases"}
    lines = [case for file in FILES for case in cases(file)]
    assert len(lines) >= 2000
    asked = Counter((case.cmd, case.cwd, case.setup) for case in lines)
    assert [what for what, count in asked.items() if count > 1] == []


def test_a_folder_of_the_corpus_holds_what_its_name_says() -> None:
    """What should be stopped is never filed under what should be free, nor the other way round."""
    misfiled = [
        (names(file), case.cmd)
        for file in FILES
        for case in cases(file)
        if case.changes != ALWAYS.get(file.parent.name, case.changes) or (case.changes and case.moves)
    ]
    assert misfiled == []


def test_the_sandbox_withstands_all_but_a_named_few() -> None:
    """At most one command in two hundred is beyond the kernel, and each such line says why."""
    for changes in (True, False):
        kind = [case for file in FILES for case in cases(file) if case.changes is changes]
        beyond = [case for case in kind if "kernel" in case.beyond]
        assert len(beyond) <= BEYOND * len(kind)
        assert all(case.note for case in beyond)

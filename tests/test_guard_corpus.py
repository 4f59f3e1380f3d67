"""Every command of the corpus is run for real in a throw-away project, and the guard is held to what happened.

A line of `guard_corpus/<folder>/<file>.jsonl` is one command: `cmd`, `changes` (does it change a protected file?), and
where needed `cwd` (a folder of the project), `setup` (bash, run first), `needs` (programs not everybody has), `note`.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

CORPUS = Path(__file__).parent / "guard_corpus"
FILES = sorted(CORPUS.glob("*/*.jsonl"))
ALWAYS = {"true_positives": True, "bypass_attempts": True, "false_positives": False}  # edge cases are of both kinds

PROTECTED = (
    *(".ralph", ".ralphrc", "IMPLEMENTATION_PLAN.md", "AGENTS.md", "specs", ".claude", "CLAUDE.md", "memory"),
    *(".fusewire", "fusewire.toml", "docs/constraints"),
)

TRACKED = {
    "README.md": "# Shop\n\nA small shop.\n",
    "Makefile": "test:\n\tpython3 -B -m unittest discover -q -s tests\n",
    ".gitignore": "build/\nnode_modules/\n*.log\n*.tmp\n__pycache__/\n.ralph/\n",
    "src/app.py": "def total(prices):\n    return sum(prices)\n",
    "src/util.py": "def twice(x):\n    return 2 * x\n",
    "src/memory/cache.py": "CACHE = {}\n",
    "tests/test_app.py": "import unittest\n\n\nclass Test(unittest.TestCase):\n    def test_one(self):\n        pass\n",
    "AGENTS.md": "# Agents\n\nRun the tests.\nTODO: say how.\n",
    "CLAUDE.md": "# Claude\n\nSee AGENTS.md.\n",
    "IMPLEMENTATION_PLAN.md": "# Plan\n\n- [ ] login\n- [ ] billing\n",
    "specs/login.md": "# Login\n\nA person logs in.\n",
    "specs/billing.md": "# Billing\n\nA person pays.\n",
    "specs/api/v1.md": "# API\n\nGET /items\n",
    ".claude/settings.json": '{"permissions": {"deny": ["Bash(rm:*)"]}}\n',
    ".claude/commands/review.md": "Review the change.\n",
    "memory/lessons.md": "# Lessons\n\nRead before you write.\n",
    ".ralphrc": "MAX_LOOPS=10\n",
}
SECOND_COMMIT = {
    "README.md": "# Shop\n\nA small shop, open daily.\n",
    "src/app.py": "def total(prices):\n    return sum(prices, 0)\n",
    "specs/billing.md": "# Billing\n\nA person pays, once.\n",
}
UNTRACKED = {
    ".ralph/state.json": '{"loop": 3}\n',
    "specs/draft.md": "# Draft\n",
    "memory/today.md": "# Today\n",
    "build/out.o": "object\n",
    "node_modules/x/index.js": "module.exports = 1\n",
    "notes.tmp": "notes\n",
    "server.log": "GET /\n",
    "error.log": "none\n",
    "src/debug.log": "debug\n",
}

# The machine becomes read-only but for one folder and an empty /tmp and /dev/shm, and there is no network, until
# standard input ends.
SHUT_IN = """
exec 9< "$0" && mount -t tmpfs tmp /tmp && { [ ! -d /dev/shm ] || mount -t tmpfs tmp /dev/shm; } &&
mkdir -p "$0" && mount --no-canonicalize --bind /proc/self/fd/9 "$0" &&
mount -o remount,bind,ro / && exec 9<&- && echo shut in && exec cat
"""
ROOM = 2**28  # bytes
A_DAY = 86_400 * 10**9
TIME_LIMIT = 20.0


@dataclass(frozen=True)
class Case:
    """One line of the corpus."""

    cmd: str
    changes: bool
    cwd: str = ""
    setup: str = ""
    needs: Sequence[str] = ()
    note: str = ""

    def runs_here(self) -> bool:
        return all(shutil.which(program) for program in self.needs)


def cases(file: Path) -> list[Case]:
    return [Case(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Box:
    """A throw-away home with the project in it; `environment` is all that a command or the guard knows."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "home" / "project"

    @property
    def environment(self) -> dict[str, str]:
        git = {
            "user.name": "Dev",
            "user.email": "dev@example.com",
            "init.defaultBranch": "main",
            "advice.detachedHead": "false",
            "pull.rebase": "false",
            "gc.auto": "0",
            "core.checkStat": "minimal",  # inside the walls every file has another owner
        }
        return {
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": str(len(git)),
            **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(git)},
            **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(git.values())},
        }

    def make(self) -> None:
        """Everything that the template has, in two commits and some files that git does not know."""
        self.project.mkdir(parents=True)
        (self.folder / "tmp").mkdir()
        self.bash("git init -q --template=")
        for files, then in (
            (TRACKED, "git add . && git commit -qm first"),
            (SECOND_COMMIT, "git commit -qam second && git gc -q"),
            (UNTRACKED, "true"),
        ):
            for name, text in files.items():
                (self.project / name).parent.mkdir(parents=True, exist_ok=True)
                (self.project / name).write_text(text)
            self.bash(then)
        self.age()

    def bash(self, script: str) -> None:
        subprocess.run(
            ["bash", "-ec", script],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            umask=0o022,
            timeout=TIME_LIMIT,
            check=True,
        )

    def age(self) -> None:
        """Make every file a day older, so that git need not guess and a touch always shows."""
        for folder, names, files in os.walk(self.project):
            if ".git" in names:
                names.remove(".git")
            for path in (os.path.join(folder, name) for name in files):
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode):
                    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - A_DAY))
        self.bash("git update-index -q --refresh || true")

    def run(self, command: str, cwd: str, entrance: Sequence[str]) -> bool:
        """Run the command and all that it starts; False when it had to be stopped."""
        folder = self.project / cwd
        process = subprocess.Popen(
            [*entrance, "sh", "-c", 'cd "$0" && exec bash -c "$1"', str(folder), command],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o022,
            start_new_session=True,
        )
        try:
            process.communicate(timeout=TIME_LIMIT)  # what still runs behind the shell holds its output open
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()


#: How walls are built, and how one enters those that stand.
WALLS = (
    (("--net", "--mount"), ("--net", "--mount")),
    (("--map-root-user", "--net", "--mount"), ("--user", "--preserve-credentials", "--net", "--mount")),
)


@functools.cache
def walls() -> tuple[Sequence[str], Sequence[str]] | None:
    """What shuts commands in, as far as this machine permits it: nothing but their environment otherwise."""
    if shutil.which("unshare") and shutil.which("nsenter"):
        for around, into in WALLS:
            wall = ("unshare", *around, "--", "sh", "-c", SHUT_IN)
            built = subprocess.run([*wall, "/usr"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if not built.returncode:
                return wall, into
    return None


class Cell:
    """A folder for one command after another: to enter walls that stand takes a fraction of building them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._build()

    def _build(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._built: subprocess.Popen[bytes] | None = None
        self.entrance: list[str] = []
        found = walls()
        if found:
            wall, into = found
            pipe = subprocess.PIPE
            self._built = subprocess.Popen([*wall, str(self.folder)], stdin=pipe, stdout=pipe)
            assert self._built.stdout is not None
            assert self._built.stdout.readline() == b"shut in\n"
            self.entrance = ["nsenter", "--target", str(self._built.pid), *into]
        self._at_first = self._within()

    def _within(self) -> list[str]:
        """What lies in the /tmp and the /dev/shm behind the walls, beside the folder."""
        found: list[str] = []
        for top in ("/tmp", "/dev/shm") if self._built else ():
            for folder, names, files in os.walk(f"/proc/{self._built.pid}/root{top}"):
                found += [f"{folder}/{name}" for name in (*names, *files)]
                names[:] = [name for name in names if not f"{folder}/{name}".endswith(str(self.folder))]
        return found

    def clear(self) -> None:
        """The next command finds nothing of the last one."""
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        if self._within() != self._at_first:
            self.close()
            self._build()

    def close(self) -> None:
        if self._built:
            self._built.communicate()


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """What the protected files are: kind, mode, content or target, and when a file was last changed."""
    seen: dict[str, tuple[object, ...]] = {}
    waiting = [root / name for name in PROTECTED]
    while waiting:
        path = waiting.pop()
        try:
            found = path.lstat()
        except OSError:
            continue
        facts: tuple[object, ...] = (stat.filemode(found.st_mode),)
        try:
            if stat.S_ISLNK(found.st_mode):
                facts = ("link", os.readlink(path))
            elif stat.S_ISDIR(found.st_mode):
                waiting += path.iterdir()
            elif stat.S_ISREG(found.st_mode):
                facts += (found.st_mtime_ns, path.read_bytes())
        except PermissionError:
            pass  # taken away by the command itself: the mode says so
        seen[str(path.relative_to(root))] = facts
    return seen


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


@pytest.mark.parametrize("file", FILES, ids=names)
def test_a_label_says_what_the_command_really_does(file: Path, template: Box, cells: list[Cell]) -> None:
    """A command changes a protected file exactly when its line says so."""
    free: SimpleQueue[Cell] = SimpleQueue()
    for cell in cells:
        free.put(cell)

    def disagreement(number: int, case: Case) -> str:
        if not case.runs_here():
            return ""
        cell = free.get()
        box = prepared(template, cell.folder, number, case)
        before = snapshot(box.project)
        ended = box.run(case.cmd, case.cwd, cell.entrance)
        after = snapshot(box.project)
        cell.clear()
        free.put(cell)
        if not ended:
            return f"line {number}: {case.cmd!r} did not end within {TIME_LIMIT:.0f} s"
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if bool(changed) == case.changes:
            return ""
        return f"line {number}: {case.cmd!r} says changes={case.changes}, but it changed {changed or 'nothing'}"

    lines = cases(file)
    with ThreadPoolExecutor(len(cells)) as pool:
        wrong = [text for text in pool.map(disagreement, range(1, len(lines) + 1), lines) if text]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(lines)} labels are wrong:", *wrong])


@pytest.mark.parametrize("file", FILES, ids=names)
def test_the_guard_blocks_what_changes_a_protected_file_and_nothing_else(
    file: Path, template: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked in the state in which the command would run, the guard says BLOCKED exactly when a protected file would
    change, and it changes none by looking: so all that ask in the same state may ask in the same tree."""
    from fusewire.guard.check import check_command
    from fusewire.guard.policy import protected_of

    for name in os.environ.keys() - {"PATH", "PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    boxes: dict[str, Box] = {}
    wrong = []
    for number, case in enumerate(cases(file), 1):
        new = case.setup not in boxes
        box = boxes[case.setup] = prepared(template, tmp_path, number, case) if new else boxes[case.setup]
        for name, value in box.environment.items():
            monkeypatch.setenv(name, value)
        if new:
            protected_of(str(box.project))  # compiles its rules, once, into its own folder if there is one
        before = snapshot(box.project)
        verdict = check_command(case.cmd, cwd=str(box.project / case.cwd), root=str(box.project))
        if snapshot(box.project) != before:
            wrong.append(f"line {number}: {case.cmd!r} was enough for the guard itself to change a protected file")
        if (verdict.decision == "BLOCKED") != case.changes:
            truth = "changes a protected file" if case.changes else "changes no protected file"
            wrong.append(f"line {number}: {case.cmd!r} {truth}, but is {verdict.decision}: {verdict.reason}")
    assert not wrong, "\n".join([f"{len(wrong)} of {number} verdicts are wrong:", *wrong])


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    """There are four folders, at least 400 commands, and no command twice in the same state."""
    assert {file.parent.name for file in FILES} == {*ALWAYS, "edge_cases"}
    lines = [case for file in FILES for case in cases(file)]
    assert len(lines) >= 400
    asked = Counter((case.cmd, case.cwd, case.setup) for case in lines)
    assert [what for what, count in asked.items() if count > 1] == []


def test_a_folder_of_the_corpus_holds_what_its_name_says() -> None:
    """What should be blocked is never filed under what should be free, nor the other way round."""
    misfiled = [
        (names(file), case.cmd)
        for file in FILES
        for case in cases(file)
        if case.changes != ALWAYS.get(file.parent.name, case.changes)
    ]
    assert misfiled == []

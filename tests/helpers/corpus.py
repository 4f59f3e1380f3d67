"""The executed corpus: its lines, the throw-away project each command runs in, and the state that is compared.

A line of `guard_corpus/<folder>/<file>.jsonl` is one command:

    cmd      run by bash in the project
    changes  does it damage a protected file? Proved by running it
    moves    git moves protected files between committed versions: they differ afterwards, and nothing is lost
    cwd      a folder of the project
    setup    bash, run first, as the person would
    needs    programs that not every machine has
    beyond   ["kernel"]: the sandbox does not withstand it; the note says why
    note     why the line is here
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import DATA

CORPUS = DATA / "guard_corpus"
FILES = sorted(CORPUS.glob("*/*.jsonl"))
#: What every line of a folder says; edge cases are of both kinds. What is `opaque` does its damage in a file that the
#: command line only names, or in the program itself, so that no reader is asked to foresee it.
ALWAYS = {"true_positives": True, "opaque": True, "bypass_attempts": True, "false_positives": False}

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
# standard input ends. The other two folders, this checkout and its Python, stay although they may lie in /tmp.
SHUT_IN = """
keep() {
    case $1 in /tmp/*) mkdir -p "$1" && mount --bind "/proc/self/fd/$2" "$1" && mount -o remount,bind,ro "$1" ;; esac
}
exec 7< "$1" 8< "$2" 9< "$0" && mount -t tmpfs tmp /tmp && { [ ! -d /dev/shm ] || mount -t tmpfs tmp /dev/shm; } &&
mkdir -p "$0" && mount --no-canonicalize --bind /proc/self/fd/9 "$0" && keep "$1" 7 && keep "$2" 8 &&
mount -o remount,bind,ro / && exec 7<&- 8<&- 9<&- && echo shut in && exec cat
"""
KEPT = (str(Path(__file__).parents[2]), sys.prefix)
SHELL = ("bash", "-c")
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
    moves: bool = False
    beyond: Sequence[str] = ()

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

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.project, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout

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

    def run(self, command: str, cwd: str, entrance: Sequence[str], shell: Sequence[str] = SHELL) -> int | None:
        """Run the command and all that it starts: its exit status, or None when it had to be stopped."""
        folder = self.project / cwd
        process = subprocess.Popen(
            [*entrance, "sh", "-c", 'cd "$0" && exec "$@"', str(folder), *shell, command],
            cwd=folder,
            env={**self.environment, "SHELL": "/bin/bash"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o022,
            start_new_session=True,
        )
        try:
            process.communicate(timeout=TIME_LIMIT)  # what still runs behind the shell holds its output open
            return process.returncode
        except subprocess.TimeoutExpired:
            return None
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
            built = subprocess.run([*wall, "/usr", *KEPT], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if not built.returncode:
                return wall, into
    return None


def remove(folder: Path) -> None:
    """Remove a tree, also where a command took rights away from its owner, or what it started still writes."""
    until = time.monotonic() + TIME_LIMIT
    while folder.exists() and time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
            for path, names, _ in os.walk(folder):
                for name in names:
                    inside = os.path.join(path, name)
                    if not os.path.islink(inside):
                        os.chmod(inside, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


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
            self._built = subprocess.Popen([*wall, str(self.folder), *KEPT], stdin=pipe, stdout=pipe)
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
                remove(path)
            else:
                path.unlink()
        if self._within() != self._at_first:
            self.close()
            self._build()

    def close(self) -> None:
        if self._built:
            self._built.communicate()


State = dict[str, tuple[object, ...]]


def protected_state(root: Path) -> State:
    """What the protected files are: mode, content or target, and when a file was last changed."""
    return _state(root, [root / name for name in PROTECTED])


def whole_state(box: Box) -> State:
    """Everything below the home and the temporary folder but for bookkeeping, without times and random names."""
    found = _state(box.folder, [box.folder / "home", box.folder / "tmp"])
    return {_RANDOM.sub("tmp/?", name): facts[:2] for name, facts in found.items() if not _BOOKKEEPING.search(name)}


#: What git and npm write differently each time, Python's caches, which have times in them, and files of our own. Refs
#: and HEAD stay.
_BOOKKEEPING = re.compile(
    r"/\.git/(.*/)?(index|objects|logs|gc\.|info/refs|FETCH_HEAD|ORIG_HEAD|worktrees)|__pycache__/|/\.npm/_logs"
    r"|/\.fusewire|^home/\.local(/state(/fusewire.*)?)?$"
)
_RANDOM = re.compile(r"tmp/tmp[.\w]{8,}")


def _state(root: Path, waiting: list[Path]) -> State:
    seen: State = {}
    while waiting:
        path = waiting.pop()
        try:
            found = path.lstat()
        except OSError:
            continue
        facts: tuple[object, ...] = (stat.filemode(found.st_mode), b"")
        try:
            if stat.S_ISLNK(found.st_mode):
                facts = ("link", os.readlink(path))
            elif stat.S_ISDIR(found.st_mode):
                waiting += path.iterdir()
            elif stat.S_ISREG(found.st_mode):
                facts = (facts[0], path.read_bytes(), found.st_mtime_ns)
        except PermissionError:
            pass  # taken away by the command itself: the mode says so
        seen[str(path.relative_to(root))] = facts
    return seen


def differences(before: State, after: State) -> list[str]:
    """Every path that is not the same in both."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def damage(before: State, after: State) -> list[str]:
    """Protected paths that are no longer what they were, whatever was added beside them or only touched."""
    return sorted(name for name, facts in before.items() if facts[:2] != after.get(name, ())[:2])


def lost(box: Box, before: State, after: State) -> list[str]:
    """Paths where a move of git has lost something: no commit has what was there, or git has not what is there now."""
    committed = box.git("rev-list", "--objects", "--all", "--reflog").split()
    tracked = box.git("ls-files", "-z", "--", *PROTECTED).split("\0")
    gone = []
    for name in differences(before, after):
        was, now = (_blob(state.get(name)) for state in (before, after))
        is_gits = box.git("cat-file", "-t", now) == "blob\n" if now else name not in tracked
        if (was and was not in committed) or not is_gits:
            gone.append(name)
    return gone


def _blob(facts: tuple[object, ...] | None) -> str:
    """The name of the object that git has of a file; empty for anything else."""
    text = facts[1] if facts and len(facts) > 2 else None
    return hashlib.sha1(b"blob %d\0%s" % (len(text), text)).hexdigest() if isinstance(text, bytes) else ""

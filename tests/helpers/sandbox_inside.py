"""A guarded project, and commands in it: inside the sandbox and outside, as an ordinary user and as root."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.guard.sandbox.support import Support, support
from tests.helpers.sandbox_attacks import LIB

SOURCE = Path(__file__).parents[2] / "src"
ENTER = Path(__file__).parent / "sandbox_enter.py"

#: Somebody who is not root, for tests that root runs; with a name where there is one.
OTHER_USER, OTHER_GROUP = next(
    ((one.pw_uid, one.pw_gid) for one in pwd.getpwall() if 1000 <= one.pw_uid < 60000), (65432, 65432)
)


@functools.cache
def known_support() -> Support:
    return support()


def require_sandbox() -> None:
    """Skip where this machine has no sandbox; but in CI, where its own `unshare` works, ours must."""
    found = known_support()
    if not found:
        able = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode == 0
        if os.environ.get("CI") and able:
            pytest.fail(f"unshare works here, and the sandbox does not: {found.reason}")
        pytest.skip(f"no sandbox on this machine: {found.reason}")


@functools.cache
def python_of_all() -> str:
    """A Python that every user may run."""
    code = "import sys, _ctypes; sys.exit(sys.version_info < (3, 11))"
    for name in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        words = [*as_user(OTHER_USER), "sh", "-c", f"{name} -I -S -c '{code}' && cat {ENTER}"]  # not by setpriv itself
        if subprocess.run(words, cwd="/", capture_output=True, check=False).returncode == 0:
            return name
    return ""


def as_user(user: int) -> list[str]:
    """Words before a command that make it another user's."""
    if user == os.geteuid():
        return []
    return ["setpriv", f"--reuid={user}", f"--regid={OTHER_GROUP}", "--clear-groups"]


class Guarded:
    """A project with protected files, and its user."""

    def __init__(self, folder: Path, user: int) -> None:
        self.user = user
        self.python = sys.executable if user == os.geteuid() else python_of_all()
        self.home = folder / "home"
        self.root = folder / "home" / "work" / "project"
        self.root.mkdir(parents=True)
        for name, text in {
            "AGENTS.md": "rules\n",
            "specs/a.md": "spec a\n",
            "specs/deep/b.md": "spec b\n",
            "docs/constraints/c.md": "---\nid: c\n---\n",
            "docs/guide.md": "a guide\n",
            "fusewire.toml": "",
            ".claude/settings.json": "{}\n",
            ".claude/memory/notes.md": "writable\n",
            "src/app.py": "print('app')\n",
            "linked/real.md": "linked\n",
            "Makefile": "clean:\n\trm -rf specs AGENTS.md docs build\n",
        }.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        (self.root / "CLAUDE.md").symlink_to("linked/real.md")
        (self.home / ".claude" / "projects").mkdir(parents=True)
        (self.home / ".claude" / "settings.json").write_text("{}\n")
        self.own()
        self.outside("git init -q . && git add -A && git commit -qm first", check=True)

    def own(self) -> None:
        if self.user != os.geteuid():
            subprocess.run(["chown", "-Rh", f"{self.user}:{OTHER_GROUP}", self.home], check=True)

    @property
    def variables(self) -> dict[str, str]:
        """A home of its own: no setting of whoever runs the tests has a say."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        return {
            **kept,
            **who,
            "HOME": str(self.home),
            "P": str(self.root),
            "PY": self.python,
            "PYTHONDONTWRITEBYTECODE": "1",
            "LIB": LIB,
            "ENTER": str(ENTER),
            "SOURCE": str(SOURCE),
        }

    def words(self, *command: str, documents: bool = True) -> list[str]:
        """A command in the sandbox."""
        kind = "documents" if documents else "configuration"
        start = [self.python, "-I", "-S", str(ENTER), str(SOURCE), str(self.root), kind]
        return [*as_user(self.user), *start, *command]

    def run(self, words: list[str], cwd: Path | None = None, check: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=cwd or self.root,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=check,
        )

    def inside(
        self, script: str, *, documents: bool = True, cwd: Path | None = None, means: str = ""
    ) -> subprocess.CompletedProcess[str]:
        done = self.run(["env", f"MEANS={means}", *self.words("bash", "-c", script, documents=documents)], cwd)
        assert done.returncode != 99, done.stderr
        return done

    def outside(self, script: str, check: bool = False, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.run([*as_user(self.user), "bash", "-c", script], cwd, check)

    def protected(self) -> dict[str, object]:
        """What every protected path is: which file, with which mode and content, or where it leads."""
        places = ("AGENTS.md", "CLAUDE.md", "linked/real.md", "specs", "docs/constraints", "fusewire.toml", ".claude")
        found: dict[str, object] = {}
        for place in (*(self.root / name for name in places), self.home / ".claude" / "settings.json"):
            inner = sorted(place.rglob("*")) if place.is_dir() and not place.is_symlink() else []
            for path in (place, *inner):
                if "memory" in path.parts:
                    continue
                facts = path.lstat() if os.path.lexists(path) else None
                if facts is None:
                    found[str(path)] = None
                elif path.is_symlink():
                    found[str(path)] = os.readlink(path)
                else:
                    content = path.read_bytes() if path.is_file() else b""
                    found[str(path)] = (facts.st_ino, facts.st_mode, facts.st_mtime_ns if content else 0, content)
        return found


@contextlib.contextmanager
def guarded_project(user: int) -> Iterator[Guarded]:
    """Not below pytest's own folder, which no other user may enter; and not in one that anybody else may write."""
    folder = Path(tempfile.mkdtemp(prefix="fusewire-sandbox-"))
    try:
        folder.chmod(0o755)
        yield Guarded(folder, user)
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", folder], capture_output=True, check=False)
        shutil.rmtree(folder)


def users() -> list[object]:
    """Whoever runs the tests; root runs them as an ordinary user as well."""
    if os.geteuid():
        return [pytest.param(os.geteuid(), id="user")]
    return [pytest.param(0, id="root"), pytest.param(OTHER_USER, id="user")]


@pytest.fixture(params=users())
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    require_sandbox()
    if request.param != os.geteuid() and not python_of_all():
        pytest.skip("no Python that another user may run")
    with guarded_project(request.param) as project:
        yield project

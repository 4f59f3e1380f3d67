"""Find routine commands that would remove Fusewire from the environment that it runs from.

That environment is read off the place of the running package. In one of its own (uv tool, pipx, the plugin) nothing
that works on the project's environment concerns it.
"""

from __future__ import annotations

import os

from fusewire.guard.shell.wrappers import program
from fusewire.util.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Ways to name Fusewire in a lock file, a project's dependencies or a list of requirements.
_LISTED = ('"fusewire', "'fusewire", "\nfusewire", "/fusewire")

#: The largest lock file that is read.
_LONGEST = 16 << 20

_DRY = frozenset(("--dry-run", "--check", "--help", "-h", "--version"))


def own_environment() -> str:
    """The environment that the running package is installed in; empty if it is in none (the plugin, a source tree)."""
    package = os.path.realpath(os.path.dirname(os.path.dirname(__file__)))
    return package.rpartition("/lib")[0] if "-packages/" in package else ""


def unversioned(name: str) -> str:
    """`pip` for `pip3.12`."""
    return name.rstrip("0123456789.")


def removal(commands: list[list[str]], line: str, cwd: str) -> tuple[str, str]:
    """What in a line would remove Fusewire, and what to do instead; empty if nothing would."""
    own = own_environment()
    for words in commands if own else ():
        if program(words)[:6] == "python" and words[1:2] == ["-m"]:
            words = [words[0].replace(program(words), "".join(words[2:3])), *words[3:]]
        instead = _Command(words, line, cwd, own).instead()
        if instead:
            return f"`{' '.join(words)[:100]}` would remove Fusewire, which runs from {own}", instead
    return "", ""


class _Command:
    """One command of a program that manages environments."""

    def __init__(self, words: list[str], line: str, cwd: str, own: str) -> None:
        self.name, self.words, self.line, self.cwd, self.own = unversioned(program(words)), words, line, cwd, own
        self.operands = [word for word in words[1:] if word[:1] != "-"]
        self.verb = " ".join([self.name, *self.operands[:1]])
        self.given = set(words)

    def instead(self) -> str:
        """What to do instead, if this would remove us; else empty."""
        if self.given & _DRY:
            return ""
        if self.verb == "uv sync":
            return self.syncs({"--inexact"}, "uv.lock", "uv sync --inexact", {"--active"})
        if self.verb in ("poetry sync", "poetry install") and (self.verb[7:] == "sync" or "--sync" in self.given):
            return self.syncs(set(), "poetry.lock", "poetry install (without --sync)")
        if self.verb in ("pdm sync", "pdm install") and self.given & {"--clean", "--clean-unselected"}:
            return self.syncs(set(), "pdm.lock", "pdm sync (without --clean)")
        if self.verb == "pipenv clean" or self.given >= {"pipenv", "uninstall", "--all"}:
            return self.syncs(set(), "Pipfile.lock", "pipenv sync")
        if self.name == "pip-sync" or self.verb in ("uv pip", "pip uninstall", "piptools sync"):
            return self.pip()
        return "another environment" if self.removes_environment() else ""

    # -- packages ------------------------------------------------------------------------------------------

    def syncs(self, harmless: set[str], lock: str, instead: str, active: Iterable[str] = ()) -> str:
        """A project's environment becomes what its lock file says."""
        folder = self.value("--project", "--directory", "-C", "-p") or "."
        project = self.above(self.path(folder), lock, "pyproject.toml")
        ours = self.is_ours(*self.active()) or self.is_ours(os.path.join(project, ".venv")) or self.is_cached(project)
        if self.name == "uv" and not self.given.intersection(active):
            ours = self.is_ours(os.path.join(project, os.environ.get("UV_PROJECT_ENVIRONMENT") or ".venv"))
        listed = any(_lists(os.path.join(project, name)) for name in (lock, "pyproject.toml", "Pipfile"))
        return instead if ours and not listed and not self.given & harmless else ""

    def pip(self) -> str:
        """`pip uninstall -r FILE`, `pip freeze | xargs pip uninstall`, `pip-sync FILE`, `uv pip sync FILE`."""
        if not self.is_ours(*self.pips()) or self.given & {"--target", "--prefix", "--root"}:
            return ""
        if "sync" in self.verb or "sync" in self.operands[:2]:
            files = [word for word in self.operands if word.endswith((".txt", ".in", ".toml", ".lock"))]
            listed = any(_lists(self.path(name)) for name in files or ["requirements.txt"])
            return "" if listed else "pip install -r FILE, which removes nothing"
        file = self.value("-r", "--requirement", "--requirements")
        if "uninstall" not in self.given:
            return ""
        if file:
            path = self.path(file)
            return "name the packages" if _lists(path) or not os.path.isfile(path) else ""
        everything = any(f"{word} " in f"{self.line} " for word in ("pip freeze", "pip list", "pip3 freeze"))
        return "name the packages" if everything and "fusewire" not in self.line else ""

    # -- environments --------------------------------------------------------------------------------------

    def removes_environment(self) -> bool:
        """Whether the environment goes as a whole, or is made again."""
        two = " ".join(self.operands[:2])
        tail = self.own.split("/")[-3:]
        if self.verb == "uv venv" and not self.given & {"--allow-existing", "--no-clear"}:
            return self.is_ours(self.path("".join(self.operands[1:2]) or ".venv"))
        if self.name in ("venv", "virtualenv") and "--clear" in self.given:
            return self.is_ours(*(self.path(folder) for folder in self.operands))
        if self.name in ("conda", "mamba", "micromamba"):
            prefix = self.value("-p", "--prefix")
            named = self.value("-n", "--name") == tail[-1] or self.is_ours(prefix and self.path(prefix))
            return named and (two == "env remove" or {"remove", "--all"} <= self.given)
        if self.name == "pipx":
            return self.verb in ("pipx uninstall-all", "pipx reinstall-all") and tail[1:2] == ["venvs"]
        if self.verb == "uv tool":
            return two == "tool uninstall" and "--all" in self.given and tail[1:2] == ["tools"]
        if self.verb in ("poetry env", "pdm venv") or "--rm" in self.given:
            project = self.above(self.cwd, "pyproject.toml", "Pipfile")
            ours = self.is_ours(os.path.join(project, ".venv")) or self.is_cached(project)
            return ours and ("remove" in self.given or "--rm" in self.given)
        return False

    # -- which environment ---------------------------------------------------------------------------------

    def path(self, word: str) -> str:
        """The path that a word names; the shell has not seen it yet."""
        return os.path.join(self.cwd, os.path.expanduser(word))

    def is_ours(self, *folders: str) -> bool:
        return any(folder and os.path.realpath(folder) == self.own for folder in folders)

    def is_cached(self, project: str) -> bool:
        """Whether ours is the one that poetry or pipenv keeps for this project outside of it."""
        folder, _, name = self.own.rpartition("/")
        return folder.endswith("/virtualenvs") and name.startswith(os.path.basename(project))

    def active(self) -> list[str]:
        """Environments that are active, or that the line activates."""
        found = [os.environ.get("VIRTUAL_ENV", ""), os.environ.get("CONDA_PREFIX", "")]
        for word in self.line.replace(";", " ").replace("&", " ").split():
            if word.endswith("/bin/activate"):
                found.append(self.path(word.removesuffix("/bin/activate")))
        return found

    def pips(self) -> list[str]:
        """Environments that pip may work on: its own, the active one, for uv also `.venv`."""
        word = self.words[0]
        if self.name == "uv":
            python = self.value("-p", "--python")
            folder = os.path.dirname(os.path.dirname(python)) if "/bin/" in python else python
            return [self.path(folder)] if python else [*self.active(), self.path(".venv")]
        if "/" in word:
            return [self.path(os.path.dirname(os.path.dirname(word)))]
        folders = os.environ.get("PATH", "").split(os.pathsep)
        found = next((folder for folder in folders if folder and os.path.exists(os.path.join(folder, word))), "")
        return [*self.active(), os.path.dirname(found.rstrip("/"))]

    def above(self, folder: str, *names: str) -> str:
        """The nearest folder upwards that has one of these files; the folder itself if none has."""
        here = start = os.path.realpath(folder)
        while not any(os.path.exists(os.path.join(here, name)) for name in names):
            if here == os.path.dirname(here):
                return start
            here = os.path.dirname(here)
        return here

    def value(self, *options: str) -> str:
        for at, word in enumerate(self.words):
            name, equals, value = word.partition("=")
            if name in options:
                return value if equals else "".join(self.words[at + 1 : at + 2])
        return ""


def _lists(path: str) -> bool:
    """Whether Fusewire is among what a file lists."""
    try:
        text = "\n" + read_regular(path, _LONGEST).decode("utf-8", "replace")
    except OSError:
        return False
    return any(mark in text for mark in _LISTED)

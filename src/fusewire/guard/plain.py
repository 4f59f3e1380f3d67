"""Recognise the commands that agents run most, without reading them as a shell would.

`pytest -q && git status` has no quotes, no expansion, no redirection, and only programs that do nothing to files which
could be seen in their words. Such a line needs no walk, and the hook that is asked about it stays fast. Whatever is
not on these lists is read in full.
"""

from __future__ import annotations

from fusewire.guard.known_agents import AGENTS_BY_NAME
from fusewire.guard.shell.read_only import GIT_LOOKING, LOOKING, looks

_SPECIAL = frozenset("'\"\\`$*?[]{}~!<>();#\n\r\t%^")

#: They do what their own files say, which is not known from their words.
_OPAQUE = frozenset(
    (
        "bundle cargo composer dotnet flake8 go gradle jest just kubectl mix mvn mypy ninja phpunit pip pip3 psql"
        " pylint pyright pytest rake rspec rustc swift terraform tox vitest"
    ).split()
)

_PYTHON_OPAQUE = frozenset(("pytest", "unittest", "mypy", "pip", "build", "coverage", "flake8", "pylint"))


#: Parts of the names of options that name a file or folder to write.
_WRITING = tuple("out data-file coverprofile junit dest save dump log-file logfile report -log".split())


#: Parts of the names of options that say where, or what is run.
_TELLING = (*_WRITING, *("dir cache temp prefix profile emit path file exec ext target data".split()))

_RUNNING = frozenset(("uninstall", "exec", "dlx", "x", "clean", "init", "new", "create", "cp", "erase", "html"))


#: What a line has in it that may disarm us: the program, its hook, or an agent that could be started without it.
_OURS = ("fusewire", "hook.py", *AGENTS_BY_NAME)


def names_us(text: str) -> bool:
    """Whether a line or a word may have to do with our program or with an agent."""
    return any(name in text for name in _OURS)


def writes_to(option: str) -> bool:
    """Whether an option of an unknown program says where it writes."""
    return option[:2] == "--" and any(part in option for part in _WRITING) and "without" not in option


def plain_commands(line: str) -> list[list[str]] | None:
    """The commands of a plain line as words; None if the line has to be read."""
    if len(line) > 2000 or not _SPECIAL.isdisjoint(line):
        return None
    commands = [
        [word for word in part.split(" ") if word] for part in line.replace("&&", "|").replace("||", "|").split("|")
    ]
    if "&" in line.replace("&&", "") or not all(commands):
        return None
    return commands if all(_is_known(words) for words in commands) else None


def only_look(commands: list[list[str]]) -> bool:
    """Whether nothing in a plain line can have changed a file."""
    return all(map(looks, commands))


def _may_write(word: str) -> bool:
    """Whether an argument of an opaque program could say where it writes or what it runs."""
    if word[:2] == "--":
        return "=" in word or any(part in word for part in _TELLING)
    if word[:1] == "-" and len(word) > 2 and any(part in word for part in _TELLING):
        return True
    return word in _RUNNING or word[:2] in ("-o", "-O", "-t", "-d", "-L", "-C")


def _is_known(words: list[str]) -> bool:
    name = words[0]
    if name in LOOKING:
        return True
    if any(_may_write(word) for word in words[1:]):
        return False
    if name == "date":  # with other words it may set the clock
        return all(word[:1] == "+" or word == "-u" for word in words[1:])
    if name == "git":
        return len(words) > 1 and words[1] in GIT_LOOKING
    if name in ("python", "python3"):
        return words[1:2] == ["-m"] and len(words) > 2 and words[2] in _PYTHON_OPAQUE
    return name in _OPAQUE

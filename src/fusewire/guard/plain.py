"""The commands that agents run most, known without reading them as a shell would.

`pytest -q && git status` has no quotes, no expansion, no redirection, and only programs that do nothing to files which
could be told from their words. Such a line needs no walk, and the hook that is asked about it stays fast. Whatever is
not on these lists is read in full.
"""

from __future__ import annotations

_SPECIAL = frozenset("'\"\\`$*?[]{}~!<>();#\n\r\t%^")

#: They only look.
_LOOKING = frozenset(
    (
        "basename cat cd cmp cut date df diff dirname du echo file grep head hostname id jq ls md5sum nl nproc ps "
        "pwd rg sha256sum sleep stat tail test tree true uname uptime wc which whoami"
    ).split()
)

#: They do what their own files tell them; nobody can know what that does to ours.
_OPAQUE = frozenset(
    (
        "bundle cargo cmake composer docker dotnet flake8 go gradle jest just kubectl mix mvn mypy ninja npm "
        "phpunit pip pip3 pnpm psql pylint pyright pytest rake rspec rustc swift terraform tox tsc vitest yarn"
    ).split()
)

_GIT_LOOKING = frozenset(
    ("add blame branch describe diff fetch log ls-files push remote rev-parse shortlog show status tag").split()
)

_PYTHON_OPAQUE = frozenset(("pytest", "unittest", "mypy", "pip", "build", "coverage", "flake8", "pylint"))


#: Parts of the names of options that name a file or folder to write.
_WRITING = ("out", "junit", "dest", "save", "dump", "log-file", "logfile", "report", "-log", "-o")


def writes_to(option: str) -> bool:
    """Whether an option of a program that nobody knows says where it writes."""
    return option[:2] == "--" and any(part in option for part in _WRITING) and "without" not in option


def plain_commands(line: str) -> list[list[str]] | None:
    """The commands of a plain line as words; None if the line has to be read."""
    if len(line) > 2000 or not _SPECIAL.isdisjoint(line):
        return None
    commands = [part.split() for part in line.replace("&&", "|").replace("||", "|").split("|")]
    if "&" in line.replace("&&", "") or not all(commands):
        return None
    return commands if all(_is_known(words) for words in commands) else None


def only_look(commands: list[list[str]]) -> bool:
    """Whether nothing in a plain line can have changed a file."""
    return all(words[0] in _LOOKING or words[0] == "git" for words in commands)


def _is_known(words: list[str]) -> bool:
    name = words[0]
    if name in _LOOKING:
        return True
    if any(
        word.startswith(("-o", "-O", "-t", "-d", "--exec", "--ext", "--target")) or writes_to(word) for word in words
    ):
        return False
    if name == "git":
        return len(words) > 1 and words[1] in _GIT_LOOKING
    if name in ("python", "python3"):
        return words[1:2] == ["-m"] and len(words) > 2 and words[2] in _PYTHON_OPAQUE
    return name in _OPAQUE

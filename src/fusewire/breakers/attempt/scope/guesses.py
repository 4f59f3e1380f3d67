"""Writes that the guard only guesses: the value of an option, of a program whose files nobody knows for certain.

To guard what is protected, `--reporter=dot` is taken for a file. The scope lock would refuse half of all test runs if
it did so, too; it refuses a guess only where a file of somebody's work is there that would be overwritten.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Effect

#: Endings of the files that test runners and linters write their findings to, and words that say it.
_REPORTS = (".xml", ".html", ".json", ".txt", ".sarif", ".lcov", ".info", ".tap", ".prof", ".out")
_SAYS_REPORT = re.compile(r"report|junit|cov(?:er|erage)?\b|coverage|results?\b|lcov", re.IGNORECASE)

#: What such an option says instead, or reads; `--no-output` takes no value.
_NO_TARGET = re.compile(r"--no-|.*(?:config|template|format|level|style|stdout|timeout)$", re.IGNORECASE)


def guessed(effect: Effect) -> list[str]:
    """The paths that a guess may mean, absolute."""
    words = effect.command
    ours = _is_ours(words)
    if ours:  # it writes nothing but its state; what it runs may
        words = words[words.index("--") + 1 :] if "--" in words else []
    options = _options(words, effect.path)
    if not options:
        return [] if ours else [effect.path]
    values = {value for option, value in options if value != "-" and not _NO_TARGET.match(option)}
    found = [effect.path] if values else []
    for value in values:
        kind, colon, target = value.partition(":")  # html:FOLDER
        found += [effect.path.removesuffix(value) + target] if colon and kind and target else []
    return found


def is_report(root: str, path: str) -> bool:
    """Whether a file of the project is what an earlier run has found, and nobody's work."""
    if not path.endswith(_REPORTS):
        return False
    return _SAYS_REPORT.search(os.path.basename(path)) is not None or not _is_committed(root, path)


def _options(words: list[str], path: str) -> list[tuple[str, str]]:
    """The options that have a path as their value, each with the value as it is written."""
    found = []
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals:
            value = "".join(words[at + 1 : at + 2])
            if word[:2] == "-o" and len(word) > 2:
                name, value = "-o", word[2:]
        if name[:1] == "-" and value and f"/{path}".endswith(f"/{value.removeprefix('./')}"):
            found.append((name, value.removeprefix("./")))
    return found


def _is_ours(words: list[str]) -> bool:
    name = words[0].rpartition("/")[2]
    if name.startswith(("python", "pypy")) and "-m" in words:
        name = "".join(words[words.index("-m") + 1 :][:1])
    return name == "fusewire"


def _is_committed(root: str, path: str) -> bool:
    from fusewire.util.git import GitFailure, git

    try:
        return bool(git(root, "ls-tree", "--name-only", "-z", "HEAD", "--", path))
    except GitFailure:
        return False  # no repository, or nothing committed: the ending has to do

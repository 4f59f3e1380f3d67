"""Recognise a command line that runs this project's tests, and tell which tests it runs.

What decides about a test is the runner's output, not these words. They only keep out what cannot be an attempt (an
old output that is shown again, another project's tests), and say of a run that names no test which ones it was about.
"""

from __future__ import annotations

import os
import re

from fusewire.breakers.attempt.scope.places import place
from fusewire.breakers.session.calls import VERIFY, nature_of
from fusewire.guard.shell.values import UNKNOWN
from fusewire.guard.shell.wrappers import program
from fusewire.testruns.cases import same_test

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fusewire.core.events import Event

    Words = list[str]
    Commands = list[Words]

#: Options of runners that say in which folder, or that only some tests are wanted.
_FOLDERS = ("--rootdir", "--prefix", "--project", "--manifest-path", "--cwd", "--dir", "--directory", "--root")
_CHOOSING = (
    *("-k", "-t", "-g", "-run", "--run", "--grep", "--filter", "--testNamePattern", "--test-name-pattern", "--tests"),
    *("--lf", "--last-failed", "--sw", "--stepwise", "--deselect", "--ignore", "--ignore-glob", "--changed", "--shard"),
    *("--onlyChanged", "--exclude", "--skip", "-skip", "-m"),
)
#: Words that ask for tests, and not for some of them.
_VERBS = frozenset("test tests run exec check ci all nextest pytest py.test unittest jest vitest mocha -- .".split())
_MOVING = frozenset(("cd", "pushd"))
#: A whole file or folder: it holds tests, and is none.
_FILE = re.compile(r".*\.(?:py|[cm]?[jt]sx?|rs|go|java|kt|rb|php|exs?)")


class ShellTestRun:
    """One call that has run tests: its commands, where it began, what came back."""

    __test__ = False  # no test class, whatever pytest thinks

    __slots__ = ("code", "commands", "here", "output")

    def __init__(self, commands: Commands, here: str, output: str, code: int) -> None:
        self.commands, self.here, self.output, self.code = commands, here, output, code


def run_of(call: Event, commands: Commands, home: str) -> ShellTestRun | None:
    """The run of tests behind a call; None if there is none, or it was refused, interrupted, put in the background."""
    if not call.command or not call.result or call.result.startswith("PreToolUse:"):
        return None
    if (call.input or {}).get("run_in_background") is True:
        return None
    running = running_tests(call, commands, home)
    if not running:
        return None
    first, _, rest = call.result.partition("\n")
    number = first.removeprefix("Exit code ")
    if number != first and number.isdecimal():
        return ShellTestRun(running, call.cwd or home, rest, int(number))
    return ShellTestRun(running, call.cwd or home, call.result, 1 if call.failed else 0)


def running_tests(event: Event, commands: list[Words], home: str) -> list[Words]:
    """The commands of a line that run this project's tests; none if they were counted already, or are elsewhere."""
    if any(_counts_itself(words) for words in commands):
        return []
    found = [words for words in commands if nature_of(event, [words], False) == VERIFY]
    return [] if not found or _is_elsewhere(event.cwd or home, commands, found, home) else found


def own_act(words: Words, group: str) -> tuple[str, Words]:
    """What `fusewire GROUP ACT ...` does, and its operands; nothing if that is not what the words run."""
    if program(words) != "fusewire" or group not in words:
        return "", []
    act, *rest = words[words.index(group) + 1 :] or [""]
    operands, skips = [], False
    for word in rest:
        if word == "--":
            break
        if not skips and word[:1] != "-":
            operands.append(word)
        skips = word in ("--strategy", "--timeout", "--junit", "--error-file", "--file", "--project", "--metric")
    return act, operands


def _counts_itself(words: Words) -> bool:
    return own_act(words, "attempt")[0] in ("run", "record")


def _is_elsewhere(here: str, commands: list[Words], running: list[Words], home: str) -> bool:
    """Whether the line leaves the project, or may leave it."""
    for words in commands:
        if program(words) in _MOVING:
            to = next((word for word in words[1:] if word[:1] != "-"), UNKNOWN)
            if UNKNOWN in to or to[:1] in "$~`":
                return True
            here = os.path.join(here, to)
    if place(here, home) is None:
        return True
    paths = [path for words in running for path in _paths(words)]
    return any(
        os.path.lexists(full) and place(full, home) is None for full in (os.path.join(here, one) for one in paths)
    )


def _paths(words: Words) -> Iterator[str]:
    for word in words[1:]:
        option, equals, value = word.partition("=")
        if word[:1] != "-":
            yield word.partition("::")[0]
        elif equals and option in _FOLDERS:
            yield value


# -- which tests are asked for ------------------------------------------------------------------------------------


def asks_for(running: list[Words], test: str) -> bool:
    """Whether the words name this very test, and not only the file that it is in."""
    last = re.split(r"::| > | \u203a |#", test.partition("[")[0])[-1]
    last = last.rpartition(".")[2] if " " not in last else last
    name = re.compile(rf"(?<![\w-]){re.escape(last.strip())}(?![\w-])") if last.strip() else None
    return name is not None and any(_names(word, name, test) for words in running for word in words[1:])


def _names(word: str, name: re.Pattern[str], test: str) -> bool:
    option, equals, value = word.partition("=")
    if word[:1] == "-":
        word = value if equals and option in _CHOOSING else ""
    if "::" in word:
        return same_test(test, word)
    if _FILE.fullmatch(word) or ("/" in word and " " not in word) or re.search(r"\bnot\b", word):
        return False
    return name.search(word) is not None


def covers(running: list[Words], test: str, files: Iterable[str], here: str, home: str) -> bool:
    """Whether a run must have had this test in it: it names the test or its file, or leaves nothing out."""
    return asks_for(running, test) or any(_reaches(words, list(files), here, home) for words in running)


def _reaches(words: Words, files: list[str], here: str, home: str) -> bool:
    rest = words[1:]
    if program(words).startswith("python") and rest[:1] == ["-m"]:
        rest = rest[2:]
    if any(word.partition("=")[0] in _CHOOSING for word in rest):
        return False
    wanted = [word for word in rest if word[:1] != "-" and word not in _VERBS and not word.startswith("test:")]
    if not wanted:
        return True
    for word in wanted:
        inside = place(os.path.join(here, word.removesuffix("/...").partition("::")[0]), home)
        if inside is None or "::" in word or not os.path.lexists(os.path.join(home, inside)):
            continue
        if inside == "." or any(file == inside or file.startswith(f"{inside}/") for file in files):
            return True
    return False

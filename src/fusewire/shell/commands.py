"""The simple commands in a command line, as lists of words: what would be run, not what is merely said.

`git commit -m "git push --force"` runs `git commit`; `cd x && sudo git push -f` runs `git push -f`. Constraints match
on these words. Nothing is executed, no input raises, the disk is not read, and the work is bounded: a line that nests
its text again and again is read flat in the end, so that what is hidden there is still found.
"""

from __future__ import annotations

from fusewire.shell.looking import GIT_LOOKING, LOOKING
from fusewire.shell.outputs import printed
from fusewire.shell.values import UNKNOWN
from fusewire.shell.walk import TooMuch, Walk
from fusewire.shell.wrappers import is_wrapper, program, reads_input, scripts_of, shell_operands, unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.world import World


#: Words that `xargs` is followed with.
_ARGUMENTS = 100


def simple_commands(line: str) -> list[list[str]]:
    """Every command that the line would run, in that order; wrapped ones also without their wrapper."""
    collector = _Collector()
    walk = Walk(collector, environment={}, literal=True)
    try:
        walk.line(line, UNKNOWN)
    except (TooMuch, RecursionError):
        collector.found += _flat(line)
    return collector.found


def only_looks(line: str) -> bool:
    """Whether a line changes no file, as far as its words say; the disk is not read."""
    collector = _Collector()
    try:
        Walk(collector, environment={}, literal=True).line(line, UNKNOWN)
    except (TooMuch, RecursionError):
        return False
    return not collector.writes and all(_looks(words) for words in collector.found)


def _looks(words: list[str]) -> bool:
    name = program(words)
    if name in ("find", "sort", "uniq"):
        return not any(word[:3] in ("-de", "-ex", "-ok", "-fp", "-fl", "-o", "--o") for word in words)
    return name in LOOKING or is_wrapper(name) or (name == "git" and "".join(words[1:2]) in GIT_LOOKING)


class _Collector:
    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.writes = False

    def command(self, words: list[str], world: World, walk: Walk) -> None:
        words = [word.rstrip("\r") for word in words]
        stages = unwrapped(words)
        self.found += stages
        if world.exported and any("fusewire" in word for word in words):  # what `export` and `A=b fusewire` set for us
            self.found.append(["env", *(f"{name}=" for name in sorted(world.exported)), *words])
        text = printed(words, world.stdin)
        for stage in _outer_and_inner(stages):
            for script in scripts_of(stage) if program(stage) not in ("eval", "trap") or stage is not words else ():
                walk.script(script, world, shell_operands(stage)[1][1:] or ["bash"])
            if program(stage) in ("xargs", "parallel") and world.stdin and UNKNOWN not in world.stdin:
                self.found.append([*stages[-1], *world.stdin.split()[:_ARGUMENTS]])
            if reads_input(stage) and world.stdin is not None and UNKNOWN not in world.stdin:
                walk.script(world.stdin, world, ["bash"])
        if text is not None:
            world.out += text
        elif words[0] not in ("cd", "export"):
            world.out += UNKNOWN

    def redirect(self, operator: str, path: str, world: World, walk: Walk) -> bool:
        self.writes = self.writes or (operator[:1] != "<" and not path.startswith("/dev/"))
        return True

    def sourced(self, text: str, world: World, walk: Walk) -> list[World]:
        return [world]

    def unread(self, text: str, world: World, walk: Walk) -> None:
        self.found += _flat(text)


def _outer_and_inner(stages: list[list[str]]) -> list[list[str]]:
    """The command as it stands and the last two that its wrappers run: a script belongs to one of them."""
    last = len(stages) - 1
    return [stages[at] for at in sorted({0, max(0, last - 1), last})] if stages else []


def _flat(text: str) -> list[list[str]]:
    for mark in "'\"`$(){};&|\\":
        text = text.replace(mark, "\n")
    return [words for part in text.split("\n") if (words := part.split())]

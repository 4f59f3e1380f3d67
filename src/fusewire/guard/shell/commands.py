"""List the simple commands in a command line, as words: what would run, not what is merely mentioned.

`git commit -m "git push --force"` runs `git commit`; `cd x && sudo git push -f` runs `git push -f`. Constraints match
on these words. Nothing is executed, no input raises, the disk is not read, and the work is bounded: a line that nests
its text again and again is read flat in the end, so that what is hidden there is still found.
"""

from __future__ import annotations

from fusewire.guard.shell import tree
from fusewire.guard.shell.outputs import printed
from fusewire.guard.shell.parser import parse
from fusewire.guard.shell.read_only import looks
from fusewire.guard.shell.values import UNKNOWN, cleaned
from fusewire.guard.shell.walk import TooMuch, Walk
from fusewire.guard.shell.wrappers import program, reads_input, scripts_of, shell_operands, unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.guard.shell.world import World


#: Words that `xargs` is followed with.
_ARGUMENTS = 100

#: They only run what follows them.
_TRANSPARENT = frozenset("builtin command nice stdbuf sudo time timeout xargs".split())


def simple_commands(line: str) -> list[list[str]]:
    """Every command that the line would run, in that order; wrapped ones also without their wrapper."""
    collector = _Collector()
    walk = Walk(collector, {})
    try:
        walk.line(line, UNKNOWN)
    except (TooMuch, RecursionError):
        collector.found += _flat(line)
    return collector.found


def only_looks(line: str) -> bool:
    """Whether every command in a line, reached or not, only reads; as far as the words say, the disk is not read."""
    try:
        return _only_reads(parse(cleaned(line)))
    except RecursionError:
        return False


def _only_reads(thing: Any) -> bool:
    """The same for a part of the parse tree: a node, a word, or a list of them."""
    if isinstance(thing, (list, tuple)):
        return all(map(_only_reads, thing))
    if isinstance(thing, tree.Redirect):
        return _opens_no_file(thing) and _only_reads(thing.target)
    if not isinstance(thing, tree.Node):
        return True
    if isinstance(thing, tree.Unread) or (isinstance(thing, tree.Simple) and not _looks(thing)):
        return False
    return all(_only_reads(getattr(thing, name)) for name in ("redirects", *thing.__slots__))


def _opens_no_file(redirect: tree.Redirect) -> bool:
    target = _text(redirect.target)
    if redirect.operator[0] == "<" and redirect.operator != "<>":
        return True
    return target == "/dev/null" or (redirect.operator == ">&" and not target.strip("0123456789-"))


def _looks(node: tree.Simple) -> bool:
    if any(name.isupper() and name[:2] != "LC" for name, _, _ in node.assignments):
        return False  # such as PATH: it may say what is run
    words = [_text(word) for word in node.words]
    stages = unwrapped(words) if words and words[0] in _TRANSPARENT else [words]
    return all(not stage or stage[0] in _TRANSPARENT or looks(stage, UNKNOWN) for stage in stages)


def _text(word: tree.Word) -> str:
    if isinstance(word, str):
        return word
    return "".join(part[1] if part[0] in (tree.TEXT, tree.QUOTED) else UNKNOWN for part in word)


class _Collector:
    def __init__(self) -> None:
        self.found: list[list[str]] = []

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
        return True

    def holds(self, test: str, path: str) -> bool | None:
        return None

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

"""What a command line is made of. The parser builds these; whoever walks them gives them a meaning.

A word is a `str` if it is plain, else a tuple of parts, each a tuple that starts with its kind:

    (TEXT, text)                            unquoted: braces, `~` and globs are still active in it
    (QUOTED, text)                          means itself
    (PARAMETER, name, operator, word, quoted, raw)
    (COMMAND, node, quoted, raw)            `$(...)` and backticks
    (ARITHMETIC, parts, quoted, raw)        `$((...))`
    (PROCESS, node, direction, raw)         `<(...)` and `>(...)`
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Part = tuple[Any, ...]
    Word = str | tuple[Part, ...]
    #: name, whether it is appended (`+=`), the value or a list of words for an array
    Assignment = tuple[str, bool, Word | list[Word]]

TEXT, QUOTED, PARAMETER, COMMAND, ARITHMETIC, PROCESS = range(6)


class Redirect:
    """`2>> file`; for a here-document `target` is its body."""

    __slots__ = ("descriptor", "operator", "target")

    def __init__(self, operator: str, descriptor: str, target: Word) -> None:
        self.operator = operator
        self.descriptor = descriptor
        self.target = target


class Node:
    """Anything that can be run."""

    __slots__ = ("redirects",)
    redirects: list[Redirect]


class Simple(Node):
    __slots__ = ("assignments", "words")

    def __init__(self) -> None:
        self.assignments: list[Assignment] = []
        self.words: list[Word] = []
        self.redirects = []


class Sequence(Node):
    """Commands one after the other; each with whether it runs in the background."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[Node, bool]]) -> None:
        self.items = items
        self.redirects = []


class AndOr(Node):
    __slots__ = ("first", "rest")

    def __init__(self, first: Node, rest: list[tuple[str, Node]]) -> None:
        self.first = first
        self.rest = rest
        self.redirects = []


class Pipeline(Node):
    __slots__ = ("commands", "negated")

    def __init__(self, commands: list[Node], negated: bool) -> None:
        self.commands = commands
        self.negated = negated
        self.redirects = []


class Group(Node):
    """`{ ... }`, or `( ... )` if it is a subshell."""

    __slots__ = ("body", "subshell")

    def __init__(self, body: Node, subshell: bool) -> None:
        self.body = body
        self.subshell = subshell
        self.redirects = []


class If(Node):
    __slots__ = ("branches", "otherwise")

    def __init__(self, branches: list[tuple[Node, Node]], otherwise: Node | None) -> None:
        self.branches = branches
        self.otherwise = otherwise
        self.redirects = []


class While(Node):
    __slots__ = ("body", "condition", "until")

    def __init__(self, condition: Node, body: Node, until: bool) -> None:
        self.condition = condition
        self.body = body
        self.until = until
        self.redirects = []


class For(Node):
    """`for name in words`; without `in` the words are None (the positionals), for `for ((...))` the name is empty."""

    __slots__ = ("body", "name", "words")

    def __init__(self, name: str, words: list[Word] | None, body: Node) -> None:
        self.name = name
        self.words = words
        self.body = body
        self.redirects = []


class Case(Node):
    __slots__ = ("branches", "word")

    def __init__(self, word: Word, branches: list[tuple[list[Word], Node, str]]) -> None:
        self.word = word
        self.branches = branches
        self.redirects = []


class Function(Node):
    __slots__ = ("body", "name")

    def __init__(self, name: str, body: Node) -> None:
        self.name = name
        self.body = body
        self.redirects = []


class Test(Node):
    """`[[ ... ]]` and `((...))`: only what their words substitute is run."""

    __slots__ = ("words",)

    def __init__(self, words: list[Word]) -> None:
        self.words = words
        self.redirects = []


class Unread(Node):
    """Text that is nested beyond reason, or too long."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
        self.redirects = []

"""Define the parse tree of a command line. The parser builds it; the walk gives it a meaning.

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
    """Anything that can be run; the values are those of `__slots__`, in this order."""

    __slots__ = ("redirects",)
    redirects: list[Redirect]

    def __init__(self, *values: Any) -> None:
        self.redirects = []
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)


class Simple(Node):
    __slots__ = ("assignments", "words")
    assignments: list[Assignment]
    words: list[Word]

    def __init__(self) -> None:
        super().__init__([], [])


class Sequence(Node):
    """Commands one after the other; each with whether it runs in the background."""

    __slots__ = ("items",)
    items: list[tuple[Node, bool]]


class AndOr(Node):
    __slots__ = ("first", "rest")
    first: Node
    rest: list[tuple[str, Node]]


class Pipeline(Node):
    __slots__ = ("commands", "negated")
    commands: list[Node]
    negated: bool


class Group(Node):
    """`{ ... }`, or `( ... )` if it is a subshell."""

    __slots__ = ("body", "subshell")
    body: Node
    subshell: bool


class If(Node):
    __slots__ = ("branches", "otherwise")
    branches: list[tuple[Node, Node]]
    otherwise: Node | None


class While(Node):
    __slots__ = ("condition", "body", "until")  # noqa: RUF023
    condition: Node
    body: Node
    until: bool


class For(Node):
    """`for name in words`; without `in` the words are None (the positionals), for `for ((...))` the name is empty."""

    __slots__ = ("name", "words", "body")  # noqa: RUF023
    name: str
    words: list[Word] | None
    body: Node


class Case(Node):
    __slots__ = ("word", "branches")  # noqa: RUF023
    word: Word
    branches: list[tuple[list[Word], Node]]


class Function(Node):
    __slots__ = ("name", "body")  # noqa: RUF023
    name: str
    body: Node


class Test(Node):
    """`[[ ... ]]` and `((...))`: only what their words substitute is run."""

    __slots__ = ("words",)
    words: list[Word]


class Unread(Node):
    """Text that is nested beyond reason, or too long."""

    __slots__ = ("text",)
    text: str

"""The world in which code runs, as far as the code can see it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _nothing(name: str) -> str | None:
    return None


class Setting:
    """Variables, input and files that are known; with it, code also tells what it prints and what it writes.

    These are two more kinds of effects: `print` with the text, and `file` with a path, a NUL, and the content.
    """

    __slots__ = ("content", "entries", "output", "paths", "read", "stdin", "variable")

    def __init__(
        self,
        *,
        stdin: str | None = None,
        paths: list[str] | None = None,
        variable: Callable[[str], str | None] = _nothing,
        read: Callable[[str], str | None] = _nothing,
        output: Callable[[str], str | None] = _nothing,
        content: Callable[[str], str | None] = _nothing,
        entries: Callable[[str], list[tuple[str, bool]] | None] = lambda folder: None,
    ) -> None:
        #: what the code reads; None if nobody knows
        self.stdin = stdin
        #: folders in which modules are looked for
        self.paths = paths or []
        #: the value of a variable of the environment
        self.variable = variable
        #: what the line has written into a file
        self.read = read
        #: what is in any file
        self.content = content
        #: what a command line prints
        self.output = output
        #: names in a folder, and whether each is a folder itself
        self.entries = entries

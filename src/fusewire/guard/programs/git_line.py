"""What earlier commands of the same line would have done to HEAD and to the index, and what git was asked so far."""

from __future__ import annotations

from weakref import WeakKeyDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.shell.walk import Walk

#: Seconds that git may take for all questions of one line.
_SECONDS_PER_LINE = 8.0


class Line:
    """What one line has asked git so far, and what it would have done to its repositories."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, ...], str | None] = {}
        self.seconds = _SECONDS_PER_LINE
        #: git took too long, or printed more than is read: what a command changes is not known
        self.cut = False
        self.moves: dict[str, Moves] = {}
        #: what is to be found out about HEAD and the index only if somebody asks for them
        self.later: list[Callable[[], None]] = []
        #: folders in which the line has made a repository
        self.made: set[str] = set()
        #: settings that the line has written, by their names
        self.settings: dict[str, str] = {}
        #: branches and tags that the line has made: their commit, and where HEAD was if they are made from it
        self.refs: dict[str, tuple[str, tuple[str, int] | None]] = {}


class Moves:
    """What a line has done to HEAD and to the index of one repository."""

    def __init__(self) -> None:
        #: the commit at which HEAD would be; "" where it is
        self.head = ""
        #: commits that the line has made on top of it
        self.commits = 0
        #: (commit, names): files of the index that would be as they are in that commit
        self.index: list[tuple[str, set[str]]] = []
        #: files that are in the index as they are in the working tree
        self.added: set[str] = set()
        #: files that are no longer in the index
        self.removed: set[str] = set()
        #: files that were committed as they are in the working tree
        self.settled: set[str] = set()

    def any(self) -> bool:
        return bool(self.head or self.commits or self.index or self.added or self.removed)


_LINES: WeakKeyDictionary[Walk, Line] = WeakKeyDictionary()


def line_of(walk: Walk) -> Line:
    line = _LINES.get(walk)
    if line is None:
        line = _LINES[walk] = Line()
    return line

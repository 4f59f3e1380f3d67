"""What a shell knows at one point of a line. Where it could have gone two ways, there are two worlds."""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Node

#: More ways through one line than are followed apart; beyond, what differs between them is unknown.
_MOST = 8


class World:
    __slots__ = (
        "cwd",
        "exported",
        "flow",
        "functions",
        "options",
        "out",
        "positionals",
        "stack",
        "status",
        "stdin",
        "traps",
        "variables",
    )

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        #: variables that programs see
        self.exported: frozenset[str] = frozenset()
        #: "exit", "return", "break" or "continue" while the rest of something is passed over
        self.flow = ""
        self.functions: dict[str, Node] = {}
        self.options: frozenset[str] = frozenset()
        #: what was printed so far, UNKNOWN for what is not known of it
        self.out = ""
        #: $0, $1, ...
        self.positionals: list[str] = ["bash"]
        self.stack: list[str] = []
        #: whether the last command went well; None if nobody can know
        self.status: bool | None = True
        #: what a command would read; None if it is whatever the terminal or the caller gives
        self.stdin: str | None = None
        #: what `trap` has set, by signal
        self.traps: dict[str, str] = {}
        self.variables: dict[str, str | list[str]] = {}

    def copy(self) -> World:
        other = World(self.cwd)
        other.exported = self.exported
        other.flow = self.flow
        other.traps = self.traps
        other.functions = dict(self.functions) if self.functions else {}
        other.options = self.options
        other.out = self.out
        other.positionals = self.positionals
        other.stack = self.stack
        other.status = self.status
        other.stdin = self.stdin
        other.variables = dict(self.variables)
        return other

    def differs(self, other: World) -> bool:
        return (
            self.cwd != other.cwd
            or self.flow != other.flow
            or self.variables != other.variables
            or self.functions != other.functions
            or self.options != other.options
            or self.positionals != other.positionals
        )


def distinct(worlds: list[World]) -> list[World]:
    """The worlds that differ; if there are too many, the last ones as one in which the differences are unknown."""
    if len(worlds) < 2:
        return worlds
    kept: list[World] = []
    for world in worlds:
        twin = next((one for one in kept if not one.differs(world)), None)
        if twin is None:
            kept.append(world)
            continue
        if twin.status is not world.status:
            twin.status = None
        if twin.out != world.out:
            twin.out = UNKNOWN
    while len(kept) > _MOST:
        world, last = kept.pop(), kept[-1]
        for name in last.variables.keys() | world.variables.keys():
            if last.variables.get(name) != world.variables.get(name):
                last.variables[name] = UNKNOWN
        last.functions.update(world.functions)
        last.cwd = last.cwd if last.cwd == world.cwd else UNKNOWN
        last.flow = "" if not world.flow else last.flow
        last.status = None
    return kept

"""Hold what a shell knows at one point of a line. Where it could have gone two ways, there are two worlds."""

from __future__ import annotations

from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.shell.tree import Node

#: More ways through one line than are followed apart; beyond, what differs between them is unknown.
_MOST = 8


class World:
    __slots__ = (
        *("cwd", "exported", "flow", "functions", "options", "out", "positionals", "stack", "status", "stdin"),
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
        #: the folders of `pushd`
        self.stack: list[str] = []
        #: whether the last command went well; None if it is not known
        self.status: bool | None = True
        #: what a command would read; None if it is whatever the terminal or the caller gives
        self.stdin: str | None = None
        self.variables: dict[str, str | list[str]] = {}

    def copy(self) -> World:
        other = World(self.cwd)
        for name in ("exported", "flow", "options", "out", "positionals", "stack", "status", "stdin"):
            setattr(other, name, getattr(self, name))
        other.functions = dict(self.functions) if self.functions else {}
        other.variables = dict(self.variables)
        return other

    def differs(self, other: World) -> bool:
        names = ("cwd", "flow", "variables", "functions", "options", "positionals")
        return any(getattr(self, name) != getattr(other, name) for name in names)


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
        twin.status = twin.status if twin.status is world.status else None
        twin.out = twin.out if twin.out == world.out else UNKNOWN
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

"""The scope of a slice by the priority of its sources: `files_in_scope` alone, else contracts and graph together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.contracts import contract_entries
from fusewire.breakers.attempt.scope.graph import GraphEntry, graph_file, read_node, slice_names
from fusewire.breakers.attempt.scope.patterns import normal_pattern, package_patterns
from fusewire.breakers.attempt.scope.types import NoScope, Scope
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.boundary import Entry

#: Slices that a message names.
_NAMED = 10


def read_scope(root: str, slice: str, given: list[str]) -> Scope:
    """What is in scope; NoScope if nobody says, FusewireError if what is said cannot be used.

    `given` are the patterns of `fusewire scope set`: the orchestrator's word, before that of any file.
    """
    if given:
        return Scope(slice, tuple((pattern, f"files_in_scope: {pattern}") for pattern in given), True)
    file = graph_file(root)
    node = read_node(root, file, slice) if file else None
    if node is not None and node.files_in_scope is not None:
        return Scope(slice, tuple(_plain(root, slice, node, "files_in_scope", node.files_in_scope)), True)
    entries: dict[Entry, None] = {}
    entries |= dict.fromkeys(contract_entries(root, slice, node.contracts if node else [], file or ""))
    if node is not None:
        where = f"{node.file}: slice {slice}: packages"
        for package in node.packages:
            source = f"{node.file}: packages {package.strip()}"
            entries |= dict.fromkeys((pattern, source) for pattern in package_patterns(package, root, where))
        entries |= dict.fromkeys(_plain(root, slice, node, "deliverables", node.deliverables))
    if entries:
        return Scope(slice, tuple(entries), False)
    if file and node is None:
        raise FusewireError(f"{file}: there is no slice {slice}; allowed: {_known(root, file, slice)}")
    raise NoScope(slice, f" ({file} has it without any files)" if file else "")


def _known(root: str, file: str, slice: str) -> str:
    names = [name if name.isprintable() else repr(name) for name in slice_names(root, file)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    there = f"one of its slices ({', '.join(name[:64] for name in names[:_NAMED])}{more})" if names else "(it has none)"
    return f"{there}, or files given with: fusewire scope set {slice} PATTERN..."


def _plain(root: str, slice: str, node: GraphEntry, key: str, texts: list[str]) -> list[Entry]:
    where = f"{node.file}: slice {slice}: {key}"
    return [(normal_pattern(text, root, where), f"{node.file}: {key} {text.strip()}") for text in texts]

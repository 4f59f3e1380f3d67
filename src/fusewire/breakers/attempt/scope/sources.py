"""Collect the scope of a slice by priority: `files_in_scope` alone, else contracts and GRAPH.json together.

The graph has the slices of a project with their packages, deliverables, contracts and `files_in_scope`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.contracts import contract_entries, read_source
from fusewire.breakers.attempt.scope.patterns import normal_pattern, package_patterns
from fusewire.breakers.attempt.scope.places import GRAPHS
from fusewire.util.errors import ConfigError, FusewireError
from fusewire.util.fast_json import loads

if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.boundary import Entry

_SLICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

#: Bytes that a graph may have.
_LIMIT = 20_000_000

#: Slices that a message names.
_NAMED = 10


class NoScope(FusewireError):
    """No source defines a scope. That is not an empty scope: nothing is locked, and nothing can be judged."""

    def __init__(self, slice: str, found: str = "") -> None:
        super().__init__(
            f"no scope is defined for {slice}{found}: list files with `fusewire scope set {slice} PATTERN...`,"
            f" name the slice in CONTRACTS.md or contracts/*.md, or give it packages or deliverables in GRAPH.json"
        )


@dataclass(frozen=True)
class Scope:
    """What one slice may change, and who said so."""

    slice: str
    entries: tuple[Entry, ...]
    #: given as `files_in_scope`: then nothing else counts
    explicit: bool


@dataclass
class GraphEntry:
    """A slice's entry in the graph."""

    packages: list[str] = field(default_factory=list)
    deliverables: list[str] = field(default_factory=list)
    contracts: list[str] = field(default_factory=list)
    #: None if the entry does not have it; then the others count
    files_in_scope: list[str] | None = None


def slice_name(slice: str) -> str:
    """A slice's name as it was given, if it is one."""
    if not _SLICE.fullmatch(slice):
        shown = repr(slice[:80])
        raise FusewireError(
            f"{shown} is no slice id, no name of a slice; allowed: up to 64 letters, digits, dots, dashes and"
            f" underscores, for example S-1"
        )
    return slice


def read_scope(root: str, slice: str, given: list[str]) -> Scope:
    """What is in scope; NoScope if no source says, FusewireError if what is said cannot be used.

    `given` are the patterns of `fusewire scope set`: the orchestrator's word, before that of any file.
    """
    if given:
        return Scope(slice, tuple((pattern, f"files_in_scope: {pattern}") for pattern in given), True)
    file = _graph_file(root)
    slices = _read_graph(root, file) if file else []
    entry = _graph_entry(file, slice, slices)

    def patterns(key: str, texts: list[str]) -> dict[Entry, None]:
        where = f"{file}: slice {slice}: {key}"
        found: dict[Entry, None] = {}
        for text in texts:
            made = package_patterns(text, root, where) if key == "packages" else [normal_pattern(text, root, where)]
            found |= dict.fromkeys((pattern, f"{file}: {key} {text.strip()}") for pattern in made)
        return found

    if entry is not None and entry.files_in_scope is not None:
        return Scope(slice, tuple(patterns("files_in_scope", entry.files_in_scope)), True)
    entries = dict.fromkeys(contract_entries(root, slice, entry.contracts if entry else [], file))
    if entry is not None:
        entries |= patterns("packages", entry.packages) | patterns("deliverables", entry.deliverables)
    if entries:
        return Scope(slice, tuple(entries), False)
    if file and entry is None:
        raise FusewireError(f"{file}: there is no slice {slice}; allowed: {_known(slices, slice)}")
    raise NoScope(slice, f" ({file} has it without any files)" if file else "")


def _known(slices: list[tuple[str, object]], slice: str) -> str:
    names = [(name if name.isprintable() else repr(name))[:64] for name, _ in slices[:_NAMED]]
    more = f" and {len(slices) - _NAMED} more" if len(slices) > _NAMED else ""
    there = f"one of its slices ({', '.join(names)}{more})" if names else "(it has none)"
    return f"{there}, or files given with: fusewire scope set {slice} PATTERN..."


# -- the graph ----------------------------------------------------------------------------------------------


def _graph_file(root: str) -> str:
    """The project's graph; empty if it has none. Two of them would be two truths."""
    there = [name for name in GRAPHS if os.path.lexists(os.path.join(root, name))]
    if len(there) > 1:
        raise FusewireError(f"{there[0]} and {there[1]} are both there; allowed: one of them")
    return there[0] if there else ""


def _graph_entry(file: str, slice: str, slices: list[tuple[str, object]]) -> GraphEntry | None:
    """The entry of one slice; None if there is none of its name."""
    tables = [table for name, table in slices if name == slice]
    if not tables:
        return None
    if len(tables) > 1:
        raise FusewireError(f"{file}: slice {slice} is there {len(tables)} times; allowed: once")
    table = tables[0]
    if not isinstance(table, dict):
        raise ConfigError(file, f"slice {slice}", table, "an object")
    entry = GraphEntry()
    for name in vars(entry):
        value = table.get(name)
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
            raise ConfigError(file, f"slice {slice}: {name}", value, "a list of texts")
        if name == "files_in_scope" and not value:
            raise ConfigError(file, f"slice {slice}: {name}", value, "at least one path, or no such key")
        setattr(entry, name, value)
    return entry


def _read_graph(root: str, file: str) -> list[tuple[str, object]]:
    """Every slice by its name, of `{"slices": [{"id": ...}]}` or `{"slices": {"S-1": {...}}}`."""
    data = read_source(root, file, _LIMIT, "a JSON file")
    try:
        table = loads(data.decode("utf-8-sig"))
    except ValueError as error:
        text = str(error).replace("\n", " ")[:120]
        raise FusewireError(f'{file}: it is not JSON ({text}); allowed: {{"slices": [...]}}') from None
    slices = table.get("slices") if isinstance(table, dict) else None
    if isinstance(slices, dict):
        return list(slices.items())
    if not isinstance(slices, list):
        raise ConfigError(file, "slices", slices, "a list of objects with an id, or an object with one for each slice")
    for at, one in enumerate(slices):
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            raise ConfigError(file, f"slices[{at}]", one, 'an object with a text "id"')
    return [(one["id"], one) for one in slices]

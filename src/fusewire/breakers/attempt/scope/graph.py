"""GRAPH.json: the slices of a project with their packages, deliverables, contracts and `files_in_scope`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from fusewire.breakers.attempt.scope.files import read_source
from fusewire.breakers.attempt.scope.places import GRAPHS
from fusewire.util.errors import ConfigError, FusewireError
from fusewire.util.fast_json import loads

_LIMIT = 20_000_000

_LISTS = ("packages", "deliverables", "contracts", "files_in_scope")


@dataclass
class GraphEntry:
    """A slice's entry in the graph."""

    #: the graph's file
    file: str
    packages: list[str] = field(default_factory=list)
    deliverables: list[str] = field(default_factory=list)
    contracts: list[str] = field(default_factory=list)
    #: None if the entry does not have it; then the others count
    files_in_scope: list[str] | None = None


def graph_file(root: str) -> str | None:
    """The project's graph, if it has one; two of them would be two truths."""
    there = [name for name in GRAPHS if os.path.lexists(os.path.join(root, name))]
    if len(there) > 1:
        raise FusewireError(f"{there[0]} and {there[1]} are both there; allowed: one of them")
    return there[0] if there else None


def read_node(root: str, file: str, slice: str) -> GraphEntry | None:
    """A slice's entry; None if the graph has none of that name."""
    entry = _entry(_read(root, file), file, slice)
    if entry is None:
        return None
    node = GraphEntry(file)
    for name in _LISTS:
        value = entry.get(name)
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
            raise ConfigError(file, f"slice {slice}: {name}", value, "a list of texts")
        if name == "files_in_scope" and not value:
            raise ConfigError(file, f"slice {slice}: {name}", value, "at least one path, or no such key")
        setattr(node, name, value)
    return node


def slice_names(root: str, file: str) -> list[str]:
    """The slices that a graph has, in its order."""
    slices = _read(root, file)["slices"]
    return list(slices) if isinstance(slices, dict) else [one["id"] for one in slices]


def _read(root: str, file: str) -> Any:
    data = read_source(root, file, _LIMIT, "a JSON file")
    try:
        return loads(data.decode("utf-8-sig"))
    except ValueError as error:
        text = str(error).replace("\n", " ")[:120]
        raise FusewireError(f'{file}: it is not JSON ({text}); allowed: {{"slices": [...]}}') from None


def _entry(data: Any, file: str, slice: str) -> dict[str, Any] | None:
    """The entry among `{"slices": [{"id": ...}]}` or `{"slices": {"S-1": {...}}}`."""
    slices = data.get("slices") if isinstance(data, dict) else None
    if isinstance(slices, dict):
        found = [slices[slice]] if slice in slices else []
    elif isinstance(slices, list):
        for at, one in enumerate(slices):
            if not isinstance(one, dict) or not isinstance(one.get("id"), str):
                raise ConfigError(file, f"slices[{at}]", one, 'an object with a text "id"')
        found = [one for one in slices if one["id"] == slice]
    else:
        raise ConfigError(file, "slices", slices, "a list of objects with an id, or an object with one for each slice")
    if len(found) > 1:
        raise FusewireError(f"{file}: slice {slice} is there {len(found)} times; allowed: once")
    if found and not isinstance(found[0], dict):
        raise ConfigError(file, f"slice {slice}", found[0], "an object")
    return found[0] if found else None

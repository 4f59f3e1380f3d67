"""The layers of the package: every import, lazy ones included, goes down, and no two modules import each other.

The table is the architecture in one place. A package may import only packages that stand before it.
"""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path

import pytest

from tests.helpers import SOURCE

LAYERS = {
    "util": "text, durations, globs, files, processes, running git safely, fast start-up shims",
    "core": "events, meters, the phase table and `step`, Decision; pure: no clock, no I/O, no globals",
    "config": "settings in layers, policies as TOML, constraint files, the compiled rules, finding the project",
    "stores": "the atomic unit of work, history, trimming, migrations, recovery",
    "engine": "load, step, commit; the public Breaker; listeners that run after a commit",
    "scopes": "beyond one project: the person's halts, pauses, limits, spend",
    "worktree": "snapshots, differences, checkpoints, rollback",
    "testruns": "one file per test runner: counts, cases, why a run could not start",
    "guard": "protected files: shell reader, effects, sandbox, integrity; tampering",
    "agents": "one package per agent: hook payloads, output, transcript, settings; pricing",
    "janitor": "memory clean-up",
    "breakers": "constraint, loop, phase, session, attempt: the five seeds",
    "gate": "the process that an agent starts: entry, pipeline, status line",
    "replay": "sessions of the past through the hook's steps: comparison, report",
    "run": "the supervised loop's process side: pipes, watchdog, reaper, registry",
    "notify": "deliveries to people",
    "views": "typed read models: what anybody looks at, as data",
    "server": "pages, JSON interface, metrics, HTTP hooks",
    "cli": "words for the terminal",
}

#: Modules beside the packages: `hook.py` is a script of its own because people's settings name its path.
SCRIPTS = {"__init__", "__main__", "hook"}

MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

#: Modules that still import each other. Only ever shorten this list.
STILL_CYCLIC: set[str] = set()

IMPURE = {"time", "os", "sqlite3", "_sqlite3", "random", "datetime", "pathlib", "subprocess", "socket", "threading"}


def is_for_types(node: ast.If) -> bool:
    names = [part for part in ast.walk(node.test) if isinstance(part, (ast.Name, ast.Attribute))]
    return any("TYPE_CHECKING" in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in names)


@functools.cache
def imports_of(path: Path, types: bool = False) -> set[str]:
    """Every module that a file imports, lazily too; what is only for type checkers is left out unless asked for."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and is_for_types(node) and not types:
            for branch in node.orelse:
                visit(branch)
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide a direction"
            module = node.module or ""
            found.update(
                f"{module}.{alias.name}" if f"{module}.{alias.name}".removeprefix("fusewire.") in MODULES else module
                for alias in node.names
            )
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found - {"__future__"}


def own(names: set[str]) -> set[str]:
    return {name.removeprefix("fusewire.") for name in names if name.startswith("fusewire.")}


def foreign(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] != "fusewire"}


def package(module: str) -> str:
    return module.split(".")[0]


def test_the_reader_of_imports_sees_lazy_ones_and_not_those_for_types(tmp_path: Path) -> None:
    """The test of the test: an import inside a function counts, one under TYPE_CHECKING does not, its else does."""
    sample = tmp_path / "sample.py"
    sample.write_text(
        "import os\nif TYPE_CHECKING:\n    import json\nelse:\n    import re\n"
        "def f():\n    from fusewire.core import meters\n    from fusewire.core.events import Event\n"
    )
    assert imports_of(sample) == {"os", "re", "fusewire.core.meters", "fusewire.core.events"}
    assert imports_of(sample, types=True) - imports_of(sample) == {"json"}


def test_every_package_has_its_place_in_the_table() -> None:
    assert {package(name) for name in MODULES} - {"fusewire"} == {*LAYERS, *SCRIPTS}


def test_no_package_imports_one_above_it() -> None:
    """Lazy imports and those for types count: a name from above is knowledge from above."""
    rank = {name: number for number, name in enumerate(LAYERS)}
    upward = [
        f"{name} -> {target}"
        for name, path in MODULES.items()
        if package(name) in rank
        for target in sorted(own(imports_of(path, types=True)))
        if rank.get(package(target), len(rank)) > rank[package(name)]
    ]
    assert upward == []


def test_only_one_module_asks_the_root_for_what_is_above() -> None:
    """`fusewire/__init__.py` may import everything; were it asked from anywhere, the table would hold nothing."""
    asking = [name for name, path in MODULES.items() if "fusewire import compose" in path.read_text()]
    assert asking == ["engine.parts"]


def test_no_module_is_in_an_import_cycle() -> None:
    """Modules that import each other, however lazily, are one module."""
    graph = {name: own(imports_of(path)) & MODULES.keys() - {name} for name, path in MODULES.items()}
    while True:
        leaves = {name for name, targets in graph.items() if not targets}
        if not leaves:
            break
        graph = {name: targets - leaves for name, targets in graph.items() if name not in leaves}
    in_cycles = {name for name in graph if _reaches(graph, name)}
    assert in_cycles == STILL_CYCLIC


def _reaches(graph: dict[str, set[str]], start: str) -> bool:
    """Whether a module imports itself in the end."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name == start:
            return True
        if name not in seen:
            seen.add(name)
            waiting.extend(graph.get(name, ()))
    return False


@pytest.mark.parametrize("name", sorted(name for name in MODULES if package(name) == "core"))
def test_the_core_knows_no_clock_no_disk_and_no_chance(name: str) -> None:
    """Time is an argument, everything else is in the event; what it needs of `util` is pure, too."""
    outside = foreign(imports_of(MODULES[name]))
    assert outside <= ({"hashlib", "_sha1"} if name == "core.events" else set())
    for helper in own(imports_of(MODULES[name])) - {"core"}:
        if package(helper) == "util":
            assert not foreign(imports_of(MODULES[helper])) & (IMPURE - {"datetime"}), helper


def test_click_is_for_the_command_line_alone() -> None:
    for name, path in MODULES.items():
        if package(name) != "cli":
            assert "click" not in foreign(imports_of(path)), name


def test_only_stores_know_sql() -> None:
    for name, path in MODULES.items():
        if package(name) != "stores":
            assert not foreign(imports_of(path)) & {"sqlite3", "_sqlite3", "psycopg"}, name


def test_the_shell_reader_touches_nothing() -> None:
    """No process, no clock; of `os` only names of paths: for the disk it asks a `Disk` that it is given."""
    for name, path in MODULES.items():
        if name.startswith("guard.shell"):
            assert foreign(imports_of(path)) <= {"os", "re"}, name


def test_views_write_no_state() -> None:
    for name, path in MODULES.items():
        if package(name) == "views":
            assert ".transact(" not in path.read_text(), name


def test_what_a_hook_may_reach_needs_nothing_that_is_installed() -> None:
    """It runs with -S. Most tests ask its code in pytest's process, where everything that is installed is at hand."""
    found = {"gate.process", "gate.statusline"}
    found |= {name for name in MODULES if package(name) in ("agents", "guard")}  # some are imported by name
    waiting = set(found)
    while waiting:
        waiting = {name for start in waiting for name in own(imports_of(MODULES[start])) & MODULES.keys()} - found
        found |= waiting
    assert {"agents", "breakers", "config", "guard", "stores"} <= {package(name) for name in found}
    by_module = {
        name: {module.split(".")[0] for module in foreign(imports_of(MODULES[name]))} - sys.stdlib_module_names
        for name in found
    }
    assert {name: outside for name, outside in by_module.items() if outside - {"yaml"}} == {}


def test_no_file_is_larger_than_600_lines() -> None:
    sizes = {name: path.read_text().count("\n") for name, path in MODULES.items()}
    assert {name: size for name, size in sizes.items() if size > 600} == {}


def test_no_class_name_is_defined_twice() -> None:
    """Except what implements the same protocol under its name, and helpers inside functions."""
    places: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}

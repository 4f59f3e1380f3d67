"""Who imports whom: the pure modules stay pure, the directions hold, and the hook's process stays small."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project

MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

IMPURE = {"time", "os", "sqlite3", "_sqlite3", "random", "datetime", "pathlib", "subprocess", "socket", "threading"}

#: Slow to import: the hook's process pays for each of them on every tool call.
SLOW = {"json", "re", "typing", "dataclasses", "enum", "sqlite3", "click", "yaml", "tomllib", "pathlib", "logging"}

#: module -> the modules of the package that it may import (also inside functions, but not merely for types)
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "quickjson": set(),
    "durations": set(),
    "globs": set(),
    "shell.wrappers": set(),
    "paths": {"shell.values"},
    "words": set(),
    "visible": set(),
    "shell": set(),
    "shell.values": set(),
    "shell.looking": set(),
    "shell.argv": set(),
    "shell.tree": set(),
    "shell.world": {"shell.values"},
    "shell.lexer": {"shell.tree", "shell.values", "words"},
    "shell.parser": {"shell.lexer", "shell.tree", "words"},
    "shell.expansion": {"globs", "shell.tree", "shell.values", "words"},
    "shell.builtins": {"paths", "shell.argv", "shell.outputs", "shell.values"},
    "shell.flow": {
        *("globs", "shell.builtins", "shell.expansion", "shell.looking", "shell.tree", "shell.values", "shell.world"),
    },
    "events": set(),
    "meters": set(),
    "state": {"meters", "events"},
    "circuit": {"state", "meters", "durations", "errors", "events"},
    "detectors": set(),
    "detectors.constraints": {"globs", "shell.wrappers"},
    "detectors.calls": {"detectors.constraints", "events", "quickjson", "shell.looking", "shell.wrappers"},
    "detectors.masking": set(),
    "detectors.repetition": {"detectors.calls", "events"},
    "detectors.disarming": {"detectors.calls", "globs", "shell.wrappers", "util.environment"},
    "engine": {"circuit", "durations", "errors", "events", "rules", "stores.rows", "words"},
    "agents": {"errors", "agents.claude", "agents.codex", "agents.copilot", "agents.gemini"},
    "agents.codex_turn": {"quickjson"},
    "agents.payload": {"agents", "events", "paths", "quickjson", "words"},
    **{
        f"agents.{name}": {
            *("agents", "agents.codex_turn", "agents.payload", "detectors.constraints", "runner.proctable"),
            *("events", "paths", "quickjson", "words"),
        }
        for name in ("claude", "codex", "copilot", "gemini")
    },
    "reports.messages": {"durations", "events"},
}

#: What the package below `fusewire.stores` may know: nouns and errors, never thresholds or phases.
STORES_MAY_IMPORT = {"errors", "events", "quickjson", "durations", "stores", "util"}


def is_for_types(node: ast.If) -> bool:
    names = [part for part in ast.walk(node.test) if isinstance(part, (ast.Name, ast.Attribute))]
    return any("TYPE_CHECKING" in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in names)


@functools.cache
def imported(path: Path) -> set[str]:
    """Every module that a file may import at run time, lazily too; what is only for type checkers is left out."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and is_for_types(node):
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
    return {name.removeprefix("fusewire.") for name in names if name.split(".")[0] == "fusewire"}


def foreign(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] != "fusewire"}


PURE = sorted(
    name for name in MODULES if name in ("events", "meters", "state", "circuit") or name.split(".")[0] == "detectors"
)


def test_the_reader_of_imports_sees_lazy_ones_and_not_those_for_types(tmp_path: Path) -> None:
    """The test of the test: an import inside a function counts, one under TYPE_CHECKING does not, its else does."""
    sample = tmp_path / "sample.py"
    sample.write_text(
        "import os\nif TYPE_CHECKING:\n    import json\nelse:\n    import re\n"
        "def f():\n    from fusewire import meters\n    from fusewire.core.events import Event\n"
    )
    assert imported(sample) == {"os", "re", "fusewire.core.meters", "fusewire.core.events"}


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_knows_no_clock_no_disk_and_no_chance(name: str) -> None:
    """events, meters, circuit and detectors: time is an argument, everything else is in the event."""
    outside = foreign(imported(MODULES[name]))
    allowed = {"hashlib", "_sha1"} if name == "events" else set()
    assert outside <= allowed, f"{name} imports {sorted(outside - allowed)}"
    assert not outside & IMPURE


def test_the_helpers_of_the_pure_modules_are_pure_too() -> None:
    """What they import in turn reads no clock either; only the helpers for dates know `datetime`, lazily."""
    for name in ("errors", "globs", "words", "shell.wrappers"):
        assert foreign(imported(MODULES[name])) == set(), name
    assert foreign(imported(MODULES["durations"])) == {"datetime"}
    assert foreign(imported(MODULES["quickjson"])) == {"_json", "json"}
    top_level = ast.parse(MODULES["durations"].read_text()).body
    assert not any(isinstance(node, ast.Import) for node in top_level)


@pytest.mark.parametrize("name", sorted(MAY_IMPORT))
def test_a_module_imports_only_what_is_below_it(name: str) -> None:
    """events <- meters <- circuit <- engine; detectors and agents know nouns only."""
    inside = own(imported(MODULES[name]))
    assert inside <= MAY_IMPORT[name], f"{name} imports {sorted(inside - MAY_IMPORT[name])}"


def test_the_engine_knows_no_sql_no_json_and_no_words_for_people() -> None:
    """It is given a store and a clock."""
    outside = foreign(imported(MODULES["engine"]))
    assert outside == set(), f"engine imports {sorted(outside)}"
    assert not own(imported(MODULES["engine"])) & {"quickjson", "stores.sqlite", "stores.memory", "cli", "agents"}


def test_stores_know_nothing_of_thresholds_and_phases() -> None:
    """A store keeps rows; circuits, meters, policies and agents are above it."""
    for name, path in MODULES.items():
        if name.split(".")[0] == "stores":
            inside = {module.split(".")[0] for module in own(imported(path))}
            assert inside <= STORES_MAY_IMPORT, f"{name} imports {sorted(inside - STORES_MAY_IMPORT)}"


def test_the_guard_knows_no_phases_and_no_store() -> None:
    """It says what a command does to paths; circuits, the engine and the database are none of its business."""
    allowed = {
        "events",
        "globs",
        "guard",
        "paths",
        "quickjson",
        "rules",
        "shell",
        "util",
        "visible",
        "words",
    }
    for name, path in MODULES.items():
        if name.split(".")[0] == "guard":
            inside = own(imported(path))
            assert {module.split(".")[0] for module in inside} <= allowed, f"{name} imports {sorted(inside)}"


def test_what_looks_at_a_tree_and_at_an_answer_decides_nothing() -> None:
    """Snapshots know git and the disk, answers know bytes; circuits, stores, rules and the loop are none of theirs."""
    for name, path in MODULES.items():
        room = name.split(".")[0]
        if room in ("progress", "answers"):
            may = {room, "events", "paths", "globs", "quickjson", "util"}
            assert {module.split(".")[0] for module in own(imported(path))} <= may, name
        if room == "answers":
            assert not foreign(imported(path)) & IMPURE - {"datetime"}, name


def test_the_janitor_and_the_readers_of_transcripts_decide_nothing() -> None:
    """Files are their business; circuits, stores and rules are not."""
    allowed = {
        "janitor": {"janitor", "durations", "errors", "globs", "quickjson", "rules", "util", "words"},
        "transcripts": {"transcripts", "answers", "durations", "errors", "events", "quickjson", "words"},
        "spending": {"spending", "durations", "errors", "quickjson", "transcripts", "words"},
    }
    for name, path in MODULES.items():
        room = name.split(".")[0]
        if room in allowed:
            inside = {module for module in own(imported(path)) if module not in ("util.files", "scope.naming")}
            assert {module.split(".")[0] for module in inside} <= allowed[room], name


def test_the_runner_prints_nothing() -> None:
    """What people see of a run is the view's matter."""
    for name, path in MODULES.items():
        if name.split(".")[0] == "runner":
            assert not re.search(r"\bprint\(", path.read_text()), name


def test_the_shell_reader_touches_nothing() -> None:
    """No disk, no process, no clock: what it must know of the disk it is given as functions."""
    for name, path in MODULES.items():
        if name.split(".")[0] == "shell":
            assert foreign(imported(path)) <= {"re"}, name


def test_nothing_below_imports_the_command_line() -> None:
    """click is for `cli/` alone, and only the program's entry imports `cli/`."""
    for name, path in MODULES.items():
        names = imported(path)
        if name.split(".")[0] not in ("cli", "__main__"):
            assert not {module for module in own(names) if module.split(".")[0] == "cli"}, name
            assert "click" not in foreign(names), name


def test_reports_write_no_state() -> None:
    """They are made from what is stored: no store, no engine, no disk."""
    for name, path in MODULES.items():
        if name.split(".")[0] == "reports":
            assert not foreign(imported(path)) & IMPURE, name
            allowed = {"durations", "events", "circuit", "rules", "reports", "visible"}
            assert {module.split(".")[0] for module in own(imported(path))} <= allowed, name


def test_views_write_no_state() -> None:
    """They collect what is stored, through a breaker that they are given: no transaction, no SQL, nothing shown."""
    for name, path in MODULES.items():
        if name.split(".")[0] == "views":
            rooms = {module.split(".")[0] for module in own(imported(path))}
            assert "sqlite3" not in foreign(imported(path)), name
            assert not rooms & {"cli", "server", "hook", "gate"}, name
            assert ".transact(" not in path.read_text(), name


def test_the_server_knows_no_sql_and_only_the_command_line_and_the_installer_know_it() -> None:
    """It decides nothing but through the engine, and nobody needs it who does not run it."""
    for name, path in MODULES.items():
        if name.split(".")[0] == "server":
            assert "sqlite3" not in foreign(imported(path)), name
        elif name.split(".")[0] not in ("cli", "installing", "doctoring"):
            assert "server" not in {module.split(".")[0] for module in own(imported(path))}, name


def reached(starts: set[str]) -> set[str]:
    """The modules of the package that these import, and those import, and so on."""
    found: set[str] = set()
    while starts:
        found |= starts
        starts = {name for start in starts for name in own(imported(MODULES[start])) & MODULES.keys()} - found
    return found


def test_what_a_hook_may_reach_needs_nothing_that_is_installed() -> None:
    """It runs with -S. Most tests ask its code in pytest's process, where everything that is installed is at hand."""
    found = reached({"gate", "statusline"})
    assert {"agents", "guard", "session", "underway"} <= {name.split(".")[0] for name in found}
    by_name = {name for name in MODULES if name.split(".")[0] in ("agents", "guard")}  # some are imported by name
    for name in found | by_name:
        outside = {module.split(".")[0] for module in foreign(imported(MODULES[name]))} - sys.stdlib_module_names
        may = {"yaml"} if name in ("policies.constraint_files", "reports.attempts") else set()
        assert outside <= may, f"{name} imports {sorted(outside)}"


# -- the hot path -----------------------------------------------------------------------------------------

#: Everything that a call which touches no rule may import beyond what bare Python has. Adding to it costs every
#: tool call of every agent: measure first (`make bench`).
HOT_PATH = {
    "__future__",
    "_collections_abc",
    "_functools",
    "_json",
    "_sha1",
    "_sqlite3",
    "_stat",
    "fcntl",
    "gc",
    "genericpath",
    "os",
    "posixpath",
    "stat",
    "fusewire",
    "fusewire.agents",
    "fusewire.agents.claude.hooks",
    "fusewire.agents.payload",
    "fusewire.gate.pipeline",
    "fusewire.breakers.session.calls",
    "fusewire.breakers.constraint.detect",
    "fusewire.util.errors",
    "fusewire.core.events",
    "fusewire.gate.process",
    "fusewire.util.globs",
    "fusewire.guard",
    "fusewire.guard.baseline",
    "fusewire.guard.plain",
    "fusewire.guard.calls",
    "fusewire.guard.shell.paths",
    "fusewire.util.fast_json",
    "fusewire.config.rules",
    "fusewire.breakers.session",
    "fusewire.breakers.session.state",
    "fusewire.breakers.session.unit_of_work",
    "fusewire.breakers.session.opening",
    "fusewire.breakers.session.tool_calls",
    "fusewire.guard.shell",
    "fusewire.guard.shell.read_only",
    "fusewire.guard.shell.values",
    "fusewire.util.stdio",
    "fusewire.stores",
    "fusewire.util",
    "fusewire.util.files",
    "fusewire.stores.migrations",
    "fusewire.stores.fast_sqlite",
    "fusewire.stores.rows",
    "fusewire.stores.sqlite",
    "fusewire.stores.sqlite_transaction",
    "fusewire.util.quoting",
    "fusewire.guard.shell.wrappers",
}

#: What is loaded beside it to judge a tool that changes a file.
EDIT_PATH = {
    "fusewire.guard.tampering",
    "fusewire.guard.policy",
    "fusewire.guard.protected",
    "fusewire.guard.tools",
    "fusewire.guard.verdict",
}

#: What is loaded beside it to read a command that is not plain.
READ_PATH = {
    "fusewire.guard.tampering",
    "fusewire.guard.check",
    "fusewire.guard.disk",
    "fusewire.guard.effects",
    "fusewire.guard.policy",
    "fusewire.guard.programs",
    "fusewire.guard.protected",
    "fusewire.guard.verdict",
    "fusewire.guard.shell.argv",
    "fusewire.guard.shell.builtins",
    "fusewire.guard.shell.commands",
    "fusewire.guard.shell.expansion",
    "fusewire.guard.shell.flow",
    "fusewire.guard.shell.lexer",
    "fusewire.guard.shell.outputs",
    "fusewire.guard.shell.parser",
    "fusewire.guard.shell.tree",
    "fusewire.guard.shell.walk",
    "fusewire.guard.shell.world",
}


def modules_of(arguments: list[str], payload: object, root: Path) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", *arguments],
        input=json.dumps(payload).encode(),
        cwd=root,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(root)},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, b"")
    lines = result.stderr.decode().splitlines()
    assert all(line.startswith("import time:") for line in lines), result.stderr
    return {line.split("|")[2].strip() for line in lines[1:]}


@pytest.mark.parametrize("constraints", [0, 1, 20])
@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"command": "ls -la"}, HOT_PATH),
        ({"command": "pytest -q && git status"}, HOT_PATH),
        ({"file_path": "src/app.py"}, HOT_PATH | EDIT_PATH),
        ({"command": "echo 'a b' > out.txt"}, HOT_PATH | READ_PATH),
    ],
    ids=["look", "opaque", "edit", "read"],
)
def test_an_allowing_call_imports_only_what_is_on_the_list(
    project: Project, constraints: int, given: dict[str, str], allowed: set[str]
) -> None:
    """Without constraints, and with constraints that do not match: the same few modules, none of the slow ones."""
    for number in range(constraints):
        project.constraint(f"rule-{number}", "match:\n  - command: git push --force\n  - path: secrets/**\n")
    payload = project.bash("", tool_name="Bash" if "command" in given else "Edit", tool_input=given)
    assert project.hook(payload).returncode == 0  # compiles the rules, once
    bare = modules_of(["-c", "pass"], None, project.root)
    hot = modules_of([str(SOURCE / "hook.py"), "claude"], payload, project.root)
    assert not hot & SLOW
    assert hot - bare <= allowed, f"new on the hot path: {sorted(hot - bare - allowed)}"
    assert "fusewire.gate.process" in hot


def test_the_list_has_nothing_that_is_no_longer_imported(project: Project) -> None:
    """Whoever makes the hook lighter takes the module off the list, so that it cannot come back unseen."""
    project.constraint("rule", "match: {command: git push --force}\n")
    payload = project.bash("pytest")
    project.hook(payload)
    assert modules_of([str(SOURCE / "hook.py"), "claude"], payload, project.root) >= HOT_PATH


def test_importing_the_library_is_cheap() -> None:
    """`import fusewire` alone loads none of its modules; a public name loads what it needs."""
    script = "import sys, fusewire; print(sorted(m for m in sys.modules if m.startswith('fusewire')))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['fusewire']"

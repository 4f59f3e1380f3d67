"""The hook's modules from one file: used when it fits, renewed when something was missing, never trusted blindly."""

from __future__ import annotations

import json
import os
import py_compile
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project

NAME = f"hook.{sys.implementation.cache_tag}.bin"

#: Runs `import_cache` as the hook does, then the given lines, then adds to the file what was missing.
DRIVER = """
import sys
from _frozen_importlib_external import SourceFileLoader
root = sys.argv[1]
sys.path.append(root)
import_cache = type(sys)("fusewire.gate.import_cache")
SourceFileLoader(import_cache.__name__, root + "/fusewire/gate/import_cache.py").exec_module(import_cache)
finish = import_cache.install(root + "/fusewire")
try:
    exec(sys.argv[2])
finally:
    finish()
"""


class Copy:
    """A copy of the package that a test may edit, and its hook."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "fusewire"
        self.file = self.package / "__pycache__" / NAME

    def hook(
        self, *arguments: str, options: tuple[str, ...] = (), project: Project | None = None, **fields: Any
    ) -> subprocess.CompletedProcess[str]:
        """One hook process. Without a project it is asked for an agent that there is none of: little is imported."""
        command = [sys.executable, "-I", "-S", *options, str(self.package / "hook.py"), *arguments]
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)} if project else dict(os.environ)
        folder = project.root if project else self.root
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False, **fields
        )

    def ask(self, project: Project, payload: object, *options: str) -> subprocess.CompletedProcess[str]:
        return self.hook("claude", options=options, project=project, input=json.dumps(payload))

    def call(self, project: Project, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.ask(project, project.bash(command), *options)

    def drive(self, lines: str) -> str:
        result = subprocess.run(
            [sys.executable, "-I", "-S", "-c", DRIVER, str(self.root), lines],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return result.stdout + result.stderr

    def found_by_python(self) -> set[str]:
        """The modules whose code Python had to find itself: of the package, and beyond those of every process."""
        bare = [sys.executable, "-I", "-S", "-v", "-c", "pass"]
        always = subprocess.run(bare, capture_output=True, text=True, check=True).stderr
        return codes_found(self.hook("nobody", options=("-v",)).stderr) - codes_found(always)

    def kept(self) -> set[str]:
        """The names of the modules in the file."""
        return set(self.drive("print(*import_cache.Finder(root + '/fusewire').index)").split())

    def leftovers(self) -> list[str]:
        return [path.name for path in self.file.parent.iterdir() if ".bin." in path.name]

    def says(self) -> str:
        return self.hook("nobody").stderr


def codes_found(verbose: str) -> set[str]:
    """From what `python -v` says: `gate` for the code in .../fusewire/__pycache__/gate.cpython-311.pyc."""
    marker = "# code object from "
    paths = [Path(line.removeprefix(marker).strip("'")) for line in verbose.splitlines() if line.startswith(marker)]
    return {"/".join(part for part in path.parts[-3:] if part != "__pycache__").split(".")[0] for path in paths}


WORDS = "fusewire hook: no agent named 'nobody'"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package and the compiled files of what hooks import, without the file."""
    root = tmp_path_factory.mktemp("compiled")
    shutil.copytree(SOURCE, root / "fusewire", ignore=shutil.ignore_patterns("__pycache__"))
    copy = Copy(root)
    assert WORDS in copy.says()
    copy.file.unlink()
    return root


@pytest.fixture
def copy(compiled: Path, tmp_path: Path) -> Iterator[Copy]:
    root = tmp_path / "installed"
    shutil.copytree(compiled, root)
    yield Copy(root)
    shutil.rmtree(root)


def test_the_first_process_writes_the_file_and_the_second_needs_no_other(copy: Copy) -> None:
    assert not copy.file.exists()
    assert {"gate/process", "config/rules", "fusewire/__init__"} <= copy.found_by_python()
    assert copy.file.exists()
    assert copy.found_by_python() == {"gate/import_cache"}
    assert WORDS in copy.says()


def test_a_call_that_had_everything_writes_nothing(copy: Copy, project: Project) -> None:
    for _ in range(2):  # the first of all compiles the rules
        assert copy.call(project, "ls -la").returncode == 0
    before = os.stat(copy.file)
    assert copy.call(project, "ls -la").returncode == 0
    assert WORDS in copy.says()
    after = os.stat(copy.file)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_another_kind_of_call_needs_is_added(copy: Copy, project: Project) -> None:
    few = len(copy.says() and copy.file.read_bytes())
    assert copy.call(project, "echo 'a b' > out.txt").returncode == 0
    assert len(copy.file.read_bytes()) > few
    verbose = copy.call(project, "echo 'a b' > out.txt", "-v").stderr
    assert "import 'fusewire.guard.shell.parser'" in verbose
    assert not {name for name in codes_found(verbose) if name.startswith("shell/")}
    assert copy.found_by_python() == {"gate/import_cache"}, "what was there before is kept"


@pytest.mark.parametrize("how", ["time", "size", "both"])
def test_an_edited_source_is_seen_at_once(copy: Copy, how: str) -> None:
    assert WORDS in copy.says()
    gate = copy.package / "gate" / "process.py"
    old = os.stat(gate)
    changed = "NO AGENT named" if how == "time" else "there is no agent named"
    gate.write_text(gate.read_text().replace("no agent named", changed))
    later = old.st_mtime_ns + (0 if how == "size" else 5_000_000_000)
    os.utime(gate, ns=(later, later))
    for _ in range(3):  # found by Python, added to the file, found in the file
        assert f"fusewire hook: {changed} 'nobody'" in copy.says()
    assert copy.found_by_python() == {"gate/import_cache"}
    os.utime(gate, ns=(later + 1, later + 1))
    assert "gate/process" in copy.found_by_python()


def test_a_module_that_is_gone_is_gone(copy: Copy) -> None:
    """An upgrade in place, or a broken installation: said as ever, and nobody is locked out."""
    assert WORDS in copy.says()
    (copy.package / "gate" / "process.py").unlink()
    result = copy.hook("nobody")
    assert result.returncode == 1
    assert "the hook is not installed properly, nothing is guarded" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("text", [None, "raise ValueError", "def install(:\n", "def install(package): return 1 / 0\n"])
def test_without_a_working_import_cache_everything_works(copy: Copy, text: str | None) -> None:
    path = copy.package / "gate" / "import_cache.py"
    path.unlink()
    if text is not None:
        path.write_text(text)
    result = copy.hook("nobody")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert WORDS in result.stderr


def damaged(content: bytes, kind: str) -> bytes:
    """Places in the index lie near the beginning, places in the codes near the end."""
    if kind.startswith("bit"):
        place = int(kind[3:]) * len(content) // 100
        return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]
    half = len(content) // 2
    return {
        "empty": b"",
        "head": content[:11],
        "half": content[:half],
        "foreign": b"\xe3" * 5000,
        "huge": b"\xff" * 16 + content,
        "longer": content + b"more",
        "swapped": content[:16] + content[half:] + content[16:half],
    }[kind]


@pytest.mark.parametrize(
    "kind", ["empty", "head", "half", "foreign", "huge", "longer", "swapped", *(f"bit{n}" for n in (0, 1, 2, 20, 60))]
)
def test_a_damaged_file_is_not_used_and_is_mended(copy: Copy, kind: str) -> None:
    assert WORDS in copy.says()
    whole = copy.file.read_bytes()
    copy.file.write_bytes(damaged(whole, kind))
    for _ in range(2):
        result = copy.hook("nobody")
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert WORDS in result.stderr
    assert copy.found_by_python() == {"gate/import_cache"}


FLIPS = """
import os
file = import_cache.Finder(root + "/fusewire").file
whole = open(file, "rb").read()
end = 16 + int.from_bytes(whole[:8], "little")
for place in range(0, end, 3):
    with open(file, "wb") as other:
        other.write(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1:])
    finder = import_cache.Finder(root + "/fusewire")
    assert not finder.index, place
    os.close(finder.descriptor)
print("flipped", end > 1000)
"""


def test_an_index_with_any_damage_is_none(copy: Copy) -> None:
    copy.says()
    assert copy.drive(FLIPS) == "flipped True\n"


def test_damaged_code_is_not_kept_though_nobody_needed_it(copy: Copy) -> None:
    (copy.package / "last.py").write_text("a = 1\n")
    copy.drive("import fusewire.last")
    whole = copy.file.read_bytes()
    copy.file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 4]))
    copy.drive("import keyword")
    assert "fusewire.last" not in copy.kept()
    assert {"fusewire", "keyword"} <= copy.kept()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_left_alone(copy: Copy, kind: str) -> None:
    (os.mkdir if kind == "folder" else os.mkfifo)(copy.file)
    assert WORDS in copy.says()
    assert copy.leftovers() == []


def test_where_nothing_can_be_written_everything_works(copy: Copy) -> None:
    """A file in the place of the folder refuses root too, whom a read-only folder would not stop."""
    for folder in copy.package.rglob("__pycache__"):
        shutil.rmtree(folder)
        folder.write_text("")
    for _ in range(2):
        assert WORDS in copy.says()


def test_a_full_disk_leaves_no_part(copy: Copy) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    assert WORDS in copy.hook("nobody", preexec_fn=little_room).stderr
    assert not copy.file.exists()
    assert copy.leftovers() == []


def test_python_that_writes_no_bytecode_writes_no_file(copy: Copy) -> None:
    assert WORDS in copy.hook("nobody", options=("-B",)).stderr
    assert not copy.file.exists()


def test_eight_processes_at_once(copy: Copy, project: Project) -> None:
    """Of different kinds, without a file, while its sources change: none fails, and the file is whole afterwards."""
    command = [sys.executable, "-I", "-S", str(copy.package / "hook.py")]
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)}
    for turn in range(3):
        os.utime(copy.package / "gate" / "process.py", (turn + 1e9, turn + 1e9))
        started = [
            subprocess.Popen(
                [*command, "nobody" if number % 2 else "claude"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(8)
        ]
        for number, process in enumerate(started):
            said = process.communicate(timeout=60)[1]
            assert (WORDS if number % 2 else "BLOCKED fusewire.input") in said
            assert process.returncode == 2
    assert copy.leftovers() == []
    copy.says()
    assert copy.found_by_python() == {"gate/import_cache"}


ATTRIBUTES = """
import fusewire.agents, fusewire.gate.process, keyword
for module in (fusewire, fusewire.agents, fusewire.gate.process, keyword):
    spec = module.__spec__
    print(module.__name__, module.__file__, module.__cached__, module.__package__, getattr(module, "__path__", None))
    print(spec.name, spec.origin, spec.cached, spec.parent, spec.has_location, spec.submodule_search_locations)
    print(module.__loader__ is spec.loader, spec.loader.path, spec.loader.get_filename(module.__name__))
    print(len(spec.loader.get_source(module.__name__)), spec.loader.is_package(module.__name__), repr(module))
sys.stderr.write(type(fusewire.gate.process.__loader__).__name__)
"""


def test_a_module_looks_as_usual(copy: Copy) -> None:
    first, second = (copy.drive(ATTRIBUTES) for _ in range(2))
    assert first.endswith("SourceFileLoader")
    assert second.endswith("_Loader")
    assert second.removesuffix("_Loader") == first.removesuffix("SourceFileLoader")


def test_the_data_of_a_package_is_found(copy: Copy) -> None:
    lines = "from importlib.resources import files; print((files('fusewire.config') / 'policies/guard.toml').is_file())"
    assert [copy.drive(lines) for _ in range(2)] == ["True\n", "True\n"]


BROKEN = "def fail(depth):\n    if depth:\n        return fail(depth - 1)\n    raise RuntimeError('on purpose')\n"


def test_a_traceback_names_the_file_and_the_line(copy: Copy) -> None:
    (copy.package / "broken.py").write_text(BROKEN)
    first, second = (copy.drive("import fusewire.broken; fusewire.broken.fail(1)") for _ in range(2))
    assert f'File "{copy.package}/broken.py", line 4, in fail\n    raise RuntimeError' in first
    assert second == first
    (copy.package / "broken.py").write_text("import keyword\n\n\nraise RuntimeError('at once')\n")
    first, second = (copy.drive("import fusewire.broken") for _ in range(2))
    assert f'File "{copy.package}/broken.py", line 4, in <module>' in second
    assert "import_cache" not in second, "no frame of ours between the import and the module"


def test_a_copy_is_another_package(copy: Copy, tmp_path: Path) -> None:
    """The file and the compiled files come along, with their times; the old folder must not be used from the new."""
    (copy.package / "broken.py").write_text(BROKEN)
    copy.drive("import fusewire.broken; fusewire.broken.fail(1)")
    moved = Copy(tmp_path / "moved")
    shutil.copytree(copy.root, moved.root)
    for _ in range(3):
        said = moved.drive("import fusewire.broken; fusewire.broken.fail(1)")
        assert f'File "{moved.package}/broken.py", line 4, in fail' in said
        assert str(copy.package) not in said


def test_only_our_modules_and_pythons_own_are_kept(copy: Copy) -> None:
    """Not what lies beside the package, in the folder of installed packages, nor what needs no file or is no code."""
    (copy.root / "beside.py").write_text("")
    (copy.root / "winreg.py").write_text("")  # one of Python's own names, but nothing that it brings here
    assert copy.drive("import beside, winreg, keyword, os, _json, itertools, fusewire.util.globs") == ""
    assert {"keyword", "fusewire", "fusewire.util.globs"} <= copy.kept()
    assert not {"beside", "winreg", "os", "_json", "itertools"} & copy.kept()


def test_what_lies_beside_the_package_stands_in_for_nothing(copy: Copy, project: Project) -> None:
    for name in ("functools", "keyword", "_json", "__future__", "sqlite3"):
        (copy.root / f"{name}.py").write_text("raise SystemExit('planted')\n")
    for _ in range(2):
        result = copy.call(project, "ls -la")
        assert (result.returncode, result.stderr) == (0, "")


def test_code_that_does_not_know_its_source_is_not_kept(copy: Copy) -> None:
    """Compiled files with a hash of the source say nothing of its time; Python's own import goes on judging them."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(copy.package / "gate" / "process.py"), invalidation_mode=mode)
    for _ in range(2):
        assert "gate/process" in copy.found_by_python()
    assert "config/rules" not in copy.found_by_python()


def test_the_file_stays_bounded(copy: Copy) -> None:
    for number in range(30):
        (copy.package / f"extra{number}.py").write_text("")
    imports = [f"import fusewire.extra{number}" for number in range(30)]
    copy.drive("\n".join(imports[:20]))
    kept = copy.kept()
    assert "fusewire.extra19" in kept
    copy.drive("\n".join(["vars(import_cache)['_MOST_MODULES'] = 5", *imports]))
    copy.drive("\n".join(["vars(import_cache)['_MOST_BYTES'] = 5000", "import keyword", *imports]))
    assert copy.kept() == kept


def test_a_closed_stream_is_not_taken_for_the_file(copy: Copy) -> None:
    """The file must not be read as if it were what the agent sent."""
    script = 'exec "$@" <&-'
    command = ["sh", "-c", script, "sh", sys.executable, "-I", "-S", str(copy.package / "hook.py"), "claude"]
    said = [subprocess.run(command, capture_output=True, text=True, timeout=60, check=False) for _ in range(3)]
    assert copy.file.exists()
    assert {one.returncode for one in said} == {2}
    assert all("Bad file descriptor" in one.stderr for one in said), said


def test_an_agent_cannot_plant_code(copy: Copy, project: Project) -> None:
    """The guard protects the folder of the package and what lies in it."""
    (project.root / "evil").write_text("")
    for command in ("cp evil {}", "echo x > {}", "rm -f {}", "ln -sf evil {}", "mv evil {}"):
        assert copy.call(project, command.format(copy.file)).returncode == 2, command
    edit = {"file_path": str(copy.file), "content": "x"}
    assert copy.ask(project, project.bash("", tool_name="Write", tool_input=edit)).returncode == 2

"""Files of ours are opened for writing in `util.files` alone: nothing else makes, renames or opens one by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.helpers import SOURCE

CALLS = {"replace", "rename", "renames", "mkdir", "makedirs", "link", "symlink", "truncate"}
COPIES = {"copy", "copy2", "copyfile", "copytree", "move"}
WRITES = {"write_text", "write_bytes", "touch"}
FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}

#: Who else writes, and why that reaches nothing through a link.
ALLOWED = {
    "util/files.py": "the one way",
    "gate/import_cache.py": "beside the package, before anything else is loaded; O_EXCL",
    "janitor/files.py": "a folder on whose way there was no link when it was found; its files with O_NOFOLLOW",
    "janitor/archive.py": "inside such a folder",
    "janitor/ledgers.py": "inside such a folder",
    "guard/vault.py": "relative to an open folder, or O_EXCL in the vault, which `make_folder` has made",
    "guard/integrity.py": "a damaged manifest is renamed beside itself",
    "guard/restoring.py": "what is moved aside or restored is renamed, relative to an open folder",
    "guard/calls.py": "a folder for its owner alone, outside of any project",
    "guard/manifest_transaction.py": "inside such a folder",
    "guard/sandbox/namespaces.py": "files of the kernel, and a file system in memory that only the command sees",
    "guard/sandbox/placeholders.py": "an empty folder, opened with O_NOFOLLOW before anything is done to it",
    "guard/sandbox/support.py": "the null device",
    "run/sandbox.py": "the user's own folders, outside of any project",
    "worktree/moves.py": "a rollback's own room, and the project relative to an open folder",
    "worktree/rollback.py": "a rollback's own room",
    "stores/recovery.py": "renames inside the state folder; SQLite writes the new database, which `open_file` has made",
    "stores/spool.py": "relative to an open folder, O_NOFOLLOW and O_EXCL",
    "util/git.py": "a private directory with a random name, outside of any project",
    "util/gitexclude.py": "git's own list of what is not shown; O_NOFOLLOW and O_APPEND",
    "util/gitdir.py": "inside such a directory",
    "breakers/constraint/lifecycle.py": "renames what cannot be read, beside itself",
    "breakers/phase/state_file.py": "renames what others wrote, beside itself",
    "breakers/loop/protection.py": "renames what an agent added into the state folder",
    "breakers/session/nesting.py": "the agent's own file of variables; O_NOFOLLOW",
    "cli/config.py": "the configuration that a person asks for; mode x",
    "scopes/order_changes.py": "the person's own folder, outside of any project",
    "scopes/user.py": "the person's own folder, outside of any project",
    "server/access.py": "the person's own tokens, outside of any project",
    "agents/install/files.py": "an agent's settings, for a person; O_EXCL and rename",
    "agents/install/canary.py": "a project for a trial, in a temporary folder",
    "cli/export.py": "the file that a person has named; mode x and rename",
    "cli/streams.py": "the null device",
    "cli/run_summary.py": "the file that a person has named, or the CI's own for the job",
    "engine/testing.py": "a project for a test, in a temporary folder",
    "cli/demo/constraint.py": "a demonstration, in a temporary folder",
    "cli/demo/project.py": "a demonstration, in a temporary folder",
    "cli/demo/agent.py": "a demonstration, in a temporary folder",
}


def writing(path: Path) -> Iterator[tuple[int, str]]:
    """The calls of a source that make, rename or open something for writing."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and writes(node):
            yield node.lineno, ast.unparse(node.func)


def writes(node: ast.Call) -> bool:
    owner, _, name = ast.unparse(node.func).rpartition(".")
    if owner == "os":
        return name in CALLS or (name == "open" and opens_to_write(node.args))
    if owner or name != "open":
        return name in WRITES or (owner == "shutil" and name in COPIES)
    modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
    opened = ast.unparse(node.args[0])  # an open descriptor was opened by somebody else, who is asked
    return any(map(is_mode, modes)) and not opened.startswith(("descriptor", "status_log", "folder.", "target"))


def opens_to_write(given: list[ast.expr]) -> bool:
    return any(flag in ast.unparse(one) for one in given[1:2] for flag in FLAGS | {"_CREATE", "flags"})


def is_mode(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(set("wax+") & set(node.value[:3]))


def test_the_reader_of_sources_sees_what_writes(tmp_path: Path) -> None:
    """The test of the test."""
    sample = tmp_path / "sample.py"
    sample.write_text(
        'open(path, "a")\nopen(path, "rb")\nos.open(p, os.O_RDONLY)\nos.open(p, os.O_RDWR)\nos.makedirs(p)\n'
        'text.replace("a", "b")\np.write_text("x")\nshutil.copy2(a, b)\n'
    )
    assert [line for line, _ in writing(sample)] == [1, 4, 5, 7, 8]


def test_files_of_ours_are_written_in_one_way() -> None:
    """Whoever needs another one says here why nothing is reached through a link."""
    found = {path.relative_to(SOURCE).as_posix(): list(writing(path)) for path in sorted(SOURCE.rglob("*.py"))}
    writers = {name: calls for name, calls in found.items() if calls}
    assert {name: calls for name, calls in writers.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() - writers.keys() == set(), "no longer needed"

"""Git is started in one place, with a directory of ours; what people really have in their repositories still works."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fusewire.util.git import GitFailure, git
from fusewire.util.gitconfig import settings_of
from fusewire.util.programs import find_program
from fusewire.worktree.checkpoint import Checkpoints
from fusewire.worktree.snapshot import take
from tests.helpers import SOURCE
from tests.helpers.project import Project

#: What starts processes; only the first of them may start git.
STARTING = {
    "util/git.py",
    *("run/test_cycle.py", "cli/demo/constraint.py", "cli/demo/agent.py", "agents/doctor/programs.py"),
    *("agents/install/canary.py", "agents/install/command.py", "notify/send.py", "breakers/start_delivery.py"),
    "agents/caller.py",  # this program again, without the loader's variables
    *("guard/sandbox/start.py", "guard/sandbox/support.py"),  # what is run in a sandbox, and `bwrap` to try it
    "cli/wait.py",  # the command that a person gave, in its own place
    "run/hook_server.py",  # this program again, outside of the sandbox
    *("run/pipes.py", "run/process.py", "util/processes.py", "run/watchdog.py", "breakers/session/wrap.py"),
}


def shell(script: str, cwd: Path) -> str:
    done = subprocess.run(["/bin/sh", "-ec", script], cwd=cwd, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def code_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def starts_processes(tree: ast.Module) -> bool:
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return "subprocess" in imported or any(
        re.match(r"os\.(exec|spawn|posix_spawn|system|popen)", one) for one in called
    )


def test_git_is_started_in_one_place() -> None:
    starting = {str(path.relative_to(SOURCE)): code_of(path) for path in sorted(SOURCE.rglob("*.py"))}
    starting = {name: tree for name, tree in starting.items() if starts_processes(tree)}
    assert starting.keys() <= STARTING, "say here what it starts; git is started by fusewire.util.git"
    naming = {
        name
        for name, tree in starting.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"(\S*/)?git", node.value)
    }
    assert naming == {"util/git.py"}


def test_a_program_of_the_project_is_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    for folder in (project / "bin", project / "inner" / ".git", project / ".git", tmp_path / "tools"):
        folder.mkdir(parents=True)
    for path in (project / "tool", project / "bin" / "tool", tmp_path / "tools" / "other"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "tools" / "tool").symlink_to(project / "tool")
    monkeypatch.setenv("PATH", f".::bin:{project}/bin:{tmp_path}/tools")
    monkeypatch.chdir(project)
    assert find_program("tool", str(project)) is None
    assert find_program("tool", str(project / "inner")) is None, "an inner repository is a part of the project"
    assert find_program("other") == f"{tmp_path}/tools/other"


def test_git_carries_the_mark_of_an_agent_and_none_of_the_variables(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    fake = tmp_path / "tools" / "git"
    fake.write_text('#!/bin/sh\nenv; cat "$GIT_DIR/config"\n')
    fake.chmod(0o755)
    shell("git config alias.x '!false'; git config core.sshCommand false; git config branch.b.merge c", project.root)
    for name in ("GIT_TRACE", "GIT_SSH", "GIT_CONFIG_PARAMETERS", "LD_PRELOAD_X", "PAGER"):
        monkeypatch.setenv(name, "somewhere")
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    shown = git(str(project.root), "status").decode()
    assert "FUSEWIRE_AGENT=git" in shown
    assert "somewhere" not in shown
    assert '[branch "b"]\n\tmerge = "c"' in shown
    assert "alias" not in shown
    assert "sshCommand".lower() not in shown.lower()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("[core]\n\tbare = false # no\n", "core.bare", "false"),
        ("[Core] Bare\n", "core.bare", "true"),
        ('[alias]\n x = "!f() { echo \\"a # b\\"; }; f" ; c\n', "alias.x", '!f() { echo "a # b"; }; f'),
        ("[alias]\n x = log \\\n --oneline  \n", "alias.x", "log  --oneline"),
        ('[branch "a \\"b\\\\.c"]\n merge = x\\ty\n', 'branch.a "b\\.c.merge', "x\ty"),
        ("[branch.Old]\n merge = y\n", "branch.old.merge", "y"),
        ("[core\n[a]\nb = 1\n= 2\n", "a.b", "1"),
    ],
)
def test_settings_are_read_as_git_reads_them(tmp_path: Path, text: str, name: str, value: str) -> None:
    (tmp_path / "config").write_text(text)
    assert settings_of(str(tmp_path), str(tmp_path))[name] == value
    if text[:6] != "[core\n":
        asked = ["git", "config", "--file", "config", "--get", "--type=bool" if value == "true" else "-z", name]
        shown = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert shown.rstrip("\0\n") == value


# -- what must not look changed ------------------------------------------------------------------------------------

LFS = """import sys, hashlib
data = sys.stdin.buffer.read()
print(f"version https://git-lfs.github.com/spec/v1\\noid sha256:{hashlib.sha256(data).hexdigest()}\\nsize {len(data)}")
"""
ROT13 = "import sys, codecs\nsys.stdout.write(codecs.encode(sys.stdin.read(), 'rot13'))\n"

#: attributes, the person's configuration, the content, and whether a file that was only touched is known to be the same
CONVERTED = {
    "large file storage": ("*.md filter=lfs\n", '[filter "lfs"]\n\tclean = {lfs}\n\trequired = true\n', b"big\n", True),
    "a filter of the person": (
        "*.md filter=rot\n",
        '[filter "rot"]\n\tclean = {rot}\n\tsmudge = {rot}\n',
        b"abc\n",
        False,
    ),
    "autocrlf": ("", "[core]\n\tautocrlf = true\n", b"a\r\nb\r\n", True),
    "eol": ("*.md text eol=crlf\n", "", b"a\r\nb\r\n", True),
    "ident": ("*.md ident\n", "", b"$Id: 1234 $\n", True),
    "an encoding": ("*.md text working-tree-encoding=UTF-16\n", "", "äö\n".encode("utf-16"), True),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_converted_file_does_not_look_changed(project: Project, tmp_path: Path, name: str) -> None:
    attributes, config, content, knows_touched = CONVERTED[name]
    for tool, text in {"lfs": LFS, "rot": ROT13}.items():
        (tmp_path / f"{tool}.py").write_text(text)
        config = config.replace(f"{{{tool}}}", f"{sys.executable} {tmp_path}/{tool}.py")
    root = project.root
    Path(os.environ["HOME"], ".gitconfig").write_text(f"[user]\n\tname = a\n\temail = b\n{config}")
    (root / ".gitattributes").write_text(attributes)
    (root / "specs").mkdir()
    (root / "specs" / "a.md").write_bytes(content)
    shell("git add . && git commit -qm 1", root)  # racy: the index is as young as the file
    first = take(str(root))
    assert not first.repositories[""].files, "as it was committed"
    assert project.run("guard", "check", "--command", "git checkout .").returncode == 0
    if knows_touched:
        os.utime(root / "specs" / "a.md", (1, 1))
        assert take(str(root)).tree == first.tree
        assert project.run("guard", "check", "--command", "git checkout .").returncode == 0
    shell("git status", root)  # which writes what it has found out into the index
    assert take(str(root)).tree == first.tree
    (root / "specs" / "a.md").write_bytes(content + content)
    changed = take(str(root))
    assert list(changed.repositories[""].files) == ["specs/a.md"]
    assert project.run("guard", "check", "--command", "git checkout .").returncode == 3, "it would be lost"


# -- repositories of every shape -----------------------------------------------------------------------------------

START = "echo 1 > f; git add f; git commit -qm 1; echo 2 > f; git commit -qam 2"
SHAPES = {
    "plain": f"git init -q r; cd r; {START}",
    "sha256": f"git init -q --object-format=sha256 r; cd r; {START}",
    "separate": f"git init -q --separate-git-dir=g.git r; cd r; {START}",
    "a worktree": f"git init -q main; cd main; {START}; git worktree add -q ../r -b other",
    "a worktree of a bare one": f"git init -q m; cd m; {START}; cd ..; git clone -q --bare m b.git;"
    " cd b.git; git worktree add -q ../r -b other",
    "shallow": f"git init -q m; cd m; {START}; cd ..; git clone -q --depth 1 file://$PWD/m r",
    "partial": f"git init -q m; cd m; {START}; git config uploadpack.allowFilter true; cd ..;"
    " git clone -q --filter=blob:none file://$PWD/m r",
    "shared": f"git init -q m; cd m; {START}; cd ..; git clone -q --shared m r",
    "a submodule": f"git init -q m; cd m; {START}; cd ..; git init -q s; cd s;"
    " git -c protocol.file.allow=always submodule --quiet add ../m r; git commit -qm s; mv r ../r;"
    " echo 'gitdir: ../s/.git/modules/r' > ../r/.git; git config -f .git/modules/r/config core.worktree ../../../../r",
    "packed": f"git init -q r; cd r; {START}; git gc -q; git pack-refs --all",
    "a split index": f"git init -q r; cd r; {START}; git update-index --split-index",
    "sparse": f"git init -q r; cd r; {START}; mkdir d; echo > d/e; git add d; git commit -qm 3;"
    " git sparse-checkout set d",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_repository_of_any_shape_is_read_and_keeps_its_checkpoints(tmp_path: Path, name: str) -> None:
    home = Path(os.environ["HOME"], ".gitconfig")
    home.write_text("[user]\n\tname = a\n\temail = b\n")
    shell(SHAPES[name], tmp_path)
    root = tmp_path / "r"
    snapshot = take(str(root))
    assert not snapshot.problems
    assert snapshot.tree
    assert snapshot.repositories[""].head == shell("git rev-parse HEAD", root).strip()
    assert snapshot.repositories[""].branch == shell("git symbolic-ref --short HEAD", root).strip()
    assert not snapshot.repositories[""].files
    ref = shell("git rev-parse --git-path hooks", root).strip()
    hooks = root / ref
    hooks.mkdir(exist_ok=True, parents=True)
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\necho > '{tmp_path}/hook-ran'\nexit 1\n")
    (hooks / "reference-transaction").chmod(0o755)
    (root / "f").write_text("3\n")
    Checkpoints(str(root)).take("S")
    assert shell("git for-each-ref refs/fusewire/checkpoints", root)
    assert not (tmp_path / "hook-ran").exists()
    assert "f" in take(str(root)).repositories[""].files


def test_settings_that_change_all_the_time_are_never_obeyed(project: Project, tmp_path: Path) -> None:
    """An agent in the background writes the configuration between our calls, and during them."""
    (project.root / "f").write_text("1\n")
    shell("git config user.name a; git config user.email b; git add f; git commit -qm 1", project.root)
    config = project.root / ".git" / "config"
    calm = config.read_bytes()
    evil = calm + f"[core]\n\tfsmonitor = touch {tmp_path}/ran; false\n".encode()
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            for content in (evil, calm):
                (tmp_path / "new").write_bytes(content)
                os.replace(tmp_path / "new", config)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            git(str(project.root), "status")
    finally:
        over.set()
        writer.join()
    assert not (tmp_path / "ran").exists()


def test_what_is_no_repository_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(GitFailure, match="not a git repository"):
        git(str(tmp_path), "status")


# -- the project's own code is not a person ------------------------------------------------------------------------


@pytest.mark.parametrize("around", ["attempt", "run", "wrap"])
def test_the_code_of_the_project_counts_as_the_agents(project: Project, around: str) -> None:
    """A test that calls `fusewire reset` is refused; what is not for people only works."""
    own = f"{sys.executable} -P -m fusewire"
    script = f"{own} reset loop --reason x > reset.txt 2>&1; {own} status > status.txt 2>&1 && touch looked"
    if around == "attempt":
        project.run("attempt", "start", "S-1", "test_x")
        line = ("attempt", "run", "S-1", "test_x", "--strategy", "s", "--", "/bin/sh", "-c", script)
    elif around == "wrap":
        line = ("wrap", "hook", "--", "/bin/sh", "-c", script)
    else:
        line = ("run", "--max-iterations", "1", "--no-wait", "--until", script, "--", "/bin/sh", "-c", "echo > f")
    done = project.run(*line)
    assert "is for a person" in (project.root / "reset.txt").read_text(), done
    assert (project.root / "looked").exists(), (project.root / "status.txt").read_text()


def test_what_a_killed_process_left_is_swept_and_nothing_else(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The janitor removes private directories that are an hour old; links in them are not followed."""
    place = project.root.parent / "runtime"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    old, new, other = (place / name for name in ("fusewire-git-1-a", "fusewire-git-2-b", "somebody-else"))
    for folder in (old, new, other):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "refs").symlink_to(project.root)
    for folder in (old, other):
        os.utime(folder, (0, 0))
    assert project.run("janitor", "--dry-run").returncode == 0
    assert old.exists()
    assert project.run("janitor").returncode == 0
    assert sorted(place.iterdir()) == [new, other]
    assert (project.root / ".git").exists()

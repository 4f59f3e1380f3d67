"""No command of ours starts a program that the repository, its configuration or the caller's variables name."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fusewire.util.gitdir import private_place
from tests.helpers.git_ways import WAYS, Way
from tests.helpers.program import fusewire
from tests.helpers.project import Project

CANARY = """#!/bin/sh
echo "$0 $*" >> '{log}'
fusewire reset loop --reason canary >> '{log}' 2>&1
exit 1
"""

#: Lines of an agent that make the guard ask git; the protected files are those of `specs/`.
LINES = (
    "git checkout .",
    "git stash",
    "git reset --hard HEAD~1",
    "git clean -fdx",
    "git x",
    "git merge origin/main",
    "rm $(git diff --name-only) $(git status --short)",
    'echo "$(git log -1 -p)" > specs/a.md',
)

#: Every command that looks at the repository, and the exit codes of a sensible answer.
COMMANDS: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = (
    (("run", "--max-iterations", "1", "--no-wait", "--", "/bin/sh", "-c", "echo 3 >> src/x.py"), (0, 3, 4)),
    (("loop", "begin"), (0, 3)),
    (("loop", "end"), (0, 3)),
    (("guard", "snapshot"), (0,)),
    (("guard", "verify"), (0,)),
    (("attempt", "start", "S-1", "test_x"), (0, 1)),
    (("attempt", "run", "S-1", "test_x", "--strategy", "none", "--", "/bin/sh", "-c", "exit 1"), (0, 1, 3)),
    (("attempt", "retry", "S-1", "--guidance", "none", "--force"), (0, 1)),
    (("scope", "check", "S-1", "--staged"), (0, 1, 3)),
    (("status",), (0,)),
    (("doctor",), (0, 1, 3)),
)


class Trap:
    """A repository with two commits and a change, ready to be made hostile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.log = folder / "canary.log"
        self.canary = folder / "canary"
        self.canary.write_text(CANARY.format(log=self.log))
        self.canary.chmod(0o755)
        for name, text in {"specs/a.md": "a\n", "src/x.py": "x = 1\n", "tests/test_x.py": "", "deleted": "1\n"}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.shell(
            "git init -q . && git config user.name a && git config user.email nobody && git add . && git commit -qm 1"
        )
        self.shell("echo 2 >> src/x.py && git commit -qam 2 && echo 3 >> src/x.py && rm deleted && git add deleted")

    def shell(self, script: str) -> None:
        subprocess.run(["/bin/sh", "-ec", script], cwd=self.root, check=True, capture_output=True)

    def fill(self, text: str) -> str:
        filled = text.replace("@", str(self.canary)).replace("%/", f"{self.folder}/")
        return filled.replace("{PATH}", os.environ["PATH"])

    def arm(self, way: Way) -> dict[str, str]:
        """Make it hostile; the environment of the caller."""
        if way.before:
            self.shell(self.fill(way.before))
        for name, text in way.files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.fill(text))
        if way.config:
            with open(self.root / ".git" / "config", "a") as file:
                file.write(self.fill(way.config))
        for path in (self.root / "src" / "x.py", self.root / "specs" / "a.md"):
            os.utime(path)  # git has to look at the content
        self.log.unlink(missing_ok=True)
        return os.environ | {name: self.fill(value) for name, value in way.environment.items()}

    def ran(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.mark.parametrize("name", [name for name, way in WAYS.items() if way.control])
def test_the_way_works_where_nothing_is_done_against_it(tmp_path: Path, name: str) -> None:
    """Else the corpus would prove nothing."""
    trap = Trap(tmp_path)
    environment = trap.arm(WAYS[name])
    control = WAYS[name].control
    subprocess.run(["/bin/sh", "-c", control], cwd=trap.root, env=environment, capture_output=True, check=False)
    assert trap.ran()


@pytest.mark.parametrize("name", WAYS)
def test_the_canary_never_runs(tmp_path: Path, name: str) -> None:
    trap = Trap(tmp_path)
    environment = trap.arm(WAYS[name])
    for arguments, codes in COMMANDS:
        at = arguments.index("--") if "--" in arguments else len(arguments)
        line = (*arguments[:at], "--project", str(trap.root), *arguments[at:])
        done = fusewire(*line, cwd=trap.root, env=environment)
        said = (done.stdout + done.stderr).decode(errors="replace")
        assert done.returncode in codes, (arguments, said)
        assert "Traceback" not in said, (arguments, said)
        assert not trap.ran(), (arguments, trap.ran())
        with open(trap.root / "src" / "x.py", "a") as file:
            file.write("again\n")
    given = "".join(json.dumps({"cmd": line, "cwd": str(trap.root)}) + "\n" for line in LINES)
    checked = fusewire(
        *("guard", "check", "--batch", "--project", str(trap.root)),
        cwd=trap.root,
        env=environment,
        stdin=given.encode(),
    )
    assert len(checked.stdout.splitlines()) == len(LINES), checked
    project = Project(trap.root, starts_hooks=False)
    payloads = [project.bash(line) for line in LINES[:3]]
    payloads += [project.bash(LINES[0], hook_event_name="PostToolUse", tool_response={"stdout": "", "stderr": ""})]
    payloads += [{**project.bash(""), "hook_event_name": "SessionStart", "source": "startup"}]
    for payload in payloads:
        answer = project.hook(payload, env=environment)
        assert answer.returncode in (0, 2), answer
        assert b"Traceback" not in answer.stderr, answer
    assert not trap.ran()
    assert not list(Path(private_place(str(trap.root))).glob(f"fusewire-git-{os.getpid()}-*"))

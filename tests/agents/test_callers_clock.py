"""The caller's clock and libraries: an agent cannot make time pass, and people can."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.breakers.constraint.detect import runs
from fusewire.guard.shell.commands import simple_commands
from tests.helpers import SOURCE
from tests.helpers.project import Project

LIBRARY = next(Path("/usr/lib").rglob("libfaketime.so.1"), Path("/nowhere"))
LATER = {"LD_PRELOAD": str(LIBRARY), "FAKETIME": "+2d"}
INSIDE = {"CLAUDECODE": "1"}

needs_faketime = pytest.mark.skipif(not LIBRARY.exists(), reason="libfaketime is not installed")


def fusewire(project: Project, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A new interpreter: what is tried here happens before the first line of ours runs."""
    command = [sys.executable, "-m", "fusewire", *arguments]
    whole = {**os.environ, **env}
    return subprocess.run(command, cwd=project.root, env=whole, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def opened(project: Project) -> Project:
    """A project with an open circuit."""
    project.constraint("no-force", "match:\n  command: git push --force\ncircuit_breaker:\n  violation_threshold: 1\n")
    project.run("record", "no-force", "--action", "git push --force")
    assert project.run("check", "no-force").returncode == 3
    return project


def state(project: Project) -> str:
    mirror = project.root / "docs" / "constraints" / ".circuit-state.json"
    return str(json.loads(mirror.read_text())["no-force"]["state"])


@needs_faketime
def test_an_agent_cannot_end_a_cooldown_with_a_clock_of_its_own(opened: Project) -> None:
    """Two days later the one probe would be allowed; inside an agent it is today."""
    for act in (("check", "no-force"), ("record", "no-force", "--ok"), ("status", "no-force")):
        fusewire(opened, *act, env={**LATER, **INSIDE})
        assert state(opened) == "OPEN", act
    assert fusewire(opened, "check", "no-force", env={**LATER, **INSIDE}).returncode == 3


@needs_faketime
def test_a_marked_process_above_is_enough(opened: Project) -> None:
    """The agent's shell carries the mark; what it starts has cleaned its environment."""
    line = f"env -u CLAUDECODE LD_PRELOAD={LIBRARY} FAKETIME=+2d {sys.executable} -m fusewire check no-force; exit $?"
    done = subprocess.run(
        ["sh", "-c", line], cwd=opened.root, env={**os.environ, **INSIDE}, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 3, done.stdout


@needs_faketime
def test_a_person_can_try_a_cooldown_with_libfaketime(opened: Project) -> None:
    """Outside an agent the clock is the person's: after the cooldown one probe is allowed."""
    done = fusewire(opened, "check", "no-force", env=LATER)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_faketime
def test_what_the_agent_itself_was_started_with_is_the_persons_choice(opened: Project) -> None:
    """`faketime '+2d' claude`: the whole session lives in the other time, the command line inside it too."""
    agent = ["claude", "-c", f"CLAUDECODE=1 {sys.executable} -m fusewire check no-force; exit $?"]
    done = subprocess.run(
        agent, executable="/bin/sh", cwd=opened.root, env={**os.environ, **LATER}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout


@needs_faketime
def test_a_hook_with_a_clock_of_the_project_keeps_the_real_one(opened: Project) -> None:
    """Variables that settings set for the hook were not there when the agent was started."""
    payload = opened.bash("git push --force")
    result = opened.hook(payload, env={**LATER, **INSIDE})
    assert result.returncode == 2, result
    assert b"no-force" in result.stderr
    assert state(opened) == "OPEN"


def test_a_module_that_lies_in_the_callers_path_is_not_loaded(opened: Project, tmp_path: Path) -> None:
    """PYTHONPATH with a `sitecustomize` or a `click` of the agent's own."""
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "click.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(0)\n")
    done = fusewire(opened, "check", "no-force", env={"PYTHONPATH": str(trap), **INSIDE})
    assert done.returncode == 3, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("inside", [{}, INSIDE])
def test_commands_that_run_for_the_caller_get_its_variables_back(
    project: Project, tmp_path: Path, inside: dict[str, str]
) -> None:
    """A test runner needs its user's PYTHONPATH and LD_LIBRARY_PATH."""
    given = {"PYTHONPATH": str(tmp_path / "lib"), "LD_LIBRARY_PATH": "/opt/cuda/lib", "PYTHONUNBUFFERED": "1"}
    out = tmp_path / "seen.json"
    code = f"import os, json; json.dump(dict(os.environ), open({str(out)!r}, 'w'))"
    for act in (
        ("attempt", "run", "S-1", "t", "--", sys.executable, "-c", code),
        ("wrap", "format", "--", sys.executable, "-c", code),
        ("run", "--max-iterations", "1", "--", sys.executable, "-c", code),
    ):
        out.unlink(missing_ok=True)
        done = fusewire(project, *act, env={**given, **inside})
        seen = json.loads(out.read_text()) if out.exists() else done.stdout + done.stderr
        assert {name: seen.get(name) for name in given} == given, act
        assert not [name for name in seen if name.startswith("FUSEWIRE_SET_ASIDE")]


def test_usual_variables_of_a_container_start_nothing_again(project: Project) -> None:
    """PYTHONUNBUFFERED and the like change nothing that matters: no second interpreter is paid for."""
    code = "import os, sys; os.execve = lambda *_: sys.exit(9); from fusewire.__main__ import main; main()"
    usual = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8", "LDFLAGS": "-s", "TZ": "UTC"}
    environment = {**os.environ, **usual, **INSIDE}
    line = [sys.executable, "-c", code, "status"]
    done = subprocess.run(line, cwd=project.root, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    environment["LD_LIBRARY_PATH"] = "/opt"
    done = subprocess.run(line, cwd=project.root, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 9, "the test of the test"


REFUSED = """
LD_PRELOAD=/x/libfaketime.so.1 fusewire check no-force
LD_PRELOAD=x FAKETIME=+2d python3 -m fusewire check no-force
export LD_PRELOAD=x; fusewire status
export FAKETIME=+2d && cd . && fusewire check no-force
env FAKETIME=+2d fusewire check no-force
env -i LD_AUDIT=x sudo fusewire check no-force
faketime '+2d' fusewire check no-force
faketime -f +2d .venv/bin/fusewire check no-force
PYTHONPATH=. fusewire status
PYTHONPATH=. python -m fusewire status
bash -c 'PYTHONSTARTUP=x fusewire check a'
/lib64/ld-linux-x86-64.so.2 --preload x /usr/bin/python3 -m fusewire check a
date -s 2030-01-01
sudo date --set='+2 days'
date -us '+2 days'
date 010100002030
sudo timedatectl set-time 2030-01-01
timedatectl set-ntp false
hwclock --set --date='2030-01-01'
hwclock -s
chronyc settime 10:00
sudo ntpdate pool.ntp.org
"""

ALLOWED = """
date
date +%s
date -u +%FT%TZ
TZ=Europe/Berlin date
date -d '2 days ago' +%F
date -d 20300101 +%s
date -r 1700000000
date -Iseconds
date --date=20300101
faketime '2020-01-01' pytest
LD_LIBRARY_PATH=/opt/cuda/lib pytest
LD_PRELOAD=libjemalloc.so.2 node server.js
PYTHONPATH=src pytest && fusewire status
PYTHONPATH=src pytest; fusewire status
fusewire status
TZ=UTC fusewire status
NO_COLOR=1 fusewire status
timedatectl
timedatectl status
hwclock --show
chronyc tracking
ntpdate -q pool.ntp.org
echo LD_PRELOAD=x fusewire check a
git commit -m 'refuse LD_PRELOAD=x fusewire check, and date -s'
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_a_line_that_gives_us_another_clock_or_sets_the_systems_is_refused(project: Project, line: str) -> None:
    project.starts_hooks = False
    result = project.hook(project.bash(line))
    assert result.returncode == 2, line
    assert b"fusewire.disarm" in result.stderr


@pytest.mark.parametrize("line", ALLOWED.strip().splitlines())
def test_a_line_that_asks_the_time_or_sets_variables_for_others_passes(project: Project, line: str) -> None:
    project.starts_hooks = False
    result = project.hook(project.bash(line))
    assert result.returncode == 0, result.stderr


def test_faketime_around_a_command_is_seen_through() -> None:
    """A constraint fits what is run under another clock."""
    assert any(runs(words, ("git", "push", "--force")) for words in simple_commands("faketime '+2d' git push --force"))


def test_the_hook_starts_as_fast_as_before_without_such_variables(project: Project) -> None:
    """Nothing of it is loaded where no such variable is set."""
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", str(SOURCE / "hook.py"), "claude"],
        input=json.dumps(project.bash("ls")).encode(),
        cwd=project.root,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "CLAUDE_PROJECT_DIR": str(project.root)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"fusewire.gate.process" in shown.stderr
    assert b"fusewire.agents.caller" not in shown.stderr
    assert b"util.environment" not in shown.stderr


def test_faketime_is_there_where_the_suite_runs_in_full() -> None:
    """Debian's `faketime` names the library; elsewhere the tests above are skipped."""
    assert LIBRARY.exists() or shutil.which("faketime") is None

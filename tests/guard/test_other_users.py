"""Files of another user: what `sudo fusewire` leaves behind, what root cleans up, an installation for everybody."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
from tests.helpers import SOURCE
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project

STRANGER = (61234, 61235)


def run(project: Project, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """One process of a user whose files these are not."""
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)}
    line = [*UNPRIVILEGED, sys.executable, *words]
    return subprocess.run(
        line, cwd=project.root, env=environment, input=given, capture_output=True, text=True, timeout=60, check=False
    )


def hook(project: Project, command: str) -> subprocess.CompletedProcess[str]:
    return run(project, "-I", "-S", str(SOURCE / "hook.py"), "claude", given=json.dumps(project.bash(command)))


@pytest.mark.root
def test_a_state_folder_that_cannot_be_looked_into_is_not_taken_for_an_empty_one(project: Project) -> None:
    """`sudo fusewire` with a strict umask leaves such a folder."""
    project.constraint("rule", "circuit_breaker: {violation_threshold: 1}\nmatch:\n  - command: git push --force\n")
    assert project.run("record", "rule", "--action", "x").returncode == 0
    state = project.root / ".fusewire"
    state.chmod(0o700)
    for path in (project.root, state):
        os.chown(path, *STRANGER)
    mending = f"Permission denied; its files belong to different users; a person can run: sudo chown -R 0 {state}"
    for words in (["status"], ["check", "rule"], ["record", "rule"], ["doctor"]):
        done = run(project, "-m", "fusewire", *words)
        assert done.returncode == 1
        assert done.stderr == f"Error: the state folder cannot be used: {state}: {mending}\n"
    assert mending in hook(project, "ls").stdout
    assert hook(project, "git push --force").returncode == 2


@pytest.mark.root
@pytest.mark.parametrize("left", ["all", "locks"])
def test_what_sudo_left_in_the_state_folder_is_said_with_what_mends_it(project: Project, left: str) -> None:
    project.constraint("rule", "circuit_breaker: {violation_threshold: 5}\nmatch:\n  - command: git push --force\n")
    assert project.run("record", "rule", "--action", "x").returncode == 0
    state = project.root / ".fusewire"
    if left == "locks":
        state.chmod(0o777)
    # the project's owner is trusted with them, as root is by everybody
    for path in (project.root, state, *state.glob("*" if left == "all" else "mirror.lock")):
        os.chown(path, *STRANGER)
    mending = f"its files belong to different users; a person can run: sudo chown -R {os.geteuid()} {state}"
    passed = hook(project, "ls")
    assert passed.returncode == 0
    assert (mending in passed.stdout) == (left == "all"), "the lock is needed only when something is recorded"
    broken = hook(project, "git push --force")
    assert broken.returncode == (2 if left == "all" else 0)
    status, doctor = (run(project, "-m", "fusewire", *words) for words in (["status"], ["doctor"]))
    assert (status.returncode, doctor.returncode) == (0, 1)
    assert mending in status.stdout + status.stderr
    assert mending in doctor.stdout
    assert "Traceback" not in status.stderr + doctor.stderr + broken.stderr
    subprocess.run(["chown", "-R", str(os.geteuid()), state], check=True)
    assert hook(project, "ls").stdout == ""
    assert run(project, "-m", "fusewire", "record", "rule", "--action", "y").returncode == 0


@pytest.mark.root
def test_root_cleans_up_and_everything_stays_its_owners(tmp_path: Path) -> None:
    """The file that starts empty and the archive belong to the user whose log it was."""
    memory = tmp_path / ".claude" / "memory"
    memory.mkdir(parents=True)
    log = memory / "a_telemetry.jsonl"
    log.write_text("1\n" * 1001)
    os.chown(log, *STRANGER)
    assert Janitor(str(tmp_path), Limits()).clean(log.stat().st_mtime).files_rotated == 1
    (archive,) = memory.glob("*.gz")
    assert gzip.decompress(archive.read_bytes()) == b"1\n" * 1001
    assert [(one.stat().st_uid, one.stat().st_gid) for one in (log, archive)] == [STRANGER, STRANGER]


@pytest.mark.root
def test_a_log_of_another_user_is_packed_when_it_has_not_changed_for_an_hour(tmp_path: Path) -> None:
    """The kernel gives no lease on it, so that nothing is known of its writers."""
    memory = tmp_path / ".claude" / "memory"
    memory.mkdir(parents=True)
    log = memory / "a_telemetry.jsonl"
    log.write_text("1\n" * 1001)
    os.chown(log, *STRANGER)
    script = (
        "import sys\nfrom fusewire.janitor.janitor import Janitor\nfrom fusewire.janitor.limits import Limits\n"
        "print(*Janitor(sys.argv[1], Limits()).clean(float(sys.argv[2])).actions, sep='\\n')"
    )
    words = ["setpriv", "--bounding-set=-all", sys.executable, "-c", script, str(tmp_path)]
    said = [
        subprocess.run([*words, str(log.stat().st_mtime + later)], capture_output=True, text=True, check=True).stdout
        for later in (0, 3601)
    ]
    assert "still open in another process" in said[0]
    assert said[1].startswith("finished the rotation of a_telemetry.jsonl")


# -- a user without a home ---------------------------------------------------------------------------------------


def test_a_user_without_a_home_works_and_takes_no_settings_from_the_project(project: Project) -> None:
    """A service's user: no HOME and no entry in the system's list of users, so that `~` stays what it is."""
    nameless = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
    if subprocess.run([*nameless, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets users make no namespace")
    planted = project.root / "~" / ".config" / "fusewire" / "config.toml"
    planted.parent.mkdir(parents=True)
    planted.write_text("no settings at all\n")
    unknown = {"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in unknown}

    def said(*words: str) -> tuple[int, str]:
        line = [*nameless, sys.executable, "-m", "fusewire", *words]
        done = subprocess.run(
            line, cwd=project.root, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr

    assert said("status") == (0, "")
    code, error = said("serve", "--port", "0")
    assert (code, error.count("\n")) == (1, 1), error
    assert "set HOME or XDG_STATE_HOME to a full path" in error
    assert [path.name for path in (project.root / "~").iterdir()] == [".config"]
    environment["XDG_CONFIG_HOME"] = "~/.config"
    assert said("status") == (0, "")


# -- an installation that its users may not write ----------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package without anything compiled."""
    package = tmp_path / "installed" / "fusewire"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    yield package
    for path in (package, *package.rglob("*/")):
        path.chmod(0o755)


def close(package: Path) -> None:
    for path in (package, *package.rglob("*/")):
        path.chmod(0o555)


def doctor(project: Project, package: Path, *options: str) -> str:
    script = f"import sys; sys.path.insert(0, {str(package.parent)!r}); from fusewire.__main__ import main; main()"
    return run(project, "-c", script, "doctor", *options).stdout


def test_the_owner_of_an_installation_fills_its_cache_and_others_are_told(project: Project, installed: Path) -> None:
    close(installed)
    for options in ((), ("--canary",)):
        said = doctor(project, installed, *options)
        assert f"{installed} is not yours to write; once: cd / && sudo {sys.executable}" in said
    assert not list(installed.rglob("*.pyc"))
    for path in (installed, *installed.rglob("*/")):
        path.chmod(0o755)
    assert "not yours to write" not in doctor(project, installed, "--canary")
    close(installed)
    assert "not yours to write" not in doctor(project, installed)
    for command in ("ls", "cd src && grep -n 'a b' *.py | head -5 > found.txt"):
        given = json.dumps(project.bash(command))
        found = run(project, "-I", "-S", "-v", str(installed / "hook.py"), "claude", given=given).stderr
        slow = [line for line in found.splitlines() if line.startswith("# code object from") and "/fusewire/" in line]
        assert [line for line in slow if "import_cache" not in line] == [], "all other code comes from the cache"

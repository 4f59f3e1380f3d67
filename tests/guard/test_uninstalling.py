"""Routine commands that would remove Fusewire from an environment that it shares, and the same where it has its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

LOCKED = '[[package]]\nname = "fusewire"\nversion = "0.1.0"\n'


def installed(environment: Path) -> Path:
    """Fusewire in an environment: the hook of it."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = environment / "lib" / version / "site-packages" / "fusewire"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "server"))
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(sys.executable)
    for name in ("pip", "pip-sync"):
        (environment / "bin" / name).touch(0o755)
    (environment / "pyvenv.cfg").touch()
    return package / "hook.py"


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that shares its environment with Fusewire, and environments that Fusewire has for itself."""
    top = tmp_path_factory.mktemp("homes")
    (top / "project").mkdir()
    subprocess.run(["git", "init", "-q", str(top / "project")], check=True)
    for place in (
        "project/.venv",
        "tools/fusewire",
        "pipx/venvs/fusewire",
        "envs/work",
        "virtualenvs/project-Xy12-py3",
    ):
        installed(top / place)
    return top


@pytest.fixture
def root(homes: Path) -> Path:
    """The project, without any file that lists what is to be installed."""
    project = homes / "project"
    for path in project.iterdir():
        if path.name not in (".git", ".venv"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (project / "pyproject.toml").write_text('[project]\nname = "app"\ndependencies = ["httpx"]\n[tool.fusewire]\n')
    return project


def refusal(
    root: Path, line: str, home: str = "project/.venv", *, env: dict[str, str] | None = None, cwd: str = ""
) -> str:
    """What the hook that runs from an environment says to a line; empty if it passes."""
    hook = next((root.parent / home).glob("lib/*/site-packages/fusewire/hook.py"))
    payload = Project(root).bash(line, cwd=str(root / cwd), session_id=str(uuid.uuid4()))
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    environment |= {"CLAUDE_PROJECT_DIR": str(root), "PATH": "/usr/bin:/bin", **(env or {})}
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(hook), "claude"],
        input=json.dumps(payload).encode(),
        cwd=root,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 2), done.stderr
    return done.stderr.decode() if done.returncode else ""


SHARED = """
uv sync
uv sync --frozen --all-extras
cd . && uv sync
uv pip sync requirements.txt
poetry install --sync
poetry sync
pdm sync --clean
pipenv clean
.venv/bin/pip-sync
.venv/bin/pip uninstall -y -r everything.txt
.venv/bin/python -m pip uninstall -y -r everything.txt
.venv/bin/pip3.12 uninstall -y -r everything.txt
.venv/bin/python3.12 -m pip uninstall -y -r everything.txt
. .venv/bin/activate && pip freeze | xargs pip uninstall -y
source .venv/bin/activate; pip-sync requirements.txt
.venv/bin/pip uninstall -y -r <(.venv/bin/pip freeze)
rm -rf .venv
rm -rf .venv && python3 -m venv .venv
mv .venv old
find .venv -delete
python -m venv --clear .venv
virtualenv --clear .venv
uv venv
uv venv --clear .venv
poetry env remove --all
pipenv --rm
.venv/bin/pip uninstall -y fusewire
"""

HARMLESS = """
uv sync --inexact
uv sync --dry-run
uv sync --help
uv add httpx
uv run pytest
uv lock
uv pip install -r requirements.txt
uv pip sync --target out requirements.txt
uv pip sync --python /elsewhere/bin/python requirements.txt
uv sync --project ../other
uv venv ../other/.venv
uv venv --allow-existing
poetry install
poetry add httpx
pdm sync
pipenv sync
pip install httpx
.venv/bin/pip install -r requirements.txt
.venv/bin/pip uninstall -y httpx
.venv/bin/pip uninstall -y -r requirements.txt
.venv/bin/pip freeze
/usr/bin/pip uninstall -y -r everything.txt
pip freeze | grep -v fusewire | xargs .venv/bin/pip uninstall -y
python -m venv .venv2
python -m venv --clear ../other/.venv
conda env remove -n other
pipx uninstall-all
uv tool uninstall --all
git commit -m 'never uv sync, never rm -rf .venv'
echo uv sync
"""


@pytest.mark.parametrize("line", SHARED.strip().splitlines())
def test_a_shared_environment_keeps_fusewire(root: Path, line: str) -> None:
    (root / "requirements.txt").write_text("httpx==1.0\n")
    (root / "everything.txt").write_text("httpx==1.0\nfusewire==0.1.0\n")
    assert "BLOCKED" in refusal(root, line)


@pytest.mark.parametrize("line", HARMLESS.strip().splitlines())
def test_what_leaves_fusewire_where_it_is_passes(root: Path, line: str) -> None:
    (root / "requirements.txt").write_text("httpx==1.0\n")
    (root / "everything.txt").write_text("httpx==1.0\nfusewire==0.1.0\n")
    assert refusal(root, line) == ""


@pytest.mark.parametrize("line", [line for line in SHARED.strip().splitlines() if "fusewire" not in line])
@pytest.mark.parametrize("home", ["tools/fusewire", "pipx/venvs/fusewire"])
def test_in_an_environment_of_its_own_nothing_of_it_is_refused(root: Path, line: str, home: str) -> None:
    """uv tool, pipx: the project's environment is the project's business."""
    if home.startswith("pipx") and line.startswith((".venv", "rm", "uv pip")):
        pytest.skip("the same as with uv tool")
    (root / "everything.txt").write_text("httpx==1.0\nfusewire==0.1.0\n")
    assert refusal(root, line, home) == ""


@pytest.mark.parametrize(
    ("line", "home"),
    [
        ("uv tool uninstall --all", "tools/fusewire"),
        ("uv tool uninstall fusewire", "tools/fusewire"),
        ("pipx uninstall-all", "pipx/venvs/fusewire"),
        ("conda env remove -n work -y", "envs/work"),
        ("mamba remove --all -n work", "envs/work"),
        ("poetry sync", "virtualenvs/project-Xy12-py3"),
        ("pipenv clean", "virtualenvs/project-Xy12-py3"),
    ],
)
def test_an_environment_that_is_removed_as_a_whole(root: Path, line: str, home: str) -> None:
    assert "remove" in refusal(root, line, home)


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("uv sync", "uv.lock", LOCKED),
        ("uv sync", "pyproject.toml", '[project]\nname = "app"\ndependencies = ["fusewire>=0.1"]\n'),
        ("poetry sync", "poetry.lock", LOCKED),
        ("pdm sync --clean", "pdm.lock", LOCKED),
        ("uv pip sync requirements.txt", "requirements.txt", "httpx==1.0\nfusewire==0.1.0\n"),
        (".venv/bin/pip-sync dev.txt", "dev.txt", "-e /opt/fusewire\n"),
    ],
)
def test_what_lists_fusewire_keeps_it(root: Path, line: str, name: str, text: str) -> None:
    assert refusal(root, line) != ""
    (root / name).write_text(text)
    assert refusal(root, line) == ""


def test_the_active_environment_counts(root: Path) -> None:
    own = {"VIRTUAL_ENV": str(root / ".venv")}
    assert refusal(root, "pip freeze | xargs pip uninstall -y", env=own) != ""
    assert refusal(root, "uv sync --active", env=own) != ""
    assert refusal(root, "pip freeze | xargs pip uninstall -y", env={"PATH": f"{root}/.venv/bin:/bin"}) != ""
    assert refusal(root, "pip freeze | xargs pip uninstall -y") == ""
    assert refusal(root, "uv sync", env={"UV_PROJECT_ENVIRONMENT": "/opt/app"}) == ""


def test_a_folder_inside_the_project_works_on_the_projects_environment(root: Path) -> None:
    (root / "src").mkdir()
    assert refusal(root, "uv sync", cwd="src") != ""


def test_the_refusal_says_what_to_do_instead(root: Path) -> None:
    said = refusal(root, "uv sync")
    assert f"`uv sync` would remove Fusewire, which runs from {root}/.venv" in said
    assert "uv sync --inexact" in said
    assert "uv tool install fusewire" in said
    assert "uv tool install fusewire" in refusal(root, "rm -rf .venv")


def test_install_says_so_where_the_environment_is_shared(project: Project) -> None:
    """One line, with the command that gives Fusewire one of its own; nothing where it has one."""
    line = ("install", "claude", "--dry-run")
    assert "uv tool install" not in project.run(*line).stderr
    said = project.run(*line, env={"VIRTUAL_ENV": sys.prefix}).stderr
    assert f"Fusewire runs from {os.path.realpath(sys.prefix)}" in said
    assert "install it apart: uv tool install fusewire" in said


@pytest.mark.parametrize("python", ["", "python3"])
def test_a_run_notices_that_its_hook_has_vanished(project: Project, tmp_path: Path, python: str) -> None:
    """The agent's settings lost our hook while it ran without the sandbox; with the hook in place nothing is said."""
    settings = Path(os.environ["HOME"], ".claude", "settings.json")
    if python:  # as the plugin names it, and a person would
        handler = {"type": "command", "command": f"{python} -I -S {SOURCE / 'hook.py'} claude"}
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [handler]}]}}))
    else:
        assert project.run("install", "claude").returncode == 0
    assert "hook.py" in settings.read_text()
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\nexit 0\n")
    agent.chmod(0o755)
    line = ("run", "--no-sandbox", "--max-iterations", "1", "--", str(agent))
    assert "NOTHING IS GUARDED" not in project.run(*line).stderr
    agent.write_text(f"#!/bin/sh\necho '{{}}' > {settings}\n")
    done = project.run(*line)
    assert f"NOTHING IS GUARDED: the hook in {settings}" in done.stdout + done.stderr


def test_the_registered_lines_say_loudly_that_the_installation_is_gone(project: Project) -> None:
    """The hook lets the agent go on; the status line shows it where a person looks."""
    assert project.run("install", "claude", "--statusline").returncode == 0
    settings = json.loads(Path(os.environ["HOME"], ".claude", "settings.json").read_text())
    gone = str(SOURCE / "hook.py"), "/nowhere/fusewire/hook.py"
    status = settings["statusLine"]["command"].replace(*gone)
    shown = subprocess.run(["sh", "-c", status], input=b"{}", capture_output=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, b"fusewire GONE: nothing is guarded any more\n")
    hook = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].replace(*gone)
    said = subprocess.run(["sh", "-c", hook], input=b"{}", capture_output=True, check=False)
    assert said.returncode == 1
    assert b"nothing is guarded" in said.stderr


@pytest.mark.parametrize("left", ["{}", '{"disableAllHooks": true, "hooks": {"Stop": ["fusewire/hook.py"]}}'])
def test_status_and_status_line_notice_that_a_session_lost_its_hooks(project: Project, left: str) -> None:
    """The settings called the hook when the session began, and no longer do; a session that ended needs none."""
    assert project.run("install", "claude").returncode == 0
    settings = Path(os.environ["HOME"], ".claude", "settings.json")
    installed = settings.read_text()
    session = Session(project)
    session.send("SessionStart", source="startup")
    session.bash("ls")
    looks = {"input": json.dumps({"session_id": session.id, "cwd": str(project.root)}).encode()}
    line = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "statusline"]
    for text, gone in ((installed, False), (left, True), (installed, False)):
        settings.write_text(text)
        assert (f"NOTHING IS GUARDED in session {session.id}" in project.run("status").stderr) == gone
        shown = subprocess.run(line, **looks, capture_output=True, check=False).stdout.decode()
        assert shown.startswith("fusewire GONE its hooks were taken out, nothing is guarded") == gone
    session.send("SessionEnd", reason="exit")
    settings.write_text(left)
    assert "NOTHING IS GUARDED" not in project.run("status").stderr


@pytest.mark.parametrize(
    "line",
    [
        "~/.venv/bin/pip-sync",
        "~/.venv/bin/pip freeze | xargs ~/.venv/bin/pip uninstall -y",
        "source ~/.venv/bin/activate && pip-sync",
        "uv pip sync -p ~/.venv requirements.txt",
        "uv venv --clear ~/.venv",
        "virtualenv --clear ~/.venv",
    ],
)
def test_an_environment_below_the_home_is_known_by_its_tilde(root: Path, line: str) -> None:
    assert "would remove Fusewire" in refusal(root, line, env={"HOME": str(root)})
    assert not refusal(root, line, env={"HOME": str(root.parent)})

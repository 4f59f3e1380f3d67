"""`fusewire install claude --http`: what only reports goes to the server, what refuses stays a process."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.registry import CLIENTS
from fusewire.server import hooks
from fusewire.server.access import kept_token, token_file
from fusewire.util.server_address import PORT, proof
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.session_hook import Session

REPORTS = {"PostToolBatch", "PostToolUseFailure", "SessionEnd", "SubagentStart", "SubagentStop"}

THEIRS = """{
  "model": "opus",
  "hooks": {
    "SubagentStop": [
      {"hooks": [{"type": "http", "url": "http://127.0.0.1:9000/hooks/claude", "headers": {"Cookie": "theirs"}}]}
    ]
  }
}
"""


@pytest.fixture(autouse=True)
def _no_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the agents and proxies that this machine may have."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def settings() -> Path:
    return Path(os.environ["HOME"]) / ".claude" / "settings.json"


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    with Served(project.root) as server:
        yield server


def install(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = project.run("install", "claude", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def port_of(served: Served) -> str:
    return served.host.rpartition(":")[2]


def handlers(path: Path) -> dict[str, dict[str, Any]]:
    """event -> our hook for it."""
    found = json.loads(path.read_text())["hooks"]
    return {event: groups[-1]["hooks"][-1] for event, groups in found.items()}


def about_claude(project: Project) -> str:
    """What doctor finds about it, with what to do."""
    said = project.json("doctor")
    return "\n".join(f"{one['what']} | {one['do']}" for one in said["findings"] if one["about"] == "claude")


def test_reports_go_to_the_server_and_the_gate_stays_a_process(project: Project, settings: Path) -> None:
    done = install(project, "--http")
    kinds = {event: hook["type"] for event, hook in handlers(settings).items()}
    assert {event for event, kind in kinds.items() if kind == "http"} == REPORTS
    assert set(kinds) == set(CLIENTS["claude"].events)
    hook = handlers(settings)["PostToolBatch"]
    assert hook["url"] == f"http://127.0.0.1:{PORT}/hooks/claude"
    assert hook["headers"]["Authorization"] == f"Bearer {kept_token('hooks')}"
    assert hook["timeout"] > hooks.DEADLINE, "the server answers before the agent gives up"
    assert "fusewire serve" in done.stderr


def test_the_token_is_shown_to_nobody(project: Project, settings: Path) -> None:
    """Neither on the terminal nor in the JSON, when it comes and when it goes; a new file is its owner's alone."""
    shown = [install(project, "--http")]
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    shown += [project.run("install", "claude", "--http", "--port", "4000", "--json"), project.run("doctor", "--json")]
    shown += [project.run("uninstall", "claude", "--json")]
    token = kept_token("hooks")
    assert all(token not in done.stdout + done.stderr for done in shown)
    assert "Bearer ..." in shown[0].stdout
    assert stat.S_IMODE(os.stat(token_file("hooks")).st_mode) == 0o600


def test_a_file_that_others_can_read_keeps_its_mode_and_that_is_said(project: Project, settings: Path) -> None:
    settings.parent.mkdir()
    settings.write_text("{}")
    settings.chmod(0o644)
    assert f"chmod 600 {settings}" in install(project, "--http").stderr
    assert stat.S_IMODE(settings.stat().st_mode) == 0o644
    settings.chmod(0o600)
    assert "chmod" not in install(project, "--http").stderr


def test_there_and_back_leaves_the_file_as_it_was(project: Project, settings: Path) -> None:
    """Also a hook of somebody else's to the same path; and it is not taken for ours."""
    settings.parent.mkdir()
    settings.write_text(THEIRS)
    install(project)
    commands = settings.read_text()
    install(project, "--http")
    over_http = settings.read_text()
    assert over_http != commands
    assert "nothing was changed" in install(project, "--http").stderr
    assert settings.read_text() == over_http
    install(project, "--http", "--port", "4000")
    assert handlers(settings)["SessionEnd"]["url"] == "http://127.0.0.1:4000/hooks/claude"
    install(project)
    assert settings.read_text() == commands, "without --http all are processes again"
    install(project, "--http")
    assert project.run("uninstall", "claude").returncode == 0
    assert settings.read_text() == THEIRS


def test_a_dry_run_makes_nothing_not_even_a_token(project: Project, settings: Path) -> None:
    assert "127.0.0.1:3873/hooks/claude" in install(project, "--http", "--dry-run").stdout
    assert not settings.exists()
    assert not os.path.exists(token_file("hooks"))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("claude", "--http", "--project"), "a token is written, and"),
        (("claude", "--http", "--local"), "may be shared; allowed: --user"),
        (("codex", "--http"), "Codex is not known to report over HTTP; allowed: claude"),
        (("gemini", "--http"), "allowed: claude"),
        (("copilot", "--http"), "allowed: claude"),
        (("claude", "--port", "4000"), "that is the port of the server for --http"),
        (("claude", "--http", "--port", "0"), "0 is not in the range"),
        (("claude", "--http", "--port", "x"), "'x' is not a valid integer"),
    ],
)
def test_refused_in_a_line(project: Project, arguments: tuple[str, ...], why: str) -> None:
    done = project.run("install", *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert not (project.root / ".claude").exists()
    assert not os.path.exists(token_file("hooks"))


def test_without_the_extra_it_installs_all_the_same(project: Project, settings: Path, tmp_path: Path) -> None:
    """The settings need no web server; whoever starts it is told what to install."""
    blocked = "import sys; sys.modules['starlette'] = None; sys.modules['uvicorn'] = None\n"
    code = blocked + "from fusewire.cli.app import main\nmain()"
    words = [sys.executable, "-c", code, "install", "claude", "--http"]
    done = subprocess.run(words, cwd=project.root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert handlers(settings)["SessionEnd"]["type"] == "http"


# -- doctor -------------------------------------------------------------------------------------------------


def test_doctor_says_whether_reports_are_heard(project: Project, served: Served, free_port: int) -> None:
    install(project, "--http", "--port", port_of(served))
    assert about_claude(project) == ""
    assert "registered (user; reports over HTTP)" in project.run("doctor").stdout
    assert project.json("status", "--session")["session"] is None, "asking is no event of a session"
    install(project, "--http", "--port", str(free_port))
    said = about_claude(project)
    assert said.count("\n") == 0
    assert f"reports go to 127.0.0.1:{free_port}, where no server answers: calls are judged" in said
    assert f"fusewire serve --port {free_port}, or fusewire install claude (no server)" in said


def test_doctor_knows_a_server_of_other_projects_and_of_other_tokens(
    project: Project, served: Served, settings: Path, tmp_path: Path
) -> None:
    install(project, "--http", "--port", port_of(served))
    other = Project(tmp_path / "other")
    subprocess.run(["git", "init", "-q", str(other.root)], check=True)
    assert "does not show this project" in about_claude(other)
    settings.write_text(settings.read_text().replace(kept_token("hooks"), "x" * 43))
    said = about_claude(project)
    assert "does not know the token that is registered" in said
    assert f"fusewire install claude --http --port {port_of(served)}" in said


def test_doctor_is_not_deceived_by_another_server(project: Project, tmp_path: Path) -> None:
    words = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
        try:
            assert other.stdout is not None
            port = other.stdout.readline().partition(" port ")[2].split()[0]
            install(project, "--http", "--port", port)
            assert "is not Fusewire, or an older one (HTTP 501)" in about_claude(project)
        finally:
            other.kill()


@pytest.mark.parametrize("claim", ["", "0" * 64])
def test_doctor_shows_the_token_to_no_program_that_only_looks_like_the_server(project: Project, claim: str) -> None:
    """One of another user's, on the port of a server that does not run, answers what ours would answer."""
    seen: list[str] = []

    class Squatter(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(str(self.headers) + self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            for name, value in {"Fusewire-Exit-Code": "0", "Content-Length": "0"}.items():
                self.send_header(name, value)
            if claim:
                self.send_header("Fusewire-Proof", claim)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Squatter) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            install(project, "--http", "--port", str(server.server_address[1]))
            said = about_claude(project)
        finally:
            server.shutdown()
            thread.join()
    assert ("does not know the token" if claim else "is not Fusewire") in said
    assert seen
    assert kept_token("hooks") not in "".join(seen)


def test_a_proof_is_good_for_one_port_and_one_question(project: Project, served: Served) -> None:
    """Nobody can have ours answer for another server; without the token's file nothing is proven."""

    def proven(question: str) -> str:
        answer = served.request("POST", "/hooks/claude", "", {"Fusewire-Question": question})
        assert answer.status == 401
        return answer.headers.get("fusewire-proof", "")

    token, port = kept_token("hooks"), int(port_of(served))
    assert proven("a") == proof(token, port, "a") != proof(token, port + 1, "a")
    assert proven("b") != proven("a")
    assert proven("") == proven("a" * 101) == ""


def test_a_proxy_that_would_get_the_reports_is_found(
    project: Project, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code asks its proxy for 127.0.0.1 as well, unless it is told not to (measured on 2.1.325)."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    for name, value in {"NO_PROXY": "", "no_proxy": ""}.items():
        monkeypatch.setenv(name, value)
    assert "add 127.0.0.1 to NO_PROXY" in install(project, "--http", "--port", port_of(served)).stderr
    assert "a proxy is set: Claude Code sends its reports there" in about_claude(project)
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert about_claude(project) == ""


def test_hooks_of_another_version_are_found(project: Project, served: Served, settings: Path) -> None:
    """And mended in the way that they were installed."""
    install(project, "--http", "--port", port_of(served))
    settings.write_text(settings.read_text().replace('"timeout": 5', '"timeout": 2'))
    said = about_claude(project)
    assert "are those of another version of Fusewire" in said
    assert said.endswith(f"| fusewire install claude --http --port {port_of(served)}")


# -- in a session -------------------------------------------------------------------------------------------


def test_settings_without_the_reports_are_not_in_force(project: Project, settings: Path) -> None:
    """An agent that took only these out would be judged, but never counted."""
    install(project, "--http")
    session = Session(project)
    session.send("SessionStart", source="startup")
    changed = json.loads(settings.read_text())
    del changed["hooks"]["PostToolBatch"]
    settings.write_text(json.dumps(changed))
    said = session.send("ConfigChange", source="user_settings", file_path=str(settings))
    assert said.json["decision"] == "block"
    assert "take Fusewire's hooks out" in said.json["reason"]

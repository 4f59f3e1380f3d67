"""`fusewire doctor`: which agents are here, whether each is really guarded, and what to do where it is not."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents import AGENTS
from fusewire.agents.doctor import programs
from fusewire.agents.gemini.trust import trust_problems, undecided
from fusewire.agents.registry import CLIENTS
from fusewire.cli.doctor import _mending
from fusewire.config import user_state_folder
from fusewire.scopes.user import database_path
from tests.helpers import SOURCE
from tests.helpers.project import Project

#: Where each agent's hooks are registered, below the home folder.
USER = {name: f"{client.known.home.removeprefix('~/')}/{client.file}" for name, client in CLIENTS.items()}


def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with git and shells, and none of the agents that this machine may have."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("SHELL", "/bin/sh")
    return folder


def program(folder: Path, name: str, script: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def doctor(project: Project, *arguments: str, code: int | None = None) -> Any:
    """What it says as JSON. Every finding says what to do, and the text has the same findings."""
    done = project.run("doctor", *arguments, "--json")
    said = json.loads(done.stdout)
    assert done.returncode == (1 if said["findings"] else 0), done.stderr
    assert said["healthy"] is not bool(said["findings"])
    assert all(finding["what"] and finding["do"] for finding in said["findings"])
    assert "Traceback" not in done.stderr
    if code is not None:
        assert done.returncode == code, said["findings"]
    return said


def agent(said: Any, name: str) -> Any:
    return next(one for one in said["agents"] if one["name"] == name)


def found(said: Any, name: str) -> str:
    """All findings about an agent, with what to do."""
    return "\n".join(f"{one['what']} | {one['do']}" for one in said["findings"] if one["about"] == name)


def trust(changed: str = "") -> None:
    """What Codex writes down when a person accepts the hooks; the hash is of the words in which it keeps a hook."""
    file = home() / USER["codex"]
    lines = []
    for event, entries in json.loads(file.read_text())["hooks"].items():
        name = re.sub("([a-z])([A-Z])", r"\1_\2", event).lower()
        hook = {**entries[0]["hooks"][0], "async": False}
        hook["command"] += changed
        text = json.dumps({"event_name": name, "hooks": [hook]}, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        lines.append(f'[hooks.state."{file}:{name}:0:0"]\ntrusted_hash = "sha256:{digest}"\n')
    (file.parent / "config.toml").write_text("".join(lines))


# -- the agents -------------------------------------------------------------------------------------------


def test_a_machine_without_agents_is_in_order(project: Project) -> None:
    said = doctor(project, "--canary", code=0)
    assert [(one["name"], one["program"], one["registered"], one["canary"]) for one in said["agents"]] == [
        (name, None, [], None) for name in AGENTS
    ]
    text = project.run("doctor")
    assert (text.returncode, text.stdout.splitlines()[-1]) == (0, "all in order")
    assert f"\nnot here     {', '.join(AGENTS)} (not on the PATH)\n" in text.stdout


def test_an_agent_that_is_here_and_not_registered_is_shown_and_no_finding(project: Project, path: Path) -> None:
    file = program(path, "claude", "echo '2.1.325 (Claude Code)'; echo second line")
    said = doctor(project, code=0)
    assert (agent(said, "claude")["program"], agent(said, "claude")["version"]) == (str(file), "2.1.325 (Claude Code)")
    text = project.run("doctor")
    assert "not guarded; do: fusewire install claude" in text.stdout
    assert text.stdout.endswith("\nnothing is wrong; not guarded: claude (fusewire install claude)\n")
    assert (text.returncode, said["not_guarded"]) == (0, ["claude"])
    program(path, "codex", "echo 1")
    assert project.run("install", "claude").returncode == 0
    assert doctor(project, code=0)["not_guarded"] == ["codex"]
    (home() / USER["claude"]).write_text('{"disableAllHooks": true,' + (home() / USER["claude"]).read_text()[1:])
    assert "\n1 finding; not guarded: codex (fusewire install codex)\n" in project.run("doctor").stdout


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("printf '\\n  1.2 \\033[31m\\007\\377 x\\n'", "1.2 [31m\ufffd x"),
        ("exit 1", None),
        ("echo 1.0; exit 3", None),
        ("true", None),
        ("yes | head -c 100000", "y"),
        ("head -c 3000 /dev/zero | tr '\\0' z", "z" * 60),
        ("echo 3 >&2", None),
        ("sleep 60 & echo 7", "7"),
        ("sleep 60", None),
    ],
)
def test_whatever_a_program_says_of_its_version(
    path: Path, monkeypatch: pytest.MonkeyPatch, script: str, version: str | None
) -> None:
    """Nonsense, nothing, failures, too much, one that hangs, one that leaves something behind it: never more than a
    short line, and never longer than its time."""
    monkeypatch.setattr(programs, "_PATIENCE", 1 if script == "sleep 60" else 30)
    file = program(path, "gemini", script)
    start = time.monotonic()
    assert programs.version_of(str(file), "GEMINI_CLI_HOME") == version
    assert time.monotonic() - start < 30


def test_a_program_that_cannot_be_started_has_no_version(path: Path) -> None:
    file = path / "codex"
    file.write_bytes(b"\x7fELF nonsense")
    file.chmod(0o755)
    assert programs.version_of(str(file), "CODEX_HOME") is None


@pytest.mark.parametrize("name", AGENTS)
def test_asking_for_a_version_leaves_nothing_in_the_agents_folder(
    project: Project, path: Path, tmp_path: Path, name: str
) -> None:
    """Gemini CLI writes there even for that. Its home stays: version managers look for the program in it."""
    client = CLIENTS[name]
    seen = tmp_path / "seen"
    named = "$" + client.known.home_variable
    program(path, name, f'touch "{named}/left.tmp" && echo "{named}" >{seen}; echo "$HOME"')
    assert agent(doctor(project, code=0), name)["version"] == str(home())[:60]
    folder = Path(seen.read_text().strip())
    assert folder.is_absolute()
    assert not folder.exists()
    assert list(home().iterdir()) == []


# -- registered -------------------------------------------------------------------------------------------


def test_all_agents_registered_and_proven(project: Project) -> None:
    """The canary goes through each line as it stands in the settings; an allowed call is timed beside bare Python."""
    for name in AGENTS:
        assert project.run("install", name).returncode == 0
    trust()
    said = doctor(project, "--canary", code=0)
    for name in AGENTS:
        one = agent(said, name)
        (registered,) = one["registered"]
        assert (registered["scope"], registered["file"]) == ("user", str(home() / USER[name]))
        assert registered["events"] == sorted(CLIENTS[name].events)
        assert str(SOURCE / "hook.py") in registered["command"]
        canary = one["canary"]
        assert (canary["blocked"], canary["allows"]) == (True, True)
        assert canary["answer"].startswith("BLOCKED guard.")
        assert min(canary["bare_ms"], canary["allowed_ms"]) > 0
        assert canary["ratio"] > 0.5
    text = project.run("doctor", "--canary").stdout
    assert text.count("reader + snapshot, canary blocked, ") == len(AGENTS)
    assert "x bare Python" in text
    assert sorted(one.name for one in project.root.iterdir()) in ([".git"], [".fusewire", ".git"])


def test_a_hook_that_lets_everything_pass_is_found_by_the_canary_alone(project: Project, tmp_path: Path) -> None:
    """And one that refuses everything, and one that is only another program's exit code of 2."""
    fake = tmp_path / "other" / "fusewire" / "hook.py"
    fake.parent.mkdir(parents=True)
    fake.touch()
    assert project.run("install", "claude").returncode == 0
    file = home() / USER["claude"]
    file.write_text(file.read_text().replace(str(SOURCE / "hook.py"), str(fake)))
    for script, words in (
        ("", "did not refuse"),
        ("raise SystemExit(2)", "did not refuse"),
        ("import sys; sys.exit('BLOCKED nothing')", "did not refuse"),
        ("import sys; sys.stderr.write('BLOCKED all'); sys.exit(2)", "does not let a harmless call pass"),
        ("import sys; sys.stderr.write('odd news'); sys.exit(1)", "odd news"),
    ):
        fake.write_text(script)
        assert words not in found(doctor(project, code=1), "claude")
        said = doctor(project, "--canary", code=1)
        assert words in found(said, "claude")
        assert "fusewire install claude" in found(said, "claude")
    assert "belongs to another installation" in found(said, "claude")
    assert "NOT" in project.run("doctor", "--canary").stdout


@pytest.mark.parametrize("lost", ["hook.py", "python"])
def test_files_that_are_gone(project: Project, tmp_path: Path, lost: str) -> None:
    assert project.run("install", "gemini").returncode == 0
    file = home() / USER["gemini"]
    was = str(SOURCE / "hook.py") if lost == "hook.py" else sys.executable
    file.write_text(file.read_text().replace(was, str(tmp_path / "gone" / "fusewire" / lost)))
    said = doctor(project, "--canary", code=1)
    words = found(said, "gemini")
    assert f"{tmp_path}/gone/fusewire/{lost}, which is registered in {file}, is not there: nothing is guarded" in words
    assert "fusewire install gemini" in words
    assert agent(said, "gemini")["canary"]["blocked"] is False
    assert project.run("install", "gemini").returncode == 0
    doctor(project, "--canary", code=0)


def test_an_environment_that_was_moved_is_one_finding(project: Project) -> None:
    """Its Python and its hook are gone, and so the canary is not blocked either: one cause, one cure."""
    assert project.run("install", "claude").returncode == 0
    file = home() / USER["claude"]
    text = file.read_text().replace(str(SOURCE), "/gone/lib/fusewire").replace(sys.executable, "/gone/bin/python")
    file.write_text(text)
    for arguments in ((), ("--canary",)):
        (finding,) = doctor(project, *arguments, code=1)["findings"]
        assert finding["do"] == "fusewire install claude"
        what = "/gone/bin/python and /gone/lib/fusewire/hook.py, which are registered in "
        assert finding["what"] == f"{what}{file}, are not there: nothing is guarded"


def test_events_that_are_missing_and_entries_of_another_version(project: Project) -> None:
    """What `doctor` says to do mends it."""
    assert project.run("install", "claude", "--project").returncode == 0
    file = project.root / USER["claude"]
    whole = file.read_text()
    settings = json.loads(whole)
    del settings["hooks"]["PostToolBatch"]
    file.write_text(json.dumps(settings))
    said = doctor(project, code=1)
    assert f"not registered in {file} for PostToolBatch" in found(said, "claude")
    (finding,) = said["findings"]
    assert finding["do"] == "fusewire install claude --project"
    assert project.run(*shlex.split(finding["do"])[1:]).returncode == 0
    doctor(project, code=0)
    file.write_text(whole.replace('"timeout": 15', '"timeout": 5'))
    assert "another version" in found(doctor(project, code=1), "claude")
    entry = {"hooks": [{"type": "command", "command": "fusewire hook claude"}]}
    slow = {"hooks": {event: [entry] for event in CLIENTS["claude"].events}}
    file.write_text(json.dumps(slow))
    assert "fusewire, which is registered in" in found(doctor(project, code=1), "claude")


def test_the_slow_form_is_found(project: Project, path: Path) -> None:
    program(path, "fusewire", f'exec "{sys.executable}" -m fusewire "$@"')
    entry = {"hooks": [{"type": "command", "command": "fusewire hook claude"}]}
    file = home() / USER["claude"]
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": {event: [entry] for event in CLIENTS["claude"].events}}))
    said = doctor(project, "--canary", code=1)
    assert "works, but starts slowly" in found(said, "claude")
    assert agent(said, "claude")["canary"]["blocked"] is True


def test_registered_twice(project: Project) -> None:
    for arguments in (("claude",), ("claude", "--local"), ("gemini",), ("gemini", "--project"), ("copilot",)):
        assert project.run("install", *arguments).returncode == 0
    said = doctor(project, code=1)
    assert "registered 2 times (user, local)" in found(said, "claude")
    assert "fusewire uninstall claude --local" in found(said, "claude")
    assert found(said, "gemini") == "", "it runs the same line once"
    assert found(said, "copilot") == ""


def test_a_project_that_is_the_home_folder_is_registered_once(project: Project) -> None:
    root = home()
    (root / ".git").mkdir()
    assert Project(root).run("install", "claude").returncode == 0
    doctor(Project(root), code=0)


def test_switched_off(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any of the files that an agent reads; an agent that is not registered may be as it likes."""
    off = json.dumps({"disableAllHooks": True})
    places = {
        "claude": project.root / ".claude" / "settings.local.json",
        "copilot": project.root / ".github" / "copilot" / "settings.json",
        "gemini": tmp_path / "system.json",
    }
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(places["gemini"]))
    for name, file in places.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(off if name != "gemini" else '{"hooksConfig": {"enabled": false} // all of them\n}')
    doctor(project, code=0)
    for name, file in places.items():
        assert project.run("install", name).returncode == 0
        words = found(doctor(project, code=1), name)
        assert f"in {file} switches hooks off: nothing is guarded" in words
        file.unlink()
        assert found(doctor(project), name) == ""


def test_settings_that_the_agent_cannot_read(project: Project) -> None:
    """Claude Code skips a file with a comment in it, and all hooks in it, and says nothing."""
    assert project.run("install", "claude").returncode == 0
    file = home() / USER["claude"]
    file.write_text("// mine\n" + file.read_text())
    words = found(doctor(project, code=1), "claude")
    assert f"{file}: line 1 column 1: a comment; Claude Code cannot read that" in words
    assert f"mend {file}" in words


# -- trusted ----------------------------------------------------------------------------------------------


def test_codex_runs_only_what_a_person_has_trusted(project: Project) -> None:
    """Untrusted, trusted, changed since, switched off, all hooks off, a configuration that nobody can read."""
    assert project.run("install", "codex").returncode == 0
    config = home() / ".codex" / "config.toml"
    words = found(doctor(project, code=1), "codex")
    assert "they are not trusted | start `codex` and trust the hooks" in words
    trust()
    doctor(project, code=0)
    trusted = config.read_text()
    trust(changed=" ")
    assert "changed since you trusted them" in found(doctor(project, code=1), "codex")
    config.write_text(trusted.replace("\ntrusted_hash", "\nenabled = false\ntrusted_hash", 1))
    assert "they are switched off" in found(doctor(project, code=1), "codex")
    config.write_text(trusted + "[features]\nhooks = false\n")
    assert "features.hooks is false" in found(doctor(project, code=1), "codex")
    config.write_text("no toml")
    assert f"mend {config}" in found(doctor(project, code=1), "codex")


def test_hooks_of_a_project_need_a_trusted_folder(project: Project) -> None:
    for name in ("codex", "copilot"):
        assert project.run("install", name, "--project").returncode == 0
    said = doctor(project, code=1)
    assert "only in folders that are trusted" in found(said, "codex")
    assert "only in folders that are trusted" in found(said, "copilot")
    config = home() / ".copilot" / "config.json"
    config.parent.mkdir()
    config.write_text("// do not touch\n" + json.dumps({"trustedFolders": [str(project.root.parent)]}))
    codex = home() / ".codex" / "config.toml"
    codex.parent.mkdir()
    codex.write_text(f'[projects."{project.root}"]\ntrust_level = "trusted"\n')
    said = doctor(project, code=1)
    assert "folders that are trusted" not in found(said, "codex")
    assert found(said, "copilot") == ""


TRUST, PARENT, NEVER = "TRUST_FOLDER", "TRUST_PARENT", "DO_NOT_TRUST"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, "undecided"),
        ({"": TRUST}, "trusted"),
        ({"": NEVER}, "distrusted"),
        ({"..": TRUST}, "trusted"),
        ({"..": NEVER}, "distrusted"),
        ({"..": NEVER, "": TRUST}, "trusted"),
        ({"": NEVER, "..": TRUST}, "distrusted"),
        ({"sub": TRUST, "../other": NEVER, "../proj": NEVER}, "undecided"),
        ({"sub": PARENT}, "trusted"),
        ({"../other": PARENT}, "trusted"),
        ({"sub": PARENT, "": NEVER}, "trusted"),
        ({"../link": NEVER}, "distrusted"),
    ],
)
def test_whether_gemini_trusts_a_folder_is_decided_by_the_nearest_rule(
    project: Project, monkeypatch: pytest.MonkeyPatch, rules: dict[str, str], expected: str
) -> None:
    """As Gemini CLI 0.61.0 decides: without trust no hook runs, and undecided it does not run headless."""
    (project.root.parent / "link").symlink_to(project.root)
    client = CLIENTS["gemini"]
    file = home() / ".gemini" / "trustedFolders.json"
    file.parent.mkdir()
    if rules:
        named = {os.path.normpath(project.root / place): level for place, level in rules.items()}
        file.write_text("// mine\n" + json.dumps(named))
    root = str(project.root)
    assert (bool(trust_problems(client, root)), bool(undecided(client, root))) == (
        expected == "distrusted", expected == "undecided",
    )  # fmt: skip
    for name, value, trusted in (
        ("GEMINI_CLI_TRUST_WORKSPACE", "false", False),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true", True),
        ("GEMINI_RESTRICTED_MODE", "true", False),
    ):
        monkeypatch.setenv(name, value)
        assert [do for _, do in trust_problems(client, root)] == ([] if trusted else [f"unset {name}"])
        assert undecided(client, root) == []
    monkeypatch.delenv("GEMINI_RESTRICTED_MODE")
    monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE")
    (file.parent / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}}')
    assert (trust_problems(client, root), undecided(client, root)) == ([], [])


def test_gemini_in_a_folder_that_it_does_not_trust(project: Project) -> None:
    """Undecided is a note and no finding: nothing runs unguarded there. `install` says it, too."""
    done = project.run("install", "gemini")
    assert (done.returncode, "--skip-trust or GEMINI_CLI_TRUST_WORKSPACE=true" in done.stderr) == (0, True)
    said = doctor(project, code=0)
    (note,) = agent(said, "gemini")["notes"]
    assert "(exit code 55)" in note
    assert f"\n  note on gemini: {note}\n" in project.run("doctor").stdout
    file = home() / ".gemini" / "trustedFolders.json"
    file.write_text(json.dumps({str(project.root.parent): "DO_NOT_TRUST"}))
    words = found(doctor(project, code=1), "gemini")
    assert f"nothing is guarded: {project.root.parent} is DO_NOT_TRUST" in words
    assert "/permissions trust" in words
    assert str(file) in words
    for broken, what in (("{", "line 1"), ('{"/": "MAYBE"}', "'MAYBE'; allowed: TRUST_FOLDER"), ("[]", "an object")):
        file.write_text(broken)
        words = found(doctor(project, code=1), "gemini")
        assert what in words
        assert f"mend {file}" in words
    file.write_text(json.dumps({str(project.root): "TRUST_FOLDER"}))
    assert agent(doctor(project, code=0), "gemini")["notes"] == []


# -- the plugin -------------------------------------------------------------------------------------------


def test_the_plugin_is_a_registration(project: Project, tmp_path: Path, path: Path) -> None:
    """Found where Claude Code keeps it, proven through its own line, and not beside `fusewire install claude`."""
    folder = tmp_path / "cache" / "fusewire"
    (folder / "hooks").mkdir(parents=True)
    (folder / "src").symlink_to(SOURCE.parent)
    handler = {
        "type": "command",
        "command": "python3",
        "args": ["-I", "-S", "${CLAUDE_PLUGIN_ROOT}/src/fusewire/hook.py", "claude"],
    }
    events = {event: [{"hooks": [handler]}] for event in CLIENTS["claude"].events}
    (folder / "hooks" / "hooks.json").write_text(json.dumps({"hooks": events}))
    (path / "python3").symlink_to(sys.executable)
    known = home() / ".claude" / "plugins" / "installed_plugins.json"
    known.parent.mkdir(parents=True)
    copies = [{"scope": "user", "installPath": str(folder), "version": "1"}]
    known.write_text(json.dumps({"version": 2, "plugins": {"fusewire@somewhere": copies, "other@x": copies}}))
    assert agent(doctor(project, code=0), "claude")["registered"] == [], "it is not switched on"
    settings = home() / ".claude" / "settings.json"
    settings.write_text(json.dumps({"enabledPlugins": {"fusewire@somewhere": True, "other@x": True}}))
    said = doctor(project, "--canary", code=0)
    (registered,) = agent(said, "claude")["registered"]
    assert registered["scope"] == "plugin"
    assert agent(said, "claude")["canary"]["blocked"] is True
    (path / "python3").unlink()
    program(path, "python3", "exit 0")
    (finding,) = doctor(project, "--canary", code=1)["findings"]
    assert ("did not refuse" in finding["what"], finding["do"]) == (True, "claude plugin update fusewire")
    assert project.run("install", "claude").returncode == 0
    assert "registered 2 times (user, plugin)" in found(doctor(project, code=1), "claude")


# -- the project ------------------------------------------------------------------------------------------


def test_every_finding_of_the_project_says_what_to_do(project: Project) -> None:
    """A setting that cannot be used, a circuit without a constraint, a notice: in text and JSON, with their cure."""
    path = project.constraint("rule", "circuit_breaker: {violation_threshold: 1}\n")
    project.run("record", "rule", "--action", "x")
    path.unlink()
    project.constraint("other", "circuit_breaker: {cooldown_hours: 0}\n")
    said = doctor(project, code=1)
    assert sorted(one["do"] for one in said["findings"]) == ["change that setting", "fusewire archive rule"]
    text = project.run("doctor").stdout
    assert "2 findings\n" in text
    assert text.count("\n    do: ") == 2
    assert project.run("archive", "rule").returncode == 0
    assert [one["do"] for one in doctor(project, code=1)["findings"]] == ["change that setting"]


def test_what_cannot_be_written_says_what_can_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode, another owner, a disk that is mounted for reading only, something else in its place."""
    place = tmp_path / "it's"
    place.mkdir()
    damage = f"{place} cannot be written: violations cannot be recorded"
    name = shlex.quote(str(place))
    assert _mending(damage) == f"chmod u+w {name}"
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    assert _mending(damage).startswith(f"sudo chown -R {os.geteuid()} {name}, or work as its owner (")
    facts = os.statvfs(place)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*facts[:8], facts.f_flag | os.ST_RDONLY, facts[9])))
    assert _mending(damage).startswith(f"mount the disk of {name} for writing")
    place.rmdir()
    place.touch()
    assert _mending(damage).startswith(f"move {name} away")


def test_without_a_home_it_says_so(project: Project) -> None:
    done = project.run("doctor", env={"HOME": ""})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "HOME is ''" in done.stderr


def test_an_agent_may_look_and_its_own_variables_lead_no_canary_astray(project: Project) -> None:
    for name in AGENTS:
        assert project.run("install", name).returncode == 0
    trust()
    around = {
        "CLAUDECODE": "1",
        "CLAUDE_PROJECT_DIR": "/",
        "GEMINI_PROJECT_DIR": "/",
        "COPILOT_PROJECT_DIR": "/",
        "COPILOT_HOOK_DIR": "/",
        "FUSEWIRE_DEPTH": "99",
    }
    said = project.run("doctor", "--canary", "--json", env=around)
    assert said.returncode == 0, said.stdout
    assert [one["canary"]["blocked"] for one in json.loads(said.stdout)["agents"]] == [True] * len(AGENTS)
    assert project.run("doctor", "--acknowledge", env=around).returncode == 3


def own_findings(project: Project, *arguments: str) -> list[str]:
    return [one["what"] for one in doctor(project, *arguments)["findings"] if one["about"] == "your own state"]


def test_notices_of_the_person_s_own_store_are_shown_until_a_person_has_read_them(project: Project) -> None:
    assert own_findings(project, "--acknowledge") == []
    assert not os.path.exists(database_path()), "nothing is made by looking"
    assert project.run("halt", "--reason", "x").returncode == 0
    for name in ("user.db", "user.db-wal", "user.db-shm"):
        Path(user_state_folder(), name).unlink(missing_ok=True)
    Path(database_path()).write_text("no database")
    (damage,) = own_findings(project)
    assert "cannot be read" in damage
    assert "see: fusewire doctor" not in damage
    assert project.run("resume").returncode == 0  # writes, and rebuilds it
    (notice,) = own_findings(project)
    assert "user.db" in notice
    assert own_findings(project, "--acknowledge") == []
    assert own_findings(project) == []


def test_what_is_halted_is_said_by_the_doctor_too(project: Project) -> None:
    assert project.run("halt", "--reason", "the release").returncode == 0
    assert "HALTED: the agents of project" in project.run("doctor").stderr

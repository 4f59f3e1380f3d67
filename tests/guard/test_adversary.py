"""What adversaries found, held for good: ways past the hook, and honest calls that it stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.constraint.detect import runs
from fusewire.core.events import Event
from fusewire.engine.breaker import Breaker
from fusewire.engine.testing import Clock
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.tampering import disarming
from tests.helpers import SOURCE
from tests.helpers.project import Project

RULE = """circuit_breaker: {violation_threshold: 1, dedup_seconds: 0}
match:
  - command: [git push --force*, git push -f]
  - path: "migrations/**"
"""


@pytest.fixture
def tripped(project: Project) -> Project:
    """A project whose one constraint is open."""
    project.constraint("rule", RULE)
    project.run("record", "rule", "--action", "x")
    assert project.hook(project.bash("git push -f")).returncode == 2
    return project


def fits(line: str) -> bool:
    """Whether the hook would take a command line for `git push -f`."""
    return any(runs(words, ("git", "push", "-f")) for words in simple_commands(line))


@pytest.mark.parametrize(
    "line",
    [
        "sudo -Eu root git push -f",
        "env - PATH=/bin git push -f",
        "env -iu X git push -f",
        "timeout -vk 5 10 git push -f",
        "stdbuf --output L git push -f",
        "xargs -0n 1 git push -f",
        "exec -la x git push -f",
        "taskset 1 git push -f",
        "script -qc 'git push -f'",
        "git push -fu",
        "git push -uf origin main",
        "git -C app push -f",
        "git --no-pager -c a=b push -f",
        "/usr/bin/git push -f",
        "uv run --with x git push -f",
    ],
)
def test_wrappers_and_options_hide_nothing(line: str) -> None:
    """Whatever options a wrapper has, and wherever the short option stands."""
    assert fits(line)


@pytest.mark.parametrize(
    "line",
    [
        "git stash push -f",
        "git grep push -f pats.txt",
        "git checkout push -f",
        "git branch push -f",
        "git help push -f",
        "git push --follow-tags",
        "git push origin force-branch",
        "git push $x",
        "sudo apt install git push -x",
        "man git push",
        "timeout 5 echo git push -f",
        "sudo grep -rn git push -f x",
        "command -v git push -f",
        "git --no-pager stash push -f",
        "git -P branch push -f",
    ],
)
def test_what_only_looks_alike_is_harmless(line: str) -> None:
    """The subcommand is the first operand; other words of the same spelling are not it."""
    assert not fits(line)


def test_a_line_that_nests_its_text_again_and_again_is_answered(tripped: Project) -> None:
    """Bounded work: a hang would become a pass, because the agent's own time-out runs the tool."""
    nested = "a" * 6000 + "=" + "()" * 6000
    for _ in range(7):
        nested = f"echo $({nested}) | bash"
    assert tripped.hook(tripped.bash("git push -f\n" + nested)).returncode == 2
    assert tripped.hook(tripped.bash("ls\n" + nested)).returncode == 0


def test_a_new_repository_below_does_not_take_the_rules_away(tripped: Project) -> None:
    """An agent that was started in a subfolder cannot make a project of its own there."""
    sub = tripped.root / "sub"
    (sub / ".git").mkdir(parents=True)
    started = {"CLAUDE_PROJECT_DIR": str(sub)}
    assert tripped.hook(tripped.bash("git push -f", cwd=str(sub)), env=started).returncode == 2


DISARMING = [
    "env -u CLAUDECODE python3 -m fusewire.__main__ reset rule",
    "python3 -X dev -m fusewire reset rule",
    "fusewire record loop/score --ok",
    "fusewire record --ok --signal progress loop/no_progress",
    "fusewire record phase/GREEN --ok",
    "python /opt/bin/fusewire reset rule",
    "python src/fusewire/__main__.py reset rule",
    "uvx fusewire@latest reset rule",
    "pipx run --spec . fusewire reset rule",
    "fusewire --project . reset rule",
    "fusewire doctor --acknowledge",
    'python -c "from fusewire import Breaker; Breaker.open()._send(1)"',
    "python - <<E\nimport fusewire\nfusewire.Breaker.open()\nE",
    "fusewire attempt retry S-1",
    "fusewire attempt restore refs/fusewire/saved/S-1/000001",
    "fusewire attempt finish S-1 --force",
    "fusewire phase resolve reset",
    "fusewire phase start",
    "fusewire phase import state.json",
    "fusewire scope set S-1 .",
    "fusewire attempt run S-1 t --strategy x -- env -i fusewire attempt retry S-1",
    "fusewire run --max-iterations 1 --until 'fusewire phase start' -- true",
    "fusewire run fusewire phase start",
    "python -m fusewire attempt run S-1 t -- sh -c 'fusewire reset rule'",
    "python -c 'from fusewire import Attempts; Attempts.open().retry(1)'",
    "python -c 'from fusewire.breakers.attempt.scope.lock import ScopeLock'",
    "git update-ref -d refs/fusewire/checkpoints/S-1/000001",
    "git -c a=b -C . --no-pager update-ref -d refs/fusewire/saved/S-1/000001",
    "echo delete | git update-ref --stdin",
    "git push . :refs/fusewire/saved/S-1/000001",
]

HARMLESS = [
    "python3 tools/changelog.py --message 'fusewire: breaker.reset() now logs'",
    "python3 -m pytest -k 'fusewire and reset()'",
    "python -c \"print('fusewire is great'); cache.reset()\"",
    "python -c \"import fusewire; b = fusewire.Breaker.open('memory:'); b.reset('x')\"",
    "python -c 'from fusewire.guard.shell import simple_commands'",
    "fusewire reset --help",
    "fusewire record rule --ok",
    "fusewire check loop/score",
    "fusewire check config",
    "fusewire record x --action reset",
    "fusewire status",
    "git commit -m 'fusewire reset'",
    "echo fusewire reset",
    "fusewire attempt start S-1 test_retry",
    "fusewire attempt run S-1 test_a -- pytest -q",
    "fusewire attempt record S-1 retry --fail --strategy 'phase resolve'",
    "fusewire attempt finish S-1",
    "fusewire attempt report S-1 --best-hypothesis 'fusewire attempt retry'",
    "fusewire phase begin GREEN",
    "fusewire phase end GREEN --metric tests_passing=3",
    "fusewire scope justify S-1 a.py --test set --reason x --relationship y",
    "git show refs/fusewire/saved/S-1/000001",
    "git log --all",
    "git push origin main",
    "git fetch",
]


@pytest.mark.parametrize("line", DISARMING)
def test_disarming_is_seen_in_any_spelling(line: str) -> None:
    """By module, by file, by runner, with options, as code."""
    assert disarming(Event("before_tool", tool="Bash", command=line), simple_commands(line), ())


@pytest.mark.parametrize("line", HARMLESS)
def test_talking_about_fusewire_disarms_nothing(line: str) -> None:
    """Messages, tests, help, a breaker in memory, the commands that an agent may use."""
    assert disarming(Event("before_tool", tool="Bash", command=line), simple_commands(line), ()) == ""


def write(project: Project, path: str | Path, tool: str = "Write", field: str = "file_path") -> int:
    payload: dict[str, Any] = project.bash("", tool_name=tool, tool_input={field: str(path), "content": "x"})
    return project.hook(payload).returncode


def test_own_files_are_refused_behind_links_and_through_other_tools(tripped: Project) -> None:
    """The constraints' folder by its real path, the registration of the hook, the user's settings, MCP tools."""
    root = tripped.root
    (root / "docs/constraints").rename(root / "policies")
    (root / "docs/constraints").symlink_to(root / "policies")
    assert write(tripped, root / "policies/rule.md") == 2
    settings = root / ".claude/settings.json"
    settings.parent.mkdir()
    assert write(tripped, settings) == 2
    settings.write_text('{"hooks": {"PreToolUse": [{"hooks": [{"command": "python3 fusewire/hook.py claude"}]}]}}')
    assert write(tripped, settings) == 2
    assert write(tripped, Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire/config.toml") == 2
    assert write(tripped, root / "docs/constraints/rule.md", "mcp__filesystem__write_file", "path") == 2
    assert write(tripped, root / "docs/constraints/rule.md", "mcp__filesystem__read_file", "path") == 0
    assert write(tripped, root / "migrations/1.sql", "mcp__filesystem__edit_file", "path") == 2


def test_files_of_the_same_name_elsewhere_are_free(tripped: Project) -> None:
    """A pattern of the project speaks of the project."""
    assert write(tripped, tripped.root / "tests/data/fusewire.toml") == 0
    assert write(tripped, "/migrations/x.sql") == 0
    assert write(tripped, "/tmp/fusewire.toml") == 0


def test_commands_of_other_tools_are_read_too(tripped: Project) -> None:
    """An MCP shell may name its command otherwise, or give it as a list."""
    for tool_input in (
        {"cmd": "git push -f"},
        {"command": ["git", "push", "-f"]},
        {"command": "git", "args": ["push", "-f"]},
    ):
        payload = tripped.bash("", tool_name="mcp__shell__exec", tool_input=tool_input)
        assert tripped.hook(payload).returncode == 2, tool_input


def test_a_pipe_in_the_place_of_a_configuration_file_hangs_nothing(tripped: Project) -> None:
    """It is no file, and is said so."""
    os.mkfifo(tripped.root / "pyproject.toml")
    assert tripped.hook(tripped.bash("git push -f")).returncode == 2
    assert "not a regular file" in tripped.run("status").stderr


def test_a_refused_call_does_not_speak_for_a_probe() -> None:
    """While somebody's probe is under way, a call that is refused is recorded, and moves nothing."""
    clock = Clock()
    breaker = Breaker.open("memory:", clock=clock)
    for _ in range(5):
        clock.advance("1h")
        breaker.record("rule", "x")
    clock.advance("24h")
    assert breaker.check("rule").lease is not None
    event = Event("before_tool", tool="Bash", command="git push -f")
    (decision,) = breaker.enforce(["rule"], event)
    assert decision.verdict == "deny"
    assert "a probe is under way" in decision.reason
    offered = (*decision.next, *decision.by_person)
    assert not any("fusewire reset" in step for step in offered), "what cannot be reset now is not offered"
    assert (breaker.status("rule").state, breaker.status("rule").total) == ("HALF_OPEN", 6)


def test_a_broken_import_loses_nothing(project: Project) -> None:
    """The file stays known as somebody else's until its version is kept aside."""
    project.constraint("rule", "circuit_breaker: {dedup_seconds: 0}\n")
    project.run("record", "rule", "--action", "x")
    state = project.root / "docs/constraints/.circuit-state.json"
    state.write_text('{"rule": {')
    assert project.run("import").returncode == 1
    project.run("record", "rule", "--action", "y")
    assert (state.parent / ".circuit-state.json.edited-1").read_text() == '{"rule": {'


def test_a_failed_import_of_another_file_blames_nobody(project: Project, tmp_path: Path) -> None:
    """Our own state file is still ours."""
    project.constraint("rule")
    project.run("record", "rule", "--action", "x")
    other = tmp_path / "other.json"
    other.write_text("[]")
    for _ in range(3):
        assert project.run("import", str(other)).returncode == 1
    assert project.json("status")["warnings"] == []


def test_a_broken_archive_stops_no_command(project: Project) -> None:
    """It is set aside with a warning, and the retired circuit is archived."""
    path = project.constraint("rule")
    project.run("record", "rule", "--action", "x")
    archive = project.root / "docs/constraints/.circuit-state-archive.json"
    archive.write_text("broken")
    path.write_text(path.read_text().replace("id: rule", "id: rule\nstatus: retired"))
    result = project.run("enforce", "--tool", "Bash", "--command", "ls")
    assert result.returncode == 0
    assert "could not be read" in result.stderr
    assert (archive.parent / f"{archive.name}.corrupt-1").read_text() == "broken"
    assert '"total_violations": 1' in archive.read_text()


def test_a_circuit_whose_constraint_is_gone_is_still_shown(tripped: Project) -> None:
    """Removing the rule's file does not make its open circuit invisible."""
    (tripped.root / "docs/constraints/rule.md").unlink()
    shown = tripped.run("status", "--all")
    assert "OPEN (1)" in shown.stdout
    assert "its constraint is gone" in shown.stderr


def test_a_call_that_cannot_be_judged_in_time_is_denied(tripped: Project, tmp_path: Path) -> None:
    """Whatever blocks the hook, its own deadline of ten seconds comes before the agent's, and nothing on the way
    swallows it. Here it is one second, in a copy of the package."""
    copy = shutil.copytree(SOURCE, tmp_path / "fusewire")
    gate = (copy / "gate" / "process.py").read_text()
    assert gate.count("\n_DEADLINE = 10\n") == 1
    (copy / "gate" / "process.py").write_text(gate.replace("_DEADLINE = 10", "_DEADLINE = 1"))
    with (copy / "config" / "rules.py").open("a") as rules:
        rules.write("\n\ndef load_rules(root, keeps=False):\n    import time\n\n    time.sleep(30)\n")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(copy / "hook.py"), "claude"],
        input=json.dumps(tripped.bash("make")).encode(),
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(tripped.root)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 2
    assert b"no answer within 1 seconds" in answer.stderr


def test_a_project_inside_a_repository_is_the_same_for_the_hook_and_for_people(project: Project) -> None:
    """Where the constraints are is where the state is, whoever asks."""
    app = project.root / "app"
    (app / "docs/constraints").mkdir(parents=True)
    (app / "docs/constraints/rule.md").write_text(f"---\nid: rule\n{RULE}---\n")
    inside = Project(app)
    assert inside.run("record", "rule", "--action", "x").returncode == 0
    assert inside.hook(inside.bash("git push -f")).returncode == 2
    assert (app / ".fusewire/state.db").exists()


# -- an environment that was cleaned ---------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "COPILOT_CLI"])
def test_a_cleaned_environment_does_not_make_an_agent_a_person(project: Project, variable: str) -> None:
    """The agent's shell is still above, and what it was started with is on record."""
    reset = f"env -i {sys.executable} -m fusewire reset loop/no_progress --reason x"
    done = subprocess.run(
        ["bash", "-c", f"{reset}; exit $?"],
        cwd=project.root,
        env={**os.environ, variable: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert f"{variable} is set for the process " in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "claude --bare -p x",
        "claude --safe-mode -p x",
        """claude -p x --settings '{"disableAllHooks": true}'""",
        "claude --setting-sources=project -p x",
        "HOME=/tmp/x claude -p y",
        "export CLAUDE_CONFIG_DIR=/tmp; claude -p x",
        "codex exec --disable hooks x",
        "codex exec -c features.hooks=false x",
        "codex exec --ignore-user-config x",
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/tmp/a gemini -p x",
        "fusewire install claude",
        "fusewire uninstall codex",
    ],
)
def test_an_agent_starts_no_agent_without_its_hooks(project: Project, line: str) -> None:
    answer = project.hook(project.bash(line))
    assert answer.returncode == 2
    assert answer.stderr.startswith(b"BLOCKED fusewire.disarm: ")


@pytest.mark.parametrize(
    "line",
    [
        "codex exec 'fix the hooks'",
        "codex exec -c model=gpt-5.2 'disable hooks?'",
        "claude -p 'what does disableAllHooks do?'",
        "HOME=/tmp/x npm ci && cat docs/claude.md",
        "gemini -p 'explain --bare'",
        "fusewire install --help",
        "fusewire doctor --canary",
        "fusewire statusline",
    ],
)
def test_must_not_refuse_agents_with_their_hooks(project: Project, line: str) -> None:
    assert project.hook(project.bash(line)).returncode == 0


# -- locks of the state ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "flock .fusewire/recovery.lock sleep 999",
        "cd .fusewire && flock recovery.lock sleep 999",
        "cd .fusewire; sudo flock -n mirror.lock -c 'sleep 999' &",
        "(flock 9; sleep 9999) 9<.fusewire/recovery.lock &",
        "exec 9<.fusewire/recovery.lock; flock 9; sleep 9999",
        "flock /proc/self/fd/0 sleep 999 < .fusewire/recovery.lock",
        "d=.fusewire; flock -s $d/*.lock sleep 999",
        "ln -s $PWD/.fusewire/recovery.lock /tmp/mine; flock /tmp/mine sleep 999",
        "find . -name recovery.lock -exec flock {} sleep 999 ';'",
        "python3 -c \"import fcntl,time;f=open('.fusewire/recovery.lock');fcntl.flock(f,2);time.sleep(9999)\" &",
        'python3 -c \'import os, fcntl; os.chdir(".fusewire"); fcntl.lockf(os.open("mirror.lock", 0), 1); input()\'',
        "python3 -c 'import fcntl; fcntl.flock(9, 2); input()' 9<.fusewire/recovery.lock",
        "python3 - <<E\nimport fcntl\nf = open('.fusewire/recovery.lock')\nfcntl.flock(f, 2)\ninput()\nE",
        'perl -e \'open(F, "<", ".fusewire/recovery.lock"); flock(F, 2); sleep 999\'',
        "perl -e 'flock(STDIN, 2); sleep 999' < .fusewire/recovery.lock",
        "ruby -e 'File.open(\".fusewire/recovery.lock\").flock(File::LOCK_EX); sleep'",
    ],
)
def test_an_agent_holds_no_lock_of_the_state(project: Project, line: str) -> None:
    """Whoever may read a file may lock it: by a program, a descriptor, or code, in whatever folder."""
    state = project.root / ".fusewire"
    state.mkdir()
    for name in ("recovery.lock", "mirror.lock"):
        (state / name).touch()
    answer = project.hook(project.bash(line))
    assert answer.returncode == 2
    assert answer.stderr.startswith((b"BLOCKED guard.", b"BLOCKED fusewire.disarm: "))


@pytest.mark.parametrize(
    "line",
    [
        "flock /tmp/build.lock make",
        "flock -n build.lock -c 'npm ci'",
        "(flock 9; make) 9>/tmp/build.lock",
        "exec 9</tmp/build.lock; flock 9; cat .fusewire/audit.jsonl",
        "flock CLAUDE.md make",
        "lckdo /tmp/build.lock make",
        "grep -rn flock src",
        "grep flock .fusewire/audit.jsonl",
        "cat .fusewire/audit.jsonl | flock /tmp/build.lock wc -l",
        "ls -l .fusewire/recovery.lock; man flock",
        "python3 -c \"import fcntl; f = open('/tmp/build.lock'); fcntl.flock(f, fcntl.LOCK_EX)\"",
        "python3 -c \"print(open('.fusewire/audit.jsonl').read())\"",
        "git commit -m 'flock .fusewire/recovery.lock'",
    ],
)
def test_must_not_refuse_other_locks(project: Project, line: str) -> None:
    (project.root / ".fusewire").mkdir()
    for name in (".fusewire/recovery.lock", "CLAUDE.md"):
        (project.root / name).touch()
    assert project.hook(project.bash(line)).returncode == 0

"""A person's halt and pause as agents meet them: hooks of all four clients, and agents that will not have it."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from fusewire.breakers.session.state import LaneMemory, SessionMemory, lane_name, session_name
from fusewire.config import user_state_folder
from fusewire.engine.breaker import Breaker
from fusewire.scopes.orders import read_orders
from tests.helpers.clients import CLIENTS, Client, answered
from tests.helpers.project import Project

SESSION = Client("claude", Path()).session


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, project: Project) -> Client:
    return Client(request.param, project.root)


def done(project: Project, *arguments: str) -> str:
    ended = project.run(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_halt_stops_the_next_call_of_every_client_until_a_person_resumes(client: Client, project: Project) -> None:
    assert client.shell("ls").allowed
    done(project, "halt", "--reason", "wrong branch")
    refused = client.shell("ls", "call_2")
    assert not refused.allowed
    assert "a person has halted the agents of this project" in refused.text
    assert "wrong branch" in refused.text
    assert "fusewire allow-once" not in refused.text
    assert len(refused.text) <= 600
    done(project, "resume")
    assert client.shell("ls", "call_3").allowed


def test_a_session_s_halt_stops_that_session_alone(client: Client, project: Project) -> None:
    client.shell("ls")
    done(project, "halt", "--session", SESSION[:8], "--reason", "x")
    assert not client.shell("ls").allowed
    assert Client(client.name, project.root, "another").shell("ls").allowed


def test_sub_agents_and_reading_tools_are_stopped_too(project: Project) -> None:
    client = Client("claude", project.root)
    done(project, "halt", "--all", "--reason", "x")
    assert not client.before("Read", {"file_path": "README.md"}).allowed
    assert not client.before("Bash", {"command": "ls"}, agent_id="a1").allowed


def test_a_halt_reaches_many_hooks_at_once(project: Project) -> None:
    sessions = [Client(CLIENTS[number % 4], project.root, f"s{number}") for number in range(16)]
    assert all(answered(one.start(*one.in_shell("ls"))).allowed for one in sessions[:4])
    done(project, "halt", "--all", "--reason", "x")
    began = [one.start(*one.in_shell("ls")) for one in sessions]
    assert [answered(one).allowed for one in began] == [False] * 16


def test_after_a_resume_no_count_of_the_session_has_moved(project: Project) -> None:
    client = Client("claude", project.root)

    def memories() -> list[object]:
        with Breaker.open(project=project.root) as breaker:
            state = SessionMemory.recalled(breaker.store, session_name(SESSION))
            lane = LaneMemory.recalled(breaker.store, lane_name(SESSION, ""))
            return [state.to_data(), lane.to_data()]

    client.shell("make test")
    before = memories()
    done(project, "halt", "--reason", "x")
    for number in range(6):
        assert not client.shell("make test", f"call_{number}").allowed
    done(project, "resume")
    assert memories() == before
    assert client.shell("ls", "call_9").allowed


def test_an_agent_that_wants_to_stop_may_and_no_stop_hook_keeps_it_going(project: Project) -> None:
    done(project, "halt", "--reason", "x")
    client = Client("claude", project.root)
    stopping = client.before("", {}, hook_event_name="Stop", stop_hook_active=False)
    assert (stopping.code, stopping.output) == (0, "")
    kept_going = client.before("", {}, hook_event_name="Stop", stop_hook_active=True)
    assert json.loads(kept_going.output)["continue"] is False


def test_a_prompt_is_refused_with_the_reason(project: Project) -> None:
    done(project, "halt", "--reason", "wrong branch")
    answer = Client("claude", project.root).before("", {}, hook_event_name="UserPromptSubmit", prompt="go on")
    assert json.loads(answer.output)["continue"] is False
    assert "wrong branch" in answer.output


def test_what_was_refused_is_on_record(project: Project) -> None:
    client = Client("claude", project.root)
    done(project, "halt", "--reason", "x")
    client.shell("make test")
    with Breaker.open(project=project.root) as breaker:
        doings = [(one.kind, one.text) for one in breaker.store.doings(SESSION)]
    assert ("refused", "fusewire.halt: make test") in doings


def test_a_lost_folder_keeps_the_project_halted_and_says_so(client: Client, project: Project) -> None:
    done(project, "halt", "--reason", "x")
    shutil.rmtree(user_state_folder())
    refused = client.shell("ls")
    assert not refused.allowed
    assert "this project's copy holds" in refused.text
    assert "HALTED" in project.run("status", "--all").stderr
    assert "every agent of this project: x" in project.run("status").stdout
    done(project, "resume")
    assert client.shell("ls", "call_2").allowed


def test_a_project_that_was_not_known_when_everything_was_halted_gets_its_copy_from_its_first_call(
    project: Project, tmp_path: Path
) -> None:
    later = shutil.copytree(project.root, tmp_path / "later")
    done(project, "halt", "--all", "--reason", "x")
    client = Client("claude", later)
    assert not client.shell("ls").allowed
    shutil.rmtree(user_state_folder())
    assert not client.shell("ls", "call_2").allowed


# -- paused ---------------------------------------------------------------------------------------------------


@pytest.fixture
def specs(project: Project) -> Path:
    folder = project.root / "specs"
    folder.mkdir()
    (folder / "a.md").write_text("a\n")
    return folder


def test_a_paused_rule_only_logs_and_is_enforced_again(client: Client, project: Project, specs: Path) -> None:
    assert not client.shell("rm specs/a.md").allowed
    done(project, "pause", "guard.*", "--for", "1h", "--reason", "a big move")
    assert client.shell("rm specs/a.md", "call_2").allowed
    with Breaker.open(project=project.root) as breaker:
        logged = [one.text for one in breaker.store.doings(SESSION) if one.kind == "logged"]
    assert any(text.startswith("guard.rm: deny") for text in logged)
    done(project, "pause", "--end")
    assert not client.shell("rm specs/a.md", "call_3").allowed


def test_a_pause_of_another_rule_changes_nothing(project: Project, specs: Path) -> None:
    done(project, "pause", "tool.cycle", "--for", "1h", "--reason", "x")
    assert not Client("claude", project.root).shell("rm specs/a.md").allowed


def test_what_a_paused_guard_let_pass_is_not_undone_afterwards(project: Project, specs: Path) -> None:
    client = Client("claude", project.root)
    client.shell("make")
    client.before("Bash", {"command": "make"}, hook_event_name="PostToolUse", tool_response={"stdout": ""})
    done(project, "pause", "guard.*", "--for", "1h", "--reason", "x")
    assert client.shell("rm specs/a.md", "call_2").allowed
    (specs / "a.md").unlink()
    after = client.before(
        "Bash", {"command": "rm specs/a.md"}, "call_2", hook_event_name="PostToolUse", tool_response={"stdout": ""}
    )
    assert after.allowed, after
    assert not (specs / "a.md").exists()
    done(project, "pause", "--end")
    assert client.shell("ls -la", "call_3").allowed
    assert client.shell("make", "call_4").allowed
    assert not (specs / "a.md").exists()


def test_a_session_that_a_rule_has_halted_goes_on_while_that_rule_is_paused(project: Project, specs: Path) -> None:
    client = Client("claude", project.root)
    for number in range(3):
        halted = client.shell("rm specs/a.md", f"call_{number}")
    assert "HALTED" in halted.output
    assert not client.shell("make", "call_5").allowed
    done(project, "pause", "guard.*", "--for", "1h", "--reason", "x")
    assert client.shell("make", "call_6").allowed


def test_a_pause_that_has_ended_is_none(project: Project, specs: Path) -> None:
    done(project, "pause", "--for", "500ms", "--reason", "x")
    assert read_orders().pauses
    time.sleep(0.6)
    assert not Client("claude", project.root).shell("rm specs/a.md").allowed
    assert "PAUSED" not in project.run("status").stderr


# -- an agent that will not have it ---------------------------------------------------------------------------

COMMANDS = [
    "fusewire resume",
    "fusewire resume --all --reason mine",
    "fusewire halt --all --reason mine",
    "fusewire pause --for 24h --reason mine",
    "fusewire pause guard.* --for 24h --reason mine",
    "fusewire allow-once ABCDEFGH",
    "fusewire --project . resume",
    "python3 -m fusewire resume",
    "python3 -Im fusewire allow-once ABCDEFGH",
    "env -u CLAUDECODE fusewire resume",
    "env XDG_STATE_HOME=/tmp/mine fusewire resume",
    "XDG_STATE_HOME=/tmp/mine fusewire resume",
    "bash -c 'fusewire resume'",
    "nohup setsid fusewire resume &",
    "echo fusewire resume | at now",
    "tmux send-keys 'fusewire resume' Enter",
    "tmux new -d 'fusewire allow-once ABCDEFGH'",
    "rm {state}/orders.json",
    "rm -rf {state}",
    "rm -rf $XDG_STATE_HOME/fusewire",
    "rm -rf {above}",
    "mv {state} {above}/mine",
    "mv {above} {above}-mine",
    "cd {above} && rm -r fusewire",
    "find {above} -name orders.json -delete",
    "echo '{{}}' > {state}/orders.json",
    "echo '{{}}' | tee {state}/orders.json",
    "cp mine.json {state}/orders.json",
    "ln -sf $PWD/mine.json {state}/orders.json",
    "sed -i s/true/false/ {state}/orders.json",
    "truncate -s 0 {state}/orders.json",
    "sqlite3 {state}/user.db 'delete from audit'",
    "python3 -c 'import os; os.remove(\"{state}/orders.json\")'",
    'python3 -c \'open("{state}/orders.json", "w").write("x")\'',
    "python3 -c 'from fusewire.scopes import order_changes; order_changes.resume(print, None, str(), str(), 0)'",
    "python3 - <<'E'\nfrom fusewire.scopes.order_changes import change_orders\nE",
    "rm .fusewire/halts.json",
    "rm -rf .fusewire",
    "echo '{{}}' > .fusewire/halts.json",
    "XDG_STATE_HOME=/tmp/mine claude -p hello",
    "HOME=/tmp/mine claude -p hello",
    "env XDG_STATE_HOME=/tmp/mine codex exec hello",
    'curl -X POST -H "Authorization: Bearer $(cat {state}/halt.token)" http://127.0.0.1:3873/api/v1/resume',
    'curl -d \'{{"scope": "all"}}\' http://127.0.0.1:3873/api/v1/resume',
]

FILES = [
    "{state}/orders.json",
    "{state}/user.db",
    "{state}/halt.token",
    "{root}/.fusewire/halts.json",
    "{root}/.fusewire/circuits.db",
    "{root}/.claude/settings.json",
    "{root}/.claude/settings.local.json",
    "{root}/fusewire.toml",
]


def filled(text: str, root: Path) -> str:
    state = user_state_folder()
    return text.format(state=state, above=os.path.dirname(state), root=root)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_line_lifts_an_order_even_while_every_rule_is_paused(project: Project, command: str) -> None:
    """It is refused in a project that is not halted itself: in one that is, every call is."""
    done(project, "pause", "--for", "1h", "--reason", "x")
    (project.root / "mine.json").write_text("{}")
    refused = Client("claude", project.root).shell(filled(command, project.root))
    assert not refused.allowed, refused
    assert "fusewire." in refused.text or "guard." in refused.text


@pytest.mark.parametrize("name", FILES)
def test_no_edit_tool_writes_an_order_even_while_every_rule_is_paused(
    client: Client, project: Project, name: str
) -> None:
    done(project, "pause", "--for", "1h", "--reason", "x")
    assert not client.writes(filled(name, project.root)).allowed


@pytest.mark.parametrize("tool", ["mcp__files__write_file", "mcp__files__move_file", "mcp__files__delete"])
def test_no_tool_of_another_server_does_either(project: Project, tool: str) -> None:
    done(project, "pause", "--for", "1h", "--reason", "x")
    path = filled("{state}/orders.json", project.root)
    assert not Client("claude", project.root).before(tool, {"path": path, "content": "{}"}).allowed


@pytest.mark.parametrize("command", COMMANDS[:3] + COMMANDS[5:6] + COMMANDS[17:19] + COMMANDS[32:33])
def test_the_shell_tool_of_every_client_is_refused_alike(client: Client, project: Project, command: str) -> None:
    done(project, "pause", "--for", "1h", "--reason", "x")
    assert not client.shell(filled(command, project.root)).allowed


def test_an_edit_through_a_link_writes_no_order(project: Project) -> None:
    done(project, "pause", "--for", "1h", "--reason", "x")
    (project.root / "mine").symlink_to(user_state_folder())
    (project.root / "one.json").symlink_to(Path(user_state_folder()) / "orders.json")
    client = Client("claude", project.root)
    assert not client.writes(project.root / "mine" / "orders.json").allowed
    assert not client.writes(project.root / "one.json").allowed
    assert not client.shell("echo x > mine/orders.json").allowed


@pytest.mark.parametrize("command", ["cat {state}/orders.json", "ls {state}", "echo 'fusewire resume' > notes.txt",
                                     "grep -rn 'fusewire resume' docs", "git commit -m 'halt: say fusewire resume'",
                                     "fusewire status", "fusewire pause --help"])  # fmt: skip
def test_reading_and_writing_about_it_is_allowed(project: Project, command: str) -> None:
    done(project, "pause", "tool.cycle", "--for", "1h", "--reason", "x")
    assert Client("claude", project.root).shell(filled(command, project.root)).allowed


@pytest.mark.parametrize("act", [["halt", "--reason", "x"], ["resume"], ["pause", "--for", "1h", "--reason", "x"],
                                 ["pause", "--end"], ["allow-once", "ABCDEFGH"]])  # fmt: skip
def test_inside_an_agent_every_one_of_the_commands_is_refused(project: Project, act: list[str]) -> None:
    refused = project.run(*act, env={"CLAUDECODE": "1"})
    assert refused.returncode == 3
    assert "is for a person" in refused.stderr
    assert not Path(user_state_folder(), "orders.json").exists()


def test_an_agent_that_goes_on_is_ended_and_one_with_many_calls_in_a_reply_is_not(project: Project) -> None:
    """Parallel calls of one reply are one refusal."""
    done(project, "halt", "--reason", "x")
    client = Client("claude", project.root)
    for one in [client.start(*client.in_shell("ls"), f"call_{number}") for number in range(8)]:
        assert not answered(one).allowed
    with Breaker.open(project=project.root) as breaker:
        ((name, _),) = breaker.store.remembered("ordered/")
        assert json.dumps(breaker.store.recall(name)).count('"times"') == 1
        assert breaker.store.recall(name)["times"] <= 3

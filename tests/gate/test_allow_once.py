"""`fusewire allow-once`: the refused call that a person lets pass, exactly that one and exactly once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusewire.config import user_state_folder
from fusewire.scopes.orders import read_orders
from fusewire.scopes.user import open_user_store
from tests.helpers.clients import CLIENTS, Client, HookAnswer, answered
from tests.helpers.project import Project

CODE = re.compile(r"fusewire allow-once ([A-Z2-9]{5})(\nWhy: fusewire why \1)?\s*$")


@pytest.fixture
def attended(project: Project) -> Project:
    """A project in which a person sits at every session, with two protected documents."""
    (project.root / "fusewire.toml").write_text('profile = "attended"\n')
    (project.root / "specs").mkdir()
    for name in "ab":
        (project.root / "specs" / f"{name}.md").write_text(f"{name}\n")
    return project


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, attended: Project) -> Client:
    return Client(request.param, attended.root)


def code_in(answer: HookAnswer) -> str:
    assert not answer.allowed
    found = CODE.search(answer.text)
    assert found, answer
    assert len(answer.text) <= 600
    return found[1]


def allow(project: Project, code: str) -> str:
    done = project.run("allow-once", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def after(client: Client, command: str, call: str) -> HookAnswer:
    return client.before(
        *client.in_shell(command), call, hook_event_name="PostToolUse", tool_response={"stdout": "", "stderr": ""}
    )


def test_the_call_passes_once_after_a_person_has_typed_the_code(client: Client, attended: Project) -> None:
    code = code_in(client.shell("rm specs/a.md"))
    assert "rm specs/a.md" in allow(attended, code)
    assert client.shell("rm specs/a.md", "call_2").allowed
    assert not client.shell("rm specs/a.md", "call_3").allowed


def test_until_a_person_has_typed_it_the_code_changes_nothing(client: Client) -> None:
    code_in(client.shell("rm specs/a.md"))
    assert not client.shell("rm specs/a.md", "call_2").allowed


def test_a_call_that_was_refused_twice_has_two_codes_and_passes_once(attended: Project) -> None:
    """Whichever of them the person has before the eyes; the other one is used up with it."""
    client = Client("claude", attended.root)
    codes = [code_in(client.shell("rm specs/a.md", f"call_{number}")) for number in range(2)]
    assert codes[0] != codes[1]
    assert f"fusewire allow-once {codes[0]}" in attended.run("why", codes[0]).stdout
    allow(attended, codes[0])
    assert attended.run("allow-once", codes[1]).returncode == 1
    assert client.shell("rm specs/a.md", "call_3").allowed
    assert not client.shell("rm specs/a.md", "call_4").allowed
    assert "allow-once" not in attended.run("why", codes[0]).stdout


def test_an_edit_tool_s_call_passes_too(client: Client, attended: Project) -> None:
    attended.constraint("no-vendor", 'match: {path: "vendor/**"}\nmode: block\n')
    path = attended.root / "vendor" / "a.py"
    allow(attended, code_in(client.writes(path, "x = 1")))
    assert not client.writes(path, "x = 2").allowed, "another content is another call"
    assert client.writes(path, "x = 1").allowed


def test_another_command_session_folder_or_sub_agent_does_not_pass(attended: Project) -> None:
    client = Client("claude", attended.root)
    allow(attended, code_in(client.shell("rm specs/a.md")))
    assert not client.shell("rm specs/b.md", "call_2").allowed
    assert not client.shell("rm  specs/a.md", "call_2").allowed
    assert not Client("claude", attended.root, "another").shell("rm specs/a.md").allowed
    given = {"command": "rm specs/a.md"}
    assert not client.before("Bash", given, "call_2", agent_id="a1").allowed
    assert not client.before("Bash", {"command": "rm ../specs/a.md"}, cwd=str(attended.root / "specs")).allowed
    assert client.shell("rm specs/a.md", "call_4").allowed


def test_of_the_same_call_in_parallel_exactly_one_passes(attended: Project) -> None:
    client = Client("claude", attended.root)
    allow(attended, code_in(client.shell("rm specs/a.md")))
    began = [client.start(*client.in_shell("rm specs/a.md"), f"call_{number}") for number in range(2, 10)]
    assert [answered(one).allowed for one in began].count(True) == 1


def test_what_it_changed_is_not_undone_and_the_next_loss_is(attended: Project) -> None:
    """The snapshot of the protected files takes what was allowed for right, and nothing else."""
    client = Client("claude", attended.root)
    client.shell("make")
    after(client, "make", "call_1")
    allow(attended, code_in(client.shell("rm specs/a.md", "call_2")))
    assert client.shell("rm specs/a.md", "call_3").allowed
    (attended.root / "specs" / "a.md").unlink()
    assert after(client, "rm specs/a.md", "call_3").output == ""
    assert client.shell("make", "call_4").allowed
    (attended.root / "specs" / "b.md").unlink()
    assert "guard.integrity" in after(client, "make", "call_4").output
    assert (attended.root / "specs" / "b.md").exists()
    assert not (attended.root / "specs" / "a.md").exists()


def test_a_call_that_was_refused_until_the_session_was_halted_passes(attended: Project) -> None:
    client = Client("claude", attended.root)
    codes = {code_in(client.shell("rm specs/a.md", f"call_{number}")) for number in range(3)}
    assert not client.shell("make", "call_5").allowed, "the session is halted"
    allow(attended, codes.pop())
    assert client.shell("rm specs/a.md", "call_6").allowed


def test_a_call_that_a_session_s_limit_refused_passes(attended: Project) -> None:
    client = Client("codex", attended.root)  # it cannot ask the person, so that it refuses
    refused = client.shell("ls")
    for number in range(12):
        refused = client.shell("git push", f"call_{number}")
        after(client, "git push", f"call_{number}")
        if not refused.allowed:
            break
    allow(attended, code_in(refused))
    assert client.shell("git push", "call_20").allowed


@pytest.mark.parametrize(
    "command",
    ["fusewire reset loop", "rm -rf .fusewire", "fusewire allow-once ABCDEFGH", "rm -rf .claude specs fusewire.toml"],
)
def test_what_keeps_fusewire_itself_has_no_code(attended: Project, command: str) -> None:
    refused = Client("claude", attended.root).shell(command)
    assert not refused.allowed
    assert not CODE.search(refused.text)


def test_a_halt_has_no_code_and_is_stronger_than_one(attended: Project) -> None:
    client = Client("claude", attended.root)
    allow(attended, code_in(client.shell("rm specs/a.md")))
    assert attended.run("halt", "--reason", "x").returncode == 0
    refused = client.shell("rm specs/a.md", "call_2")
    assert not refused.allowed
    assert not CODE.search(refused.text)
    attended.run("resume")
    assert client.shell("rm specs/a.md", "call_3").allowed, "the halt has not used it up"


def test_where_nobody_sees_the_message_there_is_no_code(project: Project) -> None:
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("a\n")
    refused = Client("claude", project.root).shell("rm specs/a.md")
    assert not refused.allowed
    assert "allow-once" not in refused.text
    assert not Path(user_state_folder(), "user.db").exists()


def test_an_allowed_call_costs_no_look_at_the_person_s_store(attended: Project) -> None:
    assert Client("claude", attended.root).shell("ls").allowed
    assert not Path(user_state_folder(), "user.db").exists()


@pytest.mark.parametrize("wrong", ["", "ABC", "ABCDEFGH", "--", "\x1b[31m", "é" * 300])
def test_a_code_that_is_none_is_one_clear_line(attended: Project, wrong: str) -> None:
    done = attended.run("allow-once", "--", wrong)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: no call was refused with the code")
    assert "\x1b" not in done.stderr
    assert not read_orders().once


def test_a_code_is_used_once_and_may_be_typed_in_small_letters_anywhere(attended: Project, tmp_path: Path) -> None:
    code = code_in(Client("claude", attended.root).shell("rm specs/a.md"))
    elsewhere = Project(tmp_path)
    assert "Allowed once" in allow(elsewhere, code.lower())
    assert elsewhere.run("allow-once", code).returncode == 1


def test_it_is_audited_with_what_it_allowed(attended: Project) -> None:
    code = code_in(Client("claude", attended.root).shell("rm specs/a.md"))
    allow(attended, code)
    (row,) = open_user_store().audit_of(f"once/{code}")
    assert (row.cause, row.reason) == ("allow-once", "guard.rm: rm specs/a.md")
    assert row.actor


def test_a_hostile_command_is_shown_without_its_control_characters(attended: Project) -> None:
    command = "rm specs/a.md # \x1b[2K\rls"
    printed = allow(attended, code_in(Client("claude", attended.root).shell(command)))
    assert "\x1b" not in printed
    assert "rm specs/a.md" in printed


def test_a_long_message_keeps_its_code_and_its_next_step(attended: Project) -> None:
    names = [f"specs/{'long-name-' * 8}{number}.md" for number in range(6)]
    for name in names:
        (attended.root / name).write_text("x\n")
    refused = Client("claude", attended.root).shell(f"rm {' '.join(names)}")
    assert code_in(refused)
    assert "Next:" in refused.text

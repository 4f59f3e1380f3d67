"""Told, refused, halted: at any pace, and only what is the same again. Real store, a clock of its own, no processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.claude.hooks import AGENT
from fusewire.breakers.session.tool_calls import ToolCallBreakers
from fusewire.core.decision import Decision
from fusewire.engine.breaker import default_rules
from fusewire.guard.plain import only_look, plain_commands
from fusewire.stores.sqlite import SqliteStore

ROOT = "/home/dev/project"


class Agent:
    """Claude Code in one session, that makes a call every so many seconds, whatever it is answered."""

    def __init__(self, folder: Path, *, pace: float = 5, attended: bool = False) -> None:
        self.store = SqliteStore(str(folder / "state.db"))
        self.now, self.pace, self.calls = 1_700_000_000.0, pace, 0
        clock = lambda: self.now  # noqa: E731
        self.watch = ToolCallBreakers(self.store, default_rules(), clock, is_attended=attended, asks=attended)
        self.reasons: list[str] = []

    def send(self, hook: str, **fields: Any) -> Decision:
        event = AGENT.parse({"session_id": "s", "hook_event_name": hook, "cwd": ROOT, **fields}, ROOT)
        assert event is not None
        plain = plain_commands(event.command) if event.command else []
        return self.watch.handle(event, plain, looks=plain is not None and bool(plain) and only_look(plain))

    def begin(self, tool: str, **given: Any) -> tuple[Decision, dict[str, Any]]:
        self.calls += 1
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{self.calls}"}
        return self.send("PreToolUse", **call), call

    def end(self, call: dict[str, Any], result: str, *, failed: bool = False) -> Decision:
        hook, given = ("PostToolUseFailure", "error") if failed else ("PostToolUse", "tool_response")
        return self.send(hook, **call, **{given: result})

    def reply(self, *results: tuple[str, dict[str, Any], str, bool]) -> str:
        """All calls of one reply, before any of them has ended: a letter for each, as `calls` has them."""
        self.now += self.pace
        begun = [(self.begin(tool, **given), result, failed) for tool, given, result, failed in results]
        letters, batch = "", []
        for (answer, call), result, failed in begun:
            after = answer
            if answer.allowed or answer.verdict == "ask":
                after = self.end(call, result, failed=failed)
            self.reasons.append("\n".join(filter(None, {answer.text: 0, after.text: 0})))
            shown = result if after is not answer else f"PreToolUse:{call['tool_name']} hook error: {answer.text}"
            batch.append({**call, "tool_response": shown})
            letters += {"allow": "t" if after.verdict == "tell" else ".", "tell": "t", "ask": "a", "deny": "x"}.get(
                answer.verdict, "H"
            )
        self.send("PostToolBatch", tool_calls=batch)
        return letters

    def bash(self, command: str, result: str = "", *, failed: bool = False) -> str:
        return self.reply(("Bash", {"command": command}, result, failed))

    def edit(self, path: str, text: str = "x", result: str = "done", *, failed: bool = False) -> str:
        given = {"file_path": f"{ROOT}/{path}", "old_string": "a", "new_string": text}
        return self.reply(("Edit", given, result, failed))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def attended(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, attended=True)
    yield made
    made.store.close()


# -- at any pace --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", [0.1, 1, 2, 5, 15, 29, 30, 31, 61, 120, 600])
def test_the_same_call_with_the_same_result_is_told_refused_and_halted(tmp_path: Path, pace: float) -> None:
    agent = Agent(tmp_path, pace=pace)
    said = "".join(agent.bash("./status.sh", "down") for _ in range(12))
    agent.store.close()
    assert said.startswith("...ttx"), "the first call after the trip is refused, however late it comes"
    assert "H" in said[:10]


@pytest.mark.parametrize("pace", [0.1, 2, 15, 31, 600])
def test_the_same_change_whatever_its_result_is_told_refused_and_halted(tmp_path: Path, pace: float) -> None:
    """A trial that brings another result is no good one: the same change was made again."""
    agent = Agent(tmp_path, pace=pace)
    said = "".join(agent.edit("a.py", result=f"line {number}") for number in range(12))
    agent.store.close()
    assert said.startswith("..ttx")
    assert "H" in said[:10]


@pytest.mark.parametrize("pace", [2, 31, 600])
def test_a_trial_that_brings_something_new_closes(tmp_path: Path, pace: float) -> None:
    agent = Agent(tmp_path, pace=pace)
    said = "".join(agent.bash("./status.sh", "down") for _ in range(6))
    assert said == "...ttx"
    agent.now += 31
    assert agent.bash("./status.sh", "up") == "."
    assert [agent.bash("./status.sh", f"up {number}") for number in range(5)] == ["."] * 5
    agent.store.close()


# -- what is a row, and what is none ------------------------------------------------------------------------


def test_must_not_halt_other_calls_that_meet_the_same_open_circuit(agent: Agent) -> None:
    """Edits of one file that fail, each another one: refused while it is open, never halted for it."""
    for _ in range(3):
        agent.edit("a.py", "same", "String to replace not found", failed=True)
    agent.pace = 0.1
    assert [agent.edit("a.py", f"new {number}") for number in range(8)] == ["x"] * 8
    assert agent.edit("b.py") == "."


def test_who_goes_on_and_on_with_other_calls_is_halted_in_the_end(agent: Agent) -> None:
    for _ in range(3):
        agent.edit("a.py", "same", "String to replace not found", failed=True)
    agent.pace = 0.1
    assert "H" in "".join(agent.edit("a.py", f"new {number}") for number in range(13))


def test_must_not_halt_who_works_in_between(agent: Agent) -> None:
    for _ in range(3):
        agent.bash("./deploy.sh", "Exit code 4\nno such host", failed=True)
    agent.pace = 0.1
    for number in range(6):
        assert agent.bash("./deploy.sh") == "x"
        assert agent.bash(f"cat log.{number}", f"text {number}") == "."


def test_must_not_halt_who_waits_as_told(agent: Agent) -> None:
    """Each time until the moment that the refusal names, and each time it brings something else."""
    for number in range(4):
        said = "".join(agent.bash("./status.sh", f"down {number}") for _ in range(6))
        assert said == "...ttx"
        agent.bash("sleep 30", "")
        agent.now += 30
        assert agent.bash("./status.sh", f"up {number}") == "."


def test_a_limit_with_a_known_end_never_halts(agent: Agent) -> None:
    """The pause between bursts of agents, asked for thirty times."""
    agent.pace = 0.1
    spawn = {"description": "look", "prompt": "look", "subagent_type": "general-purpose"}
    first, call = agent.begin("Task", **spawn)
    assert first.verdict == "allow"
    agent.end(call, "done")
    for _ in range(30):
        agent.now += 0.1
        agent.send("PostToolBatch", tool_calls=[])
        answer, _ = agent.begin("Task", **spawn)
        assert answer.verdict in ("deny", "allow"), answer.text


def test_a_file_that_is_refused_is_a_row_only_as_the_same_call(agent: Agent) -> None:
    """A rule outside the session refuses: three times the same call, not twenty different ones."""

    def refused(number: int) -> str:
        agent.now += 5
        payload = {"tool_name": "Bash", "tool_input": {"command": f"rm specs/{number}"}, "tool_use_id": f"r{agent.now}"}
        event = AGENT.parse({"session_id": "s", "hook_event_name": "PreToolUse", "cwd": ROOT, **payload}, ROOT)
        assert event is not None
        return agent.watch.handle(event, refused_by="guard.shell").verdict

    assert [refused(number) for number in range(20)] == ["allow"] * 20
    assert [refused(7), refused(7), refused(8)] == ["allow", "halt", "halt"]


# -- failures -----------------------------------------------------------------------------------------------


def test_failures_of_one_reply_count_once(agent: Agent) -> None:
    """Five edits of one file, which the first spoils: one failure, not five; the next reply is the second."""
    missing = "<tool_use_error>String to replace not found in file.</tool_use_error>"
    batch = [
        ("Edit", {"file_path": f"{ROOT}/a.py", "old_string": f"{n}", "new_string": ""}, missing, True) for n in range(5)
    ]
    assert agent.reply(*batch) == "....."
    assert "tool_failure" not in "".join(agent.reasons)


def test_must_not_count_what_the_client_or_a_person_cancelled(agent: Agent) -> None:
    cancelled = [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>",
        "[Request interrupted by user for tool use]",
        "The user doesn't want to take this action right now.",
    ]
    for text in cancelled * 3:
        assert agent.bash("./deploy.sh", text, failed=True) == "."


def test_a_change_ends_what_was_counted_and_what_is_open(agent: Agent) -> None:
    for number in range(8):
        assert agent.bash("./a.sh", "Exit code 1\nboom", failed=True) == "."
        assert agent.bash("./a.sh", "Exit code 1\nboom", failed=True) == "."
        assert agent.edit(f"{number}.py") == "."
    for _ in range(3):
        agent.bash("./a.sh", f"Exit code 1\nbang {number}", failed=True)
    agent.pace = 0.1
    assert agent.bash("./a.sh") == "x"
    assert agent.edit("other.py") == "."
    assert agent.bash("./a.sh", "fine") == "."


def test_a_result_that_nobody_asked_for_ends_nothing(agent: Agent) -> None:
    """A forged report of a success, of the same call or of an edit."""
    for _ in range(3):
        agent.bash("./deploy.sh", "Exit code 4\nno such host", failed=True)
    agent.pace = 0.1
    given = {"file_path": f"{ROOT}/b.py", "old_string": "a", "new_string": "b"}
    for number, (tool, what) in enumerate((("Bash", {"command": "./deploy.sh"}), ("Edit", given))):
        call = {"tool_name": tool, "tool_input": what, "tool_use_id": f"made-up-{number}", "tool_response": "done"}
        agent.send("PostToolBatch", tool_calls=[call])
    assert agent.bash("./deploy.sh") == "x"


@pytest.mark.parametrize(
    "others",
    [
        ("git push", "git pull", "git status"),
        ("npm run lint", "npm run build", "npm test"),
        ("python manage.py migrate", "python manage.py runserver", "python other.py"),
        ("make deploy", "make docs", "make"),
    ],
)
def test_must_not_refuse_another_subcommand_or_script(agent: Agent, others: tuple[str, ...]) -> None:
    for _ in range(3):
        agent.bash(others[0], f"Exit code 1\n{others[0]} is unhappy", failed=True)
    agent.pace = 0.1
    assert agent.bash(f"{others[0]} --verbose") == "x", "options make no other tool"
    assert [agent.bash(other, "fine") for other in others[1:]] == [".", "."]


def test_must_not_take_time_outs_of_different_scripts_for_one_error(agent: Agent) -> None:
    for number in range(8):
        assert agent.bash(f"python part_{number}.py", "Exit code 124\nEXECUTION TIMED OUT", failed=True) == "."
        assert agent.bash(f"./run-{number}.sh", "Command timed out after 2m 0.0s", failed=True) == "."


# -- what was missed ----------------------------------------------------------------------------------------


def test_a_missing_program_is_told_refused_and_halted_whatever_the_arguments(agent: Agent) -> None:
    said = "".join(
        agent.bash(f"mvn {goal}", f"Exit code 127\n/bin/bash: line {number}: mvn: command not found", failed=True)
        for number, goal in enumerate("clean compile test package verify install site deploy help".split())
    )
    assert said == "...tttxxH"
    assert "a program that is not installed was called 4 times (limit 6)" in agent.reasons[3]
    assert "mvn" in agent.reasons[6]


def test_must_not_refuse_a_program_that_was_installed_meanwhile(agent: Agent) -> None:
    for number in range(7):
        agent.bash(f"mvn -X goal{number}", "Exit code 127\nbash: mvn: command not found", failed=True)
    assert agent.bash("apt-get install -y maven", "Setting up maven") == "."
    assert agent.bash("mvn compile", "BUILD SUCCESS") == "."
    assert agent.bash("mvn test", "bash: javac: command not found", failed=True) == "."


def test_searches_that_find_nothing_are_told_refused_and_halted(agent: Agent) -> None:
    said = ""
    for number in range(9):
        said += agent.reply(("Grep", {"pattern": f"name{number}"}, "No matches found", False))
        said += agent.bash(f"grep -rn name{number} src")
    assert said[:15] == "........ttttttt"
    assert set(said[15:17]) == {"x"}
    assert said[17] == "H"
    assert "9 lookups found nothing, with nothing changed in between (limit 15)" in agent.reasons[8]


def test_must_not_refuse_to_read_or_list_after_searches_that_find_nothing(agent: Agent) -> None:
    for number in range(15):
        agent.reply(("Grep", {"pattern": f"name{number}"}, "No matches found", False))
    assert agent.reply(("Read", {"file_path": f"{ROOT}/a.py"}, "text", False)) == "."
    assert agent.bash("ls src", "a.py") == "."
    assert agent.bash("cat a.py", "text of a") == "."
    assert agent.bash("pytest -q", "1 passed") == "."


@pytest.mark.parametrize("found", [2, 3])
def test_must_not_tell_of_searches_of_which_some_find_something(agent: Agent, found: int) -> None:
    for number in range(40):
        result = f"a.py:{number}" if number % found == 0 else "No matches found"
        assert agent.reply(("Grep", {"pattern": f"name{number}"}, result, False)) == "."


def test_must_not_tell_of_lookups_between_edits(agent: Agent) -> None:
    """`grep` for what was renamed finds nothing, as it should."""
    for number in range(20):
        assert agent.edit(f"{number}.py") == "."
        assert agent.bash(f"grep -rn old_name_{number} src") == "."


def test_a_round_of_seven_calls_is_told_refused_and_halted(agent: Agent) -> None:
    said = "".join(agent.bash(f"cat {name}.py", f"text {name}") for name in "abcdefg" * 4)
    assert said == "." * 14 + "ttttt" + "xx" + "H" * 7


def test_must_not_tell_of_looking_again_after_each_edit(agent: Agent) -> None:
    """The same six files and checks after every edit, with the same results."""
    for number in range(6):
        assert agent.edit(f"{number}.py") == "."
        for name in "abcdef":
            assert agent.bash(f"cat {name}.txt", f"text {name}") == "."


def test_must_not_tell_of_looking_again_after_the_conversation_was_compacted(agent: Agent) -> None:
    for _ in range(3):
        assert "".join(agent.bash(f"cat {name}.py", f"text {name}") for name in "abcdefghij") == "." * 10
        agent.send("SessionStart", source="compact")


# -- where a person can answer ------------------------------------------------------------------------------


def test_where_a_person_can_answer_they_are_asked_and_nothing_halts(attended: Agent) -> None:
    said = "".join(attended.bash("./status.sh", "down") for _ in range(12))
    assert said == "...tt" + "a" * 6 + "t"  # the last is the trial after the cooldown
    assert "the same call brought the same result 5 times (limit 5)." in attended.reasons[5]
    assert "Let this call run all the same?" in attended.reasons[5]


def test_what_a_person_said_no_to_has_not_happened(attended: Agent) -> None:
    for _ in range(5):
        attended.bash("./status.sh", "down")
    for _ in range(4):
        attended.now += 5
        answer, call = attended.begin("Bash", command="./status.sh")
        assert answer.verdict == "ask"
        no = "The user doesn't want to proceed with this tool use. The tool use was rejected."
        attended.send("PostToolBatch", tool_calls=[{**call, "tool_response": no}])
    assert attended.bash("./other.sh", "fine") == "."


def test_a_failing_tool_is_asked_about_where_a_person_can_answer(attended: Agent) -> None:
    for _ in range(3):
        attended.bash("./deploy.sh", "Exit code 4\nno such host", failed=True)
    attended.pace = 0.1
    assert [attended.bash("./deploy.sh", "Exit code 4\nno such host", failed=True) for _ in range(4)] == ["a"] * 4

"""The hook as Gemini CLI starts it: its own payloads in, its own protocol out, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from fusewire.agents import BadPayload
from fusewire.agents.gemini.hooks import AGENT as gemini
from tests.helpers import DATA, SOURCE
from tests.helpers.project import Project

PAYLOADS = {path.stem: path for path in sorted((DATA / "payloads").glob("gemini.*.json"))}
ROOT = "/home/dev/project"

#: What each recorded payload says, in nobody's own words; None if it asks for no decision.
EXPECTED: dict[str, dict[str, Any] | None] = {
    "gemini.SessionStart": {"kind": "session_start", "text": "startup"},
    "gemini.SessionEnd": {"kind": "session_end", "text": ""},
    "gemini.BeforeAgent": {"kind": "prompt", "text": "Do the scripted task."},
    "gemini.BeforeAgent.with_file": {"kind": "prompt", "text": "look at @specs/a.md please"},
    "gemini.BeforeAgent.kept_going": {"kind": "prompt", "text": "REASON-J"},
    "gemini.AfterAgent": {"kind": "stop", "text": "", "result": "first\nAll done."},
    "gemini.AfterAgent.kept_going": {"kind": "stop", "text": "again", "result": "All done.\nagain"},
    "gemini.BeforeModel": None,
    "gemini.AfterModel": None,
    "gemini.BeforeToolSelection": None,
    "gemini.PreCompress": None,
    "gemini.BeforeTool.run_shell_command": {
        "kind": "before_tool",
        "tool": "Bash",
        "command": "echo hello-gemini",
        "cwd": ROOT,
        "failed": None,
        "result": None,
    },
    "gemini.BeforeTool.run_shell_command.in_subagent": {"tool": "Bash", "command": "touch subran", "subagent": None},
    "gemini.BeforeTool.run_shell_command.in_folder": {"command": "cat /nonexistent", "cwd": f"{ROOT}/sub"},
    "gemini.BeforeTool.run_shell_command.background": {
        "command": "sleep 30",
        "input": {"command": "sleep 30", "run_in_background": True},
    },
    "gemini.BeforeTool.run_shell_command.wrapped": {"command": "rm -rf specs"},
    "gemini.BeforeTool.write_file": {"tool": "Write", "paths": ("a.txt",), "change": "update", "command": None},
    "gemini.BeforeTool.write_file.emptied": {"tool": "Write", "paths": ("a.txt",), "change": "empty"},
    "gemini.BeforeTool.replace": {"tool": "Edit", "paths": ("a.txt",), "change": "update"},
    "gemini.BeforeTool.read_file": {"tool": "Read", "paths": ("a.txt",)},
    "gemini.BeforeTool.grep_search": {"tool": "Grep", "input": {"pattern": "one"}},
    "gemini.BeforeTool.list_directory": {"tool": "LS", "input": {"dir_path": "."}},
    "gemini.BeforeTool.invoke_agent": {
        "tool": "Agent",
        "input": {"subagent_type": "generalist", "prompt": "SUBTASK do it"},
    },
    "gemini.BeforeTool.mcp": {"tool": "mcp__my-files__write_note", "paths": ("specs/a.md",), "command": None},
    "gemini.AfterTool.run_shell_command": {
        "kind": "after_tool",
        "tool": "Bash",
        "command": "echo hello-gemini",
        "result": "hello-gemini",
        "failed": False,
    },
    "gemini.AfterTool.run_shell_command.failed_command": {"result": "Exit code 3\nboom", "failed": True},
    "gemini.AfterTool.run_shell_command.in_folder": {
        "cwd": f"{ROOT}/sub",
        "result": "Exit code 1\nError: spawn /usr/bin/bash ENOENT",
        "failed": True,
    },
    "gemini.AfterTool.run_shell_command.background": {"result": "Command moved to background", "failed": False},
    "gemini.AfterTool.run_shell_command.killed": {"result": "Exit code 137", "failed": True},
    "gemini.AfterTool.run_shell_command.leaves_background": {"result": "bg", "failed": False},
    "gemini.AfterTool.run_shell_command.interrupted": {"tool": "Bash", "result": None, "failed": None},
    "gemini.AfterTool.write_file": {"tool": "Write", "paths": ("a.txt",), "failed": False},
    "gemini.AfterTool.write_file.emptied": {"tool": "Write", "change": "empty", "failed": False},
    "gemini.AfterTool.replace": {"tool": "Edit", "paths": ("a.txt",), "failed": False},
    "gemini.AfterTool.replace.failed": {"tool": "Edit", "failed": True},
    "gemini.AfterTool.read_file": {"tool": "Read", "result": "one\nthree\n", "failed": False},
    "gemini.AfterTool.read_file.failed": {
        "result": "Could not read file because no file was found at the specified path.",
        "failed": True,
    },
    "gemini.AfterTool.grep_search": {"tool": "Grep", "input": {"pattern": "one"}, "failed": False},
    "gemini.AfterTool.list_directory": {"tool": "LS", "failed": False},
    "gemini.AfterTool.invoke_agent": {"tool": "Agent", "failed": True},
    "gemini.AfterTool.mcp": {"tool": "mcp__my-files__write_note", "result": "written", "failed": False},
    "gemini.AfterTool.mcp.failed": {"tool": "mcp__my-files__write_note", "failed": True},
}

#: What each hook is answered with, for a text of "why".
CONTEXT = {"additionalContext": "why"}
SAYS = ({"systemMessage": "why"}, "", 0)
DENIES = {"decision": "deny", "reason": "why"}
STOPS = {"continue": False, "stopReason": "why"}
ANSWERS: dict[str, dict[str, tuple[dict[str, Any], str, int]]] = {
    "BeforeTool": {"tell": SAYS, "deny": (DENIES, "why", 2), "halt": ({**DENIES, **STOPS}, "why", 2)},
    "AfterTool": {
        "tell": ({"hookSpecificOutput": {"hookEventName": "AfterTool", **CONTEXT}, "systemMessage": "why"}, "", 0),
        "deny": (DENIES, "", 0),
        "halt": (STOPS, "", 0),
    },
    "BeforeAgent": {
        "tell": ({"hookSpecificOutput": {"hookEventName": "BeforeAgent", **CONTEXT}, "systemMessage": "why"}, "", 0),
        "deny": (DENIES, "", 0),
        "halt": (STOPS, "", 0),
    },
    "AfterAgent": {
        "tell": SAYS,
        "deny": ({"decision": "deny", "reason": "[fusewire] why"}, "", 0),
        "halt": (STOPS, "", 0),
    },
    "SessionStart": {
        "tell": ({"hookSpecificOutput": {"hookEventName": "SessionStart", **CONTEXT}, "systemMessage": "why"}, "", 0),
        "halt": SAYS,
    },
    "SessionEnd": {"tell": SAYS, "halt": SAYS},
}


def recorded(name: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(PAYLOADS[name].read_text())
    return payload


# -- golden payloads ------------------------------------------------------------------------------------


def test_every_recorded_payload_is_expected_to_say_something() -> None:
    assert set(PAYLOADS) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_payload_says(name: str) -> None:
    payload, expected = recorded(name), EXPECTED[name]
    event = gemini.parse(payload, ROOT)
    if expected is None:
        assert event is None
        return
    assert event is not None
    assert {field: getattr(event, field) for field in expected} == expected
    assert (event.agent, event.session, event.hook) == ("gemini", payload["session_id"], payload["hook_event_name"])
    assert event.transcript == payload["transcript_path"]
    assert event.call is None, "an id that comes again would make another call of the same kind invisible"


@pytest.mark.parametrize("tool", sorted({name.split(".", 2)[2] for name in EXPECTED if name.count(".") > 1}))
def test_a_call_is_known_again_by_its_result(tool: str) -> None:
    """Nothing but the call itself tells which one a result belongs to."""
    names = [name for name in (f"gemini.BeforeTool.{tool}", f"gemini.AfterTool.{tool}") if name in PAYLOADS]
    events = [gemini.parse(recorded(name), ROOT) for name in names]
    assert len({(event.tool, event.command, json.dumps(event.input)) for event in events if event}) <= 1


@pytest.mark.parametrize("name", [name for name in EXPECTED if recorded(name)["hook_event_name"] in ANSWERS])
def test_every_answer_to_a_recorded_payload_is_exactly_what_the_client_reads(name: str) -> None:
    hook = recorded(name)["hook_event_name"]
    assert gemini.allow() == ("", "", 0)
    assert gemini.inform("why", hook) == ('{"systemMessage":"why"}', "", 0)
    for act, (said, stderr, code) in ANSWERS[hook].items():
        stdout, *rest = getattr(gemini, act)("why", hook)
        assert (json.loads(stdout), rest) == (said, [stderr, code]), act


def test_input_that_cannot_be_judged_is_denied_as_a_call_is() -> None:
    assert gemini.deny("why") == gemini.deny("why", "BeforeTool")
    assert gemini.GATES == ("BeforeTool",)


@pytest.mark.parametrize("hook", sorted(ANSWERS))
def test_where_context_is_not_read_the_agent_counts_as_untold(hook: str) -> None:
    """What the agent cannot be told there is told with the result of the call."""
    told = "additionalContext" in gemini.tell("why", hook)[0]
    assert told is (hook not in (*gemini.UNHEARD, "SessionEnd"))


def test_what_keeps_the_agent_going_does_not_come_back_as_a_person() -> None:
    """Gemini sends the reason as the next prompt; a person's prompt would lift every halt."""
    reason = json.loads(gemini.deny("go on with the tests", "AfterAgent")[0])["reason"]
    event = gemini.parse({**recorded("gemini.BeforeAgent.kept_going"), "prompt": reason}, ROOT)
    assert event is not None
    assert event.kind == "notice"


def test_a_command_that_ended_in_the_background_is_no_person() -> None:
    text = "User steering update:\n<user_input>\n[Background command completed successfully. Output saved to x]"
    event = gemini.parse({**recorded("gemini.BeforeAgent"), "prompt": text}, ROOT)
    assert event is not None
    assert event.kind == "notice"


# -- what came back ---------------------------------------------------------------------------------------


def after(content: Any, **more: Any) -> Any:
    payload = recorded("gemini.AfterTool.run_shell_command")
    return gemini.parse({**payload, "tool_response": {"llmContent": content, **more}}, ROOT)


def test_the_same_failure_is_the_same_whichever_processes_it_had() -> None:
    first = after("<untrusted_context>\nOutput: boom\nExit Code: 3\nProcess Group PGID: 1\n</untrusted_context>")
    again = after("<untrusted_context>\nOutput: boom\nExit Code: 3\nProcess Group PGID: 27\n</untrusted_context>")
    assert first.result == again.result == "Exit code 3\nboom"


def test_a_program_that_prints_an_exit_code_has_not_failed() -> None:
    event = after(
        "<untrusted_context>\nOutput: a\nExit Code: 3\nProcess Group PGID: 1\n</untrusted_context>",
        returnDisplay="a\nExit Code: 3",
    )
    assert (event.result, event.failed) == ("a\nExit Code: 3", False)


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ("Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.", True),
        ("Command injection detected: command substitution syntax", True),
        ("something that is new in another version", False),
    ],
)
def test_a_command_that_the_client_stopped_itself_has_failed(said: str, failed: bool) -> None:
    event = after(said)
    assert (event.result, event.failed) == (said, failed)


@pytest.mark.parametrize(
    ("ended", "result", "failed"), [("GOAL", "text", False), ("TIMEOUT", "text", True), ("ABORTED", None, None)]
)
def test_how_a_helper_ended(ended: str, result: str | None, failed: bool | None) -> None:
    payload = recorded("gemini.AfterTool.invoke_agent")
    said = f"Subagent 'generalist' finished.\nTermination Reason: {ended}\nResult:\ndone"
    event = gemini.parse({**payload, "tool_response": {"llmContent": [{"text": said}]}}, ROOT)
    assert event is not None
    assert (event.result, event.failed) == (said if result else None, failed)


@pytest.mark.parametrize("response", [None, "text", 7, [], {}, {"llmContent": 7}, {"llmContent": [7, {"text": 8}]}])
def test_a_result_of_another_shape_is_no_failure(response: Any) -> None:
    event = gemini.parse({**recorded("gemini.AfterTool.read_file"), "tool_response": response}, ROOT)
    assert event is not None
    assert event.result is not None
    assert not event.failed


# -- what a call would really do ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("ls -l", "ls -l"),
        ("bash script.sh", "bash script.sh"),
        ("bash -lc 'ls'", "bash -lc 'ls'"),
        ("bash -c", "bash -c"),
        ("bash -c 'pytest -q'", "pytest -q"),
        ('/bin/sh  -c "pytest -q"', "pytest -q"),
        ("bash -c rm -rf specs", "rm -rf specs"),
        ("BASH -C rm -rf specs", "rm -rf specs"),
        ("bash -c 'echo a' 'x; rm -rf specs #'", "echo a' 'x; rm -rf specs #"),
        ('bash -c "rm -rf \\"specs\\""', 'rm -rf "specs"'),
        ('bash -c "echo "\'; rm -rf specs; \'"x"', "echo ; rm -rf specs; x"),
        ('bash -c "echo ${HOME} $?x"', "echo $HOME $?"),
        ('bash -c "a" ; "b"', 'a" ; "b'),
        ('bash -c "rm -rf specs" "', "rm -rf specs"),
        ("cmd.exe /c rm -rf specs", "rm -rf specs"),
        ('pwsh -NoProfile -Command "rm -rf specs"', "rm -rf specs"),
        ("pwsh -NoProfile", "pwsh -NoProfile"),
    ],
)
def test_the_shell_that_the_client_takes_off_a_line_is_taken_off_here(command: str, run: str) -> None:
    """As the client did it, on each of these lines."""
    payload = recorded("gemini.BeforeTool.run_shell_command")
    event = gemini.parse({**payload, "tool_input": {"command": command}}, ROOT)
    assert event is not None
    assert event.command == run
    assert event.input == {"command": command}


@pytest.mark.parametrize(
    ("tool", "path", "expected"),
    [
        ("replace", "only.md", ("only.md", "specs/only.md")),
        ("replace", "specs/only.md", ("specs/only.md",)),
        ("replace", "@only.md", ("@only.md", "only.md", "specs/only.md")),
        ("replace", "new.md", ("new.md",)),
        ("write_file", "only.md", ("only.md",)),
        ("write_file", "@specs/only.md", ("@specs/only.md", "specs/only.md")),
        ("write_file", "@/specs/only.md", ("@/specs/only.md", "specs/only.md")),
    ],
)
def test_a_path_means_every_file_that_the_client_may_take_it_for(
    project: Project, tool: str, path: str, expected: tuple[str, ...]
) -> None:
    (project.root / "specs").mkdir()
    (project.root / "specs" / "only.md").write_text("x")
    payload = {**recorded(f"gemini.BeforeTool.{tool}"), "cwd": str(project.root)}
    payload["tool_input"] = {**payload["tool_input"], "file_path": path}
    event = gemini.parse(payload, str(project.root))
    assert event is not None
    assert event.paths == expected


def test_the_process_of_the_agent_is_the_one_that_started_the_hook() -> None:
    assert gemini.process({"GEMINI_SESSION_ID": "x"}) == os.getppid()
    assert gemini.process({}) is None


# -- payloads that make no sense ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ([], "a JSON object is expected"),
        ({}, "hook_event_name must be a text"),
        ({"hook_event_name": 7}, "hook_event_name must be a text"),
        ({"hook_event_name": "BeforeTool"}, "tool_name must be a text"),
        ({"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}, "tool_input must be an object"),
        (
            {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": ["ls"]}},
            "tool_input.command must be a text",
        ),
        (
            {"hook_event_name": "BeforeTool", "tool_name": "replace", "tool_input": {"file_path": "a\0b"}},
            "tool_input.file_path must be the path of a file",
        ),
    ],
)
def test_a_payload_that_makes_no_sense_is_said_in_one_line(payload: Any, said: str) -> None:
    with pytest.raises(BadPayload, match=said):
        gemini.parse(payload, ROOT)


# -- the real hook --------------------------------------------------------------------------------------------


@dataclass
class Gemini:
    """A session of Gemini CLI as its hooks see it: payloads in the recorded shapes, sent to real hook processes."""

    project: Project
    id: str = "e5fc9c38-495a-4c95-816a-977506a161a0"
    processes: list[int] = field(default_factory=list)

    def send(self, hook: str, **fields: Any) -> Said:
        payload = {
            "session_id": self.id,
            "transcript_path": f"{self.project.root.parent}/chats/session-2026-11-15T21-30-e5fc9c38.jsonl",
            "cwd": str(self.project.root),
            "hook_event_name": hook,
            "timestamp": "2026-11-15T21:30:55.566Z",
            **fields,
        }
        return self.raw(json.dumps(payload).encode())

    def raw(self, data: bytes) -> Said:
        folders = {name: str(self.project.root) for name in ("GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR")}
        answer = subprocess.run(
            [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "gemini"],
            input=data,
            cwd=self.project.root,
            env={**os.environ, **folders, "GEMINI_SESSION_ID": self.id},
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Said(answer)

    def before(self, tool: str, **given: Any) -> Said:
        return self.send("BeforeTool", tool_name=tool, tool_input=given)

    def shell(self, command: str, output: str = "(empty)", code: int = 0) -> tuple[Said, Said]:
        """One command: what was said before it, and after it if it was not refused."""
        asked = self.before("run_shell_command", command=command)
        if not asked.passes:
            return asked, asked
        self.processes.append(len(self.processes))
        lines = [f"Output: {output}", f"Exit Code: {code}" if code else "", f"Process Group PGID: {self.processes[-1]}"]
        shown = "\n".join(["<untrusted_context>", *filter(None, lines), "</untrusted_context>"])
        response = {"llmContent": shown, "returnDisplay": "" if output == "(empty)" else output}
        given = {"command": command}
        return asked, self.send("AfterTool", tool_name="run_shell_command", tool_input=given, tool_response=response)


class Said:
    """What a hook process answered, as Gemini reads it: JSON on every exit code, else what stands on stderr."""

    def __init__(self, answer: subprocess.CompletedProcess[bytes]) -> None:
        self.code, self.stdout, self.stderr = answer.returncode, answer.stdout, answer.stderr
        assert b"Traceback" not in self.stderr
        self.json: dict[str, Any] = json.loads(self.stdout) if self.stdout.strip() else {}

    @property
    def silent(self) -> bool:
        return (self.code, self.stdout, self.stderr) == (0, b"", b"")

    @property
    def denied(self) -> bool:
        """Twice over, so that a client that reads only one of them denies as well."""
        reason = self.json.get("reason")
        return (self.code, self.json.get("decision")) == (2, "deny") and self.stderr.decode().strip() == reason

    @property
    def halted(self) -> bool:
        return self.json.get("continue") is False

    @property
    def passes(self) -> bool:
        return self.code == 0 and "decision" not in self.json and not self.halted

    @property
    def told(self) -> str:
        text: str = self.json.get("hookSpecificOutput", {}).get("additionalContext", "")
        return text


@pytest.fixture
def session(project: Project) -> Gemini:
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("x\n")
    return Gemini(project)


def test_an_honest_session_hears_nothing(session: Gemini) -> None:
    assert session.send("SessionStart", source="startup").code == 0
    assert session.send("BeforeAgent", prompt="Do it.").silent
    for number in range(4):
        asked, after = session.shell(f"echo {number}", str(number))
        assert asked.silent
        assert after.silent
    assert session.before("read_file", file_path="specs/a.md").silent
    assert session.before("write_file", file_path="b.txt", content="one").silent
    assert session.send("BeforeModel", llm_request={}).silent
    assert session.send("AfterAgent", prompt="Do it.", prompt_response="done", stop_hook_active=False).silent
    assert session.send("SessionEnd", reason="exit").silent


@pytest.mark.parametrize(
    "command", ["rm -rf specs", "bash -c rm -rf specs", "bash -c 'echo a' 'x; rm -rf specs #'", "cd specs && rm a.md"]
)
def test_a_protected_file_is_not_deleted(session: Gemini, command: str) -> None:
    asked, _ = session.shell(command)
    assert asked.denied
    assert "specs" in asked.json["reason"]
    assert not asked.halted


def test_a_protected_file_is_not_emptied_under_another_name(session: Gemini) -> None:
    assert session.before("write_file", file_path="@specs/a.md", content="").denied
    assert session.before("write_file", file_path="@specs/a.md", content="more").silent


def test_the_state_is_not_edited_under_a_bare_name(session: Gemini) -> None:
    folder = session.project.root / "docs" / "constraints"
    folder.mkdir(parents=True)
    (folder / "safety.md").write_text("---\nid: safety\n---\n# A rule\n")
    edit = {"instruction": "x", "old_string": "safety", "new_string": "none"}
    assert session.before("replace", file_path="safety.md", **edit).denied


def test_the_same_failing_call_is_told_then_refused_then_halted(session: Gemini) -> None:
    """Told with the result, because before a call the agent reads nothing."""
    told, refused = [], []
    for number in range(12):
        asked, after = session.shell("make build", "boom", 2)
        if asked.halted:
            break
        told += [number] if after.told else []
        refused += [number] if asked.denied else []
    assert asked.denied
    assert asked.halted
    assert "stopReason" in asked.json
    assert told
    assert refused
    assert max(told) < min(refused)
    assert session.send("AfterAgent", prompt="x", prompt_response="y", stop_hook_active=False).halted
    assert session.before("read_file", file_path="specs/a.md").halted
    assert session.send("BeforeAgent", prompt="look again").silent
    assert session.before("read_file", file_path="specs/a.md").silent


def test_what_is_told_before_a_call_reaches_the_agent_with_its_result(session: Gemini) -> None:
    session.project.constraint("no-curl", "match: [{tool: Bash, command: curl}]\n", "# Do not call the network\n")
    asked, after = session.shell("curl http://localhost", "(empty)", 7)
    assert asked.passes
    assert not asked.told
    assert "no-curl" in after.told


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"hook_event_name": "BeforeTool"}',
        b'{"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": 7}}',
        b'{"hook_event_name": "BeforeTool", "tool_name": "write_file", "tool_input": {"content": "x"}}',
        b'{"hook_event_name": "BeforeTool", "tool_name": "x", "tool_input": []}',
        b'{"tool_name": "run_shell_command", "tool_input": {"command": "rm -rf specs"}}',
    ],
)
def test_malformed_input_is_denied_in_one_line(session: Gemini, data: bytes) -> None:
    said = session.raw(data)
    assert said.denied
    assert said.json["reason"].startswith("BLOCKED fusewire.input: ")
    assert said.stderr.count(b"\n") == 1


def test_malformed_input_of_another_hook_is_said_and_stops_nobody(session: Gemini) -> None:
    said = session.raw(b'{"hook_event_name": "AfterTool", "tool_name": 7}')
    assert said.passes
    assert "AfterTool" in said.json["systemMessage"]

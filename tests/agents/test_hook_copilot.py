"""The hook as GitHub Copilot CLI starts it: its recorded payloads in, its own protocol out, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.agents import BadPayload
from fusewire.agents.copilot.hooks import AGENT as copilot
from fusewire.core.events import Event
from fusewire.util.fast_json import dumps
from tests.helpers import DATA, SOURCE
from tests.helpers.decisions import without_code
from tests.helpers.project import Project

ROOT = "/home/dev/project"
PAYLOADS = {
    path.name.removeprefix("copilot.").removesuffix(".json"): json.loads(path.read_text())
    for path in sorted((DATA / "payloads").glob("copilot.*.json"))
}
SHELL = "PreToolUse:Bash"
NOTHING = "echo 'fusewire: the agent is halted' >&2; exit 1"
RUNNING = (
    "start\n<command with shellId:  is still running after  seconds. The command is still running. You will be"
    " automatically notified when it completes; if you need the command to complete end your response with no tool"
    " calls to wait for the notification. Use stop_bash to stop it.>"
)
MAIN, HELPER = "5e710e99-a170-408f-80bf-3d703a95bfcf", "1ed20d32-cafd-4eb3-8a4b-ad7848559613"
DEEP_MAIN, DEEP, DEEP_PARENT = (
    *("f384c63d-41d2-49aa-8c2c-f1b8df1c17b2", "ed8fda0b-86b2-4374-b14c-feafaf0342e4"),
    "b520f12c-41c2-4f13-9fde-89733233e9ae",
)
PATCH_PATHS = ("new.txt", "old.txt", "gone.txt", "moved.txt", "del.txt")
GONE_ON = "44587cb7-33ba-47a0-baf9-b6933b690388"
FILE = f"{ROOT}/a.txt"


def call(tool: str, **more: Any) -> dict[str, Any]:
    return {"kind": "before_tool", "hook": SHELL if tool == "Bash" else "PreToolUse", "tool": tool, **more}


def done(tool: str, result: str | None, failed: bool | None = False, **more: Any) -> dict[str, Any]:
    return {"kind": "after_tool", "hook": "PostToolUse", "tool": tool, "result": result, "failed": failed, **more}


def failed(tool: str, result: str, **more: Any) -> dict[str, Any]:
    return {**done(tool, result, failed=True, **more), "hook": "PostToolUseFailure"}


#: What the event of each payload is beside its session, its transcript and its input; None if it asks for nothing.
EVENTS: dict[str, dict[str, Any] | None] = {
    "Notification": None,
    "PermissionRequest.bash": {"kind": "permission", "hook": "PermissionRequest", "tool": "bash"},
    "PermissionRequest.edit": {"kind": "permission", "hook": "PermissionRequest", "tool": "edit"},
    "PermissionRequest.in_nested_subagent": {
        "kind": "permission",
        "hook": "PermissionRequest",
        "tool": "bash",
        "session": DEEP_MAIN,
        "subagent": DEEP,
    },
    "PermissionRequest.in_subagent": {
        "kind": "permission",
        "hook": "PermissionRequest",
        "tool": "bash",
        "session": MAIN,
        "subagent": HELPER,
    },
    "PermissionRequest.mcp": {"kind": "permission", "hook": "PermissionRequest", "tool": "filesys/write_file"},
    "PostToolUse.Agent": done("Agent", "sub done"),
    "PostToolUse.Agent.launched": done("Agent", ..., text=GONE_ON, running=(GONE_ON,)),  # type: ignore[arg-type]
    "PostToolUse.Bash": done("Bash", "hi", command="touch SIDE; echo hi"),
    "PostToolUse.Bash.background": done(
        "Bash", "<command started in background with shellId: >", command="sleep 1; echo bg"
    ),
    "PostToolUse.Bash.in_subagent": done("Bash", "in-sub", command="echo in-sub", session=MAIN, subagent=HELPER),
    "PostToolUse.Bash.in_subagent.failed": done(
        "Bash", "Exit code 4", failed=True, command="exit 4", session=MAIN, subagent=HELPER
    ),
    "PostToolUse.Bash.no_output.failed": done("Bash", "Exit code 3", failed=True, command="exit 3"),
    "PostToolUse.Bash.still_running": done("Bash", RUNNING, command="echo start; sleep 60; echo end"),
    "PostToolUse.Bash.too_large": done("Bash", ..., command="for i in $(seq 9000); do echo line $i; done"),  # type: ignore[arg-type]
    "PostToolUse.Edit": done("Edit", f"File {FILE} updated with changes.", paths=("a.txt",)),
    "PostToolUse.Edit.patch": done("Edit", ..., paths=PATCH_PATHS, change="delete"),  # type: ignore[arg-type]
    "PostToolUse.Grep": done("Grep", "./a.txt"),
    "PostToolUse.Read": done("Read", "hello\nworld\n", paths=("a.txt",)),
    "PostToolUse.Write": done("Write", f"Created file {FILE} with 12 characters", paths=("a.txt",)),
    "PostToolUse.failed_command": done("Bash", "Exit code 3\nboom", failed=True, command="echo boom >&2; exit 3"),
    "PostToolUse.read_bash": done("BashOutput", RUNNING),
    "PostToolUse.stop_bash": done("stop_bash", "<command with id: 0 stopped>"),
    "PostToolUseFailure.Agent.interrupted": failed("Agent", "Agent completed but produced no response."),
    "PostToolUseFailure.Bash": failed(
        "Bash",
        "Command not executed. The 'kill' command must specify at least one numeric PID. Usage: kill <PID> or"
        " kill -9 <PID>",
        command="kill -9 $$",
    ),
    "PostToolUseFailure.Edit": failed("Edit", "No match found", paths=("a.txt",)),
    "PostToolUseFailure.Edit.patch": failed("Edit", ..., paths=("nofile.txt",)),  # type: ignore[arg-type]
    "PostToolUseFailure.Read": failed("Read", "Path does not exist", paths=("nofile.txt",)),
    "PostToolUseFailure.mcp": failed("mcp__filesys__fail_it", "MCP server 'filesys': wrote"),
    "PostToolUseFailure.no_such_tool": failed("no_such_tool", "Tool 'no_such_tool' does not exist."),
    "PreToolUse": call("Bash", command="touch SIDE; echo hello"),
    "PreToolUse.Agent": call("Agent"),
    "PreToolUse.Bash.in_nested_subagent": call("Bash", command="echo deep", session=DEEP_PARENT, subagent=DEEP),
    "PreToolUse.Bash.in_subagent": call("Bash", command="echo in-sub", session=MAIN, subagent=HELPER),
    "PreToolUse.Edit": call("Edit", paths=("a.txt",)),
    "PreToolUse.Edit.patch": call("Edit", paths=PATCH_PATHS, change="delete"),
    "PreToolUse.Grep": call("Grep"),
    "PreToolUse.Read": call("Read", paths=("a.txt",)),
    "PreToolUse.Write": call("Write", paths=("a.txt",)),
    "PreToolUse.mcp": call("mcp__filesys__write_file", paths=("specs/a.md",), change="empty"),
    "PreToolUse.no_such_tool": call("no_such_tool"),
    "PreToolUse.read_bash": call("BashOutput"),
    "PreToolUse.write_bash": call("write_bash", command="x\n"),
    "SessionEnd": {"kind": "session_end", "hook": "SessionEnd"},
    "SessionEnd.user_exit": {"kind": "session_end", "hook": "SessionEnd"},
    "SessionStart": {"kind": "session_start", "hook": "SessionStart", "text": "new"},
    "Stop": {"kind": "stop", "hook": "Stop"},
    "Stop.in_subagent": None,
    "Stop.kept_going": {"kind": "stop", "hook": "Stop", "text": "again"},
    "SubagentStart": {"kind": "agent_start", "hook": "SubagentStart", "subagent": HELPER, "text": "task"},
    "SubagentStart.nested": {
        "kind": "agent_start",
        "hook": "SubagentStart",
        "session": DEEP_MAIN,
        "subagent": DEEP,
        "text": "general-purpose",
    },
    "SubagentStop": {
        "kind": "agent_stop",
        "hook": "SubagentStop",
        "subagent": HELPER,
        "text": "task",
        "result": "sub done",
    },
    "UserPromptSubmit": {"kind": "prompt", "hook": "UserPromptSubmit", "text": "Do the scripted task."},
    "UserPromptSubmit.autopilot": {"kind": "notice", "hook": "UserPromptSubmit", "text": ...},
    # Nothing tells it from a person's words; only what Fusewire itself keeps going is marked.
    "UserPromptSubmit.from_stop_hook": {"kind": "prompt", "hook": "UserPromptSubmit", "text": "GOON please"},
    "UserPromptSubmit.in_subagent": {
        "kind": "notice",
        "hook": "UserPromptSubmit",
        "session": MAIN,
        "text": "SUBTASK please",
    },
}

#: What a tool was given, where the names of its fields are translated.
INPUTS = {
    "PreToolUse.Write": {"file_path": FILE, "content": "hello\nworld\n"},
    "PreToolUse.Edit": {"file_path": FILE, "old_string": "hello", "new_string": "bye"},
    "PreToolUse.Read": {"file_path": FILE},
    "PreToolUse": {"command": "touch SIDE; echo hello", "description": "x"},
    "PreToolUse.Agent": {
        "subagent_type": "task",
        "name": "helper",
        "description": "do sub",
        "prompt": "SUBTASK please",
        "mode": "sync",
    },
    "PostToolUse.Bash.background": {"command": "sleep 1; echo bg", "description": "x", "run_in_background": True},
    "PostToolUse.Bash.still_running": {
        "command": "echo start; sleep 60; echo end",
        "description": "x",
        "timeout": 30,
    },
    "PreToolUse.mcp": {"path": f"{ROOT}/specs/a.md", "content": ""},
}

TEXT = 'BLOCKED rule: no "way"\nNext: other'
DENIED = {"permissionDecision": "deny", "permissionDecisionReason": TEXT}
SAID = {"additionalContext": TEXT}
#: hook -> deny, halt, tell, inform: what is printed (as JSON; None: nothing), on stderr, and the exit code.
ANSWERS: dict[str, tuple[tuple[Any, str, int], ...]] = {
    "PreToolUse": ((DENIED, TEXT, 2), (DENIED, TEXT, 2), (SAID, "", 0), (None, TEXT, 0)),
    SHELL: ((DENIED, TEXT, 2), ({"modifiedArgs": {"command": NOTHING}, **SAID}, "", 0), (SAID, "", 0), (None, TEXT, 0)),
    "PermissionRequest": (
        ({"behavior": "deny", "message": TEXT}, TEXT, 2),
        ({"behavior": "deny", "message": TEXT, "interrupt": True}, TEXT, 2),
        *((None, TEXT, 0), (None, TEXT, 0)),
    ),
    "UserPromptSubmit": (
        ({"decision": "block", "reason": TEXT}, "", 0),
        ({"decision": "block", "reason": TEXT}, "", 0),
        *((SAID, "", 0), (None, TEXT, 2)),
    ),
    "PostToolUse": ((DENIED, TEXT, 2), (SAID, "", 0), (SAID, "", 0), (None, TEXT, 2)),
    "PostToolUseFailure": ((DENIED, TEXT, 2), (SAID, "", 0), (SAID, "", 0), (None, TEXT, 0)),
    "SessionStart": ((DENIED, TEXT, 2), (SAID, "", 0), (SAID, "", 0), (None, TEXT, 2)),
    "SubagentStart": ((DENIED, TEXT, 2), (SAID, "", 0), (SAID, "", 0), (None, TEXT, 2)),
    "SessionEnd": ((DENIED, TEXT, 2), *3 * ((None, TEXT, 2),)),
    "Stop": (({"decision": "block", "reason": f"[fusewire] {TEXT}"}, "", 0), *3 * ((None, TEXT, 2),)),
    "SubagentStop": (({"decision": "block", "reason": f"[fusewire] {TEXT}"}, "", 0), *3 * ((None, TEXT, 2),)),
}


def event_of(payload: dict[str, Any]) -> Event:
    event = copilot.parse(payload, ROOT)
    assert event is not None
    return event


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without sessions: what is looked up there is none of the machine's."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("COPILOT_HOME", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


# -- golden payloads: from what it sends to the event ----------------------------------------------------


def test_every_recorded_payload_is_expected_to_be_something() -> None:
    assert {name for name in PAYLOADS if not name.startswith("camelCase.")} == set(EVENTS)
    assert len(PAYLOADS) >= 60


@pytest.mark.parametrize("name", [name for name in EVENTS if EVENTS[name] is not None])
def test_payload_to_event(name: str, home: Path) -> None:
    payload = PAYLOADS[name]
    expected = dict(EVENTS[name] or {})
    session = expected.pop("session", None) or payload.get("session_id") or payload["sessionId"]
    sent = payload.get("transcript_path") or payload.get("transcriptPath")
    event = event_of(payload)
    assert (event.agent, event.session) == ("copilot", session)
    assert event.transcript == sent or event.transcript == f"{home}/.copilot/session-state/{session}/events.jsonl"
    if event.kind in ("before_tool", "after_tool"):
        assert event.cwd == ROOT
    for field in ("kind", "hook", "tool", "command", "paths", "change", "subagent", "text", "result", "failed"):
        default = {"tool": "", "text": "", "paths": (), "change": "update"}.get(field)
        if expected.get(field, default) is not ...:
            assert getattr(event, field) == expected.get(field, default), field
    assert (event.running, event.call, event.calls) == (expected.get("running"), None, ())


@pytest.mark.parametrize("name", [name for name in EVENTS if EVENTS[name] is None])
def test_payload_that_asks_for_nothing(name: str) -> None:
    assert copilot.parse(PAYLOADS[name], ROOT) is None


@pytest.mark.parametrize("name", INPUTS)
def test_fields_have_the_names_that_everybody_uses(name: str) -> None:
    assert event_of(PAYLOADS[name]).input == INPUTS[name]


@pytest.mark.parametrize("name", [name for name in PAYLOADS if name.startswith("camelCase.")])
def test_payloads_of_hooks_in_camel_case_do_not_name_their_hook(name: str) -> None:
    with pytest.raises(BadPayload, match=r"^hook_event_name is missing; register .* PascalCase \(PreToolUse\)$"):
        copilot.parse(PAYLOADS[name], ROOT)


def test_long_results_lose_only_what_is_another_each_time() -> None:
    large = event_of(PAYLOADS["PostToolUse.Bash.too_large"]).result or ""
    assert large.startswith("Output too large to read at once (86.8 KB).\nConsider using tools")
    assert large.endswith("line 63\nline ")
    assert "/tmp" not in large
    patched = event_of(PAYLOADS["PostToolUse.Edit.patch"])
    assert patched.result == PAYLOADS["PostToolUse.Edit.patch"]["tool_result"]["text_result_for_llm"]
    assert patched.input == {"paths": list(PATCH_PATHS), "patch": PAYLOADS["PostToolUse.Edit.patch"]["tool_input"]}


@pytest.mark.parametrize(
    ("said", "result", "is_failed"),
    [
        ("\n<shellId: 12 completed with exit code 0>", "", False),
        ("out\n\n<shellId: 12 completed with exit code 0>", "out\n", False),
        ("<shellId: a completed with exit code 1>", "Exit code 1", True),
        ("E\n<shellId: 7 completed with exit code 137>", "Exit code 137\nE", True),
        ("no mark at all", "no mark at all", False),
        ("two\nlines", "two\nlines", False),
        ("<shellId: 1 completed with exit code 3>\nprinted by a program", None, False),
        ("ends in <b>", "ends in <b>", False),
        ("text\n<p>", "text\n<p>", False),
        ("", "", False),
    ],
)
def test_outcome_of_a_command(said: str, result: str | None, is_failed: bool) -> None:
    payload = {**PAYLOADS["PostToolUse.Bash"], "tool_result": {"result_type": "success", "text_result_for_llm": said}}
    event = event_of(payload)
    assert (event.result, event.failed) == (said if result is None else result, is_failed)


@pytest.mark.parametrize("how", ["rejected", "denied"])
def test_call_that_nobody_permitted_never_ended(how: str) -> None:
    response = {"result_type": how, "text_result_for_llm": "The user rejected this tool call."}
    event = event_of({**PAYLOADS["PostToolUse.Write"], "tool_result": response})
    assert (event.result, event.failed) == (None, None)


def test_same_command_in_another_shell_is_the_same_call() -> None:
    given_first = {"command": "make", "description": "x", "shellId": "a", "initial_wait": 30, "mode": "sync"}
    given_then = {"command": "make", "description": "y", "shellId": "b"}
    events = [event_of({**PAYLOADS["PreToolUse"], "tool_input": one}) for one in (given_first, given_then)]
    from fusewire.breakers.session.calls import signature

    assert signature(events[0]) == signature(events[1])


def test_fields_that_the_tool_does_not_heed_lead_nowhere() -> None:
    """Copilot ignores fields that it does not know: a model could name harmless files and folders in them."""
    decoys = {"cwd": "/tmp", "workdir": "/tmp", "directory": "/tmp"}
    for order in (1, -1):
        fields = [("path", "specs/a.md"), ("file_path", "harmless.txt"), ("command", "ls"), *decoys.items()][::order]
        edit = event_of({**PAYLOADS["PreToolUse.Edit"], "tool_input": dict(fields)})
        assert (edit.paths, edit.command, edit.cwd) == (("specs/a.md",), None, ROOT)
        lines = [("command", "rm -rf specs"), ("cmd", "ls"), *decoys.items()][::order]
        bash = event_of({**PAYLOADS["PreToolUse"], "tool_input": dict(lines)})
        assert (bash.command, bash.cwd) == ("rm -rf specs", ROOT)


@pytest.mark.parametrize(
    ("body", "paths", "change"),
    [
        ("*** Update File: a.txt\n@@\n-x\n+y", ("a.txt",), "update"),
        ("*** Add File: b.txt\n+*** Delete File: c.txt", ("b.txt",), "update"),
        ("*** Delete File: c.txt", ("c.txt",), "delete"),
        ("*** Update File: d.txt\r\n*** Move to: sub/e.txt\r\n@@\r\n-x\r\n+y", ("d.txt", "sub/e.txt"), "delete"),
        ("  *** Delete File:   f.txt", ("f.txt",), "delete"),
        ("*** Update File: /etc/hosts\n@@\n-x\n+y", ("/etc/hosts",), "update"),
    ],
)
def test_patches_name_all_their_files(body: str, paths: tuple[str, ...], change: str) -> None:
    patch = f"*** Begin Patch\n{body}\n*** End Patch"
    event = event_of({**PAYLOADS["PreToolUse.Edit.patch"], "tool_input": patch})
    assert (event.tool, event.paths, event.change) == ("Edit", paths, change)


def test_helper_of_a_helper_belongs_to_the_session_that_its_process_has_open(home: Path) -> None:
    payload = PAYLOADS["PreToolUse.Bash.in_nested_subagent"]
    sessions = home / ".copilot" / "session-state"
    (sessions / "another").mkdir(parents=True)
    (sessions / DEEP_MAIN).mkdir()
    assert event_of(payload).session == DEEP_PARENT  # nobody says whose it is
    (sessions / DEEP_MAIN / f"inuse.{os.getppid()}.lock").write_text("")
    event = event_of(payload)
    assert (event.session, event.subagent) == (DEEP_MAIN, DEEP)
    assert event.transcript == str(sessions / DEEP_MAIN / "events.jsonl")
    (sessions / DEEP_PARENT).mkdir()
    assert event_of(payload).session == DEEP_PARENT


def test_project_is_the_folder_that_it_was_started_in() -> None:
    payload = PAYLOADS["PreToolUse"]
    assert copilot.started_in(payload, {"COPILOT_PROJECT_DIR": "/home/dev/other"}) == "/home/dev/other"
    assert copilot.started_in(payload, {}) == ROOT
    assert copilot.started_in([], {}) is None


def test_each_event_is_answered_once_however_often_the_hook_is_registered(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copilot starts the hooks of all places one after the other; those of Claude Code's settings have no folder."""
    of_person, of_project = home / ".copilot" / "hooks", tmp_path / "project" / ".github" / "hooks"

    def answering() -> list[str]:
        places = {"person": str(of_person), "project": str(of_project), "claude": ""}
        found = []
        for name, folder in places.items():
            monkeypatch.setenv("COPILOT_HOOK_DIR", folder)
            # In a process of its own, below one that was started after the files were made, as Copilot is.
            code = "import json, sys; from fusewire.agents.copilot.hooks import AGENT as copilot\n"
            code += "payload = json.loads(sys.stdin.read());"
            code += " sys.exit(copilot.parse(payload, '/') is None)"
            line = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", code]
            given = json.dumps(PAYLOADS["PreToolUse"]).encode()
            found += [name] if subprocess.run(line, input=given, check=False).returncode == 0 else []
        return found

    monkeypatch.setenv("COPILOT_PROJECT_DIR", str(tmp_path / "project"))
    assert answering() == ["person", "project", "claude"]  # none is the installed one: whoever runs is asked
    for folder, expected in ((of_project, ["project"]), (of_person, ["person"])):
        folder.mkdir(parents=True)
        (folder / "fusewire.json").write_text(
            '{"hooks": {"PreToolUse": [{"bash": "python fusewire/hook.py copilot"}]}}'
        )
        assert answering() == expected
    monkeypatch.delenv("COPILOT_PROJECT_DIR")
    assert answering() == ["person", "project", "claude"]


# -- golden payloads: from the event to the answer -------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in EVENTS if EVENTS[name] is not None])
def test_answers_to_a_payload(name: str) -> None:
    hook = event_of(PAYLOADS[name]).hook
    given = [answer(TEXT, hook) for answer in (copilot.deny, copilot.halt, copilot.tell, copilot.inform)]
    as_printed = [(dumps(out) if out else "", err, code) for out, err, code in ANSWERS[hook]]
    assert given == as_printed
    assert all("\n" not in out for out, _, _ in given)
    assert copilot.allow() == ("", "", 0)


def test_what_fusewire_keeps_going_comes_back_as_no_persons_words() -> None:
    reason = json.loads(copilot.deny("go on with the slice", "Stop")[0])["reason"]
    event = event_of({**PAYLOADS["UserPromptSubmit"], "prompt": reason})
    assert event.kind == "notice"


# -- the real hook process -------------------------------------------------------------------------------


class Copilot:
    """A session of Copilot as its hooks see it, sent to real hook processes."""

    def __init__(self, project: Project, home: Path) -> None:
        self.project, self.home, self.id = project, home, "073e7a08-e225-4d22-abab-ade162c84479"

    def raw(self, data: bytes) -> tuple[dict[str, Any], str, int]:
        line = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "copilot"]
        environment = {**os.environ, "HOME": str(self.home), "COPILOT_PROJECT_DIR": str(self.project.root)}
        answer = subprocess.run(
            line, input=data, cwd=self.project.root, env=environment, capture_output=True, timeout=60, check=False
        )
        out = json.loads(answer.stdout) if answer.stdout.strip() else {}
        return out, answer.stderr.decode().strip(), answer.returncode

    def send(self, hook: str, **fields: Any) -> tuple[dict[str, Any], str, int]:
        common = {"timestamp": "2026-11-16T13:03:01.227Z", "cwd": str(self.project.root)}
        payload = {"hook_event_name": hook, "session_id": self.id, **common, **fields}
        return self.raw(json.dumps(payload).encode())

    def asks(self, tool: str, given: Any, **more: Any) -> tuple[dict[str, Any], str, int]:
        return self.send("PreToolUse", tool_name=tool, tool_input=given, **more)

    def permission(self, **more: Any) -> tuple[dict[str, Any], str, int]:
        payload = {
            "hookName": "permissionRequest",
            "sessionId": self.id,
            "timestamp": 1794834181742,
            "toolName": "bash",
        }
        return self.raw(json.dumps({**payload, "toolInput": {"command": "x"}, **more}).encode())

    def runs(self, command: str, said: str) -> list[tuple[dict[str, Any], str, int]]:
        """One command from its question to its result: all answers; where one refuses, the last."""
        given = {"command": command, "description": "x"}
        answers = [self.asks("Bash", given)]
        if answers[0][2] == 0 and "modifiedArgs" not in answers[0][0]:
            answers.append(self.permission())
            result = {"result_type": "success", "text_result_for_llm": said}
            answers.append(self.send("PostToolUse", tool_name="Bash", tool_input=given, tool_result=result))
        return answers


@pytest.fixture
def agent(project: Project, home: Path) -> Copilot:
    return Copilot(project, home)


SILENT: tuple[dict[str, Any], str, int] = ({}, "", 0)


def test_harmless_work_is_never_answered(agent: Copilot) -> None:
    assert agent.send("SessionStart", source="new", initial_prompt="Do it.") == SILENT
    assert agent.send("UserPromptSubmit", prompt="Do it.") == SILENT
    for number in range(3):
        ended = f"done {number}\n<shellId: {number} completed with exit code 0>"
        assert agent.runs(f"echo done {number} > out.txt", ended) == [SILENT, SILENT, SILENT]
    given = {"path": str(agent.project.root / "new.txt"), "file_text": "new\n"}
    assert agent.asks("Write", given) == SILENT
    assert agent.send("Stop", stop_reason="end_turn", stop_hook_active=False) == SILENT
    assert agent.send("SessionEnd", reason="complete") == SILENT


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "rm -rf specs", "description": "x"}),
        ("Bash", {"command": "rm -rf specs", "cwd": "/tmp", "description": "x"}),
        ("Edit", "*** Begin Patch\n*** Delete File: specs/a.md\n*** End Patch"),
        ("Edit", "*** Begin Patch\n*** Update File: specs/a.md\n*** Move to: b.md\n@@\n-x\n+y\n*** End Patch"),
        ("Write", {"path": "specs/a.md", "file_text": ""}),
        ("filesys-write_file", {"path": "specs/a.md", "content": ""}),
        ("filesys-delete_file", {"path": "specs/a.md"}),
        ("write_bash", {"shellId": "0", "input": "rm -rf specs{enter}"}),
    ],
)
def test_protected_file_is_not_deleted(agent: Copilot, tool: str, given: Any) -> None:
    (agent.project.root / "specs").mkdir()
    (agent.project.root / "specs" / "a.md").write_text("x\n")
    out, err, code = agent.asks(tool, given)
    assert (code, out) == (2, {"permissionDecision": "deny", "permissionDecisionReason": err})
    assert err.startswith("BLOCKED guard.")
    assert "specs" in err


def test_same_failing_command_is_told_refused_and_halted(agent: Copilot) -> None:
    said = "boom\n<shellId: {} completed with exit code 3>"
    answers = [agent.runs("cat missing.txt; exit 3", said.format(number)) for number in range(6)]
    assert answers[0] == answers[1] == [SILENT, SILENT, SILENT]
    told, err, code = answers[2][2]
    assert (err, code, set(told)) == ("", 0, {"additionalContext"})
    assert told["additionalContext"].startswith("CIRCUIT OPEN tool.tool_failure:Bash(cat missing.txt)")
    for out, reason, refused in (answers[3][0], answers[4][0]):
        assert (refused, out["permissionDecision"]) == (2, "deny")
        assert reason.startswith("BLOCKED tool.tool_failure:Bash(cat missing.txt)")
    halted, err, code = answers[5][0]
    assert (err, code, halted["modifiedArgs"]) == ("", 0, {"command": NOTHING})
    assert halted["additionalContext"].startswith("HALTED tool.tool_failure:Bash(cat missing.txt)")
    stopped, reason, code = agent.permission(toolInput={"command": NOTHING})
    assert (code, stopped) == (2, {"behavior": "deny", "message": reason, "interrupt": True})
    assert without_code(reason) == without_code(halted["additionalContext"])


def test_halt_in_a_helper_stops_the_main_agent_until_a_person_speaks(agent: Copilot) -> None:
    helper = {"agent_id": "h1", "agent_type": "task", "parent_agent_id": agent.id}
    own = {"session_id": "h1", **helper}
    given = {"path": "nofile", "view_range": [1, 5]}
    for _ in range(3):
        assert agent.asks("Read", given, **own) == SILENT
        agent.send("PostToolUseFailure", tool_name="Read", tool_input=given, error="Path does not exist", **own)
    answers = [agent.asks("Read", given, **own) for _ in range(3)]
    assert [code for _, _, code in answers] == [2, 2, 2]
    assert answers[2][1].startswith("HALTED ")
    assert agent.permission(**helper)[0]["interrupt"] is True
    assert agent.permission()[0]["interrupt"] is True
    assert agent.asks("Bash", {"command": "echo on", "description": "x"})[0]["modifiedArgs"] == {"command": NOTHING}
    # Neither what a helper is told to do nor the program's own words are a person's.
    assert agent.send("UserPromptSubmit", prompt="SUBTASK please", **own) == SILENT
    assert agent.send("UserPromptSubmit", prompt=PAYLOADS["UserPromptSubmit.autopilot"]["prompt"])[2] == 0
    assert agent.permission()[0]["interrupt"] is True
    assert agent.send("UserPromptSubmit", prompt="Try something else.") == SILENT
    assert agent.permission() == SILENT
    assert agent.asks("Bash", {"command": "echo on", "description": "x"}) == SILENT


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"tool_name": None}, "tool_name must be a text"),
        ({"tool_name": ""}, "tool_name must be a text"),
        ({"tool_input": None}, "tool_input must be an object"),
        ({"tool_input": "rm -rf specs"}, "tool_input must be an object"),
        ({"tool_input": ["rm"]}, "tool_input must be an object"),
        ({"tool_input": {}}, "tool_input.command must be a text"),
        ({"tool_input": {"command": ["rm"]}}, "tool_input.command must be a text"),
        ({"tool_name": "Write", "tool_input": {"file_path": "a"}}, "tool_input.path must be a text"),
        ({"tool_name": "Edit", "tool_input": {"path": "a\0b"}}, "tool_input.file_path must be the path of a file"),
        ({"tool_name": "Edit", "tool_input": "*** Begin Patch\n*** End Patch"}, "a patch that names its files"),
        ({"tool_name": "Edit", "tool_input": "*** Begin Patch\n*** Add File:  \n"}, "tool_input must be a"),
        ({"hook_event_name": 7}, "hook_event_name must be a text"),
    ],
)
def test_question_that_makes_no_sense_is_denied_in_one_line(change: dict[str, Any], what: str) -> None:
    with pytest.raises(BadPayload) as error:
        copilot.parse({**PAYLOADS["PreToolUse"], **change}, ROOT)
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"not JSON", b'{"hook_event_name": "PreToolUse"}', b'"x"'])
def test_process_denies_what_it_cannot_judge(agent: Copilot, data: bytes) -> None:
    out, err, code = agent.raw(data)
    assert (code, out) == (2, {"permissionDecision": "deny", "permissionDecisionReason": err})
    assert err.startswith("BLOCKED fusewire.input: ")
    assert "\n" not in err


def test_process_denies_hooks_that_were_registered_in_camel_case_and_says_what_to_do(agent: Copilot) -> None:
    out, err, code = agent.raw(json.dumps(PAYLOADS["camelCase.preToolUse"]).encode())
    assert (code, out["permissionDecision"]) == (2, "deny")
    assert "PascalCase" in err
    assert "\n" not in err


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(PAYLOADS)), st.data())
def test_whatever_a_field_is_parsing_gives_an_event_or_one_clear_line(name: str, data: st.DataObject) -> None:
    payload = dict(PAYLOADS[name])
    for field in data.draw(st.lists(st.sampled_from(sorted(payload)), max_size=2)):
        payload[field] = data.draw(values)
    said, event = "", None
    try:
        event = copilot.parse(payload, ROOT)
    except BadPayload as error:
        said = str(error)
    assert "\n" not in said
    assert event is None or event.agent == "copilot"

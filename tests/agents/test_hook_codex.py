"""The hook as Codex starts it: its own payloads in, its own protocol out, nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.codex.hooks import AGENT as codex
from tests.helpers import DATA, SOURCE
from tests.helpers.project import Project

PAYLOADS = {path.name[6:-5]: path for path in (DATA / "payloads").glob("codex.*.json")}
ROOT = "/home/dev/project"
HOOK = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "codex"]
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Add File: sub/other.txt\n+x\n*** End Patch\n"
MOVING = (
    "*** Begin Patch\n*** Update File: new.txt\n*** Move to: moved.txt\n@@\n-hello\n+hello2\n"
    "*** Delete File: sub/other.txt\n*** End Patch\n"
)

#: What each payload means.
MEANT: dict[str, dict[str, Any] | None] = {
    "SessionStart": {"kind": "session_start", "text": "startup"},
    "SessionEnd": {"kind": "session_end"},
    "Stop": {"kind": "stop", "text": ""},
    "UserPromptSubmit": {"kind": "prompt", "text": "Do the scripted task.", "subagent": None},
    "UserPromptSubmit.of_subagent": {"kind": "notice", "text": "SUBTASK please", "subagent": None},
    "SubagentStart": {"kind": "agent_start", "subagent": "01a1e47e-8440-71c0-aeb7-2f952c172473", "text": "default"},
    "SubagentStop": {"kind": "agent_stop", "subagent": "01a1e47e-8440-71c0-aeb7-2f952c172473"},
    "PreToolUse.Bash": {
        "kind": "before_tool",
        "tool": "Bash",
        "command": "echo hello-codex",
        "call": "call_rig_main_0_0",
        "cwd": ROOT,
        "subagent": None,
    },
    "PreToolUse.Bash.in_subagent": {
        "kind": "before_tool",
        "tool": "Bash",
        "command": "echo in-sub; exit 4",
        "subagent": "01a1e47e-8440-71c0-aeb7-2f952c172473",
        "session": "01a1e47e-77da-7e50-b8c8-55bef194a755",
    },
    "PreToolUse.Bash.in_code_mode": {"tool": "Bash", "call": "exec-b6039810-cf26-429a-8ea1-b710d8274b88"},
    "PreToolUse.Bash.apply_patch": {
        "tool": "Write",
        "change": "update",
        "paths": ("/tmp/viash.txt",),
        "cwd": "/tmp",
        "command": "apply_patch <<'E'\n*** Begin Patch\n*** Add File: viash.txt\n+hello\n*** End Patch\nE",
    },
    "PreToolUse.apply_patch.add": {
        "tool": "Write",
        "change": "update",
        "paths": ("new.txt", "sub/other.txt"),
        "command": None,
        "input": {"file_path": "new.txt", "files": ["sub/other.txt"], "patch": PATCH},
    },
    "PostToolUse.apply_patch.add": {
        "kind": "after_tool",
        "tool": "Write",
        "paths": ("new.txt", "sub/other.txt"),
        "result": "Success. Updated the following files:\nA new.txt\nA sub/other.txt\n",
        "failed": False,
    },
    "PreToolUse.apply_patch.move_and_delete": {
        "tool": "Edit",
        "change": "update",
        "paths": ("new.txt", "moved.txt", "sub/other.txt"),
        "command": "rm -- new.txt\nrm -- sub/other.txt",
    },
    "PermissionRequest.Bash": {
        "kind": "permission",
        "tool": "Bash",
        "command": "touch /home/dev/outside",
        "call": None,
    },
    "PreToolUse.spawn_agent": {"tool": "Agent", "input": {"prompt": "SUBTASK please"}},
    "PreToolUse.spawn_agent.in_code_mode": {
        "tool": "Agent",
        "input": {"prompt": "SUBTASK please", "description": "look"},
    },
    "PostToolUse.spawn_agent": {
        "tool": "Agent",
        "result": "launched",
        "text": "01a1e47e-8440-71c0-aeb7-2f952c172473",
        "running": ("01a1e47e-8440-71c0-aeb7-2f952c172473",),
    },
    "PostToolUse.spawn_agent.in_code_mode": {"tool": "Agent", "result": "launched", "text": "", "running": ("helper",)},
    "PreToolUse.wait_agent": {"tool": "wait_agent", "command": None},
    "PreToolUse.view_image": {"tool": "Read", "paths": ("/tmp/none.png",), "input": {"file_path": "/tmp/none.png"}},
    "PreToolUse.mcp": {"tool": "mcp__demo__write_note", "paths": ("a/b.txt",)},
    "PostToolUse.mcp": {"result": '[{"text":"wrote","type":"text"}]', "failed": False},
    # Their record is not there, so nobody knows how they ended.
    "PostToolUse.Bash": {"kind": "after_tool", "result": "hello-codex\n", "failed": None},
    "PostToolUse.Bash.failed_command": {"kind": "after_tool", "result": "boom\n", "failed": None},
    "PostToolUse.Bash.in_subagent": {"kind": "after_tool", "result": "in-sub\n", "failed": None},
    "PreModelRequest": None,
    "Interrupt": None,
}


def recorded(name: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(PAYLOADS[name].read_text())
    return payload


# -- golden payloads ------------------------------------------------------------------------------------


def test_every_recorded_payload_has_a_meaning() -> None:
    """The files beside this test are the recorded ones."""
    assert set(PAYLOADS) == set(MEANT)


@pytest.mark.parametrize("name", sorted(MEANT))
def test_a_recorded_payload_means_this(name: str) -> None:
    """Payload in, event out: whose it is, and what it says."""
    payload, meant = recorded(name), MEANT[name]
    event = codex.parse(payload, ROOT)
    if meant is None:
        assert event is None
        return
    assert event is not None
    assert {field: getattr(event, field) for field in meant} == meant
    assert (event.agent, event.session, event.hook) == ("codex", payload["session_id"], payload["hook_event_name"])
    assert event.transcript == payload.get("agent_transcript_path", payload["transcript_path"])


def test_the_folder_of_a_call_is_not_the_project() -> None:
    """`cwd` is where the one command would run; the hook itself is started in the project."""
    payload = recorded("PreToolUse.Bash.apply_patch")
    assert payload["cwd"] == "/tmp"
    assert codex.started_in(payload, {"PWD": "/tmp"}) is None


def test_a_goal_that_goes_on_is_no_person() -> None:
    """What Codex says in a person's place lifts nothing."""
    for said in ('<codex_internal_context source="goal">\ngo on', " <subagent_notification>\ndone"):
        event = codex.parse({**recorded("UserPromptSubmit"), "prompt": said}, ROOT)
        assert event is not None
        assert event.kind == "notice"


# -- answers --------------------------------------------------------------------------------------------

TEXT = 'BLOCKED a.b: no "é"\nNext: stop'
WORDS = json.dumps(TEXT)
NOTHING = ("", "", 0)
HOOKS = (
    *("PreToolUse", "PermissionRequest", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"),
    *("SubagentStart", "SubagentStop"),
)
HEARD = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SubagentStart")

#: The fields that each hook knows of `hookSpecificOutput`, from the schemas in the program; any other voids the answer.
SPECIFIC = {
    "PreToolUse": {"hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext"},
    "PermissionRequest": {"hookEventName", "decision"},
    **{hook: {"hookEventName", "additionalContext"} for hook in HEARD[1:]},
}


@pytest.mark.parametrize("hook", HOOKS)
def test_the_answers_of_each_hook_to_the_letter(hook: str) -> None:
    """Exactly these bytes, and this exit code."""
    said = f'{{"systemMessage":{WORDS}}}'
    context = (
        f'{{"hookSpecificOutput":{{"additionalContext":{WORDS},"hookEventName":"{hook}"}},"systemMessage":{WORDS}}}'
    )
    stop = f'{{"continue":false,"stopReason":{WORDS}}}'
    refusals = {
        "PreToolUse": '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        f'"permissionDecisionReason":{WORDS}}}}}',
        "PermissionRequest": f'{{"hookSpecificOutput":{{"decision":{{"behavior":"deny","message":{WORDS}}},'
        '"hookEventName":"PermissionRequest"}}',
    }
    assert codex.allow() == NOTHING
    assert codex.inform(TEXT, hook) == (NOTHING if hook == "SessionEnd" else (said, "", 0))
    assert codex.tell(TEXT, hook) == ((context, "", 0) if hook in HEARD else codex.inform(TEXT, hook))
    if hook in refusals:
        assert codex.deny(TEXT, hook) == codex.halt(TEXT, hook) == (refusals[hook], TEXT, 2)
    else:
        assert codex.halt(TEXT, hook) == (NOTHING if hook == "SessionEnd" else (stop, "", 0))
    if hook == "UserPromptSubmit":
        assert codex.deny(TEXT, hook) == (f'{{"decision":"block","reason":{WORDS}}}', "", 0)


@pytest.mark.parametrize("hook", HOOKS)
def test_no_answer_has_a_field_that_its_hook_does_not_know(hook: str) -> None:
    """One unknown field, and the whole answer is thrown away: a denied tool would run."""
    for answer in (codex.tell, codex.deny, codex.halt, codex.inform):
        if answer == codex.deny and hook not in ("PreToolUse", "PermissionRequest", "UserPromptSubmit"):
            continue
        stdout, stderr, code = answer(TEXT, hook)
        output = json.loads(stdout or "{}")
        specific = output.pop("hookSpecificOutput", {})
        assert set(specific) <= SPECIFIC.get(hook, set())
        assert specific.get("hookEventName", hook) == hook
        calls = hook in ("PreToolUse", "PermissionRequest")  # neither knows a halt, and both void it
        known = {"systemMessage"} if calls else {"systemMessage", "continue", "stopReason", "decision", "reason"}
        assert set(output) <= known
        assert (code == 2) == bool(stderr)


def test_what_cannot_be_told_is_known_to_the_gate() -> None:
    """The gate keeps it for the next result."""
    assert set(codex.UNHEARD) == set(HOOKS) - set(HEARD)
    assert codex.GATES == ("PreToolUse",)


# -- patches --------------------------------------------------------------------------------------------


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


@pytest.mark.parametrize(
    ("text", "tool", "change", "paths", "command"),
    [
        (patch("*** Delete File: a.md"), "Edit", "delete", ("a.md",), None),
        (patch("*** Add File: a.md", "+", "+  "), "Write", "empty", ("a.md",), None),
        (patch("*** Add File: a.md"), "Write", "empty", ("a.md",), None),
        (patch("*** Update File: a b.md", "@@", "-x", "+y"), "Edit", "update", ("a b.md",), None),
        (patch("*** Update File: a", "*** Move to: b"), "Edit", "update", ("a", "b"), "rm -- a"),
        (
            patch("*** Add File: e", "*** Update File: a", "@@", "-*** Delete File: no", "+y", "*** Delete File: it's"),
            "Edit",
            "update",
            ("e", "a", "it's"),
            ": > e\nrm -- 'it'\"'\"'s'",
        ),
        (patch("  *** Delete File: a.md  \r"), "Edit", "delete", ("a.md",), None),
        (patch("*** Add File: a", "+b\x0b*** Delete File: a.md"), "Write", "update", ("a",), None),
        (patch("+*** Delete File: a.md"), "Write", "update", (), None),
        ("no patch at all", "Write", "update", (), None),
    ],
)
def test_a_patch_names_its_files_and_what_becomes_of_them(
    text: str, tool: str, change: str, paths: tuple[str, ...], command: str | None
) -> None:
    """All paths, and what is deleted, emptied or moved away; where that differs, it is said as commands."""
    event = codex.parse({**recorded("PreToolUse.apply_patch.add"), "tool_input": {"command": text}}, ROOT)
    assert event is not None
    assert (event.tool, event.change, event.paths, event.command) == (tool, change, paths, command)


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        (f"apply_patch <<'EOF'\n{MOVING}EOF", ("new.txt", "moved.txt", "sub/other.txt")),
        (f"cd 'specs' && apply_patch <<'EOF'\n{patch('*** Delete File: a.md')}EOF", ("specs/a.md",)),
        (f"applypatch '{patch('*** Delete File: a.md')}'", ("a.md",)),
        (f"printf '%s' '{patch('*** Delete File: a.md')}'|apply_patch", ("a.md",)),
        (f"cat > notes.md <<'EOF'\n{patch('*** Delete File: a.md')}EOF", None),
        (f"git commit -m '{patch('*** Delete File: a.md')}'", None),
        ("grep -rn apply_patch src", None),
    ],
)
def test_a_patch_in_a_shell_line_is_one_if_it_is_applied(line: str, paths: tuple[str, ...] | None) -> None:
    """Codex applies it without a shell; a line that only speaks of a patch is a line."""
    event = codex.parse({**recorded("PreToolUse.Bash"), "tool_input": {"command": line}}, ROOT)
    assert event is not None
    assert (event.tool, event.paths) == (("Bash", ()) if paths is None else ("Edit", paths))
    assert (event.command or "").startswith(line)


# -- results --------------------------------------------------------------------------------------------


def completed(call: str, code: object, output: str = "") -> str:
    """The line of Codex's record that says how a command ended."""
    item = {
        "type": "CommandExecution",
        "id": call,
        "process_id": "49752",
        "command": ["/bin/bash", "-lc", "it"],
        "status": "failed" if code else "completed",
        "aggregated_output": output,
        "exit_code": code,
        "duration": {"secs": 0, "nanos": 9084},
    }
    said = {"type": "event_msg", "payload": {"type": "item_completed", "item": item, "completed_at_ms": 1794834627861}}
    return json.dumps(said, separators=(",", ":")) + "\n"


DECEIVING = '"exit_code":9,"type":"CommandExecution","id":"call_1" {"exit_code":9}'


@pytest.mark.parametrize(
    ("record", "result", "failed"),
    [
        (completed("call_1", 3, "boom"), "Exit code 3\nboom", True),
        (completed("call_1", 0), "boom\n", False),
        (completed("call_1", -1), "Exit code -1\nboom", True),
        (completed("call_2", 0) + completed("call_1", 3) + completed("call_11", 0), "Exit code 3\nboom", True),
        (completed("call_1", 3, DECEIVING * 900), "Exit code 3\nboom", True),
        (completed("call_2", 9, DECEIVING), "boom\n", None),
        (completed("call_1", None), "boom\n", None),
        (completed("call_1", 3)[:120], "boom\n", None),
        (completed("call_1", 3) + "x" * 600_000 + "\n", "boom\n", None),
        (completed("call_1", 0) + completed("call_1", 3), "Exit code 3\nboom", True),
        (
            completed("call_1", 3) + '{"item":{"type":"McpToolCall","id":"call_1","exit_code":0}}\n',
            "Exit code 3\nboom",
            True,
        ),
        ("", "boom\n", None),
    ],
)
def test_how_a_command_ended_is_in_the_record(tmp_path: Path, record: str, result: str, failed: bool | None) -> None:
    """By its own line and no other; what is not there is not known."""
    path = tmp_path / "rollout.jsonl"
    path.write_text(record)
    payload = {**recorded("PostToolUse.Bash.failed_command"), "tool_use_id": "call_1", "transcript_path": str(path)}
    event = codex.parse(payload, ROOT)
    assert event is not None
    assert (event.result, event.failed) == (result, failed)


def test_a_failure_that_the_payload_tells_is_one() -> None:
    """A patch says its exit code, an MCP tool that it went wrong; the time that it took is no part of the result."""
    response = "Exit code: 1\nWall time: 0.3 seconds\nOutput:\nno such file\n"
    event = codex.parse({**recorded("PostToolUse.apply_patch.add"), "tool_response": response}, ROOT)
    assert event is not None
    assert (event.result, event.failed) == ("no such file\n", True)
    wrong = {"content": [{"type": "text", "text": "BAD"}], "isError": True}
    event = codex.parse({**recorded("PostToolUse.mcp"), "tool_response": wrong}, ROOT)
    assert event is not None
    assert (event.result, event.failed) == ('[{"text":"BAD","type":"text"}]', True)


@pytest.mark.parametrize("transcript", [None, "", 7, "/nowhere/rollout.jsonl", "/", "a\0b"])
def test_a_record_that_cannot_be_read_says_nothing(transcript: object) -> None:
    """Codex may keep none; the result counts all the same."""
    event = codex.parse({**recorded("PostToolUse.Bash"), "transcript_path": transcript}, ROOT)
    assert event is not None
    assert (event.result, event.failed) == ("hello-codex\n", None)


# -- its process ----------------------------------------------------------------------------------------

ASKS = f"{sys.executable} -c 'import sys; sys.path.append(sys.argv[1]); from fusewire.agents.codex.hooks import AGENT; "
ASKS += f"print(AGENT.process(dict()))' {SOURCE.parent}"


@pytest.mark.parametrize(
    ("name", "words", "script", "found"),
    [
        ("/opt/bin/codex", ["exec", "do it"], f"{ASKS}; true", True),
        ("codex", ["-c", "model=x", "e", "do it"], f"sh -c {json.dumps(ASKS + '; true')}; true", True),
        ("codex", ["app-server", "--listen", "unix://"], f"{ASKS}; true", False),
        ("codex", [], f"{ASKS}; true", False),
        ("sh", ["exec", "codex"], f"{ASKS}; true", False),
    ],
)
def test_only_a_run_without_a_person_is_a_process_to_end(name: str, words: list[str], script: str, found: bool) -> None:
    """With a person in front of it, Codex works in a server that all sessions share."""
    run = subprocess.Popen([name, "-c", script, "sh", *words], executable="/bin/sh", stdout=subprocess.PIPE, text=True)
    said, _ = run.communicate(timeout=45)
    assert said.strip() == (str(run.pid) if found else "None")


# -- through the hook -----------------------------------------------------------------------------------


@dataclass
class Session:
    """A session of Codex as its hooks see it, sent to real hook processes; its record is kept as Codex keeps it."""

    project: Project
    calls: int = 0

    @property
    def record(self) -> Path:
        return self.project.root.parent / "rollout-2026-11-16T13-14-15-01a1e47e.jsonl"

    def payload(self, hook: str, **fields: Any) -> dict[str, Any]:
        return {
            "session_id": "01a1e47e-77da-7e50-b8c8-55bef194a755",
            "turn_id": "01a1e47e-7814-7f93-8b0a-5c3a2b7c1d11",
            "transcript_path": str(self.record),
            "cwd": str(self.project.root),
            "hook_event_name": hook,
            "model": "gpt-5.5",
            "permission_mode": "bypassPermissions",
            **fields,
        }

    def send(self, hook: str, **fields: Any) -> subprocess.CompletedProcess[str]:
        return self.raw(json.dumps(self.payload(hook, **fields)))

    def raw(self, text: str) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            HOOK, input=text, cwd=self.project.root, capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in answer.stderr
        return answer

    def before(self, command: str, tool: str = "Bash", **fields: Any) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        call = {"tool_name": tool, "tool_input": {"command": command}, "tool_use_id": f"call_{self.calls}"}
        return self.send("PreToolUse", **call, **fields)

    def fails(self, command: str, **fields: Any) -> str:
        """One failing command: what happened to it, and what the agent was told of it."""
        asked = self.before(command, **fields)
        if asked.returncode:
            return f"refused {asked.stderr}"
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"call_{self.calls}"}
        with self.record.open("a") as file:
            file.write(completed(f"call_{self.calls}", 3, "boom\n"))
        done = self.send("PostToolUse", **call, tool_response="boom\n", **fields)
        said = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""
        return f"ran {said}"


def silent(answer: subprocess.CompletedProcess[str]) -> bool:
    return (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def refused(answer: subprocess.CompletedProcess[str]) -> str:
    """Exit 2, the reason on stderr, and the same reason as JSON."""
    assert answer.returncode == 2, answer
    specific = json.loads(answer.stdout)["hookSpecificOutput"]
    assert specific == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": answer.stderr.strip(),
    }
    return answer.stderr


@pytest.fixture
def session(project: Project) -> Session:
    (project.root / "specs").mkdir()
    (project.root / "specs/a.md").write_text("x\n")
    return Session(project)


def test_harmless_calls_pass_in_silence(session: Session) -> None:
    """Also an update of what is protected, by the tool that is made for it."""
    assert silent(session.send("SessionStart", source="startup"))
    assert silent(session.send("UserPromptSubmit", prompt="Do it."))
    assert silent(session.before("ls specs; echo hi > out.txt"))
    assert silent(session.before(patch("*** Update File: specs/a.md", "@@", "-x", "+y"), "apply_patch"))
    mixed = patch("*** Update File: specs/a.md", "@@", "-x", "+y", "*** Delete File: out.txt")
    assert silent(session.before(mixed, "apply_patch"))
    assert silent(session.send("Stop", stop_hook_active=False, last_assistant_message="Done."))
    assert silent(session.send("SessionEnd", reason="other"))


DELETIONS = {
    "shell": ("Bash", "rm -rf specs", ""),
    "in its folder": ("Bash", "rm *.md", "specs"),
    "patch": ("apply_patch", patch("*** Delete File: specs/a.md"), ""),
    "patch that empties": ("apply_patch", patch("*** Add File: specs/a.md", "+"), ""),
    "patch that moves": ("apply_patch", patch("*** Update File: specs/a.md", "*** Move to: b.md"), ""),
    "patch among others": ("apply_patch", patch("*** Add File: b", "+b", "*** Delete File: specs/a.md"), ""),
    "patch in the shell": ("Bash", f"apply_patch <<'E'\n{patch('*** Delete File: specs/a.md')}E", ""),
    "patch elsewhere": ("Bash", f"cd specs && apply_patch <<'E'\n{patch('*** Delete File: a.md')}E", ""),
    "patch with others elsewhere": (
        "Bash",
        f"cd specs && apply_patch <<'E'\n{patch('*** Add File: b', '+b', '*** Delete File: a.md')}E",
        "",
    ),
}


@pytest.mark.parametrize("way", DELETIONS)
def test_a_protected_file_is_not_deleted(session: Session, way: str) -> None:
    """Whichever of Codex's tools is used for it."""
    tool, command, folder = DELETIONS[way]
    reason = refused(session.before(command, tool, cwd=str(session.project.root / folder)))
    assert reason.startswith("BLOCKED guard.")
    assert "specs/a.md" in reason or "delete specs" in reason


def test_a_stuck_agent_is_told_then_refused_then_halted_until_a_person_speaks(session: Session) -> None:
    """The same failing call: three times it runs, three times it is refused, and then the agent is stopped."""
    said = [session.fails("make all") for _ in range(7)]
    assert [text.partition(" ")[0] for text in said] == ["ran"] * 3 + ["refused"] * 4
    assert (said[0], said[1]) == ("ran ", "ran ")
    assert "failed 3 times" in said[2]
    assert ["HALTED" in text for text in said[3:]] == [False, False, True, True]
    assert "HALTED" in refused(session.before("ls"))  # whatever it asks for
    asks = session.send("PermissionRequest", tool_name="Bash", tool_input={"command": "ls", "description": "please"})
    assert json.loads(asks.stdout)["hookSpecificOutput"]["decision"]["behavior"] == "deny"
    helper = "01a1e47e-8440-71c0-aeb7-2f952c172473"
    assert "HALTED" in refused(session.before("ls", agent_id=helper, agent_type="default"))  # and whoever
    session.send("UserPromptSubmit", prompt="Go on!", agent_id=helper, agent_type="default")
    assert "HALTED" in refused(session.before("ls"))  # a helper's task is no word of a person
    session.send("UserPromptSubmit", prompt="Look at the Makefile first.")
    assert silent(session.before("ls"))


def test_a_helper_that_is_stuck_stops_the_main_agent(session: Session) -> None:
    """The halt is the session's."""
    helper = {"agent_id": "01a1e47e-8440-71c0-aeb7-2f952c172473", "agent_type": "default"}
    said = [session.fails("make all", **helper) for _ in range(6)]
    assert "HALTED" in said[-1]
    assert "HALTED" in refused(session.before("ls"))


def test_a_run_that_goes_on_although_it_is_halted_is_ended(session: Session, tmp_path: Path) -> None:
    """Codex knows no halt in the middle of a turn: the process that asks again and again is ended."""
    calls = [
        {"tool_name": "Bash", "tool_input": {"command": "make all"}, "tool_use_id": f"call_{number}"}
        for number in range(30)
    ]
    session.record.write_text("".join(completed(f"call_{number}", 3, "boom\n") for number in range(30)))
    for number, call in enumerate(calls):
        (tmp_path / f"before.{number}").write_text(json.dumps(session.payload("PreToolUse", **call)))
        after = session.payload("PostToolUse", **call, tool_response="boom\n")
        (tmp_path / f"after.{number}").write_text(json.dumps(after))
    hook = " ".join(HOOK)
    turns = f"for n in $(seq 0 29); do echo $n; {hook} < $1/before.$n 2>&1 && {hook} < $1/after.$n; done; true"
    run = subprocess.Popen(
        ["/opt/codex", "-c", turns, "exec", str(tmp_path)],
        executable="/bin/sh",
        cwd=session.project.root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = run.communicate(timeout=60)
    asked = [int(line) for line in said.splitlines() if line.isdecimal()]
    assert run.returncode == -signal.SIGINT
    assert len(asked) == 9  # three that ran, two refusals, then halts that were not heeded


MALFORMED = {
    "nothing": "",
    "no JSON": "rm -rf specs",
    "a list": "[]",
    "a text": '"PreToolUse"',
    "no event": '{"tool_name": "Bash"}',
    "no tool": '{"hook_event_name": "PreToolUse", "tool_input": {"command": "ls"}}',
    "no input": '{"hook_event_name": "PreToolUse", "tool_name": "Bash"}',
    "input of the wrong type": '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": "ls"}',
    "no command": '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}}',
    "command of the wrong type": '{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":["ls"]}}',
    "no patch": '{"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "tool_input": {"input": "x"}}',
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_cannot_be_judged_is_denied_in_one_line(session: Session, name: str) -> None:
    """In Codex's protocol, and never with a traceback."""
    reason = refused(session.raw(MALFORMED[name]))
    assert reason.startswith("BLOCKED fusewire.input: ")
    assert reason.count("\n") == 1


def test_after_a_call_nothing_is_denied(session: Session) -> None:
    """A malformed result is said to the person; and what is new passes."""
    answer = session.send("PostToolUse", tool_name=7)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert set(json.loads(answer.stdout)) == {"systemMessage"}
    assert silent(session.send("PreModelRequest"))
    assert silent(session.send("SomethingNew", tool_name="Bash"))


def test_strange_fields_pass(session: Session) -> None:
    """What is missing or of another type beside the call itself is no reason to refuse it."""
    assert silent(session.before("ls", session_id=None, transcript_path=None, cwd=7, agent_id=None, new={"a": 1}))

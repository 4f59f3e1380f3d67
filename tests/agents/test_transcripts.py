"""Transcripts of six agents as steps: each format as its client writes it, and whatever else a file may hold."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire.agents.transcripts import records as reading
from fusewire.agents.transcripts.reader import Transcript, steps
from fusewire.agents.transcripts.step import SHELL, TranscriptStep
from fusewire.util.errors import FusewireError
from tests.helpers import DATA

FORMATS = DATA / "transcripts" / "formats"
SESSION = "7d3f1c52-8a41-4f0e-9c66-2b1f4f6a9e10"
CLAUDE = FORMATS / "claude" / f"{SESSION}.jsonl"
CODEX = FORMATS / "codex" / "rollout-2026-11-15T21-26-00-01a1e11a-ee66-7a60-9b0d-c8e157800a10.jsonl"
GEMINI = FORMATS / "gemini" / "session-2026-11-15T21-30-e5fc9c38.jsonl"
SWE = FORMATS / "swe-agent"
COPILOT = FORMATS / "copilot" / "events.jsonl"
OPENCODE = FORMATS / "opencode"


def told(found: Iterator[TranscriptStep]) -> list[str]:
    """Steps as short lines: who, in which reply, what, and how it ended."""
    lines = []
    for step in found:
        who = f"{step.agent}/{step.turn}" if step.agent else step.turn
        match step.kind:
            case "prompt":
                lines.append(f"> {step.text}")
            case "call":
                given = step.input.get("command") or step.input.get("file_path") or sorted(step.input)
                lines.append(f"{who} {step.call} {step.tool}: {given}")
            case "result":
                ended = {True: "failed", False: "went well", None: "unknown"}[step.failed]
                lines.append(f"{who} {step.call} {ended}: {step.text}")
            case "reply_end":
                lines.append(f"{who} .")
    return lines


# -- Claude Code ------------------------------------------------------------------------------------------

CLAUDE_MAIN = [
    "> Fix the failing test.",
    "msg_01 toolu_1 Bash: pytest -q",
    "msg_01 toolu_1 failed: Exit code 1\nFAILED tests/test_a.py::test_x - assert 1 == 2",
    "msg_01 .",
    "msg_02 toolu_2 Read: /home/dev/project/a.py",
    "msg_02 toolu_3 Agent: ['description', 'prompt', 'subagent_type']",
    "msg_02 toolu_2 went well: 1\tdef x():\n2\t    return 1",
    "msg_02 toolu_3 went well: no callers",
    "msg_02 .",
    "> and use the helper",
    "msg_03 toolu_4 Edit: /home/dev/project/a.py",
    "msg_03 toolu_4 went well: The file was updated.",
    "msg_03 .",
    "> Thanks.\nNow commit.",
    "msg_04 .",
]
CLAUDE_AGENT = [
    "a1b2c3d4/msg_s1 toolu_s1 Grep: ['pattern']",
    "a1b2c3d4/msg_s1 toolu_s1 went well: No matches found",
    "a1b2c3d4/msg_s1 .",
    "a1b2c3d4/msg_s2 .",
]


def test_claude_code() -> None:
    """Blocks of one message are one reply; what the client wrote in the person's place is no prompt."""
    transcript = Transcript(CLAUDE)
    assert transcript.format == "claude"
    assert told(transcript.steps(agents=False)) == CLAUDE_MAIN
    assert transcript.broken == 1  # the last line is cut


def test_sub_agents_of_claude_code_are_told_in_the_order_of_time() -> None:
    found = list(steps(CLAUDE))
    assert told(iter(found)) == [*CLAUDE_MAIN[:7], *CLAUDE_AGENT, *CLAUDE_MAIN[7:]]
    assert {step.session for step in found} == {SESSION}
    times = [step.at or 0 for step in found]
    assert times == sorted(times)
    assert times[0] == 1794777421.0
    below = CLAUDE.with_suffix("") / "subagents" / "agent-a1b2c3d4.jsonl"
    assert told(steps(below)) == CLAUDE_AGENT


def test_sidechains_in_the_main_file_are_their_agents(tmp_path: Path) -> None:
    """As older clients wrote them: replies of two agents between each other, and a prompt that is no person's."""

    def line(kind: str, message: dict[str, Any], agent: str | None) -> str:
        extra = {"isSidechain": True, "agentId": agent} if agent else {"isSidechain": False}
        return json.dumps({"type": kind, "sessionId": "s", "uuid": "u", "message": message, **extra}) + "\n"

    def call(identity: str) -> dict[str, Any]:
        return {"id": f"m{identity}", "content": [{"type": "tool_use", "id": identity, "name": "Read", "input": {}}]}

    def result(identity: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": identity, "content": None}]}

    path = tmp_path / "s.jsonl"
    path.write_text(
        line("user", {"content": "Find it"}, "a")
        + line("assistant", call("1"), "a")
        + line("assistant", call("2"), None)
        + line("user", result("1"), "a")
        + line("user", result("2"), None)
        + line("assistant", call("3"), "a")
    )
    assert told(steps(path)) == [
        "a/m1 1 Read: []",
        "m2 2 Read: []",
        "a/m1 1 went well: ",
        "m2 2 went well: ",
        "a/m1 .",
        "a/m3 3 Read: []",
        "m2 .",
        "a/m3 .",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "<task-notification>\nx",
        "  <local-command-stdout>ok</local-command-stdout>",
        "<bash-stdout>a</bash-stdout>",
        "<system-reminder>SUDO PARALLEL</system-reminder>",
        "[Request interrupted by user for tool use]",
        "   ",
    ],
)
def test_what_the_client_writes_is_no_persons_message(tmp_path: Path, said: str) -> None:
    path = tmp_path / "s.jsonl"
    lines = [{"content": said}, {"content": [{"type": "text", "text": said}]}, {"content": "SUDO PARALLEL"}]
    records = [{"type": "user", "sessionId": "s", "uuid": "u", "message": message} for message in lines]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert told(steps(path)) == ["> SUDO PARALLEL"]


# -- Codex ------------------------------------------------------------------------------------------------


def test_codex() -> None:
    """How a command ended is told by an event, by a field, or above its output; never by a word in it."""
    transcript = Transcript(CODEX)
    assert transcript.format == "codex"
    found = list(transcript.steps())
    assert told(iter(found)) == [
        "> Fix the build.",
        "reply-1 call_1 Bash: make",
        "reply-1 call_2 Bash: ls | head",
        "reply-1 call_1 failed: make: *** no rule\n",
        "reply-1 call_2 went well: a\nb\n",
        "reply-1 .",
        "reply-2 call_3 apply_patch: ['input', 'paths']",
        "reply-2 call_3 went well: Success. Updated the following files:\nM Makefile\n",
        "reply-2 .",
        "reply-3 call_4 Bash: make all",
        "reply-3 call_4 failed: Process exited with code 0\n",
        "reply-3 .",
        "reply-4 call_5 mcp__docs__search: ['query']",
        "reply-4 call_5 failed: not found",
        "reply-4 .",
        "reply-5 call_6 update_plan: ['arguments']",
        "reply-5 call_6 unknown: Plan updated",
        "reply-5 .",
        "reply-6 .",
        "> Fix the build.",
    ]
    assert {step.session for step in found} == {"01a1e11a-ee66-7a60-9b0d-c8e157800a10"}
    assert found[1].input == {"command": "make", "workdir": "/home/dev/project"}


def test_older_rollouts_of_codex() -> None:
    found = list(steps(FORMATS / "codex" / "rollout-2025-05-07T17-24-21-old.jsonl"))
    assert told(iter(found)) == [
        "> List the files.",
        "reply-1 c1 Bash: ls 'a b'",
        "reply-1 c1 failed: ls: no such file",
        "reply-1 .",
        "reply-2 .",
    ]
    assert found[0].session == "5973b6c0-94b8-487b-a530-2aeb6098ae0e"


def test_a_sub_agent_of_codex_hears_no_person(tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl"
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    records = [
        {"type": "session_meta", "payload": {"id": "t2", "source": {"subagent": {"thread_spawn": {}}}}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "SUDO PARALLEL"}},
        {"type": "response_item", "payload": call},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "x"}},
        {"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "c", "exit_code": 1}},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    # the event that knows how the command ended came after its output
    assert told(steps(path)) == ["t2/reply-1 c Bash: ['command']", "t2/reply-1 c failed: x", "t2/reply-1 ."]


@pytest.mark.parametrize(
    ("output", "text", "failed"),
    [
        ("Exit code: 1\nWall time: 1 seconds\nOutput:\nboom\n", "boom\n", True),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nExit code: 1\n", "Exit code: 1\n", False),
        ("Wall time: 1 s\nProcess running with session ID 5\nOutput:\nExit code: 1\n", None, None),
        ("Exit code: 1 was seen", None, None),
        ('{"output": "x", "metadata": {"exit_code": "1"}}', None, None),
        ({"content": "no", "success": False}, "no", True),
        ({"content": [{"type": "text", "text": "yes"}], "success": True}, "yes", False),
        (
            [{"type": "input_text", "text": "a"}, {"type": "input_image"}, {"type": "input_text", "text": "b"}],
            "a\nb",
            None,
        ),
        (None, "", None),
    ],
)
def test_outputs_of_codex(tmp_path: Path, output: Any, text: str | None, failed: bool | None) -> None:
    """Only the structure tells whether a command failed."""
    path = tmp_path / "rollout-1.jsonl"
    call = {"type": "function_call", "name": "shell_command", "arguments": '{"command":"x"}', "call_id": "c"}
    result = {"type": "function_call_output", "call_id": "c", "output": output}
    path.write_text("".join(json.dumps({"type": "response_item", "payload": item}) + "\n" for item in (call, result)))
    (found,) = [step for step in steps(path) if step.kind == "result"]
    assert (found.text, found.failed) == (output if text is None else text, failed)


# -- Gemini -----------------------------------------------------------------------------------------------

GEMINI_OUTPUT = "\n".join(
    [
        "Command: make",
        "Directory: (root)",
        "Stdout: (empty)",
        "Stderr: no rule",
        "Error: (none)",
        "Exit Code: 2",
        "Signal: (none)",
        "Background PIDs: (none)",
        "Process Group PGID: 77",
    ]
)


@pytest.mark.parametrize("name", [GEMINI.name, "session-2026-11-15T21-30-older.json"])
def test_gemini(name: str) -> None:
    """A message that comes again with more in it is told once."""
    transcript = Transcript(GEMINI.with_name(name))
    assert transcript.format == "gemini"
    found = list(transcript.steps())
    calls = ["m2 run-1 Bash: make", "m2 read-1 read_file: Makefile"]
    results = [f"m2 run-1 failed: {GEMINI_OUTPUT}", "m2 read-1 failed: "]
    assert sorted(told(iter(found))[1:5]) == sorted([*calls, *results])
    assert [line for line in told(iter(found)) if line not in calls + results] == [
        "> Fix the build.",
        "m2 .",
        "m3 .",
        "> Stop.",
    ]
    assert {step.session for step in found} == {"e5fc9c38-495a-4c95-816a-977506a161a0"}
    assert transcript.broken == 0


def test_a_cancelled_call_of_gemini_has_not_failed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "status": "cancelled", "result": None}
    message = {"id": "m", "timestamp": "2026-11-15T21:30:00Z", "type": "gemini", "content": "", "toolCalls": [call]}
    path.write_text(json.dumps(message))
    assert told(steps(path)) == ["m c Bash: ls", "m c unknown: ", "m ."]


# -- SWE-agent --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "dev__project-1.traj",
            [
                "> Solve the issue: x is 1.",
                "reply-1 reply-1.0 Bash: ls -F",
                "reply-1 reply-1.0 unknown: a.py\ntests/\n",
                "reply-1 .",
                "reply-2 reply-2.0 Read: /repo/a.py",
                "reply-2 reply-2.0 unknown: [Error] no such file",
                "reply-2 .",
                "reply-3 .",
                "reply-4 reply-4.0 Bash: submit",
                "reply-4 reply-4.0 unknown: diff --git a/a.py b/a.py",
                "reply-4 .",
            ],
        ),
        (
            "older.traj",
            [
                "reply-1 reply-1.0 Read: a.py",
                "reply-1 reply-1.0 unknown: [File: /repo/a.py (2 lines total)]\n1:x = 1",
                "reply-1 .",
                "reply-2 reply-2.0 Edit: /repo/a.py",
                "reply-2 reply-2.0 unknown: [File: /repo/a.py (2 lines total)]\n1:x = 2",
                "reply-2 .",
            ],
        ),
        (
            "mini.traj.json",
            [
                "> <pr_description>\nx is 1\n</pr_description>",
                "reply-1 call_a Bash: ls",
                "reply-1 call_b Bash: cat nope",
                "reply-1 call_a went well: a.py\n",
                "reply-1 call_b failed: cat: nope: No such file\n",
                "reply-1 .",
                "reply-2 .",
            ],
        ),
        (
            "mini-older.traj.json",
            [
                "> Please solve this issue: x is 1",
                "reply-1 reply-1.0 Bash: cat a.py | head",
                "reply-1 reply-1.0 went well: x = 1",
                "reply-1 .",
                "reply-2 reply-2.0 Bash: python - <<'EOF'\nassert 0\nEOF",
                "reply-2 reply-2.0 failed: AssertionError",
                "reply-2 .",
            ],
        ),
        (
            "published.json",
            [
                "> We're currently solving the following issue.",
                "reply-1 reply-1.0 Grep: ['path', 'pattern']",
                "reply-1 reply-1.0 unknown: No matches found\n(Open file: n/a)\nbash-$",
                "reply-1 .",
                "reply-2 reply-2.0 Bash: submit",
                "reply-2 .",
            ],
        ),
    ],
)
def test_swe_agent(name: str, expected: list[str]) -> None:
    """The documents of SWE-agent, of mini-SWE-agent, and of published collections, as they are now and were before."""
    transcript = Transcript(SWE / name)
    found = list(transcript.steps())
    assert transcript.format == "swe-agent"
    assert told(iter(found)) == expected
    assert {step.session for step in found} == {name.partition(".")[0]}


@pytest.mark.parametrize(
    ("action", "tool", "given"),
    [
        ("create new.py", "Write", {"file_path": "new.py"}),
        (
            "edit 3:5\na\nb\nend_of_edit",
            "Edit",
            {"file_path": "/r/a.py", "old_string": "lines 3:5", "new_string": "a\nb"},
        ),
        ("edit 3:5\nend_of_edit", "Edit", {"file_path": "/r/a.py", "old_string": "lines 3:5", "new_string": ""}),
        ("scroll_down", "Read", {"file_path": "/r/a.py", "offset": "scroll_down"}),
        ("open b.py 40", "Read", {"file_path": "b.py", "offset": "40"}),
        ('open "two words.py"', "Read", {"file_path": "two words.py"}),
        ("open 'half", "Read", {"file_path": "'half"}),
        ("search_file TODO", "Grep", {"pattern": "TODO", "path": "/r/a.py"}),
        ("find_file x.py", "Glob", {"pattern": "x.py", "path": "."}),
        ("str_replace_editor str_replace /r/c.py --old_str 'a' --new_str 'b'", "Edit", None),
        ("str_replace_editor create /r/c.py --file_text 'a'", "Write", None),
        ("str_replace_editor nonsense", SHELL, None),
        ("echo edit 1:2", SHELL, None),
        ("open", SHELL, None),
        ("editor a.py", SHELL, None),
    ],
)
def test_the_tools_of_swe_agent_are_those_of_everybody(
    tmp_path: Path, action: str, tool: str, given: dict[str, Any] | None
) -> None:
    """An edit is a change and paging is reading; what only looks like such a command stays one of the shell."""
    path = tmp_path / "run.traj"
    shown = {"action": "ls", "observation": "[File: /r/a.py (2 lines total)]"}
    path.write_text(json.dumps({"trajectory": [shown, {"action": action, "observation": ""}]}))
    (call,) = [step for step in steps(path) if step.kind == "call" and step.turn == "reply-2"]
    assert call.tool == tool
    if given is not None:
        assert call.input == given


def test_the_error_messages_of_swe_agents_tools_are_failures(tmp_path: Path) -> None:
    """A text that merely has such words further down is none."""
    failed = [
        "Your proposed edit has introduced new syntax error(s). Please read this",
        "No replacement was performed, old_str `x` did not appear verbatim in /a.py.",
        "The path /nope.py does not exist. Please provide a valid path.",
        "Usage: search_file <search_term> [<file>]\nError: File name x.java not found.",
        "File tests/x.py not found",
        "/bin/bash: line 1: javac: command not found",
        "EXECUTION TIMED OUT",
    ]
    honest = [
        'No matches found for "x" in /repo',
        "[File: /repo/a.py (9 lines total)]\n1:raise Error: File not found",
        "1 passed\nThe path /nope.py does not exist",
        "def test(): File a.py not found",
    ]
    path = tmp_path / "run.traj"
    path.write_text(json.dumps({"trajectory": [{"action": "a", "observation": one} for one in failed + honest]}))
    assert [step.failed for step in steps(path) if step.kind == "result"] == [True] * len(failed) + [None] * len(honest)


def test_an_editor_that_is_called_as_a_function(tmp_path: Path) -> None:
    arguments = {"command": "str_replace", "path": "/r/a.py", "old_str": "a", "new_str": "b"}
    call = {"id": "c1", "function": {"name": "str_replace_editor", "arguments": json.dumps(arguments)}}
    path = tmp_path / "run.traj"
    path.write_text(json.dumps({"history": [{"role": "assistant", "content": "", "tool_calls": [call]}]}))
    (step,) = [step for step in steps(path) if step.kind == "call"]
    assert (step.tool, step.input) == ("Edit", {"file_path": "/r/a.py", "old_str": "a", "new_str": "b"})


def test_a_history_alone_is_read_and_beside_a_trajectory_it_is_not(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": "Do it"},
        {"role": "assistant", "content": "I do", "action": "ls\n", "thought": ""},
        {"role": "user", "content": "a.py", "message_type": "observation"},
    ]
    path = tmp_path / "h.traj"
    path.write_text(json.dumps({"history": history}))
    expected = ["> Do it", "reply-1 reply-1.0 Bash: ls", "reply-1 reply-1.0 unknown: a.py", "reply-1 ."]
    assert told(steps(path)) == expected
    path.write_text(json.dumps({"trajectory": [{"action": "ls", "observation": "a.py"}], "history": history}))
    assert told(steps(path)) == expected[1:]


# -- Copilot, opencode ------------------------------------------------------------------------------------


def test_copilot() -> None:
    """As 1.0.102 wrote it: how a command ended is a field, and a helper writes into the session's own file."""
    transcript = Transcript(COPILOT)
    assert transcript.format == "copilot"
    lines = [line.split(" ", 1)[1] for line in told(transcript.steps(agents=False))]
    assert lines[0] == "Do the scripted task."
    calls = [line.partition(" ")[2] for line in lines if line.startswith("toolu")]
    assert calls[:8] == [
        "Bash: echo hello; ls",
        "Read: /etc/hostname",
        "failed: Permission denied because no interactive user response was available. Retry in an interactive session "
        "so the user can approve it, or try an alternative that does not require this permission.",
        "went well: hello",
        "Bash: echo boom >&2; exit 3",
        "failed: boom",
        "Write: /home/dev/project/a.py",
        "went well: Created file /home/dev/project/a.py with 6 characters",
    ]
    found = list(transcript.steps())
    assert {step.agent for step in found} == {"", "c4941737-01e1-49fe-9193-6bae4b72b142"}
    assert sum(step.kind == "prompt" for step in found) == 1  # what a helper is told to do is none
    assert len({step.session for step in found}) == 1
    edits = [step.input for step in found if step.tool == "Edit"]
    assert edits[0] == {"file_path": "/home/dev/project/a.py", "old_string": "x = 1", "new_string": "x = 2"}


OPENCODE_CALLS = [
    ("Bash", "hello\nopencode.json\n", False),
    ("Read", "File not found: /home/dev/project/zzz", True),
    ("Bash", "boom\n", True),
    ("Write", "Wrote file successfully.", False),
]


def test_opencode() -> None:
    """As 1.18.33 wrote it: an exported session has its prompt, the lines of `opencode run` have none."""
    for name, prompts, order in (("export.json", 1, OPENCODE_CALLS), ("run.jsonl", 0, None)):
        transcript = Transcript(OPENCODE / name)
        assert transcript.format == "opencode"
        found = list(transcript.steps())
        assert transcript.broken == 0
        assert sum(step.kind == "prompt" for step in found) == prompts
        tools = {step.call: step.tool for step in found if step.kind == "call"}
        results = [(tools[step.call], step.text, step.failed) for step in found if step.kind == "result"]
        if order:
            assert results[:4] == order
            assert ("nosuch", True) in [(tool, failed) for tool, _, failed in results]
        else:
            assert results[0] == OPENCODE_CALLS[1]
        ended = [step.turn for step in found if step.kind == "reply_end"]
        assert len(ended) == len(set(ended)) >= 2
        assert len({step.session for step in found}) == 1


# -- whether a person was there ---------------------------------------------------------------------------


def claude_lines(*messages: object, **fields: object) -> str:
    common = {"type": "user", "sessionId": "s", "uuid": "u", **fields}
    return "".join(json.dumps({**common, "message": {"role": "user", "content": one}}) + "\n" for one in messages)


def declined(text: str) -> list[dict[str, object]]:
    return [{"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": text}]


@pytest.mark.parametrize(
    ("content", "is_attended", "says"),
    [
        (claude_lines("a", "b", entrypoint="sdk-cli"), False, "entrypoint sdk-cli"),
        (claude_lines("a", entrypoint="cli"), True, "entrypoint cli"),
        (claude_lines("a", "b", entrypoint="tomorrow"), True, "a second message"),
        (claude_lines("a"), False, "nothing tells of a person"),
        (claude_lines("a", "b"), True, "a second message"),
        (claude_lines("a", "[Request interrupted by user]"), True, "a person interrupted it"),
        (
            claude_lines("a", declined("The user doesn't want to proceed with this tool use.")),
            True,
            "a call was declined",
        ),
        (claude_lines("a", declined("The user said so")), False, "nothing tells of a person"),
        (claude_lines("a", "<task-notification>x"), False, "nothing tells of a person"),
        (
            '{"type":"session_meta","payload":{"id":"1","source":"exec","originator":"codex_exec"}}\n',
            False,
            "source exec",
        ),
        ('{"type":"session_meta","payload":{"id":"1","source":"cli"}}\n', True, "source cli"),
        (
            '{"type":"session_meta","payload":{"id":"1","source":{"subagent":"x"}}}\n',
            False,
            "nothing tells of a person",
        ),
        ('{"trajectory": [{"action": "ls", "observation": ""}]}', False, "no person sits at these runs"),
    ],
)
def test_whether_a_person_was_there(tmp_path: Path, content: str, is_attended: bool, says: str) -> None:
    """The file's own word first, then what only a person does; without either nobody was."""
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    assert Transcript(path).is_attended() == (is_attended, says)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (COPILOT, "a session that is not interactive"),
        *((OPENCODE / n, "opencode run") for n in ("export.json", "run.jsonl")),
    ],
)
def test_programs_that_say_that_nobody_is_there(name: Path, says: str) -> None:
    assert Transcript(name).is_attended() == (False, says)


# -- what is no transcript, and what is broken ------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"hello\n",
        b"{",
        b"[",
        b"[]",
        b"{}",
        b"[1, 2]",
        b'{"a": 1}\n{"b": 2}\n',
        b'{"messages": []}',
        b'{"messages": 5, "history": {"role": "user"}}',
        b'{"type": "assistant"}\n',
        b'{\n "name": "package",\n "version": "1.0.0"\n}\n',
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b'{"trajectory": ' * 50_000,
    ],
)
def test_what_is_no_transcript_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(FusewireError) as error:
        steps(path)
    assert (
        str(error.value)
        == f"{path}: not a transcript; allowed: one of claude, codex, copilot, gemini, opencode, swe-agent"
    )


def test_what_is_no_file_is_one_clear_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, says in (
        ("none", "the transcript cannot be read: No such file or directory"),
        ("", "not a regular file; allowed: an agent's transcript"),
        ("pipe", "not a regular file; allowed: an agent's transcript"),
        ("loop", "the transcript cannot be read: Too many levels of symbolic links"),
    ):
        with pytest.raises(FusewireError) as error:
            steps(tmp_path / name)
        assert str(error.value) == f"{tmp_path / name}: {says}"
    with pytest.raises(FusewireError):
        steps("a\0b")


def test_broken_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    """At the beginning, in the middle and at the end."""
    lines = CODEX.read_bytes().splitlines(keepends=True)
    garbage = [b'{"type":"response_item","payl\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"]
    path = tmp_path / "r.jsonl"
    path.write_bytes(garbage[0] + b"".join(lines[:9]) + b"".join(garbage[1:]) + b"".join(lines[9:]) + b'{"a')
    transcript = Transcript(path)
    assert told(transcript.steps()) == told(steps(CODEX))
    assert transcript.broken == 4
    list(transcript.steps())
    assert transcript.broken == 4


def test_a_line_that_is_too_long_is_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST", 10_000)
    path = tmp_path / "r.jsonl"
    path.write_bytes(CODEX.read_bytes() + b'{"x":"' + b"x" * 35_000 + b'"}\n' + CODEX.read_bytes())
    transcript = Transcript(path)
    assert len(list(transcript.steps())) > len(list(steps(CODEX)))
    assert transcript.broken == 1


@pytest.mark.parametrize("name", ["dev__project-1.traj", "mini.traj.json", "older.traj"])
def test_a_document_that_is_cut_tells_what_it_has(tmp_path: Path, name: str) -> None:
    """Wherever it is cut: a beginning of the steps, the end of an open reply, never more."""
    whole = told(steps(SWE / name))
    content = (SWE / name).read_bytes()
    path = tmp_path / name
    least = 0
    for at in range(0, len(content), 37):
        path.write_bytes(content[:at])
        try:
            found = told(steps(path))
        except FusewireError:
            assert least == 0
            continue
        same = found if found == whole[: len(found)] else found[:-1]  # the reply that was open is over
        assert same == whole[: len(same)]
        assert len(found) >= least
        least = len(found)
    assert least > 5


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_a_document_is_the_same_in_whatever_pieces_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Numbers, characters and brackets may be cut anywhere."""
    path = tmp_path / "x.traj"
    trajectory = [{"action": f"echo \u00e9{number}", "observation": "\U0001f600", "n": 12.5e3} for number in range(20)]
    path.write_text(json.dumps({"n": 1234567, "trajectory": trajectory, "info": None}, ensure_ascii=False, indent=1))
    whole = told(steps(path))
    monkeypatch.setattr(reading, "_CHUNK", size)
    transcript = Transcript(path)
    assert told(transcript.steps()) == whole
    assert len(whole) == 60
    assert transcript.broken == 0


def test_an_array_of_records_is_read_as_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "excerpt.json"
    records = [json.loads(line) for line in CODEX.read_text().splitlines()]
    path.write_text(json.dumps(records, indent=1))
    assert told(steps(path)) == told(steps(CODEX))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
PLACES = [
    (path, number) for path in (CLAUDE, CODEX, GEMINI, COPILOT) for number in range(len(path.read_text().splitlines()))
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), depth=st.lists(st.integers(0, 9), min_size=1, max_size=4), value=ANYTHING)
def test_a_field_of_any_other_type_is_no_crash(
    tmp_path: Path, place: tuple[Path, int], depth: list[int], value: Any
) -> None:
    """Every field of every record of the formats may be anything: the other records are told all the same."""
    source, number = place
    lines = source.read_text().splitlines()
    try:
        record = json.loads(lines[number])
    except ValueError:
        return
    inside: Any = record
    for step in depth[:-1]:
        inner = list(inside.values() if isinstance(inside, dict) else inside)
        if not inner or not isinstance(inner[step % len(inner)], (dict, list)) or not inner[step % len(inner)]:
            break
        inside = inner[step % len(inner)]
    key: Any = list(inside)[depth[-1] % len(inside)] if isinstance(inside, dict) else depth[-1] % len(inside)
    inside[key] = value
    lines[number] = json.dumps(record)
    path = tmp_path / source.name
    path.write_text("\n".join(lines))
    for found in steps(path):
        assert isinstance(found.input, dict)
        assert isinstance(found.text, str)
        assert found.failed in (True, False, None)


# -- size -------------------------------------------------------------------------------------------------


def test_a_large_transcript_is_never_whole_in_memory(tmp_path: Path) -> None:
    """20 MB as lines, and as a document whose steps repeat all that was asked: a few MB at a time."""
    step = {"action": "ls", "observation": "x" * 100_000, "query": [{"role": "user", "content": "y" * 100_000}]}
    document = tmp_path / "big.traj"
    document.write_text(json.dumps({"environment": "main", "trajectory": [step] * 100, "info": {}}, indent=1))
    output = {"type": "function_call_output", "call_id": "c", "output": "x" * 200_000}
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    both = "".join(json.dumps({"type": "response_item", "payload": item}) + "\n" for item in (call, output))
    lines = tmp_path / "rollout.jsonl"
    lines.write_text(both * 100)
    for path in (document, lines):
        assert path.stat().st_size > 20_000_000
        tracemalloc.start()
        count = sum(step.kind == "result" for step in steps(path))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count == 100
        assert peak < 12_000_000


def test_a_sub_agents_file_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    path = tmp_path / CLAUDE.name
    path.write_bytes(CLAUDE.read_bytes())
    below = path.with_suffix("") / "subagents"
    below.mkdir(parents=True)
    os.mkfifo(below / "agent-x.jsonl")
    transcript = Transcript(path)
    assert told(transcript.steps()) == CLAUDE_MAIN
    assert transcript.broken == 2

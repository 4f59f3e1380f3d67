"""Transcripts of four agents as steps: each format as its client writes it, and whatever else a file may hold."""

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
        "reply-2 call_3 apply_patch: ['input']",
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
                "reply-2 reply-2.0 Bash: str_replace_editor view /repo/a.py",
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
                "reply-1 reply-1.0 Bash: open a.py",
                "reply-1 reply-1.0 unknown: [File: /repo/a.py (2 lines total)]\n1:x = 1",
                "reply-1 .",
                "reply-2 reply-2.0 Bash: edit 1:1\nx = 2\nend_of_edit",
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
                'reply-1 reply-1.0 Bash: search_dir "x"',
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
    assert {step.tool for step in found if step.kind == "call"} == {SHELL}


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
    assert str(error.value) == f"{path}: not a transcript; allowed: one of claude, codex, gemini, swe-agent"


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
PLACES = [(path, number) for path in (CLAUDE, CODEX, GEMINI) for number in range(len(path.read_text().splitlines()))]


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

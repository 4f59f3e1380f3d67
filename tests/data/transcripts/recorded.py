"""A session as the scenes tell it, and the three formats in which agents leave one behind.

The scenes of the corpus say what an agent did; how Claude Code, Codex and SWE-agent write that down is said here once,
so that a field that a client renames is one change. Times are invented, and pass as they do for real: some seconds
for a reply, some for each call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

ROOT = "/home/dev/project"
_BEGIN = 1_794_823_200.0  # 2026-11-16 10:00 UTC


@dataclass
class Call:
    """One call of a tool and what came back of it. `failed` is what the client says, not what the text looks like."""

    tool: str
    input: dict[str, Any]
    result: str
    failed: bool = False
    takes: float = 0.8


@dataclass
class _Reply:
    at: float
    agent: str
    text: str
    calls: list[Call]


@dataclass
class _Message:
    at: float
    text: str
    person: bool


@dataclass
class Session:
    """What happened, in order. Numbers in results come from `dice`, the same in every run of the generator."""

    name: str
    now: float = _BEGIN
    steps: list[_Reply | _Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = Random(self.name)

    def asked(self, text: str) -> None:
        """A person writes."""
        self.now += 20
        self.steps.append(_Message(self.now, text, person=True))

    def notified(self, text: str) -> None:
        """A background task reports; it arrives where a person's message would, and is none."""
        self.now += 2
        self.steps.append(_Message(self.now, text, person=False))

    def does(self, *calls: Call, says: str = "", agent: str = "", after: float | None = None) -> None:
        """One reply of the model with its batch of calls."""
        self.now += self.dice.uniform(2.5, 6.0) if after is None else after
        self.steps.append(_Reply(self.now, agent, says, list(calls)))
        self.now += sum(call.takes for call in calls)

    def ends(self, text: str) -> None:
        """The last words, without a call."""
        self.does(says=text)

    def seconds(self, low: float, high: float) -> str:
        return f"{self.dice.uniform(low, high):.2f}"

    def hexadecimal(self, digits: int) -> str:
        return f"{self.dice.getrandbits(4 * digits):0{digits}x}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _line(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


# -- Claude Code ------------------------------------------------------------------------------------------


def write_claude(session: Session, folder: Path) -> None:
    """`<name>.jsonl`, and what sub-agents did in `<name>/subagents/agent-<id>.jsonl`."""
    files: dict[str, list[str]] = {"": []}
    for number, step in enumerate(session.steps):
        agent = step.agent if isinstance(step, _Reply) else ""
        lines = files.setdefault(agent, [])
        if isinstance(step, _Message):
            lines.append(_claude_line(session, "user", step.at, "", {"role": "user", "content": step.text}))
            continue
        identifier = f"msg_{session.hexadecimal(20)}"
        blocks: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
        names = [f"toolu_{number:03}_{at}_{session.hexadecimal(6)}" for at in range(len(step.calls))]
        blocks += [
            {"type": "tool_use", "id": name, "name": call.tool, "input": call.input}
            for name, call in zip(names, step.calls, strict=True)
        ]
        for at, block in enumerate(blocks):
            message = {
                "id": identifier,
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [block],
                "stop_reason": "tool_use" if step.calls else "end_turn",
                "usage": {"input_tokens": 6, "cache_read_input_tokens": 800 * number, "output_tokens": 120},
            }
            lines.append(_claude_line(session, "assistant", step.at + 0.01 * at, agent, message))
        at_end = step.at
        for name, call in zip(names, step.calls, strict=True):
            at_end += call.takes
            result = {"tool_use_id": name, "type": "tool_result", "content": call.result, "is_error": call.failed}
            lines.append(_claude_line(session, "user", at_end, agent, {"role": "user", "content": [result]}))
    for agent, lines in files.items():
        path = folder / f"{session.name}.jsonl"
        if agent:
            path = folder / session.name / "subagents" / f"agent-{agent}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")


def _claude_line(session: Session, kind: str, at: float, agent: str, message: dict[str, Any]) -> str:
    own = {"agentId": agent} if agent else {}
    return _line(
        {
            "isSidechain": bool(agent),
            **own,
            "type": kind,
            "message": message,
            "uuid": session.hexadecimal(8),
            "timestamp": _iso(at),
            "cwd": ROOT,
            "sessionId": session.name,
            "version": "2.1.325",
        }
    )


# -- Codex ------------------------------------------------------------------------------------------------


def write_codex(session: Session, folder: Path) -> None:
    """A rollout: what the model asked for as response items, and what became of a command as an event beside it."""
    lines: list[str] = []

    def add(at: float, kind: str, **payload: Any) -> None:
        lines.append(_line({"timestamp": _iso(at), "type": kind, "payload": payload}))

    add(session.steps[0].at - 1, "session_meta", id=session.name, cwd=ROOT, cli_version="0.166.0", source="exec")
    for number, step in enumerate(session.steps):
        if isinstance(step, _Message):
            content = [{"type": "input_text", "text": step.text}]
            add(step.at, "turn_context", turn_id=f"turn-{number}", cwd=ROOT, model="gpt-5.2-codex")
            add(step.at, "response_item", type="message", role="user", content=content)
            add(step.at, "event_msg", type="user_message", message=step.text)
            continue
        if step.text:
            add(step.at, "event_msg", type="agent_message", message=step.text)
        names = [f"call_{number:03}_{at}_{session.hexadecimal(8)}" for at in range(len(step.calls))]
        for name, call in zip(names, step.calls, strict=True):
            if call.tool == "apply_patch":
                given = {"type": "custom_tool_call", "name": call.tool, "input": call.input["input"]}
            else:
                given = {"type": "function_call", "name": call.tool, "arguments": json.dumps(call.input)}
            add(step.at, "response_item", **given, call_id=name)
        at_end = step.at
        for name, call in zip(names, step.calls, strict=True):
            at_end += call.takes
            code = 1 if call.failed else 0
            if call.tool == "apply_patch":
                output = json.dumps({"output": call.result, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
                add(at_end, "response_item", type="custom_tool_call_output", call_id=name, output=output)
                continue
            if call.tool == "exec_command":
                item = {
                    "type": "CommandExecution",
                    "id": name,
                    "command": call.input["cmd"],
                    "exit_code": code,
                    "status": "failed" if call.failed else "completed",
                }
                add(at_end, "event_msg", type="item_completed", item=item)
            output = (
                f"Chunk ID: {session.hexadecimal(6)}\nWall time: {call.takes:.4f} seconds\nProcess exited with code "
                f"{code}\nOriginal token count: {len(call.result) // 4}\nOutput:\n{call.result}"
            )
            add(at_end, "response_item", type="function_call_output", call_id=name, output=output)
        usage = {"input_tokens": 900 * number, "cached_input_tokens": 700 * number, "output_tokens": 90 * number}
        add(at_end, "event_msg", type="token_count", info={"total_token_usage": usage})
    (folder / f"{session.name}.jsonl").write_text("".join(lines), encoding="utf-8")


# -- SWE-agent --------------------------------------------------------------------------------------------


def write_swe_agent(session: Session, folder: Path) -> None:
    """A `.traj`: one action a step, its command as text, no times and no exit codes."""
    trajectory: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    for step in session.steps:
        if isinstance(step, _Message):
            history.append({"role": "user", "content": step.text, "agent": "main", "message_type": "observation"})
            continue
        for call in step.calls:
            trajectory.append(
                {
                    "action": call.input["command"],
                    "observation": call.result,
                    "response": step.text,
                    "thought": step.text,
                    "execution_time": call.takes,
                    "state": {"open_file": "n/a", "working_dir": "/testbed"},
                    "query": [] if trajectory else list(history),
                }
            )
    info = {"exit_status": "submitted", "submission": "diff --git a/x b/x\n", "model_stats": {"api_calls": 1}}
    data = {"trajectory": trajectory, "history": history, "info": info, "environment": "main"}
    (folder / f"{session.name}.traj").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


WRITERS = {"claude": write_claude, "codex": write_codex, "swe-agent": write_swe_agent}

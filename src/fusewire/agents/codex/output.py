"""Read what `codex exec --json` prints, one event a line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fusewire.agents.output.answer import Limit
from fusewire.agents.output.conversation import Conversation, Requests, call_label, tool_line
from fusewire.agents.output.format import JSON_STRING, OutputFormat
from fusewire.agents.values import count, part, words
from fusewire.core.events import plain
from fusewire.testruns.evidence import runs_something
from fusewire.testruns.run import problem
from fusewire.util.fast_json import JsonObject

_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")
_SHELL = re.compile(r"""^\S*sh -l?c (["']?)(.*)\1$""", re.DOTALL)

#: How the client words a failed turn; it has no field for the status.
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_USAGE_LIMIT = re.compile(r"You['\u2019]ve hit your usage limit")
_OUTAGE = re.compile(
    r"stream disconnected before completion|error sending request|We['\u2019]re currently experiencing high demand"
)


def is_codex(message: JsonObject) -> bool:
    kind = words(message.get("type"))
    if kind == "thread.started":
        return "thread_id" in message
    if kind.startswith("item."):
        return isinstance(message.get("item"), dict)
    return kind in ("turn.started", "turn.completed", "turn.failed")


@dataclass
class Codex(Conversation):
    """Items of the type `error` are warnings; only a turn that failed is an error."""

    format: str = "codex"
    _requests: Requests = field(default_factory=Requests)
    _complaint: str = ""

    def take(self, message: JsonObject) -> str:
        kind = message.get("type")
        if kind == "thread.started":
            self.session = words(message.get("thread_id")) or self.session
        elif kind in ("item.started", "item.completed"):
            return self._item(part(message.get("item")), done=kind == "item.completed")
        elif kind == "turn.completed":
            self._completed(part(message.get("usage")))
        elif kind == "turn.failed":
            self._failed(words(part(message.get("error")).get("message")))
        elif kind == "error":
            self._complaint = words(message.get("message"))
        return ""

    def _item(self, item: JsonObject, *, done: bool) -> str:
        kind = words(item.get("type"))
        if kind in ("agent_message", "reasoning") and done:
            self._requests.answered()
            self.replied = True
            return self.say(words(item.get("text"))) if kind == "agent_message" else ""
        if kind not in _TOOLS:
            return ""
        self._requests.answered()
        self.replied = True
        if not done:
            return ""
        self._requests.result()
        self._tool(kind, item)
        return tool_line(words(item.get("tool")) or kind, item)

    def _tool(self, kind: str, item: JsonObject) -> None:
        status = item.get("status")
        if status == "declined":
            self.count_denial(call_label(words(item.get("tool")) or kind, item))
            return
        self.end_denials()
        code = item.get("exit_code")
        failed = status == "failed" or (isinstance(code, int) and code != 0)
        if kind == "command_execution" and runs_something(_command(words(item.get("command")))):
            self.work.saw(words(item.get("aggregated_output")), failed=failed)
        else:
            self.work.other_call(failed=failed)

    def _completed(self, usage: JsonObject) -> None:
        self.complete, self.ended, self._complaint = True, "completed", ""
        self.input_tokens = count(usage.get("input_tokens"))
        self.output_tokens = count(usage.get("output_tokens"))

    def _failed(self, said: str) -> None:
        self.complete, self.ended, self.is_error, self._complaint = True, "failed", True, ""
        self._requests.answered()
        status = _STATUS.search(said)
        if _USAGE_LIMIT.match(said):
            self.limit = Limit(None, "usage_limit")
        elif status or _OUTAGE.match(said):
            self.refused(int(status[1]) if status else None, said)
        else:
            self.failures.append(problem("agent", "turn failed", said or "the turn failed"))

    def close(self) -> None:
        if self._complaint and not self.complete:
            self._failed(plain(self._complaint, 2000))
            self.complete = False
        self.calls = self._requests.count or None


def _command(command: str) -> str:
    """What the shell was given, without the shell."""
    match = _SHELL.match(command)
    return match[2] if match else command


FORMAT = OutputFormat(
    is_codex,
    Codex,
    shapes=(
        (
            "codex",
            re.compile(r'"type": ?"item\.completed"'),
            re.compile(rf'"type": ?"agent_message", ?"text": ?{JSON_STRING}'),
        ),
    ),
    later_types=("error",),
)

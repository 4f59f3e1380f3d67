"""Read what Gemini CLI prints: `-o json` (one object; an error on stderr) and `-o stream-json`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fusewire.agents.output.conversation import TEXT, Conversation, Requests, call_label, tool_line
from fusewire.agents.output.format import JSON_STRING, OutputFormat
from fusewire.agents.values import count, part, total, words
from fusewire.testruns.evidence import runs_something
from fusewire.testruns.run import problem
from fusewire.util.fast_json import JsonObject, loads

_SHELL = "run_shell_command"
_DENIALS = ("policy_violation", "permission_denied")
_ASKING = ("ask_user", "exit_plan_mode")

#: The provider's answer stands as JSON inside the client's message.
_STATUS = re.compile(r'\[API Error: .*?"code": ?(\d{3})\b', re.DOTALL)
_REMEMBERED = 5_000


def is_gemini(message: JsonObject) -> bool:
    kind = message.get("type")
    if kind is None:
        answered = isinstance(message.get("stats"), dict) and "response" in message
        return answered or ("session_id" in message and "code" in part(message.get("error")))
    if "timestamp" not in message:
        return False
    return (kind == "init" and "session_id" in message and "model" in message) or (
        (kind == "message" and "role" in message)
        or (kind == "tool_use" and "tool_name" in message)
        or (kind in ("tool_result", "result") and "status" in message)
        or (kind == "error" and "severity" in message)
    )


def error_in(text: str) -> JsonObject | None:
    """The error object at the end of what was printed on standard error."""
    start = text.rfind("\n{\n")
    start = start + 1 if start >= 0 else (0 if text.startswith("{\n") else -1)
    end = text.find("\n}", start)
    if start < 0 or end < 0:
        return None
    try:
        message = loads(text[start : end + 2])
    except ValueError:
        return None
    return message if isinstance(message, dict) and is_gemini(message) and "error" in message else None


@dataclass
class Gemini(Conversation):
    format: str = "gemini"
    _requests: Requests = field(default_factory=Requests)
    _tools: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    _speaking: bool = False

    def take(self, message: JsonObject) -> str:
        self.session = words(message.get("session_id")) or self.session
        kind = message.get("type")
        if kind is None:
            return self._document(message)
        if kind == "message" and message.get("role") == "assistant":
            return self._speak(words(message.get("content")), more=message.get("delta") is True)
        if kind == "tool_use":
            return self._tool(message)
        if kind == "tool_result":
            self._result(message)
        elif kind == "result":
            self._end(message)
        return ""

    def _document(self, message: JsonObject) -> str:
        self.complete, self.ended = True, "completed"
        models = [part(model) for model in part(part(message.get("stats")).get("models")).values()]
        tokens = [part(model.get("tokens")) for model in models]
        self.calls = total(*(count(part(model.get("api")).get("totalRequests")) for model in models))
        self.input_tokens = total(*(count(one.get("prompt")) for one in tokens))
        self.output_tokens = total(*(count(one.get(name)) for one in tokens for name in ("candidates", "thoughts")))
        tools = part(part(part(message.get("stats")).get("tools")).get("byName"))
        denied = [name for name, tool in tools.items() if count(part(part(tool).get("decisions")).get("reject"))]
        self.deny(denied, 1 if denied else 0)
        error = part(message.get("error"))
        self.replied = not error
        if error:
            status = count(error.get("code"))
            self._error(words(error.get("type")), words(error.get("message")), status if (status or 0) >= 400 else None)
        return self.say(words(message.get("response")))

    def _speak(self, text: str, *, more: bool) -> str:
        """Deltas of one reply are one text; whatever stands between starts another."""
        self._requests.answered()
        self.replied = True
        self.text = ((self.text if self._speaking and more else "") + text)[-TEXT:]
        self._speaking = True
        return text

    def _tool(self, message: JsonObject) -> str:
        self._requests.answered()
        self.replied = True
        before = "\n" if self._speaking else ""
        self._speaking = False
        name, given = words(message.get("tool_name")), part(message.get("parameters"))
        runs = name == _SHELL and runs_something(words(given.get("command")))
        if len(self._tools) < _REMEMBERED:
            self._tools[words(message.get("tool_id"))] = (name, call_label(name, given), runs)
        return before + tool_line(name, given)

    def _result(self, message: JsonObject) -> None:
        self._requests.result()
        self._speaking = False
        name, label, runs = self._tools.pop(words(message.get("tool_id")), ("", "", False))
        if part(message.get("error")).get("type") in _DENIALS and name not in _ASKING:
            self.count_denial(label)
            return
        self.end_denials()
        failed = message.get("status") == "error"
        if runs:
            self.work.saw(words(message.get("output")), failed=failed)
        else:
            self.work.other_call(failed=failed)

    def _end(self, message: JsonObject) -> None:
        self.complete = True
        stats, error = part(message.get("stats")), part(message.get("error"))
        self.input_tokens = count(stats.get("input_tokens"))
        self.output_tokens = count(stats.get("output_tokens"))
        if message.get("status") == "success":
            self.ended = "completed"
            return
        self._requests.answered()
        said = words(error.get("message"))
        status = _STATUS.match(said)
        self._error(words(error.get("type")), said, int(status[1]) if status else None)

    def _error(self, kind: str, said: str, status: int | None) -> None:
        self.is_error, self.ended = True, "failed"
        if status is not None:
            self.refused(status, said)
        else:
            self.failures.append(problem("agent", kind or "error", said or "no reason was given"))

    def close(self) -> None:
        if self.calls is None:
            self.calls = self._requests.count or None


FORMAT = OutputFormat(
    is_gemini,
    Gemini,
    shapes=(
        ("gemini", re.compile(r'^\{\s+"session_id"'), re.compile(rf'"response": ?{JSON_STRING}')),
        ("gemini", re.compile(r'"role": ?"assistant"'), re.compile(rf'"content": ?{JSON_STRING}')),
    ),
    documents=("gemini",),
    error_in=error_in,
)

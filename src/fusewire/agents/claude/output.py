"""Read what Claude Code prints: `--output-format json` (one object, or an array of messages) and `stream-json`."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from fusewire.agents.output.answer import Limit
from fusewire.agents.output.conversation import TEXT, Conversation, call_label, tool_line
from fusewire.agents.output.format import JSON_STRING, OutputFormat
from fusewire.agents.values import amount, count, part, parts, text_of, total, words
from fusewire.core.events import plain
from fusewire.core.pacing import Window
from fusewire.testruns.evidence import runs_something
from fusewire.testruns.run import problem
from fusewire.util.fast_json import JsonObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Tools whose denial is a question that stayed without an answer.
_ASKING = ("AskUserQuestion", "ExitPlanMode")
_SHELLS = ("Bash", "PowerShell")

#: What the permission mode `acceptEdits` allows without a question, in the project's folder (measured with 2.1.325).
_EDITORS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
_EDITING_COMMANDS = ("cp", "mkdir", "mv", "rm", "rmdir", "sed", "touch")
_FIRST_WORDS = re.compile(r"(?:^|&&|\|\|?|;|\n)\s*(?:\w+=\S*\s+)*([\w./+-]+)")

#: Ends that the user has set as a limit: no failure of the work.
_LIMITS = {"error_max_turns": "max_turns", "error_max_budget_usd": "budget_exhausted"}
_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MODEL_USAGE = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")

#: Seconds that the windows of a subscription last, by the beginning of their names.
_WINDOWS = {"five_hour": 5 * 3600.0, "seven_day": 7 * 86400.0}
_STATUS = re.compile(r"\bAPI Error:? [^\d\n]{0,40}(\d{3})\b")

#: Characters of a command that are looked at for its programs, and tools that a remedy lists.
_COMMAND, _LISTED = 2_000, 5

#: Messages and calls that are remembered: blocks of one message come close together.
_REMEMBERED = 5_000


def is_claude(message: JsonObject) -> bool:
    """A message of the stream, or the one result."""
    kind = message.get("type")
    if kind == "result":
        return "is_error" in message or ("subtype" in message and "session_id" in message)
    if "session_id" not in message:
        return False
    if kind in ("assistant", "user"):
        return isinstance(message.get("message"), dict)
    if kind == "system":
        return "subtype" in message
    return kind in ("rate_limit_event", "stream_event", "tool_progress", "tool_use_summary", "auth_status")


@dataclass(frozen=True)
class _Call:
    """What is remembered of a tool's call; its arguments may be large."""

    name: str = ""
    label: str = ""
    #: the programs that its command starts
    programs: tuple[str, ...] = ()
    runs: bool = False
    question: str = ""


def _call(name: str, given: object) -> _Call:
    arguments = part(given)
    asked = [words(question.get("question")) for question in parts(arguments.get("questions"))]
    question = (
        plain((asked[0] if asked else "") or words(arguments.get("plan")) or name, 500) if name in _ASKING else ""
    )
    command = words(arguments.get("command")) if name in _SHELLS else ""
    programs = tuple(word for word in _FIRST_WORDS.findall(command[:_COMMAND]) if word != "cd")
    return _Call(name, call_label(name, given), programs, runs_something(command), question)


def _remedy(calls: list[_Call], mode: str) -> str:
    """The permission mode and the tools with which these calls would have been allowed."""
    others = [call for call in calls if mode == "acceptEdits" or not _is_edit(call)]
    tools = dict.fromkeys(
        tool for call in others for tool in ([f"Bash({word}:*)" for word in call.programs] or [call.name])
    )
    options = [] if len(others) == len(calls) else ["--permission-mode acceptEdits"]
    options += [f'--allowedTools "{",".join(list(tools)[:_LISTED])}"'] if tools else []
    return f"claude {' '.join(options)} allows it, --permission-mode bypassPermissions everything" if options else ""


def _is_edit(call: _Call) -> bool:
    return all(word in _EDITING_COMMANDS for word in call.programs) if call.programs else call.name in _EDITORS


@dataclass
class Claude(Conversation):
    """Reads the messages in order; a lone result differs from a stream by what came before it."""

    format: str = "claude-json"
    _usage: OrderedDict[str, tuple[int | None, int | None]] = field(default_factory=OrderedDict)
    _spent: list[int | None] = field(default_factory=lambda: [None, None])
    _requests: int = 0
    _calls: OrderedDict[str, _Call] = field(default_factory=OrderedDict)
    _results: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _rejected: OrderedDict[str, str] = field(default_factory=OrderedDict)
    #: calls that a hook has denied: no permission would allow them
    _by_hook: set[str] = field(default_factory=set)
    _mode: str = ""
    _speaking: str = ""
    _limited: Limit | None = None

    def take(self, message: JsonObject) -> str:
        self.session = words(message.get("session_id")) or self.session
        kind = message.get("type")
        self.format = self.format if kind == "result" else "claude-stream"
        if kind == "assistant":
            return self._assistant(message)
        if kind == "user":
            self._user(message)
        elif kind == "system":
            self._system(message)
        elif kind == "rate_limit_event":
            self._rate(part(message.get("rate_limit_info")))
        elif kind == "stream_event":
            self._event(part(message.get("event")), words(message.get("api_message_id")))
        elif kind == "result":
            return self._result(message)
        return ""

    def _assistant(self, message: JsonObject) -> str:
        said = part(message.get("message"))
        identity = words(said.get("id"))
        if said.get("model") == "<synthetic>":
            # The client speaks in the model's place: a request has failed.
            self._requests += 1 if message.get("error") or message.get("is_api_error_message") else 0
        else:
            self._limited, self.replied = None, True
            self._spend(identity, part(said.get("usage")))
        shown = ""
        own = not message.get("parent_tool_use_id")
        for block in parts(said.get("content")):
            if block.get("type") == "text" and own:
                text = words(block.get("text"))
                before = f"{self.text}\n" if self._speaking == identity and identity and self.text else ""
                self.text, self._speaking = (before + text)[-TEXT:], identity
                shown += text + "\n"
            elif block.get("type") == "tool_use":
                name = words(block.get("name"))
                _remember(self._calls, words(block.get("id")), _call(name, block.get("input")))
                shown += tool_line(name, block.get("input"))
        return shown

    def _spend(self, identity: str, usage: JsonObject) -> None:
        """A message comes once per content block, each time with the same usage."""
        if identity not in self._usage:
            self._requests += 1
        given = total(*(count(usage.get(name)) for name in _USAGE))
        before = self._usage.get(identity, (None, None))
        now = (_larger(before[0], given), _larger(before[1], count(usage.get("output_tokens"))))
        for index in (0, 1):
            difference = (now[index] or 0) - (before[index] or 0)
            self._spent[index] = total(self._spent[index], difference if now[index] is not None else None)
        _remember(self._usage, identity, now)

    def _event(self, event: JsonObject, identity: str) -> None:
        """With --include-partial-messages: the only place where the whole output of a message is counted."""
        if event.get("type") == "message_delta" and identity in self._usage:
            self._spend(identity, {"output_tokens": part(event.get("usage")).get("output_tokens")})

    def _user(self, message: JsonObject) -> None:
        for meta in parts(message.get("tool_result_meta")):
            decided = part(meta.get("permission_decision"))
            if decided.get("decision") == "reject":
                _remember(self._rejected, words(meta.get("id")), "")
                if decided.get("source") == "hook":
                    self._by_hook.add(words(meta.get("id")))
        for block in parts(part(message.get("message")).get("content")):
            if block.get("type") == "tool_result":
                self._tool_result(words(block.get("tool_use_id")), block)

    def _tool_result(self, identity: str, block: JsonObject) -> None:
        self._results.append(identity)
        failed = block.get("is_error") is True
        if self._calls.get(identity, _Call()).runs:
            self.work.saw(text_of(block.get("content")), failed=failed and identity not in self._rejected)
        else:
            self.work.other_call(failed=failed)

    def _system(self, message: JsonObject) -> None:
        if message.get("subtype") == "permission_denied":
            _remember(self._rejected, words(message.get("tool_use_id")), words(message.get("tool_name")))
        elif message.get("subtype") == "api_retry":
            self._requests += 1
        elif message.get("subtype") == "init":
            self._mode = words(message.get("permissionMode"))

    def _rate(self, info: JsonObject) -> None:
        if info.get("status") == "rejected":
            kind = plain(words(info.get("rateLimitType")), 80) or "rate_limit"
            self._limited = Limit(self.moment(info.get("resetsAt")), kind)
        elif "status" in info:
            self._limited = None
        named = part(info.get("unifiedWindows")) or {words(info.get("rateLimitType")): info}
        self.windows = tuple(filter(None, (self._window(name, part(given)) for name, given in named.items())))

    def _window(self, name: str, given: JsonObject) -> Window | None:
        used, ends = amount(given.get("utilization")), self.moment(given.get("resetsAt"))
        length = next((seconds for kind, seconds in _WINDOWS.items() if name.startswith(kind)), None)
        return None if used is None or ends is None or length is None else Window(name, used, ends, length)

    def _result(self, message: JsonObject) -> str:
        self.complete = True
        self.is_error = message.get("is_error") is True
        subtype = words(message.get("subtype"))
        end = _LIMITS.get(subtype) or subtype.removeprefix("error_")
        if subtype in ("", "success"):
            end = "error" if self.is_error else "completed"
        self.ended = plain(words(message.get("terminal_reason")) or end, 80)
        shown = ""
        if words(message.get("result")):
            shown = "" if self._speaking else words(message.get("result")) + "\n"
            self.say(words(message.get("result")))
        self.cost = amount(message.get("total_cost_usd"))
        self._totals(message)
        self._denials(message)
        self.failures.clear()
        self.outage = ""
        if self.is_error:
            self._error(message, subtype)
        else:
            self._limited, self.replied = None, True
        return shown

    def _totals(self, message: JsonObject) -> None:
        """By model if that is given: it includes the helpers that the agent has started."""
        models = [part(model) for model in part(message.get("modelUsage")).values()]
        usage = part(message.get("usage"))
        self.input_tokens = total(*(count(model.get(name)) for model in models for name in _MODEL_USAGE))
        self.output_tokens = total(*(count(model.get("outputTokens")) for model in models))
        if not models:
            self.input_tokens = total(*(count(usage.get(name)) for name in _USAGE))
            self.output_tokens = count(usage.get("output_tokens"))
        self.calls = self._requests or count(message.get("num_turns"))

    def _error(self, message: JsonObject, subtype: str) -> None:
        listed = message.get("errors")
        errors = "; ".join(map(words, listed)) if isinstance(listed, list) else ""
        said = words(message.get("result")) or errors or subtype
        status = count(message.get("api_error_status"))
        if status is None and not words(message.get("terminal_reason")) and said.startswith("API Error"):
            match = _STATUS.match(said)  # older clients tell the status only here
            self.refused(int(match[1]) if match else None, said)
        elif status is not None or message.get("terminal_reason") == "api_error":
            self.refused(status, said, words(message.get("api_error_type")))
        elif subtype not in _LIMITS:
            self.failures.append(problem("agent", self.ended if subtype in ("", "success") else subtype, said))

    def _denials(self, message: JsonObject) -> None:
        listed = parts(message.get("permission_denials"))
        calls = [_call(words(denial.get("tool_name")), denial.get("tool_input")) for denial in listed]
        for denial, call in zip(listed, calls, strict=True):
            _remember(self._rejected, words(denial.get("tool_use_id")), call.name)
        if calls and not self._results:
            denied = [call for call in calls if call.name not in _ASKING]
            self.deny([call.label for call in denied], 1 if denied else 0)
            self.remedy = f"unless a hook or a rule forbids it, {_remedy(denied, '')}" if denied else ""
            self.question = calls[-1].question or None

    def close(self) -> None:
        if self._results:
            self._rows()
        if self._limited:
            self.limit = self._limited
        if not self.complete:
            self.calls = self._requests or None
            self.input_tokens, self.output_tokens = self._spent

    def _rows(self) -> None:
        """Denials in the order of the results. A question counts only if nothing came after it."""
        names, row, longest = [], 0, 0
        asked_for = []
        call = _Call()
        for identity in self._results:
            call = self._calls.get(identity, _Call())
            if identity not in self._rejected:
                row = 0
            elif call.name not in _ASKING:
                names.append(call.label or self._rejected[identity])
                asked_for += [call] if call.name and identity not in self._by_hook else []
                row += 1
                longest = max(longest, row)
        self.deny(names, longest)
        self.remedy = _remedy(asked_for, self._mode)
        if self._results[-1] in self._rejected:
            self.question = call.question or None


def _remember(table: OrderedDict[str, Any], key: str, value: Any) -> None:
    table[key] = value or table.get(key, value)
    if len(table) > _REMEMBERED:
        table.popitem(last=False)


def _larger(one: int | None, other: int | None) -> int | None:
    return max(known) if (known := [value for value in (one, other) if value is not None]) else None


FORMAT = OutputFormat(
    is_claude,
    Claude,
    shapes=(
        (
            "claude-json",
            re.compile(r'"type": ?"result"|"total_cost_usd"|"num_turns"'),
            re.compile(rf'"result": ?{JSON_STRING}'),
        ),
        (
            "claude-stream",
            re.compile(r'"type": ?"assistant"'),
            re.compile(rf'"type": ?"text", ?"text": ?{JSON_STRING}'),
        ),
    ),
    documents=("claude-json",),
    array="claude-json",
)

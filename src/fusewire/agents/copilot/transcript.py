"""Read the events of a Copilot CLI session (`session-state/ID/events.jsonl`), as 1.0.102 writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusewire.agents.transcripts.format_reader import FormatReader, moment
from fusewire.agents.transcripts.step import SHELL, TranscriptStep
from fusewire.agents.values import part, parts, text_of, words
from fusewire.util.fast_json import JsonObject

_FAMILIES = ("session.", "user.", "assistant.", "tool.", "system.", "subagent.", "permission.", "hook.")

#: The tools, and the fields of those that name files, by the names that they have for everybody.
_TOOLS = {
    "bash": SHELL,
    "shell": SHELL,
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "task": "Agent",
    "read_bash": "BashOutput",
    "read_agent": "AgentOutputTool",
    "web_fetch": "WebFetch",
}
_FIELDS = {"path": "file_path", "file_text": "content", "old_str": "old_string", "new_str": "new_string"}
_FILE_TOOLS = ("Read", "Write", "Edit")

#: What the program writes behind the output of a command, and what it tells a model that nobody can talk to.
_SHELL_END = "\n<shellId: "
_NOBODY = "running in non-interactive mode"


class CopilotReader(FormatReader):
    """Reads the records of one file; sub-agents write into the session's own, each under its id."""

    name = "copilot"

    @staticmethod
    def recognises(key: str, record: Any) -> bool:
        if key or not isinstance(record, dict) or not isinstance(record.get("data"), dict):
            return False
        return "id" in record and "timestamp" in record and words(record.get("type")).startswith(_FAMILIES)

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        record = part(record)
        kind, data, at = record.get("type"), part(record.get("data")), moment(record.get("timestamp"))
        agent = words(record.get("agentId"))
        if kind == "session.start":
            self.session = self.session or words(data.get("sessionId"))
        elif kind == "system.message" and not agent and _NOBODY in words(data.get("content")):
            self._started_by("a session that is not interactive", is_attended=False)
        elif kind == "user.message":
            said = words(data.get("content"))
            if not agent and not data.get("source") and said.strip():
                yield from self._prompt(said, at)
        elif kind == "assistant.message":
            turn = words(data.get("messageId"))
            yield from self._begin(turn, at, agent)
            for call in parts(data.get("toolRequests")):
                tool, given = _translated(words(call.get("name")), call.get("arguments"))
                yield self._call(at, turn, tool, given, words(call.get("toolCallId")), agent)
        elif kind == "tool.execution_complete":
            text, failed = _outcome(data)
            yield self._result(at, self._open.get(agent, ""), words(data.get("toolCallId")), text, failed, agent)
        elif kind == "assistant.turn_end":
            yield from self._end(agent, at)


def _translated(name: str, given: object) -> tuple[str, JsonObject]:
    """The tool and its input by the names that they have for all agents. A patch comes as a text."""
    tool = _TOOLS.get(name, name)
    if isinstance(given, str):
        from fusewire.agents.patches import patched_files

        return tool, {"patch": given, "paths": list(patched_files(given))}
    fields = part(given)
    if tool in _FILE_TOOLS:
        fields = {_FIELDS.get(field, field): value for field, value in fields.items()}
    return tool, fields


def _outcome(data: JsonObject) -> tuple[str, bool | None]:
    """What a call gave back; a command that ended badly is still a success of its tool."""
    code = part(data.get("shellExecution")).get("exitCode")
    text = text_of(part(data.get("result")).get("content"))
    if type(code) is int:
        return text.partition(_SHELL_END)[0], code != 0
    if data.get("success") is False:
        return words(part(data.get("error")).get("message")) or text, True
    return text, False if data.get("success") is True else None


READER = CopilotReader

"""Read sessions of opencode: the document of `opencode export`, and the lines of `opencode run --format json`.

opencode keeps its sessions in a database, so there are no files to be found: it has to be asked for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusewire.agents.transcripts.format_reader import FormatReader
from fusewire.agents.transcripts.step import SHELL, TranscriptStep
from fusewire.agents.values import amount, part, parts, words
from fusewire.util.fast_json import JsonObject

_TOOLS = {
    "bash": SHELL,
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "list": "LS",
    "task": "Agent",
    "webfetch": "WebFetch",
    "todowrite": "TodoWrite",
    "todoread": "TodoRead",
    "skill": "Skill",
}
_FIELDS = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string"}
#: What `opencode run` forbids the agent, because nobody would answer.
_NO_QUESTIONS = {"permission": "question", "pattern": "*", "action": "deny"}
_LINES = ("step_start", "tool_use", "text", "step_finish", "reasoning", "error")


class OpencodeReader(FormatReader):
    """Reads the records of one session."""

    name = "opencode"

    @staticmethod
    def recognises(key: str, record: Any) -> bool:
        if not isinstance(record, dict):
            return False
        if key == "messages":
            return "sessionID" in part(record.get("info")) and isinstance(record.get("parts"), list)
        return not key and "sessionID" in record and record.get("type") in _LINES

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        record = part(record)
        if key == "info":
            self.session = self.session or words(record.get("id"))
            if any(one == _NO_QUESTIONS for one in parts(record.get("permission"))):
                self._started_by("opencode run", is_attended=False)
        elif key == "messages":
            yield from self._message(part(record.get("info")), parts(record.get("parts")))
        elif not key and "part" in record:
            self._started_by("opencode run", is_attended=False)
            yield from self._line(words(record.get("type")), part(record.get("part")), record)

    def _message(self, info: JsonObject, blocks: list[JsonObject]) -> Iterator[TranscriptStep]:
        self.session = self.session or words(info.get("sessionID"))
        at = _seconds(part(info.get("time")).get("created"))
        if info.get("role") == "user":
            said = [words(one.get("text")) for one in blocks if one.get("type") == "text" and not one.get("synthetic")]
            text = "\n".join(filter(str.strip, said))
            if text:
                yield from self._prompt(text, at)
            return
        turn = words(info.get("id"))
        yield from self._begin(turn, at, self.agent)
        for one in blocks:
            yield from self._used(one, turn)
        yield from self._end(self.agent, _seconds(part(info.get("time")).get("completed")))

    def _line(self, kind: str, block: JsonObject, record: JsonObject) -> Iterator[TranscriptStep]:
        self.session = self.session or words(record.get("sessionID"))
        turn = words(block.get("messageID"))
        yield from self._begin(turn, _seconds(record.get("timestamp")), self.agent)
        yield from self._used(block, turn)
        if kind == "step_finish":
            yield from self._end(self.agent, _seconds(record.get("timestamp")))

    def _used(self, block: JsonObject, turn: str) -> Iterator[TranscriptStep]:
        """A call with its result; they stand together."""
        if block.get("type") != "tool":
            return
        state, call, name = part(block.get("state")), words(block.get("callID")), words(block.get("tool"))
        given = part(state.get("input"))
        if name == "invalid":  # what the client calls instead of a tool that does not exist
            name, given = words(given.get("tool")), {"error": given.get("error")}
        tool = _TOOLS.get(name, name)
        given = {_FIELDS.get(field, field): value for field, value in given.items()}
        time = part(state.get("time"))
        yield self._call(_seconds(time.get("start")), turn, tool, given, call)
        code = part(state.get("metadata")).get("exit")
        failed = code != 0 if type(code) is int else {"completed": False, "error": True}.get(words(state.get("status")))
        text = words(state.get("output")) or words(state.get("error"))
        yield self._result(_seconds(time.get("end")), turn, call, text, failed or block.get("tool") == "invalid")


def _seconds(value: object) -> float | None:
    """Its times are milliseconds."""
    number = amount(value)
    return None if number is None else number / 1000

"""Read chats of Gemini CLI: one JSON document, or lines in which a message is repeated when it has grown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fusewire.agents.transcripts.format_reader import FormatReader, moment
from fusewire.agents.transcripts.step import SHELL, TranscriptStep
from fusewire.agents.values import part, parts, text_of, words
from fusewire.util.fast_json import JsonObject

_SHELL = "run_shell_command"
_ENDED = ("success", "error", "cancelled")
_EXIT = re.compile(r"^Exit Code: (-?\d+)\s*$", re.MULTILINE)


def is_gemini(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if "sessionId" in record and "projectHash" in record:
        return True
    return record.get("type") == "gemini" and "id" in record and "timestamp" in record


class GeminiReader(FormatReader):
    """Reads the records of one file."""

    name = "gemini"

    @staticmethod
    def recognises(key: str, record: Any) -> bool:
        return key == "projectHash" or (key in ("", "messages") and is_gemini(record))

    def __init__(self, session: str = "", agent: str = "") -> None:
        super().__init__(session, agent)
        #: messages, calls and results that were given already
        self._given: set[str] = set()

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        if key == "sessionId":
            self.session = self.session or words(record)
        elif key == "messages" or not key:
            yield from self._record(part(record))

    def _record(self, record: JsonObject) -> Iterator[TranscriptStep]:
        if "projectHash" in record:
            self.session = self.session or words(record.get("sessionId"))
            if record.get("kind") == "subagent":
                self.agent = self.agent or words(record.get("sessionId"))
        for message in [record, *parts(part(record.get("$set")).get("messages"))]:
            if message.get("type") == "user":
                yield from self._user(message)
            elif message.get("type") == "gemini":
                yield from self._reply(message)

    def _user(self, message: JsonObject) -> Iterator[TranscriptStep]:
        said = text_of(message.get("content"))
        if not self.agent and said.strip() and self._new(f"prompt {message.get('id')}"):
            yield from self._prompt(said, moment(message.get("timestamp")))

    def _reply(self, message: JsonObject) -> Iterator[TranscriptStep]:
        turn, at = words(message.get("id")), moment(message.get("timestamp"))
        if self._new(f"reply {turn}"):
            yield from self._begin(turn, at, self.agent)
        calls = parts(message.get("toolCalls"))
        for call in calls:
            identity, name = words(call.get("id")), words(call.get("name"))
            if self._new(f"call {identity}"):
                tool = SHELL if name == _SHELL else name
                yield self._call(at, turn, tool, part(call.get("args")), identity)
        for call in calls:
            if call.get("status") in _ENDED and self._new(f"result {call.get('id')}"):
                yield self._ended(call, turn)

    def _ended(self, call: JsonObject, turn: str) -> TranscriptStep:
        answers = [part(part(one.get("functionResponse")).get("response")) for one in parts(call.get("result"))]
        text = "\n".join(words(one.get("output")) or words(one.get("error")) for one in answers)
        failed: bool | None = {"success": False, "error": True}.get(words(call.get("status")))
        code = _EXIT.search(text) if words(call.get("name")) == _SHELL else None
        if failed is False and code:
            failed = int(code[1]) != 0
        return self._result(moment(call.get("timestamp")), turn, words(call.get("id")), text, failed)

    def _new(self, what: str) -> bool:
        if what in self._given:
            return False
        self._given.add(what)
        return True


READER = GeminiReader

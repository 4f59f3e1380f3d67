"""Read trajectories of SWE-agent and its relatives: actions are command texts, mostly without an exit code.

Three shapes: SWE-agent's `trajectory` of (action, observation); mini-SWE-agent's `messages` with calls of a tool or
commands in a fence, and a return code; and published collections, whose `trajectory` is a conversation.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from fusewire.agents.transcripts.format_reader import FormatReader, moment
from fusewire.agents.transcripts.step import SHELL, TranscriptStep
from fusewire.agents.transcripts.swe_agent_tools import (
    EDITORS,
    call_of,
    editor_call,
    has_failed,
    open_file_of,
    opened_by,
)
from fusewire.agents.values import part, parts, text_of, words
from fusewire.util.fast_json import JsonObject

_FENCE = re.compile(r"^```[\w-]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"\A\s*(?:<exception>.*?</exception>\s*)?<returncode>(-?\d+)</returncode>\s*", re.DOTALL)
_OUTPUT = re.compile(r"<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL)

KEYS = ("trajectory", "messages", "history")


def is_swe_agent(key: str, record: Any) -> bool:
    if key not in KEYS or not isinstance(record, dict):
        return False
    return "action" in record or ("role" in record and ("content" in record or "text" in record or "extra" in record))


class SweAgentReader(FormatReader):
    """Reads the records of one document."""

    name = "swe-agent"
    recognises = staticmethod(is_swe_agent)

    @classmethod
    def of_file(cls, path: str, session: str) -> SweAgentReader:
        return cls(session or os.path.basename(path).partition(".")[0])

    def __init__(self, session: str = "", agent: str = "") -> None:
        super().__init__(session, agent)
        self._replies = 0
        self._key = ""
        #: calls of the last reply that have no result yet
        self._due: list[str] = []
        self._asked = False
        #: the file that SWE-agent's viewer shows
        self._open_file = ""
        self.is_attended, self.says = False, "no person sits at these runs"

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        """The first conversation of a document; its `history` tells the same once more."""
        if not is_swe_agent(key, record) or (self._key and key != self._key):
            return
        self._key = key
        if "role" not in record:
            yield from self._turn_taken(record)
        else:
            yield from self._message(record)

    def _turn_taken(self, record: JsonObject) -> Iterator[TranscriptStep]:
        if not self._asked:
            self._asked = True
            asked = parts(record.get("query")) or parts(record.get("messages"))
            task = [text_of(one.get("content")) for one in asked if one.get("role") == "user"]
            if task:
                yield from self._prompt(task[-1], None)
        yield from self._reply([("", {"command": words(record.get("action")).strip("\n")}, "")], None)
        if self._due:
            yield from self._answered(text_of(record.get("observation")), None, None)

    def _message(self, record: JsonObject) -> Iterator[TranscriptStep]:
        role, extra = record.get("role"), part(record.get("extra"))
        at = moment(extra.get("timestamp"))
        said = text_of(record.get("content")) or words(record.get("text"))
        if role in ("assistant", "ai"):
            yield from self._reply(_actions(record, extra, said), at)
        elif role in ("user", "tool") and self._due:
            identity = words(record.get("tool_call_id"))
            code = extra.get("returncode")
            text = extra.get("raw_output")
            yield from self._answered(text if isinstance(text, str) else said, code, at, identity)
        elif role == "user" and not self._asked:
            self._asked = True
            yield from self._prompt(said, at)

    def _reply(self, actions: list[tuple[str, JsonObject, str]], at: float | None) -> Iterator[TranscriptStep]:
        self._replies += 1
        turn = f"reply-{self._replies}"
        self._due = []
        yield from self._begin(turn, at, self.agent)
        for number, (name, given, identity) in enumerate(actions):
            if given.get("command"):
                call = identity or f"{turn}.{number}"
                self._due.append(call)
                tool, given = self._tool(name, given)
                yield self._call(at, turn, tool, given, call)

    def _tool(self, name: str, given: JsonObject) -> tuple[str, JsonObject]:
        """The tool behind a command: one of SWE-agent's own, else the shell."""
        if name in EDITORS:
            tool, given = editor_call(given)
        elif len(given) == 1 and isinstance(given["command"], str):
            tool, given = call_of(given["command"], self._open_file)
        else:
            return SHELL, given
        self._open_file = opened_by(tool, given) or self._open_file
        return tool, given

    def _answered(self, text: str, code: object, at: float | None, identity: str = "") -> Iterator[TranscriptStep]:
        call = identity if identity in self._due else self._due[0]
        self._due.remove(call)
        self._open_file = open_file_of(text) or self._open_file
        header = _CODE.match(text)
        if header:
            inner = _OUTPUT.search(text)
            code = int(header[1]) if type(code) is not int else code
            text = inner[1] if inner else text[header.end() :]
        failed = code != 0 if type(code) is int else has_failed(text)
        yield self._result(at, f"reply-{self._replies}", call, text, failed)


def _actions(record: JsonObject, extra: JsonObject, said: str) -> list[tuple[str, JsonObject, str]]:
    """The actions of a reply: as calls of a tool, as the client took them out of it, or as its last fence."""
    calls = [(part(one.get("function")), words(one.get("id"))) for one in parts(record.get("tool_calls"))]
    if calls:
        return [
            (words(function.get("name")), _arguments(function.get("arguments")), identity)
            for function, identity in calls
        ]
    taken = extra.get("actions")
    if isinstance(taken, list) and taken:
        given = [one if isinstance(one, dict) else {"command": one} for one in taken]
        return [("", {"command": words(one.get("command"))}, words(one.get("tool_call_id"))) for one in given]
    if words(record.get("action")).strip():
        return [("", {"command": words(record.get("action")).strip("\n")}, "")]
    fences = _FENCE.findall(said)
    return [("", {"command": fences[-1].strip("\n")}, "")] if fences else []


def _arguments(given: object) -> JsonObject:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {"command": given}
    return part(given)

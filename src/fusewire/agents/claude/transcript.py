"""Read transcripts of Claude Code: a line per content block; the blocks of one reply share its message id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from fusewire.agents.transcripts.format_reader import FormatReader, moment
from fusewire.agents.transcripts.step import TranscriptStep
from fusewire.agents.values import part, parts, text_of, words
from fusewire.util.fast_json import JsonObject

_KINDS = ("assistant", "user", "attachment", "system", "summary", "progress", "file-history-snapshot")

_INTERRUPTED = "[Request interrupted by user"

#: How messages in the place of the person's begin that the client has written: reports, outputs, interruptions.
_NOT_A_PERSON = (
    "<task-notification>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<teammate-message",
    _INTERRUPTED,
)

#: Entry points that a person sits at, and how those of programs begin (`sdk-cli` is `claude -p`).
_INTERACTIVE = ("cli", "claude-vscode", "claude-jetbrains", "claude-desktop")
_PROGRAMS = ("sdk-", "claude-code-github-action", "mcp")


def is_claude(record: Any) -> bool:
    if not isinstance(record, dict) or record.get("type") not in _KINDS:
        return False
    return "sessionId" in record and ("uuid" in record or isinstance(record.get("message"), dict))


class ClaudeReader(FormatReader):
    """Reads the records of one file."""

    name = "claude"

    @staticmethod
    def recognises(key: str, record: Any) -> bool:
        return key in ("", "messages") and is_claude(record)

    @classmethod
    def of_file(cls, path: str, session: str) -> ClaudeReader:
        stem = os.path.basename(path).partition(".")[0]
        return cls(session, stem.removeprefix("agent-") if stem.startswith("agent-") else "")

    @staticmethod
    def files_below(path: str) -> list[str]:
        folder = os.path.join(os.path.splitext(path)[0], "subagents")
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return []
        return [os.path.join(folder, name) for name in names if name.startswith("agent-") and name.endswith(".jsonl")]

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        if not isinstance(record, dict):
            return
        kind, at = record.get("type"), moment(record.get("timestamp"))
        self.session = self.session or words(record.get("sessionId"))
        self.cwd = words(record.get("cwd")) or self.cwd
        entry = words(record.get("entrypoint"))
        if entry and self.is_attended is None:
            known = True if entry in _INTERACTIVE else False if entry.startswith(_PROGRAMS) else None
            self._started_by(f"entrypoint {entry}", is_attended=known)
        agent = self._agent(record)
        message = part(record.get("message"))
        if kind == "assistant" and message.get("model") != "<synthetic>":
            yield from self._reply(message, record, at, agent)
        elif kind == "user":
            yield from self._user(message, record, at, agent)
        elif kind == "attachment":
            queued = part(record.get("attachment"))
            if queued.get("type") == "hook_stopped_continuation" and queued.get("hookEvent") != "PreToolUse":
                text = f"{words(queued.get('hookName'))} hook: {words(queued.get('message'))}"
                yield self._result(at, self._open.get(agent, ""), "", text, True, agent)
            said = text_of(queued.get("prompt"))
            typed = queued.get("type") == "queued_command" and queued.get("commandMode", "prompt") == "prompt"
            if typed and not agent and _is_person(said, queued):
                yield from self._prompt(said, at)

    def _agent(self, record: JsonObject) -> str:
        if self.agent or record.get("isSidechain") is not True:
            return self.agent
        return words(record.get("agentId")) or "sidechain"

    def _reply(self, message: JsonObject, record: JsonObject, at: float | None, agent: str) -> Iterator[TranscriptStep]:
        turn = words(message.get("id")) or words(record.get("requestId")) or words(record.get("uuid"))
        yield from self._begin(turn, at, agent)
        for block in parts(message.get("content")):
            if block.get("type") in ("tool_use", "server_tool_use"):
                name, identity = words(block.get("name")), words(block.get("id"))
                yield self._call(at, turn, name, part(block.get("input")), identity, agent)

    def _user(self, message: JsonObject, record: JsonObject, at: float | None, agent: str) -> Iterator[TranscriptStep]:
        content = message.get("content")
        results = [block for block in parts(content) if block.get("type") == "tool_result"]
        for block in results:
            call, text = words(block.get("tool_use_id")), text_of(block.get("content"))
            yield self._result(at, self._open.get(agent, ""), call, text, block.get("is_error") is True, agent)
        if results or agent or record.get("isMeta") or record.get("isCompactSummary"):
            return
        said = text_of(content)
        if said.startswith(_INTERRUPTED):
            self._started_by("a person interrupted it", is_attended=True)
        if _is_person(said, record):
            yield from self._prompt(said, at)


def _is_person(said: str, record: JsonObject) -> bool:
    """Whether a person wrote this, and not the client in the person's place."""
    origin = words(part(record.get("origin")).get("kind"))
    return bool(said.strip()) and origin in ("", "human") and not said.lstrip().startswith(_NOT_A_PERSON)


READER = ClaudeReader

"""Read Codex rollouts: items of the model, and events beside them that know how a command ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fusewire.agents.transcripts.format_reader import FormatReader, moment
from fusewire.agents.transcripts.step import SHELL, TranscriptStep
from fusewire.agents.values import part, text_of, words
from fusewire.util.fast_json import JsonObject

_WRAPPED = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_SHELLS = ("shell", "shell_command", "exec_command", "local_shell", "container.exec", "bash")

#: What stands above a command's own output.
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)\s*$", re.MULTILINE)
_OUTPUT = re.compile(r"^Output:$", re.MULTILINE)

#: What the client tells the model in the person's place.
_NOT_A_PERSON = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<permissions")

#: What `source` or `originator` says of who started the session.
_ATTENDED = {
    **dict.fromkeys(("cli", "vscode", "codex-tui", "codex_cli_rs", "codex_vscode"), True),
    **dict.fromkeys(("exec", "codex_exec", "mcp", "codex_sdk_ts"), False),
}


def is_codex(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if record.get("type") in _WRAPPED:
        return isinstance(record.get("payload"), dict)
    return record.get("record_type") == "state" or (record.get("type") in (*_CALLS, *_OUTPUTS) and "call_id" in record)


class CodexReader(FormatReader):
    """Reads the records of one file."""

    name = "codex"

    @staticmethod
    def recognises(key: str, record: Any) -> bool:
        return key in ("", "messages") and is_codex(record)

    def __init__(self, session: str = "", agent: str = "") -> None:
        super().__init__(session, agent)
        self._replies = 0
        self._answered = True
        #: results that wait for the event that knows how their command ended
        self._waiting: dict[str, TranscriptStep] = {}
        self._codes: dict[str, int] = {}
        self._prompted: str | None = None
        self._shells: set[str] = set()

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        if not isinstance(record, dict):
            return
        at, kind = moment(record.get("timestamp")), record.get("type")
        said = part(record.get("payload")) if kind in _WRAPPED else record
        if kind == "session_meta":
            self.session = self.session or words(said.get("id"))
            self.cwd = words(said.get("cwd"))
            source = words(said.get("source"))
            if source or said.get("originator"):
                known = _ATTENDED.get(source, _ATTENDED.get(words(said.get("originator"))))
                self._started_by(f"source {source or said.get('originator')}", is_attended=known)
            if "subagent" in part(said.get("source")):
                self.agent = self.agent or words(said.get("id"))
        elif kind is None and "instructions" in record:  # how older rollouts begin
            self.session = self.session or words(record.get("id"))
        elif kind == "event_msg":
            yield from self._event(said, at)
        elif kind == "response_item" or kind not in _WRAPPED:
            yield from self._item(said, at, wrapped=kind == "response_item")

    def close(self) -> Iterator[TranscriptStep]:
        yield from self._settle()
        yield from super().close()

    def _event(self, said: JsonObject, at: float | None) -> Iterator[TranscriptStep]:
        kind, item = said.get("type"), part(said.get("item"))
        if kind == "user_message":
            yield from self._person(words(said.get("message")), at)
        elif kind == "item_completed" and item.get("type") == "UserMessage":
            yield from self._person(text_of(item.get("content")), at)
        elif kind == "item_completed":
            self._ended(words(item.get("id")), item)
        elif kind == "exec_command_end":
            self._ended(words(said.get("call_id")), said)
        elif kind in ("task_complete", "turn_aborted"):
            yield from self._settle()

    def _ended(self, call: str, report: JsonObject) -> None:
        """How a command or a tool ended, by its event."""
        code = report.get("exit_code")
        if type(code) is not int:
            failed = report.get("status") in ("failed", "declined") or part(report.get("result")).get("isError") is True
            code = 1 if failed else 0 if report.get("status") == "completed" else None
        if call and code is not None:
            self._codes[call] = code

    def _person(self, text: str, at: float | None) -> Iterator[TranscriptStep]:
        """One message may come as two events."""
        if self.agent or not text.strip() or text == self._prompted or text.lstrip().startswith(_NOT_A_PERSON):
            return
        yield from self._settle()
        self._prompted = text
        self._answered = True
        yield from self._prompt(text, at)

    def _item(self, item: JsonObject, at: float | None, *, wrapped: bool) -> Iterator[TranscriptStep]:
        kind = item.get("type")
        if kind in _OUTPUTS:
            self._answered = True
            call = words(item.get("call_id"))
            text, failed = _output(item.get("output"), shell=call in self._shells)
            self._waiting[call] = self._result(at, self._turn(), call, text, failed)
        elif kind == "message" and item.get("role") == "user":
            if not wrapped:
                yield from self._person(text_of(item.get("content")), at)
        elif kind in _CALLS or kind == "reasoning" or (kind == "message" and item.get("role") == "assistant"):
            yield from self._speaks(at)
            if kind in _CALLS:
                yield self._called(item, at)

    def _speaks(self, at: float | None) -> Iterator[TranscriptStep]:
        """What comes after an output answers another request, so it is another reply."""
        self._prompted = None
        if self._answered:
            yield from self._settle()
            self._answered = False
            self._replies += 1
        yield from self._begin(self._turn(), at, self.agent)

    def _turn(self) -> str:
        return f"reply-{self._replies}"

    def _called(self, item: JsonObject, at: float | None) -> TranscriptStep:
        name = words(item.get("name")) or {"local_shell_call": "local_shell"}.get(words(item.get("type")), "web_search")
        call = words(item.get("call_id")) or words(item.get("id"))
        given: Any = item.get("action") if "action" in item else item.get("arguments", item.get("input"))
        if isinstance(given, str) and item.get("type") == "function_call":
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                given = {"arguments": given}
        arguments = dict(given) if isinstance(given, dict) else {"input": given} if given is not None else {}
        if name == "apply_patch":
            from fusewire.agents.patches import patched_files

            arguments["paths"] = list(patched_files(words(arguments.get("input"))))
        if name in _SHELLS:
            name = SHELL
            self._shells.add(call)
            arguments.pop("type", None)
            line = arguments.pop("command", None) or arguments.pop("cmd", "")
            arguments = {"command": _command(line), **arguments}
        return self._call(at, self._turn(), name, arguments, call)

    def _settle(self) -> Iterator[TranscriptStep]:
        """Give the results that came in, with what is known of them by now."""
        for call, step in self._waiting.items():
            code = self._codes.pop(call, None)
            if code is not None:
                step = replace(step, failed=code != 0)
            yield step
        self._waiting.clear()


def _command(given: object) -> str:
    """The text that a shell was given: a text, or the words of `bash -lc TEXT`."""
    if isinstance(given, list):
        line = [word for word in given if isinstance(word, str)]
        if len(line) == 3 and line[0].rpartition("/")[2] in ("bash", "sh", "zsh") and line[1] in ("-c", "-lc"):
            return line[2]
        import shlex

        return shlex.join(line)
    return words(given)


def _output(output: object, *, shell: bool) -> tuple[str, bool | None]:
    """A call's output, and whether it failed: by a field, or by what the client writes above a command's output."""
    if isinstance(output, dict):
        success, is_error = output.get("success"), output.get("isError")
        failed = not success if isinstance(success, bool) else is_error if isinstance(is_error, bool) else None
        return text_of(output), failed
    text = text_of(output)
    if text.startswith("{") and '"metadata"' in text:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        code = part(part(value).get("metadata")).get("exit_code")
        if type(code) is int:
            return words(part(value).get("output")), code != 0
    if not shell and not text.startswith(("Exit code:", "Chunk ID:")):
        return text, None
    above = _OUTPUT.search(text)
    exit_line = _EXIT.search(text, 0, above.start()) if above else None
    if above is None or exit_line is None:
        return text, None
    return text[above.end() + 1 :], int(exit_line[1]) != 0


READER = CodexReader

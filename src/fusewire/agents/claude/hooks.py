"""Claude Code: what its hooks send, and how they want to be answered (measured on 2.1.325).

A denial is exit code 2 with the reason on stderr, and the same in JSON: exit 1, bad JSON or a time-out would let
the tool run. A call that passes gets no `permissionDecision`, because "allow" would skip the user's own permissions.
"""

from __future__ import annotations

import os

from fusewire.agents import agent_named
from fusewire.agents.protocol import (
    Agent,
    answered,
    as_text,
    optional,
    shown_text,
)
from fusewire.core.events import Event, changes_files
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fusewire.agents import Answer
    from fusewire.util.fast_json import JsonObject

#: A "prompt" that no person typed: a helper reports back, another session writes, or the agent's own program does.
_NOT_A_PERSON = (
    *("<task-notification>", "<system-reminder>", "<cross-session-message", "<teammate-message"),
    *("[SYSTEM NOTIFICATION", "Another Claude session sent a message:"),
)

#: The mode without permission prompts. A hook's question is shown there, except where Claude Code's own rules have one.
_SKIPPING = "bypassPermissions"

#: What the model is shown of a helper that has only been launched.
_LAUNCHED = "Async agent launched"

#: Calls of one reply that are counted, far above what a model makes: each is written while others wait for the store.
_MOST_CALLS = 500

#: Fields of a result that are different each time.
_CHANCE = frozenset(("agentId", "outputFile", "harnessSectionHash", "usage", "totalTokens"))


class ClaudeHooks(Agent):
    """What only Claude Code does."""

    name = "claude"
    #: there it would be no word beside the end, but keep the agent going
    UNHEARD = ("Stop", "SubagentStop")
    ASKS = True
    PROJECT = "CLAUDE_PROJECT_DIR"
    NOT_A_PERSON = _NOT_A_PERSON

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Its program says so; another one that was started inside Claude Code may inherit the word."""
        return environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "1"

    def speaker(self, payload: Any, environment: Mapping[str, str]) -> Agent:
        """Copilot also runs the hooks that a project has registered for Claude Code."""
        is_copilot = environment.get("COPILOT_PROJECT_DIR") and isinstance(payload, dict) and "timestamp" in payload
        return agent_named("copilot") if is_copilot else self

    def prompt(self, payload: JsonObject) -> Event | None:
        if _only_looks(payload):
            return None
        event = super().prompt(payload)
        assert event is not None
        ended = event.text.partition("<task-id>")[2].partition("</task-id>")[0].strip()
        named: Event = event.replace(subagent=ended) if ended and event.kind == "notice" else event
        return named

    def session(self, payload: JsonObject, hook: str) -> Event:
        return self.session_event(payload, hook, running=_running(payload))

    def call(self, payload: JsonObject, hook: str, kind: str, root: str) -> Event | None:
        """In the mode that skips permissions, a question is dropped for calls that its own rules would ask about."""
        event = super().call(payload, hook, kind, root)
        if event is not None and kind == "before_tool" and payload.get("permission_mode") == _SKIPPING:
            event = event.replace(unasked=_SKIPPING)
        return event

    def outcome(self, event: Event, payload: JsonObject) -> Event:
        took = payload.get("duration_ms")
        event = event.replace(took=took / 1000) if isinstance(took, (int, float)) else event
        if event.hook == "PostToolUseFailure":
            return (
                answered(event, None, None) if payload.get("is_interrupt") is True else super().outcome(event, payload)
            )
        response = payload.get("tool_response")
        if not isinstance(response, dict):
            return answered(event, _result(response), False)
        if response.get("interrupted") is True:
            return answered(event, None, None)
        says_error = response.get("is_error") is True or response.get("isError") is True
        done = answered(event, _result(response), says_error)
        return _with_helper(done, optional(response, "agentId") or "", response.get("status") == "async_launched")

    def other(self, payload: JsonObject, hook: str, root: str) -> Event | None:
        if hook == "PostToolBatch":
            return self._batch(payload, root)
        if hook == "StopFailure":
            return self.event(payload, hook, "api_error", {"text": optional(payload, "error") or ""})
        return self._settings(payload, root) if hook == "ConfigChange" else None

    def _settings(self, payload: JsonObject, root: str) -> Event | None:
        """A file of settings has changed, and is not in force yet. No file is named of some; skills are no settings."""
        path = optional(payload, "file_path")
        if not path or payload.get("source") == "skills":
            return None
        paths = (os.path.join(optional(payload, "cwd") or root, path),)
        return self.event(payload, "ConfigChange", "config_change", {"paths": paths, "transcript": None})

    def _batch(self, payload: JsonObject, root: str) -> Event:
        """All calls of one reply together: what they ran, and the files that they changed."""
        calls = payload.get("tool_calls")
        commands: list[str] = []
        paths: list[str] = []
        events = []
        for call in calls[:_MOST_CALLS] if isinstance(calls, list) else []:
            given = call.get("tool_input") if isinstance(call, dict) else None
            if isinstance(given, dict):
                event = self._batched(call, given, payload, root)
                events.append(event)
                commands += [event.command] if event.command else []
                paths += event.paths if changes_files(event.tool) and event.failed is False else ()
        fields = {
            "tool": "Edit" if paths else "Skill" if any(event.tool == "Skill" for event in events) else "",
            "command": "\n".join(commands) or None,
            "paths": tuple(paths),
            "subagent": optional(payload, "agent_id"),
            "calls": tuple(events),
        }
        return self.event(payload, "PostToolBatch", "after_tool", fields)

    def _batched(self, call: JsonObject, given: JsonObject, payload: JsonObject, root: str) -> Event:
        tool = str(call.get("tool_name"))
        identity = optional(call, "tool_use_id")
        event = self.call_event(payload, "PostToolBatch", "after_tool", tool, given, root, call=identity)
        response, helper = call.get("tool_response"), ""
        shown = shown_text(response) if isinstance(response, list) else _result(response)
        if tool in ("Agent", "Task"):  # behind its report stand its id and its usage, other ones each time
            shown, _, behind = shown.partition("\nagentId: ")
            helper = behind.partition(" ")[0]
        return _with_helper(answered(event, shown, _has_failed(shown)), helper, shown.startswith(_LAUNCHED))

    def deny(self, text: str, hook: str = "") -> Answer:
        if hook == "ConfigChange":  # the reason of this one is not shown
            return dumps({"decision": "block", "reason": text, "systemMessage": text}), "", 0
        return super().deny(text, hook)

    def process(self, environment: Mapping[str, str]) -> int | None:
        pid = environment.get("CLAUDE_PID", "")
        return int(pid) if pid.isascii() and pid.isdecimal() else None


def _with_helper(event: Event, helper: str, launched: bool) -> Event:
    """The helper that a call has started, if any; it still runs if it was only launched."""
    if not helper and not launched:
        return event
    named: Event = event.replace(text=helper, running=(helper,) if launched else None)
    return named


def _only_looks(payload: JsonObject) -> bool:
    """Whether a person asks for nothing but what Fusewire shows: that must not change what there is to see."""
    words = (optional(payload, "prompt") or "").split()
    return len(words) == 1 and words[0] in ("/circuit-status", "/fusewire:circuit-status")


def _running(payload: JsonObject) -> tuple[str, ...] | None:
    """The helpers that still work; None where that is not said."""
    tasks = payload.get("background_tasks")
    if not isinstance(tasks, list):
        return None
    return tuple(str(task.get("id")) for task in tasks if isinstance(task, dict) and task.get("status") == "running")


def _result(response: Any) -> str:
    """What came back, as one text. How long it took is no part of it."""
    if isinstance(response, dict):
        if isinstance(response.get("stdout"), str):
            return "\n".join(part for part in (response["stdout"], response.get("stderr")) if isinstance(part, str))
        kept = {key: value for key, value in response.items() if not key.endswith(("Ms", "_ms")) and key not in _CHANCE}
        return dumps(kept)
    return as_text(response)


def _has_failed(shown: str) -> bool | None:
    """Whether a call failed, from the text that the model is shown of it; None if that does not say."""
    if shown.startswith("PreToolUse:"):
        return None  # it was refused, and never ran
    if shown.startswith("<tool_use_error>"):
        return True
    first = shown.partition("\n")[0]
    return first.startswith("Exit code ") and first[10:].isdigit()


AGENT = ClaudeHooks()

"""Claude Code: what its hooks send, and how they want to be answered (measured on 2.1.325).

A denial is exit code 2 with the reason on stderr, and the same in JSON: exit 1, bad JSON or a time-out would let
the tool run. A call that passes gets no `permissionDecision`, because "allow" would skip the user's own permissions.
"""

from __future__ import annotations

import os

from fusewire.agents.payload import (
    CALL_KINDS,
    SESSION_KINDS,
    an_object,
    answered,
    as_text,
    call_event,
    given_to,
    optional,
    prompt_event,
    required,
    session_event,
)
from fusewire.core.events import Event, changes_files
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GATES: tuple[str, ...] = ("PreToolUse",)
#: There it would be no word beside the end, but keep the agent going.
UNHEARD: tuple[str, ...] = ("Stop", "SubagentStop")

#: A "prompt" that nobody typed: a helper reports back, another session writes, or the agent's own program does.
_NOT_A_PERSON = (
    *("<task-notification>", "<system-reminder>", "<cross-session-message", "<teammate-message"),
    *("[SYSTEM NOTIFICATION", "Another Claude session sent a message:"),
)

#: What the model is shown of a helper that has only been launched.
_LAUNCHED = "Async agent launched"

#: Calls of one reply that are counted, far above what a model makes: each is written while others wait for the store.
_MOST_CALLS = 500

#: Fields of a result that are different each time.
_CHANCE = frozenset(("agentId", "outputFile", "harnessSectionHash", "usage", "totalTokens"))


def started_in(payload: Any, environment: Mapping[str, str]) -> str | None:
    folder = environment.get("CLAUDE_PROJECT_DIR")
    return folder or (optional(payload, "cwd") if isinstance(payload, dict) else None)


def parse(payload: Any, root: str) -> Event | None:
    payload = an_object(payload)
    hook = required(payload, "hook_event_name")
    if hook == "PostToolBatch":
        return _batch(payload, root)
    if hook == "UserPromptSubmit":
        return None if _only_looks(payload) else _prompt(payload)
    if hook == "ConfigChange":
        return _settings(payload, root)
    if hook in SESSION_KINDS:
        return session_event(payload, hook, SESSION_KINDS[hook], agent="claude", running=_running(payload))
    kind = CALL_KINDS.get(hook)
    if kind is None:
        return None
    tool = required(payload, "tool_name")
    event = _event(kind, hook, tool, given_to(tool, payload), payload, root)
    if kind == "before_tool":
        return event
    took = payload.get("duration_ms")
    event = event.replace(took=took / 1000) if isinstance(took, (int, float)) else event
    if hook == "PostToolUseFailure":
        if payload.get("is_interrupt") is True:
            return answered(event, None, None)
        return answered(event, optional(payload, "error") or "", True)
    response = payload.get("tool_response")
    interrupted = isinstance(response, dict) and response.get("interrupted") is True
    says_error = isinstance(response, dict) and (response.get("is_error") is True or response.get("isError") is True)
    done = answered(event, None, None) if interrupted else answered(event, _result(response), says_error)
    if not isinstance(response, dict) or interrupted:
        return done
    return _with_helper(done, optional(response, "agentId") or "", response.get("status") == "async_launched")


def _with_helper(event: Event, helper: str, launched: bool) -> Event:
    """The helper that a call has started, if any; it still runs if it was only launched."""
    if not helper and not launched:
        return event
    named: Event = event.replace(text=helper, running=(helper,) if launched else None)
    return named


def _only_looks(payload: dict[str, Any]) -> bool:
    """Whether a person asks for nothing but what Fusewire shows: that must not change what there is to see."""
    words = (optional(payload, "prompt") or "").split()
    return len(words) == 1 and words[0] in ("/circuit-status", "/fusewire:circuit-status")


def _prompt(payload: dict[str, Any]) -> Event:
    said = optional(payload, "prompt") or ""
    typed = not said.lstrip().startswith(_NOT_A_PERSON)
    ended = "" if typed else said.partition("<task-id>")[2].partition("</task-id>")[0].strip()
    return prompt_event(payload, "UserPromptSubmit", typed=typed, agent="claude", subagent=ended or None)


def _running(payload: dict[str, Any]) -> tuple[str, ...] | None:
    """The helpers that still work; None where nobody says so."""
    tasks = payload.get("background_tasks")
    if not isinstance(tasks, list):
        return None
    return tuple(str(task.get("id")) for task in tasks if isinstance(task, dict) and task.get("status") == "running")


def _settings(payload: dict[str, Any], root: str) -> Event | None:
    """A file of settings has changed, and is not in force yet. No file is named of some, and skills are no settings."""
    path = optional(payload, "file_path")
    if not path or payload.get("source") == "skills":
        return None
    return Event(
        "config_change",
        hook="ConfigChange",
        paths=(os.path.join(optional(payload, "cwd") or root, path),),
        session=optional(payload, "session_id"),
        agent="claude",
    )


def _result(response: Any) -> str:
    """What came back, as one text. How long it took is no part of it."""
    if isinstance(response, dict):
        if isinstance(response.get("stdout"), str):
            return "\n".join(part for part in (response["stdout"], response.get("stderr")) if isinstance(part, str))
        kept = {key: value for key, value in response.items() if not key.endswith(("Ms", "_ms")) and key not in _CHANCE}
        return dumps(kept)
    return as_text(response)


def _shown(response: Any) -> str:
    """What the model is shown of a result: a text, or blocks of which some are text."""
    if not isinstance(response, list):
        return _result(response)
    return "\n".join(
        part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else dumps(part)
        for part in response
    )


def _batched(shown: str) -> bool | None:
    """Whether a call failed, from the text that the model is shown of it; None if that does not say."""
    if shown.startswith("PreToolUse:"):
        return None  # it was refused, and never ran
    if shown.startswith("<tool_use_error>"):
        return True
    first = shown.partition("\n")[0]
    return first.startswith("Exit code ") and first[10:].isdigit()


def _batch(payload: dict[str, Any], root: str) -> Event:
    """All calls of one reply together: what they ran, and the files that they changed."""
    calls = payload.get("tool_calls")
    commands: list[str] = []
    paths: list[str] = []
    events = []
    for call in calls[:_MOST_CALLS] if isinstance(calls, list) else []:
        tool_input = call.get("tool_input") if isinstance(call, dict) else None
        if isinstance(tool_input, dict):
            given = {**payload, "tool_use_id": call.get("tool_use_id")}
            event = _event("after_tool", "PostToolBatch", str(call.get("tool_name")), tool_input, given, root)
            shown, helper = _shown(call.get("tool_response")), ""
            if event.tool in ("Agent", "Task"):  # behind its report stand its id and its usage, other ones each time
                shown, _, behind = shown.partition("\nagentId: ")
                helper = behind.partition(" ")[0]
            event = answered(event, shown, _batched(shown))
            events.append(_with_helper(event, helper, shown.startswith(_LAUNCHED)))
            commands += [event.command] if event.command else []
            paths += event.paths if changes_files(event.tool) and event.failed is False else ()
    return Event(
        "after_tool",
        hook="PostToolBatch",
        tool="Edit" if paths else "Skill" if any(event.tool == "Skill" for event in events) else "",
        command="\n".join(commands) or None,
        paths=tuple(paths),
        session=optional(payload, "session_id"),
        agent="claude",
        subagent=optional(payload, "agent_id"),
        transcript=optional(payload, "transcript_path"),
        calls=tuple(events),
    )


def _event(kind: str, hook: str, tool: str, given: dict[str, Any], payload: dict[str, Any], root: str) -> Event:
    return call_event(
        kind,
        hook,
        tool,
        given,
        agent="claude",
        root=root,
        cwd=optional(payload, "cwd"),
        session=optional(payload, "session_id"),
        call=optional(payload, "tool_use_id"),
        subagent=optional(payload, "agent_id"),
        transcript=optional(payload, "transcript_path"),
    )


ENDED_BY = "SIGTERM"

ASKS = True


def process(environment: Mapping[str, str]) -> int | None:
    pid = environment.get("CLAUDE_PID", "")
    return int(pid) if pid.isascii() and pid.isdecimal() else None


def interrupt(payload: Any) -> bool:
    return False


def allow() -> tuple[str, str, int]:
    return "", "", 0


def tell(text: str, hook: str = "PreToolUse", shown: str = "") -> tuple[str, str, int]:
    if hook in UNHEARD:
        return inform(shown or text, hook)
    context = {"hookEventName": hook, "additionalContext": text}
    return dumps({"hookSpecificOutput": context, "systemMessage": shown or text}), "", 0


def halt(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    """Stop the agent. Before a call a halt alone would let the tool run, so it is refused as well; behind a call
    that failed a halt is ignored, so the text is given to the agent too."""
    stop = {"continue": False, "stopReason": text, "systemMessage": text}
    if hook == "PreToolUse":
        denial = {"hookEventName": hook, "permissionDecision": "deny", "permissionDecisionReason": text}
        return dumps({**stop, "hookSpecificOutput": denial}), text, 2
    if hook in UNHEARD:  # the agent is not to go on, so there is nobody to tell
        return dumps(stop), "", 0
    context = {"hookEventName": hook, "additionalContext": text}
    return dumps({**stop, "hookSpecificOutput": context}), "", 0


def inform(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    """Tell the person, not the agent."""
    return dumps({"systemMessage": text}), "", 0


def ask(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    """Let the person decide, in the program's own permission prompt."""
    question = {"hookEventName": hook, "permissionDecision": "ask", "permissionDecisionReason": text}
    return dumps({"hookSpecificOutput": question}), "", 0


def deny(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    if hook == "UserPromptSubmit":
        return dumps({"decision": "block", "reason": text}), "", 0
    if hook == "ConfigChange":  # the reason of this one is shown to nobody
        return dumps({"decision": "block", "reason": text, "systemMessage": text}), "", 0
    denial = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": text}
    return dumps({"hookSpecificOutput": denial}), text, 2

"""Codex CLI: what its hooks send, and how they want to be answered (measured on 0.166.0).

A denial is exit code 2 with the reason on stderr. An answer with a field that the hook does not know is thrown away as
a whole, and the tool runs: so every answer has only what its own hook knows. There is no halt before or after a call: a
halted agent is refused whatever it asks for, and its process is ended if that does not stop it.

What is not in the payload: the exit code of a command, which is in the session's record beside it; the tool behind a
shell line that is a patch, which Codex takes out of the shell's hands; the end of a call that failed in any other way.
"""

from __future__ import annotations

import os

from fusewire.agents.payload import (
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
from fusewire.core.events import Event
from fusewire.util.fast_json import dumps
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GATES: tuple[str, ...] = ("PreToolUse",)
#: They take no context for the agent.
UNHEARD: tuple[str, ...] = ("PermissionRequest", "Stop", "SubagentStop", "SessionEnd")

_CALL_KINDS = {"PreToolUse": "before_tool", "PostToolUse": "after_tool", "PermissionRequest": "permission"}

#: A tool of a group has the group's name in front, with nothing in between.
_GROUPS = ("multi_agent_v1", "collaboration", "clock")

#: The tools, and their fields, by the names that they have for everybody.
_TOOLS = {
    "spawn_agent": "Agent",
    "view_image": "Read",
    "sleep": "Sleep",
    "web_search": "WebSearch",
    "request_user_input": "AskUserQuestion",
    "read_mcp_resource": "ReadMcpResourceTool",
    "list_mcp_resources": "ListMcpResourcesTool",
}
_FIELDS = {
    "Agent": {"message": "prompt", "agent_type": "subagent_type", "task_name": "description"},
    "Read": {"path": "file_path"},
}

#: What the program says in a person's place.
_NOT_A_PERSON = ("<codex_internal_context", "<subagent_notification>", "<turn_aborted>", "<environment_context>")

#: How much of the end of a session's record is searched for a command: Codex keeps 64 KB of its output, escaped there.
_TAIL = 1 << 19

_PATCH = "*** Begin Patch"
#: Of a file that is added, it shows what is in it.
_FATES = {
    "*** Add File": "empty",
    "*** Update File": "update",
    "*** Move to": "update",
    "*** Delete File": "delete",
}
_APPLYING = frozenset(("apply_patch", "applypatch"))

#: How Codex is told to work alone.
_ALONE = frozenset(("exec", "e", "review"))

#: Shells between Codex and its hook, at most; most of them give way to the one command that they run.
_BETWEEN = 3


def started_in(payload: Any, environment: Mapping[str, str]) -> str | None:
    """Nobody says, but a hook is started in the folder of its session; `cwd` is where the one call would run."""
    return None


def parse(payload: Any, root: str) -> Event | None:
    payload = an_object(payload)
    hook = required(payload, "hook_event_name")
    if hook == "UserPromptSubmit":
        return _prompt(payload)
    if hook in SESSION_KINDS:
        return _session(payload, hook)
    kind = _CALL_KINDS.get(hook)
    if kind is None:
        return None
    event = _call(kind, hook, payload, root)
    return _ended(event, payload) if kind == "after_tool" else event


def _prompt(payload: dict[str, Any]) -> Event:
    """A helper's task is a prompt too, and no person's."""
    said = optional(payload, "prompt") or ""
    typed = not payload.get("agent_id") and not said.lstrip().startswith(_NOT_A_PERSON)
    return prompt_event(payload, "UserPromptSubmit", typed=typed, agent="codex")


def _session(payload: dict[str, Any], hook: str) -> Event:
    transcript = optional(payload, "agent_transcript_path") or optional(payload, "transcript_path")
    return session_event(payload, hook, SESSION_KINDS[hook], agent="codex", transcript=transcript)


# -- calls ----------------------------------------------------------------------------------------------


def _call(kind: str, hook: str, payload: dict[str, Any], root: str) -> Event:
    name = required(payload, "tool_name")
    for group in _GROUPS:
        name = name.removeprefix(group) or name
    tool = _TOOLS.get(name, name)
    given = given_to("Bash" if tool == "apply_patch" else tool, payload)
    names = _FIELDS.get(tool)
    if names:
        given = {names.get(field, field): value for field, value in given.items()}
    more: dict[str, Any] = {}
    if tool == "apply_patch" or (tool == "Bash" and _applies(given["command"])):
        tool, given, more = _patch(tool, given["command"])
    return call_event(
        kind,
        hook,
        tool,
        given,
        agent="codex",
        root=root,
        cwd=optional(payload, "cwd"),
        session=optional(payload, "session_id"),
        call=optional(payload, "tool_use_id"),
        subagent=optional(payload, "agent_id"),
        transcript=optional(payload, "transcript_path"),
        **more,
    )


def _applies(line: str) -> bool:
    """Whether a shell line applies a patch that stands in it; one that only speaks of it does not."""
    before, begins, _ = line.partition(_PATCH)
    if not begins:
        return False
    caller = before.rstrip().rpartition("\n")[2].replace("|", " | ").split()
    behind_pipe = line.replace("|", " | ").split()
    piped = any(word in _APPLYING and pipe == "|" for pipe, word in zip(behind_pipe, behind_pipe[1:], strict=False))
    return piped or not _APPLYING.isdisjoint(caller)


def _patch(tool: str, text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A patch as an edit of all its files. If it removes or empties only some of them, that is said as commands."""
    fates = _fates(text)
    line = text if tool == "Bash" else ""
    change = "update"
    if len(set(fates.values())) == 1:
        change = next(iter(fates.values()))
    else:
        verbs = {"delete": "rm --", "empty": ": >"}
        commands = [f"{verbs[fate]} {quoted(path)}" for path, fate in fates.items() if fate in verbs]
        line = "\n".join([*([line] if line else []), *commands])
    folder = _moved_to(text) if tool == "Bash" else ""
    paths = [os.path.join(folder, path) for path in fates]
    new = "*** Update File: " not in text and "delete" not in fates.values()
    given = {"file_path": paths[0] if paths else "", "files": paths[1:], "patch": text}
    return "Write" if new else "Edit", given, {"change": change, "command": line or None}


def _fates(text: str) -> dict[str, str]:
    """What a patch does to its files: update, empty or delete. One that is moved away is deleted where it was."""
    fates: dict[str, str] = {}
    current = ""
    for raw in text.split("\n"):
        line = raw.strip()
        verb, _, path = line.partition(": ") if line.startswith("*** ") else ("", "", "")
        path = path.strip()
        if verb in _FATES and path:
            fates[path] = _FATES[verb]
            if verb == "*** Move to" and current:
                fates[current] = "delete"
            current = path
        elif fates.get(current) == "empty" and raw.startswith("+") and line != "+":
            fates[current] = "update"
    return fates


def _moved_to(line: str) -> str:
    """The folder of `cd FOLDER && apply_patch`, in which Codex applies the patch."""
    words = line.lstrip().partition("&&")[0].strip()
    return words[3:].strip().strip("'\"") if words.startswith("cd ") and "\n" not in words else ""


# -- results --------------------------------------------------------------------------------------------


def _ended(event: Event, payload: dict[str, Any]) -> Event:
    response = payload.get("tool_response")
    if event.tool == "Agent":
        return _launched(event, response)
    if isinstance(response, dict):
        return answered(event, as_text(response.get("content", response)), response.get("isError") is True)
    text = as_text(response)
    if payload.get("tool_name") == "Bash":
        code = _exit_code(optional(payload, "transcript_path"), event.call)
        if code:
            text = f"Exit code {code}\n{text}".rstrip("\n")
        return answered(event, text, None if code is None else code != 0)
    if text.startswith("Exit code: "):
        first, _, rest = text.partition("\n")
        return answered(event, rest.partition("\nOutput:\n")[2], first != "Exit code: 0")
    return answered(event, text, None)


def _launched(event: Event, response: Any) -> Event:
    """A helper that runs from now on; what it is called is different each time."""
    text = as_text(response)
    helper = text.partition('"agent_id":"')[2].partition('"')[0]
    launched: Event = event.replace(result="launched", failed=False, text=helper, running=(helper or "helper",))
    return launched


def _exit_code(record: str | None, call: str | None) -> int | None:
    """How a command ended, from the record of the session, where Codex writes it before it starts the hook."""
    if not record or not call:
        return None
    try:
        handle = os.open(record, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        size = os.fstat(handle).st_size
        tail = os.pread(handle, _TAIL, max(0, size - _TAIL))
    except OSError:
        return None
    finally:
        os.close(handle)
    at = tail.rfind(b'"type":"CommandExecution","id":' + dumps(call).encode())
    end = tail.find(b"\n", at)
    # Inside of a text the quotes would be escaped.
    code = tail[at : end if end > 0 else None].rpartition(b'"exit_code":')[2] if at >= 0 else b""
    number = code.partition(b",")[0].partition(b"}")[0]
    return int(number) if number.removeprefix(b"-").isdigit() else None


# -- answers --------------------------------------------------------------------------------------------


ASKS = False

#: Then it also says that the session has ended.
ENDED_BY = "SIGINT"


def process(environment: Mapping[str, str]) -> int | None:
    """The run that started this hook, if it has nobody in front of it. Else Codex works in a server that other sessions
    share, or holds a terminal that it would leave in disorder: there a person can stop it."""
    from fusewire.util.processes import ancestors, started_as

    for pid in ancestors()[:_BETWEEN]:
        words = started_as(pid)
        if words and words[0].rpartition("/")[2].startswith("codex"):
            return pid if not _ALONE.isdisjoint(words[1:]) else None
    return None


def interrupt(payload: Any) -> bool:
    """Where a person is in front of it, what Codex works on is interrupted as that person would do it."""
    from fusewire.agents.codex.interrupt import interrupt as interrupt_turn

    record, turn = optional(payload, "transcript_path") or "", optional(payload, "turn_id")
    thread = optional(payload, "session_id")
    return bool(record and thread and turn) and interrupt_turn(record, str(thread), str(turn))


def allow() -> tuple[str, str, int]:
    return "", "", 0


def tell(text: str, hook: str = "PreToolUse", shown: str = "") -> tuple[str, str, int]:
    if hook in UNHEARD:
        return inform(shown or text, hook)
    context = {"hookEventName": hook, "additionalContext": text}
    return dumps({"hookSpecificOutput": context, "systemMessage": shown or text}), "", 0


def deny(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    if hook == "UserPromptSubmit":
        return dumps({"decision": "block", "reason": text}), "", 0
    if hook == "PermissionRequest":
        refusal: dict[str, Any] = {"hookEventName": hook, "decision": {"behavior": "deny", "message": text}}
    else:
        refusal = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": text,
        }
    return dumps({"hookSpecificOutput": refusal}), text, 2


def ask(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    return deny(f"{text}\nIt is refused: this agent's program cannot ask the user.", hook)


def halt(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    """Stop the agent where Codex lets a hook do that: at a prompt, and when it wants to stop. Before a call it is
    refused, and after one the agent reads the text in place of the result."""
    if hook in ("PreToolUse", "PermissionRequest"):
        return deny(text, hook)
    if hook == "SessionEnd":
        return allow()
    return dumps({"continue": False, "stopReason": text}), "", 0


def inform(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    """Tell the person, not the agent; of the end of a session nothing is shown any more."""
    return allow() if hook == "SessionEnd" else (dumps({"systemMessage": text}), "", 0)

"""Codex CLI: what its hooks send, and how they want to be answered (measured on 0.166.0).

A denial is exit code 2 with the reason on stderr. An answer with a field that the hook does not know is thrown away as
a whole, and the tool runs: so every answer has only what its own hook knows. There is no halt before or after a call: a
halted agent is refused whatever it asks for, and its process is ended if that does not stop it.

What is not in the payload: the exit code of a command, which is in the session's record beside it; the tool behind a
shell line that is a patch, which Codex takes out of the shell's hands; the end of a call that failed in any other way.
"""

from __future__ import annotations

import os

from fusewire.agents.protocol import PATCH, Agent, answered, as_text, optional, required
from fusewire.core.events import Event
from fusewire.guard.known_agents import AGENTS_BY_NAME
from fusewire.util.fast_json import dumps
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fusewire.agents import Answer
    from fusewire.core.decision import Decision
    from fusewire.util.fast_json import JsonObject

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

_APPLYING = frozenset(("apply_patch", "applypatch"))

#: Shells between Codex and its hook, at most; most of them give way to the one command that they run.
_BETWEEN = 3


class CodexHooks(Agent):
    """What only Codex does."""

    name = "codex"
    #: they take no context for the agent
    UNHEARD = ("PermissionRequest", "Stop", "SubagentStop", "SessionEnd")
    NOTES_LIMITS = True
    #: then it also says that the session has ended
    ENDED_BY = "SIGINT"
    TOOLS = _TOOLS
    FIELDS = _FIELDS
    CALLS = {"PreToolUse": "before_tool", "PostToolUse": "after_tool", "PermissionRequest": "permission"}

    def started_in(self, payload: Any, environment: Mapping[str, str]) -> str | None:
        """No field names it, but a hook starts in the folder of its session; `cwd` is where the one call would run."""
        return None

    def prompt(self, payload: JsonObject) -> Event:
        """A helper's task is a prompt too, and no person's."""
        said = optional(payload, "prompt") or ""
        typed = not payload.get("agent_id") and not said.lstrip().startswith(_NOT_A_PERSON)
        return self.prompt_event(payload, typed=typed)

    def session(self, payload: JsonObject, hook: str) -> Event:
        transcript = optional(payload, "agent_transcript_path") or optional(payload, "transcript_path")
        return self.session_event(payload, hook, transcript=transcript)

    def call(self, payload: JsonObject, hook: str, kind: str, root: str) -> Event:
        tool = self.tool_of(payload)
        given = self.input_of("Bash" if tool == "apply_patch" else tool, payload)
        more: JsonObject = {}
        if tool == "apply_patch" or (tool == "Bash" and _applies(given["command"])):
            tool, given, more = _patch(tool, given["command"])
        event = self.call_event(payload, hook, kind, tool, given, root, **more)
        return _ended(event, payload) if kind == "after_tool" else event

    def tool_of(self, payload: JsonObject) -> str:
        name = required(payload, "tool_name")
        for group in _GROUPS:
            name = name.removeprefix(group) or name
        return self.TOOLS.get(name, name)

    def check_unseen(self, command: str, commands: Callable[[], list[list[str]]]) -> Decision | None:
        from fusewire.agents.codex.interactive import check_unseen, may_be_unseen

        return check_unseen(command, commands()) if may_be_unseen(command) else None

    def deny(self, text: str, hook: str = "") -> Answer:
        if hook == "PermissionRequest":
            refusal = {"hookEventName": hook, "decision": {"behavior": "deny", "message": text}}
            return dumps({"hookSpecificOutput": refusal}), text, 2
        return super().deny(text, hook)

    def halt(self, text: str, hook: str) -> Answer:
        """Stop the agent where Codex lets a hook do that: at a prompt, and when it wants to stop. Before a call it is
        refused, and after one the agent reads the text in place of the result."""
        if hook in ("PreToolUse", "PermissionRequest"):
            return self.deny(text, hook)
        if hook == "SessionEnd":
            return self.allow()
        return dumps({"continue": False, "stopReason": text}), "", 0

    def inform(self, text: str, hook: str) -> Answer:
        """Tell the person, not the agent; of the end of a session nothing is shown any more."""
        return self.allow() if hook == "SessionEnd" else super().inform(text, hook)

    def process(self, environment: Mapping[str, str]) -> int | None:
        """The run that started this hook, if nobody attends it. Else Codex works in a server that other
        sessions share, or holds a terminal that it would leave in disorder: there a person can stop it."""
        from fusewire.util.processes import ancestors, started_as

        for pid in ancestors()[:_BETWEEN]:
            words = started_as(pid)
            if words and words[0].rpartition("/")[2].startswith("codex"):
                return pid if not AGENTS_BY_NAME[self.name].headless.isdisjoint(words[1:]) else None
        return None

    def interrupt(self, payload: Any) -> bool:
        """Where a person is in front of it, what Codex works on is interrupted as that person would do it."""
        from fusewire.agents.codex.interrupt import interrupt as interrupt_turn

        record, turn = optional(payload, "transcript_path") or "", optional(payload, "turn_id")
        thread = optional(payload, "session_id")
        return bool(record and thread and turn) and interrupt_turn(record, str(thread), str(turn))


# -- patches --------------------------------------------------------------------------------------------


def _applies(line: str) -> bool:
    """Whether a shell line applies a patch that stands in it; one that only speaks of it does not."""
    before, begins, _ = line.partition(PATCH)
    if not begins:
        return False
    caller = before.rstrip().rpartition("\n")[2].replace("|", " | ").split()
    behind_pipe = line.replace("|", " | ").split()
    piped = any(word in _APPLYING and pipe == "|" for pipe, word in zip(behind_pipe, behind_pipe[1:], strict=False))
    return piped or not _APPLYING.isdisjoint(caller)


def _patch(tool: str, text: str) -> tuple[str, JsonObject, JsonObject]:
    """A patch as an edit of all its files. If it removes or empties only some of them, that is said as commands."""
    from fusewire.agents.patches import patched_files

    fates = patched_files(text)
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


def _moved_to(line: str) -> str:
    """The folder of `cd FOLDER && apply_patch`, in which Codex applies the patch."""
    words = line.lstrip().partition("&&")[0].strip()
    return words[3:].strip().strip("'\"") if words.startswith("cd ") and "\n" not in words else ""


# -- results --------------------------------------------------------------------------------------------


def _ended(event: Event, payload: JsonObject) -> Event:
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


AGENT = CodexHooks()

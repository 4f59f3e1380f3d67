"""Read what an agent's hooks send, and render the answers: what all agents have in common.

Most agents have taken over the protocol of Claude Code, with differences: `Agent` speaks that protocol, and a subclass
in each agent's `hooks` module has what is particular to it. Tools have the same names whichever agent calls them
(`Bash`, `Read`, `Write`, `Edit`, `Agent`), so that a constraint, a circuit and a limit mean the same everywhere.
"""

from __future__ import annotations

import os

from fusewire.agents import BadPayload
from fusewire.core.events import Event
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fusewire.agents import Answer
    from fusewire.core.decision import Decision
    from fusewire.util.fast_json import JsonObject

#: Without these fields a call of an agent's own tools cannot be judged; other tools may have any input.
_JUDGED_BY = {"Bash": "command", "Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path"}

_PATH_FIELDS = (
    *("file_path", "notebook_path", "path", "relative_path", "source", "destination", "src", "dst", "target"),
    *("old_path", "new_path", "paths", "files"),
)

#: Where a tool of another server says that its command runs. The agents' own shells heed no such field, unless their
#: module says so: a model that gives one must not lead us elsewhere.
_FOLDER_FIELDS = ("cwd", "workdir", "working_directory")

_COMMAND_FIELDS = ("command", "cmd", "script")

#: How a patch for `apply_patch` begins.
PATCH = "*** Begin Patch"


class Agent:
    """One agent: how the payloads of its hooks are read, and how it wants to be answered.

    A hook of another name than those below asks for no decision, unless `other` reads it.
    """

    name = ""
    #: hooks that ask before a call: what cannot be judged there is denied
    GATES: tuple[str, ...] = ("PreToolUse",)
    #: hooks at which the agent cannot be given a text beside a call that passes
    UNHEARD: tuple[str, ...] = ()
    #: whether a person can be asked before a call
    ASKS = False
    #: whether its record of a session notes after each reply how much of its provider's limits is used
    NOTES_LIMITS = False
    #: the signal that ends its process in good order
    ENDED_BY = "SIGTERM"
    #: the variable in a hook's environment with the folder of the project
    PROJECT = ""

    #: the hook at which a prompt is submitted
    PROMPT = "UserPromptSubmit"
    #: hooks about the session, and hooks about one call, with the kind of their event
    SESSIONS: Mapping[str, str] = {
        "SessionStart": "session_start",
        "SessionEnd": "session_end",
        "Stop": "stop",
        "SubagentStart": "agent_start",
        "SubagentStop": "agent_stop",
    }
    CALLS: Mapping[str, str] = {
        "PreToolUse": "before_tool",
        "PostToolUse": "after_tool",
        "PostToolUseFailure": "after_tool",
    }
    #: beginnings of prompts that no person typed, but the agent's own program
    NOT_A_PERSON: tuple[str, ...] = ()
    #: its tools that have other names than everywhere else: their names here; by that name, the same for their fields
    #: (an empty name leaves a field out)
    TOOLS: Mapping[str, str] = {}
    FIELDS: Mapping[str, Mapping[str, str]] = {}

    # -- payloads -----------------------------------------------------------------------------------------

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Whether a person sits at this session, as far as that is certain."""
        from fusewire.agents.caller import is_interactive

        return is_interactive(self.name)

    def started_in(self, payload: Any, environment: Mapping[str, str]) -> str | None:
        """The folder of the project; where the agent has moved to since does not change its rules."""
        folder = environment.get(self.PROJECT) if self.PROJECT else None
        return folder or (optional(payload, "cwd") if isinstance(payload, dict) else None)

    def speaker(self, payload: Any, environment: Mapping[str, str]) -> Agent:
        """The agent that has sent a payload, where another one runs the hooks that are registered for this one."""
        return self

    def parse(self, payload: Any, root: str) -> Event | None:
        """The event behind a hook's input; None if it asks for no decision; BadPayload if it makes no sense."""
        payload = an_object(payload)
        hook = self.hook_of(payload)
        if hook == self.PROMPT:
            return self.prompt(payload)
        if hook in self.SESSIONS:
            return self.session(payload, hook)
        kind = self.CALLS.get(hook)
        return self.other(payload, hook, root) if kind is None else self.call(payload, hook, kind, root)

    def hook_of(self, payload: JsonObject) -> str:
        """The hook that a payload is for."""
        return required(payload, "hook_event_name")

    def prompt(self, payload: JsonObject) -> Event | None:
        """Something was said to the agent."""
        said = optional(payload, "prompt") or ""
        return self.prompt_event(payload, typed=not said.lstrip().startswith(self.NOT_A_PERSON))

    def session(self, payload: JsonObject, hook: str) -> Event | None:
        """The session begins or ends, a helper does, or the agent wants to stop."""
        return self.session_event(payload, hook)

    def call(self, payload: JsonObject, hook: str, kind: str, root: str) -> Event | None:
        """Something about one call: `kind` is `before_tool`, `after_tool` or `permission`."""
        tool = self.tool_of(payload)
        event = self.call_event(payload, hook, kind, tool, self.input_of(tool, payload), root)
        return self.outcome(event, payload) if kind == "after_tool" else event

    def tool_of(self, payload: JsonObject) -> str:
        """The tool of a call, by the name that it has for all agents."""
        name = required(payload, "tool_name")
        return self.TOOLS.get(name, name)

    def input_of(self, tool: str, payload: JsonObject) -> JsonObject:
        """The input of a tool, its fields by the names that they have for all agents."""
        given, names = payload.get("tool_input"), self.FIELDS.get(tool)
        if names and isinstance(given, dict):
            given = {names.get(field, field): value for field, value in given.items() if names.get(field) != ""}
        return given_to(tool, given)

    def outcome(self, event: Event, payload: JsonObject) -> Event:
        """The call with what came back; whether it failed is known only where a hook of its own says so."""
        if event.hook == "PostToolUseFailure":
            return answered(event, optional(payload, "error") or "", True)
        return answered(event, as_text(payload.get("tool_response")), None)

    def other(self, payload: JsonObject, hook: str, root: str) -> Event | None:
        """What a hook says that only this agent has."""
        return None

    def check_unseen(self, command: str, commands: Callable[[], list[list[str]]]) -> Decision | None:
        """Refuse a command that does something later which no hook of this agent is shown; `commands` reads it."""
        return None

    # -- events -------------------------------------------------------------------------------------------

    def call_event(
        self,
        payload: JsonObject,
        hook: str,
        kind: str,
        tool: str,
        given: JsonObject,
        root: str,
        *,
        folders: tuple[str, ...] = (),
        **more: Any,
    ) -> Event:
        """One tool call; `folders` are the fields that say where it runs, `more` are further fields of the event."""
        cwd = optional(payload, "cwd") or root
        folders = folders or (_FOLDER_FIELDS if tool.startswith("mcp__") else ())
        folder = next((given[field] for field in folders if isinstance(given.get(field), str)), "")
        cwd = os.path.join(cwd, folder) if folder else cwd
        paths: list[str] = []
        for field in _PATH_FIELDS:
            value = given.get(field)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str) and one:
                    from fusewire.guard.shell.paths import in_project  # no shell command needs it

                    paths += in_project(one, cwd, root)
        fields = {
            "call": optional(payload, "tool_use_id"),
            "subagent": optional(payload, "agent_id"),
            "command": command_in(given),
            "change": _change(tool, given),
            "paths": tuple(paths),
        }
        return self.event(payload, hook, kind, {**fields, **more}, tool=tool, cwd=cwd, input=given)

    def prompt_event(self, payload: JsonObject, *, typed: bool, **more: Any) -> Event:
        """Something was said to the agent: by a person who typed it, or by a program in a person's place."""
        fields = {"text": optional(payload, "prompt") or "", "model": optional(payload, "model") or "", **more}
        return self.event(payload, self.PROMPT, "prompt" if typed else "notice", fields)

    def session_event(self, payload: JsonObject, hook: str, **more: Any) -> Event:
        """The session begins or ends, a helper does, or the agent wants to stop; a stop hook may have kept it going."""
        kept_going = "again" if payload.get("stop_hook_active") is True else ""
        fields = {
            "subagent": optional(payload, "agent_id"),
            "text": kept_going or optional(payload, "source") or optional(payload, "agent_type") or "",
            "result": optional(payload, "last_assistant_message"),
            "model": optional(payload, "model") or "",
        }
        return self.event(payload, hook, self.SESSIONS[hook], {**fields, **more})

    def event(self, payload: JsonObject, hook: str, kind: str, fields: JsonObject, **more: Any) -> Event:
        """An event with what every payload says of its session."""
        session, transcript = optional(payload, "session_id"), optional(payload, "transcript_path")
        whose = {"session": session, "transcript": transcript, **fields}
        return Event(kind, hook=hook, agent=self.name, **whose, **more)

    # -- answers ------------------------------------------------------------------------------------------

    def allow(self) -> Answer:
        return "", "", 0

    def tell(self, text: str, hook: str, shown: str = "") -> Answer:
        """Let the call pass and tell the agent something; `shown` is what the person sees, if that is more."""
        if hook in self.UNHEARD:
            return self.inform(shown or text, hook)
        context = {"hookEventName": hook, "additionalContext": text}
        return dumps({"hookSpecificOutput": context, "systemMessage": shown or text}), "", 0

    def inform(self, text: str, hook: str) -> Answer:
        """Let the call pass and tell the person something, not the agent."""
        return dumps({"systemMessage": text}), "", 0

    def ask(self, text: str, hook: str) -> Answer:
        """Let the person decide, in the program's own permission prompt; a denial where there is none."""
        if self.ASKS:
            question = {"hookEventName": hook, "permissionDecision": "ask", "permissionDecisionReason": text}
            return dumps({"hookSpecificOutput": question}), "", 0
        return self.deny(f"{text}\nIt is refused: this agent's program cannot ask the user.", hook)

    def deny(self, text: str, hook: str = "") -> Answer:
        """Refuse the call, or what a person said. The exit code and stderr say so too: other answers let a tool run."""
        if hook == self.PROMPT:
            return dumps({"decision": "block", "reason": text}), "", 0
        denial = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": text}
        return dumps({"hookSpecificOutput": denial}), text, 2

    def halt(self, text: str, hook: str) -> Answer:
        """Stop the agent, not only this call; where its program has no way to, at least refuse the call.

        Before a call a halt alone would let the tool run, so it is refused as well; after a call that failed a halt is
        ignored, so the text is given to the agent too.
        """
        stop = {"continue": False, "stopReason": text, "systemMessage": text}
        if hook in self.GATES:
            denial = {"hookEventName": hook, "permissionDecision": "deny", "permissionDecisionReason": text}
            return dumps({**stop, "hookSpecificOutput": denial}), text, 2
        if hook in self.UNHEARD:  # the agent is not to go on, so there is no context to add
            return dumps(stop), "", 0
        context = {"hookEventName": hook, "additionalContext": text}
        return dumps({**stop, "hookSpecificOutput": context}), "", 0

    # -- its process --------------------------------------------------------------------------------------

    def process(self, environment: Mapping[str, str]) -> int | None:
        """The agent's own process, which is ended if it goes on although it was halted; None if it is not known."""
        return None

    def interrupt(self, payload: Any) -> bool:
        """Stop what it works on in a gentler way, if there is one; whether that was done."""
        return False


def an_object(payload: Any) -> JsonObject:
    if not isinstance(payload, dict):
        raise BadPayload("a JSON object is expected")
    return payload


def required(payload: JsonObject, field: str) -> str:
    value = payload.get(field)
    if not isinstance(value, str) or not value:
        raise BadPayload(f"{field} must be a text")
    return value


def optional(payload: JsonObject, field: str) -> str | None:
    value = payload.get(field)
    return value if isinstance(value, str) else None


def given_to(tool: str, given: object) -> JsonObject:
    """The input of a tool, with what it must have to be judged."""
    if not isinstance(given, dict):
        raise BadPayload("tool_input must be an object")
    needed = _JUDGED_BY.get(tool)
    if needed is not None and not isinstance(given.get(needed), str):
        raise BadPayload(f"tool_input.{needed} must be a text")
    if needed == "file_path" and "\0" in given[needed]:
        raise BadPayload("tool_input.file_path must be the path of a file")
    return given


def answered(event: Event, result: str | None, failed: bool | None) -> Event:
    """The call with what came back; a result of None says that it never ended."""
    done: Event = event.replace(result=result, failed=failed)
    return done


def as_text(response: Any) -> str:
    """Something that came back, as one text."""
    return response if isinstance(response, str) else "" if response is None else dumps(response)


def shown_text(content: Any) -> str:
    """What the model is shown: a text, or blocks of which some are text."""
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(
        block["text"] if isinstance(block, dict) and isinstance(block.get("text"), str) else as_text(block)
        for block in blocks
    )


def command_in(given: JsonObject) -> str | None:
    """The command line in a tool's input; MCP tools may give it as a list, or its arguments apart."""
    for field in _COMMAND_FIELDS:
        value = given.get(field)
        arguments = given.get("args")
        apart = [*(value if isinstance(value, list) else []), *(arguments if isinstance(arguments, list) else [])]
        if isinstance(value, str) and value and not apart:
            return value
        if value and isinstance(value, (str, list)) and all(isinstance(word, str) for word in apart):
            from fusewire.util.quoting import quoted

            return " ".join([*([value] if isinstance(value, str) else []), *map(quoted, apart)])
    return None


def _change(tool: str, given: JsonObject) -> str:
    """What a changing tool would do to its files: update, empty or delete."""
    name = tool.lower()
    if any(verb in name for verb in ("delete", "remove", "move", "rename")):
        return "delete"
    content = given.get("content")
    return "empty" if isinstance(content, str) and not content.strip() and "edit" not in name else "update"

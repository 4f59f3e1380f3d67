"""GitHub Copilot CLI: what its hooks send, and how they want to be answered (measured on 1.0.102).

Its hooks are registered by their names in PascalCase: only then a payload says which hook it is for; two of them do not
even so, and are recognised by their fields. Answers are flat, and a denial is exit code 2 with the reason in JSON: in
the nested shape of Claude the reason would be lost. No call has an id.

One answer stops the agent: its request for permission, denied with an interrupt. That request comes behind PreToolUse,
and only if the call has passed there. So a shell command that is to be halted passes as one that does nothing, and
permission for that one is denied. Other tools are only refused: some of them never ask for permission.
"""

from __future__ import annotations

import os

from fusewire.agents import BadPayload, client_process
from fusewire.agents.protocol import PATCH, Agent, answered, as_text, given_to, optional, required
from fusewire.core.events import Event
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fusewire.agents import Answer
    from fusewire.util.fast_json import JsonObject

#: The file that says which hooks of ours are to be run.
_REGISTERED = "fusewire.json"

#: PreToolUse of the shell, which will ask for permission too; who is halted there must know.
_SHELL = "PreToolUse:Bash"


#: What is shown to the person at every other hook would refuse the call here, or be read by the agent.
_NOT_SHOWN = ("PreToolUse", _SHELL, "PermissionRequest", "PostToolUseFailure")

#: Runs in place of a halted command, if permission for it was not denied after all.
_NOTHING = "echo 'fusewire: the agent is halted' >&2; exit 1"

#: Before what was asked for when the agent was kept from stopping: it comes back as if a person had said it.
_KEPT_GOING = "[fusewire] "

#: Other prompts that no person typed: in autopilot mode the program itself tells the agent to go on.
_NOT_A_PERSON = (_KEPT_GOING, "You have not yet marked the task as complete", "<system_reminder>")

#: Its own tools whose names it does not translate, and the fields of those that it does.
_TOOLS = {"read_bash": "BashOutput", "read_agent": "AgentOutputTool"}
_FILE_FIELDS = {"path": "file_path", "file_text": "content", "old_str": "old_string", "new_str": "new_string"}
_FIELDS = {
    **dict.fromkeys(("Read", "Write", "Edit"), _FILE_FIELDS),
    "Agent": {"agent_type": "subagent_type"},
    "Bash": {"command": "command", "initial_wait": "timeout"},
}

#: Fields that these tools do not heed: a model that gives them must not lead us elsewhere. And the name of a shell.
_NOT_HEEDED = frozenset(
    ("command", "cmd", "script", "cwd", "workdir", "working_directory", "dir_path", "directory", "shellId")
)

_TAKEN_AWAY = ("*** Delete File: ", "*** Move to: ")

_LAUNCHED = "Agent started in background with agent_id: "
_TOO_LARGE = "Output too large to read at once"
_EXIT_CODE = " completed with exit code "


class CopilotHooks(Agent):
    """What only Copilot CLI does."""

    name = "copilot"
    GATES = ("PreToolUse", "PermissionRequest")
    ASKS = True
    UNHEARD = ("PermissionRequest", "Stop", "SubagentStop", "SessionEnd")
    TOOLS = _TOOLS
    PROJECT = "COPILOT_PROJECT_DIR"

    def hook_of(self, payload: JsonObject) -> str:
        """The hook that a payload is for; none if the same event goes to another process of ours, too."""
        hook = _hook(payload)
        return "" if _answered_elsewhere() else hook

    def prompt(self, payload: JsonObject) -> Event:
        said = optional(payload, "prompt") or ""
        whose = _whose(payload)
        typed = whose["subagent"] is None and not said.lstrip().startswith(_NOT_A_PERSON)
        # The prompt of a helper is what the agent has told it to do; to name the helper would say that it has ended.
        return self.prompt_event(payload, typed=typed, **{**whose, "subagent": None})

    def session(self, payload: JsonObject, hook: str) -> Event | None:
        whose = _whose(payload)
        if hook == "Stop" and whose["subagent"]:
            return None  # SubagentStop comes behind it
        return self.session_event(payload, hook, **whose)

    def call(self, payload: JsonObject, hook: str, kind: str, root: str) -> Event:
        event = self._call(payload, hook, kind, root)
        return self.outcome(event, payload) if kind == "after_tool" else event

    def outcome(self, event: Event, payload: JsonObject) -> Event:
        failed = event.hook == "PostToolUseFailure"
        return super().outcome(event, payload) if failed else _ended(event, payload.get("tool_result"))

    def tool_of(self, payload: JsonObject) -> str:
        """The tool. Only those of other servers have a hyphen, between the server and the tool."""
        name = super().tool_of(payload)
        server, hyphen, name_there = name.partition("-")
        return f"mcp__{server}__{name_there}" if hyphen and server else name

    def _call(self, payload: JsonObject, hook: str, kind: str, root: str) -> Event:
        tool = self.tool_of(payload)
        given = payload.get("tool_input")
        more = _whose(payload)
        if isinstance(given, str) and PATCH in given:
            paths, change = _patched(given)
            patch = {"paths": paths, "patch": given}
            return self.call_event(payload, hook, kind, tool, patch, root, change=change, **more)
        if isinstance(given, dict):
            if "path" in _FIELDS.get(tool, ()) and not isinstance(given.get("path"), str):
                raise BadPayload("tool_input.path must be a text")
            given = _translated(tool, given)
        given = given_to(tool, given)
        if tool == "write_bash":  # typed into a shell that runs already
            more["command"] = (optional(given, "input") or "").replace("{enter}", "\n")
        asks = tool == "Bash" and kind == "before_tool"
        return self.call_event(payload, _SHELL if asks else hook, kind, tool, given, root, **more)

    def other(self, payload: JsonObject, hook: str, root: str) -> Event | None:
        """The request for permission, which comes behind a call that has passed, or was halted."""
        if hook != "PermissionRequest":
            return None
        given = payload.get("toolInput")
        halted = isinstance(given, dict) and given.get("command") == _NOTHING
        text = "HALTED: the agent was stopped at this call; what was said there is in its context." if halted else ""
        fields = {"tool": optional(payload, "toolName") or "", "text": text, **_whose(payload)}
        return self.event(payload, hook, "permission", fields)

    def tell(self, text: str, hook: str, shown: str = "") -> Answer:
        if hook in self.UNHEARD:
            return self.inform(shown or text, hook)
        return dumps({"additionalContext": shown or text}), "", 0

    def inform(self, text: str, hook: str) -> Answer:
        """Tell the person, not the agent: a warning, where exit code 2 is no more than that. Elsewhere it is only
        written to the program's log."""
        return "", text, 0 if hook in _NOT_SHOWN else 2

    def ask(self, text: str, hook: str) -> Answer:
        """Its question shows the text; with `--allow-all-tools` as well."""
        return dumps({"permissionDecision": "ask", "permissionDecisionReason": text}), "", 0

    def deny(self, text: str, hook: str = "") -> Answer:
        if hook in ("Stop", "SubagentStop"):
            return dumps({"decision": "block", "reason": f"{_KEPT_GOING}{text}"}), "", 0
        if hook == "PermissionRequest":
            return dumps({"behavior": "deny", "message": text}), text, 2
        if hook == self.PROMPT:
            return super().deny(text, hook)
        return dumps({"permissionDecision": "deny", "permissionDecisionReason": text}), text, 2

    def halt(self, text: str, hook: str) -> Answer:
        """Stop the agent, here or at its next request for permission. After a call, there is no way to: it gets the
        text, and is halted when it calls again."""
        if hook == _SHELL:
            return dumps({"modifiedArgs": {"command": _NOTHING}, "additionalContext": text}), "", 0
        if hook == "PermissionRequest":
            return dumps({"behavior": "deny", "message": text, "interrupt": True}), text, 2
        if hook in ("PreToolUse", self.PROMPT):
            return self.deny(text, hook)
        return self.tell(text, hook)

    def process(self, environment: Mapping[str, str]) -> int | None:
        """It starts its hooks itself; a shell in between has become the hook."""
        return client_process() if environment.get("COPILOT_PROJECT_DIR") else None


def _hook(payload: JsonObject) -> str:
    if payload.get("hookName") == "permissionRequest":
        return "PermissionRequest"
    if "agentName" in payload and "hook_event_name" not in payload:
        return "SubagentStart"
    if "sessionId" in payload and "hook_event_name" not in payload:
        raise BadPayload("hook_event_name is missing; register the hooks by their names in PascalCase (PreToolUse)")
    return required(payload, "hook_event_name")


def _answered_elsewhere() -> bool:
    """Whether the same event goes to another process of ours, too. Copilot runs the hooks of the person, those of the
    project, and those that the project has registered for Claude Code, and each would count the call."""
    project = os.environ.get("COPILOT_PROJECT_DIR")
    if not project:
        return False
    folders = (os.path.join(_own_folder(), "hooks"), os.path.join(project, ".github", "hooks"))
    first = next((folder for folder in folders if _is_in_force(os.path.join(folder, _REGISTERED))), None)
    here = os.environ.get("COPILOT_HOOK_DIR", "")
    return first is not None and here != first and os.path.realpath(here) != os.path.realpath(first)


def _is_in_force(path: str) -> bool:
    """Whether Copilot has read the file, which calls us: one that was made since then does not count."""
    from fusewire.util.processes import began

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            changed, text = os.fstat(file.fileno()).st_ctime, file.read(1 << 20)
    except OSError:
        return False
    start = began(client_process())
    return b"PreToolUse" in text and b"hook.py" in text and (start is None or changed <= start + 1)


# -- whose event it is ----------------------------------------------------------------------------------


def _whose(payload: JsonObject) -> JsonObject:
    """Session, helper and transcript. A helper calls itself a session; what counts is the one it works for."""
    helper = optional(payload, "agent_id")
    session = optional(payload, "session_id") or optional(payload, "sessionId")
    transcript = optional(payload, "transcript_path") or optional(payload, "transcriptPath")
    if transcript:  # all of a session is in one file, which is named after it
        session = os.path.basename(os.path.dirname(transcript)) or session
    elif helper and helper == session:
        session = _main_session(optional(payload, "parent_agent_id") or session)
    if session and not transcript and os.path.basename(session) == session:
        transcript = os.path.join(_sessions(), session, "events.jsonl")
    return {"session": session, "subagent": helper, "transcript": transcript}


def _main_session(parent: str) -> str:
    """The session of a helper: who has started it, or, if that is a helper too, the one that its process has open."""
    sessions = _sessions()
    try:
        names = os.listdir(sessions)
    except OSError:
        return parent
    if parent in names:
        return parent
    mark = f"inuse.{client_process()}.lock"
    opened = [name for name in names if os.path.lexists(os.path.join(sessions, name, mark))]
    return opened[0] if len(opened) == 1 else parent


def _sessions() -> str:
    return os.path.join(_own_folder(), "session-state")


def _own_folder() -> str:
    return os.environ.get("COPILOT_HOME") or os.path.join(os.path.expanduser("~"), ".copilot")


# -- calls ----------------------------------------------------------------------------------------------


def _translated(tool: str, given: JsonObject) -> JsonObject:
    names = _FIELDS.get(tool)
    if names is None:
        return given
    ignored = _NOT_HEEDED.union(names.values())
    translated = {field: value for field, value in given.items() if field not in names and field not in ignored}
    translated |= {name: given[field] for field, name in names.items() if field in given}
    if tool == "Bash" and translated.pop("mode", "sync") == "async":
        translated["run_in_background"] = True
    return translated


def _patched(patch: str) -> tuple[list[str], str]:
    """The files that a patch names, and the worst that it does to one of them."""
    from fusewire.agents.patches import patched_files

    fates = patched_files(patch)
    if not fates or any("\0" in path for path in fates):
        raise BadPayload("tool_input must be a patch that names its files")
    takes_away = any(line.strip().startswith(_TAKEN_AWAY) for line in patch.splitlines())
    return list(fates), "delete" if takes_away else "update"


# -- results --------------------------------------------------------------------------------------------


def _ended(event: Event, response: Any) -> Event:
    said = as_text(response.get("text_result_for_llm") if isinstance(response, dict) else response)
    how = optional(response, "result_type") if isinstance(response, dict) else None
    if how in ("rejected", "denied"):
        return answered(event, None, None)
    if event.tool in ("Bash", "BashOutput"):
        said, failed = _of_shell(said)
        return answered(event, said, failed)
    done = answered(event, said, how not in (None, "success"))
    if event.tool == "Agent" and said.startswith(_LAUNCHED):
        helper = said.removeprefix(_LAUNCHED).partition(".")[0]
        launched: Event = done.replace(text=helper, running=(helper,))
        return launched
    return done


def _of_shell(said: str) -> tuple[str, bool]:
    """What a command has said, and whether it failed. Behind it stands which shell it was, another one each time."""
    if said.startswith(_TOO_LARGE):  # and where it was saved, another place each time
        first, _, rest = said.partition("\n")
        said = f"{first.partition(' Saved to: ')[0]}\n{rest}"
    said, _, last = said.rpartition("\n") if "\n" in said else ("", "", said)
    if not last.startswith("<") or not last.endswith(">") or "d: " not in last:
        return f"{said}\n{last}".removeprefix("\n"), False
    code = last.rpartition(_EXIT_CODE)[2].rstrip(">")
    if _EXIT_CODE not in last:  # it runs on, or was stopped
        return f"{said}\n{''.join(char for char in last if not char.isdigit())}".removeprefix("\n"), False
    return (said, False) if code == "0" else (f"Exit code {code}\n{said}".rstrip("\n"), True)


AGENT = CopilotHooks()

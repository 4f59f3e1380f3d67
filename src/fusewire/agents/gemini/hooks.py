"""Gemini CLI: what its hooks send, and how they want to be answered (measured on 0.61.0).

A denial is `decision: "deny"` in JSON, and exit code 2 with the reason on stderr as well: what is printed counts on
every exit code, and JSON without a decision would let the tool run. A halt is `continue: false`; in a helper it is no
more than a refusal, because Gemini gives a helper's calls the session of the main agent and no name of their own.

A call has no id, and one whose name or arguments are wrong is shown to no hook. What a call would do is not always what
it says: Gemini takes `bash -c` off a command line, and looks for a file elsewhere that is not where it should be.
"""

from __future__ import annotations

import os

from fusewire.agents import client_process
from fusewire.agents.protocol import Agent, answered, as_text, optional, shown_text
from fusewire.core.events import Event
from fusewire.guard.shell.paths import in_project
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fusewire.agents import Answer
    from fusewire.util.fast_json import JsonObject

#: The tools, by the names that they have for everybody.
_TOOLS = {
    "run_shell_command": "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "replace": "Edit",
    "list_directory": "LS",
    "glob": "Glob",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "web_fetch": "WebFetch",
    "google_web_search": "WebSearch",
    "write_todos": "TodoWrite",
    "invoke_agent": "Agent",
    "activate_skill": "Skill",
    "ask_user": "AskUserQuestion",
    "enter_plan_mode": "EnterPlanMode",
    "exit_plan_mode": "ExitPlanMode",
    "read_background_output": "BashOutput",
    "list_mcp_resources": "ListMcpResourcesTool",
    "read_mcp_resource": "ReadMcpResourceTool",
}

#: Their fields, likewise. `context` is one that the tool fills in itself: it is there only after the call.
_FIELDS = {
    "Edit": {"allow_multiple": "replace_all"},
    "Agent": {"agent_name": "subagent_type"},
    "Bash": {"is_background": "run_in_background"},
    "Grep": {"context": ""},
}

#: Programs that Gemini takes off the front of a command line, with the option that must follow.
_TAKEN_OFF = {
    **dict.fromkeys(("bash", "sh", "zsh"), "-c"),
    **dict.fromkeys(("powershell", "powershell.exe", "pwsh", "pwsh.exe"), "-command"),
    "cmd.exe": "/c",
}

#: Folders that are searched for a file; Gemini gives up after 50, but does not count those that git ignores.
_FOLDERS = 500

#: Before what was asked for when the agent was kept from stopping: it comes back as if a person had said it.
_KEPT_GOING = "[fusewire] "

#: Other prompts that no person typed: a command in the background has ended.
_NOT_A_PERSON = (_KEPT_GOING, "User steering update:\n<user_input>\n[Background command completed")

#: Behind what a person typed stand the files that it names with `@`: their words are not the person's.
_FILES = "\n--- Content from referenced files ---"

#: What the model is shown of a call that a person interrupted.
_INTERRUPTED = ("Command was cancelled by user", "Operation cancelled by user")

#: What it is shown of a command that was stopped, or never run, by the agent's own program.
_STOPPED = ("Command was automatically cancelled", "Command injection detected:")

#: What stands behind the output of a command, the last line first.
_PGID, _BACKGROUND, _SIGNAL, _EXIT = "Process Group PGID: ", "Background PIDs: ", "Signal: ", "Exit Code: "


class GeminiHooks(Agent):
    """What only Gemini CLI does."""

    name = "gemini"
    GATES = ("BeforeTool",)
    ASKS = True
    #: context beside a call that has not been made yet, or beside the last answer, goes nowhere
    UNHEARD = ("BeforeTool", "AfterAgent")
    PROJECT = "GEMINI_PROJECT_DIR"
    PROMPT = "BeforeAgent"
    SESSIONS = {"SessionStart": "session_start", "SessionEnd": "session_end", "AfterAgent": "stop"}
    TOOLS = _TOOLS
    FIELDS = _FIELDS
    CALLS = {"BeforeTool": "before_tool", "AfterTool": "after_tool"}

    def prompt(self, payload: JsonObject) -> Event:
        said = (optional(payload, "prompt") or "").partition(_FILES)[0]
        return self.prompt_event(payload, typed=not said.startswith(_NOT_A_PERSON), text=said)

    def session(self, payload: JsonObject, hook: str) -> Event:
        return self.session_event(payload, hook, result=optional(payload, "prompt_response"))

    def call(self, payload: JsonObject, hook: str, kind: str, root: str) -> Event:
        tool = self.tool_of(payload)
        given = self.input_of(tool, payload)
        more: JsonObject = {}
        if tool == "Bash":
            more = {"command": _as_run(given["command"]), "folders": ("dir_path",)}
        event = self.call_event(payload, hook, kind, tool, given, root, **more)
        if tool in ("Read", "Write", "Edit"):
            event = _found(event, root)
        return event if kind == "before_tool" else _outcome(event, payload.get("tool_response"))

    def tool_of(self, payload: JsonObject) -> str:
        """The tool; one of another server says whose it is (`mcp_server_tool` alone does not)."""
        name = super().tool_of(payload)
        server = payload.get("mcp_context")
        if isinstance(server, dict) and optional(server, "server_name") and optional(server, "tool_name"):
            return f"mcp__{server['server_name']}__{server['tool_name']}"
        return f"mcp__{name[4:]}" if name.startswith("mcp_") and not name.startswith("mcp__") else name

    def tell(self, text: str, hook: str, shown: str = "") -> Answer:
        return self.inform(shown or text, hook) if hook == "SessionEnd" else super().tell(text, hook, shown)

    def ask(self, text: str, hook: str) -> Answer:
        """Its question shows the call, and what is said to the person stands above it; `--yolo` is asked as well."""
        return dumps({"decision": "ask", "reason": text, "systemMessage": text}), "", 0

    def deny(self, text: str, hook: str = "") -> Answer:
        if hook == "AfterAgent":  # it is what the agent is asked to do next
            return dumps({"decision": "deny", "reason": _KEPT_GOING + text}), "", 0
        answer = dumps({"decision": "deny", "reason": text})
        return (answer, "", 0) if hook in ("BeforeAgent", "AfterTool") else (answer, text, 2)

    def halt(self, text: str, hook: str) -> Answer:
        """Stop the agent. Before a call it is refused as well, should the halt not be heeded."""
        stop = {"continue": False, "stopReason": text}
        if hook == "BeforeTool":
            return dumps({"decision": "deny", "reason": text, **stop}), text, 2
        if hook in ("SessionStart", "SessionEnd"):
            return self.inform(text, hook)
        return dumps(stop), "", 0

    def process(self, environment: Mapping[str, str]) -> int | None:
        """Gemini starts its hooks with `bash -c`, and bash gives way to the one command it is to run."""
        return client_process() if environment.get("GEMINI_SESSION_ID") else None


def _as_run(command: str) -> str:
    """The line that Gemini makes of a command: of `bash -c rm -rf docs` it runs `rm -rf docs`, which bash would not."""
    shell, option, rest = (*command.replace("\ufeff", " ").split(None, 2), "", "", "")[:3]
    shell = shell.lower()
    if shell.endswith(("/bash", "/sh", "/zsh")):
        shell = shell.rpartition("/")[2]
    if option.lower() == "-noprofile" and shell[:1] == "p":
        option, rest = (*rest.split(None, 1), "", "")[:2]
    if not rest or _TAKEN_OFF.get(shell) != option.lower():
        return command
    rest = rest.strip()
    if len(rest) < 2 or rest[0] not in "'\"" or rest[0] != rest[-1]:
        return rest
    word = _one_word(rest) if rest[0] == '"' and option == "-c" else None
    return rest[1:-1] if word is None else word


def _one_word(text: str) -> str | None:
    """A text with its quotes taken off as Gemini does it, if it takes it for one word; else it only cuts its ends."""
    word, quote, at = "", "", 0
    while at < len(text):
        char, after = text[at], text[at + 1 : at + 2]
        at += 1
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif char == "\\" and quote != "'":
            word += after if not quote or after in '"\\$' else char + after
            at += 1
        elif char == "$" and quote != "'" and after and after in "*@#?$!_-":
            word += char + after
            at += 2  # and what comes behind is lost there
        elif char == "$" and quote != "'" and after == "{":
            name, brace, _ = text[at + 1 :].partition("}")
            if not name or not brace:
                return None
            word += char + name
            at += len(name) + 2
        elif not quote and char in "|&;()<>*?# \t\n":
            return word if text[at - 1 :].strip() == '"' else None
        else:
            word += char
    return None if quote == "'" else word


def _found(event: Event, root: str) -> Event:
    """The files that a path may mean: `@` before it is dropped if there is no such file, and an edit looks for the one
    file in the project whose path ends so."""
    path, folder = (event.input or {}).get("file_path"), event.cwd or root
    if not isinstance(path, str) or path[:1] == "/" or os.path.exists(os.path.join(folder, path)):
        return event
    name = path[1:].lstrip("/\\") if path[:1] == "@" else path
    names = [name]
    if event.tool == "Edit" and not os.path.exists(os.path.join(folder, name)):
        names += _ending(name, folder)
    paths = [one for each in names for one in in_project(each, folder, root)]
    found: Event = event.replace(paths=tuple(dict.fromkeys((*event.paths, *paths))))
    return found


def _ending(name: str, folder: str) -> list[str]:
    """Files below a folder whose path ends so, folder by folder from the top."""
    found: list[str] = []
    wanted, last = name.replace("\\", "/"), os.path.basename(name)
    folders = [folder]
    for at in range(_FOLDERS):
        if at >= len(folders):
            break
        try:
            with os.scandir(folders[at]) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] if entry.name != ".git" else []
                    elif entry.name == last and entry.path.endswith(wanted):
                        found.append(entry.path)
        except OSError:
            continue
    return found


# -- what came back ---------------------------------------------------------------------------------------


def _outcome(event: Event, response: Any) -> Event:
    if not isinstance(response, dict):
        return answered(event, as_text(response), None)
    shown = shown_text(response.get("llmContent"))
    if shown.startswith("<untrusted_context>\n"):
        shown = shown.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")
    if shown.startswith(_INTERRUPTED):
        return answered(event, None, None)
    error = response.get("error")
    if event.tool == "Bash":
        return _ran(event, shown, response.get("returnDisplay"), failed=isinstance(error, dict))
    if event.tool == "Agent" and "\nTermination Reason: " in shown:
        ended = shown.partition("\nTermination Reason: ")[2].partition("\n")[0]
        return answered(event, None, None) if ended == "ABORTED" else answered(event, shown, ended != "GOAL")
    if isinstance(error, dict):
        return answered(event, shown or optional(error, "message") or "", True)
    return answered(event, shown, False)


def _ran(event: Event, shown: str, display: Any, *, failed: bool) -> Event:
    """A command: its output, and behind it how it ended and the numbers of its processes, which are new each time."""
    if shown.startswith("Command moved to background"):
        return answered(event, "Command moved to background", False)
    if not shown.startswith("Output: "):
        return answered(event, shown, failed or shown.startswith(_STOPPED))
    output, facts = _facts(shown.removeprefix("Output: "), display if isinstance(display, str) else "")
    if output == "(empty)" or output.startswith("(empty)\nError: "):
        output = output[len("(empty)\n") :]
    code = facts.get(_EXIT, "0")
    signal = facts.get(_SIGNAL)
    if signal is not None:
        code = str(128 + int(signal)) if signal.isascii() and signal.isdecimal() else signal
    if code == "0":
        return answered(event, output, failed)
    return answered(event, f"Exit code {code}\n{output}" if output else f"Exit code {code}", True)


def _facts(text: str, output: str) -> tuple[str, dict[str, str]]:
    """The output of a command and what is said behind it. What people are shown is the output alone, where there is
    any: so a program that prints such a line itself is not mistaken."""
    least = len(output) if output and text.startswith(output) else 0
    facts: dict[str, str] = {}
    for name in (_PGID, _BACKGROUND, _SIGNAL, _EXIT):
        before, newline, last = text.rpartition("\n")
        if newline and len(before) >= least and last.startswith(name):
            text, facts[name] = before, last.removeprefix(name).strip()
    return text, facts


AGENT = GeminiHooks()

"""Read SWE-agent's own commands, which stand in its action texts like programs: edits, the file viewer, searches.

They become calls of the tools that every agent has, so that an edit counts as a change and paging through a file as
reading it; and their own error messages are failures, because nothing else in a trajectory says so.
"""

from __future__ import annotations

import re
import shlex

from fusewire.agents.transcripts.step import SHELL
from fusewire.util.fast_json import JsonObject

#: `edit 10:15` with the new text on the lines below, up to `end_of_edit`.
_LINES = re.compile(r"\Aedit (\d+:\d+)[^\n]*\n(.*?)(?:\n?end_of_edit\s*)?\Z", re.DOTALL)

#: The subcommands of `str_replace_editor`, and the tool that each is.
_EDITOR = {"view": "Read", "create": "Write", "str_replace": "Edit", "insert": "Edit", "undo_edit": "Edit"}
EDITORS = ("str_replace_editor", "str_replace_based_edit_tool")

_SEARCHES = {"search_dir": "Grep", "search_file": "Grep", "find_file": "Glob"}

#: How these tools, and the environment around them, say that something did not work.
_FAILED = re.compile(
    r"""\s*(?:\[?Your\ proposed\ edit\ has\ introduced\ new\ syntax\ error | \[?Your\ edit\ was\ not\ applied
    | (?:ERROR:\s+)?No\ replacement\ was\ performed | (?:ERROR:\s+)?Invalid\ `\w+`\ parameter
    | (?:ERROR:\s+)?The\ path\ .{1,400}\ does\ not\ exist | Error:\ (?:File|line|No|Invalid|Start|expected)\b
    | No\ file\ open\. | Usage:\ (?:open|goto|edit|create|search_dir|search_file|find_file)\b
    | (?:File|Directory)\ \S{1,400}\ not\ found\s*$ | Text\ not\ found | EXECUTION\ TIMED\ OUT | COMMAND\ TIMED\ OUT
    | /bin/(?:ba)?sh:\ line\ \d+:\ | bash:\ .{1,200}:\ command\ not\ found)""",
    re.VERBOSE,
)

#: Where an observation names the file that is open.
_OPEN = re.compile(
    r"^\((?:Open|Current) file: (.{1,1000}?)\)$|^\[File: (.{1,1000}?) \(\d+ lines total\)\]$", re.MULTILINE
)


def open_file_of(observation: str) -> str:
    """The file that the viewer shows by now, where an observation names it."""
    named = _OPEN.search(observation)
    path = named[1] or named[2] if named else ""
    return "" if path == "n/a" else path


def has_failed(observation: str) -> bool | None:
    """Whether the text is an error message of the tools themselves; None if it does not say."""
    return True if _FAILED.match(observation) else None


def opened_by(tool: str, given: JsonObject) -> str:
    """The file that is open behind a call, if it opens one."""
    return str(given.get("file_path") or "") if tool in ("Read", "Write") else ""


def call_of(command: str, open_file: str) -> tuple[str, JsonObject]:
    """The tool that an action calls and its input; `open_file` is the one that the viewer shows."""
    lines = _LINES.match(command)
    if lines:
        return "Edit", {"file_path": open_file, "old_string": f"lines {lines[1]}", "new_string": lines[2]}
    name, _, rest = command.partition(" ")
    name = name.strip()
    if name in EDITORS:
        return _editor(command, rest)
    if name == "create" and rest.strip():
        return "Write", {"file_path": _unquoted(rest)}
    if name == "open" and rest.strip():
        path, _, line = rest.strip().rpartition(" ")
        path, line = (path, line) if path and line.isdigit() else (rest, "")
        return "Read", {"file_path": _unquoted(path), **({"offset": line} if line else {})}
    if name in ("goto", "scroll_down", "scroll_up") and open_file:
        return "Read", {"file_path": open_file, "offset": command.strip()}
    if name in ("edit", "insert") and open_file and rest.strip():
        return "Edit", {"file_path": open_file, "new_string": rest}
    if name in _SEARCHES:
        return _SEARCHES[name], {"pattern": rest.strip(), "path": open_file if name == "search_file" else "."}
    return SHELL, {"command": command}


def editor_call(given: JsonObject) -> tuple[str, JsonObject]:
    """A call of the editor with its arguments as fields."""
    rest = {key: value for key, value in given.items() if key not in ("command", "path")}
    return _EDITOR.get(str(given.get("command")), "Edit"), {"file_path": str(given.get("path") or ""), **rest}


def _editor(command: str, rest: str) -> tuple[str, JsonObject]:
    act, _, behind = rest.strip().partition(" ")
    path, _, arguments = behind.strip().partition(" ")
    if act not in _EDITOR or not path:
        return SHELL, {"command": command}
    return _EDITOR[act], {"file_path": _unquoted(path), **({"arguments": arguments} if arguments else {})}


def _unquoted(text: str) -> str:
    try:
        return (shlex.split(text) or [""])[0]
    except ValueError:
        return text.strip()

"""The four agents as an installer sees them: their settings files, the events that we need, the shape of an entry.

Measured on Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0 and Copilot CLI 1.0.102.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fusewire.agents.install.command import shell_line
from fusewire.agents.install.http import Http
from fusewire.util.errors import FusewireError
from fusewire.util.quoting import quoted

#: Above the hook's own deadline of 10 s: an agent whose time-out comes first would run the tool.
_SECONDS = 15

#: How a hook ends that is gone: with 1 people are told, but to Copilot CLI everything but 0 refuses the call.
_NEVER_REFUSES, _UNLESS_COPILOT = "exit 0", '[ -n "$COPILOT_CLI" ]; exit'

#: Codex runs no hook that a person has not accepted, and does not say so.
CODEX_TRUST = "start `codex` and trust the hooks of fusewire that it shows (or type /hooks there)"

#: Codex allows no more at the end of a session.
CODEX_END = 3

#: Every tool; and for failures only those of MCP servers: all others stand in the batch, and a process each is dear.
_ALL, _MCP = "*", "mcp__.*"


@dataclass(frozen=True, slots=True)
class Place:
    """A settings file of an agent: whose it is (`user`, `project`, `local`), and how many folders are the agent's."""

    scope: str
    path: str
    folders: int = 1


@dataclass(frozen=True, slots=True)
class Client:
    """What is particular to one agent."""

    name: str
    title: str
    program: str
    #: event -> its matcher, or None where all are meant
    events: Mapping[str, str | None]
    #: the event that can refuse a call
    gate: str
    #: whose folder: the variable that names it, its name in a home folder, and what lies in it
    variable: str
    home: str
    file: str
    #: the file of a project, and one that is not shared with others, if there is such a thing
    shared: str
    unshared: str | None = None
    reads_comments: bool = False
    #: events that refuse nothing, and may be sent to a server
    reports: tuple[str, ...] = ()

    def places(self, root: str) -> dict[str, Place]:
        """Where it looks for hooks, by scope."""
        given = os.environ.get(self.variable)
        folder = given or os.path.join(self._home(), self.home)
        if given and self.name == "gemini":  # it names what takes the place of the home folder
            folder = os.path.join(given, self.home)
        folders = self.file.count("/") + 1
        places = {
            "user": Place("user", os.path.join(os.path.abspath(folder), self.file), folders),
            "project": Place("project", os.path.join(root, self.shared), self.shared.count("/")),
        }
        if self.unshared:
            places["local"] = Place("local", os.path.join(root, self.unshared), self.unshared.count("/"))
        return places

    def _home(self) -> str:
        """The user's folder: without one, everybody's settings would be written into the top of the disk, or here."""
        home = os.path.expanduser("~")
        if os.environ.get("HOME") == "" or not os.path.isabs(home):
            raise FusewireError(
                f"HOME is {os.environ.get('HOME', '')!r}, so nobody knows where {self.title} keeps your settings:"
                f" set it to your home folder, or {self.variable} to that of {self.title}"
            )
        return home

    def install_line(self, scope: str, http: Http | None = None) -> str:
        """The command that registers us in that settings file, as we are today."""
        if scope == "plugin":
            return "claude plugin update fusewire"
        over = "" if http is None else f" --http{http.option}"
        return f"fusewire install {self.name}{'' if scope == 'user' else f' --{scope}'}{over}"

    def uninstall_line(self, scope: str) -> str:
        """The command that takes us out of it; a plugin is the agent's own matter."""
        if scope == "plugin":
            return "claude plugin uninstall fusewire"
        return f"fusewire uninstall {self.name}{'' if scope == 'user' else f' --{scope}'}"

    def entries(self, line: list[str], http: Http | None = None) -> dict[str, dict[str, Any]]:
        """event -> the entry that is wanted in its list; with `http`, reports go there."""
        return {event: self._entry(event, matcher, line, http) for event, matcher in self.events.items()}

    def _entry(self, event: str, matcher: str | None, line: list[str], http: Http | None) -> dict[str, Any]:
        """Always one line for a shell: Copilot reads Claude Code's settings of a project, but leaves out `args`."""
        if self.name == "copilot":
            return {"type": "command", "bash": shell_line(line, _NEVER_REFUSES), "timeoutSec": _SECONDS}
        end = _UNLESS_COPILOT if self.name == "claude" else "exit 1"
        handler: dict[str, Any] = {"type": "command", "command": shell_line(line, end), "timeout": _SECONDS}
        if self.name == "gemini":
            handler = {"type": "command", "name": "fusewire", "command": shell_line(line), "timeout": 1000 * _SECONDS}
        if self.name == "codex":  # it starts the user's own shell, which may be of an unusual kind
            handler["command"] = f"exec /bin/sh -c {quoted(shell_line(line))}"
            if event == "SessionEnd":
                handler["timeout"] = CODEX_END
        if http is not None and event in self.reports:
            handler = http.handler(self.name)
        group: dict[str, Any] = {} if matcher is None else {"matcher": matcher}
        return group | {"hooks": [handler]}

    def handlers(self, entry: Any) -> list[Any]:
        """The hooks of one entry of an event's list."""
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        return inner if isinstance(inner, list) else [entry]

    def switches(self, settings: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        """Settings that switch hooks off: the keys that lead there, and what to do about it."""
        if not isinstance(settings, dict):
            return
        if self.name in ("claude", "copilot") and settings.get("disableAllHooks") is True:
            yield ("disableAllHooks",), "take it out, or set it to false"
        config = settings.get("hooksConfig")
        if self.name == "gemini" and isinstance(config, dict):
            if config.get("enabled") is False:
                yield ("hooksConfig", "enabled"), "take it out, or set it to true"
            disabled = config.get("disabled")
            if isinstance(disabled, list) and "fusewire" in disabled:
                yield ("hooksConfig", "disabled"), 'take "fusewire" out of the list'


def _plain(names: str) -> dict[str, str | None]:
    """Events without a matcher."""
    return dict.fromkeys(names.split())


CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude",
            title="Claude Code",
            program="claude",
            events={
                "PreToolUse": _ALL,
                "PostToolBatch": None,
                "PostToolUseFailure": _MCP,
                "UserPromptSubmit": None,
                "SessionStart": None,
                "SessionEnd": None,
                "Stop": None,
                "SubagentStart": None,
                "SubagentStop": None,
                "ConfigChange": None,
            },
            gate="PreToolUse",
            variable="CLAUDE_CONFIG_DIR",
            home=".claude",
            file="settings.json",
            shared=".claude/settings.json",
            unshared=".claude/settings.local.json",
            reports=("PostToolBatch", "PostToolUseFailure", "SessionEnd", "SubagentStart", "SubagentStop"),
        ),
        Client(
            name="codex",
            title="Codex",
            program="codex",
            events=_plain(
                "PreToolUse PermissionRequest PostToolUse UserPromptSubmit SessionStart SessionEnd Stop"
                " SubagentStart SubagentStop"
            ),
            gate="PreToolUse",
            variable="CODEX_HOME",
            home=".codex",
            file="hooks.json",
            shared=".codex/hooks.json",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            program="gemini",
            events={
                "BeforeTool": _ALL,
                "AfterTool": _ALL,
                "BeforeAgent": None,
                "AfterAgent": None,
                "SessionStart": None,
                "SessionEnd": None,
            },
            gate="BeforeTool",
            variable="GEMINI_CLI_HOME",
            home=".gemini",
            file="settings.json",
            shared=".gemini/settings.json",
            reads_comments=True,
        ),
        Client(
            name="copilot",
            title="Copilot CLI",
            program="copilot",
            events=_plain(
                "PreToolUse PermissionRequest PostToolUse PostToolUseFailure UserPromptSubmit SessionStart SessionEnd"
                " Stop SubagentStart SubagentStop"
            ),
            gate="PreToolUse",
            variable="COPILOT_HOME",
            home=".copilot",
            file="hooks/fusewire.json",
            shared=".github/hooks/fusewire.json",
        ),
    )
}


def client_named(name: str) -> Client:
    if name not in CLIENTS:
        raise FusewireError(f"no agent named {name!r}; allowed: {', '.join(CLIENTS)}")
    return CLIENTS[name]

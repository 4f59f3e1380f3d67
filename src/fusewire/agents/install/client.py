"""Describe one agent for `install` and `doctor`: its settings files, the events that we need, the shape of an entry.

Each agent's package has its own in `client.py` (`fusewire.agents.registry` collects them); what is particular to it is
a field or an overridden method there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fusewire.agents import agent_named
from fusewire.agents.install.command import shell_line
from fusewire.agents.install.http import Http, http_of
from fusewire.guard.known_agents import AGENTS_BY_NAME, KnownAgent
from fusewire.util.errors import FusewireError
from fusewire.util.fast_json import JsonObject
from fusewire.util.programs import find_program

#: Above the hook's own deadline of 10 s: an agent whose time-out comes first would run the tool.
HOOK_SECONDS = 15

#: Matches every tool.
ALL_TOOLS = "*"


@dataclass(frozen=True, slots=True)
class SettingsPlace:
    """A settings file of an agent: whose it is (`user`, `project`, `local`), and how many folders are the agent's."""

    scope: str
    path: str
    folders: int = 1


@dataclass(frozen=True, slots=True)
class Registration:
    """One file with hooks of ours: event -> those hooks. A `plugin` is the agent's own matter to install and remove."""

    scope: str
    file: str
    hooks: dict[str, list[JsonObject]] = field(default_factory=dict)

    def gate(self, client: Client) -> JsonObject | None:
        """The hook that can refuse a call."""
        return next(iter(self.hooks.get(client.gate, ())), None)

    def http(self, client: Client) -> Http | None:
        """Where its reports go, if not to processes."""
        return http_of(self.hooks, client.name)


@dataclass(frozen=True, slots=True)
class Client:
    """What is particular to one agent."""

    #: also the name of its program
    name: str
    title: str
    #: event -> its matcher, or None where all are meant
    events: Mapping[str, str | None]
    #: the settings file in the agent's home folder
    file: str
    #: the file of a project, and one that is not shared with others, if there is such a thing
    shared: str
    unshared: str | None = None
    #: the text of a settings file without settings
    empty: str = "{}\n"
    reads_comments: bool = False
    reads_byte_order_mark: bool = True
    #: a setting that switches all hooks off, and one that leaves only the administrator's
    off_switch: str = ""
    managed_only: str = ""
    #: events that refuse nothing, and may be sent to a server
    reports: tuple[str, ...] = ()
    has_status_line: bool = False
    #: whether its shell commands can be run through a wrapper
    wraps_shell: bool = False
    #: the shell that starts its hooks; `login` is the user's own, which reads the whole profile
    hook_shell: Literal["bash", "sh", "login"] = "bash"
    #: variables that name the project to a hook, and the one that names the folder of the hook's registration
    project_variables: tuple[str, ...] = ()
    hook_folder_variable: str = ""
    #: its name for the shell tool, and whether its calls have ids (else they have times)
    shell_tool: str = "Bash"
    calls_have_ids: bool = True

    # -- settings files -----------------------------------------------------------------------------------

    @property
    def known(self) -> KnownAgent:
        """What the guard knows of it."""
        return AGENTS_BY_NAME[self.name]

    @property
    def gate(self) -> str:
        """The event that can refuse a call."""
        return agent_named(self.name).GATES[0]

    def places(self, root: str) -> dict[str, SettingsPlace]:
        """Where it looks for hooks, by scope."""
        given, below = os.environ.get(self.known.home_variable), os.path.basename(self.known.home)
        if not given:
            folder = os.path.join(self._home(), below)
        else:
            folder = os.path.join(given, below) if self.known.home_below else given
        folders = self.file.count("/") + 1
        places = {
            "user": SettingsPlace("user", os.path.join(os.path.abspath(folder), self.file), folders),
            "project": SettingsPlace("project", os.path.join(root, self.shared), self.shared.count("/")),
        }
        if self.unshared:
            places["local"] = SettingsPlace("local", os.path.join(root, self.unshared), self.unshared.count("/"))
        return places

    def _home(self) -> str:
        """The user's folder: without one, everybody's settings would be written into the top of the disk, or here."""
        home = os.path.expanduser("~")
        if os.environ.get("HOME") == "" or not os.path.isabs(home):
            raise FusewireError(
                f"HOME is {os.environ.get('HOME', '')!r}, so it is not known where {self.title} keeps your settings:"
                f" set it to your home folder, or {self.known.home_variable} to that of {self.title}"
            )
        return home

    def other_settings(self, root: str) -> list[str]:
        """Files in which hooks are not registered, but can be switched off."""
        return []

    def switches(self, settings: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        """Settings that switch hooks off: the keys that lead there, and what to do about it."""
        if self.off_switch and isinstance(settings, dict) and settings.get(self.off_switch) is True:
            yield (self.off_switch,), "take it out, or set it to false"

    # -- commands -----------------------------------------------------------------------------------------

    def install_line(self, scope: str, http: Http | None = None) -> str:
        """The command that registers us in that settings file, as we are today."""
        if scope == "plugin":
            return f"{self.name} plugin update fusewire"
        over = "" if http is None else f" --http{http.option}"
        return f"fusewire install {self.name}{'' if scope == 'user' else f' --{scope}'}{over}"

    def uninstall_line(self, scope: str) -> str:
        """The command that takes us out of it; a plugin is the agent's own matter."""
        if scope == "plugin":
            return f"{self.name} plugin uninstall fusewire"
        return f"fusewire uninstall {self.name}{'' if scope == 'user' else f' --{scope}'}"

    # -- hooks --------------------------------------------------------------------------------------------

    def entry(self, event: str, handler: JsonObject) -> JsonObject:
        """The entry in the list of an event, around its one hook."""
        matcher = self.events[event]
        return ({} if matcher is None else {"matcher": matcher}) | {"hooks": [handler]}

    def handler(self, event: str, line: list[str]) -> JsonObject:
        """A hook that runs a command; always one line for a shell."""
        return {"type": "command", "command": shell_line(line), "timeout": HOOK_SECONDS}

    def handlers(self, entry: Any) -> list[Any]:
        """The hooks of one entry of an event's list."""
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        return inner if isinstance(inner, list) else [entry]

    def gate_handler(self, line: list[str]) -> JsonObject:
        """The hook that can refuse a call, as it is registered today."""
        return self.handler(self.gate, line)

    def plugins(self, root: str) -> Iterator[Registration]:
        """Our plugin, where the agent has such a thing and it is switched on for this project."""
        return iter(())

    def adds_calls(self, one: JsonObject | None, other: JsonObject | None) -> bool:
        """Whether a second registration is a second process for every call."""
        return True

    # -- running hooks ------------------------------------------------------------------------------------

    def hook_words(self, line: str) -> list[str]:
        """How it starts a hook that is one line for a shell."""
        if self.hook_shell == "login":
            return [os.environ.get("SHELL") or "/bin/sh", "-lc", line]
        return [(find_program("bash") if self.hook_shell == "bash" else None) or "/bin/sh", "-c", line]

    def hook_environment(self, root: str) -> dict[str, str]:
        """What it adds to a hook's environment."""
        added = dict.fromkeys(self.project_variables, root)
        if self.hook_folder_variable:
            added[self.hook_folder_variable] = os.path.dirname(self.places(root)["user"].path)
        return added

    # -- trust --------------------------------------------------------------------------------------------

    def distrust(self, registration: Registration, root: str) -> list[tuple[str, str]]:
        """Why the hooks of one file are registered and yet would not run, each with what to do about it."""
        return []

    def undecided(self, root: str) -> list[str]:
        """What to know where a person has not said yet whether the folder is trusted."""
        return []


def plain_events(names: str) -> dict[str, str | None]:
    """Events without a matcher."""
    return dict.fromkeys(names.split())

"""The four clients: how each is started headless, what its tools are called, where its model is found.

Every client gets an empty environment, a throw-away home, a key that is none, and a model on loopback.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness import processes
from harness.calls import Call, Tool
from harness.script import Request, Script
from harness.server import Vendor, model
from harness.vendors import Anthropic, Google, OpenAI

CLIENTS: dict[str, dict[str, str]] = json.loads((Path(__file__).parents[1] / "clients.json").read_text())

PROMPT = "Do what the script says."

#: Seconds that a session gets on a busy machine: one that hangs is ended then, and every other ends long before.
PATIENCE = 180

#: Whatever is not on loopback is asked of a proxy that nobody runs. That keeps a client off the network also where it
#: has no network namespace of its own, and where it has one, it need not wait for names that nobody can look up.
NOWHERE = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


def cache() -> Path:
    """Where the clients are installed."""
    given = os.environ.get("AGENTS_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(given) if given else Path(base) / "fusewire-agents"


def folder(name: str) -> Path:
    return cache() / f"{name}-{CLIENTS[name]['version']}"


def installed(name: str) -> Path | None:
    """The program of a client, if it is here."""
    path = folder(name) / "node_modules" / ".bin" / name
    return path if path.exists() else None


@dataclass(frozen=True, repr=False)
class Run:
    """What became of one session."""

    client: str
    ended: processes.Ended
    requests: tuple[Request, ...]

    @property
    def code(self) -> int | None:
        """None if the client did not end by itself in its time."""
        return self.ended.code

    @property
    def shown(self) -> str:
        """What a person sees of it: standard output and standard error, with the JSON in them made readable."""
        return "\n".join((_readable(self.ended.stdout), self.ended.stderr))

    @property
    def told(self) -> str:
        """Everything that the models were told in it beside their own words."""
        return "\n".join(request.told for request in self.requests)

    def told_at(self, number: int, who: str = "main") -> str:
        """What the model was told before its reply of this number (the first is 0)."""
        return next((one.told for one in self.requests if (one.who, one.number) == (who, number)), "")

    def count(self, who: str = "main") -> int:
        return sum(request.who == who for request in self.requests)

    def __repr__(self) -> str:
        """For the message of a failed assertion."""
        parts = [f"{self.client}: code {self.code} after {self.ended.seconds:.1f} s, {len(self.requests)} requests"]
        for request in self.requests[-8:]:
            parts.append(f"--- {request.who} {request.number} was told: {request.told[-1500:]}")
        parts += [f"--- stdout: {self.ended.stdout[-3000:]}", f"--- stderr: {self.ended.stderr[-3000:]}"]
        return "\n".join(parts)


def _readable(text: str) -> str:
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.dumps(json.loads(line), ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"'))
        except ValueError:
            lines.append(line)
    return "\n".join(lines)


@dataclass
class Client:
    """One client in one throw-away home, working in one project."""

    home: Path
    project: Path
    name: str = ""
    vendor: Vendor = field(default_factory=Anthropic)
    #: More variables for every session, and more arguments.
    variables: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings_folder.mkdir(parents=True, exist_ok=True)
        self.prepare()

    # -- what each client has of its own

    @property
    def settings_folder(self) -> Path:
        raise NotImplementedError

    @property
    def registration(self) -> Path:
        """The file of the person's own settings that our hook stands in."""
        return self.settings_folder / "settings.json"

    def prepare(self) -> None:
        """Write what a person who uses this client has in their home."""

    def point(self, port: int) -> None:
        """Write where the model is, if no variable can say it."""

    def trust(self) -> None:
        """Say yes to the hooks that are registered, as a person does where the client asks."""

    def to_model(self, port: int) -> dict[str, str]:
        raise NotImplementedError

    def command(self, prompt: str, *, again: bool = False, data: bool = False) -> list[str]:
        """The client without a terminal; with `again` the last session goes on; `data` is for programs to read."""
        raise NotImplementedError

    def tool(self, call: Call, conversation: str = "") -> Tool:
        raise NotImplementedError

    # -- what all have in common

    @property
    def program(self) -> str:
        found = installed(self.name)
        if found is None:
            raise FileNotFoundError(f"{self.name} is not installed in {cache()}; run: make test-agents")
        return str(found)

    @property
    def path(self) -> str:
        """Where programs are found: the client itself, and what the system has."""
        node = shutil.which("node") or "/usr/bin/node"
        return f"{Path(self.program).parent}:{Path(node).parent}:/usr/local/bin:/usr/bin:/bin"

    def environment(self, port: int) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": self.path,
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            **NOWHERE,
            **self.to_model(port),
            **self.variables,
        }

    def run(
        self,
        script: Script,
        prompt: str = PROMPT,
        *,
        seconds: float = PATIENCE,
        again: bool = False,
        around: list[str] | None = None,
        variables: dict[str, str] | None = None,
        meanwhile: Any = None,
    ) -> Run:
        """One session, headless, or the last one `again`. `around` is a command in front of the client's."""
        with model(self.vendor, script, self.tool) as port:
            self.point(port)
            ended = processes.run(
                [*(around or []), *self.command(prompt, again=again, data=bool(around)), *self.arguments],
                cwd=self.project,
                environment={**self.environment(port), **(variables or {})},
                home=self.home,
                seconds=seconds,
                meanwhile=meanwhile,
            )
        return Run(self.name, ended, tuple(script.requests))

    def absolute(self, path: str) -> str:
        """As most tools want it."""
        return str(self.project / path)


class Claude(Client):
    @property
    def settings_folder(self) -> Path:
        return self.home / ".claude"

    def prepare(self) -> None:
        file = self.home / ".claude.json"
        file.write_text('{"hasCompletedOnboarding": true, "bypassPermissionsModeAccepted": true}')

    def to_model(self, port: int) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            "ANTHROPIC_API_KEY": "not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_TMPDIR": str(self.home),  # /tmp/claude-0 may be another user's: in a namespace all are root
            "IS_SANDBOX": "1",  # or root may not skip its questions
        }

    def command(self, prompt: str, *, again: bool = False, data: bool = False) -> list[str]:
        words = "--output-format stream-json --verbose --include-hook-events --permission-mode bypassPermissions"
        return [self.program, "-p", prompt, *words.split(), *(["--continue"] if again else [])]

    def tool(self, call: Call, conversation: str = "") -> Tool:
        match call.kind, call.given:
            case "shell", (command,):
                return Tool("Bash", {"command": command, "description": "A step"})
            case "background", (command,):
                return Tool("Bash", {"command": command, "description": "A job", "run_in_background": True})
            case "read", (path,):
                return Tool("Read", {"file_path": self.absolute(path)})
            case "write", (path, text):
                return Tool("Write", {"file_path": self.absolute(path), "content": text})
            case "edit", (path, old, new):
                return Tool("Edit", {"file_path": self.absolute(path), "old_string": old, "new_string": new})
            case "destroy", (path, _):
                return Tool("Write", {"file_path": self.absolute(path), "content": ""})
            case "spawn", (prompt,):
                given = {"description": "A part", "prompt": prompt, "subagent_type": "general-purpose"}
                return Tool("Agent", {**given, "run_in_background": False})
            case "wait", ():
                return Tool("Bash", {"command": "true", "description": "Nothing"})
        raise ValueError(call)


class Codex(Client):
    trusts = False

    @property
    def settings_folder(self) -> Path:
        return self.home / ".codex"

    @property
    def registration(self) -> Path:
        return self.settings_folder / "hooks.json"

    def point(self, port: int) -> None:
        (self.settings_folder / "config.toml").write_text(
            f"""model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "NOT_A_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
            + "".join(
                f'[hooks.state.{json.dumps(key)}]\ntrusted_hash = "{digest}"\n' for key, digest in self._trusted()
            )
        )

    def trust(self) -> None:
        self.trusts = True
        self.point(9)

    def _trusted(self) -> Iterator[tuple[str, str]]:
        """What Codex itself writes down when a person has looked at the hooks and trusts them: a hash for each."""
        if not self.trusts or not self.registration.exists():
            return
        for event, groups in json.loads(self.registration.read_text())["hooks"].items():
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
            for at, group in enumerate(groups):
                for number, hook in enumerate(group["hooks"]):
                    known: dict[str, Any] = {"event_name": name, "hooks": [{"async": False, **hook}]}
                    if "matcher" in group:
                        known["matcher"] = group["matcher"]
                    text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                    yield f"{self.registration}:{name}:{at}:{number}", f"sha256:{sha256(text.encode()).hexdigest()}"

    def to_model(self, port: int) -> dict[str, str]:
        return {"NOT_A_KEY": "not-a-key", "CODEX_HOME": str(self.settings_folder)}

    def command(self, prompt: str, *, again: bool = False, data: bool = False) -> list[str]:
        resumed = ["resume", "--last"] if again else []
        return [self.program, "exec", *(["--json"] if data else []), "--skip-git-repo-check", *resumed, prompt]

    def tool(self, call: Call, conversation: str = "") -> Tool:
        match call.kind, call.given:
            case "shell", (command,):
                return Tool("exec_command", {"cmd": command, "yield_time_ms": 30000})  # else it waits for 10 s
            case "read", (path,):
                return Tool("exec_command", {"cmd": f"cat {path}"})  # it has no tool that reads
            case "write", (path, text):
                return self._patch(f"Add File: {path}", [f"+{line}" for line in text.splitlines()])
            case "edit", (path, old, new):
                changed = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
                return self._patch(f"Update File: {path}", ["@@", *changed])
            case "destroy", (path, _):
                return self._patch(f"Delete File: {path}", [])
            case "spawn", (prompt,):
                return Tool("spawn_agent", {"message": prompt}, namespace="multi_agent_v1")
            case "wait", ():
                ids = re.findall(r'"agent_id": ?"([0-9a-f-]+)"', conversation)
                return Tool("wait_agent", {"targets": ids, "timeout_ms": 60000}, namespace="multi_agent_v1")
        raise ValueError(call)

    def _patch(self, head: str, lines: list[str]) -> Tool:
        text = "\n".join(["*** Begin Patch", f"*** {head}", *lines, "*** End Patch"])
        return Tool("apply_patch", {"input": text}, raw=text)


class Gemini(Client):
    @property
    def settings_folder(self) -> Path:
        return self.home / ".gemini"

    def prepare(self) -> None:
        (self.settings_folder / "settings.json").write_text(
            """{
  // A person's own settings.
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false},
  "model": {"disableLoopDetection": true} // it is our breaker that is to find loops
}
"""
        )

    def to_model(self, port: int) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "not-a-key",
            "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        }

    def command(self, prompt: str, *, again: bool = False, data: bool = False) -> list[str]:
        more = [*(["--resume", "latest"] if again else []), *(["-o", "json"] if data else [])]
        return [self.program, "-m", "gemini-2.5-pro", "--yolo", *more, "-p", prompt]

    def tool(self, call: Call, conversation: str = "") -> Tool:
        match call.kind, call.given:
            case "shell", (command,):
                return Tool("run_shell_command", {"command": command, "description": "A step"})
            case "read", (path,):
                return Tool("read_file", {"file_path": self.absolute(path)})
            case "write", (path, text):
                return Tool("write_file", {"file_path": self.absolute(path), "content": text})
            case "edit", (path, old, new):
                given = {
                    "file_path": self.absolute(path),
                    "old_string": old,
                    "new_string": new,
                    "instruction": "Change it",
                }
                return Tool("replace", given)
            case "destroy", (path, _):
                return Tool("write_file", {"file_path": self.absolute(path), "content": ""})
            case "spawn", (prompt,):
                return Tool("invoke_agent", {"agent_name": "generalist", "prompt": prompt})
            case "wait", ():
                return Tool("run_shell_command", {"command": "true", "description": "Nothing"})
        raise ValueError(call)


class Copilot(Client):
    @property
    def settings_folder(self) -> Path:
        return self.home / ".copilot"

    @property
    def registration(self) -> Path:
        return self.settings_folder / "hooks" / "fusewire.json"

    def to_model(self, port: int) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{port}",
            "COPILOT_PROVIDER_API_KEY": "not-a-key",
            "COPILOT_MODEL": "claude-sonnet-4.5",
        }

    def command(self, prompt: str, *, again: bool = False, data: bool = False) -> list[str]:
        more = [*(["--continue"] if again else []), *(["--output-format", "json"] if data else [])]
        return [self.program, "-p", prompt, "--allow-all-tools", *more]

    def tool(self, call: Call, conversation: str = "") -> Tool:
        match call.kind, call.given:
            case "shell", (command,):
                return Tool("bash", {"command": command, "description": "A step"})
            case "read", (path,):
                return Tool("view", {"path": self.absolute(path)})
            case "write", (path, text):
                return Tool("create", {"path": self.absolute(path), "file_text": text})
            case "edit", (path, old, new):
                return Tool("edit", {"path": self.absolute(path), "old_str": old, "new_str": new})
            case "destroy", (path, text):
                return Tool("edit", {"path": self.absolute(path), "old_str": text, "new_str": ""})
            case "spawn", (prompt,):
                given = {"description": "A part", "prompt": prompt, "agent_type": "general-purpose", "name": "part"}
                return Tool("task", given)
            case "wait", ():
                return Tool("bash", {"command": "true", "description": "Nothing"})
        raise ValueError(call)


def client_of(name: str, home: Path, project: Path) -> Client:
    if name == "claude":
        return Claude(home, project, name)
    if name == "codex":
        return Codex(home, project, name, OpenAI())
    if name == "gemini":
        return Gemini(home, project, name, Google())
    return Copilot(home, project, name)

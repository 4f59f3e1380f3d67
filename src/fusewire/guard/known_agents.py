"""List facts about coding agents that packages below `agents` need: programs, settings files, variables, options.

The guard protects the settings of every agent, whichever one runs, and must know them without loading the agents'
packages: so they are one plain table, and everything else here is derived from it. On the hot path.
"""

from __future__ import annotations

from fusewire.core.events import Noun


class KnownAgent(Noun):
    """What the guard knows about one agent. Paths are relative to the project, or to the agent's home folder."""

    name: str
    #: parts of the paths under which the program is installed
    packages: tuple[str, ...]
    #: what the agent sets in the environment of the commands that it runs
    shell_variables: tuple[str, ...]
    #: the variable that names its home folder, and the folder without it
    home_variable: str
    home: str
    #: settings in the home folder
    home_files: tuple[str, ...]
    #: settings in a project
    project_files: tuple[str, ...]
    #: options that start it without a person
    headless: frozenset[str]
    #: whether `home_variable` names the parent of the home folder
    home_below: bool = False
    #: folders in the home folder with code that the agent runs without a hook
    home_runs: tuple[str, ...] = ()
    #: the folder of a project that could be created with settings in it
    project_folder: str = ""
    #: the administrator's settings
    system_folders: tuple[str, ...] = ()
    #: variables, beside that of the home folder, which decide what settings are read
    setting_variables: tuple[str, ...] = ()
    #: options that start it without its hooks
    unhooked_options: tuple[str, ...] = ()
    #: options whose value is a setting
    setting_options: tuple[str, ...] = ()
    #: whether its program may go by NAME-PLATFORM
    native_binary: bool = False
    #: names the session in the environment of its commands
    session_variable: str = ""
    #: is set there if its sandbox has no network
    offline_variable: str = ""
    #: whether helpers write transcripts of their own, and a hook does not learn which of them asks
    unnamed_helpers: bool = False

    def home_folders(self, given: str | None) -> set[str]:
        """The home folders to protect; `given` is the value of `home_variable`."""
        if given and self.home_below:
            given = f"{given.rstrip('/')}/{self.home.rpartition('/')[2]}"
        return {self.home, given or self.home}


KNOWN_AGENTS = (
    KnownAgent(
        "claude",
        packages=("@anthropic-ai/claude-code", "/claude/versions/"),
        shell_variables=("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID"),
        home_variable="CLAUDE_CONFIG_DIR",
        home="~/.claude",
        # with the shell wrapper that `install` writes: see `fusewire.guard.sandbox.active`
        home_files=("settings.json", "settings.local.json", "fusewire-shell", "fusewire-shell-always"),
        home_runs=("plugins/", "skills/", "commands/", "agents/", "output-styles/"),
        project_files=(".claude/settings.json", ".claude/settings.local.json"),
        project_folder=".claude",
        system_folders=("/etc/claude-code/", "/Library/Application Support/ClaudeCode/"),
        setting_variables=("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"),
        headless=frozenset(("-p", "--print", "-cp", "-pc")),
        unhooked_options=("--bare", "--safe-mode", "--setting-sources", "--managed-settings"),
        setting_options=("--settings",),
        session_variable="CLAUDE_CODE_SESSION_ID",
    ),
    KnownAgent(
        "codex",
        packages=("@openai/codex",),
        shell_variables=(
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_SESSION_ID",
            "CODEX_THREAD_ID",
        ),
        home_variable="CODEX_HOME",
        home="~/.codex",
        home_files=("hooks.json", "config.toml", "managed_config.toml"),
        project_files=(".codex/hooks.json", ".codex/config.toml"),
        project_folder=".codex",
        system_folders=("/etc/codex/",),
        headless=frozenset(("exec", "e", "review")),
        unhooked_options=("--ignore-user-config",),
        setting_options=("--disable", "-c", "--config"),
        native_binary=True,
        session_variable="CODEX_THREAD_ID",
        offline_variable="CODEX_SANDBOX_NETWORK_DISABLED",
    ),
    KnownAgent(
        "gemini",
        packages=("@google/gemini-cli",),
        shell_variables=("GEMINI_CLI",),
        home_variable="GEMINI_CLI_HOME",
        home="~/.gemini",
        home_below=True,
        home_files=("settings.json", "trustedFolders.json"),
        project_files=(".gemini/settings.json", ".gemini/.env"),
        project_folder=".gemini",
        system_folders=("/etc/gemini-cli/", "/Library/Application Support/GeminiCli/"),
        setting_variables=("GEMINI_CLI_SYSTEM_SETTINGS_PATH",),
        headless=frozenset(("-p", "--prompt")),
        unnamed_helpers=True,
    ),
    KnownAgent(
        "copilot",
        packages=("@github/copilot",),
        shell_variables=("COPILOT_AGENT_SESSION_ID", "COPILOT_CLI"),
        home_variable="COPILOT_HOME",
        home="~/.copilot",
        home_files=("hooks/", "settings.json", "config.json"),
        project_files=(".github/hooks/", ".github/copilot/settings.json", ".github/copilot/settings.local.json"),
        headless=frozenset(("-p", "--prompt")),
        session_variable="COPILOT_AGENT_SESSION_ID",
    ),
)

#: name -> agent; the name is also that of its program
AGENTS_BY_NAME = {agent.name: agent for agent in KNOWN_AGENTS}

#: Programs that start an agent: the agents themselves, and `fusewire run`.
STARTING_PROGRAMS = frozenset((*AGENTS_BY_NAME, "fusewire"))

#: Part of an installed program's path -> agent, and the runtimes of those that are scripts.
AGENT_PACKAGES = {package: agent.name for agent in KNOWN_AGENTS for package in agent.packages}
SCRIPT_RUNTIMES = frozenset(("node", "nodejs", "bun", "deno"))

#: Variables that show that a command was started by an agent; the last one is set for other agents by hand.
AGENT_VARIABLES = (*(name for agent in KNOWN_AGENTS for name in agent.shell_variables), "FUSEWIRE_AGENT")

#: Variables that name the session to a command, and those that are set where a command has no network.
SESSION_VARIABLES = tuple(agent.session_variable for agent in KNOWN_AGENTS if agent.session_variable)
OFFLINE_VARIABLES = tuple(agent.offline_variable for agent in KNOWN_AGENTS if agent.offline_variable)

#: Beginnings of the names of all variables by which an agent's program speaks to what it starts.
VARIABLE_PREFIXES = tuple(
    prefix for agent in KNOWN_AGENTS for prefix in (f"{agent.name.upper()}_", *agent.shell_variables)
)

#: Variables that name the agents' home folders.
HOME_VARIABLES = tuple(agent.home_variable for agent in KNOWN_AGENTS)


def agent_of_package(program: str) -> str:
    """The agent whose package a program's path lies in; empty if there is none."""
    return next((agent for package, agent in AGENT_PACKAGES.items() if package in program), "")


def agent_of_npm_name(name: str) -> str:
    """The agent whose npm package has this name, without its scope; empty if there is none."""
    return next((agent for package, agent in AGENT_PACKAGES.items() if name and package.endswith(f"/{name}")), "")

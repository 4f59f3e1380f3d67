"""Derive the protected paths of a project from its rules."""

from __future__ import annotations

import os

from fusewire.config.rules import (
    CONSTRAINTS_FOLDER,
    PHASE_FILE,
    SESSION_CONFIG,
    STATE_FOLDER,
    load_rules,
    shared_root,
    user_config_path,
)
from fusewire.guard.known_agents import KNOWN_AGENTS
from fusewire.guard.protected import CONFIGURATION, DOCUMENT, Protected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.config.rules import Rules

#: Where agents look for their settings in a project.
AGENT_SETTINGS = tuple(file for agent in KNOWN_AGENTS for file in agent.project_files)

#: Fusewire's own state and policy, and where agents keep the hooks that call it; always protected.
OWN = (
    ".fusewire/",
    "fusewire.toml",
    "docs/constraints/",
    PHASE_FILE,
    SESSION_CONFIG,
    ".git/refs/fusewire/",
    ".git/packed-refs",
    *AGENT_SETTINGS,
    # An administrator's settings, which outrank all others: in a container the agent may well be root.
    *(folder for agent in KNOWN_AGENTS for folder in agent.system_folders),
)


def _in_homes() -> tuple[list[str], list[str]]:
    """The agents' settings outside of the project, and what their programs run without a hook.

    The latter may be large, so no copies of it are kept.
    """
    found: list[str] = []
    runs: list[str] = []
    for agent in KNOWN_AGENTS:
        folders = agent.home_folders(os.environ.get(agent.home_variable))
        found += [os.path.join(folder, name) for folder in folders for name in agent.home_files]
        runs += [os.path.join(folder, name) for folder in folders for name in agent.home_runs]
    return found, runs


def _folders_of_ours() -> list[str]:
    """Where the user's settings lie, with files that say where messages go, and the tokens of the server. What is in
    them may be a secret: no copies are kept."""
    states = {"~/.local/state", os.environ.get("XDG_STATE_HOME") or "~/.local/state"}
    return [os.path.dirname(user_config_path()), *(os.path.join(folder, "fusewire") for folder in states)]


def _of_worktree(root: str) -> list[str]:
    """The state that a linked worktree shares with the others of its repository, and the files that say which one that
    is. git and people may move a worktree, so they are not put back."""
    if os.path.isdir(os.path.join(root, ".git")):
        return []
    from fusewire.util.worktrees import pointers_of

    main = shared_root(root)
    return [*([] if main is None else [os.path.join(main, STATE_FOLDER)]), *pointers_of(root)]


def _inside(folder: str) -> tuple[str, ...]:
    """The folder, if it is one below the project: the project itself is watched whatever it is called."""
    return (folder,) if os.path.normpath(folder) not in (".", "..", "/") and ".." not in folder.split("/") else ()


def _interpreter() -> tuple[str, ...]:
    """The Python that runs the hook, if it is an environment's own: without it, every call passes."""
    import sys

    python = sys.executable or ""
    return (python,) if os.path.isfile(os.path.join(os.path.dirname(python), "..", "pyvenv.cfg")) else ()


def _above(root: str) -> list[str]:
    """What would move the project's root up to a folder above it, with other rules and no state. In a replay the
    folders may not be there."""
    found = []
    folder = os.path.dirname(os.path.realpath(root))
    while folder != os.path.dirname(folder) and os.path.isdir(folder):
        found += [place for name in (".git", CONSTRAINTS_FOLDER) if not os.path.lexists(place := f"{folder}/{name}")]
        folder = os.path.dirname(folder)
    return found


def below(root: str, start: str) -> tuple[str, ...]:
    """What would move the project's root down to the folder that the agent was started in, or one on the way there."""
    found: list[str] = []
    top, folder = os.path.abspath(root), os.path.abspath(start)
    while folder != top and folder.startswith(top + os.sep):
        found += [place for name in (".git", CONSTRAINTS_FOLDER) if not os.path.lexists(place := f"{folder}/{name}")]
        folder = os.path.dirname(folder)
    # Without the repository around it, the folder itself would be the project; git itself may work in there.
    kept = f"{top}/.git/HEAD" if os.path.isdir(f"{top}/.git") else f"{top}/.git"
    return (*found, kept) if found else ()


def protected_of(
    root: str, rules: Rules | None = None, also: tuple[str, ...] = (), *, own_only: bool = False
) -> Protected:
    """The protected paths of a project, as its configuration and Fusewire's own needs say, and what is `also` given.

    `own_only`: what Fusewire needs, which no setting and no pause takes out.
    """
    rules = rules or load_rules(root)
    documents, configuration, ignored, roots, grants = rules.guard if not own_only else ((), (), (), (".",), ())
    unwatched = [STATE_FOLDER, "docs/constraints", PHASE_FILE, ".git/refs/fusewire", ".git/packed-refs"]
    settings, runs = _in_homes()
    unwatched += [os.path.expanduser(folder) for folder in runs]
    folders = [*_folders_of_ours(), *_of_worktree(root)]
    unwatched += [os.path.expanduser(folder) for folder in folders]
    own = [*OWN, *settings, *runs, user_config_path(), *folders, *_above(root), *also]
    if rules.tool:  # incidents are logged and old telemetry is packed beside the agent's work
        own.append(rules.tool["incidents"])
        unwatched += [rules.tool["incidents"], *_inside(rules.tool["memory_limits.folder"])]
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    inside = package.startswith(os.path.realpath(root) + os.sep)
    if not inside or "-packages" + os.sep in package:  # a developer of Fusewire may change the source, not what runs
        python = _interpreter()
        own += [package + "/", *python]
        unwatched += [package, *python, *map(os.path.realpath, python)]
    entries = [(pattern, CONFIGURATION) for pattern in configuration] + [(pattern, DOCUMENT) for pattern in documents]
    return Protected(root, tuple(entries), ignored, roots, grants, tuple(unwatched), tuple(own))

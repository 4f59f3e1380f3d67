"""Tell which of the three rings guard an agent's shell commands: the kernel, the reader, the snapshot."""

from __future__ import annotations

import os
from collections.abc import Iterator

from fusewire.agents.claude.shell_wrapper import registered_wrapper, wrapper_text
from fusewire.agents.install.client import Client, Registration
from fusewire.agents.install.files import settings_or_none
from fusewire.guard.sandbox.active import ALWAYS, PREFIX


def wrapper_of(client: Client, root: str) -> str:
    """The shell wrapper of ours that is in force; empty if there is none."""
    if not client.wraps_shell:
        return ""
    for scope in ("local", "project", "user"):  # the first that names any
        settings = settings_or_none(client.places(root)[scope].path)
        env = settings.get("env") if isinstance(settings, dict) else None
        if isinstance(env, dict) and PREFIX in env:
            return registered_wrapper(settings)
    return ""


def rings(client: Client, root: str, registered: list[Registration], sandboxes: bool) -> list[str]:
    """The rings that are on for what the agent starts by itself, as people read them."""
    wrapper = wrapper_of(client, root) if sandboxes else ""
    kernel = ["kernel" if wrapper.endswith(ALWAYS) else "kernel (unattended)"] if wrapper else []
    return [*kernel, "reader", "snapshot"] if registered else []


def broken_wrapper(client: Client, root: str, line: list[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the wrapper, and what to do: without it the agent has no shell."""
    settings = settings_or_none(client.places(root)["user"].path) if client.wraps_shell else None
    named = registered_wrapper(settings)
    if not named:
        return
    mend = client.install_line("user") + (" --sandbox" if named.endswith(ALWAYS) else "")
    try:
        with open(named) as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not os.access(named, os.X_OK) or not text:
        yield f"{named}, through which {client.title} runs every shell command, is not there: it has no shell", mend
    elif text != wrapper_text(line, always=named.endswith(ALWAYS)):
        yield f"{named} was written by another installation of Fusewire", mend
    elif not wrapper_of(client, root):
        yield f"{PREFIX} in the project's settings stands before {named}: nothing is sandboxed here", f"move {PREFIX}"

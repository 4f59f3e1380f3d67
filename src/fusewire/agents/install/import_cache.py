"""Fills the hook's start-up cache, and says who can where this user may not.

Every hook executes the code in that cache, so it lies in the package and belongs to the package's owner. In a user's
own cache folder the user's agents could write what their guard runs.
"""

from __future__ import annotations

import compileall
import os
import sys

import fusewire
from fusewire.agents.install.canary import exercise
from fusewire.agents.registry import client_named
from fusewire.util.quoting import quoted

_PACKAGE = os.path.dirname(os.path.abspath(fusewire.__file__))


def fill_cache(line: list[str]) -> str:
    """Compile the package and put what hooks import into one file; returns what is wrong, or nothing.

    `line` is the hook's command line, without the agent's name.
    """
    if os.access(_PACKAGE, os.W_OK):
        compileall.compile_dir(_PACKAGE, quiet=2)
        client = client_named("claude")
        exercise(client, client.gate_handler([*line, client.name]))
    return lacks_cache(line)


def lacks_cache(line: list[str]) -> str:
    """What to do about hooks that start without their cache and may not write it; empty if all is well."""
    file = os.path.join(_PACKAGE, "__pycache__", f"hook.{sys.implementation.cache_tag}.bin")
    try:
        is_current = os.stat(file).st_mtime >= os.stat(os.path.join(_PACKAGE, "__init__.py")).st_mtime
    except OSError:
        is_current = False
    if is_current or os.access(_PACKAGE, os.W_OK):
        return ""
    command = f"cd / && sudo {quoted(line[0])} -m fusewire doctor --canary"
    return f"hooks start more slowly than they could, and {_PACKAGE} is not yours to write; once: {command}"

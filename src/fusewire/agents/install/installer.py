"""Install and uninstall the hook of one agent: what would change, the change itself, and what makes hooks quick."""

from __future__ import annotations

import compileall
import difflib
import os
import re
import sys
from dataclasses import dataclass, replace

import fusewire
from fusewire.agents.claude.shell_wrapper import wrapper_files, wrapper_text
from fusewire.agents.install import merge as merging
from fusewire.agents.install.canary import exercise, fly
from fusewire.agents.install.client import Client, SettingsPlace
from fusewire.agents.install.files import SettingsFile
from fusewire.agents.install.merge import InstallOptions
from fusewire.agents.registry import client_named
from fusewire.guard.sandbox.active import ALWAYS
from fusewire.util.errors import FusewireError
from fusewire.util.quoting import quoted

_PACKAGE = os.path.dirname(os.path.abspath(fusewire.__file__))

#: Tokens, ours and those of others: what is shown on a terminal may be kept by it.
_SECRET = re.compile(r"(?<=Bearer )[\w.~+/=-]+")


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A settings file before and after; None where there is none."""

    path: str
    before: str | None
    after: str | None
    backup: str | None = None

    @property
    def changes(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """What changes, as people read it, without the secrets in it."""
        lines = difflib.unified_diff(
            _lines(self.before),
            _lines(self.after),
            self.path if self.before is not None else "/dev/null",
            self.path if self.after is not None else "/dev/null",
        )
        text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
        return _SECRET.sub("...", text)


def install(wanted: InstallOptions, place: SettingsPlace, *, dry_run: bool = False) -> SettingsChange:
    """Put our entries in; those of an earlier installation are replaced."""
    file = SettingsFile(place.path, place.folders)
    if dry_run:
        return _installing(file, wanted)[0]
    wrapper = wanted.wrapper
    with file.locked():
        change, clean = _installing(file, wanted)
        is_new = bool(wrapper) and not os.path.lexists(wrapper)
        if wrapper:  # before it is named: the agent would have no shell without it
            file.put_beside(wrapper, wrapper_text(wanted.line, always=wrapper.endswith(ALWAYS)))
        try:
            if change.changes:
                assert change.after is not None
                file.write(change.after, clean, private=wanted.http is not None)
        except BaseException:
            if is_new:
                os.unlink(wrapper)
            raise
    return change


def _installing(file: SettingsFile, wanted: InstallOptions) -> tuple[SettingsChange, str | None]:
    """The change, and the text without us."""
    text, client = file.read(), wanted.client
    merging.refuse_unread(text, file.path, client)
    merging.refuse_switched_off(text, file.path, client)
    clean = None
    if text is not None:
        if merging.has_our_status_line(text, file.path):
            wanted = replace(wanted, status=True)
        if merging.is_current(text, file.path, wanted):
            return SettingsChange(file.path, text, text), None
        clean = merging.remove_entries(text, file.before(), file.path, client)
    after = merging.add_entries(clean, file.path, wanted)
    return SettingsChange(file.path, text, after, None if clean is None else file.backup), clean


def uninstall(client: Client, place: SettingsPlace, *, dry_run: bool = False) -> SettingsChange:
    """Take our entries out, and what was made only for them."""
    file = SettingsFile(place.path, place.folders)
    text = file.read()
    if text is None or dry_run:
        return _uninstalling(file, client, text)
    with file.locked():
        change = _uninstalling(file, client, file.read())
        if change.changes:
            file.restore(change.after, wrapper_files(file.target))
    return change


def _uninstalling(file: SettingsFile, client: Client, text: str | None) -> SettingsChange:
    after = None if text is None else merging.remove_entries(text, file.before(), file.path, client)
    return SettingsChange(file.path, text, after)


def _lines(text: str | None) -> list[str]:
    """With their ends; only a newline ends a line, as in every editor's difference."""
    if not text:
        return []
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def prove(client: Client, line: list[str]) -> None:
    """A hook that does not work is not registered. This also compiles it, so that its first call is as quick as any."""
    compileall.compile_dir(os.path.dirname(line[3]), quiet=2)
    canary = fly(client, client.gate_handler(line))
    if canary.problem:
        raise FusewireError(f"{canary.problem}; nothing was written")


def fill_cache(line: list[str]) -> str:
    """Compile the package and put what hooks import into one file; returns what is wrong, or nothing.

    Every hook executes the code in that file, so it lies in the package and belongs to the package's owner: in a user's
    own cache folder the user's agents could write what their guard runs.
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

"""Programs that print paths and files, where another command may make something of that."""

from __future__ import annotations

import os

from fusewire.guard.effects import READ
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall


def run_pwd(call: ProgramCall) -> None:
    physical = "-P" in call.args or call.words[0] != "pwd"
    call.print(f"{call.disk.real(call.world.cwd) if physical else call.world.cwd}\n")


def run_realpath(call: ProgramCall) -> None:
    argv = Argv(call.args)
    for name in argv.operands:
        path = call.path(name)
        if call.name == "realpath" or argv.has("f", "e", "m", "canonicalize"):
            call.print(f"{call.disk.real(path)}\n")
        elif os.path.islink(path):
            call.print(f"{os.readlink(path)}\n")


def run_which(call: ProgramCall) -> None:
    for name in Argv(call.args).operands:
        call.print(f"/usr/bin/{name.rsplit('/', 1)[-1]}\n")


def run_cat(call: ProgramCall) -> None:
    names = Argv(call.args).operands
    for name in names:
        call.effect(READ, name)
    if any(name != "-" and call.effects.holds("-e", call.path(name)) is False for name in names):
        call.world.status = False
    if call.walk.is_heard:
        texts = [call.text_of(name) for name in names or ["-"]]
        call.print("".join(UNKNOWN if text is None else text for text in texts))
    else:
        call.print(UNKNOWN)


def run_ls(call: ProgramCall) -> None:
    """One name a line, as a pipe gets them; columns, and any other order than that of the names, are unknown."""
    argv = Argv(call.args, "IwT", "ignore= width= sort=")
    for name in argv.operands:
        call.effect(READ, name)
    if any(call.effects.holds("-e", call.path(name)) is False for name in argv.operands):
        call.world.status = False
    if not call.walk.is_heard or argv.has(*"lgosiZtScuRUfX", "sort", "recursive"):
        call.print(UNKNOWN)
        return
    names = []
    folders = []
    for name in argv.operands or ["."]:
        if call.disk.is_folder(call.path(name)) and not argv.has("d", "directory"):
            folders.append(name)
        elif UNKNOWN in name or call.disk.exists(call.path(name)):
            names.append(name)
    hidden = argv.has("a", "A", "all", "almost-all")
    for folder in folders:
        names += [name for name in call.disk.listing(call.path(folder)) if hidden or name[:1] != "."]
    mark = "/" if argv.has("p", "F", "classify") else ""
    call.print("".join(f"{name}{mark if call.disk.is_folder(call.path(name)) else ''}\n" for name in names))


def run_busybox(call: ProgramCall) -> None:
    call.run(call.args)

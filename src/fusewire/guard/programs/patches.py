"""patch: the files that a patch is about."""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import TAINT, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import ProgramCall

_LONGS = "strip= directory= input= output= reject-file= suffix= prefix= fuzz= ifdef="


def run_patch(call: ProgramCall) -> None:
    argv = Argv(call.args, "pdiorDFgVYzB", _LONGS)
    if argv.has("dry-run", "help", "version", "v"):
        return
    folder = argv.value("d", "directory")
    inside = f"{folder.rstrip('/')}/" if folder else ""
    output = argv.value("o", "output")
    if output is not None:
        call.write(inside + output if output != "-" else "")
        return
    given = argv.value("i", "input") or "".join(argv.operands[1:2]) or "-"
    text = call.text_of(given if given == "-" else inside + given)
    reverse = argv.has("R", "reverse")
    if argv.operands:
        changes = [(argv.operands[0], "\n+++ /dev/null" in (text or "") and not reverse)]
    elif text is None or UNKNOWN in text:
        if text is not None and TAINT in text:
            call.write_into(folder or ".")
        return
    else:
        changes = list(_patched(call, inside, text, argv.value("p", "strip") or "", reverse))
    for name, removed in changes:
        if removed:
            call.delete(inside + name)
        else:
            call.effect(WRITE, inside + name)


def _patched(call: ProgramCall, inside: str, text: str, strip: str, reverse: bool) -> Iterator[tuple[str, bool]]:
    """(file, whether it goes) for every file that a patch is about."""
    lines = text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        old, new = "", ""
        if (line[:4], following[:4]) in (("--- ", "+++ "), ("*** ", "--- ")):
            old, new = _header_name(line), _header_name(following)
        elif line.startswith(("rename from ", "rename to ")):
            name = f"a/{line.split(' ', 2)[2].strip()}"
            old, new = (name, "/dev/null") if line.startswith("rename from ") else ("/dev/null", name)
        if reverse:
            old, new = new, old
        names = [name for name in (_stripped(name, strip) for name in (old, new) if name != "/dev/null") if name]
        there = [name for name in names if not call.is_missing(inside + name)]
        if names and (there or old == "/dev/null"):
            chosen = there if there and old != "/dev/null" else names
            yield min(chosen, key=lambda name: (name.count("/"), len(name))), new == "/dev/null"


def _header_name(line: str) -> str:
    name = line[4:].partition("\t")[0].rstrip("\r ")
    return name[1:].partition('"')[0] if name[:1] == '"' else name.partition(" 20")[0]


def _stripped(name: str, strip: str) -> str:
    """Without as many folders in front as `-p` says; without any if it says nothing."""
    if not strip.isdigit():
        return name.rsplit("/", 1)[-1]
    parts = name.split("/")
    return "/".join(parts[int(strip[:3]) :])

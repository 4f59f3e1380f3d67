"""patch: the files that a patch is about."""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.guard.programs.places import last, missing, under
from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import TAINT, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import Call, Program


_PATCH_LONGS = (
    "strip= directory= input= reverse dry-run output= reject-file= backup suffix= prefix= basename-prefix= fuzz= ifdef="
    " force batch forward silent quiet remove-empty-files posix verbose version help unified context normal ed"
    " version-control= read-only= get= quoting-style= reject-format= merge no-backup-if-mismatch ignore-whitespace"
)


def _patch(call: Call) -> None:
    found = told_apart(call.args, "pdiorDFgVYzB", _PATCH_LONGS)
    values = dict(found)
    flags = values.keys()
    names = [value for name, value in found if not name]
    if flags & {"dry-run", "help", "version", "v"}:
        return
    folder = values.get("d", values.get("directory", ""))
    output = values.get("o", values.get("output"))
    if output is not None:
        call.write(under(folder, output) if output != "-" else "")
        return
    given = values.get("i", values.get("input")) or (names[1] if len(names) > 1 else "-")
    text = call.world.stdin if given == "-" else call.walk.read_file(call.path(under(folder, given)))
    if given != "-" and text is None and missing(call, under(folder, given)):
        return
    if names:
        changes = [(names[0], text is not None and "\n+++ /dev/null" in text and not flags & {"R", "reverse"})]
    elif text is None or UNKNOWN in text:
        changes = [(UNKNOWN + (TAINT if text is not None and TAINT in text else ""), False)]
    else:
        strip = values.get("p", values.get("strip", ""))
        changes = list(_patched(call, folder, text, strip, bool(flags & {"R", "reverse"})))
    for name, removed in changes:
        target = under(folder or ("." if name[:1] == UNKNOWN else ""), name)
        if removed:
            call.delete(target)
        else:
            call.effect(WRITE, target)
            if flags & {"b", "backup"}:
                call.write(target + values.get("z", values.get("suffix", ".orig")))


def _patched(call: Call, folder: str, text: str, strip: str, reverse: bool) -> Iterator[tuple[str, bool]]:
    """(file, whether it goes) for every file that a patch is about."""
    for old, new, index in _headers(text):
        if reverse:
            old, new = new, old
        names = [_stripped(name, strip) for name in (old, new, index) if name and name != "/dev/null"]
        names = [name for name in names if name]
        there = [name for name in names if not missing(call, under(folder, name))]
        if not there and old != "/dev/null" and names:
            continue  # it asks which file is meant, and nobody answers
        candidates = there if there and old != "/dev/null" else names
        if candidates:
            best = min(candidates, key=lambda name: (name.count("/"), len(last(name)), len(name)))
            yield best, new == "/dev/null"


def _headers(text: str) -> Iterator[tuple[str, str, str]]:
    """(old name, new name, name of `Index:`) of each part."""
    index = ""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("Index: "):
            index = line[7:].strip()
        following = lines[at + 1] if at + 1 < len(lines) else ""
        for first, second in (("--- ", "+++ "), ("*** ", "--- ")):
            if line.startswith(first) and following.startswith(second):
                yield _header_name(line), _header_name(following), index
                index = ""
        if line.startswith(("rename from ", "rename to ", "copy to ")):
            name = f"a/{line.partition(' ')[2].partition(' ')[2].strip()}"
            if line.startswith("rename from "):
                yield name, "/dev/null", ""
            else:
                yield "/dev/null", name, ""
    if "\n--- " not in f"\n{text}" and index:
        yield index, index, index


def _header_name(line: str) -> str:
    name = line[4:].partition("\t")[0].rstrip("\r ")
    if name[:1] == '"':
        return name[1:].partition('"')[0]
    words = name.split(" ")
    at = next((at for at, word in enumerate(words) if at and word[:4].isdigit() and word[4:5] == "-"), len(words))
    return " ".join(words[:at]).rstrip()


def _stripped(name: str, strip: str) -> str:
    """Without as many folders in front as `-p` says; without any if it says nothing."""
    if not strip.isdigit():
        return last(name)
    count = int(strip[:3])
    while count and "/" in name:
        name = name.partition("/")[2].lstrip("/")
        count -= 1
    return "" if count else name


PROGRAMS: dict[str, Program] = {"patch": _patch}

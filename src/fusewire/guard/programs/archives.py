"""Programs that pack and unpack: zip, those of one file at a time, cpio, ar, 7z."""

from __future__ import annotations

import os

from fusewire.globs import matches
from fusewire.guard.effects import WRITE
from fusewire.guard.programs.places import MOST, last, missing, put, under
from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import UNKNOWN, cleaned

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterator

    from fusewire.guard.effects import Call, Program
    from fusewire.guard.programs.places import Member


# -- zip ------------------------------------------------------------------------------------------------------


def _unzip(call: Call) -> None:
    words, excluded = _without_list(call.args, ("-x",))
    found = told_apart(words, "dP")
    flags = {name for name, _ in found}
    operands = [value for name, value in found if not name]
    if flags & set("ltpzZv") or not operands:
        call.print(UNKNOWN)
        return
    folder = dict(found).get("d", "")
    members = _zip_members(call, operands[0])
    if members is None:
        if not missing(call, operands[0]) or "*" in operands[0]:
            call.effect(WRITE, under(folder or ".", UNKNOWN), follows=False)
        return
    for name, is_folder, link in members:
        if not _is_zip_wanted(name, operands[1:], excluded):
            continue
        target = under(folder, last(name) if "j" in flags else name.lstrip("/"))
        there = call.disk.exists(call.path(target))
        if (there and "n" in flags) or (not there and "f" in flags) or ("j" in flags and is_folder):
            continue
        put(call, target, folder=is_folder, link=link)


def _is_zip_wanted(name: str, wanted: list[str], excluded: list[str]) -> bool:
    if any(matches(name, one) for one in excluded):
        return False
    return not wanted or any(matches(name, one) for one in wanted)


def _without_list(words: list[str], names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The words without `-x a b c`, and its values."""
    kept: list[str] = []
    listed: list[str] = []
    inside = False
    for word in words:
        if inside and word != "@" and word[:1] != "-":
            listed.append(word)
            continue
        inside = word in names
        if not inside and word != "@":
            kept.append(word)
    return kept, listed


def _zip_members(call: Call, archive: str) -> list[Member] | None:
    path = call.path(archive)
    if UNKNOWN in path or path in call.walk.files:
        return None
    import zipfile

    for name in (path, f"{path}.zip"):
        try:
            with zipfile.ZipFile(call.disk.real(name)) as file:
                members = file.infolist()
                if len(members) > MOST:
                    return None
                return [(cleaned(one.filename), one.is_dir(), _zip_link(file, one)) for one in members]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, NotImplementedError):
            return None
    return None


def _zip_link(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    if member.external_attr >> 28 != 0o12 or member.file_size > 4096:
        return ""
    return cleaned(file.read(member).decode("utf-8", "surrogateescape"))


def _zip(call: Call) -> None:
    words, _ = _without_list(call.args, ("-x", "-i", "--exclude", "--include"))
    if "-TT" in words[:-1]:  # the program that tests what was made
        at = words.index("-TT")
        call.script(words[at + 1])
        words = words[:at] + words[at + 2 :]
    found = told_apart(
        words, "bnOPtsZ", "move out= output-file= temp-path= unzip-command= delete recurse-paths password= test"
    )
    values = dict(found)
    operands = [value for name, value in found if not name]
    if values.keys() & {"h", "help", "version", "L"} or not operands:
        return
    if "unzip-command" in values:
        call.script(values["unzip-command"])
    archive = values.get("O") or values.get("out") or values.get("output-file") or operands[0]
    if archive == "-":
        call.print(UNKNOWN)
    else:
        archive = archive if "." in last(archive) else f"{archive}.zip"
        call.write(archive)
        call.walk.files[call.path(archive)] = UNKNOWN
    if ("m" in values or "move" in values) and "d" not in values:
        names = operands[1:]
        if "@" in call.args or "-@" in call.args:
            names = names + (UNKNOWN if call.world.stdin is None else call.world.stdin).split("\n")
        for name in names:
            call.delete(name, recursive="r" in values or "recurse-paths" in values)


def _zipsplit(call: Call) -> None:
    values = dict(told_apart(call.args, "bnr"))
    if not values.keys() & {"t", "h"}:
        call.write(under(values.get("b") or ".", f"{UNKNOWN}.zip"))


# -- one file at a time -----------------------------------------------------------------------------------------

#: program -> (ending, other endings that it knows, whether it unpacks)
_PACKERS = {
    "gzip": (".gz", (".tgz", ".z", ".Z"), False),
    "gunzip": (".gz", (".tgz", ".z", ".Z"), True),
    "pigz": (".gz", (".tgz", ".z"), False),
    "bzip2": (".bz2", (".bz", ".tbz", ".tbz2"), False),
    "bunzip2": (".bz2", (".bz", ".tbz", ".tbz2"), True),
    "xz": (".xz", (".lzma", ".txz", ".tlz"), False),
    "unxz": (".xz", (".lzma", ".txz", ".tlz"), True),
    "lzma": (".lzma", (".xz",), False),
    "unlzma": (".lzma", (".xz",), True),
    "zstd": (".zst", (".tzst",), False),
    "unzstd": (".zst", (".tzst",), True),
    "lz4": (".lz4", (), False),
}
_PACKER_LONGS = (
    "stdout to-stdout keep decompress uncompress test list force recursive suffix= rm output-dir-flat= files= threads="
    " memlimit= quiet verbose fast best no-name name ultra long rsyncable check= format= adapt single-thread"
)


def _pack(call: Call) -> None:
    ending, others, unpacks = _PACKERS[call.name]
    zstd = ending in (".zst", ".lz4")
    found = told_apart(call.args, "SoDM" if zstd else "SM", _PACKER_LONGS, optional="T")
    values = dict(found)
    flags = values.keys()
    names = [value for name, value in found if not name and value != "-"]
    unpacks = unpacks or bool(flags & {"d", "decompress", "uncompress"})
    if flags & {"c", "stdout", "to-stdout", "t", "test", "l", "list", "help", "h", "version", "V"} or not names:
        call.print(UNKNOWN)
        return
    keeps = bool(flags & {"k", "keep"}) or (zstd and "rm" not in flags)
    forced = bool(flags & {"f", "force"})
    ending = values.get("S") or values.get("suffix") or ending
    for name in _packed_files(call, names, bool(flags & {"r", "recursive"})):
        target = _unpacked_name(name, (ending, *others)) if unpacks else f"{name}{ending}"
        if not target or missing(call, name) or (not unpacks and name.endswith((ending, *others)) and not zstd):
            continue
        if not forced and not zstd and (call.disk.exists(call.path(target)) or os.path.islink(call.path(name))):
            continue  # refused
        call.effect(WRITE, values.get("o", target), follows=False)
        if not keeps:
            call.delete(name)


def _packed_files(call: Call, names: list[str], recursive: bool) -> Iterator[str]:
    for name in names:
        if not call.disk.is_folder(call.path(name)):
            yield name
        elif recursive:
            yield from call.disk.tree(call.path(name))


def _unpacked_name(name: str, endings: tuple[str, ...]) -> str:
    if UNKNOWN in name:
        return UNKNOWN
    for ending in endings:
        if name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending) + (".tar" if ending[1] == "t" else "")
    return ""


# -- cpio, ar, 7z -----------------------------------------------------------------------------------------------


def _cpio(call: Call) -> None:
    longs = (
        "extract create pass-through list file= directory= to-stdout null make-directories unconditional pattern-file="
    )
    found = told_apart(call.args, "FIOCEHMRD", longs)
    values = dict(found)
    flags = values.keys()
    folder = values.get("D", values.get("directory", ""))
    operands = [value for name, value in found if not name]
    if flags & {"o", "create"}:
        target = values.get("O", values.get("F", values.get("file", "")))
        call.write(target)
        if not target:
            call.print(UNKNOWN)
    elif flags & {"p", "pass-through"}:
        text = UNKNOWN if call.world.stdin is None else call.world.stdin
        for name in text.split("\0" if flags & {"0", "null"} else "\n"):
            if name and operands and not call.disk.is_folder(call.path(name)):
                call.effect(WRITE, under(operands[0], name.lstrip("/").removeprefix("./")), follows=False)
    elif flags & {"i", "extract"} and not flags & {"t", "list", "to-stdout"}:
        call.effect(WRITE, under(folder or ".", UNKNOWN), follows=False)


def _ar(call: Call) -> None:
    words = [word for word in call.args if not word.startswith("--plugin")]
    folder = ""
    if "--output" in words[:-1]:
        at = words.index("--output")
        folder, words = words[at + 1], words[:at] + words[at + 2 :]
    if len(words) < 2:
        return
    keys = words[0].lstrip("-")
    if "x" in keys:
        for name in words[2:] or [UNKNOWN]:
            call.write(under(folder or ".", name))
    elif any(key in keys for key in "dmqrs"):
        call.write(words[1])


def _7z(call: Call) -> None:
    operands = [word for word in call.args if word[:1] != "-"]
    switches = [word for word in call.args if word[:1] == "-"]
    if len(operands) < 2:
        return
    command, archive = operands[:2]
    if command in ("x", "e") and "-so" not in switches:
        folder = next((word[2:] for word in switches if word[:2] == "-o"), ".")
        if not missing(call, archive):
            call.write(under(folder, UNKNOWN))
    elif command in ("a", "u", "d", "rn"):
        call.write(archive if "." in last(archive) else f"{archive}.7z")
        for name in operands[2:] if "-sdel" in switches else []:
            call.delete(name, recursive=True)


PROGRAMS: dict[str, Program] = {
    "7z": _7z,
    "7za": _7z,
    "ar": _ar,
    "cpio": _cpio,
    "unzip": _unzip,
    "zip": _zip,
    "zipsplit": _zipsplit,
    **dict.fromkeys(_PACKERS, _pack),
}

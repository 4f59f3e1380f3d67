"""tar: what it unpacks, packs and runs."""

from __future__ import annotations

from fusewire.globs import matches
from fusewire.guard.effects import WRITE
from fusewire.guard.programs.places import MOST, last, missing, put, under
from fusewire.guard.programs.words import told_apart
from fusewire.paths import normal
from fusewire.shell.values import TAINT, UNKNOWN, cleaned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fusewire.guard.effects import Call, Program
    from fusewire.guard.programs.places import Member


#: Bytes of a packed archive that are unpacked to see what is in it.
_UNPACKED = 64 << 20

#: What an archive that the line itself makes begins with; its names follow.
_PACKED = f"{UNKNOWN}\ntar\n"

_TAR_LONGS = (
    "extract get create append update concatenate catenate delete list diff compare file= directory= strip-components="
    " strip-path= keep-old-files skip-old-files keep-newer-files to-stdout to-command= one-top-level transform= xform="
    " remove-files checkpoint checkpoint-action= use-compress-program= wildcards no-wildcards exclude= exclude-from="
    " files-from= listed-incremental= index-file= info-script= new-volume-script= verbose gzip bzip2"
    " xz zstd auto-compress"
    " overwrite unlink-first recursive-unlink absolute-names owner= group= mode= mtime= format= same-permissions"
    " preserve-permissions no-same-owner null anchored warning= sort= blocking-factor= totals exclude-vcs numeric-owner"
    " newer= after-date= starting-file= suffix= backup label= volno-file= rsh-command= rmt-command= tape-length= touch"
)
_TAR_VALUED = "fCTXbgHIKLNVF"


def _tar_words(words: list[str]) -> list[str]:
    """`tar xzf a.tgz` as `tar -x -z -f a.tgz`."""
    if not words or words[0][:1] == "-":
        return words
    rest = words[1:]
    result: list[str] = []
    for letter in words[0]:
        result.append(f"-{letter}")
        if letter in _TAR_VALUED:
            result += rest[:1]
            rest = rest[1:]
    return result + rest


class _Tar:
    """One `tar`: what it does, with which archive, and its operands with the folder that each is in."""

    def __init__(self, call: Call) -> None:
        valued = _TAR_VALUED + ("s" if call.name == "bsdtar" else "")
        known = call.world.variables.get("TAR_OPTIONS", "")
        words = [*(known.split() if isinstance(known, str) else ()), *_tar_words(call.args)]
        found = told_apart(words, valued, _TAR_LONGS)
        self.call = call
        self.flags = {name for name, _ in found}
        self.values = dict(found)
        self.scripts = [value for name, value in found if name in ("to-command", "I", "use-compress-program", "F")]
        self.excluded = [value for name, value in found if name == "exclude"]
        self.transforms = [value for name, value in found if name in ("transform", "xform", "s") and value]
        self.folder = ""
        self.operands: list[tuple[str, str]] = []
        for name, value in found:
            if name in ("C", "directory"):
                self.folder = under(self.folder, value)
            elif name == "":
                self.operands.append((self.folder, value))
            elif name == "checkpoint-action" and value.startswith("exec="):
                self.scripts.append(value[5:])

    def packed(self) -> list[tuple[str, str]]:
        """(folder, name) of everything that goes into an archive."""
        lists = [value for name, value in self.values.items() if name in ("T", "files-from")]
        listed: list[tuple[str, str]] = []
        for name in lists:
            call = self.call
            text = call.world.stdin if name == "-" else call.walk.read_file(call.path(name))
            lines = (UNKNOWN if text is None else text).replace("\0", "\n").split("\n")
            listed += [(self.folder, line) for line in lines if line]
        return [*self.operands, *listed]

    def transformed(self, name: str) -> str:
        """A name after `--transform`: an expression as of sed."""
        for text in self.transforms:
            if len(text) < 4 or text[0] != "s" or text.count(text[1]) != 3 or "\\" in text or UNKNOWN in name:
                return UNKNOWN
            _, old, new, flags = text.split(text[1])
            import re

            try:
                name = re.sub(old, new.replace("&", "\\g<0>"), name, count=0 if "g" in flags else 1)
            except re.error:
                return UNKNOWN
        return name

    def has(self, *names: str) -> bool:
        return not self.flags.isdisjoint(names)

    @property
    def archive(self) -> str:
        name = self.values.get("f", self.values.get("file", "-"))
        return "" if name == "-" else name


def _tar(call: Call) -> None:
    tar = _Tar(call)
    if tar.has("help", "version"):
        return
    for script in tar.scripts:
        call.script(script)
    for name in ("g", "listed-incremental", "index-file"):
        if tar.values.get(name):
            call.write(tar.values[name])
    if tar.has("x", "extract", "get"):
        _tar_extract(tar)
    elif tar.has("c", "r", "u", "A", "create", "append", "update", "concatenate", "catenate", "delete"):
        _tar_create(tar)
    elif tar.has("t", "list"):
        members = None if tar.has("v", "verbose") else _tar_members(call, tar.archive)
        call.print(UNKNOWN if members is None else "".join(f"{name}\n" for name, _, _ in members))


def _tar_create(tar: _Tar) -> None:
    call = tar.call
    packed = tar.packed()
    contents = _PACKED + "\n".join(tar.transformed(name) for name in _names_below(call, packed))
    if tar.archive:
        call.write(tar.archive)
        alone = tar.has("c", "create")
        call.walk.files[normal(call.path(tar.archive))] = contents if alone else UNKNOWN
    else:
        call.print(contents)
    if tar.has("remove-files"):
        for folder, name in packed:
            call.delete(under(folder, name), recursive=True)


def _names_below(call: Call, packed: list[tuple[str, str]]) -> Iterator[str]:
    """The names that an archive will have."""
    number = 0
    for folder, name in packed:
        path = call.path(under(folder, name)).rstrip("/")
        if not call.disk.is_folder(path):
            yield name
            continue
        for inner in call.disk.tree(path):
            number += 1
            yield f"{name.rstrip('/')}{inner[len(path) :]}" if number < MOST else UNKNOWN
            if number >= MOST:
                return


def _tar_extract(tar: _Tar) -> None:
    call = tar.call
    if tar.has("O", "to-stdout", "to-command"):
        call.print(UNKNOWN)
        return
    folder = tar.folder
    if tar.has("one-top-level"):
        folder = under(folder, tar.values["one-top-level"] or last(tar.archive).split(".")[0])
    members = _tar_members(call, tar.archive)
    if members is None:
        if not tar.archive or not missing(call, tar.archive):
            call.effect(WRITE, under(folder or ".", UNKNOWN), follows=False)
        return
    strips = tar.values.get("strip-components", tar.values.get("strip-path", "0"))
    keeps = tar.has("k", "keep-old-files", "skip-old-files")
    for name, is_folder, link in members:
        if not _is_wanted(name, [name for _, name in tar.operands], tar.excluded):
            continue
        parts = [part for part in name.split("/") if part not in ("", ".")]
        parts = tar.transformed("/".join(parts[int(strips) if strips.isdigit() else 0 :])).split("/")
        parts = [part for part in parts if part]
        target = under(folder, "/".join(parts))
        if name[:1] == "/" and tar.has("P", "absolute-names"):
            target = name
        if not parts or (keeps and call.disk.exists(call.path(target))):
            continue
        if ".." not in parts or tar.has("P", "absolute-names"):
            put(call, target, folder=is_folder, link=link)


def _is_wanted(name: str, wanted: list[str], excluded: list[str]) -> bool:
    """Whether a member is among those that were asked for: itself, something above it, or a pattern of either."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    if any(matches(path[at:], pattern) for path in above for at in _starts(path) for pattern in excluded):
        return False
    plain = ["/".join(part for part in one.split("/") if part not in ("", ".")) for one in wanted]
    return not wanted or any(path == one or matches(path, one) for path in above for one in plain)


def _starts(path: str) -> list[int]:
    return [0, *(at + 1 for at, char in enumerate(path) if char == "/")]


def _tar_members(call: Call, archive: str) -> list[Member] | None:
    """What is in an archive; None if that is not known."""
    path = normal(call.path(archive)) if archive else ""
    text = call.walk.files.get(path) if archive else (call.world.stdin or "").replace(TAINT, "")
    if text is not None and text.startswith(_PACKED) and UNKNOWN not in text[len(_PACKED) :]:
        return [(name, False, "") for name in text[len(_PACKED) :].split("\n") if name]
    if UNKNOWN in path or text is not None:
        return None
    import tarfile

    found: list[Member] = []
    try:
        with _unpacked(call.disk.real(path)) as file, tarfile.open(fileobj=file, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                found.append((cleaned(member.name), member.isdir(), cleaned(member.linkname) if member.issym() else ""))
                if len(found) > MOST:
                    return None
    except (OSError, ValueError, EOFError, tarfile.TarError):
        return None
    except Exception as error:  # each kind of packing has its own kind of error
        if type(error).__module__ not in ("zlib", "_lzma", "lzma"):
            raise
        return None
    return found


def _opener(head: bytes) -> Any:
    """Who reads a file that starts like this."""
    if head[:2] == b"\x1f\x8b":
        from gzip import GzipFile

        return GzipFile
    if head[:3] == b"BZh":
        from bz2 import BZ2File

        return BZ2File
    if head == b"\xfd7zX":
        from lzma import LZMAFile

        return LZMAFile
    from io import FileIO

    return FileIO


class _unpacked:
    """A packed file as `tarfile` reads it, up to a limit: a small file can hold more than anybody waits for."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            opener = _opener(file.read(4))
        self.file = opener(path)
        self.left = _UNPACKED

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise OSError("too much")
        data: bytes = self.file.read(size)
        return data

    def __enter__(self) -> _unpacked:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


PROGRAMS: dict[str, Program] = {"bsdtar": _tar, "tar": _tar}

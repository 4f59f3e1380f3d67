"""Pack and unpack: the names in an archive that is there are listed; of any other they are unknown."""

from __future__ import annotations

import os

from fusewire.guard.effects import WRITE
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN, cleaned
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

    #: name, and whether it is a folder
    Member = tuple[str, bool]

#: Members of an archive that are listed, and bytes that are unpacked to do so.
_MOST, _UNPACKED = 5000, 64 << 20

_TAR_VALUED = "fCTXbgHIKLNVF"
_TAR_LONGS = (
    "file= directory= strip-components= strip-path= to-command= transform= xform= checkpoint checkpoint-action="
    " use-compress-program= exclude= exclude-from= files-from= listed-incremental= index-file= owner= group="
    " mode= mtime= format="
)


def _under(folder: str, name: str) -> str:
    return name if name[:1] == "/" or folder in ("", ".") else f"{folder.rstrip('/')}/{name}"


def _last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]


def _put(call: ProgramCall, name: str, is_folder: bool) -> None:
    """A file that is put in place of whatever has its name; a folder that is there stays as it is."""
    if not is_folder:
        call.effect(WRITE, name, follows=False)
    elif not call.disk.exists(call.path(name.rstrip("/"))):
        call.effect(WRITE, name.rstrip("/"))


def _put_unknown(call: ProgramCall, archive: str, folder: str) -> None:
    """Files of unknown names; what the line itself downloads or packs may only not go into a protected folder."""
    fetched = archive != "-" and not os.path.lexists(call.path(archive))
    protected = call.effects.protected
    if not fetched or protected is None or protected.kind_of(call.disk.real(normal(call.path(folder or ".")))):
        call.write_into(folder)


# -- tar ----------------------------------------------------------------------------------------------------------


def _tar_words(words: list[str]) -> list[str]:
    """`tar xzf a.tgz` as `tar -x -z -f a.tgz`."""
    if not words or words[0][:1] == "-":
        return words
    rest, result = words[1:], []
    for letter in words[0]:
        result.append(f"-{letter}")
        if letter in _TAR_VALUED:
            result += rest[:1]
            rest = rest[1:]
    return result + rest


def run_tar(call: ProgramCall) -> None:
    argv = Argv(_tar_words(call.args), _TAR_VALUED, _TAR_LONGS)
    actions = [one[5:] for one in argv.values("checkpoint-action") if one.startswith("exec=")]
    for script in [*argv.values("to-command", "I", "use-compress-program"), *actions]:
        call.script(script)
    archive = argv.value("f", "file") or "-"
    folder = ""
    operands: list[tuple[str, str]] = []
    for name, value in argv.given:
        if name in ("C", "directory"):
            folder = _under(folder, value)
        elif not name:
            operands.append((folder, value))
    if argv.has("x", "extract", "get"):
        _extract(call, argv, archive, folder, [name for _, name in operands])
    elif argv.has("c", "r", "u", "A", "create", "append", "update", "concatenate", "delete"):
        if archive == "-":
            call.print(UNKNOWN)
        else:
            call.write(archive)
            call.walk.files[normal(call.path(archive))] = UNKNOWN
        for place, name in operands if argv.has("remove-files") else []:
            call.delete(_under(place, name), recursive=True)
    else:
        call.print(UNKNOWN)


def _extract(call: ProgramCall, argv: Argv, archive: str, folder: str, wanted: list[str]) -> None:
    if argv.has("O", "to-stdout", "to-command"):
        call.print(UNKNOWN)
        return
    if argv.has("one-top-level"):
        folder = _under(folder, argv.value("one-top-level") or _last(archive).split(".")[0])
    members = _tar_members(call, archive)
    keeps = argv.has("k", "keep-old-files", "skip-old-files")
    if members is None or argv.has("transform", "xform"):
        plain = [name for name in wanted if not any(mark in name for mark in "*?[")]
        if members is None and wanted and plain == wanted and not argv.has("strip-components", "transform"):
            members = [(name, False) for name in wanted]  # only what is named
        elif (archive == "-" or not call.is_missing(archive)) and not keeps:
            _put_unknown(call, archive, folder)
            return
    strips = argv.value("strip-components", "strip-path") or "0"
    for name, is_folder in members or ():
        parts = [part for part in name.split("/") if part not in ("", ".")]
        above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        plain = [one.removeprefix("./").rstrip("/") for one in wanted]
        left_out = any(matches(one, pattern) for one in (*above, *parts) for pattern in argv.values("exclude"))
        if left_out or (wanted and not any(matches(one, pattern) for one in above for pattern in plain)):
            continue
        parts = parts[int(strips) if strips.isdigit() else 0 :]
        target = _under(folder, "/".join(parts))
        if parts and ".." not in parts and not (keeps and call.disk.exists(call.path(target))):
            _put(call, target, is_folder)


def _tar_members(call: ProgramCall, archive: str) -> list[Member] | None:
    """What is in an archive; None if that is not known."""
    path = normal(call.path(archive))
    if archive == "-" or UNKNOWN in path or path in call.walk.files:
        return None
    import tarfile
    import zlib

    found: list[Member] = []
    try:
        with _Unpacked(call.disk.real(path)) as file, tarfile.open(fileobj=file, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                found.append((cleaned(member.name), member.isdir()))
                if len(found) > _MOST:
                    return None
    except (OSError, ValueError, EOFError, tarfile.TarError, zlib.error):
        return None
    except Exception as error:
        if type(error).__name__ != "LZMAError":  # its module is imported only where it is needed
            raise
        return None
    return found


class _Unpacked:
    """A packed file as `tarfile` reads it, up to a limit: a small file can hold more than is worth waiting for."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            head = file.read(4)
        if head[:2] == b"\x1f\x8b":
            from gzip import GzipFile as opener
        elif head[:3] == b"BZh":
            from bz2 import BZ2File as opener  # type: ignore[assignment]
        elif head == b"\xfd7zX":
            from lzma import LZMAFile as opener  # type: ignore[assignment]
        else:
            from io import FileIO as opener  # type: ignore[assignment]
        self.file = opener(path)
        self.left = _UNPACKED

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise OSError("too much")
        return self.file.read(size) or b""

    def __enter__(self) -> _Unpacked:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


# -- zip --------------------------------------------------------------------------------------------------


def _without_list(words: list[str], *names: str) -> tuple[list[str], list[str]]:
    """The words without `-x a b c`, and its values."""
    kept: list[str] = []
    listed: list[str] = []
    inside = False
    for word in words:
        if inside and word[:1] not in ("-", "@"):
            listed.append(word)
            continue
        inside = word in names
        kept += [word] if not inside and word != "@" else []
    return kept, listed


def run_unzip(call: ProgramCall) -> None:
    words, excluded = _without_list(call.args, "-x")
    argv = Argv(words, "dP")
    if argv.has(*"ltpzZv") or not argv.operands:
        call.print(UNKNOWN)
        return
    archive, *wanted = argv.operands
    folder = argv.value("d") or ""
    members = _zip_members(call, archive)
    if members is None:
        if not argv.has("n") and (not call.is_missing(archive) or "*" in archive):
            _put_unknown(call, archive, folder)
        return
    for name, is_folder in members:
        if any(matches(name, one) for one in excluded) or (wanted and not any(matches(name, one) for one in wanted)):
            continue
        target = _under(folder, _last(name) if argv.has("j") else name.lstrip("/"))
        there = call.disk.exists(call.path(target))
        if not (there and argv.has("n")) and (there or not argv.has("f")):
            _put(call, target, is_folder)


def _zip_members(call: ProgramCall, archive: str) -> list[Member] | None:
    path = call.path(archive)
    if UNKNOWN in path or normal(path) in call.walk.files:
        return None
    import zipfile

    for name in (path, f"{path}.zip"):
        try:
            with zipfile.ZipFile(call.disk.real(name)) as file:
                members = file.infolist()
                return [(cleaned(one.filename), one.is_dir()) for one in members] if len(members) <= _MOST else None
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, NotImplementedError):
            return None
    return None


def run_zip(call: ProgramCall) -> None:
    words, _ = _without_list(call.args, "-x", "-i", "--exclude", "--include")
    argv = Argv(words, "bnOPtsZ", "out= output-file= temp-path= unzip-command= password=")
    if argv.has("h", "help", "version", "L") or not argv.operands:
        return
    archive = argv.value("O", "out", "output-file") or argv.operands[0]
    if archive != "-":
        archive = archive if "." in _last(archive) else f"{archive}.zip"
        call.write(archive)
        call.walk.files[normal(call.path(archive))] = UNKNOWN
    call.print(UNKNOWN)
    if argv.has("m", "move") and not argv.has("d"):
        names = argv.operands[1:]
        if "-@" in call.args:
            names = [*names, *(call.world.stdin or UNKNOWN).split("\n")]
        for name in names:
            call.delete(name, recursive=argv.has("r", "recurse-paths"))


# -- one file at a time -----------------------------------------------------------------------------------------------

_ENDINGS = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst"}
_UNPACKING = {"gunzip": "gzip", "bunzip2": "bzip2", "unxz": "xz"}


def run_pack(call: ProgramCall) -> None:
    """`gzip a` puts `a.gz` in the place of `a`; `gzip -d a.gz` the other way round."""
    ending = _ENDINGS[_UNPACKING.get(call.name, call.name)]
    argv = Argv(call.args, "SoM" if call.name == "zstd" else "S", "suffix=", optional="T")
    if argv.has("c", "stdout", "to-stdout", "t", "test", "l", "list", "help", "h", "version", "V"):
        call.print(UNKNOWN)
        return
    unpacks = call.name in _UNPACKING or argv.has("d", "decompress", "uncompress")
    keeps = argv.has("k", "keep") or (call.name == "zstd" and not argv.has("rm"))
    for operand in argv.operands:
        inner = argv.has("r", "recursive") and call.disk.is_folder(call.path(operand))
        for name in call.disk.tree(call.path(operand)) if inner else [operand]:
            if call.is_missing(name) or name.endswith(ending) is not unpacks or call.disk.is_folder(call.path(name)):
                continue
            target = name.removesuffix(ending) if unpacks else f"{name}{ending}"
            if call.disk.exists(call.path(target)) and not argv.has("f", "force"):
                continue
            call.effect(WRITE, argv.value("o") or target, follows=False)
            if not keeps:
                call.delete(name)

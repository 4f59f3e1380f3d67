"""Programs that pack, unpack, copy over the network and patch."""

from __future__ import annotations

import os

from fusewire.globs import matches, path_matches
from fusewire.guard.effects import WRITE
from fusewire.guard.programs.search import told_apart
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN, cleaned

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterator
    from typing import Any

    from fusewire.guard.effects import Call, Program

    #: name, whether it is a folder, where it points to if it is a link
    Member = tuple[str, bool, str]

#: Members of an archive and files of a folder that are looked at one by one.
_MOST = 5000

#: Bytes of a packed archive that are unpacked to see what is in it.
_UNPACKED = 64 << 20


def _under(folder: str, name: str) -> str:
    if name[:1] == "/" or folder in ("", "."):
        return name
    return f"{folder.rstrip('/')}/{name}"


def _last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]


def _missing(call: Call, name: str) -> bool:
    """Whether a file is certainly not there."""
    path = call.path(name)
    return UNKNOWN not in path and call.walk.pristine and path not in call.walk.files and not call.disk.exists(path)


def _put(call: Call, name: str, *, folder: bool = False, link: str = "") -> None:
    """A file that is put in place of whatever has its name; a folder that is there stays as it is."""
    if folder:
        if not call.disk.exists(call.path(name.rstrip("/"))):
            call.effect(WRITE, name.rstrip("/"))
        return
    call.effect(WRITE, name, follows=False)
    if link:
        path = normal(call.path(name))
        call.disk.links[path] = normal(_under(path.rpartition("/")[0], link))


# -- tar ------------------------------------------------------------------------------------------------------

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
        found = told_apart(_tar_words(call.args), valued, _TAR_LONGS)
        self.call = call
        self.flags = {name for name, _ in found}
        self.values = dict(found)
        self.scripts = [value for name, value in found if name in ("to-command", "I", "use-compress-program", "F")]
        self.excluded = [value for name, value in found if name == "exclude"]
        self.folder = ""
        self.operands: list[tuple[str, str]] = []
        for name, value in found:
            if name in ("C", "directory"):
                self.folder = _under(self.folder, value)
            elif name == "":
                self.operands.append((self.folder, value))
            elif name == "checkpoint-action" and value.startswith("exec="):
                self.scripts.append(value[5:])

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
        members = None if tar.has("v", "verbose") or not tar.archive else _tar_members(call, tar.archive)
        call.print(UNKNOWN if members is None else "".join(f"{name}\n" for name, _, _ in members))


def _tar_create(tar: _Tar) -> None:
    call = tar.call
    if tar.archive:
        call.write(tar.archive)
        call.walk.files[call.path(tar.archive)] = UNKNOWN
    else:
        call.print(UNKNOWN)
    if tar.has("remove-files"):
        for folder, name in tar.operands:
            call.delete(_under(folder, name), recursive=True)


def _tar_extract(tar: _Tar) -> None:
    call = tar.call
    if tar.has("O", "to-stdout", "to-command"):
        call.print(UNKNOWN)
        return
    folder = tar.folder
    if tar.has("one-top-level"):
        folder = _under(folder, tar.values["one-top-level"] or _last(tar.archive).split(".")[0])
    members = _tar_members(call, tar.archive) if tar.archive else None
    if members is None or tar.has("transform", "xform", "s"):
        if members is not None or not tar.archive or not _missing(call, tar.archive):
            call.effect(WRITE, _under(folder or ".", UNKNOWN), follows=False)
        return
    strips = tar.values.get("strip-components", tar.values.get("strip-path", "0"))
    keeps = tar.has("k", "keep-old-files", "skip-old-files")
    for name, is_folder, link in members:
        if not _is_wanted(name, [name for _, name in tar.operands], tar.excluded):
            continue
        parts = [part for part in name.split("/") if part not in ("", ".")]
        parts = parts[int(strips) if strips.isdigit() else 0 :]
        target = _under(folder, "/".join(parts))
        if name[:1] == "/" and tar.has("P", "absolute-names"):
            target = name
        if not parts or (keeps and call.disk.exists(call.path(target))):
            continue
        if ".." not in parts or tar.has("P", "absolute-names"):
            _put(call, target, folder=is_folder, link=link)


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
    path = call.path(archive)
    if UNKNOWN in path or path in call.walk.files:
        return None
    import tarfile

    found: list[Member] = []
    try:
        with _unpacked(call.disk.real(path)) as file, tarfile.open(fileobj=file, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                found.append((cleaned(member.name), member.isdir(), cleaned(member.linkname) if member.issym() else ""))
                if len(found) > _MOST:
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
        if not _missing(call, operands[0]) or "*" in operands[0]:
            call.effect(WRITE, _under(folder or ".", UNKNOWN), follows=False)
        return
    for name, is_folder, link in members:
        if not _is_zip_wanted(name, operands[1:], excluded):
            continue
        target = _under(folder, _last(name) if "j" in flags else name.lstrip("/"))
        there = call.disk.exists(call.path(target))
        if (there and "n" in flags) or (not there and "f" in flags) or ("j" in flags and is_folder):
            continue
        _put(call, target, folder=is_folder, link=link)


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
                if len(members) > _MOST:
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
        archive = archive if "." in _last(archive) else f"{archive}.zip"
        call.write(archive)
        call.walk.files[call.path(archive)] = UNKNOWN
    if ("m" in values or "move" in values) and "d" not in values:
        names = operands[1:]
        if "@" in call.args or "-@" in call.args:
            names = names + (UNKNOWN if call.world.stdin is None else call.world.stdin).split("\n")
        for name in names:
            call.delete(name, recursive="r" in values or "recurse-paths" in values)


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
        if not target or _missing(call, name) or (not unpacks and name.endswith((ending, *others)) and not zstd):
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
                call.effect(WRITE, _under(operands[0], name.lstrip("/").removeprefix("./")), follows=False)
    elif flags & {"i", "extract"} and not flags & {"t", "list", "to-stdout"}:
        call.effect(WRITE, _under(folder or ".", UNKNOWN), follows=False)


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
            call.write(_under(folder or ".", name))
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
        if not _missing(call, archive):
            call.write(_under(folder, UNKNOWN))
    elif command in ("a", "u", "d", "rn"):
        call.write(archive if "." in _last(archive) else f"{archive}.7z")
        for name in operands[2:] if "-sdel" in switches else []:
            call.delete(name, recursive=True)


# -- rsync ------------------------------------------------------------------------------------------------------

_RSYNC_LONGS = (
    "archive recursive dry-run delete delete-before delete-during delete-delay delete-after delete-excluded existing"
    " ignore-existing remove-source-files update inplace checksum ignore-times size-only relative dirs links list-only"
    " exclude= include= exclude-from= include-from= filter= files-from= rsh= rsync-path= backup backup-dir= suffix="
    " log-file= log-file-format= write-batch= read-batch= temp-dir= partial-dir= compare-dest= copy-dest= link-dest="
    " max-size= min-size= block-size= bwlimit= timeout= contimeout= port= chmod= chown= usermap= groupmap= info= debug="
    " out-format= modify-window= max-delete= compress-level= compress-choice= checksum-choice= iconv= protocol="
    " address= sockopts= password-file= skip-compress= outbuf= stop-after= stop-at= remote-option= cvs-exclude"
    " ignore-errors force prune-empty-dirs verbose compress progress partial stats human-readable times perms owner"
    " group copy-links"
    " ignore-non-existing no-recursive whole-file append append-verify del"
)


class _Rsync:
    def __init__(self, call: Call) -> None:
        found = told_apart(call.args, "efBTM", _RSYNC_LONGS)
        self.call = call
        self.flags = {name for name, _ in found}
        self.values = dict(found)
        *self.sources, self.target = [value for name, value in found if not name] or [""]
        #: (whether it is taken along, pattern), the first that fits decides
        self.rules: list[tuple[bool, str]] = []
        for name, value in found:
            if name in ("exclude", "include"):
                self.rules.append((name == "include", value))
            elif name in ("f", "filter") and value[:2] in ("- ", "+ "):
                self.rules.append((value[0] == "+", value[2:]))
        if self.has("C", "cvs-exclude"):
            self.rules += [(False, pattern) for pattern in (".git/", ".svn/", "*~", "*.o", "*.bak")]

    def has(self, *names: str) -> bool:
        return not self.flags.isdisjoint(names)

    @property
    def deletes(self) -> bool:
        return any(name[:3] == "del" for name in self.flags)

    def excluded(self, name: str) -> bool:
        """Whether a path of the transfer is left out: by itself or by a folder above it."""
        parts = name.split("/")
        for end in range(1, len(parts) + 1):
            for taken, pattern in self.rules:
                if _rule_fits(parts[:end], pattern, end < len(parts)):
                    if not taken:
                        return True
                    break
        return False


def _rule_fits(parts: list[str], pattern: str, is_folder: bool) -> bool:
    if pattern.endswith("/") and not is_folder:
        return False
    pattern = pattern.removesuffix("/").removesuffix("/***")
    anchored, pattern = pattern[:1] == "/", pattern.lstrip("/")
    if "/" not in pattern and not anchored:
        return matches(parts[-1], pattern)
    if anchored or "**" in pattern:
        return (
            path_matches("/".join(parts), pattern)
            if "/" in pattern
            else parts == [pattern] or matches("/".join(parts), pattern)
        )
    return path_matches("/".join(parts[-pattern.count("/") - 1 :]), pattern)


def _rsync(call: Call) -> None:
    rsync = _Rsync(call)
    for name in ("log-file", "write-batch"):
        if rsync.values.get(name):
            call.write(rsync.values[name])
    if rsync.has("n", "dry-run", "list-only", "help", "version") or not rsync.sources:
        return
    remote = [source for source in rsync.sources if _is_remote(source)]
    if remote or _is_remote(rsync.target):
        if rsync.values.get("e") or rsync.values.get("rsh"):
            call.script(rsync.values.get("e") or rsync.values["rsh"])
        if _is_remote(rsync.target):
            _rsync_sources_removed(rsync)
            return
    if remote or any(UNKNOWN in call.path(source) for source in rsync.sources):
        call.effect(WRITE, _under(rsync.target, UNKNOWN), follows=False)
        if rsync.deletes:
            call.delete(_under(rsync.target, UNKNOWN), recursive=True)
        return
    copied = {name: path for source in rsync.sources for name, path in _rsync_files(rsync, source)}
    alone = len(copied) == 1 and len(rsync.sources) == 1 and not call.disk.is_folder(call.path(rsync.sources[0]))
    for name, path in copied.items():
        target = _under(rsync.target, name)
        if alone and not rsync.target.endswith("/") and not call.disk.is_folder(call.path(rsync.target)):
            target = rsync.target
        if _rsync_writes(rsync, path, call.path(target)):
            if rsync.values.get("backup-dir"):
                call.write(_under(_under(rsync.target, rsync.values["backup-dir"]), name))
            call.effect(WRITE, target, follows=False)
    if rsync.deletes:
        _rsync_deletes(rsync, set(copied))
    _rsync_sources_removed(rsync)


def _is_remote(name: str) -> bool:
    return ":" in name.partition("/")[0] or name.startswith("rsync://")


def _rsync_files(rsync: _Rsync, source: str) -> Iterator[tuple[str, str]]:
    """(name below the target, where it is) of every file that a source has."""
    call = rsync.call
    path = call.path(source)
    if not call.disk.is_folder(path):
        if call.disk.exists(path) or not _missing(call, source):
            yield (source.lstrip("/") if rsync.has("R", "relative") else _last(source)), path
        return
    if not rsync.has("r", "a", "recursive", "archive"):
        return
    inside = source.endswith("/") or _last(source) in ("", ".", "..")
    prefix = "" if inside else f"{_last(source)}/"
    if rsync.has("R", "relative"):
        prefix = f"{source.strip('/').removeprefix('./')}/"
    base = call.disk.real(path).rstrip("/")
    for number, inner in enumerate(call.disk.tree(base)):
        name = prefix + inner[len(base) + 1 :]
        if number < _MOST and not rsync.excluded(name):
            yield name, inner


def _rsync_writes(rsync: _Rsync, source: str, target: str) -> bool:
    """Whether a file would be copied: not if the other one is as large and as old."""
    try:
        old = os.stat(target)
    except (OSError, ValueError):
        return not rsync.has("existing", "ignore-non-existing") or not rsync.call.walk.pristine
    if rsync.has("ignore-existing"):
        return False
    if not rsync.call.walk.pristine or rsync.has("c", "checksum", "I", "ignore-times"):
        return True
    try:
        new = os.stat(source)
    except (OSError, ValueError):
        return True
    if rsync.has("u", "update") and old.st_mtime > new.st_mtime:
        return False
    return old.st_size != new.st_size or (int(old.st_mtime) != int(new.st_mtime) and not rsync.has("size-only"))


def _rsync_deletes(rsync: _Rsync, copied: set[str]) -> None:
    """What the target has and the sources have not; only folders that are copied are looked into."""
    call = rsync.call
    for source in rsync.sources:
        inside = source.endswith("/") or _last(source) in ("", ".", "..")
        folder = rsync.target if inside else _under(rsync.target, _last(source))
        if not call.disk.is_folder(call.path(source)):
            continue
        base = call.disk.real(call.path(folder)).rstrip("/")
        prefix = "" if inside else f"{_last(source)}/"
        for number, path in enumerate(call.disk.tree(base)):
            name = prefix + path[len(base) + 1 :]
            if number >= _MOST:
                call.delete(folder, recursive=True)
                break
            if name not in copied and (not rsync.excluded(name) or rsync.has("delete-excluded")):
                call.delete(_under(folder, path[len(base) + 1 :]))


def _rsync_sources_removed(rsync: _Rsync) -> None:
    if rsync.has("remove-source-files"):
        for source in rsync.sources:
            for _, path in _rsync_files(rsync, source):
                rsync.call.delete(path)


# -- patch ------------------------------------------------------------------------------------------------------

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
        call.write(_under(folder, output) if output != "-" else "")
        return
    given = values.get("i", values.get("input")) or (names[1] if len(names) > 1 else "-")
    text = call.world.stdin if given == "-" else call.walk.read_file(call.path(_under(folder, given)))
    if given != "-" and text is None and _missing(call, _under(folder, given)):
        return
    if names:
        changes = [(names[0], text is not None and "\n+++ /dev/null" in text and not flags & {"R", "reverse"})]
    elif text is None or UNKNOWN in text:
        changes = [(UNKNOWN, False)]
    else:
        strip = values.get("p", values.get("strip", ""))
        changes = list(_patched(call, folder, text, strip, bool(flags & {"R", "reverse"})))
    for name, removed in changes:
        target = _under(folder or ("." if name == UNKNOWN else ""), name)
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
        there = [name for name in names if not _missing(call, _under(folder, name))]
        if not there and old != "/dev/null" and names:
            continue  # it asks which file is meant, and nobody answers
        candidates = there if there and old != "/dev/null" else names
        if candidates:
            best = min(candidates, key=lambda name: (name.count("/"), len(_last(name)), len(name)))
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
        return _last(name)
    count = int(strip[:3])
    while count and "/" in name:
        name = name.partition("/")[2].lstrip("/")
        count -= 1
    return "" if count else name


# -- the network --------------------------------------------------------------------------------------------------

_CURL_LONGS = (
    "output= output-dir= dump-header= cookie-jar= trace= trace-ascii= stderr= etag-save= etag-compare= remote-name"
    " remote-name-all remote-header-name config= upload-file= write-out= hsts= alt-svc= libcurl= url= data= data-raw="
    " data-ascii= data-binary= data-urlencode= header= request= user= user-agent= max-time= connect-timeout= retry="
    " retry-delay= retry-max-time= cookie= form= form-string= proxy= proxy-user= cacert= capath= cert= cert-type= key="
    " key-type= pass= ciphers= referer= range= interface= resolve= connect-to= limit-rate= create-file-mode="
    " max-redirs="
    " max-filesize= json= variable= continue-at= time-cond= proto= proto-default= proto-redir= speed-limit= speed-time="
    " keepalive-time= local-port= mail-from= mail-rcpt= netrc-file= noproxy= oauth2-bearer= parallel-max= pinnedpubkey="
    " quote= rate= socks5= socks5-hostname= tls-max= unix-socket= url-query= expand-output= aws-sigv4="
    " dns-servers= doh-url="
    " location silent show-error fail fail-with-body insecure compressed create-dirs head get globoff verbose include"
    " no-progress-meter progress-bar http1.1 http2 ipv4 ipv6 next parallel netrc anyauth basic digest remote-time"
)


#: Its options that name a file to be written.
_CURL_FILES = ("D", "dump-header", "c", "cookie-jar", "trace", "trace-ascii", "stderr", "etag-save", "libcurl", "hsts")


def _curl(call: Call) -> None:
    found = told_apart(_with_configs(call), "AbcCdDeEFhHKmoPQrtTuUwxXyYz", _CURL_LONGS, optional="h")
    values = dict(found)
    if values.keys() & {"h", "help", "V", "version", "M", "manual"}:
        return
    for name, value in found:
        if name in (
            "D",
            "dump-header",
            "c",
            "cookie-jar",
            "trace",
            "trace-ascii",
            "stderr",
            "etag-save",
            "libcurl",
            "hsts",
        ):
            _downloaded(call, value)
        if name in ("w", "write-out") and "%output{" in value:
            _downloaded(call, value.partition("%output{")[2].partition("}")[0].removeprefix(">>"))
    urls = [value for name, value in found if name in ("", "url")]
    folder = values.get("output-dir", "")
    outputs: list[str] = []
    for name, value in found:
        if name in ("o", "output"):
            outputs.append(value if "#" not in value else value.partition("#")[0] + UNKNOWN)
        elif name in ("O", "remote-name"):
            outputs.append("")
    if values.keys() & {"T", "upload-file"}:
        for url in urls:
            call.write(_local(url))
        return
    everything = "remote-name-all" in values
    for at, url in enumerate(urls):
        if at < len(outputs) or everything:
            name = outputs[at] if at < len(outputs) else ""
            headers = values.keys() & {"J", "remote-header-name"}
            name = name or (UNKNOWN if headers or UNKNOWN in url else _last(url.partition("?")[0].partition("#")[0]))
            _downloaded(call, _under(folder, name) if name != "-" else name)
        else:
            text = call.walk.read_file(_local(url)) if _local(url) else None
            call.print(UNKNOWN if text is None else text)


def _downloaded(call: Call, name: str) -> None:
    if name not in ("-", "") and not name.startswith("/dev/") and name[:1] != "%":
        call.write(name)
        call.walk.files[call.path(name)] = UNKNOWN


def _local(url: str) -> str:
    """The path of a `file://` address."""
    return "/" + url.partition("//")[2].partition("/")[2] if url[:5].lower() == "file:" else ""


def _with_configs(call: Call) -> list[str]:
    """The words, with the options of `-K FILE` behind them."""
    words = list(call.args)
    for at, word in enumerate(call.args[:-1]):
        if word in ("-K", "--config"):
            name = call.args[at + 1]
            text = call.world.stdin if name == "-" else call.walk.read_file(call.path(name))
            for line in (text or "").splitlines():
                line = line.strip()
                if line and line[0] != "#":
                    key, _, value = line.replace("=", " ", 1).replace(":", " ", line.count(": ") > 0).partition(" ")
                    words.append(key if key[:1] == "-" else f"--{key}")
                    words += [value.strip().strip("\"'")] if value.strip() else []
    return words


_WGET_LONGS = (
    "output-document= output-file= append-output= directory-prefix= input-file= save-cookies= load-cookies= spider"
    " no-clobber timestamping continue recursive mirror page-requisites force-directories no-directories"
    " content-disposition background quiet execute= tries= timeout= wait= waitretry= limit-rate= quota= user= password="
    " user-agent= header= referer= post-data= post-file= body-data= body-file= method= level= accept= reject= domains="
    " exclude-domains= include-directories= exclude-directories= base= cut-dirs= default-page= warc-file= rejected-log="
    " ca-certificate= certificate= private-key= use-askpass= config= no-check-certificate show-progress progress="
    " read-timeout= connect-timeout= dns-timeout= secure-protocol= max-redirect= trust-server-names help version"
    " hsts-file="
)


def _wget(call: Call) -> None:
    found = told_apart(call.args, "oaeiBtOTwQPUlARDIX", _WGET_LONGS)
    values = dict(found)
    flags = values.keys()
    if flags & {"h", "help", "V", "version"}:
        return
    for name in ("o", "output-file", "a", "append-output", "save-cookies", "rejected-log", "warc-file"):
        if values.get(name):
            _downloaded(call, values[name])
    if flags & {"use-askpass"}:
        call.script(values["use-askpass"])
    if "spider" in flags:
        return
    target = values.get("O", values.get("output-document"))
    for command in (value for name, value in found if name in ("e", "execute")):
        key, _, value = command.partition("=")
        if key.strip().replace("-", "_").lower() in ("output_document", "outputdocument"):
            target = value.strip()
    if target is not None:
        _downloaded(call, target)
        if target == "-":
            call.print(UNKNOWN)
        return
    folder = values.get("P", values.get("directory-prefix", ""))
    urls = [value for name, value in found if not name]
    if "i" in flags or "input-file" in flags:
        urls.append(UNKNOWN)
    whole = flags & set("rmpx") or flags & {"recursive", "mirror", "page-requisites", "content-disposition"}
    for url in urls:
        rest = url.partition("://")[2] or url
        name = UNKNOWN if whole or UNKNOWN in url else _last(rest) if "/" in rest.rstrip("/") else "index.html"
        name = _under(folder or ("." if name == UNKNOWN else ""), name)
        there = call.disk.exists(call.path(name))
        if there and ("nc" in call.args or "-nc" in call.args or "no-clobber" in flags):
            continue
        if there and not flags & {"N", "c", "timestamping", "continue"}:
            name += ".1"
        _downloaded(call, name)


PROGRAMS: dict[str, Program] = {
    "7z": _7z,
    "7za": _7z,
    "ar": _ar,
    "bsdtar": _tar,
    "cpio": _cpio,
    "curl": _curl,
    "patch": _patch,
    "rsync": _rsync,
    "tar": _tar,
    "unzip": _unzip,
    "wget": _wget,
    "zip": _zip,
    **dict.fromkeys(_PACKERS, _pack),
}

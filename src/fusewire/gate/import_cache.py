"""Cache the code of all modules that hooks import in one file: an import takes one look at the disk instead of ten.

A hook is a new process for every tool call, and much of its time goes into finding its modules: each is sought in
folders, its source is looked at, its compiled file is opened, looked at and read. Here the compiled code of all of
them lies in one file in the package's `__pycache__`. Of a module that is imported only the time and the size of its
source are compared, so that an edited one is seen at once, just as Python itself would see it.

Everything odd is left to Python's own import: a module that is not in the file, or whose source is no longer what it
was, a file that is damaged, or made by another Python or for other folders. What Python then had to find is added to
the file once the process has given its answer. The code is taken from the `.pyc` files that Python has just used or
written and that lie beside it, so it deserves the same trust.
"""

import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader
from _imp import _fix_co_filename, source_hash  # type: ignore[attr-defined]  # the one is not in the type stubs
from marshal import dumps, loads

# No `from __future__ import annotations`: that is a module too, and it would be found the slow way.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    #: Its source, its compiled file, whether it is a package, time (ns) and size of its source; then where its code
    #: begins among the codes, how long it is, and its hash.
    Entry = tuple[str, str, bool, int, int, int, int, bytes]
else:
    ModuleSpec = type(sys.__spec__)

#: Another number whenever the file's content changes its shape.
_FORMAT = 1

#: The file is the length of the index, its hash, the index, and the codes one after another.
_LENGTH, _HASH = 8, 8

#: More than hooks import: every one of them reads the whole index.
_MOST_MODULES = 400
_MOST_BYTES = 8 * 1024 * 1024

#: Seconds after which a file that is still being written was left by a process that is no more.
_LEFT = 60


def install(package: str) -> "Callable[[], None]":
    """From now on modules are looked for in the file first; returns what adds to it those that were not there."""
    finder = Finder(package)
    sys.meta_path.insert(0, finder)
    return finder.save


class Finder:
    """Finds modules that are in the file and unchanged, and remembers which ones were asked for in vain."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.file = f"{package}/__pycache__/hook.{sys.implementation.cache_tag}.bin"
        #: The folders belong to it: what another Python, or another copy of the package, imports is no use here.
        self.made_for = [_FORMAT, sys.version, sys.flags.optimize, *sys.path]
        self.missed: list[str] = []
        self._open()

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        entry = self.index.get(name)
        if entry is None or not _is_fresh(entry):
            self.missed.append(name)
            return None
        origin, cached, is_package = entry[:3]
        spec = ModuleSpec(name, _Loader(name, origin, self), origin=origin, is_package=is_package)
        spec.has_location = True
        spec.cached = cached
        if is_package:
            spec.submodule_search_locations = [origin.rpartition("/")[0]]
        return spec

    def code(self, name: str) -> bytes:
        """The compiled code of a module; nothing if it is damaged."""
        begin, length, digest = self.index[name][5:]
        try:
            code = os.pread(self.descriptor, length, self.start + begin)
            if source_hash(_FORMAT, code) == digest:
                return code
        except OSError:
            pass
        self.missed.append(name)
        return b""

    def save(self) -> None:
        """Add what was missed. Nothing depends on it: whatever goes wrong is left to the next process."""
        try:
            found = {} if sys.dont_write_bytecode else self._found()
            if found:
                self._open()  # others may have added to it meanwhile
                kept = {name: (entry, self.code(name)) for name, entry in self.index.items() if _is_fresh(entry)}
                self._write({**kept, **found})
        except Exception:
            pass

    def _found(self) -> "dict[str, tuple[Entry, bytes]]":
        """What was missed and can be kept: modules of ours and of Python's own, and of them those made from source."""
        found = {}
        beside = os.path.dirname(self.package) + "/"
        full = len(self.index) >= _MOST_MODULES
        for name in self.missed:
            if full and name not in self.index:
                continue
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if spec is None or not isinstance(spec.loader, SourceFileLoader):
                continue
            pythons = name.partition(".")[0] in sys.stdlib_module_names and not spec.origin.startswith(beside)
            if pythons or spec.origin.startswith(self.package + "/"):
                compiled = _compiled(spec)
                if compiled:
                    found[name] = compiled
        return found

    def _open(self) -> None:
        """Read the index, if there is one and it was made for us; a code is read when it is needed."""
        self.index: dict[str, Entry] = {}
        try:
            self.descriptor = os.open(self.file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if self.descriptor <= 2:  # an agent closed this stream, which must not seem to be open now
                os.close(self.descriptor)
                return
            head = os.read(self.descriptor, _LENGTH + _HASH)
            size = int.from_bytes(head[:_LENGTH], "little")
            index = os.read(self.descriptor, min(size, _MOST_BYTES))
            if source_hash(_FORMAT, index) == head[_LENGTH:]:
                self.start = len(head) + len(index)
                made_for, entries = loads(index)
                if made_for == self.made_for:
                    self.index = entries
        except (OSError, EOFError, ValueError, TypeError):
            pass

    def _write(self, modules: "dict[str, tuple[Entry, bytes]]") -> None:
        entries, codes, begin = {}, [], 0
        for name, (entry, code) in modules.items():
            if code:
                entries[name] = (*entry[:5], begin, len(code), source_hash(_FORMAT, code))
                codes.append(code)
                begin += len(code)
        index = dumps((self.made_for, entries))
        content = b"".join((len(index).to_bytes(_LENGTH, "little"), source_hash(_FORMAT, index), index, *codes))
        if len(content) <= _MOST_BYTES:
            _replace(self.file, content)


class _Loader(SourceFileLoader):
    """Python's own loader of a source file, but that it has the code already."""

    def __init__(self, name: str, path: str, finder: Finder) -> None:
        self.name, self.path, self.finder = name, path, finder

    def get_code(self, fullname: str) -> "CodeType | None":
        compiled = self.finder.code(fullname)
        if not compiled:
            return super().get_code(fullname)
        code: CodeType = loads(compiled)
        _fix_co_filename(code, self.path)  # compiled files that were moved name the folder that they were made in
        return code


def _is_fresh(entry: "Entry") -> bool:
    try:
        source = os.stat(entry[0])
    except OSError:
        return False
    return source.st_mtime_ns == entry[3] and source.st_size == entry[4]


def _compiled(spec: "ModuleSpec") -> "tuple[Entry, bytes] | None":
    """What Python has just compiled; None if that is not the source as it is now, or says nothing about that."""
    origin, cached = str(spec.origin), str(spec.cached)
    try:
        source = os.stat(origin)
        with open(cached, "rb") as file:
            content = file.read()
    except OSError:
        return None
    header = (0, int(source.st_mtime), source.st_size)  # flags other than 0: a hash of the source instead of these
    if content[:16] != MAGIC_NUMBER + b"".join((field & 0xFFFFFFFF).to_bytes(4, "little") for field in header):
        return None
    is_package = spec.submodule_search_locations is not None
    return (origin, cached, is_package, source.st_mtime_ns, source.st_size, 0, 0, b""), content[16:]


def _replace(path: str, content: bytes) -> None:
    """Write beside and rename, so that no reader sees a part; `util.files` does the same, but is not loaded here."""
    temporary = f"{path}.new"  # one name for all, so that killed processes leave one file at most
    try:
        from time import time

        if time() - os.stat(temporary).st_mtime > _LEFT:
            os.unlink(temporary)
    except FileNotFoundError:
        pass
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        try:
            whole = os.write(descriptor, content) == len(content)
        finally:
            os.close(descriptor)
        if not whole:
            raise OSError(28, "the disk is full", temporary)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise

"""Enter user and mount namespaces in which the paths of a plan are read-only (Linux).

What follows holds for this process and all that it starts, and there is no way back: the mounts are locked for any
namespace inside, and the capabilities that could change them are dropped.

1. An ordinary user gets a user namespace in which only that user exists; root, where it may mount, needs none.
2. Mounts no longer propagate to the outside.
3. Pins: a folder that is a mount point anywhere in the namespace cannot be renamed or removed. They are mounted where
   no path leads, beneath a copy of /proc that covers them, so that they do not split the tree: renaming between two
   folders of it still works.
4. Each path is mounted on itself, read-only; what stays writable inside of one is mounted again from the outside.

This runs before every shell command, and modules are what costs most: `posix` and `_ctypes` are a sixth of `os` and
`ctypes`.
"""

import posix as os
import sys
from _stat import S_ISDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18

_MOUNT_SETATTR, _AT_RECURSIVE = 442, 0x8000

#: What `statvfs` says of a mount -> the flag that says it to `mount`: they are locked, and a remount must repeat them.
_LOCKED = ((2, _NOSUID), (4, _NODEV), (8, _NOEXEC), (1024, 1024), (2048, 2048), (4096, 1 << 21))

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 1, 24, 38, 47, 4

#: What root loses: DAC_READ_SEARCH (open a file by its handle, past all mounts), SYS_MODULE, SYS_RAWIO, SYS_PTRACE
#: (take over a process outside), SYS_ADMIN (mount), MKNOD.
_ROOT_LOSES = (2, 16, 17, 19, 21, 27)

SSH_FOLDER = "/etc/ssh/ssh_config.d"


class MountPlan:
    """What is mounted for one command; all paths are absolute, and only the last part of a pin may be a link."""

    __slots__ = ("absent", "looked_at", "missing", "mounts", "pins", "root", "scanned", "warnings")

    def __init__(
        self,
        root: str,
        mounts: "tuple[tuple[str, bool], ...]" = (),
        pins: "tuple[str, ...]" = (),
        missing: "tuple[str, ...]" = (),
        absent: "tuple[str, ...]" = (),
        warnings: "tuple[str, ...]" = (),
    ) -> None:
        self.root = root
        #: (path, whether it is read-only), a folder before what is in it: what is not lies in a folder that is
        self.mounts = mounts
        #: folders above them, and links to them, that must not be renamed or removed
        self.pins = pins
        #: configuration folders that do not exist, and are kept from being created
        self.missing = missing
        #: protected paths that do not exist and cannot be kept from being created
        self.absent = absent
        self.warnings = warnings
        #: what the plan depends on: paths that are there or not, and folders whose entries were read
        self.looked_at: list[str] = []
        self.scanned: list[str] = []

    def data(self) -> "tuple[Any, ...]":
        return self.root, self.mounts, self.pins, self.missing, self.absent, self.warnings

    def read_only(self) -> "list[str]":
        return [path for path, is_read_only in self.mounts if is_read_only]

    def __bool__(self) -> bool:
        return bool(self.mounts or self.missing)


class SandboxError(Exception):
    """Why the namespaces cannot be entered."""

    def __init__(self, step: str, errno: int, *, unchanged: bool = False) -> None:
        super().__init__(f"{step}: {os.strerror(errno)}")
        self.step = step
        self.errno = errno
        #: nothing has happened to this process yet
        self.unchanged = unchanged


class _Library:
    """The functions of the C library that Python lacks."""

    def __init__(self) -> None:
        import _ctypes

        class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]
            _type_ = "i"

        class SystemFunction(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
            _restype_ = Int

        library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
        self.errno = _ctypes.get_errno
        self.mount_, self.unshare, self.prctl, self.capset, self.syscall = (
            SystemFunction(_ctypes.dlsym(library, name)) for name in ("mount", "unshare", "prctl", "capset", "syscall")
        )

    def check(self, result: int, step: str) -> None:
        if result != 0:
            raise SandboxError(step, self.errno())

    def mount(self, source: str, target: str, flags: int, kind: bytes = b"none", data: bytes = b"") -> None:
        result = self.mount_(_encoded(source), _encoded(target), kind, flags, data)
        self.check(result, f"mount {target}")


def environment() -> "MutableMapping[bytes, bytes]":
    """The variables of this process, also where `os` is not loaded, or has changed some."""
    module = sys.modules.get("os")
    return module.environb if module is not None else os.environ


def _encoded(path: str) -> bytes:
    return path.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def enter(plan: MountPlan) -> None:
    """Enter a sandbox for good; SandboxError says why it did not work, and whether this process is as it was."""
    try:
        library = _Library()
    except ImportError:
        raise SandboxError("this Python has no _ctypes", 38, unchanged=True) from None
    folder = _current_folder()
    is_root = _unshare(library)
    try:
        library.mount("none", "/", _REC | _PRIVATE)
        _pin(library, plan.pins)
        _mount(library, plan.mounts)
        if not is_root:
            _mount_ssh_settings(library)
        if folder:
            os.chdir(folder)  # the same folder, seen through the new mounts
        _drop_capabilities(library, is_root)
    except OSError as error:
        raise SandboxError(error.filename or "system", error.errno or 0) from error


def die_with_parent() -> None:
    """Be killed when the parent is: after `enter`, because new credentials undo it."""
    _Library().prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _unshare(library: _Library) -> bool:
    """Enter the namespaces; returns whether root may mount without one for users."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and library.unshare(_CLONE_NEWNS) == 0:
        return True
    if library.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        raise SandboxError("unshare", library.errno(), unchanged=True)
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            _write(f"/proc/self/{name}", text)
    except OSError as error:
        raise SandboxError(f"write {error.filename}", error.errno or 0) from None
    return False


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(file)


def _pin(library: _Library, pins: tuple[str, ...]) -> None:
    """Make mount points of these folders and links where no path leads."""
    if not pins:
        return
    lower = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
    library.mount("/proc", "/proc", _BIND | _REC)
    hidden = f"/proc/self/fd/{lower}/fs"
    by_folder: dict[str, list[str]] = {}
    for path in pins:
        folder, _, name = path.rpartition("/")
        by_folder.setdefault(folder or "/", []).append(name)
    for folder in sorted(by_folder):  # "/" first: it is copied with everything that is mounted by then
        if not _try_mount(library, folder, hidden):
            continue
        for name in by_folder[folder]:
            try:
                point = os.open(f"{hidden}/{name}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            over = "/proc/fs" if S_ISDIR(os.fstat(point).st_mode) else "/proc/version"
            library.mount(over, f"/proc/self/fd/{point}", _BIND | _REC)
            os.close(point)
    os.close(lower)


def _try_mount(library: _Library, source: str, target: str) -> bool:
    """Whether it is still there: others may remove files while this one starts."""
    try:
        library.mount(source, target, _BIND | _REC)
    except SandboxError as error:
        if error.errno == 2:
            return False
        raise
    return True


def _mount(library: _Library, mounts: tuple[tuple[str, bool], ...]) -> None:
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path, is_read_only in mounts if not is_read_only}
    for path, is_read_only in mounts:
        source = path if is_read_only else f"/proc/self/fd/{kept[path]}"
        if _try_mount(library, source, path) and is_read_only:
            _make_read_only(library, path)
    for file in kept.values():
        os.close(file)


def _make_read_only(library: _Library, path: str) -> None:
    """With all file systems below it, where the kernel knows how (Linux 5.12)."""
    attributes = (1).to_bytes(8, sys.byteorder) + bytes(24)
    if library.syscall(_MOUNT_SETATTR, -1, _encoded(path), _AT_RECURSIVE, attributes, len(attributes)) == 0:
        return
    flags = _BIND | _REMOUNT | _RDONLY
    known = os.statvfs(path).f_flag
    for bit, flag in _LOCKED:
        flags |= flag if known & bit else 0
    library.mount("none", path, flags)


def ssh_settings() -> "dict[str, bytes]":
    """The system's settings of ssh that a user must own: path -> content.

    Where only the user exists, root's files seem to be nobody's, and ssh refuses to include such files.
    """
    try:
        names = os.listdir(SSH_FOLDER)
    except OSError:
        return {}
    contents = {name: text for name in names if (text := read_small(f"{SSH_FOLDER}/{name}")) is not None}
    for name in list(contents):
        contents[name] = b"\n".join(_with_own_include(line, contents) for line in contents[name].split(b"\n"))
    return {f"{SSH_FOLDER}/{name}": content for name, content in contents.items()}


def _mount_ssh_settings(library: _Library) -> None:
    contents = ssh_settings()
    if contents:
        library.mount("tmpfs", SSH_FOLDER, _NOSUID | _NODEV | _NOEXEC, b"tmpfs", b"mode=755,size=1m")
    for path, content in contents.items():
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.write(file, content)
        os.close(file)


def _with_own_include(line: bytes, contents: "dict[str, bytes]") -> bytes:
    """A line of these settings; where it includes a file, that is copied, too."""
    words = line.split()
    if len(words) != 2 or words[0].lower() != b"include":
        return line
    content = read_small(words[1].decode("utf-8", "replace"))
    if content is None:
        return line
    name = f".{len(contents)}"  # where no pattern finds it
    contents[name] = content
    return f"Include {SSH_FOLDER}/{name}".encode()


def read_small(path: str) -> "bytes | None":
    """The first 64 KB of a file, if it can be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return os.read(file, 1 << 16)
        finally:
            os.close(file)
    except OSError:
        return None


def _drop_capabilities(library: _Library, is_root: bool) -> None:
    """An ordinary user keeps none, and gets none from a program; root loses those that reach past the mounts."""
    if not is_root:
        library.check(library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for capability in _ROOT_LOSES if is_root else range(64):
        if library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 and not is_root:
            break  # the last one that this kernel knows
    library.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    sets = [0, 0, 0]
    if is_root:
        lost = sum(1 << capability for capability in _ROOT_LOSES)
        sets = [_capabilities(name) & ~lost for name in (b"CapEff:", b"CapPrm:", b"CapInh:")]
    words = [part >> shift & 0xFFFFFFFF for shift in (0, 32) for part in sets]
    data = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
    library.check(library.capset(header, data), "capset")


def _capabilities(name: bytes) -> int:
    status = read_small("/proc/self/status") or b""
    return int(status.partition(name)[2].split(None, 1)[0], 16)

"""What the functions of Python's standard library do to files, and which commands they run."""

from __future__ import annotations

from itertools import islice, product

from fusewire.guard.code.python_values import Choice, elements, texts
from fusewire.guard.code.values import UNKNOWN, command_line, in_folder
from fusewire.wrappers import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What happens to which argument: the kind, its position (-1 is the object itself), its name.
Doing = tuple[str, int, str]

_REMOVE: tuple[Doing, ...] = (("delete", 0, "path"),)
_RENAME: tuple[Doing, ...] = (("move", 0, "src"), ("write", 1, "dst"))
_MODE: tuple[Doing, ...] = (("mode", 0, "path"),)
_WRITE: tuple[Doing, ...] = (("write", 0, "path"),)
_LINK: tuple[Doing, ...] = (("link", 0, "src"), ("write", 1, "dst"))
_COPY: tuple[Doing, ...] = (("read", 0, "src"), ("write", 1, "dst"))

#: Handlers of `logging` that write a file.
_LOGS = ("RotatingFile", "TimedRotatingFile", "WatchedFile")

FUNCTIONS: dict[str, tuple[Doing, ...]] = {
    "os.remove": _REMOVE,
    "os.unlink": _REMOVE,
    "os.rmdir": _REMOVE,
    "os.removedirs": (("delete", 0, "name"),),
    "os.rename": _RENAME,
    "os.replace": _RENAME,
    "os.renames": (("move", 0, "old"), ("write", 1, "new")),
    "os.truncate": _WRITE,
    "os.mkdir": _WRITE,
    "os.makedirs": (("write", 0, "name"),),
    "os.mkfifo": _WRITE,
    "os.mknod": _WRITE,
    "os.utime": _WRITE,
    "os.creat": _WRITE,
    "os.chmod": _MODE,
    "os.lchmod": _MODE,
    "os.chown": _MODE,
    "os.lchown": _MODE,
    "os.chflags": _MODE,
    "os.setxattr": _MODE,
    "os.removexattr": _MODE,
    "os.link": _LINK,
    "os.symlink": _LINK,
    "os.chdir": (("chdir", 0, "path"),),
    "os.fchdir": (("chdir", 0, "fd"),),
    "os.chroot": (("chdir", 0, "path"),),
    "contextlib.chdir": (("chdir", 0, "path"),),
    "shutil.rmtree": (("delete_tree", 0, "path"),),
    "shutil.copyfile": _COPY,
    "shutil.copymode": (("read", 0, "src"), ("mode", 1, "dst")),
    "shutil.copystat": (("read", 0, "src"), ("mode", 1, "dst")),
    "shutil.chown": _MODE,
    "distutils.file_util.copy_file": _COPY,
    "distutils.dir_util.remove_tree": (("delete_tree", 0, "directory"),),
    "distutils.dir_util.copy_tree": _COPY,
    "send2trash.send2trash": (("delete", 0, "paths"),),
    "urllib.request.urlretrieve": (("write", 1, "filename"),),
    "logging.FileHandler": (("write", 0, "filename"),),
    "logging.basicConfig": (("write", 99, "filename"),),
    "shelve.open": (("write", 0, "filename"),),
    **{f"logging.handlers.{name}Handler": (("write", 0, "filename"),) for name in _LOGS},
    "os.fchmod": (("mode", 0, "fd"),),
    "os.fchown": (("mode", 0, "fd"),),
    "os.ftruncate": (("write", 0, "fd"),),
    "dbm.open": (("write", 0, "file"),),
    "dbm.gnu.open": (("write", 0, "file"),),
    "dbm.ndbm.open": (("write", 0, "file"),),
    "dbm.dumb.open": (("write", 0, "file"),),
    "py_compile.compile": (("read", 0, "file"), ("write", 1, "cfile")),
    "zipapp.create_archive": (("read", 0, "source"), ("write", 1, "target")),
    "venv.create": (("write", 0, "env_dir"),),
    "readline.write_history_file": (("write", 0, "filename"),),
    "readline.append_history_file": (("write", 1, "filename"),),
    "faulthandler.dump_traceback": (("write", 99, "file"),),
    **{f"mailbox.{name}": (("write", 0, "path"),) for name in ("mbox", "Maildir", "MH", "Babyl", "MMDF")},
    **{f"http.cookiejar.{name}CookieJar": (("write", 0, "filename"),) for name in ("LWP", "Mozilla", "File")},
    "numpy.save": (("write", 0, "file"),),
    "numpy.savetxt": (("write", 0, "fname"),),
    "numpy.savez": (("write", 0, "file"),),
    "torch.save": (("write", 1, "f"),),
    "joblib.dump": (("write", 1, "filename"),),
    "matplotlib.pyplot.savefig": (("write", 0, "fname"),),
}

#: Copies that go into the target if that is a folder.
INTO_FOLDERS = {"shutil.copy": "read", "shutil.copy2": "read", "shutil.move": "move"}

#: Functions like `open(path, mode)`.
OPENERS = frozenset(
    (
        "open",
        "os.fdopen",
        "codecs.open",
        "gzip.open",
        "bz2.open",
        "lzma.open",
        "tarfile.open",
        "zipfile.ZipFile",
        "tarfile.TarFile",
        "wave.open",
        "aifc.open",
        "sunau.open",
        "gzip.GzipFile",
        "bz2.BZ2File",
        "lzma.LZMAFile",
        "io.FileIO",
        "aiofiles.open",
        "tarfile.TarFile.open",
    )
)

#: Methods of `Path`: what each does, and with how many arguments at least and at most it may be one.
METHODS: dict[str, tuple[tuple[Doing, ...], int, int]] = {
    "unlink": ((("delete", -1, ""),), 0, 1),
    "rmdir": ((("delete", -1, ""),), 0, 0),
    "rename": ((("move", -1, ""), ("write", 0, "target")), 1, 1),
    "replace": ((("move", -1, ""), ("write", 0, "target")), 1, 1),
    "write_text": ((("write", -1, ""),), 0, 4),
    "write_bytes": ((("write", -1, ""),), 0, 1),
    "touch": ((("write", -1, ""),), 0, 2),
    "mkdir": ((("write", -1, ""),), 0, 3),
    "chmod": ((("mode", -1, ""),), 1, 1),
    "lchmod": ((("mode", -1, ""),), 1, 1),
    "symlink_to": ((("link", 0, "target"), ("write", -1, "")), 1, 2),
    "hardlink_to": ((("link", 0, "target"), ("write", -1, "")), 1, 1),
    "link_to": ((("link", -1, ""), ("write", 0, "target")), 1, 1),
    "read_text": ((("read", -1, ""),), 0, 2),
    "read_bytes": ((("read", -1, ""),), 0, 0),
}

#: Methods of objects that other packages make; their first argument is a file, if it is a text.
SAVERS = frozenset(
    (
        "to_csv",
        "to_json",
        "to_parquet",
        "to_excel",
        "to_pickle",
        "to_html",
        "to_feather",
        "savefig",
        "save",
        "save_pretrained",
        "tofile",
    )
)

SHELL_LINES = frozenset(
    (
        "os.system",
        "os.popen",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "commands.getoutput",
        "asyncio.create_subprocess_shell",
        "get_ipython().system",
        "get_ipython().getoutput",
        "pexpect.run",
        "pexpect.spawn",
    )
)
_WITH_LISTS = frozenset(
    (
        "subprocess.run",
        "subprocess.call",
        "subprocess.check_call",
        "subprocess.check_output",
        "subprocess.Popen",
        "pty.spawn",
    )
)


def is_command(name: str) -> bool:
    """Whether the function runs a program."""
    if name in SHELL_LINES or name in _WITH_LISTS or name == "asyncio.create_subprocess_exec":
        return True
    return name.startswith(("os.exec", "os.spawn", "os.posix_spawn"))


def command_lines(name: str, arguments: list[Any], keywords: dict[str, Any]) -> list[str]:
    """The lines that a shell would need for what the function runs."""
    folders: list[str | None] = [*texts(keywords.get("cwd"))] or [None]
    if name in _WITH_LISTS:
        lines = _lines_of_list(arguments, keywords)
    elif name in SHELL_LINES:
        lines = texts(arguments[0]) if arguments else texts(keywords.get("command", keywords.get("cmd", UNKNOWN)))
    else:
        lines = [command_line(_words_of_exec(name, arguments))]
    return [in_folder(line, folder) for folder in folders for line in lines]


def _lines_of_list(arguments: list[Any], keywords: dict[str, Any]) -> list[str]:
    """`subprocess.run(...)`: a list, or a text that is a line for a shell or the name of a program."""
    given = arguments[0] if arguments else keywords.get("args", UNKNOWN)
    shell = keywords.get("shell", arguments[8] if len(arguments) > 8 else False)
    lines: list[str] = []
    for option in given.options if isinstance(given, Choice) else [given]:
        if isinstance(option, (list, tuple)):
            choices = [texts(word) if isinstance(word, Choice) else [_word(word)] for word in option]
            for words in islice(product(*choices), 16):
                lines += _lines_of_words(list(words), shell, keywords)
        else:
            line = _word(option)
            lines.append(line if shell is not False or line == UNKNOWN else command_line([line]))
            lines += _input_of_shell([line.split(" ")[0]], keywords)
    return lines


def _lines_of_words(words: list[str], shell: Any, keywords: dict[str, Any]) -> list[str]:
    if shell is not False and words:
        return words[:1]  # the others are arguments of the shell itself
    program = texts(keywords.get("executable"))[:1]
    return [command_line([*program, *words[len(program) :]]), *_input_of_shell(words, keywords)]


def _input_of_shell(words: list[str], keywords: dict[str, Any]) -> list[str]:
    if not words or words[0].rpartition("/")[2] not in SHELLS:
        return []
    return texts(keywords.get("input"))


def _words_of_exec(name: str, arguments: list[Any]) -> list[str]:
    """The words behind `os.execl(path, name, ...)`, `os.spawnv(mode, path, [...])` and their kin."""
    if name == "asyncio.create_subprocess_exec":
        return [_word(argument) for argument in arguments] or [UNKNOWN]
    kind = name.rpartition(".")[2]
    rest = arguments[1:] if kind.startswith("spawn") else arguments
    if not rest:
        return [UNKNOWN]
    own: list[Any] | None
    if kind.removeprefix("exec").removeprefix("spawn").startswith("l"):
        own = rest[1:-1] if kind.endswith("e") else rest[1:]
    else:
        own = elements(rest[1]) if len(rest) > 1 else None
        if own is None:
            return [_word(rest[0]), UNKNOWN]
    return [_word(rest[0]), *[_word(argument) for argument in own[1:]]]


def _word(value: Any) -> str:
    found = texts(value)
    return found[0] if len(found) == 1 else str(value) if isinstance(value, int) else UNKNOWN

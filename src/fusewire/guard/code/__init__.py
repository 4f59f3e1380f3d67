"""Code in an interpreter's one-liner: which files it would write, delete or move, and which commands it would run."""

from __future__ import annotations

from fusewire.guard.code.setting import Setting
from fusewire.guard.code.values import UNKNOWN, without_repeats

__all__ = ["UNKNOWN", "Setting", "code_effects"]

#: Code without any of these words cannot change anything; most code is not looked at any further.
_PYTHON_WORDS = (
    *("open", "write", "remov", "unlink", "renam", "replace", "rmtree", "rmdir", "move", "copy", "trunc", "chmod"),
    *("chown", "link", "mk", "makedirs", "touch", "utime", "system", "exec", "eval", "spawn", "subprocess", "import_"),
    *("__", "getattr", "compile", "extract", "unpack", "archive", "fileinput", "chdir", "vars", "globals", "locals"),
    *("to_", "save", "tofile", "operator", "runpy", "timeit", "rofile", "pexpect", "getoutput", "xattr", "chflags"),
    *(
        "read_",
        "sqlite",
        "shelve",
        "dump",
        "logging",
        "urlretrieve",
        "GzipFile",
        "BZ2File",
        "LZMAFile",
        "FileIO",
        "ZipFile",
    ),
    *("TarFile", "pdb", "send2trash", "tempfile", "chroot", "setattr", "mailbox", "venv", "Jar", "tracemalloc"),
)

#: Code that may print something, or run a file that the line has written.
_TELLING = ("print", "import", "stdout")


def code_effects(
    language: str,
    code: str,
    arguments: list[str],
    *,
    cwd_hint: str | None = None,
    setting: Setting | None = None,
) -> list[tuple[str, str]]:
    """What the code would do, as (kind, path or command line), in the order in which it would.

    Kinds: write, delete, delete_tree, move, mode, link (the file that gets a second name), read, chdir, shell;
    with a setting also print and file.
    """
    try:
        return without_repeats(_effects(language, code, arguments, cwd_hint, setting))
    except Exception:  # a guard that stumbles over code must not wave it through
        return [("write", UNKNOWN)]


def _effects(
    language: str, code: str, arguments: list[str], folder: str | None, setting: Setting | None
) -> list[tuple[str, str]]:
    if language == "python":
        if code.isascii() and not any(
            word in code for word in (*_PYTHON_WORDS, *(_TELLING if setting is not None else ()))
        ):
            return []
        from fusewire.guard.code.python import python_effects

        return python_effects(code, arguments, folder, setting)
    from fusewire.guard.code.scripts import script_effects

    return script_effects(language, code, arguments, setting)

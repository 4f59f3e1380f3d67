"""Compute the ids under which git would commit files of a working tree, without running any filter.

Line ends, encodings and `$Id$` are git's own work. What a filter makes of a file cannot be known without running it:
such a file is as the index has it if its size and time are, and a pointer of large file storage is worked out here.
"""

from __future__ import annotations

import hashlib
import os
import re

from fusewire.util.git import TIME_LIMIT, GitFailure, git
from fusewire.util.gitconfig import config_home, expand_home, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.util.gitdir import GitDir

#: Names that one question to the index may have.
_AT_ONCE = 1000

_DEBUG = re.compile(
    rb"\d+ ([0-9a-f]+) \d\t([^\0]+)\0\s*ctime: \S+\s*mtime: (\d+):(\d+)\s[^\0]*?size: (\d+)\s*flags: \w+\s*"
)
_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


def committed_ids(
    repository: GitDir, names: Iterable[str], filtered: Iterable[str] = (), limit: float = TIME_LIMIT
) -> dict[str, str]:
    """The ids of files, and of those among the `filtered` that have a filter; what fails is left out."""
    names = list(names)
    found: dict[str, str] = {}
    try:
        filters = _filters(repository, {*names, *filtered}, limit)
        ids = _filtered_ids(repository, filters, limit)
        plain = [one for one in names if one not in filters and "\n" not in one and one[:1] != '"']
        if plain:
            given = os.fsencode("\n".join(plain) + "\n")
            shown = git(repository, "hash-object", "--stdin-paths", given=given, limit=limit)
            found.update(zip(plain, shown.decode().split(), strict=False))
        return found | ids
    except (GitFailure, OSError):  # one of them is gone: each is then what its bytes are
        return found


def blob_id(content: bytes, width: int = 40) -> str:
    made = hashlib.sha256() if width == 64 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(content) + content)
    return made.hexdigest()


def _filters(repository: GitDir, names: set[str], limit: float) -> dict[str, str]:
    """The filters of files; git is asked only where a file with attributes speaks of any."""
    if not names or not any(b"filter" in read_small(path) for path in _attribute_files(repository, names)):
        return {}
    given = os.fsencode("".join(f"{name}\0" for name in sorted(names)))
    parts = os.fsdecode(git(repository, "check-attr", "-z", "--stdin", "filter", given=given, limit=limit)).split("\0")
    found = zip(parts[::3], parts[2::3], strict=False)
    return {name: value for name, value in found if value not in ("unspecified", "unset", "set")}


def _attribute_files(repository: GitDir, names: set[str]) -> Iterable[str]:
    folders = {""}
    for name in names:
        folder = os.path.dirname(name)
        while folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    yield from (os.path.join(repository.top, folder, ".gitattributes") for folder in folders)
    yield f"{repository.common}/info/attributes"
    yield expand_home(repository.settings.get("core.attributesfile", f"{config_home()}/git/attributes"))


def _filtered_ids(repository: GitDir, filters: dict[str, str], limit: float) -> dict[str, str]:
    names = sorted(filters)[:_AT_ONCE]
    if not names:
        return {}
    pathspecs = [f":(top,literal){name}" for name in names]
    shown = git(repository, "ls-files", "-s", "-z", "--debug", "--", *pathspecs, limit=limit)
    found: dict[str, str] = {}
    for match in _DEBUG.finditer(shown):
        name = os.fsdecode(match[2])
        facts = os.lstat(os.path.join(repository.top, name))
        size, seconds, rest = int(match[5]), int(match[3]), int(match[4])
        # a size of 0 is git's note to look at the content again, which only the filter could
        if size in (0, facts.st_size & 0xFFFFFFFF) and seconds * 10**9 + rest == facts.st_mtime_ns:
            found[name] = match[1].decode()
        elif filters[name] == "lfs":
            found[name] = _pointer_id(os.path.join(repository.top, name), len(match[1]))
    return found


def _pointer_id(path: str, width: int) -> str:
    with open(path, "rb") as file:
        start = file.read(64)
        if start.startswith(b"version https://git-lfs.github.com/"):  # not fetched: the pointer itself is here
            return blob_id(start + file.read(1024), width)
        file.seek(0)
        content = hashlib.file_digest(file, "sha256").hexdigest()
        return blob_id(_POINTER.format(content, file.tell()).encode(), width)

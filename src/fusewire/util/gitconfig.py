"""Parse git's configuration as data; nothing in it is executed, and git itself never sees it."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Settings = dict[str, str]

#: A larger file is no configuration.
_LARGEST = 1 << 20
_DEEPEST = 10

_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_HEADER = re.compile(r'\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)[ \t]*(=?)")
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"?|\\(.)|([#;].*)|([^"\\#;]+)')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def settings_of(git_dir: str, common: str) -> Settings:
    """Every setting that git would use in a repository, by its name in git's own spelling; the last one counts."""
    found: Settings = {}
    for path in _persons():
        found.update(_read(path, git_dir, 0))
    own = dict(_read(f"{common}/config", git_dir, 0))
    if own.get("extensions.worktreeconfig", "").lower() == "true":
        own.update(_read(f"{git_dir}/config.worktree", git_dir, 0))
    return found | own


def persons_settings() -> Settings:
    """The settings of the person and of the machine."""
    return {name: value for path in _persons() for name, value in _read(path, "", 0)}


def expand_home(path: str) -> str:
    return os.path.expanduser(path) if path[:1] == "~" else path


def read_small(path: str, most: int = _LARGEST) -> bytes:
    """A regular file's content; empty if it is missing, too large or something else: a FIFO would never answer."""
    from stat import S_ISREG

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        facts = os.fstat(descriptor)
        return os.read(descriptor, most) if S_ISREG(facts.st_mode) and facts.st_size <= most else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _persons() -> Iterator[str]:
    environment = os.environ
    if environment.get("GIT_CONFIG_NOSYSTEM", "").lower() in ("", "0", "false", "no"):
        yield environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"
    given = environment.get("GIT_CONFIG_GLOBAL")
    if given is not None:
        yield given
        return
    yield f"{config_home()}/git/config"
    yield expand_home("~/.gitconfig")


def config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or expand_home("~/.config")


def _read(path: str, git_dir: str, depth: int) -> Iterator[tuple[str, str]]:
    text = read_small(path).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    for name, value in _parsed(text):
        yield name, value
        if name == "include.path" or (name[:10] == "includeif." and _holds(name[10:-5], path, git_dir)):
            included = os.path.join(os.path.dirname(path), expand_home(value))
            if depth < _DEEPEST:
                yield from _read(included, git_dir, depth + 1)


def _holds(condition: str, path: str, git_dir: str) -> bool:
    """Whether the condition of an `includeIf` is true; only places of repositories are understood."""
    from fnmatch import fnmatchcase

    kind, _, pattern = condition.partition(":")
    if kind not in ("gitdir", "gitdir/i") or not git_dir:
        return False
    pattern = expand_home(pattern)
    if pattern[:2] == "./":
        pattern = f"{os.path.realpath(os.path.dirname(path))}{pattern[1:]}"
    elif pattern[:1] != "/":
        pattern = f"*/{pattern}"
    pattern += "*" if pattern[-1:] == "/" else ""
    if kind == "gitdir/i":
        return fnmatchcase(git_dir.lower(), pattern.lower())
    return fnmatchcase(git_dir, pattern)


def _parsed(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in _CONTINUED.sub(r"\1", text.replace("\r\n", "\n")).split("\n"):
        header = _HEADER.match(line)
        if header:
            name, _, old = header[1].partition(".")
            middle = old.lower() if header[2] is None else re.sub(r"\\(.)", r"\1", header[2])
            section = f"{name.lower()}.{middle}." if middle else f"{name.lower()}."
            line = line[header.end() :]
        key = _KEY.match(line)
        if key and section:
            yield section + key[1].lower(), _value(line[key.end() :]) if key[2] else "true"


def _value(text: str) -> str:
    made = ""
    kept = 0  # white space at the end is dropped unless it is quoted
    for quoted, escaped, comment, plain in _PART.findall(text.strip()):
        if comment:
            break
        if plain:
            made += plain
            kept = max(kept, len(made.rstrip()))
            continue
        made += _ESCAPES.get(escaped, escaped) if escaped else re.sub(r"\\(.)", _unescaped, quoted)
        kept = len(made)
    return made[:kept]


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])

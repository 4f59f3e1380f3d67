"""What the readers of all languages share: texts with unknown parts, paths, command lines."""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN as UNKNOWN
from fusewire.words import quoted

#: Longer texts than any path; what is longer is as good as unknown.
LONGEST = 4096

Effect = tuple[str, str]


class TooMuch(Exception):
    """More work than reading a one-liner is worth."""


def clipped(text: str) -> str:
    """The text with runs of unknown parts as one; one that is too long is unknown."""
    if len(text) > LONGEST:
        return UNKNOWN
    while UNKNOWN + UNKNOWN in text:
        text = text.replace(UNKNOWN + UNKNOWN, UNKNOWN)
    return text


def joined(*parts: str) -> str:
    """Paths one behind the other; an absolute one starts anew."""
    path = ""
    for part in parts:
        path = part if not path or part.startswith("/") else path + part if path.endswith("/") else f"{path}/{part}"
    return clipped(path)


def base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def folder_of(path: str) -> str:
    """The folder that a path is in, `.` for a bare name."""
    head, slash, _ = path.rstrip("/").rpartition("/")
    return head or (slash or ".")


def suffix_of(path: str) -> str:
    """The suffix with its dot; a name that only starts with a dot has none."""
    name = base_name(path).lstrip(".")
    return "." + name.rpartition(".")[2] if "." in name else ""


def glob_text(pattern: str) -> str:
    """A glob pattern with an unknown part for each wildcard."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        end = pattern.find("]", at + 2) if char == "[" else -1
        if char in "*?" or end > 0:
            if parts[-1:] == ["/"] and parts[-2:-1] == [UNKNOWN]:
                parts.pop()  # `**/*` may be no folder at all
            parts.append(UNKNOWN)
            at = max(at, end)
        else:
            parts.append(char)
        at += 1
    text = clipped("".join(parts))
    if pattern.startswith("**/") or "/**/" in pattern:
        text = text.replace(UNKNOWN + "/", UNKNOWN)
    return text


def braces(pattern: str) -> list[str]:
    """A glob pattern for each alternative in its braces."""
    start, end = pattern.find("{"), pattern.find("}")
    if start < 0 or end < start or "," not in pattern[start:end]:
        return [pattern]
    return [pattern[:start] + choice + pattern[end + 1 :] for choice in pattern[start + 1 : end].split(",")[:16]]


def copy_targets(source: str, target: str) -> list[str]:
    """Where a copy may end: at the target, or in it if that is a folder."""
    name = base_name(source)
    if target.endswith("/") or target in (".", ".."):
        return [joined(target, name)]
    same_kind = suffix_of(source) == suffix_of(target) != "" or base_name(target) == name
    return [target] if same_kind or UNKNOWN in (source, target) else [target, joined(target, name)]


def command_line(words: list[str], folder: str | None = None) -> str:
    """A list of arguments as the line that a shell would need for it."""
    line = UNKNOWN if words == [UNKNOWN] else " ".join(quoted(word) for word in words)
    return in_folder(line, folder)


def in_folder(line: str, folder: str | None) -> str:
    return f"cd {quoted(folder)} && {line}" if folder else line


def without_repeats(effects: list[Effect]) -> list[Effect]:
    """Each effect once for each folder that the code moves to."""
    kept: list[Effect] = []
    seen: set[Effect] = set()
    for effect in effects:
        if effect[0] in ("chdir", "print", "file"):
            seen.clear()
        elif effect in seen:
            continue
        seen.add(effect)
        kept.append(effect)
    return kept


def decoded(text: str) -> str:
    """What base64 stands for."""
    import binascii

    try:
        return binascii.a2b_base64(text).decode("utf-8", "replace")
    except ValueError:
        return UNKNOWN

"""Mask what varies between two results that say the same: times, durations, ids, line numbers, folders.

Counts stay ("3 failed", "45 %"), because they are what a poll waits for. It walks over words and needs no `re`, which
would cost a hook more than all of its work; `answers.masks` does the same for people, more exactly.
"""

from __future__ import annotations

#: Of a longer text the beginning and the end say whether it is the same.
_EACH_END = 4000

_PLACEHOLDERS = frozenset(("<n>", "<id>", "<time>", "<duration>"))

_EDGES = "()[]{}<>,;:'\"`.!?=*"

_UNITS = frozenset("s ms us µs ns m h sec secs second seconds min mins minute minutes hour hours".split())

#: Words before a number that is a place or a name, no amount.
_NAMING = frozenset(
    (
        "line lines column columns col char position offset byte row pid process thread tid worker port id request job"
    ).split()
)


def masked(text: str) -> str:
    """The text with everything masked that may differ though the result is the same.

    Where nothing would be left, it stays as it is: whoever asks for a hash or a time alone wants to know it.
    """
    if len(text) > 2 * _EACH_END:
        text = f"{text[:_EACH_END]} {text[-_EACH_END:]}"
    if "\x1b" in text:
        text = _without_colours(text)
    words = text.split()
    for at, word in enumerate(words):
        if word.isalpha():
            continue
        before = words[at - 1].lower().rstrip(":=#") if at else ""
        after = words[at + 1].lower().strip(_EDGES) if at + 1 < len(words) else ""
        words[at] = _masked_word(word, before, after)
    return " ".join(text.split()) if _PLACEHOLDERS.issuperset(words) else " ".join(words)


def _without_colours(text: str) -> str:
    first, *parts = text.split("\x1b[")
    kept = [first]
    for part in parts:
        end = next((at for at, char in enumerate(part) if "@" <= char <= "~"), len(part) - 1)
        kept.append(part[end + 1 :])
    return "".join(kept)


def _masked_word(word: str, before: str, after: str) -> str:
    key, equals, value = word.partition("=")
    if equals and value and key:
        return f"{key}={_masked_word(value, key.lower().rsplit('-', 1)[-1], after)}"
    core = word.strip(_EDGES)
    if "/" in core and "://" not in core:
        core = _without_folder(core)
    if not any(map(str.isdigit, core)):
        return core
    if "://" in core:
        return _without_port(core)
    if core.replace(".", "", 1).isdigit():
        if before in _NAMING or _is_epoch(core):
            return "<n>"
        return "<duration>" if after in _UNITS else core
    return _masked_core(core)


def _masked_core(core: str) -> str:
    lower = core.lower()
    if _is_hex(lower):
        return "<id>"
    digits = sum(map(str.isdigit, core))
    number = lower.rstrip("abcdefghijklmnopqrstuvwxyzµ")
    if lower[len(number) :] in _UNITS and number.replace(".", "", 1).replace("m", "", 1).isdigit():
        return "<duration>"
    if _is_time(core):
        return "<time>"
    if "[" in core or ":" in core or "(" in core:
        return _without_places(core)
    if digits >= 3 and len(core) >= 12 and core.replace("_", "").replace("-", "").isalnum():
        return "<id>"
    return core


def _is_hex(lower: str) -> bool:
    if lower.startswith("0x"):
        return True
    plain = lower.replace("-", "")
    return len(plain) >= 7 and not plain.isdigit() and all(char in "0123456789abcdef" for char in plain)


def _is_epoch(number: str) -> bool:
    """Seconds or milliseconds since 1970, of this century; other long numbers are sizes, and sizes grow."""
    whole, point, _ = number.partition(".")
    return whole[0] in "12" and (len(whole) == 10 or (len(whole) == 13 and not point))


def _is_time(core: str) -> bool:
    """12:34:56, 12:34:56.789, 2026-11-16, 2026/11/16T12:34:56Z."""
    bare = core.rstrip("Zz").replace("T", ":").replace("+", ":").replace("-", ":").replace("/", ":").replace(".", ":")
    parts = bare.split(":")
    return len(parts) >= 3 and all(part.isdigit() and len(part) <= 6 for part in parts) and len(parts[1]) == 2


def _without_folder(core: str) -> str:
    """The name of a file for an absolute path; a relative one says more, and is the same everywhere."""
    if core[0] not in "/~" and core[1:3] != ":\\":
        return core
    return f"<path>/{core.rstrip('/').rsplit('/', 1)[-1]}"


def _without_port(url: str) -> str:
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    name, colon, port = host.rpartition(":")
    return f"{scheme}://{name if colon and port.isdigit() else host}{slash}{path}"


def _without_places(core: str) -> str:
    """`app.py:12:5` and `app.py:14:1` are one place, `name[123]` is one process, `a.cs(3,4)` one file."""
    for opening, closing in (("[", "]"), ("(", ")")):
        head, found, rest = core.partition(opening)
        inside, _, tail = rest.partition(closing)
        if found and inside.replace(",", "").isdigit() and len(inside) >= 2:
            core = f"{head}{tail}"
    parts = core.split(":")
    while len(parts) > 1 and (parts[-1].isdigit() or not parts[-1]):
        parts.pop()
    return ":".join(parts)

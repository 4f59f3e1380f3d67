"""Functions of Python that only make one value out of others, and what they give for values that are known."""

from __future__ import annotations

import os.path
from itertools import islice, product

from fusewire.guard.code.python_values import (
    ITERATIONS,
    Choice,
    Listing,
    Opened,
    PathText,
    elements,
    has_width,
    is_known,
    text_of,
)
from fusewire.guard.code.values import (
    LONGEST,
    UNKNOWN,
    base_name,
    braces,
    clipped,
    folder_of,
    glob_text,
    joined,
    suffix_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Methods of texts that keep what is unknown where it is.
_KEEPING = frozenset(
    ("replace", "lower", "upper", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "casefold", "expandtabs")
)
_TEXT_METHODS = _KEEPING | {
    *("split", "rsplit", "splitlines", "partition", "rpartition", "title", "capitalize", "swapcase", "translate"),
    *("startswith", "endswith", "zfill", "ljust", "rjust", "center", "find", "rfind", "index", "count", "isdigit"),
}
_BYTES_METHODS = frozenset(
    ("replace", "lower", "upper", "strip", "hex", "split", "translate", "swapcase", "removesuffix")
)


def text_method(text: str, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """A method of `str`; unknown if it is none that we follow."""
    if name == "join":
        parts = elements(arguments[0]) if arguments else None
        return UNKNOWN if parts is None else clipped(text.join(text_of(part) for part in parts))
    if name in ("format", "format_map"):
        return _format(text, arguments, keywords)
    if name == "decode":
        return text
    if name == "encode":
        return text.encode("utf-8", "replace") if is_known(text) else text
    if name not in _TEXT_METHODS or not all(is_known(argument) for argument in arguments):
        return UNKNOWN
    if UNKNOWN in text and name not in _KEEPING:
        return UNKNOWN
    if any(isinstance(argument, int) and argument > LONGEST for argument in arguments):
        return UNKNOWN
    result = getattr(text, name)(*arguments)
    return clipped(result) if isinstance(result, str) else result


def bytes_method(content: bytes, name: str, arguments: list[Any]) -> Any:
    if name == "decode":
        encoding = arguments[0] if arguments and isinstance(arguments[0], str) else "utf-8"
        if encoding.replace("-", "").replace("_", "").lower() in ("rot13", "hex", "base64"):
            return UNKNOWN
        return clipped(content.decode(encoding, "replace"))
    if name == "join" and arguments and isinstance(arguments[0], (list, tuple)):
        return content.join(part for part in arguments[0] if isinstance(part, bytes))
    if name in _BYTES_METHODS and all(is_known(argument) for argument in arguments):
        return getattr(content, name)(*arguments)
    return UNKNOWN


def _format(template: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
    if has_width(template) or "__" in template:
        return UNKNOWN
    plain = [part if isinstance(part, (int, float)) else text_of(part) for part in arguments]
    named = arguments[0] if arguments and isinstance(arguments[0], dict) else keywords
    return clipped(template.format(*plain, **{key: text_of(part) for key, part in named.items()}))


def path_attribute(path: str, name: str) -> Any:
    """An attribute of a `Path` or of what `os.scandir` gives; None for a method."""
    if name == "parent":
        return PathText(folder_of(path))
    if name in ("name", "stem", "suffix"):
        own = base_name(path)
        return (
            own
            if name == "name"
            else suffix_of(path)
            if name == "suffix"
            else own.removesuffix(suffix_of(path) or "\0")
        )
    if name == "parents":
        found = [folder_of(path)]
        while len(found) < 32 and found[-1] not in (".", "/"):
            found.append(folder_of(found[-1]))
        return [PathText(parent) for parent in found]
    if name == "parts":
        return tuple(part for part in path.split("/") if part)
    return PathText(path) if name in ("path", "_path") else None


def path_method(path: str, name: str, arguments: list[Any]) -> Any:
    """What a method of `Path` gives, apart from what it does."""
    given = [text_of(argument) for argument in arguments]
    first = given[0] if given else ""
    if name == "joinpath":
        return PathText(joined(path, *given))
    if name == "expanduser":
        return PathText(os.path.expanduser(path))
    if name in ("resolve", "absolute", "as_posix", "__str__", "__fspath__", "readlink"):
        return PathText(path)
    if name in ("with_name", "rename", "replace"):
        return PathText(joined(folder_of(path), first) if name == "with_name" and "/" in path else first)
    if name in ("with_suffix", "with_stem"):
        suffix = suffix_of(path)
        own = base_name(path).removesuffix(suffix or "\0") + first if name == "with_suffix" else first + suffix
        return PathText(joined(folder_of(path), own) if "/" in path else own)
    if name == "relative_to" and path.startswith(first.rstrip("/") + "/"):
        return PathText(path[len(first.rstrip("/")) + 1 :])
    if name in ("glob", "rglob"):
        pattern = glob_text(first)
        return [PathText(clipped(joined(path, UNKNOWN + pattern if name == "rglob" else pattern)))]
    if name == "iterdir":
        return [PathText(joined(path, UNKNOWN))]
    if name == "walk":
        return walked(PathText(path))
    return UNKNOWN


def walked(path: str) -> list[Any]:
    """What `os.walk` meets: the folder itself and those in it."""
    below = type(path)(joined(path, UNKNOWN))
    return [(path, [UNKNOWN], [UNKNOWN]), (below, [UNKNOWN], [UNKNOWN])]


def _rot13(text: str) -> str:
    return "".join(
        chr((ord(char.lower()) - 84) % 26 + ord("a" if char.islower() else "A"))
        if char.isascii() and char.isalpha()
        else char
        for char in text
    )


def _codec(content: Any, encoding: Any = "utf-8") -> Any:
    kind = text_of(encoding).replace("-", "").replace("_", "").lower()
    if kind == "rot13":
        return _rot13(content)
    if kind in ("hex", "base64"):
        return bytes.fromhex(_ascii(content)) if kind == "hex" else _base64(content)
    return content.decode(text_of(encoding)) if isinstance(content, bytes) else UNKNOWN


def _ascii(content: Any) -> str:
    return content.decode("ascii") if isinstance(content, bytes) else str(content)


def _base64(content: Any, *_: Any) -> bytes:
    import binascii

    return binascii.a2b_base64(_ascii(content).translate({45: 43, 95: 47}))


def _split_path(path: str) -> tuple[str, str]:
    head, _, tail = path.rpartition("/")
    return head, tail


def _listed(*values: Any) -> Any:
    found = elements(values[0]) if values else []
    if values and isinstance(values[0], Listing):
        return Listing(found or [])
    return UNKNOWN if found is None else found


def _zipped(*values: Any) -> Any:
    rows = [elements(value) for value in values]
    return (
        UNKNOWN
        if any(row is None for row in rows)
        else [tuple(row) for row in zip(*[r or [] for r in rows], strict=False)]
    )


def _products(*values: Any) -> Any:
    rows = [elements(value) for value in values]
    if any(row is None for row in rows):
        return UNKNOWN
    return list(islice(product(*[row or [] for row in rows]), ITERATIONS + 1))


def _split_words(line: str, *_: Any) -> list[str]:
    import shlex

    return shlex.split(line)


#: Pure functions; each may raise, which makes the result unknown.
PURE: dict[str, Callable[..., Any]] = {
    "str": lambda value="", *_: value.decode("utf-8", "replace") if isinstance(value, bytes) and _ else text_of(value),
    "repr": lambda value: repr(value) if is_known(value) else UNKNOWN,
    "chr": chr,
    "ord": ord,
    "int": lambda value, base=10: int(value, base) if isinstance(value, str) else int(value),
    "len": lambda value: len(value) if is_known(value) else UNKNOWN,
    "bytes": lambda value=b"", *_: value.encode() if isinstance(value, str) else bytes(list(value)),
    "bytearray": lambda value=b"", *_: value.encode() if isinstance(value, str) else bytes(list(value)),
    "bytes.fromhex": lambda text: bytes.fromhex(_ascii(text)),
    "bytearray.fromhex": lambda text: bytes.fromhex(_ascii(text)),
    "binascii.unhexlify": lambda text: bytes.fromhex(_ascii(text)),
    "binascii.a2b_hex": lambda text: bytes.fromhex(_ascii(text)),
    "binascii.a2b_base64": _base64,
    "base64.b64decode": _base64,
    "base64.decodebytes": _base64,
    "base64.standard_b64decode": _base64,
    "base64.urlsafe_b64decode": _base64,
    "codecs.decode": _codec,
    "codecs.encode": lambda text, encoding="utf-8": _rot13(text) if "rot" in encoding else text.encode(encoding),
    "range": lambda *ends: range(*ends),
    "list": _listed,
    "tuple": lambda *values: tuple(_listed(*values)),
    "set": _listed,
    "frozenset": _listed,
    "sorted": _listed,
    "iter": _listed,
    "reversed": lambda value: list(reversed(list(elements(value) or [])))[:ITERATIONS] or UNKNOWN,
    "enumerate": lambda value, start=0: [(start + at, each) for at, each in enumerate(_listed(value))],
    "zip": _zipped,
    "next": lambda value, *default: Choice([*_listed(value), *default]),
    "shlex.split": _split_words,
    "shlex.quote": lambda text: text,
    "itertools.product": _products,
    "itertools.chain": lambda *values: [each for value in values for each in _listed(value)],
    "os.fspath": lambda value: value,
    "os.fsdecode": lambda value: value.decode() if isinstance(value, bytes) else text_of(value),
    "os.fsencode": lambda value: value,
    "os.path.join": lambda *parts: joined(*[text_of(part) for part in parts]),
    "os.path.expanduser": lambda path: os.path.expanduser(text_of(path)),
    "os.path.expandvars": lambda path: text_of(path) if "$" not in text_of(path) else UNKNOWN,
    "os.path.normpath": lambda path: text_of(path),
    "os.path.realpath": lambda path: text_of(path),
    "os.path.relpath": lambda path, *start: UNKNOWN if start else text_of(path),
    "os.path.dirname": lambda path: _split_path(text_of(path))[0],
    "os.path.basename": lambda path: _split_path(text_of(path))[1],
    "os.path.split": lambda path: _split_path(text_of(path)),
    "os.path.splitext": lambda path: (
        text_of(path).removesuffix(suffix_of(text_of(path)) or "\0"),
        suffix_of(text_of(path)),
    ),
    "os.listdir": lambda *_: [UNKNOWN],
    "os.scandir": lambda path=".": [PathText(joined(text_of(path), UNKNOWN))],
    "os.walk": lambda path, *_: walked(text_of(path)),
    "os.fwalk": lambda path=".", *_: [(*row, UNKNOWN) for row in walked(text_of(path))],
    "glob.glob": lambda pattern: [glob_text(choice) for choice in braces(text_of(pattern))[:1]],
    "glob.iglob": lambda pattern: [glob_text(text_of(pattern))],
    "pathlib.Path": lambda *parts: PathText(joined(*[text_of(part) for part in parts]) or "."),
    "pathlib.Path.home": lambda: PathText(os.path.expanduser("~")),
    "tempfile.gettempdir": lambda: "/tmp",
    "tempfile.mktemp": lambda *_: "/tmp/" + UNKNOWN,
    "contextlib.closing": lambda value: value,
    "contextlib.nullcontext": lambda value=None: value,
    "typing.cast": lambda _, value: value,
    "copy.copy": lambda value: value,
    "io.StringIO": lambda *_: Opened("/dev/null"),
    "io.BytesIO": lambda *_: Opened("/dev/null"),
}


def pure(name: str, arguments: list[Any]) -> Any:
    """The value of a pure function; unknown where it would fail or has an unknown argument that it cannot keep."""
    try:
        result = PURE[name](*arguments)
    except Exception:
        return UNKNOWN
    return clipped(result) if type(result) is str else result

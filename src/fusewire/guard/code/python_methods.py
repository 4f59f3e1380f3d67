"""Methods in Python code: of paths, texts, files and collections, and of values that only look like one of them."""

from __future__ import annotations

from fusewire.guard.code import python_effects as known
from fusewire.guard.code.python_calls import Calls
from fusewire.guard.code.python_texts import bytes_method, path_method, text_method
from fusewire.guard.code.python_values import (
    Choice,
    Content,
    Opened,
    PathText,
    Ref,
    Started,
    Thing,
    elements,
    merged,
    spread,
    texts,
)
from fusewire.guard.code.values import UNKNOWN, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Methods(Calls):
    """Follows the methods of values."""

    def call_method(self, receiver: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A method of a value, which may be of any kind."""
        if isinstance(receiver, Choice):
            return merged([self.call_method(option, name, arguments, keywords) for option in receiver.options])
        if name == "\0get":  # what `operator.attrgetter` gave
            return self.attribute(arguments[-1], texts(arguments[:1])[0])
        if name == "\0call":
            return self.call(self.attribute(arguments[-1], texts(arguments[:1])[0]), arguments[1:-1], keywords)
        if isinstance(receiver, Started):
            return self.call_started(receiver, name, arguments, keywords)
        if isinstance(receiver, Opened):
            return self.call_file(receiver, name, arguments, keywords)
        is_vague = isinstance(receiver, Ref) or (isinstance(receiver, str) and receiver == UNKNOWN)
        if isinstance(receiver, PathText) or is_vague:
            result = self.call_path(receiver, name, arguments, keywords)
            if result is not None:
                return result
        if type(receiver) is str and not is_vague:
            return self.call_text(receiver, name, arguments, keywords)
        if isinstance(receiver, (list, dict)):
            return self.call_collection(receiver, name, arguments)
        if isinstance(receiver, bytes):
            return spread(lambda *given: _tried(bytes_method, receiver, name, list(given)), *arguments)
        if isinstance(receiver, Thing):
            self.call_framework(receiver)
        if name in known.SAVERS and arguments and type(arguments[0]) in (str, PathText, Choice):
            self.add("write", arguments[0])
        if name in ("extractall", "extract"):
            return self.call_file(Opened(UNKNOWN), name, arguments, keywords)
        self.call_back(name, arguments, keywords)
        return UNKNOWN

    def call_text(self, text: str, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        names = list(keywords)
        return spread(
            lambda *given: _tried(
                text_method,
                text,
                name,
                list(given[: len(arguments)]),
                dict(zip(names, given[len(arguments) :], strict=True)),
            ),
            *arguments,
            *keywords.values(),
        )

    def call_path(self, path: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A method of a `Path`, or of something unknown that looks like one; None if it is none."""
        own = path if isinstance(path, str) else UNKNOWN
        if name == "open" and (isinstance(path, PathText) or set("wax") & set("".join(texts(arguments[:1])))):
            return self.opened([own, *arguments], keywords)
        if name in known.METHODS:
            doings, least, most = known.METHODS[name]
            if isinstance(path, PathText) or (
                least <= len(arguments) <= most and not name.startswith("read_") and "columns" not in keywords
            ):
                self.do(doings, own, arguments, keywords)
                if name.startswith("read_"):
                    known_text = self.text_in(own)
                    return content_of(own) if known_text is None else known_text
                if name.startswith("write_"):
                    self.file(own, "w")
                    self.wrote(self.file(own, "a"), arguments[:1] or keywords.get("data"))
        if not isinstance(path, PathText):
            return UNKNOWN if name in known.METHODS else None
        listed = self.listed_path(own, name, arguments) if name in ("iterdir", "glob", "rglob") else None
        return spread(lambda *given: path_method(own, name, list(given)), *arguments) if listed is None else listed

    def call_file(self, opened: Opened, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A method of an open file, archive or database."""
        if name in ("extractall", "extract"):
            where = arguments[name == "extract" :][:1] or [keywords.get("path", ".")]
            self.add("write", [joined(folder, UNKNOWN) if folder != "." else UNKNOWN for folder in texts(where)])
        if name in ("execute", "executescript", "executemany") and arguments:
            statement = " ".join(texts(arguments[0])).lstrip().lower()
            if statement.startswith("attach"):
                self.add("write", [word for word in " ".join(texts(arguments[0])).split("'")[1:2] if word])
            elif opened.path != "/dev/null" and not statement.startswith(("select", "pragma table", "explain")):
                self.add("write", opened.path)
        if name in ("cursor", "detach", "__enter__"):
            return opened
        if name in ("write", "writelines") and arguments:
            self.wrote(opened, "".join(texts(arguments[0])))
        if name in ("read", "readlines", "readline") and opened.given is not None:
            if name == "readline":
                return self.taken(opened)
            text, opened.given = opened.given, ""
            return text if name == "read" else text.splitlines(True)
        return content_of(opened.path) if name in ("read", "readlines", "readline") else UNKNOWN

    def call_collection(self, receiver: Any, name: str, arguments: list[Any]) -> Any:
        """A method of a list or dictionary."""
        if isinstance(receiver, dict):
            views = {"items": list(receiver.items()), "keys": list(receiver), "values": list(receiver.values())}
            if name == "get" and arguments and isinstance(arguments[0], str):
                return receiver.get(arguments[0], arguments[1] if len(arguments) > 1 else UNKNOWN)
            return views.get(name, UNKNOWN)
        if name in ("append", "add") and arguments and len(receiver) < 1000:
            receiver.append(arguments[0])
        elif name == "insert" and len(arguments) > 1 and len(receiver) < 1000:
            receiver.insert(arguments[0] if isinstance(arguments[0], int) else 0, arguments[1])
        elif name in ("extend", "update") and arguments:
            receiver += elements(arguments[0]) or [UNKNOWN]
        elif name == "pop":
            return merged(receiver) if receiver else UNKNOWN
        return list(receiver) if name == "copy" else UNKNOWN


def content_of(path: str) -> Content:
    content = Content(UNKNOWN)
    content.path = path
    return content


def _tried(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception:
        return UNKNOWN

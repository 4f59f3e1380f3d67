"""Functions of Python that no table describes: those that fetch other functions, and those with rules of their own."""

from __future__ import annotations

import os.path

from fusewire.guard.code.python_methods import Methods
from fusewire.guard.code.python_values import (
    Bound,
    Class,
    Opened,
    Partial,
    PathText,
    Ref,
    Thing,
    elements,
    merged,
    text_of,
    texts,
)
from fusewire.guard.code.values import UNKNOWN, command_line, glob_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Flags of `os.open` with which a file may change.
_CHANGING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_ENDINGS = {"gztar": ".tar.gz", "bztar": ".tar.bz2", "xztar": ".tar.xz"}


class Special(Methods):
    """The methods that `python_calls.SPECIAL` names."""

    def open_flags(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        flags = arguments[1] if len(arguments) > 1 else keywords.get("flags", 0)
        is_reading = isinstance(flags, int) and not flags & _CHANGING_FLAGS
        path = arguments[0] if arguments else keywords.get("path")
        self.add("read" if is_reading else "write", path)
        return merged([Opened(text) for text in texts(path)] or [UNKNOWN])

    def folder_here(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Where the code is; without a hint `.`, as long as it did not go elsewhere."""
        if self.folder:
            return PathText(self.folder)
        return UNKNOWN if any(kind == "chdir" for kind, _ in self.effects) else PathText(".")

    def get_attribute(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        names = texts(arguments[1]) if len(arguments) > 1 else []
        return merged([self.attribute(arguments[0], name) for name in names]) if names else UNKNOWN

    def set_attribute(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if len(arguments) > 2 and isinstance(arguments[0], Thing):
            arguments[0].names[text_of(arguments[1])] = arguments[2]
        return None

    def import_name(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        names = texts(arguments[0] if arguments else keywords.get("name"))
        return merged([self.own_module(name) or Ref(name) for name in names]) if names else UNKNOWN

    def attribute_getter(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        return Partial(Bound(None, "\0get"), arguments[:1], {})

    def method_caller(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        return Partial(Bound(None, "\0call"), arguments, keywords)

    def partial(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        return Partial(arguments[0], arguments[1:], keywords) if arguments else UNKNOWN

    def make_class(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if len(arguments) < 3 or not isinstance(arguments[2], dict):
            return UNKNOWN
        return Class(arguments[2], list(elements(arguments[1]) or []))

    def filtered(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if arguments and arguments[0] is not None:
            self.call_each(arguments, keywords)
        return arguments[1] if len(arguments) > 1 else UNKNOWN

    def names_of(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        return self.attribute(arguments[0], "__dict__") if arguments else self.names_here(arguments, keywords)

    def names_here(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        found: dict[str, Any] = {"__builtins__": Ref("__builtins__")}
        scope = self.scope
        while scope.parent is not None:
            scope = scope.parent
        return {**found, **scope.names, **self.scope.names}

    def compiled(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        return arguments[0] if arguments else keywords.get("source", UNKNOWN)

    def dictionary(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        given = arguments[0] if arguments else {}
        return {**given, **keywords} if isinstance(given, dict) else UNKNOWN

    def globbed(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        return [glob_text(pattern) for pattern in texts(arguments[0] if arguments else keywords.get("pathname"))]

    def copy_tree(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        self.add("read", arguments[0] if arguments else keywords.get("src"))
        for target in texts(arguments[1] if len(arguments) > 1 else keywords.get("dst")):
            self.add("write", [target, joined(target, UNKNOWN)])
        return UNKNOWN

    def unpack(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        self.add("read", arguments[0] if arguments else keywords.get("filename"))
        where = arguments[1] if len(arguments) > 1 else keywords.get("extract_dir")
        self.add("write", [joined(folder, UNKNOWN) for folder in texts(where)] or UNKNOWN)
        return UNKNOWN

    def pack(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        kind = text_of(arguments[1] if len(arguments) > 1 else keywords.get("format", UNKNOWN))
        for base in texts(arguments[0] if arguments else keywords.get("base_name")):
            self.add("write", base + _ENDINGS.get(kind, f".{kind}"))
        return UNKNOWN

    def database(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        paths = [path.removeprefix("file:").partition("?")[0] for path in texts(arguments[:1])]
        self.add("read", [path for path in paths if path != ":memory:"])
        return Opened(paths[0] if len(paths) == 1 and paths[0] != ":memory:" else "/dev/null") if paths else UNKNOWN

    def input_files(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        files = arguments[0] if arguments else keywords.get("files")
        paths = texts(files) or self.arguments
        in_place = keywords.get("inplace", arguments[1] if len(arguments) > 1 else False)
        self.add("write" if in_place else "read", paths)
        if not paths and self.setting is not None and self.setting.stdin is not None:
            return self.standard_input()
        backup = texts(keywords.get("backup"))
        if in_place and backup:
            self.add("write", [path + suffix for path in paths for suffix in backup if suffix])
        return UNKNOWN

    def run_file(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        self.add("shell", [command_line(["python3", path]) for path in texts(arguments[:1])])
        return UNKNOWN

    def run_module(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        self.add("shell", [command_line(["python3", "-m", name]) for name in texts(arguments[:1])])
        return UNKNOWN

"""Calls in Python code: what is called, with what, and what that does."""

from __future__ import annotations

import os

from fusewire.guard.code import python_effects as known
from fusewire.guard.code.python_listing import Listings
from fusewire.guard.code.python_names import CONSTANTS, LOOKING, RUNNING, SPECIAL, canonical, is_changing
from fusewire.guard.code.python_texts import PURE, path_attribute, pure
from fusewire.guard.code.python_values import (
    Bound,
    Choice,
    Class,
    Content,
    Function,
    Opened,
    Partial,
    PathText,
    Ref,
    Started,
    Thing,
    elements,
    merged,
    spread,
    text_of,
    texts,
)
from fusewire.guard.code.values import UNKNOWN, TooMuch, command_line, copy_targets, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Methods of what modules make, which write the file that they are given.
_WRITING_METHODS = ("ElementTree().write", "ElementTree.parse().write", "take_snapshot().dump", "().dump_stats")

_LISTING = frozenset(("os.listdir", "os.walk", "os.scandir", "glob.glob", "glob.iglob"))

#: Calls inside of calls.
_DEPTH = 12


class Calls(Listings):
    """Follows calls and keeps what they do; expressions and statements are read by those who build on it."""

    def run_function(self, function: Function, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError

    def call_method(self, receiver: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError

    def attribute(self, value: Any, name: str) -> Any:
        """`value.name`."""
        if isinstance(value, Choice):
            return merged([self.attribute(option, name) for option in value.options])
        if isinstance(value, Ref):
            return self.constant(f"{value.name}.{name}")
        if isinstance(value, Opened) and name in ("name", "buffer", "file", "raw"):
            return value.path if name == "name" else value
        if isinstance(value, PathText):
            found = path_attribute(value, name)
            return Bound(value, name) if found is None else found
        if isinstance(value, Class):
            return value.find(name) or UNKNOWN
        if isinstance(value, Thing):
            return self.member(value, name)
        if isinstance(value, Started):
            found = self.of_started(value, name)
            return Bound(value, name) if found is None else found
        return Bound(value, name)

    def member(self, thing: Thing, name: str) -> Any:
        if name in thing.names:
            return thing.names[name]
        found = thing.kind.find(name)
        if not isinstance(found, Function):
            return Bound(thing, name) if found is None else found
        marks = [text_of(getattr(mark, "id", "")) for mark in getattr(found.node, "decorator_list", [])]
        method = found if "staticmethod" in marks else Function(found.node, found.scope, [thing])
        return self.run_function(method, [], {}) if {"property", "cached_property"} & set(marks) else method

    def constant(self, name: str) -> Any:
        """What a module's name stands for: a constant, or a reference to it."""
        name = canonical(name)
        if name in self.assigned:
            return self.assigned[name]
        if name == "sys.stdin" and self.setting is not None and self.setting.stdin is not None:
            return self.standard_input()
        if name == "sys.argv":
            return ["-c", *self.arguments]
        if name.startswith("os.O_"):
            return getattr(os, name[3:], 0)
        if name.startswith("builtins"):
            return Ref(name)
        return CONSTANTS.get(name, Ref(name) if len(name) < 200 else UNKNOWN)

    def call(self, callee: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """The value of a call; what it does is kept."""
        if len(self.running) > _DEPTH:
            raise TooMuch
        if isinstance(callee, Choice):
            return merged([self.call(option, arguments, keywords) for option in callee.options])
        if isinstance(callee, Ref):
            return self.call_name(canonical(callee.name), arguments, keywords)
        if isinstance(callee, Bound):
            return self.call_method(callee.receiver, callee.name, arguments, keywords)
        if isinstance(callee, Function):
            return self.run_function(callee, arguments, keywords)
        if isinstance(callee, Partial):
            return self.call(callee.callee, [*callee.arguments, *arguments], {**callee.keywords, **keywords})
        if isinstance(callee, Class):
            thing = Thing(callee)
            start = self.member(thing, "__init__")
            if isinstance(start, Function):
                self.run_function(start, arguments, keywords)
            self.call_implicit(thing)
            return thing
        if isinstance(callee, Thing):
            return self.call(self.member(callee, "__call__"), arguments, keywords)
        self.call_back("", arguments, keywords)
        return UNKNOWN

    def call_name(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A call of a function of a module, by its name."""
        if name in _LISTING:
            listed = self.listed(name, arguments, keywords)
            if listed is not None:
                return listed
        if name in SPECIAL:
            return getattr(self, SPECIAL[name])(arguments, keywords)
        if known.is_command(name):
            return self.started(name, arguments, keywords)
        if name in known.FUNCTIONS:
            self.do(known.FUNCTIONS[name], None, arguments, keywords)
            return UNKNOWN
        if name in known.OPENERS:
            return self.opened(arguments, keywords)
        if name in known.INTO_FOLDERS:
            return self.copied(name, arguments, keywords)
        if name in RUNNING:
            return self.executed(name, arguments, keywords)
        if name in PURE:
            return spread(lambda *given: pure(name, list(given)), *arguments)
        if name.startswith("tempfile."):
            return self.temporary(name, keywords)
        if name.startswith("pathlib.Path.") and arguments:
            return self.call_method(PathText(text_of(arguments[0])), name[13:], arguments[1:], keywords)
        if name.startswith("str.") and arguments:
            return self.call_method(arguments[0], name[4:], arguments[1:], keywords)
        if name.startswith(("os.", "shutil.")) and name.endswith(UNKNOWN):
            self.add("write", arguments or UNKNOWN)  # any of the functions there
            return UNKNOWN
        if name.startswith("code.") and name.endswith((".runsource", ".runcode", ".push")):
            return self.executed(name, arguments, keywords)
        if name.endswith(_WRITING_METHODS):
            self.add("write", arguments[:1])
            return UNKNOWN
        self.vague = self.vague or name not in LOOKING
        if "()." in name:
            return self.call_method(Ref(name.rpartition(".")[0]), name.rpartition(".")[2], arguments, keywords)
        if name not in LOOKING:
            self.call_back(name, arguments, keywords)
        return Ref(name + "()") if len(name) < 200 else UNKNOWN

    def do(self, doings: tuple[known.Doing, ...], own: Any, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Keep what a function of our tables does to its arguments."""
        below = texts(keywords.get("dir_fd", keywords.get("src_dir_fd")))
        for kind, position, keyword in doings:
            if below and 0 <= position < len(arguments):
                self.add(kind, [joined(folder, text) for folder in below for text in texts(arguments[position])])
            elif position < 0:
                self.add(kind, own)
            elif position < len(arguments) or keyword in keywords:
                self.add(kind, arguments[position] if position < len(arguments) else keywords[keyword])
            if kind == "chdir" and self.effects and self.folder:
                self.folder = joined(self.folder, self.effects[-1][1])

    def opened(self, arguments: list[Any], keywords: dict[str, Any], mode_at: int = 1) -> Any:
        """`open(path, mode)`: reading, unless the mode says or may say otherwise."""
        path = arguments[0] if arguments else keywords.get("file", keywords.get("filename", keywords.get("name")))
        mode = arguments[mode_at] if len(arguments) > mode_at else keywords.get("mode", "r")
        modes = texts(mode) or ["r"]
        is_changing = any(set("wax+" + UNKNOWN) & set(option) for option in modes)
        self.add("write" if is_changing else "read", path)
        return self.file(path, "".join(modes))

    def copied(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`shutil.copy` and `shutil.move`, whose target may be a folder."""
        sources = texts(arguments[0] if arguments else keywords.get("src"))
        targets = texts(arguments[1] if len(arguments) > 1 else keywords.get("dst"))
        self.add(known.INTO_FOLDERS[name], sources)
        self.add("write", [end for source in sources for target in targets for end in copy_targets(source, target)])
        return merged(targets or [UNKNOWN])

    def executed(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`exec` and its kin: known text is read like the code around it."""
        given = [*arguments[:1], *[keywords[key] for key in ("stmt", "setup") if key in keywords]]
        given += arguments[1:2] if name.startswith("timeit") else []
        if name in ("cProfile.run", "profile.run"):
            self.add("write", arguments[1:2] or keywords.get("filename"))
        results = []
        for option in (
            option for value in given for option in (value.options if isinstance(value, Choice) else [value])
        ):
            if isinstance(option, Function):
                results.append(self.run_function(option, [], {}))
            elif isinstance(option, Content):
                self.add("shell", command_line(["python3", option.path]))
            elif isinstance(option, (str, bytes)):
                results.append(self.run_text(texts(option)[0], name == "eval"))
            else:
                self.add("write", UNKNOWN)
        return merged(results) if results else UNKNOWN

    def temporary(self, name: str, keywords: dict[str, Any]) -> Any:
        """Files of `tempfile`: harmless, unless their folder is named."""
        folders = texts(keywords.get("dir"))
        prefix = (texts(keywords.get("prefix")) or ["tmp"])[0]
        path = joined(folders[0] if folders else "/tmp", prefix + UNKNOWN)
        if folders:
            self.add("write", path)
        kind = name.rpartition(".")[2]
        return (UNKNOWN, path) if kind == "mkstemp" else path if kind == "mkdtemp" else Opened(path)

    def call_implicit(self, thing: Thing) -> None:
        """Methods like `__str__` and `__add__`, which are called without their name."""
        for name, method in list(thing.kind.names.items()):
            is_implicit = name.startswith("__") and name not in ("__init__", "__enter__", "__exit__", "__call__")
            if isinstance(method, Function) and is_implicit:
                self.run_function(Function(method.node, method.scope, [thing]), [], {})

    def call_framework(self, thing: Thing) -> None:
        """A method that the class has from elsewhere may call any that it has itself."""
        if all(isinstance(base, Class) for base in thing.kind.bases):
            return
        for name, method in list(thing.kind.names.items()):
            if isinstance(method, Function) and name != "__init__":
                self.run_function(Function(method.node, method.scope, [thing]), [], {})

    def call_back(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Functions that are handed to another one, which will call them with what it got besides."""
        is_each = name.rpartition(".")[2] in (
            "map",
            "imap",
            "imap_unordered",
            "starmap",
            "filter",
            "map_async",
            "reduce",
        )
        for at, argument in enumerate(arguments):
            if is_each and _is_callable(argument):
                self.call_each([argument, *arguments[at + 1 :]], {})
            elif _is_callable(argument):
                self.call(argument, arguments[at + 1 :] or [UNKNOWN], {})
        target = keywords.get("target")
        for keyword, value in keywords.items():
            if keyword == "target":
                self.call(target, elements(keywords.get("args", [])) or [], {})
            elif _is_callable(value):
                self.call(value, [UNKNOWN], {})

    def call_each(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`map(function, values)`."""
        rows = [elements(value) for value in arguments[1:]]
        if not rows or any(row is None for row in rows):
            return [self.call(arguments[0], [UNKNOWN for _ in rows], {})] if arguments else UNKNOWN
        return [self.call(arguments[0], list(row), {}) for row in zip(*[row or [] for row in rows], strict=False)]


def _is_callable(value: Any) -> bool:
    if isinstance(value, Ref):
        return is_changing(value.name)
    if isinstance(value, Bound):
        return isinstance(value.receiver, PathText) and value.name in known.METHODS
    return isinstance(value, (Function, Partial))

"""What Python code sees of the world around it: variables, input, modules, files, and what other programs print."""

from __future__ import annotations

import os.path

from fusewire.guard.code import python_effects as known
from fusewire.guard.code.python_values import Class, Opened, Ref, Scope, Started, is_known, merged, text_of, texts
from fusewire.guard.code.values import UNKNOWN, Effect, joined
from fusewire.words import quoted
from fusewire.wrappers import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.guard.code.setting import Setting

#: Modules inside of modules.
_MODULES = 20


class Surroundings:
    """Keeps effects, and answers what the setting knows."""

    def __init__(self, arguments: list[str], folder: str | None, setting: Setting | None = None) -> None:
        self.effects: list[Effect] = []
        self.arguments = arguments
        self.folder = folder
        self.setting = setting
        self.scope = Scope()
        self.running: list[object] = []
        self.assigned: dict[str, Any] = {}
        #: how many branches are followed that may not be taken
        self.unsure = 0
        #: something ran that may print anything
        self.vague = False
        self.modules: dict[str, Class | None] = {}
        self.paths = list(setting.paths) if setting is not None else []
        #: variables of the environment that the code sets
        self.variables: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._input: Opened | None = None

    def run_text(self, text: str, is_expression: bool) -> Any:
        raise NotImplementedError

    def add(self, kind: str, value: Any) -> None:
        self.effects += [(kind, text) for text in texts(value) if text]

    # -- files ----------------------------------------------------------------------------------------------

    def full(self, path: str) -> str:
        return os.path.normpath(joined(self.folder or "", path))

    def text_in(self, path: str) -> str | None:
        """What the line or the code itself has written into a file; None if neither did."""
        if self.setting is None or UNKNOWN in path:
            return None
        if path == "/dev/stdin":
            return self.setting.stdin
        full = self.full(path)
        return self._written[full] if full in self._written else self.setting.read(full)

    def file(self, path: Any, mode: str) -> Any:
        """An open file, with what is in it as far as that is known."""
        if path == 0 and type(path) is int:
            return self.standard_input()
        found = []
        for text in texts(path):
            opened = Opened(text)
            if set("wx") & set(mode):
                opened.text = ""
                self.wrote(opened, "")
            elif "a" in mode:
                opened.text = self.text_in(text)
            else:
                opened.given = self.text_in(text)
            found.append(opened)
        return merged(found or [UNKNOWN])

    def wrote(self, opened: Opened, value: Any) -> None:
        """Text that goes into an open file."""
        parts = texts(value)
        text = parts[0] if len(parts) == 1 and not self.unsure else UNKNOWN if parts else ""
        if opened.text is not None:
            opened.text += text
            self.content(opened.path, opened.text)

    def content(self, path: str, text: str) -> None:
        if self.setting is None or UNKNOWN in path or (UNKNOWN in text and self.text_in(path) is None):
            return
        self._written[self.full(path)] = text
        self.effects.append(("file", f"{path}\0{text}"))

    # -- input and output -----------------------------------------------------------------------------------

    def standard_input(self) -> Opened:
        if self._input is None:
            self._input = Opened("/dev/stdin")
            self._input.given = self.setting.stdin if self.setting is not None else None
        return self._input

    def read_line(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`input()`."""
        if arguments:
            self.tell(text_of(arguments[0]))
        line = self.taken(self.standard_input())
        return line if line is None else line.rstrip("\n")

    def taken(self, opened: Opened) -> str:
        """The next line of a file."""
        if opened.given is None or self.unsure:
            return UNKNOWN
        line, end, opened.given = opened.given.partition("\n")
        return line + end

    def tell(self, text: str) -> None:
        if self.setting is not None:
            self.effects.append(("print", UNKNOWN if self.unsure else text))

    def show(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`print(...)`."""
        between, end = (keywords.get(name) for name in ("sep", "end"))
        text = (" " if between is None else text_of(between)).join(text_of(value) for value in arguments)
        text += "\n" if end is None else text_of(end)
        stream = keywords.get("file")
        if isinstance(stream, Opened):
            self.wrote(stream, text)
        elif not isinstance(stream, Ref) or stream.name != "sys.stderr":
            self.tell(text)
        return None

    def write_out(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`sys.stdout.write(...)`."""
        self.tell("".join(texts(arguments[:1])))
        return UNKNOWN

    # -- variables ------------------------------------------------------------------------------------------

    def variable(self, name: Any) -> Any:
        if not isinstance(name, str):
            return UNKNOWN
        if name in self.variables:
            return self.variables[name]
        found = self.setting.variable(name) if self.setting is not None else None
        if found is None and name == "HOME":
            return os.path.expanduser("~")
        return UNKNOWN if found is None else found

    def environment(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`os.getenv(name, default)`."""
        found = self.variable(arguments[0]) if arguments else UNKNOWN
        return merged([arguments[1], UNKNOWN]) if found == UNKNOWN and len(arguments) > 1 else found

    # -- programs -------------------------------------------------------------------------------------------

    def started(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A program that is run, and what is known of what it prints."""
        given = keywords.get("env")
        variables = {**self.variables, **(given if isinstance(given, dict) else {})}
        prefix = "".join(f"export {key}={quoted(text_of(value))}; " for key, value in variables.items())
        lines = [prefix + line for line in known.command_lines(name, arguments, keywords)]
        self.add("shell", lines)
        self.vague = True
        if self.setting is None and not name.endswith("Popen"):
            return Ref(name + "()")
        started = Started(lines, name)
        if name in ("subprocess.check_output", "subprocess.getoutput", "commands.getoutput"):
            return self.output(started)
        if name == "subprocess.getstatusoutput":
            return (0, self.output(started))
        return self.output_file(started) if name == "os.popen" else started

    def output(self, started: Started) -> str:
        if self.setting is None or len(started.lines) != 1 or UNKNOWN in started.lines[0]:
            return UNKNOWN
        if started.printed is None:
            found = self.setting.output(started.lines[0])
            started.printed = UNKNOWN if found is None else found
        return started.printed

    def output_file(self, started: Started) -> Opened:
        opened = Opened("/dev/null")
        opened.given = self.output(started)
        return opened

    def of_started(self, started: Started, name: str) -> Any:
        """An attribute of what `subprocess` gives; None for a method."""
        if name == "stdout":
            return self.output_file(started) if started.name.endswith("Popen") else self.output(started)
        return started if name in ("stdin", "buffer") else None

    def call_started(self, started: Started, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if name in ("communicate", "write", "writelines"):
            told = arguments[:1] or [keywords.get("input")]
            words = started.lines[0].split() if started.lines else []
            if words and words[0].rpartition("/")[2] in SHELLS:
                self.add("shell", told)
        if name == "communicate":
            return (self.output(started), UNKNOWN)
        return started if name == "__enter__" else UNKNOWN

    # -- modules --------------------------------------------------------------------------------------------

    def own_module(self, name: str) -> Class | None:
        """A module that the line itself has written: its code runs when it is imported."""
        if self.setting is None or name in self.modules or len(self.modules) > _MODULES:
            return self.modules.get(name)
        path = name.replace(".", "/")
        files = (joined(folder, path + end) for folder in self.paths for end in (".py", "/__init__.py"))
        text = next((text for text in map(self.text_in, files) if text is not None), None)
        if text is None or not is_known(text):
            return None
        self.modules[name] = None
        outside, self.scope = self.scope, Scope()
        self.scope.names["__name__"] = name
        self.run_text(text, False)
        module = Class(self.scope.names, [])
        self.modules[name], self.scope = module, outside
        return module

    def search_path(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`sys.path.insert(0, folder)`, `sys.path.append(folder)`."""
        self.paths += [self.full(path) for path in texts(arguments[-1:])]
        return None

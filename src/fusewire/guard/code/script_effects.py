"""What a call in a script does: to the files that it is given, or by the program that it runs."""

from __future__ import annotations

from fusewire.guard.code import script_tables as tables
from fusewire.guard.code.brackets import matching
from fusewire.guard.code.script_values import Values
from fusewire.guard.code.values import UNKNOWN, Effect, command_line, copy_targets, in_folder, joined
from fusewire.wrappers import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.lexer_texts import Token
    from fusewire.guard.code.setting import Setting

#: Flags with which a file may be changed, as words in the code.
_FLAG_WORDS = ("WRONLY", "RDWR", "CREAT", "TRUNC", "APPEND")


class ScriptEffects(Values):
    """Keeps what calls do."""

    def __init__(self, language: str, code: str, arguments: list[str], setting: Setting | None = None) -> None:
        super().__init__(language, arguments, setting)
        self.effects: list[Effect] = []
        self.functions = tables.functions_of(language, code)
        self.pathnames: set[str] = set()
        self.depth = 0
        if language == "perl" and "$^I" in code:
            self.effects += [("write", path) for path in arguments]

    def call_function(self, name: str, arguments: list[list[Token]]) -> None:
        given = [argument for argument in arguments if not self.is_options(argument)]
        if self.language == "perl" and not given and name in ("unlink", "rmdir", "mkdir"):
            self.effects += [(self.functions[name][0][0], text) for text in self.names.get("$_", [UNKNOWN])]
        values = [self.value(argument) or [UNKNOWN] for argument in given]
        if (
            self.language == "perl"
            and len(values) == 1
            and len(values[0]) > 1
            and self.functions[name][0][1:] != (0, True)
        ):
            values = [[text] for text in values[0]]  # a list is as good as its elements
        for kind, first, with_rest in self.functions[name]:
            chosen = values[first:] if with_rest else values[first : first + 1]
            found = [text for options in chosen for text in options]
            if kind == "delete" and "recursive" in [token.text for argument in arguments for token in argument]:
                kind = "delete_tree"
            if (
                kind == "write"
                and first == 1
                and name.rpartition(".")[2] in ("cp", "mv", "copy", "move", "cp_r", "install")
            ):
                found = [end for source in values[0] for target in found for end in copy_targets(source, target)]
            if kind == "write" and name.rpartition(".")[2] in ("cp_r", "cpSync") and first == 1:
                found += [joined(target, UNKNOWN) for target in found]
            self.effects += [(kind, text) for text in found if text]

    def is_options(self, argument: list[Token]) -> bool:
        """Whether the argument is no path, but `{recursive: true}` or `force: true`."""
        if not argument:
            return True
        if argument[0].text == "{" and argument[0].kind == "sign":
            return True
        return self.language == "ruby" and len(argument) > 1 and argument[1].text == ":" and argument[0].kind == "name"

    def call_open(self, name: str, arguments: list[list[Token]]) -> None:
        """`open(path, mode)`."""
        path_at, mode_at = tables.OPENERS[self.language][name]
        paths = self.value(arguments[path_at]) if len(arguments) > path_at else []
        rest = arguments[mode_at : mode_at + 1]
        if name.endswith("open") and self.language == "ruby" and paths and paths[0].startswith("|"):
            self.effects += [("shell", path[1:].strip()) for path in paths]
            return
        if rest and rest[0] and rest[0][0].text == "mode" and len(rest[0]) > 2:
            rest = [rest[0][2:]]
        words = " ".join(token.text for token in rest[0]) if rest else ""
        is_function = words.startswith(("(", "function", "async", "{", "encoding")) or "=>" in words
        modes = ["r"] if not rest or is_function else self.value(rest[0]) or ["r"]
        if any(flag in words for flag in _FLAG_WORDS):
            modes = ["w"]
        elif "RDONLY" in words:
            modes = ["r"]
        is_changing = any(set("wax+c" + UNKNOWN) & set(mode.partition(":")[0]) for mode in modes)
        self.effects += [("write" if is_changing else "read", path) for path in paths]

    def call_perl_open(self, name: str, arguments: list[list[Token]]) -> None:
        """`open(FH, '>', path)`, `open(FH, '>path')`, `open(FH, 'command |')`."""
        values = [self.value(argument) or [UNKNOWN] for argument in arguments[1:]]
        if name == "sysopen" and values:
            flags = " ".join(token.text for argument in arguments[2:3] for token in argument)
            is_changing = flags not in ("0", "O_RDONLY")
            self.effects += [("write" if is_changing else "read", path) for path in values[0]]
            return
        for mode in (option.strip() for option in (values[0] if values else [])):
            if len(values) > 1 and mode in ("-|", "|-"):
                words = [text for options in values[1:] for text in options]
                self.effects.append(("shell", words[0] if len(words) == 1 else command_line(words)))
            elif len(values) > 1:
                is_changing = ">" in mode or "+" in mode or UNKNOWN in mode
                is_memory = arguments[2][0].text == "\\"
                found = [path for path in values[1] if not is_memory and "&" not in mode]
                self.effects += [("write" if is_changing else "read", path) for path in found]
            elif mode.startswith("|") or mode.endswith("|"):
                self.effects.append(("shell", mode.strip("| ")))
            elif mode.startswith((">", "+")) and not mode.startswith((">&", ">>&")):
                self.effects.append(("write", mode.lstrip("+<> ")))
            elif mode not in ("-", ">-") and not mode.startswith((">&", ">>&", "<&")):
                self.effects.append(("write" if mode == UNKNOWN else "read", mode.lstrip("< ")))

    def call_command(self, name: str, arguments: list[list[Token]]) -> None:
        """A program that is run: a line for a shell, or its words."""
        folder = self.folder_option(arguments)
        if self.language == "perl" and arguments and arguments[0][0].text == "{":
            # `system {program} name, ...`: what runs is in the braces.
            arguments = [arguments[0][1 : matching(arguments[0], 0)], *arguments[1:]]
        is_shell = any(
            a.text == "shell" and b.text == ":"
            for argument in arguments
            for a, b in zip(argument, argument[1:], strict=False)
        )
        given = [argument for argument in arguments if not self.is_options(argument)]
        if self.language == "ruby" and len(given) > 1 and any(token.text == "=>" for token in given[-1]):
            given = given[:-1]
        if self.language in ("php", "lua"):
            given = given[:1]
        values = [self.value(argument) or [UNKNOWN] for argument in given]
        values = values[: 2 if self.language == "node" else len(values)]
        if not values:
            return
        is_list = given[0][0].text == "[" or name.endswith(
            ("spawn", "spawnSync", "File", "FileSync", "fork", "forkSync")
        )
        is_list = is_list and not (self.language == "ruby" and len(given) == 1 and given[0][0].text != "[")
        is_callback = (
            self.language == "node"
            and len(given) > 1
            and given[1][0].text != "["
            and given[1][0].text not in self.names
        )
        if (name.endswith(("exec", "execSync")) and self.language == "node") or is_callback:
            values = values[:1]
        words = [text for options in values for text in options]
        if is_shell:
            lines = [" ".join(words)]
        elif (
            (is_list and (len(words) > 1 or self.language == "node"))
            or len(values) > 1
            or (len(words) > 1 and (given[0][0].text[:1] == "@" or given[0][0].kind == "words"))
        ):
            lines = [command_line(words)]
        else:
            lines = words
        self.effects += [("shell", in_folder(line, folder)) for line in lines if line]
        if self.language == "node" and lines and lines[0].split(" ")[0].rpartition("/")[2] in SHELLS:
            self.effects += [("shell", line) for line in self.option(arguments, "input")]

    def option(self, arguments: list[list[Token]], name: str) -> list[str]:
        """The value in `{name: value}`."""
        for argument in arguments:
            for at, token in enumerate(argument[:-2]):
                if token.text == name and argument[at + 1].text == ":":
                    return self.value([argument[at + 2]])
        return []

    def folder_option(self, arguments: list[list[Token]]) -> str | None:
        """The folder in `{cwd: 'x'}` or `chdir: 'x'`."""
        for argument in arguments:
            for at, token in enumerate(argument[:-2]):
                if token.text in ("cwd", "chdir") and argument[at + 1].text in (":", "=>"):
                    return (self.value([argument[at + 2]]) or [UNKNOWN])[0]
        return None

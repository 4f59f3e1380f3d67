"""Calls in scripts: the chain of names before the brackets, what is in them, and what that does."""

from __future__ import annotations

from fusewire.guard.code import script_tables as tables
from fusewire.guard.code.brackets import matching, split
from fusewire.guard.code.script_effects import ScriptEffects
from fusewire.guard.code.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.lexer_texts import Token

_ENDS = frozenset(("if", "unless", "for", "foreach", "while", "until", "and", "or", "do", "then", "end", "else"))
_END_SIGNS = frozenset((";", ")", "]", "}", "||", "&&", "?"))


class ScriptCalls(ScriptEffects):
    """Keeps what calls do; `scripts` walks over the words and finds them."""

    def run_text(self, text: str) -> None:
        raise NotImplementedError

    def module(self, name: str) -> str:
        """`node:fs/promises` is `fs`."""
        return (
            name.removeprefix("node:").removesuffix("/promises").replace("fs-extra", "fs").replace("graceful-fs", "fs")
        )

    def resolved(self, path: list[str]) -> str:
        """The full name of a chain: aliases for what they stand for, without what makes no difference."""
        head = self.aliases.get(path[0], path[0].replace("::", "."))
        parts = [head.removesuffix(".promises"), *path[1:]]
        name = ".".join(part for part in parts if part not in ("promises", "default", "call", "apply", "bind"))
        if self.language == "php":
            name = name.lstrip("\\").lower()
        return name.removeprefix("CORE.").removeprefix("CORE.GLOBAL.").removeprefix("globalThis.").removeprefix("::")

    def known(self, name: str) -> str:
        """The name by which our tables know the function; empty if they do not."""
        for own in (name, f"*.{name.rpartition('.')[2]}"):
            for table in (self.functions, tables.COMMANDS, tables.OPENERS, tables.RUNNING):
                if own in (table if table is self.functions else table[self.language]):
                    return own
        return name if self.language == "perl" and name in ("open", "sysopen") else ""

    def reference(self, tokens: list[Token]) -> str:
        """The full name of a module or function that is meant, but not called; empty if there is none."""
        path: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.kind == "name" and token.text in ("await",):
                at += 1
            elif token.text in ("require", "import") and at + 2 < len(tokens) and tokens[at + 2].kind == "text":
                path = [self.module(tokens[at + 2].text)]
                at += 4
            elif token.kind == "text" and self.language == "php" and len(tokens) == 1:
                return token.text if self.known(token.text.lower()) else ""
            elif token.kind == "name":
                path.append(token.text)
                at += 1
            elif token.kind == "sign" and token.text in self.access:
                at += 1
            else:
                return ""
        name = self.resolved(path) if path else ""
        is_module = name in ("fs", "child_process", "path", "os", "io", "FileUtils", "File", "process", "vm")
        return name if is_module or self.known(name) else ""

    def follow(self, tokens: list[Token], at: int, head: str = "") -> None:
        """Follow a chain of names and calls that begins at `at`."""
        path = [head, tokens[at].text] if head else [tokens[at].text]
        receiver: list[str] | None = self.names.get(path[0]) if path[0] in self.pathnames else None
        at += 1
        while at < len(tokens):
            token = tokens[at]
            if (
                token.kind == "sign"
                and token.text in self.access
                and at + 1 < len(tokens)
                and tokens[at + 1].kind == "name"
            ):
                path.append(tokens[at + 1].text)
                at += 2
            elif token.kind == "sign" and token.text == "[" and self.language in ("node", "lua"):
                end = matching(tokens, at)
                self.spend(end - at)
                path += (self.value(tokens[at + 1 : end]) or [UNKNOWN])[:1]
                at = end + 1
            elif token.kind == "sign" and token.text in ("(", "?."):
                if token.text == "?.":
                    at += 1
                    continue
                end = matching(tokens, at)
                self.spend(end - at)
                inner = tokens[at + 1 : end]
                if path[-1] in ("require", "import") and inner[:1] and inner[0].kind == "text":
                    self.run_files([inner[0].text])
                    path = [self.module(inner[0].text)]
                else:
                    receiver = self.called(path, split(inner), receiver)
                    path = [*path[:-1], path[-1] + "()"]
                at = end + 1
                if at < len(tokens) and tokens[at].text not in self.access and tokens[at].text not in ("(", "["):
                    return
            else:
                break
        if path[-1].endswith("()") or (at < len(tokens) and tokens[at].text in ("=>", "=", "==", "::")):
            return
        if self.language in ("perl", "ruby") or (
            self.language == "lua" and at < len(tokens) and tokens[at].kind == "text"
        ):
            if self.is_key(tokens, at):
                return
            self.called(path, split(self.bare_arguments(tokens, at)), receiver)

    def is_key(self, tokens: list[Token], at: int) -> bool:
        """Whether the name before `at` is only a key: `$h{unlink}`, `:delete`, `delete: 1`."""
        after = tokens[at].text if at < len(tokens) else ""
        in_braces = after == "}" and at > 2 and tokens[at - 2].text == "{" and tokens[at - 3].text[:1] in ("$", ">")
        return in_braces or (after == ":" and self.language == "ruby")

    def bare_arguments(self, tokens: list[Token], at: int) -> list[Token]:
        """The arguments of a call without brackets: up to what ends the statement."""
        end, depth = at, 0
        while end < len(tokens):
            token = tokens[end]
            if token.kind == "sign":
                if not depth and token.text in _END_SIGNS:
                    break
                depth += (token.text in "([{") - (token.text in ")]}")
            ends_line = token.kind == "end" and self.language == "ruby"
            if not depth and (ends_line or (token.kind == "name" and token.text in _ENDS)):
                break
            end += 1
        self.spend(end - at)
        return tokens[at:end]

    def called(self, path: list[str], arguments: list[list[Token]], receiver: list[str] | None) -> list[str] | None:
        """Keep what the call does; what it gives, if that is a path with methods of its own."""
        if path[-1] in ("send", "public_send", "__send__") and arguments:
            path, arguments = [*path[:-1], *self.value(arguments[0])[:1]], arguments[1:]
        if path[-1] in ("call", "apply") and self.language == "node" and len(path) > 1:
            path, arguments = self.applied(path, arguments)
        name = self.resolved(path)
        if name in ("Pathname", "Pathname.new", "path", "Path.Tiny.path"):
            return [text for argument in arguments for text in self.value(argument)]
        if receiver is not None and self.language in ("ruby", "perl"):
            self.call_pathname(path[-1], receiver, arguments)
            return None
        if self.setting is not None and name in tables.PRINTS[self.language]:
            self.prints(arguments, tables.PRINTS[self.language][name])
        if name in ("do", "require", "load", "require_relative", "dofile") and arguments and self.setting is not None:
            self.run_files(self.value(arguments[0]))
        own = self.known(name)
        if name in ("array_map", "array_walk", "array_filter") and len(arguments) > 1:
            at = 0 if name == "array_map" else 1
            self.call_known(self.known("".join(self.value(arguments[at])).lower()), [arguments[1 - at]])
        elif own:
            self.call_known(own, arguments)
        elif name.endswith(UNKNOWN) and name.split(".")[0] in ("fs", "os"):
            self.effects += [("write", text) for argument in arguments[:1] for text in self.value(argument)]
        return None

    def prints(self, arguments: list[list[Token]], end: str) -> None:
        """`print "a", $b`: known if all of it is."""
        is_handle = bool(arguments) and len(arguments[0]) > 1 and arguments[0][0].kind == "name"
        if is_handle and arguments[0][1].kind in ("text", "name") and arguments[0][0].text != "join":
            return
        found = [self.value(argument) for argument in arguments]
        known = all(len(options) == 1 for options in found)
        between = " " if self.language == "node" else "\t" if self.language == "lua" else ""
        text = between.join(options[0] for options in found) + end if known and found else UNKNOWN
        self.effects.append(("print", text))

    def run_files(self, names: list[str]) -> None:
        """Files of code that the line has written, which the code loads."""
        ends = {"node": ("", ".js", ".cjs", ".mjs", "/index.js"), "ruby": ("", ".rb"), "lua": ("", ".lua")}
        for name in names:
            for end in ends.get(self.language, ("",)):
                text = self.setting.read(name + end) if self.setting is not None and "/" in name else None
                if text is not None and UNKNOWN not in text:
                    self.run_text(text)
                    break

    def applied(self, path: list[str], arguments: list[list[Token]]) -> tuple[list[str], list[list[Token]]]:
        """What `f.call(this, a)`, `f.apply(this, [a])` and `Reflect.apply(f, this, [a])` call, and with what."""
        if path == ["Reflect", "apply"] and len(arguments) > 2:
            path, arguments = [self.reference(arguments[0]), "apply"], arguments[1:]
        given = arguments[1:]
        if path[-1] == "apply" and given and given[0][0].text == "[":
            given = split(given[0][1:-1])
        return path[:-1], given

    def call_pathname(self, name: str, receiver: list[str], arguments: list[list[Token]]) -> None:
        perl = {
            "spew": "write",
            "spew_utf8": "write",
            "append": "write",
            "remove": "delete",
            "touch": "write",
            "move": "move",
        }
        kind = (tables.PATHNAME if self.language == "ruby" else {**perl, "remove_tree": "delete_tree"}).get(name)
        if kind is None:
            return
        self.effects += [(kind, text) for text in receiver]
        if kind == "move" and arguments:
            self.effects += [("write", text) for text in self.value(arguments[0])]

    def follow_reference(self, tokens: list[Token], values: list[str]) -> None:
        """A function that is handed to a loop: `fs.unlinkSync`, `File.method(:delete)`."""
        from fusewire.guard.code.lexer_texts import Token as Word

        words = [token.text for token in tokens]
        if "method" in words and len(tokens) > 4 and tokens[4].kind == "text":
            name = f"{words[0]}.{words[4]}"
        else:
            name = self.reference(tokens)
        own = self.known(name) if name else ""
        if own:
            self.call_known(own, [[Word("words", "", list(values))]])

    def call_known(self, name: str, arguments: list[list[Token]]) -> None:
        """A call of a function that our tables know."""
        if name in tables.RUNNING[self.language]:
            self.call_running(arguments)
        elif name in tables.COMMANDS[self.language]:
            self.call_command(name, arguments)
        elif name in tables.OPENERS[self.language]:
            self.call_open(name, arguments)
        elif name in ("open", "sysopen"):
            self.call_perl_open(name, arguments)
        elif name in self.functions:
            self.call_function(name, arguments)

    def call_running(self, arguments: list[list[Token]]) -> None:
        is_block = self.language == "perl" and (not arguments or (arguments[0][:1] and arguments[0][0].text == "{"))
        if is_block or not arguments:
            return
        if self.language in ("lua", "php") and arguments[0][0].kind == "name" and arguments[0][0].text == "function":
            return
        for text in self.value(arguments[-1] if self.language == "node" else arguments[0]):
            self.run_text(text)

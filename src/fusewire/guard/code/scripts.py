"""Scripts in Perl, Ruby, JavaScript, PHP and Lua, read word by word in the order in which they are written."""

from __future__ import annotations

from fusewire.guard.code import script_tables as tables
from fusewire.guard.code.brackets import CLOSING
from fusewire.guard.code.lexer import Lexer
from fusewire.guard.code.lexer_texts import Token
from fusewire.guard.code.script_bindings import Bindings
from fusewire.guard.code.values import UNKNOWN, Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.setting import Setting

#: Code without any of these words cannot change anything.
_WORDS = (
    *(
        "open",
        "write",
        "append",
        "WriteStream",
        "rite",
        "unlink",
        "delete",
        "remove",
        "rename",
        "move",
        "mv",
        "rm",
        "cp",
    ),
    *(
        "copy",
        "truncate",
        "chmod",
        "chown",
        "chgrp",
        "link",
        "ln",
        "mk",
        "touch",
        "utime",
        "system",
        "exec",
        "spawn",
        "qx",
    ),
    *(
        "popen",
        "`",
        "%x",
        "eval",
        "Function",
        "load",
        "runIn",
        "chdir",
        "cd",
        "passthru",
        "send",
        "file",
        "File",
        "read",
    ),
    *("capture", "install", "output", "input", "lines", "fork", "import", "rimraf", "sync", "empty", "ensure", "$^I"),
    *("\\x", "\\u", "[", "spew", "assert", "creat", "$^I"),
)

#: Code that may print, or run a file that the line has written.
_TELLING = ("print", "say", "puts", "log", "echo", "require", "do ")

#: Longer code than anybody writes behind `-e`.
_LONGEST_CODE = 100_000
_SURPRISE: Effect = ("write", UNKNOWN)

#: Words that code may have which only prints.
_PRINTING = frozenset("print say printf puts echo console log process stdout write my let const var join".split())

#: Words behind which the name of something new follows.
_DEFINING = frozenset(("sub", "def", "function", "class", "module", "package", "use", "no"))


def script_effects(language: str, code: str, arguments: list[str], setting: Setting | None = None) -> list[Effect]:
    """What the script would do; something unknown if it is too much to read."""
    if len(code) > _LONGEST_CODE:
        return [_SURPRISE]
    if language in ("sed", "ed"):
        from fusewire.guard.code.editors import ed_effects, sed_effects

        stdin = setting.stdin if setting is not None else None
        return sed_effects(code, stdin) if language == "sed" else ed_effects(code, arguments)
    if language == "awk":
        from fusewire.guard.code.awk import awk_effects

        return awk_effects(code, arguments, setting)
    words = _WORDS if setting is None else (*_WORDS, *_TELLING)
    if language not in tables.FUNCTIONS or not any(word in code for word in words):
        return []
    script = Script(language, code, arguments, setting)
    try:
        tokens = Lexer(language, code).read()
        script.scan(tokens)
        if language == "perl" and "$^I" in code:
            script.effects += [("write", path) for path in script.names.get("@ARGV", [])]
    except Exception:
        return [*script.effects, _SURPRISE]
    if setting is not None and not script.is_plain(tokens):
        script.effects.append(("print", UNKNOWN))
    return script.effects


class Script(Bindings):
    """Walks over the words: keeps what variables are, follows calls."""

    def run_text(self, text: str) -> None:
        """Text that is run as code, read like the code around it."""
        self.depth += 1
        if text == UNKNOWN or self.depth > 4:
            self.effects.append(_SURPRISE)
        else:
            self.scan(Lexer(self.language, text).read())
        self.depth -= 1

    def scan(self, tokens: list[Token]) -> None:
        """Follow the words from the first to the last."""
        for at, token in enumerate(tokens):
            if self.language == "perl" and (not at or tokens[at - 1].text in (";", "{", "}")):
                self.bind_postfix(tokens, at)
            if token.kind in ("text", "shell", "glob"):
                for part in token.parts:
                    if not isinstance(part, str):
                        self.scan(part)
            if token.kind == "shell":
                self.effects += [("shell", line) for line in self.parts(token)]
            elif token.kind == "name":
                self.scan_name(tokens, at)
            elif token.kind == "sign" and token.text in self.access:
                self.bind_block(tokens, at)

    def scan_name(self, tokens: list[Token], at: int) -> None:
        name = tokens[at].text
        before = tokens[at - 1] if at else None
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if before is not None and before.kind == "name" and before.text in _DEFINING:
            return
        if name == "import" and self.language == "node":
            self.bind_import(tokens, at)
        if name in ("for", "foreach", "map", "grep", "each_child"):
            self.bind_loop(tokens, at)
        if name in ("const", "let", "var") and after is not None and after.text == "{":
            self.bind_destructured(tokens, at + 1)
        if after is not None and after.kind == "sign" and after.text in ("=", ".=", "+=", "||=", "//=", "??="):
            self.bind_name(tokens, at)
        elif name.startswith(("@", "$")) and self.language == "perl" and before is not None and before.text == "(":
            self.bind_list(tokens, at - 1)
        if before is None or before.kind != "sign" or before.text not in self.access:
            self.follow(tokens, at)
        elif at > 1 and tokens[at - 2].text in CLOSING and not self.is_chained(tokens, at - 2):
            self.follow(tokens, at, self.reference(tokens[self.opening(tokens, at - 2) + 1 : at - 2]) or "?")

    def is_plain(self, tokens: list[Token]) -> bool:
        """Whether nothing is in the code that could print something else, or not print what it says."""
        for token in tokens:
            if token.kind == "sign" and token.text in ("{", "?", "&&", "||"):
                return False
            if token.kind == "name" and not (
                token.text in _PRINTING or token.text in self.names or token.text[:1] in "$@" or token.text.isdecimal()
            ):
                return False
        return True

    def is_chained(self, tokens: list[Token], closing: int) -> bool:
        """Whether the bracket belongs to a call whose name begins the chain."""
        start = self.start_of(tokens, closing)
        return tokens[start].kind == "name"

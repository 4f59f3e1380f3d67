"""Words of Perl, Ruby, JavaScript, PHP, Lua and awk: names, texts with what is put into them, signs. No comments."""

from __future__ import annotations

from fusewire.guard.code.lexer_texts import Texts, Token
from fusewire.words import NAME_CHARS

_COMMENTS = {
    "perl": ("#",),
    "ruby": ("#",),
    "node": ("//",),
    "php": ("#", "//"),
    "lua": ("--",),
    "awk": ("#",),
}

#: Signs of more than one character, the longest first.
_SIGNS = (
    *("...", "===", "!==", "<=>", "**=", "||=", "&&=", "//=", "??=", "?->"),
    *("=>", "==", "!=", "=~", "!~", "..", "->", "::", "||", "&&", "??", "?.", "&.", ">>", "<<", "<=", ">=", "+="),
    *("-=", ".=", "*=", "++", "--"),
)

#: Words behind which a slash begins a regular expression, though words are values otherwise.
_BEFORE_REGEX = frozenset(
    ("split", "grep", "map", "if", "unless", "and", "or", "not", "return", "while", "until", "when", "case", "typeof")
)


class Lexer(Texts):
    """Reads code of one language from left to right."""

    def read(self) -> list[Token]:
        while self.at < len(self.code):
            self.step()
        return self.tokens

    def step(self) -> None:
        """Read one word."""
        code, char = self.code, self.code[self.at]
        if char == "\n":
            self.add("end", "\n")
            self.at += 1
            self.read_documents()
        elif char.isspace():
            self.at += 1
        elif self.skip_comment():
            return
        elif char in "'\"`":
            self.read_quoted(char)
        elif char in NAME_CHARS or (char in "$@" and self.language != "awk") or char.isalpha():
            self.read_name()
        elif char == "<" and self.language in ("perl", "ruby", "php") and self.read_document_start():
            return
        elif char == "<" and self.begins_glob():
            inner = self.until(">", self.at + 1)
            self.add("glob", inner, self.interpolated(inner))
        elif char == "%" and self.expects_value() and self.read_percent():
            return
        elif char == "/" and self.language in ("perl", "ruby", "node", "awk") and self.expects_value():
            self.until("/", self.at + 1, is_regex=True)
            self.skip_letters()
            self.add("number", "/")
        elif (
            char == "["
            and self.language == "lua"
            and code[self.at + 1 : self.at + 2] in ("[", "=")
            and self.long_text()
        ) or (char == ":" and self.language == "ruby" and self.read_symbol()):
            return
        else:
            sign = next((sign for sign in _SIGNS if code.startswith(sign, self.at)), char)
            self.add("sign", sign)
            self.at += len(sign)

    def expects_value(self) -> bool:
        """Whether an operand must follow here, so that a slash divides nothing."""
        last = self.tokens[-1] if self.tokens else None
        if last is None or last.kind == "end":
            return True
        if last.kind == "name":
            return last.text in _BEFORE_REGEX or (self.language == "ruby" and self.code[self.at - 1] == " ")
        return last.kind == "sign" and last.text not in (")", "]", "}", "++", "--")

    def begins_glob(self) -> bool:
        """Whether `<` of Perl is no comparison: it stands where a value is expected, or behind a function."""
        last = self.tokens[-1] if self.tokens else None
        is_function = last is not None and last.kind == "name" and last.text[0] not in "$@"
        is_closed = ">" in self.code[self.at : self.at + 200]
        return self.language == "perl" and is_closed and (is_function or self.expects_value())

    def skip_comment(self) -> bool:
        code = self.code
        for mark in _COMMENTS[self.language]:
            if not code.startswith(mark, self.at):
                continue
            if mark == "--" and code.startswith("--[[", self.at):
                end = code.find("]]", self.at)
                self.at = len(code) if end < 0 else end + 2
                return True
            if mark == "//" and self.language == "php" and code[self.at - 1 : self.at] == ":":
                return False
            end = code.find("\n", self.at)
            self.at = len(code) if end < 0 else end
            return True
        if self.language in ("node", "php") and code.startswith("/*", self.at):
            end = code.find("*/", self.at + 2)
            self.at = len(code) if end < 0 else end + 2
            return True
        return False

    def read_symbol(self) -> bool:
        """`:name` of Ruby, which is as good as a text; not the colon of `key: value` or `a ? b : c`."""
        follows = self.code[self.at + 1 : self.at + 2]
        if not (follows.isalpha() or follows == "_") or (self.at and self.code[self.at - 1] in NAME_CHARS):
            return False
        self.at += 1
        start = self.at
        while self.at < len(self.code) and self.code[self.at] in NAME_CHARS:
            self.at += 1
        self.add("text", self.code[start : self.at])
        return True

    def read_name(self) -> None:
        """A name with its sigil and its modules, or a number; Perl's quoting words too."""
        code, start = self.code, self.at
        while self.at < len(code) and code[self.at] in "$@":
            self.at += 1
        if self.at > start and self.language == "perl" and self.at < len(code) and code[self.at] in "_0&!,;/\\^.":
            self.at += 2 if code[self.at] == "^" else 1
        while self.at < len(code) and (code[self.at] in NAME_CHARS or code[self.at].isalpha()):
            self.at += 1
            joins = self.language in ("perl", "ruby") and code.startswith("::", self.at)
            if joins and code[self.at + 2 : self.at + 3] in NAME_CHARS:
                self.at += 2
        name = code[start : self.at]
        if self.at == start:
            self.at += 1
        elif name[0].isdigit():
            self.add("number", name)
        elif self.language == "perl" and name in ("q", "qq", "qw", "qx", "m", "qr", "s", "tr", "y"):
            if not self.read_perl_quote(name):
                self.add("name", name)
        else:
            if (
                self.language == "ruby"
                and code[self.at : self.at + 1] in ("?", "!")
                and code[self.at + 1 : self.at + 2] != "="
            ):
                self.at += 1
            self.add("name", name)

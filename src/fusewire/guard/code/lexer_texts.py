"""Texts in scripts: quotes of every kind, what is put into them, and documents on the lines below."""

from __future__ import annotations

from fusewire.guard.code.values import TooMuch
from fusewire.words import NAME_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    Part = str | list["Token"]

_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "f": "\f", "v": "\v", "b": "\b"}

#: Code in texts in code.
_DEPTH = 6


class Token:
    """One word of the code: a name, number, text, shell, words, glob, sign, or the end of a line."""

    __slots__ = ("kind", "parts", "text")

    def __init__(self, kind: str, text: str, parts: list[Part] | None = None) -> None:
        self.kind = kind
        self.text = text
        self.parts = parts if parts is not None else [text]


class Texts:
    """What reads code knows about its texts."""

    def __init__(self, language: str, code: str, depth: int = 0) -> None:
        if depth > _DEPTH:
            raise TooMuch
        self.language = language
        self.code = code
        self.depth = depth
        self.at = 0
        self.tokens: list[Token] = []
        self.documents: list[tuple[Token, str, bool]] = []  # texts that begin on the next line

    def read(self) -> list[Token]:
        raise NotImplementedError

    def add(self, kind: str, text: str, parts: list[Part] | None = None) -> None:
        self.tokens.append(Token(kind, text, parts))

    def until(self, closing: str, start: int, opening: str = "", is_regex: bool = False) -> str:
        """The raw text up to a sign that is not escaped; nested pairs count."""
        code = self.code
        depth, at, in_set = 1, start, False
        while at < len(code):
            char = code[at]
            if char == "\\":
                at += 1
            elif is_regex and char in "[]":
                in_set = char == "["
            elif opening and char == opening:
                depth += 1
            elif char == closing and not (in_set and self.language == "node"):
                depth -= 1
                if not depth:
                    break
            at += 1
        self.at = min(at + 1, len(code))
        return code[start : min(at, len(code))]

    def skip_letters(self) -> str:
        start = self.at
        while self.at < len(self.code) and self.code[self.at].isalpha():
            self.at += 1
        return self.code[start : self.at]

    def read_quoted(self, quote: str) -> None:
        raw = self.until(quote, self.at + 1)
        if quote == "`":
            self.add("text" if self.language == "node" else "shell", raw, self.interpolated(raw))
        elif quote == "'" and self.language in ("perl", "ruby", "php"):
            self.add("text", plain(raw))
        elif self.language in ("perl", "ruby", "php"):
            self.add("text", raw, self.interpolated(raw))
        else:
            self.add("text", unescaped(raw))

    def read_perl_quote(self, name: str) -> bool:
        """`q(...)`, `qw[...]`, `s{...}{...}e` and the like."""
        code, at = self.code, self.at
        while at < len(code) and code[at].isspace():
            at += 1
        mark = code[at : at + 1]
        is_key = code.startswith("=>", at) or (
            self.tokens and self.tokens[-1].text in ("->", "sub", "{") and mark == "}"
        )
        if (
            not mark
            or mark in ",;)="
            or is_key
            or (mark in NAME_CHARS and at == self.at)
            or (mark == "#" and at > self.at)
        ):
            return False
        closing = _PAIRS.get(mark, mark)
        raw = self.until(closing, at + 1, mark if closing != mark else "", is_regex=False)
        if name in ("s", "tr", "y"):
            self.read_replacement(name, mark, closing)
        elif name == "qw":
            self.add("words", raw, list(raw.split()))
        elif name == "q":
            self.add("text", plain(raw))
        elif name in ("qq", "qx"):
            self.add("shell" if name == "qx" else "text", raw, self.interpolated(raw) if mark != "'" else [raw])
        else:
            self.skip_letters()
            self.add("number", "/")
        return True

    def read_replacement(self, name: str, mark: str, closing: str) -> None:
        """The second half of `s///`, which is code if an `e` follows."""
        start = self.at
        if closing != mark:
            while start < len(self.code) and self.code[start].isspace():
                start += 1
            mark = self.code[start : start + 1]
            closing = _PAIRS.get(mark, mark)
            start += 1
        second = self.until(closing, start, mark if closing != mark else "") if closing else ""
        flags = self.skip_letters()
        self.add("number", "/")
        if name == "s" and "e" in flags:
            inner = type(self)(self.language, second, self.depth + 1).read()
            self.tokens += [Token("sign", "{"), *inner, Token("sign", "}")]
        elif name == "s":
            self.add("text", second, self.interpolated(second))

    def read_percent(self) -> bool:
        """`%w[...]`, `%q(...)`, `%x(...)` of Ruby."""
        code = self.code
        letter = code[self.at + 1 : self.at + 2]
        is_lettered = letter.isalpha()
        mark = code[self.at + 1 + is_lettered : self.at + 2 + is_lettered]
        if self.language != "ruby" or not mark or mark not in "([{<|!/" or (is_lettered and letter not in "wWiIqQxr"):
            return False
        closing = _PAIRS.get(mark, mark)
        raw = self.until(closing, self.at + 2 + is_lettered, mark if closing != mark else "")
        if letter in ("w", "W", "i", "I"):
            self.add("words", raw, list(raw.split()))
        elif letter == "r":
            self.add("number", "/")
        else:
            self.add(
                "shell" if letter == "x" else "text", raw, [plain(raw)] if letter == "q" else self.interpolated(raw)
            )
        return True

    def long_text(self) -> bool:
        """`[[...]]` of Lua."""
        level = len(self.code[self.at + 1 :]) - len(self.code[self.at + 1 :].lstrip("="))
        start = self.at + 2 + level
        if self.code[start - 1 : start] != "[":
            return False
        end = self.code.find("]" + "=" * level + "]", start)
        self.add("text", self.code[start : end if end >= 0 else len(self.code)])
        self.at = len(self.code) if end < 0 else end + 2 + level
        return True

    def read_document_start(self) -> bool:
        """`<<EOF`, `<<~EOF`, `<<"EOF"`, `<<<EOF`: the text is on the lines below."""
        at = self.at + (3 if self.language == "php" else 2)
        if not self.code.startswith("<<<" if self.language == "php" else "<<", self.at):
            return False
        at += self.code[at : at + 1] in ("~", "-") and len(self.code[at : at + 1])
        quote = self.code[at : at + 1] if self.code[at : at + 1] in ("'", '"') else ""
        start = at + len(quote)
        end = start
        while end < len(self.code) and self.code[end] in NAME_CHARS:
            end += 1
        word = self.code[start:end]
        if not word or not word[0].isalpha() or not (quote or word.isupper()):
            return False
        self.add("text", "")
        self.documents.append((self.tokens[-1], word, quote != "'"))
        self.at = end + len(quote)
        return True

    def read_documents(self) -> None:
        for token, word, is_interpolated in self.documents:
            lines = []
            while self.at < len(self.code):
                end = self.code.find("\n", self.at)
                end = len(self.code) if end < 0 else end
                line, self.at = self.code[self.at : end], end + 1
                if line.strip().rstrip(";") == word:
                    break
                lines.append(line + "\n")
            raw = "".join(lines)
            token.parts = self.interpolated(raw) if is_interpolated else [raw]
        self.documents = []
        self.at = min(self.at, len(self.code))

    def interpolated(self, raw: str) -> list[Part]:
        """The parts of a text: as written, or code whose value is put there."""
        parts: list[Part] = []
        at = start = 0
        while at < len(raw):
            if raw[at] == "\\":
                at += 2
                continue
            end = self.inserted(raw, at)
            if end > at:
                parts.append(unescaped(raw[start:at]))
                parts.append(self.inserted_code(raw[at:end]))
                at = start = end
            else:
                at += 1
        parts.append(unescaped(raw[start:]))
        return parts

    def inserted(self, raw: str, at: int) -> int:
        """Where something that is put into the text at `at` ends; `at` if there is nothing."""
        opens = {"node": ("${",), "ruby": ("#{",), "php": ("{$", "${")}.get(self.language, ("${", "@{"))
        if raw.startswith(opens, at):
            inner = type(self)(self.language, raw)
            inner.until("}", at + (1 if raw[at] == "{" else 2), "{")
            return inner.at
        follows = raw[at + 1 : at + 2]
        is_variable = raw[at] == "$" or (raw[at] == "@" and self.language == "perl")
        if self.language not in ("perl", "php") or not is_variable or not (follows.isalnum() or follows in ("_", "&")):
            return at
        end = at + 1
        while end < len(raw) and (
            raw[end] in NAME_CHARS or (raw.startswith("::", end) and raw[end + 2 : end + 3].isalpha())
        ):
            end += 2 if raw[end] == ":" else 1
        while raw[end : end + 1] in ("[", "{") or raw.startswith(("->[", "->{"), end):
            opening = raw.find("[", end, end + 3) if "[" in raw[end : end + 3] else raw.find("{", end, end + 3)
            inner = type(self)(self.language, raw)
            inner.until(_PAIRS[raw[opening]], opening + 1, raw[opening])
            end = inner.at
        return max(end, at + 2)

    def inserted_code(self, text: str) -> list[Token]:
        if text.startswith(("${", "#{", "@{")):
            inner = text[2:-1]
            sigil = text[0] if self.language in ("perl", "php") and inner.isidentifier() else ""
            text = sigil + inner
        elif text.startswith("{$"):
            text = text[1:-1]
        return type(self)(self.language, text, self.depth + 1).read()


def plain(raw: str) -> str:
    """The content of single quotes."""
    return raw.replace("\\'", "'").replace("\\\\", "\\")


def unescaped(raw: str) -> str:
    """The content of double quotes, with `\\n`, `\\x41` and `\\u0041` as the characters they stand for."""
    if "\\" not in raw:
        return raw
    parts: list[str] = []
    at = 0
    while at < len(raw):
        if raw[at] != "\\" or at + 1 >= len(raw):
            parts.append(raw[at])
            at += 1
            continue
        kind = raw[at + 1]
        digits = raw[at + 2 :].lstrip("{")[: 2 if kind == "x" else 4].partition("}")[0] if kind in "xu" else ""
        at += 2
        if digits and all(char in "0123456789abcdefABCDEF" for char in digits):
            parts.append(chr(int(digits, 16)))
            at += len(digits) + 2 * raw.startswith("{", at)
        else:
            parts.append(_ESCAPES.get(kind, kind))
    return "".join(parts)

"""What expressions of scripting languages may be: always a list of texts, of one or of many."""

from __future__ import annotations

import os.path
from itertools import islice, product

from fusewire.globs import matches
from fusewire.guard.code.brackets import OPENING, matching, split
from fusewire.guard.code.values import (
    UNKNOWN,
    TooMuch,
    base_name,
    braces,
    clipped,
    decoded,
    folder_of,
    glob_text,
    joined,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.lexer_texts import Token
    from fusewire.guard.code.setting import Setting

#: Signs between a thing and what belongs to it.
ACCESS = {
    "perl": frozenset(("->",)),
    "php": frozenset(("->", "::", "?->")),
    "node": frozenset((".", "?.")),
    "ruby": frozenset((".", "&.", "::")),
    "lua": frozenset((".", ":")),
}

#: Signs and words between two values of which one is taken.
_EITHER = frozenset(("||", "??", "or", "//"))
_CONDITIONAL = _EITHER | {"?", ":"}

_CONCATENATION = {"perl": ".", "php": ".", "node": "+", "ruby": "+", "lua": ".."}

#: Names of what was given behind the code.
_ARGUMENTS = frozenset(("@ARGV", "$ARGV", "ARGV", "shift", "pop", "$argv", "arg", "process.argv", "process.argv.slice"))

#: Names of the environment.
_VARIABLES = ("process.env", "$ENV", "ENV", "getenv", "os.getenv")

#: Words that are looked at in one script, each time they are.
_WORK = 300_000

#: More alternatives than anybody writes.
_MOST = 200

_JOINS = frozenset(
    ("path.join", "path.resolve", "File.join", "catfile", "catdir", "File.Spec.catfile", "File.Spec.catdir")
)
_SAME = frozenset(
    (
        "realpathSync",
        "path.normalize",
        "realpath",
        "File.realpath",
        "rel2abs",
        "abs_path",
        "File.absolute_path",
        "Pathname",
        "Pathname.new",
        "String",
        "list",
        "array",
        "ipairs",
        "pairs",
        "sort",
        "reverse",
        "Array",
        "new.URL",
    )
)
_KEEPS = frozenset(
    (
        "toString",
        "trim",
        "to_s",
        "strip",
        "chomp",
        "to_str",
        "to_a",
        "sort",
        "freeze",
        "dup",
        "uniq",
        "flat",
        "expand_path",
        "reverse",
        "values",
        "each",
        "map",
        "select",
        "reject",
        "filter",
        "to_path",
    )
)


class Values:
    """The variables of a script, and what its expressions may be."""

    def __init__(self, language: str, arguments: list[str], setting: Setting | None = None) -> None:
        self.setting = setting
        self.language = language
        self.arguments = arguments
        self.names: dict[str, list[str]] = {}
        self.aliases: dict[str, str] = {}
        self.steps = 0
        self.work = 0
        self.access = ACCESS[language]

    def spend(self, amount: int) -> None:
        """Count the words that were looked at; some are looked at again and again."""
        self.work += amount
        if self.work > _WORK:
            raise TooMuch

    def value(self, tokens: list[Token]) -> list[str]:
        """Every text that the expression may be."""
        self.steps += len(tokens)
        if self.steps > 50_000:
            return [UNKNOWN]
        tokens = [token for token in tokens if token.kind != "end"]
        if not tokens:
            return []
        is_conditional = any(token.text == "?" and token.kind == "sign" for token in tokens)
        choices = split(tokens, _CONDITIONAL if is_conditional else _EITHER)
        if len(choices) > 1 and choices[0]:
            start = 1 if is_conditional else 0  # of `a ? b : c` the first is only a condition
            return [text for choice in choices[start:] for text in self.value(choice)][:_MOST]
        lists = split(tokens)
        if len(lists) > 1:
            return [text for part in lists for text in self.value(part)][:_MOST]
        return self.joined_terms(split(tokens, frozenset((_CONCATENATION[self.language],))))

    def joined_terms(self, terms: list[list[Token]]) -> list[str]:
        values = [self.term(term) for term in terms if term]
        if not all(values):
            return [UNKNOWN]
        rows = islice(product(*values), _MOST)
        return [clipped("".join(row)) for row in rows] if len(values) > 1 else values[0]

    def parts(self, token: Token) -> list[str]:
        """The texts that a token with code in it may be."""
        values = [[part] if isinstance(part, str) else self.value(part) or [UNKNOWN] for part in token.parts]
        return [clipped("".join(row)) for row in islice(product(*values), _MOST)]

    def term(self, term: list[Token]) -> list[str]:
        """One operand: a text, a variable, a call, something in brackets."""
        first = term[0]
        if first.kind == "sign" and first.text in ("\\", "&", "...", "*", "@") and len(term) > 1:
            return self.term(term[1:])
        if (
            first.kind == "name"
            and first.text in ("await", "new", "my", "our", "local", "const", "let", "var")
            and term[1:]
        ):
            return self.term(term[1:])
        if first.kind in ("text", "shell", "glob", "words"):
            return self.text_term(term)
        if first.kind == "number":
            return [first.text] if len(term) == 1 and first.text != "/" else [UNKNOWN]
        if first.kind == "sign" and first.text in OPENING:
            end = matching(term, 0)
            inner = self.value(term[1:end]) or [UNKNOWN]
            if first.text == "(" and self.language == "perl" and len(term) > end + 1:
                return inner  # `(glob "x")[0]` is one of them
            return self.behind(inner, term[end + 1 :])
        return self.named(term) if first.kind == "name" else [UNKNOWN]

    def text_term(self, term: list[Token]) -> list[str]:
        first = term[0]
        if first.kind == "shell":
            return [UNKNOWN]
        if first.kind == "words":
            return self.behind([part for part in first.parts if isinstance(part, str)], term[1:])
        texts = self.parts(first)
        if first.kind == "glob":
            is_handle = not first.text or first.text.isidentifier() or first.text.startswith("$")
            return [UNKNOWN] if is_handle else self.globbed(texts)
        return self.behind(texts, term[1:])

    def globbed(self, patterns: list[str]) -> list[str]:
        words = [word for pattern in patterns for word in (pattern.split() if self.language == "perl" else [pattern])]
        choices = [choice for word in words for choice in braces(word)]
        return [text for choice in choices for text in self.fitting(choice) or [glob_text(choice)]] or [UNKNOWN]

    def fitting(self, pattern: str) -> list[str]:
        """Files on the disk that fit a pattern with wildcards in its last part only."""
        folder, slash, last = pattern.rpartition("/")
        if self.setting is None or UNKNOWN in pattern or "*" in folder or "?" in folder:
            return []
        names = self.setting.entries(folder or (slash or ".")) or []
        return [folder + slash + name for name, _ in names if matches(name, last) and name[:1] != "."][:_MOST]

    def behind(self, values: list[str], rest: list[Token]) -> list[str]:
        """The values after methods that leave them what they are, or one of them by its number."""
        at = 0
        while at < len(rest):
            token = rest[at]
            if token.kind == "sign" and token.text == "[":
                end = matching(rest, at)
                values = self.chosen(values, rest[at + 1 : end])
                at = end + 1
            elif (
                token.kind == "sign"
                and token.text in self.access
                and at + 1 < len(rest)
                and rest[at + 1].text in _KEEPS
            ):
                at += 2
            elif token.kind == "sign" and token.text in ("(", "{"):
                at = matching(rest, at) + 1
            else:
                return [UNKNOWN]
        return values

    def chosen(self, values: list[str], index: list[Token], first: int = 0) -> list[str]:
        """`values[index]`, all of them if the number is unknown."""
        text = index[0].text if len(index) == 1 else ""
        if not text.isdecimal() or not values:
            return values or [UNKNOWN]
        at = int(text[:6]) - first
        return [values[at]] if 0 <= at < len(values) else [UNKNOWN]

    def named(self, term: list[Token]) -> list[str]:
        """A variable, or a call of a function that only makes a text."""
        at = 1
        name = self.aliases.get(term[0].text, term[0].text)
        while at + 1 < len(term) and term[at].text in self.access and term[at + 1].kind == "name":
            if name in self.names or term[at + 1].text in _KEEPS:
                break
            name = f"{name}.{term[at + 1].text}"
            at += 2
        name = name.replace("::", ".").removeprefix("new.")
        rest = term[at:]
        if name.startswith("@$"):
            name = name[1:]
        own = self.names.get(name, self.names.get("@" + name[1:] if name[:1] == "$" else "@" + name))
        if own is not None and name not in ("glob",):
            return self.behind(own, rest[1:] if rest[:1] and rest[0].text == "->" else rest)
        if name in _ARGUMENTS:
            return self.argument(name, rest)
        if name in ("__dirname", "__DIR__", "Dir.pwd", "cwd", "getcwd", "process.cwd"):
            return ["."]
        if name in ("os.homedir", "Dir.home"):
            return [os.path.expanduser("~")]
        if name.startswith(_VARIABLES) and self.setting is not None:
            key = name.rpartition(".")[2] if name.startswith("process.env.") else rest[1].text if len(rest) > 2 else ""
            found = self.setting.variable(key)
            return [UNKNOWN if found is None else found]
        is_call = bool(rest) and rest[0].kind == "sign" and rest[0].text in ("(", "[")
        end = matching(rest, 0) if is_call else len(rest)
        inner = rest[1:end] if is_call else rest
        return self.behind(self.computed(name, split(inner)), rest[end + 1 :])

    def argument(self, name: str, rest: list[Token]) -> list[str]:
        """What was given behind the code."""
        given = self.arguments or [UNKNOWN]
        is_indexed = bool(rest) and rest[0].text == "[" and len(rest) > 2
        if not is_indexed:
            return given
        if name == "process.argv":  # with `-e` the first is number 1, with a file number 2
            found = self.chosen(given, rest[1:2], 1) + self.chosen(given, rest[1:2], 2)
            known = [text for text in found if text != UNKNOWN]
            return list(dict.fromkeys(known)) or [UNKNOWN]
        return self.chosen(given, rest[1:2], 1 if name in ("$argv", "arg") else 0)

    def computed(self, name: str, arguments: list[list[Token]]) -> list[str]:
        """The result of a function that only makes a text."""
        short = name.rpartition(".")[2]
        if name in _JOINS or short in ("catfile", "catdir"):
            values = [self.value(argument) or [UNKNOWN] for argument in arguments]
            return [joined(*row) for row in islice(product(*values), _MOST)]
        given = [text for argument in arguments for text in self.value(argument)]
        if short in ("tempdir", "newdir") and "DIR" not in given and self.language == "perl":
            return ["/tmp/tempdir"]
        if short in ("glob", "globSync", "bsd_glob") or name == "Dir":
            return self.globbed(given)
        if name in ("dirname", "path.dirname", "File.dirname"):
            return [folder_of(text) for text in given[:1]]
        if name in ("basename", "path.basename", "File.basename"):
            return [base_name(text) for text in given[:1]]
        if name in ("File.expand_path", "File.absolute_path"):
            return [os.path.expanduser(text) for text in given[:1]]
        if name in ("chr", "String.fromCharCode"):
            return ["".join(chr(int(text)) if text.isdecimal() and len(text) < 6 else UNKNOWN for text in given)]
        if name in ("atob", "base64_decode", "decode_base64", "Base64.decode64", "MIME.Base64.decode_base64") or (
            name == "Buffer.from" and given[1:] == ["base64"]
        ):
            return [decoded(given[0])] if given else [UNKNOWN]
        if name == "join" and len(given) > 1:
            return [clipped(given[0].join(given[1:]))]
        return given if name in _SAME and given else [UNKNOWN]

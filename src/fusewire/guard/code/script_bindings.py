"""Variables of scripts: assignments, imports, loops, and the parameters of blocks."""

from __future__ import annotations

from fusewire.guard.code.brackets import CLOSING, OPENING, matching
from fusewire.guard.code.script_calls import ScriptCalls
from fusewire.guard.code.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.lexer_texts import Token

#: Words before brackets that are no call.
_NOT_CALLED = frozenset(
    ("await", "return", "typeof", "void", "yield", "in", "of", "and", "or", "not", "if", "while", "new")
)

#: Methods that call a block with each element.
_EACH = frozenset(
    ("forEach", "map", "each", "each_with_index", "filter", "flatMap", "some", "every", "each_entry", "select")
)


class Bindings(ScriptCalls):
    """Keeps what names stand for."""

    def statement_end(self, tokens: list[Token], at: int) -> int:
        """Where the expression at `at` ends: at a sign or line that ends it, outside of brackets."""
        depth = 0
        for spot in range(at, len(tokens)):
            self.spend(1)
            token = tokens[spot]
            if token.kind == "sign":
                if not depth and (token.text in CLOSING or token.text == ";"):
                    return spot
                depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth:
                continue
            if token.kind == "end" and self.language in ("ruby", "node", "lua") and spot > at:
                return spot
            if token.kind == "name" and token.text in ("if", "unless", "for", "foreach", "while", "until", "and", "do"):
                return spot
        return len(tokens)

    def opening(self, tokens: list[Token], closing: int) -> int:
        depth = 0
        for at in range(closing, -1, -1):
            self.spend(1)
            if tokens[at].kind == "sign":
                depth += (tokens[at].text in CLOSING) - (tokens[at].text in OPENING)
            if not depth:
                return at
        return 0

    def start_of(self, tokens: list[Token], last: int) -> int:
        """Where the operand begins that ends at `last`."""
        at = last
        while at >= 0:
            self.spend(1)
            if tokens[at].kind == "sign" and tokens[at].text in CLOSING:
                at = self.opening(tokens, at)
                before = tokens[at - 1] if at and tokens[at].text != "{" else None
                is_called = before is not None and before.kind == "name" and before.text not in _NOT_CALLED
                if is_called or (before is not None and before.text in (")", "]")):
                    at -= 1
                    continue
            if at > 1 and tokens[at - 1].kind == "sign" and tokens[at - 1].text in self.access:
                at -= 2
                continue
            break
        return max(at, 0)

    def bind_name(self, tokens: list[Token], at: int) -> None:
        """`name = expression`."""
        name = tokens[at].text
        end = self.statement_end(tokens, at + 2)
        right = tokens[at + 2 : end]
        if right and right[-1].text == ";":
            right = right[:-1]
        reference = self.reference(right)
        if reference:
            self.aliases[name] = reference
            self.names.pop(name, None)
            return
        if self.language == "node" and name == "argv":
            return
        head = self.first_expression(right)
        values = self.value(head) or [UNKNOWN]
        if tokens[at + 1].text in (".=", "+="):
            values = [before + text for before in self.names.get(name, [UNKNOWN]) for text in values][:16]
        if tokens[at + 1].text in ("||=", "//=", "??="):
            values = self.names.get(name, []) + values
        self.names[name] = values
        if head and head[0].text.startswith("Pathname"):
            self.pathnames.add(name)

    def first_expression(self, tokens: list[Token]) -> list[Token]:
        """What stands before a comma that begins the next declaration."""
        depth = 0
        for at, token in enumerate(tokens):
            depth += (token.kind == "sign" and token.text in OPENING) - (token.kind == "sign" and token.text in CLOSING)
            if not depth and token.kind == "sign" and token.text == "," and self.language in ("node", "lua"):
                return tokens[:at]
        return tokens

    def bind_list(self, tokens: list[Token], opening: int) -> None:
        """`my ($a, $b) = @ARGV`: each may be any of them."""
        end = matching(tokens, opening)
        if end + 1 >= len(tokens) or tokens[end + 1].text != "=":
            return
        values = self.value(tokens[end + 2 : self.statement_end(tokens, end + 2)]) or [UNKNOWN]
        names = [token.text for token in tokens[opening:end] if token.kind == "name"]
        for place, name in enumerate(names):
            self.names[name] = [values[place]] if len(values) == len(names) else values

    def bind_import(self, tokens: list[Token], at: int) -> None:
        """`import fs, {rm as r} from 'node:fs'`."""
        end = next((spot for spot in range(at, len(tokens)) if tokens[spot].kind == "text"), len(tokens))
        if end >= len(tokens) or tokens[at + 1].text == "(":
            return
        self.run_files([tokens[end].text])
        module = self.module(tokens[end].text)
        words = [token.text for token in tokens[at + 1 : end] if token.text not in ("*", "from", ",", "type")]
        inside = False
        for place, word in enumerate(words):
            inside = (inside or word == "{") and word != "}"
            if word in ("{", "}", "as") or words[place + 1 : place + 2] == ["as"]:
                continue
            original = words[place - 2] if words[place - 1 : place] == ["as"] and place > 1 else word
            self.aliases[word] = f"{module}.{original}" if inside else module

    def bind_destructured(self, tokens: list[Token], opening: int) -> None:
        """`const {rmSync: r} = require('fs')`."""
        end = matching(tokens, opening)
        reference = self.reference(tokens[end + 2 : self.statement_end(tokens, end + 2)])
        words = [token.text for token in tokens[opening + 1 : end] if token.kind == "name"]
        signs = [token.text for token in tokens[opening + 1 : end]]
        at = 0
        while at < len(words) and reference:
            is_renamed = f"{words[at]}:" in "".join(signs) and at + 1 < len(words)
            self.aliases[words[at + is_renamed]] = f"{reference}.{words[at]}"
            at += 1 + is_renamed

    def bind_loop(self, tokens: list[Token], at: int) -> None:
        """Loops of all languages: the variable may be each of the elements."""
        after = tokens[at + 1 : at + 2]
        name = tokens[at].text
        if name in ("map", "grep") and self.language == "perl" and after and after[0].text == "{":
            end = matching(tokens, at + 1)
            self.names["$_"] = self.value(tokens[end + 1 : self.statement_end(tokens, end + 1)]) or [UNKNOWN]
        elif self.language == "perl":
            self.bind_perl_loop(tokens, at)
        elif name in ("for", "foreach") and after:
            self.bind_for(tokens, at)

    def bind_perl_loop(self, tokens: list[Token], at: int) -> None:
        spot = at + 1
        variable = "$_"
        while spot < len(tokens) and tokens[spot].kind == "name" and tokens[spot].text in ("my", "our"):
            spot += 1
        if (
            spot < len(tokens)
            and tokens[spot].text.startswith("$")
            and tokens[spot].kind == "name"
            and spot + 1 < len(tokens)
        ):
            variable = tokens[spot].text
            spot += 1
        self.names[variable] = self.value(tokens[spot : self.loop_end(tokens, spot)]) or [UNKNOWN]

    def loop_end(self, tokens: list[Token], at: int) -> int:
        return (
            matching(tokens, at) + 1 if at < len(tokens) and tokens[at].text == "(" else self.statement_end(tokens, at)
        )

    def bind_for(self, tokens: list[Token], at: int) -> None:
        """`for (const f of list)`, `for f in list do`, `foreach (list as $f)`."""
        opening = tokens[at + 1].text == "("
        end = matching(tokens, at + 1) if opening else self.statement_end(tokens, at + 1)
        inside = tokens[at + 2 : end] if opening else tokens[at + 1 : end]
        words = [token.text for token in inside]
        middle = next((spot for spot, word in enumerate(words) if word in ("of", "in", "as")), -1)
        if middle < 0:
            return
        left, right = inside[:middle], inside[middle + 1 :]
        names, values = (right, left) if words[middle] == "as" else (left, right)
        for token in names:
            if token.kind == "name" and token.text not in ("const", "let", "var"):
                self.names[token.text] = self.value(values) or [UNKNOWN]

    def bind_block(self, tokens: list[Token], at: int) -> None:
        """`list.forEach(f => ...)`, `list.each { |f| ... }`, `list.forEach(fs.unlinkSync)`."""
        if at + 2 >= len(tokens) or tokens[at + 1].text not in _EACH:
            return
        values = self.value(tokens[self.start_of(tokens, at - 1) : at]) or [UNKNOWN]
        spot = at + 2
        while spot < len(tokens) and tokens[spot].text in ("(", "{", "|", "do", "async", "function"):
            spot += 1
        if spot >= len(tokens):
            return
        if self.language == "ruby" and tokens[spot].text == "&":
            self.follow_reference(tokens[spot + 1 : self.statement_end(tokens, spot + 1)], values)
        elif tokens[spot].kind == "name":
            chain = tokens[spot : self.statement_end(tokens, spot)]
            if (
                spot + 1 < len(tokens)
                and tokens[spot + 1].text in ("=>", ",", ")", "|")
                and tokens[spot].text not in self.aliases
            ):
                self.names[tokens[spot].text] = values
            self.follow_reference(chain, values)

    def bind_postfix(self, tokens: list[Token], at: int) -> None:
        """`unlink $_ for list`: the loop stands behind what it repeats."""
        end = self.statement_end(tokens, at)
        if at < end < len(tokens) and tokens[end].text in ("for", "foreach"):
            self.bind_perl_loop(tokens, end)

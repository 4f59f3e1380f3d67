"""Brackets in the words of a script: where they are closed, and what stands between the commas in them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.lexer_texts import Token

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = frozenset(OPENING.values())


def matching(tokens: list[Token], at: int) -> int:
    """Where the bracket at `at` is closed; the end if nowhere."""
    depth = 0
    for spot in range(at, len(tokens)):
        if tokens[spot].kind == "sign":
            depth += (tokens[spot].text in OPENING) - (tokens[spot].text in CLOSING)
            if depth <= 0:
                return spot
    return len(tokens)


def split(tokens: list[Token], separators: frozenset[str] = frozenset((",", "=>"))) -> list[list[Token]]:
    """The tokens between separators that stand in no bracket."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        is_sign = token.kind == "sign"
        depth += (is_sign and token.text in OPENING) - (is_sign and token.text in CLOSING)
        if not depth and token.kind in ("sign", "name") and token.text in separators:
            found.append([])
        elif token.kind != "end":
            found[-1].append(token)
    return found if any(found) else []

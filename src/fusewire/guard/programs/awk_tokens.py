"""The words of an awk program."""

from __future__ import annotations

from fusewire.shell.outputs import unescaped

_LONGEST = 4000

_OPERATORS = (
    *("**=", "&&", "||", "==", "!=", "<=", ">=", "!~", "++", "--", "+=", "-=", "*=", "/=", "%=", ">>", "**"),
    *"{}()[];,<>=!~$+-*/%?:|^\n",
)

FUNCTIONS = frozenset("length substr tolower toupper index sub gsub sprintf split int".split())
WORDS = frozenset("print printf next exit if else for while do in delete getline function return BEGIN END".split())


class Unreadable(Exception):
    """More than one-liners have."""


def tokens_of(code: str) -> list[tuple[str, str]]:
    """("string", text), ("regex", text), ("number", text), ("name", text), ("op", text)."""
    if len(code) > _LONGEST:
        raise Unreadable
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(code):
        char = code[at]
        if char in " \t\r" or code.startswith("\\\n", at):
            at += 1 if char != "\\" else 2
        elif char == "#":
            end = code.find("\n", at)
            at = len(code) if end < 0 else end
        elif char == '"' or (char == "/" and _wants_operand(found)):
            end = _closing(code, at)
            text = code[at + 1 : end]
            found.append(("string", unescaped(text)) if char == '"' else ("regex", text.replace("\\/", "/")))
            at = end + 1
        elif char.isdigit() or (char == "." and code[at + 1 : at + 2].isdigit()):
            end = at + 1
            while end < len(code) and (code[end].isdigit() or code[end] == "."):
                end += 1
            found.append(("number", code[at:end]))
            at = end
        elif char.isalpha() or char == "_":
            end = at + 1
            while end < len(code) and (code[end].isalnum() or code[end] == "_"):
                end += 1
            found.append(("name", code[at:end]))
            at = end
        else:
            operator = next((one for one in _OPERATORS if code.startswith(one, at)), "")
            if not operator:
                raise Unreadable
            found.append(("op", operator))
            at += len(operator)
    return found


def _wants_operand(found: list[tuple[str, str]]) -> bool:
    """Whether a slash begins an expression here, and does not divide."""
    if not found:
        return True
    kind, text = found[-1]
    return (kind == "op" and text not in (")", "]", "$", "++", "--")) or (kind == "name" and text in WORDS)


def _closing(code: str, at: int) -> int:
    quote, end, inside = code[at], at + 1, False
    while end < len(code) and (code[end] != quote or inside):
        if quote == "/" and code[end] in "[]":
            inside = code[end] == "["
        end += 2 if code[end] == "\\" else 1
    if end >= len(code):
        raise Unreadable
    return end

"""Regular expressions as `grep` and its kind write them."""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

#: Seconds that may be spent on searching; what is left then may fit.
_SECONDS = 1.0

_CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}


class Pattern:
    """What `grep` looks for; where Python could see it differently, a line may fit."""

    def __init__(
        self, texts: list[str], kind: str, *, ignores_case: bool = False, words: bool = False, whole: bool = False
    ) -> None:
        """`kind`: G for basic expressions, E for extended ones, P for Perl's, F for plain text, emacs for find's."""
        import re
        from time import monotonic

        self._clock = monotonic
        self._until = monotonic() + _SECONDS
        self._known: re.Pattern[str] | None = None
        self._whole = whole
        lines = [line for text in texts for line in text.split("\n")]
        parts = [re.escape(line) if kind == "F" else translated(line, kind) for line in lines]
        if any(part is None or UNKNOWN in part for part in parts):
            return
        text = "|".join(f"(?:{part})" for part in parts if part is not None)
        try:
            self._known = re.compile(rf"\b(?:{text})\b" if words else text, re.IGNORECASE if ignores_case else 0)
        except (re.error, OverflowError, RecursionError):
            return

    def fits(self, line: str) -> bool | None:
        """Whether a line fits; None if nobody knows."""
        if self._known is None or UNKNOWN in line or self._clock() > self._until:
            return None
        return bool(self._known.fullmatch(line) if self._whole else self._known.search(line))

    def fits_any(self, text: str) -> bool | None:
        answers = {self.fits(line) for line in text.splitlines()}
        return True if True in answers else None if None in answers else False

    def parts(self, line: str) -> list[str]:
        """What `-o` prints of a line."""
        if self._known is None or UNKNOWN in line:
            return [UNKNOWN]
        return [part.group() for part in self._known.finditer(line) if part.group()]


def translated(text: str, kind: str, repetitions: int = 2) -> str | None:
    """An expression in Python's words; None if it has something that may mean something else, or take long."""
    if text.count("*") + text.count("+") + text.count("{") > repetitions and len(text) > 1 and kind != "F":
        return None  # so many repetitions can take longer than anybody waits
    result, at = "", 0
    while at < len(text):
        char = text[at]
        if char == "[":
            end = _set_end(text, at)
            if end < 0:
                return None
            result += _set(text[at : end + 1])
            at = end + 1
            continue
        if char == "\\":
            char = text[at : at + 2]
            at += 1
            if kind in ("G", "emacs") and char[1:] in ("(", ")", "|", "{", "}", "+", "?"):
                char = char[1:]
            elif char in (r"\<", r"\>"):
                char = r"\b"
            elif char[1:].isalnum() and char[1:] not in "wWsSbB" + "dDntr" * (kind == "P"):
                return None
        elif (
            (kind == "G" and char in "(){}|+?") or (kind == "emacs" and char in "(){}|") or (char == "*" and not result)
        ):
            char = f"\\{char}"
        result += char
        at += 1
    repeated = result.replace(r"\)", "")
    return None if ")*" in repeated or ")+" in repeated or "){" in repeated else result


def _set_end(text: str, at: int) -> int:
    first = at + 2 if text[at + 1 : at + 2] == "^" else at + 1
    end = text.find("]", first + 1)
    while end > 0 and text.rfind("[:", at + 1, end) > text.rfind(":]", at + 1, end):
        end = text.find("]", end + 1)
    return end


def _set(text: str) -> str:
    for name, chars in _CLASSES.items():
        text = text.replace(f"[:{name}:]", chars)
    head, inner = ("[^", text[2:-1]) if text[1] == "^" else ("[", text[1:-1])
    inner = inner.replace("\\", "\\\\").replace("\\\\s", "\\s").replace("[", "\\[").replace("]", "\\]")
    return f"{head}{inner}]"

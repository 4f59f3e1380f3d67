"""Numbers and expressions as awk sees them."""

from __future__ import annotations

from fusewire.guard.programs.awk_tokens import Unreadable
from fusewire.guard.programs.patterns import translated
from fusewire.shell.values import TAINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


def regex(text: str) -> re.Pattern[str]:
    import re

    known = translated(text, "E", 4)
    if known is None:
        raise Unreadable
    try:
        return re.compile(known)
    except re.error as error:
        raise Unreadable from error


def number_of(text: str) -> float | None:
    text = text.replace(TAINT, "").strip()
    if not text or not (text[-1].isdigit() or text[-1] == ".") or text[0] not in "-+.0123456789":
        return None
    try:
        return float(text)
    except ValueError:
        return None


def shown(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.6g}"

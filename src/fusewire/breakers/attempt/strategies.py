"""Recognise a strategy that was tried before, whatever its case, order of filling words or endings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusewire.breakers.attempt.state import Tried

#: Words that make no strategy another one.
_FILLING = frozenset(
    "a an the to of in on for with by and or via using use it its this that again then now try tried trying so as"
    " at from into be is was more once".split()
)

#: Share of the words that must be common.
_ALIKE = 0.8


def _words(text: str) -> frozenset[str]:
    words = re.findall(r"[^\W_]+", text.casefold())
    return frozenset(_stem(word) for word in words if word not in _FILLING)


def _stem(word: str) -> str:
    """Added, adds and adding are one."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 3 else word


def repeated(strategy: str, tried: Sequence[Tried]) -> Tried | None:
    """The newest entry of the log that has the same strategy."""
    words = _words(strategy)
    return next((entry for entry in reversed(tried) if _alike(words, _words(entry["strategy"]))), None)


def _alike(some: frozenset[str], others: frozenset[str]) -> bool:
    return bool(some and others) and len(some & others) >= _ALIKE * len(some | others)

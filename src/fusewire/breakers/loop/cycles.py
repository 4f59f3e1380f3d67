"""The same two or three things, again and again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: How many things may take turns before it is called circular.
PERIODS = (2, 3)


def period(steps: Sequence[str]) -> int:
    """2 if the last steps are A B A B, 3 for A B C A B C, else 0. All of a round differ from each other."""
    for length in PERIODS:
        last = steps[-2 * length :]
        if len(last) == 2 * length and last[:length] == last[length:] and len(set(last)) == length:
            return length
    return 0


def appended(steps: Sequence[str], step: str, keep: int) -> list[str]:
    """With one more step at the end; one that only repeats the last is no step."""
    if steps and steps[-1] == step:
        return list(steps)
    return [*steps, step][-keep:]

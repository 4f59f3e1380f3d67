"""Helpers that the readers of jest and vitest share."""

from __future__ import annotations

import re

from fusewire.testruns.run import RunSummary, counted


def count_by_word(summary: str) -> dict[str, int]:
    """Read `3 passed, 1 failed` as counts by word."""
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", summary)}


def counted_by_word(
    runner: str, end: int, numbers: dict[str, int], failures: dict[str, str], broken: str, broken_count: int
) -> RunSummary:
    """A run from the numbers of its summary."""
    return counted(
        runner, end, failures, broken=broken, broken_count=broken_count,
        passed=numbers.get("passed", 0), failed=numbers.get("failed", 0),
        skipped=numbers.get("skipped", 0) + numbers.get("todo", 0),
    )  # fmt: skip


def next_lines(text: str, start: int, lines: int, but: str = "\n") -> str:
    """Join the next lines that are not blank and do not begin with `but`."""
    found: list[str] = []
    end = min(start + 2000, len(text))
    while start < end and len(found) < lines:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if not text.startswith(but, start) and (line := text[start:stop].strip()):
            found.append(line)
        start = stop + 1
    return " ".join(found)


def path_parts(file: str) -> tuple[str, ...]:
    """Split the path of a file."""
    return tuple(part for part in file.replace("\\", "/").split("/") if part)

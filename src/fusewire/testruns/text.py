"""Prepare the output of a command to be read: without colours, without quotations, and by lines."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")

#: What a line says stands at its beginning; patterns see no more of it than this.
_READ = 1_000
#: How far from its end a program says why it ended, in lines.
_NEAR_END = 400


def plain_text(text: str) -> str:
    """Without colours, and with the line ends of this system."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return text.replace("\r\n", "\n") if "\r" in text else text


def without_quotes(text: str) -> str:
    """The text with the fenced blocks of Markdown blanked, character for character, so that positions stay.

    What an agent quotes of a log is no log. A fence that is never closed is none: a log may hold three backquotes too.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines = text.split("\n")
    opened, mark = -1, ""
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if not match:
            continue
        if opened < 0:
            opened, mark = number, match[1]
        elif match[1].startswith(mark) and not match[2].strip():
            lines[opened : number + 1] = [" " * len(quoted) for quoted in lines[opened : number + 1]]
            opened = -1
    return "\n".join(lines)


class OutputLines:
    """The output by lines: plain ones to read, and those that were really printed to show.

    Colours hold no line ends, so line N is line N with and without them: what is read and what is shown agree.
    """

    def __init__(self, output: str) -> None:
        self.printed = output.split("\n")
        self.plain = [line[:_READ] for line in plain_text(output).split("\n")]
        self.text = "\n".join(self.plain)

    def number(self, position: int) -> int:
        """The line of a position in `text`."""
        return self.text.count("\n", 0, position)

    def shown(self, begin: int, end: int) -> str:
        """The lines as they were printed."""
        return "\n".join(self.printed[begin:end])

    def last(self, count: int) -> tuple[int, int]:
        """Where the last lines begin and end that say anything."""
        end = len(self.plain)
        while end and not self.plain[end - 1].strip():
            end -= 1
        return max(0, end - count), end

    def near_end(self) -> tuple[int, int]:
        """Where the lines begin and end in which a program says why it ended."""
        return self.last(_NEAR_END)


def beginning(text: str, size: int) -> str:
    """As many bytes as may be kept, from the beginning."""
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= size else data[:size].decode("utf-8", "ignore")


def ending(text: str, size: int) -> str:
    """As many bytes as may be kept, up to the end."""
    data = text[-size:].encode("utf-8", "surrogatepass")
    return text if len(text) <= size and len(data) <= size else data[-size:].decode("utf-8", "ignore")

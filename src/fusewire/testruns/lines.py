"""The output of a test command by lines: plain ones to read, and those that were really printed to show."""

from __future__ import annotations

from fusewire.testruns.masks import plain_text

#: What a line says stands at its beginning; patterns see no more of it than this.
_READ = 1_000
#: How far from its end a program says why it ended, in lines.
_NEAR_END = 400


class OutputLines:
    """Colours hold no line ends, so line N is line N with and without them: what is read and what is shown agree."""

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

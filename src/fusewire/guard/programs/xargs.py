"""xargs: it runs another program with the words that it reads."""

from __future__ import annotations

from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN
from fusewire.util.quoting import split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

#: Commands that one `xargs -n1` is followed into; one more stands for the rest.
_RUNS = 2000

_LONGS = "delimiter= max-args= max-procs= arg-file= max-chars= process-slot-var="


def run_xargs(call: ProgramCall) -> None:
    argv = Argv(call.args, "dnLPIaEsRS", _LONGS, optional="iel", permutes=False)
    if argv.has("help", "version"):
        return
    words = argv.operands or ["echo"]
    text = _input(call, argv.value("a", "arg-file"))
    items = _items(text, argv)
    mark = argv.value("I", "i", "replace")
    if mark is not None:
        lines = (line.strip(" \t") for line in text.splitlines())
        for (value,) in _bounded([[item] for item in (lines if items is None else items) if item]):
            call.run([words[0], *(word.replace(mark or "{}", value) for word in words[1:])], stdin="")
        return
    arguments = split_words(text) if items is None else items
    given = argv.value("n", "max-args", "L", "l", "max-lines") or ""
    step = int(given[:6] or 1) if given[:6].isdigit() else len(arguments) if not argv.has("L", "l") else 1
    chunks = [arguments[at : at + step] for at in range(0, len(arguments), max(step, 1))] or [[]]
    for chunk in _bounded(chunks):
        if any(chunk) or (len(words) > 1 and not argv.has("r", "no-run-if-empty")):
            call.run([*words, *chunk], stdin="")


def _input(call: ProgramCall, name: str | None) -> str:
    text = call.text_of(name or "-") if name != "/dev/null" else ""
    return UNKNOWN if text is None else text


def _items(text: str, argv: Argv) -> list[str] | None:
    """The arguments between the separators of `-0` or `-d`; None without one."""
    separator = "\0" if argv.has("0", "null") else argv.value("d", "delimiter")
    if separator is None:
        return None
    end = {"\\n": "\n", "\\0": "\0", "\\t": "\t"}.get(separator, separator)[:1] or "\0"
    return text.removesuffix(end).split(end) if text else []


def _bounded(groups: list[list[str]]) -> list[list[str]]:
    return groups if len(groups) <= _RUNS else [*groups[:_RUNS], [UNKNOWN]]

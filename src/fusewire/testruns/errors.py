"""Find errors by their shape: tracebacks, panics, and the messages of compilers and linters.

Every shape is anchored at the start of a line and has a second mark (a stack, a code, an arrow), so that a word in
prose, a diff, a listing or a quotation is none. Missing an error is better than inventing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fusewire.testruns.masks import normalised
from fusewire.testruns.run import Problem, problem
from fusewire.testruns.text import plain_text, without_quotes

_Found = tuple[int, str, str, str]

__all__ = ["normalised", "problems_in"]

#: Problems that an answer keeps.
LIMIT = 20

_LINE = re.MULTILINE
#: A name without spaces, and nothing that marks a diff, a quotation or a list.
_FILE = r"(?P<file>[\w./~@][^\s:(]*)"
_RULE = r"(?P<type>[A-Z]{1,5}\d{3,4}|invalid-syntax)"

#: Compilers and linters: the shape, a word without which it cannot be there, and the type where the shape has none.
_BUILD = [
    (word, kind, re.compile(pattern, _LINE))
    for word, kind, pattern in (
        ("error TS", "", rf"^{_FILE}(?:\(\d+,\d+\):|:\d+:\d+ -) error (?P<type>TS\d+): (?P<message>.*)$"),
        (" error: ", "compile", rf"^(?!\S+\.pyi?:){_FILE}:\d+:\d+: (?:fatal )?error: (?P<message>.*)$"),
        (" error: ", "javac", r"^(?P<file>[\w./][^\s:]*\.java):\d+: error: (?P<message>.*)$"),
        (" error: ", "", rf"^{_FILE}:\d+(?::\d+)?: error: (?P<message>.*)  \[(?P<type>[a-z][a-z-]+)\]$"),
        ("undefined reference", "link", r"^[\w./].*\(\.[\w.]+\+0x[0-9a-f]+\): (?P<message>undefined reference to .+)$"),
        ("-->", "rustc", rf"^error(?:\[(?P<type>E\d+)\])?: (?P<message>.*)\n +--> {_FILE}:\d+:\d+$"),
        ("-->", "", rf"^{_RULE}:? (?:\[\*\] )?(?P<message>.*)\n +--> {_FILE}:\d+:\d+$"),
        (".py", "", rf"^{_FILE}(?<=\.py|pyi):\d+:\d+: {_RULE}:? (?:\[\*\] )?(?P<message>.*)$"),
    )
]

_GO_BUILD = re.compile(r"^# \S+(?: \[.*\])?\n((?:(?:vet: )?\S+\.go:\d+:\d+: .*(?:\n|\Z)(?:\t.*(?:\n|\Z))*)+)", _LINE)
_GO_ERROR = re.compile(r"^(?:vet: )?(?P<file>\S+\.go):\d+:\d+: (?P<message>.*)$", _LINE)
_ESLINT = re.compile(r"^(?P<file>\S.*)\n(?P<rows>(?:  +\d+:\d+  +(?:error|warning)  +.*\n)+)", _LINE)
_ESLINT_ROW = re.compile(r"^ +\d+:\d+ +error +(?P<message>.*?)(?:  +(?P<type>\S+))?$", _LINE)
_ESLINT_END = re.compile(r"^\u2716 \d+ problems? \(", _LINE)

_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:(?:[ \t].*)?\n)*(?P<said>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", _LINE
)
_CHAINED = re.compile(r"\n\n(?:The above exception was the direct cause|During handling of the above exception)")
_SYNTAX = re.compile(
    r'^  File ".*", line \d+\n(?:    .*\n)*(?P<said>SyntaxError|IndentationError|TabError): (?P<message>.*)$', _LINE
)
_NODE = re.compile(
    r"^(?:Uncaught )?(?P<said>[A-Z]\w*(?:Error|Exception)|Error)(?: \[\w+\])?(?:: (?P<message>.*))?"
    r"(?:\n(?! ).*){0,3}\n {4}at \S",
    _LINE,
)
_GO_PANIC = re.compile(r"^(?:panic|fatal error): (?P<message>.*)\n(?:.*\n){0,4}?goroutine \d+ ", _LINE)
_RUST_PANIC = re.compile(
    r"^thread '[^'\n]*' (?:\(\d+\) )?panicked at (?:'(?P<old>.*)', \S+|\S+:\d+:\d+:\n(?P<message>.*))$", _LINE
)
_JAVA = re.compile(
    r'^Exception in thread ".*?" (?P<stack>[\w.$]+(?:: .*)?(?:\n(?:\s+at .*|\s+\.\.\. .*|Caused by: .*))+)', _LINE
)
_JAVA_CAUSE = re.compile(r"^(?:Caused by: )?(?P<said>[\w.$]+)(?:: (?P<message>.*))?$", _LINE)


def problems_in(text: str) -> list[Problem]:
    """What failed in a text, in order, each error once, at most 20."""
    text = without_quotes(plain_text(text))
    found = sorted([*_builds(text), *_exceptions(text)])
    problems = [problem(source, kind, message) for _, source, kind, message in found[: LIMIT * 20]]
    return list({one.fingerprint: one for one in problems}.values())[:LIMIT]


def _builds(text: str) -> Iterator[_Found]:
    for word, kind, pattern in _BUILD:
        if word in text:
            for match in pattern.finditer(text):
                groups = match.groupdict()
                yield _build(match.start(), groups.get("type") or kind, groups.get("file"), match["message"])
    if ".go:" in text:
        for block in _GO_BUILD.finditer(text):
            for match in _GO_ERROR.finditer(block[1]):
                yield _build(block.start(1) + match.start(), "go", match["file"], match["message"])
    if _ESLINT_END.search(text):
        for block in _ESLINT.finditer(text):
            for match in _ESLINT_ROW.finditer(block["rows"]):
                yield _build(block.start() + match.start(), match["type"] or "eslint", block["file"], match["message"])


def _build(at: int, kind: str, file: str | None, message: str) -> _Found:
    return at, "build", kind, f"{file.strip()}: {message}" if file else message


def _exceptions(text: str) -> Iterator[_Found]:
    if "Traceback (" in text:
        for match in _TRACEBACK.finditer(text):
            # Of a chain only its last exception reached the user.
            if not _CHAINED.match(text, match.end()):
                yield _exception(match.start(), match["said"], match["message"])
    if 'File "' in text:
        for match in _SYNTAX.finditer(text):
            if "Traceback (" not in text[max(0, match.start() - 4000) : match.start()]:
                yield _exception(match.start(), match["said"], match["message"])
    if "\n    at " in text:
        for match in _NODE.finditer(text):
            yield _exception(match.start(), match["said"], match["message"])
    if "goroutine " in text:
        for match in _GO_PANIC.finditer(text):
            yield _exception(match.start(), "panic", match["message"])
    if "panicked at" in text:
        for match in _RUST_PANIC.finditer(text):
            yield _exception(match.start(), "panic", match["message"] or match["old"])
    if "Exception in thread" in text:
        for match in _JAVA.finditer(text):
            for cause in _JAVA_CAUSE.finditer(match["stack"]):
                last = cause
            yield _exception(match.start(), last["said"], last["message"])


def _exception(at: int, said: str, message: str | None) -> _Found:
    kind = said.rsplit(".", 1)[-1]
    return at, "exception", kind, f"{kind}: {message}" if message else kind

"""Refusals of the filesystem in a test that ran (denied, read-only, disk full): they are no failure of the test.

What a test throws or asserts is its own word, whatever the words are. So an error must look like the one that the
language itself makes of the system's answer.
"""

from __future__ import annotations

import re

from fusewire.testruns.infrastructure import CODE, DENIED, ERRNO

_PYTHON = re.compile(rf"(?:PermissionError|OSError|IOError): \[Errno {ERRNO}\] ")
#: `EACCES: permission denied, open '/x'`: node adds the call that failed.
_NODE = re.compile(rf"(?:Error: )?{CODE}: [\w -]+, [a-z]\w*(?: '.*)?$")
_NODE_CODE = re.compile(r"\s*code: ['\"](\w+)['\"],?")
#: An error of `os`: the call, the path, the answer; callers may put words in front.
_GO = re.compile(
    r"(?:panic: )?(?:[\w .()/-]+: )*(?:open|openat|read|readdir|readdirent|readlink|write|create|createtemp"
    r"|mkdir|mkdirtemp|mkdirat|remove|removeall|unlink|unlinkat|rename|link|symlink|l?stat|truncate|ftruncate|fsync|sync|chdir|chmod"
    rf"|chown|lchown|chtimes|fork/exec|exec|mmap|close|seek) \S+(?: \S+)?: {DENIED}$"
)
#: The debug form of `std::io::Error`, as `unwrap`, `expect` and a test that gives it back show it.
_RUST = re.compile(rf"[^\"'{{}}]{{1,200}}: (?:Custom \{{ .{{0,200}})?Os \{{ code: {ERRNO}, kind: \w+, message: ")
#: Where jest and vitest show the line of the code that threw.
_MARKED = re.compile(r"\s*>\s*\d+ \| (.*)")
_CARET = re.compile(r"\s*\|\s*\^\s*")
_THROWN = re.compile(r"\bthrow\b|\bnew \w+\(|\breject\(")


def refused_in_python(said: str, section: list[str]) -> bool:
    """Whether an exception of Python is a refusal; `section` is what the runner prints about the test."""
    return bool(_PYTHON.match(said))


def refused_in_go(said: str, section: list[str]) -> bool:
    """Whether an error of Go is a refusal."""
    return bool(_GO.match(said))


def refused_in_rust(said: str, section: list[str]) -> bool:
    """Whether a panic of Rust is a refusal."""
    return bool(_RUST.match(said))


def refused_in_node(said: str, section: list[str]) -> bool:
    """Whether an error of node is a refusal, where the runner always shows the code of an error."""
    return bool(_NODE.match(said)) and any(re.fullmatch(CODE, code) for code in _codes(section))


def refused_in_javascript(said: str, section: list[str]) -> bool:
    """Whether an error of node is a refusal, where the runner shows its code or the line that threw it."""
    if _codes(section):
        return refused_in_node(said, section)
    return bool(_NODE.match(said)) and not _THROWN.search(_marked(section))


def _codes(section: list[str]) -> list[str]:
    return [code[1] for line in section if (code := _NODE_CODE.fullmatch(line))]


def _marked(section: list[str]) -> str:
    for index, line in enumerate(section):
        if match := _MARKED.fullmatch(line):
            return match[1]
        if index and _CARET.fullmatch(line):
            return section[index - 1]
    return ""

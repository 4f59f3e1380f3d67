"""Recognise errors that keep a test from running, by their shape: five kinds, none is an attempt (seed 004).

An error is looked at where it begins: `PermissionError: [Errno 13] ...` is one, an assertion about these words is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BUILD, ENVIRONMENT, NETWORK, PERMISSION, RUNNER = "build", "environment", "network", "permission", "runner"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a command could not run tests: the kind, and the words for people."""

    kind: str
    what: str


REFUSED = Cause(PERMISSION, "the filesystem refused")
NOT_FETCHED = Cause(NETWORK, "something could not be fetched")
NO_VARIABLE = Cause(ENVIRONMENT, "a variable is missing")
NOT_INSTALLED = Cause(ENVIRONMENT, "something is not installed")
NOT_SET_UP = Cause(ENVIRONMENT, "the project is not set up")
CRASHED = Cause(RUNNER, "the runner crashed")
MISUSED = Cause(RUNNER, "the runner was called wrongly")
NOT_BUILT = Cause(BUILD, "it could not be built")
#: The more telling ones first: the first cause that has a line decides.
CAUSES = (REFUSED, NOT_FETCHED, NO_VARIABLE, NOT_INSTALLED, NOT_SET_UP, CRASHED, MISUSED, NOT_BUILT)


@dataclass(frozen=True, slots=True)
class StartError:
    """A sign that no test ran: its kind, the words for people, and the lines that say so."""

    kind: str
    what: str
    begin: int
    end: int


#: Not permitted, denied, disk full, read-only, over quota.
ERRNO = r"(?:1|13|28|30|122)"
CODE = r"(?:EACCES|EPERM|ENOSPC|EROFS|EDQUOT)"
DENIED = (
    r"(?:[Pp]ermission denied|[Oo]peration not permitted|[Nn]o space left on device|[Rr]ead-only file ?system"
    r"|[Dd]isk quota exceeded)"
)
UNREACHED = r"(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT)"
#: Programs that run tests: without them there is nothing to build, the environment lacks something.
TOOLS = r"(?:pytest|_pytest|xdist|pytest_\w+|nose2?|tox|nox|coverage|jest|vitest|mocha|ts-jest|ts-node|babel-jest)"

#: An assertion may say anything.
_PERMISSION = re.compile(
    r"(?![Aa]ssert|expect\()(?:"
    rf"(?:PermissionError|OSError|IOError): \[Errno {ERRNO}\] "
    rf"|(?:Error: )?{CODE}: "
    rf"|(?:panic: )?(?:[\w .()/-]+: )*\w+ [^\s:\"']+(?: [^\s:\"']+)?: {DENIED}$"
    rf"|[^\"'{{}}]{{1,200}}: (?:Custom \{{ .{{0,200}})?Os \{{ code: {ERRNO}, kind: "
    rf"|[^\"'`]{{0,300}}{DENIED} \(os error {ERRNO}\)$"
    r")"
)
_KINDS = (
    (PERMISSION, _PERMISSION),
    (
        NETWORK,
        re.compile(
            r"(?:[\w.]+\.)?(?:Connection(?:Refused|Reset|Aborted)?Error|gaierror|herror|ConnectTimeout(?:Error)?"
            r"|ReadTimeout(?:Error)?|ConnectError|URLError|NewConnectionError|MaxRetryError|ProxyError|TimeoutError"
            r"|OperationalError: .*(?:could not connect|[Cc]onnection refused|timeout expired).*)(?::|$)"
            rf"|(?:\w*Error: )?(?:[\w ]+ )?{UNREACHED}\b"
            r"|.*: (?:dial tcp|lookup) .*|.*\bi/o timeout$"
        ),
    ),
    (
        ENVIRONMENT,
        re.compile(
            rf"(?:ModuleNotFoundError|ImportError): (?:Error importing plugin|No module named '{TOOLS}')"
            rf"|(?:Error: )?Cannot find (?:module|package) '{TOOLS}'"
            r"|(?:[\w.]+\.)?(?:ImproperlyConfigured|UndefinedValueError|EnvironmentVariableError|MissingEnvironment\w*)\b"
            r"|error: environment variable `.*` not defined at compile time"
        ),
    ),
    (
        RUNNER,
        re.compile(
            r"worker '\w+' crashed while running |A jest worker process .* was terminated|Call retries were exceeded"
            r"|Your test suite must contain at least one test|panic: test timed out after "
            r"|thrown: \"Exceeded timeout of \d+ ?ms for a hook|Error: Hook timed out in"
        ),
    ),
    (
        BUILD,
        re.compile(
            r"(?:ImportError|ModuleNotFoundError|SyntaxError|IndentationError|TabError|NameError)\b"
            r"|(?:Error: )?(?:Cannot find (?:module|package)|Failed to resolve import|Failed to parse) "
            r"|(?:Error: )?Transform failed with "
            r"|fixture '.*' not found|Jest encountered an unexpected token|\S+\.go:\d+:\d+: |package .* is not in "
        ),
    ),
)
#: The frame of `os.environ[...]`, which alone tells a missing variable from a missing key.
_ENVIRON = re.compile(
    r"(?:<frozen os>|.*[/\\]os\.py):\d+: (?:KeyError|in __getitem__)|  File \"(?:<frozen os>|.*[/\\]os\.py)\", .*"
)


def kind_of(said: str, section: list[str]) -> str:
    """The kind of an error that kept a test from running, by the line that names it; empty if it does not tell."""
    if said.startswith("KeyError: ") and any(_ENVIRON.fullmatch(line) for line in section):
        return ENVIRONMENT
    return next((kind for kind, pattern in _KINDS if pattern.match(said)), "")


def is_permission(said: str) -> bool:
    """The error is the filesystem's no, and not a sentence about it."""
    return bool(_PERMISSION.match(said))


# -- refusals of the filesystem in a test that ran (denied, read-only, disk full): no failure of the test --------------
#
# What a test throws or asserts is its own word, whatever the words are. So an error must look like the one that the
# language itself makes of the system's answer.

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

"""Errors that keep a test from running, recognised by their shape: five kinds, none of which is an attempt (seed 004).

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

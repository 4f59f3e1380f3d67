"""Commands that ended without the result of any test: what they print instead says which kind of trouble it was."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusewire.testruns.infrastructure import (
    BUILD,
    CODE,
    DENIED,
    ENVIRONMENT,
    ERRNO,
    NETWORK,
    PERMISSION,
    RUNNER,
    TOOLS,
    UNREACHED,
    is_permission,
    kind_of,
)
from fusewire.testruns.tracebacks import last_traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.lines import Lines


@dataclass(frozen=True)
class Shape:
    """A sign that no test ran: of which kind, how it is told to people, and the lines that say so."""

    kind: str
    what: str
    begin: int
    end: int


#: Nothing ran, though the runner was well.
_NOTHING = re.compile(
    r"(?:=+ )?(?:no tests ran|(?:\d+ (?:deselected|warnings?)(?:, )?)+) in \d[\d.:]*s?.*"
    r"|Ran 0 tests in [\d.]+s|No tests found, exiting with code \d|No tests found.*|No test files found.*"
    r"|Tests: +0 total| +Tests  no tests"
    r"|(?:ok  |\?   )\t\S+.*\[no (?:tests to run|test files)\]|testing: warning: no tests to run"
    r"|test result: ok\. 0 passed; 0 failed; 0 ignored;.*|1\.\.0(?: .*)?|\u2139 tests 0|  0 passing \(.*\)"
)


def nothing_ran(lines: Lines) -> Shape | None:
    """The line in which a runner says that it had nothing to do."""
    for index in range(len(lines.plain) - 1, -1, -1):
        line = lines.plain[index]
        if _NOTHING.fullmatch(line) or ('"Action":"output"' in line and "[no tests to run]" in line):
            return Shape(RUNNER, "no test ran", index, index + 1)
    return None


#: Lines that a program prints instead of running tests, the more telling ones first.
_SHAPES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (PERMISSION, "the filesystem refused", (
        rf"(?:error: |\s+|.*: ){DENIED} \(os error {ERRNO}\)",
        rf"npm (?:error|ERR!) code {CODE}",
        rf"ERROR: Could not install packages due to an OSError: \[Errno {ERRNO}\].*",
        rf"go: .*: {DENIED}",
        r"make(?:\[\d+\])?: \*\*\* \[.*\] Error 126",
    )),
    (NETWORK, "something could not be fetched", (
        rf"npm (?:error|ERR!) (?:code {UNREACHED}|network .*)",
        r"ERROR: (?:Could not find a version that satisfies|No matching distribution found for) .*",
        r"go: .*(?:dial tcp|i/o timeout|no such host|TLS handshake timeout|connection refused).*",
        r"error: failed to (?:get|download|fetch|query|load source for|update) .*",
        r"  (?:failed to (?:fetch|download|query|connect|resolve)|network failure seems to have happened) .*",
        r"\[ERROR\] .*Could not (?:resolve dependencies|transfer artifact).*",
        r"> Could not (?:resolve|GET|download) .*",
    )),
    (ENVIRONMENT, "a variable is missing", (
        r"error: environment variable `.*` not defined at compile time",
    )),
    (ENVIRONMENT, "something is not installed", (
        r"error: (?:linker `.*` not found|no such command: `.*`)",
        r"\S*python[\d.]*(?:\.exe)?: No module named \S+",
        r"(?:/\S*/)?env: .*: No such file or directory",
        r"make(?:\[\d+\])?: \*\*\* \[.*\] Error 127",
        r"npm (?:error|ERR!) could not determine executable to run",
        rf"Error(?: \[\w+\])?: Cannot find (?:module|package) '(?:{TOOLS}|(?![./]).*)'.*",
    )),
    (ENVIRONMENT, "the project is not set up", (
        r"error: could not find `Cargo\.toml` .*",
        r"npm (?:error|ERR!) (?:Missing script: .*|code ENOENT)",
        r"go: (?:cannot find main module|go\.mod file not found).*",
        r"pattern .*: directory prefix .* does not contain main module.*",
    )),
    (RUNNER, "the runner crashed", (
        r"  process didn't exit successfully: .* \(signal: .*\)",
        r"(?:\S+ )?Fatal Python error: .*",
        r"FATAL ERROR: .*(?:heap out of memory|Allocation failed).*",
        r"  \u25cf  process\.exit called with .*",
    )),
    (RUNNER, "the runner was called wrongly", (
        r"ERROR: (?:usage|file or directory not found|not found): .*",
        r"\S.*: error: (?:unrecognized arguments|argument|the following arguments are required)\b.*",
        r"\u25cf (?:Unrecognized CLI Parameter|Validation Error|Multiple configurations found).*",
        r"CACError: .*",
        r"flag provided but not defined: .*",
        r"error: (?:unexpected argument|no (?:test|bin|lib|example|bench) target|package ID specification) .*",
        r"no Go files in .*",
        r"make(?:\[\d+\])?: \*\*\* No rule to make target .*",
    )),
    (BUILD, "it could not be built", (
        r"error: could not compile .*",
        r"error: no matching package named .*",
        r"error: failed to (?:parse manifest|select a version|load manifest) .*",
        r"Error(?: \[\w+\])?: Cannot find (?:module|package) '.*",
        r"\S+\.go:\d+:\d+: .*",
        r"\S.*: no required module provides package .*",
        r"go: .*",
        r"\S+\(\d+,\d+\): error TS\d+: .*",
        r"\S+:\d+:\d+ - error TS\d+: .*",
        r"\S+:\d+:(?:\d+:)? (?:fatal )?error: .*",
        r"\[ERROR\] COMPILATION ERROR.*",
        r"> Compilation failed.*",
    )),
)  # fmt: skip
_PATTERNS = [(kind, what, re.compile("|".join(patterns))) for kind, what, patterns in _SHAPES]

#: How far from its end a program says why it ended.
_NEAR_END = 400
_TRACEBACK_NEAR_END = 10
_RUNNERS_OWN = re.compile(r".*[/\\](?:_pytest|pytest|pluggy|xdist|execnet|unittest|nose2?|tox|nox|coverage)[/\\].*")


def shape_of(lines: Lines) -> Shape | None:
    """Why a command ended that gave no result of any test; None if it does not look like infrastructure."""
    return _pytest_shape(lines) or _line_shape(lines) or _node_shape(lines) or _traceback_shape(lines)


def _pytest_shape(lines: Lines) -> Shape | None:
    begin, end = lines.last(_NEAR_END)
    for index in range(begin, end):
        line = lines.plain[index]
        if line.startswith("ImportError while loading conftest '"):
            block = [number for number in range(index, end) if lines.plain[number].startswith("E  ")]
            last = block[-1] if block else index
            said = lines.plain[last][1:].strip() if block else ""
            kind = kind_of(said, lines.plain[index : last + 1]) or BUILD
            return Shape(kind, f"conftest could not be loaded: {said or line}", index, last + 1)
        if line.startswith("INTERNALERROR> "):
            last = max(number for number in range(index, end) if lines.plain[number].startswith("INTERNALERROR>"))
            said = lines.plain[last].removeprefix("INTERNALERROR> ")
            kind = PERMISSION if is_permission(said) else RUNNER
            return Shape(kind, f"pytest broke: {said}", max(index, last - 10), last + 1)
    return None


def _line_shape(lines: Lines) -> Shape | None:
    begin, end = lines.last(_NEAR_END)
    for kind, what, pattern in _PATTERNS:
        for index in range(begin, end):
            if pattern.fullmatch(lines.plain[index]):
                return Shape(kind, f"{what}: {lines.plain[index].strip()}", index, index + 1)
    return None


def _node_shape(lines: Lines) -> Shape | None:
    """Node names its version below an error that nobody caught; of those a syntax error keeps a script from running."""
    begin, end = lines.last(_NEAR_END)
    if end and re.fullmatch(r"Node\.js v[\d.]+", lines.plain[end - 1]):
        for index in range(begin, end):
            if lines.plain[index].startswith("SyntaxError: "):
                return Shape(BUILD, f"it could not be built: {lines.plain[index]}", index, index + 1)
    return None


def _traceback_shape(lines: Lines) -> Shape | None:
    """An import or syntax error that ended Python, or an error inside the runner; others are a script's own no."""
    begin, end = lines.last(_NEAR_END)
    starts = [index for index in range(begin, end) if lines.plain[index].startswith("Traceback (most recent call ")]
    found = last_traceback(lines, starts[-1], end) if starts else None
    if not found:
        # Python prints no "Traceback" above a syntax error of the script itself.
        last = lines.plain[end - 1] if end else ""
        if re.match(r"(?:SyntaxError|IndentationError|TabError): ", last):
            return Shape(BUILD, f"it could not be built: {last}", max(begin, end - 4), end)
        return None
    if end - found.line > _TRACEBACK_NEAR_END:
        return None
    kind = kind_of(found.said, lines.plain[starts[-1] : found.line])
    if kind in (BUILD, ENVIRONMENT, PERMISSION) and not found.said.startswith("NameError"):
        return Shape(kind, f"it could not be loaded: {found.said}", starts[-1], found.line + 1)
    if _RUNNERS_OWN.fullmatch(found.file) and not found.said.startswith("AssertionError"):
        return Shape(kind or RUNNER, f"the runner broke: {found.said}", starts[-1], found.line + 1)
    return None

"""Recognise commands that ended without the result of any test: what they print instead says why."""

from __future__ import annotations

import re

from fusewire.testruns.infrastructure import (
    BUILD,
    CAUSES,
    CODE,
    CRASHED,
    ENVIRONMENT,
    ERRNO,
    MISUSED,
    NOT_BUILT,
    NOT_FETCHED,
    NOT_INSTALLED,
    NOT_SET_UP,
    PERMISSION,
    REFUSED,
    RUNNER,
    TOOLS,
    UNREACHED,
    Cause,
    StartError,
    kind_of,
)
from fusewire.testruns.runners import RUNNERS
from fusewire.testruns.text import OutputLines
from fusewire.testruns.tracebacks import last_traceback

#: What programs print that stand around a test runner: interpreters, compilers, package managers, make.
_AROUND: dict[Cause, tuple[str, ...]] = {
    REFUSED: (
        rf"npm (?:error|ERR!) code {CODE}",
        rf"ERROR: Could not install packages due to an OSError: \[Errno {ERRNO}\].*",
        r"make(?:\[\d+\])?: \*\*\* \[.*\] Error 126",
    ),
    NOT_FETCHED: (
        rf"npm (?:error|ERR!) (?:code {UNREACHED}|network .*)",
        r"ERROR: (?:Could not find a version that satisfies|No matching distribution found for) .*",
        r"\[ERROR\] .*Could not (?:resolve dependencies|transfer artifact).*",
        r"> Could not (?:resolve|GET|download) .*",
    ),
    NOT_INSTALLED: (
        r"\S*python[\d.]*(?:\.exe)?: No module named \S+",
        r"(?:/\S*/)?env: .*: No such file or directory",
        r"make(?:\[\d+\])?: \*\*\* \[.*\] Error 127",
        r"npm (?:error|ERR!) could not determine executable to run",
        rf"Error(?: \[\w+\])?: Cannot find (?:module|package) '(?:{TOOLS}|(?![./]).*)'.*",
    ),
    NOT_SET_UP: (r"npm (?:error|ERR!) (?:Missing script: .*|code ENOENT)",),
    CRASHED: (
        r"(?:\S+ )?Fatal Python error: .*",
        r"FATAL ERROR: .*(?:heap out of memory|Allocation failed).*",
    ),
    MISUSED: (
        r"\S.*: error: (?:unrecognized arguments|argument|the following arguments are required)\b.*",
        r"make(?:\[\d+\])?: \*\*\* No rule to make target .*",
    ),
    NOT_BUILT: (
        r"Error(?: \[\w+\])?: Cannot find (?:module|package) '.*",
        r"\S+\(\d+,\d+\): error TS\d+: .*",
        r"\S+:\d+:\d+ - error TS\d+: .*",
        r"\S+:\d+:(?:\d+:)? (?:fatal )?error: .*",
        r"\[ERROR\] COMPILATION ERROR.*",
        r"> Compilation failed.*",
    ),
}


def _lines_of(cause: Cause) -> re.Pattern[str]:
    patterns = [*_AROUND.get(cause, ())]
    for runner in RUNNERS:
        patterns += runner.start_errors.get(cause, ())
    return re.compile("|".join(patterns))


_PATTERNS = [(cause, _lines_of(cause)) for cause in CAUSES]
_IDLE = re.compile("|".join(line for runner in RUNNERS for line in runner.idle_lines))
_TRACEBACK_NEAR_END = 10
_PACKAGES = "|".join(["nose2?", "tox", "nox", "coverage", *(name for runner in RUNNERS for name in runner.packages)])
_RUNNERS_OWN = re.compile(rf".*[/\\](?:{_PACKAGES})[/\\].*")


def find_idle(lines: OutputLines) -> StartError | None:
    """Find the line in which a runner says that it had nothing to do."""
    for index in range(len(lines.plain) - 1, -1, -1):
        if _IDLE.fullmatch(lines.plain[index]):
            return StartError(RUNNER, "no test ran", index, index + 1)
    return None


def find_unfinished(lines: OutputLines) -> StartError | None:
    """Find the beginning of a run that never came to its summary."""
    for runner in RUNNERS:
        first = re.compile(runner.first_line) if runner.first_line else None
        for index, line in enumerate(lines.plain if first else ()):
            if first and first.fullmatch(line):
                begin, end = lines.last(5)
                return StartError(RUNNER, f"{runner.name} ended without a result", max(begin, index), end)
    return None


def find_start_error(lines: OutputLines) -> StartError | None:
    """Find out why a command ended without a result of any test; None if it does not look like infrastructure."""
    for runner in RUNNERS:
        if runner.find_start_error and (found := runner.find_start_error(lines)):
            return found
    return _find_by_line(lines) or _find_of_node(lines) or _find_traceback(lines)


def _find_by_line(lines: OutputLines) -> StartError | None:
    begin, end = lines.near_end()
    for cause, pattern in _PATTERNS:
        for index in range(begin, end):
            if pattern.fullmatch(lines.plain[index]):
                return StartError(cause.kind, f"{cause.what}: {lines.plain[index].strip()}", index, index + 1)
    return None


def _find_of_node(lines: OutputLines) -> StartError | None:
    """Node names its version below an uncaught error; of those a syntax error keeps a script from running."""
    begin, end = lines.near_end()
    if end and re.fullmatch(r"Node\.js v[\d.]+", lines.plain[end - 1]):
        for index in range(begin, end):
            if lines.plain[index].startswith("SyntaxError: "):
                return StartError(BUILD, f"it could not be built: {lines.plain[index]}", index, index + 1)
    return None


def _find_traceback(lines: OutputLines) -> StartError | None:
    """An import or syntax error that ended Python, or an error inside the runner; others are a script's own no."""
    begin, end = lines.near_end()
    starts = [index for index in range(begin, end) if lines.plain[index].startswith("Traceback (most recent call ")]
    found = last_traceback(lines, starts[-1], end) if starts else None
    if not found:
        # Python prints no "Traceback" above a syntax error of the script itself.
        last = lines.plain[end - 1] if end else ""
        if re.match(r"(?:SyntaxError|IndentationError|TabError): ", last):
            return StartError(BUILD, f"it could not be built: {last}", max(begin, end - 4), end)
        return None
    if end - found.line > _TRACEBACK_NEAR_END:
        return None
    kind = kind_of(found.said, lines.plain[starts[-1] : found.line])
    if kind in (BUILD, ENVIRONMENT, PERMISSION) and not found.said.startswith("NameError"):
        return StartError(kind, f"it could not be loaded: {found.said}", starts[-1], found.line + 1)
    if _RUNNERS_OWN.fullmatch(found.file) and not found.said.startswith("AssertionError"):
        return StartError(kind or RUNNER, f"the runner broke: {found.said}", starts[-1], found.line + 1)
    return None

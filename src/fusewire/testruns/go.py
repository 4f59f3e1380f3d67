"""Read the output of `go test`, also with -json: the counts of a run, and how each test ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SKIPPED, CaseResult, Cases
from fusewire.testruns.infrastructure import DENIED, MISUSED, NOT_BUILT, NOT_FETCHED, NOT_SET_UP, REFUSED, refused_in_go
from fusewire.testruns.run import RunSummary, counted
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines
from fusewire.util.fast_json import loads

_GO_LINE = re.compile(
    r"^(?:(?P<indent> *)--- (?P<outcome>PASS|FAIL|SKIP): (?P<test>\S+) \([\d.]+s\)"
    r"|(?P<package>ok  |FAIL)\t(?P<name>\S+)(?:[ \t]+(?P<rest>.*))?"
    r"|(?P<reason>panic: .*|(?:vet: )?\S+\.go:\d+:\d+: .*)|FAIL)$",
    re.MULTILINE,
)
#: At the end of an `ok`, when no test has the name that was asked for.
_GO_NOTHING = "[no tests to run]"


@dataclass
class _Package:
    """One package: outcome by test, what its tests said, and why it could not run."""

    outcomes: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    #: it is well, and something of it ran
    ok: bool = False
    empty: bool = False


def go_run(text: str) -> RunSummary | None:
    """Lines of packages close the lines of their tests; a package that was run again replaces itself."""
    packages: dict[str, _Package] = {}
    package, end, reason = _Package(), 0, ""
    for match in _GO_LINE.finditer(text):
        if match["test"]:
            package.outcomes[match["test"]] = match["outcome"]
            package.said[match["test"]] = _first_log(text, match.end())
        elif match["reason"]:
            reason = reason or match["reason"]
        elif match["name"]:
            rest = match["rest"] or ""
            package.ok = match["package"] != "FAIL" and _GO_NOTHING not in rest
            if match["package"] == "FAIL" and (rest.startswith("[") or "FAIL" not in package.outcomes.values()):
                package.broken = f"{match['name']}: {reason or 'failed outside its tests'}"
            packages[match["name"]] = package
            package, reason = _Package(), ""
        if packages:
            end = match.end()
    return _go_counted(packages, end)


def _first_log(text: str, start: int) -> str:
    """The first line that a test logged, without the file and line in front."""
    following = text[start + 1 : start + 500].split("\n")[0]
    return re.sub(r"^\s+(?:\S+\.go:\d+: )?", "", following) if following.startswith(" ") else ""


def go_json_run(text: str) -> RunSummary | None:
    """Count by the events of -json; a package that starts again replaces itself."""
    packages: dict[str, _Package] = {}
    end, position = 0, 0
    for line in text.split("\n"):
        position += len(line) + 1
        event = _event(line)
        if isinstance(event.get("Package"), str):
            _go_event(packages, event)
            end = position - 1
    return _go_counted(packages, end)


def _event(line: str) -> dict[str, object]:
    if not line.startswith("{") or '"Action":' not in line:
        return {}
    try:
        event = loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _go_event(packages: dict[str, _Package], event: dict[str, object]) -> None:
    action, name, test = event.get("Action"), str(event["Package"]), event.get("Test")
    if action == "start":
        packages[name] = _Package()
    package = packages.setdefault(name, _Package())
    if isinstance(test, str):
        if action in ("pass", "fail", "skip"):
            package.outcomes[test] = str(action).upper()
        output = str(event.get("Output", "")).strip()
        if action == "output" and output and not output.startswith(("===", "---")):
            package.said.setdefault(test, re.sub(r"^\S+\.go:\d+: ", "", output))
    elif action == "output" and _GO_NOTHING in str(event.get("Output", "")):
        package.empty = True
    elif action == "pass":
        package.ok = not package.empty
    elif action == "fail" and "FAIL" not in package.outcomes.values():
        package.broken = f"{name} failed outside its tests"


def _go_counted(packages: dict[str, _Package], end: int) -> RunSummary | None:
    counts = {"passed": 0, "failed": 0, "skipped": 0, "broken_count": 0}
    failures: dict[str, str] = {}
    for name, package in packages.items():
        parents = {test.rpartition("/")[0] for test in package.outcomes}
        leaves = {test: outcome for test, outcome in package.outcomes.items() if test not in parents}
        counts["skipped"] += list(leaves.values()).count("SKIP")
        passed = list(leaves.values()).count("PASS")
        # Without -v a package only says that it is well.
        counts["passed"] += passed or (1 if package.ok and not leaves else 0)
        failed = {f"{name}.{test}": package.said.get(test, "") for test, outcome in leaves.items() if outcome == "FAIL"}
        counts["failed"] += len(failed)
        failures.update(failed)
        counts["broken_count"] += bool(package.broken)
    if not any(counts.values()):
        return None
    broken = min((package.broken for package in packages.values() if package.broken), default="")
    return counted("go", end, failures, broken=broken, **counts)


# -- single tests -----------------------------------------------------------------------------------------------------

_GO_TEST = re.compile(r"( *)--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)")
_GO_STEP = re.compile(r"=== (?:RUN|CONT|NAME) +(\S+)")
_GO_PACKAGE = re.compile(r"(ok  |FAIL|---|\?   )\t(\S+)(?:[ \t]+(.*))?")
_GO_ERROR = re.compile(r"(?:vet: )?\S+\.go:\d+:\d+: .*|panic: .*|package .*")
_GO_LOG = re.compile(r" +\S+\.go:\d+: (.*)")
_GO_OUTCOMES = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED, "pass": PASSED, "fail": FAILED, "skip": SKIPPED}
_GO_BORDER = ("=== ", "--- ", "FAIL", "PASS", "ok  \t", "?   \t", "exit status ", "# ")


def go_cases(lines: OutputLines, run: RunSummary) -> Cases | None:
    """Read how each test ended: from the events of -json if there are any, or else from the lines."""
    return _event_cases(lines) or _line_cases(lines)


def _line_cases(lines: OutputLines) -> Cases | None:
    """Lines of packages close the lines of their tests."""
    run = go_run(lines.text)
    if run is None:
        return None
    found: list[CaseResult] = []
    open_cases: list[CaseResult] = []
    steps: dict[str, int] = {}
    reason, listed, cut = -1, False, ""
    for index, line in enumerate(lines.plain):
        if match := _GO_STEP.fullmatch(line):
            steps[match[1]] = index
            listed = True
        elif match := _GO_TEST.fullmatch(line):
            open_cases.append(_go_case(lines, match, steps.get(match[3], index), index))
        elif match := _GO_PACKAGE.fullmatch(line):
            package, rest = match[2], match[3] or ""
            failing = any(case.outcome == FAILED for case in open_cases)
            panic = reason >= 0 and lines.plain[reason].startswith("panic: ")
            if match[1] == "FAIL" and (rest.startswith("[") or not failing):
                found.append(_go_broken(lines, package, rest, reason, index))
            if match[1] == "FAIL" and panic:
                cut = cut or lines.plain[reason]
            found += [_in_package(case, package) for case in open_cases]
            open_cases, steps, reason = [], {}, -1
        elif reason < 0 and _GO_ERROR.fullmatch(line):
            reason = index
    return Cases(run.tests, tuple(found), listed, cut)


def _in_package(case: CaseResult, package: str) -> CaseResult:
    folders = tuple(package.split("/"))
    return replace(case, name=f"{package}.{case.name}", parts=(*folders, *case.parts), folders=len(folders))


def _go_case(lines: OutputLines, match: re.Match[str], step: int, index: int) -> CaseResult:
    """With -v what a test logs stands above its result, without it below; a panic stands below."""
    deeper = " " * (len(match[1]) + 1)
    panic = index + 1 < len(lines.plain) and lines.plain[index + 1].startswith("panic: ")
    end = index + 1
    while end < len(lines.plain) and not lines.plain[end].startswith(_GO_BORDER) and (
        panic or lines.plain[end].startswith(deeper)
    ):  # fmt: skip
        end += 1
    begin = min(step, index)
    logs = [number for number in range(begin, end) if _GO_LOG.fullmatch(lines.plain[number])]
    said, error = "", (index, index + 1)
    if panic:
        said, error = lines.plain[index + 1], (index + 1, index + 2)
    elif logs:
        log = _GO_LOG.fullmatch(lines.plain[logs[-1]])
        said, error = log[1] if log else "", (logs[-1], logs[-1] + 1)
    return CaseResult(match[3], tuple(match[3].split("/")), _GO_OUTCOMES[match[2]], 0, begin, end, error, said)


def _go_broken(lines: OutputLines, package: str, rest: str, reason: int, index: int) -> CaseResult:
    begin = reason if reason >= 0 else index
    parts = tuple(package.split("/"))
    kind = "build" if rest.startswith("[") else "runner"
    said = lines.plain[begin] if reason >= 0 else f"{package} failed outside its tests"
    return CaseResult(
        package, parts, BROKEN, len(parts), begin, index + 1, (begin, begin + 1), said, kind=kind, suite=True
    )


def _event_cases(lines: OutputLines) -> Cases | None:
    run = go_json_run(lines.text)
    if run is None:
        return None
    outcomes: dict[tuple[str, str], str] = {}
    printed: dict[tuple[str, str], list[str]] = {}
    packages: dict[str, str] = {}
    for line in lines.printed:
        event = _event(line)
        package, test = str(event.get("Package", "")), str(event.get("Test", ""))
        action = str(event.get("Action", ""))
        if not package:
            continue
        if action == "output":
            # What a subtest prints belongs to its parents too.
            for name in _with_parents(test):
                printed.setdefault((package, name), []).append(str(event.get("Output", "")))
        elif test and action in _GO_OUTCOMES:
            outcomes[package, test] = _GO_OUTCOMES[action]
        elif action in _GO_OUTCOMES:
            packages[package] = "build" if event.get("FailedBuild") else "runner" if action == "fail" else ""
    found = [_go_json_case(key, outcome, "".join(printed.get(key, ()))) for key, outcome in outcomes.items()]
    red = {package for (package, _), outcome in outcomes.items() if outcome == FAILED}
    for package, kind in packages.items():
        if kind and package not in red:
            text = "".join(printed.get((package, ""), ()))
            parts = tuple(package.split("/"))
            said = _go_said(text)
            found.append(CaseResult(package, parts, BROKEN, len(parts), said=said, text=text, kind=kind, suite=True))
    return Cases(run.tests, tuple(found), bool(outcomes))


def _with_parents(test: str) -> list[str]:
    names = test.split("/")
    return ["/".join(names[: count + 1]) for count in range(min(len(names), 10))]


def _go_said(text: str) -> str:
    logs = [match[1] for line in text.split("\n") if (match := _GO_LOG.fullmatch(line))]
    return next((line for line in text.split("\n") if line.startswith("panic: ")), logs[-1] if logs else "")


def _go_json_case(key: tuple[str, str], outcome: str, text: str) -> CaseResult:
    package, test = key
    case = CaseResult(test, tuple(test.split("/")), outcome, said=_go_said(text), text=text)
    return _in_package(case, package)


GO = TestRunner(
    "go",
    "\t",
    go_run,
    go_cases,
    idle_lines=(
        r"(?:ok  |\?   )\t\S+.*\[no (?:tests to run|test files)\]",
        r"testing: warning: no tests to run",
    ),
    start_errors={
        REFUSED: (rf"go: .*: {DENIED}",),
        NOT_FETCHED: (r"go: .*(?:dial tcp|i/o timeout|no such host|TLS handshake timeout|connection refused).*",),
        NOT_SET_UP: (
            r"go: (?:cannot find main module|go\.mod file not found).*",
            r"pattern .*: directory prefix .* does not contain main module.*",
        ),
        MISUSED: (r"flag provided but not defined: .*", r"no Go files in .*"),
        NOT_BUILT: (r"\S+\.go:\d+:\d+: .*", r"\S.*: no required module provides package .*", r"go: .*"),
    },
    is_refusal=refused_in_go,
)
GO_JSON = TestRunner(
    "go",
    '"Action":',
    go_json_run,
    go_cases,
    idle_lines=(r'(?=.*"Action":"output").*\[no tests to run\].*',),
    is_refusal=refused_in_go,
)

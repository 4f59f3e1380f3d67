"""What `go test` (also with -json) and `cargo test` print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fusewire.testruns.run import counted
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.run import Run

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


def go_run(text: str) -> Run | None:
    """Lines of packages close the lines of their tests; a package that was run again replaces itself."""
    packages: dict[str, _Package] = {}
    package, end, reason = _Package(), 0, ""
    for match in _GO_LINE.finditer(text):
        if match["test"]:
            package.outcomes[match["test"]] = match["outcome"]
            package.said[match["test"]] = _go_said(text, match.end())
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


def _go_said(text: str, start: int) -> str:
    """The first line that a test logged, without the file and line in front."""
    following = text[start + 1 : start + 500].split("\n")[0]
    return re.sub(r"^\s+(?:\S+\.go:\d+: )?", "", following) if following.startswith(" ") else ""


def go_json_run(text: str) -> Run | None:
    packages: dict[str, _Package] = {}
    end, position = 0, 0
    for line in text.split("\n"):
        position += len(line) + 1
        if '"Action":' not in line or not line.startswith("{"):
            continue
        try:
            event = loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("Package"), str):
            _go_event(packages, event)
            end = position - 1
    return _go_counted(packages, end)


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


def _go_counted(packages: dict[str, _Package], end: int) -> Run | None:
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


_CARGO_START = re.compile(r"^ +Finished .*target\(s\) in .*$", re.MULTILINE)
_CARGO_END = re.compile(r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;.*$", re.MULTILINE)
#: With -q only the failing ones have a line.
_CARGO_FAILURE = re.compile(r"^(?:test )?(\S+)(?: - .*)? (?:\.\.\.|---) FAILED$", re.MULTILINE)
_CARGO_SAID = re.compile(
    r"^thread '(?P<test>[^'\n]*)' (?:\(\d+\) )?panicked at "
    r"(?:'(?P<old>.*)', .*|\S+:\n(?P<new>.*(?:\n +(?:left|right): .*)*))$",
    re.MULTILINE,
)


def cargo_run(text: str) -> Run | None:
    """The results of every binary since the last build, in one."""
    results = list(_CARGO_END.finditer(text))
    if not results:
        return None
    starts = [match.end() for match in _CARGO_START.finditer(text, 0, results[-1].start())]
    begin = starts[-1] if starts else 0
    counted_results = [match for match in results if match.start() >= begin]
    passed, failed, skipped = (sum(int(match[group]) for match in counted_results) for group in (1, 2, 3))
    if not passed + failed + skipped:
        return None
    said = {
        match["test"]: match["old"] or match["new"] for match in _CARGO_SAID.finditer(text, begin, results[-1].end())
    }
    failures = {name: said.get(name, "") for name in _CARGO_FAILURE.findall(text, begin, results[-1].end())}
    return counted("cargo", results[-1].end(), failures, passed=passed, failed=failed, skipped=skipped)

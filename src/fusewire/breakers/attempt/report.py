"""Render the texts of the attempt seed: the diagnostic report, and the prior attempts that a retry is given.

A report of a test has eight fields, none of them left out. Most of it is filled from what was recorded. Three fields
need a mind, and are asked for: what the test expects, the best hypothesis, and the one question whose answer would
unblock the work.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, cast

from fusewire.breakers.attempt.state import RecoveryOption, check_test, tried_before
from fusewire.util.errors import FusewireError
from fusewire.util.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.attempt.state import SliceRecord, TestRecord, Thoughts, Tried, TriedBefore
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.util.fast_json import JsonObject

#: The fields that need a mind, and how to ask for them.
MIND = {
    "test_expectation": "What does the test expect (the behaviour, not the syntax of the assertion)?",
    "best_hypothesis": "What is the best theory of the root cause, on the evidence so far?",
    "specific_question": "Which single question, if it were answered, would unblock the work?",
}

#: What stands for a field that was not filled.
UNREPORTED = "not reported"

_NOT_APPLICABLE = re.compile(r"\W*(not applicable|n\.?/?a\.?|none|nothing|unknown|tbd|todo|-)\W*", re.IGNORECASE)
_LONGEST = 8000


def check_field(name: str, value: object) -> str:
    """A field that needs a mind, if one was at work; an error otherwise."""
    if not isinstance(value, str):
        raise FusewireError(f"{name} must be a text, not a {type(value).__name__}")
    if not value.strip():
        raise FusewireError(f"{name} is empty; say it in a sentence, or `not applicable: REASON`")
    if _NOT_APPLICABLE.fullmatch(value):
        raise FusewireError(f"{name} = {value.strip()!r} is refused; a field that does not apply needs its reason")
    if len(value) > _LONGEST:
        raise FusewireError(f"{name} is too long; allowed: up to {_LONGEST} characters")
    return value.strip()


def check_options(value: object) -> list[RecoveryOption]:
    """Recovery options: each with its risk."""
    if not isinstance(value, list) or not value or len(value) > 20:
        raise FusewireError("recovery_options must be a list of 1 to 20 entries with `option` and `risk`")
    options = []
    for one in value:
        if not isinstance(one, dict) or {str(key) for key in one} != {"option", "risk"}:
            raise FusewireError("each of recovery_options has exactly two keys: option, risk")
        option, risk = (check_field(f"recovery_options: {key}", one[key]) for key in ("option", "risk"))
        options.append(RecoveryOption(option=option, risk=risk))
    return options


def fill_in(attempts: Attempts, slice_id: str, given: dict[str, JsonObject]) -> None:
    """Remember what a mind has said about tests: {test: {field: value}}."""
    checked: dict[str, Thoughts] = {}
    for test, fields in given.items():
        check_test(test)
        unknown = sorted(set(fields) - {*MIND, "recovery_options"})
        if unknown:
            allowed = ", ".join([*MIND, "recovery_options"])
            raise FusewireError(f"{unknown[0]} is no field that can be given; allowed: {allowed}")
        made = {
            name: check_options(value) if name == "recovery_options" else check_field(name, value)
            for name, value in fields.items()
        }
        checked[test] = cast("Thoughts", made)

    def keep(work: BreakerTransaction, record: SliceRecord) -> None:
        for test, fields in checked.items():
            if test not in record.tests:
                raise FusewireError(f"{slice_id} has no attempts at {test}; known: {', '.join(record.tests) or 'none'}")
            record.tests[test].report = {**record.tests[test].report, **fields}

    attempts.change(slice_id, keep)


def tests_to_report(attempts: Attempts, slice_id: str, test: str | None = None) -> list[str]:
    """The tests that need a report: those that fail."""
    record = attempts.known(slice_id)
    failing = record.failing()
    if test is not None and test not in failing:
        raise FusewireError(f"{test} has no failed attempts; failing in {slice_id}: {', '.join(failing) or 'none'}")
    if not failing:
        raise FusewireError(f"nothing to report: no test of {slice_id} has failed since it last passed")
    return [test] if test is not None else failing


def missing(attempts: Attempts, slice_id: str, tests: list[str]) -> dict[str, list[str]]:
    """The fields that are not filled yet."""
    record = attempts.known(slice_id)
    lacking = {test: [name for name in MIND if not record.tests[test].report.get(name)] for test in tests}
    return {test: names for test, names in lacking.items() if names}


def reports(attempts: Attempts, slice_id: str, tests: list[str]) -> list[JsonObject]:
    """The complete reports; FusewireError if a field is missing."""
    lacking = missing(attempts, slice_id, tests)
    if lacking:
        named = "; ".join(f"{test}: {', '.join(fields)}" for test, fields in lacking.items())
        raise FusewireError(
            f"the diagnostic report of {slice_id} is not complete. Missing: {named}."
            " Give them with --test-expectation, --best-hypothesis, --specific-question (and --test), or --from FILE"
        )
    record = attempts.known(slice_id)
    return [_report(attempts, record, slice_id, test) for test in tests]


def _report(attempts: Attempts, record: SliceRecord, slice_id: str, test: str) -> JsonObject:
    entry = record.tests[test]
    modified = list(dict.fromkeys([*(file for line in entry.log for file in line["files"]), *entry.files_touched]))
    log = [
        {
            "attempt": line["attempt"],
            "strategy": line["strategy"] or "not described",
            "files": line["files"],
            "result": line["result"] or "failed",
        }
        for line in entry.log
    ]
    report = {
        "slice_id": slice_id,
        "test_name": test,
        "test_expectation": entry.report["test_expectation"],
        "actual_error": entry.last_error or "not applicable: no output was given with the failed attempts",
        "attempt_log": log,
        "cumulative_files_modified": modified or f"not applicable: {_unmodified(entry)}",
        "scope_violations": _violations(attempts, slice_id, modified),
        "best_hypothesis": entry.report["best_hypothesis"],
        "specific_question": entry.report["specific_question"],
        "recovery_options": entry.report.get("recovery_options") or _options(slice_id),
    }
    errors = [{"kind": one["kind"], "reason": one["reason"]} for one in record.infrastructure if one["test"] == test]
    if errors:  # they were no attempts, and the reader of the report must know why
        report["infrastructure_errors"] = errors
    return report


def _unmodified(entry: TestRecord) -> str:
    if entry.checkpoint:
        return "no file was modified since the checkpoint"
    return "there is no checkpoint to compare with, and no file was named"


def _violations(attempts: Attempts, slice_id: str, files: list[str]) -> list[dict[str, str]] | str:
    found = attempts.lock.violations(slice_id, files)
    if found is None:
        return f"not applicable: no scope is defined for {slice_id}"
    return found or "not applicable: every modified file is in scope"


def _options(slice_id: str) -> list[RecoveryOption]:
    return [
        {
            "option": f"Answer the question and start anew: fusewire attempt retry {slice_id} --guidance ANSWER",
            "risk": "Low: files go back to the checkpoint, and what is there now is saved",
        },
        {
            "option": "Correct the test, or the contract that it rests on, and retry",
            "risk": "Medium: it is a decision of whoever wrote them",
        },
        {
            "option": "Split the slice, or stop it for an architectural decision",
            "risk": "Medium: other slices may wait for this one",
        },
    ]


# -- as texts -----------------------------------------------------------------------------------------------


def yaml_text(data: object) -> str:
    """YAML as people write it: texts of several lines as blocks, keys in their order."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        quoted = None if visible(value) == value else '"'  # what is written for it may look like a list
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else quoted)

    Dumper.add_representer(str, text)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000, indent=2)


def prior_attempts(prior: Sequence[TriedBefore]) -> str:
    """The `<prior_attempts>` block after a retry; empty if there was none."""
    if not prior:
        return ""
    newest = prior[-1]
    lines = ["<prior_attempts>", f"Circuit tripped after {newest['failures']} total failed attempts."]
    if newest["arch_stop"]:
        lines.append(f"ARCH-STOP: {_inside(newest['arch_stop'])}")
    for name, test in newest["tests"].items():
        report = test["report"]
        earlier = tried_before(prior[:-1], name)
        tried = _tried(test["log"]) + (f"; and before an earlier retry: {_tried(earlier)}" if earlier else "")
        lines += [
            "",
            f'For test "{_inside(name)}":',
            f"- what was tried: {_inside(tried)}",
            f"- hypothesis: {_inside(report.get('best_hypothesis', UNREPORTED))}",
            f"- question: {_inside(report.get('specific_question', UNREPORTED))}",
            f"- guidance: {_inside(newest['guidance'] or 'none given')}",
        ]
    if not newest["tests"] and newest["guidance"]:
        lines += ["", f"- guidance: {_inside(newest['guidance'])}"]
    return "\n".join([*lines, "</prior_attempts>"])


def _tried(log: Sequence[Tried]) -> str:
    """`1. strategy -> result; 2. …`."""
    steps = []
    for entry in log:
        result = f" -> {entry['result']}" if entry["result"] else ""
        steps.append(f"{entry['attempt']}. {entry['strategy'] or 'strategy not described'}{result}")
    return "; ".join(steps)


def _inside(text: str) -> str:
    """On one line, without invisible characters, and unable to end the block that it stands in."""
    seen = "".join(letter if unicodedata.category(letter) not in ("Cc", "Cf", "Cs") else " " for letter in text)
    return re.sub(r"<(?=\s*/?\s*prior_attempts)", "&lt;", " ".join(seen.split()), flags=re.IGNORECASE)

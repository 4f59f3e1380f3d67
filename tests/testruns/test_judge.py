"""What a test run says about one test: recorded outputs of real runners, and what must not decide."""

# ruff: noqa: RUF001  (jest joins names with this mark)

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.testruns.cases import same_test
from fusewire.testruns.judge import ERROR, EVIDENCE, RunVerdict, judge
from tests.helpers import DATA

RECORDED = DATA / "testruns"


def output(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def verdict(name: str, exit_code: int, test: str) -> RunVerdict:
    return judge(test, output(name), exit_code)


#: recording, exit code, test, result and, of infra, its kind
PASSES = [
    ("pytest-pass", 0, "test_passes"),
    ("pytest-pass-v", 0, "tests/test_login.py::test_passes"),
    ("pytest-fail-v", 1, "test_passes"),
    ("pytest-fail-v", 1, "test_many[1]"),
    ("pytest-one-k", 0, "test_well"),
    ("pytest-escaped", 1, "test_names[plain]"),
    ("pytest-escaped-v", 1, "test_names[plain]"),
    ("pytest-rA", 1, "test_passes"),
    ("pytest-xdist", 1, "test_passes"),
    ("pytest-words", 1, "test_well"),
    ("pytest-skipped", 0, "test_passes"),
    ("pytest-setup", 1, "test_fine"),
    ("pytest-subtests", 1, "test_ok"),
    ("pytest-subtests-v", 1, "test_ok"),
    ("unittest-pass", 0, "test_passes"),
    ("unittest-fail-v", 1, "test_passes"),
    ("unittest-unexpected", 1, "test_y"),
    ("unittest-one", 0, "test_well"),
    ("unittest-subtests-t", 1, "test_well"),
    ("unittest-subtests-v", 1, "test_well"),
    ("jest-pass", 0, "login › passes"),
    ("jest-fail", 1, "login › passes"),
    ("vitest-pass", 0, "login > passes"),
    ("vitest-fail", 1, "login > passes"),
    ("vitest-fail-v", 1, "login > passes"),
    ("go-pass", 0, "TestPasses"),
    ("go-pass-v", 0, "TestPasses"),
    ("go-fail-v", 1, "TestPasses"),
    ("go-fail-v", 1, "TestLoginTwice/some case"),
    ("go-json", 1, "TestPasses"),
    ("cargo-pass", 0, "tests::passes"),
    ("cargo-fail", 101, "tests::passes"),
    ("cargo-one-q", 0, "tests::passes"),
    ("cargo-says", 101, "tests::passes"),
    ("cargo-fail-nocapture", 101, "tests::passes"),
    ("jest-many-t", 0, "b one"),
    ("vitest-many-t", 0, "b > one"),
    ("node-tap", 1, "two"),
    ("node-tap", 1, "users > inner > one"),
    ("node-tap", 1, "flat"),
    ("node-tap-hook", 1, "child"),
    ("node-tap-broken", 1, "users two"),
    ("node-tap-pass", 0, "two"),
    ("node-spec", 1, "two"),
    ("node-spec", 1, "inner one"),
    ("node-spec-hook", 1, "child"),
    ("node-spec-broken", 1, "two"),
    ("node-spec-pass", 0, "two"),
]

FAILS = [
    ("pytest-fail", 1, "test_login"),
    ("pytest-fail", 1, "tests/test_login.py::test_login"),
    ("pytest-fail", 1, "backend/tests/test_login.py::test_login"),
    ("pytest-fail", 1, "test_login_twice"),
    ("pytest-fail", 1, "test_many"),
    ("pytest-fail", 1, "test_many[2]"),
    ("pytest-fail", 1, "TestUser::test_name"),
    ("pytest-fail", 1, "TestUser.test_name"),
    ("pytest-fail", 1, "TestUser"),
    ("pytest-fail", 1, "tests/test_login.py"),
    ("pytest-fail-q", 1, "test_login"),
    ("pytest-fail-v", 1, "test_login"),
    ("pytest-fail-x", 1, "test_login"),
    ("pytest-rA", 1, "test_login"),
    ("pytest-xdist", 1, "test_login"),
    ("pytest-native", 1, "test_login"),
    ("pytest-tbline", 1, "test_login"),
    ("pytest-notb", 1, "test_login"),
    ("pytest-collect-go-on", 1, "test_login"),
    ("pytest-files", 1, "test_words"),
    ("pytest-files", 1, "test_lines"),
    ("pytest-files", 1, "test_may_not"),
    ("pytest-files", 1, "test_chained"),
    ("pytest-words", 1, "test_says"),
    ("pytest-subtests", 1, "test_many"),
    ("pytest-subtests", 1, "test_native"),
    ("pytest-subtests-v", 1, "T::test_many"),
    ("pytest-subtests-v", 1, "test_sub.py::T::test_many"),
    ("unittest-fail", 1, "test_login"),
    ("unittest-fail", 1, "test_login (test_login.Login.test_login)"),
    ("unittest-fail", 1, "test_login (test_login.Login)"),
    ("unittest-fail", 1, "Login.test_twice"),
    ("unittest-fail", 1, "test_many"),
    ("unittest-fail", 1, "test_words"),
    ("unittest-fail-v", 1, "test_login.Login.test_login"),
    ("unittest-buffer", 1, "test_words"),
    ("unittest-unexpected", 1, "test_x"),
    ("unittest-broken", 1, "test_login.Login.test_login"),
    ("jest-fail", 1, "login › refuses"),
    ("jest-fail", 1, "login refuses twice"),
    ("jest-fail", 1, "refuses twice"),
    ("jest-fail", 1, "login › inner › refuses"),
    ("jest-fail", 1, "login.test.js"),
    ("jest-fail", 1, "words"),
    ("jest-broken", 1, "login › refuses"),
    # a hook whose beginning is not shown cannot be told from a test
    ("jest-hook-long", 1, "db › opens"),
    ("vitest-fail", 1, "login > refuses"),
    ("vitest-fail", 1, "login.test.js > login > inner > refuses"),
    ("vitest-fail", 1, "words"),
    ("vitest-fail-v", 1, "login › refuses"),
    ("vitest-fail-colour", 1, "login > refuses twice"),
    ("vitest-broken", 1, "login > refuses"),
    ("go-fail", 1, "TestLogin"),
    ("go-fail", 1, "example.com/shop/login.TestLogin"),
    ("go-fail", 1, "TestLoginTwice"),
    ("go-fail", 1, "TestLoginTwice/negative"),
    ("go-fail", 1, "TestWords"),
    ("go-fail-v", 1, "TestLogin"),
    ("go-fail-v", 1, "TestWords"),
    ("go-json", 1, "TestLogin"),
    ("go-json", 1, "TestLoginTwice"),
    ("go-panic", 1, "TestPanics"),
    ("cargo-fail", 101, "tests::login"),
    ("cargo-fail", 101, "shop::tests::login_twice"),
    ("cargo-fail", 101, "login"),
    ("cargo-fail", 101, "words"),
    ("cargo-fail-q", 101, "tests::login"),
    ("cargo-fail-nocapture", 101, "tests::login_twice"),
    ("cargo-fail-nocapture", 101, "tests::words"),
    ("script-assert", 1, "check"),
    # what a test throws, asserts or panics with is its own word
    ("pytest-denied", 1, "test_words"),
    ("pytest-denied", 1, "test_code"),
    ("pytest-denied", 1, "test_custom"),
    ("pytest-denied", 1, "test_asserts"),
    ("pytest-denied", 1, "test_fails"),
    ("pytest-denied", 1, "test_plain_fails"),
    ("jest-files", 1, "files › throws"),
    ("jest-files", 1, "files › throws all"),
    ("jest-files", 1, "files › custom"),
    ("vitest-files", 1, "files > throws"),
    ("vitest-files", 1, "files > throws all"),
    ("vitest-files", 1, "files > custom"),
    ("node-tap", 1, "inner > throws"),
    ("node-spec", 1, "inner > throws"),
    ("cargo-says", 101, "tests::says"),
    ("cargo-says", 101, "tests::says_more"),
    ("cargo-says", 101, "tests::shows"),
    # tests in tests
    ("node-tap", 1, "one"),
    ("node-tap", 1, "users > one"),
    ("node-tap", 1, "users one"),
    ("node-tap", 1, "users › one"),
    ("node-tap-hook", 1, "parent"),
    ("node-tap-broken", 1, "users > one"),
    ("node-spec", 1, "one"),
    ("node-spec", 1, "users > one"),
    ("node-spec", 1, "users one"),
    ("node-spec-hook", 1, "parent"),
    ("node-spec-broken", 1, "users > one"),
    ("unittest-subtests", 1, "test_many"),
    ("unittest-subtests", 1, "U.test_raise"),
    ("unittest-subtests-v", 1, "test_many"),
    ("unittest-subtests-t", 1, "T.test_many"),
    # both spellings of letters that pytest escapes
    ("pytest-escaped", 1, "test_names[ünï]"),
    ("pytest-escaped", 1, "test_names[\\xfcn\\xef]"),
    ("pytest-escaped-v", 1, "test_names.py::test_names[€ 5]"),
    ("pytest-escaped-v", 1, "test_names[\\u20ac 5]"),
]

INFRA = [
    ("build", "pytest-collect", 2, "test_login"),
    ("build", "pytest-collect-only", 2, "test_a"),
    ("build", "pytest-collect-go-on", 1, "test_passes"),
    ("build", "pytest-syntax", 2, "test_a"),
    ("build", "pytest-conftest", 4, "test_a"),
    ("build", "pytest-setup", 1, "test_nofixture"),
    ("environment", "pytest-setup", 1, "test_env"),
    ("environment", "pytest-setup", 1, "test_typo"),
    ("environment", "pytest-missing", 1, "test_a"),
    ("network", "pytest-setup", 1, "test_server"),
    ("network", "pytest-subtests", 1, "test_set"),
    ("network", "pytest-subtests-v", 1, "T::test_set"),
    ("permission", "pytest-setup", 1, "test_secret"),
    ("permission", "pytest-files", 1, "test_reads"),
    ("permission", "pytest-files", 1, "test_full"),
    ("runner", "pytest-setup", 1, "test_closing"),
    ("runner", "pytest-usage", 4, "test_a"),
    ("runner", "pytest-notfound", 4, "test_nowhere"),
    ("runner", "pytest-none", 5, "test_nothing"),
    ("runner", "pytest-internal", 3, "test_a"),
    ("runner", "pytest-crash", 139, "test_dies"),
    ("runner", "pytest-crash-xdist", 1, "test_dies"),
    ("runner", "pytest-fail-x", 1, "test_many"),
    ("runner", "pytest-skipped", 0, "test_skipped"),
    ("runner", "pytest-skipped", 0, "test_expected"),
    ("runner", "pytest-skipped-q", 0, "test_skipped"),
    ("runner", "pytest-fail-v", 1, "test_skipped"),
    ("runner", "pytest-pass-v", 0, "test_login"),
    ("build", "unittest-broken", 1, "test_passes"),
    ("build", "unittest-syntax", 1, "test_a"),
    ("build", "unittest-notfound", 1, "test_nowhere"),
    ("build", "unittest-notmodule", 1, "test_nowhere.T.test_a"),
    ("environment", "unittest-fail", 1, "test_login.Database.test_url"),
    ("environment", "unittest-failfast", 1, "test_login"),
    ("network", "unittest-fail", 1, "test_early"),
    ("permission", "unittest-fail", 1, "test_files"),
    ("runner", "unittest-fail-v", 1, "test_skipped"),
    ("runner", "unittest-fail-v", 1, "test_expected"),
    ("runner", "unittest-skipped", 0, "test_skipped"),
    ("runner", "unittest-none", 0, "test_a"),
    ("runner", "unittest-usage", 2, "test_a"),
    ("build", "jest-broken", 1, "a"),
    ("build", "jest-broken-only", 1, "a"),
    ("build", "jest-syntax", 1, "a"),
    ("environment", "npm-missing", 1, "a"),
    ("environment", "npx-mod", 1, "a"),
    ("network", "jest-hook", 1, "hook › never"),
    ("network", "npm-network", 1, "a"),
    ("permission", "jest-fail", 1, "login › reads"),
    ("runner", "jest-fail", 1, "login › later"),
    ("runner", "jest-fail", 1, "twice"),
    ("runner", "jest-pass", 0, "login › refuses"),
    ("runner", "jest-none", 1, "a"),
    ("runner", "jest-none-t", 0, "nothing"),
    ("runner", "jest-skipped", 0, "later"),
    ("runner", "jest-usage", 1, "a"),
    ("runner", "jest-exit", 3, "dies"),
    ("build", "vitest-broken", 1, "a"),
    ("build", "vitest-broken-only", 1, "a"),
    ("build", "vitest-syntax", 1, "a"),
    ("network", "vitest-hook", 1, "hook > never"),
    ("permission", "vitest-fail", 1, "login > reads"),
    ("permission", "vitest-fail-colour", 1, "login > reads"),
    ("runner", "vitest-fail-v", 1, "login > later"),
    ("runner", "vitest-none", 1, "a"),
    ("runner", "vitest-none-t", 0, "nothing"),
    ("runner", "vitest-usage", 1, "a"),
    ("runner", "vitest-late", 1, "rejects"),
    ("build", "go-broken", 2, "TestAdd"),
    ("build", "go-broken-only", 2, "TestAdd"),
    ("build", "go-json-broken", 2, "TestAdd"),
    ("build", "go-missing-ro", 1, "TestA"),
    ("environment", "go-nomod", 1, "TestA"),
    ("network", "go-missing", 1, "TestA"),
    ("permission", "go-fail", 1, "TestReads"),
    ("permission", "go-fail-v", 1, "TestReads"),
    ("permission", "go-json", 1, "TestReads"),
    ("runner", "go-fail", 1, "TestPasses"),
    ("runner", "go-fail-v", 1, "TestLater"),
    ("runner", "go-fail-v", 1, "TestLog"),
    ("runner", "go-panic", 1, "TestAfter"),
    ("runner", "go-timeout", 1, "TestSlow"),
    ("runner", "go-init", 1, "TestA"),
    ("runner", "go-none", 0, "Nothing"),
    ("runner", "go-json-none", 0, "Nothing"),
    ("runner", "go-nofiles", 1, "TestA"),
    ("runner", "go-skip", 0, "TestLater"),
    ("build", "cargo-build", 101, "tests::login"),
    ("environment", "cargo-env", 101, "tests::login"),
    ("environment", "cargo-nocommand", 101, "tests::login"),
    ("environment", "cargo-notoml", 101, "tests::login"),
    ("network", "cargo-network", 101, "tests::login"),
    ("permission", "cargo-fail", 101, "tests::reads"),
    ("permission", "cargo-fail", 101, "tests::reads_result"),
    ("permission", "cargo-fail-q", 101, "tests::reads"),
    ("permission", "cargo-fail-nocapture", 101, "tests::reads"),
    ("runner", "cargo-crash", 101, "tests::aborts"),
    ("runner", "cargo-fail", 101, "tests::later"),
    ("runner", "cargo-pass", 0, "tests::login"),
    ("runner", "cargo-none", 0, "nothing"),
    ("runner", "cargo-ignored", 0, "tests::later"),
    ("runner", "cargo-notarget", 101, "tests::login"),
    ("runner", "cargo-usage", 1, "tests::login"),
    ("build", "script-import", 1, "check"),
    ("environment", "sh-127", 127, "check"),
    ("environment", "bash-127", 127, "check"),
    ("permission", "sh-126", 126, "check"),
    # names of passed tests are not told, and some tests were left out
    ("runner", "pytest-fail", 1, "test_passes"),
    ("runner", "pytest-fail", 1, "test_log"),
    ("runner", "pytest-fail", 1, "test_many[1]"),
    ("runner", "pytest-fail", 1, "tests/test_other.py::test_login"),
    ("runner", "pytest-fail", 1, "test_skipped"),
    ("runner", "pytest-fail-q", 1, "test_passes"),
    ("runner", "pytest-native", 1, "test_passes"),
    ("runner", "pytest-only-other", 1, "test_login"),
    ("runner", "pytest-skips", 0, "test_later"),
    ("runner", "pytest-skips", 0, "test_well"),
    ("runner", "pytest-skips", 0, "test_deleted"),
    ("runner", "pytest-skips-q", 0, "test_expected"),
    ("runner", "pytest-skips-rsx", 0, "test_expected"),
    ("runner", "pytest-skips-rsx", 0, "test_later"),
    ("runner", "unittest-skips", 0, "test_later"),
    ("runner", "unittest-skips", 0, "test_expected"),
    ("runner", "unittest-subtests", 1, "test_later"),
    ("runner", "unittest-subtests-v", 1, "test_later"),
    ("runner", "cargo-fail-q", 101, "tests::passes"),
    ("runner", "cargo-skips-q", 0, "tests::later"),
    ("runner", "cargo-skips-q", 0, "tests::passes"),
    ("runner", "jest-many-skipped", 0, "a later"),
    ("runner", "vitest-many-skipped", 0, "a > later"),
    ("runner", "vitest-fail", 1, "login > later"),
    ("runner", "node-tap", 1, "later"),
    ("runner", "node-tap", 1, "on"),
    ("runner", "node-tap-pass", 0, "flat"),
    ("runner", "node-spec", 1, "later"),
    ("runner", "node-spec-pass", 0, "users > one"),
    ("runner", "node-tap-hook", 1, "late"),
    ("network", "node-tap-hook", 1, "db > opens"),
    ("network", "node-spec-hook", 1, "opens"),
    ("build", "node-tap-broken", 1, "never"),
    ("build", "node-spec-broken", 1, "never"),
    ("permission", "node-tap", 1, "reads"),
    ("permission", "node-spec", 1, "reads"),
    ("permission", "jest-files", 1, "files › reads"),
    ("permission", "jest-files", 1, "files › promised"),
    ("permission", "vitest-files", 1, "files > reads"),
    ("permission", "vitest-files", 1, "files > promised"),
    ("permission", "pytest-denied", 1, "test_reads"),
    ("permission", "cargo-says", 101, "tests::reads"),
    ("permission", "cargo-says", 101, "tests::unwraps"),
    ("permission", "cargo-says", 101, "tests::gives_back"),
]


@pytest.mark.parametrize(("name", "exit_code", "test"), PASSES)
def test_it_passed(name: str, exit_code: int, test: str) -> None:
    got = verdict(name, exit_code, test)
    assert (got.result, got.kind, got.evidence, got.error) == ("pass", "", "", ""), got


@pytest.mark.parametrize(("name", "exit_code", "test"), FAILS)
def test_it_ran_and_failed(name: str, exit_code: int, test: str) -> None:
    """And what is kept of it stands in the output, letter for letter."""
    got = verdict(name, exit_code, test)
    assert (got.result, got.kind, got.evidence) == ("fail", "", ""), got
    assert got.error
    several = {"go-json", "pytest-fail", "unittest-fail", "jest-fail"}
    several |= {"unittest-subtests", "unittest-subtests-v", "unittest-subtests-t"}
    if name not in several or test in ("test_login", "login › refuses"):
        assert got.error in output(name)


@pytest.mark.parametrize(("kind", "name", "exit_code", "test"), INFRA)
def test_it_could_not_run(kind: str, name: str, exit_code: int, test: str) -> None:
    """And every line of the evidence was printed."""
    got = verdict(name, exit_code, test)
    assert (got.result, got.kind, got.error) == ("infra", kind, ""), got
    assert got.evidence
    if name != "go-json":
        printed = output(name).split("\n")
        assert set(got.evidence.split("\n")) <= set(printed)


def test_every_recording_is_looked_at() -> None:
    used = {case[0] for case in (*PASSES, *FAILS)} | {case[1] for case in INFRA} | {"pytest-one-notb"}
    assert {path.stem for path in RECORDED.glob("*.txt")} == used


@pytest.mark.parametrize(
    ("name", "exit_code", "test", "begin", "end", "without"),
    [
        ("pytest-fail", 1, "test_login", "______", "test_login.py:8: AssertionError", "KeyError"),
        ("pytest-fail", 1, "TestUser::test_name", "______", "test_login.py:28: AssertionError", "summary info"),
        ("pytest-words", 1, "test_says", "______", "pytest: command not found", "summary info"),
        ("pytest-native", 1, "test_login", "______", "AssertionError: assert (1 + 1) == 3", "KeyError"),
        ("unittest-fail", 1, "test_login", "FAIL: test_login (", "AssertionError: 2 != 3\n", "KeyError"),
        ("unittest-fail", 1, "test_words", "FAIL: test_words (", "\n+ \n\n", "Ran 9"),
        ("jest-fail", 1, "login › refuses", "  ● login › refuses\n", "(login.test.js:4:83)\n", "TypeError: no"),
        ("vitest-fail", 1, "login > refuses", " FAIL  login.test.js > login > refuses\n", "[1/5]⎯", "TypeError: no"),
        ("go-fail", 1, "TestLogin", "--- FAIL: TestLogin (", "login_test.go:12: got 2, want 3", "got 1"),
        ("go-fail-v", 1, "TestLogin", "=== RUN   TestLogin\n", "--- FAIL: TestLogin (0.00s)", "TestLoginTwice"),
        ("go-panic", 1, "TestPanics", "--- FAIL: TestPanics (", "testing.go:1493 +0x35f", "FAIL\t"),
        ("cargo-fail-q", 101, "tests::login", "---- tests::login stdout ----", "backtrace\n", "login_twice"),
        ("cargo-fail-nocapture", 101, "tests::login", "thread 'tests::login' (", "backtrace\n", "login_twice"),
        ("cargo-fail", 101, "tests::login", "---- tests::login stdout ----", "backtrace\n", "login_twice"),
    ],
)
def test_the_error_is_the_part_of_this_test(
    name: str, exit_code: int, test: str, begin: str, end: str, without: str
) -> None:
    error = verdict(name, exit_code, test).error
    assert error.startswith(begin)
    assert error.endswith(end)
    assert without not in error
    assert error in output(name)


def test_colours_stay_in_what_is_kept() -> None:
    got = verdict("vitest-fail-colour", 1, "login > refuses")
    assert "\x1b[" in got.error
    assert got.error in output("vitest-fail-colour")


def test_every_failing_parameter_is_kept() -> None:
    error = verdict("unittest-fail", 1, "test_many").error
    assert "(i=0)" in error
    assert "(i=2)" in error


def test_a_part_that_is_too_long_keeps_the_error() -> None:
    text = output("pytest-fail").replace("    def test_login():\n", "    def test_login():\n" + "    # more\n" * 5_000)
    error = judge("test_login", text, 1).error
    assert len(error.encode()) <= ERROR
    assert "E       assert (1 + 1) == 3" in error


def test_of_an_output_without_parts_the_end_is_kept() -> None:
    text = "héllo\n" * 10_000 + "the last line\n"
    got = judge("check", text, 1)
    assert got.result == "fail"
    assert len(got.error.encode()) <= ERROR
    assert text.endswith(got.error)


def test_the_reason_is_for_people() -> None:
    assert verdict("pytest-fail-x", 1, "test_login").reason == "1 of 2 tests failed: tests/test_login.py::test_login"
    assert verdict("pytest-words", 1, "test_well").reason == "1 of 2 tests failed; test_well is not among them"
    assert verdict("pytest-fail", 1, "test_passes").reason == (
        "test_passes is not known to have run: add -v, or --junit; some tests were left out"
    )
    assert verdict("cargo-skips-q", 0, "later").reason == (
        "later is not known to have run: leave out -q, or add --junit; some tests were left out"
    )
    assert verdict("pytest-collect-only", 2, "test_a").reason == (
        "test_a is not known to have run: tests/test_broken.py: "
        "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    )
    assert verdict("pytest-setup", 1, "test_env").reason == "test_env could not run: KeyError: 'DATABASE_URL'"


@pytest.mark.parametrize(
    ("name", "exit_code", "test", "like"),
    [
        ("pytest-pass-v", 0, "test_pases", "; the nearest is tests/test_login.py::test_passes"),
        ("pytest-pass-v", 0, "tests/test_login.py::test_pases", "; the nearest is tests/test_login.py::test_passes"),
        ("cargo-pass", 0, "tests::pases", "; the nearest is tests::passes"),
        ("node-tap", 1, "users > inner > throw", "; the nearest is users > inner > throws"),
        ("pytest-pass-v", 0, "quite_another", ""),
    ],
)
def test_a_name_that_is_not_listed_is_answered_with_the_nearest(
    name: str, exit_code: int, test: str, like: str
) -> None:
    assert verdict(name, exit_code, test).reason == f"{test} did not run: no test of that name is listed{like}"


def test_the_counts_come_along() -> None:
    tests = verdict("pytest-fail", 1, "test_login").tests
    assert tests
    assert (tests.runner, tests.passed, tests.failed, tests.skipped) == ("pytest", 2, 4, 2)


# -- how the command ended ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "exit_code", "why", "result", "kind"),
    [
        ("", 0, "exit", "pass", ""),
        ("all good\n", 0, "exit", "pass", ""),
        ("no: 3 is not 4\n", 1, "exit", "fail", ""),
        ("", 2, "exit", "fail", ""),
        ("", 255, "exit", "fail", ""),
        ("", None, "timeout", "infra", "runner"),
        ("half of it", 1, "timeout", "infra", "runner"),
        ("half of it", 124, "exit", "infra", "runner"),
        ("", -9, "signal", "infra", "runner"),
        ("", None, "signal", "infra", "runner"),
        ("Killed\n", 137, "exit", "infra", "runner"),
        ("[Errno 2] No such file or directory: 'pytset'", None, "launch", "infra", "environment"),
        ("[Errno 13] Permission denied: './run'", None, "launch", "infra", "permission"),
        ("make: *** [Makefile:2: test] Error 127\n", 2, "exit", "infra", "environment"),
        ("make: *** [Makefile:2: test] Error 1\n", 2, "exit", "fail", ""),
        ("=== test session starts ===\ncollected 3 items\n\ntests/test_a.py .", 1, "exit", "infra", "runner"),
        ("src/a.ts(3,5): error TS2304: Cannot find name 'x'.\n", 2, "exit", "infra", "build"),
        ("error: failed to write `/x`\n\nCaused by:\n  No space left on device (os error 28)\n",
         101, "exit", "infra", "permission"),
        ('  File "t.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n', 1, "exit", "infra", "build"),
        ("Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    f()\nKeyError: 'x'\n",
         1, "exit", "fail", ""),
        (
            "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    x = os.environ['DB']\n"
            "  File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'DB'\n",
            1, "exit", "infra", "environment",
        ),
        (
            "Traceback (most recent call last):\n  File \"/v/site-packages/_pytest/config.py\", line 1, in main\n"
            "    f()\nTypeError: x\n",
            1, "exit", "infra", "runner",
        ),
        ("1..0\n", 0, "exit", "infra", "runner"),
        ("?   \texample.com/cmd\t[no test files]\n", 0, "exit", "infra", "runner"),
    ],
)  # fmt: skip
def test_commands_without_a_result(text: str, exit_code: int | None, why: str, result: str, kind: str) -> None:
    got = judge("check", text, exit_code, why=why)
    assert (got.result, got.kind) == (result, kind), got


def test_a_run_that_was_killed_after_the_test_had_failed_is_a_failure() -> None:
    text = output("pytest-fail")
    assert judge("test_login", text, None, why="timeout").result == "fail"
    assert judge("test_passes", text, None, why="timeout").result == "infra"
    assert judge("test_passes", output("pytest-fail-v"), -11, why="signal").result == "infra"


def test_a_swallowed_exit_code_hides_no_failure() -> None:
    """`pytest | tee log` exits with 0."""
    assert judge("test_login", output("pytest-fail"), 0).result == "fail"
    assert judge("TestUser::test_name", output("pytest-fail-x"), 0).result == "infra"


def test_an_exit_code_that_is_not_the_tests_own_is_no_failure_of_the_test() -> None:
    """A coverage threshold that is missed, say."""
    assert judge("test_passes", output("pytest-pass"), 1).result == "pass"


def test_unnamed_failures_are_failures_of_the_command() -> None:
    got = judge("test_passes", output("pytest-one-notb"), 1)
    assert (got.result, got.reason) == ("fail", "3 of 7 tests failed; the output does not name them")


# -- what must not decide -------------------------------------------------------------------------------------------

WORDS = [
    "ModuleNotFoundError: No module named 'x'",
    "E   ModuleNotFoundError: No module named 'x'",
    "PermissionError: [Errno 13] Permission denied: '/x'",
    "EACCES: permission denied, open '/x'",
    "Error: connect ECONNREFUSED 127.0.0.1:5432",
    "collected 0 items",
    "=== no tests ran in 0.01s ===",
    "Ran 0 tests in 0.000s",
    "bash: line 1: pytest: command not found",
    "error: could not compile `x` (lib) due to 1 previous error",
    "INTERNALERROR> RuntimeError",
    "panic: test timed out after 1s",
    "No tests found, exiting with code 1",
    "SyntaxError: invalid syntax",
    "go: x: dial tcp: lookup x: no such host",
    "npm error code ECONNREFUSED",
    "fixture 'x' not found",
    "Fatal Python error: Segmentation fault",
]


@pytest.mark.parametrize("words", WORDS)
def test_words_that_a_test_prints_decide_nothing(words: str) -> None:
    """Whether it failed or passed, in captured output, in a diff, in a message."""
    places = (
        ("pytest-fail-v", "ModuleNotFoundError: No module named 'x'", words, 1, "test_login_twice", "test_passes"),
        ("pytest-fail-v", "assert (1 + 1) == 3", f"AssertionError: {words}", 1, "test_login", "test_passes"),
        ("pytest-words", "1 failed in 0.10s", words, 1, "test_says", "test_well"),
        ("unittest-fail-v", "AssertionError: 2 != 3", f"AssertionError: {words}\n- {words}\n{words}", 1, "test_login",
         "test_passes"),
        ("jest-fail", "    Received: 2", f"    Received: {words}", 1, "login › refuses", "login › passes"),
        ("vitest-fail-v", "EACCES: permission denied\n", f"{words}\n", 1, "login > refuses", "login > passes"),
        ("go-fail-v", "go:12: got 2, want 3", f'go:12: got "{words}"', 1, "TestLogin", "TestPasses"),
        ("cargo-fail", "Permission denied (os error 13)\n", f"{words}\n", 101, "tests::login", "tests::passes"),
    )  # fmt: skip
    for name, old, new, exit_code, red, green in places:
        text = output(name).replace(old, new)
        assert judge(red, text, exit_code).result == "fail", (name, words)
        assert judge(green, text, exit_code).result == "pass", (name, words)


@pytest.mark.parametrize(
    "said",
    [
        "AssertionError: assert \"PermissionError: [Errno 13] Permission denied: '/x'\" == ''",
        "assert 'EACCES: permission denied' in 'x'",
        "PermissionError: this user may not",
        "ValueError: [Errno 13] Permission denied",
        "AssertionError: open /x: permission denied",
        "AssertionError: EACCES: permission denied, open '/x'",
        "assert None == Os { code: 13, kind: PermissionDenied }",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "TimeoutError: timed out",
        "FileNotFoundError: [Errno 2] No such file or directory: '/x'",
        "ModuleNotFoundError: No module named 'x'",
        "KeyError: 'DATABASE_URL'",
    ],
)
def test_a_test_that_ran_and_raised_has_failed(said: str) -> None:
    text = output("pytest-fail").replace("E       assert (1 + 1) == 3", f"E       {said}")
    assert judge("test_login", text, 1).result == "fail"


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("open /etc/shadow: permission denied", "infra"),
        ("cannot load: open config.yml: permission denied", "infra"),
        ("rename /a /b: no space left on device", "infra"),
        ("user bob: permission denied", "fail"),
        ("permission denied", "fail"),
        ('got "open /x: permission denied", want nil', "fail"),
        ("EACCES: permission denied, open '/x'", "fail"),
    ],
)
def test_of_go_only_the_shape_of_its_own_errors_is_the_filesystem(said: str, result: str) -> None:
    text = output("go-fail").replace("open /etc/shadow: permission denied", said)
    assert judge("TestReads", text, 1).result == result


@pytest.mark.parametrize(
    "said",
    [
        "PermissionError: [Errno 13] Permission denied: '/x'",
        "PermissionError: [Errno 1] Operation not permitted: '/x'",
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 30] Read-only file system: '/x'",
    ],
)
def test_what_the_filesystem_refuses_is_no_failure_of_the_test(said: str) -> None:
    text = output("pytest-fail").replace("E       assert (1 + 1) == 3", f"E       {said}")
    got = judge("test_login", text, 1)
    assert (got.result, got.kind) == ("infra", "permission")
    assert said in got.evidence


@pytest.mark.parametrize(
    ("given_name", "result"),
    [
        ("test_login", "fail"),
        ("login", "infra"),
        ("test_login_tw", "infra"),
        ("est_login", "infra"),
        ("test_login.py", "fail"),
        ("login.py", "infra"),
        ("test_many[", "infra"),
        ("many[2]", "infra"),
        ("./tests/test_login.py::test_login", "fail"),
        ("tests\\test_login.py::test_login", "fail"),
        ("tests.test_login.TestUser.test_name", "fail"),
        ("Test", "infra"),
        ("tests", "infra"),
    ],
)
def test_names_are_compared_at_their_joints(given_name: str, result: str) -> None:
    assert judge(given_name, output("pytest-fail"), 1).result == result


def test_two_tests_of_one_name_are_told_apart_by_their_file() -> None:
    text = """\
=================================== FAILURES ===================================
___________________________________ test_get ___________________________________

    def test_get():
>       assert 1 == 2
E       assert 1 == 2

tests/test_a.py:2: AssertionError
___________________________________ test_get ___________________________________

    def test_get():
>       open("/x")
E       PermissionError: [Errno 13] Permission denied: '/x'

tests/test_b.py:2: PermissionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_get - assert 1 == 2
FAILED tests/test_b.py::test_get - PermissionError: [Errno 13] Permission den...
2 failed, 1 passed in 0.10s
"""
    assert "assert 1 == 2" in judge("tests/test_a.py::test_get", text, 1).error
    assert judge("tests/test_b.py::test_get", text, 1).kind == "permission"
    assert judge("test_get", text, 1).result == "fail"
    assert judge("tests/test_c.py::test_get", text, 1).result == "pass"


def test_a_teardown_that_broke_elsewhere_kept_no_test_from_running() -> None:
    text = """\
==================================== ERRORS ====================================
______________________ ERROR at teardown of test_closing _______________________
E       RuntimeError: cannot close

tests/test_a.py:20: RuntimeError
=========================== short test summary info ============================
ERROR tests/test_a.py::test_closing - RuntimeError: cannot close
2 passed, 1 error in 0.10s
"""
    assert judge("test_fine", text, 1).result == "pass"
    assert judge("test_closing", text, 1).kind == "runner"


# -- JUnit XML, and the runners as they are installed here ----------------------------------------------------------

SUITE = """\
import pytest

@pytest.fixture
def broken():
    raise ConnectionRefusedError(111, "refused")

def test_well(): pass
def test_red(): assert 1 == 2
def test_setup(broken): pass
def test_disk(): raise OSError(28, "No space left on device")
@pytest.mark.skip
def test_later(): pass
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): assert n == 1
class TestUser:
    def test_name(self): assert 0
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int, bytes]:
    root = tmp_path_factory.mktemp("live")
    (root / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=out.xml", "test_suite.py"]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr, ran.returncode, (root / "out.xml").read_bytes()


@pytest.mark.parametrize(
    ("test", "result", "kind"),
    [
        ("test_well", "pass", ""),
        ("test_suite.py::test_well", "pass", ""),
        ("test_red", "fail", ""),
        ("test_suite.py::test_red", "fail", ""),
        ("test_suite.test_red", "fail", ""),
        ("test_setup", "infra", "network"),
        ("test_disk", "infra", "permission"),
        ("test_later", "infra", "runner"),
        ("test_expected", "infra", "runner"),
        ("test_many", "fail", ""),
        ("test_many[1]", "pass", ""),
        ("test_many[2]", "fail", ""),
        ("TestUser", "fail", ""),
        ("TestUser::test_name", "fail", ""),
        ("test_re", "infra", "runner"),
        ("test_suite", "infra", "runner"),
    ],
)
def test_junit_is_exact(live: tuple[str, int, bytes], test: str, result: str, kind: str) -> None:
    text, exit_code, junit = live
    got = judge(test, text, exit_code, junit=junit)
    assert (got.result, got.kind) == (result, kind), got
    assert bool(got.error) == (result == "fail")
    assert judge(test, "nothing of it was printed", exit_code, junit=junit).result == result


@pytest.mark.parametrize(
    ("test", "result", "kind"),
    [
        ("one", "fail", ""),
        ("users > one", "fail", ""),
        ("users one", "fail", ""),
        ("users › one", "fail", ""),
        ("users › inner › one", "pass", ""),
        ("inner one", "pass", ""),
        ("flat", "pass", ""),
        ("throws", "fail", ""),
        ("reads", "infra", "permission"),
        ("later", "infra", "runner"),
        ("on", "infra", "runner"),
    ],
)
def test_junit_of_node(test: str, result: str, kind: str) -> None:
    got = judge(test, "", 1, junit=(RECORDED / "node.xml").read_bytes())
    assert (got.result, got.kind) == (result, kind), got


@pytest.mark.parametrize("group", ["group inner", "group > inner", "group › inner"])
def test_junit_of_jest_joins_the_names_of_suites_with_spaces(group: str) -> None:
    junit = b"""<testsuites><testsuite name="group"><testcase classname="group inner" name="group inner">
<failure>no</failure></testcase><testcase classname="group other" name="group other"/></testsuite></testsuites>"""
    assert judge(group, "", 1, junit=junit).result == "fail"
    assert judge(group.replace("inner", "other"), "", 1, junit=junit).result == "pass"


@pytest.mark.parametrize(
    ("test", "result"),
    [
        ("test_names[ünï]", "fail"),
        ("test_names[\\xfcn\\xef]", "fail"),
        ("test_names.py::test_names[€ 5]", "fail"),
        ("test_names[plain]", "pass"),
        ("test_names[ün]", "infra"),
    ],
)
def test_junit_has_the_escapes_of_pytest(test: str, result: str) -> None:
    assert judge(test, "", 1, junit=(RECORDED / "pytest-escaped.xml").read_bytes()).result == result


@pytest.mark.parametrize("option", ["-q", "-v", "-s"])
def test_the_output_of_another_run_inside_a_test_decides_nothing(tmp_path: Path, option: str) -> None:
    """A test of a test runner prints what that one printed, failures and all."""
    names = ["pytest-fail", "pytest-collect", "pytest-internal", "jest-fail", "go-fail", "cargo-fail", "unittest-fail"]
    (tmp_path / "test_outer.py").write_text(
        "from pathlib import Path\nimport pytest\n"
        f"@pytest.mark.parametrize('name', {names!r})\n"
        "def test_prints(name):\n"
        f"    print(Path({str(RECORDED)!r}, name + '.txt').read_text())\n    assert name == 'x'\n"
        f"def test_good(): print(Path({str(RECORDED)!r}, 'pytest-fail.txt').read_text())\n"
        "def test_last(): assert 0\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", option, "test_outer.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    for test in ("test_prints", "test_prints[cargo-fail]", "test_last"):
        assert judge(test, ran.stdout, ran.returncode).result == "fail"
    error = judge("test_prints[pytest-collect]", ran.stdout, ran.returncode).error
    assert "+ pytest-collect\n" in error
    assert ("error during collection" in error) == (option != "-s")
    assert judge("test_good", ran.stdout, ran.returncode).result == "pass"
    assert judge("test_login", ran.stdout, ran.returncode).result == ("infra" if option == "-v" else "pass")


def test_the_runner_as_it_is_installed_here_is_read(live: tuple[str, int, bytes]) -> None:
    text, exit_code, _ = live
    for test, result in (
        ("test_red", "fail"),
        ("test_many[2]", "fail"),
        ("test_setup", "infra"),
        ("test_disk", "infra"),
    ):
        assert judge(test, text, exit_code).result == result


@pytest.mark.parametrize("damaged", [b"", b"<testsuite>", b"no xml", b"<a/>", b"<testsuite></testsuite>"])
def test_junit_that_says_nothing_is_left_aside(live: tuple[str, int, bytes], damaged: bytes) -> None:
    text, exit_code, _ = live
    assert judge("test_red", text, exit_code, junit=damaged).result == "fail"


def test_junit_of_other_runners() -> None:
    junit = b"""<?xml version="1.0"?><testsuites>
<testsuite name="login.test.js"><testcase classname="login.test.js" name="login &gt; refuses"><failure message="no">at x
</failure></testcase><testcase classname="login.test.js" name="login &gt; reads">
<failure message="EACCES: permission denied, open '/x'">at y</failure></testcase></testsuite>
<testsuite name="go"><testcase classname="example.com/shop/login" name="TestAdd/negative"/></testsuite></testsuites>"""
    got = judge("login > refuses", "", 1, junit=junit)
    assert (got.result, got.error) == ("fail", "at x\n")
    assert judge("login \u203a reads", "", 1, junit=junit).kind == "permission"
    assert judge("TestAdd", "", 1, junit=junit).result == "pass"
    assert judge("login.TestAdd/negative", "", 1, junit=junit).result == "pass"


@pytest.mark.parametrize(
    ("name", "exit_code", "test", "result"),
    [
        ("mocha_fail", 1, "adds wrongly", "fail"),
        ("mocha_fail", 1, "sum adds wrongly", "fail"),
        ("mocha_fail", 1, "adds", "pass"),
        ("mocha_pass", 0, "adds", "pass"),
        ("node_spec", 1, "adds wrongly", "fail"),
        ("node_spec", 1, "adds", "pass"),
        ("tap_node", 1, "adds wrongly", "fail"),
        ("tap_node", 1, "adds", "pass"),
        ("tap_node", 1, "later", "infra"),
    ],
)
def test_other_runners(name: str, exit_code: int, test: str, result: str) -> None:
    text = (RECORDED.parent / "agent_output" / "runners" / f"{name}.txt").read_text()
    assert judge(test, text, exit_code).result == result


# -- two spellings of one test --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("TestK::test_in", "TestK.test_in", True),
        ("TestK::test_in", "tests/test_calc.py::TestK::test_in", True),
        ("test_in", "tests/test_calc.py::TestK::test_in", True),
        ("tests/test_calc.py::test_in", "backend/tests/test_calc.py::test_in", True),
        ("test_in (test_calc.TestK.test_in)", "TestK::test_in", True),
        ("test_in (test_calc.TestK)", "test_calc.TestK.test_in", True),
        ("users > one", "users one", True),
        ("example.com/shop.TestAdd", "TestAdd", True),
        ("shop::tests::adds", "tests::adds", True),
        ("test_x[ü]", "test_x[\\xfc]", True),
        ("test_x", "test_x[1]", True),
        ("test_x[1]", "test_x[2]", False),
        ("test_log", "test_login", False),
        ("test_in", "test_calc.py::test_out", False),
        ("tests/test_a.py::test_in", "tests/test_b.py::test_in", False),
        ("TestK::test_in", "TestL::test_in", False),
        ("TestK", "TestK::test_in", False),
        ("TestAdd", "TestAdd/negative", False),
        ("test_login", "tests/test_login.py", False),
        ("tests/test_calc.py", "tests/test_calc.py::test_in", False),
    ],
)
def test_two_spellings_may_name_one_test(one: str, other: str, same: bool) -> None:
    assert same_test(one, other) is same
    assert same_test(other, one) is same


@settings(max_examples=100, deadline=None)
@given(one=st.text(max_size=20), other=st.text(max_size=20))
def test_spellings_are_compared_both_ways(one: str, other: str) -> None:
    assert same_test(one, one)
    assert same_test(one, other) == same_test(other, one)


# -- any text, and much of it ---------------------------------------------------------------------------------------

PIECES = [line for path in sorted(RECORDED.glob("*-fail*.txt")) for line in path.read_text().split("\n") if line]


@settings(max_examples=150, deadline=None)
@given(
    test=st.one_of(
        st.text(max_size=30), st.sampled_from(["test_login", "login › refuses", "TestLogin", "tests::login"])
    ),
    lines=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=60)), max_size=40),
    exit_code=st.one_of(st.none(), st.integers(-40, 300)),
    why=st.sampled_from(["exit", "timeout", "signal", "launch"]),
    junit=st.one_of(st.none(), st.binary(max_size=50)),
)
def test_any_text_gets_a_verdict(
    test: str, lines: list[str], exit_code: int | None, why: str, junit: bytes | None
) -> None:
    text = "\n".join(lines)
    got = judge(test, text, exit_code, why=why, junit=junit)
    assert got.result in ("pass", "fail", "infra")
    assert (got.kind in ("build", "environment", "network", "permission", "runner")) == (got.result == "infra")
    assert "\n" not in got.reason
    assert got.reason
    assert len(got.evidence.encode()) <= EVIDENCE
    assert len(got.error.encode()) <= ERROR
    assert got == judge(test, text, exit_code, why=why, junit=junit)


@settings(max_examples=30, deadline=None)
@given(
    cut=st.integers(0, 5_000),
    name=st.sampled_from(["pytest-setup", "jest-fail", "vitest-fail", "go-fail-v", "cargo-fail"]),
)
def test_an_output_that_is_cut_gets_a_verdict(cut: int, name: str) -> None:
    text = output(name)
    assert judge("login", text[: min(cut, len(text))], 1).result in ("pass", "fail", "infra")
    assert judge("login", text[min(cut, len(text)) :], 1).result in ("pass", "fail", "infra")


@pytest.mark.parametrize(
    "piece",
    [
        "a::b::c FAILED (PASSED (x) [ 50%]",
        "x" * 100,
        "\n",
        "____ test_a ____\nE   PermissionError: [Errno 13] x\n",
        "FAILED tests/test_a.py::test_a - x\n",
        "--- FAIL: TestA (0.00s)\n    a_test.go:1: x\n",
        "=== RUN   TestA\n",
        "  \u25cf a \u203a b\n\n    x\n",
        " FAIL  a.test.js > b\nError: x\n",
        "test a::b ... FAILED\n---- a::b stdout ----\n",
        "Traceback (most recent call last):\n  File \"x\", line 1, in y\nKeyError: 'x'\n",
        "======================================================================\nERROR: test_a (a.B.test_a)\n"
        + "-" * 70
        + "\n",
        "a a a a: b c: d e: ",
        "\x1b[31mred\x1b[0m ",
        "    not ok 1 - a\n",
        "# Subtest: a\n    ok 1 - b\n    1..1\nnot ok 1 - a\n  ---\n  error: 'x'\n  ...\n",
        "\u25b6 a\n  \u2716 b (1.2ms)\n    Error: x\n\u2716 a (1.3ms)\n",
        "test_a (a.B.test_a)\nDoc. ... ok\n",
        "a::b PASSED [ 50%]\n",
        '{"Action":"output","Package":"a","Test":"TestA/b","Output":"x\\n"}\n',
    ],
)
@pytest.mark.parametrize(
    "end",
    [
        "",
        "\n1 failed, 1 passed in 0.10s\n",
        "\nTests:       1 failed, 1 passed, 2 total\n",
        "\n1..1\n",
        "\n\u2139 tests 2\n\u2139 pass 1\n",
        "\nRan 2 tests in 0.1s\n\nFAILED (failures=1)\n",
    ],
)
def test_long_outputs_take_linear_time(piece: str, end: str) -> None:
    text = piece * (200_000 // len(piece)) + end
    began = time.process_time()
    judge("test_aa", text, 1)
    assert time.process_time() - began < 4

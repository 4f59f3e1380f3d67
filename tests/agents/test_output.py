"""What an agent printed is read from its structure: recorded outputs, damage, noise, errors and what is none."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.agents.output.answer import AgentOutput, StatusBlock
from fusewire.agents.output.reader import AnswerReader
from fusewire.agents.output.status_block import read_status
from fusewire.core.events import fingerprint
from fusewire.testruns.errors import normalised, problems_in
from fusewire.testruns.junit import read_junit
from fusewire.testruns.run import TestRun
from fusewire.testruns.runners import read_tests
from tests.helpers import DATA

RECORDED = DATA / "agent_output"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((RECORDED / "expected.toml").read_text())
NOW = 1_794_802_000.0


def answer(
    output: bytes | str, exit_code: int | None = 0, errors: bytes = b"", *, step: int = 0, partial: bool = False
) -> AgentOutput:
    data = output.encode() if isinstance(output, str) else output
    reader = AnswerReader(NOW)
    for begin in range(0, len(data), step or max(len(data), 1)):
        reader.feed(data[begin : begin + (step or len(data))])
    reader.feed_error(errors)
    return reader.finish(exit_code, partial=partial)


def recorded(name: str, *, step: int = 0) -> AgentOutput:
    wanted = EXPECTED["agents"][name]
    errors = RECORDED / f"{name}.err"
    return answer(
        (RECORDED / f"{name}.out").read_bytes(),
        wanted.get("exit", 0),
        errors.read_bytes() if errors.exists() else b"",
        step=step,
        partial=wanted.get("partial", False),
    )


def lines(*messages: object) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}


def said(text: str, identity: str = "m1", **more: Any) -> dict[str, Any]:
    message = {
        "id": identity,
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }
    return {"type": "assistant", "message": message, "session_id": "s", "parent_tool_use_id": None, **more}


def bash(
    command: str, output: str, *, failed: bool = False, identity: str = "t1", name: str = "Bash"
) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": identity, "name": name, "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": identity, "content": output, "is_error": failed}
    return [
        {"type": "assistant", "message": {"id": f"m-{identity}", "content": [call]}, "session_id": "s"},
        {"type": "user", "message": {"content": [result]}, "session_id": "s"},
    ]


def result(text: str = "Done.", **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s", **more}


# --- recorded outputs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPECTED["agents"])
def test_recorded_outputs_of_real_agents_are_read(name: str) -> None:
    """Every recorded output gives the fields that expected.toml names, and the default in all others."""
    wanted, got = EXPECTED["agents"][name], recorded(name)
    plain_fields = ("damage", "ended", "is_error", "calls", "input_tokens", "output_tokens", "cost", "denied_in_a_row")
    for key in (*plain_fields, "remedy", "question"):
        assert getattr(got, key) == wanted.get(key, getattr(AgentOutput(), key)), key
    assert got.format == wanted["format"]
    assert got.text.startswith(wanted["text"])
    assert bool(got.text) == bool(wanted["text"])
    assert list(got.denied) == wanted.get("denied", [])
    assert (got.status.status if got.status else None) == wanted.get("status")
    assert ([got.tests.passed, got.tests.failed] if got.tests else None) == wanted.get("tests")
    assert ([got.limit.kind, got.limit.resets_at or 0] if got.limit else None) == wanted.get("limit")
    assert got.outage.startswith(wanted.get("outage", ""))
    assert bool(got.outage) == ("outage" in wanted)
    assert [[one.source, one.type, one.message] for one in got.problems] == wanted.get("problems", [])


@pytest.mark.parametrize("name", EXPECTED["agents"])
@pytest.mark.parametrize("step", [7, 1000])
def test_recorded_outputs_do_not_depend_on_chunks(name: str, step: int) -> None:
    """Small chunks give the same answer as one large one."""
    assert recorded(name, step=step) == recorded(name)


@pytest.mark.parametrize(
    "name", ["claude_stream_success", "codex_success", "gemini_json_success", "claude_json_success"]
)
def test_noise_before_and_after_the_json_breaks_nothing(name: str) -> None:
    """Warnings, notices and a lone bracket around the JSON change neither the format nor what was said."""
    data = (RECORDED / f"{name}.out").read_bytes()
    clean, noisy = (
        answer(data),
        answer(b"npm notice new version\n{\nnot json\n" + data + b"\n(node:12) Warning: x\n[INFO] bye"),
    )
    assert noisy.format == clean.format
    assert (noisy.text, noisy.status, noisy.damage, noisy.problems) == (clean.text, clean.status, "", ())


def test_a_person_is_shown_the_text_and_one_line_per_call() -> None:
    """JSON lines are shown as words and calls; the result that repeats the words is not shown again."""
    reader = AnswerReader(NOW)
    data = lines(INIT, *bash("pytest -q", "1 passed in 0.1s"), said("All well."), result("All well."))
    shown = "".join(reader.feed(data.encode()[begin : begin + 11]) for begin in range(0, len(data), 11))
    assert shown == "[Bash] pytest -q\nAll well.\n"


def test_plain_text_is_shown_as_it_comes_and_half_letters_are_kept_back() -> None:
    """A letter whose bytes come in two chunks appears whole, with the second."""
    reader = AnswerReader(NOW)
    assert [reader.feed(part) for part in (b"gr\xc3", b"\xbc\xc3\x9fe\n", b"more")] == ["gr", "\u00fc\u00dfe\n", "more"]


# --- chunks, garbage, bounds --------------------------------------------------------------------------------------

FRAGMENTS = st.sampled_from(
    [
        b'{"type":"system","subtype":"init","session_id":"s"}\n',
        json.dumps(said("hello?")).encode() + b"\n",
        json.dumps(result("---RALPH_STATUS---\nSTATUS: BLOCKED\n---END_RALPH_STATUS---")).encode() + b"\n",
        b'{"type":"thread.started","thread_id":"x"}\r\n',
        b"{\n",
        b'  "session_id": "s",\n  "response": "yes",\n  "stats": {}\n',
        b"}\n",
        b"}",
        b"[",
        b"[{",
        b'[{"type":"result","is_error":true}]\n',
        b"\n",
        b"{",
        b'"',
        b"\xff\xfe\x00",
        "é€😀".encode(),
        b"\xe2\x82",
        b'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: x\n',
        b"== 1 failed, 2 passed in 0.10s ==\n",
        b'{"type":"result","is_error":false,"result":"cut',
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAGMENTS | st.binary(max_size=12), max_size=12), st.data())
def test_any_split_of_any_bytes_gives_the_same_answer(fragments: list[bytes], data: st.DataObject) -> None:
    """Chunks may end anywhere, also inside of a letter or a bracket."""
    whole = b"".join(fragments)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    reader, split = AnswerReader(NOW), []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        split.append(reader.feed(whole[begin:end]))
    one = AnswerReader(NOW)
    shown = one.feed(whole)
    assert "".join(split) == shown
    assert reader.finish(1) == one.finish(1)


@pytest.mark.parametrize(
    "start",
    [b"", b"{", b'{"type":"result","result":"', b'[{"a":"', b'{\n"a": "'],
    ids=["text", "object", "result", "array", "block"],
)
def test_one_endless_line_needs_a_few_megabytes(start: bytes) -> None:
    """30 MB without an end of line, whatever they seem to be, are not kept."""
    reader, chunk = AnswerReader(NOW), b"x" * 65_536
    tracemalloc.start()
    reader.feed(start)
    for _ in range(30_000_000 // len(chunk)):
        reader.feed(chunk)
    got = reader.finish(0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16_000_000
    assert got.bytes == len(start) + 30_000_000 // len(chunk) * len(chunk)
    assert len(got.text.encode()) <= 65_536


def test_the_end_of_a_long_output_is_kept() -> None:
    """Of many megabytes the last lines are there: the status block, the test run, the count of lines."""
    noise = "".join(f"line {number} of a build\n" for number in range(200_000))
    data = noise + "3 passed in 0.20s\n---RALPH_STATUS---\nSTATUS: COMPLETE\n---END_RALPH_STATUS---\n"
    got = answer(data, step=65_536)
    assert got == answer(data) == answer(data, step=4097)
    assert got.lines == 200_004
    assert got.tests == TestRun("pytest", passed=3)
    assert got.status == StatusBlock(status="COMPLETE")


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 1000,
        b"\xff\xfe" * 1000,
        b"[{" * 100_000,
        b'{"type":' * 50_000,
        b'{"type":"assistant","session_id":"s","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"type":"result","is_error":' + b"9" * 10_000 + b"}\n",
        b'{"type":"result","is_error":false,"result":"\\ud800","session_id":"\\udfff"}\n',
        lines(
            INIT, {"type": "assistant", "message": {"content": [None, 3, {"type": "tool_use"}]}, "session_id": "s"}
        ).encode(),
        lines(INIT, result(5, permission_denials=[None, {}], usage=[], modelUsage={"m": 3}, errors="x")).encode(),  # type: ignore[arg-type]
        lines(
            {"type": "thread.started", "thread_id": 3}, {"type": "item.completed", "item": {"type": [], "text": {}}}
        ).encode(),
        b'{\n  "session_id": 3,\n  "response": null,\n  "stats": {"models": {"a": null}, "tools": []}\n}\n',
    ],
    ids=range(11),
)
def test_no_bytes_bring_the_reader_down(data: bytes) -> None:
    """Garbage, deep nesting, huge numbers, lone surrogates and wrong types end in an answer that can be stored."""
    got = answer(data, 1)
    assert got.text.encode() is not None
    assert got.bytes == len(data)


def test_numbers_that_count_nothing_are_unknown() -> None:
    """Negative counts, infinities, truth values and texts are no tokens, dollars or calls."""
    for bad in ("-1", "1e999", "true", '"7"', "null"):
        usage = f'"usage":{{"input_tokens":{bad},"output_tokens":{bad}}}'
        got = answer(f'{{"type":"result","is_error":false,"num_turns":{bad},"total_cost_usd":{bad},{usage}}}\n')
        assert got.format == "claude-json"
        assert (got.calls, got.input_tokens, got.output_tokens, got.cost) == (None, None, None, None), bad


# --- damage: the three layers -------------------------------------------------------------------------------------

CUT = [
    ('{"type":"result","subtype":"success","result":"Half a \\"tex', "claude-json", 'Half a "tex'),
    (json.dumps(result("All is said."))[:-20], "claude-json", "All is said."),
    (lines(INIT) + json.dumps(said("Nearly there"))[:-60], "claude-stream", "Nearly there"),
    (
        '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"caf\\u00e9 \\u00',
        "codex",
        "caf\u00e9 ",
    ),
    ('{\n  "session_id": "s",\n  "response": "Yes\\nit is', "gemini", "Yes\nit is"),
]


@pytest.mark.parametrize(("output", "kind", "text"), CUT)
def test_text_is_taken_out_of_json_that_was_cut(output: str, kind: str, text: str) -> None:
    """Layer 2: the format and the text are known, and the damage is told."""
    got = answer(output, None, partial=True)
    assert (got.format, got.text) == (kind, text)
    assert got.damage


def test_json_without_any_text_stays_as_it_is() -> None:
    """Layer 3: the raw output is kept as text, and the damage is told."""
    got = answer('{"type":"result","session_id":"s", "num_tur', 1)
    assert got.format == "text"
    assert got.damage
    assert got.text == '{"type":"result","session_id":"s", "num_tur'


def test_json_that_is_too_long_to_be_read_whole_gives_its_last_text() -> None:
    """The messages of a long session in one array: the result at its end is found, and the damage is told."""
    data = json.dumps([INIT, *(said("x" * 1000, f"m{number}") for number in range(5000)), result("The end.")])
    for step in (65_536, 0):
        got = answer(data, step=step)
        assert (got.format, got.text, got.damage) == ("claude-json", "The end.", "1 JSON text cut or damaged")


def test_json_that_is_no_agents_is_plain_text() -> None:
    """Logs in JSON are text without damage."""
    got = answer('{"level":"error","message":"x"}\n{"level": broken\n[1,2]\n')
    assert (got.format, got.damage, got.problems) == ("text", "", ())


def test_a_stream_whose_first_line_is_damaged_is_still_one() -> None:
    """The format is known from any of its messages."""
    got = answer('{"type":"system","subty\n' + lines(said("Hello."), result("Hello.")))
    assert (got.format, got.text, got.ended, got.damage) == (
        "claude-stream",
        "Hello.",
        "completed",
        "1 JSON text cut or damaged",
    )


def test_a_stream_without_its_result_is_damaged_unless_it_was_ended() -> None:
    """What a time-out has cut is no damage: the caller knows."""
    data = lines(INIT, said("Begun."))
    assert answer(data, 1).damage == "the last message is missing"
    assert answer(data, 124, partial=True).damage == ""


# --- what is an error, and what is none ---------------------------------------------------------------------------

NO_ERRORS = {
    "is_error false": '{"type":"tool","is_error": false}\n',
    "null": "error: null\nerrors: 0\n",
    "prose": "I fixed the error: the TypeError came from a missing import. Error handling is done.\n",
    "diff": "@@ -1,3 +1,4 @@\n-Traceback (most recent call last):\n+src/a.c:1:2: error: bad\n context: error\n",
    "quote": "> Error: x\n>     at f (a.js:1:2)\n> Traceback (most recent call last):\n",
    "fence": 'So:\n\n```\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n```\n\nOK.\n',
    "listing": "src/error.rs\nerrors.py\n-rw-r--r-- 1 u u 12 error.log\n",
    "grep": "docs/a.md:12:Traceback (most recent call last):\n12:  error: could not compile\n",
    "words": "You have reached the 5-hour limit. rate limit 429 overloaded. API Error: 529\n",
    "done": "docs/plan.md says: done. All tasks complete. EXIT_SIGNAL\n",
    "counts": "0 errors, 0 warnings\n0 failed\n",
}


@pytest.mark.parametrize("name", NO_ERRORS)
def test_words_in_content_are_no_errors(name: str) -> None:
    """Prose, diffs, listings and quotations are no problem, limit, outage or status, printed or said by an agent."""
    for output in (NO_ERRORS[name], lines(INIT, said(NO_ERRORS[name]), result(NO_ERRORS[name]))):
        got = answer(output)
        assert (got.problems, got.limit, got.outage, got.tests) == ((), None, "", None)
        assert got.status is None


def test_what_a_tool_read_is_not_what_the_agent_did() -> None:
    """A log, a limit and a status block inside of a tool's result or a prompt say nothing about the session."""
    log = RED + "5-hour limit reached\n---RALPH_STATUS---\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"
    prompt = {"type": "user", "message": {"content": [{"type": "text", "text": log}]}, "session_id": "s"}
    for call in (bash("", log, name="Read"), bash("cat run.log | tail -5", log), bash("git log -p", log, failed=True)):
        got = answer(lines(INIT, prompt, *call, said("Read it."), result("Read it.")))
        assert (got.tests, got.status, got.limit, got.problems) == (None, None, None, ())


TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: bad\n'
RED, GREEN = "FAILED a.py::t - assert 1\n1 failed, 1 passed in 0.10s\n", "2 passed in 0.10s\n"

MENDED: list[tuple[str, list[str]]] = [
    (RED, ["test"]),
    (RED + GREEN, []),
    (GREEN + RED, ["test"]),
    (TRACE, ["exception"]),
    (TRACE + GREEN, []),
    (GREEN + TRACE, ["exception"]),
    (TRACE + RED, ["test"]),
    (RED + "no tests ran in 0.01s\n", ["test"]),
    (RED + "6 deselected in 0.61s\n", ["test"]),
    (
        "  1 passing (3ms)\n  1 failing\n\n  1) a\n       b:\n\n      Error: x\n\n\n  a\n    b\n\n  2 passing (3ms)\n",
        [],
    ),
    ("  2 passing (3ms)\n\n\n  1 passing (3ms)\n  1 failing\n\n  1) a\n       b:\n\n      Error: x\n", ["test"]),
]


@pytest.mark.parametrize(("output", "sources"), MENDED)
def test_only_what_was_not_mended_counts(output: str, sources: list[str]) -> None:
    """A run that passes mends what came before it; a run of nothing mends nothing."""
    assert [one.source for one in answer(output).problems] == sources


def test_a_failed_call_counts_only_if_the_session_ended_with_it() -> None:
    """What an agent did after a failure speaks for itself; a failing test run counts until another one passes."""
    failing = bash("make", "a.c:1:2: error: bad", failed=True)
    assert [one.source for one in answer(lines(INIT, *failing, result())).problems] == ["build"]
    after = bash("ls && make", "ok", identity="t2")
    assert answer(lines(INIT, *failing, *after, result())).problems == ()
    edit = bash("", "ok", name="Edit", identity="t2")
    assert answer(lines(INIT, *failing, *edit, result())).problems == ()
    red = bash("pytest -q", RED, failed=True)
    assert [one.source for one in answer(lines(INIT, *red, *edit, result())).problems] == ["test"]


def test_an_exit_status_speaks_if_nothing_better_is_known() -> None:
    """The message is the last lines of standard error, else of the output; a time-out's own status is no problem."""
    got = answer("working\n", 3, b"first\nwarn\n\ncannot open the thing\n").problems
    assert [(one.source, one.type, one.message) for one in got] == [
        ("exit", "exit 3", "first\nwarn\ncannot open the thing")
    ]
    assert answer("a\nb\n", 2).problems[0].message == "a\nb"
    assert [one.type for one in answer("", -11).problems] == ["exit -11"]
    assert answer("", 1, TRACE.encode()).problems[0].type == "ValueError"
    assert answer("", 0, TRACE.encode()).problems == ()
    assert answer("x", 124, partial=True).problems == ()
    assert answer("x", None).problems == ()


def test_fewer_failing_tests_are_another_error() -> None:
    """All failing tests have one problem, and its fingerprint changes with them but not with time or order."""
    two = "FAILED a.py::x - assert 1\nFAILED a.py::y - assert 2\n2 failed in 0.10s\n"
    other_order = "FAILED a.py::y - assert 2\nFAILED a.py::x - assert 1\n2 failed in 9.99s\n"
    one = "FAILED a.py::x - assert 1\n1 failed, 1 passed in 0.10s\n"
    marks = [[each.fingerprint for each in answer(text).problems] for text in (two, other_order, one)]
    assert [len(each) for each in marks] == [1, 1, 1]
    assert marks[0] == marks[1] != marks[2]
    many = "".join(f"FAILED a.py::t{number:03} - assert 0\n" for number in range(300)) + "300 failed in 1.00s\n"
    fewer = many.replace("FAILED a.py::t250 - assert 0\n", "").replace("300 failed", "299 failed, 1 passed")
    assert answer(many).problems[0].fingerprint != answer(fewer).problems[0].fingerprint
    tests = answer(many).tests
    assert tests
    assert (tests.failed, len(tests.failing)) == (300, 200)


def test_tests_that_could_not_start_are_a_problem_of_their_own() -> None:
    """Infrastructure is told from failing tests, and at most 20 problems are kept."""
    got = answer((RECORDED / "runners" / "pytest_fail.txt").read_text()).problems
    assert [(one.source, one.type) for one in got] == [("test", "AssertionError"), ("test", "broken")]
    assert len(answer("".join(f"a{number}.c:1:2: error: e\n" for number in range(50))).problems) == 20


# --- test runners, junit, errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPECTED["runners"])
def test_runs_of_test_runners_are_read(name: str) -> None:
    """Each recorded run gives its counts and names, also in colours, with CRLF, and after another run."""
    text = (RECORDED / "runners" / f"{name}.txt").read_text()
    wanted = EXPECTED["runners"][name]
    run = TestRun(**{**wanted, "failing": tuple(wanted.get("failing", ()))}) if wanted else None
    assert read_tests(text) == run
    assert read_tests(text.replace("\n", "\r\n")) == run
    assert read_tests("".join(f"\x1b[31m{line}\x1b[0m" for line in text.splitlines(keepends=True))) == run
    if run:
        assert read_tests("9 passed in 0.10s\n" + text) == run
        assert read_tests("OK then:\n\n```\n" + text + "\n```\n") is None


def test_a_real_run_of_pytest_is_read(tmp_path: Path) -> None:
    """The runner as it is installed here prints what is read, and writes the same as JUnit XML."""
    (tmp_path / "test_x.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_n(n):\n    assert n < 3\n"
    )
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=x.xml", "test_x.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert read_tests(done.stdout) == TestRun("pytest", passed=2, failed=1, failing=("test_x.py::test_n[3]",))
    assert read_junit((tmp_path / "x.xml").read_bytes()) == TestRun("junit", 2, 1, failing=("test_x::test_n[3]",))


def test_node_says_the_same_in_all_its_formats() -> None:
    """Tests inside suites: TAP, what a terminal gets, and JUnit XML of one run."""
    failing = ("users > inner > reads", "users > inner > throws", "users > one")
    for name, runner in (("tap_node_nested", "tap"), ("node_spec_nested", "node")):
        text = (RECORDED / "runners" / f"{name}.txt").read_text()
        assert read_tests(text) == TestRun(runner, 3, 3, 1, failing=failing)
    assert read_junit((RECORDED / "runners" / "node.xml").read_bytes()) == TestRun("junit", 3, 3, 1, failing=failing)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("1..2\nok 1 - a\n    not ok 1 - printed\nok 2 - b\n", (2, 0, 0)),
        ("ok 1 - a\n    ok 1 - x\n    not ok 2 - y\n    1..2\nnot ok 2 - b\n1..2\n", (2, 1, 0)),
        ("    ok 1 - x\n    1..1\nnot ok 1 - b\n1..1\n", (1, 1, 0)),
        ("ok 1 - a\n  ---\n  error: |-\n    not ok 2 - x\n    1..1\n  ...\nok 2 - b # TODO\n1..2\n", (1, 0, 1)),
        ("not ok 1 - one \\# two\n1..1\n", (0, 1, 0)),
    ],
)
def test_subtests_of_tap_have_a_plan(text: str, counts: tuple[int, int, int]) -> None:
    run = read_tests(text)
    assert run
    assert (run.passed, run.failed, run.skipped) == counts


def test_junit_counts_cases_and_refuses_what_is_none() -> None:
    """Many suites, errors of set-up, a cut file, another document, a billion laughs, a broken encoding."""
    data = (RECORDED / "runners" / "pytest.xml").read_bytes()
    assert read_junit(data) == TestRun("junit", 1, 2, 2, 1, ("test_it::test_one", "test_it::test_six"))
    suite = '<testsuite><testcase classname="A" name="a"><error>x</error></testcase><testcase name="b"/></testsuite>'
    many = f"<testsuites>{suite}<testsuite>{suite}</testsuite></testsuites>".encode()
    assert read_junit(many) == TestRun("junit", passed=2, failed=2, failing=("A::a",))
    laughs = b'<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>'
    for bad in (
        data[:-30],
        b"",
        b"<html></html>",
        laughs,
        b"\xff\xfe\x00",
        b'<?xml version="1.0" encoding="none"?><testsuite/>',
    ):
        assert read_junit(bad) is None
    assert read_junit(b"<testsuite>" + b"<a>" * 100_000) is None


@pytest.mark.parametrize("name", EXPECTED["errors"])
def test_errors_are_known_by_their_shape(name: str) -> None:
    """Each recorded message gives source, type and message; in a diff or a quotation it gives none."""
    text = (RECORDED / "errors" / f"{name}.txt").read_text()
    assert [[one.source, one.type, one.message] for one in problems_in(text)] == EXPECTED["errors"][name]
    for mark in ("> ", "+", "-", "    | "):
        assert problems_in("".join(mark + line for line in text.splitlines(keepends=True))) == []
    assert problems_in("```text\n" + text + "\n```\n") == []


SAME = [
    ("/home/a/p/x.py:12: bad", "/srv/b/x.py:99: bad"),
    ('File "/tmp/pytest-of-u/pytest-3/f.txt", line 3', 'File "/tmp/pytest-of-v/pytest-44/f.txt", line 8'),
    ("cannot open /tmp/tmpab12cd34", "cannot open /tmp/tmpzz99yy11"),
    ("C:\\Users\\a\\x.py is missing", "D:\\work\\x.py is missing"),
    ("at src/a.ts:3:14", "at src/a.ts:99:2"),
    ("src/a.ts(3,14): error", "src/a.ts(99,2): error"),
    ("object at 0x7f3a2b1c", "object at 0x55d1e0ff"),
    ("id 123e4567-e89b-12d3-a456-426614174000 unknown", "id 00000000-e89b-12d3-a456-426614174fff unknown"),
    ("commit 3f2a9bc1 failed", "commit a81b22d0e failed"),
    ("2026-11-16T04:20:01.719Z lost", "2025-01-02 23:59:59 lost"),
    ("at 12:30:01 it broke", "at 23:59:59.123 it broke"),
    ("resets Nov 18, 8:20am", "resets Dec 1, 11:05pm"),
    ("timed out after 1.5s", "timed out after 300 ms"),
    ("took 2 minutes 3 seconds", "took 14 minutes 59 seconds"),
    ("process 4312 died", "process 99 died"),
    ("thread 'main' (25268) panicked", "thread 'main' (991) panicked"),
    ("connect 127.0.0.1:8080 refused", "connect 127.0.0.1:49152 refused"),
    ("http://localhost:3000/x failed", "http://localhost:3001/x failed"),
    ("port 8080 is in use", "port 9090 is in use"),
    ("key '17' is missing", "key '42' is missing"),
    ("\x1b[31merror\x1b[0m  bad", "error bad"),
    ("a\n   b\tc", "a b c"),
    ("line 3, column 9: bad", "line 44, column 1: bad"),
    ("request req_011CSHoEeqs5C35K2UUqR7Fy failed", "request req_99ZZHoEeqs5C35K2UUqR7Fy failed"),
    ("stamp 1794990000 expired", "stamp 1700000001 expired"),
]

DIFFERENT = [
    ("ValueError: bad", "TypeError: bad"),
    ("x.py: bad", "y.py: bad"),
    ("/home/a/x.py: bad", "/home/a/y.py: bad"),
    ("src/a/x.py: bad", "src/b/x.py: bad"),
    ("expected 3, got 4", "expected 3, got 5"),
    ("the index is 3", "the index is 4"),
    ("no module named 'a'", "no module named 'b'"),
    ("error TS2304", "error TS2322"),
    ("HTTP 404", "HTTP 500"),
    ("test_a.py::test_x[1]", "test_a.py::test_x[2]"),
    ("added facade", "added decade"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_error_elsewhere_has_the_same_fingerprint(one: str, other: str) -> None:
    """Lines, paths, ids, times, ports and colours are masked, and masking twice changes nothing."""
    assert normalised(one) == normalised(other)
    assert normalised(normalised(one)) == normalised(one)
    assert fingerprint(normalised(one), "t") == fingerprint(normalised(other), "t")


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_errors_have_different_fingerprints(one: str, other: str) -> None:
    """Types, files, values and names are what an error is."""
    assert normalised(one) != normalised(other)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_normalised_and_searched(text: str) -> None:
    """No text brings the patterns down, and white space is squeezed."""
    assert "  " not in normalised(text)
    problems_in(text)
    read_tests(text)
    read_status(text)


HOSTILE = [
    "/a" * 30_000,
    "1s " * 20_000,
    "```x\n" * 15_000,
    "a.c:1:" * 10_000,
    "{" * 60_000,
    "---RALPH_STATUS---\n" * 3_000,
    "1 failed, " * 6_000,
    "ab0" * 20_000,
    "\n" * 60_000,
    "---RALPH_STATUS---\na" + " " * 60_000,
    "thread 'x panicked at\n" * 3_000,
    "\x1b]0;" * 15_000,
    " FAIL  x" + " [ " * 20_000 + "\n Tests  1 failed (1)\n",
    "ok 1 " + " " * 60_000 + "#\n1..1\n",
    "Traceback (most recent call last):\n" * 2_000,
    '{"type":"result","result":"' * 2_000,
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_take_no_time(hostile: str) -> None:
    """Patterns stay linear: 60 kB of anything are read in well under a second or two of processor time."""
    begin = time.process_time()
    answer(hostile, 1)
    normalised(hostile)
    assert time.process_time() - begin < 2


# --- status block and question ------------------------------------------------------------------------------------

FULL = """---RALPH_STATUS---
STATUS: IN_PROGRESS
TASKS_COMPLETED_THIS_LOOP: 2
FILES_MODIFIED: 3
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: false
RECOMMENDATION: go on with the parser
APPROACH: recursive descent
TASK: parser
---END_RALPH_STATUS---"""
READ = StatusBlock(
    "IN_PROGRESS", 2, 3, "PASSING", "IMPLEMENTATION", False, "go on with the parser", "recursive descent", "parser"
)


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        "Words.\n\n" + FULL + "\n\nMore words.",
        FULL.replace("\n", "\r\n"),
        "```\n" + FULL + "\n```",
        FULL.replace("---END_RALPH_STATUS---", ""),
        "\n".join(f"- **{line.replace(':', ':**')}" if ":" in line else line for line in FULL.split("\n")),
        "\n".join(f"**{line.replace(':', '**:')}" if ":" in line else line for line in FULL.split("\n")),
        "\n".join(f"* {line}" if ":" in line else f"**{line}**" for line in FULL.split("\n")),
        "\n".join(
            (line.split(":")[0].lower() + ":" + line.split(":")[1]) if ":" in line else line.lower()
            for line in FULL.split("\n")
        ),
        FULL.replace("IN_PROGRESS", "COMPLETE") + "\n" + FULL,
        FULL + "\n---RALPH_STATUS---\nEXIT_SIGNAL: true | false\nFILES_MODIFIED: <number>\n---END_RALPH_STATUS---",
        FULL + "\n---RALPH_STATUS---\nEXIT_SIGNAL: true\nand so on, in prose",
        FULL.replace("FILES_MODIFIED: 3", "FILES_MODIFIED: a.py, b.py, c/d.py"),
        FULL.replace("FILES_MODIFIED: 3", "FILES_MODIFIED: [a.py, b.py, c.py]"),
        FULL.replace("FILES_MODIFIED: 3", "FILES_MODIFIED:\n  - a.py\n  - b.py\n  - c.py"),
        FULL.replace("FILES_MODIFIED: 3", "FILES_MODIFIED: 3 (a.py, b.py, c.py)"),
    ],
    ids=range(16),
)
def test_a_status_block_is_read_however_it_is_dressed(text: str) -> None:
    """Bold, bullets, fences, CRLF, lower case, a missing end and lists are tolerated; the last complete block wins."""
    assert read_status(text) == READ


def test_templates_and_nonsense_are_no_values() -> None:
    """What the prompt shows as a choice, a placeholder or a negative count stays unknown."""
    template = FULL
    for value in ("IN_PROGRESS | COMPLETE | BLOCKED", "<number>", "[list]", "...", ""):
        for line in FULL.split("\n")[1:-1]:
            template = template.replace(line, f"{line.split(':')[0]}: {value}")
        assert read_status(template) is None, value
        template = FULL
    for line in (
        "FILES_MODIFIED: -3",
        "TASKS_COMPLETED_THIS_LOOP: 99999999999999999999",
        "EXIT_SIGNAL: perhaps",
        "TASKS_COMPLETED_THIS_LOOP: some",
    ):
        assert read_status(f"---RALPH_STATUS---\n{line}\n---END_RALPH_STATUS---") is None, line
    assert read_status("---RALPH_STATUS---\nFILES_MODIFIED: none\n---END_RALPH_STATUS---") == StatusBlock(
        files_modified=0
    )
    assert read_status("EXIT_SIGNAL: true\nSTATUS: COMPLETE") is None


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Two ways.\n\nWhich one should I take?", "Which one should I take?"),
        ("I looked. Should I go on? \n\n" + FULL, "Should I go on?"),
        ("**Shall I delete it?**", "**Shall I delete it?"),
        ("Why did it fail? Because of x. It is mended.", None),
        ("What is left?\n\nNothing is.", None),
        ("Done.\n\n" + FULL.replace("IN_PROGRESS", "BLOCKED"), "go on with the parser"),
        ("Done.\n---RALPH_STATUS---\nSTATUS: needs input\n---END_RALPH_STATUS---", "NEEDS_INPUT"),
        ("Done.\n\n" + FULL, None),
        ("", None),
    ],
)
def test_a_question_is_how_an_answer_ends(text: str, question: str | None) -> None:
    """The last sentence, or a block that says it waits; rhetorical questions in the middle are none."""
    assert answer(lines(INIT, said(text), result(text))).question == question
    assert answer(text).question == question


# --- claude in detail ---------------------------------------------------------------------------------------------


def test_usage_that_is_repeated_per_block_counts_once() -> None:
    """One message comes once per content block with the same usage: without a result each id is counted once."""
    got = answer(lines(INIT, said("a"), said("b"), said("c", "m2")), 124, partial=True)
    assert (got.calls, got.input_tokens, got.output_tokens) == (2, 20, 4)
    assert got.text == "c"
    assert answer(lines(INIT, said("a"), said("b")), None).text == "a\nb"


def test_only_the_agents_own_words_are_its_answer() -> None:
    """A helper's words, with its own status block, are not those of the agent."""
    helper = said(FULL, "h1", parent_tool_use_id="t1")
    got = answer(lines(INIT, said("Asked a helper."), helper), None)
    assert (got.text, got.status) == ("Asked a helper.", None)


def rate(status: str, **more: Any) -> dict[str, Any]:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": status, **more}, "session_id": "s"}


def test_a_limit_is_what_the_structure_says_at_the_end() -> None:
    """A rejection counts with its time, in seconds or milliseconds; a session that went on has none."""
    rejected = rate("rejected", resetsAt=NOW + 60, rateLimitType="five_hour")
    failed = result("x", is_error=True, api_error_status=429, terminal_reason="api_error")
    for reset in (NOW + 60, (NOW + 60) * 1000):
        limit = answer(lines(INIT, rate("rejected", resetsAt=reset, rateLimitType="five_hour"), failed), 1).limit
        assert limit is not None
        assert (limit.kind, limit.resets_at) == ("five_hour", NOW + 60)
    assert answer(lines(INIT, rejected), None).limit is not None
    for later in ([result()], [rate("allowed")], [said("on")]):
        assert answer(lines(INIT, rejected, *later), None).limit is None
    for nonsense in (-1, 1e999, "soon", True, 9e18, None):
        limit = answer(lines(INIT, rate("rejected", resetsAt=nonsense if nonsense != 1e999 else 9e99), failed), 1).limit
        assert limit is not None
        assert limit.resets_at is None


@pytest.mark.parametrize(
    ("fields", "outage", "types"),
    [
        ({"result": "API Error: 529 Overloaded"}, True, []),
        ({"result": "API Error: Connection error."}, True, []),
        ({"result": "API Error: 401 bad key"}, False, ["api 401"]),
        (
            {"subtype": "error_during_execution", "errors": ["it broke"], "result": None},
            False,
            ["error_during_execution"],
        ),
        ({"result": "Credit balance is too low"}, False, ["error"]),
        ({"result": "The log says API Error: 529", "is_error": False}, False, []),
    ],
)
def test_errors_of_older_clients_are_read_from_their_words_only_beside_is_error(
    fields: dict[str, Any], outage: bool, types: list[str]
) -> None:
    """Without a status of its own the result's first words tell it, if the result is an error."""
    got = answer(lines(result(**{"is_error": True, **fields})), 1 if fields.get("is_error", True) else 0)
    assert bool(got.outage) == outage
    assert [one.type for one in got.problems] == types


def test_a_denied_question_is_a_question_and_no_denial() -> None:
    """AskUserQuestion was denied because nobody was there; it breaks no row and is asked again only if it came last."""
    ask = {
        "tool_name": "AskUserQuestion",
        "tool_use_id": "q",
        "tool_input": {"questions": [{"question": "Which database?"}]},
    }
    other = {"tool_name": "Bash", "tool_use_id": "b", "tool_input": {"command": "rm x"}}
    got = answer(lines(result("Waiting.", permission_denials=[other, ask])))
    assert (got.denied, got.denied_in_a_row, got.question) == (("Bash(rm x)",), 1, "Which database?")
    assert answer(lines(result("Went on.", permission_denials=[ask, other]))).question is None
    assert answer(lines(result("x", permission_denials=[ask]))).denied_in_a_row == 0


def test_denials_in_a_row_are_told_by_the_order_of_results() -> None:
    """Without the client's own marks the list at the end names the calls, and the stream their order."""
    calls = [bash(f"touch {name}", "no", failed=True, identity=name) for name in "abcd"]
    denials = [{"tool_name": "Bash", "tool_use_id": name, "tool_input": {}} for name in "abd"]
    got = answer(lines(INIT, *(message for call in calls for message in call), result(permission_denials=denials)))
    assert (got.denied, got.denied_in_a_row) == (("Bash(touch a)", "Bash(touch b)", "Bash(touch d)"), 2)
    assert got.problems == ()


@pytest.mark.parametrize(
    ("mode", "tools", "says"),
    [
        ("default", [("Edit", "a.py")], "claude --permission-mode acceptEdits allows it, "),
        ("default", [("Bash", "mkdir a && touch a/b")], "claude --permission-mode acceptEdits allows it, "),
        (
            "default",
            [("Bash", "CI=1 npm test | tail -3")],
            'claude --allowedTools "Bash(npm:*),Bash(tail:*)" allows it, ',
        ),
        ("default", [("Bash", "cd api && git add -A")], 'claude --allowedTools "Bash(git:*)" allows it, '),
        ("default", [("WebFetch", "x"), ("Write", "b")], '--permission-mode acceptEdits --allowedTools "WebFetch" '),
        ("acceptEdits", [("Write", "/etc/hosts")], 'claude --allowedTools "Write" allows it, '),
    ],
)
def test_a_denial_says_what_would_allow_it(mode: str, tools: list[tuple[str, str]], says: str) -> None:
    """The permission mode where one is enough, else the tools; as measured with the real client."""
    init = {**INIT, "permissionMode": mode}
    messages = []
    for number, (name, command) in enumerate(tools):
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"command": command}}
        done = {"type": "tool_result", "tool_use_id": f"t{number}", "is_error": True, "content": "no"}
        meta = [{"id": f"t{number}", "permission_decision": {"decision": "reject", "source": "config"}}]
        messages += [
            {"type": "assistant", "session_id": "s", "message": {"id": f"m{number}", "content": [use]}},
            {"type": "user", "session_id": "s", "message": {"content": [done]}, "tool_result_meta": meta},
        ]
    got = answer(lines(init, *messages, result("No.")))
    assert says in got.remedy
    assert got.remedy.endswith(", --permission-mode bypassPermissions everything")
    assert got.denied == tuple(f"{name}({command})" for name, command in tools)


def test_answers_that_differ_in_what_varies_by_itself_have_one_fingerprint() -> None:
    """Times, durations and ids vary from answer to answer, a task's number does not; an empty answer has none."""
    first, second, third = "Task 7 took 3.1s at /a/b/x.py", "Task 7 took 9.9s at /c/x.py", "I read 8.sql in 3.1s"
    assert answer(first).fingerprint == answer(second).fingerprint != answer(third).fingerprint
    assert answer("Reviewed 0007.sql").fingerprint != answer("Reviewed 0008.sql").fingerprint
    assert answer(" \n").fingerprint == ""


def test_other_clients_denials_and_limits() -> None:
    """Codex declines, Gemini's policy and the provider's words inside of a failed turn are structure."""
    declined = {
        "type": "item.completed",
        "item": {"id": "i", "type": "command_execution", "command": "rm x", "status": "declined"},
    }
    start = {"type": "thread.started", "thread_id": "t"}
    got = answer(lines(start, declined, declined, {"type": "turn.completed", "usage": {}}))
    assert (got.denied_in_a_row, got.calls) == (2, 2)
    failed = {"type": "turn.failed", "error": {"message": "You've hit your usage limit. Try again later."}}
    limit = answer(lines(start, failed), 1).limit
    assert limit is not None
    assert limit.kind == "usage_limit"
    words = {
        "type": "item.completed",
        "item": {"id": "i", "type": "agent_message", "text": "You've hit your usage limit."},
    }
    assert answer(lines(start, words, {"type": "turn.completed", "usage": {}})).limit is None
    stamp = {"timestamp": "2026-11-16T04:21:50Z"}
    init = {"type": "init", "session_id": "s", "model": "m", **stamp}
    use = {
        "type": "tool_use",
        "tool_name": "run_shell_command",
        "tool_id": "a",
        "parameters": {"command": "rm x"},
        **stamp,
    }
    denied = {"type": "tool_result", "tool_id": "a", "status": "error", "error": {"type": "policy_violation"}, **stamp}
    assert answer(lines(init, use, denied)).denied == ("run_shell_command(rm x)",)

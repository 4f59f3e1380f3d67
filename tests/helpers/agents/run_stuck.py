"""Agents that get nowhere, each in its own way: what they do, which circuit opens, and in which iteration."""

from __future__ import annotations

from dataclasses import dataclass

from tests.helpers.agents.run_stage import IDLE, WORK, claude, status

#: A failure whose line, address and path differ each time.
_FAILS = """printf 'Traceback (most recent call last):\\n  File "/tmp/run%s/app.py", line %s, in total\\n    go()\\n\
KeyError: 0x7f%s\\n' "$n" "$n" "$n"
"""
#: A new answer each time, with a task that it says is done: numbers do not make an answer new, words do.
_WORDS = "set -- zero apple bread crane drift eagle flame grass house ivory jelly knife lemon; shift $n; word=$1\n"
_TASK = _WORDS + 'echo "The $word part works now."\n' + status(tasks_completed_this_loop=1)
_APPROACH = f'{_WORDS}echo "The $word part works now."\n' + status(
    tasks_completed_this_loop=1, approach="the way of $word"
)
_TEST = 'printf "def test_total():\\n    assert total([1, 2]) == %s\\n" "$n" > tests/test_app.py'
_COMMIT = f'{WORK}; git add -A; git commit -q -m "step $n"'
_RED = "echo '===== 1 failed, 4 passed in 0.1s ====='; exit 1"
_CASE = '<testcase name="test_total"><failure message="assert 4 == 3"/></testcase>'
_JUNIT = f"echo '<testsuite>{_CASE}</testsuite>' > r.xml"
_LESS = "set -- 100 60 30 15; shift $((n - 1)); seq $1"
_ONE_DENIAL = claude(
    "I could not.", permission_denials=[{"tool_name": "Bash", "tool_use_id": "b", "tool_input": {"command": "ls x"}}]
)


@dataclass(frozen=True)
class Stuck:
    """One agent and its end."""

    does: str
    rule: str
    at: int
    #: what standard error must say, beside the rule: the numbers and the evidence
    says: tuple[str, ...]
    #: settings of [loop], and options of the run
    settings: str = ""
    options: tuple[str, ...] = ()


def _no_progress(does: str, *says: str, options: tuple[str, ...] = ()) -> Stuck:
    return Stuck(does, "loop.no_progress", 3, ("3 iterations in a row", "(limit 3)", *says), options=options)


STUCK = {
    "does nothing": _no_progress(IDLE, "the agent ended; no file changed, no task completed"),
    "says nothing": _no_progress("true", "no file changed"),
    "says that it is done, without a block": _no_progress("echo 'All tasks are complete. Done!'"),
    "crashes": _no_progress("kill -SEGV $$", "the agent crashed"),
    "cannot be started": _no_progress("exec ./no-such-program", "the agent could not be started"),
    "hangs": _no_progress("sleep 60", options=("--timeout", "200ms")),
    "falls silent": _no_progress("echo ready; sleep 60", "the agent hung", options=("--idle-timeout", "300ms")),
    "changes white space": _no_progress('echo "" >> src/app.py'),
    "touches": _no_progress("touch src/app.py"),
    "writes logs and locks": _no_progress("echo $n >> run.log; echo $n > uv.lock; mkdir -p build; echo $n > build/x.o"),
    "commits nothing": _no_progress('git commit -q --allow-empty -m "progress $n"'),
    "deletes tests": Stuck("rm -rf tests; echo mended", "loop.score", 3, ("is -9", "no file was changed")),
    "writes what git ignores": _no_progress("mkdir -p .venv; echo $n > .venv/x.py"),
    "audits the same again": Stuck(
        'echo "Reviewed everything."; ' + status(work_type="AUDIT"), "loop.score", 3, ("is -6", "no file was changed")
    ),
    "the same error while tasks are done": Stuck(
        f"{WORK}\n{_FAILS}\n{_TASK}", "loop.same_error", 5, ("5 times in a row (limit 5)", "KeyError")
    ),
    "tests fail that only --until runs": Stuck(
        _COMMIT, "loop.same_error", 5, ("5 times in a row (limit 5)", "1 of 5 tests"), options=("--until", _RED)
    ),
    "tests fail that only --junit has": Stuck(
        f"{_COMMIT}; {_JUNIT}",
        "loop.same_error",
        5,
        ("Last: AssertionError: test_total: assert 4 == 3",),
        options=("--junit", "r.xml"),
    ),
    "claims to be finished, and the same check fails": Stuck(
        f"{_COMMIT}; {status(exit_signal='true')}",
        "loop.same_error",
        5,
        ("Last: exit 7: tabs are not read",),
        options=("--verify", "echo tabs are not read; exit 7"),
    ),
    "the same error after three approaches": Stuck(
        f"{WORK}\n{_FAILS}\n{_APPROACH}",
        "loop.same_error",
        8,
        ("5 times in a row (limit 5)", "KeyError"),
    ),
    "less and less": Stuck(f"{WORK}\n{_LESS}", "loop.output_decline", 3, ("70 %", "limit 70 %")),
    "three calls are denied": Stuck(
        f'{WORK}\ncat "$ANSWERS/claude_stream_denied.out"',
        "loop.permission_denied",
        1,
        (
            "3 denied calls in a row (limit 3)",
            "Last: Bash(touch a), Bash(rm -rf b), ",
            "--permission-mode acceptEdits allows",
        ),
    ),
    "a call is denied each time": Stuck(
        f"{WORK}\n{_ONE_DENIAL}", "loop.permission_denied", 3, ("3 permission denials in a row (limit 3)",)
    ),
    "only tests": Stuck(_TEST, "loop.test_fix", 3, ("100 %", "limit 80 %")),
    "only tests after work": Stuck(
        f'if [ "$n" = 1 ]; then {WORK}; else {_TEST}; fi', "loop.test_fix", 6, ("100 %", "limit 80 %")
    ),
    "two named approaches": Stuck(
        f"{WORK}\nset -- Caching Locking; shift $((n % 2))\n{status(approach='$1')}",
        "loop.circular",
        4,
        ("2 approaches alternate: locking / caching",),
    ),
    "three named approaches": Stuck(
        f"{WORK}\nset -- Caching Locking Queues; shift $((n % 3))\n{status(approach='$1')}",
        "loop.circular",
        6,
        ("3 approaches alternate: locking / queues / caching",),
    ),
    "contents that swing": Stuck(
        'echo "total = $((n % 2))" > src/app.py', "loop.circular", 4, ("alternate between the same 2 contents",)
    ),
    "commits that swing": Stuck(
        'echo "total = $((n % 2))" > src/app.py; git commit -qam "try $n"',
        "loop.circular",
        4,
        ("alternate between the same 2 contents",),
    ),
    "work that keeps the same error": Stuck(
        f"{WORK}\n{_FAILS}",
        "loop.same_error",
        3,
        ("the same error came again, and the progress score", "is -1", "Last: KeyError: 0x7f", "Next: Change approach"),
    ),
    "an error, and nothing changed": Stuck(
        _FAILS, "loop.same_error", 3, ("the same error came again", "Last: KeyError: 0x7f", "Next: Change approach")
    ),
    "reaches no model": Stuck(
        'cat "$ANSWERS/claude_json_api529.out"; exit 1', "loop.neutral", 5, ("the model could not be reached",)
    ),
    "no progress, raised": Stuck(IDLE, "loop.no_progress", 5, ("(limit 5)",), "no_progress = 5\nscore_over = 5"),
    "no progress, lowered": Stuck(IDLE, "loop.no_progress", 2, ("(limit 2)",), "no_progress = 2"),
    "same error, raised": Stuck(
        f"{WORK}\n{_FAILS}\n{_TASK}", "loop.same_error", 7, ("7 times in a row (limit 7)",), "same_error = 7"
    ),
    "less and less, raised": Stuck(
        f"{WORK}\n{_LESS}", "loop.output_decline", 4, ("75 %", "limit 75 %"), "output_decline = 0.75"
    ),
    "denials, raised": Stuck(
        f"{WORK}\n{_ONE_DENIAL}", "loop.permission_denied", 4, ("(limit 4)",), "permission_denied = 4"
    ),
    "only tests, lowered": Stuck(
        f'if [ "$n" = 1 ]; then {WORK}; else {_TEST}; fi',
        "loop.test_fix",
        3,
        ("66.7 %", "limit 60 %"),
        "test_fix_share = 0.6",
    ),
    "reaches no model, raised": Stuck(
        'cat "$ANSWERS/claude_json_api529.out"; exit 1', "loop.neutral", 6, ("(limit 6)",), "neutral = 6"
    ),
}

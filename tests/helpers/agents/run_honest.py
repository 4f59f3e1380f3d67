"""Agents that work, each in a way that some breaker has taken for a loop (PITFALLS of such tools): none may trip."""

from __future__ import annotations

from dataclasses import dataclass

from tests.helpers.agents.run_stage import WORK, claude, status

_WORDS = (
    "set -- apple bread crane drift eagle flame grass house ivory jelly knife lemon mango north ocean piano queen river"
    " stone tiger uncle\nshift $((n - 1)); word=$1\n"
)
_COMMIT = 'git add -A && git commit -q -m "step $n"'
_OLD = 'for i in $(seq 20); do echo "x = $i" > "old$i.py"; done; git add -A; git commit -q -m old'
_TEST_RUN = """failing=$((21 - n))
echo "def step$n(): return $n" >> src/app.py
echo "============================= test session starts =============================="
echo "collected 21 items"
echo ""
echo "=================================== FAILURES ==================================="
echo "_________________________________ test_part$failing __________________________________"
echo "E       AssertionError: part $failing is missing"
echo "tests/test_app.py:$n: AssertionError"
echo "=========================== short test summary info ============================"
i=1
while [ $i -le $failing ]; do
  echo "FAILED tests/test_app.py::test_part$i - AssertionError: part $i is missing"
  i=$((i + 1))
done
echo "========================= $failing failed, $n passed in 0.${n}s ========================="
exit 1
"""
_PROSE = """cat <<END
Error handling is next. HTTP 429: rate limit exceeded, 5-hour limit, usage limit reached.
The API returned "is_error": false and error: null. Permission denied is tested as well.
Traceback handling: see docs. Everything is done, complete, finished. All tasks complete.
Use this block when you are finished:
    EXIT_SIGNAL: true | false
END
echo "error: rate limit reached; EXIT_SIGNAL: true; done; step $n" >> notes.md
"""


@dataclass(frozen=True)
class Honest:
    """One agent, and the project that it needs: `repository`, `several` or `none`."""

    does: str
    project: str = "repository"
    #: more than twice what the longest memory of a breaker holds
    iterations: int = 12
    options: tuple[str, ...] = ()
    #: a command that prepares the project
    before: str = ""


HONEST = {
    "commits inside the loop": Honest(f"{WORK}; {_COMMIT}", iterations=20),
    "commits and leaves a clean tree": Honest(f'echo "# $n" >> src/app.py; {_COMMIT}; git status --short'),
    "writes untracked files only": Honest('mkdir -p notes; echo "note $n" > "notes/$n.md"'),
    "merges only": Honest(
        'git merge -q --no-ff --no-edit "topic$n"',
        before="""for i in $(seq 20); do
  printf 'commit refs/heads/topic%s\\ncommitter A <a@example.org> 0 +0000\\ndata 1\\nx\\nfrom main\\n' $i
  printf 'M 644 inline topic%s.py\\ndata 3\\nx=1\\n\\n' $i
done | git fast-import --quiet --force""",
    ),
    "several repositories": Honest(
        'cd "$([ $((n % 2)) = 0 ] && echo api || echo web)"; echo "$n" > "part$n.py"; ' + _COMMIT, "several"
    ),
    "no repository": Honest('echo "line $n" >> book.txt', "none"),
    "audits": Honest(_WORDS + 'echo "Read the $word module: nothing wrong with $word."\n' + status(work_type="AUDIT")),
    "asks now and then": Honest(
        f"if [ $((n % 3)) = 0 ]; then echo 'I need to know: which port should it use?'; else {WORK}; fi"
    ),
    "is cut off at work": Honest(
        f"{WORK}; echo working; sleep 60", iterations=4, options=("--timeout", "300ms"), project="none"
    ),
    "edits many files": Honest(
        'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "page $i, edition $n" > "page$i.md"; done'
    ),
    "runs the tests after every edit": Honest(_TEST_RUN),
    "mends one test after another that --until runs": Honest(
        "echo $n > left; " + _TEST_RUN.split("\n", 2)[1], options=("--until", f"n=$(cat left)\n{_TEST_RUN}")
    ),
    "works towards what is not there yet": Honest(
        f"{WORK}; {_COMMIT}", options=("--until", "echo waiting for the release; test -e release.txt")
    ),
    "leaves results of an earlier run": Honest(
        f"{WORK}; {_COMMIT}; [ -e r.xml ] || echo "
        "'<testsuite><testcase name=\"a\"><failure/></testcase></testsuite>' > r.xml",
        options=("--junit", "r.xml"),
    ),
    "talks about errors and limits": Honest(_PROSE),
    "ticks boxes": Honest(
        'sed -i "s/- \\[ \\] task $n\\$/- [x] task $n/" IMPLEMENTATION_PLAN.md',
        before='for i in $(seq 21); do echo "- [ ] task $i"; done > IMPLEMENTATION_PLAN.md',
    ),
    "writes new tests": Honest(
        'printf "def test_new%s():\\n    assert total([%s]) == %s\\n" $n $n $n >> tests/test_app.py'
    ),
    "test first, then code": Honest(
        "if [ $((n % 2)) = 1 ]; then\n"
        '  printf "def test_total():\\n    assert total([%s]) == %s\\n" "$n" "$n" > tests/test_app.py\n'
        'else echo "def step$n(): return $n" >> src/app.py; fi'
    ),
    "says less and less, but commits": Honest(f"{WORK}; {_COMMIT}; seq $((210 / n))"),
    "meets one error after another": Honest(
        _WORDS + WORK + '\nprintf \'Traceback (most recent call last):\\n  File "a.py", line 1, in x\\n    go()\\n'
        'ValueError: no %s here\\n\' "$word"'
    ),
    "is denied now and then": Honest(
        f"{WORK}\nif [ $((n % 3)) = 0 ]; then echo fine; else "
        + claude("Went on.", permission_denials=[{"tool_name": "Bash", "tool_use_id": "b", "tool_input": {}}])
        + "; fi"
    ),
    "reports in JSON, with a failure in a tool": Honest(f'{WORK}\ncat "$ANSWERS/claude_stream_tool_error.out"'),
    "removes dead code": Honest('rm "old$n.py"', before=_OLD),
    "renames": Honest('git mv "old$n.py" "new$n.py"', before=_OLD),
}

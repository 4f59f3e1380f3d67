"""Agents that are stuck. Each scene repeats one way of being stuck for longer than anybody would watch it, so that the
figures say when it was noticed; where a scene has honest work in front, the loop begins where `labels.toml` says."""

from __future__ import annotations

from collections.abc import Callable

from phrases import (
    act,
    agent,
    bash,
    edit,
    edit_misses,
    glob,
    grep,
    patch,
    pytest_fails,
    pytest_passes,
    read,
    run,
    todo,
    write,
)
from recorded import ROOT, Call, Session

#: name -> the format it is written in, and the scene
SCENES: dict[str, tuple[str, Callable[[Session], None]]] = {}


def scene(form: str) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    def register(tell: Callable[[Session], None]) -> Callable[[Session], None]:
        SCENES[tell.__name__] = form, tell
        return tell

    return register


def _begins(s: Session) -> None:
    """Four honest calls, so that no loop begins with the session."""
    s.asked("Make the export work.")
    s.does(bash("ls", "Makefile\nREADME.md\nsrc\ntests"))
    s.does(read("README.md", "# Shop\n"), read("src/export.py"))
    s.does(grep("export", "src/export.py", "src/app.py"))


# -- the same call, the same result -----------------------------------------------------------------------


@scene("claude")
def same_call_same_result(s: Session) -> None:
    _begins(s)
    for _ in range(20):
        s.does(grep("class Exporter", "src/export.py"))


@scene("claude")
def same_call_with_chatter(s: Session) -> None:
    """The words around the call are new every time; the call and what it brings are not."""
    _begins(s)
    for at in range(24):
        s.does(says=f"Let me think about this differently ({at}). The exporter must be defined somewhere.", after=3)
        s.does(read("src/export.py"), says=f"I will look at the file for the details of step {at + 2}.")


@scene("claude")
def sixty_honest_calls_before(s: Session) -> None:
    s.asked("Document every module, then mend the export.")
    for at in range(20):
        s.does(read(f"src/part_{at}.py", f"def part_{at}(): ...\n"))
        s.does(edit(f"src/part_{at}.py", f"def part_{at}(): ...", f'def part_{at}():\n    """Part {at}."""'))
        s.does(pytest_passes(s, 40 + at))
    for _ in range(14):
        s.does(bash("cat src/export.py", "def export(rows):\n    raise NotImplementedError\n"))


@scene("claude")
def harmless_read_between(s: Session) -> None:
    """Between two tries it reads something new each time, so no two calls in a row are alike."""
    _begins(s)
    for at in range(14):
        s.does(bash("python -m shop.export", "ModuleNotFoundError: No module named 'shop.export'", failed=True))
        s.does(read(f"src/part_{at}.py", f"def part_{at}(): ...\n"))


@scene("codex")
def codex_same_command(s: Session) -> None:
    s.asked("Fix the failing build.")
    s.does(run("ls", "package.json\nsrc\n"))
    s.does(run("cat package.json", '{"scripts": {"build": "tsc -p ."}}'))
    missing = "error TS18003: No inputs were found in config file '/home/dev/project/tsconfig.json'.\n"
    for _ in range(20):
        s.does(run("npm run build", f"> shop@1.0.0 build\n> tsc -p .\n\n{missing}", failed=True, takes=2))


@scene("swe-agent")
def traj_same_action(s: Session) -> None:
    s.asked("Fix the issue: wrong default for EMAIL_TIMEOUT.")
    s.does(act("cd /testbed && git log --oneline -1", "0e1a2b3 Bump version\n"))
    for _ in range(22):
        s.does(act("cd /testbed && grep -rn 'EMAIL_TIMEOUT' docs", "docs/settings.txt:1204:``EMAIL_TIMEOUT``\n"))


# -- the same failure -------------------------------------------------------------------------------------


@scene("claude")
def same_failing_command(s: Session) -> None:
    _begins(s)
    for _ in range(16):
        s.does(bash("npm test", "sh: 1: jest: not found", failed=True, code=127))


@scene("claude")
def same_test_without_a_change(s: Session) -> None:
    _begins(s)
    for _ in range(16):
        s.does(pytest_fails(s, "tests/test_export.py::test_csv", "AssertionError: assert 3 == 4", line=18))


@scene("claude")
def same_test_with_other_flags(s: Session) -> None:
    """Verbose, quiet, with a traceback, without: the test fails in other words each time, and nothing is changed."""
    _begins(s)
    flags = ("-q", "-v", "-x", "-vv", "--tb=short", "--tb=long", "-s", "-q -x", "--lf", "-q --tb=no", "-rA", "-vvv")
    for flag in (*flags, *flags[:4]):
        call = pytest_fails(
            s, "tests/test_export.py::test_csv", "AssertionError: assert 3 == 4", line=18, command=f"pytest {flag}"
        )
        call.result += f"\n({flag})"
        s.does(call)


@scene("claude")
def whitespace_edits(s: Session) -> None:
    """It edits between two runs, but only blanks: the test cannot care. A person would say so after the third."""
    _begins(s)
    for at in range(9):
        old, new = f"return rows{' ' * at}\n", f"return rows{' ' * (at + 1)}\n"
        s.does(edit("src/export.py", old, new))
        s.does(pytest_fails(s, "tests/test_export.py::test_csv", "AssertionError: assert 3 == 4", line=18))


@scene("claude")
def same_error_new_arguments(s: Session) -> None:
    _begins(s)
    names = ("file", "filename", "path", "filePath", "target", "uri", "document", "src", "location", "name", "f", "p")
    text = (
        "<tool_use_error>InputValidationError: mcp__docs__open failed due to the following issue:\n"
        "The required parameter `document_id` is missing</tool_use_error>"
    )
    for name in names:
        s.does(Call("mcp__docs__open", {name: "export.md"}, text, failed=True))
    for name in names[:8]:
        s.does(Call("mcp__docs__open", {name: "/docs/export.md"}, text, failed=True))


@scene("claude")
def edits_that_never_match(s: Session) -> None:
    """The text to replace is guessed again and again; what differs in the error is only the guess."""
    _begins(s)
    for at in range(20):
        s.does(edit_misses("src/export.py", f"def export(rows, sep{' ' * at}=','):", "def export(rows, sep=';'):"))


@scene("swe-agent")
def traj_edit_that_never_matches(s: Session) -> None:
    s.asked("Fix the issue: itrs frame rotation is wrong.")
    s.does(act("str_replace_editor view /testbed/itrs.py", "     1\tdef itrs_to_altaz(a):\n"))
    no = "No replacement was performed, old_str `def altaz(a):` did not appear verbatim in /testbed/itrs.py.\n"
    for _ in range(20):
        s.does(
            act("str_replace_editor str_replace /testbed/itrs.py --old_str 'def altaz(a):' --new_str 'def f():'", no)
        )


@scene("claude")
def denied_again_and_again(s: Session) -> None:
    _begins(s)
    no = "Permission to use Bash with command git push --force origin main has been denied."
    for at in range(16):
        given = {"command": "git push --force origin main", "description": f"Push, attempt {at + 1}"}
        s.does(Call("Bash", given, no, failed=True))


# -- results that differ only in what does not matter -----------------------------------------------------


@scene("claude")
def only_the_line_number_differs(s: Session) -> None:
    _begins(s)
    for at in range(16):
        trace = f'  File "{ROOT}/src/export.py", line {40 + at * 3}, in export\nValueError: columns differ'
        s.does(bash("python tools/export.py --all", f"Traceback (most recent call last):\n{trace}", failed=True))


@scene("claude")
def only_the_request_id_differs(s: Session) -> None:
    _begins(s)
    for _ in range(16):
        text = f'{{"error": "schema not found", "request_id": "req_{s.hexadecimal(16)}"}}'
        s.does(Call("mcp__warehouse__describe", {"table": "exports"}, text))


@scene("claude")
def only_the_time_differs(s: Session) -> None:
    _begins(s)
    for at in range(16):
        text = f"2026-11-16 10:{at + 11:02}:{s.dice.randint(10, 59)} WARN export: nothing to do, queue is empty"
        s.does(bash("./bin/export --once", text))


@scene("codex")
def only_the_duration_differs(s: Session) -> None:
    s.asked("Make the export tests pass.")
    s.does(run("ls tests", "test_export.py\n"))
    s.does(run("sed -n '1,80p' tests/test_export.py", "def test_csv():\n    assert export() == 4\n"))
    for _ in range(18):
        text = f"F\nFAILED tests/test_export.py::test_csv - assert 3 == 4\n1 failed in {s.seconds(0.1, 2)}s\n"
        s.does(run("pytest -q tests/test_export.py", text, failed=True))


# -- rounds -----------------------------------------------------------------------------------------------


@scene("claude")
def two_take_turns(s: Session) -> None:
    """An edit and its undoing."""
    _begins(s)
    for _ in range(9):
        s.does(edit("src/export.py", "sep=','", "sep=';'"))
        s.does(edit("src/export.py", "sep=';'", "sep=','"))


@scene("claude")
def ping_pong_of_two_reads(s: Session) -> None:
    _begins(s)
    for _ in range(10):
        s.does(read("src/export.py", "from app import rows\n"))
        s.does(read("src/app.py", "from export import export\n"))


@scene("claude")
def three_take_turns(s: Session) -> None:
    _begins(s)
    for _ in range(8):
        s.does(bash("git stash", "Saved working directory and index state WIP on main: 9b3de11 Begin"))
        s.does(pytest_fails(s, "tests/test_export.py::test_csv", "AssertionError: assert 3 == 4", line=18))
        s.does(bash("git stash pop", "On branch main\nChanges not staged for commit:\n\tmodified:   src/export.py"))


@scene("claude")
def five_take_turns(s: Session) -> None:
    _begins(s)
    for _ in range(7):
        s.does(read("src/export.py"))
        s.does(grep("def rows", "src/app.py"))
        s.does(read("src/app.py", "def rows(): ...\n"))
        s.does(bash("python -m shop.export --check", "columns differ: 3 and 4"))
        s.does(bash("git diff --stat", " src/export.py | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"))


@scene("codex")
def codex_two_take_turns(s: Session) -> None:
    s.asked("Use semicolons.")
    s.does(run("cat src/export.py", "SEP = ','\n"))
    for _ in range(11):
        s.does(patch("src/export.py", "SEP = ','", "SEP = ';'"))
        s.does(patch("src/export.py", "SEP = ';'", "SEP = ','"))


@scene("swe-agent")
def traj_two_take_turns(s: Session) -> None:
    s.asked("Fix the issue: Q objects cannot be pickled.")
    for _ in range(11):
        s.does(act("cd /testbed && python reproduce.py", "TypeError: cannot pickle 'dict_keys' object\n"))
        s.does(act("str_replace_editor view /testbed/django/db/models/query_utils.py", "     1\tclass Q:\n"))


# -- changes that are made again --------------------------------------------------------------------------


@scene("claude")
def same_edit_while_the_file_grows(s: Session) -> None:
    """The old text is part of the new one, so the edit succeeds for ever, and the file grows."""
    _begins(s)
    for at in range(16):
        call = edit("src/export.py", "import csv\n", "import csv\nimport io\n")
        call.result += f" Here's a snippet:\n{at + 2:6}→import io\n{at + 3:6}→"
        s.does(call)


@scene("claude")
def same_change_succeeds(s: Session) -> None:
    _begins(s)
    for at in range(16):
        s.does(bash("kubectl apply -f deploy/export.yaml", f"deployment.apps/export configured (generation {at + 4})"))


@scene("claude")
def same_file_written_again(s: Session) -> None:
    """The same whole file between two looks at it."""
    _begins(s)
    for at in range(10):
        s.does(write("src/export.py", "def export(rows):\n    return rows\n", new=at == 0))
        s.does(read("src/export.py", "def export(rows):\n    return rows\n"))


# -- too many ---------------------------------------------------------------------------------------------


@scene("claude")
def spawn_storm(s: Session) -> None:
    _begins(s)
    for at in range(16):
        s.does(agent(f"Find the bug, part {at}", f"Look for the export bug from angle {at}.", f"ab{at:02}"), after=12)


@scene("claude")
def agents_in_one_reply(s: Session) -> None:
    _begins(s)
    s.does(*(agent(f"Read module {at}", f"Read src/part_{at}.py.", f"ac{at:02}") for at in range(16)))


@scene("claude")
def api_spam(s: Session) -> None:
    _begins(s)
    for at in range(16):
        s.does(bash(f'python scripts/oracle.py "idea {at}"', f"Idea {at} is plausible.", takes=0.5), after=2)


@scene("claude")
def api_over_the_session(s: Session) -> None:
    """Slow enough for the minute, too many for the session."""
    _begins(s)
    for at in range(56):
        s.does(bash(f'python scripts/research.py "topic {at}"', f"{at} sources on topic {at}.", takes=1), after=10)


@scene("claude")
def one_reply_full_of_one_call(s: Session) -> None:
    _begins(s)
    s.does(*(grep("class Exporter", "src/export.py") for _ in range(18)))


@scene("claude")
def busy_polling(s: Session) -> None:
    """No waiting between two looks: forty questions in two minutes. Telling is enough."""
    _begins(s)
    for _ in range(40):
        s.does(bash("gh run view 8123441 --json status -q .status", "in_progress", takes=0.4), after=2.5)


@scene("claude")
def waiting_for_nothing(s: Session) -> None:
    """Nobody writes the file that it waits for; it looks twice a minute, for half an hour. Telling is enough."""
    _begins(s)
    for _ in range(60):
        s.does(bash("sleep 25; cat out/result.json", "cat: out/result.json: No such file or directory", failed=True))


# -- below the surface ------------------------------------------------------------------------------------


@scene("claude")
def loop_in_a_sub_agent(s: Session) -> None:
    """The main agent works on, the sub-agent is stuck."""
    _begins(s)
    s.does(agent("Mend the export", "Make tests/test_export.py pass.", "a0ffee11"))
    for at in range(16):
        s.does(
            bash("make export", "make: *** No rule to make target 'export'.  Stop.", failed=True, code=2),
            agent="a0ffee11",
        )
        s.does(read(f"src/part_{at}.py", f"def part_{at}(): ...\n"), after=1)


@scene("claude")
def todo_list_instead_of_work(s: Session) -> None:
    """The plan is written down again and again, unchanged."""
    _begins(s)
    for _ in range(16):
        s.does(todo("Find the bug", "Mend the export", "Run the tests", done=0))


# -- what repeats without being the same call --------------------------------------------------------------


@scene("claude")
def searches_for_what_is_not_there(s: Session) -> None:
    """Every lookup is another one, and every one comes back empty."""
    _begins(s)
    for at in range(10):
        s.does(grep(f"ExportQueue{at}"))
        s.does(bash(f"find . -name 'export_queue_{at}*'"))
        s.does(glob(f"**/queue_{at}/*.py"))


@scene("claude")
def a_program_that_is_not_installed(s: Session) -> None:
    _begins(s)
    for at, goal in enumerate("compile test package verify install site deploy clean validate".split() * 2):
        s.does(bash(f"mvn -q {goal} -T {at}", "/bin/bash: line 1: mvn: command not found", failed=True, code=127))


@scene("claude")
def a_round_of_nine(s: Session) -> None:
    """Nine files are read in turn, again and again, and nothing is done."""
    _begins(s)
    for _ in range(4):
        for at in range(9):
            s.does(read(f"src/part_{at}.py", f"def part_{at}(): ...\n"))

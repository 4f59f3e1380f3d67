"""The pure part of the breakers inside a session: the nature of a call, what is masked in a result, what repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.breakers.session.calls import (
    ACT,
    CHANGE,
    LOOK,
    VERIFY,
    WAIT,
    Call,
    call_of,
    family,
    program_of,
    shown,
    signature,
)
from fusewire.breakers.session.detect import (
    NO_PROGRAM,
    NOTHING,
    REFUSED,
    PastCall,
    Repetition,
    counted_failures,
    findings,
    is_change,
)
from fusewire.breakers.session.masking import masked
from fusewire.core.events import Event
from fusewire.engine.breaker import default_rules
from fusewire.guard.plain import only_look, plain_commands
from fusewire.guard.shell.commands import only_looks, simple_commands
from tests.helpers.project import lines_run

SETTINGS = default_rules().tool

#: Every property is tried a few times: the suite has to stay quick.
few = settings(max_examples=60, deadline=None)


# -- natures --------------------------------------------------------------------------------------------

#: command line -> the program that it is about, and what its repetition would mean
LINES = {
    # checks, in every dress
    "pytest -q": ("pytest", VERIFY),
    "timeout 60 pytest -x tests/test_a.py": ("pytest", VERIFY),
    "timeout -k 5 60s pytest": ("pytest", VERIFY),
    "env CI=1 pytest": ("pytest", VERIFY),
    "CI=1 FORCE_COLOR=0 pytest -q": ("pytest", VERIFY),
    "cd backend && pytest -q": ("pytest", VERIFY),
    "cd backend; CI=1 timeout 60 pytest": ("pytest", VERIFY),
    "(cd backend && pytest)": ("pytest", VERIFY),
    "bash -c 'pytest -q'": ("pytest", VERIFY),
    'bash -lc "cd web && npm test"': ("npm", VERIFY),
    "sudo -u ci pytest": ("pytest", VERIFY),
    "nice -n 5 pytest": ("pytest", VERIFY),
    "set -e; pytest": ("pytest", VERIFY),
    "source .venv/bin/activate && pytest": ("pytest", VERIFY),
    ". .venv/bin/activate && python -m pytest": ("pytest", VERIFY),
    "./.venv/bin/pytest -q": ("pytest", VERIFY),
    "pytest -q 2>&1 | tail -5": ("pytest", VERIFY),
    "pytest -q > out.txt 2>&1": ("pytest", VERIFY),
    "python -m pytest -q": ("pytest", VERIFY),
    "python3 -m unittest discover": ("unittest", VERIFY),
    "python3 -m mypy src": ("mypy", VERIFY),
    "uv run pytest -q": ("pytest", VERIFY),
    "uv run --with hypothesis pytest": ("pytest", VERIFY),
    "poetry run mypy src": ("mypy", VERIFY),
    "npx jest --runInBand": ("jest", VERIFY),
    "npx tsc --noEmit": ("tsc", VERIFY),
    "./node_modules/.bin/eslint src": ("eslint", VERIFY),
    "npm test": ("npm", VERIFY),
    "npm run test:unit": ("npm", VERIFY),
    "npm run lint": ("npm", VERIFY),
    "pnpm build": ("pnpm", VERIFY),
    "yarn typecheck": ("yarn", VERIFY),
    "cargo clippy --all": ("cargo", VERIFY),
    "go vet ./...": ("go", VERIFY),
    "make -C sub test": ("make", VERIFY),
    "./gradlew test": ("gradlew", VERIFY),
    "mvn -q verify": ("mvn", VERIFY),
    "ruff check .": ("ruff", VERIFY),
    "black --check .": ("black", VERIFY),
    # looking
    "git status": ("git", LOOK),
    "git -C sub status --short": ("git", LOOK),
    "git -c color.ui=never log -3": ("git", LOOK),
    "git --no-pager diff HEAD~1": ("git", LOOK),
    "/usr/bin/git log": ("git", LOOK),
    "cat a.py b.py | head -20": ("cat", LOOK),
    "cd src && ls -la 2>/dev/null": ("ls", LOOK),
    "ls -la > /dev/null 2>&1": ("ls", LOOK),
    "sed -n 1,20p a.py": ("sed", LOOK),
    "find . -name '*.py' -type f": ("find", LOOK),
    "grep -rn 'a -> b' src": ("grep", LOOK),
    "rg '<div>' src": ("rg", LOOK),
    "awk '{print $1}' a.txt": ("awk", LOOK),
    "gh run view 12": ("gh", LOOK),
    "gh pr list": ("gh", LOOK),
    "kubectl get pods": ("kubectl", LOOK),
    "docker logs web": ("docker", LOOK),
    "systemctl status nginx": ("systemctl", LOOK),
    "pip show hypothesis": ("pip", LOOK),
    "npm ls": ("npm", LOOK),
    "terraform plan": ("terraform", LOOK),
    "curl -s http://localhost:8080/health": ("curl", LOOK),
    # waiting
    "sleep 30": ("sleep", WAIT),
    "sleep 30 && gh run view 12": ("gh", WAIT),
    "sleep 5; cat build.log": ("cat", WAIT),
    "gh run watch 12": ("gh", WAIT),
    "kubectl wait --for=condition=ready pod/web": ("kubectl", WAIT),
    "watch -n 5 ls": ("ls", WAIT),
    # changing
    "cat > f.py <<'EOF'\nprint(1)\nEOF": ("cat", CHANGE),
    "cat a >> b": ("cat", CHANGE),
    "sed -i s/a/b/ a.py": ("sed", CHANGE),
    "sed -i.bak s/a/b/ a.py": ("sed", CHANGE),
    "find . -name '*.pyc' -delete": ("find", CHANGE),
    "find . -name '*.pyc' -exec rm {} \\;": ("find", CHANGE),
    "printf x | tee a.txt": ("tee", CHANGE),
    "git commit -m 'pytest passes'": ("git", CHANGE),
    "git -C sub commit -am y": ("git", CHANGE),
    "git push": ("git", CHANGE),
    "gh pr create --title x": ("gh", CHANGE),
    "kubectl apply -f a.yml": ("kubectl", CHANGE),
    "docker compose up -d": ("docker", CHANGE),
    "npm install": ("npm", CHANGE),
    "pip install hypothesis": ("pip", CHANGE),
    "rm -rf build": ("rm", CHANGE),
    "mkdir -p a && touch a/b": ("touch", CHANGE),
    "mkdir -p a": ("mkdir", CHANGE),
    "systemctl restart nginx": ("systemctl", CHANGE),
    # nobody knows
    "./deploy.sh": ("deploy.sh", ACT),
    "export A=1 && ./run.sh": ("run.sh", ACT),
    "git stash": ("git", ACT),
    "git rebase --continue": ("git", ACT),
    "python app.py": ("python", ACT),
    "python3 -c 'print(1)'": ("python3", ACT),
    "node app.js": ("node", ACT),
    "curl -X POST http://localhost/x": ("curl", ACT),
}

TOOLS = {
    "Read": LOOK,
    "Grep": LOOK,
    "Glob": LOOK,
    "WebFetch": LOOK,
    "TodoWrite": LOOK,
    "TaskUpdate": LOOK,
    "mcp__github__get_issue": LOOK,
    "mcp__github__list_issues": LOOK,
    "mcp__code__searchCode": LOOK,
    "mcp__db__query": LOOK,
    "read_file": LOOK,
    "BashOutput": WAIT,
    "TaskOutput": WAIT,
    "Edit": CHANGE,
    "MultiEdit": CHANGE,
    "Write": CHANGE,
    "NotebookEdit": CHANGE,
    "apply_patch": CHANGE,
    "write_file": CHANGE,
    "mcp__github__create_issue": CHANGE,
    "mcp__files__write_file": CHANGE,
    "Agent": ACT,
    "mcp__browser__click": ACT,
    "mcp__shop__deploy": ACT,
}


def bash(line: str, folder: Path) -> Call:
    """The call as the hook sees it: what it runs, and whether the guard knows that it only looks."""
    commands = plain_commands(line)
    looks = only_looks(line) if commands is None else only_look(commands)
    event = Event("before_tool", tool="Bash", command=line, input={"command": line})
    return call_of(event, simple_commands(line) if commands is None else commands, looks)


@pytest.mark.parametrize("line", LINES)
def test_the_nature_and_the_name_of_a_command_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "old.pyc").touch()
    call = bash(line, tmp_path)
    program, nature = LINES[line]
    assert (program_of(call.tool), family(call.tool), call.nature) == (program, f"Bash({program})", nature)


#: command line -> the program with what it works on: a subcommand, a script, a file, and never an option
TOOLS_OF_LINES = {
    "pytest -q": "pytest",
    "pytest -x --maxfail=1 -k name": "pytest",
    "pytest -q tests/a.py": "pytest tests_a.py",
    "python -m pytest -k name tests/a.py": "pytest tests_a.py",
    "git push --force origin main": "git push",
    "git -C sub push": "git push",
    "git status": "git status",
    "npm run lint -- --fix": "npm run lint",
    "npm test": "npm test",
    "make -j 4": "make",
    "make deploy": "make deploy",
    "python manage.py migrate --noinput": "python manage.py migrate",
    "python run.py data.json": "python run.py",
    "python -c 'print(1)'": "python",
    "python3 -W error ./tool.py": "python3 tool.py",
    "./migrate.sh --step 3": "migrate.sh",
    "gh pr create --title x": "gh pr create",
    "docker compose up -d": "docker compose up",
    "cat src/a.py": "cat src_a.py",
    "sed -n 1,20p src/a.py": "sed src_a.py",
    "cargo test -p core parser": "cargo test",
}


@pytest.mark.parametrize("line", TOOLS_OF_LINES)
def test_a_tool_is_told_with_what_it_works_on(line: str, tmp_path: Path) -> None:
    assert bash(line, tmp_path).tool == f"Bash({TOOLS_OF_LINES[line]})"


def test_a_tool_that_edits_is_told_with_its_file_and_a_long_one_stays_apart() -> None:
    def edit(path: str) -> str:
        event = Event("before_tool", tool="Edit", paths=(path,), cwd="/p", input={"file_path": path})
        return call_of(event, [], False).tool

    assert edit("/p/src/a.py") == "Edit(src_a.py)"
    assert family(edit("/p/src/a.py")) == "Edit"
    long = [edit(f"/p/{'deep/' * 60}{name}.py") for name in "ab"]
    assert long[0] != long[1]
    assert all(len(name) < 100 for name in long)


def test_the_nature_of_a_tool() -> None:
    for tool, nature in TOOLS.items():
        call = call_of(Event("before_tool", tool=tool, input={"file_path": "a"}), [], False)
        assert (call.tool, call.nature) == (tool, nature)


def test_the_same_call_is_the_same_whatever_is_said_about_it() -> None:
    """Description and time limit are no part of it; every other argument is, and so is the tool."""

    def of(tool: str = "Bash", **given: Any) -> str:
        return signature(Event("before_tool", tool=tool, command=given.get("command"), input=given))

    one = of(command="ls", description="List")
    assert one == of(command="ls", description="Look again", timeout=5000)
    assert one == of(command=" ls\n")
    assert one != of(command="ls -l")
    assert one != of(command="ls", run_in_background=True)
    assert of("Read", file_path="a", offset=1) != of("Read", file_path="a", offset=2)
    assert of("Read", file_path="a") != of("Write", file_path="a")
    assert of("Read", offset=1, file_path="a") == of("Read", file_path="a", offset=1)


@few
@given(
    st.dictionaries(st.text(max_size=8), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
)
def test_any_input_has_a_signature_and_is_shown_in_a_few_words(given_input: dict[str, Any]) -> None:
    event = Event("before_tool", tool="mcp__any__thing", input=given_input)
    again = Event("before_tool", tool="mcp__any__thing", input=dict(reversed(list(given_input.items()))))
    assert signature(event) == signature(again)
    assert len(shown(event)) <= 100
    assert "\n" not in shown(event)


# -- masking --------------------------------------------------------------------------------------------

SAME = {
    "line number": ("a.py:12: error: bad", "a.py:140: error: bad"),
    "line and column": ("src/a.ts:3:14 - error TS1", "src/a.ts:30:1 - error TS1"),
    "line in words": ('File "/home/a/x.py", line 3, in f', 'File "/home/a/x.py", line 77, in f'),
    "uuid": ("job 3f2b8c1e-1111-4222-8333-944455556666 failed", "job 00000000-aaaa-4bbb-8ccc-dddddddddddd failed"),
    "hash": ("commit 4f2a9c1 is bad", "commit 99ab01f is bad"),
    "address": ("<object at 0x7f3a>", "<object at 0x7f3b9c>"),
    "clock": ("12:03:59 waiting", "12:04:01 waiting"),
    "time stamp": ("2026-11-16T10:00:00Z fail", "2026-11-17T23:59:59.123Z fail"),
    "day": ("on 2026-11-16 it failed", "on 2026-12-01 it failed"),
    "duration": ("1 failed in 0.31s", "1 failed in 12.4s"),
    "duration apart": ("done in 31 ms", "done in 4 ms"),
    "minutes": ("took 1m30s", "took 2m5s"),
    "pid": ("process 4123 died", "process 99 died"),
    "pid in brackets": ("sshd[4123]: refused", "sshd[99]: refused"),
    "pid=": ("pid=4123 died", "pid=99 died"),
    "port": ("cannot reach http://localhost:43123/x", "cannot reach http://localhost:51999/x"),
    "temporary path": ("/tmp/pytest-of-me/pytest-12/a.txt is missing", "/var/folders/zz/a.txt is missing"),
    "home": ("/home/ann/app/a.py is bad", "/home/bob/app/a.py is bad"),
    "colour": ("\x1b[31merror\x1b[0m: bad", "error: bad"),
    "white space": ("a  b\n\nc", "a b c"),
    "long id": ("request req_8f3k2j1h9a0b1c failed", "request req_1a2b3c4d5e6f7g failed"),
}

OTHER = {
    "count": ("3 failed, 5 passed", "2 failed, 6 passed"),
    "percent": ("45 % done", "46 % done"),
    "percent close": ("45% done", "46% done"),
    "step": ("step 3 of 10", "step 4 of 10"),
    "fraction": ("[3/10] building", "[4/10] building"),
    "bytes": ("1024 bytes written", "2048 bytes written"),
    "status": ("status: pending", "status: running"),
    "name": ("no module named a", "no module named b"),
    "file": ("src/a.py:3: bad", "src/b.py:3: bad"),
    "version": ("python 3.11 found", "python 3.12 found"),
    "state": ("HTTP 502", "HTTP 503"),
    "host": ("http://a.example/x", "http://b.example/x"),
}


@pytest.mark.parametrize("what", SAME)
def test_masked_it_is_the_same(what: str) -> None:
    one, other = SAME[what]
    assert masked(one) == masked(other)


@pytest.mark.parametrize("what", OTHER)
def test_masked_it_is_still_another(what: str) -> None:
    """What a poll waits for must be seen."""
    one, other = OTHER[what]
    assert masked(one) != masked(other)


@few
@given(st.text())
def test_any_text_can_be_masked_and_the_same_text_is_the_same(text: str) -> None:
    assert masked(text) == masked(text)
    assert masked(f"word {text}") == masked(f" word  {text}\n")


@few
@given(st.integers(1, 99_999), st.integers(1, 99_999), st.floats(0.01, 999), st.floats(0.01, 999))
def test_a_failure_is_the_same_on_any_line_after_any_time(one: int, other: int, took: float, longer: float) -> None:
    text = "tests/test_a.py:{}: AssertionError\n1 failed, 3 passed in {:.2f}s"
    assert masked(text.format(one, took)) == masked(text.format(other, longer))


@few
@given(st.integers(0, 9999), st.integers(0, 9999))
def test_an_amount_is_the_same_only_if_it_is(one: int, other: int) -> None:
    text = "{} tests failed"
    assert (masked(text.format(one)) == masked(text.format(other))) == (one == other)


def test_of_a_long_result_both_ends_count_and_the_work_is_bounded() -> None:
    middle = "word 17 " * 100_000
    assert masked(f"a {middle} z") == masked(f"a {middle} more {middle} z")
    assert masked(f"a {middle} z") != masked(f"b {middle} z")
    assert masked(f"a {middle} z") != masked(f"a {middle} y")
    short = lines_run(lambda: masked("word 17 " * 2000), "masking.py")
    assert lines_run(lambda: masked("word 17 " * 100_000), "masking.py") <= short * 1.01


def test_a_terminal_sequence_that_never_ends_is_no_problem() -> None:
    assert masked("a \x1b[") == "a"
    assert masked("\x1b[31") == ""


# -- repetition -----------------------------------------------------------------------------------------


class History:
    """Calls of one agent, as they are remembered."""

    def __init__(self) -> None:
        self.entries: list[PastCall] = []
        self.changes = 0
        self.now = 1000.0

    def add(
        self,
        call: str,
        result: str = "ok",
        nature: str = LOOK,
        *,
        failed: bool = False,
        wait: float = 1,
        tool: str = "",
        turn: int | None = None,
        absent: str = "",
    ) -> PastCall:
        self.now += wait
        name, turn = tool or f"T({call[:1]})", len(self.entries) if turn is None else turn
        entry = PastCall(name, call, result, nature, failed, self.changes, turn, False, call, self.now, absent)
        moved = is_change(entry, self.entries)
        self.entries.append(entry)
        self.changes += moved
        return entry

    def found(self) -> dict[str, Repetition]:
        return {finding.rule: finding for finding in findings(self.entries, SETTINGS)}

    def levels(self) -> dict[str, int]:
        return {rule: finding.level for rule, finding in self.found().items()}


def test_a_repetition_is_found_at_the_fourth_and_only_in_a_row() -> None:
    history = History()
    levels = []
    for _ in range(6):
        history.add("a")
        levels.append(history.levels())
    assert levels == [{}, {}, {}, {"repetition": 4}, {"repetition": 5}, {"repetition": 6}]
    history.add("b")
    assert history.levels() == {}
    history.add("a")  # with others in between it is weaker evidence: 7 of them are 3
    assert history.levels() == {}
    history.add("a")
    assert history.levels() == {"repetition": 4}


def test_another_result_is_no_repetition() -> None:
    history = History()
    for number in range(20):
        history.add("a", f"r{number}")
        assert history.levels() == {}
    for _ in range(3):
        history.add("a", "r19")
    assert history.levels() == {"repetition": 4}


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_a_cycle_is_found_in_its_third_round_with_all_of_its_calls(period: int) -> None:
    history = History()
    names = [f"call {number}" for number in range(period)]
    for name in names * 2:
        history.add(name)
        assert "cycle" not in history.levels()
    for name in names:
        history.add(name)
    (finding,) = findings(history.entries, SETTINGS)
    assert (finding.rule, finding.level) == ("cycle", 3)
    assert set(finding.calls) == set(names)
    for name in names[:-1]:  # wherever in the round it is, it is the same cycle
        history.add(name)
        turned = history.found()["cycle"]
        assert (turned.key, turned.level) == (finding.key, 3)
    history.add(names[-1])
    assert history.levels()["cycle"] == 4


def test_a_cycle_of_six_calls_is_a_long_one_and_with_another_result_it_is_none() -> None:
    history = History()
    for number, name in enumerate("abcdef" * 3, 1):
        history.add(name)
        assert history.levels() == ({"long_cycle": number - 6} if number >= 14 else {})
    history.add("g")
    assert history.levels() == {}
    history = History()
    for number in range(12):
        history.add("ab"[number % 2], f"r{number // 2}")
        assert history.levels() == {}


def test_the_same_change_is_found_at_the_third_whatever_its_result() -> None:
    history = History()
    for number in range(3):
        history.add("edit", f"r{number}", CHANGE)
        history.add("look", f"l{number}")
        history.add("check", f"c{number}", VERIFY)
    history.add("edit", "r3", CHANGE)
    assert history.levels() == {"same_mutation": 4}
    history.add("other edit", "x", CHANGE)
    history.add("edit", "r4", CHANGE)
    assert history.levels() == {}


def test_the_same_error_needs_two_calls_and_one_tool() -> None:
    history = History()
    for number in range(4):
        history.add(f"x{number}", "boom", ACT, failed=True)
        history.add("look", f"l{number}")
    history.add("x9", "boom", ACT, failed=True)
    assert history.levels() == {"same_error": 5}
    history.add("x8", "bang", ACT, failed=True)
    assert history.levels() == {}
    history.add("y1", "boom", ACT, failed=True, tool="other")
    assert history.levels() == {}


def test_lookups_that_find_nothing_are_barren_until_one_of_four_finds_something_or_the_work_moves() -> None:
    history = History()
    for number in range(9):
        history.add(f"grep {number}", "", absent=NOTHING)
        assert history.levels() == ({} if number < 8 else {"barren_search": 9})
    assert history.levels() == {"barren_search": 9}
    history.add("read", "text")
    assert history.levels() == {}
    history.add("grep 9", "", absent=NOTHING)
    assert history.levels() == {"barren_search": 10}
    for number in range(4):
        history.add(f"read {number}", f"text {number}")
    history.add("grep 10", "", absent=NOTHING)
    assert history.levels() == {}, "most of them find something by now"
    for number in range(11, 20):
        history.add(f"grep {number}", "", absent=NOTHING)
    history.add("edit", nature=CHANGE)
    history.add("grep 20", "", absent=NOTHING)
    assert history.levels() == {}, "the work has moved"


def test_a_missing_program_is_one_whatever_its_arguments_and_until_it_runs() -> None:
    history = History()
    for number in range(4):
        history.add(f"look {number}", f"text {number}")
        history.add(f"mvn {number}", f"r{number}", ACT, failed=True, tool=f"Bash(mvn {number})", absent=NO_PROGRAM)
        assert history.levels() == ({} if number < 3 else {"missing_program": 4})
    history.add("javac", "r", ACT, failed=True, tool="Bash(javac)", absent=NO_PROGRAM)
    assert "missing_program" not in history.levels()
    history.add("mvn ok", "built", ACT, tool="Bash(mvn compile)")
    history.add("mvn 9", "r", ACT, failed=True, tool="Bash(mvn 9)", absent=NO_PROGRAM)
    assert "missing_program" not in history.levels(), "it was there in between"


def test_what_was_seen_before_an_edit_and_is_seen_again_after_it_is_weak_evidence() -> None:
    history = History()
    for number in range(7):
        history.add(f"look {number}", f"text {number}")
    history.add("edit", nature=CHANGE)
    for number in range(7):
        history.add(f"look {number}", f"text {number}")
        assert history.levels() == {}
    history.add("poll", "pending", WAIT)
    assert history.levels() == {}


def test_a_failing_check_is_told_of_soon_and_refused_late() -> None:
    """The same failure after different edits: the agent tries."""
    history = History()
    told = []
    for number in range(20):
        history.add(f"edit {number}", "ok", CHANGE)
        history.add("check", "1 failed", VERIFY, failed=True)
        told.append(history.levels().get("repetition", 0))
    assert told.index(4) == 3
    assert told.index(SETTINGS["repetition.block"]) == 11
    passing = History()
    for number in range(20):
        passing.add(f"edit {number}", "ok", CHANGE)
        passing.add("check", "1 passed", VERIFY)
        assert passing.levels() == {}


def test_who_waits_is_patient() -> None:
    """Four times the patience; and who really waits is told, never refused."""
    slow, hasty = History(), History()
    for number in range(1, 41):
        slow.add("poll", "pending", WAIT, wait=30)
        hasty.add("poll", "pending", WAIT, wait=0.1)
        assert slow.levels().get("repetition", 0) <= SETTINGS["repetition.block"] - 1
        assert ("repetition" in hasty.levels()) == (number >= 16)
    assert hasty.levels()["repetition"] >= SETTINGS["repetition.block"]


def test_a_refused_call_neither_ends_the_row_nor_makes_it_longer() -> None:
    history = History()
    for _ in range(3):
        history.add("a")
    history.add("a", REFUSED)
    history.add("a")
    assert history.levels() == {"repetition": 4}


def test_a_change_is_a_success_that_is_new() -> None:
    history = History()
    assert is_change(history.add("edit", nature=CHANGE), [])
    assert not is_change(history.add("edit", nature=CHANGE), history.entries[:1])
    for nature in (LOOK, VERIFY, WAIT):
        assert not is_change(history.add("x", nature=nature), [])
    assert not is_change(history.add("y", nature=CHANGE, failed=True), [])
    assert not is_change(history.add("z", REFUSED, CHANGE), [])
    for number in range(12):
        history.add(f"{number}")
    assert is_change(history.add("edit", nature=CHANGE), history.entries[:-1])


def test_which_failures_count() -> None:
    """The first of a tool; the same again with nothing changed; of a check any; those of one reply once."""

    def counted(history: History, literal: bool = False) -> int:
        found, anew = counted_failures(history.entries, literal=literal)
        for entry in found:
            entry.counted = not literal
        return -len(found) if anew else len(found)

    history = History()
    history.add("x1", "boom", ACT, failed=True)
    assert counted(history) == 1
    history.add("x2", "other", ACT, failed=True)
    assert counted(history) == 0
    history.add("x3", "boom", ACT, failed=True)
    assert counted(history) == 1
    history.add("x4", "other", ACT, failed=True)  # the second that was let off counts, and those that differ no longer
    assert counted(history) == -2
    history.add("x5", "fine", ACT)
    assert counted(history) == 0

    checks = History()
    for number in range(5):
        checks.add(f"edit {number}", nature=CHANGE)
        checks.add("check", f"{number}", VERIFY, failed=True)
        assert counted(checks) == 1  # and the edit has ended what was counted before
    checks.add("check", "yet another", VERIFY, failed=True)
    assert counted(checks) == 1

    looks = History()
    for number in range(5):
        looks.add(f"l{number}", "not found", LOOK, failed=True)
        assert counted(looks) == 0
        assert counted(looks, literal=True) == 1
    looks.add("l4", "not found", LOOK, failed=True)
    assert counted(looks) == 2

    reply = History()
    for _ in range(3):
        reply.add("x1", "boom", ACT, failed=True, turn=1)
    assert [counted(reply), counted(reply)] == [0, 0]


steps = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from([LOOK, VERIFY, WAIT, CHANGE, ACT]), st.booleans()
    ),
    min_size=1,
    max_size=50,
)


@few
@given(steps)
def test_what_is_found_is_there(calls: list[tuple[str, str, str, bool]]) -> None:
    """A finding is about the last call, its level is no more than how often that came, and its evidence names it."""
    history = History()
    for call, result, nature, failed in calls:
        history.add(call, result, nature, failed=failed)
        last = history.entries[-1]
        for rule, finding in history.found().items():
            assert finding.level >= SETTINGS[f"{rule}.tell"]
            whatever = rule in ("same_mutation", "long_cycle")
            assert finding.level <= sum(whatever or entry.result == last.result for entry in history.entries)
            assert finding.tool == last.tool
            assert {last.mark, last.tool}.intersection(finding.calls)
            assert last.mark in finding.evidence
        assert last.changes <= history.changes


@few
@given(st.lists(st.sampled_from([LOOK, VERIFY, WAIT, CHANGE, ACT]), min_size=1, max_size=50))
def test_calls_that_all_differ_are_never_a_loop(natures: list[str]) -> None:
    history = History()
    for number, nature in enumerate(natures):
        history.add(f"call {number}", f"result {number}", nature, failed=number % 3 == 0)
        assert history.found() == {}

"""The scope lock as an agent meets it: structured tools, shell commands, and the ways round it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents import agent_named
from fusewire.breakers.attempt.scope.lock import ScopeLock
from fusewire.breakers.attempt.scope.state import SESSIONS, SLICES
from fusewire.config.rules import SCOPE_FILE
from fusewire.engine.breaker import Breaker
from fusewire.gate import process as gate
from fusewire.util.errors import FusewireError
from tests.gate.test_hot_path import EDIT_PATH, HOT_PATH, READ_PATH, SLOW, modules_of
from tests.helpers import SOURCE
from tests.helpers.decisions import without_code
from tests.helpers.project import Project

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"
WHY = {
    "test": "test_pays",
    "reason": "The total is computed there and nowhere else",
    "relationship": "The contract of S-1 speaks of the total",
}
FILES = {
    ".gitignore": "build/\n*.log\n",
    "GRAPH.json": json.dumps({"slices": [{"id": "S-1", "packages": ["src/users"], "deliverables": ["docs/u*.md"]}]}),
    "README.md": "readme\n",
    "build/out.js": "out\n",
    "docs/users.md": "users\n",
    "src/billing/pay.py": "pay\n",
    "src/billing/tax.py": "tax\n",
    "src/users/a.py": "a\n",
    "src/users/sub/b.py": "b\n",
    "src/users/tmp.log": "log\n",
}


@pytest.fixture
def shop(project: Project) -> Project:
    for name, text in FILES.items():
        write(project, name, text)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "x")
    return project


@pytest.fixture
def lock(shop: Project) -> Iterator[ScopeLock]:
    """S-1 is under way in every session."""
    with Breaker.open(project=shop.root) as breaker:
        scope_lock = ScopeLock(breaker)
        scope_lock.activate("S-1", None)
        yield scope_lock


def write(project: Project, name: str, text: str) -> None:
    path = project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(project: Project, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=d", "-c", "user.email=d@x", *words], cwd=project.root, check=True)


def answer(project: Project, payload: Any) -> tuple[str, str, int]:
    """The gate's answer, in this process."""
    return gate.answer(agent_named("claude"), json.dumps(payload).encode(), {"CLAUDE_PROJECT_DIR": str(project.root)})


def tool(project: Project, name: str, tool_input: dict[str, Any], **more: Any) -> tuple[str, str, int]:
    return answer(project, project.bash("", tool_name=name, tool_input=tool_input, **more))


def edit(project: Project, path: str, name: str = "Edit", **more: Any) -> tuple[str, str, int]:
    return tool(project, name, {"file_path": str(project.root / path), "content": "x"}, **more)


def bash(project: Project, command: str, **more: Any) -> tuple[str, str, int]:
    return answer(project, project.bash(command, **more))


ALLOWED = ("", "", 0)


def denied(given: tuple[str, str, int], *words: str) -> str:
    out, err, code = given
    assert code == 2, given
    assert json.loads(out)["hookSpecificOutput"]["permissionDecisionReason"] == err
    assert "\nNext: " in err
    for word in words:
        assert word in err, err
    return err


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Edit", "Write", "MultiEdit"])
@pytest.mark.parametrize("path", ["src/billing/pay.py", "src/billing/new.py", "README.md", "src/users2/a.py"])
def test_a_tool_outside_the_scope(shop: Project, lock: ScopeLock, name: str, path: str) -> None:
    assert without_code(denied(edit(shop, path, name))).splitlines() == [
        f"BLOCKED scope.S-1: {path} is outside the scope of S-1.",
        "In scope of S-1: src/users, docs/u*.md",
        "Next: change only what is in scope"
        + ("" if path in FILES else " (what is only temporary belongs outside of the project)")
        + "; if a failing test needs this file, say why first:",
        f"fusewire scope justify S-1 {path} --test '<failing test>' --reason '<why this file>'"
        " --relationship '<how it relates to the contract>'",
        "If no honest justification can be written: fusewire attempt arch-stop S-1 --reason '<why>'",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "echo x > src/billing/pay.py",
        "echo x >> src/billing/new.py",
        "sed -i s/a/b/ src/billing/pay.py",
        "sed -i s/a/b/ src/users/a.py src/billing/pay.py",
        "mv src/billing/pay.py src/users/",
        "mv src/users/a.py src/billing/",
        "rm src/billing/pay.py",
        "rm -rf src/billing",
        "rm -r src",
        "cat x | tee -a src/billing/pay.py",
        "cat <<'E' > src/billing/pay.py\nx = 1\nE",
        "git mv src/billing/pay.py src/users/pay.py",
        "git rm -q src/billing/pay.py",
        "cd src/billing && echo x > pay.py",
        "cd src && sed -i s/a/b/ billing/*.py",
        "cp src/users/a.py src/billing/pay.py",
        "bash -c 'echo x > src/billing/pay.py'",
        "touch src/billing/new.py",
        "truncate -s0 src/billing/pay.py",
        "python3 -c \"open('src/billing/pay.py','w').write('x')\"",
        "chmod +x src/billing/pay.py",
        "ln -s ../users/a.py src/billing/link.py",
        "ln -s ../billing/pay.py src/users/l.py && echo x > src/users/l.py",
        "echo x > src/users/../billing/pay.py",
        "F=src/billing/pay.py; echo x > $F",
        "find src/billing -name '*.py' -delete",
        "dd if=/dev/zero of=src/billing/pay.py",
        "fusewire attempt run S-1 t -- sed -i s/a/b/ src/billing/pay.py",
        "fusewire attempt run S-1 t --strategy x -- sh -c 'echo x > src/billing/pay.py'",
        "python -m fusewire attempt run S-1 t -- rm src/billing/pay.py",
        "fusewire run --until 'rm src/billing/pay.py' -- true",
        "fusewire run --max-iterations 1 rm src/billing/pay.py",
    ],
)
def test_a_command_outside_the_scope(shop: Project, lock: ScopeLock, command: str) -> None:
    denied(bash(shop, command), "BLOCKED scope.S-1: ", "fusewire scope justify S-1 ")


def test_constraints_above_the_project_do_not_hide_its_slices(shop: Project, lock: ScopeLock) -> None:
    """The hook then follows the rules of the folder above; the slice was begun in the project all the same."""
    (shop.root.parent / "docs" / "constraints").mkdir(parents=True)
    denied(edit(shop, "src/billing/pay.py"), "BLOCKED scope.S-1: ")
    denied(bash(shop, "echo x > src/billing/pay.py"), "BLOCKED scope.S-1: ")
    assert edit(shop, "src/users/a.py") == ALLOWED


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo src/billing/new.py >> .git/info/exclude", ".git/info/exclude is git's own data"),
        ("echo '*' > .prp-session/.gitignore", ".prp-session/.gitignore is Fusewire's own"),
    ],
)
def test_what_no_justification_opens_is_not_offered_one(
    shop: Project, lock: ScopeLock, command: str, words: str
) -> None:
    """Whoever could let git ignore a file, unseen by any diff, could let himself into it."""
    assert "justify" not in denied(bash(shop, command), "BLOCKED scope.S-1: ", words)


GUESSES = [
    "pytest --cov=users --cov-report=term-missing",
    "pytest --cov=users --cov-report term-missing",
    "pytest --cov=users --cov-report=html --cov-report term",
    "python -m pytest --cov=users --cov-report=html:htmlcov",
    "uv run pytest --cov-report=xml:cov.xml",
    "pytest --cov --cov-config=README.md",
    "pytest --log-level=DEBUG",
    "pytest --log-file-level=DEBUG",
    "pytest --basetemp=scratch",
    "pytest --junitxml=-",
    "pytest --junitxml=run.xml",
    "npx vitest run --reporter=verbose",
    "npx mocha --reporter dot",
    "npx jest --reporters=default",
    "playwright test --reporter=list",
    "npx nyc --reporter=text mocha",
    "cypress run --reporter junit",
    "dotnet test --logger trx",
    "golangci-lint run --out-format=tab",
    "pylint --output-format=text",
    "mvn -Dsurefire.reportFormat=plain test",
    "cargo tarpaulin --out Xml",
    "bandit -o -",
    "coverage json -o -",
    "mypy --html-report types src/users",
    "some-linter --no-output README.md",
    "some-linter --output src/billing",
    "node --test --test-reporter=junit --test-reporter-destination=run.xml",
    "fusewire attempt run S-1 t --junit run.xml -- "
    "node --test --test-reporter=junit --test-reporter-destination=run.xml",
    "pytest -q | fusewire phase end GREEN --from-output -",
    "fusewire phase end GREEN --from-junit README.md",
    "python -m fusewire phase end GREEN --from-junit=README.md",
]


@pytest.mark.parametrize("command", GUESSES)
def test_an_option_that_may_name_a_file_is_no_reason_to_refuse(shop: Project, lock: ScopeLock, command: str) -> None:
    assert bash(shop, command) == ALLOWED
    write(shop, "run.xml", "of the last run\n")  # nobody's work
    assert bash(shop, command) == ALLOWED


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("some-tool -o README.md", "README.md"),
        ("some-tool --output=./README.md", "README.md"),
        ("some-tool --log-format README.md --output=README.md", "README.md"),
        ("some-tool -m fusewire --output=README.md", "README.md"),
        ("pytest --junitxml=src/billing/pay.py", "src/billing/pay.py"),
        ("pytest --cov-report=xml:src/billing/pay.py", "src/billing/pay.py"),
        ("pytest --junitxml=pom.xml", "pom.xml"),
        ("cd src && pytest --junitxml ../pom.xml", "pom.xml"),
        ("node --test --test-reporter-destination=README.md", "README.md"),
        ("fusewire attempt run S-1 t -- some-tool --output=README.md", "README.md"),
        ("cd src && fusewire attempt run S-1 t -- some-tool --output ../README.md", "README.md"),
        ("some-tool --output=GRAPH.json", "GRAPH.json"),
        ("some-tool --output=contracts/new.md", "contracts/new.md"),
        ("curl -o new.html https://example.com", "new.html"),
        ("gcc -o prog src/users/a.c", "prog"),
    ],
)
def test_a_guess_that_would_overwrite_work_is_refused(shop: Project, lock: ScopeLock, command: str, path: str) -> None:
    """What is committed is work even if it ends like a report, and what defines a scope is never free."""
    write(shop, "pom.xml", "<project/>\n")
    git(shop, "add", "pom.xml")
    git(shop, "commit", "-qm", "pom")
    denied(bash(shop, command), f"BLOCKED scope.S-1: {path} ")


def test_a_report_that_was_committed_is_still_a_report_by_its_name(shop: Project, lock: ScopeLock) -> None:
    for name in ("junit.xml", "test-results.json"):
        write(shop, name, "of the last run\n")
        git(shop, "add", name)
        git(shop, "commit", "-qm", name)
        assert bash(shop, f"pytest --junitxml={name}") == ALLOWED
    lock.set("S-1", ["README.md"])
    assert bash(shop, "some-tool -o README.md") == ALLOWED


def test_a_folder_is_not_to_be_justified(shop: Project, lock: ScopeLock) -> None:
    """One that is too large to be looked through is refused; but only a file can be justified."""
    lock.set("S-1", ["src/parts/*.py"])
    for number in range(1002):
        write(shop, f"src/parts/{number}.py", "")
    text = denied(bash(shop, "rm -r src/parts"), "src/parts is outside", "one of its files")
    assert "fusewire scope justify S-1 '<file>' --test" in text


def test_a_name_that_no_terminal_can_show(shop: Project, lock: ScopeLock) -> None:
    text = denied(edit(shop, "lib/a\nb.py", "Write"), "BLOCKED scope.S-1: $'lib/a\\nb.py' is")
    assert "fusewire scope justify S-1 $'lib/a\\nb.py' --test" in text
    lock.justify("S-1", "lib/a\nb.py", **WHY, cwd=lock.root)
    assert edit(shop, "lib/a\nb.py", "Write") == ALLOWED


def test_a_script_that_was_written_in_scope_is_no_way_round(shop: Project, lock: ScopeLock) -> None:
    write(shop, "src/users/go.sh", "echo x > src/billing/pay.py\n")
    denied(bash(shop, "bash src/users/go.sh"), "src/billing/pay.py is outside")


def test_a_link_is_what_it_leads_to(shop: Project, lock: ScopeLock) -> None:
    (shop.root / "src/users/link.py").symlink_to("../billing/pay.py")
    (shop.root / "src/users/folder").symlink_to("../billing")
    denied(edit(shop, "src/users/link.py"), "src/billing/pay.py is outside")
    denied(edit(shop, "src/users/folder/new.py"), "src/billing/new.py is outside")
    denied(bash(shop, "echo x > src/users/link.py"), "src/billing/pay.py is outside")
    assert bash(shop, "rm src/users/link.py") == ALLOWED


def test_other_servers_tools_are_held_to_it_too(shop: Project, lock: ScopeLock) -> None:
    denied(tool(shop, "mcp__fs__write_file", {"path": "src/billing/pay.py"}), "src/billing/pay.py")
    denied(tool(shop, "mcp__fs__move_file", {"source": "src/billing/pay.py", "destination": "src/users/p.py"}))
    denied(tool(shop, "mcp__fs__delete_file", {"path": "src/billing"}), "src/billing/")
    denied(tool(shop, "NotebookEdit", {"notebook_path": "nb.ipynb"}), "nb.ipynb")
    assert tool(shop, "mcp__fs__read_file", {"path": "src/billing/pay.py"}) == ALLOWED
    assert tool(shop, "mcp__fs__write_file", {"path": "src/users/p.py"}) == ALLOWED


def test_a_subagent_is_in_the_same_session(shop: Project) -> None:
    with Breaker.open(project=shop.root) as breaker:
        ScopeLock(breaker).activate("S-1", SESSION)
    denied(edit(shop, "src/billing/pay.py", agent_id="sub-1"), "scope.S-1")


# -- what must not be refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "cat src/billing/pay.py",
        "grep -r x src/billing | head > /dev/null",
        "cp src/billing/pay.py /tmp/scope-test-copy.py",
        "pytest --junitxml=report.xml",
        "python -m pytest --junitxml=report.xml",
        "go test -coverprofile=cover.out ./...",
        "npm install",
        "pytest > output.log 2>&1",
        "cp src/billing/pay.py src/users/copy.py",
        "echo x > src/users/new.py && sed -i s/a/b/ src/users/a.py",
        "rm -r src/users/sub",
        "rm -rf src/users",
        "mv src/users/a.py src/users/c.py",
        "echo x > docs/users.md",
        "echo x > build/out.js; rm -rf build",
        "make 2>&1 | tee make.log",
        "echo x > /tmp/scope-test.txt",
        "mktemp -d",
        'echo x > "$(some-tool)"',
        "make",
        "pytest -q",
        "python manage.py migrate",
        "npm test -- --run",
        "mkdir -p src/billing/deep reports",
        "git add -A && git commit -qm 'src/billing/pay.py > x'",
        "git checkout -b feature",
        "git checkout -- src/billing/pay.py",
        "git restore src/billing/pay.py",
        "git stash",
        "git switch -c other",
        "git config user.name x",
        "rm -f src/billing/not-there.py",
        "echo 'rm -rf src/billing' && git log -- src/billing",
        "diff src/billing/pay.py src/users/a.py > /tmp/scope-test.diff",
        "python - <<'E'\nprint(open('src/billing/pay.py').read())\nE",
    ],
)
def test_what_must_not_be_refused(shop: Project, lock: ScopeLock, command: str) -> None:
    write(shop, "src/billing/pay.py", "changed\n")
    assert bash(shop, command) == ALLOWED


def test_tools_that_must_not_be_refused(shop: Project, lock: ScopeLock, tmp_path: Path) -> None:
    assert edit(shop, "src/users/a.py") == ALLOWED
    assert edit(shop, "src/users/deep/new.py", "Write") == ALLOWED
    assert edit(shop, "docs/u2.md", "Write") == ALLOWED
    assert edit(shop, "build/new.js", "Write") == ALLOWED
    assert tool(shop, "Write", {"file_path": str(tmp_path / "plan.md"), "content": "x"}) == ALLOWED
    assert tool(shop, "Read", {"file_path": str(shop.root / "src/billing/pay.py")}) == ALLOWED
    assert tool(shop, "Grep", {"pattern": "x", "path": "src/billing"}) == ALLOWED
    (shop.root / "alias").symlink_to("src/users")
    assert edit(shop, "alias/a.py") == ALLOWED


def test_a_folder_is_as_good_as_what_is_in_it(shop: Project, lock: ScopeLock) -> None:
    """Every file is in scope or ignored: then the folder may go, although no pattern names it."""
    write(shop, "src/parts/one.py", "1\n")
    write(shop, "src/parts/deep/trace.log", "ignored\n")
    lock.set("S-1", ["src/parts/*.py"])
    assert bash(shop, "rm -r src/parts") == ALLOWED
    write(shop, "src/parts/deep/two.py", "2\n")
    denied(bash(shop, "rm -r src/parts"), "src/parts/deep/two.py is outside")
    for number in range(1001):
        write(shop, f"src/parts/{number}.py", "")
    denied(bash(shop, "mv src/parts src/users/"), "src/parts is outside")


def test_nothing_is_locked_without_a_slice(shop: Project) -> None:
    assert edit(shop, "src/billing/pay.py") == ALLOWED
    assert bash(shop, "echo x > src/billing/pay.py") == ALLOWED
    with Breaker.open(project=shop.root) as breaker:
        lock = ScopeLock(breaker)
        lock.activate("S-1", None)
        denied(edit(shop, "src/billing/pay.py"))
        lock.deactivate("S-1")
        assert not (shop.root / SCOPE_FILE).exists()
        assert edit(shop, "src/billing/pay.py") == ALLOWED


def test_a_slice_holds_only_for_its_session(shop: Project) -> None:
    with Breaker.open(project=shop.root) as breaker:
        lock = ScopeLock(breaker)
        lock.activate("S-1", "another")
        assert edit(shop, "src/billing/pay.py") == ALLOWED
        lock.activate("S-1", SESSION)
        denied(edit(shop, "src/billing/pay.py"))
        denied(edit(shop, "src/billing/pay.py", session_id="another"))
        assert edit(shop, "src/billing/pay.py", session_id="third") == ALLOWED
        lock.deactivate("S-1")
        assert edit(shop, "src/billing/pay.py") == ALLOWED


def test_a_slice_that_nobody_gave_a_scope_locks_nothing_and_opens_nothing(project: Project) -> None:
    """It does not lock; but whoever starts one to get out of another slice's lock is still in that."""
    with Breaker.open(project=project.root) as breaker:
        lock = ScopeLock(breaker)
        lock.activate("free", None)
        assert edit(project, "src/billing/pay.py") == ALLOWED
        lock.set("S-1", ["src/users"])
        lock.activate("S-1", None)
        lock.activate("free", None)
        denied(edit(project, "src/billing/pay.py"), "scope.S-1")


def test_two_slices_under_way_share_their_scopes(shop: Project, lock: ScopeLock) -> None:
    lock.set("S-2", ["src/billing/pay.py"])
    lock.activate("S-2", None)
    assert edit(shop, "src/billing/pay.py") == ALLOWED
    assert edit(shop, "src/users/a.py") == ALLOWED
    text = denied(edit(shop, "src/billing/tax.py"), "BLOCKED scope.S-2: ", "outside the scope of S-2, S-1")
    assert "In scope of S-1: src/users" in text


# -- a slice that is stopped -----------------------------------------------------------------------------------


def seven_failures(project: Project) -> None:
    for number in range(7):
        project.run("attempt", "record", "S-1", f"test_{number}", "--fail")


def an_arch_stop(project: Project, long: str = "") -> None:
    project.run("attempt", "arch-stop", "S-1", "--reason", f"needs a table of its own {long}")


STOPS = {
    seven_failures: ("BLOCKED attempt.slice:S-1: ", "7 failed attempts in this slice (limit 7)"),
    an_arch_stop: ("BLOCKED attempt.arch_stop: ", "ARCH-STOP (deviation rule 4): needs a table of its own"),
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("is_started", [True, False], ids=["started", "recorded"])
def test_nothing_of_a_stopped_slice_is_changed_until_the_orchestrator_acts(
    shop: Project, stop: Callable[[Project], None], is_started: bool
) -> None:
    """By no tool and no command; reading and running tests stay free, and `scope check` says the same."""
    rule, why = STOPS[stop]
    if is_started:
        assert shop.run("attempt", "start", "S-1", "test_0").returncode == 0
    assert edit(shop, "src/users/a.py") == ALLOWED
    stop(shop)
    retry = 'fusewire attempt retry S-1 --guidance "..."'
    denied(edit(shop, "src/users/a.py"), rule, "S-1 is stopped", why, retry)
    denied(bash(shop, "echo x > src/users/a.py"), rule, why)
    denied(bash(shop, "rm -r src/users"), rule, why)
    for command in ("cat src/users/a.py", "git diff", "git stash", "echo x > build/out.js"):
        assert bash(shop, command) == ALLOWED, command
    checked = shop.run("scope", "check", "S-1", "src/users/a.py")
    assert (checked.returncode, why in checked.stdout, retry in checked.stderr) == (3, True, True), checked
    found = shop.json("scope", "check", "S-1", "src/users/a.py")
    assert (found["decision"], found["paths"][0]["decision"]) == ("BLOCKED", "BLOCKED")
    assert shop.run("attempt", "retry", "S-1", "--guidance", "use the table").returncode == 0
    assert edit(shop, "src/users/a.py") == ALLOWED
    assert shop.run("scope", "check", "S-1", "src/users/a.py").returncode == 0


def test_six_failures_and_a_stopped_test_stop_no_edit(shop: Project, lock: ScopeLock) -> None:
    """Other tests of the slice may go on."""
    for test in ("a", "a", "a", "b", "b", "c"):
        shop.run("attempt", "record", "S-1", test, "--fail")
    assert edit(shop, "src/users/a.py") == ALLOWED
    assert shop.run("scope", "check", "S-1", "src/users/a.py").returncode == 0


def test_a_stopped_slice_stops_no_other(shop: Project, lock: ScopeLock) -> None:
    """Files that are also in scope of one that goes on stay open; a person ends the stopped one."""
    lock.set("S-2", ["src/billing", "src/users/a.py"])
    lock.activate("S-2", None)
    an_arch_stop(shop, "and more words " * 30)
    assert edit(shop, "src/billing/pay.py") == ALLOWED
    assert edit(shop, "src/users/a.py") == ALLOWED
    assert len(denied(edit(shop, "src/users/sub/b.py"), "BLOCKED attempt.arch_stop: ")) < 600
    assert shop.run("attempt", "finish", "S-1", "--force").returncode == 0
    denied(edit(shop, "src/users/sub/b.py"), "BLOCKED scope.S-2: ")


def test_a_slice_without_a_scope_stops_the_session_that_works_on_it(project: Project) -> None:
    """Nobody has said which files are its own, so all may be; sessions that do not work on it go on."""
    mine = {"CLAUDE_CODE_SESSION_ID": SESSION}
    assert project.run("attempt", "start", "S-1", "test_a", env=mine).returncode == 0
    assert edit(project, "src/users/a.py") == ALLOWED
    an_arch_stop(project)
    denied(edit(project, "src/users/a.py"), "BLOCKED attempt.arch_stop: ")
    assert project.run("scope", "check", "S-1", "src/users/a.py").returncode == 3
    assert edit(project, "src/users/a.py", session_id="another") == ALLOWED
    project.run("attempt", "finish", "S-1", "--force")
    assert edit(project, "src/users/a.py") == ALLOWED


# -- justified, changed, broken -------------------------------------------------------------------------------


def test_a_justification_opens_exactly_that_file_at_once(shop: Project, lock: ScopeLock) -> None:
    denied(edit(shop, "src/billing/pay.py"))
    lock.justify("S-1", "src/billing/pay.py", **WHY, cwd=lock.root)
    assert edit(shop, "src/billing/pay.py") == ALLOWED
    assert bash(shop, "sed -i s/a/b/ src/billing/pay.py") == ALLOWED
    denied(edit(shop, "src/billing/tax.py"))
    denied(bash(shop, "rm -r src/billing"), "src/billing/tax.py is outside")


def test_the_agent_can_run_the_command_that_the_refusal_names(shop: Project, lock: ScopeLock) -> None:
    """With words of its own in the blanks; as they are printed they say nothing."""
    line = next(line for line in denied(edit(shop, "src/billing/pay.py")).splitlines() if line.startswith("fusewire"))
    assert bash(shop, line) == ALLOWED
    result = shop.run(*shlex.split(line)[1:], env={"CLAUDECODE": "1"})
    assert (result.returncode, "unjustifiable" in result.stderr) == (3, True)
    fields = [word for name, text in WHY.items() for word in (f"--{name}", text)]
    result = shop.run("scope", "justify", "S-1", "src/billing/pay.py", *fields, env={"CLAUDECODE": "1"})
    assert result.returncode == 0, result.stderr
    assert edit(shop, "src/billing/pay.py") == ALLOWED


def test_a_changed_source_counts_at_once(shop: Project, lock: ScopeLock) -> None:
    denied(edit(shop, "src/billing/pay.py"))
    write(shop, "GRAPH.json", json.dumps({"slices": {"S-1": {"packages": ["src/billing"]}}}))
    assert edit(shop, "src/billing/pay.py") == ALLOWED
    denied(edit(shop, "src/users/a.py"))
    write(shop, "contracts/users.md", "# S-1\n\n`src/users/a.py`\n")
    assert edit(shop, "src/users/a.py") == ALLOWED
    write(shop, "contracts/users.md", "# S-1\n\n`src/users/b.py`\n")
    denied(edit(shop, "src/users/a.py"))
    lock.set("S-1", ["README.md"])
    assert edit(shop, "README.md") == ALLOWED
    denied(edit(shop, "src/billing/pay.py"))


@pytest.mark.parametrize("content", ["{", "[]", '{"slices": []}', '{"slices": [{"id": "S-1", "packages": ["/etc"]}]}'])
def test_a_broken_source_refuses_and_says_who_mends_it(shop: Project, lock: ScopeLock, content: str) -> None:
    lock.justify("S-1", "src/billing/pay.py", **WHY, cwd=lock.root)
    write(shop, "GRAPH.json", content)
    for path in ("src/users/a.py", "src/billing/pay.py"):
        denied(edit(shop, path), "cannot be told")
    for given in (edit(shop, "src/users/a.py"), bash(shop, "echo x > src/users/a.py"), edit(shop, "GRAPH.json")):
        denied(given, "BLOCKED scope.S-1: what is in scope cannot be told: GRAPH.json", "ask the user to mend it")
    assert bash(shop, "cat GRAPH.json") == ALLOWED
    assert bash(shop, "echo x > /tmp/scope-test.txt") == ALLOWED
    assert edit(shop, "build/x.js", "Write") == ALLOWED
    write(shop, "GRAPH.json", FILES["GRAPH.json"])
    assert edit(shop, "src/users/a.py") == ALLOWED


# -- no way round ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["GRAPH.json", ".greenlight/GRAPH.json", "CONTRACTS.md", "contracts/new.md", ".greenlight/contracts/x.md"]
)
def test_what_defines_the_scope_is_not_the_agents(shop: Project, lock: ScopeLock, path: str) -> None:
    """Not even where everything is in scope or where git ignores it."""
    lock.set("S-1", ["."])
    write(shop, ".gitignore", ".greenlight/\n")
    denied(edit(shop, path, "Write"), f"{path} defines what is in scope", "ask the user")
    denied(bash(shop, f"echo x > {path}"), f"{path} defines what is in scope")
    assert edit(shop, "contracts/Token.sol") == ALLOWED


def test_it_does_not_go_with_its_folder_either(shop: Project, lock: ScopeLock) -> None:
    os.rename(shop.root / "GRAPH.json", shop.root / "g")
    write(shop, ".greenlight/GRAPH.json", FILES["GRAPH.json"])
    write(shop, ".gitignore", ".greenlight/\n")
    lock.set("S-1", ["."])
    for command in ("rm -rf .greenlight", "mv .greenlight old", "rm -rf .greenlight/*"):
        denied(bash(shop, command), ".greenlight/GRAPH.json defines what is in scope")


def test_git_does_not_bring_another_version_of_it(shop: Project, lock: ScopeLock) -> None:
    """What a person has not committed yet is the scope; an older one, or another branch's, is another scope."""
    write(shop, "GRAPH.json", FILES["GRAPH.json"].replace("docs/u", "docs/x"))
    for command in ("git checkout -- GRAPH.json", "git restore .", "git stash", "git reset --hard"):
        denied(bash(shop, command), "GRAPH.json defines what is in scope")
    assert bash(shop, "git stash -- src") == ALLOWED


def test_an_agent_cannot_widen_its_scope(shop: Project, lock: ScopeLock) -> None:
    result = shop.run("scope", "set", "S-1", ".", env={"CLAUDECODE": "1"})
    assert (result.returncode, result.stdout) == (3, "")
    for given in (
        edit(shop, SCOPE_FILE),
        bash(shop, f"rm {SCOPE_FILE}"),
        bash(shop, "rm -rf .fusewire"),
        edit(shop, ".fusewire/state.db"),
    ):
        denied(given)
    denied(edit(shop, "src/billing/pay.py"))


def test_the_order_is_guard_first_then_scope_then_constraints(shop: Project, lock: ScopeLock) -> None:
    shop.constraint("no-billing", "match:\n  - path: src/billing/**\n")
    write(shop, "specs/a.md", "a\n")
    denied(bash(shop, "rm -r specs"), "guard.rm")
    denied(edit(shop, "src/billing/pay.py"), "scope.S-1")
    lock.justify("S-1", "src/billing/pay.py", **WHY, cwd=lock.root)
    assert "no-billing" in edit(shop, "src/billing/pay.py")[0]


# -- the file that the hook reads -----------------------------------------------------------------------------


def test_a_damaged_file_is_made_anew_from_the_store(shop: Project, lock: ScopeLock) -> None:
    """Also one that a process left behind which died between the store and the file."""
    path = shop.root / SCOPE_FILE
    good = path.read_bytes()
    for number, content in enumerate((b"", b"garbage", good[:-5], b"i\x01\x00\x00\x00")):
        path.write_bytes(content)
        denied(edit(shop, f"src/billing/pay{number}.py"), "scope.S-1")
        assert path.read_bytes() == good
        path.write_bytes(content)
        assert edit(shop, "src/users/a.py") == ALLOWED
    lock.deactivate("S-1")
    path.write_bytes(b"")
    assert edit(shop, "src/billing/pay.py") == ALLOWED
    assert not path.exists()


@pytest.mark.parametrize("act", ["lock.set('S-1', ['docs/'])", "lock.activate('S-1', None)"])
def test_a_process_that_dies_between_the_store_and_the_file(shop: Project, act: str) -> None:
    """What it has written into the store counts: the file of before is not taken for the truth."""
    with Breaker.open(project=shop.root) as breaker:
        lock = ScopeLock(breaker)
        if "set" in act:
            lock.activate("S-1", None)
            assert edit(shop, "src/users/a.py") == ALLOWED
        else:
            lock.set("S-1", ["docs/"])
    script = (
        "import os, fusewire.breakers.attempt.scope.lock as module; from fusewire.engine.breaker import Breaker\n"
        f"module.renew = lambda *given: os._exit(9)\nlock = module.ScopeLock(Breaker.open())\n{act}\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=shop.root, check=False).returncode == 9
    denied(edit(shop, "src/users/a.py"), "outside the scope of S-1", "In scope of S-1: docs/")


def test_a_store_that_cannot_be_read_is_no_open_door(shop: Project, lock: ScopeLock) -> None:
    lock.breaker.close()
    (shop.root / SCOPE_FILE).write_bytes(b"")
    with Breaker.open(project=shop.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember("scope", {"active": [["S-1"]]}, 1.0)
    denied(edit(shop, "src/users/a.py"), "BLOCKED scope: what is in scope cannot be told", "damaged")


def test_a_failed_change_leaves_the_lock_as_it_was(shop: Project, lock: ScopeLock) -> None:
    for number in range(SLICES - 1):
        lock.activate(f"X-{number}", "gone")
    with pytest.raises(FusewireError, match=r"64 slices are under way already.* oldest is S-1; .*attempt finish S-1$"):
        lock.activate("one-more", SESSION)
    denied(edit(shop, "src/billing/pay.py"), "scope.S-1")
    for number in range(SESSIONS + 3):
        lock.activate("X-1", f"session-{number}")
    assert lock.sessions("X-1") == [None]  # all of them: nobody is let go because others came


def test_parallel_processes_lose_nothing(shop: Project, lock: ScopeLock) -> None:
    """Eight justify and activate at once; the hook knows all of it afterwards."""
    script = (
        "import sys; from fusewire.engine.breaker import Breaker\n"
        "from fusewire.breakers.attempt.scope.lock import ScopeLock\n"
        "n = sys.argv[1]; lock = ScopeLock(Breaker.open())\n"
        "lock.justify('S-1', f'lib/{n}.py', test='t', reason='it is so', relationship='with that')\n"
        "lock.set(f'P-{n}', [f'pkg/{n}']); lock.activate(f'P-{n}', None)\n"
    )
    python = [sys.executable, "-c", script]
    workers = [subprocess.Popen([*python, str(n)], cwd=shop.root, stderr=subprocess.PIPE) for n in range(8)]
    for worker in workers:
        _, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err
    for number in range(8):
        assert edit(shop, f"lib/{number}.py") == ALLOWED
        assert edit(shop, f"pkg/{number}/x.py") == ALLOWED
    denied(edit(shop, "lib/8.py"))


# -- the real process -----------------------------------------------------------------------------------------


def test_the_real_hook(shop: Project, lock: ScopeLock) -> None:
    """Isolated and without site, as an agent starts it; also when it has to compile the scope itself."""
    write(shop, "GRAPH.json", FILES["GRAPH.json"] + "\n")
    path = str(shop.root / "src/billing/pay.py")
    given = shop.hook(shop.bash("", tool_name="Edit", tool_input={"file_path": path}))
    assert given.returncode == 2
    assert given.stderr.startswith(b"BLOCKED scope.S-1: src/billing/pay.py is outside the scope of S-1.")
    assert shop.hook(shop.bash("echo x > src/users/a.py")).returncode == 0


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"command": "ls -la"}, HOT_PATH),
        ({"command": "pytest -q && git status"}, HOT_PATH),
        ({"file_path": "src/users/a.py"}, HOT_PATH | EDIT_PATH),
        ({"command": "echo 'a b' > src/users/a.py"}, HOT_PATH | READ_PATH),
    ],
    ids=["look", "opaque", "edit", "read"],
)
def test_an_allowed_call_loads_little_more_than_without_a_slice(
    shop: Project, lock: ScopeLock, given: dict[str, str], allowed: set[str]
) -> None:
    """The slow modules stay out, and a plain command does not even load the lock."""
    payload = shop.bash("", tool_name="Bash" if "command" in given else "Edit", tool_input=given)
    assert shop.hook(payload).returncode == 0
    bare = modules_of(["-c", "pass"], None, shop.root)
    loaded = modules_of([str(SOURCE / "hook.py"), "claude"], payload, shop.root)
    scope = {
        "fusewire.breakers.attempt",
        "fusewire.breakers.attempt.scope",
        *(f"fusewire.breakers.attempt.scope.{name}" for name in ("active", "boundary", "in_hook", "places")),
    }
    slices = {
        "fusewire.gate.in_progress",
        "fusewire.breakers.attempt",
        "fusewire.breakers.attempt.in_session",
        "fusewire.stores.audit_file",
    }
    assert not loaded & SLOW
    assert loaded - bare <= allowed | slices | (scope if "/" in str(given) else set())
    lock.deactivate("S-1")
    loaded = modules_of([str(SOURCE / "hook.py"), "claude"], payload, shop.root)
    assert not {name for name in loaded if name.startswith("fusewire.breakers.attempt.scope")}

"""A constraint's mode: violations are counted, need a person's consent, or are refused from the first one."""

from __future__ import annotations

import json

import pytest

from fusewire import Breaker
from fusewire.core.events import Event
from tests.agents.test_hook_claude import assert_denied, assert_silent, assert_told
from tests.helpers import ROOT
from tests.helpers.project import Project

ID = "no-force"
FORCE_PUSH = "match:\n  command: [git push --force*, git push -f]\n"
NO_DEDUP = "circuit_breaker:\n  dedup_seconds: 0\n"
ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}


def force(project: Project, **fields: str):  # type: ignore[no-untyped-def]
    return project.bash("git push --force origin main", **fields)


def level(project: Project) -> int:
    (circuit,) = project.json("status", ID)["circuits"]
    return int(circuit["level"])


def test_block_refuses_the_first_one_and_counts_attempts(project: Project) -> None:
    project.constraint(ID, f"mode: block\n{NO_DEDUP}{FORCE_PUSH}", "# Never force-push\n")
    for number in range(1, 5):
        reason = assert_denied(project.hook(force(project)))
        assert reason.startswith(f"BLOCKED constraint:{ID}: this is refused from the first time (mode block).")
        assert "Never force-push (docs/constraints/no-force.md)" in reason
        assert level(project) == number
    assert_denied(project.hook(force(project)))
    (circuit,) = project.json("status", ID)["circuits"]
    assert (circuit["state"], circuit["trips"]) == ("OPEN", 1)
    assert_silent(project.hook(project.bash("git push origin main")))
    assert_silent(project.hook(project.bash("git commit -m 'never git push --force'")))


def test_count_lets_the_first_one_pass_and_says_so(project: Project) -> None:
    project.constraint(ID, f"mode: count\n{FORCE_PUSH}")
    assert "breaks a constraint" in assert_told(project.hook(force(project)))


def test_ask_asks_the_person_who_is_there_and_counts_nothing(project: Project) -> None:
    project.constraint(ID, f"mode: ask\n{NO_DEDUP}{FORCE_PUSH}")
    for _ in range(6):
        answer = project.hook(force(project, permission_mode="default"), env=ATTENDED)
        output = json.loads(answer.stdout)["hookSpecificOutput"]
        assert (answer.returncode, output["permissionDecision"]) == (0, "ask")
        assert "needs a person's consent" in output["permissionDecisionReason"]
    assert level(project) == 0


def test_ask_refuses_and_counts_where_nobody_is_there(project: Project) -> None:
    project.constraint(ID, f"mode: ask\n{FORCE_PUSH}")
    reason = assert_denied(project.hook(force(project)))
    assert "no person attends this session" in reason
    assert level(project) == 1
    assert project.run("enforce", "--tool", "Bash", "--command", "git push -f").returncode == 3


def test_a_limit_of_one_stops_the_first_call_and_opens(project: Project) -> None:
    project.constraint(ID, f"circuit_breaker:\n  violation_threshold: 1\n{FORCE_PUSH}")
    reason = assert_denied(project.hook(force(project)))
    assert reason.startswith(f"BLOCKED constraint:{ID}: 1 violation within 30d (limit 1).")
    assert project.json("status", ID)["circuits"][0]["state"] == "OPEN"


def test_the_example_of_the_readme_stops_the_first_force_push(project: Project) -> None:
    """The file as it stands there; what it says of a commit message and of `sudo` holds as well."""
    text = (ROOT / "README.md").read_text()
    block = text.split("```markdown\n")[1].split("```")[0]
    path = project.root / "docs/constraints/git-safety.md"
    path.parent.mkdir(parents=True)
    path.write_text("".join(line.removeprefix("   ") for line in block.splitlines(keepends=True)))
    assert_denied(project.hook(force(project)))
    assert_denied(project.hook(project.bash("cd . && sudo git push -f")))
    assert_silent(project.hook(project.bash('git commit -m "never git push --force"')))
    assert_silent(project.hook(project.bash("git push origin feature")))


def test_a_person_lets_it_pass_for_a_while_although_nothing_is_open(project: Project) -> None:
    project.constraint(ID, f"mode: block\n{NO_DEDUP}{FORCE_PUSH}")
    assert f"fusewire override {ID}" in assert_denied(project.hook(force(project)))
    assert project.run("override", ID, "--for", "1h", "--reason", "release night").returncode == 0
    assert "release night" in assert_told(project.hook(force(project)))
    project.run("override", ID, "--end")
    assert_denied(project.hook(force(project)))


def test_a_rule_in_log_mode_refuses_nothing_whatever_its_constraint_says(project: Project) -> None:
    project.constraint(ID, f"mode: block\n{FORCE_PUSH}")
    (project.root / "fusewire.toml").write_text(f'[rules]\n"constraint:{ID}" = "log"\n')
    assert_silent(project.hook(force(project)))
    assert level(project) == 1
    assert project.run("enforce", "--tool", "Bash", "--command", "git push -f").returncode == 0


@pytest.mark.parametrize("value", ["blok", "[block]", "3", "true"])
def test_a_mode_that_is_none_is_one_clear_line(project: Project, value: str) -> None:
    project.constraint(ID, f"mode: {value}\n{FORCE_PUSH}")
    result = project.run("status", ID)
    (warning,) = result.stderr.splitlines()
    assert f"docs/constraints/{ID}.md" in warning
    assert "count, ask, block" in warning
    assert_told(project.hook(force(project)))


def test_front_matter_that_breaks_keeps_the_mode(project: Project) -> None:
    path = project.constraint(ID, f"mode: block\n{FORCE_PUSH}")
    assert_denied(project.hook(force(project)))
    path.write_text(path.read_text().replace("match:", "match: ["))
    assert "mode block" in assert_denied(project.hook(force(project)))


def test_the_library_refuses_what_it_cannot_ask_about(project: Project) -> None:
    project.constraint(ID, f"mode: ask\n{FORCE_PUSH}")
    event = Event("before_tool", tool="Bash", command="git push -f")
    with Breaker.open(project=project.root) as breaker:
        (refused,) = breaker.enforce([ID], event)
        (asked,) = breaker.enforce([ID], event, cannot_ask="")
    assert (refused.verdict, asked.verdict) == ("deny", "ask")

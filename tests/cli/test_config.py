"""`fusewire config show|init|schema`, and `config ID` beside them."""

from __future__ import annotations

import json
import os
import time
import tomllib
from pathlib import Path

import pytest

from fusewire.config.settings import KINDS, read_policy_file
from fusewire.scopes.order_changes import change_orders
from fusewire.scopes.orders import Orders, PauseOrder
from tests.helpers.project import Project

ID = "git-safety"


def user_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire" / "config.toml"


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


# -- show -------------------------------------------------------------------------------------------------


def test_a_fresh_project_shows_that_everything_is_as_shipped(project: Project) -> None:
    """One screen, nothing marked, nothing written."""
    shown = project.run("config", "show")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert len(shown.stdout.splitlines()) < 24
    assert "  * " not in shown.stdout
    for table in ("constraint", "loop", "phase", "tool", "attempt", "guard", "sandbox", "notify"):
        assert "all as shipped" in line_with(shown.stdout, f"[{table}]")
    assert line_with(shown.stdout, "fusewire.toml").endswith("not there")
    assert [path.name for path in project.root.iterdir()] == [".git"]


def test_only_what_differs_is_listed_with_its_file_and_its_default(project: Project) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text("[loop]\nno_progress = 4\nsame_error = 6\n")
    (project.root / "fusewire.toml").write_text(
        '[loop]\nno_progress = 5\nneutral = 5\n[rules]\n"tool.cycle" = "log"\n[breakers.pay]\nfailures = 2\n'
        '[notify.targets.me]\nurl = "ntfy://S3CRET"\n[prices."my-model"]\ninput = 1\noutput = 2\n'
    )
    seed = project.root / ".claude/memory/circuit_breaker_config.json"
    seed.parent.mkdir(parents=True)
    seed.write_text('{"circuit_breakers": {"tool_failure": {"threshold": 7}}}')
    project.constraint(ID, "circuit_breaker: {cooldown_hours: 48}\n")
    shown = project.run("config", "show").stdout
    assert line_with(shown, "no_progress ").split() == ["*", "no_progress", "5", "fusewire.toml", "(default", "3)"]
    assert str(user_file()) in line_with(shown, "same_error")
    assert "circuit_breaker_config.json (default 3)" in line_with(shown, "tool_failure.threshold")
    assert f"docs/constraints/{ID}.md (default 24)" in line_with(shown, "cooldown_hours")
    assert '"tool.cycle"  log  fusewire.toml' in shown
    assert "neutral" not in shown, "set to its default"
    assert "S3CRET" not in shown
    for table in ("[breakers.pay]", '[prices."my-model"]', "[notify.targets.me]", f"[constraint:{ID}]"):
        assert table in shown
    origin = project.run("config", "show", "--origin").stdout
    assert line_with(origin, "neutral").split() == ["neutral", "5", "fusewire.toml"]


def test_origin_names_what_a_value_covers(project: Project) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text("[tool.repetition]\ntell = 5\n")
    (project.root / "fusewire.toml").write_text("[tool.repetition]\ntell = 6\n")
    lines = project.run("config", "show", "tool.repetition", "--origin").stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if "repetition.tell" in line)
    assert lines[at].split() == ["*", "repetition.tell", "6", "fusewire.toml", "(default", "4)"]
    assert lines[at + 1 : at + 3] == [f"      covers 5 from {user_file()}", "      covers 4 from default"]
    assert f"covers 5 from {user_file()}" in project.run("config", "show", "--origin").stdout
    data = project.json("config", "show", "tool.repetition")
    assert data["config"]["repetition.tell"] == {
        "value": 6,
        "source": "fusewire.toml",
        "default": 4,
        "covered": [{"value": 4, "source": "default"}, {"value": 5, "source": str(user_file())}],
    }
    assert data["table"] == "tool"


@pytest.mark.parametrize(
    "rule", sorted({table["name"] for kind in KINDS for table in read_policy_file(kind).table["circuit"]})
)
def test_every_rule_is_found_by_the_name_that_messages_have(project: Project, rule: str) -> None:
    shown = project.run("config", "show", rule)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_rules_without_a_circuit_and_keys_of_circuits_are_found(project: Project) -> None:
    project.constraint(ID, "circuit_breaker: {cooldown_hours: 48}\n")
    (project.root / "fusewire.toml").write_text(
        '[rules]\n"guard.git.*" = "log"\n"constraint:git-*" = "off"\n[breakers.pay]\nfailures = 2\n'
    )
    for name, says in {
        f"constraint:{ID}": "cooldown_hours",
        ID: f'constraint:{ID} is set to "off" in [rules]',
        "guard.git.clean": 'guard.git.clean is set to "log" in [rules]',
        "guard.mv": '"guard.mv" = "log"',
        "tool.tool_failure:Edit": "tool_failure.threshold",
        "scope.lock": "fusewire scope show SLICE",
        "fusewire.disarm": "always on",
        "own.pay": "failures",
        "profile": "attended",
        "tool": "repetition.block",
        "tool_failure.threshold": "failures of one tool",
    }.items():
        shown = project.run("config", "show", name)
        assert (shown.returncode, shown.stderr) == (0, ""), name
        assert says in shown.stdout, name


def test_a_rule_that_a_person_has_paused_is_shown_as_such(project: Project) -> None:
    now = time.time()

    def add(orders: Orders) -> None:
        orders.pauses = (PauseOrder("all", "", ("tool.*",), now + 3600, "noisy", "ann", now),)

    change_orders(add, [], now)
    says = "tool.* is only logged until "
    assert says in project.run("config", "show", "tool.repetition").stdout
    assert says not in project.run("config", "show", "loop.score").stdout
    data = project.json("config", "show", "tool.repetition")
    assert (data["modes"], data["paused_until"][-1]) == ({"tool.repetition": "enforce"}, "Z")


def test_a_name_that_nobody_knows_is_one_line_with_the_nearest(project: Project) -> None:
    shown = project.run("config", "show", "tool.repetitoin")
    assert (shown.returncode, shown.stdout) == (1, "")
    (line,) = shown.stderr.splitlines()
    assert "did you mean" in line
    assert "repetition" in line


def test_all_of_it_as_json(project: Project) -> None:
    (project.root / "fusewire.toml").write_text("[loop]\nno_progress = 5\nno_progres = 5\n")
    data = project.json("config", "show")
    assert [one["source"] for one in data["layers"]][-1] == "fusewire.toml"
    assert [one["settings"] for one in data["layers"]][-1] == 1
    loop = next(table for table in data["tables"] if table["name"] == "loop")
    found = next(one for one in loop["settings"] if one["key"] == "no_progress")
    assert (found["value"], found["source"], found["default"]) == (5, "fusewire.toml", 3)
    assert len(data["warnings"]) == 1


# -- config ID beside the commands ------------------------------------------------------------------------


def test_the_old_form_stands_beside_the_commands(project: Project) -> None:
    """Options before and behind; an id that is a command's name is reached by `config show ID`."""
    project.constraint("show", "circuit_breaker: {cooldown_hours: 48}\n")
    expected = project.run("config", "loop/no_progress").stdout
    assert "no_progress" in expected
    root = str(project.root)
    for words in (("--project", root, "loop/no_progress"), ("loop/no_progress", "--project", root)):
        assert project.run("config", *words).stdout == expected
    assert json.loads(project.run("config", "--json", "loop").stdout)["id"] == "loop"
    assert json.loads(project.run("config", "--json", "--project", root, "show").stdout)["layers"]
    assert "* cooldown_hours" in project.run("config", "show", "show").stdout
    assert project.run("config", "a", "b").returncode == 2
    assert "config ID" in project.run("config", "--help").stdout


@pytest.mark.parametrize("words", [("loop",), ("show",), ("show", "loop"), ("init",), ("init", "--user"), ("schema",)])
def test_all_of_it_is_for_a_person(project: Project, words: tuple[str, ...]) -> None:
    """Decision 8: inside an agent `config` is refused, by the command itself and by the hook."""
    refused = project.run("config", *words, env={"CLAUDECODE": "1"})
    assert (refused.returncode, refused.stdout) == (3, "")
    assert not (project.root / "fusewire.toml").exists()
    assert not user_file().exists()
    told = json.loads(project.hook(project.bash(f"fusewire config {' '.join(words)}")).stdout)
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"


# -- init, schema -----------------------------------------------------------------------------------------


def test_init_writes_a_file_that_changes_nothing_and_overwrites_none(project: Project) -> None:
    before = project.json("config", "show")["tables"]
    done = project.run("config", "init")
    assert (done.returncode, done.stderr) == (0, "")
    assert project.json("config", "show")["tables"] == before
    path = project.root / "fusewire.toml"
    path.write_text("[loop]\nno_progress = 5\n")
    again = project.run("config", "init")
    assert (again.returncode, again.stdout, len(again.stderr.splitlines())) == (1, "", 1)
    assert path.read_text() == "[loop]\nno_progress = 5\n"


def test_init_for_a_person_writes_their_own_file(project: Project) -> None:
    assert project.json("config", "init", "--user") == {"file": str(user_file())}
    assert tomllib.loads(user_file().read_text())
    assert project.run("config", "init", "--user").returncode == 1
    assert not (project.root / "fusewire.toml").exists()
    nowhere = project.run("config", "init", "--user", env={"XDG_CONFIG_HOME": "relative"})
    assert (nowhere.returncode, len(nowhere.stderr.splitlines())) == (1, 1)


def test_init_does_not_switch_off_the_table_of_pyproject(project: Project) -> None:
    """With a fusewire.toml beside it that table is not read: an empty one would take the settings out of force."""
    (project.root / "pyproject.toml").write_text("[tool.fusewire.loop]\nno_progress = 5\n")
    done = project.run("config", "init")
    assert done.returncode == 1
    assert "pyproject.toml" in done.stderr
    assert not (project.root / "fusewire.toml").exists()


def test_init_does_not_follow_a_link(project: Project, tmp_path: Path) -> None:
    (project.root / "fusewire.toml").symlink_to(tmp_path / "elsewhere")
    assert project.run("config", "init").returncode == 1
    assert not (tmp_path / "elsewhere").exists()


def test_the_schema_is_printed_as_json(project: Project) -> None:
    plain = project.run("config", "schema")
    assert json.loads(plain.stdout)["$schema"].endswith("2020-12/schema")
    assert project.run("config", "schema", "--json").stdout == plain.stdout


def test_budgets_and_plans_are_shown_with_the_file_they_come_from(project: Project) -> None:
    own = user_file()
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('[budgets.day]\nper = "day"\nusd = 10\n[plan]\nname = "max-5x"\nwindow_tokens = 500000\n')
    (project.root / "fusewire.toml").write_text(
        '[budgets.branch]\nper = ["branch", "week"]\nusd = 2\n[budgets.day]\nper = "day"\nusd = 999\n'
    )
    tables = {one["name"]: one["settings"] for one in project.json("config", "show")["tables"]}
    assert [(one["key"], one["value"], one["source"]) for one in tables["budgets.day"]] == [
        ("per", "day", str(own)),
        ("usd", 10, str(own)),
    ]
    assert {one["source"] for one in tables["budgets.branch"]} == {"fusewire.toml"}
    assert [one["key"] for one in tables["plan"]] == ["name", "window_tokens"]
    assert "provider" not in tables, "a table in which nobody can set anything"
    assert "branch.usd" in project.run("config", "show", "budgets").stdout
    assert "max-5x" in project.run("config", "show", "plan").stdout
    for name in ("budgets.day", "budget:day"):
        assert project.json("config", "show", name)["config"]["usd"]["value"] == 10.0


def test_a_project_without_a_budget_says_so(project: Project) -> None:
    done = project.run("config", "show", "budgets")
    assert (done.returncode, done.stdout) == (0, "budgets\nNo table [budgets] is set: docs/spend.md\n")

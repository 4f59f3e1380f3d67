"""`fusewire spend`: tables by day, project, model and more, from the ledger and from transcripts."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path

import pytest

from fusewire.scopes.ledger import day_start
from fusewire.util.durations import format_time
from tests.helpers.paying import Paying, paying
from tests.helpers.project import Project


@pytest.fixture
def spent(project: Project) -> tuple[Project, Paying]:
    """Yesterday $1, today $2 and $0.50 by a sub-agent, and a model without a price."""
    project.starts_hooks = False
    session = paying(project)
    session.pays(1, at=format_time(day_start(time.time()) - 3600))
    session.pays(2, at=format_time(time.time()))
    session.pays(2, at=format_time(time.time()), agent="a1", model="claude-haiku-4-5")  # $0.50
    session.pays(1, at=format_time(time.time()), model="zephyr-9")
    session.asks()
    return project, session


def dollars(table: dict[str, object]) -> list[float]:
    return [round(line["usd"], 4) for line in table["lines"]]  # type: ignore[index]


def test_every_table_adds_up_to_the_same(spent: tuple[Project, Paying]) -> None:
    """Whatever it is by; the model without a price is named in each, and not free."""
    project, session = spent
    haiku = session.file("a1")
    assert haiku.exists()
    totals = set()
    for kind in ("daily", "weekly", "monthly", "project", "branch", "agent", "model", "session", "blocks"):
        table = project.json("spend", kind, "--all")
        assert table["by"] == kind
        assert table["unknown_models"] == ["zephyr-9"]
        assert round(sum(dollars(table)), 6) == round(table["total"]["usd"], 6)
        totals.add((round(table["total"]["usd"], 6), table["total"]["tokens"], table["total"]["calls"]))
    assert len(totals) == 1
    assert project.json("spend", "daily")["lines"][0]["usd"] == 1
    (line,) = project.json("spend", "session")["lines"]
    assert (line["name"], list(line["helpers"])) == (session.id, ["agent-a1"])


def test_a_table_is_aligned_and_ends_with_the_total(spent: tuple[Project, Paying]) -> None:
    project, _ = spent
    done = project.run("spend", "model")
    lines = done.stdout.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["model", "input", "output", "cache", "read", "cache", "write", "calls", "usd"]
    assert lines[-1].startswith("total")
    assert any(line.startswith("zephyr-9") and line.endswith("unknown") for line in lines)
    assert "days and times in UTC" in done.stderr
    assert "no price is known for zephyr-9" in done.stderr


def test_days_are_those_of_the_person(spent: tuple[Project, Paying]) -> None:
    """The zone is said; JSON is in UTC."""
    project, _ = spent
    environment = {"TZ": "Asia/Kathmandu"}
    done = project.run("spend", "daily", env=environment)
    assert "UTC+05:45" in done.stderr
    table = json.loads(project.run("spend", "daily", "--json", env=environment).stdout)
    assert all(line["since"].endswith("T18:15:00Z") for line in table["lines"])


def test_a_stretch_of_days_can_be_asked_for(spent: tuple[Project, Paying]) -> None:
    project, _ = spent
    yesterday = time.strftime("%Y-%m-%d", time.localtime(day_start(time.time()) - 3600))
    assert project.json("spend", "daily", "--until", yesterday)["total"]["usd"] == 1
    assert project.json("spend", "daily", "--since", yesterday, "--until", yesterday)["total"]["usd"] == 1
    assert project.json("spend", "daily", "--since", "2020-01-01")["total"]["usd"] > 3
    assert project.json("spend", "daily", "--since", "2099-01-01")["lines"] == []
    assert "Nothing was spent" in project.run("spend", "daily", "--since", "2099-01-01").stdout


def test_csv_has_one_line_each_and_no_formula(spent: tuple[Project, Paying]) -> None:
    project, _ = spent
    (project.root / ".git" / "HEAD").write_text("ref: refs/heads/=cmd\n")
    session = paying(project, "second")
    session.pays(1, at=format_time(time.time()))
    session.asks()
    rows = list(csv.DictReader(io.StringIO(project.run("spend", "branch", "--csv").stdout)))
    assert {row["branch"] for row in rows} == {"master", "'=cmd"}
    assert all(float(row["usd"]) > 0 for row in rows)


def test_folders_of_transcripts_are_searched_and_copies_count_once(spent: tuple[Project, Paying]) -> None:
    """A fork begins with the requests of the first one; another agent's format is recognised."""
    project, session = spent
    folder = session.file().parent
    (folder / "fork.jsonl").write_bytes(session.file().read_bytes())
    (folder / "notes.json").write_text('{"nothing": "of that"}')
    table = project.json("spend", "model", str(folder))
    ledger = project.json("spend", "model")
    assert {line["name"]: line["usd"] for line in table["lines"]} == {
        line["name"]: line["usd"] for line in ledger["lines"]
    }
    assert project.run("spend", str(folder)).returncode == 0


def test_the_outlook_says_when_a_budget_is_used_up(spent: tuple[Project, Paying]) -> None:
    project, _ = spent
    (project.root / "fusewire.toml").write_text('[budgets.daily]\nper = "day"\nusd = 4\n')
    text = project.run("spend").stdout
    assert "today   $2.50 in this project, $2.50 in all projects" in text
    assert "budget  daily: $2.50 spent in this project today (limit $4.00): 62%" in text
    told = project.json("spend")
    assert told["budgets"][0]["state"] == "room"
    assert told["today"]["usd"] == 2.5
    assert told["burn"]["usd_per_hour"] > 2


def test_a_plan_is_measured_in_tokens_and_has_no_invented_limit(spent: tuple[Project, Paying]) -> None:
    """Its limits are those that the person writes."""
    project, _ = spent
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[plan]\nname = "max-5x"\n')
    text = project.run("spend").stdout
    assert "tokens in this project" in text.splitlines()[0]
    assert "(at list price it would be $2.50)" in text
    assert "budget" not in text
    path.write_text('[plan.claude]\nname = "max-5x"\nwindow_tokens = 1000000\n')
    assert "plan-claude-window" in project.run("spend").stdout
    (project.root / "fusewire.toml").write_text('[plan]\nname = "free"\n')
    assert "in your own config.toml" in project.run("spend").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fortnightly",), "nor one of: today, daily"),
        (("daily", "--since", "yesterday"), "--since and --until take a day"),
        (("daily", "--json", "--csv"), "only one of --json and --csv"),
    ],
)
def test_bad_input_is_one_line(project: Project, arguments: tuple[str, ...], words: str) -> None:
    done = project.run("spend", *arguments)
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert done.stdout == ""

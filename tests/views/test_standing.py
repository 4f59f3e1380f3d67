"""`fusewire status` without arguments: what is stopped, what it needs of a person, what today cost; nothing else."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from fusewire.breakers.session.state import SPEND, ProjectSpend
from fusewire.engine.breaker import Breaker
from fusewire.scopes.order_changes import change_orders
from fusewire.scopes.orders import HaltOrder, Orders, PauseOrder, orders_path
from fusewire.util.durations import format_time
from tests.helpers.agents.run_stage import staged
from tests.helpers.paying import Paying, paying
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

#: Lines of a screen; the answer must fit into one whatever has happened.
SCREEN = 24

TRIPS_AT_ONCE = "circuit_breaker:\n  violation_threshold: 1\n"
ID = "479528ae-91f4-4945-992c-9db9f0bba192"


def said(project: Project) -> list[str]:
    result = project.run("status")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert len(lines) < SCREEN
    return lines


def order(project: Project, *given: HaltOrder | PauseOrder) -> None:
    def add(orders: Orders) -> None:
        orders.halts += tuple(one for one in given if isinstance(one, HaltOrder))
        orders.pauses += tuple(one for one in given if isinstance(one, PauseOrder))

    change_orders(add, [str(project.root)], time.time())


# -- nothing is stopped -----------------------------------------------------------------------------------


def test_where_nothing_is_stopped_it_is_one_line(project: Project) -> None:
    """In a fresh folder, and with closed circuits and a session."""
    assert said(project) == ["Nothing is stopped. No session runs. Today: $0.00 at list price in this project."]
    project.constraint("rule")
    project.run("record", "rule", "--action", "x")
    session = Session(project)
    session.send("SessionStart", source="startup")
    session.fails("make")
    assert said(project) == ["Nothing is stopped. 1 session runs. Today: $0.00 at list price in this project."]


def test_what_today_has_cost_is_there_and_yesterday_is_not(project: Project) -> None:
    project.run("check", "x")
    with Breaker.open(project=str(project.root)) as breaker:
        now = breaker.engine.clock()
        with breaker.store.transact() as transaction:
            table = ProjectSpend()
            table.days = {format_time(now - 86400)[:10]: 40.0, format_time(now)[:10]: 1.234}
            transaction.remember(SPEND, table.to_data(), now)
    assert said(project) == ["Nothing is stopped. No session runs. Today: $1.23 at list price in this project."]
    assert project.json("status")["standing"]["today"]["usd"] == 1.234


def test_a_circuit_that_may_be_probed_stops_nothing(project: Project) -> None:
    """Half open is no stop: the next action decides."""
    for _ in range(3):
        project.run("record", "phase/RED", "--action", "x", "--signal", "no_progress")
    assert project.json("status", "phase/RED")["circuits"][0]["state"] == "OPEN"
    project.run("phase", "resolve", "reset")
    assert said(project)[0].startswith("Nothing is stopped.")


# -- what needs a person, and what ends by itself ---------------------------------------------------------


def test_what_needs_a_person_comes_first_with_what_to_type(project: Project) -> None:
    project.constraint("rule", TRIPS_AT_ONCE)
    (project.root / "fusewire.toml").write_text('[breakers.pay]\nfailures = 1\nreset = "person"\n')
    project.run("record", "rule", "--action", "x")
    project.run("record", "own/pay", "--action", "x")
    lines = said(project)
    assert lines[0] == "1 thing needs you:"
    assert lines[1].startswith("  own/pay: 1 failure in a row (limit 1); open since ")
    assert lines[2] == '    do: fusewire reset own/pay --reason "..."'
    assert lines[3] == "1 thing ends by itself:"
    assert lines[4].startswith("  rule: 1 violation within 30d (limit 1); open since ")
    assert ", until " in lines[4]
    assert lines[5] == '    sooner: fusewire reset rule --reason "..."'
    assert lines[6].startswith("No session runs. Today: ")
    assert project.run("reset", "own/pay", "--reason", "mended").returncode == 0
    assert said(project)[0] == "1 thing ends by itself:"


@pytest.mark.parametrize(
    ("circuit", "signal", "times", "command"),
    [
        ("phase/GREEN", "no_progress", 2, "fusewire phase resolve reset"),
        ("attempt/S-1/test_a", "test_failed", 3, 'fusewire attempt retry S-1 --guidance "..."'),
        ("loop/no_progress", "no_progress", 3, 'fusewire reset loop --reason "..."'),
    ],
)
def test_each_kind_of_circuit_has_its_command(
    project: Project, circuit: str, signal: str, times: int, command: str
) -> None:
    for number in range(times):
        project.run("record", circuit, "--action", f"x {number}", "--signal", signal)
    lines = said(project)
    assert lines[1].startswith(f"  {circuit}: ")
    assert lines[2].endswith(f": {command}")


def test_halts_and_pauses_of_the_person_are_told(project: Project) -> None:
    now = time.time()
    order(
        project,
        HaltOrder("all", "", "deploy window", "ann", now),
        HaltOrder("project", "/somewhere/else", "not ours", "ann", now),
        PauseOrder("all", "", ("tool.*",), now + 3600, "noisy", "ann", now),
    )
    lines = said(project)
    assert lines[0] == "1 thing needs you:"
    assert lines[1].startswith("  every agent: deploy window (by ann); halted since ")
    assert lines[2] == "    do: fusewire resume"
    assert lines[4].startswith("  tool.*: noisy (by ann); only logged since ")
    standing = project.json("status")["standing"]
    assert standing["needs"][0]["since"].endswith("Z")
    assert standing["stopped"] is True


def test_a_pause_alone_stops_nothing(project: Project) -> None:
    now = time.time()
    order(project, PauseOrder("all", "", ("tool.*",), now + 3600, "noisy", "ann", now))
    assert said(project)[:2] == ["Nothing is stopped.", "1 thing ends by itself:"]
    assert project.json("status")["standing"]["stopped"] is False


def test_orders_that_cannot_be_read_are_told(project: Project) -> None:
    Path(orders_path()).parent.mkdir(parents=True)
    Path(orders_path()).write_text("{")
    lines = said(project)
    assert "cannot be read" in lines[2]
    assert lines[3] == "    do: fusewire resume"


def test_a_halted_session_is_told_by_name_once_and_without_its_circuits(project: Project) -> None:
    """By its first words; the circuits that halted it need nothing of their own."""
    session = Session(project, id=ID)
    session.send("SessionStart", source="startup")
    session.says("fix the login, please")
    while not any(one.halted for one in session.fails("make", "Exit code 2\nthe same")):
        pass
    lines = said(project)
    assert lines[0] == "1 thing needs you:"
    assert lines[1].startswith('  session claude "fix the login, please" (479528ae): ')
    assert "halted since" in lines[1]
    assert lines[2] == "    do: write to it; your next message lets it go on"
    assert len(lines) == 4
    session.send("SessionEnd", reason="other")
    assert said(project)[2] == "    do: resume that session and write to it"


def test_a_limit_on_spend_is_told_before_and_when_it_is_reached(project: Project, tmp_path: Path) -> None:
    """With the command that grants more; near it nothing is stopped yet, and halfway there is nothing to say."""
    limits = "agent_cost_block_usd = 50.0\napi_cost_block_usd_per_day = 5.0"
    (project.root / "fusewire.toml").write_text(f"[tool.resource_limits]\n{limits}\n")
    session = Paying(project, transcript=str(tmp_path / "transcript.jsonl"))
    told = []
    for dollars in (2.5, 2.0, 1.0):
        session.pays(dollars)
        session.before("Bash", {"command": "ls"})
        told.append(said(project))
    assert told[0] == ["Nothing is stopped. 1 session runs. Today: $2.50 at list price in this project."]
    near = "  the limit today in this project: $4.50 of $5.00 is spent"
    assert told[1][:3] == ["Nothing is stopped.", "1 thing needs you:", near]
    assert any("tool/spend_day: $5.50 spent" in line for line in told[2])
    for lines in told[1:]:
        assert '    do: fusewire grant 5 --day --reason "..."' in lines


def test_the_question_of_a_run_that_ended_is_told(tmp_path: Path) -> None:
    stage = staged(tmp_path, None)
    stage.run("echo 'I need to know: Which database should I use?'")
    lines = said(Project(stage.root))
    stage.close()
    assert lines[1].startswith("  the loop: Which database should I use?; asked since ")
    assert lines[2].startswith("    do: answer the question in the prompt")


def test_however_much_is_stopped_it_fits_on_a_screen(project: Project) -> None:
    for number in range(40):
        project.constraint(f"rule-{number:02}", TRIPS_AT_ONCE)
        project.run("record", f"rule-{number:02}", "--action", "x")
    lines = said(project)
    assert lines[0] == "40 things end by themselves:"
    assert lines[-2] == "  and 35 more: fusewire status --all"
    assert len(project.json("status")["standing"]["waits"]) == 40


# -- what it was before -----------------------------------------------------------------------------------


def test_all_circuits_by_state_are_behind_all(project: Project) -> None:
    project.constraint("rule", TRIPS_AT_ONCE)
    project.constraint("quiet")
    project.run("record", "rule", "--action", "x")
    shown = project.run("status", "--all").stdout
    for part in ("OPEN (1)", "HALF_OPEN (0)", "CLOSED (1)", "  quiet", "1/1 violations"):
        assert part in shown


def test_json_keeps_its_fields_and_looking_writes_nothing(project: Project) -> None:
    data = json.loads(project.run("status", "--json").stdout)
    assert list(data) == ["circuits", "warnings", "loop", "standing", "providers", "orders"]
    assert [path.name for path in project.root.iterdir()] == [".git"]


def test_a_budget_that_is_used_up_stops_and_one_that_is_nearly_so_does_not(project: Project) -> None:
    project.starts_hooks = True
    (project.root / "fusewire.toml").write_text('[budgets.branch]\nper = "branch"\nusd = 2\nwarn = 0.5\n')
    session = paying(project)
    session.pays(1.5)
    session.asks()
    shown = project.json("status")["standing"]
    assert (shown["stopped"], [one["kind"] for one in shown["needs"]]) == (False, ["near"])
    session.pays(1)
    assert not session.asks().allowed
    shown = project.json("status")["standing"]
    assert (shown["stopped"], [one["kind"] for one in shown["needs"]]) == (True, ["budget"])
    assert "Nothing is stopped" not in project.run("status").stdout
    told = project.json("why")
    assert told["docs"] == "docs/spend.md"
    assert not any("goes on when a person writes" in one for one in told["by_person"])
    (pause,) = [one.partition(": ")[2] for one in told["by_person"] if "pause" in one]
    assert project.run(*shlex.split(pause)[1:]).returncode == 0
    assert session.asks().allowed

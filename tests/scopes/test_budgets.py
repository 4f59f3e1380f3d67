"""Budgets: per day, project, run, session, week; of one project or of all; what stops, and what must not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fusewire.scopes.user import open_user_store
from fusewire.stores import open_store
from fusewire.util.durations import format_time
from tests.helpers.paying import Paying, paying
from tests.helpers.project import Project


@pytest.fixture(autouse=True)
def _here(project: Project) -> None:
    project.starts_hooks = False


def now() -> str:
    return format_time(time.time())


def persons(text: str) -> None:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def projects(project: Project, text: str) -> None:
    (project.root / "fusewire.toml").write_text(text)


def spend(session: Paying, usd: float, **more: object) -> object:
    session.pays(usd, at=now(), **more)  # type: ignore[arg-type]
    return session.asks()


def test_a_budget_of_the_day_warns_then_stops_and_says_which(project: Project) -> None:
    """At 80 % it is told once, from the limit on every call is refused."""
    persons('[budgets.daily]\nper = "day"\nusd = 10\n')
    session = paying(project)
    assert spend(session, 7.9).allowed
    told = spend(session, 0.2)
    assert told.allowed
    assert "daily" in told.told, vars(told)
    assert "$8.10 spent in all projects today (limit $10.00)" in told.told
    assert not session.asks().told
    said = spend(session, 2)
    assert not said.allowed
    assert "budget:daily" in said.reason
    assert "$10.10 spent in all projects today (limit $10.00)" in said.reason
    assert "fusewire grant 5 --budget daily" in said.reason
    assert "budgets.daily.usd" in said.reason
    assert "It counts since" in said.reason


def another(project: Project, name: str) -> Project:
    """A second project of the same person."""
    root = project.root.parent / name
    (root / ".git" / "refs").mkdir(parents=True)
    (root / ".git" / "objects").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return Project(root, starts_hooks=False)


def test_a_shared_budget_stops_a_session_of_another_project_at_its_next_call(project: Project) -> None:
    """It has spent nothing itself since; and a person who grants more lets both go on."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    first, second = paying(project), paying(another(project, "other"), "second")
    assert spend(second, 1).allowed
    assert not spend(first, 4).allowed
    said = second.asks()
    assert not said.allowed
    assert "$5.00 spent" in said.reason
    granted = project.run("grant", "3", "--budget", "daily", "--reason", "the release")
    assert granted.returncode == 0, granted.stderr
    assert "$5.00 spent in all projects today (limit $5.00, and $3.00 granted)" in granted.stdout
    assert first.asks().allowed
    assert second.asks().allowed
    assert not spend(second, 4).allowed


def worktree_of(project: Project) -> Project:
    """A linked worktree with the same settings."""
    tree = project.root.parent / "tree"
    private = project.root / ".git" / "worktrees" / "tree"
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
    (private / "HEAD").write_text("ref: refs/heads/topic\n")
    (private / "gitdir").write_text(f"{tree}/.git\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {private}\n")
    (tree / "fusewire.toml").write_text((project.root / "fusewire.toml").read_text())
    return Project(tree, starts_hooks=False)


def test_a_projects_budget_counts_that_project_and_its_worktrees_only(project: Project) -> None:
    """What another project spends is not its; what a worktree spends is."""
    projects(project, '[budgets.ours]\nper = "day"\nusd = 5\n')
    other = paying(another(project, "other"), "second")
    assert spend(other, 20).allowed
    session = paying(project)
    assert spend(session, 4).allowed
    tree = worktree_of(project)
    worktree = paying(tree, "third")
    said = spend(worktree, 1.5)
    assert not said.allowed
    assert "in this project today" in said.reason
    assert not session.asks().allowed
    rows = open_user_store(read_only=True).spent(("branch",), where={"project": str(project.root)})
    assert [(row[0], round(row[1], 6)) for row in rows] == [("master", 4.0), ("topic", 1.5)]


def test_a_project_cannot_raise_a_budget_of_the_person(project: Project) -> None:
    """One of the same name in the repository is refused with a warning."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    projects(project, '[budgets.daily]\nper = "day"\nusd = 500\n')
    assert not spend(paying(project), 6).allowed
    assert "stay in force" in project.run("status").stderr


def test_a_budget_of_a_session_branch_or_run_counts_nothing_else(project: Project) -> None:
    persons(
        '[budgets.s]\nper = "session"\nusd = 5\n[budgets.t]\nper = "task"\nusd = 5\n'
        '[budgets.b]\nper = "branch"\nusd = 12\n'
    )
    first, second = paying(project), paying(project, "second")
    assert not spend(first, 6).allowed
    assert spend(second, 4).allowed, "another session"
    head = project.root / ".git" / "HEAD"
    said = spend(paying(project, "third"), 4)
    assert "budget:b" in said.reason
    head.write_text("ref: refs/heads/topic\n")
    assert spend(paying(project, "fourth"), 4).allowed, "another branch"
    runs = [paying(project, f"run{number}") for number in range(2)]
    for one in runs:
        one.env = {"FUSEWIRE_RUN": "run-1"}
    assert spend(runs[0], 3).allowed
    assert "budget:t" in spend(runs[1], 3).reason, "the sessions of a run are added up"


def test_the_default_limit_of_an_unattended_run_counts_all_of_its_sessions(project: Project) -> None:
    """$25 a run, not a session; a grant is for the run as well."""
    env = {"FUSEWIRE_RUN": "run-1", "FUSEWIRE_DEPTH": "1"}
    first, second = paying(project), paying(project, "second")
    first.env = second.env = env
    assert spend(first, 20).allowed
    said = spend(second, 6)
    assert not said.allowed
    assert "$26.00 spent in this run at list price (limit $25.00)" in said.reason
    assert project.run("grant", "5", "--session", second.id, "--reason", "go on").returncode == 0
    assert second.asks().allowed
    third = paying(project, "third")
    third.env = env
    assert spend(third, 1).allowed
    assert spend(paying(project, "alone"), 20).allowed, "not of that run"


def test_tokens_calls_and_starts_can_be_limited(project: Project) -> None:
    projects(
        project, '[budgets.k]\nper = "day"\ntokens = 100000\n[budgets.c]\nper = "session"\ncalls = 3\nwarn = 1.0\n'
    )
    session = paying(project)
    assert spend(session, 1.8).allowed  # 90,000 tokens
    assert "tokens" in spend(session, 0.4).reason
    projects(project, '[budgets.c]\nper = "session"\ncalls = 3\nwarn = 1.0\n')
    assert "3 calls used in this session (limit 3 calls)" in spend(session, 0.1).reason


def test_the_start_after_the_last_one_is_one_too_many(project: Project) -> None:
    """Those that were started before go on; so does the last one once a person grants another start."""
    projects(project, '[budgets.n]\nper = "day"\nstarts = 2\nwarn = 1.0\n')
    one, two, three = (paying(project, name) for name in ("one", "two", "three"))
    for session in (one, two):
        session.send("SessionStart", source="startup")
        assert spend(session, 0.1).allowed
    assert "2 starts used in this project today (limit 2 starts)" in str(three.send("SessionStart", source="startup"))
    said = three.asks()
    assert "starts used in this project today" in said.reason
    assert "fusewire grant 10 --starts --budget n" in said.reason
    assert one.asks().allowed
    assert spend(two, 0.1).allowed
    assert project.run("grant", "1", "--starts", "--budget", "n", "--reason", "one more").returncode == 0
    assert three.asks().allowed
    assert spend(three, 0.1).allowed
    four = paying(project, "four")
    four.send("SessionStart", source="startup")
    assert not four.asks().allowed
    assert three.asks().allowed


def test_nobody_without_a_budget_is_told_or_stopped(project: Project) -> None:
    """A subscriber at a terminal, whatever it would have cost."""
    env = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
    session = paying(project)
    session.env = env
    projects(project, 'profile = "attended"\n')
    for _ in range(3):
        said = spend(session, 400)
        assert said.allowed
        assert not said.told
    assert not (Path(os.environ["XDG_STATE_HOME"]) / "fusewire" / "budgets.json").exists()


def test_a_new_day_begins_anew(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was spent before midnight is not held against what comes; a clock that was set back lifts nothing."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    session = paying(project)
    assert not spend(session, 6).allowed
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real - 60)
    assert not session.asks().allowed
    monkeypatch.setattr(time, "time", lambda: real + 86400)
    assert session.asks().allowed


def test_a_used_budget_holds_where_the_state_of_the_project_cannot_be_read(project: Project) -> None:
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    session = paying(project)
    assert not spend(session, 6).allowed
    with open_store(f"sqlite:{project.root / '.fusewire' / 'state.db'}").transact():
        assert not session.asks().allowed


def test_a_slice_is_a_task(project: Project) -> None:
    """What is spent on one slice does not count to the next."""
    persons('[budgets.t]\nper = "task"\nusd = 5\nwarn = 1.0\n')
    (project.root / "spec.md").write_text("# S-1\n")
    session = paying(project)
    assert spend(session, 6).allowed, "no task"
    assert project.run("attempt", "start", "S-1", "test_login").returncode == 0
    said = spend(session, 6)
    assert "$6.00 spent in this task (limit $5.00)" in said.reason
    tasks = open_user_store(read_only=True).spent(("task",))
    assert [(row[0], round(row[1], 6)) for row in tasks] == [("", 6.0), ("slice S-1", 6.0)]
    assert project.run("grant", "5", "--budget", "t", "--reason", "go on").returncode == 0
    assert session.asks().allowed


def test_a_damaged_file_of_used_budgets_is_said_and_made_again(project: Project) -> None:
    """The ledger has the truth: at the next piece that is spent the budget stops again."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    session = paying(project)
    assert not spend(session, 6).allowed
    path = Path(os.environ["XDG_STATE_HOME"]) / "fusewire" / "budgets.json"
    path.write_text("{nonsense")
    assert "budgets.json" in str(session.asks())
    assert not spend(session, 0.1).allowed
    assert not session.asks().allowed


def test_a_lost_store_of_the_person_lifts_no_budget(project: Project) -> None:
    """The project has its rows still, and brings them back."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    session = paying(project)
    assert spend(session, 3).allowed
    folder = Path(os.environ["XDG_STATE_HOME"]) / "fusewire"
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    assert not spend(session, 2.5).allowed


def test_a_budget_that_makes_no_sense_is_one_line(project: Project) -> None:
    projects(
        project,
        '[budgets.a]\nper = "fortnight"\nusd = 1\n[budgets.b]\nusd = 1\n[budgets.c]\nper = "day"\n'
        '[budgets.d]\nper = "day"\nusd = -1\n[budgets.e]\nper = "day"\ndollars = 1\n',
    )
    lines = [line for line in project.run("status").stderr.splitlines() if "budgets." in line]
    assert len(lines) == 6, lines


def test_the_limit_of_a_day_counts_all_worktrees(project: Project) -> None:
    """The setting of 0.1 keeps its name, and five worktrees are one budget."""
    projects(project, "[tool.resource_limits]\napi_cost_block_usd_per_day = 5.0\n")
    session, worktree = paying(project), paying(worktree_of(project), "second")
    assert spend(worktree, 3).allowed
    assert spend(session, 1.9).allowed
    said = spend(session, 0.2)
    assert "$5.10 spent today in this project (limit $5.00)" in said.reason
    limits = project.json("status")["circuits"]
    assert next(one["level"] for one in limits if one["id"] == "tool/spend_day") == 5.1


@pytest.mark.parametrize(
    "line",
    [
        'fusewire grant 50 --budget daily --reason "more"',
        'rm "$XDG_STATE_HOME/fusewire/budgets.json"',
        "echo '{\"used\": {}}' > {state}/fusewire/budgets.json",
        "rm -rf {state}/fusewire",
        'sqlite3 {state}/fusewire/user.db "DELETE FROM spent"',
        "sed -i s/5/500/ {config}/fusewire/config.toml",
        'FUSEWIRE_RUN=other claude -p "go on"',
        'env -u FUSEWIRE_RUN claude -p "go on"',
    ],
)
def test_an_agent_does_not_lift_its_budget(project: Project, line: str) -> None:
    """Neither the budget nor what is counted, nor by passing for another run."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    session = paying(project)
    spend(session, 1)
    (Path(os.environ["XDG_STATE_HOME"]) / "fusewire" / "budgets.json").write_text('{"used": {}}')
    folders = {"{state}": os.environ["XDG_STATE_HOME"], "{config}": os.environ["XDG_CONFIG_HOME"]}
    for name, folder in folders.items():
        line = line.replace(name, folder)
    said, _ = session.before("Bash", {"command": line})
    assert not said.allowed, line


def test_what_is_read_at_the_end_of_a_session_counts_for_the_others_at_once(project: Project) -> None:
    """The last reply has used up the budget, and no call came after it."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n')
    first, second = paying(project), paying(another(project, "other"), "second")
    assert spend(second, 1).allowed
    assert spend(first, 1).allowed
    first.pays(4, at=now())
    first.send("SessionEnd", reason="other")
    assert not second.asks().allowed


def test_a_budget_that_only_logs_stops_nobody(project: Project) -> None:
    """What it would have said is on record."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\n[rules]\n"budget:daily" = "log"\n')
    session = paying(project)
    said = spend(session, 6)
    assert said.allowed
    assert not said.told
    store = open_store(f"sqlite:{project.root / '.fusewire' / 'state.db'}")
    assert any(one.kind == "logged" and "budget:daily" in one.text for one in store.doings(session.id))


def test_a_person_at_the_terminal_is_told_and_stopped_as_well(project: Project) -> None:
    """Whoever sets a limit means it; the message says how to raise it."""
    persons('profile = "attended"\n[budgets.daily]\nper = "day"\nusd = 5\n')
    session = paying(project)
    session.env = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
    assert "$1.00 left" in spend(session, 4).told
    assert "fusewire grant" in spend(session, 2).reason
    assert session.says("go on").halted


@pytest.mark.parametrize("source", ["resume", "fork"])
def test_what_another_session_has_paid_for_is_held_against_nobody_twice(project: Project, source: str) -> None:
    """The new transcript begins with a copy of it."""
    persons('[budgets.daily]\nper = "day"\nusd = 5\nwarn = 1.0\n')
    first, second = paying(project), paying(project, "second")
    assert spend(first, 4).allowed
    second.file().write_bytes(first.file().read_bytes())
    second.send("SessionStart", source=source)
    assert second.asks().allowed
    assert round(open_user_store(read_only=True).spent()[0][0], 6) == 4

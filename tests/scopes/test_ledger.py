"""The person's ledger: what sessions spend, across projects and days, each piece once."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from fusewire.agents.spending.account import account_of
from fusewire.config.prices import load_prices
from fusewire.engine.breaker import Breaker
from fusewire.scopes.ledger import BEFORE, begin_ledger, copy_spend, day_start, moment_of, quarter_of
from fusewire.scopes.user import open_user_store
from fusewire.stores.rows import SpendRow
from fusewire.util.durations import format_time
from fusewire.views.spend import today
from tests.helpers.paying import Paying, paying
from tests.helpers.project import Project


@pytest.fixture(autouse=True)
def _here(project: Project) -> None:
    project.starts_hooks = False


def now() -> str:
    return format_time(time.time())


def ledger_usd() -> float:
    return float(open_user_store(read_only=True).spent()[0][0])


def test_what_a_session_spends_is_in_the_persons_ledger(project: Project) -> None:
    """By project, agent, model and branch, after the call that has found it."""
    session = paying(project)
    session.pays(1.5, at=now())
    session.pays(0.5, at=now(), agent="a1")
    session.asks()
    rows = open_user_store(read_only=True).spent(("project", "agent", "model", "helper", "branch"))
    assert [(*row[:5], round(row[5], 6)) for row in rows] == [
        (str(project.root), "claude", "claude-opus-5-5", "", "master", 1.5),
        (str(project.root), "claude", "claude-opus-5-5", "agent-a1", "master", 0.5),
    ]
    spent = today(str(project.root))
    assert (round(spent.project.usd, 6), spent.project.calls, spent.problem) == (2.0, 2, "")
    assert spent.project == spent.everything
    assert today("/elsewhere").project.usd == 0


def person_database() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "fusewire" / "user.db"


@pytest.mark.parametrize("settings", ["", '[budgets.daily]\nper = "day"\nusd = 5\n'])
def test_a_call_that_spends_nothing_opens_no_second_database(project: Project, settings: str) -> None:
    """With a budget set, too: what others have used up stands in a file."""
    (project.root / "fusewire.toml").write_text(settings)
    session = paying(project)
    for _ in range(3):
        assert session.asks().allowed
    assert not person_database().exists()
    session.pays(1, at=now())
    session.asks()
    assert person_database().exists()
    for name in os.listdir(person_database().parent):
        shutil.move(person_database().parent / name, project.root.parent / f"aside-{name}")
    session.asks()
    assert not person_database().exists()


def test_a_session_that_goes_on_past_midnight_is_split_by_when_it_was_spent(project: Project) -> None:
    """The transcript is read in the morning, and says when each request was made."""
    midnight = day_start(time.time())
    session = paying(project)
    session.pays(1, at=format_time(midnight - 1800))
    session.pays(2, at=format_time(midnight - 5))
    session.pays(4, at=format_time(midnight))
    session.asks()
    store = open_user_store(read_only=True)
    assert round(store.spent(until=midnight)[0][0], 6) == 3
    assert round(store.spent(since=midnight)[0][0], 6) == 4
    assert round(today(str(project.root)).project.usd, 6) == 4


def test_times_that_cannot_be_are_those_of_the_look(project: Project) -> None:
    """In the future (the clock was set back), long ago, or no time at all."""
    moment = 1_800_000_000.0
    assert quarter_of("2100-01-01T00:00:00.000Z", moment) == moment // 900 * 900
    assert quarter_of("", moment) == quarter_of("yesterday", moment) == moment // 900 * 900
    assert quarter_of("2001-01-01T00:00:00.000Z", moment) == (moment - 7 * 86400) // 900 * 900
    assert moment_of("2026-11-15T21:17:50.149Z") == 1794777470
    for year in range(1970, 2101, 13):
        for month in (1, 2, 3, 12):
            text = f"{year}-{month:02}-28T23:59:59Z"
            assert format_time(moment_of(text) or 0) == text


def test_a_resumed_or_forked_session_does_not_pay_again(project: Project) -> None:
    """Its transcript begins with what another session has paid for."""
    first = paying(project)
    first.pays(3, at=now())
    first.asks()
    second = paying(project, "second")
    second.file().write_bytes(first.file().read_bytes())
    second.send("SessionStart", source="resume")
    second.asks()
    assert round(ledger_usd(), 6) == 3
    time.sleep(1.1)
    second.pays(1, at=now())
    second.asks()
    assert round(ledger_usd(), 6) == 4


def test_a_truncated_or_replaced_transcript_loses_nothing_and_counts_nothing_twice(project: Project) -> None:
    session = paying(project)
    session.pays(2, at=now())
    session.asks()
    content = session.file().read_bytes()
    session.file().write_bytes(b"")
    session.asks()
    session.file().write_bytes(content)
    session.asks()
    assert round(ledger_usd(), 6) == 2


def test_a_project_of_version_0_1_brings_its_spend_once(project: Project) -> None:
    """Its days and the rest of its total; what is spent from then on is counted beside it."""
    memory = {"sessions": {}, "days": {"2026-11-14": 1.0, "2026-11-15": 2.0}, "usd": 10.0}
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember("spend", memory, 1.0)
    session = paying(project)
    session.send("SessionStart", source="startup")
    for _ in range(2):
        session.pays(0.5, at=now())
        session.asks()
    store = open_user_store(read_only=True)
    assert round(store.spent()[0][0], 6) == 11
    assert round(store.spent(where={"session": BEFORE})[0][0], 6) == 10
    assert project.json("spend")["usd"] == pytest.approx(11)


def test_a_store_that_was_locked_gets_the_rest_with_the_next_piece(project: Project) -> None:
    session = paying(project)
    session.pays(1, at=now())
    session.asks()
    store = open_user_store()
    session.pays(2, at=now())
    with store.transact():
        assert session.asks().allowed
    assert round(ledger_usd(), 6) == 1
    session.pays(4, at=now())
    session.asks()
    assert round(ledger_usd(), 6) == 7


def test_a_lost_store_of_the_person_is_filled_again_by_each_project(project: Project) -> None:
    sessions = [paying(project), paying(project, "second")]
    for session in sessions:
        session.pays(1.5, at=now())
        session.asks()
    for path in person_database().parent.iterdir():
        if path.is_file():
            path.unlink()
    sessions[0].send("Stop", stop_hook_active=False)
    assert round(ledger_usd(), 6) == 3


def test_a_projects_store_from_a_backup_or_with_a_new_name_is_not_counted_twice(project: Project) -> None:
    """Rows that the ledger has put together are not copied again; new ones are not passed over."""
    clock = time.time()
    session = paying(project)
    session.pays(1, at=now())
    session.asks()
    path = project.root / ".fusewire" / "state.db"
    with Breaker.open(project=project.root) as breaker:
        with breaker.store.transact() as transaction:
            old = SpendRow("old", int(clock - 20 * 86400) // 900 * 900, "", "m", "", "", "claude", 8.0, (1,) * 6, 1)
            transaction.spend([old, old.replace(at=old.at + 900)])
        assert copy_spend(breaker.store, str(project.root), clock)
    assert round(ledger_usd(), 6) == 17
    backup = path.read_bytes()
    for _ in range(3):
        session.pays(1, at=now())
        session.asks()
    path.write_bytes(backup)
    for name in ("state.db-wal", "state.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    session.asks()
    session.pays(1, at=now())
    session.asks()
    assert round(ledger_usd(), 6) == 21
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.drop("ledger")
    session.pays(1, at=now())
    session.asks()
    assert round(ledger_usd(), 6) == 22


def test_a_moved_project_is_not_counted_again(project: Project) -> None:
    session = paying(project)
    session.pays(1, at=now())
    session.asks()
    moved = Project(project.root.rename(project.root.parent / "moved"), starts_hooks=False)
    session.project = moved
    session.pays(2, at=now())
    session.asks()
    assert round(ledger_usd(), 6) == 3


def test_old_rows_are_put_together_and_nothing_is_lost(project: Project) -> None:
    """One a day after two weeks, one for all sessions after three months, one a month after a year."""
    clock = time.time()
    with Breaker.open(project=project.root) as breaker:
        for days in (1, 20, 100, 500):
            moment, agent = day_start(clock, -days) + 8 * 3600, "codex" if days == 500 else "claude"
            rows = [
                SpendRow(f"s{number}", int(moment + 900 * number), "main", "m", "", "", agent, 1.0, (1,) * 6, 1)
                for number in range(3)
            ]
            with breaker.store.transact() as transaction:
                begin_ledger(transaction, dict)
                transaction.spend(rows)
        for _ in range(3):
            assert copy_spend(breaker.store, str(project.root), clock)
        store = open_user_store(read_only=True)
        assert store.spent()[0][0] == 12
        assert [len(rows) for rows in _rows_by_age(store, clock)] == [3, 3, 1, 1]
        agents = store.spent(("agent",), until=clock - 50 * 86400)
        assert [row[:2] for row in agents] == [("claude", 3.0), ("codex", 3.0)]
        before = store.spent(("at", "session"), until=clock - 20 * 86400)
        assert copy_spend(breaker.store, str(project.root), clock + 86400)
        assert store.spent(("at", "session"), until=clock - 20 * 86400) == before
        assert store.spent()[0][0] == 12


def _rows_by_age(store, clock):  # type: ignore[no-untyped-def]
    rows = store.spent(("at", "session"))
    ages = ((0, 14), (14, 90), (90, 400), (400, 9999))
    return [[row for row in rows if low <= (clock - row[0]) / 86400 < high] for low, high in ages]


def test_the_ledger_says_what_a_recount_of_the_transcripts_says(project: Project) -> None:
    """By model and kind of token, with sub-agents, unknown models and repeated lines."""
    several: list[Paying] = [paying(project, f"s{number}") for number in range(3)]
    for turn in range(6):
        for number, one in enumerate(several):
            model = ("claude-opus-5-5", "claude-haiku-4-5", "zephyr-9")[(turn + number) % 3]
            one.pays(0.1 * (turn + 1), at=now(), model=model, agent=f"a{turn}" if turn % 2 else None)
            one.pays(0.1 * (turn + 1), at=now(), model=model, agent=f"a{turn}" if turn % 2 else None, same=True)
            if turn % 3 == 0:
                one.asks()
    for one in several:
        one.send("SessionEnd", reason="other")
    for one in several:
        account = account_of(one.transcript, load_prices())
        rows = open_user_store(read_only=True).spent(("model",), where={"session": one.id})
        found = {model: [round(usd, 6), *tokens[:6]] for model, usd, *tokens in rows}
        assert found == {
            **{name: [round(row[6], 6), *row[:6]] for name, row in account.models.items()},
            **{name: [0.0, *row] for name, row in account.unknown.items()},
        }

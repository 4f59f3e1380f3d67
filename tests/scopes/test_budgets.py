"""Budgets: per day, project, run, session, week; of one project or of all; what stops, and what must not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fusewire.scopes.user import open_user_store
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
    assert "counts since" in said.reason

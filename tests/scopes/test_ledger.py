"""The person's ledger: what sessions spend, across projects and days, each piece once."""

from __future__ import annotations

import time

import pytest

from fusewire.scopes.user import open_user_store
from fusewire.util.durations import format_time
from fusewire.views.spend import today
from tests.helpers.paying import paying
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

"""Budgets around `fusewire run`: starts and reported costs are counted, and a used budget ends the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.scopes.user import open_user_store
from tests.helpers.agents.run_stage import WORK, Stage, claude, staged


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = staged(tmp_path, None)
    yield found
    found.close()


def test_a_run_stops_at_the_budget_of_its_task(stage: Stage) -> None:
    """What the agent's program reports counts where no hook of it counts; another run begins anew."""
    stage.write("fusewire.toml", '[budgets.one]\nper = "task"\nusd = 0.1\n')
    for starts in (3, 6):
        ended = stage.run(f"{WORK}\n{claude('A step.', total_cost_usd=0.04)}")
        assert ended.returncode == 3, ended.stderr
        assert len(stage.starts()) == starts
        assert "budget:one: $0.12 spent in this task (limit $0.10)" in ended.stderr
        assert "fusewire grant 5 --budget one" in ended.stderr


def test_starts_of_a_run_count(stage: Stage) -> None:
    """Two a day, whichever run starts them; the ledger has them and their cost."""
    stage.write("fusewire.toml", '[budgets.two]\nper = "day"\nstarts = 2\n')
    ended = stage.run(f'{WORK}; echo "$FUSEWIRE_RUN" >> names')
    assert (ended.returncode, len(stage.starts())) == (3, 2), ended.stderr
    assert "2 starts used in this project today (limit 2 starts)" in ended.stderr
    again = stage.run(WORK)
    assert (again.returncode, len(stage.starts())) == (3, 2), again.stderr
    ((task, *_, starts),) = open_user_store(read_only=True).spent(("task",))
    assert starts == 2
    assert (stage.root / "names").read_text().split() == [task, task]

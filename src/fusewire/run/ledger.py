"""Count the starts and the cost of a run for the person's ledger, and ask the budgets before each iteration."""

from __future__ import annotations

import os
from secrets import token_hex
from typing import TYPE_CHECKING

from fusewire.breakers.session.budgeted import refusal
from fusewire.breakers.session.spend import open_ledger
from fusewire.guard.known_agents import AGENTS_BY_NAME
from fusewire.scopes.budgets import Spender, noting
from fusewire.scopes.ledger import charged, copy_spend, started
from fusewire.util.errors import StoreError
from fusewire.util.worktrees import branch_of, project_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.loop.loop import Loop
    from fusewire.core.budget import BudgetUse
    from fusewire.core.decision import Decision
    from fusewire.stores.rows import SpendRow

#: What names a run to everything in it. A run that is started inside of another one is a part of that.
RUN = "FUSEWIRE_RUN"

#: The model of a cost that the agent's program reports, where no hook has counted.
_REPORTED = "reported by the agent"


class RunLedger:
    """What one run spends."""

    def __init__(self, loop: Loop, command: Sequence[str]) -> None:
        self.loop, self.breaker = loop, loop.breaker
        self.task = os.environ.get(RUN) or f"run-{token_hex(4)}"
        name = os.path.basename(command[0]) if command else ""
        self._agent = name if name in AGENTS_BY_NAME else ""
        self._before = 0.0

    def started(self) -> None:
        """An iteration begins."""
        now = self.loop.engine.clock()
        self._before = self._spent()
        self._add(started(self.task, self._agent, branch_of(self.loop.root), self.task, now))

    def ended(self, cost: float | None) -> None:
        """It is over: what its program says that it has cost counts where no hook of it has counted."""
        if cost and cost > 0 and self._spent() <= self._before:
            now = self.loop.engine.clock()
            self._add(charged(self.task, _REPORTED, cost, now, agent=self._agent, task=self.task))

    def refusal(self) -> Decision | None:
        """The budget that is used up, if one is."""
        found: list[BudgetUse] = []
        if self.breaker.rules.budgets:
            self._add(found=found)
        reached = [use for use in found if use.is_reached]
        worst = max(reached, key=lambda use: use.share, default=None)
        return refusal(worst, self.loop.engine.clock(), "deny") if worst is not None else None

    def _spent(self) -> float:
        try:
            return float(self.breaker.store.spent(where={"task": self.task})[0][0])
        except (StoreError, IndexError):
            return 0.0

    def _add(self, *rows: SpendRow, found: list[BudgetUse] | None = None) -> None:
        """Count something, and ask the budgets."""
        now, root = self.loop.engine.clock(), self.loop.root
        spender = Spender(project_key(root), "", branch_of(root), self.task, self._agent)
        try:
            with self.breaker.store.transact() as transaction:
                open_ledger(transaction)
                transaction.spend(rows)
        except StoreError:
            return  # a record; the run's own limits count elsewhere
        copy_spend(self.breaker.store, root, now, then=noting(self.breaker.rules.budgets, spender, now, found))

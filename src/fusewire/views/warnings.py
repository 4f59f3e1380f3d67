"""Collect what is wrong with a project's configuration or its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.quoting import quoted

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker

#: Seconds for which a session that did not say that it ended is taken to run.
_RECENT = 12 * 3600


def warnings(breaker: Breaker) -> list[str]:
    """What stays so until somebody mends or acknowledges it."""
    from fusewire.breakers.constraint.state_file import foreign_change
    from fusewire.breakers.session.registration import unguarded

    found = list(breaker.rules.warnings) + breaker.store.notices()
    found += [
        f"{row.id} is {PUBLIC_STATE[row.phase]}, but its constraint is gone; end it: fusewire archive {quoted(row.id)}"
        for row in breaker.store.circuits()
        if row.kind == "constraint" and row.phase != "closed" and row.id not in breaker.rules.constraints
    ]
    if breaker.rules.notify:
        from fusewire.notify.cursor import problems

        found += problems(breaker.store, breaker.rules.notify, breaker.engine.clock())
    found += unguarded(breaker.store, breaker.engine.clock() - _RECENT)
    changed = foreign_change(breaker.root) if breaker.root else None
    return found + ([changed] if changed else [])

"""Collect what is wrong with a project's configuration or its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.durations import show_time
from fusewire.util.errors import NotFound
from fusewire.util.quoting import quoted

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker

#: The memory that says when a person last acknowledged what there was.
ACKNOWLEDGED = "acknowledged"

#: Seconds for which a session that did not say that it ended is taken to run.
_RECENT = 12 * 3600


def warnings(breaker: Breaker) -> list[str]:
    """What stays so until somebody mends or acknowledges it."""
    from fusewire.breakers.constraint.state_file import foreign_change
    from fusewire.breakers.session.registration import unguarded

    found = list(breaker.rules.warnings) + notices(breaker)
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


def notices(breaker: Breaker) -> list[str]:
    """What is shown until a person acknowledges it: the notices, and the circuits that a person should look at."""
    return breaker.store.notices() + alerts(breaker)


def alerts(breaker: Breaker) -> list[str]:
    """A dated line for each circuit that opens again and again, until it closes, its session ends or a person has
    acknowledged it; one that opens once more after that is shown again."""
    from fusewire.breakers.session.ended import EndedSessions

    store = breaker.store
    seen = max((at for name, at in store.remembered(ACKNOWLEDGED) if name == ACKNOWLEDGED), default=0.0)
    found = []
    for row in store.circuits():
        if row.kind != "tool" or row.phase not in ("open", "probe"):
            continue
        try:
            policy, state = breaker.engine.view(row.id)
        except NotFound:
            continue  # its breaker is switched off
        if policy.alert_from and state.in_a_row >= policy.alert_from and (state.last_trip or 0) > seen:
            found.append((row.id, state))
    ended = EndedSessions(store, breaker.engine.clock()) if found else None
    return [
        f"{_clock(state.last_trip)}: {name} has opened {state.in_a_row} times in a row; a person should look"
        for name, state in found
        if ended and ended.of(name) is None
    ]


def _clock(moment: float | None) -> str:
    return f"{(show_time(moment) or '')[:16].replace('T', ' ')} UTC"

"""A constraint's circuit from outside: retired into the archive, or taken over from a file."""

from __future__ import annotations

from fusewire.breakers.constraint.archive import add_to_archive, archive_entry
from fusewire.breakers.constraint.state_file import read_entries, take_for_ours
from fusewire.core.circuit import view
from fusewire.core.decision import PUBLIC_STATE
from fusewire.stores.rows import AuditRow
from fusewire.util.errors import ConfigError, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.engine.breaker import Breaker


def archive(breaker: Breaker, circuit: str, *, actor: str) -> dict[str, Any]:
    """Move a constraint's circuit into the archive; NotFound if it has none."""
    assert breaker.root is not None
    constraint = breaker.rules.constraints.get(circuit)
    policy = breaker.rules.constraint_policy(circuit)
    with breaker.store.transact() as transaction:
        now = breaker.engine.clock()
        state = breaker.engine.load(transaction, policy, circuit, now)
        if state is None:
            known = f"nothing has happened to {circuit} yet" if constraint else f"Constraint not found: {circuit}"
            raise NotFound(known)
        audit = transaction.audit_of(circuit, state.since)
        entry = archive_entry(policy, state, transaction.log_of(circuit), audit, now)
        # The archive first: if we are interrupted, the circuit is still there and is archived again.
        warning = add_to_archive(breaker.root, circuit, entry)
        if warning is not None:
            transaction.notice(warning, now)
        transaction.audit(AuditRow(circuit, now, state.phase, "removed", "archived", "", actor))
        transaction.remove(circuit)
    breaker.mirror({circuit})
    return entry


def archive_retired(breaker: Breaker) -> list[str]:
    """The lifecycle hook: circuits of constraints that say `status: retired` go into the archive."""
    retired = [name for name, constraint in breaker.rules.constraints.items() if constraint.retired]
    done = []
    for name in retired:
        if breaker.store.circuit(name) is not None:
            archive(breaker, name, actor="constraint lifecycle")
            done.append(name)
    return done


def import_states(breaker: Breaker, text: str, shown: str, *, actor: str) -> tuple[dict[str, str], list[ConfigError]]:
    """Take circuits over from a state file; the public state of each, and what could not be used."""
    now = breaker.engine.clock()
    entries, problems = read_entries(text, shown, breaker.rules, now)
    with breaker.store.transact() as transaction:
        for name, (state, log) in entries.items():
            transaction.remove(name)
            transaction.save(name, "constraint", state.phase, state.to_data(), now)
            for row in log:
                transaction.log(row, kept=True)
            if state.opened_at is not None:
                trip = AuditRow(name, state.opened_at, "closed", "open", "tripped", state.reason, actor)
                transaction.audit(trip, state.to_data())
            transaction.audit(AuditRow(name, now, state.phase, state.phase, "imported", shown, actor), state.to_data())
    if breaker.root is not None and not problems:
        take_for_ours(breaker.root, text)
    breaker.mirror(set(entries))
    states = {name: view(breaker.rules.constraint_policy(name), state, now) for name, (state, _) in entries.items()}
    return {name: PUBLIC_STATE[state.phase] for name, state in states.items()}, problems

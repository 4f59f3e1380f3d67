"""Begin a session: tidy up the memory folder, and pass on how deep its agent is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.stores import Store, Transaction

#: Seconds since its last word within which a session that has not ended may still be at work.
_AT_WORK = 86400

#: Sessions, and agents in them, that something is remembered of; and halted ones beside those.
_REMEMBERED = 400


def begin(store: Store, root: str, rules: Rules, event: Event, environment: Mapping[str, str], now: float) -> str:
    """What a person is told of it; mostly nothing."""
    from fusewire.breakers.session.incidents import write
    from fusewire.breakers.session.nesting import BY_HTTP, DEPTH, pass_on
    from fusewire.janitor.janitor import at_session_start

    pass_on(environment)
    _forget_oldest(store, now)
    # The others do not ask before they take over settings; in the middle of a session what held at its start counts.
    # And Claude Code starts a process for it: what comes by HTTP was made up.
    if event.agent == "claude" and event.text != "compact" and environment.get(DEPTH) != BY_HTTP:
        from fusewire.breakers.session.registration import note
        from fusewire.breakers.session.state import amend, session_name

        amend(store, session_name(event.session or "none"), now, registered=note(root, environment))
    report = at_session_start(root, rules.tool, event.session, at_work(store, now), now)
    if report.startswith("Memory cleanup:"):
        write(
            root, rules.tool["incidents"], [{"type": "memory_cleanup", "reason": report, "session": event.session}], now
        )
    return "\n".join(filter(None, (report, _misconfigured(rules))))


def _misconfigured(rules: Rules) -> str:
    if not rules.warnings:
        return ""
    more = f" (and {len(rules.warnings) - 1} more)" if len(rules.warnings) > 1 else ""
    return f"fusewire: {rules.warnings[0]}{more}; see: fusewire doctor"


def _forget_oldest(store: Store, now: float) -> None:
    """However many sessions a month has, what is remembered of them stays small; the last that were halted stay so."""
    older = [name for name, _ in store.remembered("session/")[_REMEMBERED:]]
    halted = [name for name in older if _is_halted(store, name)]
    gone = set(older).difference(halted[:_REMEMBERED])
    if not gone:
        return
    with store.transact() as transaction:
        for name in gone:
            if name in halted or not _is_halted(transaction, name):
                transaction.drop(name)
                if name in halted:
                    transaction.note_halt(name.partition("/")[2], None, now)


def _is_halted(source: Store | Transaction, name: str) -> bool:
    """Whether it is a session that is halted."""
    try:
        return "halted" in (source.recall(name) or {})
    except ValueError:
        return False


def at_work(store: Store, now: float) -> set[str]:
    """The sessions that may still be at work."""
    return {name.split("/")[1] for name, at in store.remembered("session/") if now - at < _AT_WORK}

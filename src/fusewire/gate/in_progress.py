"""Check one event of a session against work in progress: a slice, a phase, a stop hook's loop.

The hook comes here only where there may be any: a slice and the phases have a file each that is there or not, and a
loop is looked for only when an agent stops, a person speaks or a session ends.
"""

from __future__ import annotations

import os

from fusewire.config.rules import DATABASE, PHASE_FILE, SCOPE_FILE
from fusewire.core.decision import strictest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.core.decision import Decision
    from fusewire.core.events import Event

    Commands = list[list[str]]


def check(event: Event, commands: Commands | None, home: str, environment: Mapping[str, str]) -> Decision | None:
    """Ask work in progress about a call, a result, a stop, a person's words. `home` is the command line's project."""
    if event.kind in ("stop", "session_end"):
        return _stretch(event, home, environment)
    if event.kind not in ("before_tool", "after_tool", "prompt"):
        return None
    found: list[Decision | None] = []
    if os.path.lexists(os.path.join(home, SCOPE_FILE)) and (event.command or event.kind == "prompt"):
        found.append(_slice(event, commands, home))
    if os.path.lexists(os.path.join(home, PHASE_FILE)):
        found.append(_phase(event, commands, home))
    if event.kind == "prompt":
        found.append(_stretch(event, home, environment))
    return strictest(found)


def _slice(event: Event, commands: Commands | None, home: str) -> Decision | None:
    from fusewire.breakers.attempt import in_session as slices

    if event.kind == "before_tool":
        return slices.before_call(event, commands, home)
    if event.kind == "after_tool":
        return slices.after_call(event, commands, home)
    slices.spoken(event, home)
    return None


def _phase(event: Event, commands: Commands | None, home: str) -> Decision | None:
    from fusewire.breakers.phase import in_session as phasing

    if event.kind == "before_tool":
        return phasing.before_call(event, home)
    if event.kind == "after_tool":
        phasing.after_call(event, commands, home)
    else:
        phasing.spoken(event, home)
    return None


def _stretch(event: Event, home: str, environment: Mapping[str, str]) -> Decision | None:
    from fusewire.breakers.loop import stop_hook as iterations
    from fusewire.breakers.session.opening import quick_store
    from fusewire.config.rules import load_rules

    kept_going = event.kind == "stop" and event.text == "again"
    if not kept_going and not os.path.lexists(os.path.join(home, DATABASE)):
        return None
    rules = load_rules(home)
    store = quick_store(home, rules)
    if event.kind == "stop":
        return iterations.stopping(event, store, rules, home, environment)
    iterations.ended(event, store, rules, home)
    return None

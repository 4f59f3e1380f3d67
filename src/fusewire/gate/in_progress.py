"""Work that somebody has begun in a project, as one event of a session sees it: a slice, a phase, a stop hook's loop.

The hook comes here only where there may be any: a slice and the phases have a file each that is there or not, and a
loop is looked for only when an agent stops, a person speaks or a session ends.
"""

from __future__ import annotations

import os

from fusewire.config.rules import DATABASE, PHASE_FILE, SCOPE_FILE
from fusewire.core.decision import stricter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.core.events import Event

    Commands = list[list[str]]
    Answer = tuple[str, str]


def look(event: Event, commands: Commands | None, home: str, environment: Mapping[str, str]) -> Answer:
    """What is under way says to a call, a result, a stop, a person's words. `home` is the command line's project."""
    if event.kind in ("stop", "session_end"):
        return _stretch(event, home, environment)
    if event.kind not in ("before_tool", "after_tool", "prompt"):
        return "allow", ""
    answer = "allow", ""
    if os.path.lexists(os.path.join(home, SCOPE_FILE)) and (event.command or event.kind == "prompt"):
        answer = _slice(event, commands, home)
    if os.path.lexists(os.path.join(home, PHASE_FILE)):
        answer = stricter(answer, _phase(event, commands, home))
    return stricter(answer, _stretch(event, home, environment)) if event.kind == "prompt" else answer


def _slice(event: Event, commands: Commands | None, home: str) -> Answer:
    from fusewire.breakers.attempt import in_session as slices

    if event.kind == "before_tool":
        return slices.before_call(event, commands, home)
    if event.kind == "after_tool":
        return slices.after_call(event, commands, home)
    slices.spoken(event, home)
    return "allow", ""


def _phase(event: Event, commands: Commands | None, home: str) -> Answer:
    from fusewire.breakers.phase import in_session as phasing

    if event.kind == "before_tool":
        return phasing.before_call(event, home)
    if event.kind == "after_tool":
        phasing.after_call(event, commands, home)
    else:
        phasing.spoken(event, home)
    return "allow", ""


def _stretch(event: Event, home: str, environment: Mapping[str, str]) -> Answer:
    from fusewire.breakers.loop import stop_hook as iterations
    from fusewire.breakers.session.opening import quick_store
    from fusewire.config.rules import load_rules

    kept_going = event.kind == "stop" and event.text == "again"
    if not kept_going and not os.path.lexists(os.path.join(home, DATABASE)):
        return "allow", ""
    rules = load_rules(home)
    store = quick_store(home, rules)
    if event.kind == "stop":
        return iterations.stopping(event, store, rules, home, environment)
    iterations.ended(event, store, rules, home)
    return "allow", ""

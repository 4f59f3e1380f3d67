"""Compare the protected files around the calls of an agent: recorded before one that may change files, judged after."""

from __future__ import annotations

import os

from fusewire.guard.baseline import is_unchanged, rules_key
from fusewire.guard.calls import (
    INTEGRITY,
    end_call,
    end_jobs,
    end_turn,
    find_moved,
    folder_of,
    forget,
    halted,
    start_call,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.guard.protected import Protected


def before_call(
    event: Event,
    root: str,
    rules: Rules,
    changed: tuple[str, ...],
    *,
    renews: bool,
    patience: float,
    softened: bool = False,
) -> Decision | None:
    """Record what the protected files are before a call that may change files; halt if the session is halted.

    `renews` is false for events that an agent can make up: they make nothing right. `softened`: a person lets the call
    change what it will, so that nothing of it is undone.
    """
    try:
        if not os.path.isdir(root):
            return None
        folder = folder_of(root, make=True)
        text = halted(root, event.session)
        if text and not softened:
            from fusewire.core.decision import Decision

            return Decision("halt", rule=INTEGRITY, text=text)
        if renews and not is_unchanged(folder, root, rules_key(rules)):
            import time

            from fusewire.guard.integrity_check import IntegrityCheck
            from fusewire.guard.policy import protected_of

            decision = IntegrityCheck(protected_of(root, rules), rules).renew(time.time())
            if decision is not None and decision.verdict == "halt":
                _halt(root, event, decision, patience)
                return decision
        start_call(folder, root, event, changed, allowed=softened)
    except OSError:
        pass  # the guard allowed the call; only its backstop is out of order, and reports it afterwards
    return None


def after_event(event: Event, root: str, rules: Rules, patience: float) -> Decision | None:
    """Compare what was done with what was there; at other moments, find what background commands have removed."""
    import time

    try:
        folder, now = folder_of(root), time.time()
        if event.kind == "prompt":
            forget(root, "halt")
        if not os.path.isdir(root):
            return find_moved(root, folder) if event.kind == "after_tool" else None
        if not os.path.isdir(folder):
            return None
        windows = end_call(folder, event) if event.kind == "after_tool" else []
        end_turn(folder, event)
        decision = None
        if not is_unchanged(folder, root, rules_key(rules)):
            decision = _compare(event, root, rules, windows, now, patience)
        if event.kind != "after_tool":
            end_jobs(folder, event)
    except OSError as error:
        from fusewire.core.decision import Decision

        return Decision("tell", reason=f"fusewire: the protected files cannot be compared: {error}")
    if decision is None or event.kind in ("after_tool", "stop"):
        return decision
    # A person is there, and nothing is running that could be halted.
    notice: Decision = decision.replace(verdict="tell")
    return notice


def _compare(event: Event, root: str, rules: Rules, windows: list[Any], now: float, patience: float) -> Decision | None:
    from fusewire.core.events import changes_files
    from fusewire.guard.integrity_check import IntegrityCheck
    from fusewire.guard.policy import protected_of

    check = IntegrityCheck(protected_of(root, rules), rules)
    decision = None
    if event.kind == "after_tool":
        permitted = _permitted(event, check.protected) if changes_files(event.tool) and not event.failed else []
        cause = event.described() or event.tool
        if any(one.allowed for one in windows):
            return check.accept(cause, now)
        decision = check.after(cause, now, windows=windows, permitted=permitted, took=event.took)
    elif check.integrity.exists():
        decision = check.renew(now)
    if decision is not None and decision.verdict == "halt":
        _halt(root, event, decision, patience, on_file=event.kind in ("after_tool", "stop"))
    return decision


def _permitted(event: Event, protected: Protected) -> list[str]:
    """The paths that the tool may update: that it got as far as something else is only said.

    What needed a person's consent has it: the call would not have run without.
    """
    from fusewire.guard.tools import check_tool

    tool, root = event.tool or "", protected.root
    return [path for path in event.paths if check_tool(tool, (path,), root=root, protected=protected).verdict != "deny"]


def _halt(root: str, event: Event, decision: Decision, patience: float, *, on_file: bool = True) -> None:
    """Halt the session `on_file`, and leave a notice that people see in `status` and `doctor` until they confirm it."""
    from fusewire.core.messages import agent_message
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import FusewireError

    text = agent_message(decision)
    if on_file:
        write(root, "halt", f"{event.session or ''}\n{text}")
    try:
        with Breaker.open(project=root, patience=patience) as breaker, breaker.store.transact() as transaction:
            transaction.notice(text.partition("\n")[0], breaker.engine.clock())
    except (FusewireError, OSError):
        pass  # the agent is halted all the same

"""Let a refused call pass once, if a person has allowed it; and offer that to the person when a call is refused."""

from __future__ import annotations

import time

from fusewire.core.messages import LONGEST, agent_message
from fusewire.guard.own_files import check_own_files
from fusewire.guard.sandbox.active import PREFIX, active
from fusewire.scopes.once import call_key, offer
from fusewire.scopes.order_changes import take_once
from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.gate.context import Context

#: Rules that no code passes: what keeps Fusewire itself, how deep agents start agents, and money, of which a person
#: grants more.
_NEVER = ("fusewire.", "tool.hook_recursion", "tool.spend", "tool.api_cost", "budget", "provider")


def may_pass(event: Event, context: Context) -> bool:
    """Whether a person has let this call pass, and nobody has used that up: from now on the rules only log."""
    now, key = time.time(), call_key(event)
    if not any(one.call == key for one in context.orders.once):
        return False
    try:
        return take_once(key, event.call or "", now)
    except FusewireError:
        return False  # another process holds the file: the call is refused once more


def soften(rules: Rules) -> None:
    """Let the rules only log, but for those that no code passes."""
    kept = [(f"{name}*", rules.mode(name)) for name in _NEVER]
    rules.modes = (*rules.modes, ("*", "log"), *kept)


def with_code(decision: Decision, event: Event, context: Context) -> Decision:
    """A refusal with the code by which a person can let this call pass once, where a person sees it."""
    refusals = [one for one in (decision, *decision.also) if one.verdict in ("deny", "halt")]
    if any(one.rule.startswith(_NEVER) or not one.rule for one in refusals) or not event.session:
        return decision
    if context.is_by_http:
        return decision
    if any(one.rule.startswith("guard.") for one in refusals) and _stays_refused(event, context):
        return decision
    try:
        reason = decision.reason or decision.text
        code = offer(event, context.root, decision.rule, reason, time.time(), decision.code)
    except (FusewireError, OSError):
        return decision
    line = f"A person can let this call pass once, within 10 min, at a terminal: fusewire allow-once {code}"
    text = _shortened(agent_message(decision, time.time()), LONGEST - len(line) - 1)
    coded: Decision = decision.replace(text=f"{text}\n{line}", also=())
    return coded


def _stays_refused(event: Event, context: Context) -> bool:
    """Whether a code would not help: it frees no file of ours, and the kernel does not read codes."""
    if event.command and context.environment.get(PREFIX) and active(context.environment, context.root):
        return True
    return check_own_files(event, context.changed, context.root, context.rules) is not None


def _shortened(text: str, room: int) -> str:
    """The message with its longest lines cut, where it would be too long with the code."""
    lines = text.split("\n")
    while (over := sum(len(line) + 1 for line in lines) - 1 - room) > 0:
        at = max(range(len(lines)), key=lambda number: len(lines[number]))
        if len(lines[at]) < 60:
            return text[: room - 3] + "..."
        lines[at] = f"{lines[at][: max(40, len(lines[at]) - over - 3)]}..."
    return "\n".join(lines)

"""Keep what Fusewire itself needs where the guard is paused, or was set to log: no pause lets an agent end its halt."""

from __future__ import annotations

from fusewire.guard.check import judge_reading, read_command
from fusewire.guard.policy import protected_of
from fusewire.guard.tools import check_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event


def check_own_files(event: Event, changed: tuple[str, ...], root: str, rules: Rules) -> Decision | None:
    """The refusal of a call that would change a file of ours; None if it leaves them alone."""
    protected = protected_of(root, rules, own_only=True)
    found = []
    if event.command:
        found.append(judge_reading(read_command(event.command, cwd=event.cwd or root, protected=protected)))
    if changed or not event.command:
        found.append(check_tool(event.tool, changed, root=root, protected=protected, change=event.change))
    refused = next((one for one in found if one.verdict in ("deny", "ask")), None)
    return None if refused is None else refused.replace(verdict="deny", rule="fusewire.disarm")

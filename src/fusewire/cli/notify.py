"""`fusewire notify`: the targets of notifications, their state, and test messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_person
from fusewire.agents.environment import take_surroundings
from fusewire.cli.common import common_options, print_json, project_command, show_result, with_breaker
from fusewire.cli.streams import tell, tell_text
from fusewire.config.notify_addresses import shown_address
from fusewire.config.rules import user_config_path
from fusewire.engine.breaker import Breaker
from fusewire.notify.delivery import deliver_pending
from fusewire.notify.overview import overview
from fusewire.notify.test_message import send_test
from fusewire.util.durations import counted, show_time
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.tables import columns

if TYPE_CHECKING:
    from fusewire.notify.overview import TargetStatus

_NONE = """No targets yet. Each is a table in fusewire.toml, or for all projects in {file}:

  [notify.targets.phone]
  url = "ntfy://a-topic-that-is-hard-to-guess"   # or desktop:, https://..., slack://..., mailto://...
  severity = "trip"                            # info, warning, trip, alert"""


@click.group("notify", invoke_without_command=True)
@common_options
@click.pass_context
def notify_command(context: click.Context, project: str | None, as_json: bool) -> int:
    """Show the targets of notifications: what each receives, whether deliveries work, and what is queued.

    When a circuit moves, an agent is halted or a notice is written, a background process sends a message to the targets
    in [notify.targets.NAME] that want it, in order and at least once. A message that cannot be delivered is retried a
    few times and then dropped; after 5 failures in a row the target is paused for an hour. Deliveries never affect a
    decision. Services other than the desktop need: pip install 'fusewire[notify]'
    """
    if context.invoked_subcommand is None:
        return int(context.invoke(_show, project=project, as_json=as_json))
    given: dict[str, object] = {"project": project, "as_json": as_json}
    context.default_map = dict.fromkeys(notify_command.commands, given)
    return 0


@with_breaker
def _show(breaker: Breaker, as_json: bool) -> int:
    found = overview(breaker)
    if as_json:
        print_json(found.to_json())
        return 0
    if not found.targets:
        tell_text(_NONE.format(file=user_config_path()))
        return 0
    tell(*columns(_row(one) for one in found.targets))
    tell(
        f"The same within {found.dedup} is sent once; {counted(found.attempts, 'attempt')} for each message;"
        f" at most {counted(found.per_minute, 'message')} within a minute."
    )
    return 0


def _row(one: TargetStatus) -> tuple[str, str, str]:
    target = one.target
    wants = f"{target.severity} and above" if target.severity != "alert" else "alert"
    of = "" if target.circuits == ("*",) else f" of {', '.join(target.circuits)}"
    return target.name, shown_address(target), f"{wants}{of}: {_fares(one)}"


def _fares(one: TargetStatus) -> str:
    health = one.health
    if not one.target.enabled:
        return f"off ({one.target.source})"
    parts = [f"{counted(one.waiting, 'message')} waiting"] if one.waiting else []
    if health.last_sent is not None:
        parts.append(f"{health.sent} sent, the last at {show_time(health.last_sent)}")
    if health.failed_at is not None:
        parts.append(f"{health.lost} lost; failed at {show_time(health.failed_at)}: {health.problem}")
    if one.paused:
        parts.append(f"paused until {show_time(health.paused_until)}")
    return "; ".join(parts) or "nothing sent yet"


@notify_command.command("test")
@click.argument("name", required=False, metavar="[NAME]")
@project_command
def test_command(breaker: Breaker, name: str | None, as_json: bool) -> int:
    """Send a test message to one target, or to all that are on. Refused inside an agent.

    Each is tried once; a target that works again is no longer paused. Exit 1 if one failed, with a line for each.
    """
    require_person("`fusewire notify test`", breaker.root)
    targets = [one.target for one in overview(breaker).targets]
    wanted = [target for target in targets if target.name == name or (name is None and target.enabled)]
    if not wanted and name is not None:
        allowed = ", ".join(target.name for target in targets) or "none is configured"
        raise NotFound(f"no target named {name!r}; allowed: {allowed}")
    if not wanted:
        raise FusewireError("no target to send a test to; see: fusewire notify")
    results = [send_test(breaker, target) for target in wanted]
    if as_json:
        print_json({"targets": [result.to_json() for result in results]})
    for result in results:
        if result.problem:
            tell(f"Error: {result.name}: {result.problem}", fg="red", err=True)
        elif not as_json:
            tell(f"{result.name}: sent to {result.address} in {result.seconds:.1f} s")
    return 1 if any(result.problem for result in results) else 0


@notify_command.command("deliver")
@project_command
def deliver_command(breaker: Breaker, as_json: bool) -> int:
    """Deliver the queued messages now, and print how many were sent.

    Deliveries normally start by themselves; this is for messages left over from a crash.
    """
    take_surroundings()
    sent = deliver_pending(breaker.root or ".")
    return show_result(as_json, {"sent": sent}, f"{counted(sent, 'message')} sent")

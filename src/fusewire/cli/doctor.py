"""`fusewire doctor`: is everything in order, and if not, what to do about it."""

from __future__ import annotations

import os
import pwd
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_person
from fusewire.agents.doctor.checkup import Checkup, DoctorFinding, all_checkups
from fusewire.agents.doctor.state_writable import write_problems
from fusewire.agents.install.command import hook_line
from fusewire.agents.install.installer import fill_cache, lacks_cache
from fusewire.cli.common import print_json, project_command, warnings_told
from fusewire.cli.streams import tell, warn
from fusewire.config.rules import STATE_FOLDER
from fusewire.guard.calls import base, is_fallback
from fusewire.guard.sandbox.support import Support, support
from fusewire.scopes.user import database_path, open_user_store
from fusewire.util.durations import counted
from fusewire.util.errors import StoreError
from fusewire.util.quoting import quoted
from fusewire.util.tables import columns
from fusewire.views.warnings import ACKNOWLEDGED, alerts, notices, warnings

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


@click.command("doctor")
@click.option(
    "--canary",
    is_flag=True,
    help="Fill the hook's cache, ask every registered hook about a forbidden call, and time allowed ones.",
)
@click.option("--acknowledge", is_flag=True, help="Mark the notices as read: show them no more. For a person.")
@project_command
def doctor_command(breaker: Breaker, canary: bool, acknowledge: bool, as_json: bool) -> int:
    """Check configuration and state, and whether each agent is really guarded. Exit 1 if there are findings.

    For each agent on the PATH: where the hook is registered (user, project, local, plugin), whether that command line
    still works, and whether it is trusted, switched off or registered twice. --canary proves it: the registered command
    line is asked about a call that would delete a protected file, in a temporary project, and a registered shell
    wrapper runs a command that writes to that file. The report names the rings that guard an agent's shell commands:
    the kernel, the reader, the snapshot. Every finding says what to do. An agent that is not installed, or not
    registered, is no finding; the latter are named at the end.
    """
    if acknowledge:
        actor = require_person("`fusewire doctor --acknowledge`", breaker.root)
        count = len(alerts(breaker))
        with breaker.store.transact() as transaction:
            transaction.remember(ACKNOWLEDGED, {}, breaker.engine.clock())
            count += transaction.acknowledge()
        count += _acknowledge_own()
        tell(f"{counted(count, 'notice')} acknowledged by {actor}", err=True)
    root = breaker.root or "."
    damage = breaker.verify() + _unwritable(root)
    blocked = [] if damage else write_problems(breaker)
    line = hook_line("claude")
    slow = fill_cache(line[:-1]) if canary else lacks_cache(line[:-1])
    sandbox, mode = support(), breaker.rules.sandbox[0]
    checkups = all_checkups(root, line[:-1], canary=canary, sandboxes=bool(sandbox) and mode != "off")
    findings = [DoctorFinding("state", one, _mending(one)) for one in damage] + [
        DoctorFinding("state", *one) for one in blocked
    ]
    damage += [what for what, _ in blocked]
    known = notices(breaker)
    findings += [DoctorFinding("project", one, _answering(one, known)) for one in warnings(breaker)]
    findings += _own_state()
    findings += [finding for checkup in checkups for finding in checkup.findings]
    if mode == "require" and not sandbox:
        findings.append(DoctorFinding("sandbox", f"it is required, and there is none: {sandbox.reason}", sandbox.help))
    if as_json:
        print_json(
            {
                "healthy": not findings,
                "not_guarded": [checkup.client.name for checkup in checkups if checkup.is_unguarded],
                "damage": damage,
                "warnings": warnings(breaker),
                "hook": " ".join(map(quoted, line)),
                "sandbox": {"means": sandbox.means or None, "reason": sandbox.reason, "help": sandbox.help},
                "agents": [checkup.to_json() for checkup in checkups],
                "findings": [asdict(finding) for finding in findings],
            }
        )
        return 1 if findings else 0
    active = sum(not constraint.retired for constraint in breaker.rules.constraints.values())
    tell(
        f"project      {root}",
        f"constraints  {active} active",
        f"state        {'; '.join(damage) or 'readable and writable'}",
        f"hook         {' '.join(map(quoted, line[:-1]))}",
        f"sandbox      {_sandbox(sandbox, mode)}",
    )
    here = [one for one in checkups if one.program or one.registered]
    tell(*columns((f"{checkup.client.name:<11}", *_agent(checkup)) for checkup in here) if here else ())
    if absent := [one.client.name for one in checkups if one not in here]:
        tell(f"{'not here':<11}  {', '.join(absent)} (not on the PATH)")
    tell(_sum(findings, [checkup.client.name for checkup in checkups if checkup.is_unguarded]))
    warnings_told()
    for finding in findings:
        tell(f"  {finding.about}: {finding.what}", f"    do: {finding.do}")
    if slow:
        tell(f"  note on the hook: {slow}")
    if is_fallback(root):
        tell(f"  note on the guard: {base()} cannot be written: copies of protected files are kept in the project")
    for checkup in checkups:
        tell(*(f"  note on {checkup.client.name}: {note}" for note in checkup.notes))
    return 1 if findings else 0


def _own_state() -> list[DoctorFinding]:
    """What is wrong with the person's own store, and what it has to say."""
    try:
        if not os.path.lexists(database_path()):
            return []
        store = open_user_store(read_only=True)
        found, told = store.verify(), store.notices()
    except StoreError as error:
        found, told = [str(error).removesuffix("; see: fusewire doctor")], []
    read = "fusewire doctor --acknowledge (once you have read it)"
    mend = "fusewire doctor --acknowledge (what can be read of it is kept)"
    return [DoctorFinding("your own state", one, mend) for one in found] + [
        DoctorFinding("your own state", one, read) for one in told
    ]


def _acknowledge_own() -> int:
    """The same for the person's own store; a damaged one is rebuilt by that."""
    try:
        if not os.path.lexists(database_path()):
            return 0
        with open_user_store().transact() as transaction:
            return transaction.acknowledge()
    except StoreError as error:
        warn(str(error))
        return 0


def _sandbox(found: Support, mode: str) -> str:
    if mode == "off":
        return "switched off ([sandbox] mode)"
    return found.means or f"none: {found.reason}; what would help: {found.help}"


def _sum(findings: list[DoctorFinding], unguarded: list[str]) -> str:
    """An agent without us is no fault, but nothing that may be called in order either."""
    if not unguarded:
        return counted(len(findings), "finding") if findings else "all in order"
    lead = counted(len(findings), "finding") if findings else "nothing is wrong"
    return f"{lead}; not guarded: {', '.join(unguarded)} (fusewire install {'|'.join(unguarded)})"


def _agent(checkup: Checkup) -> tuple[str, str]:
    """What one line says of an agent: its version, and how it is guarded."""
    version = checkup.version or ("says no version" if checkup.program else "not on the PATH")
    if not checkup.registered:
        return version, "" if checkup.program is None else f"not guarded; do: {checkup.client.install_line('user')}"
    where = ", ".join(one.scope for one in checkup.registered)
    if any(one.http(checkup.client) for one in checkup.registered):
        where += "; reports over HTTP"
    parts = [f"registered ({where})", " + ".join(checkup.rings), *(["but see below"] if checkup.findings else [])]
    canary = checkup.canary
    if canary is not None and not canary.problem:
        parts.append("canary blocked")
        if canary.intact is not None:
            parts.append("protected file intact" if canary.intact else "protected file CHANGED")
        if canary.allowed_ms is not None and canary.ratio is not None:
            shell = f", {canary.shell_ms:.0f} of them your login shell" if canary.shell_ms else ""
            parts.append(f"a call {canary.allowed_ms:.0f} ms{shell} ({canary.ratio:.1f} x bare Python)")
    elif canary is not None:
        parts.append("canary NOT blocked" if not canary.blocked else "harmless call NOT allowed")
    return version, ", ".join(parts)


def _unwritable(root: str) -> list[str]:
    folder = os.path.join(root, STATE_FOLDER)
    place = folder if os.path.lexists(folder) else root
    if os.path.isdir(place) and os.access(place, os.W_OK):
        return []
    return [f"{place} cannot be written: violations cannot be recorded, and the hook denies what is forbidden"]


def _mending(damage: str) -> str:
    circuit, colon, _ = damage.rpartition(": its state cannot be read")
    if colon:
        return f"fusewire check {quoted(circuit)} (it is rebuilt from the log)"
    place, colon, _ = damage.partition(" cannot be written: ")
    return _letting_write(place) if colon else "fusewire status (what can be read of it is kept)"


def _letting_write(place: str) -> str:
    """What lets us write there: which of the reasons it is decides what helps."""
    if not os.path.isdir(place):
        return f"move {quoted(place)} away: a folder belongs there"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"mount the disk of {quoted(place)} for writing, or work in a copy of the project"
    owner = os.stat(place).st_uid
    if owner != os.geteuid():
        return f"sudo chown -R {os.geteuid()} {quoted(place)}, or work as its owner ({_name(owner)})"
    return f"chmod u+w {quoted(place)}"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _answering(warning: str, notices: list[str]) -> str:
    """What a person does about a warning; some of them say so themselves."""
    if warning in notices:
        return "fusewire doctor --acknowledge (once you have read it)"
    for word in ("archive", "import", "notify"):
        if f"fusewire {word}" in warning:
            return f"fusewire {word}" + warning.partition(f"fusewire {word}")[2].partition("`")[0].partition(",")[0]
    return "change that setting"

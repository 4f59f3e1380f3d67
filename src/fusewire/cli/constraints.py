"""Commands of the constraint breaker alone: constraints, enforce, override, archive, import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.constraint.detect import violated
from fusewire.breakers.constraint.lifecycle import ARCHIVE_FILE
from fusewire.cli.circuits import warn_of
from fusewire.cli.common import archiving_retired, circuit_command, print_json, project_command, show_result
from fusewire.cli.streams import tell, warn
from fusewire.config.constraint_files import packs
from fusewire.config.rules import CONSTRAINTS_FOLDER, STATE_FILE
from fusewire.config.settings import suggest
from fusewire.core.decision import merge
from fusewire.core.events import Event
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import LONGEST_OVERRIDE
from fusewire.guard.check import read_command
from fusewire.guard.policy import protected_of
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.shell.paths import in_project
from fusewire.util.durations import counted, parse_duration, show_duration
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.files import make_folder, replace_file
from fusewire.util.tables import columns

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker

#: Where packs are switched on, and what their mode may be.
_PACKS = f"{CONSTRAINTS_FOLDER}/packs"
MODES = ("count", "ask", "block")


@click.group("constraints")
def constraints_command() -> None:
    """The project's constraints, and bundled packs of them that are switched on by name."""


@constraints_command.command("list")
@project_command
def list_command(breaker: Breaker, as_json: bool) -> int:
    """List the constraints in force with their modes, and the bundled packs."""
    found = [_described(breaker, name) for name, one in breaker.rules.constraints.items() if not one.retired]
    on = _switched_on(breaker)
    bundled = [{"pack": name, "title": pack["title"], "on": name in on} for name, pack in packs().items()]
    lines = columns([(one["id"], one["mode"], one["title"] or one["file"]) for one in found]) if found else []
    lines += ["", "Packs (fusewire constraints add NAME)", *_pack_lines(bundled)]
    return show_result(as_json, {"constraints": found, "packs": bundled}, *(lines or ["No constraints."]))


@constraints_command.command("show")
@click.argument("name", metavar="ID|PACK")
@project_command
def show_command(breaker: Breaker, name: str, as_json: bool) -> int:
    """Show what a constraint or a pack forbids, in which mode, and the safer way."""
    if name in packs():
        pack = packs()[name]
        on = name in _switched_on(breaker)
        data = {"pack": name, "title": pack["title"], "on": on, "rules": list(map(_rule_json, pack["rules"]))}
        head = f"{name}: {pack['title']} ({'on' if on else 'off'})"
        return show_result(as_json, data, head, *(line for rule in pack["rules"] for line in _rule_lines(name, rule)))
    if name not in breaker.rules.constraints:
        raise NotFound(f"Constraint not found: {name}; packs: {', '.join(packs())}")
    one = _described(breaker, name)
    lines = [f"{name}: {one['title']}", f"  mode {one['mode']}, in {one['file']}"]
    lines += [f"  safer: {text}" for text in one["next"]]
    return show_result(as_json, one, *lines)


@constraints_command.command("add")
@click.argument("names", metavar="PACK...", nargs=-1, required=True)
@click.option("--mode", type=click.Choice(MODES), help="The mode of all its rules (default: that of each rule).")
@project_command
def add_command(breaker: Breaker, names: tuple[str, ...], mode: str | None, as_json: bool) -> int:
    """Switch bundled packs on: git-history, filesystem, databases, cloud, containers. For a person.

    Each becomes a file in docs/constraints/packs/, to be committed; it lists the rules, and takes settings.
    """
    require_person("`fusewire constraints add`", breaker.root)
    _require_packs(names)
    on, added = _switched_on(breaker), []
    for name in dict.fromkeys(names):
        if name not in on or mode is not None:
            file = on.get(name, f"{_PACKS}/{name}.md")
            _switch_on(breaker.root or os.getcwd(), file, name, mode, is_new=name not in on)
            added.append({"pack": name, "file": file})
    lines = [
        f"{one['pack']}: on, {counted(len(packs()[one['pack']]['rules']), 'rule')}, in {one['file']}" for one in added
    ]
    already = [f"{name}: already on" for name in dict.fromkeys(names) if name not in {one["pack"] for one in added}]
    return show_result(as_json, {"added": added}, *lines, *already)


def _switch_on(root: str, file: str, name: str, mode: str | None, *, is_new: bool) -> None:
    """Write the file of a pack; one that is there only gets another mode."""
    make_folder(root, os.path.dirname(file))
    path = Path(root, file)
    if is_new and os.path.lexists(path):
        raise FusewireError(f"{file} is there and does not switch the pack on: mend it, or move it away")
    lines = (_pack_text(name) if is_new else path.read_text("utf-8")).splitlines(keepends=True)
    if mode is not None:
        lines = [line for line in lines if not line.startswith("mode:")]
        at = next(at for at, line in enumerate(lines, 1) if line.startswith("pack:"))
        lines.insert(at, f"mode: {mode}\n")
    replace_file(str(path), "".join(lines).encode())


@constraints_command.command("remove")
@click.argument("names", metavar="PACK...", nargs=-1, required=True)
@project_command
def remove_command(breaker: Breaker, names: tuple[str, ...], as_json: bool) -> int:
    """Switch bundled packs off again. For a person."""
    require_person("`fusewire constraints remove`", breaker.root)
    _require_packs(names)
    on = _switched_on(breaker)
    removed = [name for name in dict.fromkeys(names) if name in on]
    for name in removed:
        os.unlink(os.path.join(breaker.root or os.getcwd(), on[name]))
    lines = [f"{name}: {'off' if name in on else 'already off'}" for name in dict.fromkeys(names)]
    return show_result(as_json, {"removed": removed}, *lines)


def _require_packs(names: tuple[str, ...]) -> None:
    unknown = next((name for name in names if name not in packs()), None)
    if unknown is not None:
        raise FusewireError(f"no pack {unknown!r}{suggest(unknown, list(packs()))}; there are: {', '.join(packs())}")


def _switched_on(breaker: Breaker) -> dict[str, str]:
    """The packs that are on, each with its file."""
    files = {name: one.file for name, one in breaker.rules.constraints.items() if one.pack}
    first = {name: f"{name}-{pack['rules'][0]['id']}" for name, pack in packs().items()}
    return {name: files[rule] for name, rule in first.items() if rule in files}


def _described(breaker: Breaker, name: str) -> dict[str, Any]:
    one = breaker.rules.constraints[name]
    policy = breaker.rules.policy(name)
    about = {"id": name, "mode": policy.mode, "title": one.title, "file": one.file}
    return {**about, "severity": one.severity or None, "next": list(policy.next) if one.pack else []}


def _rule_json(rule: dict[str, Any]) -> dict[str, Any]:
    return {key: rule[key] for key in ("id", "title", "mode", "next")}


def _pack_lines(bundled: list[dict[str, Any]]) -> list[str]:
    return [
        f"  {row}" for row in columns([(one["pack"], "on" if one["on"] else "off", one["title"]) for one in bundled])
    ]


def _rule_lines(pack: str, rule: dict[str, Any]) -> list[str]:
    return [f"  {pack}-{rule['id']} ({rule['mode']}): {rule['title']}", f"    safer: {rule['next']}"]


def _pack_text(name: str) -> str:
    """The file that switches a pack on."""
    pack = packs()[name]
    about = "A bundled pack of Fusewire. `mode: count`, `ask` or `block` in the front matter is for all its rules:"
    rules = (f"- `{name}-{one['id']}` ({one['mode']}): {one['title']}. Safer: {one['next']}\n" for one in pack["rules"])
    return f"---\npack: {name}\n---\n# {pack['title']}\n\n{about}\n\n{''.join(rules)}"


@click.command("enforce")
@click.option("--tool", required=True, help="The tool that would be used, such as Bash or Edit.")
@click.option("--command", "command_line", help="The command line that it would run.")
@click.option("--path", "paths", multiple=True, help="A file that it would change, relative to the project.")
@click.option("--session", help="The session that acts.")
@circuit_command
@archiving_retired
def enforce_command(
    breaker: Breaker,
    tool: str,
    command_line: str | None,
    paths: tuple[str, ...],
    session: str | None,
    as_json: bool,
) -> int:
    """Check an action against the constraints, and record the violation if it breaks one.

    Exit 0: allowed (a violation is counted). Exit 3: blocked, because the circuit of a constraint is open.
    """
    root = breaker.root or os.getcwd()
    event = Event(
        "before_tool",
        tool=tool,
        command=command_line,
        paths=tuple(name for path in paths for name in in_project(path, root, root)),
        session=session,
    )
    commands = simple_commands(command_line) if command_line else []
    names = violated(breaker.rules.matchers(), event, commands)
    packs = breaker.rules.pack_rules() if command_line else []
    if packs:
        from fusewire.breakers.constraint.packs import broken_rules

        reading = read_command(command_line or "", cwd=os.getcwd(), protected=protected_of(root, breaker.rules))
        names += broken_rules(packs, reading)
    decisions = breaker.enforce(names, event) if names else []
    decision = merge(decisions)
    if as_json:
        print_json({**decision.to_json(), "violations": [one.to_json() for one in decisions]})
        return 0 if decision.allowed else 3
    now = breaker.engine.clock()
    for one in decisions:
        if not one.allowed:
            tell(*message_lines(one, now), fg="red")
        else:
            word = "ALLOWED" if decision.allowed else "ALSO VIOLATED"
            tell(f"{word} {one.circuit}: this is a violation; {one.reason}; {one.state}")
            warn_of(breaker, one)
    if not decisions:
        tell("ALLOWED: no constraint forbids it")
    return 0 if decision.allowed else 3


@click.command("override")
@click.argument("circuit", metavar="ID")
@click.option("--reason", help="Why; kept in the audit trail. Required unless --end.")
@click.option("--for", "duration", default="1h", help="How long, up to 24h (default: 1h).")
@click.option("--end", is_flag=True, help="End an override early.")
@circuit_command
@archiving_retired
def override_command(
    breaker: Breaker, circuit: str, reason: str | None, duration: str, end: bool, as_json: bool
) -> int:
    """Let actions pass an open circuit for a limited time, without closing it: for emergencies, by a person."""
    actor = require_person("`fusewire override`", breaker.root)
    if not end and not (reason and reason.strip()):
        raise click.UsageError("an override needs --reason TEXT")
    try:
        seconds = 0.0 if end else parse_duration(duration)
    except ValueError:
        raise click.UsageError(f"--for {duration!r} is no duration; allowed: 30m, 2h, up to 24h") from None
    if not end and not 0 < seconds <= LONGEST_OVERRIDE:
        raise click.UsageError(f"--for {duration} is refused; allowed: above 0, up to 24h")
    decision = breaker.override(circuit, reason or "ended early", seconds)
    data = {**decision.to_json(), "override_until": breaker.status(circuit).to_json()["override_until"]}
    line = f"overridden for {show_duration(seconds)} by {actor}: {reason}; still {decision.state}"
    return show_result(as_json, data, f"{circuit}: {f'the override is over; {decision.state}' if end else line}")


@click.command("archive")
@click.argument("circuit", metavar="ID")
@project_command
def archive_command(breaker: Breaker, circuit: str, as_json: bool) -> int:
    """Move a constraint's circuit into the archive. For a person; `status: retired` in its file does it, too."""
    from fusewire.breakers.constraint.lifecycle import archive

    actor = require_person("`fusewire archive`", breaker.root)
    if "/" in circuit:
        raise FusewireError(f"only constraints are archived, not {circuit}")
    entry = archive(breaker, circuit, actor=actor)
    if as_json:
        print_json({circuit: entry})
        return 0
    tell(
        f"{circuit}: archived in {ARCHIVE_FILE} ({entry['final_state']}, {entry['total_violations']} violations,"
        f" {entry['total_trips']} trips, {entry['lifetime_days']} days)"
    )
    constraint = breaker.rules.constraints.get(circuit)
    if constraint is not None and not constraint.retired:
        tell(f"{constraint.file} is still active: the next violation starts a new circuit.", err=True)
    return 0


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@project_command
@archiving_retired
def import_command(breaker: Breaker, file: str | None, as_json: bool) -> int:
    """Import circuits from a state file (default: the project's own, after an edit by hand). For a person."""
    from fusewire.breakers.constraint.lifecycle import import_states

    actor = require_person("`fusewire import`", breaker.root)
    path = Path(file) if file else Path(breaker.root or ".") / STATE_FILE
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise FusewireError(f"{path}: it is not UTF-8 text") from None
    taken, problems = import_states(breaker, text, str(file or STATE_FILE), actor=actor)
    warn(*problems)
    if problems and not taken:
        raise FusewireError("nothing was imported")
    lines = [f"{name}: {state}" for name, state in taken.items()] + [f"{len(taken)} circuits imported"]
    data = {"imported": taken, "problems": [str(problem) for problem in problems]}
    return show_result(as_json, data, *lines, code=1 if problems else 0)

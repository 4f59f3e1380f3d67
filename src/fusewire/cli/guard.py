"""`fusewire guard`: ask about a command, see how it is read, and keep copies of the protected files."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.session.halting import lift_guard_halts
from fusewire.cli.common import common_options, named_project, print_json, project_root, rules_of, show_result
from fusewire.cli.streams import hand_over, tell
from fusewire.config.rules import find_project
from fusewire.core.decision import PUBLIC_VERDICT, Decision
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import Breaker
from fusewire.guard.check import check_command, judge_reading, read_command
from fusewire.guard.effects import READ
from fusewire.guard.integrity_check import IntegrityCheck
from fusewire.guard.policy import protected_of
from fusewire.guard.protected import Protected
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN, deactivated
from fusewire.guard.tools import UNATTENDED, check_tool, refuse_question
from fusewire.util.errors import FusewireError, in_a_line
from fusewire.util.quoting import quoted

Done = TypeVar("Done")


@click.group("guard")
def guard_command() -> None:
    """Protected files: what a command would do to them, and copies to restore them from."""


@guard_command.command("check")
@click.option("--command", "command_line", metavar="TEXT", help="A shell command line.")
@click.option("--cwd", type=click.Path(file_okay=False), help="The folder that it would run in (default: this one).")
@click.option("--tool", help="A structured tool, such as Edit; needs --path.")
@click.option("--path", "paths", multiple=True, help="A file that the tool would change (repeat for several).")
@click.option("--batch", is_flag=True, help='Read JSON lines {"cmd", "cwd"} and print one verdict a line.')
@common_options
def check_command_line(
    project: str | None,
    command_line: str | None,
    cwd: str | None,
    tool: str | None,
    paths: tuple[str, ...],
    batch: bool,
    as_json: bool,
) -> int:
    """May a command or a tool call go on? ALLOWED (exit 0) or BLOCKED (exit 3), with what it would change."""
    if (command_line is not None) + (tool is not None) + batch != 1:
        raise click.UsageError("give one of --command TEXT, --tool NAME with --path, or --batch")
    if (tool is None) == bool(paths):
        raise click.UsageError("--tool and --path belong together")
    if batch:
        return _check_batch(project)
    folder = _folder(cwd)
    root = _root(project, folder)
    protected = protected_of(root)
    if tool is not None:
        full = tuple(os.path.join(folder, path) for path in paths)
        decision = check_tool(tool, full, root=root, protected=protected)
        if decision.verdict == "ask":
            decision = refuse_question(decision, UNATTENDED)
    else:
        decision = check_command(command_line or "", cwd=folder, root=root, protected=protected)
    if as_json:
        print_json(_to_json(decision))
    elif decision.allowed:
        tell("ALLOWED: no change to a protected file detected")
        if decision.affected:
            tell(f"It would change {len(decision.affected)}: {', '.join(decision.affected[:10])}")
    else:
        tell(*message_lines(decision), fg="red")
    return 0 if decision.allowed else 3


#: The fields of a decision that concern the guard, in this order (docs/json.md); behind them stands `affected`.
_FIELDS = ("decision", "state", "phase", "rule", "reason", "evidence", "retry_after", "next")


def _to_json(decision: Decision) -> dict[str, object]:
    data = decision.to_json()
    return {**{field: data[field] for field in _FIELDS}, "affected": list(decision.affected)}


def _check_batch(project: str | None) -> int:
    """Print a verdict for every line, in their order; a line that cannot be judged is BLOCKED and an error."""
    code = 0
    known: dict[str, Protected] = {}
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            decision = _check_line(line, project, known)
        except Exception as error:  # a defect of the guard is one line's error, not the end of the batch
            code = 1
            rule, problem = _line_error(error)
            decision = Decision("deny", rule=rule, reason=f"line {number}: {problem}")
            tell(f"Error: {decision.reason}", err=True)
        hand_over(json.dumps(_to_json(decision)))
    return code


def _line_error(error: Exception) -> tuple[str, str]:
    """The rule that denies a line that cannot be judged, and what is wrong with it."""
    if isinstance(error, RecursionError):
        return "guard.input", "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return "guard.input", 'not JSON; an object {"cmd", "cwd"} is expected'
    if isinstance(error, ValueError | FusewireError):
        return "guard.input", str(error)
    return "guard.failure", f"the guard failed: {in_a_line(error)}"


def _check_line(line: str, project: str | None, known: dict[str, Protected]) -> Decision:
    data: Any = json.loads(line)
    if not isinstance(data, dict) or not isinstance(data.get("cmd"), str):
        raise ValueError('an object with a text "cmd" is expected')
    if not isinstance(data.get("cwd", ""), str | None):
        raise ValueError('"cwd" must be a text')
    folder = _folder(data.get("cwd"))
    root = _root(project, folder)
    protected = known.get(root)
    if protected is None:
        protected = known[root] = protected_of(root)
    protected.forget()
    return check_command(data["cmd"], cwd=folder, root=root, protected=protected)


def _folder(cwd: str | None) -> str:
    folder = os.path.abspath(cwd or os.getcwd())
    if not os.path.isdir(folder):
        raise FusewireError(f"no such folder: {cwd}")
    return folder


def _root(project: str | None, folder: str) -> str:
    root = named_project(project) or find_project(folder)
    rules_of(root)
    return root


@guard_command.command("explain")
@click.option("--command", "command_line", metavar="TEXT", required=True, help="A shell command line.")
@click.option("--cwd", type=click.Path(file_okay=False), help="The folder that it would run in (default: this one).")
@common_options
def explain_command(project: str | None, command_line: str, cwd: str | None, as_json: bool) -> int:
    """Show how the guard reads a command line: the commands that it runs, and what each does to files."""
    folder = _folder(cwd)
    root = _root(project, folder)
    protected = protected_of(root)
    reading = read_command(command_line, cwd=folder, protected=protected)
    decision = judge_reading(reading, lists=True)
    commands = [
        {"words": [_shown(word) for word in words], "cwd": _shown(where)}
        for words, where, _ in reading.effects.commands
    ]
    effects = [
        {
            "effect": effect.kind,
            "path": _shown(protected.shown(normal(effect.path))),
            "recursive": effect.recursive,
            "rule": effect.rule,
            "protected": effect.kind != READ and bool(reading.hit(effect)),
        }
        for effect in reading.effects.found
    ]
    lines = ["Commands", *(f"  {' '.join(map(quoted, one['words']))}    (in {one['cwd']})" for one in commands)]
    lines += ["Effects", *([] if effects else ["  none"])]
    for effect in effects:
        mark = "  PROTECTED" if effect["protected"] else ""
        below = " and all below" if effect["recursive"] else ""
        lines.append(f"  {effect['effect']:<7} {effect['path']}{below}  [{effect['rule']}]{mark}")
    lines += [f"  unreadable: {text[:80]}" for text in reading.effects.unreadable]
    lines += ["Verdict", f"  {PUBLIC_VERDICT[decision.verdict]} {decision.rule}".rstrip()]
    data = {"commands": commands, "effects": effects, **_to_json(decision)}
    return show_result(as_json, data, *lines, code=0 if decision.allowed else 3)


def _shown(text: str) -> str:
    return deactivated(text).replace(UNKNOWN, "…")


@guard_command.command("snapshot")
@common_options
def snapshot_command(project: str | None, as_json: bool) -> int:
    """Record every protected file as it is now. For a person: what is damaged now would be recorded as intact."""
    require_person("`fusewire guard snapshot`", project_root(project))
    check = _integrity_check(project)
    taken = _locked(lambda: check.integrity.snapshot(time.time()))
    check.lift()
    with Breaker.open(project=check.root) as breaker:
        lift_guard_halts(breaker.store, time.time())
    skipped = [{"path": path, "reason": reason} for path, reason in taken.skipped]
    data = {"files": taken.files, "bytes": taken.bytes, "changed": taken.changed, "skipped": skipped}
    changed = f"{len(taken.changed)} of them new or changed"
    show_result(as_json, data, f"{taken.files} protected files recorded ({taken.bytes} bytes), {changed}")
    tell(*(f"not kept: {path}: {reason}" for path, reason in taken.skipped), err=True)
    return 0


@guard_command.command("verify")
@common_options
def verify_command(project: str | None, as_json: bool) -> int:
    """Compare the protected files with their last snapshot. Exit 0 if they are intact, 3 if not."""
    integrity = _integrity_check(project).integrity
    if not integrity.exists():
        none = "there is no snapshot yet; take one with: fusewire guard snapshot"
        raise FusewireError(integrity.problem or none)
    findings = integrity.verify()
    bad = [finding for finding in findings if finding.kind != "new"]
    if as_json:
        print_json({"intact": not bad, "findings": [{"kind": one.kind, "path": one.path} for one in findings]})
    else:
        for finding in findings:
            tell(f"{finding.kind:<8} {finding.path}", fg="red" if finding.kind != "new" else None)
        tell("every protected file is as it was" if not bad else "bring them back with: fusewire guard restore")
    return 3 if bad else 0


@guard_command.command("restore")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@common_options
def restore_command(project: str | None, paths: tuple[str, ...], as_json: bool) -> int:
    """Restore protected files from the snapshot; the files that are replaced are kept. For a person.

    Files are recorded before every agent call that may change something. Naming a file that is intact restores the
    version before; the same command again undoes that.
    """
    require_person("`fusewire guard restore`", project_root(project))
    integrity = _integrity_check(project).integrity
    if not integrity.exists():
        raise FusewireError(integrity.problem or "there is no snapshot to restore from")
    chosen = [os.path.abspath(path) for path in paths] or None
    restored = _locked(lambda: integrity.restore(time.time(), chosen))
    failed = [one for one in restored if one.problem]
    lines = [
        f"{one.path}: restored" + (f" (what was there is kept in {one.kept})" if one.kept else "")
        for one in restored
        if not one.problem
    ]
    data = {"restored": [{"path": one.path, "kept": one.kept, "problem": one.problem} for one in restored]}
    show_result(as_json, data, *([] if restored else ["nothing to restore: every protected file is as it was"]), *lines)
    if not as_json:
        tell(*(f"{one.path}: {one.problem}" for one in failed), fg="red", err=True)
    return 1 if failed else 0


def _locked(act: Callable[[], Done]) -> Done:
    try:
        return act()
    except BlockingIOError as error:
        raise FusewireError("another process is writing the snapshot; try again") from error


def _integrity_check(project: str | None) -> IntegrityCheck:
    root = project_root(project)
    return IntegrityCheck(protected_of(root, rules_of(root)))

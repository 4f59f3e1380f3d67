"""`fusewire guard`: ask about a command, see how it is read, and keep copies of the protected files."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.session.halting import lift_guard_halts
from fusewire.cli.common import common_options, named_project, print_json, project_root, rules_of
from fusewire.cli.streams import hand_over, tell
from fusewire.config.rules import find_project
from fusewire.core.decision import PUBLIC_VERDICT, Decision
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import Breaker
from fusewire.guard.check import check_command, judge_reading, read_command
from fusewire.guard.effects import READ
from fusewire.guard.integrity_check import Watch
from fusewire.guard.policy import protected_of
from fusewire.guard.protected import Protected
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN, deactivated
from fusewire.guard.tools import UNATTENDED, check_tool, refuse_question
from fusewire.util.errors import FusewireError, in_a_line
from fusewire.util.quoting import quoted


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
    else:
        _print_decision(decision)
    return 0 if decision.allowed else 3


#: The fields of a decision that concern the guard, in this order (docs/json.md); behind them stands `affected`.
_FIELDS = ("decision", "state", "phase", "rule", "reason", "evidence", "retry_after", "next")


def _to_json(decision: Decision) -> dict[str, object]:
    data = decision.to_json()
    return {**{field: data[field] for field in _FIELDS}, "affected": list(decision.affected)}


def _print_decision(decision: Decision) -> None:
    if not decision.allowed:
        tell(*message_lines(decision), fg="red")
        return
    tell("ALLOWED: no change to a protected file detected")
    if decision.affected:
        tell(f"It would change {len(decision.affected)}: {', '.join(decision.affected[:10])}")


def _check_batch(project: str | None) -> int:
    """One verdict for every line, in their order; a line that makes no sense is BLOCKED and said."""
    wrong = 0
    known: dict[str, Protected] = {}
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            decision = _check_line(line, project, known)
        except Exception as error:  # a defect of ours is one line's error, not the end of the batch
            wrong += 1
            decision, shown = _line_error(number, error)
            tell(f"Error: line {number}: {shown}", err=True)
        hand_over(json.dumps(_to_json(decision)))
    return 1 if wrong else 0


def _line_error(number: int, error: Exception) -> tuple[Decision, str]:
    """A denial of a line that cannot be judged, and what is wrong with it."""
    rule, shown = "guard.input", str(error)
    problem = shown
    if isinstance(error, RecursionError):
        problem = shown = "it is nested too deeply"
    elif isinstance(error, json.JSONDecodeError):
        problem, shown = "not JSON", 'not JSON; an object {"cmd", "cwd"} is expected'
    elif not isinstance(error, ValueError | FusewireError):
        rule, problem = "guard.failure", f"the guard failed: {in_a_line(error)}"
        shown = problem
    return Decision("deny", rule=rule, reason=f"line {number}: {problem}"), shown


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
    """How a command line is read: the commands that it runs, and what each does to files."""
    folder = _folder(cwd)
    root = _root(project, folder)
    protected = protected_of(root)
    reading = read_command(command_line, cwd=folder, protected=protected)
    decision = judge_reading(reading, lists=True)
    commands = [
        {"words": [_shown(word) for word in words], "cwd": _shown(where)} for words, where in reading.effects.commands
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
    if as_json:
        print_json({"commands": commands, "effects": effects, **_to_json(decision)})
    else:
        tell("Commands")
        for one in commands:
            words = " ".join(quoted(word) for word in one["words"])
            tell(f"  {words}    (in {one['cwd']})")
        tell("Effects", *([] if effects else ["  none"]))
        for effect in effects:
            mark = "  PROTECTED" if effect["protected"] else ""
            below = " and all below" if effect["recursive"] else ""
            tell(f"  {effect['effect']:<7} {effect['path']}{below}  [{effect['rule']}]{mark}")
        tell(*(f"  unreadable: {text[:80]}" for text in reading.effects.unreadable))
        tell("Verdict")
        tell(f"  {PUBLIC_VERDICT[decision.verdict]} {decision.rule}".rstrip())
    return 0 if decision.allowed else 3


def _shown(text: str) -> str:
    return deactivated(text).replace(UNKNOWN, "…")


@guard_command.command("snapshot")
@common_options
def snapshot_command(project: str | None, as_json: bool) -> int:
    """Record every protected file as it is now. For a person: what is wrong now would become what is right."""
    require_person("`fusewire guard snapshot`", project_root(project))
    watch = _watch(project)
    taken = _locked(lambda: watch.integrity.snapshot(time.time()))
    watch.lift()
    with Breaker.open(project=watch.root) as breaker:
        lift_guard_halts(breaker.store, time.time())
    if as_json:
        skipped = [{"path": path, "reason": reason} for path, reason in taken.skipped]
        print_json({"files": taken.files, "bytes": taken.bytes, "changed": taken.changed, "skipped": skipped})
        return 0
    tell(f"{taken.files} protected files recorded ({taken.bytes} bytes), {len(taken.changed)} of them new or changed")
    for path, reason in taken.skipped:
        tell(f"not kept: {path}: {reason}", err=True)
    return 0


@guard_command.command("verify")
@common_options
def verify_command(project: str | None, as_json: bool) -> int:
    """Are the protected files what they were when they were last recorded? Exit 0 if so, 3 if one is not."""
    integrity = _watch(project).integrity
    if not integrity.exists():
        if integrity.problem:
            raise FusewireError(integrity.problem)
        raise FusewireError("there is no snapshot yet; take one with: fusewire guard snapshot")
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
    """Bring protected files back as they were recorded; what they replace is kept. For a person.

    They are recorded before every call of an agent that may change something. A file that is named, and is as it was
    recorded, gets the version before that; the same command again takes that back.
    """
    require_person("`fusewire guard restore`", project_root(project))
    integrity = _watch(project).integrity
    if not integrity.exists():
        raise FusewireError(integrity.problem or "there is no snapshot to restore from")
    chosen = [os.path.abspath(path) for path in paths] or None
    restored = _locked(lambda: integrity.restore(time.time(), chosen))
    if as_json:
        print_json({"restored": [{"path": o.path, "kept": o.kept, "problem": o.problem} for o in restored]})
    else:
        for one in restored:
            if one.problem:
                tell(f"{one.path}: {one.problem}", fg="red", err=True)
            else:
                tell(f"{one.path}: restored" + (f" (what was there is kept in {one.kept})" if one.kept else ""))
        if not restored:
            tell("nothing to restore: every protected file is as it was")
    return 1 if any(one.problem for one in restored) else 0


def _locked(act: Any) -> Any:
    try:
        return act()
    except BlockingIOError as error:
        raise FusewireError("another process is writing the snapshot; try again") from error


def _watch(project: str | None) -> Watch:
    root = project_root(project)
    return Watch(protected_of(root, rules_of(root)))

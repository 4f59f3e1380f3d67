"""`fusewire halt`, `resume`, `pause` and `allow-once`: a person stops agents, lets them go on, or softens rules."""

from __future__ import annotations

import difflib
import functools
import time
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import require_person
from fusewire.cli.common import common_options, duration, print_json, project_root, rules_of, show_result
from fusewire.cli.streams import tell, warn
from fusewire.scopes import order_changes as changes
from fusewire.scopes.orders import ALL, PROJECT, SESSION, HaltOrder, OnceAllowed, PauseOrder
from fusewire.util.durations import counted, format_time
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.local_time import local_time
from fusewire.util.text import in_line
from fusewire.util.worktrees import project_key
from fusewire.views.models import to_json
from fusewire.views.orders import orders_view, project_of, whose
from fusewire.views.session_names import SessionNames

if TYPE_CHECKING:
    from fusewire.cli.common import Command
    from fusewire.config.rules import Rules

#: Beginnings of rules that are no circuits.
_OTHER_RULES = ("guard.", "scope.", "budget:")

#: When agents stop, and when the one of a session does.
_STOPS = ("Each stops at its next call, and fusewire run at once.", "It stops at its next call.")


class OrderScope:
    """Whom an order is for."""

    def __init__(self, root: str, everyone: bool, session: str | None, named: bool) -> None:
        if sum((everyone, session is not None, named)) > 1:
            raise click.UsageError("give only one of --all, --project and --session")
        self.root, self.project = root, project_key(root)
        #: whether the command line says whom it is for
        self.is_given = everyone or session is not None or named
        self.scope, self.key = PROJECT, self.project
        if everyone:
            self.scope, self.key = ALL, ""
        elif session is not None:
            self.scope, self.key = SESSION, _session(session, root)

    @property
    def words(self) -> str:
        if self.scope == ALL:
            return "all of your agents"
        if self.scope == SESSION:
            return whose(self.scope, self.key)
        return f"the agents of {self.project}, in all worktrees"

    def fits(self, order: HaltOrder | PauseOrder) -> bool:
        """Whether an order is one of those that are meant: without a scope, whatever holds here."""
        if self.scope == ALL:
            return True
        if self.is_given or order.scope != SESSION:
            return (order.scope, order.key) == (self.scope, self.key) or (order.scope == ALL and not self.is_given)
        return project_of(order.key) in (self.project, "")


def _session(given: str, root: str) -> str:
    """The session with this id, or with the only id that begins so, of all that the person or the project has had."""
    from fusewire.breakers.session.names import session_ids
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=root, read_only=True) as breaker:
        return SessionNames(None, time.time()).resolve(given, session_ids(breaker.store))


def _for_scope(command: Command) -> Command:
    """`--all`, `--session`, `--project` (with or without a folder) and `--json`."""

    @functools.wraps(command)
    def wrapped(everyone: bool, session: str | None, project: str | None, **options: Any) -> Any:
        root = project_root(project or None)
        return command(OrderScope(root, everyone, session, project == ""), **options)

    wrapped = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(wrapped)
    wrapped = click.option(
        "--project",
        type=click.Path(file_okay=False),
        is_flag=False,
        flag_value="",
        metavar="[DIRECTORY]",
        help="The project with all its worktrees: the one here (default), or the one in a folder.",
    )(wrapped)
    wrapped = click.option("--session", metavar="ID", help="One session; the beginning of its id will do.")(wrapped)
    return click.option("--all", "everyone", is_flag=True, help="All of your projects and sessions.")(wrapped)


@click.command("halt")
@click.option("--reason", required=True, help="Why; agents and people are shown it.")
@_for_scope
def halt_command(scope: OrderScope, reason: str, as_json: bool) -> int:
    """Stop agents at their next call, and `fusewire run` at once; none can begin until a person resumes.

    Without a scope: the agents of this project, in all of its worktrees. For a person: refused inside an agent.

    \b
    fusewire halt --reason "the release is being cut"
    fusewire halt --all --reason "going home"
    fusewire halt --session 479528ae --reason "wrong branch"
    """
    by = require_person("`fusewire halt`", scope.root)
    order = HaltOrder(scope.scope, scope.key, changes.person_reason(reason), by, time.time())
    problem = changes.halt(order, scope.root)
    if problem:
        warn(problem)
    return show_result(
        as_json,
        {**_facts(scope), "reason": order.reason, "by": by, "at": format_time(order.at)},
        f"Halted: {scope.words}.",
        f"{_STOPS[scope.scope == SESSION]} To go on: fusewire resume{_as_option(scope)}",
    )


@click.command("resume")
@click.option("--reason", default="", help="Why; kept in the audit trail.")
@_for_scope
def resume_command(scope: OrderScope, reason: str, as_json: bool) -> int:
    """Lift halts: without a scope whatever halts this project, with --all every halt. Refused inside an agent."""
    by = require_person("`fusewire resume`", scope.root)
    lifted = changes.resume(scope.fits, scope.root, " ".join(reason.split()), by, time.time())
    lines = [
        in_line(
            f"Lifted the halt of {whose(one.scope, one.key)} (by {one.by} since {local_time(one.at)}: {one.reason})."
        )
        for one in lifted
    ]
    left = orders_view(None, everything=True).halts
    if not lifted:
        lines.append(
            "Nothing is halted." if not left else f"Nothing is halted here; {counted(len(left), 'halt')} elsewhere:"
        )
    elif left:
        lines.append(f"{counted(len(left), 'halt')} still {'holds' if len(left) == 1 else 'hold'}:")
    lines += [f"  {in_line(one.text)}" for one in left]
    data = {"lifted": [{**vars(one), "at": format_time(one.at)} for one in lifted], "left": to_json(left)}
    return show_result(as_json, data, *lines)


@click.command("pause")
@click.argument("rules", metavar="[RULE]...", nargs=-1)
@click.option("--for", "seconds", type=duration, metavar="DURATION", help="For how long, up to 24h.")
@click.option("--reason", help="Why; kept in the audit trail.")
@click.option("--list", "lists", is_flag=True, help="Show what is paused here.")
@click.option("--end", "ends", is_flag=True, help="Enforce these rules again, or all of them.")
@_for_scope
def pause_command(
    scope: OrderScope,
    rules: tuple[str, ...],
    seconds: float | None,
    reason: str | None,
    lists: bool,
    ends: bool,
    as_json: bool,
) -> int:
    """Let rules only log for a time; without RULE all of them. It ends by itself. Refused inside an agent.

    What a paused rule would have done is recorded as `logged`. What keeps Fusewire itself, and a person's halt, are
    never paused. A RULE is a name such as tool.repetition, a constraint's id, or a pattern such as guard.*

    \b
    fusewire pause tool.repetition --for 1h --reason "the build has to be polled"
    fusewire pause --list
    fusewire pause --end
    """
    if lists + ends + (seconds is not None) > 1 or (lists and rules):
        raise click.UsageError("--for, --list and --end are three commands: give one of them")
    if lists:
        view = orders_view(scope.root, everything=scope.scope == ALL)
        found = [f"{in_line(one.text)}" for one in view.pauses] or ["Nothing is paused here."]
        return show_result(as_json, {"pauses": to_json(view.pauses)}, *found)
    by, now = require_person("`fusewire pause`", scope.root), time.time()
    if ends:
        return _end(scope, rules, by, now, as_json)
    if seconds is None or reason is None:
        raise click.UsageError("say for how long and why: fusewire pause [RULE]... --for 1h --reason TEXT")
    if seconds > changes.LONGEST_PAUSE:
        raise click.UsageError("--for is refused: a pause that nobody remembers guards nothing; allowed: up to 24h")
    known = rules_of(scope.root)
    named = tuple(dict.fromkeys(_rule(one, known) for one in rules)) or ("*",)
    order = PauseOrder(scope.scope, scope.key, named, now + seconds, changes.person_reason(reason), by, now)
    changes.pause(order)
    what = "All rules" if named == ("*",) else ", ".join(named)
    verb = "logs" if len(named) == 1 and named != ("*",) else "log"
    data = {**_facts(scope), "rules": list(named), "until": format_time(order.until), "reason": order.reason, "by": by}
    return show_result(
        as_json,
        data,
        f"{what} only {verb} until {local_time(order.until)}, for {scope.words}.",
        "It ends by itself, or with: fusewire pause --end",
    )


def _end(scope: OrderScope, rules: tuple[str, ...], by: str, now: float, as_json: bool) -> int:
    known = rules_of(scope.root)
    ended = changes.end_pauses([_rule(one, known) for one in rules], scope.fits, by, now)
    line = f"Enforced again: {', '.join('all rules' if one == '*' else one for one in ended)}"
    return show_result(as_json, {"ended": ended}, line if ended else "Nothing of that is paused here.")


@click.command("allow-once")
@click.argument("code", metavar="CODE")
@common_options
def allow_once_command(code: str, project: str | None, as_json: bool) -> int:
    """Let one refused call pass once: CODE is in the message of the refusal, and valid for ten minutes.

    Exactly that call: the same session, tool, arguments and folder, within ten minutes. It is used up by the first.
    What keeps Fusewire itself, money and a person's halt have no such code. Refused inside an agent.
    """
    from fusewire.scopes.once import VALID, find
    from fusewire.scopes.user import open_user_store

    by, now = require_person("`fusewire allow-once`", project_root(project)), time.time()
    code = code.strip().upper()
    facts = find(open_user_store(read_only=True), code, now)
    if not facts:
        raise NotFound(f"no call was refused with the code {in_line(code)!r} in the last {VALID / 60:.0f} minutes")
    until = now + changes.ONCE_FOR
    changes.allow_once(
        OnceAllowed(facts["key"], facts["session"], until, code, by), f"{facts['rule']}: {facts['call']}", now
    )
    if as_json:
        shown = {name: facts[name] for name in ("session", "tool", "call", "cwd", "rule", "reason")}
        print_json({"code": code, **shown, "until": format_time(until), "by": by})
        return 0
    tell(
        f"Allowed once, until {local_time(until)}: {in_line(facts['tool'])} in {in_line(facts['cwd'] or '')}",
        *(f"  {in_line(line)}" for line in facts["call"].split("\n")),
        *(["  ... (there is more of it)"] if facts["cut"] else []),
        f"{facts['rule']} had refused it. Tell the agent of session {facts['session']} to try exactly this call again.",
    )
    return 0


def _rule(given: str, rules: Rules) -> str:
    """A rule as it is written down; one line with the nearest name for one that there is not."""
    from fusewire.core.state import Policy
    from fusewire.util.globs import matches

    if given.startswith("fusewire."):
        raise FusewireError(f"{given} keeps Fusewire itself, and is never paused")
    names = {Policy.from_data(data).name for data in rules.policies.values()} - {"constraint"}
    constraints = {f"constraint:{name}" for name in rules.constraints}
    if f"constraint:{given}" in constraints:
        return f"constraint:{given}"
    known = [*names, *constraints, "guard.integrity", "scope.lock"]
    family = given if given.startswith("constraint:") else given.partition(":")[0]
    if given == "*" or given.startswith(_OTHER_RULES) or any(matches(name, family) for name in known):
        return given
    near = difflib.get_close_matches(given, [*known, *rules.constraints, "guard.*", "scope.*"], n=1)
    hint = f"did you mean {near[0]}?" if near else "see: fusewire status --all"
    raise NotFound(f"no such rule: {in_line(given)}; {hint}")


def _as_option(scope: OrderScope) -> str:
    return f" --session {scope.key[:8]}" if scope.scope == SESSION else ""


def _facts(scope: OrderScope) -> dict[str, Any]:
    return {
        "scope": scope.scope,
        "project": scope.project if scope.scope == PROJECT else None,
        "session": scope.key if scope.scope == SESSION else None,
    }

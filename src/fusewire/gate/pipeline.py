"""Decide about one event: a list of steps, each of which may say something, and the strictest of them wins.

Once a step has refused, only the session is asked, which counts the refusal. Only what an event needs is loaded: most
calls touch no rule, and a process is started for each of them.
"""

from __future__ import annotations

import os

from fusewire.breakers.session.opening import PATIENCE, quick_store
from fusewire.config.rules import PHASE_FILE, has_constraints, load_rules
from fusewire.core.decision import Decision, strictest
from fusewire.core.events import changes_files
from fusewire.guard.plain import names_us
from fusewire.scopes.orders import halt_of
from fusewire.util.errors import in_a_line, is_broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fusewire.core.events import Event
    from fusewire.gate.context import Context

    Step = Callable[[Event, Any], Decision | None]

#: See `fusewire.guard.sandbox.active`, which needs not be loaded where no wrapper is registered.
_PREFIX = "CLAUDE_CODE_SHELL_PREFIX"

#: When protected files are compared, beside the calls.
_MOMENTS = ("prompt", "relayed", "notice", "stop", "session_start", "session_end")

#: Moments of a session that the person's store hears of; none is on the way of a call.
_REGISTERED = ("session_start", "prompt", "relayed", "stop", "session_end")

_ALLOWED = Decision("allow")


def decide(event: Event, context: Context, steps: Sequence[Step] = ()) -> Decision:
    """Ask the steps in the order of their weight; the last one counts what the others have decided."""
    steps = steps or PIPELINE
    if event.kind == "prompt" and context.is_nested:
        if event.agent == "claude" and context.is_by_http:
            return _ALLOWED  # what a person types goes to a process; a made-up prompt resets no counts
        # The prompt comes from the parent, which may be an agent: it lifts nothing.
        event = event.replace(kind="relayed", text="")
    ordered = halted_by_person(event, context)
    if ordered is not None and ordered.verdict == "halt" and event.kind != "after_tool":
        return ordered
    budgeted = budgets(event, context) if context.rules.budgets else None
    if budgeted is not None and budgeted.verdict == "halt":
        return budgeted
    context.logged += budgeted.logged if budgeted is not None else ()
    for first in (nesting, registration):
        decision = first(event, context)
        if decision is not None:
            return decision  # of another kind than what a session counts
    if event.kind == "config_change":
        return _ALLOWED
    if event.kind == "api_error":
        return _note_error(event, context)
    found = [decision for decision in (ordered, budgeted) if decision is not None]
    context.earlier = found
    if event.kind == "before_tool" and context.orders.may_allow(event.session):
        from fusewire.gate.allowed_once import may_pass, soften

        if may_pass(event, context):
            soften(context.rules)
    for step in steps:
        counts = step is steps[-1]
        if context.refusal is not None and not counts:
            continue
        decision = step(event, context)
        if decision is not None and not counts and context.rules.modes:
            decision = _as_set(decision, event, context)
        if decision is not None:
            found.append(decision)
            if decision.verdict in ("deny", "halt"):
                context.refusal = context.refusal or decision
    return strictest(found) or _ALLOWED


def _as_set(decision: Decision, event: Event, context: Context) -> Decision | None:
    """The decision as far as the rule's mode lets it speak; nobody switches off what keeps the breaker itself."""
    if decision.rule.startswith("fusewire."):
        return decision
    heard = context.rules.as_set(decision)
    if heard is decision:
        return decision
    if event.kind == "before_tool" and decision.rule.startswith("guard."):
        from fusewire.guard.own_files import check_own_files

        kept = check_own_files(event, context.changed, context.root, context.rules)
        if kept is not None:
            return kept
    context.logged += heard.logged
    return None


def halted_by_person(event: Event, context: Context) -> Decision | None:
    """Stop every agent in the scope of a person's halt; a file of orders that cannot be read is told."""
    orders = context.orders
    if not orders.damage and (not orders.halts or halt_of(orders, context.root, event.session) is None):
        return None
    from fusewire.breakers.session.ordered import answer

    return answer(event, orders, context.root, lambda: context.store)


def budgets(event: Event, context: Context) -> Decision | None:
    """Stop an agent whose budget is used up, of whatever it is for; tell one that is near to that."""
    from time import time

    from fusewire.breakers.session.budgeted import answer
    from fusewire.util.worktrees import branch_of

    branch, task = branch_of(context.root), context.find_task()
    return answer(event, context.store, context.rules, context.root, branch, task, time())


def nesting(event: Event, context: Context) -> Decision | None:
    """SessionHalt an agent that was started by too many agents, one by another."""
    if event.kind != "before_tool" or not context.is_nested:
        return None
    from fusewire.breakers.session.nesting import BY_A_PERSON, NEXT, RULE, depth, too_deep

    reason = too_deep(depth(context.environment), context.rules.tool)
    return Decision("halt", rule=RULE, reason=reason, next=NEXT, by_person=(BY_A_PERSON,)) if reason else None


def registration(event: Event, context: Context) -> Decision | None:
    """Refuse a change of settings that would take our hook out of them."""
    if event.kind != "config_change":
        return None
    from fusewire.breakers.session.registration import refusal

    text = refusal(context.store, event.session, event.paths[0])
    return Decision("deny", rule="fusewire.disarm", text=text) if text else None


def tampering(event: Event, context: Context) -> Decision | None:
    """Refuse what would disarm the breaker."""
    if event.kind != "before_tool":
        return None
    if event.agent and event.command:
        from fusewire.agents import agent_named

        unseen = agent_named(event.agent).check_unseen(event.command, context.read_commands)
        if unseen is not None:
            return unseen
    if not _needs_reading(event, context):
        return None
    from fusewire.guard.tampering import check_tampering

    return check_tampering(event, context.read_commands(), context.changed, context.root)


def guard(event: Event, context: Context) -> Decision | None:
    """Refuse or ask about what would change a protected file."""
    if event.kind != "before_tool" or not _needs_reading(event, context):
        return None
    reading, decision = context.reading, None
    context.looks = reading is not None
    if reading is not None:
        from fusewire.guard.check import judge_reading
        from fusewire.guard.shell.commands import only_looks

        decision = judge_reading(reading, kernel_decides=lambda: _kernel_decides(event, context))
        if decision.verdict == "deny":
            context.looks = False
            return decision
        context.looks = only_looks(event.command or "")
    if context.changed or not event.command:
        from fusewire.guard.tools import check_tool, refuse_question

        context.looks = False
        decision = check_tool(
            event.tool, context.changed, root=context.root, protected=context.protected, change=event.change
        )
        if decision.verdict == "ask" and context.cannot_ask:
            decision = refuse_question(decision, context.cannot_ask)
    if reading is not None and (decision is None or decision.verdict != "deny"):
        from fusewire.guard.tampering import check_inner_commands

        decision = check_inner_commands(event, reading) or decision
    return decision if decision is not None and decision.verdict != "allow" else None


def scope(event: Event, context: Context) -> Decision | None:
    """Refuse a change outside of the scope of an active slice."""
    if event.kind != "before_tool" or context.looks or not _needs_reading(event, context) or not context.is_scoped:
        return None
    from fusewire.breakers.attempt.scope.in_hook import check_scope

    changed = tuple(os.path.join(context.root, path) for path in context.changed)
    return check_scope(event, changed, context.reading, context.home, PATIENCE)


def integrity(event: Event, context: Context) -> Decision | None:
    """Compare the protected files with what was recorded of them."""
    root, rules = context.root, context.rules
    if event.kind == "before_tool":
        if context.looks:
            return None
        from fusewire.guard.around_calls import before_call

        softened = rules.is_softened("guard.integrity")
        return before_call(
            event, root, rules, context.changed, renews=not context.is_by_http, patience=PATIENCE, softened=softened
        )
    if not (event.kind in _MOMENTS and not context.is_by_http) and (event.kind != "after_tool" or context.looks):
        return None
    from fusewire.guard.around_calls import after_event

    decision = after_event(event, root, rules, PATIENCE)
    if decision is not None and decision.verdict == "allow":
        context.logged += decision.logged
        decision = None
    if event.kind == "after_tool" and context.environment.get(_PREFIX):
        return strictest((decision, _explain_kernel(event, context)))
    return decision


def constraints(event: Event, context: Context) -> Decision | None:
    """Refuse or count what a constraint of the project forbids."""
    if event.kind != "before_tool" or not has_constraints(context.root):
        return None
    from fusewire.breakers.constraint.detect import archive_retired_constraints, enforce

    if context.rules.just_compiled:
        archive_retired_constraints(context.root, PATIENCE)
    names = broken_constraints(event, context)
    if not names:
        return None
    return enforce(names, event, context.store, context.rules, context.root, context.cannot_ask)


def broken_constraints(event: Event, context: Context) -> list[str]:
    """The constraints, and rules of packs, that a call breaks."""
    from fusewire.breakers.constraint.detect import may_break, violated

    inner = context.reading.commands() if context.was_read and context.reading is not None else ()
    names = violated(context.rules.matchers(), event, [*context.commands, *inner])
    packs = context.rules.pack_rules() if event.command else []
    if packs and may_break(packs, context.plain) and context.reading is not None:
        from fusewire.breakers.constraint.packs import broken_rules

        names += broken_rules(packs, context.reading)
    return names


def in_progress(event: Event, context: Context) -> Decision | None:
    """Ask the work in progress here: a slice, a phase, a loop of a stop hook. It fails open."""
    if event.kind == "before_tool" and context.looks:
        return None
    is_any = context.is_scoped or os.path.lexists(os.path.join(context.home, PHASE_FILE))
    if not is_any and event.kind not in ("stop", "prompt", "session_end"):
        return None
    from fusewire.gate.in_progress import check

    commands = context.commands if event.kind == "before_tool" else context.plain
    try:
        return check(event, commands, context.home, context.environment)
    except Exception as error:
        if is_broken(error):
            raise
        return Decision("allow", remarks=(f"fusewire: what is under way here cannot be told: {in_a_line(error)}",))


def session(event: Event, context: Context) -> Decision | None:
    """Count the call in its session. If that fails, the call passes, and the person gets a message."""
    refused_by, told = "", None
    if context.refusal is not None and event.kind == "before_tool":
        refused_by = context.refusal.rule
    elif context.refusal is not None and context.refusal.verdict == "halt":
        _halt_session(event, context)
        return None
    if event.kind == "stop" and event.text == "again" and _brought_progress(event, context.home):
        from fusewire.breakers.session.lifecycle import PROGRESS

        event = event.replace(text=PROGRESS)
    commands = context.commands if event.kind == "before_tool" else context.plain
    from fusewire.breakers.session.tool_calls import ToolCallBreakers
    from fusewire.util.errors import StoreError

    if event.kind in _REGISTERED:
        import time

        from fusewire.scopes.register import note_event

        note_event(event, context.root, time.time())
        told = _provider(event, context)
    breakers = ToolCallBreakers(
        context.store,
        context.rules,
        root=context.root,
        is_attended=context.is_attended,
        asks=context.asks,
        task=context.run or context.find_task,
    )
    try:
        decision = breakers.handle(
            event, commands, looks=context.looks, refused_by=refused_by, logged=context.logged, earlier=context.earlier
        )
        begun = _begin_session(event, context) if event.kind == "session_start" else None
        return strictest((begun, decision, told))
    except Exception as error:  # they fail open; the guard and the constraints have spoken already
        if is_broken(error):
            raise
        if not os.path.isdir(context.root):
            gone = f"fusewire: {context.root} is gone, so that nothing is counted, and no rule of that project is known"
            return Decision("allow", remarks=(gone,))
        from fusewire.breakers.session import late

        text = str(error).replace("\n", " ") if isinstance(error, StoreError) else in_a_line(error)
        text = f"fusewire: the breakers of this session are out of order: {text}"
        return late.answer(breakers, event, commands, context.looks, refused_by, text, context.earlier)


#: From the weightiest on; each is `(event, context) -> Decision | None`.
PIPELINE = (tampering, guard, scope, integrity, constraints, in_progress, session)


def _needs_reading(event: Event, context: Context) -> bool:
    """Whether the call has to be read for what it does to files and to us; nearly always it has not."""
    return context.plain is None or changes_files(event.tool) or names_us(event.command or "")


def _kernel_decides(event: Event, context: Context) -> bool:
    """Whether this command will run with protected files read-only, so that the kernel decides what is in doubt."""
    if not context.environment.get(_PREFIX):
        return False
    from fusewire.guard.sandbox.active import active
    from fusewire.guard.sandbox.lines import INSIDE, share

    inside = share(event.command or "", context.rules.sandbox[1]) == INSIDE
    return inside and active(context.environment, context.root)


def _explain_kernel(event: Event, context: Context) -> Decision | None:
    """Tell why a command has failed: what it printed names a file, but not the reason."""
    from fusewire.guard.sandbox.active import active
    from fusewire.guard.sandbox.reasons import explain, may_explain

    if not may_explain(event) or not active(context.environment, context.root):
        return None
    from fusewire.guard.policy import protected_of

    return explain(event, protected_of(context.root, context.rules), context.rules.sandbox[1])


def _brought_progress(event: Event, home: str) -> bool:
    """Whether a stop hook's loop gets somewhere; its memory lies with the project that the command line finds."""
    from fusewire.breakers.loop.stop_hook import brought_progress

    try:
        return brought_progress(quick_store(home, load_rules(home)), event.session)
    except Exception as error:
        if is_broken(error):
            raise
        return False


def _begin_session(event: Event, context: Context) -> Decision | None:
    """Brief the agent on what is open here, and tell the person what is wrong."""
    import time

    from fusewire.breakers.session.briefing import for_agent
    from fusewire.breakers.session.start import begin

    store, root, rules = context.store, context.root, context.rules
    remark = begin(store, root, rules, event, context.environment, time.time())
    briefing = for_agent(store, root, rules, context.home, event.session)
    if not briefing and not remark:
        return None
    return Decision("tell" if briefing else "allow", reason=briefing, remarks=(remark,) if remark else ())


def _halt_session(event: Event, context: Context) -> None:
    """Give every agent of the session the same answer from now on, until a person speaks."""
    import time

    from fusewire.breakers.session.state import SessionHalt
    from fusewire.core.messages import agent_message

    assert context.refusal is not None
    now = time.time()
    text = agent_message(context.refusal, now)
    _amend(event, context, now, halted=SessionHalt(context.refusal.rule, text, at=now))


def _note_error(event: Event, context: Context) -> Decision:
    """Note that a turn has ended with an error of the provider: nothing can be answered there."""
    if not context.is_by_http:
        import time

        from fusewire.breakers.session.provider import note_error

        note_error(event, context.root, context.environment, context.rules, time.time())
    return _ALLOWED


def _provider(event: Event, context: Context) -> Decision | None:
    """What a person should know of the provider; an agent that another one has started has nobody to tell."""
    if context.is_by_http or (context.is_nested and event.kind != "stop"):
        return None
    from fusewire.scopes.user import is_any_limited

    if not is_any_limited() and not (event.kind == "stop" and event.agent and _notes_limits(event.agent)):
        return None
    import time

    from fusewire.breakers.session.provider import at_moment

    return at_moment(event, context.root, context.environment, context.rules, time.time())


def _notes_limits(agent: str) -> bool:
    from fusewire.agents import agent_named

    return agent_named(agent).NOTES_LIMITS


def keep_for_later(event: Event, context: Context, text: str) -> None:
    """Keep a message that the agent cannot receive now for the result of its call."""
    import time

    _amend(event, context, time.time(), untold=text)


def _amend(event: Event, context: Context, now: float, **parts: Any) -> None:
    """Change what is remembered of the session, if possible: what has been decided is answered all the same."""
    from fusewire.breakers.session.state import amend, session_name
    from fusewire.util.errors import StoreError

    try:
        amend(context.store, session_name(event.session or "none"), now, **parts)
    except (StoreError, OSError):
        pass

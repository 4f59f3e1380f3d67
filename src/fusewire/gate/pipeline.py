"""What the rules say to one event, whoever the agent is: allow, tell, deny, halt or end, and the words.

In the order of their weight: an agent may not disarm its own breaker; protected files; the scope of a slice;
constraints; what is under way in the project; and what the calls of the session add up to. Only what an event needs is
loaded: most calls touch no rule, and a process is started for each of them.
"""

from __future__ import annotations

import os

from fusewire.breakers.session.opening import PATIENCE, quick_store
from fusewire.config.rules import PHASE_FILE, SCOPE_FILE, find_project, has_constraints, load_rules
from fusewire.core.decision import stricter
from fusewire.util.errors import in_a_line, is_broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.guard.check import Reading
    from fusewire.guard.protected import Protected
    from fusewire.guard.verdict import Verdict

#: What a line has in it that may disarm us: the program, its hook, or an agent that could be started without it.
_OURS = ("fusewire", "hook.py", "claude", "codex", "copilot", "gemini")

#: Programs that could remove us from an environment that we share with the project.
_MANAGERS = frozenset("uv pip pip-sync poetry pdm pipenv pipx conda mamba micromamba virtualenv".split())

#: See `fusewire.guard.sandbox.active`, which needs not be loaded where no wrapper is registered.
_PREFIX = "CLAUDE_CODE_SHELL_PREFIX"

#: When protected files are compared, beside the calls.
_MOMENTS = ("prompt", "relayed", "notice", "stop", "session_start", "session_end")

#: See `fusewire.breakers.session.nesting`, which most calls need not load.
_BY_HTTP = "0"


def decide(event: Event, root: str, start: str, environment: Any) -> tuple[str, str]:
    """Rules in the order of their weight: no disarming, guard, scope, constraints; then what the session adds up to."""
    from fusewire.core.events import changes_files
    from fusewire.guard.plain import only_look, plain_commands

    plain = plain_commands(event.command) if event.command else []
    changed = event.paths if changes_files(event.tool) else ()
    # A skill may have commands in it that its program runs by itself: only what they have done can be seen.
    opaque = changes_files(event.tool) or event.tool == "Skill"
    looks = plain is not None and not opaque and only_look(plain)
    by_http = environment.get("FUSEWIRE_DEPTH") == _BY_HTTP
    if event.kind == "before_tool":
        rules = load_rules(root, keeps=True)
        if environment.get("FUSEWIRE_DEPTH"):
            from fusewire.breakers.session.nesting import refusal

            too_deep = refusal(environment, rules.tool)
            if too_deep:
                return "halt", too_deep
        action, text, commands, looks = _before(event, root, start, rules, plain, changed, looks, by_http, environment)
        if action in ("allow", "tell", "ask") and not looks:
            action, text = stricter((action, text), _under_way(event, commands, _home(root, start), environment))
        # The first line of a refusal is its verdict and its rule: who refuses the same again and again, halts.
        refused_by = text.partition(": ")[0].partition(" ")[2] if action in ("deny", "halt") else ""
        told = _in_session(event, root, rules, commands, looks, refused_by, environment)
        return stricter((action, text), told)
    rules = load_rules(root, keeps=True)
    if event.kind == "config_change":
        return _settings_changed(event, root, rules)
    action, text = "allow", ""
    if event.kind == "prompt" and event.agent == "claude" and by_http:
        return "allow", ""  # what a person types goes to a process; no counts begin anew by what was made up
    if event.kind == "prompt" and environment.get("FUSEWIRE_DEPTH"):
        # Words of whoever started this agent, which may be an agent: they lift nothing.
        event = event.replace(kind="relayed", text="")
    if (event.kind in _MOMENTS and not by_http) or (event.kind == "after_tool" and not looks):
        action, text = _afterwards(event, root, rules)
        if event.kind == "after_tool" and environment.get(_PREFIX):
            action, text = stricter((action, text), _stopped_by_kernel(event, root, rules, environment))
    if action == "halt":
        _halt_session(event, root, rules, text)
        return action, text
    home = _home(root, start)
    told = _under_way(event, plain, home, environment)
    if told[0] == "halt":
        _halt_session(event, root, rules, told[1])
        return told
    action, text = stricter((action, text), told)
    if event.kind == "stop" and event.text == "again" and _brought_progress(event, home):
        from fusewire.breakers.session.lifecycle import PROGRESS

        event = event.replace(text=PROGRESS)
    told = _in_session(event, root, rules, plain, looks, "", environment, home)
    return stricter((action, text), told)


def _home(root: str, start: str) -> str:
    """The project that the command line finds where the agent was started: what people begin there lies in it."""
    return root if root == start else find_project(start)


def _before(
    event: Event,
    root: str,
    start: str,
    rules: Rules,
    plain: list[list[str]] | None,
    changed: tuple[str, ...],
    looks: bool,
    by_http: bool,
    environment: Any,
) -> tuple[str, str, list[list[str]], bool]:
    """What the rules that look at one call say: an action, its words, what would be run, whether that only looks."""
    from fusewire.breakers.constraint.detect import violated
    from fusewire.core.events import changes_files

    commands, read, reading, question = plain, None, None, ""
    if event.agent == "codex" and event.command:
        from fusewire.agents.codex.interactive import may_be_unseen, unseen

        if may_be_unseen(event.command):
            read = _read(event.command)
            act = unseen(event.command, read)
            if act:
                return "deny", f"BLOCKED fusewire.unseen: {act}", commands or [], False
    constrained = has_constraints(root)
    if commands is None or changes_files(event.tool) or _speaks_of_us(event.command or ""):
        from fusewire.guard.tampering import disarming

        commands = read if read is not None else _read(event.command) if event.command else []
        act = disarming(event, commands, changed, _changes_table(event, changed, root))
        if act:
            text = f"BLOCKED fusewire.disarm: {act}.\nNext: go on without it, or ask the user to run it."
            return "deny", text, commands, False
        act = _uninstalls(event, commands, root)
        if act:
            return "deny", f"BLOCKED fusewire.disarm: {act}", commands, False
        verdict, looks, reading = _guarded(event, changed, root, rules, start, environment)
        refusal = "" if verdict.allowed else verdict.message()
        question = verdict.message() if verdict.decision == "ASK" else ""
        if not refusal and reading is not None:
            refusal = _disarmed_inside(event, reading)
        if not refusal and not looks:
            refusal = _out_of_scope(event, changed, reading, root, start)
        if refusal:
            return "deny", refusal, commands, looks
    if not looks:
        halted = _begin(event, root, rules, changed, by_http)
        if halted:
            return "halt", halted, commands, looks
    asked = ("ask", question) if question else ("allow", "")
    if not constrained:
        return *asked, commands, looks
    if rules.just_compiled:
        _archive_retired(root)
    names = violated(rules.matchers(), event, [*commands, *(reading.commands() if reading is not None else ())])
    action, text = stricter(asked, _enforce(names, event, root, rules) if names else ("allow", ""))
    return action, text, commands, looks


def _disarmed_inside(event: Event, reading: Reading) -> str:
    """Why what scripts, recipes and aliases of the line would run is refused; the line itself was looked at."""
    from fusewire.guard.tampering import disarming, removes_state

    inside = [words for words in reading.commands() if any(map(_speaks_of_us, words))]
    act = disarming(event, inside, ()) or next(filter(None, map(removes_state, inside)), "")
    return f"BLOCKED fusewire.disarm: {act}.\nNext: go on without it, or ask the user to run it." if act else ""


def _speaks_of_us(line: str) -> bool:
    return any(name in line for name in _OURS)


def _uninstalls(event: Event, commands: list[list[str]], root: str) -> str:
    """What would take us out of the environment that we run from, and what to do instead."""
    if not any(
        words[0].rsplit("/", 1)[-1].rstrip("0123456789.") in _MANAGERS or "-m" in words for words in commands if words
    ):
        return ""
    from fusewire.guard.uninstalling import removal

    act, instead = removal(commands, event.command or "", event.cwd or root)
    own = "ask the user to give Fusewire an environment of its own (uv tool install fusewire)"
    return f"{act}.\nNext: {instead}; or {own}." if act else ""


def _read(line: str) -> list[list[str]]:
    from fusewire.guard.shell.commands import simple_commands

    return simple_commands(line)


def _changes_table(event: Event, changed: tuple[str, ...], root: str) -> bool | None:
    """Whether an edit of `pyproject.toml` would change our table in it; None if it is no such edit, or a new file."""
    path = next((path for path in changed if os.path.basename(path) == "pyproject.toml"), None)
    if path is None:
        return None
    from fusewire.util.files import read_regular

    try:
        text = read_regular(os.path.join(root, path), 1 << 20).decode("utf-8", "replace")
    except OSError:
        return None
    from fusewire.config.pyproject_table import changes_table

    return changes_table(event, text)


def _guarded(
    event: Event, changed: tuple[str, ...], root: str, rules: Rules, start: str, environment: Any
) -> tuple[Verdict, bool, Reading | None]:
    """What the guard says of this call, whether the call only looks, and how its command was read."""
    from fusewire.guard.policy import below, protected_of

    moving = below(root, start) if root != start else ()
    protected = protected_of(root, rules, (*_records(event), *moving))
    looks = True
    reading = None
    if event.command:
        from fusewire.guard.check import read_command, verdict_of
        from fusewire.guard.shell.commands import only_looks

        scoped = os.path.lexists(os.path.join(_home(root, start), SCOPE_FILE))
        reading = read_command(event.command, cwd=event.cwd or root, protected=protected, lists=scoped)
        verdict = verdict_of(reading)
        if not verdict.allowed and environment.get(_PREFIX) and _holds(event, root, rules, environment):
            verdict = verdict_of(reading, kernel=True)
        if not verdict.allowed:
            return verdict, False, reading
        looks = only_looks(event.command)
    if changed or not event.command:
        from fusewire.guard.tools import check_tool, is_attended

        verdict = check_tool(
            event.tool,
            changed,
            root=root,
            protected=protected,
            change=event.change,
            attended=is_attended(environment),
        )
        looks = False
    return verdict, looks, reading


def _holds(event: Event, root: str, rules: Rules, environment: Any) -> bool:
    """Whether this command will run with protected files read-only, so that the kernel decides what is in doubt."""
    from fusewire.guard.sandbox.active import active
    from fusewire.guard.sandbox.lines import INSIDE, share

    inside = share(event.command or "", rules.sandbox[1]) == INSIDE
    return inside and active(environment, root)


def _stopped_by_kernel(event: Event, root: str, rules: Rules, environment: Any) -> tuple[str, str]:
    """Why a command has failed: what it printed names a file, but not the reason."""
    from fusewire.guard.sandbox.active import active
    from fusewire.guard.sandbox.reasons import explain, may_explain

    if not may_explain(event) or not active(environment, root):
        return "allow", ""
    from fusewire.guard.policy import protected_of

    text = explain(event, protected_of(root, rules), rules.sandbox[1])
    return ("tell", text) if text else ("allow", "")


def _records(event: Event) -> tuple[str, ...]:
    """What the agent's own program writes down of the session: what it costs is read there."""
    path = event.transcript
    if not path or not os.path.isabs(path) or not path.endswith(".jsonl"):
        return ()
    # Helpers have a folder of their own: named like the file, or after the session.
    folder = os.path.join(os.path.dirname(path), event.session) if event.session else path.removesuffix(".jsonl")
    return (path, f"{path.removesuffix('.jsonl')}/", f"{folder}/")


def _out_of_scope(event: Event, changed: tuple[str, ...], reading: Reading | None, root: str, start: str) -> str:
    """Why the scope lock refuses this call. Slices are begun on the command line, in the project that it finds."""
    home = _home(root, start)
    if not os.path.lexists(os.path.join(home, SCOPE_FILE)):
        return ""
    from fusewire.breakers.attempt.scope.in_hook import refusal

    return refusal(event, tuple(os.path.join(root, path) for path in changed), reading, home, PATIENCE)


def _begin(event: Event, root: str, rules: Rules, changed: tuple[str, ...], by_http: bool) -> str:
    """A call that may change files: what they are now is on record before it. Why the session is halted, if it is.

    An agent can make up events over HTTP: they make nothing right.
    """
    from fusewire.guard.baseline import is_unchanged, rules_key
    from fusewire.guard.calls import folder_of, halted, start_call

    try:
        if not os.path.isdir(root):
            return ""
        folder = folder_of(root, make=True)
        text = halted(root, event.session)
        if not text and not by_http and not is_unchanged(folder, root, rules_key(rules)):
            import time

            from fusewire.guard.integrity_check import Watch
            from fusewire.guard.policy import protected_of

            watch = Watch(protected_of(root, rules), rules)
            answer, text = watch.renew(time.time())
            if answer == "halt":
                watch.halt(event.session, text)
                _notice(root, text)
            text = text if answer == "halt" else ""
        if not text:
            start_call(folder, root, event, changed)
        return text
    except OSError:
        return ""  # the guard itself has said yes; only its backstop is out of order, and afterwards it says so


def _enforce(names: list[str], event: Event, root: str, rules: Rules) -> tuple[str, str]:
    """A constraint forbids this: its circuit decides whether it is refused or passes and is counted."""
    import time

    from fusewire.core.decision import merge
    from fusewire.core.messages import message
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import StoreError

    try:
        store = quick_store(root, rules)
        store.verifies = True  # a forbidden call is rare, and may take longer
        breaker = Breaker(store, rules, time.time, root)
        decisions = breaker.enforce(names, event)
    except StoreError as error:
        return "deny", (
            f"BLOCKED constraint:{names[0]}: this is forbidden, and the state of its circuit cannot be used"
            f" ({error}).\nNext: do it in a way that keeps to the constraint. A person can run: fusewire doctor"
        )
    decision = merge(decisions)
    now = breaker.engine.clock()
    if not decision.allowed:
        return "deny", "\n".join(message(one, now) for one in decisions if not one.allowed)
    told = []
    for one in decisions:
        constraint = rules.constraints[one.circuit]
        title = f"{constraint.title} ({constraint.file})" if constraint.title else constraint.file
        told.append(f"This call breaks a constraint of the project: {title}\n{message(one, now)}")
    return "tell", "\n".join(told)


def _archive_retired(root: str) -> None:
    """The constraints' files have changed: one of them may have been retired."""
    from fusewire.breakers.constraint.lifecycle import archive_retired
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import FusewireError

    try:
        archive_retired(Breaker.open(project=root, patience=PATIENCE))
    except (FusewireError, OSError):
        pass  # no reason to refuse a call; the next command of a person will say it


def _afterwards(event: Event, root: str, rules: Rules) -> tuple[str, str]:
    """What was done is compared with what was there; at other moments, what background commands have removed."""
    import time

    from fusewire.guard.baseline import is_unchanged, rules_key
    from fusewire.guard.calls import end_call, end_jobs, end_turn, folder_of, forget, moved_to

    try:
        folder, now = folder_of(root), time.time()
        if event.kind == "prompt":
            forget(root, "halt")
        if not os.path.isdir(root):
            return moved_to(root, folder) if event.kind == "after_tool" else ("allow", "")
        if not os.path.isdir(folder):
            return "allow", ""
        windows = end_call(folder, event) if event.kind == "after_tool" else []
        end_turn(folder, event)
        answer, text = "", ""
        if not is_unchanged(folder, root, rules_key(rules)):
            answer, text = _compare(event, root, rules, windows, now)
        if event.kind != "after_tool":
            end_jobs(folder, event)
    except OSError as error:
        return "tell", f"fusewire: the protected files cannot be compared: {error}"
    if answer == "halt":
        _notice(root, text)
    if event.kind in ("after_tool", "stop"):
        return (answer, text) if answer else ("allow", "")
    return ("tell", text) if answer else ("allow", "")  # a person is there, and nothing is running that could be halted


def _compare(event: Event, root: str, rules: Rules, windows: list[Any], now: float) -> tuple[str, str]:
    from fusewire.core.events import changes_files
    from fusewire.guard.integrity_check import Watch
    from fusewire.guard.policy import protected_of

    watch = Watch(protected_of(root, rules), rules)
    if event.kind == "after_tool":
        permitted = _permitted(event, watch.protected) if changes_files(event.tool) and not event.failed else []
        cause = event.described() or event.tool
        answer, text = watch.after(cause, now, windows=windows, permitted=permitted, took=event.took)
    elif watch.integrity.exists():
        answer, text = watch.renew(now)
    else:
        answer, text = "", ""
    if answer == "halt" and event.kind in ("after_tool", "stop"):
        watch.halt(event.session, text)
    return answer, text


def _permitted(event: Event, protected: Protected) -> list[str]:
    """What the tool may update: that it got as far as something else is only said."""
    from fusewire.guard.tools import check_tool

    tool, root = event.tool or "", protected.root
    # What needed a person's consent has it: the call would not have run without.
    return [
        path for path in event.paths if check_tool(tool, (path,), root=root, protected=protected, attended=True).allowed
    ]


def _notice(root: str, text: str) -> None:
    """A person sees it in `status` and `doctor` until it is acknowledged."""
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import FusewireError

    try:
        with Breaker.open(project=root, patience=PATIENCE) as breaker, breaker.store.transact() as transaction:
            transaction.notice(text.partition("\n")[0], breaker.engine.clock())
    except (FusewireError, OSError):
        pass  # the agent is halted all the same


def _settings_changed(event: Event, root: str, rules: Rules) -> tuple[str, str]:
    from fusewire.breakers.session.registration import refusal

    text = refusal(quick_store(root, rules), event.session, event.paths[0])
    return ("deny", text) if text else ("allow", "")


def _under_way(event: Event, commands: list[list[str]] | None, home: str, environment: Any) -> tuple[str, str]:
    """What somebody has begun here says to it: a slice, a phase, a loop of a stop hook. It fails open."""
    begun = any(os.path.lexists(os.path.join(home, name)) for name in (SCOPE_FILE, PHASE_FILE))
    if not begun and event.kind not in ("stop", "prompt", "session_end"):
        return "allow", ""
    from fusewire.gate.in_progress import look

    try:
        return look(event, commands, home, environment)
    except Exception as error:
        if is_broken(error):
            raise
        return "allow", f"fusewire: what is under way here cannot be told: {in_a_line(error)}"


def _brought_progress(event: Event, home: str) -> bool:
    """Whether a stop hook's loop gets somewhere; its memory lies with the project that the command line finds."""
    from fusewire.breakers.loop.stop_hook import brought_progress

    try:
        return brought_progress(quick_store(home, load_rules(home)), event.session)
    except Exception as error:
        if is_broken(error):
            raise
        return False


def _halt_session(event: Event, root: str, rules: Rules, text: str) -> None:
    """Every agent of the session is told the same from now on, until a person speaks."""
    import time

    now = time.time()
    halted = {"rule": text.partition(": ")[0].rpartition(" ")[2], "text": text, "circuit": "", "at": now}
    _amend(event, root, rules, now, halted=halted)


def keep_for_later(event: Event, root: str, text: str) -> None:
    """What the agent cannot be told at this moment it is told with the result of the call."""
    import time

    _amend(event, root, load_rules(root), time.time(), untold=text)


def _amend(event: Event, root: str, rules: Rules, now: float, **parts: Any) -> None:
    """Best effort: what has been decided is answered all the same."""
    from fusewire.breakers.session.state import amend, session_name
    from fusewire.util.errors import StoreError

    try:
        amend(quick_store(root, rules), session_name(event.session or "none"), now, **parts)
    except (StoreError, OSError):
        pass


def _in_session(
    event: Event,
    root: str,
    rules: Rules,
    commands: list[list[str]] | None,
    looks: bool,
    refused_by: str,
    environment: Any,
    home: str = "",
) -> tuple[str, str]:
    """What the calls of the session add up to. If that cannot be counted, the call passes, and people are told."""
    from fusewire.breakers.session.tool_calls import ToolCallBreakers
    from fusewire.util.errors import StoreError

    watch = ToolCallBreakers(quick_store(root, rules), rules, root=root)
    try:
        answer = watch.handle(event, commands, looks=looks, refused_by=refused_by)
        if event.kind == "session_start":
            import time

            from fusewire.breakers.session.briefing import for_agent
            from fusewire.breakers.session.start import begin

            said = begin(watch.store, root, rules, event, environment, time.time())
            told = for_agent(watch.store, root, rules, home, event.session)
            said = "\n".join(filter(None, (answer.text, said)))
            return ("tell", "\n".join(filter(None, (told, said)))) if told else ("allow", said)
    except Exception as error:  # they fail open; the guard and the constraints have spoken already
        if is_broken(error):
            raise
        from fusewire.breakers.session import late

        text = str(error).replace("\n", " ") if isinstance(error, StoreError) else in_a_line(error)
        text = f"fusewire: the breakers of this session are out of order: {text}"
        if not os.path.isdir(root):
            gone = f"fusewire: {root} is gone, so that nothing is counted, and no rule of that project is known"
            return "allow", gone
        answer = late.answer(watch, event, commands, looks, refused_by, text)
    return ("deny" if answer.action == "block" else answer.action), answer.text

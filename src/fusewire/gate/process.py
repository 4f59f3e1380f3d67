"""The hook's work: standard input -> agent -> what the rules decide -> the agent's own protocol.

The hot path: this process is started for every tool call, so a call that touches no rule must cost little more than
starting Python. A test holds the list of modules that it may import; what is slow is imported when a rule has
matched or something is wrong.

What happens when the breaker itself fails is decided here, because agents run the tool on any exit code but 2:
a call that a constraint forbids, or input that cannot be judged, is denied; an installation that is broken
is said on stderr and lets the call pass.
"""

from __future__ import annotations

import os

from fusewire.breakers.session.opening import age
from fusewire.config.rules import find_guarded
from fusewire.util.errors import in_a_line, is_broken, is_exhaustion
from fusewire.util.files import STATE_FOLDER, news
from fusewire.util.stdio import INPUT_LIMIT, payload_of, read_input, write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from fusewire.agents.protocol import Agent
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event

    Answer = tuple[str, str, int]

#: Bytes of the input in which the hook's name stands.
_HEAD = 4096

#: Seconds after the start of this process until a call that could not be judged is denied: agents wait for 15.
_DEADLINE = 10

#: Seconds after its start until which the supervisor of a sandboxed run is waited for; the rest is for deciding here.
_RELAY_UNTIL = 8

#: Seconds more to see whether such a call would only read.
_LOOKING_TIME = 2

#: Beginnings of the names of variables that could tell this process another time; `-I` ignores Python's own.
_LOADING = ("LD_", "DYLD_", "FAKETIME")

#: Done once the answer has been given; `hook` sets it.
at_end: Callable[[], None] | None = None


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer one hook call and end the process, without the cost of an orderly shutdown."""
    if len(arguments) != 1:
        _end("", "fusewire hook: name the agent, for example: fusewire hook claude", 2)
    try:
        from fusewire.agents import AGENTS, agent_named

        if arguments[0] not in AGENTS:
            _end("", f"fusewire hook: no agent named {arguments[0]!r}; allowed: {', '.join(AGENTS)}", 2)
        _end(*answer_in_time(agent_named(arguments[0]), _read_clean, os.environ))
    except (ImportError, SyntaxError) as error:
        if is_exhaustion(error):
            raise  # nothing of the input has been read; `hook` knows what to do
        text = str(error).replace("\n", " ")
        code = 0 if arguments[0] == "copilot" else 1  # where any other code than 0 would deny everything
        _end("", f"fusewire: the hook is not installed properly, nothing is guarded: {text}", code)


def answer_in_time(agent: Agent, read: Callable[[], bytes], environment: Any) -> Answer:
    """The answer to the hook call that this process was started for, whatever goes wrong."""
    try:
        try:
            _set_deadline()
            return answer(agent, read(), environment)
        finally:
            _lift_deadline()
    except (Exception, _TooLate) as error:
        if is_broken(error):
            raise
        return _failed(agent, error)


def _read_clean() -> bytes:
    """Settings of a project may set variables for its hooks: what tells this process another time is left out."""
    if any(name.startswith(_LOADING) for name in os.environ):
        import sys

        from fusewire.agents.caller import start_clean

        start_clean(sys.orig_argv[1:])
    return read_input()


def _failed(agent: Agent, error: BaseException) -> Answer:
    """The breaker itself failed: a call is denied, because the agent would run it on any other answer."""
    why = f"the breaker failed and cannot judge this call: {in_a_line(error)}"
    return _refused(agent, "fusewire.failure", why, waits=True)


def _refused(agent: Agent, rule: str, why: str, start: str | None = None, *, waits: bool = False) -> Answer:
    """Deny what could not be judged. It is written down if that can be done; or with the next event that is counted,
    if there is no time for more."""
    text = f"BLOCKED {rule}: {why}"
    try:
        from time import time

        from fusewire.breakers.session.decided import note_apart, note_later
        from fusewire.breakers.session.opening import quick_store
        from fusewire.config.rules import load_rules
        from fusewire.core.decision import Decision
        from fusewire.core.events import Event

        root = find_guarded(start or _standing(agent.started_in({}, os.environ), {}))
        event, decision = Event("before_tool", agent=agent.name), Decision("deny", rule=rule, reason=why, text=text)
        if waits:
            note_later(event, decision, root, time())
        else:
            note_apart(event, decision, root, lambda: quick_store(root, load_rules(root)), time())
    except (Exception, _TooLate):
        pass  # it is denied all the same
    return agent.deny(text)


class _TooLate(BaseException):
    """The deadline has passed. A BaseException, so that no `except Exception` on the way swallows it."""


def _set_deadline() -> None:
    """Whatever takes too long is denied: if the agent's own time-out came first, it would run the tool."""
    signal = _signal()

    def too_late(number: int, frame: object) -> None:
        raise _TooLate(f"no answer within {_DEADLINE} seconds")

    signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, _DEADLINE - age(), 1)


def _lift_deadline() -> None:
    """From here on there is an answer: ended in the middle of it, the agent would run the call."""
    signal = _signal()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _signal() -> Any:
    try:
        import _signal as signal  # type: ignore[import-not-found]  # the public module imports enum
    except ImportError:
        import signal
    return signal


def _only_looks(line: str) -> bool:
    """Whether a line that could not be judged in time changes nothing: the deadline refuses no reading."""
    import signal

    from fusewire.guard.shell.commands import only_looks

    signal.setitimer(signal.ITIMER_REAL, _LOOKING_TIME, 1)
    return only_looks(line)


def answer(agent: Agent, raw: bytes, environment: Any, start: str | None = None) -> Answer:
    """The answer to one hook call, in the agent's words.

    `start`, the folder of the project, is given by a caller that is no process of the agent's own and so ends none.
    """
    from fusewire.agents import BadPayload

    ends = start is None
    try:
        if len(raw) > INPUT_LIMIT:
            raise ValueError(f"it is larger than {INPUT_LIMIT} bytes")
        payload = payload_of(raw)
        agent = agent.speaker(payload, environment)
        start = start or _standing(agent.started_in(payload, environment), payload)
        root = find_guarded(start)
        if ends and not os.access(os.path.join(root, STATE_FOLDER), os.W_OK):
            relayed = _relayed(agent, raw, environment, root)
            if relayed is not None:
                return relayed
        event = agent.parse(payload, root)
    except ValueError as error:
        return _not_understood(agent, raw, f"is not JSON: {error}", start)
    except BadPayload as error:
        return _not_understood(agent, raw, f"makes no sense: {error}", start)
    if event is None:
        return agent.allow()
    if event.kind == "before_tool":
        try:
            return judge(agent, event, root, start, environment, payload, ends=ends)
        except _TooLate:
            if event.command and _only_looks(event.command):
                return agent.allow()
            raise
    try:
        return judge(agent, event, root, start, environment, payload, ends=ends)
    except (Exception, _TooLate) as error:  # there is no call to deny; and denied to stop, an agent goes on
        if is_broken(error):
            raise
        text = in_a_line(error)
        if event.kind == "config_change":  # these settings may no longer call us
            return agent.deny(f"BLOCKED fusewire.failure: the breaker failed at {event.hook}: {text}", event.hook)
        return agent.inform(f"fusewire: the breaker failed at {event.hook}: {text}", event.hook)


def _relayed(agent: Agent, raw: bytes, environment: Any, root: str) -> Answer | None:
    """What the supervisor outside of our sandbox answers; None if this process has to decide, without the state:
    the guard still refuses, the rest passes, and a message says so."""
    from fusewire.gate.relay import NoSupervisor, is_sealed, relay_hook

    if not is_sealed(root):
        return None
    try:
        return relay_hook(root, agent.name, raw, environment, max(0.5, _RELAY_UNTIL - age()))
    except (OSError, NoSupervisor) as error:
        news.append(f"the supervisor of this run does not answer, so that nothing is counted: {error}")
        return None


def _standing(start: str | None, payload: Any) -> str:
    """The folder of the project; should it be gone, such as a worktree that was removed, where the call would run."""
    if start and os.path.isdir(start):
        return start
    cwd = payload.get("cwd") if isinstance(payload, dict) else None
    try:
        return os.getcwd() if not start else cwd if isinstance(cwd, str) and os.path.isdir(cwd) else start
    except FileNotFoundError:  # the kernel does not say where that was
        return cwd if isinstance(cwd, str) and os.path.isabs(cwd) else "/"


def _not_understood(agent: Agent, raw: bytes, why: str, start: str | None) -> Answer:
    """Input that cannot be judged is denied if it may ask for a call; elsewhere a denial would mean something else,
    such as that the agent may not stop."""
    hook = hook_in(raw)
    if hook and hook not in agent.GATES:
        return agent.inform(f"fusewire: the input of the hook {hook} {why}", hook)
    return _refused(agent, "fusewire.input", f"the hook's input {why}", start)


def hook_in(raw: bytes) -> str:
    """The name of the hook that an input is for, also if the rest of it makes no sense; empty if there is none."""
    behind = raw[:_HEAD].partition(b'"hook_event_name"')[2].partition(b'"')[2]
    return behind.partition(b'"')[0].decode("ascii", "replace")


def judge(
    agent: Agent, event: Event, root: str, start: str, environment: Any, payload: Any, *, ends: bool = True
) -> Answer:
    """Decide, and render it in the agent's words; end the agent's process if it goes on although it was halted."""
    from fusewire.agents import render
    from fusewire.gate.context import Context
    from fusewire.gate.pipeline import decide, keep_for_later

    context = Context(event, root, start, environment)
    decision = decide(event, context)
    if decision.verdict != "allow" and not decision.code:
        from time import time

        from fusewire.breakers.session.decided import note_apart

        decision = note_apart(event, decision, root, lambda: context.store, time())
    if decision.verdict in ("deny", "halt") and event.kind == "before_tool" and context.is_attended:
        from fusewire.gate.allowed_once import with_code

        decision = with_code(decision, event, context)
    if news:  # something else stood where a file of ours belongs: reported once, by the process that found it
        decision = _add_news(decision)
    if decision.unheeded and ends and not agent.interrupt(payload):
        _end_process(agent, environment)
    if decision.verdict == "tell" and event.hook in agent.UNHEARD:
        from time import time

        from fusewire.core.messages import agent_message

        keep_for_later(event, context, agent_message(decision, time()))
    return render(agent, decision, event.hook)


def _add_news(decision: Decision) -> Decision:
    from fusewire.core.decision import Decision, strictest

    notice = Decision("tell", reason="\n".join(f"fusewire: {one}" for one in news))
    news.clear()
    return strictest((decision, notice)) or notice


def _end_process(agent: Agent, environment: Any) -> None:
    """The agent was halted and goes on: its program knows no halt, or does not heed it. Only one that has started
    this hook is ended."""
    import signal

    from fusewire.agents import client_process
    from fusewire.util.processes import ancestors

    pid = agent.process(environment)
    if pid is not None and pid in ancestors(client_process()):
        try:
            os.kill(pid, getattr(signal, agent.ENDED_BY))
        except OSError:
            pass  # it has ended, or may not be ended; the call is refused all the same


def _end(stdout: str, stderr: str, code: int) -> NoReturn:
    for descriptor, text in ((1, stdout), (2, stderr)):
        if text:
            write_line(descriptor, text)
    try:
        if at_end:
            at_end()
    finally:
        os._exit(code)  # whatever comes in between: a second answer would contradict the first

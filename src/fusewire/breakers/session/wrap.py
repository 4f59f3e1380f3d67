"""Run any hook of the user's behind the hook_recursion breaker: `fusewire wrap NAME -- COMMAND...`.

What is counted is recursion, not work: a run inside a run of the same name, a run for something that it has run for
already, and a run that does not say what it is for. A formatter after each of 20 edits is never counted.

The command takes the place of this process, so that whatever is done to the hook (a time-out, a signal, its exit code)
is done to the command itself. Only the one trial after a cooldown is waited for, because how it ends decides.
"""

from __future__ import annotations

import os
import time

from fusewire.breakers.session.state import Alarm, session_name
from fusewire.config.rules import find_guarded, load_rules
from fusewire.core.events import Event, mark
from fusewire.util.environment import children_environment
from fusewire.util.errors import FusewireError, StoreRebuilt
from fusewire.util.fast_json import dumps
from fusewire.util.quoting import quoted
from fusewire.util.stdio import INPUT_LIMIT, payload_of, read_input, write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.stores import Transaction

    Runs = list[list[Any]]

#: Names of the hooks that a command runs inside of, the outermost first, with colons in between.
HOOKS = "FUSEWIRE_HOOKS"

_TEMPLATE = "tool/hook_recursion/{hook}"

#: Seconds until an input that has not said a word is left to the command.
_SILENCE = 1.0

#: What the last so many runs of a hook were for is remembered, for so many seconds.
_RUNS = 16
_FORGOTTEN = 30 * 86400

#: More names in the stack than this are only a longer variable.
_STACK = 64

_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+@()")
_NAME_LENGTH = 80

#: What `lifecycle` counts stop hooks under.
_TAKEN = "Stop"

#: A message of a person is a beginning, also if it says the same again.
_PROMPTS = frozenset(("UserPromptSubmit", "BeforeAgent", "userPromptSubmitted", "beforeSubmitPrompt"))

#: Before any turn that is really counted; see `turn_of`.
_UNCOUNTED = -1_000_000_000


class Wrapped:
    """One run of a hook: its name, its command, and who it runs for, as far as the command line says so."""

    def __init__(
        self, name: str, command: Sequence[str], *, session: str | None = None, project: str | None = None
    ) -> None:
        if not name or len(name) > _NAME_LENGTH or not _NAME_CHARS.issuperset(name):
            raise FusewireError(
                f"the hook's name {name!r} is refused; allowed: letters, digits and _-.+@() (up to {_NAME_LENGTH})"
            )
        if name == _TAKEN:
            raise FusewireError(f"the hook's name {name!r} is refused: Fusewire counts stop hooks under it itself")
        if project is not None and not os.path.isdir(project):
            raise FusewireError(f"no such folder: {project}")
        self.name = name
        self.command = list(command)
        self.session = session
        self.project = project
        self.stack = [part for part in os.environ.get(HOOKS, "").split(":") if part][-_STACK:]
        #: the probe that this run may be
        self.lease = f"wrap {os.getpid()} {time.time():.6f}"

    @property
    def depth(self) -> int:
        """How many runs of the same hook this one is inside of."""
        return self.stack.count(self.name)

    @property
    def shown(self) -> str:
        return " ".join(map(quoted, self.command))

    @property
    def environment(self) -> dict[str, str]:
        """With the mark of an agent: a hook is code of the project, not a person."""
        return {"FUSEWIRE_AGENT": "wrap", **children_environment(), HOOKS: ":".join([*self.stack, self.name])}


def wrap(run: Wrapped, *, as_json: bool = False) -> int:
    """Run the command if the breaker allows it; an exit code, if the command has not taken our place."""
    given = _read_input()
    if given is not None and len(given) > INPUT_LIMIT:
        _say(f"fusewire wrap: {run.name} was not run: standard input is larger than {INPUT_LIMIT >> 20} MB")
        return 1
    asked: _Asked | None = None
    try:
        asked = _Asked(run, given)
        decision = asked.decision
        refusal = asked.refusal
    except Exception as error:  # a breaker that is out of order must not take the user's hook with it
        text = str(error) if isinstance(error, FusewireError) else f"{type(error).__name__}: {error}"
        _say(f"fusewire wrap: {run.name} runs, but nothing is counted: {text}".replace("\n", " "))
        decision, refusal = None, ""
    if refusal:
        if as_json and decision is not None:
            write_line(1, dumps(decision.to_json()))
        _say(refusal)
        return 3
    if given:
        _hand_over(given)
    if asked is None or decision is None or decision.lease != run.lease:
        return _become(run)
    code = _run(run)
    asked.settle(code)
    return code


def quick(arguments: list[str]) -> int | None:
    """The command line without its library, which costs more than all of this; None where that one should speak."""
    options: dict[str, Any] = {}
    before = arguments[: arguments.index("--")] if "--" in arguments else []
    names = []
    while before:
        word = before.pop(0)
        if word in ("--session", "--project") and before:
            options[word[2:]] = before.pop(0)
        elif word == "--json":
            options["as_json"] = True
        else:
            names.append(word)
    command = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    if len(names) != 1 or names[0][:1] in ("", "-") or not command:
        return None
    as_json = options.pop("as_json", False)
    try:
        run = Wrapped(names[0], command, **options)
    except FusewireError as error:
        _say(f"Error: {error}")
        return 1
    return wrap(run, as_json=as_json)


# -- asking ---------------------------------------------------------------------------------------------


class _Asked:
    """The breaker's answer to one run, and the way to tell it how that went."""

    def __init__(self, run: Wrapped, given: bytes | None) -> None:
        from fusewire.breakers.session.opening import quick_store

        self.run = run
        payload = _payload(given)
        self.session = run.session or _session(payload) or os.environ.get("CLAUDE_CODE_SESSION_ID") or "none"
        self.circuit = f"tool/hook_recursion/{run.name}/{self.session}"
        self.root = _root(run, payload)
        self.rules = load_rules(self.root, keeps=True)
        self.decision: Decision | None = None
        self.refusal = ""
        if _TEMPLATE not in self.rules.policies:
            return
        self.store = quick_store(self.root, self.rules)
        self._transact(lambda unit: self._ask(unit, payload))

    def _ask(self, unit: UnitOfWork, payload: Any) -> None:
        run, name = self.run, f"wrap/{self.session}/{self.run.name}"
        memory = _recall(unit.transaction, name, unit.now)
        if memory is None:
            unit.transaction.forget("wrap/", unit.now - _FORGOTTEN)
            memory = []
        times = counts(memory, payload, run.depth, literal=self.rules.tool["hook_recursion.literal"])
        unit.transaction.remember(name, {"runs": memory[-_RUNS:]}, unit.now)
        turn = turn_of(unit)
        # What is not counted is asked for all the same: while the circuit is open, nothing of this name runs.
        for question in ["hook_run"] * times or ["action"]:
            self.decision = unit.signal("ask", self.circuit, question, turn=turn, lease=run.lease, text=run.shown)
            if not self.decision.allowed:
                from fusewire.breakers.session.messages import refusal_text

                self.refusal = refusal_text(self.decision, unit, 0)
                if self.decision.tripped:
                    self._alarm(unit, True)
                return

    def _alarm(self, unit: UnitOfWork, on: bool) -> None:
        """The session knows which circuits are not closed: the next message of a person starts them anew."""
        state = unit.state
        if state.is_new or (not on and self.circuit not in state.alarms):
            return
        if on:
            state.alarms[self.circuit] = Alarm("", self.run.name, [self.run.name])
        else:
            del state.alarms[self.circuit]
        at = unit.now if state.at is None else state.at  # its own time: this is no word from the agent
        unit.transaction.remember(session_name(self.session), state.to_data(), at)

    def settle(self, code: int) -> None:
        """The one trial has ended: 0 closes the circuit, anything else opens it for longer."""
        try:
            self._transact(lambda unit: self._settle(unit, code))
        except Exception as error:  # the lease of the trial runs out by itself
            _say(f"fusewire wrap: how {self.run.name} went could not be kept: {error}".replace("\n", " "))

    def _settle(self, unit: UnitOfWork, code: int) -> None:
        kind, name, text = "good", "success", self.run.shown
        if code:
            kind, name, text = "bad", "hook_failed", f"it ended with exit code {code}: {self.run.shown}"
        decision = unit.signal(kind, self.circuit, name, turn=turn_of(unit), lease=self.run.lease, text=text)
        if decision.phase == "closed":
            self._alarm(unit, False)

    def _transact(self, work: Any) -> None:
        try:
            self._attempt(work)
        except StoreRebuilt:  # the damage showed in the middle; nothing was written, and now it is mended
            self._attempt(work)

    def _attempt(self, work: Any) -> None:
        from fusewire.breakers.session.unit_of_work import UnitOfWork

        with self.store.transact() as transaction:
            unit = UnitOfWork(transaction, self.rules, Event("wrap", session=self.session), time.time())
            work(unit)
        if unit.incidents:
            from fusewire.breakers.session.incidents import write

            write(self.root, self.rules.tool["incidents"], unit.incidents, unit.now)


def counts(runs: Runs, payload: Any, depth: int, *, literal: bool) -> int:
    """How many runs are counted now: none for ordinary work; two where the run that this one repeats was the first.

    `runs` are the last ones of this hook in this session, [what for, whether counted], and this one is added to it.
    """
    kind, key = trigger(payload)
    same = next((run for run in reversed(runs) if key and run[0] == key), None)
    again = kind == "unknown" or kind == "again" or (kind == "once" and same is not None)
    if not (literal or depth or again):
        runs.append([key, False])
        return 0
    times = 1
    first = same or (runs[-1] if depth and runs else None)
    if first is not None and not first[1]:
        first[1] = True
        times = 2
    if depth and not runs:  # the runs around it were those of other sessions
        times = depth + 1
    runs.append([key, True])
    return times


def trigger(payload: Any) -> tuple[str, str]:
    """What a run is for: whether that happens `once`, `again` and again, or `often`; and a key to know it by."""
    if not isinstance(payload, dict):
        return "unknown", ""
    event = str(payload.get("hook_event_name") or "")
    call = payload.get("tool_use_id") or payload.get("toolUseId")
    if call:
        return "once", mark(event, str(call))
    if "tool_name" in payload or "toolName" in payload or event in _PROMPTS:
        return "often", ""  # nothing tells one call from the next here, and calling again is ordinary
    if "stop_hook_active" in payload:
        who = (payload.get(name) for name in ("agent_id", "prompt_id"))
        return "again" if payload["stop_hook_active"] is True else "often", mark(event, *map(str, who))
    return "once", mark(dumps(payload))


def turn_of(unit: UnitOfWork) -> int:
    """The session's turn. Where no hook of ours counts them, a minute is one: 10 turns are 10 minutes then."""
    return unit.turn or _UNCOUNTED + int(unit.now // 60)


def _recall(transaction: Transaction, name: str, now: float) -> Runs | None:
    try:
        memory = transaction.recall(name)
    except ValueError:
        memory = {"runs": None}
    if memory is None:
        return None
    runs = memory.get("runs")
    if isinstance(runs, list) and all(isinstance(run, list) and len(run) == 2 for run in runs):
        return runs
    transaction.notice(f"what was remembered as {name} could not be read, and starts anew", now)
    return []


def _payload(given: bytes | None) -> Any:
    """What an agent has said; None if it is no JSON."""
    try:
        return payload_of(given or b"")
    except ValueError:
        return None


def _session(payload: Any) -> str | None:
    return _text(payload, "session_id") or _text(payload, "sessionId")


def _root(run: Wrapped, payload: Any) -> str:
    """The project whose hook this is; the same that `fusewire hook` finds, so that turns are its turns."""
    if run.project is not None:
        return os.path.abspath(run.project)
    return find_guarded(os.environ.get("CLAUDE_PROJECT_DIR") or _text(payload, "cwd") or os.getcwd())


def _text(payload: Any, field: str) -> str | None:
    value = payload.get(field) if isinstance(payload, dict) else None
    return value if isinstance(value, str) and value else None


# -- running --------------------------------------------------------------------------------------------


def _read_input() -> bytes | None:
    """All of standard input; None if nobody is saying anything: then it is left to the command as it is."""
    from select import select

    try:
        if os.isatty(0) or not select([0], [], [], _SILENCE)[0]:
            return None
        return read_input()
    except OSError:  # there is no standard input
        return None


def _hand_over(given: bytes) -> None:
    """The command's standard input is what ours was: as a file, which nobody has to stay for."""
    try:
        handle = os.memfd_create("stdin")
    except (AttributeError, OSError):
        import tempfile

        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    view = memoryview(given)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    os.dup2(handle, 0)
    if handle:
        os.close(handle)


def _become(run: Wrapped) -> int:
    """The command takes our place; an exit code only if it cannot be started."""
    try:
        import _signal as signal  # type: ignore[import-not-found]  # the public module imports enum
    except ImportError:
        import signal

    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and the command would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(run.command[0], run.command, run.environment)
    except (OSError, ValueError) as error:
        return _not_started(run, error)


def _run(run: Wrapped) -> int:
    """The command beside us: its exit code, or 128 and the signal that ended it."""
    import signal

    started: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        for pid in started:
            os.kill(pid, number)

    def leave_it(number: int, frame: object) -> None:
        """A terminal tells the command as well."""

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, leave_it)
    try:
        started.append(
            os.posix_spawnp(run.command[0], run.command, run.environment, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
        )
    except (OSError, ValueError) as error:
        return _not_started(run, error)
    code = os.waitstatus_to_exitcode(os.waitpid(started[0], 0)[1])
    started.clear()
    return code if code >= 0 else 128 - code


def _not_started(run: Wrapped, error: Exception) -> int:
    words = error.strerror if isinstance(error, OSError) else str(error)
    _say(f"fusewire wrap: {run.command[0]}: {words}")
    return 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126


def _say(text: str) -> None:
    write_line(2, text)

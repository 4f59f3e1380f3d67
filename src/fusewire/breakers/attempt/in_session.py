"""Count attempts at the tests of a slice that an agent runs in its shell instead of with `fusewire attempt run`.

An attempt is a whole cycle (seed 004): code was changed, the test was run, the result is there. A hook sees every run,
so it must tell the cycles from the rest, and where it is in doubt it counts nothing:

- A run on files that are as they were at the last attempt is a look, and so is one on those of the checkpoint: the same
  test again with more output, a red test before the work begins, a baseline after `git stash`.
- Only a test that was started and that the runner's output names counts; and of one run that fails at most one test,
  because an agent works on one at a time: the one that the command asks for, else the one whose attempts began last.
- A test that is stopped counts nowhere any more. Runs of everything stay free, since other tests are in them.
"""

from __future__ import annotations

import os

from fusewire.breakers.session.calls import VERIFY, nature_of
from fusewire.breakers.session.opening import PATIENCE
from fusewire.config.rules import SCOPE_FILE, STATE_FOLDER
from fusewire.core.decision import Decision, strictest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.core.events import Event
    from fusewire.stores import Store

    Commands = list[list[str]]

#: Stops that were announced to a session and are remembered.
_REMEMBERED = 50

#: Seconds to wait for another process that is counting a run.
_QUEUE = 4.0


def is_under_way(home: str) -> bool:
    """One look: without this file no slice is under way."""
    return os.path.lexists(os.path.join(home, SCOPE_FILE))


def after_call(event: Event, commands: Commands | None, home: str) -> Decision | None:
    """What the results of a call, or of a whole reply, mean for the slices under way."""
    if not is_under_way(home):
        return None
    calls = [(call, _read(call, None if event.calls else commands)) for call in event.calls or (event,)]
    calls = [(call, words) for call, words in calls if _may_run_tests(call, words)]
    if not calls:
        return None
    from fusewire.breakers.attempt.test_commands import run_of

    runs = [run for call, words in calls if (run := run_of(call, words, home))]
    slices = _slices(event, home) if runs else []
    if not slices:
        return None
    from fusewire.breakers.attempt.shell_runs import count_run
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import FusewireError
    from fusewire.util.files import FileLock

    with Breaker.open(project=home, patience=PATIENCE) as breaker:
        attempts = Attempts(breaker)
        try:
            # One at a time: two runs that end together are both compared with what the last attempt left.
            with FileLock(os.path.join(home, STATE_FOLDER, "attempts.lock"), wait=_QUEUE):
                answers = [count_run(attempts, slices, run) for run in runs]
        except BlockingIOError:
            return _remark("fusewire: a test run was not counted: another process is counting one")
        except FusewireError as error:
            return _remark(f"fusewire: a test run was not counted: {error}")
    return strictest(answers)


def _remark(text: str) -> Decision:
    """Tell the person, not the agent."""
    return Decision("allow", remarks=(text,))


def before_call(event: Event, commands: Commands | None, home: str) -> Decision | None:
    """A test that is stopped is not run again by its name; and what was counted here is not counted twice."""
    if not event.command or not is_under_way(home):
        return None
    commands = _read(event, commands)
    if not _may_run_tests(event, commands) or not ("fusewire" in event.command or _is_any_stopped(home)):
        return None
    from fusewire.breakers.attempt.test_commands import own_act, running_tests

    reported = [own_act(words, "attempt")[1][:2] for words in commands if _reports_a_failure(words)]
    running = running_tests(event, commands, home)
    slices = _slices(event, home) if reported or running else []
    if not slices:
        return None
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=home, patience=PATIENCE) as breaker:
        attempts = Attempts(breaker)
        for names in reported:
            if len(names) == 2 and (counted := _counted_already(attempts, *names)):
                return counted
        stop = _stop(attempts, slices, running)
        return None if stop is None else _announce_or_refuse(breaker.store, event, stop, breaker.engine.clock())


def _is_any_stopped(home: str) -> bool:
    """Before anything slow is loaded: an agent runs tests more often than it is stopped."""
    from fusewire.breakers.session.opening import quick_store
    from fusewire.config.rules import load_rules

    circuits = quick_store(home, load_rules(home)).circuits()
    return any(row.kind == "attempt" and row.phase == "open" for row in circuits)


def spoken(event: Event, home: str) -> None:
    """A person has typed something: a stop is announced again before it refuses."""
    if not is_under_way(home):
        return
    from fusewire.breakers.session.state import recalled
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=home, patience=PATIENCE) as breaker:
        if recalled(breaker.store, _memory_of_stops(event)):
            with breaker.store.transact() as transaction:
                transaction.drop(_memory_of_stops(event))


def _read(call: Event, commands: Commands | None) -> Commands:
    from fusewire.breakers.session.calls import commands_of

    return commands_of(call) if commands is None else commands


def _may_run_tests(call: Event, commands: Commands) -> bool:
    """A quick look, or it reports on such a run."""
    line = call.command or ""
    return "fusewire" in line or any(nature_of(call, [words], False) == VERIFY for words in commands)


def _slices(event: Event, home: str) -> list[str]:
    """The slices that hold for this session, the newest first."""
    from fusewire.breakers.attempt.scope.active import load

    return [one.slice for one in load(home, PATIENCE) if one.holds_for(event.session)]


# -- before a call ------------------------------------------------------------------------------------------------


def _reports_a_failure(words: list[str]) -> bool:
    from fusewire.breakers.attempt.test_commands import own_act

    return own_act(words, "attempt")[0] == "record" and "--fail" in words


def _counted_already(attempts: Attempts, slice_id: str, test: str) -> Decision | None:
    """Refuse to record a failure once more; None if it may be recorded."""
    from fusewire.breakers.attempt.last_attempts import LastAttempts

    record = attempts.record(slice_id)
    if not LastAttempts(attempts, slice_id, record.life).is_last(record, test):
        return None
    return Decision(
        "deny",
        rule="attempt.counted",
        reason=f"the last run of {test} was counted when you ran it, and nothing was changed since",
        next=("change code, then run the test as you did", "to look at the failure, run it as often as you like"),
    )


def _stop(attempts: Attempts, slices: list[str], running: Commands) -> Decision | None:
    """What stops a test that a command asks for by its name."""
    from fusewire.breakers.attempt.test_commands import asks_for

    for slice_id in slices:
        for test, entry in attempts.record(slice_id).tests.items():
            if not entry.is_done and asks_for(running, test) and (stop := attempts.refusal(slice_id, test)):
                return stop
    return None


def _announce_or_refuse(store: Store, event: Event, stop: Decision, now: float) -> Decision | None:
    """Announce a stop to the session once, and refuse from then on."""
    from fusewire.breakers.session.state import recall

    with store.transact() as transaction:
        told = recall(transaction, _memory_of_stops(event), now)[0].get("told")
        told = told if isinstance(told, list) else []
        transaction.remember(_memory_of_stops(event), {"told": [*told, stop.circuit][-_REMEMBERED:]}, now)
    if stop.circuit in told:
        return stop
    last = "this run is the last that passes: the next one of this test is refused."
    warning: Decision = stop.replace(verdict="tell", evidence=(*stop.evidence, last))
    return warning


def _memory_of_stops(event: Event) -> str:
    """Below the session's own memory, so that it goes with it."""
    return f"session/{event.session or 'none'}/~stopped"

"""`fusewire run`: start an agent again and again until its work is done, a cap is reached or a circuit opens.

The supervisor prints nothing and decides nothing: its `RunView` shows what people see, and the loop decides whether
an iteration may run.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from fusewire.agents.caller import PROJECT
from fusewire.agents.output.answer import with_checks
from fusewire.agents.output.reader import AnswerReader
from fusewire.breakers.loop import questions
from fusewire.breakers.loop.overview import starts_in_hour
from fusewire.breakers.session import nesting
from fusewire.breakers.session.incidents import write as write_incidents
from fusewire.breakers.session.ordered import halt_here
from fusewire.core.decision import Blocked, Decision
from fusewire.core.pacing import delay, spacing, tightest, words
from fusewire.run.ledger import RUN, RunLedger
from fusewire.run.output_log import OutputLog, prune
from fusewire.run.own_output import own_outputs
from fusewire.run.process import run_agent
from fusewire.run.registry import RunPlace
from fusewire.run.sandbox import Confinement, NoSandbox, confine
from fusewire.run.types import Outcome
from fusewire.run.watchdog import Warden
from fusewire.testruns.evidence import RunEvidence
from fusewire.util.environment import children_environment
from fusewire.util.errors import FusewireError
from fusewire.util.files import file_stamp, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from fusewire.agents.output.answer import AgentOutput
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.types import IterationResult, IterationStart, IterationTrace
    from fusewire.run.process import ProcessEnd
    from fusewire.run.types import Options, RunView

#: Exit codes of the command line contract.
DONE, HALTED, CAPPED, ON_HUMAN, INTERRUPTED = 0, 3, 4, 5, 130

#: Bytes of a checking command's output that are read for test results, from its end.
_READ = 1024 * 1024

#: Characters of it that an agent gets.
_SHOWN = 2000

#: Output of the last iterations that is kept.
_LOGS = 20


class Supervisor:
    """One run of one agent in one project."""

    def __init__(
        self, loop: Loop, options: Options, view: RunView, hooks: Callable[[], frozenset[str]] = frozenset
    ) -> None:
        self.loop = loop
        #: the settings files that have our hook, now and when the run began
        self._hooks, self._hooked = hooks, hooks()
        self.options = options
        self.view = view
        self.iterations = 0
        self.cost: float | None = None
        self._started = time.monotonic()
        self._interrupted = self._by_a_person = False
        #: the next start has been delayed as its pace wants
        self._paced = False
        #: a person has halted the project's agents
        self._halt: Decision | None = None
        #: the circuit that is waited for has just been shown with its evidence
        self._explained = False
        self._confinement: Confinement | None = None
        self._told: set[str] = set()
        self._settings = loop.breaker.rules.tool
        #: how deep the agent is: agents start agents, and their runs start runs
        self._depth = nesting.true_depth(os.environ) + 1
        loop.provider.started_by(options.command[0])
        loop.provider.waits_for_outages = options.wait
        self._ledger = RunLedger(loop, options.command)
        self._place = RunPlace(loop.engine, self._settings["resource_limits.max_concurrent_agents"], options.command)

    def run(self) -> Outcome:
        """Until it ends; everything that was started has ended by then."""
        with Signals(self._interrupt):
            if self._is_halted():
                return self._outcome(HALTED, "", self._halt)
            refused = self._too_deep() or self._take_place()
            if self._interrupted:
                self._place.leave()
                return self._outcome(INTERRUPTED, "stopped by a signal")
            if refused is not None:
                self._log(refused)
                return self._outcome(HALTED, "", refused)
            try:
                return self._run()
            finally:
                self._place.leave()

    def _too_deep(self) -> Decision | None:
        reason = nesting.too_deep(self._depth, self._settings)
        if not reason:
            return None
        return Decision("deny", rule=nesting.RULE, reason=reason, next=nesting.NEXT, by_person=(nesting.BY_A_PERSON,))

    def _log(self, refused: Decision) -> None:
        """A run that may not start is an incident like any other limit."""
        incident = {"type": "resource_limit", "breaker": refused.rule.removeprefix("tool."), "reason": refused.reason}
        write_incidents(self.loop.root, self._settings["incidents"], [incident], self.loop.engine.clock())

    def _take_place(self) -> Decision | None:
        """Runs of one project share its limit of agents."""
        if self.options.end_oldest is None:
            return self._place.take()
        return self._place.inherit(self.options.end_oldest, lambda: self._interrupted, self.view.tells)

    def _run(self) -> Outcome:
        with ExitStack() as stack:
            warden = stack.enter_context(Warden())
            try:
                self._confinement = confine(
                    self.loop.root, self._variables("loop"), self.options.sandbox, self.view.tells
                )
            except NoSandbox as refused:
                return self._outcome(HALTED, str(refused))
            if self._confinement is not None:
                stack.enter_context(self._confinement)
                self.loop.protection.confined = True
            for lost in self.loop.settle_lost():
                self.view.tells(
                    f"Iteration {lost.number} was cut off when its supervisor died; it is settled as {lost.kind}."
                )
            self.loop.start()
            while True:
                outcome = self._cap() or self._once(warden)
                if outcome is not None:
                    return outcome

    def _once(self, warden: Warden) -> Outcome | None:
        """One iteration or one wait; the outcome if the run ends with it."""
        self._place.keep()
        if self.loop.provider.problem:
            self._tell_once(f"Warning: {self.loop.provider.problem}")
        if (ended := self._keep_pace()) is not None:
            return ended
        if refused := self._ledger.refusal():
            return self._outcome(HALTED, "", refused)
        try:
            begun = self.loop.begin()
        except Blocked as blocked:
            return self._wait_for_circuits(blocked.decision)
        self.iterations += 1
        self._paced = False
        self._ledger.started()
        self.view.began(begun)
        if self.loop.provider.is_probe(begun.token):
            self.view.tells(f"    this start is the one probe of {self.loop.provider.circuit}")
        try:
            return self._iterate(begun, warden)
        except BaseException:
            self.loop.abandon(begun.token)
            raise

    def _iterate(self, begun: IterationStart, warden: Warden) -> Outcome | None:
        junit = self.options.junit
        earlier = file_stamp(junit)
        ended, answer = self._run_agent(begun, warden)
        seen = self.loop.look(begun.token, begun, ignored=[*own_outputs(), *([junit] if junit else [])])
        if ended.why == "stopped":
            return self._stopped(begun, answer, seen)
        why = "capped" if ended.why == "timeout" and self._time_is_up() else ended.why
        checks = RunEvidence()
        until = self._until(begun, warden, checks)
        claimed = self.loop.claim(begun.token, ended.why, ended.code, answer)
        if until or not (claimed and self._verified(claimed, begun, warden, checks)):
            claimed = until
        self._read_junit(checks, earlier)
        answer = with_checks(answer, checks)
        if self._is_halted():  # in the middle of a check, which says nothing then
            return self._stopped(begun, answer, seen)
        result = self.loop.end(
            begun.token,
            why=why,
            code=ended.code,
            answer=answer,
            begun=begun,
            seen=seen,
            seconds=ended.seconds,
            finished=claimed,
        )
        if answer.cost is not None:
            self.cost = (self.cost or 0.0) + max(0.0, answer.cost)
        self._ledger.ended(answer.cost)
        self.view.judged(result, ended)
        for file in sorted(self._hooked - self._hooks()):
            self._tell_once(
                f"NOTHING IS GUARDED: the hook in {file} was there when this run began, and is gone."
                " A person can run: fusewire doctor"
            )
        return self._after(result)

    def _run_agent(self, begun: IterationStart, warden: Warden) -> tuple[ProcessEnd, AgentOutput]:
        """Its output goes to the log, to the reader and to the person, as it comes."""
        options = self.options
        prompt = self._prompt(begun)
        reader = AnswerReader(self.loop.engine.clock(), given=prompt or "")
        log = OutputLog(self.loop.places.output_of(begun.number))
        started = time.monotonic()

        def read(data: bytes) -> None:
            log.write(data)
            if shown := reader.feed(data):
                self.view.output(shown)
            if reader.replied and self.loop.provider.is_probe(begun.token):
                self.loop.provider.answered(begun.token)

        def tick() -> None:
            self.view.tick(time.monotonic() - started)
            if self._confinement is not None:
                self._confinement.keep()

        def read_error(data: bytes) -> None:
            log.write(data)
            reader.feed_error(data)
            self.view.output(data.decode("utf-8", "replace"))

        try:
            ended = run_agent(
                [part.replace("{prompt}", prompt or "") for part in options.command],
                cwd=options.cwd or self.loop.root,
                environment=self._environment(begun),
                given=b"" if self._prompt_in_command() else (prompt or "").encode("utf-8", "replace"),
                timeout=self._longest(),
                idle=options.idle,
                on_output=read,
                on_error=read_error,
                on_tick=tick,
                stop=self._stops,
                mark=begun.token,
                warden=warden,
                entrance=self._confinement.entrance() if self._confinement else None,
            )
        finally:
            log.close()
            prune(self.loop.places.outputs, _LOGS)
        if ended.why == "launch" and self.iterations == 1:
            raise FusewireError(f"the agent could not be started: {ended.problem}")
        return ended, reader.finish(ended.code, partial=ended.why in ("timeout", "idle", "stopped"))

    def _stopped(self, begun: IterationStart, answer: AgentOutput, seen: IterationTrace) -> Outcome:
        """A person's Ctrl-C is no judgement, nor that a person wants the place; another signal an agent can send as
        well, so that it must show."""
        if self._halt is not None:
            self.loop.abandon(begun.token)
            return self._outcome(HALTED, seen.text) if seen.verdict == "halt" else self._outcome(HALTED, "", self._halt)
        why = self._stopped_why()
        if self._by_a_person:
            self.loop.abandon(begun.token)
        else:
            self.loop.end(begun.token, why="stopped", code=None, answer=answer, begun=begun, seen=seen)
        return self._outcome(INTERRUPTED, seen.text if seen.verdict == "halt" else why)

    def _stopped_why(self) -> str:
        heir = None if self._by_a_person else self._place.heir()
        if heir is None:
            return "stopped by a signal"
        self._by_a_person = True
        return f"ended to make room for another run (pid {heir}, --end-oldest)"

    def _after(self, result: IterationResult) -> Outcome | None:
        """Halted, finished, tripped, or on to the next one."""
        if result.halted:
            return self._outcome(HALTED, result.halted)
        if self._interrupted:
            return self._outcome(INTERRUPTED, self._stopped_why())
        if result.finished:
            return self._outcome(DONE, result.finished)
        if result.question and (asked := self._asked(result)):
            return asked
        if result.trips:
            says_most = max(result.trips, key=lambda trip: trip.alert)
            for trip in result.trips:
                if trip is not says_most:
                    self.view.tells(f"CIRCUIT OPEN {trip.rule}: {trip.reason}.")
            if result.escalates or not self.options.wait:
                return self._outcome(HALTED, "", says_most.replace(verdict="deny"))
            self.view.opened(says_most)
            self._explained = True
        return None

    def _asked(self, result: IterationResult) -> Outcome | None:
        """Blocked on a human: the same question came again, or one iteration after the other asked something."""
        question, trip = result.question, next((one for one in result.trips if one.circuit == questions.CIRCUIT), None)
        if trip is None and result.asked < questions.MOST_ASKED:
            self.loop.note(questions.note_for_agent(question))
            return None
        if trip is None:
            questions.record_question(self.loop, question, result.asked)
            trip = questions.refusal(result.asked)
        return replace(self._outcome(ON_HUMAN, "", trip.replace(verdict="deny")), question=question)

    # -- checking -------------------------------------------------------------------------------------

    def _until(self, begun: IterationStart, warden: Warden, checks: RunEvidence) -> str:
        """That `--until` holds, if it does; else its tests and errors are evidence. Its exit status alone is none:
        it is asked again and again until the work is done."""
        command = self.options.until
        if command is None:
            return ""
        ended, text = self._check(command, begun, warden)
        if ended.why == "exit":
            checks.saw(text, failed=ended.code != 0)
            if ended.code == 0:
                return f"`{command}` succeeds"
        output = text[-_SHOWN:].strip()
        if ended.code in (126, 127):
            self._tell_once(f"`{command}` cannot be run: {output}")
        elif output and not self._time_is_up():
            self.loop.note(f"`{command}` {_how(ended)}.{_quoted(output)}")
        return ""

    def _read_junit(self, checks: RunEvidence, earlier: object) -> None:
        """The results, if they were written in this iteration: those of an `earlier` one say nothing about it."""
        junit = self.options.junit
        try:
            if junit is not None and (read := read_regular(junit)) and file_stamp(junit) != earlier:
                checks.read_junit(read)
        except OSError as error:
            self._tell_once(f"no test results: {junit}: {error.strerror}")

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.view.tells(text)

    def _verified(self, claimed: str, begun: IterationStart, warden: Warden, checks: RunEvidence) -> bool:
        """Verification before completion: a claim to be finished must pass the person's command."""
        command = self.options.verify
        if command is None:
            return True
        ended, text = self._check(command, begun, warden)
        if ended.why == "exit" and ended.code == 0:
            return True
        if ended.why == "exit":
            checks.failed_with(ended.code, text)
        self.view.tells(f"Not finished: {claimed}, but `{command}` {_how(ended)}.")
        end = _quoted(text[-_SHOWN:].strip())
        self.loop.note(f"You said that you are finished, but `{command}` {_how(ended)}.{end}")
        return False

    def _check(self, command: str, begun: IterationStart, warden: Warden) -> tuple[ProcessEnd, str]:
        kept = bytearray()
        started = time.monotonic()

        def keep(data: bytes) -> None:
            kept.extend(data)
            del kept[:-_READ]

        ended = run_agent(
            ["/bin/sh", "-c", command],
            cwd=self.options.cwd or self.loop.root,
            environment=self._surroundings("check"),
            given=b"",
            timeout=self._longest(),
            idle=None,
            on_output=keep,
            on_error=keep,
            on_tick=lambda: self.view.tick(time.monotonic() - started),
            stop=self._stops,
            mark=begun.token,
            warden=warden,
        )
        return ended, kept.decode("utf-8", "replace")

    # -- waiting --------------------------------------------------------------------------------------

    def _wait_for_circuits(self, decision: Decision) -> Outcome | None:
        if not self.options.wait or decision.retry_after is None:
            return self._outcome(HALTED, "", decision)
        if not self._explained:
            self.view.opened(decision)
        self._explained = False
        skip = "end the cooldown now; one probe decides" if decision.phase == "open" else ""
        why, whole = f"{decision.rule}: {decision.reason}", decision.retry_after
        do_skip = self.loop.end_cooldowns
        if decision.rule.startswith("provider:"):
            do_skip = self.loop.provider.reset
        return self._wait(why, whole, self._until_allowed, skip, do_skip)

    def _until_allowed(self) -> float:
        """Seconds until it is worth asking again; a limit that a person raises holds at once."""
        self.loop.follow_limit()
        refused = self.loop.refusal()
        if refused is None:
            return 0.0
        return refused.retry_after if refused.retry_after is not None else 1.0

    def _keep_pace(self) -> Outcome | None:
        """With `pace`, delay a start once so that the provider's window lasts, and say how far ahead or behind it is.

        Where no window is known, the starts are spread over the hourly limit. A run that waits for nothing is not
        paced.
        """
        if not (self.options.pace and self.options.wait) or self._paced:
            return None
        self._paced = True
        clock = self.loop.engine.clock
        now = clock()
        window = tightest(self.loop.provider.windows(), now)
        if window is not None:
            seconds, why = delay(window, now), words(window, now)
        else:
            used, limit, last = starts_in_hour(self.loop.engine)
            seconds, why = spacing(used, limit, last, now), f"{used} of {limit} starts used within the hour"
        if seconds <= 0:
            self.view.tells(*([] if window is None else [f"pace: {why}"]))
            return None
        skipped: list[bool] = []

        def left() -> float:
            return 0.0 if skipped else now + seconds - clock()

        return self._wait(f"pace: {why}", seconds, left, "start now", lambda: skipped.append(True))

    def _wait(
        self, why: str, whole: float, left: Callable[[], float], skip: str, do_skip: Callable[[], None]
    ) -> Outcome | None:
        """Until nothing is left to wait for; a person's reset, key or interruption, or the run's own cap, ends it
        early. `skip` says what the key does."""
        while (remaining := left()) > 0:
            if self._interrupted:
                return self._outcome(INTERRUPTED, self._stopped_why())
            if capped := self._cap():
                return capped
            if self.view.waits(why, remaining, max(whole, remaining), skip):
                do_skip()
                continue
            time.sleep(min(0.25, remaining))
        return None

    # -- the rest -------------------------------------------------------------------------------------

    def _cap(self) -> Outcome | None:
        options = self.options
        if self._interrupted:
            return self._outcome(INTERRUPTED, self._stopped_why())
        if self._is_halted():
            return self._outcome(HALTED, "", self._halt)
        if options.max_iterations is not None and self.iterations >= options.max_iterations:
            why = f"its iterations are used up (--max-iterations {options.max_iterations})"
            return replace(self._outcome(CAPPED, why), cap="max-iterations")
        if self._time_is_up():
            return replace(self._outcome(CAPPED, "its time is up (--max-time)"), cap="max-time")
        if options.max_cost is not None and (self.cost or 0.0) >= options.max_cost:
            why = f"${self.cost or 0.0:.2f} were spent (--max-cost {options.max_cost:g})"
            return replace(self._outcome(CAPPED, why), cap="max-cost")
        return None

    def _time_is_up(self) -> bool:
        limit = self.options.max_seconds
        return limit is not None and time.monotonic() - self._started >= limit

    def _longest(self) -> float:
        """Seconds that what is started now may take: the run's own time is not exceeded either."""
        if self.options.max_seconds is None:
            return self.options.timeout
        left = self.options.max_seconds - (time.monotonic() - self._started)
        return max(0.05, min(self.options.timeout, left))

    def _prompt(self, begun: IterationStart) -> str | None:
        """Read the file every time, so that a person can steer a running loop; any advice stands below it."""
        if self.options.prompt is None:
            return None
        try:
            text = read_regular(self.options.prompt).decode("utf-8", "replace")
        except OSError as error:
            raise FusewireError(f"the prompt cannot be read: {self.options.prompt}: {error.strerror}") from error
        return text + begun.advice.in_prompt(begun.number, begun.state)

    def _prompt_in_command(self) -> bool:
        return any("{prompt}" in part for part in self.options.command)

    def _environment(self, begun: IterationStart) -> dict[str, str]:
        return {
            **self._surroundings("loop"),
            **(self._confinement.variables if self._confinement else {}),
            "FUSEWIRE_ITERATION": str(begun.number),
            "FUSEWIRE_STATE": begun.state,
            "FUSEWIRE_ADVICE": "\n".join(begun.advice.lines).replace("\0", ""),
            "FUSEWIRE_CALLS_LEFT": str(begun.calls_left),
        }

    def _surroundings(self, who: str) -> dict[str, str]:
        """What everything that this run starts can know of it."""
        return {**children_environment(), **self._variables(who)}

    def _variables(self, who: str) -> dict[str, str]:
        root = os.path.realpath(self.loop.root)
        return {"FUSEWIRE_AGENT": who, PROJECT: root, nesting.DEPTH: str(self._depth), RUN: self._ledger.task}

    def _interrupt(self, number: int) -> None:
        """Called from a signal handler: print and write nothing here."""
        self._by_a_person = number == signal.SIGINT
        self._interrupted = True

    def _stops(self) -> bool:
        if self._interrupted or self._is_halted():
            self._tell_once("stopping: the agent is asked to end ...")
            return True
        return False

    def _is_halted(self) -> bool:
        """Whether a person has halted this run; asked several times a second, and it stays so."""
        self._halt = self._halt or halt_here(self.loop.root)
        return self._halt is not None

    def _outcome(self, code: int, reason: str, decision: Decision | None = None) -> Outcome:
        if decision is not None:
            reason = f"{decision.rule}: {decision.reason}"
        return Outcome(code, reason, self.iterations, time.monotonic() - self._started, self.cost, decision)


class Signals:
    """While a run lasts, Ctrl-C and its kin end it in order instead of in the middle."""

    _ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, act: Callable[[int], None]) -> None:
        self.act = act
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in self._ENDS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                self._before[number] = signal.signal(number, self._arrived)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.act(number)


def _how(ended: ProcessEnd) -> str:
    return f"ended with {ended.code}" if ended.why == "exit" else f"did not end ({ended.why})"


def _quoted(output: str) -> str:
    """In a fence: an agent that echoes its prompt does not fail again by that."""
    inside = output.replace("```", "'''")
    return f" Its output ends with:\n```\n{inside}\n```" if output else ""

"""End an iteration: judge it, send the signals, learn from the trips and remember it, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fusewire.agents.provider import agent_of_format
from fusewire.breakers.loop import lessons
from fusewire.breakers.loop.advice import rank
from fusewire.breakers.loop.detect import CIRCUITS, judge, show_approach
from fusewire.breakers.loop.overview import calls_left, risk_of, strictest
from fusewire.breakers.loop.plan import completed
from fusewire.breakers.loop.questions import question_of, times_asked
from fusewire.breakers.loop.report import escalation_log
from fusewire.breakers.loop.state import RATE, LoopRecord
from fusewire.breakers.loop.types import IterationResult, halt_cause
from fusewire.core.circuit import step
from fusewire.core.events import Signal, plain
from fusewire.core.meters import level
from fusewire.util.errors import NotFound

if TYPE_CHECKING:
    from fusewire.agents.output.answer import AgentOutput
    from fusewire.breakers.loop.detect import Judgement
    from fusewire.breakers.loop.iteration import Iteration
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.state import Halt, HistoryEntry, RunningEntry
    from fusewire.breakers.loop.types import IterationStart, IterationTrace
    from fusewire.core.circuit import CircuitState
    from fusewire.core.decision import Decision
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.stores import Transaction

#: Names of changed files, and characters of a text, in the history.
_NAMES, _TEXT = 20, 300

#: More than any limit of the model's replies.
_MOST_TURNS = 1008


def loop_states(work: BreakerTransaction) -> dict[str, CircuitState]:
    """Return every circuit of the loop, and its rate limit, as they are now."""
    return {circuit: work.state(circuit) for circuit in (*CIRCUITS, RATE)}


@dataclass
class Settling:
    """The end of one iteration."""

    loop: Loop
    token: str
    facts: Iteration
    answer: AgentOutput
    seen: IterationTrace
    begun: IterationStart | None
    seconds: float
    finished: str

    def settle(self, work: BreakerTransaction) -> IterationResult:
        transaction, now = work.transaction, work.now
        record, removed = self._record(transaction, now)
        running = record.running.pop(self.token, None)
        if running is None:
            raise NotFound(f"no iteration {self.token} is under way; begin one: fusewire loop begin")
        facts = self._in_context(record, running)
        record.detector, judged = judge(record.detector, facts, running["held"], self.token)
        decisions = [self._send(work, signal, judged) for signal in judged.signals]
        if len(self.loop.breaker.rules.policy(RATE).meters) > 1:  # else nobody limits them
            for _ in range(min(self.answer.calls or 1, _MOST_TURNS)):
                work.send(Signal("note", RATE, "turn"))
        trips = sorted((one for one in decisions if one.tripped), key=lambda one: rank(one.circuit))
        if self.finished and judged.kind == "progress" and self.seen.verdict != "halt":
            record.detector = record.detector.after_good_end()
            for circuit in CIRCUITS:
                if work.state(circuit).phase == "closed":
                    work.send(Signal("restart", circuit, "restart", text="the run ended well"))
        states = loop_states(work)
        self._learn(record, running, judged, trips, states, now)
        entry = self._entry(running, judged, trips, states, now)
        found = self.seen.text if self.seen.verdict == "halt" else ""
        if found:
            entry["errors"] = [plain(halt_cause(found), _TEXT), *entry["errors"]]
        record.add(entry)
        trips = [self._with_history(trip, states, record) for trip in trips]
        halted = "\n".join(text for text in (found, removed) if text)
        escalates = any(self._escalates(decision, states) for decision in trips)
        record.halted = self._halt(running, halted, trips if escalates else [])
        record.agent = agent_of_format(self.answer.format) or record.agent
        record.remember(transaction, now)
        return IterationResult(
            number=entry["number"],
            state=strictest(states),
            kind=judged.kind,
            score=judged.score,
            points=judged.points,
            change=self.seen.change,
            answer=self.answer,
            ended=self.facts.ended,
            trips=tuple(trips),
            escalates=escalates,
            halted=halted,
            told=self.seen.text if self.seen.verdict == "tell" else "",
            finished=self.finished,
            question=question_of(entry),
            asked=times_asked(record.history),
            entry=entry,
        )

    def _send(self, work: BreakerTransaction, signal: Signal, judged: Judgement) -> Decision:
        """Where an error repeats, the score opens the error's circuit: with its text and its strategies."""
        rules, facts = self.loop.breaker.rules, self.facts
        if (
            signal.name == "score"
            and judged.repeats
            and facts.ended == "exit"
            and rules.mode("loop.score") == "enforce"
        ):
            policy, state = rules.policy(signal.circuit), work.state(signal.circuit)
            after, outcome = step(policy, state, signal, work.now)
            if outcome.tripped:
                (score,) = policy.meters
                value = level(score, after.meters[score.name], work.now)
                work.send(Signal("restart", signal.circuit, "restart", text="the same error opens its own circuit"))
                signal = Signal(
                    *("bad", "loop/same_error", "stagnation", value, facts.error, facts.error_text), lease=self.token
                )
        return work.send(signal)

    def _entry(
        self,
        running: RunningEntry,
        judged: Judgement,
        trips: list[Decision],
        states: dict[str, CircuitState],
        now: float,
    ) -> HistoryEntry:
        """The iteration as the history keeps it."""
        facts, answer, change, rules = self.facts, self.answer, self.seen.change, self.loop.breaker.rules
        tests = facts.tests
        return {
            "number": running["number"],
            "at": now,
            "state": "HALF_OPEN" if running["held"] else "CLOSED",
            "kind": judged.kind,
            "ended": facts.ended,
            "score": judged.score,
            "points": judged.points,
            "tasks": judged.tasks,
            "files": change.count,
            "names": [plain(name, _TEXT) for name in change.files[:_NAMES]],
            "commits": change.commits,
            "tests": [tests.passed, tests.failed, tests.skipped, tests.broken] if tests else None,
            "errors": [plain(str(one), _TEXT) for one in answer.problems[:5]],
            "error": facts.error,
            "blocked": plain(facts.blocked, _TEXT),
            "approach": plain(show_approach(facts.said_approach or facts.approach or ""), _TEXT),
            "lines": facts.lines,
            "calls": answer.calls or 1,
            "calls_left": calls_left(rules, states, now),
            "cost": None if answer.cost is None else max(0.0, answer.cost),
            "seconds": round(self.seconds, 3),
            "risk": risk_of(rules, states, now),
            "trips": [decision.circuit for decision in trips],
        }

    def _in_context(self, record: LoopRecord, running: RunningEntry) -> Iteration:
        """Add the ticked tasks; where two iterations overlapped, leave the tree out, as it may be the other's work."""
        ticked = completed(running.get("boxes", ([], [])), self.seen.boxes)
        facts = replace(self.facts, ticked=tuple(ticked))
        if record.running or any(entry["at"] > running["at"] for entry in record.history):
            facts = replace(facts, tree="", tree_before="")
        return facts

    def _halt(self, running: RunningEntry, halted: str, escalated: list[Decision]) -> Halt:
        text = halted or "; ".join(f"{decision.rule}: {decision.reason}" for decision in escalated)
        if not text:
            return {}
        circuits = " ".join(decision.circuit for decision in escalated)
        guard = "halted" if halted else ""
        return {"owner": running["owner"], "text": plain(text, 1000), "circuits": circuits, "guard": guard}

    def _record(self, transaction: Transaction, now: float) -> tuple[LoopRecord, str]:
        """What is remembered; if the agent has removed it, what was remembered when it began."""
        record = LoopRecord.recalled(transaction)
        begun = self.begun
        if begun is None:
            return record, ""
        lost = [row for row in begun.rows if row.state is not None and transaction.load(row.id) is None]
        if self.token in record.running and not lost:
            return record, ""
        for row in lost:
            transaction.save(row.id, row.kind, row.phase, row.state or {}, now)
        text = "Fusewire's own state was removed during the iteration"
        transaction.notice(f"{text}; the loop's part of it was put back", now)
        text = f"BLOCKED loop.state: {text}; it has been put back."
        self.loop.protection.halt(text)
        return record if self.token in record.running else LoopRecord.from_data(begun.memory), text

    def _learn(
        self,
        record: LoopRecord,
        running: RunningEntry,
        judged: Judgement,
        trips: list[Decision],
        states: dict[str, CircuitState],
        now: float,
    ) -> None:
        strategy = running.get("strategy") or ""
        if judged.kind != "neutral":
            for circuit in running["held"]:
                helped = states[circuit].phase == "closed"
                record.lessons = lessons.after_probe(record.lessons, circuit, strategy, helped=helped)
        for decision in trips:
            record.lessons = lessons.after_trip(record.lessons, decision, running["number"], now)

    def _with_history(self, trip: Decision, states: dict[str, CircuitState], record: LoopRecord) -> Decision:
        """Where a person must decide: what was tried, and what the last strategy wants them to be given."""
        steps = self.loop.breaker.rules.policy(trip.circuit).next
        if not self._escalates(trip, states):
            return trip
        tried = states[trip.circuit].in_a_row >= len(steps)
        evidence = [*trip.evidence]
        if tried and len(steps) > 1:
            evidence.append(f"all strategies were tried: {'; '.join(steps[:-1])}")
        evidence += escalation_log(trip.circuit, record.history)
        found: Decision = trip.replace(evidence=tuple(evidence), next=steps[-1:] if tried else trip.next)
        return found

    def _escalates(self, decision: Decision, states: dict[str, CircuitState]) -> bool:
        steps = self.loop.breaker.rules.policy(decision.circuit).next
        return decision.alert or states[decision.circuit].in_a_row >= len(steps)

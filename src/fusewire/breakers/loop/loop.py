"""Begin and end an iteration around any agent; `fusewire run`, `fusewire loop` and the library all use this.

`begin` asks every circuit of the loop and the rate limit in one transaction, and records the tree and the protected
files. `end` judges the difference, sends the circuits their signals and remembers the iteration, in one transaction
again. In between nothing is locked. If the process is killed in between, the next `begin` settles its iteration.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from fusewire.agents.output.answer import AgentOutput
from fusewire.agents.output.reader import AnswerReader
from fusewire.breakers.loop.advice import advice_for, rank
from fusewire.breakers.loop.detect import CIRCUITS
from fusewire.breakers.loop.iteration import ending, facts_of
from fusewire.breakers.loop.layout import Places
from fusewire.breakers.loop.overview import calls_left, overview
from fusewire.breakers.loop.plan import WorkPlan
from fusewire.breakers.loop.protection import Protection
from fusewire.breakers.loop.provider import LoopProvider
from fusewire.breakers.loop.settle import Settling, loop_states
from fusewire.breakers.loop.state import RATE, LoopRecord
from fusewire.breakers.loop.types import IterationResult, IterationStart, IterationTrace, halt_cause
from fusewire.breakers.loop.worktrees import other_loops, own_part
from fusewire.config.rules import load_rules
from fusewire.core.decision import Blocked, Decision, merge
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.scopes.providers import believable
from fusewire.util.errors import FusewireError, InvalidTransition, NotFound
from fusewire.util.processes import is_alive, process_identity
from fusewire.util.reaper import end_marked
from fusewire.worktree.difference import TreeChange, difference
from fusewire.worktree.snapshot import Snapshot, take

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from types import TracebackType
    from typing import TypeVar

    from fusewire.breakers.loop.advice import Advice
    from fusewire.config.rules import Rules
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.testruns.run import TestRun

    Found = TypeVar("Found")

#: Seconds that the processes of a killed supervisor's agent get to end by themselves.
_GRACE = 2.0


class Loop:
    """The loop of one project. Safe to use from several processes at once."""

    def __init__(self, breaker: Breaker, *, plan: str | None = None) -> None:
        if breaker.root is None:
            raise FusewireError("a loop needs a project to watch")
        self.breaker = breaker
        self.engine = breaker.engine
        self.root = breaker.root
        self.places = Places(self.root)
        self.plan = WorkPlan(self.root, plan)
        self.protection = Protection(self.root, breaker.rules)
        self.provider = LoopProvider(breaker, LoopRecord.recalled(breaker.store).agent)
        #: the project's rules as they stand in its files; a demonstration may follow others
        files = load_rules(self.root)
        self._rules = _fingerprint(files)
        self._follows_limit = True
        #: the newest snapshot that this process took: it makes the next one cheap
        self._last: Snapshot | None = None

    @classmethod
    def open(cls, project: str | os.PathLike[str] | None = None, *, plan: str | None = None) -> Loop:
        """The loop of the project around a folder (default: the current one)."""
        if project is not None and not os.path.isdir(project):
            raise FusewireError(f"no such folder: {os.fspath(project)}")
        return cls(Breaker.open(project=project), plan=plan)

    # -- before ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """A person has started a run: what halted the last one of this process is over, and lessons are due."""

        def renew(work: BreakerTransaction, record: LoopRecord) -> None:
            record.owner, record.halted = "", {}

        self._change(renew)

    def refusal(self) -> Decision | None:
        """Why no iteration may begin now, and for how long; nothing is written and no call is counted."""
        asked = [self.engine.foresee(_question(circuit, "nobody")) for circuit in (*CIRCUITS, RATE)]
        return _refused([*asked, *filter(None, [self.provider.refusal()])])

    def begin(self, *, owner: str | None = None) -> IterationStart:
        """Begin an iteration; raises `Blocked` while a circuit is open or the hour is full.

        `owner` is the process that will end it: if it dies before, the next one to begin settles the iteration.
        """
        owner = owner or process_identity(os.getpid()) or ""
        self.settle_lost()
        refused = self._halted(owner) or self.refusal()
        if refused is not None:
            raise Blocked(refused)
        self.protection.begin(self.engine.clock())
        self._rules = _fingerprint(load_rules(self.root))  # what has changed since the last iteration is a person's
        before = self._snapshot()
        token = os.urandom(6).hex()
        self.places.save_before(token, before.to_data())
        try:
            if refused := self.provider.take(token, owner):
                raise Blocked(refused)
            return self._begin(token, before, owner)
        except BaseException:
            self.provider.release(token)
            self.places.forget(token)
            raise

    def _halted(self, owner: str) -> Decision | None:
        """A halted process goes on only after a person's reset, guard snapshot or new start."""
        halted = LoopRecord.recalled(self.breaker.store).halted
        if halted.get("owner") != owner:
            return None
        escalated = [name for name in halted["circuits"].split() if self.engine.view(name)[1].phase == "open"]
        if not escalated and not (halted["guard"] and self.protection.halted()):
            return None
        return Decision(
            "deny", rule="loop.halted", reason=halted["text"], by_person=("a person can start the loop again",)
        )

    def _begin(self, token: str, before: Snapshot, owner: str) -> IterationStart:
        def begin(work: BreakerTransaction, record: LoopRecord) -> tuple[LoopRecord, tuple[str, ...], Advice, int]:
            decisions = [work.send(_question(name, token)) for name in (*CIRCUITS, RATE)]
            refused = _refused(decisions)
            if refused is not None:  # and everything that was asked is undone with the transaction
                raise Blocked(refused)
            held = tuple(decision.circuit for decision in decisions if decision.lease == token)
            first, record.owner = record.owner != owner, owner
            record.iteration += 1
            record.running[token] = {
                "number": record.iteration,
                "at": work.now,
                "owner": owner,
                "held": list(held),
                "boxes": self.plan.boxes(),
            }
            states = loop_states(work)
            left = calls_left(self.breaker.rules, states, work.now)
            advice = advice_for(self.breaker.rules, states, held, record, left, first, work.now)
            record.running[token]["strategy"] = advice.strategy
            record.notes = []
            return record, held, advice, left

        record, held, advice, left = self._change(begin)
        rows = tuple(row for row in self.breaker.store.circuits() if row.kind == "loop")
        state = "HALF_OPEN" if held else "CLOSED"
        return IterationStart(token, record.iteration, state, advice, left, before, held, record.to_data(), rows)

    # -- after ----------------------------------------------------------------------------------------

    def look(self, token: str, begun: IterationStart | None = None, *, ignored: Iterable[str] = ()) -> IterationTrace:
        """Look at what the agent has changed, before any check runs; protected files are restored here.

        Files that are `ignored` are the loop's own, such as the agent's output: no work of the agent's.
        """
        before = begun.before if begun else self._before(token)
        cause = f"iteration {begun.number} of the loop" if begun else "an iteration of the loop"
        verdict, text = self.protection.after(cause, self.engine.clock())
        if verdict != "halt" and (changed := self._rules_changed()):
            verdict, text = changed
        # Only now: what the guard has put back is no change.
        after = self._snapshot()
        if verdict == "halt":
            halted = f"the loop was halted: {halt_cause(text)}"
            self.engine.transact(lambda transaction, now: transaction.notice(halted, now))
        if before is None:
            return IterationTrace(
                TreeChange(problem="what was there before is not known"), "", self.plan.boxes(), verdict, text
            )
        real = os.path.realpath(self.root)
        own = {os.path.relpath(os.path.realpath(os.path.join(self.root, path)), real) for path in ignored}
        running = LoopRecord.recalled(self.breaker.store).running.get(token)
        began = running["at"] if running else self.engine.clock()
        if others := [one for one in other_loops(self.root) if one.ran_since(began)]:
            before, after = own_part(before, after, others)
        return IterationTrace(difference(before, after, ignored=own), before.tree, self.plan.boxes(), verdict, text)

    def _rules_changed(self) -> tuple[str, str] | None:
        """Whether another start would follow other rules than this one does: that is for a person to decide."""
        fresh = load_rules(self.root)
        if _fingerprint(fresh) == self._rules:
            return None
        self._rules = _fingerprint(fresh)
        if self.protection.changed_by_person():
            return "tell", "fusewire.toml was edited from outside the sandbox; the next run follows it."
        text = "BLOCKED loop.rules: Fusewire's configuration was changed during the iteration."
        self.protection.halt(text)
        return "halt", text

    def end(
        self,
        token: str,
        *,
        why: str = "exit",
        code: int | None = 0,
        answer: AgentOutput | None = None,
        tests: TestRun | None = None,
        begun: IterationStart | None = None,
        seen: IterationTrace | None = None,
        seconds: float = 0.0,
        finished: str | None = None,
    ) -> IterationResult:
        """Judge an iteration that has begun and is over. `tests` are those that the agent did not run itself.

        `finished` is the claim that all is done, as far as it was verified; by default it is believed.
        """
        answer = answer or AgentOutput()
        seen = seen or self.look(token, begun)
        if finished is None:
            finished = self.claim(token, why, code, answer)
        facts = facts_of(ending(why, code), answer, seen.change, tests, seen.tree_before, finished=bool(finished))
        if answer.limit is not None:
            facts = replace(facts, ends=believable(answer.limit.resets_at, self.engine.clock()) is not None)
        running = LoopRecord.recalled(self.breaker.store).running.get(token)
        result = self.engine.run(Settling(self, token, facts, answer, seen, begun, seconds, finished).settle)
        self.provider.settle(token, running["owner"] if running else "", why, code, answer)
        self.places.forget(token)
        self.places.log_status(result.entry)
        return result

    def claim(self, token: str, why: str, code: int | None, answer: AgentOutput) -> str:
        """Why the work is said to be done: the agent's word, or the plan. The word of one that failed is none."""
        if why != "exit" or code != 0 or answer.is_error:
            return ""
        if answer.status is not None and answer.status.exit_signal:
            return "the agent says EXIT_SIGNAL: true"
        running = LoopRecord.recalled(self.breaker.store).running.get(token)
        return self.plan.finished(running.get("boxes", ([], [])) if running else ([], []))

    def abandon(self, token: str) -> None:
        """Give up an iteration without a judgement: its call stays counted, its probe is free again."""

        def release(work: BreakerTransaction, record: LoopRecord) -> None:
            running = record.running.pop(token, None)
            for circuit in running["held"] if running else ():
                work.send(Signal("release", circuit, "release", lease=token))

        self._change(release)
        self.provider.release(token)
        self.places.forget(token)

    def end_cooldowns(self) -> None:
        """What a person's `fusewire reset loop` does: the one probe may run now, and decides."""
        with suppress(InvalidTransition):  # another person was quicker
            members = self.breaker.rules.group("loop")
            self.breaker.reset_group("loop", members, "a key pressed at the terminal of the run")

    def limit_calls(self, limit: int) -> None:
        """Follow this limit of calls an hour instead of the project's."""
        policy = self.breaker.rules.policy(RATE)
        calls, *rest = policy.meters
        limited = calls.replace(trip=limit, warn=0.8 * limit)
        self.breaker.rules.replace_policy(RATE, policy.replace(meters=(limited, *rest)).to_data())
        self._follows_limit = False

    def follow_limit(self) -> None:
        """Take over a limit that a person has changed while no agent runs."""
        fresh = load_rules(self.root)
        if self._follows_limit and _fingerprint(fresh) != self._rules:
            self._rules = _fingerprint(fresh)
            self.breaker.rules.replace_policy(RATE, fresh.policies[RATE])

    def note(self, text: str) -> None:
        """Give the agent a note with its next prompt."""

        def add(work: BreakerTransaction, record: LoopRecord) -> None:
            record.notes = [*record.notes, text][-5:]

        self._change(add)

    def _change(self, work: Callable[[BreakerTransaction, LoopRecord], Found]) -> Found:
        """Change the loop's record, and its circuits, in one transaction."""

        def change(transaction: BreakerTransaction) -> Found:
            record = LoopRecord.recalled(transaction.transaction)
            result = work(transaction, record)
            record.remember(transaction.transaction, transaction.now)
            return result

        return self.engine.run(change)

    def running(self, owners: Collection[str]) -> str | None:
        """The newest iteration that one of these processes has begun and not ended."""
        record = LoopRecord.recalled(self.breaker.store)
        mine = [token for token, entry in record.running.items() if entry["owner"] in owners]
        return max(mine, key=lambda token: int(record.running[token]["number"]), default=None)

    def settle_lost(self) -> list[IterationResult]:
        """Settle the iterations whose supervisor is dead: what they changed counts, else they are neutral."""
        record = LoopRecord.recalled(self.breaker.store)
        self.places.tidy(record.running)
        lost = [token for token, entry in record.running.items() if not is_alive(entry["owner"])]
        results = []
        for token in lost:
            end_marked(token, _GRACE)
            try:
                results.append(self.end(token, why="stopped", code=None))
            except NotFound:  # another process has settled it
                continue
        return results

    def iteration(self) -> OwnIteration:
        """A context manager around one iteration of a loop of your own; raises `Blocked` if it may not begin."""
        return OwnIteration(self)

    # -- looking --------------------------------------------------------------------------------------

    def view(self) -> dict[str, Any]:
        """The loop as it is now, for people and programs: state, risk, calls, time left, score, trend, metrics."""
        return asdict(overview(self.breaker))

    def _snapshot(self) -> Snapshot:
        self._last = take(self.root, self._last or self._before("last"))
        self.places.save_before("last", self._last.to_data())
        return self._last

    def _before(self, token: str) -> Snapshot | None:
        data = self.places.before(token)
        try:
            return None if data is None else Snapshot.from_data(data)
        except ValueError:
            return None


class OwnIteration:
    """One iteration of a loop of your own: pass it what the agent printed; afterwards it has a `result`."""

    result: IterationResult

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._code: int | None = 0
        self._why = "exit"

    def __enter__(self) -> OwnIteration:
        self._begun = self._loop.begin()
        self._reader = AnswerReader(self._loop.engine.clock())
        return self

    @property
    def number(self) -> int:
        return self._begun.number

    @property
    def advice(self) -> str:
        """What to add to the prompt; often nothing."""
        return self._begun.advice.in_prompt(self._begun.number, self._begun.state)

    def answered(self, output: str | bytes, *, exit_code: int = 0, timed_out: bool = False) -> None:
        """What the agent printed (may come in parts), and how it ended."""
        self._reader.feed(output.encode("utf-8", "replace") if isinstance(output, str) else output)
        self._code, self._why = exit_code, "timeout" if timed_out else "exit"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):  # interrupted: neither good nor bad
            self._loop.abandon(self._begun.token)
            return
        if error is not None:
            self._reader.feed_error(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
            self._code = self._code or 1
        answer = self._reader.finish(self._code, partial=self._why == "timeout")
        self.result = self._loop.end(
            self._begun.token, why=self._why, code=self._code, answer=answer, begun=self._begun
        )


def _question(circuit: str, token: str) -> Signal:
    return Signal("ask", circuit, "call" if circuit == RATE else "iteration", lease=token)


def _refused(decisions: list[Decision]) -> Decision | None:
    """The refusal that lasts longest; of equal ones that which says most."""
    refusals = [decision for decision in decisions if not decision.allowed]
    if not refusals:
        return None
    refusals.sort(key=lambda one: (-(one.retry_after if one.retry_after is not None else 1e12), rank(one.circuit)))
    return merge(refusals)


def _fingerprint(rules: Rules) -> tuple[Any, ...]:
    """Everything that the configuration says, for a comparison."""
    return rules.policies, rules.guard, rules.tool, rules.prices

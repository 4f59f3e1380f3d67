"""Give the events of one transcript to the hook's own steps, on a store in memory with the transcript's clock.

The past cannot be changed: after a trip the agent goes on as it did, and everything that would have been said is
counted; the first time is what matters. Neither can the disk be seen as it was: the guard reads a command line by its
words and by what the folder has in it now, and the snapshot of the protected files has no say.
"""

from __future__ import annotations

import marshal
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fusewire.agents import AGENTS, BadPayload, agent_named
from fusewire.agents.claude.hooks import AGENT
from fusewire.breakers.constraint.detect import enforce
from fusewire.breakers.session.results import DENIED, MALFORMED
from fusewire.breakers.session.tool_calls import ToolCallBreakers
from fusewire.config.rules import find_project
from fusewire.core.messages import message
from fusewire.gate.context import Context
from fusewire.gate.pipeline import broken_constraints, decide, guard, tampering
from fusewire.guard.policy import protected_of
from fusewire.replay.replayed import Trip
from fusewire.stores.memory import MemoryStore

if TYPE_CHECKING:
    from fusewire.agents.protocol import Agent
    from fusewire.agents.transcripts.reader import Transcript
    from fusewire.agents.transcripts.step import TranscriptStep
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.guard.protected import Protected
    from fusewire.replay.replayed import Manner, Replayed
    from fusewire.util.fast_json import JsonObject

#: Where a format has no times, each call and each message is this many seconds after the last.
PACE = 5.0

#: A text that is shown as evidence.
_EVIDENCE = 200

#: Where a session ran whose transcript does not tell; paths are only compared with each other.
_ROOT = "/home/dev/project"

#: How the start of a helper in the background is answered.
_LAUNCHED = "Async agent launched"

#: How clients show the agent what a hook of ours has said: their own words, then the verdict, the rule and the fact.
_IN_LIFE = re.compile(
    r"[^\n]{0,60}\b(?i:hook|blocked|denied|stopped)\b[^\n]{0,60}?: (?P<verdict>BLOCKED|HALTED|CIRCUIT OPEN) "
    r"(?P<rule>(?:tool|guard|scope|loop|phase|attempt|fusewire|constraint)[.:]\S+): (?P<fact>.*)",
    re.DOTALL,
)


class _Clock:
    """The transcript's time. It does not run backwards, whatever the order in which sub-agents were written down."""

    def __init__(self, pace: float | None) -> None:
        self._pace = pace
        self.now = 1_700_000_000.0
        self._started = False

    def __call__(self) -> float:
        return self.now

    def moves(self, at: float | None, *, paced: bool) -> None:
        if at is None or self._pace is not None:
            self.now += (self._pace or PACE) if paced else 0.0
        elif self._started:
            self.now = max(self.now, at)
        else:
            self.now, self._started = at, True


class _QuickStore(MemoryStore):
    """Every event reads and writes memories: what no other process reads needs not be JSON."""

    _written = staticmethod(marshal.dumps)
    _read = staticmethod(marshal.loads)


class _Watch(ToolCallBreakers):
    """The breakers of a session; what it has cost comes from the transcript as it is read, not from its file."""

    usd = 0.0

    def unit(self, *about: Any) -> UnitOfWork:
        unit = super().unit(*about)
        if unit.state.usd != self.usd:
            unit.state.spend, unit.state.spend_near = {"usd": self.usd}, True
        return unit


class _PastEvent(Context):
    """An event of the past: the rules and the folder of its session, and nothing that is under way here today."""

    __slots__ = ("session",)

    def __init__(self, event: Event, session: PastSession) -> None:
        super().__init__(event, session.root, session.root, {}, session.watch.rules)
        self.session = session

    is_scoped = False

    @property
    def protected(self) -> Protected:
        return self.session.protected

    @property
    def is_attended(self) -> bool:
        return self.session.watch.is_attended

    @property
    def asks(self) -> bool:
        return self.event.kind == "before_tool" and self.session.watch.asks


def _constraints(event: Event, context: _PastEvent) -> Decision | None:
    if event.kind != "before_tool":
        return None
    watch = context.session.watch
    names = broken_constraints(event, context)
    return (
        enforce(names, event, context.session.store, watch.rules, None, context.cannot_ask, watch.clock)
        if names
        else None
    )


def _breakers(event: Event, context: _PastEvent) -> Decision:
    commands = context.commands if event.kind == "before_tool" else context.plain
    refused_by = context.refusal.rule if context.refusal is not None else ""
    watch = context.session.watch
    return watch.handle(event, commands, looks=context.looks, refused_by=refused_by, logged=context.logged)


_STEPS = (tampering, guard, _constraints, _breakers)


@dataclass(slots=True)
class _Made:
    """A call of a reply: how the hook sees it, what the model was shown of it, and whether that was counted."""

    step: TranscriptStep
    event: Event | None = None
    shown: str = ""
    #: it was refused here: what came of it in the past is not told to the breakers
    is_refused: bool = False
    is_settled: bool = False


class PastSession:
    """One transcript as the events that the hook would have been sent, each answered by the hook's own breakers.

    A call is held back until the next step, because what Claude Code finds wrong before it asks its hooks (arguments
    that do not fit, a tool that does not exist) is known by its result only, and is shown to the hook with the batch.
    """

    def __init__(self, found: Replayed, rules: Rules, transcript: Transcript, manner: Manner) -> None:
        self.found = found
        self.transcript = transcript
        self.clock = _Clock(manner.pace)
        asks = found.attended and transcript.format == AGENT.name
        self.store = _QuickStore()
        self.watch = _Watch(self.store, rules, self.clock, is_attended=found.attended, asks=asks)
        #: where the session took place, as soon as a call tells
        self.root, self._is_placed = _ROOT, False
        self._protected = manner.protected
        self._agent = agent_named(transcript.format) if transcript.format in AGENTS else AGENT
        self._halted = False
        self._firsts: dict[tuple[str, str], Trip] = {}
        self._in_life: dict[tuple[str, str], Trip] = {}
        self._times: Counter[tuple[str, str]] = Counter()
        self._held: TranscriptStep | None = None
        #: of each agent, the calls of its reply by their ids
        self._batches: dict[str, dict[str, _Made]] = {}
        self._agents: set[str] = set()
        #: without the helpers' own transcripts nobody knows when one ends: it is held to have ended at once
        self._sees_helpers = os.path.isdir(os.path.join(os.path.splitext(found.path)[0], "subagents"))

    @property
    def protected(self) -> Protected:
        if self.root not in self._protected:
            self._protected[self.root] = protected_of(self.root, self.watch.rules)
        return self._protected[self.root]

    def take(self, step: TranscriptStep) -> None:
        """One more step of the transcript."""
        if self._held is not None:
            reached = step.kind != "result" or step.call != self._held.call or not step.text.startswith(MALFORMED)
            self._call(self._held, reached)
            self._held = None
        if step.kind == "call":
            self._held = _named_for_all(step, self._agent)
        else:
            self._step(step)

    def end(self) -> None:
        """The transcript has ended: what was found in it."""
        if self._held is not None:
            self._call(self._held, reached=True)
        trips = [replace(trip, times=self._times[key]) for key, trip in self._firsts.items()]
        self.found.trips = sorted(trips, key=lambda trip: trip.call)
        self.found.in_life = list(self._in_life.values())

    def _call(self, step: TranscriptStep, reached: bool) -> None:
        self.clock.moves(step.at, paced=True)
        if step.cwd and not self._is_placed:
            self.root, self._is_placed = find_project(step.cwd), True
        self.found.calls += 1
        self._helper(step)
        made = self._batches.setdefault(step.agent, {})[step.call] = _Made(step)
        if self._halted:
            self.found.calls_after_halt += 1
            return
        made.event = self._event(self._payload(step, "PreToolUse", **_given(step))) if reached else None
        answer = self._ask(made.event)
        if answer is not None and answer.verdict in ("deny", "halt"):
            made.is_refused = True
            made.shown = f"PreToolUse:{step.tool} hook error: {answer.text}"

    def _step(self, step: TranscriptStep) -> None:
        self.clock.moves(step.at, paced=step.kind == "prompt")
        if step.kind == "cost":
            self.found.usd_after_halt += step.usd if self._halted else 0
            self.watch.usd = self.found.usd = self.found.usd + step.usd
        elif step.kind == "prompt":
            self.found.prompts += 1
            self._halted = False  # a person speaks: the agent goes on
            self._ask(self._event(self._payload(step, "UserPromptSubmit", prompt=step.text)))
        elif step.kind == "result":
            self._result(step)
        elif step.kind == "reply_end":
            self.found.turns += 1
            self._reply_ends(step)

    def _result(self, step: TranscriptStep) -> None:
        made = self._batches.get(step.agent, {}).get(step.call)
        if made is not None and not made.is_refused:
            made.shown = step.text
        said = _IN_LIFE.match(step.text)
        if said is not None:
            self._note_life(said)
            return
        if made is None or made.is_refused or self._halted:
            return
        if step.text.startswith(MALFORMED) or (step.failed and step.text.startswith((*DENIED, "PreToolUse:"))):
            return
        shown: object = step.text
        if self._sees_helpers and step.text.startswith(_LAUNCHED):
            shown = {"status": "async_launched", "description": step.text}
        if made.event is not None:
            event = AGENT.outcome(made.event.replace(kind="after_tool", hook="PostToolUse"), {"tool_response": shown})
            self._ask(event.replace(failed=step.failed))
            made.is_settled = True

    def _reply_ends(self, step: TranscriptStep) -> None:
        batch = self._batches.pop(step.agent, {})
        if not batch:
            if step.agent in self._agents:  # its last words
                self._agents.discard(step.agent)
                self._ask(self._event(self._payload(step, "SubagentStop")))
            return
        if self.transcript.format == "claude":  # the only one that tells its hooks of batches
            # What was settled by its own event would only be read, and left out, once more.
            rest = [made for made in batch.values() if not made.is_settled]
            calls = [{**_given(made.step), "tool_response": made.shown} for made in rest]
            self._ask(self._event(self._payload(step, "PostToolBatch", tool_calls=calls)))

    def _helper(self, step: TranscriptStep) -> None:
        if step.agent and step.agent not in self._agents:
            self._agents.add(step.agent)
            self._ask(self._event(self._payload(step, "SubagentStart")))

    def _payload(self, step: TranscriptStep, hook: str, **more: Any) -> JsonObject:
        agent = {"agent_id": step.agent, "agent_type": "general-purpose"} if step.agent else {}
        return {"hook_event_name": hook, "session_id": "replayed", "cwd": step.cwd or self.root, **agent, **more}

    def _event(self, payload: JsonObject) -> Event | None:
        """The event as the hook sees it; None if it makes no sense there."""
        try:
            return AGENT.parse(payload, self.root)
        except BadPayload:
            return None

    def _ask(self, event: Event | None) -> Decision | None:
        """The answer to one event; a halted agent does nothing that could be asked about."""
        if self._halted or event is None:
            return None
        answer = decide(event, _PastEvent(event, self), _STEPS)
        self._halted = answer.verdict == "halt"
        for one in (answer, *answer.also):
            if one.verdict != "allow":
                self._note(one.rule, "block" if one.verdict == "deny" else one.verdict, message(one, self.clock.now))
        for one in answer.logged:
            self._note(one.rule, "log", f"would {one.verdict}: {one.reason}")
        return answer

    def _note(self, rule: str, action: str, text: str) -> None:
        key = _short(rule), action
        self._times[key] += 1
        self._firsts.setdefault(key, Trip(*key, self.found.calls, " ".join(text.split())[:_EVIDENCE]))

    def _note_life(self, said: re.Match[str]) -> None:
        """Fusewire watched this session when it took place, and stopped the call."""
        key = _short(said["rule"]), "halt" if said["verdict"] == "HALTED" else "block"
        first = Trip(*key, self.found.calls, " ".join(said["fact"].split())[:_EVIDENCE], times=0)
        known = self._in_life.get(key, first)
        self._in_life[key] = replace(known, times=known.times + 1)


def _given(call: TranscriptStep) -> JsonObject:
    return {"tool_name": call.tool, "tool_input": call.input, "tool_use_id": call.call}


def _named_for_all(step: TranscriptStep, agent: Agent) -> TranscriptStep:
    """The call with the names of tool and fields that they have for all agents, as the agent's hooks give them."""
    tool = agent.TOOLS.get(step.tool, step.tool)
    fields = agent.FIELDS.get(tool)
    if tool == step.tool and not fields:
        return step
    given = {name: value for field, value in step.input.items() if (name := (fields or {}).get(field, field))}
    return replace(step, tool=tool, input=given)


def _short(rule: str) -> str:
    """`repetition` of `tool.repetition:…`: the family; which call it was is in the evidence."""
    return rule if rule.startswith("constraint:") else rule.partition(":")[0].removeprefix("tool.")

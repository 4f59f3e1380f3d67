"""Replay sessions of the past through the breakers, to see what they would have said: transcripts in, trips out.

It is the hook's own code path on a store in memory, with the clock of the transcript, so that a threshold can be
judged by real work before it is shipped. The past cannot be changed: after a trip the agent goes on as it did, and
everything that would have been said is counted; the first time is what matters.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fusewire.agents import AGENTS, BadPayload, agent_named
from fusewire.agents.claude.hooks import AGENT
from fusewire.breakers.session.results import DENIED, MALFORMED
from fusewire.breakers.session.tool_calls import ToolCallBreakers
from fusewire.core.events import changes_files
from fusewire.engine.breaker import default_rules
from fusewire.guard.plain import only_look, plain_commands
from fusewire.stores.memory import MemoryStore
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.agents.protocol import Agent
    from fusewire.agents.transcripts.reader import Transcript
    from fusewire.agents.transcripts.step import TranscriptStep
    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.util.fast_json import JsonObject

#: What a watcher may answer beside "allow", from mild to strict, and how a report calls it. What a rule in `log` mode
#: would have answered is apart.
ACTIONS = {"tell": "told", "ask": "asked", "block": "refused", "halt": "halted", "log": "logged"}
SPOKEN = ("tell", "ask", "block", "halt")
STRICT = ("block", "halt")

#: Of which sessions a person can answer: as each transcript says, or the same for all.
PROFILES = ("auto", "attended", "unattended")

#: Endings of files that a folder is searched for.
ENDINGS = (".jsonl", ".traj", ".json")

#: Where a format has no times, each call and each message is this many seconds after the last.
PACE = 5.0

#: A text that is shown as evidence.
_EVIDENCE = 200

#: The sessions ran elsewhere; paths are only compared with each other.
_ROOT = "/home/dev/project"

#: How the start of a helper in the background is answered.
_LAUNCHED = "Async agent launched"

_EXIT_STATUS = re.compile(rb'"exit_status": ?"([^"\\]{1,60})"')
_RESOLVED = re.compile(rb'"resolved": ?(true|false)')


@dataclass(frozen=True)
class Manner:
    """How transcripts are replayed. `pace` is seconds from call to call, whatever the transcript's times are."""

    pace: float | None = None
    profile: str = "auto"


_DEFAULT = Manner()


@dataclass(frozen=True)
class Trip:
    """One rule's first answer of a kind in a transcript: at which call, in which words, and how often in all."""

    rule: str
    action: str
    call: int
    evidence: str
    times: int = 1


@dataclass
class Replayed:
    """One transcript, run through the breakers. `problem` is why it could not be read (to the end)."""

    path: str
    calls: int = 0
    turns: int = 0
    prompts: int = 0
    #: calls that came after a halt and before a person spoke again: without them the session would have been shorter
    calls_after_halt: int = 0
    attended: bool = False
    #: what tells whether a person was there
    attended_by: str = ""
    outcome: str = ""
    #: what a file of labels says of the transcript, such as `loop` or `paging`
    label: str = ""
    problem: str = ""
    trips: list[Trip] = field(default_factory=list)

    def first(self, *actions: str, rules: Iterable[str] | None = None) -> Trip | None:
        """The earliest trip that is one of these actions (any, if none is named), by one of these rules."""
        wanted = [
            trip
            for trip in self.trips
            if trip.action in (actions or SPOKEN) and (rules is None or trip.rule in set(rules))
        ]
        return min(wanted, key=lambda trip: trip.call, default=None)

    def to_json(self) -> JsonObject:
        return {**asdict(self), "outcome": self.outcome or None, "problem": self.problem or None}


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


def transcripts(paths: Iterable[str]) -> Iterator[str]:
    """The files that are meant: each that is named, and in folders those that end like a transcript, in order.

    What a sub-agent did is read with its session, so its own file is left out where the session's is there.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if name.endswith(ENDINGS) and not (name.startswith("agent-") and _has_session(folder)):
                    yield os.path.join(folder, name)


def _has_session(folder: str) -> bool:
    session, name = os.path.split(folder)
    return name == "subagents" and os.path.exists(f"{session}.jsonl")


def replay(path: str, rules: Rules | None = None, options: Manner = _DEFAULT) -> Replayed:
    """Run one transcript through the breakers; what cannot be read is said in the result, never raised."""
    found = Replayed(path)
    try:
        _run(found, rules or default_rules(), options)
        found.outcome = outcome(path)
    except (FusewireError, OSError) as error:
        found.problem = str(error).replace("\n", " ")
    except Exception as error:  # one odd transcript of a thousand must not cost the others
        found.problem = f"the breakers failed at call {found.calls}: {type(error).__name__}: {error}".replace("\n", " ")
    return found


def _run(found: Replayed, rules: Rules, options: Manner) -> None:
    from fusewire.agents.transcripts.reader import Transcript

    transcript = Transcript(found.path)
    if options.profile == "auto":
        found.attended, found.attended_by = transcript.is_attended()
    else:
        found.attended, found.attended_by = options.profile == "attended", "as asked for"
    session = _Session(found, rules, transcript, options)
    session.run()
    found.trips = [
        replace(trip, times=session.times[key])
        for key, trip in sorted(session.firsts.items(), key=lambda item: item[1].call)
    ]


class _Session:
    """One transcript as the events that the hook would have been sent, each answered by the hook's own breakers.

    A call is held back until the next step, because what Claude Code finds wrong before it asks its hooks (arguments
    that do not fit, a tool that does not exist) is known by its result only, and is shown to the hook with the batch.
    """

    def __init__(self, found: Replayed, rules: Rules, transcript: Transcript, options: Manner) -> None:
        self.found = found
        self.transcript = transcript
        self.clock = _Clock(options.pace)
        asks = found.attended and transcript.format == AGENT.name
        self.watch = ToolCallBreakers(MemoryStore(), rules, self.clock, is_attended=found.attended, asks=asks)
        self._agent = agent_named(transcript.format) if transcript.format in AGENTS else AGENT
        self._halted = False
        self.firsts: dict[tuple[str, str], Trip] = {}
        self.times: Counter[tuple[str, str]] = Counter()
        self._held: TranscriptStep | None = None
        #: of each agent, the calls of its reply: id -> [call, what the model was shown of it]
        self._batches: dict[str, dict[str, list[Any]]] = {}
        #: calls that were refused here: what came of them in the past is not told to the breakers
        self._refused: set[str] = set()
        self._agents: set[str] = set()
        #: without the helpers' own transcripts nobody knows when one ends: it is held to have ended at once
        self._sees_helpers = os.path.isdir(os.path.join(os.path.splitext(found.path)[0], "subagents"))

    def run(self) -> None:
        for step in self.transcript.steps():
            if self._held is not None:
                reached = step.kind != "result" or step.call != self._held.call or not step.text.startswith(MALFORMED)
                self._call(self._held, reached)
                self._held = None
            if step.kind == "call":
                self._held = _named_for_all(step, self._agent)
            else:
                self._step(step)
        if self._held is not None:
            self._call(self._held, reached=True)

    def _call(self, step: TranscriptStep, reached: bool) -> None:
        self.clock.moves(step.at, paced=True)
        self.found.calls += 1
        self._helper(step)
        self._batches.setdefault(step.agent, {})[step.call] = [step, ""]
        if self._halted:
            self.found.calls_after_halt += 1
            return
        answer = self._ask(self._payload(step, "PreToolUse", **_given(step))) if reached else None
        if answer is not None and answer.verdict in ("deny", "halt"):
            self._refused.add(step.call)
            self._batches[step.agent][step.call][1] = f"PreToolUse:{step.tool} hook error: {answer.text}"

    def _step(self, step: TranscriptStep) -> None:
        self.clock.moves(step.at, paced=step.kind == "prompt")
        if step.kind == "prompt":
            self.found.prompts += 1
            self._halted = False  # a person speaks: the agent goes on
            self._ask(self._payload(step, "UserPromptSubmit", prompt=step.text))
        elif step.kind == "result":
            self._result(step)
        elif step.kind == "reply_end":
            self.found.turns += 1
            self._reply_ends(step)

    def _result(self, step: TranscriptStep) -> None:
        held = self._batches.get(step.agent, {}).get(step.call)
        if held is None or step.call in self._refused:
            return
        held[1] = step.text
        if step.text.startswith(MALFORMED) or (step.failed and step.text.startswith((*DENIED, "PreToolUse:"))):
            return
        call = held[0]
        shown: object = step.text
        if self._sees_helpers and step.text.startswith(_LAUNCHED):
            shown = {"status": "async_launched", "description": step.text}
        payload = self._payload(call, "PostToolUse", **_given(call), tool_response=shown)
        self._ask(payload, failed=step.failed)

    def _reply_ends(self, step: TranscriptStep) -> None:
        batch = self._batches.pop(step.agent, {})
        if not batch:
            if step.agent in self._agents:  # its last words
                self._agents.discard(step.agent)
                self._ask(self._payload(step, "SubagentStop"))
            return
        self._refused.difference_update(batch)
        if self.transcript.format == "claude":  # the only one that tells its hooks of batches
            calls = [{**_given(call), "tool_response": text} for call, text in batch.values()]
            self._ask(self._payload(step, "PostToolBatch", tool_calls=calls))

    def _helper(self, step: TranscriptStep) -> None:
        if step.agent and step.agent not in self._agents:
            self._agents.add(step.agent)
            self._ask(self._payload(step, "SubagentStart"))

    def _payload(self, step: TranscriptStep, hook: str, **more: Any) -> JsonObject:
        agent = {"agent_id": step.agent, "agent_type": "general-purpose"} if step.agent else {}
        return {"hook_event_name": hook, "session_id": "replayed", **agent, **more}

    def _ask(self, payload: JsonObject, *, failed: bool | None = None) -> Decision | None:
        """The answer to one event; what makes no sense to the hook is not asked, nor what a halted agent does."""
        if self._halted:
            return None
        try:
            event = AGENT.parse(payload, _ROOT)
        except BadPayload:
            return None
        if event is None:
            return None
        if payload["hook_event_name"] == "PostToolUse":
            event = event.replace(failed=failed)
        plain = plain_commands(event.command) if event.command else []
        looks = plain is not None and not changes_files(event.tool) and only_look(plain)
        answer = self.watch.handle(event, plain, looks=looks)
        self._halted = answer.verdict == "halt"
        if answer.verdict != "allow":
            self._note(answer.rule, "block" if answer.verdict == "deny" else answer.verdict, answer.text)
        for one in answer.logged:
            self._note(one.rule, "log", f"would {one.verdict}: {one.reason}")
        return answer

    def _note(self, rule: str, action: str, text: str) -> None:
        key = _short(rule), action
        self.times[key] += 1
        self.firsts.setdefault(key, Trip(*key, self.found.calls, " ".join(text.split())[:_EVIDENCE]))


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
    return rule.partition(":")[0].removeprefix("tool.")


def outcome(path: str) -> str:
    """How a run ended, where the file says so (SWE-agent): `submitted`, `exit_cost`, `resolved`; else nothing.

    The keys are looked for as bytes: inside a text of the same file their quotes would be escaped.
    """
    if path.endswith(".jsonl"):
        return ""
    status = ""
    before = b""
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            text = before + block
            for match in _EXIT_STATUS.finditer(text):
                status = match[1].decode("utf-8", "replace")
            for match in _RESOLVED.finditer(text):
                return "resolved" if match[1] == b"true" else "unresolved"
            before = block[-100:]
    return status


def replay_all(
    paths: Iterable[str], jobs: int = 1, rules: Rules | None = None, options: Manner = _DEFAULT
) -> Iterator[Replayed]:
    """Each transcript in order, as soon as it is through; with several jobs, in as many processes."""
    rules = rules or default_rules()
    if jobs <= 1:
        for path in transcripts(paths):
            yield replay(path, rules, options)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    os.environ["PYTHONSAFEPATH"] = "1"  # the current folder may be a project that ships a module of some such name
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin_work, initargs=(rules.to_data(), options)
    )
    try:
        yield from pool.map(_work, transcripts(paths))
    except BrokenProcessPool:
        raise FusewireError("a process that read transcripts was killed (no memory left?); try fewer --jobs") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


#: The rules of a worker process, and how it replays: one for all of its transcripts.
_working_with: tuple[Rules | None, Manner] = None, _DEFAULT


def _begin_work(data: tuple[Any, ...], options: Manner) -> None:
    """An interrupt is for the one who asked; a worker ends without a word."""
    import signal

    from fusewire.config.rules import Rules

    global _working_with
    _working_with = Rules(*data), options
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _work(path: str) -> Replayed:
    return replay(path, *_working_with)


def by_rule(replays: Iterable[Replayed]) -> dict[str, dict[str, int]]:
    """For each rule: in how many transcripts it told, asked, refused and halted, and how often it spoke in all."""
    table: dict[str, dict[str, int]] = {}
    for one in replays:
        for trip in one.trips:
            row = table.setdefault(trip.rule, dict.fromkeys((*ACTIONS.values(), "answers"), 0))
            row[ACTIONS[trip.action]] += 1
            row["answers"] += trip.times
    return dict(sorted(table.items()))

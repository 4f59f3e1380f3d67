"""Judge a loop inside a session, in which a stop hook keeps the agent going again and again.

Each stretch between two stops at which the agent was kept going is an iteration of the project's loop breaker, with
the same circuits, the same guard and the same words as those of `fusewire run`. A stop that ends a person's task is
none; neither is the first stop that a hook has prevented, for that is what a check before the end does.

An agent that is let go, or a person who speaks, ends the loop without a word. So the iteration that is under way then
is given up: what it was worth is unknown, and its probe, if it was one, is free again.
"""

from __future__ import annotations

import os
import time

from fusewire.agents.caller import PROJECT
from fusewire.breakers.session.state import recalled
from fusewire.core.decision import Decision, strictest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.types import IterationResult
    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.stores import Store
    from fusewire.util.fast_json import JsonObject

#: Seconds that the looks at the tree at one stop may take; the hook's own deadline is later.
_PATIENT = 5.0


def stopping(event: Event, store: Store, rules: Rules, home: str, environment: Mapping[str, str]) -> Decision | None:
    """The agent wants to stop. `store` and `rules` are those of the project at `home`."""
    if event.kind != "stop" or event.subagent or environment.get(PROJECT):
        return None  # a helper's end is no end, and `fusewire run` looks after its own agent
    if event.text != "again":
        ended(event, store, rules, home)
        return None
    memory = recalled(store, _name(event.session))
    if memory.get("unmeasured"):
        return None
    stretches = _Stretches(event, _loop(event, store, rules, home), environment, memory)
    if memory.get("looking"):  # and never came to its end: the hook ran out of time
        return stretches.no_longer_measured("the last look at the tree came to no end")
    began = time.monotonic()
    stretches.remember({**memory, "looking": True})
    try:
        answer = stretches.next()
    except Exception:
        stretches.no_longer_measured("")
        raise
    slow = time.monotonic() - began
    if slow > _PATIENT:
        return strictest((answer, stretches.no_longer_measured(f"a look at the tree took {slow:.0f} s")))
    stretches.remember(stretches.memory)
    return answer


def ended(event: Event, store: Store, rules: Rules, home: str) -> None:
    """The loop is over, if there was one: a person spoke, the agent was let go, the session ends."""
    memory = recalled(store, _name(event.session))
    if not memory:
        return
    if isinstance(memory.get("token"), str):
        _loop(event, store, rules, home).abandon(memory["token"])
    with store.transact() as transaction:
        transaction.drop(_name(event.session))


def brought_progress(store: Store, session: str | None) -> bool:
    """Whether the stretch that has just ended was worth something: then the stop hook is no mere recursion."""
    return recalled(store, _name(session)).get("progress") is True


class _Stretches:
    """A stop at which the agent had been kept going before, and what is remembered of it for the session."""

    def __init__(self, event: Event, loop: Loop, environment: Mapping[str, str], memory: JsonObject) -> None:
        self.event, self.loop, self.environment = event, loop, environment
        self.token = memory.get("token") if isinstance(memory.get("token"), str) else None
        self.is_first = not memory
        self.memory: JsonObject = {"progress": False}

    def next(self) -> Decision | None:
        """Judge the stretch that is over, and begin the next."""
        from fusewire.core.decision import Blocked
        from fusewire.util.errors import NotFound

        if self._is_shared():
            self._give_up()
            return None
        if self.token is not None:
            try:
                result = self._judged(self.token)
            except NotFound:  # another process took this session for dead, and has settled it
                result = None
            self.token = None
            if result is not None:
                self.memory["progress"] = result.kind == "progress"
                halted = self._halt(result)
                if halted is not None:
                    return halted
        if self.is_first and self.loop.view()["state"] != "CLOSED":
            return None  # to be kept going once is no loop yet: neither refused, nor the one probe of another loop
        try:
            begun = self.loop.begin(owner=self._owner())
        except Blocked as blocked:
            refused: Decision = blocked.decision.replace(verdict="halt")
            return refused
        self.memory["token"] = self.token = begun.token
        return None

    def remember(self, memory: JsonObject) -> None:
        with self.loop.breaker.store.transact() as transaction:
            transaction.remember(_name(self.event.session), memory, self.loop.engine.clock())

    def no_longer_measured(self, why: str) -> Decision:
        """Give up for the rest of the session, and say so."""
        self._give_up()
        self.remember({"unmeasured": True})
        text = f"fusewire: {why}; the loop of this session's stop hook is no longer measured"
        return Decision("allow", remarks=(text,))

    def _give_up(self) -> None:
        """Also what was begun and not remembered any more, because the hook ran out of time."""
        for token in filter(None, (self.token, self.loop.running([self._owner()]))):
            self.loop.abandon(token)
        self.token = None
        self.memory.pop("token", None)

    def _is_shared(self) -> bool:
        """Another loop of this project is under way, so a change cannot be attributed to either."""
        from fusewire.breakers.loop.state import LoopRecord
        from fusewire.util.processes import is_alive

        running = LoopRecord.recalled(self.loop.breaker.store).running
        return any(token != self.token and is_alive(entry["owner"]) for token, entry in running.items())

    def _judged(self, token: str) -> IterationResult:
        from fusewire.agents.output.reader import AnswerReader

        reader = AnswerReader(self.loop.engine.clock())
        reader.feed((self.event.result or "").encode("utf-8", "replace"))
        return self.loop.end(token, answer=reader.finish(0))

    def _halt(self, result: IterationResult) -> Decision | None:
        """Halt the agent if the guard, other rules or a circuit has stopped the loop."""
        from fusewire.guard.calls import INTEGRITY, halted

        stopped = None
        if result.halted:
            rule = INTEGRITY if halted(self.loop.root, self.event.session) else "loop.rules"
            stopped = Decision("halt", rule=rule, text=result.halted)
        return strictest((stopped, *(trip.replace(verdict="halt") for trip in result.trips if not result.finished)))

    def _owner(self) -> str:
        """The agent's own process: if it dies, the next `begin` settles the iteration as unknown."""
        from fusewire.breakers.loop.owner import owner
        from fusewire.util.processes import ancestors, process_identity

        pid = self.environment.get("CLAUDE_PID", "")
        if pid.isascii() and pid.isdecimal() and int(pid) in ancestors():
            return process_identity(int(pid)) or owner()
        return owner()


def _loop(event: Event, store: Store, rules: Rules, home: str) -> Loop:
    """The project's loop; its guard is the hook itself, which compares the protected files after every call."""
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.protection import Protection
    from fusewire.engine.breaker import Breaker
    from fusewire.guard.calls import halted

    class Hooked(Protection):
        def begin(self, now: float) -> None:
            pass  # a new record of the protected files would lift a halt of the session

        def after(self, cause: str, now: float) -> tuple[str, str]:
            text = halted(self.root, event.session)
            return ("halt", text) if text else ("", "")

    loop = Loop(Breaker(store, rules, time.time, os.path.abspath(home)))
    loop.protection = Hooked(loop.root, rules)
    return loop


def _name(session: str | None) -> str:
    """Below the session's own memory, so that it goes with it."""
    return f"session/{session or 'none'}/~stops"

"""Serve `POST /hooks/{agent}`: what a hook process of that agent would answer.

The same code decides. What is different here: no agent has started us, so no agent's process is ended and its
environment is not known; and what is sent as a person's prompt lifts nothing, because whatever of the user's can read
the token can send one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import Response

from fusewire.agents import AGENTS, agent_named
from fusewire.breakers.session import opening
from fusewire.breakers.session.nesting import BY_HTTP, DEPTH
from fusewire.gate.process import answer, hook_in
from fusewire.server.access import proof_for_hooks
from fusewire.server.event_project import EventProjects
from fusewire.server.metrics import observe_hook
from fusewire.server.requests import require_role
from fusewire.util.errors import FusewireError, in_a_line
from fusewire.util.server_address import PROOF, QUESTION
from fusewire.util.stdio import INPUT_LIMIT, payload_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request

    from fusewire.agents.protocol import Agent
    from fusewire.gate.process import Answer
    from fusewire.server.projects import Projects

T = TypeVar("T")

#: Seconds until something is answered; the hooks that `install --http` registers wait a little longer.
DEADLINE = 4.0

#: Events that are judged at the same time; SQLite lets one of them write. To judge a call may take minutes, if somebody
#: means it to: it has threads of its own, so that what is reported is still heard.
_REPORTS, _CALLS = 8, 4

#: Bytes above which an event is a large one, and how many of those are in memory at the same time.
_LARGE = 1 << 20
_LARGE_ONES = 4

#: Bytes of reports that wait to be counted, if there is more than one.
_WAITING = INPUT_LIMIT

#: Characters of a question that is answered.
_LONGEST = 100


async def hook(request: Request) -> Response:
    """Standard output is the body, or standard error where there is none; the exit code is a header."""
    if "authorization" not in request.headers:  # an agent has no cookie, and no page sends events
        raise HTTPException(401, "a token is needed", {"WWW-Authenticate": "Bearer", **_proof(request)})
    require_role(request, "hooks", "person")
    name = request.path_params["agent"]
    if name not in AGENTS:
        raise HTTPException(404, f"no agent named {name!r}; allowed: {', '.join(AGENTS)}")
    hooks: Hooks = request.app.state.hooks
    async with hooks.room_for(request.headers.get("content-length", "")):
        raw = await request.body()
        began = time.perf_counter()
        stdout, stderr, code = await hooks.answer(agent_named(name), raw)
    observe_hook(request.app, name, time.perf_counter() - began)
    kind = "application/json" if stdout or not stderr else "text/plain"
    return Response(stdout or stderr, media_type=kind, headers={"Fusewire-Exit-Code": str(code)})


def _proof(request: Request) -> dict[str, str]:
    """For `fusewire doctor`, which asks who listens here before it shows the token."""
    question = request.headers.get(QUESTION, "")
    return {PROOF: proof_for_hooks(request.scope["server"][1], question)} if 0 < len(question) <= _LONGEST else {}


class DaemonThreads:
    """So many threads at the same time, for work that blocks; more work waits for one of them.

    The server does not wait for them when it ends: one may hang for ever. One that hangs keeps its place among the few
    that there are, so that their number stays bounded.
    """

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)

    async def run(self, work: Callable[[], T]) -> T:
        """What the work gives back, or raises. Whoever stops waiting for it does not stop it."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            self._free.release()
            if answer.done():  # nobody waits any more
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)  # type: ignore[arg-type]

        def carry_out() -> None:
            result, failure = None, None
            try:
                result = work()
            except BaseException as error:
                failure = error
            with suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(settle, result, failure)

        try:
            threading.Thread(target=carry_out, daemon=True).start()
        except RuntimeError:  # the system gives us no more of them
            self._free.release()
            raise
        return await answer


class Hooks:
    """Answers to events of agents that work in some projects."""

    def __init__(self, projects: Projects) -> None:
        self._reports, self._calls = DaemonThreads(_REPORTS), DaemonThreads(_CALLS)
        self._event_projects = EventProjects(projects)
        self._room = asyncio.Semaphore(_LARGE_ONES)
        self._waiting = 0
        opening.kept = {}  # one connection a project: its events wait in line, and not for SQLite's lock

    def room_for(self, length: str) -> AbstractAsyncContextManager[None]:
        """Held while an event of that length is read and judged."""
        is_small = length.isascii() and length.isdigit() and int(length) <= _LARGE
        return nullcontext() if is_small else self._room

    async def answer(self, agent: Agent, raw: bytes) -> Answer:
        """In time: a report that takes longer is still counted, but its answer comes too late for the agent."""
        at = hook_in(raw)
        judged: Awaitable[Answer]
        if not _only_reports(agent, at):
            judged = self._calls.run(lambda: self._answered(agent, raw, at))
        elif self._waiting and self._waiting + len(raw) > _WAITING:
            return _failed(agent, raw, FusewireError("too many reports wait, and this one is not counted"))
        else:
            judged = asyncio.shield(self._counted(agent, raw, at))
        try:
            return await asyncio.wait_for(judged, DEADLINE)
        except TimeoutError:
            return _failed(agent, raw, TimeoutError(f"no answer within {DEADLINE:.0f} seconds"))

    def _counted(self, agent: Agent, raw: bytes, at: str) -> asyncio.Task[Answer]:
        """A report on its way, whether or not anybody waits until it has arrived."""

        def arrived(report: asyncio.Task[Answer]) -> None:
            self._waiting -= len(raw)
            if not report.cancelled():
                report.exception()  # heard, also where nobody waits

        self._waiting += len(raw)
        report = asyncio.create_task(self._reports.run(lambda: self._answered(agent, raw, at)))
        report.add_done_callback(arrived)
        return report

    def _answered(self, agent: Agent, raw: bytes, at: str) -> Answer:
        try:
            payload = _object(raw)
            if _only_reports(agent, at) and payload.get("hook_event_name", at) != at:
                raise HTTPException(400, "hook_event_name is there twice")
            start = self._event_projects.start(payload)
            return answer(agent, raw, {"CLAUDE_PROJECT_DIR": start, DEPTH: BY_HTTP}, start)
        except (HTTPException, ImportError, SyntaxError):
            raise  # a refusal; or a broken installation, which locks nobody out of their agent
        except Exception as error:
            return _failed(agent, raw, error)


def _only_reports(agent: Agent, at: str) -> bool:
    """Whether nothing can be refused at this hook."""
    return bool(at) and at not in agent.GATES and at != "ConfigChange"


def _object(raw: bytes) -> dict[str, Any]:
    """The event; empty if it is none, which will be said in the agent's words."""
    try:
        payload = payload_of(raw)
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _failed(agent: Agent, raw: bytes, error: Exception) -> Answer:
    """What cannot be judged is denied if it asks for a call; what only reports is never denied."""
    at = hook_in(raw)
    if _only_reports(agent, at):
        return agent.inform(f"fusewire: the breaker failed at {at}: {in_a_line(error)}", at)
    text = f"BLOCKED fusewire.failure: the breaker failed and cannot judge this call: {in_a_line(error)}"
    return agent.deny(text, at) if at else agent.deny(text)

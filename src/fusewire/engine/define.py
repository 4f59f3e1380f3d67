"""Guard code that may fail with a breaker of your own: decorator and context manager, also for `async`.

payments = Breaker.open().define("payments", failures=3, within="1h", cooldown="5m")

@payments
def charge(order): ...

async with payments:
    ...
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from fusewire.config.own_breakers import check_name, own_file, own_policy
from fusewire.config.settings import overlay
from fusewire.core.decision import Blocked
from fusewire.engine.guarded import Guarded
from fusewire.util.durations import number

if TYPE_CHECKING:
    from types import TracebackType

    from fusewire.core.decision import Decision
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status

Params = ParamSpec("Params")
Result = TypeVar("Result")

#: "1h 30m", seconds, or a timedelta.
Duration = str | float | timedelta

#: How errors name the place of a wrong word.
_SOURCE = "Breaker.define"

#: The actions that this thread or task has entered, innermost last. One breaker is shared by many of them.
_entered: ContextVar[tuple[tuple[OwnBreaker, Guarded], ...]] = ContextVar("fusewire_entered", default=())


class OwnBreaker:
    """A breaker that a program defined: `@breaker`, `with breaker`, `async with breaker`. Safe to share."""

    def __init__(
        self,
        breaker: Breaker,
        name: str,
        ignore: tuple[type[BaseException], ...],
        fallback: Callable[..., object] | None,
    ) -> None:
        self.breaker = breaker
        self.name = name
        #: the circuit's id, for every method of `Breaker` and on the command line
        self.circuit = f"own/{name}"
        self.ignore = ignore
        self.fallback = fallback

    def status(self) -> Status:
        """The circuit as it is now."""
        return self.breaker.status(self.circuit)

    def reset(self, reason: str = "") -> Decision:
        """End the open circuit as its definition allows; InvalidTransition if it is not open."""
        return self.breaker.reset(self.circuit, reason)

    # -- as a decorator -----------------------------------------------------------------------------

    def __call__(self, function: Callable[Params, Result]) -> Callable[Params, Result]:
        """Guard every call of a function or of an `async` function."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__} is a generator: use `with` around what may fail in it")
        if inspect.iscoroutinefunction(function):
            return cast("Callable[Params, Result]", self._guard_async(function))

        @functools.wraps(function)
        def guarded(*args: Params.args, **kwargs: Params.kwargs) -> Result:
            action = self._action()
            try:
                action.__enter__()
            except Blocked:
                if self.fallback is None:
                    raise
                return cast("Result", self.fallback(*args, **kwargs))
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._settle(action, error)
                raise
            self._settle(action, None)
            return result

        return guarded

    def _guard_async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def guarded(*args: Any, **kwargs: Any) -> Any:
            action = self._action()
            try:
                await _enter(action)
            except Blocked:
                if self.fallback is None:
                    raise
                answer = self.fallback(*args, **kwargs)
                return await answer if inspect.isawaitable(answer) else answer
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                await asyncio.to_thread(self._settle, action, error)
                raise
            await asyncio.to_thread(self._settle, action, None)
            return result

        return guarded

    # -- as a context manager -----------------------------------------------------------------------

    def __enter__(self) -> Decision:
        action = self._action()
        decision = action.__enter__()
        _entered.set((*_entered.get(), (self, action)))
        return decision

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._settle(self._leave(), error)

    async def __aenter__(self) -> Decision:
        action = self._action()
        decision = await _enter(action)
        _entered.set((*_entered.get(), (self, action)))
        return decision

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._settle, self._leave(), error)

    # -- what both share ----------------------------------------------------------------------------

    def _action(self) -> Guarded:
        return self.breaker.guard(self.circuit)

    def _leave(self) -> Guarded:
        """The innermost action that was entered through this breaker; it is no longer entered."""
        entered = _entered.get()
        at = max((at for at, (breaker, _) in enumerate(entered) if breaker is self), default=None)
        if at is None:
            raise RuntimeError(f"{self.circuit} was left in another thread or task than it was entered in")
        _entered.set((*entered[:at], *entered[at + 1 :]))
        return entered[at][1]

    def _settle(self, action: Guarded, error: BaseException | None) -> None:
        if error is None or isinstance(error, self.ignore):
            action.__exit__(None, None, None)
        else:
            action.__exit__(type(error), error, error.__traceback__)


async def _enter(action: Guarded) -> Decision:
    """Ask in a thread; a task that is cancelled meanwhile gives back the probe that it may have got."""
    asking = asyncio.ensure_future(asyncio.to_thread(action.__enter__))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError as error:
        await asyncio.wait([asking])
        if asking.exception() is None:
            await asyncio.to_thread(action.__exit__, type(error), error, None)
        raise


def define(
    breaker: Breaker,
    name: str,
    words: Mapping[str, object],
    ignore: type[BaseException] | tuple[type[BaseException], ...],
    fallback: Callable[..., object] | None,
) -> OwnBreaker:
    """Define the circuit `own/NAME` in a breaker's rules; ConfigError names the first word that cannot be used."""
    values = own_file().defaults()
    written = {key: _as_written(key, value) for key, value in words.items()}
    for problem in (check_name(name, _SOURCE), *overlay(own_file(), values, written, _SOURCE, "")):
        if problem is not None:
            raise problem
    breaker.rules.define(own_policy(name, values))
    return OwnBreaker(breaker, name, ignore if isinstance(ignore, tuple) else (ignore,), fallback)


def _as_written(key: str, value: object) -> object:
    """A value as a configuration file would have it: durations as text."""
    if key == "failures" or isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{number(value)}s"
    return [_as_written(key, step) for step in value] if isinstance(value, Sequence) else value

"""Work that blocks, in threads that nobody waits for when the server ends: one of them may hang for ever.

A thread that hangs keeps its place among the few that there are, so that their number stays bounded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Daemons:
    """So many threads at the same time; who comes when all are at work waits for one."""

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

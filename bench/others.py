"""The other libraries, each doing what they are made for: one call through a closed breaker that fails and is counted.

That is their check-and-record: ask whether the call may go on, make it, write the failure down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Never reached, so that every call is let through and counted.
_NEVER = 10**9


class Failure(Exception):
    pass


def _fails() -> None:
    raise Failure


def circuitbreaker_call() -> Callable[[], object]:
    from circuitbreaker import circuit  # type: ignore[import-untyped]

    guarded = circuit(failure_threshold=_NEVER, expected_exception=Failure)(_fails)
    return _caught(guarded)


def pybreaker_call(breaker: Any) -> Callable[[], object]:
    return _caught(lambda: breaker.call(_fails))


def pybreaker_in_memory() -> Any:
    import pybreaker

    return pybreaker.CircuitBreaker(fail_max=_NEVER)


def pybreaker_on_redis(port: int, name: str) -> Any:
    import pybreaker
    import redis

    storage = pybreaker.CircuitRedisStorage(pybreaker.STATE_CLOSED, redis.Redis(port=port), namespace=name)
    return pybreaker.CircuitBreaker(fail_max=_NEVER, state_storage=storage)


def _caught(call: Callable[[], object]) -> Callable[[], object]:
    def once() -> None:
        try:
            call()
        except Failure:
            pass

    return once

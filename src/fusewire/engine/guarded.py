"""The context manager of `Breaker.guard`: check before an action, settle after it."""

from __future__ import annotations

from fusewire.core.decision import Blocked
from fusewire.core.events import Signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from fusewire.core.decision import Decision
    from fusewire.engine.breaker import Breaker


class Guarded:
    """One guarded action: asked for on entry, settled on exit."""

    def __init__(self, breaker: Breaker, circuit: str, action: str, session: str | None) -> None:
        self._breaker, self._circuit, self._action, self._session = breaker, circuit, action, session

    def __enter__(self) -> Decision:
        self._decision = self._breaker.check(self._circuit, session=self._session)
        if not self._decision.allowed:
            raise Blocked(self._decision)
        return self._decision

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        breaker, lease = self._breaker, self._decision.lease
        if kind is None:
            breaker.record_success(self._circuit, session=self._session, lease=lease)
        elif issubclass(kind, Exception):
            action = self._action or f"{kind.__name__}: {error}"
            breaker.record(self._circuit, action, session=self._session, lease=lease)
        elif lease is not None:  # interrupted: neither good nor bad, but the probe is free again
            breaker._send(Signal("release", self._circuit, "release", lease=lease))

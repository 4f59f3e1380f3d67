"""Send a test message to one target, and say what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusewire.config.notify_addresses import Unusable, address_of, shown_address
from fusewire.notify.cursor import Health, remember
from fusewire.notify.messages import test_message
from fusewire.notify.send import Undelivered, send
from fusewire.util.errors import StoreError

if TYPE_CHECKING:
    from fusewire.config.notify_targets import Target
    from fusewire.engine.breaker import Breaker


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test message: gone out, or what went wrong."""

    name: str
    address: str
    seconds: float
    problem: str

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "address": self.address,
            "ok": not self.problem,
            "problem": self.problem or None,
            "seconds": round(self.seconds, 3),
        }


def send_test(breaker: Breaker, target: Target) -> TestResult:
    """One attempt. One that works ends what was wrong; one that does not is no message that was lost."""
    now, began = breaker.engine.clock(), time.monotonic()
    root = breaker.root or "."
    problem = ""
    try:
        send(address_of(target, root), test_message(root, now))
    except (Unusable, Undelivered) as error:
        problem = str(error)
    seconds = time.monotonic() - began

    def change(health: Health) -> None:
        if problem:
            health.failed_at, health.problem = now, problem
        else:
            health.went_out(now)

    try:
        remember(breaker.store, target.name, now, change=change)
    except StoreError:
        pass  # what is known now is said, also where it cannot be kept
    return TestResult(target.name, shown_address(target), seconds, problem)

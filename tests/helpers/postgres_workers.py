"""Many clients of one PostgreSQL server: `python -m tests.helpers.postgres_workers WORK COUNT URL [ARGUMENT ...]`.

One interpreter forks them, and lets them loose at the same moment; each says what it found in one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

from fusewire.engine.breaker import Breaker
from fusewire.stores import postgresql  # noqa: F401 - imported before the race, not in it
from fusewire.stores.rows import AuditRow
from fusewire.util.errors import FusewireError

NAME = "shared"


def say(found: object) -> None:
    os.write(1, (json.dumps(found) + "\n").encode())


def record(number: int, url: str, times: str, limit: str) -> None:
    """So many failures; which of them opened the circuit."""
    with Breaker.open(url) as breaker:
        breaker.define(NAME, failures=int(limit), cooldown="1h")
        actions = [f"{number}-{one}" for one in range(int(times))]
        say([action for action in actions if breaker.record(f"own/{NAME}", action).tripped])


def count(number: int, url: str, times: str) -> None:
    """Say how many failures the server has confirmed, again and again, until it is gone."""
    with Breaker.open(url) as breaker:
        breaker.define(NAME, failures=1000, cooldown="1h")
        for confirmed in range(1, int(times) + 1):
            breaker.record(f"own/{NAME}", f"{number}-{confirmed}")
            say([number, confirmed])


def check(number: int, url: str) -> None:
    with Breaker.open(url) as breaker:
        breaker.define(NAME, failures=1, cooldown="1s")
        decision = breaker.check(f"own/{NAME}")
        say([decision.verdict, decision.lease])


def move(number: int, url: str, times: str) -> None:
    """Rows of the audit trail, each with a circuit of its own, in units that take differently long."""
    with Breaker.open(url) as breaker:
        for one in range(int(times)):
            with breaker.store.transact() as transaction:
                transaction.audit(AuditRow(f"{number}-{one}", 1.0, "closed", "open", "tripped", "", ""))
                transaction.remember(f"{number}", {"one": one}, 1.0)
                time.sleep(0.001 * (number % 4))
        say("done")


def hold(number: int, url: str) -> None:
    """Write everything in a unit of work, and never come to its end."""
    with Breaker.open(url) as breaker, breaker.store.transact() as transaction:
        transaction.save("held", "constraint", "closed", {"since": 1.0}, 1.0)
        transaction.remember("held", {}, 1.0)
        say("holding")
        time.sleep(60)


def an_hour_ahead(number: int, url: str) -> None:
    """A machine whose clock is wrong: what it is told of an open circuit, and what time it writes."""
    real = time.time
    time.time = lambda: real() + 3600
    with Breaker.open(url) as breaker:
        breaker.define(NAME, failures=1, cooldown="10m")
        verdict = breaker.check(f"own/{NAME}").verdict
        breaker.define("other", failures=1, cooldown="10m")
        breaker.record("own/other", "here")
        say([verdict, breaker.store.log_of("own/other")[-1].at - real()])


WORKS = {function.__name__: function for function in (record, count, check, move, hold, an_hour_ahead)}

if __name__ == "__main__":
    work, clients, *arguments = sys.argv[1:]
    waiting, start = os.pipe()
    children = []
    for number in range(int(clients)):
        child = os.fork()
        if not child:
            os.close(start)
            os.read(waiting, 1)
            try:
                WORKS[work](number, *arguments)
            except FusewireError as error:
                say({"error": str(error)})
            os._exit(0)
        children.append(child)
    os.close(start)
    for child in children:
        os.waitpid(child, 0)

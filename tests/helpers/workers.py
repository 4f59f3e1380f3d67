"""What the processes of the race tests do: `python tests/workers.py WORK ROOT [ARGUMENT ...]`.

Every worker says `ready` on standard output, waits for a line on standard input, and only then works; so a test can
let any number of them loose at the same moment. What a worker found out is its last line, as JSON.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time

from fusewire.breakers.constraint import state_file as statefile  # noqa: F401 - imported before the race, not in it
from fusewire.engine.breaker import Breaker
from fusewire.stores import audit_file, recovery  # noqa: F401
from fusewire.util.errors import FusewireError


def wait_for_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def say(result: object) -> None:
    print(json.dumps(result), flush=True)


def record(root: str, circuit: str, times: str, name: str) -> None:
    """So many violations, each with a text of its own; the answer says which of them tripped."""
    breaker = Breaker.open(project=root)
    wait_for_start()
    tripped = []
    for number in range(int(times)):
        action = f"{name}-{number}"
        if breaker.record(circuit, action, session=name).tripped:
            tripped.append(action)
    say(tripped)


def check(root: str, circuit: str) -> None:
    """One question; the answer is the decision."""
    breaker = Breaker.open(project=root)
    wait_for_start()
    decision = breaker.check(circuit)
    say({"verdict": decision.verdict, "lease": decision.lease, "reason": decision.reason})


def open_and_record(root: str, circuit: str, name: str) -> None:
    """Everything from the first look at the project on is part of the race."""
    wait_for_start()
    with Breaker.open(project=root) as breaker:
        breaker.record(circuit, name)
    say("done")


def look(root: str, circuit: str) -> None:
    """Status and notices, as whoever first finds a damage would."""
    breaker = Breaker.open(project=root)
    wait_for_start()
    state = breaker.status(circuit).state
    say({"state": state, "notices": breaker.store.notices()})


def churn(root: str, circuit: str, times: str, name: str) -> None:
    """Violations, questions and good results, to be killed in the middle; ends by itself only after the last."""
    breaker = Breaker.open(project=root)
    wait_for_start()
    for number in range(int(times)):
        breaker.record(circuit, f"{name}-{number}")
        decision = breaker.check(circuit)
        if decision.lease and number % 2:
            breaker.record_success(circuit, lease=decision.lease)
    time.sleep(60)


def hold(root: str) -> None:
    """Hold the database exclusively until standard input is closed."""
    path = os.path.join(root, ".fusewire", "state.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    wait_for_start()
    connection.execute("ROLLBACK")


WORKS = {function.__name__: function for function in (record, check, open_and_record, look, churn, hold)}

if __name__ == "__main__":
    try:
        WORKS[sys.argv[1]](*sys.argv[2:])
    except FusewireError as error:
        say({"error": str(error)})
        sys.exit(1)
    sys.stdout.flush()
    os._exit(0)  # as the hook ends: without closing anything

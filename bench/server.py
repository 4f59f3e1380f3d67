"""Part 11: the server: to the first byte of the panel, from a trip to the page, and HTTP hooks beside processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from fusewire import Breaker
from fusewire.core.events import Signal
from measuring import Contender, goal, interleave, milli, quantile, table, times
from served import Server, served
from starts import HOOK, environment_of, runner

#: Circuits of a large project.
_MANY = 1000

_ROUNDS = 20
_TRIPS = 12
_REPORTS, _PROCESSES = 400, 80

#: Seconds within which a trip must be on the page, and how much of a process an event over HTTP may cost.
_GOAL, _SHARE = 1.0, 0.5


def report(folder: str) -> str:
    small, large = _project(folder, "small", 5), _project(folder, "large", _MANY)
    # Like ours: else the server and this process would each compile the other's rules anew.
    environment = {**environment_of(folder), "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}
    with served([small, large], environment) as server:
        parts = [_first_bytes(server, small, large), _to_the_page(server, small), _hooks(server, small, environment)]
    return "\n".join(["11. The server", *(line for part in parts for line in ("", *part))])


def _project(folder: str, name: str, circuits: int) -> str:
    root = os.path.join(folder, f"served-{name}")
    subprocess.run(["git", "init", "-q", root], check=True)
    names = (f"tool/tool_failure/Bash(p{number})/bench" for number in range(circuits))
    with Breaker.open(project=root) as breaker:
        breaker.engine.apply([Signal("bad", name, "tool_failed", text="it failed", session="bench") for name in names])
    return root


def _first_bytes(server: Server, small: str, large: str) -> list[str]:
    """A panel is collected anew once something has happened; whoever asks within the same second shares it."""
    kept = Contender("a static file", _asking(server, "/static/style.css"))
    contenders = [kept]
    for name, root in (("5 circuits", small), (f"{_MANY:,} circuits", large)):
        path = f"/p/{os.path.basename(root)}/"
        contenders.append(Contender(f"panel, {name}, after an event", _asking(server, path, root)))
        contenders.append(Contender(f"panel, {name}, asked again", _asking(server, path)))
    interleave(contenders, rounds=_ROUNDS, calls=1, warm_up=0)
    rows = [
        (one.name, milli(one.median), milli(quantile(one.samples, 0.9)), times(one.median, kept.median))
        for one in contenders
    ]
    return ["  to the first byte, ms", "", table(("", "p50", "p90", "x a static file"), rows)]


def _asking(server: Server, path: str, changed: str | None = None) -> Callable[[], Callable[[], None]]:
    """Ask for a page, just after it was asked for; or after something was `changed` in its project."""

    def prepare() -> Callable[[], None]:
        server.finish()
        server.first_byte(path)
        server.finish()
        if changed is not None:
            with Breaker.open(project=changed) as breaker:
                breaker.record("tool/tool_failure/Bash(event)/bench", "an event", session="bench")
        return lambda: server.first_byte(path)

    return prepare


def _to_the_page(server: Server, root: str) -> list[str]:
    """From the commit of a trip to the page that has it: told by the stream (the server looks five times a second), and
    loaded anew."""
    samples, path = [], f"/p/{os.path.basename(root)}/"
    server.finish()
    with server.listening() as page, Breaker.open(project=root) as breaker:
        for number in range(_TRIPS):
            circuit = f"tool/tool_failure/Bash(trip{number})/bench"
            while breaker.record(circuit, "it failed", session="bench").state != "OPEN":
                pass
            committed = time.perf_counter()
            page.wait_for(circuit)
            server.loaded_anew(path, circuit)
            samples.append(time.perf_counter() - committed)
    worst = max(samples)
    return [
        f"  from a trip to the page, ms: p50 {milli(quantile(samples, 0.5))}, worst of {_TRIPS} {milli(worst)}",
        "",
        goal(f"within {_GOAL:.0f} s: {worst:.2f}", worst <= _GOAL),
    ]


def _hooks(server: Server, root: str, environment: dict[str, str]) -> list[str]:
    """The same event, a batch of results, to the server and to a process of its own."""
    numbers = iter(range(1_000_000))

    def payloads(count: int) -> list[bytes]:
        return [json.dumps(_batch(root, next(numbers))).encode() for _ in range(count)]

    def prepare() -> Callable[[], None]:
        with open(file, "wb") as written:
            written.write(payloads(1)[0])
        return runner((sys.executable, "-I", "-S", HOOK, "claude"), root, file, environment, 0)

    file = os.path.join(root, "batch.json")
    process = Contender("a process", prepare)
    interleave([process], rounds=_PROCESSES, calls=1, warm_up=0)
    server.reports(payloads(40), connections=1)
    measured = [("a process", process.samples, sum(process.samples))]
    for connections in (1, 8):
        name = f"HTTP, {connections} connection{'s' if connections > 1 else ''}"
        measured.append((name, *server.reports(payloads(_REPORTS), connections)))
    rows = [
        (
            name,
            f"{len(samples) / took:,.0f}",
            milli(quantile(samples, 0.5)),
            milli(quantile(samples, 0.99)),
            times(quantile(samples, 0.5), process.median),
        )
        for name, samples, took in measured
    ]
    ratio = quantile(measured[1][1], 0.5) / process.median
    return [
        "  a batch of results to a hook, ms",
        "",
        table(("", "a second", "p50", "p99", "x a process"), rows),
        "",
        goal(f"over HTTP at most {_SHARE} of a process: {ratio:.2f}", ratio <= _SHARE),
    ]


def _batch(root: str, number: int) -> dict[str, Any]:
    call = {"tool_name": "Bash", "tool_input": {"command": f"grep -n total src/m_{number}.py"}}
    result = {"tool_use_id": f"toolu_{number}", "tool_response": f"{number}: def total(rows):\n" * 20}
    return {
        "session_id": "bench",
        "transcript_path": "",
        "cwd": root,
        "hook_event_name": "PostToolBatch",
        "tool_calls": [{**call, **result}],
    }

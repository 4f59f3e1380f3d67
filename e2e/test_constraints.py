"""A rule of the project that is broken in one session and again in the next."""

from __future__ import annotations

from harness.bench import Bench
from harness.calls import shell, write
from harness.script import do

RULE = """---
id: no-vendored-code
circuit_breaker:
  violation_threshold: 2
  dedup_seconds: 0
match:
  - command: touch vendor/*
  - path: "vendor/**"
---
# What others wrote is not changed here
"""


def test_a_constraint_trips_over_two_sessions(bench: Bench) -> None:
    bench.put("docs/constraints/no-vendored-code.md", RULE)
    bench.put("vendor/README", "Theirs.\n")
    first = bench.run(do(shell("touch vendor/one.txt")))
    assert first.code == 0, first
    assert bench.path("vendor/one.txt").exists(), f"the first violation passes\n{first}"
    assert "What others wrote is not changed here" in first.told, f"and the agent is told\n{first}"
    assert bench.json("status", "no-vendored-code")["circuits"][0]["state"] == "CLOSED"

    second = bench.run(
        do(write("vendor/two.txt", "mine\n")),  # the second is what opens the circuit: it is refused
        do(shell("touch vendor/three.txt")),
        do(shell("touch elsewhere.txt")),
    )
    assert second.code == 0, second
    assert not bench.path("vendor/three.txt").exists(), second
    assert "BLOCKED constraint:no-vendored-code" in second.told_at(2), second
    assert bench.path("elsewhere.txt").exists(), f"everything else goes on\n{second}"
    assert bench.json("status", "no-vendored-code")["circuits"][0]["state"] == "OPEN"

"""Agents that start agents, and money."""

from __future__ import annotations

import contextlib
import sqlite3
import threading

from harness.bench import Bench
from harness.calls import shell, spawn, wait
from harness.processes import comes_true
from harness.script import Script, do, part


def until(condition: str) -> str:
    """For a shell; for less than any client lets a command run, and without what some of them do not allow."""
    return f"timeout 25 sh -c 'until {condition}; do sleep 0.1; done'"


#: Helpers are at work until the last call that starts one has been judged, and the main agent until all have helped.
HELPED = part(do(shell(f"{until('[ -e judged.txt ]')}; echo helped >> helped.txt")))
ALL = shell(until("grep -c helped helped.txt | grep -qx 5"))


def test_of_seven_agents_at_once_the_sixth_is_refused(bench: Bench) -> None:
    seven = do(*(spawn(f"HELPER-{number}: lend a hand.") for number in range(1, 8)))

    def judge() -> None:
        comes_true(lambda: refusals(bench) >= 2)
        bench.put("judged.txt", "")

    thread = threading.Thread(target=judge)
    run = bench.play(Script(part(seven, do(wait()), do(ALL)), {"HELPER": HELPED}), meanwhile=thread.start)
    thread.join()
    assert run.code is not None, run
    started = {request.who for request in run.requests} - {"main"}
    assert len(started) == 5, f"{started}\n{run}"
    assert (bench.text("helped.txt") or "").count("helped") == 5, run
    assert run.told_at(1).count("BLOCKED tool.agent") == 2, run


def refusals(bench: Bench) -> int:
    """Calls that were refused so far, of whichever agent."""
    with contextlib.suppress(sqlite3.Error):  # nothing is on record yet
        where = f"file:{bench.path('.fusewire/state.db')}?mode=ro"
        with contextlib.closing(sqlite3.connect(where, uri=True)) as database:
            count: int = database.execute("select count(*) from doings where kind = 'refused'").fetchone()[0]
            return count
    return 0


def test_what_a_session_costs_halts_it_and_a_grant_lets_it_go_on(bench: Bench) -> None:
    limit = NEAR.get(bench.name, 1.0)
    bench.put("fusewire.toml", f"[tool.resource_limits]\nagent_cost_block_usd = {limit}\n")
    # A second for a reply, as models need: the hook tells the replies of a client without batches by it.
    dear = [
        do(shell(f"echo {number} >> steps.txt"), tokens_in=100_000, tokens_out=1000, delay=1.1) for number in range(30)
    ]

    run = bench.run(*dear)
    assert run.code is not None, run
    first = steps(bench)
    assert 1 <= first < 20, run
    assert run.count() <= first + 1 + UNHEEDED[bench.name], run
    assert "WARNING tool.spend" in run.told, f"it was told near the limit\n{run}"
    assert "HALTED" in run.shown + run.told, run
    cost = bench.json("status", "--session")["resources"]["cost"]
    assert cost["usd"] >= cost["limit_usd"] == limit, cost

    again = bench.run(*dear, again=True)
    assert steps(bench) == first, f"not a step more, whatever it is asked\n{again}"
    assert again.count() <= 1 + UNHEEDED[bench.name], again

    more = f"{bench.json('status', '--session')['resources']['cost']['usd']:.2f}"
    bench.fusewire("grant", more, "--reason", "it is worth it")
    granted = bench.run(*dear, again=True)
    assert first < steps(bench) < 25, f"it goes on, and comes to the next limit\n{granted}"
    assert bench.json("status", "--session")["resources"]["cost"]["granted_usd"] == float(more)


#: A reply of this client costs half a dollar: it is told of the limit at 80 % of it, and must come there before.
NEAR = {"codex": 1.2}


def steps(bench: Bench) -> int:
    return len((bench.text("steps.txt") or "").split())


#: Requests after the limit: a client without a halt is told no three times more, then its program is ended.
UNHEEDED = {"claude": 0, "codex": 5, "gemini": 0, "copilot": 1}

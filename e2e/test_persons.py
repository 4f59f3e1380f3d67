"""What a person does with the hook installed: they are not a loop, and what they ask is answered."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from harness.bench import Bench
from harness.calls import shell
from harness.script import Reply, do, script


def test_a_person_who_asks_the_same_again_and_again_is_no_loop(bench: Bench) -> None:
    """Four messages in one session, two calls for each, always the same: more than an agent alone may repeat."""
    for number in range(4):
        run = bench.run(do(shell("cat notes.txt")), do(shell("cat notes.txt")), again=number > 0)
        assert run.code == 0, run
        assert run.count() == 3, run
        assert "fusewire" not in run.told, run
        assert "WARNING" not in run.told, run
        assert bench.heard() >= 2 * (number + 1), bench.heard()
    assert not bench.tripped()


def test_doctor_sees_that_it_works(bench: Bench) -> None:
    done = bench.fusewire("doctor", "--canary", "--json", check=False)
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert bench.name in json.dumps(found)
    told = bench.fusewire("doctor", "--canary").stdout
    assert "blocked" in told, told


@pytest.mark.only("codex")
def test_hooks_that_nobody_has_trusted_do_not_run_and_doctor_says_so(bare: Bench) -> None:
    done = bare.fusewire("install", "codex", "--user")
    assert "trust" in done.stdout + done.stderr
    run = bare.run(do(shell("rm specs/a.md")))
    assert bare.text("specs/a.md") is None, f"that is how Codex does it\n{run}"
    doctor = bare.fusewire("doctor", check=False)
    assert doctor.returncode == 1, doctor.stdout
    assert "trust" in doctor.stdout, doctor.stdout
    bare.client.trust()
    guarded = bare.run(do(shell("rm specs/b.md")))
    assert "BLOCKED guard." in guarded.told_at(1), guarded


@pytest.mark.only("claude")
def test_a_stop_hook_that_never_lets_it_stop_is_a_loop(bare: Bench) -> None:
    """Somebody's own hook keeps the agent going. The client itself would let it do so eight times."""
    again = """printf '{"decision": "block", "reason": "go on"}'"""
    own = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": again}]}]}}
    bare.client.registration.write_text(json.dumps(own))
    alone = bare.play(script(Reply(text="I have done it."), forever=True))
    bare.install()
    run = bare.play(script(Reply(text="I have done it."), forever=True))
    assert run.code is not None, run
    assert run.count() <= 6 < alone.count(), f"{alone.count()} without\n{run}"
    assert "loop/no_progress" in bare.tripped(), f"each stretch between two stops is an iteration: {bare.tripped()}"


@pytest.mark.only("claude")
def test_a_call_costs_two_processes_of_ours(bench: Bench) -> None:
    """One before the call, one behind the batch; nothing else that grows with the work."""
    calls = 4
    run = bench.run(*(do(shell(f"echo {number}")) for number in range(calls)))
    started = Counter(re.findall(r'"subtype": "hook_started".*?"hook_event": "(\w+)"', run.shown))
    assert started.pop("PreToolUse") == calls, run
    assert started.pop("PostToolBatch") == calls, run
    assert set(started) <= {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}, started
    assert max(started.values()) == 1, started


@pytest.mark.only("claude")
def test_several_calls_of_one_reply_share_the_process_behind_them(bench: Bench) -> None:
    run = bench.run(do(*(shell(f"echo {number}") for number in range(5))))
    assert len(re.findall(r'"subtype": "hook_started".*?"hook_event": "PostToolBatch"', run.shown)) == 1, run

"""Loops and a provider that refuses requests: real runs in two projects of one person."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.output.answer import AgentOutput, Limit
from fusewire.breakers.loop.loop import Loop
from fusewire.core.decision import Blocked
from fusewire.core.pacing import Window
from fusewire.engine.breaker import Breaker
from fusewire.engine.testing import Clock
from fusewire.scopes.providers import Providers, Refusal
from fusewire.scopes.user import is_any_limited
from tests.helpers.agents import comes_true
from tests.helpers.agents.run_stage import WORK, Stage, claude, staged

CIRCUIT = "provider/anthropic"


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[tuple[Stage, Stage]]:
    """Two projects of one person."""
    both = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        both.append(staged(tmp_path / name, None))
    yield both[0], both[1]
    for stage in both:
        stage.close()


def rejected(resets_in: float) -> str:
    """What Claude Code prints when a request meets the limit of a subscription."""
    info = {"status": "rejected", "resetsAt": int(time.time() + resets_in), "rateLimitType": "five_hour"}
    event = {"type": "rate_limit_event", "rate_limit_info": info, "session_id": "c18bc1ad"}
    refused = claude("", is_error=True, api_error_status=429, terminal_reason="api_error")
    return f"printf '%s\\n' '{json.dumps(event)}'; {refused}; exit 1"


def known(stage: Stage) -> None:
    """Let the loop of a project know its agent, by an answer of it."""
    stage.run(f"{WORK}; {claude('A step.')}", "--max-iterations", "1")


def test_a_limit_that_one_loop_meets_holds_for_the_loops_of_all_projects(stages: tuple[Stage, Stage]) -> None:
    one, two = stages
    known(two)
    ended = one.run(rejected(3600))
    assert (ended.returncode, one.starts()) == (3, [1])
    assert "the provider's limit is reached (five_hour) since " in ended.stderr
    ended = two.run(WORK, "--json")
    assert (ended.returncode, two.starts()) == (3, [1])  # only the start from before
    decision = json.loads(ended.stdout)["decision"]
    assert (decision["id"], decision["state"]) == (CIRCUIT, "OPEN")
    assert 3500 < decision["retry_after"] <= 3602
    assert "seen by claude session s in project" in decision["reason"]


def test_a_loop_waits_for_the_reset_and_its_first_start_is_the_probe(stages: tuple[Stage, Stage]) -> None:
    one, two = stages
    known(two)
    resets = time.time() + 2
    one.run(rejected(2))
    ended = two.run(f"{WORK}; {claude('A step.')}", "--max-iterations", "1", wait=True)
    assert (ended.returncode, two.starts()) == (4, [1, 2]), ended.stderr
    assert time.time() > int(resets) + 2
    assert "waiting " in ended.stderr
    assert f"this start is the one probe of {CIRCUIT}" in ended.stderr
    assert not is_any_limited()


def test_of_the_loops_that_wait_one_probes_and_the_others_go_on_with_its_answer(tmp_path: Path) -> None:
    """Six runs in six projects: the first probe fails, so that all wait longer; the second is answered."""
    log = tmp_path / "log"
    stages = []
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        stages.append(staged(tmp_path / str(number), None))
        known(stages[-1])
    failing = claude("Overloaded", is_error=True, api_error_status=529, terminal_reason="api_error")
    first = f'mkdir "{tmp_path}/failed" 2>/dev/null && {{ echo failed >> "{log}"; sleep 1; {failing}; exit 1; }}'
    does = f'{first}; echo started >> "{log}"; sleep 1; echo answered >> "{log}"; {WORK}; {claude("A step.")}'
    Providers().refused(CIRCUIT, Refusal("429", time.time() + 2))
    try:
        runs = [stage.start(does, "--max-iterations", "2", wait=True) for stage in stages]
        assert comes_true(lambda: log.exists() and log.read_text().split().count("answered") >= 6)
        said = log.read_text().split()
        assert said[:3] == ["failed", "started", "answered"], said
        for run in runs:
            run.terminate()
            run.wait()
    finally:
        for stage in stages:
            stage.close()


def test_the_first_reply_settles_the_probe_however_long_the_iteration_lasts(stages: tuple[Stage, Stage]) -> None:
    """The others need not wait for what the agent does with it."""
    one, two = stages
    known(one)
    known(two)
    Providers().refused(CIRCUIT, Refusal("429", time.time() + 3600))
    Providers().reset(CIRCUIT, "now", "ann")
    reply = {"type": "assistant", "session_id": "s", "message": {"id": "m", "model": "claude-x", "content": []}}
    one.start(f"printf '%s\\n' '{json.dumps(reply)}'; sleep 60")
    assert comes_true(lambda: len(one.starts()) == 2 and not is_any_limited())
    assert two.run(WORK, "--max-iterations", "1").returncode == 4


def test_a_killed_prober_leaves_the_probe_to_the_next(stages: tuple[Stage, Stage]) -> None:
    one, two = stages
    known(one)
    known(two)
    Providers().refused(CIRCUIT, Refusal("429", time.time() + 3600))
    Providers().reset(CIRCUIT, "now", "ann")
    process = one.start("sleep 60", wait=True)
    assert comes_true(lambda: len(one.starts()) == 2)
    ended = two.run(WORK, "--max-iterations", "1")
    assert (ended.returncode, "a probe is under way after: " in ended.stderr) == (3, True), ended.stderr
    process.kill()
    process.wait()
    ended = two.run(f"{WORK}; {claude('A step.')}", "--max-iterations", "1")
    assert (ended.returncode, two.starts()) == (4, [1, 2]), ended.stderr


@pytest.mark.parametrize(
    "does",
    [
        "echo 'rate limit exceeded, HTTP 429, resets at 5pm'",
        f"echo '529 overloaded_error' > notes.md; {claude('The API said 429 rate_limit_error: limit reached.')}",
        "echo 'FAILED tests/test_api.py::test_429 - rate limit'; exit 1",
        claude("curl: (22) The requested URL returned error: 429"),
        claude("", is_error=True, subtype="error_max_turns"),
        claude("bad key", is_error=True, api_error_status=401, terminal_reason="api_error"),
    ],
    ids="words diff test curl turns key".split(),
)
def test_words_and_other_errors_are_no_limit(stages: tuple[Stage, Stage], does: str) -> None:
    """Must not fire: the words in what an agent prints, says or writes, and the statuses of its own programs."""
    one, _ = stages
    ended = one.run(does, "--max-iterations", "1")
    assert ended.returncode == 4, ended.stderr
    assert not is_any_limited()


def test_a_429_in_the_result_of_a_tool_is_no_limit(stages: tuple[Stage, Stage]) -> None:
    one, _ = stages
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "HTTP/1.1 429 rate_limit_error"}
    said = {"type": "user", "session_id": "s", "message": {"content": [result]}, "error": "rate_limit"}
    one.run(f"printf '%s\\n' '{json.dumps(said)}'; {claude('Done.')}", "--max-iterations", "1")
    assert not is_any_limited()


def test_without_waiting_an_outage_ends_nothing(stages: tuple[Stage, Stage]) -> None:
    """As before: it is tried again at once, until the row of iterations without an answer is too long."""
    one, _ = stages
    failing = claude("Overloaded", is_error=True, api_error_status=529, terminal_reason="api_error")
    ended = one.run(f'[ "$n" -gt 2 ] && {{ {WORK}; {claude("Done.")}; exit; }}; {failing}', "--max-iterations", "3")
    assert (ended.returncode, one.starts()) == (4, [1, 2, 3]), ended.stderr
    assert not is_any_limited()


def test_a_loop_script_waits_for_the_provider_as_well(stages: tuple[Stage, Stage]) -> None:
    """`loop end` knows the agent by its answer, and `loop begin` remembers it."""
    one, two = stages
    answer = one.outside / "answer.json"
    assert one.call("loop", "begin").returncode == 0
    answer.write_text(json.dumps({"type": "result", "is_error": True, "api_error_status": 429, "session_id": "s"}))
    assert one.call("loop", "end", "--output", str(answer), "--exit-code", "1").stdout.strip() == "CONTINUE"
    refused = one.call("loop", "begin")
    assert (refused.returncode, "provider:anthropic" in refused.stderr + refused.stdout) == (3, True)
    assert two.call("loop", "begin").returncode == 0  # whose agent nobody knows yet


def test_where_the_persons_store_cannot_be_used_a_loop_waits_by_itself_and_says_so(
    stages: tuple[Stage, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = stages
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    resets = time.time() + 2
    does = f'[ "$n" = 1 ] && {{ {rejected(2)}; }}; {WORK}; {claude("A step.")}'
    ended = one.run(does, "--max-iterations", "2", wait=True)
    assert (ended.returncode, one.starts()) == (4, [1, 2]), ended.stderr
    assert time.time() > int(resets) + 2
    assert "the limits of providers are not shared with other loops" in ended.stderr


# -- in this process, with a clock that is moved by hand --------------------------------------------------------


@pytest.fixture
def clock() -> Clock:
    return Clock()


def looping(root: Path, clock: Clock) -> Loop:
    root.mkdir(exist_ok=True)
    loop = Loop(Breaker.open(project=root, clock=clock))
    loop.provider.agent = "claude"
    return loop


def test_a_limit_with_a_known_end_never_halts_a_loop(tmp_path: Path, clock: Clock) -> None:
    """Ten windows in a row that were full at once: no other circuit opens, the loop only waits."""
    loop = looping(tmp_path / "p", clock)
    for _ in range(10):
        begun = loop.begin()
        limited = AgentOutput(format="claude-json", limit=Limit(clock() + 18_000, "five_hour"))
        result = loop.end(begun.token, code=1, answer=limited, begun=begun)
        assert (result.kind, result.trips, result.halted) == ("neutral", (), "")
        with pytest.raises(Blocked) as blocked:
            loop.begin()
        assert blocked.value.decision.circuit == CIRCUIT
        clock.advance(blocked.value.decision.retry_after or 0)


def test_an_abandoned_iteration_gives_its_probe_back(tmp_path: Path, clock: Clock) -> None:
    one, two = looping(tmp_path / "one", clock), looping(tmp_path / "two", clock)
    Providers(clock).refused(CIRCUIT, Refusal("429", clock() + 60))
    clock.advance(62)
    begun = one.begin()
    assert two.refusal() is not None
    one.abandon(begun.token)
    assert two.refusal() is None
    begun = two.begin()
    two.end(begun.token, why="timeout", code=None, answer=AgentOutput(), begun=begun)  # nobody can tell
    assert one.refusal() is None
    assert is_any_limited()


def test_a_loop_whose_agent_is_not_known_waits_for_nobody(tmp_path: Path, clock: Clock) -> None:
    Providers(clock).refused(CIRCUIT, Refusal("429", clock() + 3600))
    loop = looping(tmp_path / "p", clock)
    loop.provider.agent = ""
    assert loop.refusal() is None
    loop.provider.agent = "codex"  # another provider
    assert loop.refusal() is None


# -- pace -------------------------------------------------------------------------------------------------------


def used(share: float, **event: Any) -> str:
    windows = {"five_hour": {"utilization": share, "resetsAt": int(time.time() + 9000), "status": "allowed"}}
    info = {"status": "allowed", "unifiedWindows": windows, **event}
    return f"printf '%s\\n' '{json.dumps({'type': 'rate_limit_event', 'rate_limit_info': info, 'session_id': 's'})}'"


def test_a_run_says_how_far_ahead_or_behind_its_pace_is(stages: tuple[Stage, Stage]) -> None:
    one, _ = stages
    one.write("fusewire.toml", "[loop]\npace = true\n")
    ended = one.run(f"{WORK}; {used(0.38)}; {claude('A step.')}", "--max-iterations", "2", wait=True)
    assert "pace: 38 % of the window five_hour used after 50 % of its time: 12 % behind an even pace" in ended.stderr
    assert (ended.returncode, "waiting" in ended.stderr) == (4, False)
    assert [window.used for window in Providers().windows(CIRCUIT)] == [0.38]


def test_a_run_that_is_ahead_waits_and_without_the_setting_it_does_not(stages: tuple[Stage, Stage]) -> None:
    one, two = stages
    one.write("fusewire.toml", "[loop]\npace = true\n")
    Providers().note_windows(CIRCUIT, (Window("five_hour", 0.62, time.time() + 9000, 18_000.0),))
    does = f"{WORK}; {used(0.62)}; {claude('A step.')}"
    ended = one.run(does, "--max-iterations", "2", "--max-time", "6s", wait=True)
    assert (ended.returncode, one.starts()) == (4, [1]), ended.stderr
    assert "waiting 15m: pace: 62 % of the window five_hour used after 50 %" in ended.stderr
    ended = two.run(does, "--max-iterations", "2", wait=True)
    assert (two.starts(), "pace:" in ended.stderr) == ([1, 2], False)


def test_without_a_window_the_hour_is_spread_in_equal_parts(stages: tuple[Stage, Stage]) -> None:
    one, _ = stages
    one.write("fusewire.toml", "[loop]\npace = true\nmax_calls_per_hour = 1000\n")
    ended = one.run(f"{WORK}; echo done", "--max-iterations", "2", wait=True)
    assert (ended.returncode, one.starts()) == (4, [1, 2])
    assert "pace: 1 of 1000 starts used within the hour" in ended.stderr

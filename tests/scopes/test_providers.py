"""One circuit for each provider and account of a person: what opens it, what closes it, and who may probe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.agents.provider import agent_of_format, agent_of_program, provider_circuit
from fusewire.config import user_state_folder
from fusewire.engine.testing import Clock
from fusewire.scopes.providers import Providers, Refusal, believable
from fusewire.scopes.user import LIMITED, is_any_limited, open_user_store
from fusewire.stores.memory import MemoryStore
from tests.helpers import TESTS

CIRCUIT = "provider/anthropic"
HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def providers(clock: Clock) -> Providers:
    return Providers(clock)


def limit(clock: Clock, seconds: float | None = 5 * HOUR, **fields: object) -> Refusal:
    return Refusal("five_hour", None if seconds is None else clock() + seconds, **fields)  # type: ignore[arg-type]


def hint() -> Path:
    return Path(user_state_folder(), LIMITED)


# -- what opens and closes it ---------------------------------------------------------------------------------


def test_where_nothing_was_ever_refused_nothing_is_made(providers: Providers) -> None:
    """A loop that only asks leaves no file behind."""
    assert providers.look(CIRCUIT).allowed
    assert providers.ask(CIRCUIT, "a").allowed
    assert not providers.answered(CIRCUIT)
    assert (providers.limits(), providers.windows(CIRCUIT)) == ([], ())
    assert not os.path.exists(user_state_folder())


def test_a_refusal_says_what_until_when_and_who_saw_it(providers: Providers, clock: Clock) -> None:
    providers.refused(CIRCUIT, limit(clock, agent="claude", session="479528ae-91f4", root="/home/dev/shop"))
    decision = providers.look(CIRCUIT)
    assert (decision.verdict, decision.phase, decision.retry_after) == ("deny", "open", 5 * HOUR + 2)
    assert decision.reason.startswith("the provider's limit is reached (five_hour) since ")
    assert ", until " in decision.reason
    assert decision.reason.endswith("; seen by claude session 479528ae in shop")
    assert decision.rule == "provider:anthropic"


def test_the_hint_is_there_only_while_a_circuit_is_not_closed(providers: Providers, clock: Clock) -> None:
    assert not is_any_limited()
    providers.refused(CIRCUIT, limit(clock))
    providers.refused("provider/openai", limit(clock))
    assert json.loads(hint().read_text()) == {CIRCUIT: "OPEN", "provider/openai": "OPEN"}
    assert hint().stat().st_mode & 0o777 == 0o600
    assert providers.answered(CIRCUIT)
    assert json.loads(hint().read_text()) == {"provider/openai": "OPEN"}
    assert providers.answered("provider/openai")
    assert not hint().exists()


@pytest.mark.parametrize("after", [60.0, 4 * HOUR, 6 * HOUR])
def test_an_answer_closes_it_before_the_reset_and_after(providers: Providers, clock: Clock, after: float) -> None:
    """Evidence beats the clock: another account, or a limit that was lifted."""
    providers.refused(CIRCUIT, limit(clock))
    clock.advance(after)
    assert providers.answered(CIRCUIT, "s", at=clock() - 1)
    assert providers.look(CIRCUIT).allowed
    assert providers.limits() == []


def test_an_answer_from_before_the_refusal_is_no_evidence(providers: Providers, clock: Clock) -> None:
    answered_at = clock()
    clock.advance(10)
    providers.refused(CIRCUIT, limit(clock))
    assert not providers.answered(CIRCUIT, at=answered_at)
    assert not providers.look(CIRCUIT).allowed


def test_a_limited_provider_stops_no_other_provider_and_no_other_account(providers: Providers, clock: Clock) -> None:
    providers.refused(CIRCUIT, limit(clock))
    for other in ("provider/openai", "provider/anthropic/~/.claude-work", "provider/anthropic/api-key"):
        assert providers.ask(other, "a").verdict == "allow"


def test_a_second_session_that_knows_the_end_adds_it(providers: Providers, clock: Clock) -> None:
    """A hook of Claude Code is told of no time; another session's output has it."""
    providers.refused(CIRCUIT, limit(clock, None, session="first"))
    assert providers.look(CIRCUIT).retry_after == 300
    clock.advance(5)
    providers.refused(CIRCUIT, limit(clock, session="second"))
    assert providers.look(CIRCUIT).retry_after == 5 * HOUR + 2
    ((_, _, met),) = providers.limits()
    assert (met.session, met.at) == ("second", clock() - 5)


@pytest.mark.parametrize(
    ("given", "taken"),
    [(None, None), (-1.0, None), (0.0, None), (60.0, 60.0), (35 * DAY, 35 * DAY), (36 * DAY, None), (1e12, None)],
)
def test_a_time_that_cannot_be_the_end_is_not_known(given: float | None, taken: float | None) -> None:
    """In the past (a clock that is wrong), or further away than any limit's: then it is tried after five minutes."""
    now = 1_800_000_000.0
    assert believable(None if given is None else now + given, now) == (None if taken is None else now + taken)


@pytest.mark.parametrize("seconds", [-600.0, 400 * DAY])
def test_with_a_clock_that_is_wrong_the_wait_is_bounded(providers: Providers, clock: Clock, seconds: float) -> None:
    providers.refused(CIRCUIT, limit(clock, seconds))
    assert providers.look(CIRCUIT).retry_after == 300


def test_a_clock_that_is_set_back_ends_no_wait_early(providers: Providers, clock: Clock) -> None:
    providers.refused(CIRCUIT, limit(clock))
    clock.now -= 2 * HOUR
    assert providers.look(CIRCUIT).retry_after == 7 * HOUR + 2
    assert providers.answered(CIRCUIT)  # and an answer ends it all the same


def test_a_limit_of_unknown_end_is_tried_later_after_each_probe_that_fails(providers: Providers, clock: Clock) -> None:
    waits = []
    for number in range(6):
        providers.refused(CIRCUIT, limit(clock, None))
        waits.append(providers.look(CIRCUIT).retry_after)
        clock.advance(waits[-1] or 0)
        assert providers.ask(CIRCUIT, f"probe {number}").lease == f"probe {number}"
    assert waits == [300, 600, 1200, 2400, 3600, 3600]


def test_however_often_it_is_asked_nothing_is_halted(providers: Providers, clock: Clock) -> None:
    """A limit with a known end is waited for."""
    providers.refused(CIRCUIT, limit(clock))
    verdicts = {providers.ask(CIRCUIT, f"a{number}").verdict for number in range(50)}
    assert verdicts == {"deny"}
    clock.advance(5 * HOUR + 2)
    assert providers.ask(CIRCUIT, "a").verdict == "tell"


def test_a_persons_reset_ends_the_wait_and_one_probe_decides(providers: Providers, clock: Clock) -> None:
    providers.refused(CIRCUIT, limit(clock))
    providers.reset(CIRCUIT, "I have bought more", "ann")
    assert providers.ask(CIRCUIT, "a").lease == "a"
    assert not providers.ask(CIRCUIT, "b").allowed
    providers.release(CIRCUIT, "a")
    assert providers.ask(CIRCUIT, "b").lease == "b"


def test_a_session_is_told_once_of_a_limit_and_again_of_the_next(providers: Providers, clock: Clock) -> None:
    providers.refused(CIRCUIT, limit(clock))
    assert [len(providers.untold("s", CIRCUIT)) for _ in range(3)] == [1, 0, 0]
    assert len(providers.untold("other", CIRCUIT)) == 1
    assert providers.untold("s", "provider/openai") == []
    clock.advance(6 * HOUR)
    assert providers.untold("new", CIRCUIT) == []  # it may be tried: nothing is in force
    providers.refused(CIRCUIT, limit(clock))
    assert len(providers.untold("s", CIRCUIT)) == 1


def test_a_hint_without_a_limit_is_taken_away(providers: Providers, clock: Clock) -> None:
    """After half a day of silence the circuit has closed by itself."""
    providers.refused(CIRCUIT, limit(clock, HOUR))
    clock.advance("14h")
    assert providers.untold("s", CIRCUIT) == []
    assert not is_any_limited()


def test_accounts_are_bounded(clock: Clock) -> None:
    store = MemoryStore()
    providers = Providers(clock, store=store)
    for number in range(150):
        clock.advance(1)
        providers.refused(f"provider/anthropic/{number}", limit(clock))
    assert len(store.remembered("provider/")) == 100
    assert not hint().exists()  # a store in memory is nobody's


def test_a_damaged_state_is_rebuilt_and_not_closed(providers: Providers, clock: Clock) -> None:
    """From its log, where the end stands as the signal's value."""
    providers.refused(CIRCUIT, limit(clock))
    store = open_user_store()
    with store.transact() as transaction:
        transaction.save(CIRCUIT, "provider", "open", {"nonsense": 1}, clock())
    assert Providers(clock).look(CIRCUIT).retry_after == 5 * HOUR + 2


# -- accounts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "environment", "circuit"),
    [
        ("claude", {}, "provider/anthropic"),
        ("claude", {"CLAUDE_CONFIG_DIR": "{home}/.claude"}, "provider/anthropic"),
        ("claude", {"CLAUDE_CONFIG_DIR": "{home}/.claude-work"}, "provider/anthropic/~/.claude-work"),
        ("claude", {"ANTHROPIC_API_KEY": "sk-secret"}, "provider/anthropic/api-key"),
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "1"}, "provider/bedrock"),
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "0"}, "provider/anthropic"),
        ("claude", {"ANTHROPIC_BASE_URL": "https://me:secret@gateway.example:8443/v1?k=secret"}, None),
        ("claude", {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}, "provider/anthropic"),
        ("codex", {"CODEX_HOME": "/srv/codex"}, "provider/openai/" + os.path.realpath("/srv/codex")),
        ("codex", {}, "provider/openai"),
        ("gemini", {"GEMINI_API_KEY": "secret"}, "provider/google/api-key"),
        ("copilot", {}, "provider/github"),
        ("my-agent", {}, ""),
        ("", {}, ""),
    ],
)
def test_an_account_is_told_without_a_secret(agent: str, environment: dict[str, str], circuit: str | None) -> None:
    home = os.path.expanduser("~")
    given = {name: value.replace("{home}", home) for name, value in environment.items()}
    found = provider_circuit(agent, given)
    assert found == (circuit if circuit is not None else "provider/gateway.example:8443")
    assert "secret" not in found


def test_a_client_is_known_by_its_name_and_by_what_it_prints() -> None:
    assert [agent_of_program(name) for name in ("claude", "/usr/bin/codex", "sh", "")] == ["claude", "codex", "", ""]
    assert [agent_of_format(name) for name in ("claude-stream", "codex", "text")] == ["claude", "codex", ""]


# -- races of real processes ----------------------------------------------------------------------------------


class Asking:
    """One process that asks for the circuit; see `tests/helpers/asking_providers.py`."""

    def __init__(self) -> None:
        command = [sys.executable, str(TESTS / "helpers" / "asking_providers.py"), CIRCUIT]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, word: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()


@pytest.fixture
def crowd() -> Iterator[list[Asking]]:
    processes: list[Asking] = []
    yield processes
    for one in processes:
        one.process.kill()
        one.process.communicate()


def race(crowd: list[Asking], number: int) -> list[Asking]:
    """Let so many processes ask at the same moment; those that got the probe."""
    new = [Asking() for _ in range(number)]
    crowd += new
    assert {one.read() for one in new} == {"ready"}
    for one in new:
        one.say()
    answers = [json.loads(one.read()) for one in new]
    probers = [one for one, answer in zip(new, answers, strict=True) if answer["lease"]]
    verdicts = ["deny"] * (number - len(probers)) + ["tell"] * len(probers)
    assert sorted(answer["verdict"] for answer in answers) == verdicts
    return probers


def ended(providers: Providers, seconds: float = 0.2) -> None:
    """A limit that has just ended."""
    providers.refused(CIRCUIT, Refusal("429", time.time() + seconds))
    with open_user_store().transact() as transaction:
        state = transaction.load(CIRCUIT)
        assert state is not None
        transaction.save(CIRCUIT, "provider", "open", {**state, "until": time.time() - 1}, time.time())


def test_of_thirty_processes_exactly_one_probes_and_the_rest_wait(crowd: list[Asking]) -> None:
    """It fails: all wait, longer. It is killed: the next one probes. It is answered: all go on."""
    providers = Providers()
    ended(providers)
    (prober,) = race(crowd, 30)
    prober.say("refused")
    assert prober.read() == "done"
    first = providers.look(CIRCUIT)
    assert (first.verdict, first.phase) == ("deny", "open")
    assert 10 < (first.retry_after or 0) <= 20  # twice the first step of an outage
    assert race(crowd, 5) == []

    providers.reset(CIRCUIT, "now", "ann")
    (prober,) = race(crowd, 10)
    assert race(crowd, 5) == []
    prober.process.kill()
    prober.process.wait()
    (prober,) = race(crowd, 10)
    prober.say("answered")
    assert prober.read() == "done"
    assert providers.ask(CIRCUIT, "a").verdict == "allow"
    assert not is_any_limited()


def test_no_refusal_is_lost_and_the_latest_end_holds(crowd: list[Asking]) -> None:
    """Twenty sessions meet the limit at once, each of them knows another end."""
    now = time.time()
    code = (
        "import sys; from fusewire.scopes.providers import *; sys.stdin.readline();"
        f"Providers().refused({CIRCUIT!r}, Refusal('429', {now} + 1000 * int(sys.argv[1])))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(number)], stdin=subprocess.PIPE) for number in range(1, 21)
    ]
    for one in processes:
        one.communicate(b"\n", timeout=60)
    assert [one.returncode for one in processes] == [0] * 20
    _, state = Providers().engine.view(CIRCUIT)
    assert (state.phase, state.total, state.trips) == ("open", 20, 1)
    assert state.until == pytest.approx(now + 20_002)

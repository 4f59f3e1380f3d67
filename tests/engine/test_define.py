"""Breakers of one's own: `Breaker.define` as a decorator and a context manager, `async` as well."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fusewire import Blocked, Breaker, ConfigError, InvalidTransition
from fusewire.engine.testing import Clock
from tests.helpers.project import Project


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory:", "sqlite:"])
def breaker(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[Breaker]:
    url = f"sqlite:{tmp_path}/state.db" if request.param == "sqlite:" else "memory:"
    with Breaker.open(url, clock=clock) as opened:
        yield opened


class Service:
    """Something that fails as long as it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: BaseException | None = ConnectionError("down")

    def call(self, argument: int = 0) -> int:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return argument * 2

    async def call_async(self, argument: int = 0) -> int:
        await asyncio.sleep(0)
        return self.call(argument)


# -- the decorator ----------------------------------------------------------------------------------------


def test_a_decorated_function_is_refused_after_its_failures_and_probed_after_the_cooldown(
    breaker: Breaker, clock: Clock
) -> None:
    payments, service = breaker.define("payments", failures=3, cooldown="5m"), Service()
    charge = payments(service.call)
    assert charge.__name__ == "call"
    for _ in range(3):
        with pytest.raises(ConnectionError):
            charge(1)
    with pytest.raises(Blocked) as caught:
        charge(1)
    assert (service.calls, caught.value.decision.retry_after) == (3, 300)
    assert str(caught.value) == "own.payments: 3 failures in a row (limit 3)"
    clock.advance("5m")
    service.error = None
    assert charge(21) == 42
    assert (payments.status().state, payments.status().id, payments.status().kind) == ("CLOSED", "own/payments", "own")


def test_a_success_starts_a_row_over_but_not_a_window(breaker: Breaker, clock: Clock) -> None:
    row, window = breaker.define("row", failures=2), breaker.define("window", failures=2, within=timedelta(hours=1))
    service = Service()
    for own in (row, window):
        for error in (ConnectionError(), None, ConnectionError()):
            service.error = error
            try:
                own(service.call)()
            except ConnectionError:
                clock.advance(1)
    assert (row.status().state, row.status().level) == ("CLOSED", 1)
    assert window.status().reason == "2 failures within 1h (limit 2)"


def test_failures_outside_of_the_window_are_forgotten(breaker: Breaker, clock: Clock) -> None:
    own = breaker.define("window", failures=2, within="1h")
    for _ in range(3):
        with pytest.raises(ConnectionError), own:
            raise ConnectionError
        clock.advance("1h")
    assert own.status().state == "CLOSED"


def test_a_schedule_has_one_cooldown_for_each_trip_in_a_row(breaker: Breaker, clock: Clock) -> None:
    own = breaker.define("ladder", failures=1, cooldown=["1m", 300, timedelta(hours=1)])
    waits = []
    for _ in range(4):
        with pytest.raises(ConnectionError), own:
            raise ConnectionError
        waits.append(own.status().retry_after)
        clock.advance(waits[-1] or 0)
    assert waits == [60, 300, 3600, 3600]


def test_only_a_person_ends_it_where_the_definition_says_so(breaker: Breaker, clock: Clock) -> None:
    own = breaker.define("deploy", failures=1, reset="person")
    with pytest.raises(InvalidTransition):
        own.reset()
    with pytest.raises(ValueError, match="broken"), own:
        raise ValueError("broken")
    clock.advance("30d")
    with pytest.raises(Blocked) as caught, own:
        pass
    assert caught.value.decision.retry_after is None
    assert own.reset("mended").state == "CLOSED"


def test_ignored_exceptions_count_as_success(breaker: Breaker, clock: Clock) -> None:
    """The service answered, so it is there: a row is broken, a probe succeeds."""
    own = breaker.define("lookup", failures=2, ignore=KeyError)
    for error in (ConnectionError, KeyError, ConnectionError, KeyError):
        with pytest.raises(error), own:
            raise error
    assert own.status().level == 0
    for _ in range(2):
        with pytest.raises(ConnectionError), own:
            raise ConnectionError
    clock.advance("5m")
    with pytest.raises(KeyError), own:
        raise KeyError
    assert own.status().state == "CLOSED"


def test_a_fallback_answers_while_the_circuit_is_open_and_only_then(breaker: Breaker) -> None:
    service = Service()
    call = breaker.define("cached", failures=1, fallback=lambda argument: -argument)(service.call)
    with pytest.raises(ConnectionError):
        call(7)
    assert (call(7), service.calls) == (-7, 1)


def test_a_generator_is_not_decorated(breaker: Breaker) -> None:
    """Calling one runs nothing of it, so nothing would be guarded."""

    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="numbers is a generator"):
        breaker.define("numbers")(numbers)


def test_many_threads_and_nested_blocks_share_one_breaker(breaker: Breaker) -> None:
    own, other = breaker.define("shared", failures=100), breaker.define("other", failures=100)
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        try:
            with own, other, own:
                raise ConnectionError
        except ConnectionError:
            pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (own.status().level, other.status().level) == (16, 8)


# -- async ------------------------------------------------------------------------------------------------


def test_async_functions_are_guarded_alike(breaker: Breaker, clock: Clock) -> None:
    service = Service()
    own = breaker.define("async", failures=2)

    async def work() -> None:
        call = own(service.call_async)
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await call(1)
        with pytest.raises(Blocked):
            await call(1)
        with pytest.raises(Blocked):
            async with own:
                raise AssertionError("not reached")
        clock.advance("5m")
        service.error = None
        assert await call(4) == 8
        async with own as decision:
            assert decision.allowed

    asyncio.run(work())
    assert (service.calls, own.status().state) == (3, "CLOSED")


def test_an_async_function_may_have_either_kind_of_fallback(breaker: Breaker) -> None:
    service = Service()

    async def later(argument: int) -> int:
        await asyncio.sleep(0)
        return -argument

    async def work() -> list[int]:
        answers = []
        for fallback in (later, lambda argument: argument - 1):
            call = breaker.define("fallbacks", failures=1, fallback=fallback)(service.call_async)
            try:
                answers.append(await call(7))
            except ConnectionError:
                answers.append(await call(7))
        return answers

    assert asyncio.run(work()) == [-7, 6]


def test_tasks_at_once_share_one_breaker(breaker: Breaker, clock: Clock) -> None:
    """Each task settles what it entered; after the cooldown one of them probes."""
    own = breaker.define("tasks", failures=5)

    async def fail() -> None:
        async with own:
            await asyncio.sleep(0)
            raise ConnectionError

    async def succeed() -> bool:
        try:
            async with own:
                await asyncio.sleep(0)
                return True
        except Blocked:
            return False

    async def at_once(work: object) -> list[object]:
        return list(await asyncio.gather(*(work() for _ in range(5)), return_exceptions=True))  # type: ignore[operator]

    failed = asyncio.run(at_once(fail))
    assert {type(one) for one in failed} <= {ConnectionError, Blocked}
    for _ in range(5 - int(own.status().level)):
        breaker.record(own.circuit, "the rest")
    assert own.status().state == "OPEN"
    clock.advance("5m")
    assert True in asyncio.run(at_once(succeed))
    assert own.status().state == "CLOSED"


def test_a_cancelled_task_gives_its_probe_back(breaker: Breaker, clock: Clock) -> None:
    own = breaker.define("cancelled", failures=1)
    with pytest.raises(ConnectionError), own:
        raise ConnectionError
    clock.advance("5m")

    async def work() -> None:
        entered = asyncio.Event()

        async def hang() -> None:
            async with own:
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        early = asyncio.create_task(hang())
        await asyncio.sleep(0)
        early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early

    asyncio.run(work())
    assert own.status().state == "HALF_OPEN"
    with own:
        pass
    assert own.status().state == "CLOSED"


# -- words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("a/b", {}, "[breakers] = 'a/b' is refused"),
        ("{x}", {}, "[breakers] = '{x}' is refused"),
        ("", {}, "[breakers] = '' is refused"),
        ("x", {"failures": 0}, "failures = 0 is refused; allowed: a whole number from 1 to 1000"),
        ("x", {"within": "soon"}, "within = 'soon' is refused; allowed: \"consecutive\", or a duration"),
        ("x", {"within": None}, "within = None is refused"),
        ("x", {"cooldown": []}, "cooldown = [] is refused; allowed: a duration above 0"),
        ("x", {"cooldown": -1}, "cooldown = '-1s' is refused"),
        ("x", {"reset": "never"}, "reset = 'never' is refused; allowed: probe, person"),
    ],
)
def test_a_wrong_word_is_named_with_what_is_allowed(name: str, words: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Breaker.open("memory:").define(name, **words)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert str(caught.value).startswith("Breaker.define: ")


# -- fusewire.toml ----------------------------------------------------------------------------------------


TABLE = """
[breakers.payments]
failures = 2
within = "1h"
cooldown = ["1m", "10m"]
"""


def test_a_breaker_of_the_configuration_works_with_every_command(project: Project) -> None:
    (project.root / "fusewire.toml").write_text(TABLE)
    assert project.run("check", "own/payments").returncode == 0
    project.run("record", "own/payments", "--action", "402")
    project.run("record", "own/payments", "--action", "402 again")
    assert project.run("check", "own/payments").returncode == 3
    (circuit,) = project.json("status")["circuits"]
    assert (circuit["id"], circuit["kind"], circuit["state"], circuit["rule"]) == (
        *("own/payments", "own", "OPEN"),
        "own.payments",
    )
    assert "2 failures within 1h (limit 2)" in project.run("status", "own/payments").stdout
    assert "402 again" in project.run("history", "own/payments").stdout
    config = project.json("config", "own/payments")["config"]
    assert config["cooldown"] == {"value": ["1m", "10m"], "source": "fusewire.toml"}
    assert config["reset"] == {"value": "probe", "source": "default"}
    assert project.run("reset", "own/payments", "--reason", "mended").returncode == 0
    assert project.json("status", "own/payments")["circuits"][0]["state"] == "HALF_OPEN"


def test_the_configuration_is_in_force_instead_of_the_words_in_python(project: Project) -> None:
    (project.root / "fusewire.toml").write_text(TABLE)
    with Breaker.open(project=project.root) as breaker:
        own = breaker.define("payments", failures=7)
        assert own.status().threshold == 2
        assert breaker.define("another", failures=7).status().threshold == 7


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "[breakers.x]\nfailure = 3\n",
            "[breakers.x] failure = 3 is refused: no such setting (did you mean failures?)",
        ),
        ("[breakers.x]\ncooldown = 5\n", "[breakers.x] cooldown = 5 is refused; allowed: a duration above 0"),
        ('[breakers."a/b"]\n', "[breakers] = 'a/b' is refused; allowed: a name"),
        ("[breakers]\nx = 3\n", "[breakers] x = 3 is refused; allowed: a table [breakers.x] of settings"),
        ("breakers = 3\n", "breakers = 3 is refused; allowed: a table [breakers.NAME]"),
    ],
)
def test_a_wrong_key_in_the_configuration_is_one_line(project: Project, table: str, message: str) -> None:
    (project.root / "fusewire.toml").write_text(table)
    (warning,) = project.json("status")["warnings"]
    assert message in warning

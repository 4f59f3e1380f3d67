"""The store on a real PostgreSQL server: what the contract says beyond one process, one server run, one clock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from fusewire import Breaker, StoreError
from fusewire.core.events import Signal
from fusewire.engine.engine import BreakerTransaction
from fusewire.stores import open_store
from fusewire.stores.postgresql_schema import LATEST, MIGRATIONS
from fusewire.stores.postgresql_transaction import _slot
from fusewire.stores.rows import DecisionRow, SpendRow
from tests.helpers import ROOT
from tests.helpers.postgres import PASSWORD, PostgresServer
from tests.helpers.project import Project

pytestmark = pytest.mark.postgresql

STATE = {"since": 1.0}


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.schema())


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that may be stopped, and that waits for its disk."""
    server = PostgresServer(durable=True)
    yield server
    server.remove()


def clients(work: str, count: int, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.helpers.postgres_workers", work, str(count), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)


def said_by(work: str, count: int, *arguments: str) -> list[object]:
    output, _ = clients(work, count, *arguments).communicate(timeout=120)
    return [json.loads(line) for line in output.splitlines()]


def shared(url: str, failures: int = 1, cooldown: str = "1h", **how: object) -> Breaker:
    breaker = Breaker.open(url, **how)  # type: ignore[arg-type]
    breaker.define("shared", failures=failures, cooldown=cooldown)
    return breaker


# -- counting -------------------------------------------------------------------------------------------------


def test_64_processes_lose_no_event_and_trip_once(url: str) -> None:
    """All are in the circuit's total, those too that came when it was open; exactly one of them opened it."""
    found = said_by("record", 64, url, "50", "1000")
    assert sorted(map(len, found)) == [0] * 63 + [1], found  # type: ignore[arg-type]
    with shared(url, 1000) as breaker:
        status = breaker.status("own/shared")
        assert (status.state, status.total, status.trips) == ("OPEN", 64 * 50, 1)
        assert len(breaker.audit("own/shared")) == 1


def test_of_30_that_ask_after_the_cooldown_one_gets_the_probe(url: str) -> None:
    with shared(url, cooldown="1s") as breaker:
        breaker.record("own/shared", "failed")
    time.sleep(1.2)
    found = said_by("check", 30, url)
    assert len(found) == 30
    assert [lease is None for verdict, lease in found if verdict != "deny"] == [False]  # type: ignore[misc]


def test_whoever_follows_the_trail_misses_no_row(url: str) -> None:
    """Rows of units that overlap get their numbers in the order in which they can be seen."""
    follower = open_store(url)
    with follower.transact():
        pass
    writers = clients("move", 8, url, "40")
    seen: list[str] = []
    after = 0
    while writers.poll() is None or follower.last_move() > after:
        for number, row in follower.moves(after):
            after = number
            seen.append(row.circuit)
    writers.communicate()
    follower.close()
    assert sorted(seen) == sorted(f"{writer}-{one}" for writer in range(8) for one in range(40))


def test_who_follows_answers_and_spend_sees_a_unit_that_began_first_and_ended_last(url: str) -> None:
    """Numbers are given at the end of a unit: what is committed later is behind what somebody has already seen."""
    slow, quick = open_store(url), open_store(url)
    with slow.transact() as first:
        first.decided(DecisionRow(1.0, "slow", "told", "r", {}))
        first.spend([_spend("slow"), _spend("both")])
        with quick.transact() as second:
            second.decided(DecisionRow(1.0, "quick", "told", "r", {}))
            second.spend([_spend("quick"), _spend("both")])
        answered, counted = quick.last_decision(), quick.spent_after(0)[-1].version
    assert [row.session for _, row in quick.decisions(answered)] == ["slow"]
    assert [(row.session, row.usd) for row in quick.spent_after(counted)] == [("slow", 1.0), ("both", 2.0)]
    slow.close()
    quick.close()


def test_a_unit_reads_what_it_has_spent_and_forgets_all_but_the_newest_number(url: str) -> None:
    store = open_store(url)
    with store.transact() as unit:
        unit.spend([_spend("a"), _spend("b")])
        assert unit.spent(("session",)) == store.spent(("session",)) == [(one, 1.0, *[1] * 8) for one in "ab"]
        unit.forget_spend(1000, 2)
    assert [(row.session, row.version) for row in store.spent_after(0)] == [("b", 2)]
    store.close()


def test_the_same_answer_in_two_units_at_once_has_two_codes(url: str) -> None:
    """The second waits for the first, and takes another one."""
    row, codes = DecisionRow(1.0, "s", "told", "r", {}), []
    waiting = open_store(url, patience=5)

    def answer() -> None:
        with waiting.transact() as unit:
            codes.append(unit.decided(row))

    thread = threading.Thread(target=answer)
    store = open_store(url)
    with store.transact() as unit:
        codes.append(unit.decided(row))
        thread.start()
        time.sleep(0.3)
        assert len(codes) == 1
    thread.join(20)
    assert sorted(codes) == sorted(one.code for _, one in store.decisions())
    assert len(set(codes)) == 2
    store.close()
    waiting.close()


def _spend(session: str) -> SpendRow:
    return SpendRow(session, 900, "main", "m", "", "", "claude", 1.0, (1, 1, 1, 1, 1, 1), calls=1, starts=1)


# -- locks ----------------------------------------------------------------------------------------------------


def test_units_on_two_circuits_do_not_wait_for_each_other(url: str) -> None:
    """A unit that is held open on one circuit is in nobody's way on another, named or not; on its own it is."""
    assert _slot("circuit", "a") != _slot("circuit", "b")
    first, second = open_store(url), open_store(url, patience=0.1)
    with first.transact() as held:
        held.save("a", "constraint", "open", STATE, 1.0)
        for named in ((), ("b",)):
            began = time.monotonic()
            with second.transact(named) as unit:
                unit.save("b", "constraint", "open", STATE, 1.0)
                unit.remember("b", {}, 1.0)
            assert time.monotonic() - began < 0.25
        for named in ((), ("a",)):
            with pytest.raises(StoreError, match=r"is locked by another process \(waited 0.3 s\)"):
                _load(second, named)
    _load(second, ())
    assert [row.id for row in second.circuits()] == ["a", "b"]
    first.close()
    second.close()


def _load(store: object, named: tuple[str, ...]) -> None:
    with store.transact(named) as unit:  # type: ignore[attr-defined]
        unit.load("a")


def test_two_units_that_wait_for_each_other_are_both_done(url: str) -> None:
    """Each has locked what the other needs next: the server ends one of them, and the engine does it again."""
    both_hold_one = threading.Barrier(2, timeout=20)
    failures: list[BaseException] = []

    def unit_in(order: tuple[str, str]) -> None:
        attempts = []

        def work(unit: BreakerTransaction) -> None:
            attempts.append(1)
            unit.send(Signal("bad", order[0], "violation", text=order[0]))
            if len(attempts) == 1:
                both_hold_one.wait()
            unit.send(Signal("bad", order[1], "violation", text=order[1]))

        try:
            with Breaker.open(url) as breaker:
                breaker.engine.run(work)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=unit_in, args=(order,)) for order in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    with Breaker.open(url) as breaker:
        assert {one: len(breaker.history(one)) for one in ("a", "b")} == {"a": 2, "b": 2}


def test_a_client_that_is_killed_in_a_unit_leaves_nothing(url: str) -> None:
    """Neither a row nor a lock: its end is the end of what it held."""
    client = clients("hold", 1, url)
    assert client.stdout is not None
    assert client.stdout.readline() == '"holding"\n'
    os.killpg(client.pid, signal.SIGKILL)
    client.communicate()
    with Breaker.open(url, patience=5) as breaker:
        with breaker.store.transact() as unit:
            assert unit.load("held") is None
            assert unit.recall("held") is None
        assert breaker.store.circuits() == []


def test_a_unit_inside_of_another_is_refused_and_harms_it_not(url: str) -> None:
    store = open_store(url)
    with store.transact() as unit:
        unit.save("a", "constraint", "open", STATE, 1.0)
        with pytest.raises(StoreError, match="under way already"):
            store.transact().__enter__()
    assert [row.id for row in store.circuits()] == ["a"]
    store.close()


def test_a_child_process_does_not_end_the_session_of_its_parent(url: str) -> None:
    """It gets a connection of its own."""
    store = open_store(url)
    with store.transact() as unit:
        unit.save("a", "constraint", "open", STATE, 1.0)
    child = os.fork()
    if not child:
        code = 1
        try:
            with store.transact() as unit:
                unit.save("b", "constraint", "open", STATE, 1.0)
            store.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    with store.transact() as unit:
        unit.save("c", "constraint", "open", STATE, 1.0)
    assert [row.id for row in store.circuits()] == ["a", "b", "c"]
    store.close()


# -- time -----------------------------------------------------------------------------------------------------


def test_a_machine_whose_clock_is_an_hour_ahead_closes_nothing(url: str) -> None:
    """The cooldown of ten minutes is not over for it, and what it writes has the server's time."""
    with shared(url, cooldown="10m") as breaker:
        breaker.record("own/shared", "failed")
    ((verdict, ahead),) = said_by("an_hour_ahead", 1, url)  # type: ignore[misc]
    assert verdict == "deny"
    assert abs(ahead) < 30


def test_a_unit_that_waited_for_its_circuit_has_the_time_after_the_wait(url: str) -> None:
    """Times of a circuit are in the order of its units, however long one waited."""
    holder, waiter = shared(url, 100), shared(url, 100)
    thread = threading.Thread(target=lambda: waiter.record("own/shared", "second"))
    with holder.store.transact(["own/shared"]) as unit:
        thread.start()
        time.sleep(0.5)
        holder.engine.step(unit, Signal("bad", "own/shared", "bad", text="first"), holder.store.clock() + 0.5)
    thread.join(20)
    first, second = holder.history("own/shared")
    assert (first.text, second.text) == ("first", "second")
    assert first.at <= second.at
    holder.close()
    waiter.close()


def test_a_clock_that_was_given_is_the_clock(url: str) -> None:
    with shared(url, clock=lambda: 1_800_000_000.0) as breaker:
        breaker.record("own/shared", "failed")
        assert [move.at for move in breaker.store.audit_of("own/shared")] == [1_800_000_000.0]


# -- the tables -----------------------------------------------------------------------------------------------


def test_looking_makes_no_schema(url: str, postgres: PostgresServer) -> None:
    store = open_store(url)
    assert (store.circuits(), store.version(), store.verify()) == ([], (), [])
    store.close()
    schema = url.rpartition("fusewire_schema=")[2]
    assert postgres.run(f"SELECT to_regnamespace('{schema}')") == [(None,)]


def test_processes_that_start_at_once_make_the_tables_once(url: str, postgres: PostgresServer) -> None:
    """Each then works, and the versions are named."""
    found = said_by("record", 12, url, "1", "12")
    assert sorted(map(len, found)) == [0] * 11 + [1]  # type: ignore[arg-type]
    schema = url.rpartition("fusewire_schema=")[2]
    assert postgres.run(f"SELECT number, name FROM {schema}.migrations") == [
        (number, name) for number, (name, _) in enumerate(MIGRATIONS, 1)
    ]


def test_tables_of_a_newer_version_are_refused(url: str, postgres: PostgresServer) -> None:
    """For reading and for writing, and nothing is changed."""
    store = open_store(url)
    with store.transact() as unit:
        unit.save("a", "constraint", "open", STATE, 1.0)
    store.close()
    schema = url.rpartition("fusewire_schema=")[2]
    postgres.run(f"INSERT INTO {schema}.migrations (number, name) VALUES ({LATEST + 1}, 'of the future')")
    store = open_store(url)
    for act in (store.circuits, lambda: store.transact().__enter__()):
        with pytest.raises(StoreError, match=rf"newer Fusewire \(format {LATEST + 1}, known {LATEST}\)"):
            act()
    store.close()


def test_schemas_of_one_database_know_nothing_of_each_other(postgres: PostgresServer) -> None:
    stores = [open_store(postgres.url(postgres.schema(), options="")) for _ in range(2)]
    with stores[0].transact(["a"]) as unit, stores[1].transact(["a"]) as other:
        unit.save("a", "constraint", "open", STATE, 1.0)
        other.save("a", "constraint", "closed", STATE, 1.0)
    assert [[row.phase for row in store.circuits()] for store in stores] == [["open"], ["closed"]]
    for store in stores:
        store.close()


def test_a_role_that_may_make_no_tables_uses_those_that_are_there(url: str, postgres: PostgresServer) -> None:
    """What docs/fleet.md says a member's role needs."""
    with shared(url) as breaker:
        breaker.record("own/shared", "failed")
    schema = url.rpartition("fusewire_schema=")[2]
    postgres.run(f"CREATE ROLE {schema}_member LOGIN")
    postgres.run(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_member")
    postgres.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {schema}_member")
    with shared(url.replace("//fusewire@", f"//{schema}_member@")) as member:
        assert member.record("own/shared", "again").phase == "open"
        member.record("elsewhere", "a violation")
    stranger = open_store(postgres.url("of_others").replace("//fusewire@", f"//{schema}_member@"))
    with pytest.raises(StoreError, match="permission denied"):
        stranger.transact().__enter__()
    stranger.close()


def test_a_reader_writes_nothing(url: str) -> None:
    with shared(url) as breaker:
        breaker.record("own/shared", "failed")
    with shared(url, read_only=True) as reader:
        assert reader.status("own/shared").state == "OPEN"
        with pytest.raises(StoreError, match="for reading only"):
            reader.record("own/shared", "again")


def test_a_state_that_cannot_be_read_is_mended_and_said(url: str, postgres: PostgresServer) -> None:
    """The circuit stays open, because its trail says so."""
    with shared(url) as breaker:
        breaker.record("own/shared", "failed")
        schema = url.rpartition("fusewire_schema=")[2]
        postgres.run(f"UPDATE {schema}.circuits SET state = '[1'")
        assert breaker.verify() == ["own/shared: its state cannot be read"]
        assert breaker.check("own/shared").verdict == "deny"
        assert "could not be read and was rebuilt" in breaker.store.notices()[0]
        assert breaker.verify() == []


# -- the connection -------------------------------------------------------------------------------------------


def test_a_server_that_was_restarted_is_found_again(own_server: PostgresServer) -> None:
    """Between units nobody notices; in the middle of one it fails whole, and the next works."""
    store = open_store(own_server.url("fusewire"))
    with store.transact() as unit:
        unit.save("before", "constraint", "open", STATE, 1.0)
    own_server.restart()
    assert [row.id for row in store.circuits()] == ["before"]
    own_server.restart()
    with store.transact() as unit:
        unit.save("between", "constraint", "open", STATE, 1.0)

    def lose(*after: str) -> None:
        with store.transact() as unit:
            unit.save("lost", "constraint", "open", STATE, 1.0)
            own_server.restart()
            for name in after:
                unit.save(name, "constraint", "open", STATE, 1.0)

    with pytest.raises(StoreError, match="the state database cannot be used"):
        lose("lost too")
    with pytest.raises(StoreError, match="it is not known whether this was written"):
        lose()
    with store.transact() as unit:
        unit.save("after", "constraint", "open", STATE, 1.0)
    assert [row.id for row in store.circuits()] == ["after", "before", "between"]
    own_server.stop()
    for act in (store.circuits, lambda: store.transact().__enter__()):
        with pytest.raises(StoreError, match="the state database cannot be used"):
            act()
    store.close()


def test_what_the_server_confirmed_outlives_its_own_kill(own_server: PostgresServer) -> None:
    """kill -9 of the server under load: every confirmed event is there, and at most one more of each client."""
    url = own_server.url("fusewire")
    counting = clients("count", 8, url, "100000")
    assert counting.stdout is not None
    lines = [json.loads(counting.stdout.readline()) for _ in range(200)]
    own_server.stop(signal.SIGKILL)
    lines += [json.loads(line) for line in counting.communicate(timeout=60)[0].splitlines()]
    confirmed: dict[int, int] = {}
    for line in lines:
        if isinstance(line, list):
            confirmed[line[0]] = line[1]
    own_server.restart(signal.SIGKILL)
    with shared(url, 1000) as breaker:
        counted = breaker.status("own/shared").total
    assert sum(confirmed.values()) <= counted <= sum(confirmed.values()) + 8


def test_every_wait_has_a_bound_that_the_url_can_change(postgres: PostgresServer) -> None:
    """And the server's list of sessions says who we are."""
    schema = postgres.schema()
    store = open_store(postgres.url(schema, options="-c%20statement_timeout%3D1234"), patience=1.0)
    with store.transact() as unit:
        unit.save("a", "constraint", "open", STATE, 1.0)
        run: Callable[..., psycopg.Cursor[tuple[str]]] = unit._connection.execute  # type: ignore[attr-defined]
        settings = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name")
        found = [run(f"SHOW {name}").fetchone()[0] for name in settings]  # type: ignore[index]
    assert found == ["1234ms", "3s", "30s", "fusewire"]
    store.close()


def test_a_unit_that_its_client_forgot_gives_its_locks_back(postgres: PostgresServer) -> None:
    """After the time that the URL says; the unit then fails."""
    url = postgres.url(postgres.schema(), options="-c%20idle_in_transaction_session_timeout%3D300")
    other = open_store(url, patience=5)
    store = open_store(url)

    def forget() -> None:
        with store.transact(["a"]) as unit:
            unit.save("a", "constraint", "open", STATE, 1.0)
            _load(other, ("a",))  # waits until it may

    with pytest.raises(StoreError, match=r"idle-in-transaction|not known"):
        forget()
    assert other.circuits() == []
    store.close()
    other.close()


# -- who may, and what is said --------------------------------------------------------------------------------


def test_what_keeps_the_command_line_out_is_one_line_without_the_password(
    postgres: PostgresServer, project: Project
) -> None:
    """Exit code 1, whatever it is."""
    wrong = {
        postgres.loopback(password=":wr0ng-word"): "password authentication failed",
        postgres.loopback(database="nowhere"): 'database "nowhere" does not exist',
        f"postgresql://u:{PASSWORD}@127.0.0.1:1/x": "onnection refused",
        f"{postgres.loopback()}&sslmode=require": "server does not support SSL",
        f"postgresql://u:{PASSWORD}/x@h/db": "one that PostgreSQL understands",
        f"postgresql://u:{PASSWORD}@h:port/db": "one that PostgreSQL understands",
        f"postgresq://u:{PASSWORD}@h/db": "no store for this URL",
        "": "no store for ''",  # a variable that is not set must not mean the project's own
        f"{postgres.loopback()}&sslmode=maybe": "sslmode",
        f"postgresql://u:{PASSWORD}@h/db?fusewire_schema=A-b": "fusewire_schema='A-b' is refused",
    }
    for url, words in wrong.items():
        for command in (("status",), ("record", "x", "--action", "y"), ("status", "--json")):
            done = project.run(*command, "--store", url)
            assert done.returncode == 1
            assert words in done.stderr, done.stderr
            assert (done.stdout, done.stderr.count("\n")) == ("", 1)
            assert not {PASSWORD, "wr0ng-word"} & set(done.stderr.replace("@", ":").replace("/", ":").split(":"))


def test_without_psycopg_one_line_says_how_to_install_it(project: Project) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None; from fusewire.cli.app import main;"
        " sys.exit(main(['status', '--store', 'postgresql://h/db']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.rstrip().endswith("pip install 'fusewire[postgresql]'")


def test_a_password_file_and_a_service_work_as_everywhere(postgres: PostgresServer, tmp_path: Path) -> None:
    """Neither has to be in the URL."""
    schema = postgres.schema()
    passwords, services = tmp_path / "pgpass", tmp_path / "services"
    passwords.write_text(f"127.0.0.1:{postgres.port}:*:fusewire:{PASSWORD}\n")
    passwords.chmod(0o600)
    services.write_text(f"[fleet]\nhost=127.0.0.1\nport={postgres.port}\nuser=fusewire\ndbname=postgres\n")
    urls = (postgres.loopback(schema, password=""), f"postgresql://?service=fleet&fusewire_schema={schema}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSFILE", str(passwords))
        patch.setenv("PGSERVICEFILE", str(services))
        for url in urls:
            with shared(url, 100) as breaker:
                breaker.record("own/shared", "failed")
    with shared(postgres.url(schema), 100) as breaker:
        assert len(breaker.history("own/shared")) == 2


def test_the_commands_ask_and_tell_the_circuits_of_the_store(postgres: PostgresServer, project: Project) -> None:
    """Three violations on one machine stop another; the files in the project know nothing of it."""
    url = postgres.loopback(postgres.schema())
    project.constraint("no-force", 'enforcement: "x"\n')
    for number in range(3):
        done = project.run("record", "no-force", "--action", f"push {number}", "--store", url)
        assert done.returncode == 0, done.stderr
        time.sleep(0.01)
    statuses = project.json("status", "no-force", "--store", url)
    text = project.run("check", "no-force", "--store", url)
    assert PASSWORD not in json.dumps(statuses) + text.stdout + text.stderr
    assert project.run("history", "no-force", "--store", url).stdout.count("push") >= 1
    assert project.run("status", "no-force").stdout.count("push") == 0
    assert not list(project.root.rglob("*state*"))

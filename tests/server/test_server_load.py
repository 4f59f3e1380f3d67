"""`fusewire serve` under load: fifty open pages, five hundred moves a second, none lost and none kept for the slow."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import AUDIT_ROWS, TRIM_EVERY, AuditRow
from fusewire.util.files import FileLock
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.streams import Page, wait_until

PAGES = 50
WRITERS = 2
SECONDS = 4
#: Transactions of one writer, and circuits that trip and are reset in each: two moves a circuit.
TRANSACTIONS = SECONDS * 5
CIRCUITS = 25
MOVES = WRITERS * TRANSACTIONS * CIRCUITS * 2

WRITER = """
import sys, time
from fusewire.engine.breaker import Breaker
from fusewire.core.events import Signal

root, name, transactions, circuits = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
breaker = Breaker.open(project=root, patience=20.0)
print("ready", flush=True)
sys.stdin.readline()
began = time.monotonic()
for number in range(transactions):
    time.sleep(max(0.0, began + number / 5 - time.monotonic()))
    signals = []
    for at in range(circuits):
        circuit = f"tool/tool_failure/{name}-{at}"
        signals += [Signal("bad", circuit, "tool_failed", text=f"{number}")] * 3
        signals.append(Signal("reset", circuit, "reset", text=f"{number}"))
    breaker.engine.apply(signals, "load")
print(time.monotonic() - began, flush=True)
"""


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    with Breaker.open(project=project.root) as breaker:
        trip(breaker, "first")
    with Served(project.root) as server:
        server.log_in()
        yield server
        code, errors = server.stop()
    assert code == 130
    assert errors.split() == ["Interrupted."]


def trip(breaker: Breaker, name: str) -> str:
    """A real trip; its circuit."""
    circuit = f"tool/tool_failure/{name}"
    signal = Signal("bad", circuit, "tool_failed", text=name)
    decisions, _ = breaker.engine.apply([signal] * 3)
    assert decisions[-1].tripped
    return circuit


def memory_of(pid: int) -> int:
    """Bytes that a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def writers(root: Path) -> list[subprocess.Popen[str]]:
    """Processes that are ready to commit."""
    arguments = [str(root), str(TRANSACTIONS), str(CIRCUITS)]
    found = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, arguments[0], f"w{number}", *arguments[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    for process in found:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return found


def started(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def said_by(process: subprocess.Popen[str]) -> float:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return float(out)


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task


def test_every_page_hears_of_every_move_once_and_in_order(served: Served, project: Project) -> None:
    """Also one that reads nothing meanwhile, and one that comes back; what is slow costs the server no memory."""
    asyncio.run(under_load(served, project))


async def under_load(served: Served, project: Project) -> None:
    breaker = Breaker.open(project=project.root, patience=20.0)
    first = breaker.store.last_move()
    pages = [Page(served) for _ in range(PAGES)]
    slow, away, late = Page(served), Page(served), Page(served, place=f"project:{first}")
    reading = asyncio.Event()
    listening = [asyncio.create_task(page.listen()) for page in (*pages, away)]
    stalled = [asyncio.create_task(page.listen(buffer=4096, until=reading)) for page in (slow, Page(served))]
    await wait_until(lambda: all(page.changed for page in (*pages, away)), 30, "every page is connected")
    processes = await asyncio.to_thread(writers, project.root)
    before = memory_of(served.pid)
    started(processes)
    trips: dict[str, float] = {}
    loads = []
    for number in range(SECONDS * 2):
        circuit = await asyncio.to_thread(trip, breaker, f"timed-{number}")
        trips[circuit] = time.monotonic()
        began = time.monotonic()
        assert (await asyncio.to_thread(served.get, "/")).status == 200
        loads.append(time.monotonic() - began)
        if number == SECONDS:
            await ended(listening.pop())  # in the middle of it, wherever it is just now
        await asyncio.sleep(0.4)
    took = max([await asyncio.to_thread(said_by, process) for process in processes])
    last = breaker.store.last_move()
    assert last - first == MOVES + len(trips)

    await wait_until(
        lambda: all(page.numbers[-1:] == [last] for page in pages), 60, "every page has heard the last move"
    )
    after = memory_of(served.pid)
    reading.set()
    listening += [asyncio.create_task(page.listen()) for page in (away, late)]
    for page in (slow, away, late):
        await wait_until(lambda page=page: page.numbers[-1:] == [last], 60, "it has caught up")
    await ended(*listening, *stalled)

    for page in (*pages, slow, away, late):
        assert page.numbers == list(range(first + 1, last + 1))
        assert page.missed == []
    assert after - before < 40 << 20
    delays = [
        at - trips[move["circuit"]]
        for page in pages
        for move, at in zip(page.moves, page.heard_at, strict=True)
        if move["circuit"] in trips
    ]
    assert len(delays) == PAGES * len(trips)
    assert max(delays) < 5
    await wait_until(lambda: listeners(served) == 0, 30, "the server knows that all pages are gone")
    breaker.close()
    figures = {
        "moves a second": round(MOVES / took),
        "trip to page, median": round(statistics.median(delays), 3),
        "trip to page, longest": round(max(delays), 3),
        "GET / median": round(statistics.median(loads), 3),
        "GET / longest": round(max(loads), 3),
        "memory, MB": round((after - before) / 2**20, 1),
    }
    print(json.dumps(figures))


#: Notes every panel that is collected.
COUNTED = """
from fusewire.server.projects import WatchedProject
collected = WatchedProject.panel
def panel(self):
    with open({!r}, "a") as file:
        file.write(".")
    return collected(self)
WatchedProject.panel = panel
from fusewire.__main__ import main
main()
"""


def test_pages_that_load_anew_together_are_drawn_once_and_are_up_to_date(project: Project, tmp_path: Path) -> None:
    """Twenty tabs of a person, each of which has just heard of a trip; and what a person asks for is drawn for him."""
    count = tmp_path / "collected"
    with Served(project.root, program=("-c", COUNTED.format(str(count)))) as server:
        server.log_in()
        asyncio.run(loaded_anew(server, project))
        drawn = count.stat().st_size
        assert 5 <= drawn <= 60, f"{drawn} of 100"
        with Breaker.open(project=project.root) as breaker:
            circuit = trip(breaker, "unheard")
        assert circuit in server.get("/").text


async def loaded_anew(served: Served, project: Project) -> None:
    page = Page(served)
    listening = asyncio.create_task(page.listen())
    with Breaker.open(project=project.root) as breaker:
        await wait_until(lambda: page.changed, 30, "the page is connected")
        for number in range(5):
            circuit = trip(breaker, f"heard-{number}")
            await wait_until(
                lambda circuit=circuit: page.moves[-1:] and page.moves[-1]["circuit"] == circuit, 30, circuit
            )
            headers = {"Fusewire-Refresh": "1"}
            asked = [asyncio.to_thread(served.get, "/", headers=headers) for _ in range(20)]
            assert all(circuit in answer.text for answer in await asyncio.gather(*asked))
    await ended(listening)


def listeners(served: Served) -> float:
    found = re.search(r"^fusewire_page_listeners (\S+)$", served.get("/metrics", bearer=served.token).text, re.M)
    assert found is not None
    return float(found[1])


# -- a trail that is not what it was ------------------------------------------------------------------------------


def test_a_page_that_was_away_too_long_is_told_how_much_it_missed(project: Project) -> None:
    """The trail has an end; what is behind it is not passed over in silence, and the rest comes whole."""
    with Breaker.open(project=project.root) as breaker:
        for _ in range(4):
            with breaker.store.transact() as transaction:
                for number in range((AUDIT_ROWS + 2 * TRIM_EVERY) // 4):
                    row = AuditRow("loop/score", time.time(), "closed", "open", "tripped", f"{number}", "")
                    transaction.audit(row)
        last = breaker.store.last_move()
    with Served(project.root) as served:
        served.log_in()
        page = Page(served, place="project:1")
        asyncio.run(heard_by(page, lambda: page.numbers[-1:] == [last]))
    first = page.numbers[0]
    assert page.numbers == list(range(first, last + 1))
    assert first > 2
    assert page.missed == [{"project": first - 2}]


async def heard_by(page: Page, enough: Callable[[], bool]) -> None:
    listening = asyncio.create_task(page.listen())
    await wait_until(enough, 30, "the page has heard enough")
    await ended(listening)


@pytest.mark.parametrize("lost", ["damaged", "removed", "removed with half of its trail", "removed with its trail"])
def test_a_state_that_is_lost_is_said_and_a_rebuilt_one_goes_on(served: Served, project: Project, lost: str) -> None:
    """No circuit is shown as closed meanwhile; the same connection then hears of what moves in the new one, all of it
    and once, and that numbers begin anew if they do."""
    asyncio.run(across_a_loss(served, project, lost))


async def across_a_loss(served: Served, project: Project, lost: str) -> None:
    page = Page(served)
    listening = asyncio.create_task(page.listen())
    await wait_until(lambda: page.changed, 30, "the page is connected")
    with Breaker.open(project=project.root) as breaker:
        for number in range(5):
            trip(breaker, f"before-{number}")
    await wait_until(lambda: len(page.moves) == 5, 30, "the page has heard of five trips")
    seen = page.changed
    folder = project.root / ".fusewire"
    for path in (folder / "state.db", folder / "state.db-wal"):
        if lost == "damaged":
            path.write_bytes(b"no database " * 2000)
        else:
            path.unlink(missing_ok=True)
    text = folder / "audit.jsonl"
    if lost == "removed with its trail":
        text.unlink()
    elif lost == "removed with half of its trail":
        text.write_text("".join(text.read_text().splitlines(keepends=True)[3:]))
    if lost != "damaged":  # which shows only to whoever writes next
        await wait_until(lambda: page.changed > seen, 30, "the page is told that something is wrong")
        assert "The state cannot be read" in served.get("/").text
        assert served.get("/api/v1/projects/project/circuits", bearer=served.token).status == 503
    with Breaker.open(project=project.root) as breaker:
        circuit = trip(breaker, "after")  # whoever writes next, rebuilds
        await wait_until(lambda: "The state cannot be read" not in served.get("/").text, 30, "it can be read again")
        await wait_until(lambda: page.moves[-1]["circuit"] == circuit, 30, "the page hears of it")
        for number in range(3):
            trip(breaker, f"later-{number}")
    later = [f"tool/tool_failure/later-{number}" for number in range(3)]
    await wait_until(lambda: [move["circuit"] for move in page.moves[-3:]] == later, 30, "the page hears of new trips")
    assert circuit in served.get("/").text
    before = [f"tool/tool_failure/before-{number}" for number in range(5)]
    assert [move["circuit"] for move in page.moves] == [*before, circuit, *later]
    assert page.missed == ([{"project": None}] if "trail" in lost else [])
    await ended(listening)


def test_a_project_that_takes_long_to_read_keeps_no_other_waiting(project: Project, tmp_path: Path) -> None:
    """Its database was replaced, and whoever rebuilds it does not come to an end: the other is heard of meanwhile."""
    other = Project(tmp_path / "other")
    other.root.mkdir()
    for one in (project, other):
        with Breaker.open(project=one.root) as breaker:
            trip(breaker, "first")
    with Served(project.root, other.root) as served:
        served.log_in()
        page = Page(served)
        state, copied = project.root / ".fusewire" / "state.db", tmp_path / "copied.db"
        shutil.copy(state, copied)

        async def meanwhile() -> None:
            listening = asyncio.create_task(page.listen())
            await wait_until(lambda: page.changed, 30, "the page is connected")
            with FileLock(str(state.with_name("recovery.lock"))):
                os.replace(copied, state)
                with Breaker.open(project=other.root) as breaker:
                    for number in range(3):  # the first may be heard of by a look that had begun before
                        trip(breaker, f"later-{number}")
                        began = time.monotonic()
                        await wait_until(lambda most=number: len(page.moves) > most, 30, "it is heard of")
                        assert time.monotonic() - began < 4.5  # a recovery is waited for 5 seconds
            await ended(listening)

        asyncio.run(meanwhile())


def test_a_project_that_is_deleted_is_said_to_be_gone(served: Served, project: Project) -> None:
    """Every page answers, none shows a circuit as closed, and the stream goes on."""
    asyncio.run(without_a_project(served, project))


async def without_a_project(served: Served, project: Project) -> None:
    page = Page(served)
    listening = asyncio.create_task(page.listen())
    await wait_until(lambda: page.changed, 30, "the page is connected")
    seen = page.changed
    shutil.rmtree(project.root)
    await wait_until(lambda: page.changed > seen, 30, "the page is told")
    for _ in range(2):
        assert f"the project&#39;s folder is gone: {project.root}" in served.get("/").text
    for place in ("circuit?id=tool/tool_failure/first", "sessions", "loop", "attempts", "memory"):
        answer = served.get(f"/p/project/{place}")
        assert answer.status in (200, 503), place
        assert "CLOSED" not in answer.text
    assert "fusewire_store_readable" in served.get("/metrics", bearer=served.token).text
    assert not listening.done()
    await ended(listening)

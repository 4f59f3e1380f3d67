"""`/metrics`: documented names, numbers that are true, labels that do not grow with sessions, and nothing invented."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from fusewire.engine.breaker import Breaker
from fusewire.server.live import Live
from fusewire.server.metrics import Metrics, Trips
from fusewire.server.projects import Projects
from tests.helpers import ROOT
from tests.helpers.lived_in import SESSION, work_in_a_session
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.server.test_server_api import RULE, token, trip

DOCS = ROOT / "docs" / "api.md"
OPEN = "application/openmetrics-text; version=1.0.0"

Labels = frozenset[tuple[str, str]]


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    project.constraint(RULE, "circuit_breaker: {dedup_seconds: 0}\n")
    with Served(project.root) as server:
        yield server


def scraped(server: Served, accept: str = OPEN) -> list[Metric]:
    answer = server.get("/metrics", bearer=token("reader"), headers={"Accept": accept})
    assert answer.status == 200, answer.text
    return list((open_metrics if accept == OPEN else plain_text)(answer.text))


def numbers(server: Served) -> dict[str, dict[Labels, float]]:
    """What a scrape says: {name of the sample: {labels: value}}."""
    found: dict[str, dict[Labels, float]] = {}
    for family in scraped(server):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def of(series: dict[Labels, float], **labels: str) -> float:
    return series[frozenset({"project": "project", **labels}.items())]


def trips(server: Served, breaker: str) -> float:
    return of(numbers(server)["fusewire_trips_total"], breaker=breaker)


# -- the names --------------------------------------------------------------------------------------------


def documented() -> set[tuple[str, str, frozenset[str]]]:
    """(name, type, labels) of each row of the table."""
    rows = re.findall(r"^\| `(fusewire_\w+)` \| (\w+) \| ([^|]*)\|", DOCS.read_text(), re.MULTILINE)
    return {(name, kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def exposed(families: list[Metric]) -> set[tuple[str, str, frozenset[str]]]:
    found = set()
    for family in families:
        assert family.samples, f"{family.name} has no sample to learn its labels from"
        assert family.documentation.endswith(".")
        name = {"counter": f"{family.name}_total", "info": f"{family.name}_info"}.get(family.type, family.name)
        labels = frozenset(label for sample in family.samples for label in sample.labels if label != "le")
        found.add((name, "gauge" if family.type == "info" else family.type, labels))
    return found


def test_the_table_in_the_docs_is_what_is_exposed(served: Served, project: Project) -> None:
    """Both ways: no metric without a row, no row without a metric, each with its type and its labels."""
    event = {"hook_event_name": "PostToolBatch", "session_id": SESSION, "cwd": str(project.root), "tool_calls": []}
    answer = served.request(
        *("POST", "/hooks/claude", json.dumps(event), {"Content-Type": "application/json"}),
        bearer=token("hooks"),
    )
    assert answer.status == 200, answer.text
    assert exposed(scraped(served)) == documented()


def test_both_formats_say_the_same(served: Served) -> None:
    """Prometheus prefers OpenMetrics; what else asks gets plain text; a header that makes no sense breaks nothing."""
    ours = {name: series for name, series in numbers(served).items() if not name.endswith("_created")}
    answer = served.get("/metrics", bearer=served.token)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    plain = {sample.name for family in plain_text(answer.text) for sample in family.samples}
    assert {name for name in plain if not name.endswith("_created")} == set(ours)
    asked = served.get("/metrics", bearer=served.token, headers={"Accept": f"{OPEN},text/plain;q=0.5"})
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    assert asked.text.endswith("# EOF\n")
    for accept in ("application/openmetrics-text; version=x", "text/plain; version=", "*/*", ",;=,", "x" * 4000):
        assert served.get("/metrics", bearer=served.token, headers={"Accept": accept}).status == 200


def test_two_servers_in_one_process_have_numbers_of_their_own() -> None:
    """Nothing is kept for the whole process."""

    async def made() -> list[Metrics]:
        return [Metrics(Projects([]), Live(Projects([]))) for _ in range(2)]

    one, other = asyncio.run(made())
    one.hook_seconds.labels("claude").observe(0.1)
    count = "fusewire_http_hook_seconds_count"
    assert one.registry.get_sample_value(count, {"agent": "claude"}) == 1
    assert other.registry.get_sample_value(count, {"agent": "claude"}) is None


@pytest.mark.parametrize(("role", "status"), [("reader", 200), ("person", 200), ("hooks", 403), ("", 401), ("x", 401)])
def test_metrics_are_for_a_reader_or_a_person(served: Served, role: str, status: int) -> None:
    bearer = {"reader": token("reader"), "person": served.token, "hooks": token("hooks"), "": None, "x": "x"}[role]
    answer = served.get("/metrics", bearer=bearer)
    assert answer.status == status
    assert ("fusewire_circuits" in answer.text) == (status == 200)


# -- the numbers ------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_project(project: Project) -> None:
    """Circuits by kind and state, spend, sessions, helpers, the loop: as `status` has them."""
    trip(project)
    project.constraint("no-secrets-in-logs")
    work_in_a_session(project)
    assert project.run("run", "--max-iterations", "2", "--", "sh", "-c", "echo working; exit 1").returncode == 4
    with Breaker.open(project=project.root) as breaker:
        for _ in range(3):
            breaker.record("attempt/S-1/test_login")
    status = project.json("status")
    with Served(project.root) as server:
        found = numbers(server)
    assert of(found["fusewire_circuits"], kind="attempt", state="OPEN") == 1
    for kind in ("constraint", "loop", "phase", "attempt"):
        for state in ("OPEN", "CLOSED"):
            count = sum((one["kind"], one["state"]) == (kind, state) for one in status["circuits"])
            assert of(found["fusewire_circuits"], kind=kind, state=state) == count
    named = [one for one in status["circuits"] if one["kind"] in ("constraint", "loop", "phase")]
    assert {dict(labels)["circuit"] for labels in found["fusewire_circuit_state"]} == {one["id"] for one in named}
    assert of(found["fusewire_circuit_state"], circuit=RULE) == 2
    assert of(found["fusewire_circuit_state"], circuit="no-secrets-in-logs") == 0
    assert of(found["fusewire_spend_usd"], period="day") == of(found["fusewire_spend_usd"], period="project") == 2.4
    assert of(found["fusewire_sessions"], state="running") == 1
    assert of(found["fusewire_agents_running"]) == 1
    assert of(found["fusewire_loop_iterations"]) == status["loop"]["iterations"]
    assert of(found["fusewire_loop_score"]) == status["loop"]["score"] < 0
    assert of(found["fusewire_loop_calls_left"]) == status["loop"]["calls_left"]
    assert of(found["fusewire_warnings"]) == len(status["warnings"])
    assert of(found["fusewire_store_readable"]) == 1


def test_trips_are_counted_from_the_start_of_the_server_and_never_fall(served: Served, project: Project) -> None:
    """Neither when a circuit is reset nor when it is forgotten."""
    assert trips(served, "constraint") == 0
    trip(project)
    assert trips(served, "constraint") == 1
    assert project.run("reset", RULE, "--reason", "mine").returncode == 0
    assert trips(served, "constraint") == 1
    (project.root / "docs" / "constraints" / f"{RULE}.md").unlink()
    assert project.run("archive", RULE).returncode == 0
    assert trips(served, "constraint") == 1
    with Breaker.open(project=project.root) as breaker:
        for _ in range(3):
            breaker.record(f"tool/tool_failure/Bash(pytest)/{SESSION}")
        for _ in range(3):
            breaker.record("attempt/S-1/tests/test_x.py::test_y")
    found = numbers(served)["fusewire_trips_total"]
    assert of(found, breaker="tool.tool_failure") == 1
    assert of(found, breaker="attempt.test") == 1
    assert of(found, breaker="constraint") == 1
    assert sum(found.values()) == 3


def test_sessions_and_circuits_do_not_add_labels(project: Project) -> None:
    """However many sessions and constraints there are, the series have an end, and no session's id is in them."""
    for number in range(250):
        project.constraint(f"rule-{number}")
    with Breaker.open(project=project.root) as breaker:
        for number in range(60):
            for _ in range(3):
                breaker.record(f"tool/tool_failure/Bash({number})/secret-session-{number}")
            breaker.record(f"attempt/SECRET-{number}/test_of_{number}")
    with Served(project.root) as server:
        text = server.get("/metrics", bearer=server.token).text
        found = numbers(server)
    assert "secret" not in text.lower()
    assert "test_of_" not in text
    assert of(found["fusewire_circuits"], kind="tool", state="OPEN") == 60
    assert of(found["fusewire_circuits"], kind="constraint", state="CLOSED") == 250
    assert len(found["fusewire_circuit_state"]) == 200
    assert sum(map(len, found.values())) < 300


def test_a_project_that_cannot_be_read_is_said_and_shown_in_nothing_else(project: Project, tmp_path: Path) -> None:
    """Zero open circuits would be a lie. Another project is shown as ever, and so is this one when it is mended."""
    trip(project)
    other = tmp_path / "other"
    other.mkdir()
    database = project.root / ".fusewire" / "state.db"
    whole = database.read_bytes()
    with Served(project.root, other) as server:
        assert of(numbers(server)["fusewire_circuits"], kind="constraint", state="OPEN") == 1
        for end in ("-wal", "-shm"):
            Path(f"{database}{end}").unlink(missing_ok=True)
        database.write_bytes(b"this is no database" * 1000)
        found = numbers(server)
        assert of(found["fusewire_store_readable"]) == 0
        assert of(found["fusewire_store_readable"], project="other") == 1
        told = {name for name, series in found.items() for labels in series if ("project", "project") in labels}
        assert told == {"fusewire_store_readable"}
        database.unlink()
        database.write_bytes(whole)
        found = numbers(server)
        assert of(found["fusewire_store_readable"]) == 1
        assert of(found["fusewire_circuits"], kind="constraint", state="OPEN") == 1
        assert of(found["fusewire_trips_total"], breaker="constraint") == 0


@pytest.mark.parametrize("kept", [3, 1, 0])
def test_a_rebuilt_trail_counts_no_trip_twice_and_none_that_is_new_is_left_out(project: Project, kept: int) -> None:
    """With all of it, with its newest move under another number, or with nothing that is known."""
    text = project.root / ".fusewire" / "audit.jsonl"
    with Breaker.open(project=project.root) as breaker:
        trip_tool(breaker, "before")
        projects = Projects([str(project.root)])
        (watched,) = projects
        counting = Trips(watched)
        trip_tool(breaker, "first")
        trip_tool(breaker, "second")
    assert counting.counted()["tool.tool_failure"] == 2
    for path in project.root.glob(".fusewire/state.db*"):
        path.unlink()
    lines = text.read_text().splitlines(keepends=True)
    assert len(lines) == 3
    text.write_text("".join(lines[3 - kept :]))
    with Breaker.open(project=project.root) as breaker:
        trip_tool(breaker, "third")
        assert counting.counted()["tool.tool_failure"] == 3
        trip_tool(breaker, "fourth")
    assert counting.counted()["tool.tool_failure"] == 4
    projects.close()


def trip_tool(breaker: Breaker, name: str) -> None:
    for _ in range(3):
        breaker.record(f"tool/tool_failure/Bash({name})/{SESSION}")


def test_scrapes_at_the_same_time_count_each_trip_once(project: Project) -> None:
    """Whoever comes in between gets a number on the way there, and none is counted for two of them."""
    with Breaker.open(project=project.root) as breaker:
        breaker.record(f"tool/tool_failure/Bash(ls)/{SESSION}")
        projects = Projects([str(project.root)])
        (watched,) = projects
        counting = Trips(watched)
        for number in range(60):
            for _ in range(3):
                breaker.record(f"tool/tool_failure/Bash({number})/{SESSION}")
    together = threading.Barrier(8)

    def count() -> int:
        together.wait(45)
        return counting.counted()["tool.tool_failure"]

    with ThreadPoolExecutor(8) as pool:
        assert {one.result() for one in [pool.submit(count) for _ in range(8)]} == {60}
    assert counting.counted()["tool.tool_failure"] == 60
    projects.close()

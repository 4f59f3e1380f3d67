"""Many real processes on one project at once, and processes that are killed in the middle of their work."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fusewire.engine.breaker import Breaker
from tests.helpers import SOURCE, TESTS
from tests.helpers.project import Project

WORKERS = TESTS / "helpers" / "workers.py"


def rule(threshold: int, more: str = "") -> str:
    return f"circuit_breaker:\n  dedup_seconds: 0\n  violation_threshold: {threshold}\n{more}"


Workers = list[subprocess.Popen[str]]


@contextmanager
def started(works: list[list[str]]) -> Iterator[Workers]:
    """Worker processes that are ready and wait; whatever is left of them at the end is killed, one by one."""
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKERS), *work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for work in works
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n", worker.communicate()[1]
        yield workers
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
            worker.communicate()


def let_go(workers: Workers) -> None:
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()


def results(workers: Workers) -> list[Any]:
    """What each of them found out; all must have ended well."""
    found = []
    for worker in workers:
        out, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, out + err
        found.append(json.loads(out))
    return found


def assert_all_counted_and_one_trip(project: Project, expected: set[str], threshold: int) -> str:
    """Nothing lost, nothing twice, one trip, at the right violation; returns the action that tripped."""
    with Breaker.open(project=project.root) as breaker:
        status = breaker.status("rule")
        rows = [row for row in breaker.store.log_of("rule") if row.kind == "bad" and row.effect == "counted"]
        moves = breaker.store.audit_of("rule")
        notices = breaker.store.notices()
        assert breaker.store.verify() == []
    assert notices == []
    assert status.total == len(expected)
    assert len(rows) == len(expected)
    assert {row.text for row in rows} == expected
    assert status.state == "OPEN"
    assert status.trips == 1
    assert [(move.source, move.target, move.cause) for move in moves] == [("closed", "open", "tripped")]
    assert moves[0].at == rows[threshold - 1].at
    assert f"{threshold} violations" in moves[0].reason
    assert status.evidence == rows[threshold - 1].text
    assert [row.at for row in rows] == sorted(row.at for row in rows), "times are in the order of the transactions"
    lines = (project.root / ".fusewire" / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["to"] for line in lines] == ["open"]
    mirror = json.loads((project.root / "docs" / "constraints" / ".circuit-state.json").read_text())["rule"]
    assert mirror["state"] == "OPEN"
    newest = [row.text for row in reversed(rows)][:100]
    assert [one["action"] for one in mirror["violations"]] == newest, "the file holds the last change"
    assert list((project.root / "docs" / "constraints").glob("*.edited-*")) == []
    return rows[threshold - 1].text


# -- counting -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("processes", "each"), [(8, 25), (32, 6)])
def test_no_violation_is_lost_and_the_circuit_trips_once(project: Project, processes: int, each: int) -> None:
    """Writers at the same moment on one constraint with a threshold of 100."""
    project.constraint("rule", rule(100))
    with started([["record", str(project.root), "rule", str(each), f"w{n}"] for n in range(processes)]) as workers:
        let_go(workers)
        tripped = [action for found in results(workers) for action in found]
    expected = {f"w{n}-{number}" for n in range(processes) for number in range(each)}
    assert len(tripped) == 1
    assert assert_all_counted_and_one_trip(project, expected, 100) == tripped[0]


def test_command_line_hook_and_library_count_together(project: Project) -> None:
    """Three ways in, all at once: every violation counts, and together they trip at the 20th."""
    project.constraint("rule", rule(20, 'match: {command: "git push --force"}\n'))
    hook_payloads = [project.bash(f"git push --force origin h{n}", tool_use_id=f"toolu_{n}") for n in range(8)]
    works = [["record", str(project.root), "rule", "4", f"w{n}"] for n in range(3)]
    with started(works) as workers:
        others = [
            subprocess.Popen(
                [sys.executable, "-m", "fusewire", "record", "rule", "--action", f"c{n}"],
                cwd=project.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for n in range(8)
        ]
        hooks = [
            subprocess.Popen(
                [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"],
                cwd=project.root,
                env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in hook_payloads
        ]
        let_go(workers)
        answers = []
        for hook, payload in zip(hooks, hook_payloads, strict=True):
            assert hook.stdin is not None
            hook.stdin.write(json.dumps(payload).encode())
            hook.stdin.close()
            hook.stdin = None
        for process in others + hooks:
            out, err = process.communicate(timeout=60)
            answers.append((process.returncode, out, err))
        in_library = [action for found in results(workers) for action in found]
    assert {code for code, _, _ in answers[:8]} == {0}, answers
    assert {code for code, _, _ in answers[8:]} <= {0, 2}, answers
    expected = {f"w{n}-{number}" for n in range(3) for number in range(4)} | {f"c{n}" for n in range(8)}
    expected |= {f"git push --force origin h{n}" for n in range(8)}
    assert len(expected) == 28
    at = assert_all_counted_and_one_trip(project, expected, 20)
    told = [out + err for _, out, err in answers if b"CIRCUIT OPEN" in err or b"20 violations" in out]
    assert in_library == ([at] if at.startswith("w") else [])
    assert told or in_library, "whoever tripped it was told"


def test_two_constraints_do_not_wait_for_each_other_for_ever(project: Project) -> None:
    """Writers on different constraints share one file and one mirror: both counts are right and both are in it."""
    for name in ("rule-a", "rule-b"):
        project.constraint(name, rule(1000))
    works = [["record", str(project.root), f"rule-{'ab'[n % 2]}", "10", f"w{n}"] for n in range(8)]
    with started(works) as workers:
        let_go(workers)
        results(workers)
    with Breaker.open(project=project.root) as breaker:
        assert [breaker.status(name).total for name in ("rule-a", "rule-b")] == [40, 40]
    mirror = json.loads((project.root / "docs" / "constraints" / ".circuit-state.json").read_text())
    assert [len(mirror[name]["violations"]) for name in ("rule-a", "rule-b")] == [40, 40]


# -- one probe ----------------------------------------------------------------------------------------------


def opened_long_ago(project: Project) -> None:
    project.constraint("rule", rule(5))
    with Breaker.open(project=project.root, clock=lambda: time.time() - 25 * 3600) as breaker:
        for number in range(5):
            breaker.record("rule", f"long ago {number}")


def test_of_fifty_that_ask_after_the_cooldown_exactly_one_gets_the_probe(project: Project) -> None:
    """The others are refused, and told why and for how long."""
    opened_long_ago(project)
    with started([["check", str(project.root), "rule"] for _ in range(50)]) as workers:
        let_go(workers)
        answers = results(workers)
    probers = [answer for answer in answers if answer["lease"]]
    assert len(probers) == 1
    assert probers[0]["verdict"] == "tell"
    others = [answer for answer in answers if not answer["lease"]]
    assert {answer["verdict"] for answer in others} == {"deny"}
    assert all("a probe is under way" in answer["reason"] for answer in others)
    with Breaker.open(project=project.root) as breaker:
        assert [(move.source, move.target) for move in breaker.store.audit_of("rule")] == [
            ("closed", "open"),
            ("open", "probe"),
        ]
        assert breaker.record_success("rule", lease=probers[0]["lease"]).state == "CLOSED"


def test_violations_that_meet_in_the_probe_open_the_circuit_once(project: Project) -> None:
    """Ten at once after the cooldown: the first ends the probe, the others fall on an open circuit and count."""
    opened_long_ago(project)
    with started([["record", str(project.root), "rule", "1", f"w{n}"] for n in range(10)]) as workers:
        let_go(workers)
        tripped = [action for found in results(workers) for action in found]
    assert len(tripped) == 1
    with Breaker.open(project=project.root) as breaker:
        assert breaker.status("rule").total == 15
        assert breaker.status("rule").trips == 2
        causes = [move.cause for move in breaker.store.audit_of("rule")]
    assert causes == ["tripped", "cooled", "failed"]


# -- a fresh project ----------------------------------------------------------------------------------------


def test_many_processes_may_make_a_new_store_at_once(project: Project) -> None:
    """Nobody gets an error, nobody's violation is lost, and nothing is left over of their making."""
    project.constraint("rule", rule(1000))
    with started([["open_and_record", str(project.root), "rule", f"w{n}"] for n in range(24)]) as workers:
        let_go(workers)
        assert results(workers) == ["done"] * 24
    with Breaker.open(project=project.root) as breaker:
        assert breaker.status("rule").total == 24
        assert breaker.store.notices() == []
    folder = project.root / ".fusewire"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert [entry.name for entry in folder.iterdir() if "tmp" in entry.name or "new" in entry.name] == []
    assert [entry.name for entry in folder.iterdir() if "corrupt" in entry.name] == []


# -- kill -9 ------------------------------------------------------------------------------------------------


def assert_sound(project: Project) -> int:
    """What must be true at any moment; the number of violations counted so far."""
    path = project.root / ".fusewire" / "state.db"
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    row = connection.execute("SELECT state FROM circuits WHERE id = 'rule'").fetchone()
    (counted,) = connection.execute(
        "SELECT count(*) FROM log WHERE circuit = 'rule' AND kind = 'bad' AND effect IN ('counted', 'late')"
    ).fetchone()
    connection.close()
    total = json.loads(row[0]).get("total", 0) if row else 0
    assert total == counted
    mirror = project.root / "docs" / "constraints" / ".circuit-state.json"
    if mirror.exists():
        json.loads(mirror.read_text())
    trail = project.root / ".fusewire" / "audit.jsonl"
    if trail.exists():
        for line in trail.read_text().splitlines()[:-1]:
            json.loads(line)
    return int(total)


def test_writers_killed_at_any_moment_leave_nothing_half_done(project: Project) -> None:
    """Round after round of writers, killed while they write; the next writer goes on as if nothing had been."""
    # A cooldown of 18 ms: the circuit opens, probes and closes all the time, so that every kind of write is hit.
    project.constraint("rule", rule(3, "  cooldown_hours: 0.000005\n"))
    chance = random.Random(20)
    total, killed = 0, 0
    for round_ in range(180):
        if round_ >= 18 and total > 20:  # on a busy machine most are killed before they have written anything
            break
        works = [["churn", str(project.root), "rule", "4", f"r{round_}w{n}"] for n in range(4)]
        with started(works) as workers:
            let_go(workers)
            for worker in workers:
                time.sleep(chance.uniform(0, 0.012))
                worker.send_signal(signal.SIGKILL)
            for worker in workers:
                assert worker.wait(45) == -signal.SIGKILL
                killed += 1
        if (project.root / ".fusewire" / "state.db").exists():
            now = assert_sound(project)
            assert now >= total, "what was counted stays counted"
            total = now
    assert killed >= 72
    assert 20 < total < 400, "the kills came too early or too late to show anything"
    with Breaker.open(project=project.root) as breaker:
        breaker.record("rule", "the next writer")
        # A process that dies between its line in the audit trail and its commit leaves a trip on file, which holds.
        assert all("which holds again: rule is " in one for one in breaker.store.notices()), "nothing else was repaired"
        assert breaker.status("rule").total == total + 1
        newest = [row.text for row in breaker.store.log_of("rule") if row.kind == "bad"]
    mirror = json.loads((project.root / "docs" / "constraints" / ".circuit-state.json").read_text())
    assert [one["action"] for one in mirror["rule"]["violations"]] == newest[::-1][:100]
    assert list((project.root / "docs" / "constraints").glob("*.edited-*")) == []
    assert_sound(project)


def test_processes_killed_while_they_make_the_store_leave_a_project_that_works(project: Project) -> None:
    """The folder, the database, the ignore file: wherever they were interrupted, the next one finishes it."""
    chance = random.Random(5)
    for round_ in range(10):
        root = project.root / f"p{round_}"
        part = Project(root)
        part.constraint("rule", rule(1000))
        with started([["open_and_record", str(root), "rule", f"w{n}"] for n in range(2)]) as workers:
            let_go(workers)
            for worker in workers:
                time.sleep(chance.uniform(0, 0.02))
                worker.send_signal(signal.SIGKILL)
                worker.wait(45)
        with Breaker.open(project=root) as breaker:
            breaker.record("rule", "the next writer")
            assert breaker.status("rule").total in (1, 2, 3)
            assert breaker.store.verify() == []
        assert (root / ".fusewire" / ".gitignore").read_text() == "*\n"
        assert list((root / ".fusewire").glob("state.db.new-*")) == []
        assert_sound(part)

"""What pages show of a session, the loop, a circuit, slices and memory: collected from real projects, read-only."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.spawning import SILENT
from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import DOINGS, Doing
from fusewire.util.durations import parse_time
from fusewire.util.errors import NotFound
from tests.breakers.attempt.test_attempt_seed import MIND, attempt, fail, slice_project
from tests.breakers.session.test_grant import message
from tests.helpers.project import Project
from tests.helpers.session_hook import Session
from tests.helpers.views import (
    attempts_view,
    circuit_view,
    loop_view,
    memory_view,
    panel,
    session_view,
    sessions_view,
    slice_view,
)

__all__ = ["slice_project"]

ID = "git-safety"
NOW = 1_794_000_000.0
DAY = 86400.0


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def files_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time; the memory that SQLite's readers share, and a log with nothing in it, are no state."""
    paths = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    found = {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}
    return {name: facts for name, facts in found.items() if facts[1] or not name.endswith("-wal")}


@contextmanager
def looking(project: Project, clock: Callable[[], float] | None = None) -> Iterator[Breaker]:
    """A breaker that can only read; nothing in the project may differ after it."""
    gc.collect()  # a connection of a hook in this process, closed in between, would write
    with Breaker.open(project=project.root, read_only=True, clock=clock or time.time) as breaker:
        before = files_of(project.root)  # the rules have been compiled by now
        yield breaker
    assert files_of(project.root) == before


def seen(view: dict[str, Any]) -> dict[str, Any]:
    """The view as a program gets it: everything in it can be written as JSON, and comes back the same."""
    assert json.loads(json.dumps(view, allow_nan=False)) == view
    return view


# -- a session --------------------------------------------------------------------------------------------


def test_a_session_shows_what_was_done_stopped_and_who_runs(project: Project) -> None:
    """Calls, failures, refusals and trips in the order of time, counted, and the helpers with their beginning."""
    session = Session(project)
    session.says("go")
    session.bash("ls", "a.py")
    for number in range(3):
        session.fails("pytest -q", f"Exit code 1\n{number} failed")
    refused, _ = session.fails("pytest -q")
    assert not refused.allowed
    session.spawn("read the docs")
    with looking(project) as breaker:
        view = seen(session_view(breaker, session.id))
    assert [one["kind"] for one in view["doings"]] == ["prompt", "ok", *["failed"] * 3, "told", "refused"]
    assert view["doings"][1]["text"] == "ls"
    assert view["counts"] == {"calls": 4, "ok": 1, "failed": 3, "told": 1, "refused": 1, "halted": 0, "prompts": 1}
    assert [(one["to"], one["cause"]) for one in view["moves"]] == [("OPEN", "tripped")]
    assert view["moves"][0]["circuit"] == f"tool/tool_failure/Bash(pytest)/{session.id}"
    assert [one["name"] for one in view["agents"]] == ["general-purpose: read the docs"]
    assert abs(parse_time(view["agents"][0]["since"]) - parse_time(view["heard"])) < 60
    assert (view["session"], view["ended"], view["active"][0]["breaker"]) == (session.id, None, "tool_failure")


def test_a_session_is_at_the_same_for_everybody_who_looks(project: Project) -> None:
    """The page of the session, the list of all and what is counted take one word from one place."""
    session = Session(project)
    session.bash("ls", "x")
    clock = Clock()

    def state() -> str:
        with looking(project, clock) as breaker:
            (line,) = panel(breaker)["sessions"]
            assert session_view(breaker, session.id)["state"] == line["state"]
        return str(line["state"])

    clock.now = time.time() + SILENT / 2
    assert state() == "running"
    clock.now = time.time() + SILENT + 60
    assert state() == "silent"
    session.send("SessionEnd", reason="other")
    assert state() == "ended"


def test_a_session_whose_id_has_slashes_is_a_session(project: Project) -> None:
    """As it is listed, counted and shown; what an agent of another one remembers is none, though it looks like one."""
    project.starts_hooks = False
    named, inside, other = (Session(project, id=one) for one in ("team/a", "team/a/b", "plain"))
    other.bash("ls", "x", agent="helper")
    for session in (named, inside):
        session.says("go")
        for _ in range(3):
            session.fails("pytest -q", "Exit code 1")
    with looking(project) as breaker:
        assert session_ids(breaker.store) == ["team/a/b", "team/a", "plain"]
        view, nested = seen(session_view(breaker, "team/a")), session_view(breaker, "team/a/b")
        cards = {one["id"]: one["session"] for one in panel(breaker)["circuits"]}
        with pytest.raises(NotFound):
            session_view(breaker, "plain/helper")
    exported = [json.loads(line) for line in project.run("export").stdout.splitlines()]
    assert {one["session"] for one in exported if one["row"] == "doing"} == {"team/a", "team/a/b", "plain"}
    for one, whose in ((view, "team/a"), (nested, "team/a/b")):
        assert one["counts"]["calls"] == 3
        (active,) = one["active"]
        assert (active["id"], active["key"]) == (f"tool/tool_failure/Bash(pytest)/{whose}", "Bash(pytest)")
        assert {move["circuit"] for move in one["moves"]} == {active["id"]}
        assert cards[active["id"]] == whose


def test_a_circuit_knows_its_session_wherever_that_stands_in_its_id() -> None:
    sessions = {"s", "a/b", "x:y"}
    for circuit, whose in (
        ("tool/spend/s", "s"),
        ("tool/spend/a/b", "a/b"),
        ("tool/tool_failure/Bash(ls)/a/b:helper", "a/b"),
        ("tool/repetition/s:helper/0123", "s"),
        ("tool/repetition/x:y/0123", "x:y"),
        ("tool/spend_day", None),
        ("tool/spend/other", None),
        ("attempt/s/test", None),
        ("s", None),
    ):
        assert session_of(circuit, sessions) == whose, circuit


def test_what_was_stopped_at_night_is_seen_in_the_morning_and_not_for_ever(project: Project) -> None:
    """A run without a terminal ends after it was halted; a day later nobody has to do anything about it."""
    project.starts_hooks = False
    session = Session(project)
    while not any(said.halted for said in session.fails("make", "Exit code 2\nthe same")):
        pass
    session.send("SessionEnd", reason="other")
    clock = Clock()
    for hours, state in ((1, "halted"), (23, "halted"), (25, "ended")):
        clock.now = time.time() + 3600 * hours
        with looking(project, clock) as breaker:
            shown = panel(breaker)
            (line,) = shown["sessions"]
            assert (line["state"], line["needs"], len(shown["halted"])) == (state, "message", int(state == "halted"))
            assert ("1 session is halted" in shown["headline"]["text"]) == (state == "halted")
            assert session_view(breaker, session.id)["state"] == state
    session.send("SessionStart", source="resume")
    with looking(project) as breaker:
        assert panel(breaker)["sessions"][0]["state"] == "halted"


def limit(project: Project, dollars: float = 5) -> None:
    """Of a session's own tokens."""
    (project.root / "fusewire.toml").write_text(f"[tool.resource_limits]\nagent_cost_block_usd = {dollars}\n")


@pytest.mark.parametrize("length", [36, 195])
def test_a_limit_on_spend_that_is_reached_is_open_for_everybody_who_looks(project: Project, length: int) -> None:
    """Until more is granted; in dollars, with what was granted. A long name of a session is cut in its circuit's."""
    project.starts_hooks = False
    limit(project)
    transcript = project.root.parent / "transcript.jsonl"
    session = Session(project, id=("session-" * 25)[:length], transcript=str(transcript))
    transcript.write_text(message(1, 260_000))
    assert session.before("Bash", {"command": "ls"})[0].halted

    def facts() -> tuple[Any, ...]:
        with looking(project) as breaker:
            shown = seen(panel(breaker))
            (card,) = shown["circuits"]
            view = session_view(breaker, session.id)
            assert circuit_view(breaker, card["id"])["state"] == card["state"]
            assert breaker.status(card["id"]).state == card["state"]
            assert card["session"] == session.id
        (line,) = shown["sessions"]
        assert (line["state"], line["needs"]) == (view["state"], view["needs"])
        assert len(shown["halted"]) == shown["session_counts"]["halted"] == int(line["state"] == "halted")
        active = [one["id"] for one in view["active"]]
        assert active == ([card["id"]] if card["state"] == "OPEN" else [])
        text = shown["headline"]["text"]
        return text, card["state"], card["level"], card["threshold"], card["measure"], card["acts"], line["needs"]

    stopped = "1 circuit is open and 1 session is halted"
    assert facts() == (stopped, "OPEN", 5.2, 5.0, "$5.20 of $5.00", ["grant"], "grant")
    with looking(project) as breaker:
        (card,) = panel(breaker)["circuits"]
    assert card["reason"] == "$5.20 spent in this session at list price (limit $5.00)"
    assert card["next"][-1] == f'a person can run: fusewire grant 5 --session {session.id} --reason "..."'
    project.run("grant", "5", "--session", session.id, "--reason", "worth it")
    assert facts() == ("Nothing is tripped", "CLOSED", 5.2, 10.0, "$5.20 of $10.00", [], None)
    assert session.before("Bash", {"command": "ls"})[0].silent


@pytest.mark.parametrize("refused", [False, True])
def test_a_session_that_came_to_its_end_with_its_last_dollar_was_not_stopped(project: Project, refused: bool) -> None:
    """Its last reply cost more than was left; whoever was refused a call before the end was stopped. Its circuit ended
    with it."""
    project.starts_hooks = False
    limit(project)
    transcript = project.root.parent / "transcript.jsonl"
    session = Session(project, transcript=str(transcript))
    transcript.write_text(message(1, 100_000))
    session.bash("ls", "x")
    transcript.write_text(message(1, 100_000) + message(2, 160_000))
    if refused:
        assert session.before("Bash", {"command": "ls"})[0].halted
    session.send("SessionEnd", reason="other")
    with looking(project) as breaker:
        shown = panel(breaker)
    assert shown["circuits"] == []
    found = (shown["headline"]["text"], shown["sessions"][0]["state"], shown["sessions"][0]["needs"])
    assert found == (("1 session is halted", "halted", "grant") if refused else ("Nothing is tripped", "ended", None))


def test_the_limit_of_a_day_is_open_on_that_day(project: Project) -> None:
    """For every session; and on the next day there is room again, though nobody has asked yet."""
    project.starts_hooks = False
    limits = "agent_cost_block_usd = 50.0\napi_cost_block_usd_per_day = 4.0"
    (project.root / "fusewire.toml").write_text(f"[tool.resource_limits]\n{limits}\n")
    transcript = project.root.parent / "transcript.jsonl"
    session = Session(project, transcript=str(transcript))
    transcript.write_text(message(1, 260_000))
    assert session.before("Bash", {"command": "ls"})[0].halted
    clock = Clock()
    for days, state, level in ((0, "OPEN", 5.2), (1, "CLOSED", 0.0)):
        clock.now = time.time() + days * DAY
        with looking(project, clock) as breaker:
            (card,) = [one for one in panel(breaker)["circuits"] if one["id"] == "tool/spend_day"]
            assert (card["state"], card["level"], card["threshold"]) == (state, level, 4.0)
            assert card["acts"] == ["grant"] * (state == "OPEN")
    with looking(project) as breaker:
        assert [one["id"] for one in session_view(breaker, session.id)["active"]] == ["tool/spend_day"]


def test_a_halted_session_is_told_however_many_spoke_since(project: Project) -> None:
    """The list of the newest has an end; what waits for a person stays in sight, and is counted."""
    project.starts_hooks = False
    stuck = Session(project, id="stuck")
    for _ in range(10):
        asked, after = stuck.fails("make", "Exit code 2\nthe same")
        if asked.halted or after.halted:
            break
    for number in range(24):
        Session(project, id=f"s{number:02}").bash("ls", "x")
    with looking(project) as breaker:
        shown = seen(panel(breaker))
        listed = [seen(sessions_view(breaker, 10, offset))["sessions"] for offset in (0, 10, 20, 30)]
    assert shown["headline"]["text"] == "1 circuit is open and 1 session is halted"
    assert [one["id"] for one in shown["halted"]] == ["stuck"]
    assert len(shown["sessions"]) == 20
    assert "stuck" not in [one["id"] for one in shown["sessions"]]
    assert shown["session_counts"] == {"all": 25, "running": 24, "silent": 0, "halted": 1, "ended": 0, "agents": 0}
    assert list(map(len, listed)) == [10, 10, 5, 0]
    assert [one["id"] for page in listed for one in page] == [
        *(f"s{number:02}" for number in range(23, -1, -1)),
        "stuck",
    ]


def test_calls_of_each_minute_leave_no_minute_out(project: Project) -> None:
    """A pause is seen as one, and the series has an end."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for minute, kind in ((0, "ok"), (0, "failed"), (3, "ok"), (3, "refused"), (200, "ok")):
            transaction.happened(Doing("s", "", 60 * (29_900_000 + minute) + 5, kind, "Bash", "ls"))
    with looking(project) as breaker:
        series = session_view(breaker, "s")["calls_per_minute"]
    assert (len(series), series[-1]) == (120, [60 * 29_900_200, 1, 0])
    assert {minute % 60 for minute, _, _ in series} == {0}
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for minute, kind in ((0, "ok"), (0, "failed"), (3, "ok"), (3, "refused")):
            transaction.happened(Doing("t", "", 60 * (29_900_000 + minute) + 5, kind, "Bash", "ls"))
    with looking(project) as breaker:
        counts = [[calls, failed] for _, calls, failed in session_view(breaker, "t")["calls_per_minute"]]
    assert counts == [[2, 1], [0, 0], [0, 0], [1, 0]]


def test_spend_rises_to_its_lines_and_a_grant_moves_them(project: Project, tmp_path: Path) -> None:
    """The curve is what the hook read in the transcript; the limit is drawn where it holds."""
    limit(project)
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("")
    session = Session(project, transcript=str(transcript))
    for number in range(3):
        with transcript.open("a") as file:
            file.write(message(number, 10_000))
        session.bash(f"ls {number}", "x")
    with looking(project) as breaker:
        view = seen(session_view(breaker, session.id))
    dollars = [usd for _, usd in view["spend_curve"]]
    assert len(dollars) == 3
    assert dollars == sorted(dollars)
    assert round(dollars[-1], 4) == view["resources"]["cost"]["usd"] > 0
    assert view["limit_usd"] == 5.0
    assert project.run("grant", "2", "--session", session.id, "--reason", "worth it").returncode == 0
    with looking(project) as breaker:
        view = session_view(breaker, session.id)
    assert view["limit_usd"] == 7.0
    assert [(one["cause"], one["reason"]) for one in view["moves"]] == [("overridden", "$2.00 more granted: worth it")]


def test_a_limit_on_spend_is_shown_as_it_is_now(project: Project, tmp_path: Path) -> None:
    """Its circuit is told only near the limit, and not of grants: the views say what is spent and what is allowed."""
    limit(project)
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text(message(0, 210_000))
    session = Session(project, transcript=str(transcript))
    session.bash("ls", "x")
    assert project.run("grant", "8", "--session", session.id, "--reason", "worth it").returncode == 0
    circuit = f"tool/spend/{session.id}"
    with looking(project) as breaker:
        spent = session_view(breaker, session.id)["resources"]["cost"]["usd"]
        (card,) = [one for one in panel(breaker)["circuits"] if one["id"] == circuit]
        (meter,) = circuit_view(breaker, circuit)["meters"]
    assert card["measure"] == meter["measure"] == f"${spent:.2f} of $13.00"
    assert card["full"] == meter["full"] == round(spent / 13, 4)


def test_a_long_session_is_cut_and_thinned(project: Project) -> None:
    """However much was done, a page stays small: the newest are shown, the curve keeps both of its ends."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for number in range(DOINGS):
            kind = "spend" if number % 2 else "ok"
            transaction.happened(Doing("s", "", NOW + number, kind, "Bash", f"ls {number}", float(number)))
    with looking(project) as breaker:
        view = seen(session_view(breaker, "s"))
    assert len(view["doings"]) == 500
    assert view["doings"][-1]["value"] == DOINGS - 1
    curve = view["spend_curve"]
    assert (len(curve), curve[0], curve[-1]) == (300, [NOW + 1, 1.0], [NOW + DOINGS - 1, DOINGS - 1])
    assert curve == sorted(curve)


@pytest.mark.parametrize("name", ["nobody", "", "479528ae-91f4-4945-992c-9db9f0bba192/", "../x", "\udc80"])
def test_a_session_that_was_not_heard_of_is_not_found(project: Project, name: str) -> None:
    """Nor is what one of its agents remembers a session."""
    Session(project).bash("ls", "x")
    with looking(project) as breaker, pytest.raises(NotFound, match="has been heard of"):
        session_view(breaker, name)


# -- the loop ---------------------------------------------------------------------------------------------


def test_the_loop_shows_its_iterations_and_what_is_under_way(project: Project) -> None:
    """Each iteration with its score, output and calls; one that has begun is seen before it ends."""
    work = 'echo one; echo two; echo "$FUSEWIRE_ITERATION" > "work$FUSEWIRE_ITERATION.txt"'
    assert project.run("run", "--max-iterations", "2", "--", "sh", "-c", work).returncode == 4
    with looking(project) as breaker:
        view = seen(loop_view(breaker))
    assert [(one["number"], one["kind"], one["files"], one["lines"]) for one in view["history"]] == [
        (1, "progress", 1, 2),
        (2, "progress", 1, 2),
    ]
    assert view["history"][0]["score"] > 0
    assert [one["calls_left"] for one in view["history"]] == [view["calls_left"] + 1, view["calls_left"]]
    assert parse_time(view["last"]["at"]) >= parse_time(view["history"][0]["at"])
    assert (view["under_way"], view["runs"], view["running"], view["halted"]) == ([], [], 0, None)
    assert project.run("loop", "begin").returncode == 0
    with looking(project) as breaker:
        view = seen(loop_view(breaker))
    assert [(one["number"], one["probe"]) for one in view["under_way"]] == [(3, False)]


def test_a_project_without_a_loop_has_an_empty_one(project: Project) -> None:
    """Nothing is made by looking."""
    with looking(project) as breaker:
        view = seen(loop_view(breaker))
    assert (view["history"], view["under_way"], view["last"], view["iterations"]) == ([], [], None, 0)
    assert list(project.root.iterdir()) == [project.root / ".git"]


# -- a circuit --------------------------------------------------------------------------------------------


def test_a_circuit_shows_its_settings_meters_cooldown_and_history(project: Project) -> None:
    """What is in force and where it comes from, what counts, how long it waits, with the window's boundary."""
    project.constraint(ID, "severity: high\ncircuit_breaker:\n  violation_threshold: 2\n", "# No force pushes\n")
    clock = Clock()
    with Breaker.open(project=project.root, clock=clock) as breaker:
        breaker.record(ID, "git push --force")
        clock.now += 3600
        breaker.record(ID, "git push -f")
    clock.now += 600
    with looking(project, clock) as breaker:
        view = seen(circuit_view(breaker, ID))
    assert (view["id"], view["state"], view["acts"], view["about"]["severity"]) == (ID, "OPEN", ["reset"], "HIGH")
    settings = {one["key"]: (one["value"], one["source"]) for one in view["settings"]}
    assert settings["violation_threshold"] == (2, f"docs/constraints/{ID}.md")
    (meter,) = view["meters"]
    assert (meter["level"], meter["trip"], meter["window"]) == (2, 2, " within 30d")
    cooldown = view["cooldown"]
    assert (cooldown["schedule"], cooldown["words"]) == ("fixed", "1d after every trip")
    assert (cooldown["seconds"], cooldown["left"], cooldown["next_seconds"]) == (DAY, DAY - 600, DAY)
    assert parse_time(cooldown["until"]) == parse_time(cooldown["began"]) + DAY
    assert parse_time(view["history"]["window_start"]) == clock.now - 30 * DAY
    assert [one["action"] for one in view["history"]["entries"]] == ["git push -f", "git push --force"]
    (trip,) = view["trips"]
    assert (trip["closed_at"], trip["seconds"], trip["method"]) == (None, 600, "not over yet")


def test_trips_say_how_each_of_them_ended(project: Project) -> None:
    """By a person's reset, by a probe that failed, by one that went well: each with its length."""
    project.constraint(ID, "circuit_breaker:\n  violation_threshold: 1\n")
    clock = Clock()
    with Breaker.open(project=project.root, clock=clock) as breaker:
        breaker.record(ID, "first")
        clock.now += 60
        breaker.reset(ID, "looked at it")
        clock.now += 600
        breaker.record(ID, "second")
        clock.now += DAY
        lease = breaker.check(ID).lease
        clock.now += 5
        breaker.record(ID, "third", lease=lease)
        clock.now += DAY
        lease = breaker.check(ID).lease
        clock.now += 7
        breaker.record_success(ID, lease=lease)
    with looking(project, clock) as breaker:
        view = seen(circuit_view(breaker, ID))
        recent = circuit_view(breaker, ID, days=0.5)
    trips = view["trips"]
    assert [(one["cause"], one["seconds"], one["in_a_row"]) for one in trips] == [
        ("succeeded", DAY + 7, 2),
        ("failed", DAY + 5, 1),
        ("reset", 60, 1),
    ]
    assert [one["method"] for one in trips[:2]] == ["the probe went well", "the probe failed"]
    assert trips[2]["method"].startswith("reset by ")
    assert trips[2]["method"].endswith(": looked at it")
    assert trips[0]["opened_at"] == trips[1]["closed_at"]
    assert trips[0]["reason"].startswith("the probe failed")
    assert [one["cause"] for one in recent["trips"]] == ["succeeded"]
    assert view["state"] == "CLOSED"


def test_what_only_time_has_done_is_among_the_trips(project: Project) -> None:
    """Nobody was there to write that the cooldown passed, and that a quiet day closed the circuit."""
    project.constraint(ID, "circuit_breaker:\n  violation_threshold: 1\n")
    clock = Clock()
    with Breaker.open(project=project.root, clock=clock) as breaker:
        breaker.record(ID, "once")
    clock.now += 3 * DAY
    with looking(project, clock) as breaker:
        view = seen(circuit_view(breaker, ID))
        assert [move.cause for move in breaker.store.audit_of(ID)] == ["tripped"]
    (trip,) = view["trips"]
    assert (trip["cause"], trip["seconds"], trip["method"]) == ("quiet", 2 * DAY, "no bad signal for 1d")
    assert [one["cause"] for one in view["history"]["transitions"]] == ["quiet", "cooled", "tripped"]


def test_an_early_end_of_the_cooldown_is_told_with_the_trip(project: Project) -> None:
    """A loop's reset does not close: the probe decides, and both are said."""
    clock = Clock()
    circuit = "loop/no_progress"
    with Breaker.open(project=project.root, clock=clock) as breaker:
        for _ in range(3):
            breaker.record(circuit, "nothing")
        clock.now += 60
        breaker.reset(circuit, "mended")
        lease = breaker.check(circuit).lease
        breaker.record_success(circuit, lease=lease)
    with looking(project, clock) as breaker:
        (trip,) = circuit_view(breaker, circuit)["trips"]
    assert trip["method"].startswith("the cooldown was ended early by ")
    assert trip["method"].endswith(", the probe went well")


def test_a_constraint_whose_file_is_gone_still_has_its_history(project: Project) -> None:
    """What it did is not gone with it; its settings are."""
    path = project.constraint(ID, "circuit_breaker:\n  violation_threshold: 1\n")
    with Breaker.open(project=project.root) as breaker:
        breaker.record(ID, "once")
    path.unlink()
    with looking(project) as breaker:
        view = seen(circuit_view(breaker, ID))
    assert (view["settings"], view["about"], len(view["trips"])) == ([], None, 1)


def test_a_circuit_that_was_removed_says_that_its_trip_is_forgotten(project: Project) -> None:
    """The audit trail outlives it, and nobody wrote an end."""
    circuit = "tool/tool_failure/Bash(make)/s"
    with Breaker.open(project=project.root) as breaker:
        for _ in range(3):
            breaker.record(circuit, "boom")
        with breaker.store.transact() as transaction:
            transaction.remove(circuit)
    with looking(project) as breaker:
        view = seen(circuit_view(breaker, circuit))
    (trip,) = view["trips"]
    assert (trip["closed_at"], trip["seconds"], trip["method"]) == (None, None, "forgotten with its circuit")


def test_a_damaged_circuit_is_shown_as_it_would_be_mended(project: Project) -> None:
    """From its log; the one who looks mends nothing."""
    project.constraint(ID, "circuit_breaker:\n  violation_threshold: 1\n")
    with Breaker.open(project=project.root) as breaker:
        breaker.record(ID, "once")
        with breaker.store.transact() as transaction:
            transaction.save(ID, "constraint", "open", {"since": "yesterday"}, NOW)
    with looking(project) as breaker:
        view = seen(circuit_view(breaker, ID))
    assert (view["state"], len(view["trips"])) == ("OPEN", 1)


@pytest.mark.parametrize(
    "circuit",
    ["nothing", "", "loop/nothing", "tool/tool_failure/Bash(ls)/nobody", "attempt/S-9", "a/b/c", "\0", "\udc80"],
)
def test_a_circuit_that_nothing_has_happened_to_is_not_found(project: Project, circuit: str) -> None:
    """A policy would serve any key; those of the loop are there from the beginning."""
    project.constraint(ID)
    with looking(project) as breaker:
        with pytest.raises(NotFound):
            circuit_view(breaker, circuit)
        assert circuit_view(breaker, "loop/no_progress")["state"] == "CLOSED"
        assert circuit_view(breaker, ID)["trips"] == []


# -- slices -----------------------------------------------------------------------------------------------


def test_slices_show_tests_attempts_reports_and_scope(slice_project: Project) -> None:
    """Each test n of its limit with what was tried, the report where there is one, and what left the scope."""
    project = slice_project
    assert project.run("scope", "set", "S-1", "app.py").returncode == 0
    attempt(project, "start", "S-1", "test_a")
    (project.root / "app.py").write_text("def answer():\n    return 2\n")
    (project.root / "other.py").write_text("x = 1\n")
    fail(project, "test_a", strategy="return two")
    justified = ("--test", "test_a", "--reason", "it holds the key", "--relationship", "the contract names it")
    assert project.run("scope", "justify", "S-1", "other.py", *justified).returncode == 0
    attempt(project, "record", "S-1", "test_b", "--infra")
    attempt(project, "record", "S-1", "test_c", "--pass")
    fail(project, "test_a", strategy="return three")
    fail(project, "test_a", strategy="return four", expect=3)
    attempt(project, "start", "S-2", "test_z")
    attempt(project, "report", "S-1", *MIND)
    with looking(project) as breaker:
        view = seen(attempts_view(breaker))
        assert view["slices"][0] == slice_view(breaker, "S-1")
    first, second = view["slices"]
    assert (first["id"], first["state"], first["failures"], first["limit"]) == ("S-1", "stopped", 3, 7)
    assert (second["id"], second["state"], second["scope"], second["violations"]) == ("S-2", "under way", None, None)
    tests = {one["name"]: one for one in first["tests"]}
    assert {name: (one["state"], one["attempts"], one["limit"]) for name, one in tests.items()} == {
        "test_a": ("stopped", 3, 3),
        "test_b": ("infra", 0, 3),
        "test_c": ("passed", 0, 3),
    }
    log = tests["test_a"]["log"]
    assert [(one["attempt"], one["strategy"]) for one in log] == [
        (1, "return two"),
        (2, "return three"),
        (3, "return four"),
    ]
    assert log[0]["files"] == ["app.py", "other.py"]
    assert [one["at"] for one in log] == sorted(one["at"] for one in log)
    assert tests["test_a"]["report"]["specific_question"] == "Which key is canonical?"
    assert "specific_question: Which key is canonical?" in tests["test_a"]["report_text"]
    assert (tests["test_b"]["report"], tests["test_b"]["report_lacks"]) == (None, [])
    assert [one["test"] for one in first["infrastructure"]] == ["test_b"]
    assert [one["pattern"] for one in first["scope"]["patterns"]] == ["app.py"]
    assert first["violations"] == [{"file": "other.py", "justification": "it holds the key — the contract names it"}]
    assert [one["file"] for one in first["justifications"]] == ["other.py"]
    assert [one["slice"] for one in view["under_way"]] == ["S-1", "S-2"]
    assert [stop["rule"] for stop in first["stops"]] == []


def test_a_report_that_was_begun_names_what_it_lacks(slice_project: Project) -> None:
    """It is no report yet, and the page can say what is missing."""
    fail(slice_project, "test_a")
    slice_project.run("attempt", "report", "S-1", "--best-hypothesis", "the key is wrong")
    with looking(slice_project) as breaker:
        (test,) = slice_view(breaker, "S-1")["tests"]
    assert (test["report"], test["report_lacks"]) == (None, ["test_expectation", "specific_question"])
    assert (test["state"], test["attempts"]) == ("failing", 1)


def test_a_slice_that_was_stopped_for_a_decision_and_retried_tells_both(slice_project: Project) -> None:
    """First the stop with its reason, then what a fresh implementer must know."""
    fail(slice_project, "test_a", strategy="patch it")
    attempt(slice_project, "arch-stop", "S-1", "--reason", "needs a queue")
    with looking(slice_project) as breaker:
        view = slice_view(breaker, "S-1")
    assert (view["state"], view["arch_stop"]) == ("stopped", "needs a queue")
    assert [stop["rule"] for stop in view["stops"]] == ["attempt.arch_stop"]
    attempt(slice_project, "retry", "S-1", "--guidance", "use the queue", "--force")
    with looking(slice_project) as breaker:
        view = seen(slice_view(breaker, "S-1"))
    assert (view["state"], view["retries"], view["failures"], view["tests"]) == ("waiting", 1, 0, [])
    assert "guidance: use the queue" in view["prior"]
    attempt(slice_project, "start", "S-1", "test_a")
    attempt(slice_project, "record", "S-1", "test_a", "--pass")
    attempt(slice_project, "finish", "S-1")
    with looking(slice_project) as breaker:
        view = attempts_view(breaker)
    assert ([one["state"] for one in view["slices"]], view["under_way"]) == (["finished"], [])


def test_a_scope_that_cannot_be_told_says_why(slice_project: Project) -> None:
    """A broken graph breaks no page."""
    fail(slice_project, "test_a")
    (slice_project.root / "GRAPH.json").write_text("{")
    with looking(slice_project) as breaker:
        view = seen(slice_view(breaker, "S-1"))
    assert "GRAPH.json" in view["scope"]["problem"]
    assert view["violations"] is None


def test_more_slices_than_a_page_shows_are_counted(slice_project: Project) -> None:
    """The stopped one stays, however old it is."""
    fail(slice_project, "test_a", "S-0")
    attempt(slice_project, "arch-stop", "S-0", "--reason", "needs a queue")
    with Breaker.open(project=slice_project.root) as breaker:
        from fusewire.breakers.attempt.tracker import Attempts
        from fusewire.breakers.attempt.types import Attempt

        for number in range(1, 23):
            Attempts(breaker).record_attempt(f"S-{number}", "test_a", Attempt("pass", files=[]))
    with looking(slice_project) as breaker:
        view = seen(attempts_view(breaker))
    assert (len(view["slices"]), view["left_out"]) == (20, 3)
    assert [one["id"] for one in view["slices"][:2]] == ["S-0", "S-22"]
    with looking(slice_project) as breaker:
        rest = seen(attempts_view(breaker, offset=20))
        few = attempts_view(breaker, limit=2, offset=1)
        beyond = attempts_view(breaker, offset=1000)
    assert ([one["id"] for one in rest["slices"]], rest["left_out"]) == (["S-3", "S-2", "S-1"], 0)
    assert ([one["id"] for one in few["slices"]], few["left_out"]) == (["S-22", "S-21"], 20)
    assert (beyond["slices"], beyond["left_out"]) == ([], 0)
    assert view["counts"] == beyond["counts"]
    assert (view["counts"]["all"], view["counts"]["stopped"]) == (23, 1)


def test_a_slice_of_which_nothing_is_known_is_not_found(project: Project) -> None:
    """And a project without slices has none."""
    with looking(project) as breaker:
        view = attempts_view(breaker)
        assert (view["slices"], view["left_out"], view["under_way"], view["problem"]) == ([], 0, [], None)
        assert not any(view["counts"].values())
        with pytest.raises(NotFound, match="nothing is known of slice S-9"):
            slice_view(breaker, "S-9")


# -- memory -----------------------------------------------------------------------------------------------


def test_memory_shows_usage_rotations_and_what_comes_next(project: Project) -> None:
    """The plan is what the next cleanup then does; the plan itself touches nothing."""
    folder = project.root / ".claude" / "memory"
    folder.mkdir(parents=True)
    (folder / "tool_telemetry.jsonl").write_text('{"n": 1}\n' * 1001)
    old = folder / "session_aaaaaaaa_state.json"
    old.write_text("{}")
    os.utime(old, (NOW - 3000 * DAY, NOW - 3000 * DAY))
    with looking(project) as breaker:
        view = seen(memory_view(breaker))
    planned = view["next_cleanup"]
    assert (planned["dry_run"], planned["due"], planned["files_rotated"], planned["sessions_pruned"]) == (
        True,
        True,
        1,
        1,
    )
    assert any("tool_telemetry.jsonl (over 1000 lines)" in line for line in planned["actions"])
    assert (view["rotations"], view["cleanups"], view["by_hand"], view["problem"]) == ([], [], None, None)
    assert view["usage"]["telemetry"][0]["lines"] == 1001
    started = Session(project).send("SessionStart", source="startup")
    assert "Memory cleanup: 1 file rotated, 1 session pruned" in json.dumps(started.json)
    with looking(project) as breaker:
        view = seen(memory_view(breaker))
    assert {one["kind"] for one in view["rotations"]} == {"rotation", "session archive"}
    rotated = next(one for one in view["rotations"] if one["kind"] == "rotation")
    assert (rotated["of"], rotated["bytes"] > 0) == ("tool_telemetry.jsonl", True)
    (cleanup,) = view["cleanups"]
    assert cleanup["report"].startswith("Memory cleanup: 1 file rotated, 1 session pruned")
    assert cleanup["session"] == Session(project).id
    assert (view["next_cleanup"]["actions"], view["next_cleanup"]["due"]) == ([], False)


def test_other_folders_are_planned_apart(project: Project, tmp_path: Path) -> None:
    """The start of a session does not go there; `fusewire janitor` does."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "agent.log").write_text("x\n" * 1000)
    os.utime(logs / "agent.log", (NOW - 3000 * DAY, NOW - 3000 * DAY))
    (project.root / "fusewire.toml").write_text(f'[tool.memory_limits]\nother_folders = ["{logs}"]\n')
    with looking(project) as breaker:
        view = seen(memory_view(breaker))
    assert view["next_cleanup"]["actions"] == []
    assert "agent.log" in view["by_hand"]["actions"][0]


def test_many_files_are_cut_and_counted(project: Project) -> None:
    """The largest are shown."""
    folder = project.root / ".claude" / "memory"
    folder.mkdir(parents=True)
    for number in range(205):
        (folder / f"note{number}").write_bytes(b"x" * number)
    with looking(project) as breaker:
        usage = seen(memory_view(breaker))["usage"]
    assert (len(usage["files"]), usage["files_left_out"], len(usage["unknown"])) == (200, 5, 200)
    assert usage["files"][0]["name"] == "note204"


def test_a_memory_folder_that_is_refused_says_why(project: Project) -> None:
    """One line instead of a page that fails."""
    (project.root / ".claude").mkdir()
    (project.root / ".claude" / "memory").symlink_to("/")
    with looking(project) as breaker:
        view = seen(memory_view(breaker))
    assert view["problem"]
    assert (view["usage"], view["next_cleanup"]) == (None, None)

"""The constraint breaker as its seed describes it: numbers, commands, files and failure modes, end to end."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fusewire import Breaker, InvalidTransition, NotFound, StoreError
from fusewire.engine.testing import Clock
from tests.helpers.project import Project

ID = "git-safety-force-push"
ISO_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
CHECK_FIELDS = {"decision", "state", "phase", "rule", "reason", "evidence", "retry_after", "next"}
STATUS_FIELDS = {
    "id",
    "kind",
    "state",
    "phase",
    "level",
    "threshold",
    "opened_at",
    "retry_after",
    "reason",
    "trips",
}
NO_DEDUP = "circuit_breaker:\n  dedup_seconds: 0\n"
FORCE_PUSH = "match:\n  - tool: Bash\n    command: git push --force\n"


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock(at("2026-02-13T10:00:00Z"))


@pytest.fixture
def breaker(clock: Clock) -> Iterator[Breaker]:
    with Breaker.open("memory:", clock=clock) as opened:
        yield opened


def violate(breaker: Breaker, clock: Clock, times: int, *, every: str = "1h", name: str = ID) -> None:
    for number in range(times):
        breaker.record(name, f"git push --force #{number}", session="sess_abc123")
        clock.advance(every)


def opened(project: Project, clock: Clock) -> Breaker:
    return Breaker.open(project=project.root, clock=clock)


def state_file(project: Project) -> dict[str, Any]:
    return json.loads((project.root / "docs/constraints/.circuit-state.json").read_text())  # type: ignore[no-any-return]


def archive_file(project: Project) -> dict[str, Any]:
    path = project.root / "docs/constraints/.circuit-state-archive.json"
    return json.loads(path.read_text())  # type: ignore[no-any-return]


# -- the numbers ----------------------------------------------------------------------------------------


def test_the_fifth_violation_in_thirty_days_opens_the_circuit(breaker: Breaker, clock: Clock) -> None:
    """CLOSED counts 1 to 4 and lets actions pass; the 5th trips, and from then on actions are blocked."""
    for number in range(1, 5):
        decision = breaker.record(ID, f"push {number}")
        assert (decision.state, decision.tripped, decision.allowed) == ("CLOSED", False, True)
        assert breaker.check(ID).verdict == "allow"
        clock.advance("1h")
    tripping = breaker.record(ID, "push 5")
    assert (tripping.state, tripping.tripped) == ("OPEN", True)
    blocked = breaker.check(ID)
    assert (blocked.verdict, blocked.state, blocked.retry_after) == ("deny", "OPEN", 24 * 3600)
    assert "5" in blocked.reason
    assert any("push 5" in fact for fact in blocked.evidence)
    assert any("fusewire reset" in step for step in blocked.by_person)


def test_only_the_last_violations_before_the_limit_warn(breaker: Breaker, clock: Clock) -> None:
    """Recording warns when the threshold is near, and not from the first violation on."""
    verdicts = []
    for _ in range(4):
        verdicts.append(breaker.record(ID, "push").verdict)
        clock.advance("1h")
    assert verdicts == ["allow", "allow", "allow", "tell"]


def test_a_violation_exactly_thirty_days_old_no_longer_counts(breaker: Breaker, clock: Clock) -> None:
    """The window is rolling and half-open: at 30 days to the second the oldest violation has left it."""
    start = clock.now
    violate(breaker, clock, 4)
    clock.now = start + 30 * 86400 - 0.001
    assert breaker.status(ID).level == 4
    clock.now = start + 30 * 86400
    assert breaker.status(ID).level == 3
    assert breaker.record(ID, "the 5th ever, the 4th in the window").state == "CLOSED"
    assert breaker.status(ID).total == 5
    clock.advance("10m")
    assert breaker.record(ID, "the 5th in the window").state == "OPEN"


def test_a_violation_just_inside_the_window_counts(breaker: Breaker, clock: Clock) -> None:
    """A second before the oldest leaves the window, it still makes the fifth."""
    start = clock.now
    violate(breaker, clock, 4)
    clock.now = start + 30 * 86400 - 1
    assert breaker.record(ID, "the 5th").state == "OPEN"


def test_the_window_is_not_the_calendar_month(breaker: Breaker, clock: Clock) -> None:
    """The seed's example: on 2026-02-13 the window reaches back to 2026-01-14, over the turn of a month."""
    for day in ("2026-01-13", "2026-01-15", "2026-01-20", "2026-02-01", "2026-02-12"):
        clock.now = at(f"{day}T10:00:00Z")
        breaker.record(ID, day)
    clock.now = at("2026-02-13T10:00:00Z")
    assert (breaker.status(ID).level, breaker.status(ID).state) == (4, "CLOSED")
    assert next(row.text for row in breaker.history(ID, days=365)) == "2026-01-13"


def test_deduplication_follows_the_example_of_the_seed(breaker: Breaker, clock: Clock) -> None:
    """10:00 counts, 10:02 is the same one, 10:06 counts again; the anchor is the last counted violation."""
    breaker.record(ID, "git push --force")
    clock.advance("2m")
    again = breaker.record(ID, "git push --force")
    assert (breaker.status(ID).level, again.state) == (1, "CLOSED")
    assert "not counted" in again.reason
    clock.advance("4m")
    breaker.record(ID, "git push -f")
    assert breaker.status(ID).level == 2


def test_deduplication_lasts_300_seconds_from_the_last_counted_one(breaker: Breaker, clock: Clock) -> None:
    """299.999 s after a counted violation is the same one, 300 s is a new one, however many came in between."""
    breaker.record(ID, "first")
    for _ in range(4):
        clock.advance(74.9)
        breaker.record(ID, "hasty")
    assert breaker.status(ID).level == 1
    clock.advance(0.399)
    assert breaker.record(ID, "299.999 s")
    assert breaker.status(ID).level == 1
    clock.advance(0.001)
    assert breaker.record(ID, "300 s")
    assert breaker.status(ID).level == 2
    clock.advance(299)
    assert breaker.record(ID, "299 s after the second")
    assert breaker.status(ID).level == 2


def test_hasty_retries_alone_never_trip(breaker: Breaker, clock: Clock) -> None:
    """Twenty violations within one deduplication window are one."""
    for _ in range(20):
        breaker.record(ID, "git push --force")
        clock.advance("10s")
    assert (breaker.status(ID).level, breaker.status(ID).state) == (1, "CLOSED")


def test_constraints_are_independent(breaker: Breaker, clock: Clock) -> None:
    """One circuit that opens, and one deduplication window, say nothing about another constraint."""
    for _ in range(5):
        breaker.record("one", "x")
        breaker.record("two", "x") if breaker.status("two").level < 2 else None
        clock.advance("1h")
    assert [breaker.status(name).state for name in ("one", "two", "three")] == ["OPEN", "CLOSED", "CLOSED"]
    assert [breaker.status(name).level for name in ("one", "two", "three")] == [5, 2, 0]
    assert not breaker.check("one").allowed
    assert breaker.check("two").allowed


def test_twenty_four_hours_of_cooldown_then_exactly_one_probe(breaker: Breaker, clock: Clock) -> None:
    """OPEN until 24 h to the second; then HALF_OPEN, the first check is the probe and the second is blocked."""
    violate(breaker, clock, 5, every="6m")
    clock.now -= 360
    tripped_at = clock.now
    clock.now = tripped_at + 24 * 3600 - 0.001
    assert (breaker.status(ID).state, breaker.check(ID).verdict) == ("OPEN", "deny")
    clock.now = tripped_at + 24 * 3600
    assert (breaker.status(ID).state, breaker.status(ID).phase) == ("HALF_OPEN", "probe")
    probe = breaker.check(ID)
    assert (probe.allowed, probe.state, probe.lease is not None) == (True, "HALF_OPEN", True)
    other = breaker.check(ID)
    assert (other.verdict, other.state) == ("deny", "HALF_OPEN")
    assert other.retry_after is not None
    assert other.retry_after > 0


def test_a_violation_during_half_open_reopens_counts_and_restarts_the_timer(breaker: Breaker, clock: Clock) -> None:
    """One violation in HALF_OPEN: OPEN at once, one more in the window, 24 h from now."""
    violate(breaker, clock, 5)
    clock.advance("24h")
    breaker.check(ID)
    clock.advance("1m")
    failed = breaker.record(ID, "git push --force")
    assert (failed.state, failed.tripped, failed.retry_after) == ("OPEN", True, 24 * 3600)
    assert (breaker.status(ID).level, breaker.status(ID).trips) == (6, 2)
    clock.advance(24 * 3600 - 1)
    assert not breaker.check(ID).allowed
    clock.advance(1)
    assert breaker.check(ID).allowed


def test_a_violation_during_half_open_counts_even_right_after_the_last_one(breaker: Breaker, clock: Clock) -> None:
    """Deduplication does not excuse the answer of a probe."""
    violate(breaker, clock, 5, every="6m")
    clock.now = breaker.status(ID).opened_at + 24 * 3600 - 10  # type: ignore[operator]
    breaker.record(ID, "while open, just before the end")
    clock.advance(10)
    assert breaker.check(ID).allowed
    assert breaker.record(ID, "ten seconds later").state == "OPEN"


def test_a_violation_in_half_open_that_nobody_checked_reopens_too(breaker: Breaker, clock: Clock) -> None:
    """HALF_OPEN is a testing period: a violation reopens whether or not somebody took the probe."""
    violate(breaker, clock, 5)
    clock.advance("24h")
    assert breaker.record(ID, "unasked").state == "OPEN"


def test_a_checked_action_that_was_no_violation_closes_and_keeps_the_old_ones(breaker: Breaker, clock: Clock) -> None:
    """A successful probe closes; violations still in the window keep counting, so the next one trips again."""
    violate(breaker, clock, 5)
    clock.advance("24h")
    probe = breaker.check(ID)
    assert breaker.record_success(ID, lease=probe.lease).state == "CLOSED"
    assert breaker.status(ID).level == 5
    assert breaker.check(ID).allowed
    clock.advance("1h")
    assert breaker.record(ID, "again").state == "OPEN"
    assert breaker.status(ID).trips == 2


def test_a_quiet_testing_period_of_24_hours_closes(breaker: Breaker, clock: Clock) -> None:
    """Without any violation the HALF_OPEN circuit closes by itself 24 h after the cooldown."""
    violate(breaker, clock, 5, every="6m")
    opened_at = breaker.status(ID).opened_at
    assert opened_at is not None
    clock.now = opened_at + 48 * 3600 - 0.001
    assert breaker.status(ID).state == "HALF_OPEN"
    clock.now = opened_at + 48 * 3600
    assert breaker.status(ID).state == "CLOSED"
    assert breaker.record(ID, "the old ones still count").state == "OPEN"


def test_after_a_reset_only_later_violations_count(breaker: Breaker, clock: Clock) -> None:
    """A person's reset closes at once; four more violations stay below the limit, the fifth trips."""
    violate(breaker, clock, 5)
    assert breaker.reset(ID, "Root cause fixed").state == "CLOSED"
    assert (breaker.status(ID).level, breaker.status(ID).last_reset) == (0, clock.now)
    violate(breaker, clock, 4)
    assert breaker.status(ID).state == "CLOSED"
    assert breaker.record(ID, "the 5th after the reset").state == "OPEN"
    assert breaker.status(ID).total == 10


def test_a_violation_right_after_a_reset_counts(breaker: Breaker, clock: Clock) -> None:
    """The deduplication window ends with the reset: what comes later is new."""
    violate(breaker, clock, 5, every="6m")
    clock.now -= 350
    breaker.reset(ID, "mended")
    clock.advance(1)
    breaker.record(ID, "at once again")
    assert breaker.status(ID).level == 1


def test_a_blocked_violation_is_recorded_but_does_not_prolong_the_cooldown(breaker: Breaker, clock: Clock) -> None:
    """What happens while the circuit is open is counted, and the probe comes when it was due."""
    violate(breaker, clock, 5, every="6m")
    due = breaker.status(ID).opened_at + 24 * 3600  # type: ignore[operator]
    for _ in range(3):
        clock.advance("1h")
        assert breaker.record(ID, "still trying").state == "OPEN"
    assert (breaker.status(ID).level, breaker.status(ID).trips) == (8, 1)
    clock.now = due
    assert breaker.check(ID).allowed


def test_a_clock_that_was_set_back_does_not_shorten_the_cooldown(breaker: Breaker, clock: Clock) -> None:
    """An `opened_at` in the future stays open."""
    violate(breaker, clock, 5, every="6m")
    due = breaker.status(ID).opened_at + 24 * 3600  # type: ignore[operator]
    clock.advance(-7 * 86400)
    assert not breaker.check(ID).allowed
    clock.now = due - 1
    assert not breaker.check(ID).allowed


def test_resetting_what_is_not_open_is_an_invalid_transition(breaker: Breaker, clock: Clock) -> None:
    """From CLOSED and from HALF_OPEN; the state is named, and nothing changes."""
    with pytest.raises(InvalidTransition, match=r"^Invalid transition from CLOSED"):
        breaker.reset(ID, "why not")
    violate(breaker, clock, 5)
    clock.advance("24h")
    with pytest.raises(InvalidTransition, match=r"^Invalid transition from HALF_OPEN"):
        breaker.reset(ID, "why not")
    assert breaker.status(ID).state == "HALF_OPEN"


# -- an override -----------------------------------------------------------------------------------------


def test_an_override_lets_pass_without_closing_and_ends_by_itself(breaker: Breaker, clock: Clock) -> None:
    """Actions pass with a warning, violations are counted, the circuit stays OPEN, the end comes to the second."""
    violate(breaker, clock, 5)
    breaker.override(ID, "production is down", 3600)
    decision = breaker.check(ID)
    assert (decision.verdict, decision.state, decision.allowed) == ("tell", "OPEN", True)
    assert "production is down" in decision.reason
    assert breaker.record(ID, "during the emergency").state == "OPEN"
    assert breaker.status(ID).level == 6
    clock.advance(3600 - 0.001)
    assert breaker.check(ID).allowed
    clock.advance(0.001)
    assert not breaker.check(ID).allowed
    (entry,) = [row for row in breaker.audit(ID) if row.cause == "overridden"]
    assert (bool(entry.actor), entry.source, entry.target) == (True, "open", "open")
    assert "production is down" in entry.reason


def test_an_override_does_not_prolong_or_shorten_the_cooldown(breaker: Breaker, clock: Clock) -> None:
    """The probe comes 24 h after the trip, override or not, and a violation under the override does not reopen."""
    violate(breaker, clock, 5, every="6m")
    due = breaker.status(ID).opened_at + 24 * 3600  # type: ignore[operator]
    breaker.override(ID, "hotfix", 3600)
    breaker.record(ID, "under the override")
    clock.now = due - 1
    assert breaker.status(ID).phase == "open"
    clock.now = due
    assert breaker.status(ID).phase == "probe"
    assert breaker.status(ID).trips == 1


def test_the_override_command_needs_a_reason_and_a_limited_time(project: Project) -> None:
    """Without a reason, without an end, for longer than a day, or for a closed circuit it is refused."""
    project.constraint(ID, NO_DEDUP)
    refused = project.run("override", ID, "--reason", "hurry")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "Invalid transition from CLOSED" in refused.stderr
    violate(opened(project, Clock(datetime.now(UTC).timestamp() - 60)), Clock(), 5)
    for wrong in (
        (),
        ("--reason", " "),
        ("--reason", "x", "--for", "25h"),
        ("--reason", "x", "--for", "0s"),
        ("--reason", "x", "--for", "forever"),
        ("--reason", "x", "--for", "-1h"),
    ):
        assert project.run("override", ID, *wrong).returncode == 2, wrong
    assert project.run("check", ID).returncode == 3
    done = project.run("override", ID, "--reason", "production is down", "--for", "30m")
    assert done.returncode == 0
    assert "OPEN" in done.stdout
    assert project.run("check", ID).returncode == 0
    status = project.json("status", ID)["circuits"][0]
    assert status["state"] == "OPEN"
    assert ISO_UTC.fullmatch(status["override_until"])
    assert "production is down" in project.run("history", ID).stdout
    assert project.run("override", ID, "--end").returncode == 0
    assert project.run("check", ID).returncode == 3


def test_the_reset_protocol_of_other_breakers_cannot_be_overridden(project: Project) -> None:
    """The emergency override is the constraint's: loop and attempt forbid going round their recovery protocol."""
    for circuit in ("attempt/S-1/test_login", "loop/no_progress"):
        for _ in range(3):
            project.run("record", circuit, "--action", "x")
        assert project.run("check", circuit).returncode == 3
        refused = project.run("override", circuit, "--reason", "hurry")
        assert refused.returncode == 1, circuit
        assert project.run("check", circuit).returncode == 3, circuit


# -- front matter ----------------------------------------------------------------------------------------


def test_front_matter_overrides_the_four_numbers(project: Project, clock: Clock) -> None:
    """The seed's example: 3 violations in 14 days open for 48 hours, 600 seconds are one violation."""
    project.constraint(
        ID,
        "severity: CRITICAL\ncircuit_breaker:\n  violation_threshold: 3\n  window_days: 14\n"
        "  cooldown_hours: 48\n  dedup_seconds: 600\n",
    )
    project.constraint("other")
    breaker = opened(project, clock)
    start = clock.now
    breaker.record(ID, "first")
    clock.advance(599)
    breaker.record(ID, "the same")
    assert breaker.status(ID).level == 1
    clock.advance(1)
    breaker.record(ID, "second")
    assert breaker.status(ID).level == 2
    clock.now = start + 14 * 86400
    assert breaker.record(ID, "the first is 14 days old").state == "CLOSED"
    assert breaker.status(ID).level == 2
    for _ in range(2):
        clock.advance("11m")
        breaker.record(ID, "once more")
    assert breaker.status(ID).state == "OPEN"
    clock.advance(48 * 3600 - 1)
    assert not breaker.check(ID).allowed
    clock.advance(1)
    assert breaker.check(ID).allowed
    for _ in range(3):
        breaker.record("other", "x")
        clock.advance("1h")
    assert breaker.status("other").state == "CLOSED"
    assert state_file(project)[ID]["config"] == {
        "violation_threshold": 3,
        "window_days": 14,
        "cooldown_hours": 48,
        "dedup_seconds": 600,
    }


# -- the commands -----------------------------------------------------------------------------------------


def test_the_commands_of_the_seed_from_first_violation_to_reset(project: Project) -> None:
    """check, record, status, history, config, reset: what each prints, and its exit code."""
    project.constraint(ID, f"severity: CRITICAL\n{NO_DEDUP}", "# Never force-push\n")
    project.constraint("quiet-rule")

    check = project.run("check", ID)
    assert (check.returncode, check.stderr) == (0, "")
    assert check.stdout.startswith("ALLOWED")
    assert "0 of 5 within 30d" in check.stdout

    first = project.run("record", ID, "--action", "git push --force origin main", "--session", "sess_abc123")
    assert (first.returncode, first.stderr) == (0, "")
    assert "1 of 5" in first.stdout
    for number in (2, 3):
        assert project.run("record", ID, "--action", f"push {number}").stderr == ""
    fourth = project.run("record", ID, "--action", "push 4")
    assert (fourth.returncode, "Warning" in fourth.stderr, "1 more" in fourth.stderr) == (0, True, True)

    trip = project.run("record", ID, "--action", "push 5")
    assert (trip.returncode, trip.stdout.strip().endswith("OPEN")) == (0, True)
    assert "CIRCUIT OPEN" in trip.stderr
    assert f"fusewire reset {ID} --reason" in trip.stderr
    assert f"fusewire override {ID}" in trip.stderr
    assert "24h" in trip.stderr or "1d" in trip.stderr

    blocked = project.run("check", ID)
    assert blocked.returncode == 3
    assert blocked.stdout.startswith(f"BLOCKED constraint:{ID}: 5 violations within 30d (limit 5)")
    assert "push 5" in blocked.stdout
    assert re.search(r"A probe is allowed at \d{4}-\d\d-\d\d \d\d:\d\d UTC \(in (1d|24h|23h 59m)\)", blocked.stdout)

    groups = project.run("status", "--all").stdout.splitlines()
    heads = [line for line in groups if not line.startswith(" ")]
    assert heads == ["OPEN (1)", "HALF_OPEN (0)", "CLOSED (1)"]
    assert groups[1].split()[0] == ID
    assert "5/5 violations" in groups[1]
    assert groups[-1].split()[0] == "quiet-rule"
    assert "0/5 violations" in groups[-1]

    detail = project.run("status", ID).stdout
    for title in ("State", "Violations", "Configuration", "Recent activity"):
        assert f"\n{title}\n" in detail
    assert "CRITICAL" in detail
    assert "5 of 5 within 30d" in detail
    assert re.search(rf"dedup_seconds +0 +docs/constraints/{ID}\.md", detail)
    assert re.search(r"violation_threshold +5 +default", detail)
    assert re.search(r"push 5", detail)

    history = project.run("history", ID).stdout
    listed = [line for line in history.splitlines() if " violation " in line]
    assert len(listed) == 5
    assert all(ISO_UTC.match(line.strip()) for line in listed)
    assert "push 5" in listed[0]
    assert "sess_abc123" in listed[-1]
    assert "window" in history.splitlines()[-1]

    config = project.run("config", ID).stdout
    assert [line.split()[:2] for line in config.splitlines() if re.match("  [a-z]", line) and ":" not in line] == [
        ["violation_threshold", "5"],
        ["window_days", "30"],
        ["cooldown_hours", "24"],
        ["dedup_seconds", "0"],
        ["mode", "count"],
    ]

    reset = project.run("reset", ID, "--reason", "Root cause fixed")
    assert reset.returncode == 0
    assert f"{ID}: OPEN -> CLOSED" in reset.stdout
    assert re.search(r"Audit: \S+Z OPEN -> CLOSED by .+: Root cause fixed", reset.stdout)
    assert project.run("check", ID).returncode == 0
    assert "Root cause fixed" in project.run("history", ID).stdout
    audit = [json.loads(line) for line in (project.root / ".fusewire/audit.jsonl").read_text().splitlines()]
    assert [(line["from"], line["to"]) for line in audit] == [("closed", "open"), ("open", "closed")]
    assert audit[-1]["reason"] == "Root cause fixed"


def test_the_json_of_every_command(project: Project) -> None:
    """The fields that others rely on, with times in ISO 8601 UTC and numbers as numbers."""
    project.constraint(ID, NO_DEDUP)
    allowed = project.json("check", ID)
    assert set(allowed) >= CHECK_FIELDS
    assert (allowed["decision"], allowed["state"], allowed["phase"]) == ("ALLOWED", "CLOSED", "closed")
    assert (allowed["retry_after"], allowed["rule"], allowed["next"]) == (None, f"constraint:{ID}", [])
    for number in range(4):
        recorded = project.json("record", ID, "--action", f"push {number}", "--session", "s-1")
    assert recorded["decision"] == "WARN"
    assert project.json("record", ID, "--action", "push 5")["tripped"] is True
    blocked = project.json("check", ID)
    assert (blocked["decision"], blocked["state"], blocked["phase"]) == ("BLOCKED", "OPEN", "open")
    assert 86300 < blocked["retry_after"] <= 86400
    assert isinstance(blocked["evidence"], list)
    assert any("reset" in step for step in blocked["next"])
    status = project.json("status", "--all")
    assert set(status) >= {"circuits", "warnings"}
    (circuit,) = status["circuits"]
    assert set(circuit) >= STATUS_FIELDS
    assert (circuit["id"], circuit["kind"], circuit["level"], circuit["threshold"]) == (ID, "constraint", 5, 5)
    assert ISO_UTC.fullmatch(circuit["opened_at"])
    assert circuit["trips"] == 1
    assert status["warnings"] == []
    history = project.json("history", ID)
    assert next(entry["action"] for entry in history["entries"] if entry["kind"] == "bad") == "push 5"
    assert ISO_UTC.fullmatch(history["window_start"])
    assert project.json("config", ID)["config"]["dedup_seconds"] == {
        "value": 0,
        "source": f"docs/constraints/{ID}.md",
    }
    reset = project.json("reset", ID, "--reason", 'quotes " and \\ in a reason')
    assert reset["audit"]["reason"] == 'quotes " and \\ in a reason'
    assert (reset["audit"]["from"], reset["audit"]["to"]) == ("OPEN", "CLOSED")
    assert set(project.json("archive", ID)) == {ID}


def test_a_probe_from_the_command_line(project: Project) -> None:
    """After the cooldown `check` says that it is the probe; `record --ok` closes, `record --action` reopens."""
    project.constraint(ID, NO_DEDUP)
    clock = Clock(datetime.now(UTC).timestamp() - 25 * 3600)
    violate(opened(project, clock), clock, 5, every="1s")
    assert project.json("status", ID)["circuits"][0]["state"] == "HALF_OPEN"
    groups = project.run("status", "--all").stdout
    assert "HALF_OPEN (1)" in groups
    unasked = project.run("record", ID, "--ok")
    assert "HALF_OPEN" in unasked.stdout
    probe = project.run("check", ID)
    assert (probe.returncode, "probe" in probe.stdout) == (0, True)
    assert project.run("check", ID).returncode == 3
    done = project.run("record", ID, "--ok")
    assert (done.returncode, "CLOSED" in done.stdout) == (0, True)
    again = project.run("record", ID, "--action", "once more")
    assert (again.returncode, "OPEN" in again.stdout) == (0, True)


def test_history_marks_the_boundary_of_the_window_and_keeps_what_is_older(project: Project) -> None:
    """Violations outside the window are kept and shown below its boundary; --days widens and narrows the view."""
    project.constraint(ID, "circuit_breaker:\n  window_days: 14\n")
    now = datetime.now(UTC).timestamp()
    clock = Clock()
    breaker = opened(project, clock)
    for days in (40, 20, 10, 1):
        clock.now = now - days * 86400
        breaker.record(ID, f"{days} days ago")
    lines = project.run("history", ID).stdout.splitlines()
    order = [next(word for word in ("1 days", "10 days", "20 days", "window") if word in line) for line in lines[1:]]
    assert order == ["1 days", "10 days", "window", "20 days"]
    assert "40 days ago" in project.run("history", ID, "--days", "60").stdout
    assert "10 days ago" not in project.run("history", ID, "--days", "5").stdout
    entries = project.json("history", ID, "--days", "60")["entries"]
    assert [entry["in_window"] for entry in entries] == [True, True, False, False]


@pytest.mark.parametrize("days", ["nan", "inf", "-1", "0", "soon"])
def test_history_refuses_days_that_are_none(project: Project, days: str) -> None:
    """A span that cannot be shown is wrong usage, not a traceback."""
    project.constraint(ID)
    project.run("record", ID, "--action", "x")
    result = project.run("history", ID, "--days", days)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_record_takes_exactly_one_of_action_and_ok(project: Project) -> None:
    """Neither, both, or an empty action is wrong usage and records nothing."""
    project.constraint(ID)
    for wrong in ((), ("--action", "x", "--ok"), ("--action", " ")):
        assert project.run("record", ID, *wrong).returncode == 2, wrong
    assert project.json("status", ID)["circuits"][0]["total"] == 0


# -- the five failure modes -------------------------------------------------------------------------------


def test_an_unknown_constraint_is_not_found(project: Project) -> None:
    """Every command that takes an id says `Constraint not found: <id>` in one line, and exits 1."""
    project.constraint(ID)
    for arguments in (
        ("status", "nope"),
        ("check", "nope"),
        ("record", "nope", "--action", "x"),
        ("reset", "nope", "--reason", "x"),
        ("history", "nope"),
        ("config", "nope"),
        ("archive", "nope"),
        ("override", "nope", "--reason", "x"),
    ):
        result = project.run(*arguments)
        assert (result.returncode, result.stdout, result.stderr) == (1, "", "Error: Constraint not found: nope\n")
    with pytest.raises(NotFound, match=r"^Constraint not found: nope$"):
        Breaker.open(project=project.root).check("nope")


def test_a_corrupt_state_file_is_set_aside_and_written_anew(project: Project) -> None:
    """The mirror is damaged: a warning on every command, the damaged version kept, the circuit as it was."""
    project.constraint(ID, NO_DEDUP)
    project.run("record", ID, "--action", "first")
    path = project.root / "docs/constraints/.circuit-state.json"
    path.write_text('{"git-safety')
    looked = project.run("status")
    assert looked.returncode == 0
    assert ".circuit-state.json" in looked.stderr
    assert "corrupt" in looked.stderr
    written = project.run("record", ID, "--action", "second")
    assert written.returncode == 0
    assert [v["action"] for v in state_file(project)[ID]["violations"]] == ["second", "first"]
    kept = [file for file in path.parent.iterdir() if file.name.startswith(".circuit-state.json.")]
    assert [file.read_text() for file in kept] == ['{"git-safety']
    assert kept[0].name in project.run("status").stderr


def test_a_corrupt_database_never_closes_a_circuit(project: Project) -> None:
    """Quarantined beside itself, rebuilt from what is there, warned about until a person acknowledges it."""
    project.constraint(ID, NO_DEDUP)
    for number in range(5):
        project.run("record", ID, "--action", f"push {number}")
    database = project.root / ".fusewire/state.db"
    for leftover in database.parent.glob("state.db-*"):
        leftover.unlink()
    database.write_bytes(b"this is not a database " * 1000)
    check = project.run("check", ID)
    assert check.returncode == 3
    assert "Warning" in check.stderr
    assert [p for p in database.parent.iterdir() if p != database and p.name.startswith("state.db.")]
    assert project.json("status")["warnings"]
    assert project.json("status", ID)["circuits"][0]["level"] == 5
    assert project.run("doctor").returncode == 1
    assert project.run("doctor", "--acknowledge").returncode == 0
    assert project.json("status")["warnings"] == []


def test_without_anything_to_rebuild_from_it_starts_empty_with_a_warning(project: Project) -> None:
    """The seed's words: recreate with empty state, log a warning."""
    project.constraint(ID)
    (project.root / ".fusewire").mkdir()
    (project.root / ".fusewire/state.db").write_bytes(b"garbage" * 999)
    result = project.run("record", ID, "--action", "x")
    assert (result.returncode, "1 of 5" in result.stdout) == (0, True)
    assert "Warning" in result.stderr


def test_a_locked_database_is_tried_three_times(project: Project) -> None:
    """Three attempts with a backoff, then one clear line and exit 1; afterwards all is as before."""
    project.constraint(ID)
    project.run("record", ID, "--action", "x")
    other = sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match=r"locked.*3 attempts"):
            Breaker.open(project=project.root, patience=0.01).record(ID, "y")
        result = project.run("record", ID, "--action", "y")
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert result.stderr.startswith("Error: the state database is locked by another process")
        assert "3 attempts" in result.stderr
    finally:
        other.rollback()
        other.close()
    assert project.json("status", ID)["circuits"][0]["total"] == 1


def test_a_lock_that_ends_in_time_is_waited_for(project: Project) -> None:
    """The retry succeeds once the other process lets go: nothing is lost."""
    import threading

    project.constraint(ID)
    project.run("record", ID, "--action", "x")
    other = sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.rollback)
    release.start()
    try:
        assert Breaker.open(project=project.root, patience=0.3).check(ID).allowed
    finally:
        release.join()
        other.close()


def test_an_invalid_transition_names_the_state(project: Project) -> None:
    """`reset` of a closed circuit: `Invalid transition from CLOSED`, exit 1, nothing recorded."""
    project.constraint(ID)
    result = project.run("reset", ID, "--reason", "why not")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Error: Invalid transition from CLOSED\n"
    assert project.json("history", ID)["transitions"] == []


def test_a_config_parse_error_means_defaults_and_a_warning(project: Project) -> None:
    """Front matter that is no YAML: the constraint lives on with the seed's numbers, and every look says so."""
    project.constraint(ID, "circuit_breaker: [unclosed\n")
    result = project.run("config", ID)
    assert result.returncode == 0
    assert re.search(r"violation_threshold +5 +default", result.stdout)
    assert f"docs/constraints/{ID}.md" in result.stderr
    assert "Warning" in result.stderr


# -- the files --------------------------------------------------------------------------------------------


def test_the_state_file_has_the_schema_of_the_seed(project: Project, clock: Clock) -> None:
    """Keys, their order, newest violation first, times in UTC, null where nothing happened."""
    project.constraint(ID)
    breaker = opened(project, clock)
    breaker.record(ID, "force push to feature branch", session="sess_def456")
    clock.advance("4d")
    breaker.record(ID, "git push --force origin main", session="sess_abc123")
    assert (project.root / "docs/constraints/.circuit-state.json").read_text() == (
        """{
  "git-safety-force-push": {
    "state": "CLOSED",
    "violations": [
      {
        "timestamp": "2026-02-17T10:00:00Z",
        "action": "git push --force origin main",
        "session": "sess_abc123"
      },
      {
        "timestamp": "2026-02-13T10:00:00Z",
        "action": "force push to feature branch",
        "session": "sess_def456"
      }
    ],
    "last_trip": null,
    "last_reset": null,
    "config": {
      "violation_threshold": 5,
      "window_days": 30,
      "cooldown_hours": 24,
      "dedup_seconds": 300
    }
  }
}
"""
    )
    for _ in range(3):
        clock.advance("1h")
        breaker.record(ID, "more")
    tripped = clock.now
    assert (state_file(project)[ID]["state"], state_file(project)[ID]["last_trip"]) == ("OPEN", "2026-02-17T13:00:00Z")
    clock.advance("24h")
    breaker.check(ID)
    assert state_file(project)[ID]["state"] == "HALF_OPEN"
    breaker.record(ID, "in the probe")
    breaker.reset(ID, "mended")
    entry = state_file(project)[ID]
    assert (entry["state"], entry["last_trip"], entry["last_reset"]) == (
        "CLOSED",
        "2026-02-18T13:00:00Z",
        "2026-02-18T13:00:00Z",
    )
    assert len(entry["violations"]) == 6
    assert clock.now == tripped + 86400
    assert not list((project.root / "docs/constraints").glob("*.tmp*"))


def test_duplicates_are_no_violations_in_the_file(project: Project, clock: Clock) -> None:
    """The file lists what counts; the history shows the hasty retry as well."""
    project.constraint(ID)
    breaker = opened(project, clock)
    breaker.record(ID, "first")
    clock.advance(10)
    breaker.record(ID, "hasty")
    assert [violation["action"] for violation in state_file(project)[ID]["violations"]] == ["first"]
    assert [row.text for row in breaker.history(ID)] == ["first", "hasty"]


def test_retirement_archives_in_the_schema_of_the_seed(project: Project, clock: Clock) -> None:
    """`status: retired` moves the circuit into the archive: totals, lifetime, trips with how each ended."""
    project.constraint(ID)
    breaker = opened(project, clock)
    violate(breaker, clock, 5)  # 10:00 .. 14:00, now 15:00
    breaker.reset(ID, "by hand")
    violate(breaker, clock, 5)  # 15:00 .. 19:00, now 20:00
    clock.advance("24h")
    breaker.check(ID)
    breaker.record_success(ID)
    clock.advance("10d")
    project.constraint(ID, "status: retired\n")
    from fusewire.breakers.constraint.lifecycle import archive_retired

    assert archive_retired(opened(project, clock)) == [ID]
    entry = archive_file(project)[ID]
    assert list(entry) == [
        "archived",
        "final_state",
        "total_violations",
        "total_trips",
        "lifetime_days",
        "violations",
        "trip_history",
    ]
    assert entry["archived"] == "2026-02-24T20:00:00Z"
    assert (entry["final_state"], entry["total_violations"], entry["total_trips"]) == ("CLOSED", 10, 2)
    assert entry["lifetime_days"] == 11
    assert len(entry["violations"]) == 10
    assert list(entry["violations"][0]) == ["timestamp", "action", "session"]
    assert entry["trip_history"] == [
        {"tripped": "2026-02-13T19:00:00Z", "reset": "2026-02-14T19:00:00Z", "method": "cooldown"},
        {"tripped": "2026-02-13T14:00:00Z", "reset": "2026-02-13T15:00:00Z", "method": "manual"},
    ]
    assert state_file(project) == {}


def test_an_override_is_no_trip_in_the_archive(project: Project, clock: Clock) -> None:
    """The trip history has as many entries as trips, each with its own end."""
    project.constraint(ID)
    breaker = opened(project, clock)
    violate(breaker, clock, 5)
    breaker.override(ID, "emergency", 600)
    clock.advance("1h")
    breaker.reset(ID, "mended")
    from fusewire.breakers.constraint.lifecycle import archive

    entry = archive(breaker, ID, actor="ada")
    assert entry["total_trips"] == 1
    assert entry["trip_history"] == [
        {"tripped": "2026-02-13T14:00:00Z", "reset": "2026-02-13T16:00:00Z", "method": "manual"}
    ]


def test_an_imported_trip_is_archived_with_its_own_time(project: Project, clock: Clock) -> None:
    """A trip that came from a file is dated when it happened, not when the file was imported."""
    project.constraint(ID)
    from fusewire.breakers.constraint.lifecycle import archive, import_states

    entry = {"state": "OPEN", "violations": [], "last_trip": "2026-02-13T08:00:00Z", "last_reset": None}
    breaker = opened(project, clock)
    import_states(breaker, json.dumps({ID: entry}), "old.json", actor="ada")
    clock.advance("1h")
    breaker.reset(ID, "mended")
    assert archive(breaker, ID, actor="ada")["trip_history"] == [
        {"tripped": "2026-02-13T08:00:00Z", "reset": "2026-02-13T11:00:00Z", "method": "manual"}
    ]


def test_retiring_from_the_command_line(project: Project) -> None:
    """The next command that changes circuits archives and says so once; a rule that returns starts anew."""
    project.constraint(ID)
    project.constraint("another-rule")
    project.run("record", ID, "--action", "x")
    project.constraint(ID, "status: retired\n")
    looked = project.run("status", "--all")
    assert ID not in looked.stdout
    assert looked.stderr == ""
    assert ID in project.run("record", "another-rule", "--action", "x").stderr
    assert project.run("record", "another-rule", "--action", "x").stderr == ""
    gone = project.run("check", ID)
    assert gone.returncode == 1
    assert gone.stderr.startswith(f"Error: Constraint not found: {ID}")
    assert archive_file(project)[ID]["total_violations"] == 1
    project.constraint(ID)
    assert project.json("status", ID)["circuits"][0]["total"] == 0
    project.run("record", ID, "--action", "in its second life")
    project.run("archive", ID)
    assert archive_file(project)[ID]["total_violations"] == 2


def test_archiving_what_has_no_circuit_is_an_error(project: Project) -> None:
    """Nothing has happened to it, or it is no constraint: exit 1 and no file."""
    project.constraint(ID)
    for wrong in (ID, "loop/no_progress"):
        result = project.run("archive", wrong)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert not (project.root / "docs/constraints/.circuit-state-archive.json").exists()


def test_an_older_or_hand_edited_file_can_be_imported(project: Project) -> None:
    """Missing keys, the seed's spelling HALF-OPEN, a time without zone; what cannot be used is named."""
    for name in ("full", "bare", "trial", "tripped"):
        project.constraint(name)
    now = datetime.now(UTC)
    stamp = now.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    text = {
        "full": {
            "state": "CLOSED",
            "violations": [
                {"timestamp": stamp, "action": "new", "session": "s"},
                {"timestamp": "2020-01-01T00:00:00", "action": "old"},
            ],
            "last_trip": None,
            "last_reset": "2020-06-01T00:00:00Z",
        },
        "bare": {},
        "trial": {"state": "HALF-OPEN", "violations": [], "last_trip": stamp},
        "tripped": {"state": "OPEN", "last_trip": stamp},
    }
    (project.root / "old.json").write_text(json.dumps(text))
    result = project.run("import", "old.json")
    assert (result.returncode, result.stderr) == (0, "")
    assert "4 circuits imported" in result.stdout
    states = {one["id"]: one for one in project.json("status", "--all")["circuits"]}
    assert {name: one["state"] for name, one in states.items()} == {
        "full": "CLOSED",
        "bare": "CLOSED",
        "trial": "HALF_OPEN",
        "tripped": "OPEN",
    }
    assert (states["full"]["level"], states["full"]["total"]) == (1, 2)
    assert project.run("check", "tripped").returncode == 3
    assert project.run("check", "trial").returncode == 0
    assert set(state_file(project)) == set(states)
    bad = {"full": {"state": "AJAR"}, "bare": {"violations": [{"timestamp": "yesterday"}]}, "trial": 7}
    (project.root / "bad.json").write_text(json.dumps(bad))
    wrong = project.run("import", "bad.json")
    assert wrong.returncode == 1
    for word in ("AJAR", "yesterday", "trial", "bad.json"):
        assert word in wrong.stderr
    assert project.json("status", "full")["circuits"][0]["level"] == 1
    for content in ("[]", "{", ""):
        (project.root / "bad.json").write_text(content)
        broken = project.run("import", "bad.json")
        assert (broken.returncode, "Traceback" in broken.stderr) == (1, False)


def test_a_hand_edited_state_file_is_announced_and_taken_over_on_request(project: Project) -> None:
    """Somebody else's edit is no order: it is shown as a warning, and `import` takes it over."""
    project.constraint(ID, NO_DEDUP)
    for number in range(5):
        project.run("record", ID, "--action", f"push {number}")
    path = project.root / "docs/constraints/.circuit-state.json"
    edited = state_file(project)
    edited[ID]["state"] = "CLOSED"
    edited[ID]["violations"] = edited[ID]["violations"][:2]
    path.write_text(json.dumps(edited))
    looked = project.run("check", ID)
    assert looked.returncode == 3
    assert "import" in looked.stderr
    assert project.run("import").returncode == 0
    assert project.json("status", ID)["circuits"][0]["level"] == 2
    calm = project.run("check", ID)
    assert (calm.returncode, calm.stderr) == (0, "")


# -- the enforcer -----------------------------------------------------------------------------------------


def test_the_flow_of_the_enforcer(project: Project) -> None:
    """check, allow and record, trip and notify, block: the seed's diagram from the command line."""
    project.constraint(ID, NO_DEDUP + FORCE_PUSH)
    action = ("enforce", "--tool", "Bash", "--command", "git push --force origin main")
    harmless = project.run("enforce", "--tool", "Bash", "--command", "git push origin main")
    assert (harmless.returncode, harmless.stderr) == (0, "")
    assert harmless.stdout.startswith("ALLOWED")
    for number in range(1, 5):
        passed = project.run(*action)
        assert (passed.returncode, f"{number} of 5" in passed.stdout) == (0, True)
    trip = project.run(*action)
    assert (trip.returncode, "CIRCUIT OPEN" in trip.stderr) == (0, True)
    blocked = project.run(*action)
    assert blocked.returncode == 3
    assert blocked.stdout.startswith(f"BLOCKED constraint:{ID}")
    assert project.json(*action)["decision"] == "BLOCKED"
    assert project.json("status", ID)["circuits"][0]["level"] == 7
    assert project.run("enforce", "--tool", "Bash", "--command", "git status").returncode == 0
    assert project.run("enforce", "--tool", "Write", "--command", "git push --force").returncode == 0


def test_one_action_may_break_several_constraints(project: Project) -> None:
    """All of them are counted, and one open circuit is enough to block."""
    project.constraint("strict", "circuit_breaker:\n  violation_threshold: 1\n" + FORCE_PUSH)
    project.constraint("mild", NO_DEDUP + FORCE_PUSH)
    action = ("enforce", "--tool", "Bash", "--command", "git push --force")
    for _ in range(2):
        blocked = project.run(*action)
        assert blocked.returncode == 3
        assert "constraint:strict" in blocked.stdout
    levels = {one["id"]: one["level"] for one in project.json("status", "--all")["circuits"]}
    assert levels["mild"] == 2


def test_the_enforcer_knows_a_path_in_every_spelling(project: Project) -> None:
    """Relative, with `..`, absolute, through a link: the same file is the same violation."""
    project.constraint("secrets", NO_DEDUP + "match:\n  path: secrets/**\n")
    (project.root / "secrets").mkdir()
    (project.root / "door").symlink_to("secrets")
    for number, path in enumerate(
        ("secrets/key", "src/../secrets/key", str(project.root / "secrets/key"), "door/key"), 1
    ):
        project.run("enforce", "--tool", "Edit", "--path", path)
        assert project.json("status", "secrets")["circuits"][0]["level"] == number, path
    project.run("enforce", "--tool", "Read", "--path", "secrets/key")
    project.run("enforce", "--tool", "Edit", "--path", "notes/secrets.txt")
    assert project.json("status", "secrets")["circuits"][0]["level"] == 4


def test_a_failed_probe_in_the_enforcer_reopens(project: Project, clock: Clock) -> None:
    """In HALF_OPEN the violation passes, is recorded, and opens the circuit again."""
    from fusewire.core.events import Event

    project.constraint(ID, FORCE_PUSH)
    breaker = opened(project, clock)
    violate(breaker, clock, 5)
    clock.advance("24h")
    event = Event("before_tool", tool="Bash", command="git push --force", call="toolu_1")
    (decision,) = breaker.enforce([ID], event)
    assert (decision.allowed, decision.state, decision.tripped) == (True, "OPEN", True)
    (blocked,) = breaker.enforce([ID], event)
    assert not blocked.allowed


def test_the_state_is_ignored_by_git_from_inside(project: Project) -> None:
    """`.fusewire/` never appears in a commit, and the user's own .gitignore is not touched."""
    project.constraint(ID)
    project.run("record", ID, "--action", "x")
    listed = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=project.root, capture_output=True, text=True, check=True
    ).stdout
    assert ".fusewire" not in listed
    assert "docs/constraints/.circuit-state.json" in listed
    assert not (project.root / ".gitignore").exists()


def test_looking_at_a_project_without_constraints_leaves_no_trace(project: Project, tmp_path: Path) -> None:
    """`status` in a folder that has nothing to do with Fusewire creates nothing."""
    result = project.run("status")
    assert result.returncode == 0
    assert sorted(path.name for path in project.root.iterdir()) == [".git"]

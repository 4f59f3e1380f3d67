"""`fusewire grant`: more dollars by a person's hand, for a session, a day or the project; and by nobody else."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.session.state import SPEND
from fusewire.engine.breaker import Breaker
from tests.helpers.project import Project

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"
WHY = ("--reason", "the migration is worth it")


def message(number: int, tokens: int) -> str:
    usage = {"input_tokens": 0, "output_tokens": tokens}
    told = {"id": f"msg_{number}", "role": "assistant", "model": "claude-opus-5-5", "content": [], "usage": usage}
    return json.dumps({"type": "assistant", "message": told, "sessionId": SESSION}) + "\n"


def call(project: Project, number: int, transcript: Path, **fields: Any) -> str:
    """One call of the agent through the hook: what it is told, empty if the call passes."""
    given = {"tool_use_id": f"toolu_{number}", "tool_input": {"command": f"ls {number}"}, **fields}
    result = project.hook(project.bash("", transcript_path=str(transcript), **given))
    return result.stderr.decode() if result.returncode else ""


@pytest.fixture
def spent(project: Project, tmp_path: Path) -> Path:
    """A session that has spent more than it may: the transcript of it."""
    (project.root / "fusewire.toml").write_text("[tool.resource_limits]\nagent_cost_block_usd = 5\n")
    transcript = tmp_path / f"{SESSION}.jsonl"
    transcript.write_text("")
    assert call(project, 0, transcript) == ""
    tokens = 0
    while known(project) < 5:  # whatever the price is
        tokens += 50_000
        with transcript.open("a") as file:
            file.write(message(tokens, 50_000))
        call(project, tokens, transcript)
    return transcript


def known(project: Project, session: str = SESSION) -> float:
    with Breaker.open(project=project.root) as breaker:
        record = breaker.store.recall(f"session/{session}") or {}
    return float((record.get("spend") or {}).get("usd", 0))


def heard(project: Project, session: str, at: float, **fields: Any) -> None:
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember(f"session/{session}", {"at": at, **fields}, at)
        transaction.remember(f"session/{session}/", {"turn": 1}, at + 1)


def test_a_blocked_session_goes_on_after_a_grant(project: Project, spent: Path) -> None:
    """Refused before, allowed after; the amount is on top of the limit, and it is in the audit trail."""
    refused = call(project, 1, spent)
    assert "Resource limit reached. Pausing to prevent exhaustion." in refused
    again = call(project, 1, spent, tool_use_id="again")
    assert " times, so the agent is stopped; it goes on when a person grants more.\n" in again
    usd = known(project)
    result = project.run("grant", "$5", *WHY)
    assert (result.returncode, result.stderr) == (0, "")
    assert re.sub(r"claude since [^(]*", "", result.stdout) == (
        f"Session ({SESSION[:8]}), tokens at list price: $10.00 allowed now (limit $5.00 and $5.00 granted),"
        f" ${usd:.2f} spent so far\n"
    )
    assert call(project, 2, spent) == ""
    data = project.json("grant", "2.50", "--session", SESSION, *WHY)
    assert (data["granted_usd"], data["allowed_usd"], data["limit_usd"]) == (7.5, 12.5, 5)
    with Breaker.open(project=project.root) as breaker:
        audit = [row for row in breaker.audit(f"tool/spend/{SESSION}") if row.cause == "overridden"]
    assert [row.reason for row in audit] == [f"${amount} more granted: {WHY[1]}" for amount in ("5.00", "2.50")]
    assert all(row.actor not in ("", SESSION) for row in audit)


def left(project: Project) -> float:
    """What `fusewire status` shows of the session's limit, in dollars."""
    (circuit,) = [one for one in project.json("status")["circuits"] if one["id"] == f"tool/spend/{SESSION}"]
    assert circuit["state"] == ("OPEN" if circuit["level"] >= circuit["threshold"] else "CLOSED")
    return float(circuit["threshold"]) - float(circuit["level"])


def test_the_circuit_shows_at_once_what_is_left(project: Project, spent: Path) -> None:
    before = left(project)
    assert before <= 0
    for amount in (2.5, 100):
        assert project.run("grant", str(amount), *WHY).returncode == 0
        before += amount
        assert left(project) == pytest.approx(before)


def test_a_limit_that_is_reached_has_no_reset_and_says_what_helps(project: Project, spent: Path) -> None:
    """It is shown as open, so somebody will try; nothing is changed by that."""
    for circuit in (f"tool/spend/{SESSION}", "tool/spend"):
        refused = project.run("reset", circuit, "--reason", "x")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("Error: Invalid transition from CLOSED; tool.spend has no reset of its own: ")
        assert refused.stderr.endswith("; ask the user to grant more\n")
    assert left(project) <= 0


def test_the_circuit_shows_what_a_message_has_granted(project: Project, spent: Path) -> None:
    before = left(project)
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": "grant another $7", "session_id": SESSION}
    assert project.hook({**prompt, "cwd": str(project.root), "transcript_path": str(spent)}).returncode == 0
    assert call(project, -1, spent) == ""
    assert left(project) == pytest.approx(before + 7)


def test_it_is_for_the_session_heard_of_last(project: Project) -> None:
    """And the grant itself is no word from a session."""
    now = time.time()
    heard(project, "older", now - 100)
    heard(project, "newer", now - 50, spend={"usd": 1.25})
    assert project.json("grant", "1", "--session", "older", *WHY)["key"] == "older"
    data = project.json("grant", "1", *WHY)
    assert (data["key"], data["spent_usd"]) == ("newer", 1.25)
    unknown = project.run("grant", "1", "--session", "nosuch", *WHY)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("Error: no session 'nosuch' has been heard of in this project")


def test_a_warning_is_given_again_after_a_grant(project: Project) -> None:
    heard(project, "s", time.time(), spend_warned=True, granted=2)
    assert project.json("grant", "3", *WHY)["granted_usd"] == 5
    with Breaker.open(project=project.root) as breaker:
        record = breaker.store.recall("session/s") or {}
    assert "spend_warned" not in record
    assert record["granted"] == 5


def test_for_the_day_and_for_the_project(project: Project) -> None:
    """Both are in the project's own table; without a limit there is nothing to lift, and that is said."""
    none = project.run("grant", "5", "--day", *WHY)
    assert none.returncode == 0
    assert "There is no limit for that" in none.stderr
    limits = "api_cost_block_usd_per_day = 10\napi_cost_block_usd_per_project = 100\n"
    (project.root / "fusewire.toml").write_text(f"[tool.resource_limits]\n{limits}")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    day = project.json("grant", "5", "--day", *WHY)
    assert (day["key"], day["granted_usd"], day["allowed_usd"]) == (today, 10, 20)
    total = project.run("grant", "7", "--project-total", *WHY)
    expected = "The project: $107.00 allowed now (limit $100.00 and $7.00 granted), $0.00 spent so far\n"
    assert (total.stdout, total.stderr) == (expected, "")
    with Breaker.open(project=project.root) as breaker:
        assert (breaker.store.recall(SPEND) or {})["granted_for"] == {today: 10, "project": 7}
        assert {row.circuit for row in breaker.audit()} == {"tool/spend_day", "tool/spend_project"}


def test_days_of_the_past_are_forgotten(project: Project) -> None:
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        days = {f"2025-{month:02}-{day:02}": 1 for month in (1, 2) for day in range(1, 29)}
        transaction.remember(SPEND, {"granted_for": {**days, "project": 3}, "usd": 4.5}, 0)
    project.run("grant", "1", "--day", *WHY)
    with Breaker.open(project=project.root) as breaker:
        table = breaker.store.recall(SPEND) or {}
    assert (len(table["granted_for"]), table["granted_for"]["project"], table["usd"]) == (41, 3, 4.5)
    assert max(table["granted_for"].keys() - {"project"}) == time.strftime("%Y-%m-%d", time.gmtime())


@pytest.mark.parametrize(
    "amount", ["0", "0.001", "$", "1000.01", "five", "1e3", "nan", "inf", "5$", "$$5", "1,000", "²", "", "9" * 5000]
)
def test_an_amount_that_makes_no_sense_is_refused(project: Project, amount: str) -> None:
    heard(project, "s", 1.0)
    result = project.run("grant", amount, *WHY)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "is refused as an amount; allowed: dollars above 0, up to 1000" in result.stderr
    with Breaker.open(project=project.root) as breaker:
        assert breaker.store.recall("session/s") == {"at": 1.0}


def test_wrong_usage(project: Project) -> None:
    heard(project, "s", 1.0)
    for arguments in (("5",), ("5", "--reason", " "), (*WHY,), ("5", "--day", "--project-total", *WHY), ("-5", *WHY)):
        assert project.run("grant", *arguments).returncode == 2, arguments


def test_without_a_session_there_is_nothing_to_grant_it_to(project: Project) -> None:
    result = project.run("grant", "5", *WHY)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: no session has been heard of in this project yet; allowed: --session ID")


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_CLI"])
def test_an_agent_grants_itself_nothing(project: Project, variable: str) -> None:
    heard(project, "s", 1.0)
    result = project.run("grant", "5", "--session", "s", *WHY, env={variable: "1"})
    assert (result.returncode, result.stdout) == (3, "")
    with Breaker.open(project=project.root) as breaker:
        assert breaker.store.recall("session/s") == {"at": 1.0}


@pytest.mark.parametrize(
    "command",
    ["fusewire grant 5 --reason x", "env -i fusewire grant 5 --reason x", "python3 -m fusewire grant 5 --reason x"],
)
def test_nor_does_the_hook_let_it_try(project: Project, command: str) -> None:
    result = project.hook(project.bash(command))
    assert result.returncode == 2
    assert b"`fusewire grant` is for a person at a terminal" in result.stderr

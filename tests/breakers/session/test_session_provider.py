"""What hooks learn of a provider's limit, whom they tell, and what they must not take for one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents import agent_named
from fusewire.gate import process as gate
from fusewire.scopes.providers import Providers, Refusal
from fusewire.scopes.user import database_path, is_any_limited
from tests.helpers import SOURCE
from tests.helpers.project import Project

CLAUDE, CODEX = "provider/anthropic", "provider/openai"
HOUR = 3600.0
SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"


@pytest.fixture
def quick(project: Project) -> Project:
    project.starts_hooks = False
    return project


def payload(project: Project, hook: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": hook, "session_id": SESSION, "cwd": str(project.root), **fields}


def transcript(tmp_path: Path, *records: dict[str, Any]) -> str:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return str(path)


def iso(offset: float = 0.0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + offset)) + ".999Z"


def refused(resets_in: float | None, **fields: Any) -> dict[str, Any]:
    """As Claude Code 2.1.325 records a request that a limit refused."""
    quota = {} if resets_in is None else {"resetsAt": int(time.time() + resets_in), "rateLimitType": "five_hour"}
    record = {"type": "assistant", "error": "rate_limit", "isApiErrorMessage": True, "timestamp": iso()}
    return {**record, **({"quotaLimits": quota} if quota else {}), **fields}


def answered(offset: float = 0.0) -> dict[str, Any]:
    return {"type": "assistant", "message": {"model": "claude-opus-5", "content": []}, "timestamp": iso(offset)}


def remark(done: Any) -> str:
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout or b"{}").get("systemMessage", ""))


def codex(project: Project, given: dict[str, Any]) -> tuple[str, str, int]:
    return gate.answer(agent_named("codex"), json.dumps(given).encode(), {}, start=str(project.root))


# -- what opens the circuit -----------------------------------------------------------------------------------


def test_a_turn_that_ended_at_the_limit_opens_the_circuit(project: Project, tmp_path: Path) -> None:
    """As a process, which answers nothing; the end stands in the session's record."""
    path = transcript(tmp_path, answered(-60), refused(2 * HOUR))
    done = project.hook(payload(project, "StopFailure", error="rate_limit", transcript_path=path))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    decision = Providers().look(CLAUDE)
    assert decision.verdict == "deny"
    assert 2 * HOUR - 60 < (decision.retry_after or 0) < 2 * HOUR + 3
    assert "(five_hour)" in decision.reason
    assert f"seen by claude session 479528ae in {project.root.name}" in decision.reason


@pytest.mark.parametrize(("error", "wait"), [("rate_limit", 300), ("overloaded", 10), ("server_error", 10)])
def test_without_a_record_the_end_is_not_known(quick: Project, error: str, wait: float) -> None:
    quick.hook(payload(quick, "StopFailure", error=error))
    assert wait - 5 < (Providers().look(CLAUDE).retry_after or 0) <= wait


@pytest.mark.parametrize(
    "error",
    ["invalid_request", "authentication_failed", "billing_error", "max_output_tokens", "unknown", "429", "", None, 429],
)
def test_other_errors_are_the_sessions_own(quick: Project, tmp_path: Path, error: Any) -> None:
    """Also where their words speak of a limit."""
    path = transcript(tmp_path, answered())
    said = {"error": error, "error_details": "429 rate_limit", "last_assistant_message": "rate limit reached"}
    quick.hook(payload(quick, "StopFailure", transcript_path=path, **said))
    assert not is_any_limited()


@pytest.mark.parametrize("resets_in", [-HOUR, 90 * 86400.0])
def test_an_end_that_cannot_be_one_is_not_believed(quick: Project, tmp_path: Path, resets_in: float) -> None:
    path = transcript(tmp_path, refused(resets_in))
    quick.hook(payload(quick, "StopFailure", error="rate_limit", transcript_path=path))
    assert 290 < (Providers().look(CLAUDE).retry_after or 0) <= 300


@pytest.mark.parametrize(
    ("used", "resets_in", "credits", "opens"),
    [
        (100.0, HOUR, None, True),
        (99.9, HOUR, None, False),
        (100.0, -60, None, False),
        (100.0, HOUR, {"has_credits": True}, False),
        (100.0, HOUR, {"has_credits": False, "unlimited": False}, True),
    ],
    ids="full nearly over credits none".split(),
)
def test_codex_records_at_its_stop_that_a_window_is_full(
    project: Project, tmp_path: Path, used: float, resets_in: float, credits: Any, opens: bool
) -> None:
    window = {"used_percent": used, "window_minutes": 300, "resets_at": int(time.time() + resets_in)}
    limits = {"primary": window, "secondary": None, "credits": credits}
    record = {"timestamp": iso(), "type": "event_msg", "payload": {"type": "token_count", "rate_limits": limits}}
    codex(project, payload(project, "Stop", transcript_path=transcript(tmp_path, record)))
    assert is_any_limited() == opens
    assert Providers().look(CODEX).allowed != opens
    assert [one.used for one in Providers().windows(CODEX)] == [used / 100]
    assert Providers().look(CLAUDE).allowed


def test_words_in_calls_results_and_prompts_are_no_limit(quick: Project, tmp_path: Path) -> None:
    """Must not fire: a command, its result, an HTTP 429 of the agent's own program, a prompt, an answer."""
    path = transcript(tmp_path, answered())
    command = "curl -sf https://api.example/v1 || echo 'HTTP 429 rate_limit_error'; pytest -k test_429"
    quick.hook(quick.bash(command, transcript_path=path))
    response = {"stdout": "HTTP/1.1 429 Too Many Requests\nrate_limit_error", "stderr": "", "is_error": True}
    calls = [{"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": response, "tool_use_id": "t"}]
    quick.hook(payload(quick, "PostToolBatch", tool_calls=calls, transcript_path=path))
    quick.hook(payload(quick, "UserPromptSubmit", prompt="You've hit your rate limit (429)", transcript_path=path))
    quick.hook(payload(quick, "Stop", last_assistant_message="429: usage limit reached", transcript_path=path))
    assert not is_any_limited()


def test_a_session_that_is_resumed_after_its_limit_opens_nothing(quick: Project, tmp_path: Path) -> None:
    """The refusal is the last thing in its record: only a turn that ends is news."""
    path = transcript(tmp_path, refused(2 * HOUR))
    quick.hook(payload(quick, "SessionStart", source="resume", transcript_path=path))
    quick.hook(payload(quick, "UserPromptSubmit", prompt="Go on.", transcript_path=path))
    assert not is_any_limited()


# -- what closes it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resets_in", [-60.0, 2 * HOUR])
def test_a_turn_that_was_answered_closes_the_circuit(quick: Project, tmp_path: Path, resets_in: float) -> None:
    Providers().refused(CLAUDE, Refusal("five_hour", time.time() + resets_in))
    quick.hook(payload(quick, "Stop", transcript_path=transcript(tmp_path, refused(HOUR), answered(5))))
    assert not is_any_limited()


@pytest.mark.parametrize("records", [(answered(-600),), (answered(-600), refused(HOUR))], ids=["before", "refused"])
def test_a_stop_without_a_new_answer_closes_nothing(quick: Project, tmp_path: Path, records: Any) -> None:
    Providers().refused(CLAUDE, Refusal("five_hour", time.time() + 2 * HOUR))
    quick.hook(payload(quick, "Stop", transcript_path=transcript(tmp_path, *records)))
    assert not Providers().look(CLAUDE).allowed


# -- whom it tells --------------------------------------------------------------------------------------------


def test_a_person_is_told_once_and_nothing_is_refused(quick: Project) -> None:
    Providers().refused(
        CLAUDE, Refusal("five_hour", time.time() + HOUR, agent="claude", session="other", root="/p/shop")
    )
    prompt = payload(quick, "UserPromptSubmit", prompt="Go on.")
    said = remark(quick.hook(prompt))
    assert said.startswith("fusewire: anthropic: the provider's limit is reached (five_hour) since ")
    assert said.endswith("; seen by claude session other in shop. Loops wait for it; this session may go on.")
    assert remark(quick.hook(prompt)) == ""
    assert remark(quick.hook(quick.bash("make"))) == ""
    started = payload(quick, "SessionStart", source="startup")
    assert "five_hour" in remark(quick.hook({**started, "session_id": "another"}))


def test_sessions_of_other_providers_and_accounts_are_told_nothing(quick: Project, tmp_path: Path) -> None:
    Providers().refused(CODEX, Refusal("usage limit", time.time() + HOUR))
    prompt = payload(quick, "UserPromptSubmit", prompt="Go on.")
    assert remark(quick.hook(prompt)) == ""
    Providers().refused(CLAUDE, Refusal("five_hour", time.time() + HOUR))
    assert remark(quick.hook(prompt, env={"CLAUDE_CONFIG_DIR": str(tmp_path / "work")})) == ""
    assert "five_hour" in remark(quick.hook(prompt))


def test_a_call_looks_at_no_store_of_the_person(quick: Project) -> None:
    """It may be damaged or locked: the hot path does not know it, however limited a provider is."""
    Providers().refused(CLAUDE, Refusal("five_hour", time.time() + HOUR))
    Path(database_path()).write_bytes(b"damaged" * 1000)
    done = quick.hook(quick.bash("make"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert Path(database_path()).read_bytes() == b"damaged" * 1000


@pytest.mark.parametrize("hook", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_where_nothing_is_limited_a_hook_loads_nothing_of_it(project: Project, hook: str) -> None:
    """It pays one look at the disk."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", str(SOURCE / "hook.py"), "claude"]
    given = json.dumps(payload(project, hook, prompt="Go on.", source="startup")).encode()
    done = subprocess.run(command, input=given, cwd=project.root, capture_output=True, timeout=60, check=True)
    assert b"fusewire.scopes.user" in done.stderr
    assert b"provider" not in done.stderr


def test_a_store_that_cannot_be_read_is_said_and_stops_no_session(
    quick: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Providers().refused(CLAUDE, Refusal("five_hour", time.time() + HOUR))
    folder = Path(database_path()).parent
    broken = tmp_path / "state" / "fusewire"
    broken.mkdir(parents=True)
    (broken / "providers.json").write_bytes((folder / "providers.json").read_bytes())
    (broken / "user.db").symlink_to("/proc/nowhere/user.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(broken.parent))
    done = quick.hook(payload(quick, "UserPromptSubmit", prompt="Go on."))
    assert done.returncode == 0
    assert "what is known of the providers cannot be read: " in remark(done)

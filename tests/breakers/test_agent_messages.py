"""What agents are told by every rule of the five breakers: short, with a reason, a next step and a time, and nothing
that does not fit. New rules are found by themselves: the table is the policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from fusewire import Breaker
from fusewire.breakers.session.halting import halt
from fusewire.breakers.session.messages import refusal_text, warning_text
from fusewire.breakers.session.unit_of_work import UnitOfWork
from fusewire.config.rules import load_rules
from fusewire.core.decision import Decision
from fusewire.core.events import Event, Signal
from fusewire.core.messages import agent_message
from fusewire.core.meters import Meter
from tests.helpers.project import Project
from tests.helpers.session_hook import Session, move_clock

NOW = 1_790_000_000.0
SESSION = "479528ae-91f4-4945-992c-9db9f0bba192:a7f7d1ce47f1ddb39"
PARTS = {
    "{hook}": f"format-everything/{SESSION}",
    "{tool}": f"Bash(run-the-integration-tests.sh)/{SESSION}",
    "{session}": SESSION,
    "{loop}": f"{SESSION}/0a1b2c3d4e5f",
    "{provider}": "anthropic",
    "{account}": "~/.claude-work api-key",
    "{slice}": "checkout-service-12",
    "{test}": "tests/integration/test_login.py::TestSessions::test_a_conflict_is_reported",
}
CALL = "Bash: docker compose -f deploy/compose.integration.yml run --rm runner pytest -q tests/integration -k conf..."

#: What no agent is told: plurals of one, counts of different things as one, two stops, words for programs.
UNFIT = re.compile(
    r"\b1 (calls|agents|times|turns|iterations|failures|violations|attempts|rounds|denials)\b"
    r"|(?<!\.)\.\.(?!\.)|\?\.|\bNone\b|\{\w+\}|  "
)
COUNT = re.compile(r"\b(\d+) (?:times?|rounds?)\b")


def check(text: str, *, waits: bool = False) -> None:
    """What holds of every message; `waits`: a time can be told."""
    assert 0 < len(text) < 600, f"{len(text)} characters:\n{text}"
    assert not UNFIT.search(text), f"{UNFIT.search(text)}:\n{text}"
    assert len(set(COUNT.findall(re.sub(r"efused \d+ times", "", text)))) <= 1, text
    assert "\nNext: " in text, text
    if text.startswith("HALTED") or "agent is stopped" in text:
        assert " UTC" not in text, text
        assert "Cooldown:" not in text, text
        assert "goes on when a person " in text, text
    elif waits:
        assert re.search(r"\d\d:\d\d( UTC|:\d\d UTC)", text), text


def templates() -> list[str]:
    return sorted([*(one for one in load_rules("/").policies if one != "{constraint}"), "git-safety-force-push"])


@pytest.fixture
def breaker(project: Project) -> Iterator[Breaker]:
    project.constraint("git-safety-force-push", "title: Never force-push\n")
    with Breaker.open(project=project.root, clock=lambda: NOW) as opened:
        yield opened


def filled(template: str) -> str:
    return "/".join(PARTS.get(part, part) for part in template.split("/"))


def signals(meter: Meter, circuit: str) -> Iterator[Signal]:
    """What fills a meter until it warns and trips, and one more question."""
    kind: Any = "ask" if meter.trip_by == "ask" else "note"
    for number in range(1, 110):
        value = {"gauge": number, "trend": max(0, 5000 - 2400 * number), "last_sum": -1}.get(meter.family, 1)
        value = -1 if meter.trip_by == "below" else value
        yield Signal(kind, circuit, meter.on, value=value, turn=1, text=CALL, session=SESSION, fingerprint="same")
        if meter.limits:
            name = "action" if "*" in meter.checks else meter.checks[0] if meter.checks else meter.on
            yield Signal("ask", circuit, name, turn=1, text=CALL, session=SESSION)


def decisions(breaker: Breaker, template: str, meter: Meter) -> dict[str, Decision]:
    """The first decision of each kind: told, tripped, refused; then another caller during the trial."""
    found: dict[str, Decision] = {}
    circuit = filled(template)
    for signal in signals(meter, circuit):
        (decision,), _ = breaker.engine.apply([signal])
        kind = "tripped" if decision.tripped and signal.kind != "ask" else "told" if decision.allowed else "refused"
        if decision.verdict != "allow" or decision.tripped:
            found.setdefault(kind, decision)
        if decision.phase == "open":
            (found["refused"],), _ = breaker.engine.apply([Signal("ask", circuit, "action", text=CALL)])
            break
    return found


def of_each_meter(breaker: Breaker, template: str) -> Iterator[dict[str, Decision]]:
    """What the circuit says when each of its meters alone has filled; in the end it refuses."""
    for meter in breaker.rules.policy(filled(template)).meters:
        with breaker.store.transact() as transaction:
            transaction.remove(filled(template))
        found = decisions(breaker, template, meter)
        assert "refused" in found, f"{template} {meter.name} was never refused"
        yield found


@pytest.mark.parametrize("template", [one for one in templates() if not one.startswith("tool/")])
def test_a_rule_outside_of_the_session(breaker: Breaker, template: str) -> None:
    """Loop, phase, attempt and constraint: told, tripped, refused, and halted with it."""
    policy = breaker.rules.policy(filled(template))
    for found in of_each_meter(breaker, template):
        for kind in ("tripped", "refused"):
            if kind in found:
                check(agent_message(found[kind], NOW), waits=policy.schedule != "none")
        check(agent_message(found["refused"].replace(verdict="halt"), NOW))


@pytest.mark.parametrize("template", [one for one in templates() if one.startswith("tool/")])
def test_a_rule_of_the_session(breaker: Breaker, template: str) -> None:
    policy = breaker.rules.policy(filled(template))
    for found in of_each_meter(breaker, template):
        event = Event("before_tool", tool="Bash", command="x", session=SESSION)
        with breaker.store.transact() as transaction:
            unit = UnitOfWork(transaction, breaker.rules, event, NOW)
            for kind in ("told", "tripped"):
                if kind in found:
                    check(warning_text([found[kind]], unit), waits=found[kind].retry_after is not None)
                    check(warning_text([found[kind]] * 4, unit), waits=False)
            check(refusal_text(found["refused"], unit, 0), waits=policy.schedule != "none")
            for times in (1, 3):
                text = refusal_text(found["refused"], unit, times)
                check(text)
                assert halt(unit, policy.name, text).text == text


def test_thresholds_of_one_are_singular(project: Project) -> None:
    """Whatever is configured: 1 agent, 1 turn, 1 call."""
    counts = [name for name, setting in load_rules(str(project.root)).tool.items() if type(setting) is int]
    counts = [
        name
        for name in counts
        if re.search(r"threshold|window_turns|_per_minute|max_agents|max_conc|session_max$", name)
    ]
    (project.root / "fusewire.toml").write_text("[tool]\n" + "".join(f'"{name}" = 1\n' for name in counts))
    with Breaker.open(project=project.root, clock=lambda: NOW) as breaker:
        for template in templates():
            if template.startswith("tool/"):
                for meter in breaker.rules.policy(filled(template)).meters:
                    for decision in decisions(breaker, template, meter).values():
                        assert not UNFIT.search(decision.reason), decision.reason


# -- through the hooks ------------------------------------------------------------------------------------------------


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    return Session(project)


class Said:
    """Every text that an agent was given, in order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.texts: list[str] = []

    def call(self, tool: str, given: dict[str, Any], **more: Any) -> str:
        asked, after = self.session.tool(tool, given, **more)
        text = asked.reason or asked.told or after.told or str(after.json.get("stopReason", ""))
        self.texts += [text] if text else []
        return text

    def bash(self, command: str, output: str = "", error: str | None = None) -> str:
        response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return self.call("Bash", {"command": command}, response=response, error=error)


def fails_a_test(said: Said) -> None:
    for _ in range(8):
        said.bash("pytest -q tests", error="Exit code 1\n1 failed in 0.31s")


def fails_a_tool(said: Said) -> None:
    for _ in range(8):
        said.call("mcp__files__move", {"path": "a"}, error="no such file: a")


def repeats_a_look(said: Said) -> None:
    for _ in range(10):
        said.call("Read", {"file_path": "/home/dev/project/a.py"}, response="x = 1")


def waits(said: Said) -> None:
    for _ in range(40):
        said.bash("sleep 0.1; cat status.txt", "pending")


def edits_the_same(said: Said) -> None:
    for _ in range(10):
        said.bash("sed -i s/a/b/ config.py", "")


def goes_in_rounds(said: Said) -> None:
    for number in range(20):
        said.call("Read", {"file_path": f"/home/dev/project/{'abc'[number % 3]}.py"}, response="x = 1")


def meets_one_error(said: Said) -> None:
    for number in range(20):
        said.call("mcp__db__run", {"query": f"select {number}"}, error="connection refused by the database")


def looks_in_wrong_places(said: Said) -> None:
    for number in range(30):
        said.call("Read", {"file_path": f"/home/dev/project/{number}.py"}, error="File does not exist.")


def starts_agents(said: Said) -> None:
    for number in range(12):
        given = {"description": f"part {number}", "prompt": "do it", "subagent_type": "general-purpose"}
        asked, _ = said.session.before("Agent", given)
        said.texts += [asked.reason] if asked.reason else []


def starts_agents_in_a_line(said: Said) -> None:
    said.bash("; ".join(["claude -p hello"] * 7))
    assert "wait for a running agent" not in said.texts[0]
    assert "waiting does not help" in said.texts[0]


def calls_an_api(said: Said) -> None:
    for number in range(12):
        said.bash(f"python oracle.py {number}", "answer")
    said.bash("; ".join(["python oracle.py"] * 30))


def calls_in_a_row(said: Said) -> None:
    for _ in range(14):
        asked, _ = said.session.before("WebFetch", {"url": "https://example.org"})
        said.texts += [asked.reason] if asked.reason else []


def pushes_with_force(said: Said) -> None:
    said.session.project.constraint(
        "no-force",
        "title: Never force-push\nmatch:\n  - tool: Bash\n    command: git push --force\n"
        "circuit_breaker:\n  violation_threshold: 2\n  dedup_seconds: 0\n",
    )
    for number in range(9):
        said.bash(f"git push --force origin b{number % 2}")


SCENES = [
    (fails_a_test, "tool.tool_failure"),
    (fails_a_tool, "tool.tool_failure"),
    (repeats_a_look, "tool.repetition"),
    (waits, "tool.repetition"),
    (edits_the_same, "tool.same_mutation"),
    (goes_in_rounds, "tool.cycle"),
    (meets_one_error, "tool.tool_failure"),
    (looks_in_wrong_places, "tool.same_error"),
    (starts_agents, "tool.agents"),
    (starts_agents_in_a_line, "tool.agents"),
    (calls_an_api, "tool.external_api"),
    (calls_in_a_row, "tool.sequential_tools"),
    (pushes_with_force, "constraint:no-force"),
]


@pytest.mark.parametrize(("scene", "rule"), SCENES, ids=[scene.__name__ for scene, _ in SCENES])
def test_what_a_session_is_told(session: Session, scene: Any, rule: str) -> None:
    said = Said(session)
    scene(said)
    assert any(rule in text for text in said.texts), said.texts
    for text in said.texts:
        check(text)
        if scene not in (fails_a_tool, meets_one_error, calls_in_a_row):
            assert "scratch script" not in text, text
        if rule == "tool.agents":
            assert "SUDO PARALLEL" in text, text
    if scene is waits:
        assert any("brought the same result 16 times." in text for text in said.texts), (
            "the number, not a quarter of it"
        )


def test_the_workaround_is_said_where_it_helps(session: Session) -> None:
    """The seed's own: for a tool that is neither a program nor an agent."""
    said = Said(session)
    meets_one_error(said)
    assert any("use a scratch script or agent delegation instead" in text for text in said.texts)


def test_others_are_told_that_a_trial_runs(session: Session) -> None:
    """No cooldown, and no time at which it resets: whoever asks meanwhile waits for the trial's result."""
    for _ in range(3):
        session.fails("make deploy")
    move_clock(session.project, 601)
    assert session.before("Bash", {"command": "make deploy"})[0].allowed
    asked, _ = session.before("Bash", {"command": "make deploy"})
    check(asked.reason, waits=True)
    assert "a trial call is running" in asked.reason
    assert "Ask again when the trial call has ended, " in asked.reason
    assert "Cooldown" not in asked.reason
    assert "one call is allowed" not in asked.reason


def test_a_limit_that_no_time_lifts_says_so(project: Project, session: Session) -> None:
    """And how a person can: the API calls of a session."""
    settings = {"external_api.session_max": 3, "resource_limits.api_session_max": 3}
    lines = [f'"{name}" = {json.dumps(value)}' for name, value in settings.items()]
    (project.root / "fusewire.toml").write_text("\n".join(["[tool]", *lines]) + "\n")
    said = Said(session)
    for number in range(4):
        said.bash(f"python oracle.py {number}", "answer")
    (text,) = said.texts
    check(text)
    assert "Next: do the rest without external APIs" in text
    assert "wait" not in text
    assert "A person can " in text

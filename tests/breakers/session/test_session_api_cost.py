"""What calls of external APIs cost: what they report, the limits on it, and what a person adds to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fusewire.breakers.session.api_cost import reported
from fusewire.engine.breaker import Breaker
from tests.breakers.session.test_session_limits import LIMIT, audit, limits
from tests.helpers.paying import paying
from tests.helpers.project import Project
from tests.helpers.session_hook import Session, move_clock

WHY = ("--reason", "worth it")
ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}


@pytest.fixture(autouse=True)
def _hooks_in_this_process(project: Project) -> None:
    project.starts_hooks = False


@pytest.fixture
def session(project: Project) -> Session:
    limits(project, resource_limits__api_rate_limit_per_minute=900, external_api__threshold=900)
    return Session(project)


def asks(session: Session, output: str = "an answer", number: int = 0) -> Any:
    """One question to the oracle and what it prints: what the hook says before it."""
    return session.bash(f"python oracle.py {number} {session.calls}", output)[0]


# -- what is reported -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "dollars"),
    [
        ("cost: $0.12", 0.12),
        ("An answer.\n\nCost: $0.12\n", 0.12),
        ("  total cost: $1.5  ", 1.5),
        ("cost_usd: 0.12", 0.12),
        ("cost = 0.12 USD", 0.12),
        ("cost (USD): 0.12", 0.12),
        ("[oracle] API call cost: $0.12", 0.12),
        ("estimated cost: $0", 0.0),
        ('{"answer": "42", "cost_usd": 0.12}', 0.12),
        ('{\n  "total_cost_usd": 1e-3\n}', 0.001),
        ('{"total_cost": 0.5}', 0.5),
        ('{"cost_usd": "0.12"}', 0.12),
        ('[{"type": "text", "text": "{\\"cost_usd\\": 0.12}"}]', 0.12),
        ("cost: $0.10\ncost: $0.20", 0.3),
        ("cost: $0.10\ncost: $0.20\ntotal cost: $0.30", 0.3),
        ('{"calls": [{"cost_usd": 1}, {"cost_usd": 2}], "total_cost": 3}', 3),
        ("total cost: $0.10\ntotal cost: $0.30", 0.3),
        ('{"cost_usd": 0.12}\ncost: $0.12', 0.12),
    ],
)
def test_a_cost_that_is_reported(output: str, dollars: float) -> None:
    """In a line of its own or a field of JSON; each dollar once."""
    assert reported(output) == pytest.approx(dollars)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "an answer",
        "the cost: $20",
        "The new bridge has a total cost of $20.",
        "- cost: $20",
        "cost: 12",
        "cost: 12 tokens",
        "cost: $-1",
        "cost: -$1",
        "cost: $1,200",
        "cost: $5000",
        "cost: $nan",
        "cost: $1e999",
        "cost:",
        "cost: $",
        "costs: $1",
        "low cost: $1",
        '{"cost_usd": null}',
        '{"cost_usd": {"a": 1}}',
        '{"cost_usd": true}',
        '{"my_cost_usd": 1}',
        '"cost_usd"',
        f"cost: ${'9' * 5000}",
        f"{'x' * 500} cost: $1",
    ],
)
def test_what_only_looks_like_a_cost(output: str) -> None:
    """Prose, other units, and numbers that are none."""
    assert reported(output) is None


def test_the_totals_of_two_calls_of_one_line_are_added() -> None:
    assert reported("total cost: $0.10\ntotal cost: $0.30", times=2) == pytest.approx(0.4)


# -- the limits -------------------------------------------------------------------------------------------


def test_told_once_from_one_dollar_on_and_refused_from_five(project: Project, session: Session) -> None:
    """Only the calls that cost something; never a halt, however often they are asked for."""
    assert asks(session, "cost: $0.99").silent
    assert asks(session, '{"cost_usd": 0.01}').silent
    told = asks(session, "cost: $4.00").told
    assert told.splitlines() == [
        "WARNING tool.api_cost: $1.00 spent on external APIs in this session (limit $5.00).",
        "Next: go on; from the limit on calls of external APIs are refused.",
        'A person can say "grant another $5" to the agent, or run: fusewire grant 5 --reason "..."',
    ]
    for _ in range(8):
        said, _ = session.before("Bash", {"command": "python oracle.py again"})
        assert (said.code, said.halted) == (2, False)
        assert said.reason.splitlines() == [
            f"BLOCKED tool.api_cost: {LIMIT} $5.00 spent on external APIs in this session (limit $5.00).",
            "Next: go on with what needs no external API; ask the user to grant more.",
            'A person can say "grant another $5" to the agent, or run: fusewire grant 5 --reason "..."',
        ]
    assert session.bash("ls", "a")[0].silent
    assert asks(Session(project, id="another")).silent


def test_what_the_agent_spends_itself_is_another_budget(project: Project) -> None:
    """Dollars of tokens are no dollars of external APIs, and the other way round."""
    payer = paying(project)
    payer.pays(9)
    assert asks(payer, "cost: $4.90").silent
    assert payer.asks().silent
    cost = project.json("status", "--session")["resources"]["cost"]
    assert (cost["usd"], cost["limit_usd"], cost["external"]["usd"]) == (9, 25, 4.9)


def test_an_estimate_where_nothing_is_reported(project: Project, session: Session) -> None:
    limits(project, external_api__cost_usd_per_call=0.5)
    asks(session)
    asks(session, "cost: $0.10")
    session.fails("python oracle.py broken", "Exit code 1\nno network")
    session.bash("python oracle.py a; python swarm.py b", "x")
    session.bash("cat oracle.py", "cost: $3")
    assert spent(project) == pytest.approx(0.5 + 0.1 + 0.5 + 1.0)


def test_what_other_commands_print_costs_nothing(project: Project, session: Session) -> None:
    session.bash("cat notes.md", "cost: $3")
    session.bash("python report.py", '{"total_cost": 7}')
    assert spent(project) == 0


def spent(project: Project) -> float:
    return float(project.json("status", "--session")["resources"]["cost"]["external"]["usd"])


def test_a_script_reports_its_cost_by_a_command(project: Project, session: Session) -> None:
    """Also inside an agent, because it only takes away; then nothing is estimated for the call."""
    limits(project, external_api__cost_usd_per_call=0.5)
    _, call = session.before("Bash", {"command": "python oracle.py q"})
    done = project.run("spend", "add", "0.125", "--source", "oracle", env={"CLAUDE_CODE_SESSION_ID": session.id})
    assert done.returncode == 0
    assert done.stdout.startswith("Added $0.1250 of oracle: session claude since ")
    assert done.stdout.endswith(f" ({session.id[:8]}) has spent $0.12 of $5.00 on external APIs\n")
    session.send("PostToolUse", **call, tool_response={"stdout": f"an answer\n{done.stdout}", "stderr": ""})
    assert spent(project) == pytest.approx(0.125)
    assert project.json("spend", "add", "$4.875", "--source", "swarm")["api_usd"] == 5
    assert not asks(session).allowed
    (listed,) = project.json("spend")["sessions"]
    assert (listed["usd"], listed["api_usd"]) == (0, 5)
    assert "and $5.00 on external APIs" in project.run("spend").stdout


def test_a_report_that_makes_no_sense_is_refused(project: Project, session: Session) -> None:
    session.bash("ls", "x")
    for usage in (("add",), ("add", "1"), ("add", "1", "--source", " "), ("add", "1", "2", "--source", "x")):
        assert project.run("spend", *usage).returncode == 2, usage
    assert project.run("spend", "t.jsonl", "--source", "x").returncode == 2
    for amount in ("-1", "0", "five", "nan", "1001"):
        result = project.run("spend", "add", "--source", "x", "--", amount)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), amount
    unknown = project.run("spend", "add", "1", "--source", "x", "--session", "nobody")
    assert (unknown.returncode, "no session 'nobody' has been heard of" in unknown.stderr) == (1, True)
    assert spent(project) == 0


def test_the_day_has_one_limit_for_tokens_and_external_apis(project: Project) -> None:
    limits(project, resource_limits__api_cost_block_usd_per_day=3)
    payer = paying(project)
    payer.pays(2)
    assert asks(payer, "cost: $0.90").silent
    assert payer.asks().silent
    assert asks(payer, "cost: $0.20").silent
    said = payer.asks()
    assert said.halted
    assert "$3.10 spent today in this project (limit $3.00)" in said.reason


# -- the agent's own tokens -------------------------------------------------------------------------------


def test_where_a_person_can_answer_tokens_have_no_limit_of_their_own(project: Project) -> None:
    """They are shown all the same; a limit that a person sets holds."""
    payer = paying(project)
    payer.env = ATTENDED
    payer.pays(60)
    assert payer.asks().silent
    assert "Tokens of the agent: $60.00 at list price, no limit" in project.run("status", "--session").stdout
    limits(project, resource_limits__agent_cost_block_usd=50)
    payer.pays(0.5)
    said = payer.asks()
    assert said.halted
    assert "$60.50 spent in this session at list price (limit $50.00)" in said.reason


def test_unattended_a_session_has_25_dollars(project: Project) -> None:
    payer = paying(project)
    payer.pays(19.9)
    assert payer.asks().silent
    payer.pays(0.2)
    assert "$20.10 spent in this session at list price (limit $25.00)" in payer.asks().told
    payer.pays(5)
    said = payer.asks()
    assert said.halted
    assert "resource_limits.agent_cost_block_usd_unattended" in said.reason
    limits(project, resource_limits__agent_cost_block_usd_unattended=0)
    assert payer.asks().silent


# -- what a person grants ---------------------------------------------------------------------------------


def test_a_grant_is_for_the_budget_that_is_nearer_to_its_end(project: Project) -> None:
    payer = paying(project)
    payer.pays(1)
    asks(payer, "cost: $5")
    assert not asks(payer).allowed
    assert payer.says("can you grant another $5?").silent
    assert not asks(payer).allowed
    said = payer.says("grant another $5")
    assert "this session may spend $10.00 on external APIs" in said.json["systemMessage"]
    assert asks(payer, "cost: $5").allowed
    assert audit(project, f"tool/api_cost/{payer.id}") == [
        ("overridden", "$5.00 more granted in a message of a person", "person")
    ]
    done = project.run("grant", "2", *WHY)
    name = f'claude "can you grant another $5?" ({payer.id})'
    start = f"Session {name}, external APIs: $12.00 allowed now (limit $5.00 and $7.00 granted), $10.00 spent"
    assert done.stdout.startswith(start)
    payer.pays(25)
    assert payer.asks().halted
    assert "this session may spend $35.00 at list price" in payer.says("grant another $10").json["systemMessage"]
    assert payer.asks().allowed
    assert project.json("grant", "1", *WHY)["budget"] == "external"


def test_a_person_grants_calls_in_a_message(project: Project, session: Session) -> None:
    """The 50 of a session have a way out for a person; those of the last minute are not given back."""
    for number in range(50):
        assert asks(session, number=number).silent
    for _ in range(6):
        said, _ = session.before("Bash", {"command": "python oracle.py more"})
        assert (said.code, said.halted) == (2, False)
    assert said.reason.splitlines() == [
        f"BLOCKED tool.external_api: {LIMIT} 50 API calls in this session (limit 50).",
        "Next: do the rest without external APIs, or report what is done; ask the user to grant more.",
        'A person can say "grant another 20 calls" to the agent, or run: fusewire grant 20 --calls --reason "..."',
    ]
    session.says("could you grant another 3 calls?")
    assert not session.before("Bash", {"command": "python oracle.py more"})[0].allowed
    said = session.says("ok, grant another 3 calls")
    assert said.json["systemMessage"] == "fusewire: 3 more API calls granted: this session may make 53"
    assert [asks(session).allowed for _ in range(4)] == [True] * 3 + [False]
    assert "53 API calls in this session (limit 50, and 3 granted)" in asks(session).reason
    move_clock(project, 7 * 86400)
    assert not asks(session).allowed
    assert audit(project, f"tool/api_calls/{session.id}") == [
        ("overridden", "3 more API calls granted in a message of a person", "person")
    ]
    calls = project.json("status", "--session")["resources"]["api_calls"]
    assert (calls["this_session"], calls["session_limit"], calls["granted"]) == (53, 53, 3)
    assert "more than can be granted at once" in session.says("grant another 5000 calls").json["systemMessage"]
    assert not asks(session).allowed


@pytest.mark.parametrize("breaker", [True, False])
def test_a_person_grants_calls_by_a_command(project: Project, breaker: bool) -> None:
    limits(project, resource_limits__api_session_max=2, external_api__session_max=2, external_api__enabled=breaker)
    session = Session(project)
    said = session.bash("for i in 1 2 3; do python oracle.py $i; done")[0]
    assert "0 API calls in this session, and this would make 3 more (limit 2)" in said.reason
    assert [asks(session).allowed for _ in range(3)] == [True, True, False]
    data = project.json("grant", "2", "--calls", *WHY)
    assert (data["key"], data["granted_calls"], data["allowed_calls"]) == (session.id, 2, 4)
    assert [asks(session).allowed for _ in range(3)] == [True, True, False]
    done = project.run("grant", "1", "--calls", "--session", session.id, *WHY)
    assert done.returncode == 0
    expected = f" ({session.id[:8]}): 5 calls of external APIs allowed now (limit 2 and 3 granted)\n"
    assert done.stdout.endswith(expected)
    assert [asks(session).allowed for _ in range(2)] == [True, False]
    with Breaker.open(project=project.root) as opened:
        rows = opened.audit(f"tool/api_calls/{session.id}")
    assert [row.reason for row in rows] == [f"{number} more API calls granted: {WHY[1]}" for number in (2, 1)]


def test_granting_calls_is_for_a_person_with_a_number(project: Project, session: Session) -> None:
    session.bash("ls", "x")
    for number in ("0", "-1", "2.5", "$5", "many", "1001", "9" * 5000):
        result = project.run("grant", "--calls", *WHY, "--", number)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), number
        assert "is refused as a number of calls; allowed: 1 to 1000" in result.stderr
    assert project.run("grant", "5", "--calls", "--day", *WHY).returncode == 2
    refused = project.run("grant", "5", "--calls", *WHY, env={"CLAUDECODE": "1"})
    assert (refused.returncode, refused.stdout) == (3, "")
    assert not session.before("Bash", {"command": "fusewire grant 5 --calls --reason x"})[0].allowed


# -- cost lines as the scripts print them -----------------------------------------------------------------


def test_a_whole_session_with_cost_lines(project: Project, session: Session) -> None:
    """Oracle, swarm and research, each with its own kind of report; the sum is what they said."""
    printed = [
        ("python scripts/oracle.py --persona judge 'a question'", "VERDICT: go on\n\n---\nCost: $0.0123\n", 0.0123),
        ("uv run swarm.py --agents 3", "\n".join([*(f"[agent {n}] cost: $0.05" for n in range(3)), "done"]), 0.15),
        ("python research.py q --json", json.dumps({"results": [], "usage": {"total_cost": 0.4}}, indent=2), 0.4),
        ("python oracle.py q 2>&1 | tail -5", "cost: $0.02", 0.02),
        ("curl -s https://api.openai.com/v1/responses -d @q.json", '{"id": "r", "cost_usd": 0.1}', 0.1),
    ]
    for command, output, _ in printed:
        assert session.bash(command, output)[0].silent
    assert spent(project) == pytest.approx(sum(cost for _, _, cost in printed), abs=1e-4)
    assert "API cost: $0.68 / $1.00 warn threshold" in project.run("status", "--session").stdout

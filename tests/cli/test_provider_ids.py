"""The circuits of providers on the command line: they lie in the person's store, whatever project one stands in."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.scopes.providers import Providers, Refusal
from fusewire.scopes.user import database_path
from fusewire.views.panel import panel
from fusewire.views.providers import provider_limits
from tests.helpers.project import Project

CIRCUIT = "provider/anthropic"
HOUR = 3600.0


def limited(**fields: Any) -> None:
    met = {"agent": "claude", "session": "479528ae-91f4", "root": "/p/shop", **fields}
    Providers().refused(CIRCUIT, Refusal("five_hour", time.time() + HOUR, **met))


def test_looking_where_nothing_was_refused_says_so_and_makes_no_circuit(project: Project) -> None:
    assert project.json("status")["providers"] == []
    assert "PROVIDERS" not in project.run("status", "--all").stdout
    assert provider_limits(time.time()) == []
    assert not Path(database_path()).exists()
    assert project.json("check", CIRCUIT)["decision"] == "ALLOWED"


def test_a_person_sees_it_in_every_project(project: Project) -> None:
    limited()
    (one,) = project.json("status")["providers"]
    kept = {name: one[name] for name in ("id", "provider", "account", "state", "kind", "session", "project")}
    assert kept == {
        "id": CIRCUIT,
        "provider": "anthropic",
        "account": "",
        "state": "OPEN",
        "kind": "five_hour",
        "session": "479528ae-91f4",
        "project": "/p/shop",
    }
    assert HOUR - 60 < one["retry_after"] <= HOUR + 2
    assert one["resets_at"] > one["since"]
    shown = project.run("status", "--all").stdout
    assert f"PROVIDERS\n  OPEN {CIRCUIT}: the provider's limit is reached (five_hour) since " in shown
    assert "OPEN" in project.run("status", CIRCUIT).stdout
    assert "CLOSED -> OPEN (tripped)" in project.run("history", CIRCUIT).stdout
    assert "the provider's limit is reached" in project.run("config", CIRCUIT).stdout


def test_check_looks_and_takes_no_probe(project: Project) -> None:
    limited()
    blocked = project.run("check", CIRCUIT)
    assert (blocked.returncode, blocked.stdout.startswith("BLOCKED provider:anthropic: ")) == (3, True)
    Providers().reset(CIRCUIT, "now", "ann")
    for _ in range(2):
        assert project.json("check", CIRCUIT)["lease"] is None
    assert Providers().ask(CIRCUIT, "a").lease == "a"
    assert "a probe is under way" in project.run("status", "--all").stdout


def test_a_reset_needs_a_reason_and_lets_one_probe_decide(project: Project) -> None:
    limited()
    unexplained = project.run("reset", CIRCUIT)
    assert (unexplained.returncode, "a reset of the provider needs a reason" in unexplained.stderr) == (2, True)
    assert Providers().look(CIRCUIT).phase == "open"
    done = project.json("reset", CIRCUIT, "--reason", "the plan was raised")
    assert (done["state"], done["audit"]["reason"]) == ("HALF_OPEN", "the plan was raised")
    (one,) = project.json("status")["providers"]
    assert (one["state"], one["retry_after"]) == ("HALF_OPEN", None)
    again = project.run("reset", CIRCUIT, "--reason", "again")
    assert (again.returncode, again.stderr) == (1, "Error: Invalid transition from HALF_OPEN\n")


@pytest.mark.parametrize(
    "command",
    [("reset", CIRCUIT, "--reason", "x"), ("record", CIRCUIT, "--ok"), ("record", CIRCUIT, "--action", "x")],
    ids=lambda words: " ".join(words[:3:2]),
)
def test_an_agent_neither_lifts_a_limit_nor_makes_one(project: Project, command: tuple[str, ...]) -> None:
    """Not by the program, and its hook refuses the line."""
    limited()
    refused = project.run(*command, env={"CLAUDECODE": "1"})
    assert (refused.returncode, "is for a person" in refused.stderr) == (3, True)
    assert Providers().look(CIRCUIT).phase == "open"
    hooked = project.hook(project.bash("fusewire " + " ".join(command)))
    assert (hooked.returncode, b"fusewire.disarm" in hooked.stderr) == (2, True)


def test_an_agent_does_not_edit_what_the_person_keeps(project: Project) -> None:
    limited()
    before = Path(database_path()).read_bytes()
    for line in (f"rm -f {database_path()}", f"echo '{{}}' > {Path(database_path()).parent}/providers.json"):
        assert project.hook(project.bash(line)).returncode == 2, line
    assert Path(database_path()).read_bytes() == before


def test_an_account_is_part_of_the_id(project: Project) -> None:
    account = f"{CIRCUIT}/~/.claude-work api-key"
    Providers().refused(account, Refusal("429"))
    (one,) = project.json("status")["providers"]
    assert (one["provider"], one["account"]) == ("anthropic", "~/.claude-work api-key")
    assert json.loads(project.run("check", account, "--json").stdout)["decision"] == "BLOCKED"
    assert project.run("check", CIRCUIT).returncode == 0


def test_a_persons_store_that_cannot_be_read_does_not_hide_the_project(project: Project) -> None:
    Path(database_path()).parent.mkdir(parents=True)
    Path(database_path()).write_bytes(b"damaged" * 1000)
    done = project.run("status", "--all")
    assert (done.returncode, "what is known of the providers cannot be read" in done.stderr) == (0, True)
    assert "Traceback" not in done.stderr


def test_the_panel_shows_it_beside_the_projects_own_circuits(project: Project) -> None:
    """And where it cannot be read, that is among the warnings."""
    limited()
    with Breaker.open(project=project.root) as breaker:
        shown = panel(breaker)
    assert [(one.id, one.state) for one in shown.providers] == [(CIRCUIT, "OPEN")]
    assert (shown.circuits, shown.headline.open) == ([], 0)
    for file in Path(database_path()).parent.glob("user.db*"):
        file.unlink()
    Path(database_path()).write_bytes(b"damaged" * 1000)
    with Breaker.open(project=project.root) as breaker:
        shown = panel(breaker)
    assert shown.providers == []
    assert any("what is known of the providers cannot be read" in one for one in shown.warnings)


@pytest.mark.parametrize("text", ['[provider]\nlease = "1m"\n', '[rules]\nprovider = "off"\n'])
def test_no_project_changes_the_circuits_of_a_person(project: Project, text: str) -> None:
    (project.root / "fusewire.toml").write_text(text)
    limited()
    done = project.run("check", CIRCUIT)
    assert done.returncode == 3
    assert "is refused" in project.run("status").stderr

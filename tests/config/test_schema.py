"""The JSON Schema of fusewire.toml says what the program says: the same keys, the same values."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from fusewire.config.notify_targets import target_settings
from fusewire.config.own_breakers import own_file
from fusewire.config.prices import PRICE_KEYS
from fusewire.config.rulebook import read_rulebook
from fusewire.config.schema import file_schema
from fusewire.config.settings import TABLES, read_policy_file
from fusewire.config.template import commented_file
from tests.config.test_configuration import BAD_TOML
from tests.config.test_misspelt import MISSPELT

SCHEMA = file_schema()
JUDGE = jsonschema_rs.Draft202012Validator(SCHEMA)

VALID = [
    "",
    'profile = "attended"\n',
    'sandbox = "off"\n',
    '[sandbox]\nmode = "require"\noutside = ["make deploy"]\n',
    '[loop]\ncooldown = "1h 30m"\nquiet = "23:00-7:30"\nmax_turns_per_hour = 0\noutput_decline = 1\n',
    "[phase.GREEN]\nno_progress_threshold = 3\n",
    "[tool.tool_failure]\nthreshold = 6\ncooldown_base_seconds = 0.5\n[tool.resource_limits]\napi_cost_warn_usd = 3\n",
    '[guard]\nalso_documents = ["notes/"]\nallow = ["mcp__notes__*: memory/"]\n',
    '[breakers.pay]\nwithin = "1h"\ncooldown = ["5m", "1h"]\nreset = "person"\n',
    '[rules]\n"tool.*" = "log"\n"guard.git.clean" = "off"\n',
    '[prices."my-model"]\ninput = 1\noutput = 2.5\nabove_input_tokens = 200000\nlong = { input = 3 }\n',
    '[notify]\nattempts = 5\n[notify.targets.me]\nurl = "desktop:"\nseverity = "alert"\n',
    '[budgets.b]\nper = ["project", "week"]\ntokens = 5\nwarn = 0.5\nagent = "codex"\n',
    commented_file("x"),
    re.sub(r"(?m)^#", "", commented_file("x")),
]


@pytest.mark.parametrize("content", VALID)
def test_what_the_program_takes_is_valid(content: str, tmp_path: Path) -> None:
    (tmp_path / "fusewire.toml").write_text(content)
    assert read_rulebook(tmp_path).warnings == []
    assert [error.message for error in JUDGE.iter_errors(tomllib.loads(content))] == []


#: What only the program can tell: a schema knows no length of a duration and no name of a rule, and JSON has no dates.
BEYOND = {"loop cooldown of 10m", "loop cooldown of 29m 59s", "loop cooldown of zero", "a rule", "date"}


def refused() -> dict[str, Any]:
    found = {}
    for name, (content, _) in {**BAD_TOML, **MISSPELT}.items():
        try:
            found[name] = tomllib.loads(content)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError):
            continue
    return {name: content for name, content in found.items() if name not in BEYOND}


@pytest.mark.parametrize("content", refused().values(), ids=refused())
def test_what_the_program_refuses_is_invalid(content: Any) -> None:
    assert not JUDGE.is_valid(content)


@pytest.mark.parametrize(
    "value", ["45m", "1h 30m", "0.5h", "1d2h", "90s", "", "m", "5", "5 m", "1h30", "-1h", "1y", "x"]
)
def test_durations_are_read_alike(value: str) -> None:
    setting = read_policy_file("loop").settings["timeout"]
    try:
        taken = setting.parse(value) > 0
    except ValueError:
        taken = False
    assert JUDGE.is_valid({"loop": {"timeout": value}}) == taken


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_in_it_with_its_default_and_its_help(table: str) -> None:
    whole = SCHEMA["properties"][table]
    top = next(one for one in (whole, *whole.get("anyOf", ())) if "properties" in one)
    for key, setting in read_policy_file(table).settings.items():
        place = top
        for part in key.split("."):
            assert place["additionalProperties"] is False
            place = place["properties"][part]
        assert place["default"] == setting.default
        assert setting.help in place["description"]


def test_the_tables_with_names_of_a_persons_own_are_in_it() -> None:
    given = SCHEMA["properties"]
    assert {*given["breakers"]["additionalProperties"]["properties"]} == {*own_file().settings}
    assert {*given["notify"]["properties"]["targets"]["additionalProperties"]["properties"]} == {*target_settings()}
    assert {*given["prices"]["additionalProperties"]["properties"]} == {*PRICE_KEYS}
    assert SCHEMA["additionalProperties"] is False


def test_it_is_a_schema_itself() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


@pytest.mark.parametrize(
    ("content", "is_valid"),
    [
        ('[plan]\nname = "max-5x"\nwindow_tokens = 500000\n[plan.codex]\nname = "pro"\n', True),
        ("[plan]\nwindow_tokens = 0.5\n", False),
        ('[plan.codex]\nnmae = "pro"\n', False),
    ],
)
def test_a_person_s_plan_is_described_too(content: str, is_valid: bool) -> None:
    """A project cannot have one, so that the schema of both files cannot say where it belongs."""
    assert JUDGE.is_valid(tomllib.loads(content)) == is_valid

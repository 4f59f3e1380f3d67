"""docs/json.md names every field of the read models that commands print."""

from __future__ import annotations

import re

import pytest

from fusewire.breakers.loop.overview import LoopOverview
from fusewire.views.cards import CircuitStatus
from fusewire.views.decisions import DecisionInFull
from fusewire.views.models import Schema, schema_of
from fusewire.views.moves import History, NumberedMove
from fusewire.views.overview_all import PersonOverview
from fusewire.views.overview_folder import OverviewNeed, OverviewSession
from fusewire.views.session_list import SessionStanding
from fusewire.views.slices import StopDecision
from fusewire.views.standing import ProjectStanding
from fusewire.views.storage import MemoryUsage, PlannedCleanup
from tests.helpers import ROOT

#: What a page adds to what the command prints.
ON_PAGES = {"actions_left_out"}


def sections() -> dict[str, set[str]]:
    """The words of each section that stand as code, by the first command of its heading."""
    text = (ROOT / "docs" / "json.md").read_text()
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {part.split("`")[1]: set(re.findall(r"`(\w+)`", part)) for part in parts}


@pytest.mark.parametrize(
    ("section", "model"),
    [
        ("check", StopDecision),
        ("status", CircuitStatus),
        ("status", LoopOverview),
        ("status", ProjectStanding),
        ("history", History),
        ("export", NumberedMove),
        ("watch --all", PersonOverview),
        ("watch --all", OverviewNeed),
        ("watch --all", OverviewSession),
        ("log", DecisionInFull),
        ("status --session", SessionStanding),
        ("status --session", MemoryUsage),
        ("status --session", PlannedCleanup),
    ],
)
def test_every_field_is_in_the_docs(section: str, model: type) -> None:
    """The names come from the model, nested ones too; what the docs forget shows here."""
    missing = fields_of(schema_of(model, {})) - sections()[section] - ON_PAGES
    assert missing == set()


def fields_of(schema: Schema) -> set[str]:
    """The names of an object's own fields, and of those of the rows in it."""
    properties = schema.get("properties", {})
    return set(properties).union(*(fields_of(one["items"]) for one in properties.values() if "items" in one))

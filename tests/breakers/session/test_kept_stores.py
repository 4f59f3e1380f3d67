"""A server that answers events of many projects keeps only so many of their stores open."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusewire.breakers.session import opening
from fusewire.breakers.session.state import SPEND
from fusewire.config.rules import load_rules


def test_a_server_of_many_projects_keeps_so_many_stores_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is in use when it has to go works on."""
    monkeypatch.setattr(opening, "kept", {})
    roots = [tmp_path / str(number) for number in range(opening.MOST_KEPT + 10)]
    for root in roots:
        root.mkdir()
    first = opening.quick_store(str(roots[0]), load_rules(str(roots[0])))
    assert opening.quick_store(str(roots[0]), load_rules(str(roots[0]))) is first
    for root in roots[1:]:
        with opening.quick_store(str(root), load_rules(str(root))).transact() as transaction:
            transaction.remember(SPEND, {}, 0.0)
    assert opening.kept is not None
    assert len(opening.kept) == opening.MOST_KEPT
    with first.transact() as transaction:
        transaction.remember(SPEND, {}, 0.0)
    assert opening.quick_store(str(roots[0]), load_rules(str(roots[0]))) is not first

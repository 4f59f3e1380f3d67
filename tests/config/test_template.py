"""The file of `config init`: it parses as it stands and with every # taken away, and changes nothing either way."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from fusewire.config.rulebook import Rulebook, read_rulebook
from fusewire.config.settings import TABLES, read_policy_file
from fusewire.config.template import commented_file

TEXT = commented_file("the settings of this project")


def book_of(folder: Path, text: str) -> Rulebook:
    (folder / "fusewire.toml").write_text(text)
    return read_rulebook(folder)


def test_as_it_stands_it_sets_nothing(tmp_path: Path) -> None:
    book, shipped = book_of(tmp_path, TEXT), read_rulebook(None)
    assert book.warnings == []
    assert {source for values in book.values.values() for source in values.source.values()} == {"default"}
    assert book.compile({})[:3] == shipped.compile({})[:3]


def test_with_every_line_uncommented_every_setting_has_its_default(tmp_path: Path) -> None:
    """Both for one # and for `# ` as editors write it: what is told and how it is decided stays what it was."""
    shipped = read_rulebook(tmp_path).compile({})
    for pattern in (r"(?m)^#", r"(?m)^# ?"):
        book = book_of(tmp_path, re.sub(pattern, "", TEXT))
        assert book.warnings == []
        for table in TABLES:
            assert {*book.values[table].source.values()} <= {"fusewire.toml"}, table
        assert book.compile({}) == shipped


def test_every_setting_is_in_it_with_its_help() -> None:
    given = tomllib.loads(re.sub(r"(?m)^#", "", TEXT))
    for table in TABLES:
        for key, setting in read_policy_file(table).settings.items():
            place = given if key == "profile" else given[table]
            for part in key.split("."):
                place = place[part]
            assert place == setting.default, key
            assert setting.help in TEXT


def test_the_examples_are_right_too(tmp_path: Path) -> None:
    """Behind ## stand tables whose names are a person's own; a target needs an address."""
    examples = re.sub(r'(?m)^##?(?=[\["\w])', "", TEXT).replace('url = ""', 'url = "desktop:"')
    examples = re.sub(r'(?m)^url_\w+ = "".*$', "", examples)
    book = book_of(tmp_path, examples)
    assert [str(one) for one in book.warnings] == []
    assert (list(book.own), list(book.targets.values), list(book.prices)) == (["NAME"], ["NAME"], ["my-model"])
    assert book.modes == {"tool.repetition": "log"}


def test_a_person_can_read_it() -> None:
    """Not two lines for what fits in one, and none as wide as three terminals."""
    assert TEXT.count("\n") < 260
    assert max(map(len, TEXT.splitlines())) < 240

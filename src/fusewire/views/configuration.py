"""Describe the configuration of a project as a whole: its layers, and table by table what is in force."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fusewire.config import CONSTRAINTS_FOLDER, SESSION_CONFIG, user_config_path
from fusewire.config.notify_addresses import shown
from fusewire.config.notify_targets import target_settings
from fusewire.config.own_breakers import own_file
from fusewire.config.settings import TABLES
from fusewire.util.json_types import Count
from fusewire.views.settings import SettingOrigin, origins, written_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.config.rulebook import Rulebook


@dataclass(frozen=True)
class ConfigLayer:
    """A place that settings come from."""

    source: str
    found: bool
    #: settings in force that come from it
    settings: Count


@dataclass(frozen=True)
class ConfigTable:
    """One table, or one constraint, with everything that holds in it."""

    name: str
    settings: list[SettingOrigin]


@dataclass(frozen=True)
class Configuration:
    """What is in force in a project."""

    #: the lowest first
    layers: list[ConfigLayer]
    tables: list[ConfigTable]


def configuration(book: Rulebook, root: str) -> Configuration:
    """Everything, in the order in which docs/configuration.md has it."""
    tables = [*_tables(book), *_named_tables(book)]
    number = Counter(one.source for table in tables for one in table.settings)
    project = book.project_file
    layers = [ConfigLayer("default", True, number["default"])]
    for source in (user_config_path(), SESSION_CONFIG, project):
        layers.append(ConfigLayer(source, os.path.exists(os.path.join(root, source)), number[source]))
    fronts = {one.file for one in book.constraints.values()}
    if fronts:
        layers.append(ConfigLayer(CONSTRAINTS_FOLDER, True, sum(number[file] for file in fronts)))
    return Configuration(layers, tables)


def _tables(book: Rulebook) -> Iterator[ConfigTable]:
    for name in TABLES:
        locked = book.files[name].locked.items()
        rows = origins(book.values[name], book.files[name].settings)
        rows += [SettingOrigin(key, value, "locked", value) for key, value in locked]
        if rows:
            yield ConfigTable(name, rows)


def _named_tables(book: Rulebook) -> Iterator[ConfigTable]:
    """What stands there only because somebody has written it."""
    for name, values in book.targets.values.items():
        rows = origins(values, target_settings())
        hidden = [replace(one, value=shown(one.value)) if one.key == "url" else one for one in rows]
        yield ConfigTable(f"notify.targets.{name}", hidden)
    for name, values in book.own.items():
        yield ConfigTable(f"breakers.{name}", origins(values, own_file().settings))
    for name, rows in written_tables(book).items():
        yield ConfigTable(name, rows)
    if book.modes:
        yield ConfigTable("rules", [_given(book, f'"{name}"', mode, name) for name, mode in book.modes.items()])
    for name, prices in book.prices.items():
        rows = [_given(book, key, price, name) for key, price in prices.items()]
        yield ConfigTable(f'prices."{name}"', rows)
    for name, values in book.constraint_values.items():
        rows = origins(values, book.files["constraint"].settings)
        own = [one for one in rows if one.source == book.constraints[name].file]
        if own:
            yield ConfigTable(f"constraint:{name}", own)


def _given(book: Rulebook, key: str, value: Any, name: str) -> SettingOrigin:
    return SettingOrigin(key, value, book.sources[name], None)

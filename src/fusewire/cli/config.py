"""`fusewire config`: what is in force and where it comes from, a commented file, a schema for editors."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import require_person
from fusewire.cli.common import common_options, print_json, project_command, project_root, show_result
from fusewire.config import user_config_path
from fusewire.util.durations import counted, show_time
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.local_time import local_time
from fusewire.util.tables import columns
from fusewire.views.configuration import configuration
from fusewire.views.models import to_json
from fusewire.views.settings import config_json, configured, paused, read_book
from fusewire.views.warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fusewire.engine.breaker import Breaker
    from fusewire.views.configuration import Configuration
    from fusewire.views.settings import Configured, SettingOrigin

#: More settings than this are listed without what each of them means.
_EXPLAINED = 12

#: The layer of the project's own file.
_PROJECT = 3

#: The command behind `config` where no other is named; no id of anything.
_BARE = "ID"


class Config(click.Group):
    """A group whose first word may be an id instead of a command: `config ID` is older than the commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [word for at, word in enumerate(args) if word[:1] != "-" and args[at - 1 : at] != ["--project"]]
        if words and words[0] in self.commands:
            at = args.index(words[0])
            args = [args[at], *args[:at], *args[at + 1 :]]
        elif args and args[0] not in ("-h", "--help"):
            args = [_BARE, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _config_of if cmd_name == _BARE else super().get_command(ctx, cmd_name)


@click.group("config", cls=Config)
def config_command() -> None:
    """Show, write and describe the configuration. Refused inside an agent.

    `fusewire config ID` shows the settings of a circuit, where each comes from, what it may be, and how to change it.
    ID is a circuit, or a breaker without the key of a circuit (tool/tool_failure, agents), a table (loop, guard), or a
    setting (profile, tool_failure.threshold). For an ID that is the name of a command: `fusewire config show ID`. It
    takes --project and --json, as the commands do.
    """


@click.command("ID")
@click.argument("circuit", metavar="ID")
@project_command
def _config_of(breaker: Breaker, circuit: str, as_json: bool) -> int:
    """Show settings in force, where each comes from, what it may be, and how to change it. Refused inside an agent."""
    require_person("`fusewire config`", breaker.root)
    found = configured(breaker, circuit)
    rows = columns((one.key, f"{_written(one.value)}  {one.source}") for one in found.settings)
    lines = [circuit]
    for row, one in zip(rows, found.settings, strict=True):
        lines += [f"  {row}", *_meaning(found, one)]
    data = _json_of(circuit, found) | {"warnings": warnings(breaker)}
    return show_result(as_json, data, *lines, *_about(breaker, found), *found.change)


@config_command.command("show")
@click.argument("circuit", metavar="[RULE]", required=False)
@click.option("--origin", is_flag=True, help="Name the source of every value, and what it covers in the layers below.")
@project_command
def show_command(breaker: Breaker, circuit: str | None, origin: bool, as_json: bool) -> int:
    """Show what is in force; * marks what differs from the default. Refused inside an agent.

    RULE is a rule as messages name it (tool.repetition, guard.git.clean, constraint:git-safety), a circuit, a breaker,
    a table or a setting; without it, the layers and every table in which something was changed.
    """
    require_person("`fusewire config show`", breaker.root)
    if circuit is None:
        found = configuration(read_book(breaker), breaker.root or ".")
        return show_result(as_json, {**to_json(found), "warnings": warnings(breaker)}, *_overview(found, origin))
    named = _configured(breaker, circuit)
    data = _json_of(circuit, named)
    for one in named.settings:
        data["config"][one.key] |= {"default": one.default, "covered": to_json(one.covered)}
    pauses = paused(breaker, named.rules)
    data["modes"] = {name: breaker.rules.mode(name) for name in named.rules}
    data["paused_until"] = show_time(max((one.until for one in pauses), default=None))
    data["warnings"] = warnings(breaker)
    return show_result(as_json, data, circuit, *_rows(named, origin), *_about(breaker, named), *named.change)


def _configured(breaker: Breaker, name: str) -> Configured:
    try:
        return configured(breaker, name)
    except NotFound:
        raise NotFound(f"no rule, circuit, table or setting has the name {name}") from None


@config_command.command("init")
@click.option("--user", is_flag=True, help="Write your own config.toml, which holds in all of your projects.")
@common_options
def init_command(project: str | None, user: bool, as_json: bool) -> int:
    """Write a fusewire.toml in which every setting stands with its default, behind a #. It overwrites nothing.

    Refused inside an agent.
    """
    root = None if user else project_root(project)
    require_person("`fusewire config init`", root)
    path = user_config_path() if root is None else os.path.join(root, "fusewire.toml")
    if path.startswith("/nonexistent/"):
        raise FusewireError("there is no home to write to: set HOME, or XDG_CONFIG_HOME to an absolute path")
    if root is not None and _has_table(root):
        raise FusewireError("pyproject.toml has the settings of this project, and is not read beside a fusewire.toml")
    from fusewire.config.template import commented_file

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            what = "your settings in all projects" if user else "the settings of this project"
            file.write(commented_file(what, is_persons=user))
    except FileExistsError:
        raise FusewireError(f"{path} is there already; nothing was written") from None
    what = f"Wrote {path}: every setting with its default. It changes nothing until you edit it."
    return show_result(as_json, {"file": path}, what)


def _has_table(root: str) -> bool:
    """Whether the project's settings stand in `pyproject.toml`."""
    try:
        with open(os.path.join(root, "pyproject.toml"), "rb") as file:
            return "fusewire" in tomllib.load(file).get("tool", {})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return False


@config_command.command("schema")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which it always is.")
def schema_command(as_json: bool) -> int:
    """Print a JSON Schema (2020-12) of fusewire.toml, for editors. Refused inside an agent.

    Save it and name it to the editor: Even Better TOML and taplo read a first line `#:schema ./fusewire.schema.json`.
    """
    require_person("`fusewire config schema`")
    from fusewire.config.schema import file_schema

    print_json(file_schema())
    return 0


def _json_of(name: str, found: Configured) -> dict[str, Any]:
    allowed = {one.key: found.known[one.key].allowed for one in found.settings if one.key in found.known}
    return {
        "id": name,
        "table": found.table,
        "config": config_json(found.settings),
        "allowed": allowed,
        "about": [*found.about, *found.notes],
    }


def _about(breaker: Breaker, found: Configured) -> list[str]:
    """What the settings amount to, and whether the rules are enforced."""
    now = breaker.engine.clock()
    modes = ((name, breaker.rules.mode(name)) for name in found.rules)
    return [
        *found.about,
        *found.notes,
        *(f'{name} is set to "{mode}" in [rules]' for name, mode in modes if mode != "enforce"),
        *(
            f"{', '.join(one.rules)} is only logged until {local_time(one.until, now)}: {one.reason} (by {one.by})"
            for one in paused(breaker, found.rules)
        ),
    ]


def _rows(found: Configured, origin: bool) -> Iterator[str]:
    explains = len(found.settings) <= _EXPLAINED and not found.rule
    for line, one in zip(_settings(found.settings, origin), found.settings, strict=True):
        yield from (line, *_covered(one, origin))
        if explains:
            yield from _meaning(found, one)


def _covered(one: SettingOrigin, origin: bool) -> list[str]:
    """What the value covers in the layers below, the nearest first."""
    return [f"      covers {_written(below.value)} from {below.source}" for below in reversed(one.covered) if origin]


def _settings(settings: Sequence[SettingOrigin], origin: bool) -> list[str]:
    return [
        f"  {line}"
        for line in columns(
            (f"{'* ' if one.differs else '  '}{one.key}", _written(one.value), _source(one, origin)) for one in settings
        )
    ]


def _source(one: SettingOrigin, origin: bool) -> str:
    if not one.differs:
        return one.source if origin or one.source == "locked" else ""
    return one.source if one.default is None else f"{one.source} (default {_written(one.default)})"


def _meaning(found: Configured, one: SettingOrigin) -> list[str]:
    known = found.known.get(one.key)
    return [f"      {known.help} ({known.allowed})"] if known else []


def _written(value: object) -> str:
    """A value as a configuration file has it, texts without their quotes."""
    return value or '""' if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _overview(found: Configuration, origin: bool) -> Iterator[str]:
    yield "Layers, the last one wins:"
    yield from (
        f"  {line}"
        for line in columns(
            (one.source, counted(one.settings, "setting") if one.found else "not there") for one in found.layers
        )
    )
    yield ""
    profile = next(one for table in found.tables for one in table.settings if one.key == "profile")
    in_ci = os.environ.get("CI", "") not in ("", "0", "false")
    yield f"Profile: {profile.value}{'; CI is set here, where nobody can answer' * in_ci}"
    yield ""
    yield "Tables, * differs from the default:"
    width = max(len(table.name) for table in found.tables) + 2
    for table in found.tables:
        shown = [one for one in table.settings if one.differs or (origin and one.source not in ("default", "locked"))]
        number = counted(len(table.settings), "setting")
        yield f"  {f'[{table.name}]':<{width}}  {number}{', all as shipped' * (not shown)}"
        for line, one in zip(_settings(shown, origin) if shown else (), shown, strict=True):
            yield from (f"  {line}", *(f"  {covered}" for covered in _covered(one, origin)))
    yield ""
    yield "All of a table, or one rule: fusewire config show tool, fusewire config show tool.repetition"
    if not found.layers[_PROJECT].found:
        yield "A file to change something in: fusewire config init"

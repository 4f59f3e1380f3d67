"""List the settings in force for a circuit or a name of the configuration, and the source of each."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.config.budgets import budget_words
from fusewire.config.compiler import compile_policies
from fusewire.config.own_breakers import own_file
from fusewire.config.rulebook import read_rulebook
from fusewire.config.rules import rule_id
from fusewire.config.settings import KINDS
from fusewire.core.meters import explain
from fusewire.scopes.orders import read_orders
from fusewire.util.durations import show_duration
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.globs import matches
from fusewire.util.worktrees import project_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fusewire.config.rulebook import Rulebook
    from fusewire.config.settings import Setting, Values
    from fusewire.core.state import Policy
    from fusewire.engine.breaker import Breaker
    from fusewire.scopes.orders import PauseOrder


@dataclass(frozen=True)
class SettingInForce:
    """A setting with its value as it was written."""

    key: str
    value: Any
    source: str


@dataclass(frozen=True)
class CoveredValue:
    """What a layer says that another one covers."""

    value: Any
    source: str


@dataclass(frozen=True)
class SettingOrigin(SettingInForce):
    """A setting in force with what lies below it."""

    default: Any
    #: the lowest first
    covered: tuple[CoveredValue, ...] = ()

    @property
    def differs(self) -> bool:
        return bool(self.value != self.default)


@dataclass
class Configured:
    """What `fusewire config NAME` shows: settings, and the policies of the circuits that they are for."""

    #: the table of the configuration file that they belong to
    table: str
    settings: list[SettingOrigin]
    #: what they may be; a locked one is not in it
    known: Mapping[str, Setting]
    policies: list[Policy] = field(default_factory=list)
    #: where a person changes them
    file: str = ""
    #: what the rules are called that [rules] may set
    rules: list[str] = field(default_factory=list)
    #: the rule that was asked for, where it has no circuit
    rule: str = ""
    #: what to show that no setting says
    notes: list[str] = field(default_factory=list)

    @property
    def about(self) -> list[str]:
        """At what the circuits open or refuse, and for how long."""
        lines = []
        for policy in self.policies:
            for meter in policy.meters:
                does = "refuses" if meter.limits else "opens"
                lines.append(f"{policy.name} {does} when {explain(meter, meter.trip)}")
            if not all(meter.limits for meter in policy.meters):
                words = cooldown_words(policy)
                lines.append(f"{policy.name}: {words if policy.schedule == 'none' else f'cooldown {words}'}")
        return lines

    @property
    def change(self) -> list[str]:
        """How to change the first of them that can be."""
        first = next((one for one in self.settings if one.key in self.known), None)
        top = "tool.fusewire." if self.file == "pyproject.toml" else ""
        if self.rule:
            return [f"To have it only logged, in {self.file}:", f"[{top}rules]", f'"{self.rule}" = "log"']
        if first is None:
            is_locked = any(one.source == "locked" for one in self.settings)
            return ["These are locked: no file can change them."] if is_locked else []
        if self.file.endswith(".md"):
            value = json.dumps(first.value)
            return [
                f"To change one, in the front matter of {self.file}:",
                "circuit_breaker:",
                f"  {first.key}: {value}",
            ]
        section, _, key = first.key.rpartition(".")
        head = f"[{top}{self.table}{'.' * bool(section)}{section}]"
        if first.key == "profile":
            head, key = f"[{top[:-1]}]" if top else "", "profile"
        value = json.dumps(first.value, ensure_ascii=False)  # it is TOML as well
        return [f"To change one, in {self.file}:", *filter(None, (head, f"{key} = {value}"))]


def settings_of(breaker: Breaker, circuit: str) -> list[SettingInForce]:
    """Every setting that the circuit's policy uses."""
    found = _of_circuit(breaker, read_book(breaker), circuit).settings
    return [SettingInForce(one.key, one.value, one.source) for one in found]


def config_json(settings: Iterable[SettingInForce]) -> dict[str, dict[str, Any]]:
    return {one.key: {"value": one.value, "source": one.source} for one in settings}


def configured(breaker: Breaker, name: str) -> Configured:
    """What a name of the configuration stands for: a circuit's id with or without its variable parts, a rule as
    messages name it, a breaker, a table, a setting. NotFound with the nearest names if it is none of them."""
    book = read_book(breaker)
    try:
        found = _of_circuit(breaker, book, name)
    except NotFound:
        named = _named(book, name) or _of_rule(breaker, book, name)
        if named is None:
            raise
        found = named
    if not found.file:
        found.file = book.project_file
    return found


def _of_rule(breaker: Breaker, book: Rulebook, name: str) -> Configured | None:
    """What a rule's id stands for in a message: `constraint:ID`, `tool.tool_failure:Edit`, `own.NAME`, `guard.mv`."""
    family, _, key = name.partition(":")
    if family == "constraint" and key in book.constraints:
        return _of_circuit(breaker, book, key)
    if key and (found := _named(book, family)):
        return found
    family, _, key = name.partition(".")
    if family in ("own", "breakers") and key in book.own:
        return _of_circuit(breaker, book, f"own/{key}")
    if family == "guard" and key:
        return Configured("guard", _of_table(book, "guard"), book.files["guard"].settings, rules=[name], rule=name)
    if family == "scope" and key:
        return Configured(
            "rules", [], {}, rules=[name], rule=name, notes=["The scope of a slice: fusewire scope show SLICE"]
        )
    if family == "fusewire" and key:
        return Configured("rules", [], {}, notes=["It is always on: no setting changes it."])
    return None


def paused(breaker: Breaker, rules: Iterable[str]) -> list[PauseOrder]:
    """What a person has ordered to be only logged for a time, and concerns one of these rules."""
    root, now = breaker.root or ".", breaker.engine.clock()
    key, names = project_key(root), [name for rule in rules for name in (rule, rule.partition(":")[0])]
    held = [one for one in read_orders(root).pauses if one.holds(key, None, now)]
    return [one for one in held if any(matches(name, pattern) for name in names for pattern in one.rules)]


def hint(breaker: Breaker, name: str) -> str:
    """What may have been meant by a name that nobody knows, as the end of a sentence; empty if nobody can tell."""
    book = read_book(breaker)
    ids = [table["id"] for kind in KINDS for table in book.files[kind].table["circuit"]]
    for template in ids:
        if name and name.strip("/") == _bare(template) != template:
            return f"; it has one circuit for each {template.rpartition('{')[2].rstrip('}')}, and none has begun"
    bare = [one for one in map(_bare, ids) if one]
    short = [one.rpartition("/")[2] for one in bare]
    stored = [row.id for row in breaker.store.circuits()]
    rules = [table["name"] for kind in KINDS for table in book.files[kind].table["circuit"]]
    known = [*book.constraints, *(f"own/{one}" for one in book.own), *bare, *book.files, *short, *stored, *rules]
    by_letters = {one.lower(): one for one in reversed([*known, "profile"])}
    close = difflib.get_close_matches(name.lower(), by_letters, n=3)
    return f"; did you mean {' or '.join(by_letters[one] for one in close)}?" if close else ""


def read_book(breaker: Breaker) -> Rulebook:
    """The rules of the breaker's project with the source of each value."""
    return read_rulebook(None if breaker.root is None else Path(breaker.root))


def _of_circuit(breaker: Breaker, book: Rulebook, circuit: str) -> Configured:
    policy = breaker.rules.policy(circuit)
    rules = [rule_id(policy, circuit)]
    if policy.kind == "own":
        name = policy.id.partition("/")[2]
        own = book.own.get(name)
        rows = [] if own is None else origins(own, own_file().settings)
        return Configured(f"breakers.{name}", rows, own_file().settings, [policy], rules=rules)
    found = _of_policies(book, policy.kind, [policy.id])
    values = book.values_for(policy.kind, circuit)
    constraint = book.constraints.get(circuit)
    found.settings = _in_force(book, policy.kind, values, [one.key for one in found.settings if one.source != "locked"])
    found.policies, found.rules = [policy], rules
    found.file = constraint.file if constraint is not None else ""
    return found


def written_tables(book: Rulebook) -> dict[str, list[SettingOrigin]]:
    """`[budgets.NAME]` and `[plan]`, which are there only because somebody has written them."""
    tables = {f"budgets.{name}": budget_words(one) for name, one in book.budgets.items()}
    tables |= {f"plan.{agent}".rstrip("."): dict(words) for agent, words in book.plans.items()}
    return {
        name: [SettingOrigin(key, value, book.sources[name], None) for key, value in words.items()]
        for name, words in tables.items()
    }


def _written(book: Rulebook, wanted: str) -> Configured | None:
    """A budget or a plan, or all of them."""
    tables = written_tables(book)
    if wanted in tables:
        return Configured(wanted, tables[wanted], {})
    if wanted not in ("budgets", "plan"):
        return None
    inner = {name.partition(".")[2]: rows for name, rows in tables.items() if name.startswith(wanted)}
    rows = [replace(one, key=f"{name}.{one.key}") for name, rows in inner.items() for one in rows]
    return Configured(wanted, rows, {}, notes=[] if rows else [f"No table [{wanted}] is set: docs/spend.md"])


def _named(book: Rulebook, name: str) -> Configured | None:
    """The settings that a name of no circuit stands for, if it stands for any."""
    wanted = _bare(name.strip("/"))
    if written := _written(book, wanted.replace("budget:", "budgets.", 1)):
        return written
    tables = [(kind, table["id"], table["name"]) for kind in KINDS for table in book.files[kind].table["circuit"]]
    is_full = "/" in wanted or "." in wanted
    found = [
        (kind, template)
        for kind, template, rule in tables
        if wanted and wanted in ((_bare(template), rule) if is_full else (_bare(template).rpartition("/")[2],))
    ]
    if wanted not in book.files and found:
        if len({_bare(template) for _, template in found}) > 1:
            ids = ", ".join(_bare(template) for _, template in found)
            raise FusewireError(f"{name} is the name of several breakers: {ids}")
        return _of_policies(book, found[0][0], [template for _, template in found])
    if wanted in book.files:
        return Configured(wanted, _of_table(book, wanted), book.files[wanted].settings)
    for kind, policy_file in book.files.items():
        key = wanted.removeprefix(f"{kind}.")
        keys = [one for one in policy_file.settings if key and (one == key or one.startswith(f"{key}."))]
        if keys:
            rows = [one for one in _in_force(book, kind, book.values[kind], keys) if one.source != "locked"]
            return Configured(kind, rows, policy_file.settings)
    return None


def _of_policies(book: Rulebook, kind: str, templates: list[str]) -> Configured:
    """The settings of policies, which need not be switched on."""
    policy_file, values = book.files[kind], book.values[kind]
    keys = [key for key in policy_file.settings if any(key in policy_file.keys_of(one) for one in templates)]
    policies = [policy for policy in compile_policies(policy_file, values) if policy.id in templates]
    rules = [policy.name for policy in policies]
    return Configured(kind, _in_force(book, kind, values, keys), policy_file.settings, policies, rules=rules)


def _of_table(book: Rulebook, table: str) -> list[SettingOrigin]:
    return _in_force(book, table, book.values[table], list(book.files[table].settings))


def _in_force(book: Rulebook, kind: str, values: Values, keys: list[str]) -> list[SettingOrigin]:
    settings, locked = book.files[kind].settings, book.files[kind].locked
    rows = origins(values, {key: settings[key] for key in keys})
    return rows + [SettingOrigin(key, value, "locked", value) for key, value in locked.items()]


def origins(values: Values, settings: Mapping[str, Setting]) -> list[SettingOrigin]:
    """These settings as they are in force; one that no layer gives a value is left out."""
    return [
        SettingOrigin(
            *(key, values.written[key], values.source[key], setting.default),
            tuple(CoveredValue(*below) for below in values.covered.get(key, ())),
        )
        for key, setting in settings.items()
        if key in values.written
    ]


def _bare(template: str) -> str:
    """`tool/tool_failure` for `tool/tool_failure/{tool}`."""
    return template.partition("{")[0].rstrip("/")


def cooldown_words(policy: Policy) -> str:
    steps = [show_duration(one) for one in policy.cooldown]
    if policy.schedule == "none":
        return "no cooldown: a person must act"
    if policy.schedule == "fixed":
        return f"{steps[0]} after every trip"
    if policy.schedule == "doubling":
        return f"{steps[0]}, doubled after each failed probe"
    return f"{', '.join(steps)} by trips in a row"

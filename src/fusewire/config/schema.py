"""Describe `fusewire.toml` as JSON Schema (2020-12), for editors: from the declarations that also read the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusewire.config.budgets import LONGEST, MOST, PLAN_KEYS
from fusewire.config.notify_targets import target_settings
from fusewire.config.own_breakers import own_file
from fusewire.config.prices import PRICE_KEYS, price_allowed
from fusewire.config.rulebook import MODES
from fusewire.config.settings import CONSECUTIVE, TABLES, Setting, read_policy_file
from fusewire.core.budget import COUNTED, PERIODS, SCOPES
from fusewire.core.money import KINDS
from fusewire.util.durations import UNITS

Schema = dict[str, Any]

_DURATION: Schema = {
    "type": "string",
    "pattern": rf"^\s*((\d+(\.\d*)?|\.\d+)({'|'.join(UNITS)})\s*)+$",
}
_CLOCK = r"\s*([01]?\d|2[0-3]):[0-5]\d\s*"
_LABEL: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
_WORD: Schema = {"type": "string", "pattern": r"\S"}

#: Types of settings whose values need nothing of the setting itself.
_PLAIN: dict[str, Schema] = {
    "flag": {"type": "boolean"},
    "duration": _DURATION,
    "window": {"anyOf": [{"const": CONSECUTIVE}, _DURATION]},
    "schedule": {"anyOf": [_DURATION, {"type": "array", "items": _DURATION, "minItems": 1}]},
    "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "clock": {"type": "string", "pattern": rf"^({_CLOCK}-{_CLOCK})?$"},
    "text": _WORD,
    "path": _WORD,
    "texts": {"type": "array", "items": _WORD},
    "paths": {"type": "array", "items": _WORD},
    "grants": {"type": "array", "items": {"type": "string", "pattern": r"\S.*: .*\S"}},
}


def file_schema() -> Schema:
    """The schema of `fusewire.toml`, and of a person's `config.toml`."""
    tables = {name: _table(read_policy_file(name).settings) for name in TABLES}
    tables["sandbox"] = {"anyOf": [tables["sandbox"]["properties"]["mode"], tables["sandbox"]]}
    targets = _named(_table(target_settings()), "where messages are sent, by name")
    tables["notify"]["properties"]["targets"] = targets
    profile = tables["tool"]["properties"]["profile"]
    rule: Schema = {"enum": list(MODES), "description": "enforced, only logged, or off"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Fusewire",
        "description": "Settings of Fusewire in a project's fusewire.toml, or in a person's config.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "profile": profile,
            **tables,
            "breakers": _named(_table(own_file().settings), "breakers of your own, the circuits own/NAME"),
            "rules": _named(rule, "rules, or patterns of them, such as tool.*, that are only logged or off"),
            "budgets": _named(_budget(), "how much may be spent, by a name of your own"),
            "plan": _plans(),
            "prices": _named(_prices(), "what a model costs, by its name; * at the end stands for any rest"),
        },
    }


def _named(schema: Schema, description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": schema}


def _table(settings: Mapping[str, Setting]) -> Schema:
    """Settings with dots in their names are in tables of the table."""
    table: Schema = {"type": "object", "additionalProperties": False, "properties": {}}
    for key, setting in settings.items():
        *sections, name = key.split(".")
        inner = table
        for section in sections:
            empty = {"type": "object", "additionalProperties": False, "properties": {}}
            inner = inner["properties"].setdefault(section, empty)
        words = f"{setting.help} ({setting.allowed})"
        inner["properties"][name] = {**_of(setting), "default": setting.default, "description": words}
    return table


def _of(setting: Setting) -> Schema:
    if setting.type in _PLAIN:
        return dict(_PLAIN[setting.type])
    if setting.names:
        return {"enum": list(setting.names)}
    lowest, highest = setting.bounds
    if setting.type in ("count", "turns", "size"):
        return {"type": "integer", "minimum": lowest, "maximum": highest}
    least: Schema = {"exclusiveMinimum": 0} if setting.least is None else {"minimum": lowest}
    return {"type": "number", **least, "maximum": highest}


def _budget() -> Schema:
    per: Schema = {"enum": [*SCOPES, *PERIODS]}
    limit: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": MOST}
    properties: Schema = {
        "per": {"anyOf": [per, {"type": "array", "items": per, "minItems": 1}], "description": "whose spend, and when"},
        **{key: {**limit, "description": f"at most so many {key}"} for key in COUNTED},
        "warn": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "the share that is told"},
        "agent": {**_LABEL, "description": "the spend of this agent only"},
    }
    limits = [{"required": [key]} for key in COUNTED]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": ["per"],
        "anyOf": limits,
    }


def _plans() -> Schema:
    """`[plan]` of all agents and `[plan.AGENT]`: tables in it are agents, whatever their names."""
    tokens: Schema = {"type": "integer", "minimum": 1}
    keys = {"name": _LABEL, **dict.fromkeys(PLAN_KEYS[1:], tokens)}
    one = {"type": "object", "additionalProperties": False, "properties": keys, "required": ["name"]}
    description = "your subscription, in your own config.toml; [plan.AGENT] for one agent"
    return {"type": "object", "description": description, "properties": keys, "additionalProperties": one}


def _prices() -> Schema:
    def price(key: str) -> Schema:
        return {"type": "number", "minimum": 0, "description": price_allowed(key)}

    long = {"type": "object", "additionalProperties": False, "properties": {key: price(key) for key in KINDS}}
    prices = {key: price(key) for key in PRICE_KEYS} | {"long": {**long, "description": price_allowed("long")}}
    prices["above_input_tokens"]["type"] = "integer"
    return {"type": "object", "additionalProperties": False, "properties": prices}

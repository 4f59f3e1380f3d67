"""Compile a policy file and the settings in force to `Policy` objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusewire.config.settings import PolicyFile, Values
from fusewire.core.circuit import Policy
from fusewire.core.meters import FAMILIES, Meter
from fusewire.util.durations import parse_duration


def compile_policies(policy_file: PolicyFile, values: Values) -> list[Policy]:
    """Every circuit of a policy file that is switched on."""
    shared = policy_file.table.get("defaults", {})
    policies = []
    for circuit in policy_file.table["circuit"]:
        table = {**shared, **circuit}
        if _value(table.get("enabled", True), values):
            policies.append(_policy(policy_file.kind, table, shared, values))
    return policies


def _policy(kind: str, table: Mapping[str, Any], shared: Mapping[str, Any], values: Values) -> Policy:
    cooling = {**shared.get("cooldown", {}), **table.get("cooldown", {})}
    probe = table.get("probe", {})
    quiet = probe.get("quiet")
    return Policy(
        id=table["id"],
        name=table["name"],
        kind=kind,
        meters=tuple(_meter(meter, values) for meter in _meter_tables(table, shared, values)),
        schedule=cooling["schedule"],
        cooldown=_steps(cooling, values),
        cools_from=cooling.get("from", "trip"),
        lease=_value(probe.get("lease", "10m"), values),
        quiet=None if quiet is None else _value(quiet, values),
        settles=probe.get("settles", "holder"),
        dedup=_value(table.get("dedup", 0), values),
        reset=table["reset"],
        keeps=table.get("keeps", False),
        alert_from=table.get("alert_from", 0),
        vigil=table.get("vigil", 0),
        override=table.get("override", False),
        mode=_value(table["mode"], values) if "mode" in table else "count",
        group=table.get("group", ""),
        next=tuple(table.get("next", ())),
        by_person=tuple(table.get("by_person", ())),
    )


def _steps(cooling: Mapping[str, Any], values: Values) -> tuple[float, ...]:
    match cooling["schedule"]:
        case "none":
            return ()
        case "ladder":
            scale = _value(cooling["base"], values) / _value(cooling["written_for"], values)
            return tuple(_value(step, values) * scale for step in cooling["steps"])
        case _:
            return (_value(cooling["first"], values),)


def _meter_tables(table: Mapping[str, Any], shared: Mapping[str, Any], values: Values) -> list[Mapping[str, Any]]:
    """A circuit's meters, written out in full (`[[circuit.meter]]`) or as changes to shared ones."""
    if "meter" in table:
        return [meter for meter in table["meter"] if _value(meter.get("enabled", True), values)]
    common = shared.get("meters", {})
    return [{"name": name, **common.get(name, {}), **own} for name, own in table["meters"].items()]


def _meter(table: Mapping[str, Any], values: Values) -> Meter:
    if table["counts"] not in FAMILIES:
        raise ValueError(f"meter {table['name']} counts {table['counts']!r}; allowed: {', '.join(FAMILIES)}")
    ((trip_by, written),) = table["trip"].items()
    trip = _value(written, values)
    warn = table.get("warn", {})
    return Meter(
        table["name"],
        table["counts"],
        table["on"],
        trip,
        trip_by=trip_by,
        warn=trip * warn["share"] if "share" in warn else _value(warn["at"], values) if warn else None,
        span=_value(table.get("turns", table.get("span", 0)), values),
        turns="turns" in table,
        size=_value(table.get("size", 0), values),
        needs=_value(table.get("needs", 0), values),
        floor=table.get("floor", 0),
        marked=table.get("marked", False),
        limits=table.get("limits", False),
        checks=tuple(table.get("checks", ())),
        resets_on=tuple(table.get("resets_on", ())),
        reason=table["reason"],
    )


def _value(written: Any, values: Values) -> Any:
    """A number as it stands, a duration in seconds, or the setting that `$name` refers to."""
    if not isinstance(written, str):
        return written
    return values.parsed[written[1:]] if written.startswith("$") else parse_duration(written)

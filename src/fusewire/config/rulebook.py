"""Read and compile the rules of one project: every layer of configuration, every constraint, every warning."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.config import SESSION_CONFIG, user_config_path
from fusewire.config.budgets import budgets_of_plans, put_budgets, put_plans
from fusewire.config.compiler import compile_policies
from fusewire.config.constraint_files import ConstraintFile, read_constraints
from fusewire.config.notify_addresses import file_of
from fusewire.config.notify_targets import Targets
from fusewire.config.own_breakers import own_policy, put_breakers
from fusewire.config.prices import load_prices, parse_prices
from fusewire.config.settings import KINDS, TABLES, PolicyFile, Values, overlay, read_policy_file, suggest, unknown
from fusewire.util.errors import ConfigError
from fusewire.util.globs import matches

if TYPE_CHECKING:
    from fusewire.core.budget import SpendBudget
    from fusewire.core.events import Matcher
    from fusewire.util.fast_json import JsonObject

#: The tables of the seed's own configuration file. The first holds what `[tool]` has at its top.
_SEED_TABLES = ("circuit_breakers", "memory_limits", "resource_limits")


#: Tables that are no lists of settings.
_OTHER_TABLES = ("prices", "breakers", "rules", "budgets", "plan")

#: What a rule may be set to, and rules that are no circuits of the policies.
MODES = ("off", "log", "enforce")
_OTHER_RULES = ("*", "guard.", "scope.", "constraint:", "budget:")


@dataclass
class Rulebook:
    """What `Rules` are made from, with the place each value came from; for people, not for the hot path."""

    files: dict[str, PolicyFile]
    values: dict[str, Values]
    constraints: dict[str, ConstraintFile] = field(default_factory=dict)
    constraint_values: dict[str, Values] = field(default_factory=dict)
    warnings: list[ConfigError] = field(default_factory=list)
    #: without a project every bare id is a constraint with the default policy
    any_constraint: bool = False
    #: the breakers that `[breakers.NAME]` defines
    own: dict[str, Values] = field(default_factory=dict)
    #: what `[prices]` says beside the table that is shipped
    prices: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    #: rules that are only logged, or off: by pattern
    modes: dict[str, str] = field(default_factory=dict)
    #: the file that says so of a model's price, of a pattern of rules, of `budgets.NAME`, of `plan`
    sources: dict[str, str] = field(default_factory=dict)
    #: what may be spent, and what the person has subscribed to, by agent
    budgets: dict[str, SpendBudget] = field(default_factory=dict)
    plans: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: where the project's own settings are, or would be
    project_file: str = "fusewire.toml"
    #: who is told what happened
    targets: Targets = field(default_factory=Targets)

    def values_for(self, kind: str, circuit: str) -> Values:
        return self.constraint_values.get(circuit) or self.values[kind]

    def compile(self, last: Mapping[str, tuple[tuple[Matcher, ...], str]]) -> tuple[Any, ...]:
        """The data of `Rules`; a constraint whose front matter is broken keeps the patterns and the mode of `last`."""
        policies = {
            policy.id: policy.to_data()
            for kind in KINDS
            for policy in compile_policies(self.files[kind], self.values[kind])
        }
        for name, values in self.own.items():
            policy = own_policy(name, values)
            policies[policy.id] = policy.to_data()
        constraints = {}
        for name, constraint in self.constraints.items():
            values, matchers = self.constraint_values[name], constraint.matchers
            if constraint.broken and name in last:
                matchers, mode = last[name]
                values.put(self.files["constraint"].settings["mode"], mode, constraint.file)
            (policy,) = compile_policies(self.files["constraint"], values)
            about = (constraint.file, constraint.title, constraint.severity or "", constraint.retired, constraint.pack)
            policy = policy.replace(next=(constraint.safer_way,)) if constraint.safer_way else policy
            constraints[name] = (policy.to_data(), matchers, *about)
        warnings = tuple(map(str, self.warnings))
        return (
            *(policies, constraints, warnings, self.any_constraint, self._guard()),
            *(dict(self.values["tool"].parsed), load_prices(self.prices)),
            tuple(target.name for target in self.targets.enabled()),
            (self.values["sandbox"].parsed["mode"], self.values["sandbox"].parsed["outside"]),
            tuple(self.modes.items()),
            tuple(tuple(getattr(one, name) for name in one.fields) for one in self.all_budgets()),
            {agent: str(plan["name"]) for agent, plan in self.plans.items()},
        )

    def all_budgets(self) -> list[SpendBudget]:
        """Those that are set, and those of the limits beside the name of a plan."""
        return [*self.budgets.values(), *budgets_of_plans(self.plans)]

    def _guard(self) -> tuple[Any, ...]:
        """Documents, configuration, what is ignored, roots, grants."""
        lists = self.values["guard"].parsed
        addresses = [file_of(target, "") for target in self.targets.usable() if target.kind == "url_file"]
        return (
            (*lists["documents"], *lists["also_documents"]),
            (*lists["configuration"], *lists["also_configuration"], *filter(_is_file_name, addresses)),
            lists["ignore"],
            lists["roots"],
            lists["allow"],
        )


def _is_file_name(path: str) -> bool:
    return os.path.basename(path) not in ("", ".", "..")


def read_rulebook(root: Path | None, instead: str = "") -> Rulebook:
    """Defaults < the user's file < the project's file (or another `instead`) < each constraint's front matter."""
    files = {kind: read_policy_file(kind) for kind in TABLES}
    defaults = {kind: policy_file.defaults() for kind, policy_file in files.items()}
    book = Rulebook(files, defaults, any_constraint=root is None)
    if root is None:
        return book
    layers = _layers(root, book.warnings, instead)
    book.project_file = layers[-1][0] if len(layers) > 1 else "fusewire.toml"
    for source, table in [*layers[:1], *_seed_layer(root, book.warnings), *layers[1:]]:
        _apply(book, source, table)
    book.warnings += book.targets.problems()
    constraints, problems = read_constraints(root)
    book.warnings += problems
    for constraint in constraints:
        values = book.values["constraint"].copy()
        book.warnings += overlay(files["constraint"], values, constraint.overrides, constraint.file, "circuit_breaker:")
        book.constraints[constraint.id] = constraint
        book.constraint_values[constraint.id] = values
    book.warnings += _misspelt_constraints(book)
    return book


def _layers(root: Path, warnings: list[ConfigError], instead: str) -> list[tuple[str, Mapping[str, Any]]]:
    user = Path(user_config_path())
    name = instead or "fusewire.toml"
    project = _read(Path(instead) if instead else root / name, name, warnings)
    pyproject = _read(root / "pyproject.toml", "pyproject.toml", warnings) or {}
    tool = pyproject.get("tool")
    in_pyproject = tool.get("fusewire") if isinstance(tool, dict) else None
    if project is not None and in_pyproject is not None:
        allowed = f"{name} is there and is read instead"
        warnings.append(ConfigError("pyproject.toml", "[tool.fusewire]", "...", allowed))
    users = _read(user, str(user), warnings)
    own = (name, project) if project is not None else ("pyproject.toml", in_pyproject)
    return [(str(user), users or {}), *([(own[0], own[1])] if own[1] is not None else [])]


def _seed_layer(root: Path, warnings: list[ConfigError]) -> list[tuple[str, Mapping[str, Any]]]:
    """The configuration file that the seed describes, as it stands: a layer for the table `tool`."""
    given = _read(root / SESSION_CONFIG, SESSION_CONFIG, warnings, "a JSON object", _json_object)
    if given is None:
        return []
    table: JsonObject = {}
    for name, part in given.items():
        if name not in _SEED_TABLES:
            warnings.append(unknown(SESSION_CONFIG, name, part, name, _SEED_TABLES))
        elif not isinstance(part, dict):
            warnings.append(ConfigError(SESSION_CONFIG, name, part, "an object of settings"))
        else:
            table |= part if name == _SEED_TABLES[0] else {name: part}
    return [(SESSION_CONFIG, {"tool": table})]


def _json_object(text: str) -> JsonObject:
    given = json.loads(text.removeprefix("\ufeff"))
    if not isinstance(given, dict):
        raise ValueError("not an object")
    return given


def _read(
    path: Path,
    shown: str,
    warnings: list[ConfigError],
    form: str = "TOML",
    parse: Callable[[str], JsonObject] = tomllib.loads,
) -> JsonObject | None:
    """What a configuration file says; None if it is missing or cannot be read."""
    try:
        if path.exists() and not path.is_file():  # a pipe of that name would never end
            raise ValueError("not a regular file")
        return parse(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        warnings.append(ConfigError(shown, "file", str(error), f"{form}; nothing in it is used"))
        return None


def _apply(book: Rulebook, source: str, layer: Any) -> None:
    if not isinstance(layer, dict):
        book.warnings.append(ConfigError(source, "[tool.fusewire]", layer, "a table"))
        return
    for kind, table in layer.items():
        if kind == "sandbox" and isinstance(table, str):
            table = {"mode": table}
        if kind == "profile":
            kind, table = "tool", {"profile": table}
        if kind == "prices" and isinstance(table, dict):
            prices, problems = parse_prices(table, source)
            for model, values in prices.items():
                book.prices[model] = {**book.prices.get(model, {}), **values}
                book.sources[model] = source
            book.warnings += problems
        elif kind == "prices":
            book.warnings.append(ConfigError(source, kind, table, 'a table [prices."model"] of prices'))
        elif kind == "rules":
            book.warnings += _put_modes(book, table, source)
        elif kind in ("budgets", "plan"):
            is_budgets = kind == "budgets"
            tables: Mapping[str, Any] = book.budgets if is_budgets else book.plans
            before = dict(tables)
            put = put_budgets(book.budgets, table, source) if is_budgets else put_plans(book.plans, table, source)
            book.warnings += put
            changed = [name for name, words in tables.items() if words is not before.get(name)]
            book.sources |= {f"{kind}.{name}".rstrip("."): source for name in changed}
        elif kind == "breakers":
            book.warnings += put_breakers(book.own, table, source)
        elif kind not in book.files:
            book.warnings.append(_no_such_table(book, source, kind, table))
        elif not isinstance(table, dict):
            shown = "..." if kind == "notify" else table  # it may be a secret
            book.warnings.append(ConfigError(source, kind, shown, f"a table [{kind}] of settings"))
        else:
            if kind == "notify":
                table, problems = book.targets.taken(table, source, book.files[kind])
                book.warnings += problems
            book.warnings += overlay(book.files[kind], book.values[kind], table, source, f"[{kind}]")


def _put_modes(book: Rulebook, table: Any, source: str) -> list[ConfigError]:
    """Take `[rules]`: a pattern of rules, and whether they are off, only logged, or enforced."""
    if not isinstance(table, dict):
        return [ConfigError(source, "rules", table, 'a table [rules] such as "tool.cycle" = "log"')]
    kinds = [kind for kind in KINDS if kind != "provider"]  # those are the person's, in whatever project
    circuits = {circuit.name for kind in kinds for circuit in compile_policies(book.files[kind], book.values[kind])}
    problems = []
    for pattern, mode in table.items():
        if mode not in MODES:
            problems.append(
                ConfigError(source, f"[rules] {pattern}", mode, f"{', '.join(MODES)}{suggest(str(mode), MODES)}")
            )
        elif not pattern.startswith(_OTHER_RULES) and not any(matches(name, pattern) for name in circuits):
            problems.append(unknown(source, f"[rules] {pattern}", mode, pattern, sorted(circuits)))
        else:
            book.modes.pop(pattern, None)  # the last that was written is the last that is looked at
            book.modes[pattern] = mode
            book.sources[pattern] = source
    return problems


def _misspelt_constraints(book: Rulebook) -> Iterator[ConfigError]:
    """Patterns of the project's `[rules]` that fit no constraint and are near one. Others may be for a pack that is not
    switched on, and a person's own file is for other projects too."""
    names = {f"constraint:{name}": name for name in book.constraints}
    for pattern, mode in book.modes.items():
        family, _, wanted = pattern.partition(":")
        is_ours = family == "constraint" and not os.path.isabs(book.sources[pattern])
        fits_none = is_ours and not any(matches(name, pattern) for name in names)
        if fits_none and difflib.get_close_matches(wanted, names.values(), cutoff=0.85):
            yield unknown(book.sources[pattern], f"[rules] {pattern}", mode, pattern, [*names])


def _no_such_table(book: Rulebook, source: str, name: str, value: object) -> ConfigError:
    """A table, or a key outside of any, that nobody knows: with the nearest one, where it really stands."""
    tables = [*TABLES, *_OTHER_TABLES]
    settings = [f"{kind}.{key}" for kind in TABLES for key in book.files[kind].settings]
    if isinstance(value, dict):
        inner = [key.rpartition(".")[0] for key in settings if key.count(".") > 1]
        hint = suggest(name, [*tables, *dict.fromkeys(inner)])
        return ConfigError(source, f"[{name}]", "...", "" if hint else ", ".join(tables), f"no such table{hint}")
    hint = suggest(name, [*tables, "profile", *settings])
    return ConfigError(source, name, value, "" if hint else ", ".join(tables), f"no such setting{hint}")

"""Read `[budgets.NAME]` and `[plan]`: what may be spent, and what the person has subscribed to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from fusewire.config.own_breakers import check_name
from fusewire.config.settings import suggest
from fusewire.core.budget import COUNTED, PERIODS, SCOPES, SpendBudget
from fusewire.util.errors import ConfigError

_KEYS = ("per", *COUNTED, "warn", "agent")
PLAN_KEYS = ("name", "window_tokens", "week_tokens")
MOST = 1e15
_MOST_BUDGETS = 50
LONGEST = 64


def put_budgets(budgets: dict[str, SpendBudget], table: object, source: str) -> Iterator[ConfigError]:
    """Put one layer's `[budgets]` over those of the layers below; yield a warning for everything not used.

    A project does not change a budget of the person: it may add its own, which count that project.
    """
    if not isinstance(table, Mapping):
        yield ConfigError(source, "budgets", table, "a table [budgets.NAME] for each budget")
        return
    is_persons = os.path.isabs(source)
    for name, words in table.items():
        section = f"[budgets.{str(name)[:LONGEST]}]"
        problem = check_name(name, source)
        if problem is not None:
            yield ConfigError(source, "[budgets]", name, problem.allowed)
        elif not isinstance(words, Mapping):
            yield ConfigError(source, section, words, f"a table {section} with {', '.join(_KEYS)}")
        elif name in budgets and budgets[name].is_persons and not is_persons:
            yield ConfigError(source, section, "...", "a name that is not one of your own budgets, which stay in force")
        elif len(budgets) >= _MOST_BUDGETS:
            yield ConfigError(source, section, "...", f"up to {_MOST_BUDGETS} budgets")
        else:
            problems = list(_problems(words, source, section))
            yield from problems
            if not problems:
                budgets[name] = _budget(name, words, is_persons)


def budget_words(budget: SpendBudget) -> dict[str, Any]:
    """The settings of a budget as a file has them."""
    per = budget.per[0] if len(budget.per) == 1 else list(budget.per)
    limits = {what: int(limit) if limit == int(limit) else limit for what, limit in budget.limits}
    agent = {"agent": budget.agent} if budget.agent else {}
    warn = {"warn": budget.warn} if budget.warn != SpendBudget.warn else {}
    return {"per": per, **limits, **warn, **agent}


def _problems(words: Mapping[str, Any], source: str, section: str) -> Iterator[ConfigError]:
    per = _per(words)
    names = (*SCOPES, *PERIODS)
    for key, value in words.items():
        if key not in _KEYS:
            yield ConfigError(
                source, f"{section} {key}", value, f"{', '.join(_KEYS)}", f"no such key{suggest(key, _KEYS)}"
            )
        elif key == "per" and (not per or not set(per) <= set(names)):
            yield ConfigError(source, f"{section} per", value, f"one of {', '.join(names)}, or a list of them")
        elif key == "per" and (len(set(per) & set(PERIODS)) > 1 or ("user" in per and len(set(per) & set(SCOPES)) > 1)):
            yield ConfigError(source, f"{section} per", value, "one stretch of time, and `user` with no other scope")
        elif key in COUNTED and not (type(value) in (int, float) and 0 < value <= MOST):
            yield ConfigError(source, f"{section} {key}", value, "a number above 0")
        elif key == "warn" and not (type(value) in (int, float) and 0 < value <= 1):
            yield ConfigError(source, f"{section} warn", value, "a share of the limit, above 0 and up to 1")
        elif key == "agent" and not (isinstance(value, str) and 0 < len(value) <= LONGEST):
            yield ConfigError(source, f"{section} agent", value, "the name of an agent, such as claude")
    if not any(key in words for key in COUNTED):
        yield ConfigError(source, section, dict(words), f"at least one of {', '.join(COUNTED)}")
    if "per" not in words:
        yield ConfigError(source, section, dict(words), f"per = one of {', '.join(names)}, or a list of them")


def _per(words: Mapping[str, Any]) -> tuple[str, ...]:
    per = words.get("per")
    given = [per] if isinstance(per, str) else per if isinstance(per, list) else []
    return tuple(one for one in given if isinstance(one, str)) if all(isinstance(one, str) for one in given) else ()


def _budget(name: str, words: Mapping[str, Any], is_persons: bool) -> SpendBudget:
    limits = tuple((key, float(words[key])) for key in COUNTED if key in words)
    return SpendBudget(name, _per(words), limits, float(words.get("warn", 0.8)), words.get("agent", ""), is_persons)


def put_plans(plans: dict[str, dict[str, Any]], table: object, source: str) -> Iterator[ConfigError]:
    """Take `[plan]`, of all agents, or `[plan.AGENT]`: its name, and what limits the person writes beside it."""
    if not isinstance(table, Mapping) or not os.path.isabs(source):
        yield ConfigError(source, "plan", "...", 'a table [plan] with name = "...", in your own config.toml')
        return
    tables = {agent: words for agent, words in table.items() if isinstance(words, Mapping)}
    if own := {key: value for key, value in table.items() if key not in tables}:
        tables[""] = own
    for agent, words in tables.items():
        section = f"[plan.{agent}]" if agent else "[plan]"
        wrong = [key for key in words if key not in PLAN_KEYS]
        bad = [key for key in PLAN_KEYS[1:] if key in words and not (type(words[key]) is int and words[key] > 0)]
        name = words.get("name")
        if wrong or bad:
            key = (wrong or bad)[0]
            allowed = ", ".join(PLAN_KEYS) if wrong else "a whole number of tokens above 0"
            yield ConfigError(source, f"{section} {key}", words[key], allowed)
        elif not (isinstance(name, str) and 0 < len(name) <= LONGEST):
            yield ConfigError(source, f"{section} name", name, 'the name of your plan, such as "max-5x"')
        else:
            plans[agent] = dict(words)


def budgets_of_plans(plans: Mapping[str, Mapping[str, Any]]) -> Iterator[SpendBudget]:
    """The limits that are written beside the name of a plan."""
    for agent, words in plans.items():
        for key, period in (("window_tokens", "window"), ("week_tokens", "week")):
            if key in words:
                name = f"plan-{agent}-{period}" if agent else f"plan-{period}"
                yield SpendBudget(name, (period,), (("tokens", float(words[key])),), 0.8, agent, True)

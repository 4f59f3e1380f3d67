"""Say which limits are in force, where a person can answer and where nobody can, and how to change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.agents import agent_named
from fusewire.breakers.session.spawning import ATTENDED_TIMES
from fusewire.config.rules import load_rules

if TYPE_CHECKING:
    from fusewire.agents.install.client import Client
    from fusewire.config.rules import Rules


def limits_in_force(root: str, client: Client) -> list[dict[str, str]]:
    """Four kinds of limits, and what happens in the two situations; then which one holds when, and how to change it."""
    rules = load_rules(root)
    asks = agent_named(client.name).ASKS
    asked = "you are asked" if asks else f"refused ({client.title} cannot ask you)"
    return [
        _agents(rules, asks),
        _repeated(rules, asked),
        _files(rules, asked),
        _money(rules),
        _situation(rules, client),
    ]


def line(entry: dict[str, str]) -> str:
    """One of them as people read it."""
    if "change" in entry:
        return f"attended: {entry['attended']}; unattended: {entry['unattended']}. To change: {entry['change']}"
    return f"{entry['name']}: {entry['limit']}. Unattended: {entry['unattended']}; attended: {entry['attended']}"


def _situation(rules: Rules, client: Client) -> dict[str, str]:
    profile = rules.tool["profile"]
    seen = "that Claude Code reports as such" if client.name == "claude" else "at a terminal"
    never = "in CI, under `fusewire run` or started by an agent"
    attended = {"auto": f"a session {seen}, not {never}", "attended": f"a session that is not {never}"}
    return {
        "name": "situation",
        "limit": f"profile = {profile}",
        "unattended": "every other" if profile in attended else "every session",
        "attended": attended.get(profile, "none"),
        "change": "`profile` and the limits under [tool] in fusewire.toml; `fusewire config agents` shows the lines",
    }


def _agents(rules: Rules, asks: bool) -> dict[str, str]:
    settings = rules.tool
    at_once, in_all = (settings[f"resource_limits.max_{name}"] for name in ("concurrent_agents", "agents_per_session"))
    pause = settings["resource_limits.agent_spawn_cooldown_seconds"]
    limit = f"{at_once} at once, {in_all} a session" + f", {pause:g} s between replies" * bool(pause)
    asked = f"; you are asked above {at_once * ATTENDED_TIMES} at once or {in_all * ATTENDED_TIMES} since your message"
    return {
        "name": "agents",
        "limit": f"{limit}{_mode(rules, 'tool.agents')}",
        "unattended": "refused",
        "attended": f"the agent is told, without the pause{asked * asks}",
    }


def _repeated(rules: Rules, asked: str) -> dict[str, str]:
    names = [name.split("/")[1] for name in rules.policies if name.startswith("tool/") and name.endswith("/{loop}")]
    found = [f"{name} {rules.tool[f'{name}.block']}{_mode(rules, f'tool.{name}')}" for name in names]
    return {
        "name": "repeated calls",
        "limit": f"from {', '.join(found)} on" if found else "no limit",
        "unattended": f"refused, halted after {rules.tool['loops.halt_after']} refusals of the same call",
        "attended": asked,
    }


def _files(rules: Rules, asked: str) -> dict[str, str]:
    documents, configuration = rules.guard[:2]
    kept = sum(not constraint.retired for constraint in rules.constraints.values())
    return {
        "name": "files",
        "limit": f"{', '.join((*documents, *configuration))}; {kept} constraint{'s' * (kept != 1)}",
        "unattended": "what would lose them is refused",
        "attended": f"the same; about skills, commands and agents in .claude/ {asked}",
    }


def _money(rules: Rules) -> dict[str, str]:
    """Every limit in dollars that is set."""
    costs = {name.partition(".")[2]: value for name, value in rules.tool.items() if "cost_block" in name and value}
    alone = [name for name in costs if name.endswith("_unattended")]
    return {
        "name": "money",
        "limit": ", ".join(f"{name} ${value:g}" for name, value in costs.items()) or "no limit",
        "unattended": "refused until you grant more" if costs else "nothing",
        "attended": f"the same{f', without {alone[0]}' if alone else ''}",
    }


def _mode(rules: Rules, rule: str) -> str:
    return {"enforce": "", "off": " (off)", "log": " (only logged)"}[rules.mode(rule)]

"""The status line of an agent: `python3 -I -S .../fusewire/hook.py statusline` behind Claude Code's `statusLine`.

It is run after every reply while somebody works, so it is as light as the hook, and it only looks: no file is made or
written, no rule is compiled, nobody waits for it. Whatever goes wrong is one line, too: a person's screen is no place
for a traceback.
"""

from __future__ import annotations

import os
import time

from fusewire.config.rules import DATABASE, find_guarded, rules_as_they_lie
from fusewire.gate.status_text import UNREADABLE, status_line
from fusewire.util.fast_json import loads
from fusewire.util.stdio import INPUT_LIMIT, payload_of, read_input, write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, NoReturn

    from fusewire.config.rules import Rules
    from fusewire.core.circuit import Policy, State
    from fusewire.stores.fast_sqlite import sqlite3

#: Seconds that a store which somebody mends is waited for.
_PATIENCE = 0.1

#: A closed circuit is worth showing from this share of its limit on.
_NEAR = 0.5

#: Circuits whose levels are no counts of something that goes wrong.
_LIMITS = frozenset(("spend", "spend_day", "spend_project", "agents", "api_calls"))

#: Breakers whose circuits have a key of their own in front of the session.
_KEYED = frozenset(("hook_recursion", "tool_failure", "sequential_tools"))

_WORST_FIRST = ("open", "probe", "watch", "closed")

_CIRCUITS = "SELECT id, state FROM circuits WHERE phase != 'closed' OR (kind = 'tool' AND instr(id, ?))"
_MEMORY = "SELECT data FROM memories WHERE name = ?"


#: Done once the line has been written; `hook` sets it.
at_end: Callable[[], None] | None = None


def main(arguments: Sequence[str] = ()) -> NoReturn:
    """Write the line and end the process. `--color` asks for colours, NO_COLOR forbids them."""
    try:
        color = "--color" in arguments and not os.environ.get("NO_COLOR")
        text = status_line(glance(read_payload(), os.environ), color=color)
    except (Exception, KeyboardInterrupt):
        text = UNREADABLE
    write_line(1, text)
    try:
        if at_end:
            at_end()
    finally:
        os._exit(0)


def read_payload() -> Any:
    """What the agent's program says of its session; None if it cannot be read. A person at a terminal says nothing."""
    if os.isatty(0):
        return {}
    try:
        raw = read_input()
        return payload_of(raw) if len(raw) <= INPUT_LIMIT else None
    except (OSError, ValueError):
        return None


def glance(payload: Any, environment: Mapping[str, str], project: str | None = None) -> dict[str, Any]:
    """Everything that the line shows. What is wrong with the store is raised."""
    given = payload if isinstance(payload, dict) else {}
    root = project or _root(given, environment)
    session = given.get("session_id")
    session = session if isinstance(session, str) and session else None
    rules = rules_as_they_lie(root)  # the hook looks whether they are current; here an old limit is no harm
    seen = _Sight(root, session, rules, time.time())
    spend = _spend(given.get("cost"), rules, seen.record)
    halted = _halted(root, session, seen.record)
    active = [one for one in seen.circuits if one["phase"] != "closed"]
    state = active[0]["state"] if active else "CLOSED"
    problem = _problem(payload)
    if problem and state != "OPEN":
        state = "?"  # whose session it is stays unknown, and so does whether all is well there
    elif _lost_hooks(seen.record):
        state = "GONE"
    elif halted:
        state = "HALTED"
    elif session is not None and "since" not in seen.record:
        state = "UNHEARD"  # nobody guards it: its hooks do not run, or not yet
    elif spend["reached"]:
        state = "LIMIT"
    return {
        "state": state,
        "session": session,
        "halted": halted or None,
        "circuits": active,
        "nearest": _nearest(seen.circuits),
        "spend": spend,
        "problem": problem,
    }


def _lost_hooks(record: dict[str, Any]) -> bool:
    """Whether the settings that called our hook when the session began no longer do."""
    if not record.get("registered"):
        return False
    from fusewire.breakers.session.registration import lost_file

    return bool(lost_file(record["registered"]))


def _problem(payload: Any) -> str | None:
    """What is wrong with the input; a person who looks from a terminal names no session."""
    if not isinstance(payload, dict):
        return "its input cannot be read"
    session = payload.get("session_id")
    return "its input names no session" if session == "" or not isinstance(session, (str, type(None))) else None


def _root(given: dict[str, Any], environment: Mapping[str, str]) -> str:
    """The project that the hook of the same session finds."""
    workspace = given.get("workspace")
    folder = workspace.get("project_dir") if isinstance(workspace, dict) else None
    for place in (environment.get("CLAUDE_PROJECT_DIR"), folder, given.get("cwd")):
        if isinstance(place, str) and place and "\0" not in place:
            return find_guarded(place)
    return find_guarded(os.getcwd())


class _Sight:
    """What the store has on a session, and on the project's circuits that are not closed."""

    def __init__(self, root: str, session: str | None, rules: Rules | None, now: float) -> None:
        self.session, self.rules, self.now = session, rules, now
        self.record: dict[str, Any] = {}
        self.circuits: list[dict[str, Any]] = []
        self._turns: dict[str, int | None] = {}
        self._connection = _open(os.path.join(root, DATABASE))
        if self._connection is None:
            return
        if session is not None:
            from fusewire.breakers.session.state import recalled, session_name

            self.record = recalled(self, session_name(session))  # type: ignore[arg-type]  # it recalls, that is enough
        rows = self._connection.execute(_CIRCUITS, (session or "\0",)).fetchall()
        found = [one for circuit, text in rows for one in self._circuit(circuit, loads(text))]
        self.circuits = sorted(found, key=lambda one: (not one["of_session"], _WORST_FIRST.index(one["phase"])))
        self._connection.close()

    def recall(self, name: str) -> dict[str, Any] | None:
        """As a store does."""
        assert self._connection is not None
        row = self._connection.execute(_MEMORY, (name,)).fetchone()
        data = loads(row[0]) if row else None
        if data is not None and not isinstance(data, dict):
            raise ValueError("not what was remembered")
        return data

    def _circuit(self, circuit: str, data: Any) -> Iterator[dict[str, Any]]:
        from fusewire.core.circuit import view
        from fusewire.core.decision import PUBLIC_STATE
        from fusewire.util.durations import seconds_until

        is_mine, agent, name, key = self._whose(circuit)
        if circuit.startswith("tool/") and not is_mine and name not in _LIMITS:
            return  # another session's
        policy = self._policy(circuit)
        if policy is None and self.rules is not None:
            return  # switched off
        state = _as_stored(data)
        if policy is not None:
            state = view(policy, state, self.now)
        level, threshold = self._level(policy, state, agent)
        until = state.until if state.phase == "open" else state.lease_until if state.phase == "probe" else None
        left = None if until is None else seconds_until(until, self.now)
        yield {
            "id": circuit,
            "state": PUBLIC_STATE[state.phase],
            "phase": state.phase,
            "of_session": is_mine,
            "name": name,
            "key": key or None,
            "level": level,
            "threshold": threshold,
            "retry_after": left or None if state.phase == "probe" else left,
        }

    def _whose(self, circuit: str) -> tuple[bool, str, str, str]:
        """Whether it is one of this session, of which agent in it; its name, and what it is about."""
        kind, *parts = circuit.split("/")
        if kind != "tool" or not parts:
            return False, "", circuit, ""
        lane = next((part for part in parts if part.partition(":")[0] == self.session), None)
        alarm = self.record.get("alarms", {}).get(circuit)
        tool = str(alarm[1]) if isinstance(alarm, list) and len(alarm) > 1 else ""
        key = "/".join(parts[1:-1]) if parts[0] in _KEYED else tool
        return lane is not None, (lane or "").partition(":")[2], parts[0], key

    def _policy(self, circuit: str) -> Policy | None:
        from fusewire.util.errors import NotFound

        try:
            return self.rules.policy(circuit) if self.rules is not None else None
        except NotFound:
            return None

    def _level(self, policy: Policy | None, state: State, agent: str) -> tuple[float, float]:
        """Of the meter that is nearest to its limit: how full it is, and the limit."""
        from fusewire.core import meters

        best = (0.0, 0.0)
        for meter in policy.meters if policy is not None else ():
            memory = state.meters.get(meter.name, [])
            level = meters.level(meter, memory, self.now, self._turn(agent) if meter.turns and memory else None)
            if meter.trip > 0 and (not best[1] or level / meter.trip > best[0] / best[1]):
                best = (level, meter.trip)
        return best

    def _turn(self, agent: str) -> int | None:
        """How many turns an agent has had: windows of turns move with it."""
        if agent not in self._turns:
            from fusewire.breakers.session.state import lane_name, recalled

            self._turns[agent] = recalled(self, lane_name(self.session or "", agent)).get("turn")  # type: ignore[arg-type]
        return self._turns[agent]


def _open(path: str) -> sqlite3.Connection | None:
    """The database as it lies, if there is one: SQLite makes files beside it even for a reader, unless it is told."""
    from fusewire.stores.fast_sqlite import LOGS, sqlite3
    from fusewire.util.files import fault_at, fits_mark, uri_path

    if not os.path.lexists(path) or not fits_mark(os.path.dirname(path)):
        return None
    for suffix in ("", *LOGS):
        fault = fault_at(path + suffix)
        if fault:
            raise OSError(22, fault, path + suffix)
    logged = os.path.exists(f"{path}-wal") and os.path.exists(f"{path}-shm")
    how = "readonly_shm=1" if logged else "immutable=1"  # without its log, everything is in the file itself
    return sqlite3.connect(f"file:{uri_path(path)}?mode=ro&{how}", uri=True, timeout=_PATIENCE)


def _as_stored(data: Any) -> State:
    from fusewire.core.state import State

    return State.from_data(data)


def _nearest(circuits: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The closed circuit of the session that is nearest to its limit, from half of that on."""
    near = [
        one
        for one in circuits
        if one["phase"] == "closed"
        and one["of_session"]
        and one["name"] not in _LIMITS
        and one["threshold"]
        and one["level"] >= _NEAR * one["threshold"]
    ]
    return max(near, key=lambda one: one["level"] / one["threshold"], default=None)


def _spend(cost: Any, rules: Rules | None, record: dict[str, Any]) -> dict[str, Any]:
    """What the hook has counted, else what the agent's program says."""
    counted = (record.get("spend") or {}).get("usd")
    told = cost.get("total_cost_usd") if isinstance(cost, dict) else None
    usd = next((amount for amount in (counted, told) if type(amount) in (int, float) and amount), None)
    usd = 0.0 if usd is None and (counted is not None or told is not None) else usd
    limit = rules.tool.get("resource_limits.api_cost_block_usd") if rules is not None else None
    allowed = limit + record.get("granted", 0) if limit else None
    return {"usd": usd, "limit_usd": allowed, "reached": bool(allowed and counted and counted >= allowed)}


def _halted(root: str, session: str | None, record: dict[str, Any]) -> str:
    """The rule that has halted the session, if nobody has spoken since."""
    from fusewire.guard.calls import halted

    known = record.get("halted")
    if known:
        return str(known.get("rule") or "a breaker").replace(f"/{session}", "")
    return "guard" if session is not None and halted(root, session) else ""

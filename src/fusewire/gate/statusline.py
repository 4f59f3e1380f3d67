"""Show a session in one line: `python3 -I -S .../fusewire/hook.py statusline` behind Claude Code's `statusLine`.

The line says the state, what is nearest to its limit, the spend and the time left. It is made after every reply while
a person works, so it is as light as the hook, and it only looks: no file is made or written, no rule is compiled, and
it waits for no lock. Anything that goes wrong is one line, too: a person's screen is no place for a traceback.
"""

from __future__ import annotations

import os
import time

from fusewire.config.rules import DATABASE, find_guarded, is_shared, rules_as_they_lie, shared_root
from fusewire.core.events import Noun
from fusewire.util.durations import number, show_duration
from fusewire.util.fast_json import loads
from fusewire.util.stdio import INPUT_LIMIT, payload_of, read_input, write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, NoReturn

    from fusewire.breakers.session.state import SessionMemory
    from fusewire.config.rules import Rules
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.stores.fast_sqlite import sqlite3
    from fusewire.util.fast_json import JsonObject

#: Columns; beside it the agent's program shows things of its own.
WIDTH = 100

UNREADABLE = "fusewire ? state unreadable: fusewire doctor"

_GREEN, _YELLOW, _RED = "32", "33", "31"
COLORS = {
    "CLOSED": _GREEN,
    "HALF_OPEN": _YELLOW,
    "UNHEARD": _YELLOW,
    "GONE": _RED,
    "?": _YELLOW,
    "OPEN": _RED,
    "HALTED": _RED,
    "LIMIT": _RED,
}

#: What the state alone does not say.
_WORDS = {
    "UNHEARD": "no hook has run in this session yet",
    "GONE": "its hooks were taken out, nothing is guarded",
    "LIMIT": "spend: every call is refused until a person grants more",
}

#: Seconds to wait for a store that is being rebuilt.
_PATIENCE = 0.1

#: A closed circuit is worth showing from this share of its limit on.
_NEAR = 0.5

#: Circuits whose levels do not count something that goes wrong.
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
    """Read what the agent's program says of its session; None if it cannot be read. A terminal says nothing."""
    if os.isatty(0):
        return {}
    try:
        raw = read_input()
        return payload_of(raw) if len(raw) <= INPUT_LIMIT else None
    except (OSError, ValueError):
        return None


# -- what is shown ----------------------------------------------------------------------------------------


class SeenCircuit(Noun):
    """A circuit as the line shows it."""

    id: str
    state: str
    phase: str
    of_session: bool
    name: str
    key: str | None
    level: float
    threshold: float
    retry_after: float | None

    def words(self) -> str:
        """`repetition Bash(make) 24s`."""
        name = f"{self.name} {self.key}" if self.key else self.name
        left = self.retry_after
        if self.phase == "open":  # whole seconds, rounded up: after that wait the call is not refused again
            return f"{name} {'until a person acts' if left is None else show_duration(-int(-left // 1))}"
        if self.phase == "probe":
            return f"{name} {'ready to probe' if left is None else 'probe running'}"
        return f"{name} {number(self.level)}/{number(self.threshold)}"

    @property
    def is_near(self) -> bool:
        """Whether it is a closed circuit of the session that has filled half of its limit."""
        return bool(
            self.phase == "closed"
            and self.of_session
            and self.name not in _LIMITS
            and self.threshold
            and self.level >= _NEAR * self.threshold
        )


class SeenSpend(Noun):
    """What the session costs; `reached` if that is all it may."""

    usd: float | None
    limit_usd: float | None
    reached: bool

    def words(self) -> str:
        if self.usd is None:
            return ""
        limit = f"{self.limit_usd or 0:.2f}".removesuffix(".00")
        return f"${self.usd:.2f} of ${limit}" if self.limit_usd else f"${self.usd:.2f}"


class Glance(Noun):
    """Everything that the line shows."""

    state: str
    session: str | None
    halted: str | None
    circuits: list[SeenCircuit]
    nearest: SeenCircuit | None
    spend: SeenSpend
    problem: str | None
    #: what a person has ordered for the session: a halt, or that rules only log
    ordered: str | None = None


def to_json(value: Any) -> Any:
    """A glance as `fusewire statusline --json` prints it."""
    if isinstance(value, list):
        return [to_json(one) for one in value]
    return {name: to_json(getattr(value, name)) for name in value.fields} if isinstance(value, Noun) else value


def status_line(seen: Glance, *, color: bool = False) -> str:
    """Render a glance; the words fit into WIDTH columns, colours take none."""
    head = f"fusewire {seen.state}"
    body = _body(seen, WIDTH - _width(head))
    return (f"fusewire \033[{COLORS[seen.state]}m{seen.state}\033[0m" if color else head) + body


def _body(seen: Glance, room: int) -> str:
    """What follows the state: the spend always has its place, other words are cut if they are too long."""
    money = seen.spend.words()
    words = " · ".join(filter(None, _facts(seen)))
    tail = f" · {money}" if money else ""
    if not words:
        return tail
    if seen.state == "CLOSED":  # nothing is wrong: what is nearest to a limit comes last
        return tail + _cut(f" · {words}", room - _width(tail))
    return _cut(f" {words}", room - _width(tail)) + tail


def _facts(seen: Glance) -> Iterator[str]:
    if seen.ordered:
        yield seen.ordered
    if seen.halted:
        yield f"{seen.halted} until you say something"
    yield _WORDS.get(seen.state, "")
    if seen.circuits and seen.state in ("OPEN", "HALF_OPEN"):
        yield seen.circuits[0].words()
        states = [one.state for one in seen.circuits[1:]]
        yield ", ".join(f"{states.count(state)} more {state}" for state in ("OPEN", "HALF_OPEN") if state in states)
    elif seen.nearest and seen.state == "CLOSED":
        yield seen.nearest.words()
    if seen.problem:
        yield seen.problem


def _width(text: str) -> int:
    """Columns at most: a character outside ASCII may take two."""
    return len(text) if text.isascii() else sum(1 if char.isascii() or char in "·…" else 2 for char in text)


def _cut(text: str, room: int) -> str:
    text = "".join(char if char.isprintable() else "?" for char in text)
    if _width(text) <= room:
        return text
    while text and _width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


# -- where it comes from ----------------------------------------------------------------------------------


def glance(payload: Any, environment: Mapping[str, str], project: str | None = None) -> Glance:
    """Collect everything that the line shows. Faults of the store are raised."""
    given = payload if isinstance(payload, dict) else {}
    root = project or _root(given, environment)
    session = given.get("session_id")
    session = session if isinstance(session, str) and session else None
    rules = rules_as_they_lie(root)  # the hook checks whether they are current; here an old limit does no harm
    seen = _Sight(root, session, rules, time.time())
    spend = _spend(given.get("cost"), rules, seen.state)
    halted = _halted(root, session, seen.state)
    active = [one for one in seen.circuits if one.phase != "closed"]
    state = active[0].state if active else "CLOSED"
    problem = _problem(payload)
    if problem and state != "OPEN":
        state = "?"  # the session is unknown, and so is whether all is well there
    elif _lost_hooks(seen.state):
        state = "GONE"
    elif halted:
        state = "HALTED"
    elif session is not None and seen.state.since is None:
        state = "UNHEARD"  # not guarded: its hooks do not run, or not yet
    elif spend.reached:
        state = "LIMIT"
    ordered, is_halt = _ordered(root, session, time.time())
    state = "HALTED" if is_halt else state
    near = [one for one in seen.circuits if one.is_near]
    nearest = max(near, key=lambda one: one.level / one.threshold, default=None)
    return Glance(state, session, halted or None, active, nearest, spend, problem, ordered or None)


def _ordered(root: str, session: str | None, now: float) -> tuple[str, bool]:
    """What a person has ordered for a session, in a few words, and whether it is a halt."""
    from fusewire.scopes.orders import halt_of, paused_rules, read_orders

    orders = read_orders(root)
    halt = halt_of(orders, root, session)
    if halt is not None:
        return f"by {halt.by}: {halt.reason} (fusewire resume)", True
    if orders.damage:
        return "a person's orders cannot be read: fusewire doctor", False
    rules = paused_rules(orders, root, session, now) if orders.pauses else []
    return (f"paused: {', '.join('all rules' if one == '*' else one for one in rules)}" if rules else ""), False


def _lost_hooks(state: SessionMemory) -> bool:
    """Whether the settings that called our hook when the session began no longer do."""
    if not state.registered:
        return False
    from fusewire.breakers.session.registration import lost_file

    return bool(lost_file(state.registered))


def _problem(payload: Any) -> str | None:
    """What is wrong with the input; at a terminal no session is named."""
    if not isinstance(payload, dict):
        return "its input cannot be read"
    session = payload.get("session_id")
    return "its input names no session" if session == "" or not isinstance(session, (str, type(None))) else None


def _root(given: JsonObject, environment: Mapping[str, str]) -> str:
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
        from fusewire.breakers.session.state import SessionMemory, session_name

        self.session, self.rules, self.now = session, rules, now
        self.state = SessionMemory()
        self.circuits: list[SeenCircuit] = []
        self._turns: dict[str, int | None] = {}
        found: list[SeenCircuit] = []
        main = shared_root(root)
        for folder in filter(None, (main, root)):  # the worktree's own one last: what is remembered is there
            self._connection = _open(os.path.join(folder, DATABASE))
            if self._connection is None:
                continue
            if folder == root and session is not None:
                self.state = SessionMemory.recalled(self, session_name(session))
            rows = self._connection.execute(_CIRCUITS, (session or "\0",)).fetchall()
            if main is not None:
                rows = [row for row in rows if is_shared(row[0]) == (folder == main)]
            found += [one for circuit, text in rows for one in self._circuit(circuit, loads(text))]
            self._connection.close()
        self.circuits = sorted(found, key=lambda one: (not one.of_session, _WORST_FIRST.index(one.phase)))

    def recall(self, name: str) -> JsonObject | None:
        """As a store does."""
        assert self._connection is not None
        row = self._connection.execute(_MEMORY, (name,)).fetchone()
        data = loads(row[0]) if row else None
        if data is not None and not isinstance(data, dict):
            raise ValueError("not what was remembered")
        return data

    def _circuit(self, circuit: str, data: Any) -> Iterator[SeenCircuit]:
        from fusewire.core.circuit import cooled_at, view
        from fusewire.core.decision import PUBLIC_STATE
        from fusewire.core.state import CircuitState
        from fusewire.util.durations import seconds_until

        is_mine, agent, name, key = self._whose(circuit)
        if circuit.startswith("tool/") and not is_mine and circuit.count("/") > 1:
            return  # another session's
        policy = self._policy(circuit)
        if policy is None and self.rules is not None:
            return  # switched off
        state = CircuitState.from_data(data)
        if policy is not None:
            state = view(policy, state, self.now)
        level, threshold = self._level(policy, state, agent)
        until = state.lease_until if state.phase == "probe" else None
        if state.phase == "open":
            until = cooled_at(policy, state, self.now) if policy is not None else state.until
        left = None if until is None else seconds_until(until, self.now)
        left = left or None if state.phase == "probe" else left
        shown = PUBLIC_STATE[state.phase]
        yield SeenCircuit(circuit, shown, state.phase, is_mine, name, key or None, level, threshold, left)

    def _whose(self, circuit: str) -> tuple[bool, str, str, str]:
        """Whether it is one of this session, of which agent in it; its name, and what it is about."""
        kind, *parts = circuit.split("/")
        if kind != "tool" or not parts:
            return False, "", circuit, ""
        lane = next((part for part in parts if part.partition(":")[0] == self.session), None)
        alarm = self.state.alarms.get(circuit)
        tool = alarm.tool if alarm else ""
        key = "/".join(parts[1:-1]) if parts[0] in _KEYED else tool
        return lane is not None, (lane or "").partition(":")[2], parts[0], key

    def _policy(self, circuit: str) -> Policy | None:
        from fusewire.util.errors import NotFound

        try:
            return self.rules.policy(circuit) if self.rules is not None else None
        except NotFound:
            return None

    def _level(self, policy: Policy | None, state: CircuitState, agent: str) -> tuple[float, float]:
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
            from fusewire.breakers.session.state import LaneMemory, lane_name

            lane = LaneMemory.recalled(self, lane_name(self.session or "", agent))
            self._turns[agent] = None if lane.is_new else lane.turn
        return self._turns[agent]


def _open(path: str) -> sqlite3.Connection | None:
    """Open the database as it lies, if there is one: without these options SQLite makes files even for a reader."""
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


def _spend(cost: Any, rules: Rules | None, state: SessionMemory) -> SeenSpend:
    """What the hook has counted, else what the agent's program reports."""
    counted = state.spend.get("usd")
    reported = cost.get("total_cost_usd") if isinstance(cost, dict) else None
    usd = next((amount for amount in (counted, reported) if type(amount) in (int, float) and amount), None)
    usd = 0.0 if usd is None and (counted is not None or reported is not None) else usd
    limit = state.limit(rules.tool) if rules is not None and state.at is not None else None
    allowed = limit + state.granted if limit else None
    return SeenSpend(usd, allowed, bool(allowed and counted and counted >= allowed))


def _halted(root: str, session: str | None, state: SessionMemory) -> str:
    """The rule that has halted the session, unless a person has spoken since."""
    from fusewire.guard.calls import halted

    if state.halted is not None:
        return (state.halted.rule or "a breaker").replace(f"/{session}", "")
    return "guard" if session is not None and halted(root, session) else ""

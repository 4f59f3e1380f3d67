"""Limit calls of external APIs: by scripts, by tools, and by hosts that programs like curl fetch from."""

from __future__ import annotations

from fusewire.guard.shell.wrappers import SHELLS, program, shell_operands
from fusewire.util.durations import show_duration
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from fusewire.breakers.session.calls import Call
    from fusewire.breakers.session.state import SessionMemory
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event

#: A line that calls more often is refused at the latest here.
_MOST = 100

#: How a person lifts the limit of a session.
MORE_CALLS = 'a person can say "grant another 20 calls" to the agent, or run: fusewire grant 20 --calls --reason "..."'

_WITHOUT = ("do the rest without external APIs, or report what is done", "ask the user to grant more")

#: The circuits that count the calls of a session, and their limits.
_SESSION_MAX = {"external_api": "external_api.session_max", "api_calls": "resource_limits.api_session_max"}

_FETCHING = frozenset(("curl", "wget", "http", "https", "xh", "httpie", "aria2c", "fetch"))

_INTERPRETERS = ("python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "tsx", "ts-node")

#: Their options that take a value of their own, and those after which no script is run: code, or a mere check.
_VALUES = frozenset(("-W", "-X", "-Q", "-I", "-r", "--require", "--import", "--loader", "--check-hash-based-pycs"))
_NO_SCRIPT = frozenset(("-c", "-e", "--eval", "-p", "--print", "--check", "-"))

#: Modules of Python that run the script behind them.
_RUNNING_MODULES = frozenset(("pdb", "cProfile", "profile", "trace", "coverage"))


def limits_on_api(unit: UnitOfWork, call: Call, lease: str) -> Iterator[Decision]:
    """May it call? Each call of a line is one.

    A line with more calls than there is room for is refused as a whole, before any of them is counted.
    """
    times = min(_MOST, api_calls(unit.event, call.commands, unit.settings))
    if not times:
        return
    from fusewire.breakers.session.api_cost import call_begins, limit_on_cost

    yield from limit_on_cost(unit)
    limits, breaker = f"tool/api_calls/{unit.session}", f"tool/external_api/{unit.session}"
    circuits = (breaker, limits) if unit.has("tool/external_api/{session}") else (limits,)
    for circuit in circuits:
        if unit.level(circuit, "session_calls") + times > unit.settings[_SESSION_MAX[circuit.split("/")[1]]]:
            yield _session_is_full(unit, circuit, times)
    room = unit.room(limits)
    if times > max(1, room):
        reason = f"{times} API calls at once, and there is room for {room}"
        yield unit.dry_run(limits, "api_call").replace(
            verdict="deny", reason=reason, next=("put fewer of them into one command",)
        )
    for _ in range(times):
        for circuit in circuits:
            decision = unit.signal("ask", circuit, "api_call", lease=lease, text=call.shown)
            yield decision if decision.allowed or circuit == limits else _with_limit(unit, decision)
    call_begins(unit, lease, times)


def _with_limit(unit: UnitOfWork, decision: Decision) -> Decision:
    """The breaker lets one call through after its cooldown; the limit may be full for longer, and that is said."""
    limit = unit.dry_run(f"tool/api_calls/{unit.session}", "api_call")
    wait = limit.retry_after or 0
    if limit.allowed or wait <= (decision.retry_after or 0):
        return decision
    room = f"the limit of API calls a minute has room again in {show_duration(wait)}"
    worded: Decision = decision.replace(evidence=(*decision.evidence, room))
    return worded


def _session_is_full(unit: UnitOfWork, circuit: str, times: int) -> Decision:
    """Waiting does not help here, a person does."""
    granted, most = unit.state.calls_granted, unit.settings[_SESSION_MAX[circuit.split("/")[1]]]
    made = int(unit.level(circuit, "session_calls")) + granted
    reason = f"{made} API call{'' if made == 1 else 's'} in this session"
    reason += f", and this would make {times} more" if made < most + granted else ""
    reason += f" (limit {most}{f', and {granted} granted' if granted else ''})"
    return unit.decide(circuit, "deny", reason, next=_WITHOUT, by_person=(MORE_CALLS,))


def grant_calls(state: SessionMemory, calls: int, send: Callable[[str, float], object]) -> int:
    """Allow more calls; what is granted in all. `send` tells a circuit of it, if there is one."""
    for breaker in _SESSION_MAX:
        send(f"tool/{breaker}", -calls)
    state.calls_granted += calls
    return state.calls_granted


def api_calls(event: Event, commands: list[list[str]], settings: Mapping[str, Any]) -> int:
    """How many external calls a tool call makes; reading or editing such a script is none.

    Commands are listed with their wrappers and without, and a wrapper itself is no call: each counts once.
    """
    if any(matches(event.tool, pattern) for pattern in settings["external_api.tools"]):
        return 1
    if event.command is None:
        return 0
    hosts, scripts = settings["external_api.hosts"], settings["external_api.commands"]
    return sum(_fetched(words, hosts) or _runs(words, scripts) for words in commands)


def _runs(words: list[str], scripts: tuple[str, ...]) -> int:
    script = _script_of(words)
    return int(any(matches(script, pattern) for pattern in scripts))


def _script_of(words: list[str]) -> str:
    """The name of what the words run: the program, or the first file that an interpreter is given."""
    name = program(words)
    if name in SHELLS:
        has_script, operands, runs = shell_operands(words)
        return program(operands) if runs and not has_script else ""
    if not name.startswith(_INTERPRETERS):
        return name
    at = 1
    while at < len(words):
        word = words[at]
        module = words[at + 1] if word == "-m" and at + 1 < len(words) else ""
        if word in _NO_SCRIPT:
            return ""
        if module and module not in _RUNNING_MODULES:
            return f"{module.rpartition('.')[2]}.py"
        if word[:1] != "-" and not (word == "run" and name in ("deno", "bun")):
            return program([word])
        at += 2 if module or word in _VALUES else 1
    return ""


def _fetched(words: list[str], hosts: tuple[str, ...]) -> int:
    """How many addresses of these hosts are fetched."""
    if program(words) not in _FETCHING:
        return 0
    return sum(any(matches(host, pattern.lower()) for pattern in hosts) for host in map(_host, words[1:]))


def _host(word: str) -> str:
    scheme, mark, rest = word.partition("://")
    if mark and not scheme.isalnum():
        return ""  # a text that has an address in it, such as a header or what is sent
    place = rest if mark else word
    for end in "/?#":
        place = place.partition(end)[0]
    return place.rpartition("@")[2].partition(":")[0].lower()

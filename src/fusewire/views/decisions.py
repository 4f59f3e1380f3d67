"""List the answers that were not a plain allow, and explain one of them in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from fusewire.core.events import identifier
from fusewire.scopes.once import VALID, find
from fusewire.scopes.user import open_user_store
from fusewire.util.durations import format_time, show_time
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.globs import matches
from fusewire.util.json_types import Count, Seconds, Time, about
from fusewire.util.local_time import local_time
from fusewire.views.session_names import SessionNames
from fusewire.views.settings import SettingInForce, configured, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import DecisionRow

DecisionKind = Literal["told", "asked", "refused", "halted", "logged"]

#: What stops a call.
_STOPS = ("refused", "halted")

#: The page on a rule, by the first part of its name; those of constraints have any name.
_PAGES = {
    "guard": "guard.md",
    "tool": "session.md",
    "loop": "loop.md",
    "phase": "phases.md",
    "attempt": "attempts.md",
    "scope": "scope.md",
    "own": "extending.md",
    "fusewire": "guard.md",
    "fusewire.halt": "halt.md",
    "budget": "spend.md",
    "provider": "limits.md",
}
_OF_CONSTRAINTS = "constraints.md"
_DOCS = "docs/"


@dataclass(frozen=True)
class DecisionLine:
    """One answer that was not a plain allow."""

    number: Count
    code: Annotated[str, about("by which `fusewire why` has it in full")]
    at: Time
    kind: Annotated[DecisionKind, about("logged: what a rule in `log` mode, or paused, would have answered")]
    rule: str
    session: str | None
    name: Annotated[str | None, about("the session as people know it")]
    agent: Annotated[str | None, about("the agent's program")]
    helper: Annotated[str | None, about("the agent that another one has started in its session")]
    tool: str
    call: str
    cwd: str | None
    reason: str


@dataclass(frozen=True)
class DecisionInFull(DecisionLine):
    """The same with everything that is known of it now."""

    circuit: str | None
    state: Annotated[str | None, about("of the circuit now")]
    evidence: list[str]
    next: Annotated[list[str], about("what would have passed")]
    until: Annotated[Time | None, about("when the same call may be tried again")]
    retry_after: Annotated[Seconds | None, about("seconds until then; 0 if it is over")]
    by_person: Annotated[list[str], about("how a person can lift it")]
    settings: list[SettingInForce]
    table: Annotated[str, about("the table of the configuration that the settings are in")]
    mode: Annotated[str, about("of the rule now: enforce, log, off")]
    also: Annotated[list[str], about("what other rules said of the same call")]
    message: Annotated[str, about("what the agent was answered")]
    docs: str


class Decisions:
    """What the project keeps of them. Nothing is written."""

    def __init__(self, breaker: Breaker, session: str | None = None, rule: str | None = None) -> None:
        """Of one session, given by the beginning of its id, and of the rules that a pattern fits, if that is wanted."""
        self._breaker, self._rule = breaker, rule
        self.names = SessionNames.of(breaker)
        also = (row.session for _, row in breaker.store.decisions()) if session else ()
        self.session = self.names.resolve(session, also) if session else None

    def rows(self, after: int = 0, since: float = 0.0) -> list[tuple[int, DecisionRow]]:
        """Behind a number and since a moment, oldest first."""
        return [(number, row) for number, row in self._breaker.store.decisions(after) if self._fits(row, since)]

    def _fits(self, row: DecisionRow, since: float) -> bool:
        if row.at < since or (self.session is not None and row.session != self.session):
            return False
        return self._rule is None or fits(short_rule(row), self._rule)

    def line(self, number: int, row: DecisionRow) -> DecisionLine:
        return DecisionLine(**self._shared(number, row))

    def last_refusal(self) -> tuple[int, DecisionRow] | None:
        """The newest that stopped something."""
        return next((pair for pair in reversed(self.rows()) if pair[1].kind in _STOPS), None)

    def with_code(self, code: str) -> tuple[int, DecisionRow]:
        wanted = code.strip().upper()
        found = next((pair for pair in reversed(self._breaker.store.decisions()) if pair[1].code == wanted), None)
        if found is None:
            raise NotFound(f"no decision with the code {code!r} is kept in this project; see: fusewire log")
        return found

    def in_full(self, number: int, row: DecisionRow) -> DecisionInFull:
        data = row.data
        now = self._breaker.engine.clock()
        until = data.get("until") if type(data.get("until")) in (int, float) else None
        circuit = _text(data, "circuit")
        table, settings = self._settings(circuit, row.rule)
        return DecisionInFull(
            **self._shared(number, row),
            circuit=circuit or None,
            state=self._state(circuit),
            evidence=_texts(data, "evidence"),
            next=_texts(data, "next"),
            until=show_time(until),
            retry_after=None if until is None else round(max(0.0, until - now), 3),
            by_person=[*_texts(data, "by_person"), *_once(row.code, now), *_lifting(row)],
            settings=settings,
            table=table,
            mode=self._breaker.rules.mode(row.rule),
            also=_others(data.get("also")),
            message=_text(data, "text"),
            docs=_DOCS + _page(row.rule),
        )

    def _shared(self, number: int, row: DecisionRow) -> dict[str, Any]:
        data = row.data
        return {
            "number": number,
            "code": row.code,
            "at": format_time(row.at),
            "kind": cast("DecisionKind", row.kind),
            "rule": short_rule(row),
            "session": row.session or None,
            "name": self.names.name(row.session) if row.session else None,
            "agent": _text(data, "agent") or None,
            "helper": _text(data, "subagent") or None,
            "tool": _text(data, "tool") or _text(data, "hook"),
            "call": _text(data, "call"),
            "cwd": _text(data, "cwd") or None,
            "reason": _text(data, "reason").removeprefix(f"HALTED {short_rule(row)}: "),
        }

    def _state(self, circuit: str) -> str | None:
        if not circuit or self._breaker.store.circuit(identifier(circuit)) is None:
            return None
        try:
            return self._breaker.status(circuit).state
        except FusewireError:
            return None

    def _settings(self, circuit: str, rule: str) -> tuple[str, list[SettingInForce]]:
        """The settings behind it: of its circuit, else of what its name stands for in the configuration."""
        for name in filter(None, (circuit, rule, rule.partition(":")[0], rule.partition(".")[0])):
            try:
                found = configured(self._breaker, name)
            except FusewireError:
                continue
            rows = settings_of(self._breaker, circuit) if name == circuit else found.settings
            return found.table, [one for one in rows if one.source != "locked"]
        return "", []


def _page(rule: str) -> str:
    family = rule.partition(":")[0]
    return _PAGES.get(family) or _PAGES.get(family.partition(".")[0], _OF_CONSTRAINTS)


def fits(rule: str, wanted: str) -> bool:
    """Whether a rule is one that somebody means: by its name, its family, or a pattern such as `guard.*`."""
    return (
        rule.startswith((f"{wanted}.", f"{wanted}:"))
        or matches(rule, wanted)
        or matches(rule.partition(":")[0], wanted)
    )


def short_rule(row: DecisionRow) -> str:
    """The rule without the session in it: `tool.tool_failure:Bash(pytest)`, `tool.repetition`."""
    name, colon, key = row.rule.partition(":")
    before, _, _ = key.partition(row.session) if row.session else (key, "", "")
    key = before.rstrip("/")
    return f"{name}:{key}" if colon and key else name


def _once(code: str, now: float) -> Iterable[str]:
    """The command that lets the call pass once, while its code is valid."""
    try:
        facts = find(open_user_store(read_only=True), code, now)
    except (FusewireError, OSError):
        return
    if facts:
        yield f"until {local_time(facts['at'] + VALID, now)} a person can run: fusewire allow-once {code}"


def _lifting(row: DecisionRow) -> Iterable[str]:
    """What lifts any halt, and any rule but those that keep the breaker itself."""
    rule = row.rule
    if row.kind == "halted" and not rule.startswith(("fusewire.", "tool.spend", "budget:")):
        yield "the session goes on when a person writes to the agent in it"
    if rule and not rule.startswith("fusewire."):
        named = rule if rule.startswith("budget:") else rule.partition(":")[0]
        yield f'a person can run: fusewire pause {named} --for 1h --reason "..."'


def _others(stored: object) -> list[str]:
    """What other rules said, each in a line."""
    rows = (
        [list(map(str, one)) for one in stored if isinstance(one, list) and len(one) == 3]
        if isinstance(stored, list)
        else []
    )
    return [f"{rule or verdict}: {text.partition(chr(10))[0]}" for verdict, rule, text in rows]


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _texts(data: dict[str, Any], name: str) -> list[str]:
    value = data.get(name)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

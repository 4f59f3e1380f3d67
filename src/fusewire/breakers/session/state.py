"""Store what is remembered between two events: of a session, of each agent in it, and of the project's spend.

Each memory is stored as one JSON object under a name of its own. Empty fields are left out, and those of a later
version are kept. A memory that cannot be read, or a field of it that has another shape, starts from
its initial value and a person is told; the circuits, which are stored by themselves, stay as they are.
"""

from __future__ import annotations

from fusewire.core.events import Noun, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol, Self

    from fusewire.breakers.session.detect import PastCall
    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

    class Source(Protocol):
        """A store, or a transaction."""

        def recall(self, name: str) -> JsonObject | None: ...


#: The name of the project's spend: of its last sessions, its last days, and in all, and what a person has granted.
SPEND = "spend"

#: Which hooks a project's agent has: there is something in it once a batch was reported.
HOOKS = "hooks"

#: Breakers whose circuits have a key of their own, a tool or a hook, in front of the session.
KEYED = frozenset(("hook_recursion", "tool_failure", "sequential_tools"))

#: Calls of one turn that a count of repetitions knows.
_CALLS = 64

#: Days and sessions whose spend is remembered.
_SESSIONS = 50
_DAYS = 40

_NUMBER = (int, float)

#: What a stored field may be, by its initial value.
_KINDS: dict[type, tuple[type, ...]] = {type(None): _NUMBER, float: _NUMBER}


def session_name(session: str) -> str:
    """The name of what is remembered of a session as a whole."""
    return f"session/{session}"


def lane_name(session: str, agent: str) -> str:
    """The name of what is remembered of one agent in it; the main one has no name of its own."""
    return f"session/{session}/{agent}"


class StoredMemory:
    """Typed fields, set to their initial, empty values by `__init__`, and the codec to the stored object."""

    __slots__ = ("damaged", "is_new", "unknown")

    #: fields that are rows, or tables with a row for each key: how they are decoded
    _ROWS: dict[str, Callable[[Any], object]] = {}

    #: types of stored fields whose initial value does not tell them
    _TYPES: dict[str, tuple[type, ...]] = {}

    #: whether a part of what was stored could not be used, and whether nothing was stored
    damaged: bool
    is_new: bool
    #: fields of a later version, which are kept
    unknown: JsonObject

    @classmethod
    def from_data(cls, data: JsonObject) -> Self:
        memory = cls()
        memory.damaged, memory.is_new, memory.unknown = False, not data, {}
        fields = memory.__dict__
        for name, value in data.items():
            if name not in fields:
                memory.unknown[name] = value
                continue
            kind, usual = type(value), type(fields[name])
            if kind is usual or kind in (cls._TYPES.get(name) or _KINDS.get(usual, ())):
                fields[name] = value
            else:
                memory.damaged = True
        for name, decode in cls._ROWS.items():
            if name in data and fields[name] is not None:
                try:
                    fields[name] = decode(fields[name])
                except TypeError:
                    fields[name], memory.damaged = getattr(cls(), name), True
        return memory

    def to_data(self) -> JsonObject:
        data = {**getattr(self, "unknown", {}), **{name: value for name, value in self.__dict__.items() if value}}
        for name in self._ROWS:
            if name in data:
                value = data[name]
                is_table = type(value) is dict
                data[name] = {key: row.to_data() for key, row in value.items()} if is_table else value.to_data()
        return data

    @classmethod
    def recalled(cls, source: Source, name: str) -> Self:
        """For those who only look; the session itself will say what is damaged at its next event."""
        data, unreadable = _read(source, name)
        memory = cls.from_data(data)
        memory.damaged = memory.damaged or unreadable
        return memory

    @classmethod
    def recall(cls, transaction: Transaction, name: str, now: float) -> Self:
        memory = cls.recalled(transaction, name)
        if memory.damaged:
            _notice_damage(transaction, name, now)
        return memory


class Repeats(Row):
    """How often something came, one for each reply of the model: the calls of one reply were all asked for before any
    of them was answered. One that comes again belongs to the next reply, unless it has the same id: then we are
    registered in two places."""

    times: int
    turn: int
    #: of that turn: what was called -> the id of the call
    calls: dict[str, str | None]

    @classmethod
    def none(cls) -> Repeats:
        return cls(0, -1, {})

    def add(self, turn: int, mark: str, call: str | None) -> bool:
        """Count a call; whether it is one more time."""
        is_next = mark in self.calls and not (call and self.calls[mark] == call)
        if self.turn != turn or is_next:
            self.times, self.turn, self.calls = self.times + 1, turn, {mark: call}
            return True
        self.calls[mark] = call
        while len(self.calls) > _CALLS:
            del self.calls[next(iter(self.calls))]
        return False


class Alarm(Row):
    """A circuit that is not closed: the agent and the tool that it concerns, and which calls of it; all if none."""

    agent: str
    tool: str
    calls: list[str]


class WarnedLoop(Row):
    """A loop that an agent was warned of: how far it had come, and its calls; None if no change ends it."""

    agent: str
    level: int
    calls: list[str] | None


class Helper(Row):
    """An agent that runs for the session: when it began, its name for people, when it was last heard."""

    began: float
    shown: str
    heard: float
    #: the call that started it, if we were asked about it
    lease: str | None = None
    #: started under SUDO PARALLEL: it counts against no limit
    lifted: bool = False


class Streak(Row):
    """One tool in a row: the turn of its last call; how often each call came, or `any` of them, and its last turn."""

    tool: str
    turn: int
    times: dict[str, int]
    turns: dict[str, int]

    @classmethod
    def from_data(cls, data: list[Any]) -> Streak:
        as_in_0_1 = len(data) == 3
        return cls(*data, *([dict.fromkeys(data[2], data[1])] if as_in_0_1 else []))


class PendingCall(Row):
    """A call that was allowed and whose result has not come yet."""

    tool: str
    mark: str
    nature: str
    shown: str
    #: circuits whose probe it is
    leases: list[str]
    began: float


class SessionHalt(Noun):
    """Why a session is halted, in the words that the agent is answered."""

    rule: str = ""
    text: str = ""
    #: the circuit that is open, if one is: once it is closed, the halt is over
    circuit: str = ""
    at: float = 0.0

    @classmethod
    def from_data(cls, data: JsonObject) -> SessionHalt:
        """From any object: what is not known of a halt does not lift it."""
        rule, text, circuit = (str(data.get(name) or "") for name in ("rule", "text", "circuit"))
        at = data.get("at")
        return cls(rule, text, circuit, at if isinstance(at, _NUMBER) else 0.0)

    def to_data(self) -> JsonObject:
        return dict(vars(self))


class SessionMemory(StoredMemory):
    """What all agents of a session add up to."""

    _ROWS = {
        "alarms": Alarm.table,
        "watched": WarnedLoop.table,
        "agents": Helper.table,
        "halted": SessionHalt.from_data,
    }
    _TYPES = {"batched": (bool, int), "halted": (dict,), "granted": _NUMBER, "api_granted": _NUMBER}

    def __init__(self) -> None:
        #: when it was first and last heard of, and when it ended
        self.since: float | None = None
        self.at: float | None = None
        self.ended: float | None = None
        #: the agent's program, such as claude
        self.client = ""
        #: the names of its agents, the one heard of last at the end
        self.lanes: list[str] = []
        #: whether the agent reports the calls of a reply together; a number counts results while that is assumed
        self.batched: bool | int = False
        #: how each settings file called our hook at the start, see `registration`
        self.registered: JsonObject = {}
        #: circuits that are not closed, and loops that the agent was warned of, by circuit
        self.alarms: dict[str, Alarm] = {}
        self.watched: dict[str, WarnedLoop] = {}
        #: stops in a row that a stop hook prevented
        self.stops = 0
        self.halted: SessionHalt | None = None
        #: what the agent was answered last, and what it has yet to be told
        self.last_halt = ""
        self.last_told = ""
        self.untold = ""
        #: agents that run, by name or by what started them; those that ended lately
        self.agents: dict[str, Helper] = {}
        self.gone: list[str] = []
        #: who started agents last, and in which turn; whether a person has lifted the limits on that
        self.burst: list[Any] = []
        self.sudo = False
        #: limits on agents that the agent was told of since a person spoke
        self.agents_told: list[str] = []
        #: what the ledger remembers; only what came after `spend_since` is charged
        self.spend: JsonObject = {}
        self.spend_since = ""
        self.spend_near = False
        self.spend_warned = False
        self.spend_problem = ""
        #: models without a price that a person was told of
        self.unpriced: list[str] = []
        #: dollars beyond the limit
        self.granted: float = 0
        #: budgets that it was told of
        self.budgets_told: list[str] = []
        #: budgets of starts that were used up when it was started
        self.budgets_over: list[str] = []
        #: the run that it is a part of, and what the sessions before it in that have cost
        self.task = ""
        self.run_usd = 0.0
        #: whether a person could answer at the last event
        self.attended = False
        #: what calls of external APIs cost, and the dollars and calls beyond the limits
        self.api_usd = 0.0
        self.api_granted: float = 0
        self.api_warned = False
        self.calls_granted = 0
        #: such calls that run: how many each tool call makes
        self.api_open: dict[str, int] = {}

    @property
    def usd(self) -> float:
        """What it has cost."""
        usd: float = self.spend.get("usd", 0.0)
        return usd

    @property
    def usd_of_limit(self) -> float:
        """What counts to the limit on its own tokens: where nobody can answer, of the whole run."""
        return self.usd + self.run_usd

    def limit(self, settings: Mapping[str, Any]) -> float:
        """What its own tokens may cost, grants not included; 0 if there is no limit."""
        limit: float = settings["resource_limits.agent_cost_block_usd"]
        return limit or (0.0 if self.attended else settings["resource_limits.agent_cost_block_usd_unattended"])

    def grant(self, amount: float, *, external: bool = False) -> float:
        """Allow more dollars; what is granted in all. The agent will be warned again."""
        if external:
            self.api_granted, self.api_warned = round(self.api_granted + amount, 4), False
            return self.api_granted
        self.granted, self.spend_warned = round(self.granted + amount, 4), False
        return self.granted


class LaneMemory(StoredMemory):
    """What one agent of a session has done lately: its calls must not be taken for those of another one."""

    __slots__ = ("__dict__", "_past")

    _ROWS = {
        "calls": PendingCall.table,
        "row": Streak.from_data,
        "refused": Repeats.table,
        "halts": Repeats.from_data,
    }
    _TYPES = {"row": (list,), "halts": (list,), "batch": (str, type(None))}

    def __init__(self) -> None:
        #: replies of the model: for windows, and as people count them
        self.turn = 0
        self.replies = 0
        #: changes of the work so far
        self.changes = 0
        #: calls without a result, by id; and ids of those that have one
        self.calls: dict[str, PendingCall] = {}
        self.settled: list[str] = []
        #: whether one has in this turn, when the newest of them began, and when a call was refused last
        self.settled_any = False
        self.settled_began: float = 0.0
        self.refused_at: float | None = None
        #: the last call of the batch that was reported last
        self.batch: str | None = None
        #: one tool in a row; halts that it was answered
        self.row: Streak | None = None
        #: how often a call, or what a circuit is about, was refused since other work was done
        self.refused: dict[str, Repeats] = {}
        self.halts: Repeats | None = None
        #: size and time of its transcript at the last look
        self.transcript: list[int] = []
        #: finished calls as they are stored; see `past`
        self.history: list[list[Any]] = []
        self._past: list[PastCall] | None = None

    @property
    def past(self) -> list[PastCall]:
        """Finished calls, decoded on first use: most questions before a call need none of them."""
        if self._past is None:
            from fusewire.breakers.session.detect import PastCall

            try:
                self._past = [PastCall(*row) for row in self.history]
            except TypeError:  # damaged
                self._past = []
        return self._past

    def to_data(self) -> JsonObject:
        if self._past is not None:
            self.history = [call.to_data() for call in self._past]
        return super().to_data()


class ProjectSpend(StoredMemory):
    """What the sessions of a project have cost: each of the last ones, each of the last days (UTC), and all of them."""

    #: the key of all that a project spends, beside those of its days
    PROJECT = "project"

    def __init__(self) -> None:
        #: of a session: `usd` of its own tokens and `api_usd`, `at`, and models without a price (`unknown`)
        self.sessions: dict[str, JsonObject] = {}
        self.days: dict[str, float] = {}
        self.usd = 0.0
        #: dollars beyond the limit, by day or for the whole project
        self.granted_for: dict[str, float] = {}

    def spent(self, key: str) -> float:
        return self.usd if key == self.PROJECT else self.days.get(key, 0.0)

    def granted(self, key: str) -> float:
        return self.granted_for.get(key, 0)

    def grant(self, amount: float, key: str) -> None:
        self.granted_for[key] = round(self.granted(key) + amount, 4)
        for day in sorted(day for day in self.granted_for if day != self.PROJECT)[:-_DAYS]:
            del self.granted_for[day]

    def add(self, session: str, state: SessionMemory, more: float, day: str, now: float) -> None:
        """A session has cost more; what was heard of longest ago is forgotten."""
        self.sessions.pop(session, None)
        self.sessions[session] = {"usd": round(state.usd, 6), "at": now}
        if state.api_usd:
            self.sessions[session]["api_usd"] = state.api_usd
        if state.spend.get("unknown"):
            self.sessions[session]["unknown"] = sorted(state.spend["unknown"])
        self.days[day] = round(self.days.get(day, 0) + more, 6)
        self.usd = round(self.usd + more, 6)
        while len(self.sessions) > _SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        while len(self.days) > _DAYS:
            del self.days[next(iter(self.days))]


def amend(store: Store, name: str, now: float, **fields: Any) -> None:
    """Set fields of a session's memory in a transaction of its own."""
    with store.transact() as transaction:
        state = SessionMemory.recall(transaction, name, now)
        if state.damaged:
            state.since = None  # so that the next event looks up what is open
        for field, value in fields.items():
            setattr(state, field, value)
        transaction.remember(name, state.to_data(), now)
        if "halted" in fields:
            transaction.note_halt(name.partition("/")[2], state.halted.to_data() if state.halted else None, now)


def recall(transaction: Transaction, name: str, now: float) -> tuple[JsonObject, bool]:
    """What can be used of any memory, and whether it was damaged."""
    memory, damaged = _read(transaction, name)
    if damaged:
        _notice_damage(transaction, name, now)
    return memory, damaged


def recalled(store: Store, name: str) -> JsonObject:
    """The same for those who only look."""
    return _read(store, name)[0]


def _read(source: Source, name: str) -> tuple[JsonObject, bool]:
    try:
        return source.recall(name) or {}, False
    except ValueError:
        return {}, True


def _notice_damage(transaction: Transaction, name: str, now: float) -> None:
    transaction.notice(f"what was remembered as {name} could not be read, and starts anew", now)

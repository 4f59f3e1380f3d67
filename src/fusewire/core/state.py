"""Define what a circuit is made of: a policy, which is data, and a state, which is all that it remembers."""

from __future__ import annotations

from fusewire.core import meters
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import Noun
from fusewire.core.meters import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Policy(Noun):
    """Everything that makes one breaker differ from another. Compiled from TOML, see `policies`."""

    #: template of the circuit ids that this policy serves: `tool/tool_failure/{tool}`
    id: str
    #: the rule id that people read: `tool.tool_failure`
    name: str
    kind: str
    meters: tuple[Meter, ...]
    #: `none`, `fixed`, `doubling` or `ladder`, by the number of trips in a row
    schedule: str = "none"
    cooldown: tuple[float, ...] = ()
    #: what the cooldown starts with: the `trip`, or the first `refusal` after it; or it ends when the `signal` says, by
    #: its value, where that is a time to come
    cools_from: str = "trip"
    #: after how many seconds a prober that has not come back loses its probe
    lease: float = 600
    #: a probe phase of this length without a bad signal counts as success
    quiet: float | None = None
    #: who may end a probe well: its `holder`, or `anyone` with a good signal
    settles: str = "holder"
    dedup: float = 0
    #: what a person's reset does: `close`, `probe` (ends the cooldown early) or `refuse`
    reset: str = "close"
    #: whether counts outlive a successful probe
    keeps: bool = False
    #: from this trip in a row on a person is alerted
    alert_from: int = 0
    #: for so many signals after a recovery the same bad one again trips at once
    vigil: int = 0
    #: whether a person may let actions pass an open circuit for a while
    override: bool = False
    #: what is asked for passes until the circuit opens (`count`), needs a consent (`ask`), or is refused (`block`)
    mode: str = "count"
    #: circuits that open together and are reset together have one name for that
    group: str = ""
    #: what the agent should do while it is open, and how a person can lift it
    next: tuple[str, ...] = ()
    by_person: tuple[str, ...] = ()

    def settles_with(self) -> str:
        """The name of a success: what breaks a row of failures here."""
        return next((name for meter in self.meters for name in meter.resets_on), "success")

    def asks(self) -> str:
        """The name of a question to this circuit: what it counts when asked, else just an action."""
        for meter in self.meters:
            if meter.family != "gauge" and (meter.limits or meter.trip_by == "ask"):
                return meter.on
        return "action"

    def to_data(self) -> tuple[Any, ...]:
        """A structure that `marshal` takes, so that the hook need not parse any policy."""
        values = {**self.__dict__, "meters": tuple(meter.to_data() for meter in self.meters)}
        return tuple([values[name] for name in self.fields])

    @classmethod
    def from_data(cls, data: tuple[Any, ...]) -> Policy:
        policy = cls.__new__(cls)
        values = policy.__dict__
        values.update(zip(cls.fields, data, strict=True))
        values["meters"] = tuple(map(Meter.from_data, values["meters"]))
        return policy


class CircuitState:
    """All that a circuit remembers: bounded, whatever its history. What is not set has the value given here."""

    since: float
    phase: str = "closed"
    #: never changed in place: a step that counts makes a new one
    meters: dict[str, list[Any]] = {}
    opened_at: float | None = None
    until: float | None = None
    probe_at: float | None = None
    probes: int = 0
    lease: str | None = None
    lease_until: float | None = None
    in_a_row: int = 0
    trips: int = 0
    total: int = 0
    last_counted: float | None = None
    last_trip: float | None = None
    last_reset: float | None = None
    override_until: float | None = None
    override_reason: str = ""
    reason: str = ""
    evidence: str = ""
    #: the fingerprint that opened it last
    mark: str = ""
    vigil: int = 0

    def copy(self) -> CircuitState:
        twin = CircuitState.__new__(CircuitState)
        twin.__dict__.update(self.__dict__)
        return twin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CircuitState) and self.to_data() == other.to_data()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"State({self.to_data()!r})"

    def to_data(self) -> dict[str, Any]:
        """JSON-able; what has its initial value is left out."""
        return {name: value for name, value in self.__dict__.items() if value != _INITIAL[name]}

    @classmethod
    def from_data(cls, data: object) -> CircuitState:
        """The state behind stored data; ValueError if it is not one (it is then corrupt, not closed)."""
        if type(data) is not dict or "since" not in data:
            raise ValueError("not a circuit's state")
        for name, value in data.items():
            kinds = _KINDS.get(name)
            if kinds is None or type(value) not in kinds:
                raise ValueError(f"not a circuit's state: {name}")
            if (kinds is _TIME and not -1e12 < value < 1e12) or (kinds is _COUNT and not 0 <= value < 1e12):
                raise ValueError(f"not a circuit's state: {name} = {value!r}")
        state = CircuitState.__new__(CircuitState)
        state.__dict__.update(data)
        if state.phase not in PUBLIC_STATE or (state.phase == "open" and state.opened_at is None):
            raise ValueError(f"not a circuit's state: phase = {state.phase!r}")
        return state

    def fits(self, policy: Policy) -> bool:
        """Whether what is remembered can be what the policy's meters remember."""
        remembered = self.meters
        return all(meters.fits(meter, remembered[meter.name]) for meter in policy.meters if meter.name in remembered)


_INITIAL: dict[str, Any] = {name: vars(CircuitState).get(name) for name in CircuitState.__annotations__}

_TIME, _COUNT, _TEXT, _TABLE = (int, float), (int,), (str,), (dict,)

#: What a stored field may be.
_KINDS: dict[str, tuple[type, ...]] = {
    name: _TEXT
    if name == "lease" or type(initial) is str
    else _TABLE
    if name == "meters"
    else _TIME
    if initial is None
    else _COUNT
    for name, initial in _INITIAL.items()
}


def fresh(now: float) -> CircuitState:
    """A circuit that nothing has happened to."""
    state = CircuitState.__new__(CircuitState)
    state.since = now
    return state

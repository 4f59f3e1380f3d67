"""Define what a replay finds in one transcript."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusewire.config.rules import Rules
    from fusewire.guard.protected import Protected
    from fusewire.util.fast_json import JsonObject

#: What a watcher may answer beside "allow", from mild to strict, and how a report calls it. What a rule in `log` mode
#: would have answered is apart.
ACTIONS = {"tell": "told", "ask": "asked", "block": "refused", "halt": "halted", "log": "logged"}
SPOKEN = ("tell", "ask", "block", "halt")
STRICT = ("block", "halt")


@dataclass(frozen=True)
class Manner:
    """How transcripts are replayed: under which rules (as data, for other processes; as shipped if there are none),
    with how many seconds from call to call whatever the transcript's times are, and whether a person was there."""

    rules: Rules | None = None
    pace: float | None = None
    profile: str = "auto"
    name: str = ""
    #: the protected paths of each folder that was seen, which many sessions share
    protected: dict[str, Protected] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Trip:
    """One rule's first answer of a kind in a transcript: at which call, in which words, and how often in all."""

    rule: str
    action: str
    call: int
    evidence: str
    times: int = 1


@dataclass
class Replayed:
    """One transcript, run through the rules. `problem` is why it could not be read (to the end)."""

    path: str
    calls: int = 0
    turns: int = 0
    prompts: int = 0
    #: what it cost at list price, where the transcript tells
    usd: float = 0.0
    #: calls that came after a halt and before a person spoke again: without them the session would have been shorter
    calls_after_halt: int = 0
    usd_after_halt: float = 0.0
    attended: bool = False
    #: what tells whether a person was there
    attended_by: str = ""
    outcome: str = ""
    #: what a file of labels says of the transcript, such as `loop` or `paging`
    label: str = ""
    problem: str = ""
    trips: list[Trip] = field(default_factory=list)
    #: what Fusewire refused and halted when the session took place
    in_life: list[Trip] = field(default_factory=list)

    def first(self, *actions: str, rules: Iterable[str] | None = None) -> Trip | None:
        """The earliest trip that is one of these actions (any, if none is named), by one of these rules."""
        wanted = [
            trip
            for trip in self.trips
            if trip.action in (actions or SPOKEN) and (rules is None or trip.rule in set(rules))
        ]
        return min(wanted, key=lambda trip: trip.call, default=None)

    @property
    def is_known(self) -> bool:
        """Whether somebody has said what it was worth."""
        return self.outcome in ("resolved", "unresolved") or bool(self.label)

    @property
    def is_false_stop(self) -> bool:
        """Whether it was halted although it came to a good end, or only looks like a loop."""
        return (self.outcome == "resolved" or self.label == "paging") and self.first("halt") is not None

    def to_json(self) -> JsonObject:
        return {**asdict(self), "outcome": self.outcome or None, "problem": self.problem or None}

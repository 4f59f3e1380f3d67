"""Find loops in the last tool calls of one agent.

A loop is the same call with the same masked result, never the agent's thoughts. What was *changed* in between counts:
a check that is run again after an edit is work, the same check with nothing changed is not.

| finding         | what repeats                                                                                    |
|-----------------|-------------------------------------------------------------------------------------------------|
| repetition      | one call with one result, nothing changed in between; a failing check also across changes       |
| cycle           | two to five calls in the same order with the same results                                       |
| long_cycle      | calls in a row that each came before with the same result, whatever their order                 |
| same_mutation   | one changing call, whatever its result, with no other change in between                         |
| same_error      | one error of one program or tool with different arguments, among the last calls                 |
| missing_program | a program that is not installed, whatever its arguments                                         |
| barren_search   | different lookups that find nothing, nothing changed in between                                 |

Not everything that repeats is told of at the same pace: `slower` calls have more patience, and a `level` is what is
left of a number of times once that is taken into account. The thresholds of the policy are for the quickest.
"""

from __future__ import annotations

from fusewire.breakers.session.calls import ACT, CHANGE, LOOK, SEARCHES, VERIFY, WAIT, family, program_of
from fusewire.core.events import Noun, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Stands for the result of a call that was refused.
REFUSED = "refused"

PERIODS = (2, 3, 4, 5)

#: They change something, but nothing that a check or a look would answer to.
_IDLE = frozenset(("Bash(touch)", "Bash(mkdir)", "Bash(chmod)"))

#: The same error counts among so many last calls: steps in between that are no errors do not make it another one.
_ERROR_REACH = 20

#: One result seen with other calls in between is weaker evidence than in a row, and so is looking at the wrong place.
_WEAKER = 2

#: A check that fails in the same way after different changes: the agent tries, so it is told soon and stopped late.
_TRIES = 8

#: What to do then; elsewhere the policy says it.
_NOTHING_NEW: tuple[str, ...] = ()
_ELSEWHERE = ("look for the cause elsewhere: what was changed so far does not touch it", "ask the user")

#: What a search or a call of a program that is not there has for `absent`.
NOTHING, NO_PROGRAM = "nothing", "program"

#: Of the lookups that make a search barren, this share came back empty.
_BARREN = 0.75

#: Whoever waits so many seconds for each look is patient, not stuck: told of it, never refused.
_PATIENT = 5


class PastCall:
    """One finished call in the history of an agent.

    It is no `Row`, though stored like one: each event reads and writes fifty of them, and this is five times as quick.
    """

    __slots__ = ("absent", "at", "changes", "counted", "failed", "mark", "nature", "result", "shown", "tool", "turn")

    def __init__(
        self,
        tool: str,
        mark: str,
        result: str,
        nature: str,
        failed: bool,
        changes: int,
        turn: int,
        counted: bool,
        shown: str,
        at: float,
        absent: str = "",
    ) -> None:
        self.tool = tool
        #: the same for the same call, and for the same masked result
        self.mark = mark
        self.result = result
        self.nature = nature
        self.failed = failed
        #: the state of the work that it met: a number that grows with each change
        self.changes = changes
        self.turn = turn
        #: whether its failure was counted
        self.counted = counted
        #: the call in words, and when it ended
        self.shown = shown
        self.at = at
        #: what was not there: what was looked for, or the program
        self.absent = absent

    def to_data(self) -> list[Any]:
        return [
            self.tool,
            self.mark,
            self.result,
            self.nature,
            self.failed,
            self.changes,
            self.turn,
            self.counted,
            self.shown,
            self.at,
            self.absent,
        ]


class Repetition(Noun):
    """Something that repeats: which rule, what (the same for the same loop), how far it is, and the calls in it; where
    its rule's own words do not fit, a reason and what to do next."""

    rule: str
    key: str
    level: int
    calls: tuple[str, ...]
    tool: str
    evidence: str
    reason: str = ""
    next: tuple[str, ...] = ()
    #: how often it really came, where that is more than the level
    times: int = 0


def is_change(entry: PastCall, history: list[PastCall]) -> bool:
    """Whether a call may have moved the work on: it succeeded, and is not one of the last with the same result."""
    if entry.failed or entry.absent or entry.result == REFUSED or entry.nature in (LOOK, VERIFY, WAIT):
        return False
    if family(entry.tool) in _IDLE:
        return False
    done = [earlier for earlier in history[-12:] if not earlier.failed and earlier.result != REFUSED]
    same = [earlier for earlier in done if earlier.mark == entry.mark]
    if entry.nature == ACT:
        return all(earlier.result != entry.result for earlier in same)
    return not same


def findings(history: list[PastCall], settings: Mapping[str, Any]) -> list[Repetition]:
    """What repeats at the end of the history, from the level on at which the agent is told."""
    found = [
        *(_repetition(history, settings), _cycle(history, settings), _mutation(history)),
        *(_error(history), _missing_program(history), _barren_search(history), _long_cycle(history)),
    ]
    told = [
        finding
        for finding in found
        if finding is not None
        and settings[f"{finding.rule}.enabled"]
        and finding.level >= settings[f"{finding.rule}.tell"]
    ]
    # What is one call or a short round is told as that.
    return told[:-1] if len(told) > 1 and told[-1].rule == "long_cycle" else told


def _repetition(history: list[PastCall], settings: Mapping[str, Any]) -> Repetition | None:
    last = history[-1]
    in_a_row = 0
    for entry in reversed(history):
        if entry.mark != last.mark or entry.result not in (last.result, REFUSED):
            break
        in_a_row += entry.result != REFUSED
    same = [entry for entry in history if entry.mark == last.mark and entry.result == last.result]
    unchanged = sum(entry.changes == last.changes for entry in same)
    if max(in_a_row, unchanged, len(same)) < 2:
        return None
    level = max(in_a_row, unchanged // _WEAKER)
    if last.nature == WAIT:
        level = _waited(level, same, settings, "repetition")
    tell = settings["repetition.tell"]
    reason, steps = "", _NOTHING_NEW
    if last.nature == VERIFY and last.failed and len(same) >= tell:
        tries = tell + (len(same) - tell) // _TRIES
        if tries > level:
            limit = tell + (settings["repetition.block"] - tell) * _TRIES
            reason = f"this check failed in the same way {len(same)} times, whatever was changed (limit {limit})"
            level, steps = tries, _ELSEWHERE
    return Repetition(
        *("repetition", last.mark, level),
        calls=(last.mark,),
        tool=last.tool,
        evidence=last.shown,
        reason=reason,
        next=steps,
        times=max(in_a_row, unchanged, len(same) if last.failed else 0),
    )


def _waited(level: int, entries: list[PastCall], settings: Mapping[str, Any], rule: str) -> int:
    """The level of calls that wait for something: reached later, and where they do wait, never that of a refusal."""
    seconds = entries[-1].at - entries[0].at
    level //= settings["loops.patience"]
    return min(level, settings[f"{rule}.block"] - 1) if seconds >= _PATIENT * (len(entries) - 1) else level


def _cycle(history: list[PastCall], settings: Mapping[str, Any]) -> Repetition | None:
    for period in PERIODS:
        if len(history) < 2 * period or history[-1 - period].mark != history[-1].mark:
            continue
        calls = tuple(entry.mark for entry in history[-period:])
        if len(set(calls)) < 2:
            continue
        steps = [(entry.mark, entry.result) for entry in history]
        rounds = 1
        while steps[-(rounds + 1) * period : -rounds * period] == steps[-period:]:
            rounds += 1
        if rounds < 2:
            continue
        level = rounds
        if any(entry.nature == WAIT for entry in history[-period:]):
            level = _waited(rounds, history[-rounds * period :: period], settings, "cycle")
        names = "; ".join(entry.shown[:60] for entry in history[-period:])
        key = "-".join(sorted(set(calls)))  # it says what it concerns
        return Repetition("cycle", key, level, calls=calls, tool=history[-1].tool, evidence=names, times=rounds)
    return None


def _long_cycle(history: list[PastCall]) -> Repetition | None:
    """Each call of the row has come before with the same result. Across changes that is weaker evidence: what was
    looked at before an edit is looked at again after it."""
    last = history[-1]
    if not any(entry.mark == last.mark and entry.result == last.result for entry in history[:-1]):
        return None
    states: dict[tuple[str, str], int] = {}
    row: list[PastCall] = []
    changed = False
    for entry in history:
        if entry.result == REFUSED or entry.nature == WAIT:
            continue
        seen = states.get((entry.mark, entry.result))
        states[entry.mark, entry.result] = entry.changes
        if seen is None:
            row, changed = [], False
        else:
            row.append(entry)
            changed = changed or seen != entry.changes
    if not row or row[-1] is not last:
        return None
    calls = tuple(dict.fromkeys(entry.mark for entry in row))
    if len(calls) < 2:
        return None
    names = "; ".join(entry.shown[:60] for entry in row[-3:])
    level = len(row) // _WEAKER if changed else len(row)
    return Repetition("long_cycle", "calls", level, calls=calls, tool=last.tool, evidence=names, times=len(row))


def _mutation(history: list[PastCall]) -> Repetition | None:
    last = history[-1]
    if last.nature != CHANGE:
        return None
    times = 0
    for entry in reversed(history):
        if entry.mark == last.mark:
            if entry.failed != last.failed:
                break  # it failed before and does no longer, or the other way round: not the same again
            times += last.result == REFUSED or entry.result != REFUSED  # what a person lets pass was not made before
        elif entry.nature not in (LOOK, VERIFY, WAIT) and entry.result != REFUSED:
            break
    return Repetition("same_mutation", last.mark, times, calls=(last.mark,), tool=last.tool, evidence=last.shown)


def _error(history: list[PastCall]) -> Repetition | None:
    last = history[-1]
    if not last.failed or last.nature in (VERIFY, WAIT):
        return None
    what = family(last.tool)
    same = [
        entry
        for entry in history[-_ERROR_REACH:]
        if entry.failed and entry.result == last.result and family(entry.tool) == what
    ]
    if len({entry.mark for entry in same}) < 2:
        return None  # one call: that is a repetition
    times = len({entry.turn for entry in same})
    level = times // _WEAKER if last.nature == LOOK else times
    names = "; ".join(entry.shown[:60] for entry in same[-3:])
    tools = tuple(dict.fromkeys(entry.tool for entry in same))
    return Repetition("same_error", error_key(last), level, calls=tools, tool=last.tool, evidence=names, times=times)


def error_key(call: PastCall) -> str:
    """Which error of which program or tool."""
    what = family(call.tool)
    return f"{what}/{mark(what, call.result)}"


def _missing_program(history: list[PastCall]) -> Repetition | None:
    last = history[-1]
    if last.absent != NO_PROGRAM:
        return None
    what = family(last.tool)
    times = 0
    for entry in reversed(history):
        if entry.result != REFUSED and family(entry.tool) == what:
            if entry.absent != NO_PROGRAM:
                break
            times += 1
    return Repetition("missing_program", program_of(what), times, calls=(what,), tool=what, evidence=last.shown)


def _barren_search(history: list[PastCall]) -> Repetition | None:
    last = history[-1]
    if last.absent != NOTHING:
        return None
    calls = empty = level = 0
    for entry in reversed(history):
        if entry.changes != last.changes:
            break
        if entry.result == REFUSED or entry.nature == WAIT:
            continue
        calls += 1
        empty += entry.absent == NOTHING
        if empty >= _BARREN * calls:
            level = empty
    names = "; ".join(entry.shown[:60] for entry in history[-3:])
    return Repetition("barren_search", "lookups", level, calls=(SEARCHES,), tool=last.tool, evidence=names)


def counted_failures(history: list[PastCall], *, literal: bool) -> tuple[list[PastCall], bool]:
    """The failures that the last call adds to the count of its tool, and whether that count starts anew with them.

    The first counts, but not that of a look at a place that is not there. Trying something else is how work goes; once
    the same comes again with nothing changed in between, both count, and what failed otherwise no longer does. Those
    of one reply are one: nobody has seen the first of them yet.
    """
    last = history[-1]
    if not last.failed or (last.nature == WAIT and not literal):
        return [], False
    if literal:
        return [last], False
    earlier = [
        entry for entry in history[:-1] if entry.failed and entry.tool == last.tool and entry.changes == last.changes
    ]
    if not earlier and last.nature != LOOK:
        return [last], False
    same = {entry.turn: entry for entry in earlier if _same_failure(entry, last)}
    if not same or last.turn in same:
        return [], False
    anew = any(entry.counted and not _same_failure(entry, last) for entry in earlier)
    return [*(entry for entry in same.values() if anew or not entry.counted), last], anew


def _same_failure(one: PastCall, last: PastCall) -> bool:
    """Of a check any failure is; a look must be the same one and see the same; else the call or the error must be."""
    if last.nature == VERIFY:
        return True
    same_call, same_result = one.mark == last.mark, one.result == last.result
    return bool(same_call and same_result if last.nature == LOOK else same_call or same_result)

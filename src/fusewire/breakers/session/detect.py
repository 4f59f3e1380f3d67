"""Loops of tool calls: from the last calls of one agent to what repeats in them.

A loop is the same call with the same masked result, never the agent's thoughts. What was *changed* in between counts:
a check that is run again after an edit is work, the same check with nothing changed is not.

| finding       | what repeats                                                                                      |
|---------------|---------------------------------------------------------------------------------------------------|
| repetition    | one call with one result, nothing changed in between; a failing check also across changes         |
| cycle         | two to five calls in the same order with the same results                                         |
| same_mutation | one changing call, whatever its result, with no other change in between                           |
| same_error    | one error of one tool with different arguments, among the last calls                              |

Not everything that repeats is told of at the same pace: `slower` calls have more patience, and a `level` is what is
left of a number of times once that is taken into account. The thresholds of the policy are for the quickest.
"""

from __future__ import annotations

from fusewire.breakers.session.calls import ACT, CHANGE, LOOK, VERIFY, WAIT
from fusewire.core.events import Noun, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    #: one call of the history, as it is stored: see the names below
    Entry = list[Any]

#: Where things are in an entry: tool, signature, masked result, nature, whether it failed, the state of the work that
#: it met (a number that grows with each change), the turn, whether its failure was counted, the call in words, the end.
TOOL, CALL, RESULT, NATURE, FAILED, CHANGES, TURN, COUNTED, SHOWN, AT = range(10)

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
_TRIES = 4

#: What to do then; elsewhere the policy says it.
_NOTHING_NEW: tuple[str, ...] = ()
_ELSEWHERE = ("look for the cause elsewhere: what was changed so far does not touch it", "ask the user")

#: Whoever waits so many seconds for each look is patient, not stuck: told of it, never refused.
_PATIENT = 5


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


def is_change(entry: Entry, history: list[Entry]) -> bool:
    """Whether a call may have moved the work on: it succeeded, and is not one of the last with the same result."""
    if entry[FAILED] or entry[RESULT] == REFUSED or entry[NATURE] in (LOOK, VERIFY, WAIT) or entry[TOOL] in _IDLE:
        return False
    done = [earlier for earlier in history[-12:] if not earlier[FAILED] and earlier[RESULT] != REFUSED]
    same = [earlier for earlier in done if earlier[CALL] == entry[CALL]]
    if entry[NATURE] == ACT:
        return all(earlier[RESULT] != entry[RESULT] for earlier in same)
    return not same


def findings(history: list[Entry], settings: Mapping[str, Any]) -> list[Repetition]:
    """What repeats at the end of the history, from the level on at which the agent is told."""
    last = history[-1]
    found = [_repetition(history, settings), _cycle(history, settings), _mutation(history), _error(history)]
    return [
        finding.replace(tool=last[TOOL])
        for finding in found
        if finding is not None
        and settings[f"{finding.rule}.enabled"]
        and finding.level >= settings[f"{finding.rule}.tell"]
    ]


def _repetition(history: list[Entry], settings: Mapping[str, Any]) -> Repetition | None:
    last = history[-1]
    in_a_row = 0
    for entry in reversed(history):
        if entry[CALL] != last[CALL] or entry[RESULT] not in (last[RESULT], REFUSED):
            break
        in_a_row += entry[RESULT] != REFUSED
    same = [entry for entry in history if entry[CALL] == last[CALL] and entry[RESULT] == last[RESULT]]
    unchanged = sum(entry[CHANGES] == last[CHANGES] for entry in same)
    if max(in_a_row, unchanged, len(same)) < 2:
        return None
    level = max(in_a_row, unchanged // _WEAKER)
    if last[NATURE] == WAIT:
        level = _waited(level, same, settings, "repetition")
    tell = settings["repetition.tell"]
    reason, steps = "", _NOTHING_NEW
    if last[NATURE] == VERIFY and last[FAILED] and len(same) >= tell:
        tries = tell + (len(same) - tell) // _TRIES
        if tries > level:
            limit = tell + (settings["repetition.block"] - tell) * _TRIES
            reason = f"this check failed in the same way {len(same)} times, whatever was changed (limit {limit})"
            level, steps = tries, _ELSEWHERE
    evidence = f"{max(in_a_row, unchanged, len(same) if last[FAILED] else 0)} times: {last[SHOWN]}"
    return Repetition(
        "repetition", last[CALL], level, calls=(last[CALL],), tool="", evidence=evidence, reason=reason, next=steps
    )


def _waited(level: int, entries: list[Entry], settings: Mapping[str, Any], rule: str) -> int:
    """The level of calls that wait for something: reached later, and where they do wait, never that of a refusal."""
    seconds = entries[-1][AT] - entries[0][AT]
    level //= settings["loops.patience"]
    return min(level, settings[f"{rule}.block"] - 1) if seconds >= _PATIENT * (len(entries) - 1) else level


def _cycle(history: list[Entry], settings: Mapping[str, Any]) -> Repetition | None:
    steps = [(entry[CALL], entry[RESULT]) for entry in history]
    for period in PERIODS:
        calls = tuple(entry[CALL] for entry in history[-period:])
        if len(history) < 2 * period or len(set(calls)) < 2:
            continue
        rounds = 1
        while steps[-(rounds + 1) * period : -rounds * period] == steps[-period:]:
            rounds += 1
        if rounds < 2:
            continue
        level = rounds
        if any(entry[NATURE] == WAIT for entry in history[-period:]):
            level = _waited(rounds, history[-rounds * period :: period], settings, "cycle")
        names = "; ".join(str(entry[SHOWN])[:60] for entry in history[-period:])
        key = "-".join(sorted(set(calls)))  # it says what it concerns
        return Repetition("cycle", key, level, calls=calls, tool="", evidence=f"{rounds} rounds of: {names}")
    return None


def _mutation(history: list[Entry]) -> Repetition | None:
    last = history[-1]
    if last[NATURE] != CHANGE:
        return None
    times = 0
    for entry in reversed(history):
        if entry[CALL] == last[CALL]:
            if entry[FAILED] != last[FAILED]:
                break  # it failed before and does no longer, or the other way round: not the same again
            times += 1
        elif entry[NATURE] not in (LOOK, VERIFY, WAIT) and entry[RESULT] != REFUSED:
            break
    evidence = f"{times} times: {last[SHOWN]}"
    return Repetition("same_mutation", last[CALL], times, calls=(last[CALL],), tool="", evidence=evidence)


def _error(history: list[Entry]) -> Repetition | None:
    last = history[-1]
    if not last[FAILED] or last[NATURE] in (VERIFY, WAIT):
        return None
    same = [
        entry
        for entry in history[-_ERROR_REACH:]
        if entry[FAILED] and entry[TOOL] == last[TOOL] and entry[RESULT] == last[RESULT]
    ]
    if len({entry[CALL] for entry in same}) < 2:
        return None  # one call: that is a repetition
    level = len(same) // _WEAKER if last[NATURE] == LOOK else len(same)
    names = "; ".join(str(entry[SHOWN])[:60] for entry in same[-3:])
    evidence = f"{len(same)} times, lastly: {names}"
    key = f"{last[TOOL]}/{mark(last[TOOL], last[RESULT])}"
    return Repetition("same_error", key, level, calls=(), tool="", evidence=evidence)


def counted_failures(history: list[Entry], *, literal: bool) -> list[Entry]:
    """The failures that the last call adds to the count of its tool.

    A failure after a change is how work goes, and so is looking at a place that is not there, or trying something else;
    once the same comes again with nothing changed, both count.
    """
    last = history[-1]
    if not last[FAILED]:
        return []
    if literal:
        return [last]
    if last[NATURE] == WAIT:
        return []
    earlier = [entry for entry in history[:-1] if entry[FAILED] and entry[TOOL] == last[TOOL]]
    same = [entry for entry in earlier if entry[CHANGES] == last[CHANGES] and _same_failure(entry, last)]
    if not same and (earlier or last[NATURE] == LOOK):
        return []
    return [*(entry for entry in same if not entry[COUNTED]), last]


def _same_failure(one: Entry, last: Entry) -> bool:
    """Of a check any failure is; a look must be the same one and see the same; else the call or the error must be."""
    if last[NATURE] == VERIFY:
        return True
    same_call, same_result = one[CALL] == last[CALL], one[RESULT] == last[RESULT]
    return bool(same_call and same_result if last[NATURE] == LOOK else same_call or same_result)

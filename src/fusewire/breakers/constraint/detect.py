"""Find the constraints that an action would violate, by the patterns that each names, and ask their circuits."""

from __future__ import annotations

from fusewire.core.events import changes_files
from fusewire.guard.shell.wrappers import hidden_starts, is_wrapper, program
from fusewire.util.globs import matches, path_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event, Matcher, PackEntry
    from fusewire.stores.memory import MemoryStore
    from fusewire.stores.scoped import ScopedStore
    from fusewire.stores.sqlite import SqliteStore

#: Options with a value that may stand before a subcommand; of a program that is not here, any option may have one.
_VALUED_OPTIONS = {
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")),
}


def violated(
    matchers: tuple[tuple[str, tuple[Matcher, ...]], ...], event: Event, commands: list[list[str]]
) -> list[str]:
    """The ids of the constraints whose patterns the event fits, in their order; `commands` is what it would run."""
    return [
        constraint
        for constraint, alternatives in matchers
        if any(_fits(matcher, event, commands) for matcher in alternatives)
    ]


def may_break(rules: list[tuple[str, tuple[PackEntry, ...]]], plain: list[list[str]] | None) -> bool:
    """Whether a line has to be read for rules of packs: a plain one only if it runs a command of theirs."""
    if plain is None:
        return True
    heads = {pattern[:2] for _, entries in rules for patterns, _, _ in entries for pattern in patterns}
    return any(
        head[0] == program(words) and (not head[1:] or head[1][0] in "-*" or head[1] in words)
        for words in plain
        for head in heads
    )


def enforce(
    names: list[str],
    event: Event,
    store: SqliteStore | ScopedStore | MemoryStore,
    rules: Rules,
    root: str | None,
    cannot_ask: str,
    clock: Callable[[], float] | None = None,
) -> Decision | None:
    """Constraints forbid this: their circuits decide whether it is refused, asked about, or passes and is counted."""
    import time

    from fusewire.core.decision import Decision, strictest
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import StoreError

    try:
        store.verifies = True  # a forbidden call is rare, and may take longer
        breaker = Breaker(store, rules, clock or time.time, root)
        decisions = breaker.enforce(names, event, cannot_ask=cannot_ask)
    except StoreError as error:
        return Decision(
            "deny",
            rule=f"constraint:{names[0]}",
            reason=f"this is forbidden, and the state of its circuit cannot be used ({error})",
            next=("do it in a way that keeps to the constraint",),
            by_person=("a person can run: fusewire doctor",),
        )
    decisions = [_with_title(decision, rules) for one in decisions for decision in one.logged or (one,)]
    return strictest([one for one in decisions if not one.allowed] or decisions)


def _with_title(decision: Decision, rules: Rules) -> Decision:
    constraint = rules.constraints[decision.circuit]
    title = f"{constraint.title} ({constraint.file})" if constraint.title else constraint.file
    titled: Decision = decision.replace(
        verdict="tell" if decision.allowed else decision.verdict,
        evidence=(f"this call breaks a constraint of the project: {title}", *decision.evidence),
        next=decision.next or rules.policy(decision.circuit).next[:1],
    )
    return titled


def archive_retired_constraints(root: str, patience: float) -> None:
    """The constraints' files have changed: one of them may have been retired."""
    from fusewire.breakers.constraint.lifecycle import archive_retired
    from fusewire.engine.breaker import Breaker
    from fusewire.util.errors import FusewireError

    try:
        archive_retired(Breaker.open(project=root, patience=patience))
    except (FusewireError, OSError):
        pass  # no reason to refuse a call; the next command of a person will say it


def _fits(matcher: Matcher, event: Event, commands: list[list[str]]) -> bool:
    tools, command_patterns, path_patterns = matcher
    if tools:
        if not any(matches(event.tool, tool) for tool in tools):
            return False
    elif path_patterns and not changes_files(event.tool):
        return False
    if command_patterns and not any(runs(words, pattern) for words in commands for pattern in command_patterns):
        return False
    return not path_patterns or any(path_matches(path, pattern) for path in event.paths for pattern in path_patterns)


def runs(words: list[str], pattern: tuple[str, ...]) -> bool:
    """Whether the command is the pattern's, or a wrapper around it, whatever options that wrapper has."""
    if words_fit(words, pattern):
        return True
    return is_wrapper(program(words)) and any(words_fit(words[at:], pattern) for at in hidden_starts(words))


def words_fit(words: list[str], pattern: tuple[str, ...]) -> bool:
    """Whether the pattern's words stand in the command in this order, with anything in between.

    The first one is the program, and a second one that is no option is its subcommand, so that before it only
    options may stand: `git push --force` fits `git -C app push origin main --force`, but not `git stash push --force`.
    """
    if not words or not (matches(program(words), pattern[0]) or matches(words[0], pattern[0])):
        return False
    wanted = 1
    for at, word in enumerate(words[1:], 1):
        if wanted < len(pattern) and word_fits(word, pattern[wanted]):
            wanted += 1
        elif wanted == 1 and _is_subcommand(program(words), words, at) and pattern[1:2] and pattern[1][0] != "-":
            return False  # another one
    return wanted == len(pattern)


def _is_subcommand(name: str, words: list[str], at: int) -> bool:
    """Whether the word is no option, and not the value of the one before it."""
    before = words[at - 1]
    valued = _VALUED_OPTIONS.get(name)
    is_value = before in valued if valued is not None else before[:1] == "-"
    return words[at][:1] != "-" and not is_value


def word_fits(word: str, pattern: str) -> bool:
    """Whether one word fits; `-f` also fits among other short options, as in `-fu`."""
    if matches(word, pattern):
        return True
    if _is_abbreviated(word, pattern):
        return True
    short = len(pattern) == 2 and pattern[0] == "-" and pattern[1].isalpha()
    return short and 2 < len(word) <= 4 and word[0] == "-" and word[1:].isalpha() and pattern[1] in word[1:]


def _is_abbreviated(word: str, pattern: str) -> bool:
    """Whether a long option is cut short, as git and others take it: `--forc`, but not `--fo` (`--follow-tags`), and
    not where that is an option of its own (`--force` for `--force-with-lease`)."""
    size = len(word)
    return (
        size > (4 if pattern.startswith("--fo") else 3)
        and word[:2] == "--"
        and pattern[:size] == word
        and pattern[size : size + 1] not in ("", "-", "*", "=")
        and word not in ("--no", "--no-")
    )

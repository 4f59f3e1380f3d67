"""Which constraints an action would violate, by the patterns that each of them names."""

from __future__ import annotations

from fusewire.globs import matches, path_matches
from fusewire.wrappers import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.events import Event

    #: (tools, commands as words, paths): all that are given must fit
    Matcher = tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]

#: Tools that change the files they name. A `path` pattern means these unless it names its tools.
CHANGING_TOOLS = (
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "Write",
    "apply_patch",
    "create",
    "edit",
    "replace",
    "write_file",
)


def violated(
    matchers: tuple[tuple[str, tuple[Matcher, ...]], ...], event: Event, commands: list[list[str]]
) -> list[str]:
    """The ids of the constraints whose patterns the event fits, in their order; `commands` is what it would run."""
    return [
        constraint
        for constraint, alternatives in matchers
        if any(_fits(matcher, event, commands) for matcher in alternatives)
    ]


def _fits(matcher: Matcher, event: Event, commands: list[list[str]]) -> bool:
    tools, command_patterns, path_patterns = matcher
    if tools:
        if not any(matches(event.tool, tool) for tool in tools):
            return False
    elif path_patterns and event.tool not in CHANGING_TOOLS:
        return False
    if command_patterns and not any(words_fit(words, pattern) for words in commands for pattern in command_patterns):
        return False
    return not path_patterns or any(path_matches(path, pattern) for path in event.paths for pattern in path_patterns)


def words_fit(words: list[str], pattern: tuple[str, ...]) -> bool:
    """Whether the pattern's words stand in the command in this order, with anything in between.

    The first one is the program. `git push --force` fits `git -C app push origin main --force`.
    """
    if not words or not (matches(program(words), pattern[0]) or matches(words[0], pattern[0])):
        return False
    wanted = 1
    for word in words[1:]:
        if wanted < len(pattern) and matches(word, pattern[wanted]):
            wanted += 1
    return wanted == len(pattern)

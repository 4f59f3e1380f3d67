"""Explain why ring one has stopped a command: which protected file it was, and what to do instead."""

from __future__ import annotations

import os

from fusewire.core.decision import Decision, strictest
from fusewire.guard.sandbox.lines import OUTSIDE, share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.core.events import Event
    from fusewire.guard.protected import Protected

_RULE = "guard.kernel"

#: What programs print when the kernel has refused to change a file, in lower case.
_REFUSED = ("read-only file system", "erofs", "device or resource busy", "ebusy")

#: What programs print that did not get the rights of another user.
_NO_RIGHTS = (
    "effective uid is not 0",
    "no new privileges",
    "must be owned by uid 0 and have the setuid bit set",
    "must be suid to work properly",
    "newuidmap: write to uid_map failed",
)

#: What stands around a path in a message.
_QUOTES = "'\"`\u2018\u2019:,()"

#: Of a longer result the beginning and the end are looked at.
_MOST = 20_000

#: Paths that a message names.
_NAMED = 3


def may_explain(event: Event) -> bool:
    """Whether there is anything to explain; nearly always there is not."""
    return any(_says(call, _REFUSED + _NO_RIGHTS) for call in event.calls or (event,) if call.command)


def explain(event: Event, protected: Protected, outside: tuple[str, ...]) -> Decision | None:
    """Tell of each shell command of an event that ring one has stopped; None if it has stopped none."""
    calls = [call for call in event.calls or (event,) if call.command]
    return strictest(dict.fromkeys(_explain(call, protected, outside) for call in calls))


def _explain(call: Event, protected: Protected, outside: tuple[str, ...]) -> Decision | None:
    line, cwd = call.command or "", call.cwd or protected.root
    if share(line, outside) == OUTSIDE:
        return None
    if call.failed and _says(call, _NO_RIGHTS):
        return Decision(
            "tell",
            rule=_RULE,
            reason="this ran in a sandbox, in which no program gets the rights of another user",
            next=('go on without it, or ask the user to add it in fusewire.toml: sandbox.outside = ["COMMAND"]',),
        )
    found = list(dict.fromkeys(_refused(call, cwd, protected)))
    if not found and call.failed:  # a name in a folder that is not said, as Python's `rmtree` has it
        names = {word for line in _lines(call) for word in _words(line)}
        found = [path for path in protected.files_here() if os.path.basename(path) in names]
    name = protected.mentioned_in(line) if not found and call.failed and _says(call, _REFUSED) else ""
    found += [os.path.join(protected.root, name)] if name else []
    return _refusal(found, protected) if found else None


def _refusal(paths: list[str], protected: Protected) -> Decision:
    names = ", ".join(map(protected.shown, paths[:_NAMED])) + (" and more" if len(paths) > _NAMED else "")
    documents = all(protected.kind_of(path) == "document" for path in paths)
    instead = "update it with your edit tool; to delete or move it, ask the user" if documents else "ask the user"
    many = "are" if len(paths) > 1 else "is"
    what = f"{names} {many} protected: read-only for shell commands, and unchanged"
    return Decision("tell", rule=_RULE, reason=what, next=(instead,))


def _refused(call: Event, cwd: str, protected: Protected) -> Iterator[str]:
    """The protected paths that lines of the result name as refused."""
    for word in (word for line in _lines(call) for word in _words(line)):
        path = os.path.realpath(os.path.join(cwd, word))
        if protected.kind_of(path) is not None and ("/" in word or os.path.lexists(path)):
            yield path


def _lines(call: Event) -> list[str]:
    return [line for line in _text(call).splitlines() if any(words in line.lower() for words in _REFUSED)]


def _words(line: str) -> list[str]:
    for mark in _QUOTES:
        line = line.replace(mark, " ")
    return line.split()


def _says(call: Event, words: tuple[str, ...]) -> bool:
    text = _text(call).lower()
    return any(one in text for one in words)


def _text(call: Event) -> str:
    text = call.result or ""
    return text if len(text) <= 2 * _MOST else f"{text[:_MOST]}\n{text[-_MOST:]}"

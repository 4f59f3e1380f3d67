"""The nouns that travel to the circuits: Event and Signal. Immutable, cheap, JSON-able.

They are slotted classes and not dataclasses because the hook process is started anew for every tool
call, and `dataclasses` alone would cost it more than all of its work.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    #: what a constraint names: (tools, commands as words, paths); all that are given must fit
    Matcher = tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]
    SignalKind = Literal["good", "bad", "note", "ask", "reset", "restart", "override", "release"]

__all__ = ["Event", "Signal", "fingerprint", "identifier", "plain"]

#: How much of a text is kept in a state or a log row: evidence, not an archive. In bytes, because disk is.
TEXT_LIMIT = 300
NAME_LIMIT = 200


def plain(text: str, limit: int | None = None) -> str:
    """Text that can be stored: real characters only (JSON may carry lone surrogates), and up to `limit` bytes."""
    if text.isascii() and (limit is None or len(text) <= limit):
        return text
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def identifier(circuit: str) -> str:
    """A circuit's id as it is stored: a very long one is cut, but two of them stay two."""
    if len(circuit) <= NAME_LIMIT and circuit.isascii():
        return circuit
    whole = plain(circuit)
    if plain(whole, NAME_LIMIT) == whole:
        return whole
    # Short enough that what is stored is its own name.
    return f"{plain(circuit, NAME_LIMIT - 17)}~{fingerprint(circuit)[7:23]}"


def _name(text: str | None) -> str | None:
    return None if text is None else plain(text, NAME_LIMIT)


def fingerprint(*parts: str) -> str:
    """A tagged SHA-256 of the parts, separated so that ("ab", "c") and ("a", "bc") differ."""
    import hashlib

    return "sha256:" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def mark(*parts: str) -> str:
    """Twelve characters by which the same parts are known again; quicker to get than a fingerprint, and less unique."""
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]  # the public module loads every kind of hash
    except ImportError:
        from hashlib import sha1
    digest: str = sha1("\0".join(parts).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return digest[:12]


class Noun:
    """Value semantics from `__slots__`: equality, representation, no later change."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash(tuple(repr(getattr(self, name)) for name in self.__slots__))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def replace(self, **changes: Any) -> Any:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return type(self)(**{**fields, **changes})


_set = object.__setattr__


class Event(Noun):
    """What an agent did or is about to do, in no agent's own words."""

    __slots__ = (
        "agent",
        "call",
        "calls",
        "change",
        "command",
        "cwd",
        "failed",
        "hook",
        "input",
        "kind",
        "paths",
        "result",
        "running",
        "session",
        "subagent",
        "text",
        "took",
        "tool",
        "transcript",
    )

    def __init__(
        self,
        kind: str,
        *,
        tool: str = "",
        command: str | None = None,
        paths: tuple[str, ...] = (),
        session: str | None = None,
        call: str | None = None,
        agent: str | None = None,
        subagent: str | None = None,
        hook: str = "",
        cwd: str | None = None,
        change: str = "update",
        input: dict[str, Any] | None = None,
        result: str | None = None,
        failed: bool | None = None,
        text: str = "",
        transcript: str | None = None,
        calls: tuple[Event, ...] = (),
        running: tuple[str, ...] | None = None,
        took: float | None = None,
    ) -> None:
        _set(self, "kind", kind)
        _set(self, "tool", tool)
        _set(self, "command", command)
        _set(self, "paths", paths)
        _set(self, "session", session)
        _set(self, "call", call)
        _set(self, "agent", agent)
        _set(self, "subagent", subagent)
        #: the agent's own name for the moment, where its commands run, and what a changing tool does to its files
        _set(self, "hook", hook)
        _set(self, "cwd", cwd)
        _set(self, "change", change)
        #: what a tool was given, what came back, and whether it failed; None where nobody knows
        _set(self, "input", input)
        _set(self, "result", result)
        _set(self, "failed", failed)
        #: what a person said, or a word on what happened
        _set(self, "text", text)
        #: the file in which the agent writes down its session
        _set(self, "transcript", transcript)
        #: the calls of one model reply, where an agent reports them together
        _set(self, "calls", calls)
        #: ids of the helpers that still run, where the agent says so
        _set(self, "running", running)
        #: seconds that a call ran, without the time in which a person was asked for permission
        _set(self, "took", took)

    kind: str
    hook: str
    cwd: str | None
    change: str
    tool: str
    command: str | None
    paths: tuple[str, ...]
    session: str | None
    call: str | None
    agent: str | None
    subagent: str | None
    input: dict[str, Any] | None
    result: str | None
    failed: bool | None
    text: str
    transcript: str | None
    calls: tuple[Event, ...]
    running: tuple[str, ...] | None
    took: float | None

    def described(self) -> str:
        """The action in a few words, for the audit trail."""
        if self.command is not None:
            return self.command
        return " ".join((self.tool, *self.paths)).strip()


class Signal(Noun):
    """A past fact about one circuit (`violation`, `test_failed`), or a question to it (`ask`)."""

    __slots__ = ("circuit", "fingerprint", "kind", "lease", "name", "session", "text", "turn", "value")

    def __init__(
        self,
        kind: SignalKind,
        circuit: str,
        name: str,
        *,
        value: float = 1,
        fingerprint: str | None = None,
        text: str = "",
        session: str | None = None,
        turn: int | None = None,
        lease: str | None = None,
    ) -> None:
        _set(self, "kind", kind)
        _set(self, "circuit", identifier(circuit))
        _set(self, "name", plain(name, NAME_LIMIT))
        _set(self, "value", value)
        _set(self, "fingerprint", _name(fingerprint))
        _set(self, "text", plain(text, TEXT_LIMIT))
        _set(self, "session", _name(session))
        _set(self, "turn", turn)
        _set(self, "lease", _name(lease))

    kind: SignalKind
    circuit: str
    name: str
    value: float
    fingerprint: str | None
    text: str
    session: str | None
    turn: int | None
    lease: str | None


#: Tools that change the files they name, and verbs in the names of other servers' tools that do.
_CHANGING_TOOLS = frozenset("Edit MultiEdit NotebookEdit Write apply_patch create edit replace write_file".split())
_CHANGING_VERBS = tuple("write edit create replace delete move rename insert patch update append".split())


def changes_files(tool: str) -> bool:
    """Whether a tool changes the files that it names; an unknown one of an MCP server is judged by its verb."""
    if tool in _CHANGING_TOOLS:
        return True
    name = tool.lower()
    return name.startswith("mcp__") and any(verb in name for verb in _CHANGING_VERBS)

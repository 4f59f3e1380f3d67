"""Define the values that travel to the circuits, Event and Signal: immutable, cheap, JSON-able."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Literal, Self, dataclass_transform

    #: what a constraint names: (tools, commands as words, paths); all that are given must fit
    Matcher = tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]
    #: of a rule of a pack: command patterns, words that excuse it, and what is asked beyond the words
    PackEntry = tuple[tuple[tuple[str, ...], ...], tuple[str, ...], str]
    SignalKind = Literal["good", "bad", "note", "ask", "reset", "restart", "override", "release"]
else:

    def dataclass_transform(**_):
        return lambda cls: cls


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


class Fields:
    """What a dataclass is, without the 20 ms that importing `dataclasses` would cost each hook.

    The annotations of a subclass are its fields, in this order; a class value is a default.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, object]] = {}

    def __init_subclass__(cls) -> None:
        own = tuple(vars(cls).get("__annotations__", ()))
        cls.fields += own
        cls._names = frozenset(cls.fields)
        cls._defaults = {**cls._defaults, **{name: vars(cls)[name] for name in own if name in vars(cls)}}

    def __init__(self, *values: object, **named: object) -> None:
        given = self.__dict__
        given.update(self._defaults)
        given.update(zip(self.fields, values, strict=False))
        given.update(named)
        if given.keys() != self._names or len(values) > len(self.fields):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self.fields)}; given: {', '.join(given)}")
        self._normalize(given)

    def _normalize(self, values: dict[str, Any]) -> None:
        """Change the values that a new object was given, where a subclass does not take them as they are."""

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{type(self).__name__}({shown})"


@dataclass_transform()
class Row(Fields):
    """A part of a memory that is stored as the list of its values."""

    @classmethod
    def from_data(cls, data: list[Any]) -> Self:
        """TypeError if it has fewer values than a row of this kind."""
        return cls(*data)

    @classmethod
    def table(cls, data: dict[str, list[Any]]) -> dict[str, Self]:
        """Rows by a key of theirs."""
        return {key: cls(*row) for key, row in data.items()}

    def to_data(self) -> list[Any]:
        return [getattr(self, name) for name in self.fields]


@dataclass_transform(frozen_default=True)
class Noun(Fields):
    """An immutable value."""

    def __hash__(self) -> int:
        return hash(repr(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def replace(self, **changes: Any) -> Any:
        return type(self)(**{**self.__dict__, **changes})


class Event(Noun):
    """What an agent did or is about to do, in no agent's own words."""

    kind: str
    tool: str = ""
    command: str | None = None
    paths: tuple[str, ...] = ()
    session: str | None = None
    call: str | None = None
    agent: str | None = None
    subagent: str | None = None
    #: the agent's own name for the moment, where its commands run, and what a changing tool does to its files
    hook: str = ""
    cwd: str | None = None
    change: str = "update"
    #: what a tool was given, what came back, and whether it failed; None where that is unknown
    input: dict[str, Any] | None = None
    result: str | None = None
    failed: bool | None = None
    #: what a person said, or a word on what happened
    text: str = ""
    #: the file in which the agent writes down its session
    transcript: str | None = None
    #: the calls of one model reply, where an agent reports them together
    calls: tuple[Event, ...] = ()
    #: ids of the helpers that still run, where the agent says so
    running: tuple[str, ...] | None = None
    #: seconds that a call ran, without the time in which a person was asked for permission
    took: float | None = None
    #: the mode of a session in which its program may pass over a question; empty where it always asks
    unasked: str = ""
    #: the model, where the beginning of a session or a prompt tells it
    model: str = ""

    def described(self) -> str:
        """The action in a few words, for the audit trail."""
        if self.command is not None:
            return self.command
        return " ".join((self.tool, *self.paths)).strip()


class Signal(Noun):
    """A past fact about one circuit (`violation`, `test_failed`), or a question to it (`ask`)."""

    kind: SignalKind
    circuit: str
    name: str
    value: float = 1
    fingerprint: str | None = None
    text: str = ""
    session: str | None = None
    turn: int | None = None
    lease: str | None = None

    def _normalize(self, values: dict[str, Any]) -> None:
        values["circuit"] = identifier(self.circuit)
        values["name"] = plain(self.name, NAME_LIMIT)
        values["text"] = plain(self.text, TEXT_LIMIT)
        for name in ("fingerprint", "session", "lease"):
            values[name] = _name(values[name])


#: Tools that change the files they name, and verbs in the names of other servers' tools that do.
_CHANGING_TOOLS = frozenset("Edit MultiEdit NotebookEdit Write apply_patch create edit replace write_file".split())
_CHANGING_VERBS = tuple("write edit create replace delete move rename insert patch update append".split())


def changes_files(tool: str) -> bool:
    """Whether a tool changes the files that it names; an unknown one of an MCP server is judged by its verb."""
    if tool in _CHANGING_TOOLS:
        return True
    name = tool.lower()
    return name.startswith("mcp__") and any(verb in name for verb in _CHANGING_VERBS)

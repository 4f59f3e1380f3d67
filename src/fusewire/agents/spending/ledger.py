"""Add up what a session has cost, reading its transcripts on from where the last look ended.

The hook looks before every tool call, so a look costs what is new in the transcripts, not what is in them: a few
system calls if nothing is, and never more than `READ` bytes. What is remembered between two looks is a small dict for
the store:

    usd      dollars in all
    models   model -> tokens of each kind (`money.KINDS`), then dollars
    unknown  model without a known price -> tokens of each kind
    files    transcript -> `TranscriptFile`: where the last look ended, and how to tell that it is still the same file
    recent   the last messages with what was charged: the lines of one message repeat its usage
    past     files that are no longer watched, as numbers: they are not counted again
    first    the file that the next look begins with
    problem  what could not be counted

Which records report usage, and how, is the matter of each agent's `usage` module.
"""

from __future__ import annotations

import os

from fusewire.agents import agent_modules
from fusewire.core.events import Noun
from fusewire.core.money import dollars, price_of
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from fusewire.core.money import Price, Prices, Usage
    from fusewire.util.fast_json import JsonObject

    #: As it is stored; see above.
    Memory = dict[str, Any]

    class UsageReader(Protocol):
        """The `usage` module of an agent."""

        #: values of `type` in the records that may report usage
        RECORDS: tuple[str, ...]

        def usages(self, record: JsonObject, state: TranscriptFile, wrong: list[str]) -> Iterator[Usage]: ...


#: Bytes that one look reads at most, in all files together; also the longest line.
READ = 4 * 1024 * 1024

#: Sub-agents' files that are watched at once, session files, and how many more are known to be counted.
SUBAGENT_FILES = 64
_SESSIONS = 4
_PAST = 1024

_RECENT = 40
_MODELS = 32
_OTHERS = "other models"

#: How much of a file's beginning, and of what came last, is compared to tell that it is the same.
_EDGE = 512

#: Every line that matters has one of these. Inside of a text the quotes would be escaped.
_KEYS = (b'"usage"', b'"token_count"', b'"turn_context"', b'"forked_from_id"', b'"tokens"')

#: A whole JSON document, written again each time (older clients).
_DOCUMENT = (b"{\n", b"{\r")

#: How the problem of a session whose own transcript cannot be read begins; it goes when it can.
UNREADABLE = "the transcript cannot be read:"
_NO_JSON = "a transcript is no JSON"


class TranscriptFile:
    """What is remembered of one transcript."""

    __slots__ = ("at", "charged", "counter", "edges", "inode", "left_out", "newest", "size", "time")

    def __init__(
        self,
        at: int = 0,
        size: int = 0,
        time: int = 0,
        inode: int = 0,
        edges: int = 0,
        newest: str = "",
        charged: str = "",
        left_out: bool = False,
        counter: list[Any] | None = None,
    ) -> None:
        #: where to go on reading
        self.at = at
        #: size, time and inode at the last look
        self.size = size
        self.time = time
        self.inode = inode
        #: checksum of its beginning and of what came before `at`
        self.edges = edges
        #: time of the newest message that was charged
        self.newest = newest
        #: up to which time messages are not charged: they were charged before, or to another session
        self.charged = charged
        #: whether the rest of a line that is too long is to be skipped
        self.left_out = left_out
        #: the model and the running totals of agents that report those
        self.counter = counter

    def to_data(self) -> list[Any]:
        return [
            *(self.at, self.size, self.time, self.inode, self.edges),
            *(self.newest, self.charged, self.left_out, self.counter),
        ]

    def was_charged(self, when: str) -> bool:
        """Whether a message was charged before its file was replaced, or to another session; a later one ends that."""
        if not self.charged:
            return False
        if when <= self.charged:
            return True
        self.charged = ""
        return False


def read_on(
    memory: Memory, transcript: str, prices: Prices, since: str = "", booked: Callable[[Booking], None] | None = None
) -> Memory:
    """What is known after one more look; the same object if there was nothing new. Never an exception.

    What happened up to `since` (as the transcripts write a time: 2026-11-15T21:17:50.149Z) is not charged where a
    file is seen for the first time: agents that go on from another session copy its messages into the new transcript.
    Each request that is charged is also handed to `booked`.
    """
    if not isinstance(transcript, str) or not transcript:
        return memory
    look = _Look(memory, prices, since, booked)
    look.price_unknown()
    main = look.main = _session_of(transcript)
    agents = _agents_of(main)
    first = memory.get("first")
    if first in agents:
        look.file(agents[first], first, is_main=False)
    look.file(main, main, is_main=True)
    look.agents(agents)
    return look.result()


class Booking(Noun):
    """What one request was charged: when, as the transcript has it, with which model, and in which sub-agent."""

    when: str
    model: str
    helper: str
    tokens: tuple[int, ...]
    usd: float
    #: 1 for a request; 0 for what is charged later, because its price was not known
    calls: int
    #: what names the request wherever it was copied to, and the agent that wrote the transcript
    identity: str = ""
    agent: str = ""


def charging(prices: Prices) -> Callable[[Any, str], float]:
    """A function that takes a session's records one by one, with the name of their file, and says what each adds."""
    look = _Look({}, prices, "")

    def charge(record: Any, name: str) -> float:
        before = look.usd
        look.record(record, name, look.files.setdefault(name, TranscriptFile()))
        return look.usd - before

    return charge


def _session_of(transcript: str) -> str:
    """A sub-agent's transcript lies below the one of its session: <session>/subagents/agent-<id>.jsonl."""
    folder, _, name = transcript.rpartition("/")
    if name.startswith("agent-") and folder.endswith("/subagents"):
        return folder[: -len("/subagents")] + ".jsonl"
    return transcript


def _agents_of(main: str) -> dict[str, str]:
    """The transcripts of the agents that a session has started: name -> path."""
    stem = main[: -len(".jsonl")] if main.endswith(".jsonl") else main
    folder, _, name = stem.rpartition("/")
    if not name.startswith("session-"):
        found = {name: f"{stem}/subagents/{name}" for name in _names(f"{stem}/subagents") if name.startswith("agent-")}
    else:  # in a folder with the session's whole id, of which the file's name has the beginning
        found = {
            f"agent-{name}": f"{folder}/{inner}/{name}"
            for inner in _names(folder)
            if inner.startswith(stem[-8:])
            for name in _names(f"{folder}/{inner}")
        }
    return {name: path for name, path in found.items() if name.endswith(".jsonl") and len(name) <= 200}


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _number(data: bytes, bits: int = 32) -> int:
    """A cheap non-cryptographic checksum."""
    return int.from_bytes(data, "big") % ((1 << bits) - 5)


def _is_of_agent(name: str) -> bool:
    """Whether a file may be a sub-agent's; rollouts of sessions and of sub-agents have the same form."""
    return name.startswith("agent-") or "/rollout-" in name


class _Look:
    """One look at a session's transcripts."""

    def __init__(
        self, memory: Memory, prices: Prices, since: str, booked: Callable[[Booking], None] | None = None
    ) -> None:
        self.before = memory
        self.booked = booked
        self.main = ""
        self.prices = prices
        self.since = since
        self.usd: float = memory.get("usd", 0.0)
        self.models: dict[str, list[Any]] = dict(memory.get("models", {}))
        self.unknown: dict[str, list[int]] = dict(memory.get("unknown", {}))
        self.files = {name: TranscriptFile(*data) for name, data in memory.get("files", {}).items()}
        self.recent: dict[str, list[Any]] = dict(memory.get("recent", {}))
        self.past: list[int] = list(memory.get("past", ()))
        self.first = ""
        self.problem: str = memory.get("problem", "")
        self.left = READ
        self.changed = False
        #: the messages that this look has charged, by file
        self.touched: dict[str, dict[str, bool]] = {}
        self.known: dict[str, Price | None] = {}
        self.reader: UsageReader | None = None

    def result(self) -> Memory:
        same = self.problem == self.before.get("problem", "") and self.first == self.before.get("first", "")
        if same and not self.changed:
            return self.before
        after: Memory = {
            "usd": self.usd,
            "models": self.models,
            "unknown": self.unknown,
            "files": {name: file.to_data() for name, file in self.files.items()},
            "recent": self._kept(),
            "past": self.past,
        }
        if self.first:
            after["first"] = self.first
        if self.problem:
            after["problem"] = self.problem
        return after

    def _kept(self) -> dict[str, list[Any]]:
        """The last message of every file that was read, then the one before it, and so on; then older ones."""
        rows = [list(ids)[::-1] for ids in self.touched.values()]
        order: dict[str, bool] = {}
        for depth in range(_RECENT):
            for row in rows:
                if depth < len(row):
                    order[row[depth]] = True
        for identity in self.before.get("recent", ()):
            order[identity] = True
        return {identity: self.recent[identity] for identity in list(order)[:_RECENT]}

    # -- files --------------------------------------------------------------------------------------------

    def agents(self, found: dict[str, str]) -> None:
        """What is watched first, so that a new file never pushes out one that has something to say."""
        for name, path in found.items():
            if name in self.files:
                self.file(path, name, is_main=False)
        for name, path in found.items():
            if name not in self.files and self.left > 0 and _number(_bytes(name)) not in self.past:
                self.file(path, name, is_main=False)

    def file(self, path: str, name: str, *, is_main: bool) -> None:
        """Read one file on, if it has changed."""
        entry = self.files.get(name)
        try:
            status = os.stat(path)
            if status.st_mode & 0o170000 != 0o100000:
                raise OSError(22, "not a regular file")
            facts = (status.st_size, status.st_mtime_ns, status.st_ino)
            seen = entry is not None and facts == (entry.size, entry.time, entry.inode)
            if seen or self.left <= 0 or not status.st_size:
                self._readable(is_main)
                return
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            if is_main:
                self.problem = f"{UNREADABLE} {getattr(error, 'strerror', None) or error}"[:200]
            return
        try:
            status = os.fstat(handle)
            if entry is None:
                entry = self._taken_over(handle, status, name)
            if (entry is not None or self._room(name)) and status.st_mode & 0o170000 == 0o100000:
                self._readable(is_main)
                self._read(handle, status, name, entry)
        except OSError as error:
            self.problem = f"{UNREADABLE} {error.strerror}"[:200]
        finally:
            os.close(handle)

    def _readable(self, is_main: bool) -> None:
        if is_main and self.problem.startswith(UNREADABLE):
            self.problem = ""

    def _taken_over(self, handle: int, status: os.stat_result, name: str) -> TranscriptFile | None:
        """The entry of a file that was moved here, or that this one goes on from."""
        for other, entry in self.files.items():
            if entry.inode == status.st_ino and entry.at and _edges(handle, entry.at) == entry.edges:
                del self.files[other]
                return entry
        older = self.files.get(name[:-1]) if name.endswith(".jsonl") else None  # a document became lines
        return None if older is None else TranscriptFile(charged=older.newest)

    def _room(self, name: str) -> bool:
        """Whether one more file can be watched; if need be, the one that has been silent longest is forgotten."""
        is_agent = _is_of_agent(name)
        if _number(_bytes(name)) in self.past:
            return False
        watched = [(entry.time, other) for other, entry in self.files.items() if _is_of_agent(other) == is_agent]
        if len(watched) < (SUBAGENT_FILES if is_agent else _SESSIONS):
            return True
        if len(self.past) >= _PAST:
            self.problem = (
                f"more than {SUBAGENT_FILES + _PAST} sub-agents in one session: the last ones are not counted"
            )
            return False
        silent = min(watched)[1]
        del self.files[silent]
        self.past.append(_number(_bytes(silent)))
        return True

    def _read(self, handle: int, status: os.stat_result, name: str, entry: TranscriptFile | None) -> None:
        """From where the last look ended to the last complete line."""
        size = status.st_size
        entry = entry or TranscriptFile(charged=self.since)
        if entry.at and (size < entry.at or _edges(handle, entry.at) != entry.edges):
            # It was truncated or replaced: from the beginning, without what was charged before.
            entry.at, entry.charged, entry.left_out = 0, max(entry.newest, entry.charged), False
        data = os.pread(handle, min(self.left, size - entry.at), entry.at)
        self.left -= len(data)
        self.changed = True
        entry.size, entry.time, entry.inode = entry.at + len(data), status.st_mtime_ns, status.st_ino
        if entry.at == 0 and data[:2] in _DOCUMENT:
            self._document(data, size, name, entry)
        else:
            self._lines(data, name, entry)
            entry.edges = _edges(handle, entry.at)
        self.files[name] = entry

    def _lines(self, data: bytes, name: str, entry: TranscriptFile) -> None:
        end = data.rfind(b"\n") + 1
        begin = 0
        if not end:
            if entry.left_out or len(data) >= READ:
                self._say(f"a line longer than {READ >> 20} MB was left out")
                entry.left_out = True
                entry.at += len(data)
            elif self.left <= 0:
                self.first = name  # with all of the budget, the line can be read or is known to be too long
            return
        if entry.left_out:
            begin = data.find(b"\n") + 1
            entry.left_out = False
        entry.at += end
        found = [data.find(key, begin, end) for key in _KEYS]
        while True:
            at = min((place for place in found if place >= 0), default=-1)
            if at < 0:
                return
            start = max(begin, data.rfind(b"\n", begin, at) + 1)
            stop = data.find(b"\n", at, end)
            self._line(data[start:stop], name, entry)
            begin = stop + 1
            for index, place in enumerate(found):
                if 0 <= place < begin:
                    found[index] = data.find(_KEYS[index], begin, end)

    def _document(self, data: bytes, size: int, name: str, entry: TranscriptFile) -> None:
        """All of it, every time; the time of the messages says what was charged before."""
        entry.charged = entry.newest
        if size > len(data):
            if size > READ:
                self._say(f"a transcript that is one JSON document of more than {READ >> 20} MB is not counted")
                entry.size = size
            else:
                self.first = name
            return
        try:
            messages = loads(data.decode("utf-8", "replace")).get("messages")
        except (ValueError, AttributeError):
            self._say(_NO_JSON)
            return
        if self.problem == _NO_JSON:  # it was looked at while it was being written
            self.problem = ""
        for message in messages if isinstance(messages, list) else ():
            self.record(message, name, entry)

    # -- lines --------------------------------------------------------------------------------------------

    def _line(self, raw: bytes, name: str, entry: TranscriptFile) -> None:
        try:
            record = loads(raw.decode("utf-8", "replace"))
        except ValueError:
            self._say("a line that is no JSON was left out")
            return
        self.record(record, name, entry)

    def record(self, record: Any, name: str, entry: TranscriptFile) -> None:
        """Charge what a record reports, if it is one of an agent's records of usage."""
        if not isinstance(record, dict):
            return
        kind = record.get("type")
        if self.reader is None:
            self.reader = _reader_of(kind)
        if self.reader is None or kind not in self.reader.RECORDS:
            return
        wrong: list[str] = []
        for usage in self.reader.usages(record, entry, wrong):
            self._charge(usage, _text(record.get("timestamp"), 30), name, entry)
        if wrong:
            self._say(wrong[0])

    # -- charging -----------------------------------------------------------------------------------------

    def _charge(self, usage: Usage, when: str, name: str, entry: TranscriptFile) -> None:
        """Every message once; if a later line of it says more, the difference. Times in ISO 8601 sort as text."""
        tokens, identity = usage.tokens, _text(usage.identity, 100)
        charged = self.recent.get(identity) if identity else None
        if charged is None and entry.was_charged(when):
            return
        if not any(tokens):
            return
        entry.newest = max(entry.newest, when)
        before = charged or [0] * 6
        after = [max(old, new) for old, new in zip(before, tokens, strict=True)]
        if after != before:
            model = _text(usage.model, 100) or "model not told"
            usd = self._book(model, after, before, usage)
            if self.booked is not None:
                new = tuple(now - old for now, old in zip(after, before, strict=True))
                helper = "" if name == self.main else name.rpartition("/")[2].removesuffix(".jsonl")
                agent = getattr(self.reader, "__name__", "").split(".")[-2:][0]
                self.booked(Booking(when, model, helper, new, usd, int(charged is None), identity, agent))
        if identity:
            self.recent[identity] = after
            ids = self.touched.setdefault(name, {})
            ids.pop(identity, None)
            ids[identity] = True

    def _book(self, model: str, tokens: list[int], before: list[int], usage: Usage) -> float:
        prompt, fast = usage.prompt, usage.fast
        if model not in self.known:
            self.known[model] = price_of(model, self.prices)
        price = self.known[model]
        new = [now - old for now, old in zip(tokens, before, strict=True)]
        if price is None:
            _add(self.unknown, model, new)
            return 0.0
        usd = dollars(tokens, price, prompt=prompt, fast=fast) - dollars(before, price, prompt=prompt, fast=fast)
        if fast and not price[4]:
            self._say(f"what {model} costs in fast mode is not known; counted as usual")
        self.usd += usd
        _add(self.models, model, [*new, usd])
        return usd

    def price_unknown(self) -> None:
        """A price has been given for a model that had none: what it has used is charged now."""
        for model in list(self.unknown):
            price = price_of(model, self.prices)
            if price is not None:
                tokens = self.unknown.pop(model)
                usd = dollars(tokens, price, prompt=0)
                self.usd += usd
                _add(self.models, model, [*tokens, usd])
                self.changed = True
                if self.booked is not None:
                    self.booked(Booking("", model, "", (0,) * 6, usd, 0))

    def _say(self, problem: str) -> None:
        self.problem = problem[:200]


def _reader_of(kind: Any) -> UsageReader | None:
    """The reader of the agent that writes such records. Agents are loaded one after the other until one fits."""
    return next((reader for reader in agent_modules("usage") if kind in reader.RECORDS), None)


def _add(table: dict[str, list[Any]], model: str, more: list[Any]) -> None:
    if model not in table and len(table) >= _MODELS:
        model = _OTHERS
    table[model] = [old + new for old, new in zip(table[model], more, strict=True)] if model in table else list(more)


def _edges(handle: int, at: int) -> int:
    """How a file begins, and what stands before the place where the last look ended."""
    return _number(os.pread(handle, min(at, _EDGE), 0) + os.pread(handle, min(at, _EDGE), max(0, at - _EDGE)), 61)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(value: Any, limit: int) -> str:
    return value.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore") if isinstance(value, str) else ""

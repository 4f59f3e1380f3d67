"""What a session has cost so far, read on from where the last look ended.

The hook looks before every tool call, so a look costs what is new in the transcript and not what is in it: a few
system calls if nothing is, and never more than `READ` bytes. What is remembered between two looks is a small dict for
the store:

    usd      dollars in all
    models   model -> tokens of each kind (`money.KINDS`), then dollars
    unknown  model that no price is known for -> tokens of each kind; they cost something, nobody knows how much
    files    transcript -> where the last look ended, and how to tell that it is still the same file
    recent   the last messages with what was charged: the lines of one message repeat its usage
    past     files that are no longer watched, as numbers: they are not counted again
    first    the file that the next look begins with
    problem  what could not be counted
"""

from __future__ import annotations

import os

from fusewire.config.money import (
    MOST,
    claude_tokens,
    codex_counts,
    codex_tokens,
    copilot_tokens,
    cost_of,
    dollars,
    gemini_tokens,
    price_of,
)
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.config.money import Price, Prices

    Memory = dict[str, Any]

__all__ = ["AGENTS", "READ", "UNREADABLE", "cost_of", "read_on"]

#: Bytes that one look reads at most, in all files together; also the longest line.
READ = 4 * 1024 * 1024

#: Sub-agents' files that are watched at once, session files, and how many more are known to be counted.
AGENTS = 64
_SESSIONS = 4
_PAST = 1024

_RECENT = 40
_MODELS = 32
_OTHERS = "other models"

#: How much of a file's beginning, and of what came last, is compared to tell that it is the same.
_EDGE = 512

#: Every line that matters has one of these. Inside of a text the quotes would be escaped.
_KEYS = (b'"usage"', b'"token_count"', b'"turn_context"', b'"forked_from_id"', b'"tokens"')

#: A whole JSON document, written anew each time (older Gemini clients).
_DOCUMENT = (b"{\n", b"{\r")

#: A file's entry: where to go on; size, time and inode of the last look; its edges; the time of the newest message that
#: was charged; up to which time messages are not charged, because they were before or in another session; whether the
#: rest of a line is to be left out; the model of Codex and what it had counted.
_AT, _SIZE, _TIME, _INODE, _EDGES, _NEWEST, _CHARGED, _LEFT_OUT, _CODEX = range(9)

#: How the problem of a session whose own transcript cannot be read begins; it goes when it can.
UNREADABLE = "the transcript cannot be read:"
_NO_JSON = "a transcript is no JSON"


def read_on(memory: Memory, transcript: str, prices: Prices, since: str = "") -> Memory:
    """What is known after one more look; the same object if there was nothing new. Never an exception.

    What happened up to `since` (as the transcripts write a time: 2026-11-15T21:17:50.149Z) is not charged where a
    file is seen for the first time: agents that go on from another session copy its messages into the new transcript.
    """
    if not isinstance(transcript, str) or not transcript:
        return memory
    look = _Look(memory, prices, since)
    look.price_unknown()
    main = _session_of(transcript)
    agents = _agents_of(main)
    first = memory.get("first")
    if first in agents:
        look.file(agents[first], first, is_main=False)
    look.file(main, main, is_main=True)
    look.agents(agents)
    return look.result()


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
    else:  # Gemini: a folder with the session's whole id, of which the file's name has the beginning
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
    """A few bytes that stand for many; nobody gains by forging them, so it need not be a good hash."""
    return int.from_bytes(data, "big") % ((1 << bits) - 5)


def _is_of_agent(name: str) -> bool:
    """Whether a file may be a sub-agent's; Codex names them all alike."""
    return name.startswith("agent-") or "/rollout-" in name


class _Look:
    """One look at a session's transcripts."""

    def __init__(self, memory: Memory, prices: Prices, since: str) -> None:
        self.before = memory
        self.prices = prices
        self.since = since
        self.usd: float = memory.get("usd", 0.0)
        self.models: dict[str, list[Any]] = dict(memory.get("models", {}))
        self.unknown: dict[str, list[int]] = dict(memory.get("unknown", {}))
        self.files: dict[str, list[Any]] = dict(memory.get("files", {}))
        self.recent: dict[str, list[Any]] = dict(memory.get("recent", {}))
        self.past: list[int] = list(memory.get("past", ()))
        self.first = ""
        self.problem: str = memory.get("problem", "")
        self.left = READ
        self.changed = False
        #: the messages that this look has charged, by file
        self.touched: dict[str, dict[str, bool]] = {}
        self.known: dict[str, Price | None] = {}

    def result(self) -> Memory:
        same = self.problem == self.before.get("problem", "") and self.first == self.before.get("first", "")
        if same and not self.changed:
            return self.before
        after: Memory = {
            "usd": self.usd,
            "models": self.models,
            "unknown": self.unknown,
            "files": self.files,
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
            seen = entry is not None and [status.st_size, status.st_mtime_ns, status.st_ino] == entry[_SIZE:_EDGES]
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

    def _taken_over(self, handle: int, status: os.stat_result, name: str) -> list[Any] | None:
        """The entry of a file that was moved here, or that this one goes on from."""
        for other, entry in self.files.items():
            moved = entry[_INODE] == status.st_ino and entry[_AT] and _edges(handle, entry[_AT]) == entry[_EDGES]
            if moved:
                del self.files[other]
                return entry
        older = self.files.get(name[:-1]) if name.endswith(".jsonl") else None  # Gemini: session.json -> .jsonl
        return None if older is None else [0, 0, 0, 0, 0, "", older[_NEWEST], False, None]

    def _room(self, name: str) -> bool:
        """Whether one more file can be watched; if need be, the one that has been silent longest is forgotten."""
        is_agent = _is_of_agent(name)
        if _number(_bytes(name)) in self.past:
            return False
        watched = [(entry[_TIME], other) for other, entry in self.files.items() if _is_of_agent(other) == is_agent]
        if len(watched) < (AGENTS if is_agent else _SESSIONS):
            return True
        if len(self.past) >= _PAST:
            self.problem = f"more than {AGENTS + _PAST} sub-agents in one session: the last ones are not counted"
            return False
        silent = min(watched)[1]
        del self.files[silent]
        self.past.append(_number(_bytes(silent)))
        return True

    def _read(self, handle: int, status: os.stat_result, name: str, entry: list[Any] | None) -> None:
        """From where the last look ended to the last complete line."""
        size = status.st_size
        entry = list(entry) if entry is not None else [0, 0, 0, 0, 0, "", self.since, False, None]
        if entry[_AT] and (size < entry[_AT] or _edges(handle, entry[_AT]) != entry[_EDGES]):
            # It was cut off or written anew: from the beginning, without what was charged before.
            entry[_AT], entry[_CHARGED], entry[_LEFT_OUT] = 0, max(entry[_NEWEST], entry[_CHARGED]), False
        data = os.pread(handle, min(self.left, size - entry[_AT]), entry[_AT])
        self.left -= len(data)
        self.changed = True
        entry[_SIZE:_EDGES] = [entry[_AT] + len(data), status.st_mtime_ns, status.st_ino]
        if entry[_AT] == 0 and data[:2] in _DOCUMENT:
            self._document(data, size, name, entry)
        else:
            self._lines(data, name, entry)
            entry[_EDGES] = _edges(handle, entry[_AT])
        self.files[name] = entry

    def _lines(self, data: bytes, name: str, entry: list[Any]) -> None:
        end = data.rfind(b"\n") + 1
        begin = 0
        if not end:
            if entry[_LEFT_OUT] or len(data) >= READ:
                self._say(f"a line longer than {READ >> 20} MB was left out")
                entry[_LEFT_OUT] = True
                entry[_AT] += len(data)
            elif self.left <= 0:
                self.first = name  # with all of the budget, the line can be read or is known to be too long
            return
        if entry[_LEFT_OUT]:
            begin = data.find(b"\n") + 1
            entry[_LEFT_OUT] = False
        entry[_AT] += end
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

    def _document(self, data: bytes, size: int, name: str, entry: list[Any]) -> None:
        """All of it, every time; what was charged before is told by the time of the messages."""
        entry[_CHARGED] = entry[_NEWEST]
        if size > len(data):
            if size > READ:
                self._say(f"a transcript that is one JSON document of more than {READ >> 20} MB is not counted")
                entry[_SIZE] = size
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
            if isinstance(message, dict) and message.get("type") == "gemini":
                self._gemini(message, name, entry)

    # -- lines --------------------------------------------------------------------------------------------

    def _line(self, raw: bytes, name: str, entry: list[Any]) -> None:
        try:
            record = loads(raw.decode("utf-8", "replace"))
        except ValueError:
            self._say("a line that is no JSON was left out")
            return
        if not isinstance(record, dict):
            return
        kind = record.get("type")
        if kind == "assistant":
            self._claude(record, name, entry)
        elif kind == "gemini":
            self._gemini(record, name, entry)
        elif kind in ("event_msg", "turn_context", "session_meta"):
            self._codex(record, entry)
        elif kind == "session.usage_record":
            self._copilot(record, name, entry)

    def _claude(self, record: dict[str, Any], name: str, entry: list[Any]) -> None:
        message = record.get("message")
        usage = message.get("usage") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(usage, dict) or message.get("model") == "<synthetic>":
            return
        if isinstance(record.get("forkedFrom"), dict):
            return  # a copy: the session that this one was forked from has paid for it
        wrong: list[str] = []
        identity = message.get("id") or record.get("requestId") or record.get("uuid")
        model, fast = message.get("model"), usage.get("speed") == "fast"
        self._charge(identity, model, claude_tokens(usage, wrong), _time(record), name, entry, fast=fast)
        steps = usage.get("iterations")
        for number, step in enumerate(steps if isinstance(steps, list) else ()):
            # What was done beside the message itself, such as compacting the conversation, is not in its own counts.
            if isinstance(step, dict) and step.get("type") not in (None, "message"):
                key = f"{identity}#{number}" if identity else None
                tokens = claude_tokens(step, wrong)
                self._charge(key, step.get("model") or model, tokens, _time(record), name, entry, fast=fast)
        if wrong:
            self._say(wrong[0])

    def _gemini(self, record: dict[str, Any], name: str, entry: list[Any]) -> None:
        usage = record.get("tokens")
        if isinstance(usage, dict):
            wrong: list[str] = []
            tokens = gemini_tokens(usage, wrong)
            self._charge(record.get("id"), record.get("model"), tokens, _time(record), name, entry)
            if wrong:
                self._say(wrong[0])

    def _copilot(self, record: dict[str, Any], name: str, entry: list[Any]) -> None:
        said = record.get("data")
        usage = said.get("usage") if isinstance(said, dict) else None
        if isinstance(usage, dict):
            wrong: list[str] = []
            tokens = copilot_tokens(usage, wrong)
            request = usage.get("apiCallId") or record.get("id")
            self._charge(request, usage.get("model"), tokens, _time(record), name, entry)
            if wrong:
                self._say(wrong[0])

    def _codex(self, record: dict[str, Any], entry: list[Any]) -> None:
        """Codex counts on: what is new is the difference. A count that has fallen has started anew."""
        said = record.get("payload")
        if not isinstance(said, dict):
            return
        model, before = entry[_CODEX] or ("", None)
        when = _time(record)
        if record.get("type") == "turn_context":
            entry[_CODEX] = [_text(said.get("model"), 100) or model, before]
        elif said.get("forked_from_id") and len(when) > 19:
            # What the other thread had counted is told again within the second in which this one was made.
            entry[_CHARGED] = max(entry[_CHARGED], f"{when[:19]}.999Z")
        info = said.get("info")
        if said.get("type") != "token_count" or not isinstance(info, dict):
            return
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if not isinstance(total, dict):
            return
        wrong: list[str] = []
        now = codex_counts(total, wrong)
        turn = codex_counts(last, wrong) if isinstance(last, dict) else None
        if wrong:
            self._say(wrong[0])
            return
        if before is None or any(new < old for new, old in zip(now, before, strict=True)):
            new = turn or now
        else:
            new = [new - old for new, old in zip(now, before, strict=True)]
        entry[_CODEX] = [model, now]
        if self._was_charged(when, entry):
            return
        if max(new) > MOST:
            self._say(f"a count of tokens is {max(new)}")
        elif any(new):
            entry[_NEWEST] = max(entry[_NEWEST], when)
            self._book(model or "codex, model not told", codex_tokens(new), prompt=turn[0] if turn else None)

    # -- charging -----------------------------------------------------------------------------------------

    def _was_charged(self, when: str, entry: list[Any]) -> bool:
        """Whether a message was charged before its file was replaced, or is another session's; a later one ends it."""
        if not entry[_CHARGED]:
            return False
        if when <= entry[_CHARGED]:
            return True
        entry[_CHARGED] = ""
        return False

    def _charge(
        self,
        identity: Any,
        model: Any,
        tokens: list[int],
        when: str,
        name: str,
        entry: list[Any],
        *,
        fast: bool = False,
    ) -> None:
        """Every message once; if a later line of it says more, the difference."""
        identity = _text(identity, 100)
        charged = self.recent.get(identity) if identity else None
        if charged is None and self._was_charged(when, entry):
            return
        if not any(tokens):
            return
        entry[_NEWEST] = max(entry[_NEWEST], when)
        before = charged or [0] * 6
        after = [max(old, new) for old, new in zip(before, tokens, strict=True)]
        if after != before:
            self._book(_text(model, 100) or "model not told", after, before, fast=fast)
        if identity:
            self.recent[identity] = after
            ids = self.touched.setdefault(name, {})
            ids.pop(identity, None)
            ids[identity] = True

    def _book(
        self,
        model: str,
        tokens: list[int],
        before: list[int] | None = None,
        *,
        prompt: int | None = None,
        fast: bool = False,
    ) -> None:
        if model not in self.known:
            self.known[model] = price_of(model, self.prices)
        price = self.known[model]
        new = [now - old for now, old in zip(tokens, before, strict=True)] if before else tokens
        if price is None:
            _add(self.unknown, model, new)
            return
        usd = dollars(tokens, price, prompt=prompt, fast=fast)
        if before:
            usd -= dollars(before, price, prompt=prompt, fast=fast)
        if fast and not price[4]:
            self._say(f"what {model} costs in fast mode is not known; counted as usual")
        self.usd += usd
        _add(self.models, model, [*new, usd])

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

    def _say(self, problem: str) -> None:
        self.problem = problem[:200]


def _add(table: dict[str, list[Any]], model: str, more: list[Any]) -> None:
    if model not in table and len(table) >= _MODELS:
        model = _OTHERS
    table[model] = [old + new for old, new in zip(table[model], more, strict=True)] if model in table else list(more)


def _edges(handle: int, at: int) -> int:
    """How a file begins, and what stands before the place where the last look ended."""
    return _number(os.pread(handle, min(at, _EDGE), 0) + os.pread(handle, min(at, _EDGE), max(0, at - _EDGE)), 61)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _time(record: dict[str, Any]) -> str:
    """ISO 8601 as the clients write it sorts as text."""
    return _text(record.get("timestamp"), 30)


def _text(value: Any, limit: int) -> str:
    return value.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore") if isinstance(value, str) else ""

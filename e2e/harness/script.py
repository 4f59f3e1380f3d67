"""What a model says, reply by reply, and what it was told."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from harness.calls import Call

#: Names a helper in its prompt, so that the server knows which part of the script it follows.
HELPER = re.compile(r"HELPER-\d+")


@dataclass(frozen=True)
class Reply:
    """One answer of the model: what it says, what it calls, what it costs, how long it takes, what it waits for."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    tokens_in: int = 1200
    tokens_out: int = 40
    delay: float = 0.0
    after: threading.Event | None = None


def do(
    *calls: Call,
    tokens_in: int = 1200,
    tokens_out: int = 40,
    delay: float = 0.0,
    after: threading.Event | None = None,
) -> Reply:
    return Reply(calls, "", tokens_in, tokens_out, delay, after)


@dataclass(frozen=True)
class Part:
    """The replies of one conversation: once, or round and round for ever."""

    replies: tuple[Reply, ...]
    forever: bool = False

    def reply(self, number: int) -> Reply | None:
        if self.forever:
            return self.replies[number % len(self.replies)]
        return self.replies[number] if number < len(self.replies) else None


@dataclass(frozen=True)
class Request:
    """One request of a client: who asked, and what has been added since the model spoke last."""

    who: str
    number: int
    told: str
    #: Everything but the instructions of the client: what the conversation holds.
    conversation: str
    tools: tuple[str, ...] = ()


@dataclass
class Script:
    """The main conversation, and those of its helpers by name. Whoever has nothing more to say ends with `last`."""

    main: Part
    helpers: dict[str, Part] = field(default_factory=dict)
    last: str = "That is all."
    requests: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _said: dict[str, int] = field(default_factory=dict, repr=False)

    def answer(self, opening: str, told: str, conversation: str, tools: tuple[str, ...]) -> Reply:
        """The next reply in a conversation that began with `opening`.

        Replies are counted here, not in what a client sends: clients fold, drop and repeat parts of it.
        """
        named = HELPER.search(opening)
        who = named.group() if named else "main"
        part = self.helpers.get(who, self.helpers.get("HELPER")) if named else self.main
        with self._lock:
            number = self._said.get(who, 0)
            self._said[who] = number + 1
            self.requests.append(Request(who, number, told, conversation, tools))
        reply = part.reply(number) if part else None
        return reply or Reply(text=self.last)


def script(*replies: Reply, forever: bool = False, helpers: dict[str, Part] | None = None) -> Script:
    return Script(Part(replies, forever), helpers or {})


def part(*replies: Reply, forever: bool = False) -> Part:
    return Part(replies, forever)

"""Name sessions for people, and find the one that somebody means by the beginning of its id.

What was said first, and which agent it is, stand in the person's own store (`scopes.register`); a project whose
sessions are not in it, or whose store is lost, still has when each began, and its id.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.names import session_ids
from fusewire.breakers.session.overview import standing
from fusewire.breakers.session.state import SessionMemory, session_name
from fusewire.core.events import plain
from fusewire.scopes.user import SESSION, open_user_store
from fusewire.util.durations import show_duration
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.local_time import local_time
from fusewire.util.text import in_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fusewire.engine.breaker import Breaker
    from fusewire.stores import Store

#: Characters of a prompt, and of an id: the beginning of a UUID is enough, unless another one begins so.
_PROMPT = 60
_SHORT = 8

#: Sessions that are named where somebody meant one of several.
_CHOICES = 5


@dataclass(frozen=True)
class SessionFacts:
    """What is known of a session."""

    id: str
    #: as much of the id as tells it from the others
    short: str
    agent: str = ""
    prompt: str = ""
    model: str = ""
    since: float | None = None
    heard: float | None = None
    usd: float = 0.0
    #: running, silent, halted or ended; empty where its project does not know it
    state: str = ""

    @property
    def name(self) -> str:
        """`claude "fix the login test" (479528ae)`."""
        return f'{self.agent or "session"} "{self.prompt}" ({self.short})' if self.prompt else self.name_without_prompt

    @property
    def words(self) -> str:
        """The name in a sentence: `session claude "fix the login test" (479528ae)`."""
        return f"session {self.name.removeprefix('session ')}" if self.agent or self.prompt else f"session {self.short}"

    @property
    def name_without_prompt(self) -> str:
        """`claude since 14:02 CET (479528ae)`: for what leaves this machine."""
        since = f" since {local_time(self.since)}" if self.since is not None else ""
        return f"{self.agent or 'session'}{since} ({self.short})"

    @property
    def line(self) -> str:
        """The name, and everything else that is known."""
        since = f"since {local_time(self.since)}" if self.since is not None and self.prompt else ""
        lasted = show_duration(int((self.heard or 0) - (self.since or 0))) if self.since and self.heard else ""
        usd = f"${self.usd:.2f}" if self.state else ""
        return ", ".join(filter(None, (self.name, self.model, since, lasted and f"{lasted} long", usd, self.state)))


class SessionNames:
    """The sessions of a project, or of the person (without a project's store); each is looked up once.

    Nothing is written, and nothing is missed where the person's store cannot be read.
    """

    def __init__(self, store: Store | None, now: float, settings: Mapping[str, Any] | None = None) -> None:
        self._store, self._now, self._settings = store, now, settings
        self._person = _readable_user_store()
        self._known: dict[str, SessionFacts] = {}
        self._ids: list[str] | None = None
        self._sorted: list[str] | None = None

    @classmethod
    def of(cls, breaker: Breaker) -> SessionNames:
        return cls(breaker.store, breaker.engine.clock(), breaker.rules.tool)

    @property
    def ids(self) -> list[str]:
        """The one heard of last first."""
        if self._ids is None:
            self._ids = session_ids(self._store) if self._store is not None else self._of_person()
        return self._ids

    def _of_person(self) -> list[str]:
        return [name.removeprefix(SESSION) for name, _ in self._person.remembered(SESSION)] if self._person else []

    def name(self, session: str) -> str:
        return self.facts(session).name

    def facts(self, session: str) -> SessionFacts:
        if session not in self._known:
            self._known[session] = self._look(session)
        return self._known[session]

    def _look(self, session: str) -> SessionFacts:
        registered = self._registered(session)
        state = SessionMemory() if self._store is None else SessionMemory.recalled(self._store, session_name(session))
        is_here = state.at is not None
        limit = state.limit(self._settings) if self._settings is not None else 0.0
        return SessionFacts(
            id=session,
            short=self.short(session),
            agent=_text(registered.get("agent")) or state.client,
            prompt=_text(registered.get("prompt")),
            model=_text(registered.get("model")) or _model(state.spend),
            since=state.since or _number(registered.get("since")),
            heard=state.at or _number(registered.get("at")),
            usd=state.usd,
            state=standing(state, self._now, limit)["state"] if is_here else "ended" if registered.get("ended") else "",
        )

    def _registered(self, session: str) -> Mapping[str, Any]:
        try:
            return (self._person.recall(f"{SESSION}{session}") if self._person else None) or {}
        except (FusewireError, OSError, ValueError):
            return {}

    def short(self, session: str) -> str:
        """As much of an id as nobody else's begins with."""
        if self._sorted is None:
            self._sorted = sorted(self.ids)
        place = bisect(self._sorted, session)
        near = [one for one in self._sorted[max(0, place - 2) : place + 1] if one != session]
        length = _SHORT if len(session) > 2 * _SHORT else len(session)
        while length < len(session) and any(one.startswith(session[:length]) for one in near):
            length += 1
        return in_line(plain(session[:length]))

    def resolve(self, text: str, also: Iterable[str] = ()) -> str:
        """The session with this id, or the only one whose id begins so; `also` are ids that nobody remembers else."""
        known = dict.fromkeys((*self.ids, *also))
        wanted = plain(text.strip())
        if wanted in known:
            return wanted
        found = [one for one in known if wanted and one.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        if not found and self._store is not None and self._store.doings(wanted):
            return wanted
        if not found:
            raise NotFound(f"no session {text!r} has been heard of{' in this project' if self._store else ''}")
        shown = "; ".join(self.name(one) for one in found[:_CHOICES])
        more = f"; and {len(found) - _CHOICES} more" if len(found) > _CHOICES else ""
        raise FusewireError(f"{len(found)} sessions begin with {text!r}: {shown}{more}")


def _readable_user_store() -> Store | None:
    try:
        store = open_user_store(read_only=True)
        store.version()
        return store
    except (FusewireError, OSError):
        return None


def _text(value: object) -> str:
    """A few words on one line: they come from an agent or from a person, and may be anything."""
    text = " ".join(in_line(plain(value)).split()) if isinstance(value, str) else ""
    return text if len(text) <= _PROMPT else f"{text[: _PROMPT - 1]}…"


def _number(value: object) -> float | None:
    return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]


def _model(spend: Mapping[str, Any]) -> str:
    """The model that has cost most; of those without a price the one with most tokens."""
    for table in (spend.get("models"), spend.get("unknown")):
        rows = {name: row for name, row in table.items() if isinstance(row, list) and row} if table else {}
        if rows:
            return _text(max(rows, key=lambda name: (rows[name][-1], rows[name][0])))
    return ""

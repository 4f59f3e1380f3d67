"""Authenticate requests: tokens, the sessions of browsers, and the secret that a form must repeat.

Four tokens, because they end up in different hands:

person   made at every start and kept in memory only. Whoever has it may reset, grant and resolve. It is shown
         once, on the terminal of the person who started the server; no file, environment or command line has it, so
         that an agent of the same user cannot pick it up.
reader   in a file of the user's: may read JSON and metrics, which an agent can read in the project anyway.
hooks    in a file of the user's: may report what an agent did. It lifts nothing.
halt     in a file of the user's, for a gateway: may halt agents, and lift what it has halted itself.

A browser exchanges the person's token for a cookie once, by POST; after that no page and no URL has it. Browsers keep
the addresses that they were given in files, and programs are seen with theirs on the command line: so an address never
has the token, but a code that logs in one browser, once.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import secrets
import stat
import tempfile
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from fusewire.config import user_state_folder
from fusewire.util.errors import FusewireError
from fusewire.util.server_address import proof

#: Browsers that are logged in at the same time; the one not heard of for longest is logged out first.
_SESSIONS = 64

#: Codes for opening a browser that were not used yet.
_CODES = 8


@dataclass
class Session:
    """One browser that is logged in."""

    #: repeated by every form of its pages, so that no other site can send one in its name
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    #: what the next page tells it, once
    told: list[tuple[str, str]] = field(default_factory=list)


class Access:
    """The tokens of a running server, and who is logged in."""

    def __init__(self, reader: str) -> None:
        self.person = secrets.token_urlsafe(32)
        self._tokens = {"person": self.person, "reader": reader}
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._codes: OrderedDict[str, float] = OrderedDict()

    def role_of(self, token: str) -> str | None:
        """What the bearer of a token may be; every token is compared, in constant time."""
        found = None
        made = {role: _token_if_made(role) for role in ("hooks", "halt")}
        for role, known in {**self._tokens, **made}.items():
            if known and hmac.compare_digest(known.encode(), token.encode("utf-8", "replace")):
                found = role
        return found

    def code(self, seconds: float = math.inf) -> str:
        """A word that logs in one browser once, within so many seconds."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = time.monotonic() + seconds
        while len(self._codes) > _CODES:
            self._codes.popitem(last=False)
        return code

    def _matching(self, token: str) -> str:
        given = token.encode("utf-8", "replace")
        return next((code for code in self._codes if hmac.compare_digest(code.encode(), given)), "")

    def knows(self, token: str) -> bool:
        """Whether it would log in."""
        return self._codes.get(self._matching(token), -math.inf) > time.monotonic() or self.role_of(token) == "person"

    def log_in(self, token: str) -> str | None:
        """The name of a new session for the person's token or an unused code, which then is used."""
        known = self.knows(token)
        self._codes.pop(self._matching(token), None)
        if not known:
            return None
        name = secrets.token_urlsafe(32)
        self._sessions[_digest(name)] = Session()
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return name

    def session(self, name: str | None) -> Session | None:
        if not name:
            return None
        key = _digest(name)
        session = self._sessions.get(key)
        if session is not None:
            with suppress(KeyError):  # another thread has logged it out just now
                self._sessions.move_to_end(key)
        return session

    def log_out(self, name: str | None) -> None:
        if name:
            self._sessions.pop(_digest(name), None)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()


def token_file(role: str) -> str:
    """Where a token that programs use is kept."""
    folder = user_state_folder()
    if not os.path.isabs(folder):
        raise FusewireError(
            f"there is no home to keep a token in ({folder}): set HOME or XDG_STATE_HOME to a full path"
        )
    return os.path.join(folder, f"{role}.token")


def _token_if_made(role: str) -> str:
    """It is there only once somebody needs it, which may be after the server was started."""
    try:
        return kept_token(role) if os.path.lexists(token_file(role)) else ""
    except FusewireError:
        return ""


def proof_for_hooks(port: int, question: str) -> str:
    """The same by the server, for whoever wants to know before showing the token."""
    return proof(_token_if_made("hooks"), port, question)


def kept_token(role: str) -> str:
    """The token of a role, made if there is none yet; only its owner may read the file."""
    path = token_file(role)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if not os.path.lexists(path):
            _make(path)
        # Whoever finds a pipe here must not wait for it.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(handle, encoding="ascii", errors="replace") as file:
            facts = os.fstat(handle)
            token = file.read(200).strip() if stat.S_ISREG(facts.st_mode) else ""
    except OSError as error:
        raise FusewireError(f"the token for {role} cannot be kept: {path}: {error.strerror}") from error
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise FusewireError(f"the token for {role} is open to others: {path}; allowed: your own file, with chmod 600")
    if len(token) < 32:
        raise FusewireError(f"the token for {role} is too short to be one: {path}; remove the file to get a new one")
    return token


def _make(path: str) -> None:
    """Whole or not at all: of two servers that start at the same time one makes it, and one that is killed none."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii", dir=os.path.dirname(path), prefix=".token-") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
        file.flush()
        with suppress(FileExistsError):
            os.link(file.name, path)

"""Read the URL of a PostgreSQL store, and connect as libpq does: with its password files, services and TLS.

Every wait has a bound. Who has set one (in the URL, `PGOPTIONS`, for the role, for the database or the server) is
followed; what nobody has set is as below. No word that leaves this module has the password in it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrDumper, TextLoader

from fusewire.util.errors import StoreError

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]

#: What PostgreSQL needs to be, and the schema whose tables are the store.
_OLDEST = 15
SCHEMA = "fusewire"

#: Given to libpq where nobody has said otherwise: seconds until a server that does not answer is given up.
_DEFAULTS = {
    "fallback_application_name": "fusewire",
    "connect_timeout": "5",
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}

#: Milliseconds. A unit of work takes a few; a client that hangs in the middle of one gives its locks back.
_STATEMENT, _IDLE = 15_000, 30_000

_BOUNDS = """
    SELECT set_config(name, given.value, false)
    FROM pg_settings JOIN unnest(%s::text[], %s::text[]) AS given (name, value) USING (name)
    WHERE source = 'default'
"""


class Address:
    """Where a store is, and how it is named to people."""

    def __init__(self, url: str) -> None:
        bare, schemas = _without_schema(url)
        try:
            self._given = {key: str(value) for key, value in conninfo_to_dict(bare).items() if value is not None}
        except psycopg.Error:
            raise StoreError(_UNREADABLE) from None  # the message may have a part of the password in it
        port = self._given.get("port", "").replace(",", "")
        if any("@" in self._given.get(key, "") for key in ("host", "dbname")) or (port and not port.isdecimal()):
            raise StoreError(_UNREADABLE)
        self.schema = schemas[-1] if schemas else SCHEMA
        if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", self.schema):
            raise StoreError(
                f"fusewire_schema={self.schema!r} is refused; allowed: up to 63 small letters, digits and _,"
                " not beginning with a digit or pg_"
            )
        self.shown = self._shown()

    def _shown(self) -> str:
        given = self._given
        user = f"{given['user']}@" if "user" in given else ""
        port = f":{given['port']}" if "port" in given else ""
        service = f"?service={given['service']}" if "service" in given else ""
        schema = f"{'&' if service else '?'}fusewire_schema={self.schema}" if self.schema != SCHEMA else ""
        return f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')}{service}{schema}"

    def connect(self, *, lock_timeout: float, read_only: bool) -> Connection:
        """A connection whose statements commit by themselves, unless a unit of work has begun."""
        given: dict[str, Any] = {**_DEFAULTS, **self._given, "client_encoding": "utf8"}
        if "connect_timeout" not in self._given and os.environ.get("PGCONNECT_TIMEOUT"):
            del given["connect_timeout"]
        try:
            connection = psycopg.connect(**given, autocommit=True)
        except (psycopg.Error, ValueError) as error:
            raise self.failure(error) from None
        try:
            self._require(connection)
            self._set(connection, lock_timeout, read_only)
        except psycopg.Error as error:
            connection.close()
            raise self.failure(error) from error
        except BaseException:
            connection.close()
            raise
        connection.adapters.register_dumper(str, _TextDumper)
        connection.adapters.register_loader("text", _TextLoader)
        return connection

    def _require(self, connection: Connection) -> None:
        major = connection.info.server_version // 10000
        if major < _OLDEST:
            raise StoreError(f"{self.shown} is PostgreSQL {major}; needed: {_OLDEST} or newer")
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"the database of {self.shown} has the encoding {encoding}; needed: UTF8")

    def _set(self, connection: Connection, lock_timeout: float, read_only: bool) -> None:
        bounds = {
            "statement_timeout": max(_STATEMENT, int(lock_timeout * 2000)),
            "lock_timeout": max(1, int(lock_timeout * 1000)),
            "idle_in_transaction_session_timeout": _IDLE,
        }
        connection.execute(_BOUNDS, ([*bounds], [str(value) for value in bounds.values()]))
        connection.execute("SELECT set_config('search_path', %s, false)", (self.schema,))
        if read_only:
            connection.execute("SET default_transaction_read_only = on")

    def failure(self, error: Exception, what: str = "cannot be used") -> StoreError:
        """What went wrong, in one line without the password."""
        said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        lines = dict.fromkeys(line.strip(" \t-") for line in said.splitlines())
        words = "; ".join(line for line in lines if line)
        secret = self._given.get("password")
        words = words.replace(secret, "***") if secret else words
        return StoreError(f"the state database {what}: {self.shown}: {words or type(error).__name__}")


_UNREADABLE = (
    "the URL of the store is not one that PostgreSQL understands; allowed: postgresql://USER@HOST:PORT/DATABASE"
    " (in a name or password @ : / ? # % are written as %40 %3A %2F %3F %23 %25)"
)


def _without_schema(url: str) -> tuple[str, list[str]]:
    """The URL as libpq knows it, and what it says of our schema."""
    head, mark, query = url.rpartition("?")
    if not mark:
        return url, []
    parts = query.split("&")
    ours = [part.partition("=")[2] for part in parts if part.startswith("fusewire_schema=")]
    rest = "&".join(part for part in parts if not part.startswith("fusewire_schema="))
    return f"{head}?{rest}" if rest else head, ours


class _TextDumper(StrDumper):
    """PostgreSQL's text has no NUL: it is written as two other control characters, and the first of them twice."""

    def dump(self, obj: str) -> Any:
        if "\0" in obj or "\1" in obj:
            obj = obj.replace("\1", "\1\1").replace("\0", "\1\2")
        return super().dump(obj)


class _TextLoader(TextLoader):
    def load(self, data: Any) -> Any:
        text = super().load(data)
        if isinstance(text, str) and "\1" in text:
            return re.sub("\1([\1\2])", lambda pair: "\0" if pair[1] == "\2" else "\1", text)
        return text

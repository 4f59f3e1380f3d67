"""The person's own store: what is known across projects, with the same contract as a project's.

It lies in `$XDG_STATE_HOME/fusewire/user.db`, readable by its owner only. Where there is no home, or the folder cannot
be written, projects work as they did; whoever looks is told.
"""

from __future__ import annotations

import os

from fusewire.config import user_state_folder
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.stores.sqlite import SqliteStore

DATABASE = "user.db"

#: It lies beside the store while the circuit of some provider is not closed, so that one look tells it.
LIMITED = "providers.json"

#: Names of what is remembered: `project/PATH` and `session/ID`.
PROJECT, SESSION = "project/", "session/"

#: Projects and sessions that are remembered; those not heard of for longest are forgotten first.
MOST_PROJECTS, MOST_SESSIONS = 500, 5000


def database_path() -> str:
    """StoreError where there is no home."""
    folder = user_state_folder()
    if not os.path.isabs(folder):
        raise StoreError(f"there is no home to keep the person's state in ({folder}): set HOME or XDG_STATE_HOME")
    return os.path.join(folder, DATABASE)


def open_user_store(*, read_only: bool = False, patience: float = 2.0) -> SqliteStore:
    """The person's store. One that is `read_only` is empty where there is none yet."""
    path = database_path()
    if read_only:
        from fusewire.stores.readonly import BriefSqlite

        return BriefSqlite(path)
    from fusewire.stores.sqlite import SqliteStore

    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the person's state cannot be kept: {path}: {error.strerror}") from error
    return SqliteStore(path, patience=patience, mode=0o600)  # the beginnings of prompts are in it


def known_projects(store: SqliteStore) -> list[str]:
    """The folders of the projects in which an agent was heard of, the newest first."""
    return [name.removeprefix(PROJECT) for name, _ in store.remembered(PROJECT)]


def is_any_limited() -> bool:
    """Whether the circuit of some provider may not be closed: one look at the disk."""
    return os.path.lexists(os.path.join(user_state_folder(), LIMITED))

"""A snapshot as plain data, and back: what was read from a file is believed only if all of it has the right form."""

from __future__ import annotations

from typing import Any

from fusewire.worktree.entries import Entry
from fusewire.worktree.profile import Profile

FORMAT = "fusewire snapshot 1"

#: A type, a tuple of forms, a dictionary {str: form}, a list [form] for a tuple of any length, a set of alternatives.
_PROFILE = (bytes, frozenset((bytes, None)), (int, int, int), bool)
_ENTRY = (int, str, [int], frozenset((_PROFILE, None)), int, str)
_FILES = {"": _ENTRY}
_REPOSITORY = (str, str, str, {"": str}, _FILES, str, str)
_SNAPSHOT = (str, str, {"": _REPOSITORY}, _FILES, str, [str])


def checked(given: object) -> Any:
    """The data, if it has the form of a snapshot; ValueError if not."""
    if not _fits(given, _SNAPSHOT):
        raise ValueError("this is no snapshot")
    assert isinstance(given, tuple)
    if given[0] != FORMAT:
        raise ValueError(f"a snapshot of another format: {given[0][:40]!r}")
    return given


def entries(plain: dict[str, Any]) -> dict[str, Entry]:
    made = {}
    for path, (mode, at, signature, profile, head_mode, head_id) in plain.items():
        made[path] = Entry(mode, at, signature, profile and Profile(*profile), head_mode, head_id)
    return made


def _fits(given: object, form: Any) -> bool:
    if form is None:
        return given is None
    if isinstance(form, type):
        return type(given) is form
    if isinstance(form, frozenset):
        return any(_fits(given, one) for one in form)
    if isinstance(form, dict):
        return type(given) is dict and all(type(key) is str and _fits(one, form[""]) for key, one in given.items())
    if type(given) is not tuple:
        return False
    if isinstance(form, list):
        return all(_fits(one, form[0]) for one in given)
    return len(given) == len(form) and all(map(_fits, given, form))

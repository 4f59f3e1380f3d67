"""Tell whether an edit of `pyproject.toml` would change our table in it.

An edit need not name the table: it is enough that one line inside it becomes another one. So what the file says now and
what it would say are both read.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.core.events import Event


def changes_table(event: Event, text: str) -> bool:
    return _table_of(_edited(event, text)) != _table_of(text)


def _table_of(text: str) -> object:
    """Our table in the text of a `pyproject.toml`; what cannot be read has another one than anybody's."""
    import tomllib

    try:
        tool = tomllib.loads(text).get("tool", {})
        return tool.get("fusewire") if isinstance(tool, dict) else None
    except (tomllib.TOMLDecodeError, RecursionError):
        return text if "fusewire" in text else None


def _edited(event: Event, text: str) -> str:
    """What a file would say after an edit of it."""
    given = event.input or {}
    if isinstance(given.get("content"), str):
        return str(given["content"])
    edits = [one for one in given.get("edits") or (given,) if isinstance(one, dict)]
    if isinstance(given.get("patch"), str):
        edits = _hunks(given["patch"])
    for one in edits:
        old, new = one.get("old_string"), one.get("new_string")
        if isinstance(old, str) and isinstance(new, str) and old:
            text = text.replace(old, new, -1 if one.get("replace_all") else 1)
    return text


def _hunks(patch: str) -> list[dict[str, str]]:
    """The changes of a patch, as edits of a text."""
    edits: list[dict[str, str]] = []
    old: list[str] = []
    new: list[str] = []
    for line in [*patch.split("\n"), "@@"]:
        if line[:1] in (" ", "-", "+"):
            old += [line[1:]] if line[0] != "+" else []
            new += [line[1:]] if line[0] != "-" else []
        elif old or new:
            edits.append({"old_string": "\n".join(old), "new_string": "\n".join(new)})
            old, new = [], []
    return edits

"""Read git's status of one repository: HEAD, branches, and the files that differ from HEAD."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from fusewire.util.git import GitFailure, git, only
from fusewire.worktree.path_kinds import is_state


@dataclass(frozen=True)
class StatusRow:
    """One file that differs from HEAD, or may; modes and ids are 0 and empty for what is not there."""

    head_mode: int = 0
    head_id: str = ""
    #: the mode that git would commit; -1 if the disk must tell
    mode: int = -1


@dataclass(frozen=True)
class WorktreeStatus:
    """Paths are relative to the folder that was asked for."""

    head: str = ""
    branch: str = ""
    rows: dict[str, StatusRow] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def status_of(top: str, prefix: str) -> WorktreeStatus:
    """The state of a repository, or of one folder in it; GitFailure if git cannot say."""
    problems: list[str] = []
    asked = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
    try:
        shown = git(top, *asked, "--ignore-submodules=all", "--", *only(prefix), problems=problems)
    except GitFailure as failure:
        if "must be run in a work tree" not in str(failure):
            raise
        return WorktreeStatus()  # a bare repository among its worktrees: it has branches and no files
    head, branch, rows = _read(shown, prefix + "/" if prefix else "")
    return WorktreeStatus(head, branch, rows, tuple(problems))


def branches_of(top: str) -> dict[str, str]:
    refs = list_refs(partial(git, top), "refs/heads/")
    return {name.removeprefix("refs/heads/"): at for name, at in refs.items()}


def list_refs(ask: Callable[..., bytes], prefix: str) -> dict[str, str]:
    """Map each ref below a prefix to the commit it points to; `ask` runs git in a repository."""
    shown = os.fsdecode(ask("for-each-ref", "--format=%(objectname) %(refname)", prefix))
    return {name: at for at, _, name in (line.partition(" ") for line in shown.split("\n") if line)}


def _read(shown: bytes, prefix: str) -> tuple[str, str, dict[str, StatusRow]]:
    head = branch = ""
    rows: dict[str, StatusRow] = {}
    for line in shown.split(b"\0"):
        kind = line[:2]
        if line.startswith(b"# branch.oid "):
            head = "" if line.endswith(b"(initial)") else line.rpartition(b" ")[2].decode()
        elif line.startswith(b"# branch.head "):
            branch = "" if line.endswith(b" (detached)") else os.fsdecode(line.split(b" ", 2)[2])
        elif kind == b"1 ":
            _, _, _, head_mode, _, mode, head_id, _, name = line.split(b" ", 8)
            _put(rows, name, prefix, _row(head_mode, head_id, int(mode, 8)))
        elif kind == b"u ":  # in a conflict "ours" is what HEAD has
            _, _, _, _, head_mode, _, mode, _, head_id, _, name = line.split(b" ", 10)
            _put(rows, name, prefix, _row(head_mode, head_id, int(mode, 8)))
        elif kind == b"? ":
            name = line[2:]
            before = rows.get(_path(name, prefix), StatusRow())
            _put(rows, name, prefix, StatusRow(before.head_mode, before.head_id))
    return head, branch, rows


def _row(head_mode: bytes, head_id: bytes, mode: int) -> StatusRow:
    in_head = int(head_mode, 8)
    return StatusRow(in_head, head_id.decode() if in_head else "", mode)


def _put(rows: dict[str, StatusRow], name: bytes, prefix: str, row: StatusRow) -> None:
    path = _path(name, prefix)
    if not is_state(path):
        rows[path] = row


def _path(name: bytes, prefix: str) -> str:
    return os.fsdecode(name).removeprefix(prefix)

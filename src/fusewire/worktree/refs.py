"""Keep checkpoints alive: a commit under a ref of ours, and beside it facts that a commit has no room for.

`refs/fusewire/<kind>/<name>/<number>` is the commit; its tree is the project and its parent the user's HEAD, so that
`git show` tells a person what was not committed then. `refs/fusewire/facts/<commit>` is a JSON blob: what was ignored,
left out, had unusual permissions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection
from dataclasses import asdict
from functools import partial
from urllib.parse import quote

from fusewire.util.git import GitFailure, GitUnanswered, git
from fusewire.worktree.contents import Kept, PinFacts
from fusewire.worktree.shadow import Shadow
from fusewire.worktree.trees import FOLDER, empty_tree, parsed

CHECKPOINTS = "checkpoints"
SAVED = "saved"
FACTS = "refs/fusewire/facts/"

#: Of each name.
_NEWEST = 50
_LONGEST = 100
#: Worktrees of one repository share its refs: a number may be taken in the moment in which it is chosen.
_TRIES = 20


def component(name: str) -> str:
    """A name as one part of a ref."""
    made = quote(name, safe="", errors="surrogateescape").replace(".", "%2E").replace("~", "%7E") or "_"
    if len(made) <= _LONGEST:
        return made
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{made[:_LONGEST]}-{digest[:16]}"


def pin(
    kept: Kept,
    kind: str,
    name: str,
    message: str,
    spared: Collection[str] = (),
    *,
    nested: dict[str, str] | None = None,
    all_left_out: Collection[str] = (),
) -> PinFacts:
    """Commit what was kept, and keep it alive; its facts. Old ones of the name go, but not the `spared` commits."""
    shadow = kept.shadow
    facts = PinFacts(
        kept.tree,
        kept.head,
        kept.branch,
        kept.left_out,
        kept.ignored,
        kept.absent,
        kept.modes,
        nested or {},
        sorted(all_left_out),
    )
    tree = _wrapped(shadow, kept.tree, kept.head)
    parent = ("-p", kept.head) if kept.head else ()
    folder = f"refs/fusewire/{kind}/{component(name)}/"
    numbers = {int(ref[len(folder) :]): ref for ref in kept.refs if ref.startswith(folder)}
    going = {number: ref for number, ref in numbers.items() if kept.refs[ref] not in spared}
    number = max(numbers, default=0)
    for left in reversed(range(_TRIES)):
        number += 1
        facts.ref = ref = f"{folder}{number:06}"
        text = f"fusewire {ref.removeprefix('refs/fusewire/')}\n\n{message}".rstrip() + "\n"
        given = text.encode("utf-8", "backslashreplace")
        commit = shadow.own("commit-tree", "--no-gpg-sign", tree, *parent, "-F", "-", given=given).decode().strip()
        facts.commit = commit
        blob = shadow.own("hash-object", "-w", "--stdin", given=json.dumps(asdict(facts)).encode()).decode().strip()
        orders = [f"create {ref} {commit}", f"create {FACTS}{commit} {blob}", *_deletions(kept, going)]
        try:
            shadow.refs("update-ref", "--stdin", given="".join(f"{order}\n" for order in orders).encode())
            break
        except GitFailure:
            if not left:
                raise
    if shadow.top is None and len(numbers) >= _NEWEST:
        shadow.own("gc", "--auto", "--quiet")  # only we ever run it in our own directory
    return facts


def facts_of(shadow: Shadow, commit: str) -> PinFacts | None:
    """What is known of a commit of ours; None if it is none, or gone."""
    for ask in _stores(shadow):
        try:
            facts = PinFacts(**json.loads(ask("cat-file", "blob", f"{FACTS}{commit}")))
            shadow.own("cat-file", "-e", f"{facts.tree}^{{tree}}", reading=True)
        except GitUnanswered:
            raise
        except (GitFailure, ValueError, TypeError):
            continue
        return facts
    return None


def commit_of(shadow: Shadow, ref: str) -> str | None:
    """The commit that a ref of ours, or the commit's own name, stands for."""
    if ref.startswith("-"):
        return None
    for ask in _stores(shadow):
        try:
            return ask("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}").decode().split()[-1]
        except GitUnanswered:
            raise
        except (GitFailure, ValueError):
            continue
    return None


def _stores(shadow: Shadow) -> tuple[Callable[..., bytes], ...]:
    """Where a ref may be: the project may have become a repository since."""
    return shadow.refs, partial(shadow.own, reading=True)


def _deletions(kept: Kept, numbers: dict[int, str]) -> list[str]:
    """Orders to let go of the oldest, so that with the new one there are no more than the newest."""
    orders = []
    for number in sorted(numbers)[: max(0, len(numbers) + 1 - _NEWEST)]:
        ref = numbers[number]
        facts = f"{FACTS}{kept.refs[ref]}"
        orders += [f"delete {name} {kept.refs[name]}" for name in (ref, facts) if name in kept.refs]
    return orders


def _wrapped(shadow: Shadow, tree: str, head: str | None) -> str:
    """A folder's tree in its place in HEAD's, so that paths in our commit are those of the user's repository."""
    if shadow.top is None or not shadow.prefix:
        return tree
    folder, _, name = shadow.prefix.rpartition("/")
    while True:
        rows = _rows(shadow, f"{head}:{folder}") if head else {}
        rows.pop(os.fsencode(name), None)
        if tree != empty_tree(shadow.width):
            rows[os.fsencode(name)] = (b"%o" % FOLDER, tree)
        given = b"".join(
            b"%s %s %s\t%s\0" % (mode, _kind(mode), at.encode(), path) for path, (mode, at) in rows.items()
        )
        tree = shadow.own("mktree", "-z", "--missing", given=given).decode().strip()
        if not folder:
            return tree
        folder, _, name = folder.rpartition("/")


def _rows(shadow: Shadow, name: str) -> dict[bytes, tuple[bytes, str]]:
    assert shadow.top is not None
    try:
        return parsed(git(shadow.top, "cat-file", "tree", name), shadow.width)
    except GitFailure:  # HEAD has no such folder
        return {}


def _kind(mode: bytes) -> bytes:
    return {b"40000": b"tree", b"160000": b"commit"}.get(mode, b"blob")

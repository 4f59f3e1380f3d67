"""The git commands that put files of the working tree back, remove them or carry them away."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, WRITE
from fusewire.guard.programs.git_state import EMPTY
from fusewire.guard.programs.git_words import Words
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Changes, Repo

    Command = Callable[[Call, Repo, list[str]], None]


_HEADS = ("HEAD", "@")

#: Files that say what is ignored.
RULES = ("/.gitignore", "/info/exclude")


# -- reporting --------------------------------------------------------------------------------------------------


def report(call: Call, repo: Repo, changes: Changes, *, vanish: bool = True) -> None:
    """Tell which files would change; what the target has not vanishes, or stays."""
    for status, name in changes:
        if status != "A":
            file(call, repo, WRITE, name)
        elif vanish:
            file(call, repo, DELETE, name)


def removed(call: Call, repo: Repo, names: Iterable[str]) -> None:
    for name in names:
        file(call, repo, DELETE, name)


def file(call: Call, repo: Repo, kind: str, name: str) -> None:
    """One file of the working tree: git replaces a link, it does not write through it."""
    call.effect(kind, f"{repo.top}/{name}", follows=False, rule=repo.rule)


def blind(call: Call, repo: Repo, kind: str, paths: list[str]) -> None:
    """Git could not be asked: everything that is named may change, if there is a repository at all."""
    place = repo.around()
    if not place:
        return
    for path in paths or [place]:
        path = path.removeprefix(":/").removeprefix(":(top)") if path[:1] == ":" else path
        call.effect(kind, repo.path(path or place), recursive=True, rule=repo.rule)


def unclear(paths: list[str]) -> bool:
    return any(UNKNOWN in path for path in paths)


def pathspecs(call: Call, repo: Repo, options: Words, named: list[str]) -> list[str]:
    """The paths of a command, also those that it is to read from a file."""
    place = options.value("pathspec-from-file")
    if place is None:
        return named
    text = call.world.stdin if place == "-" else call.walk.read_file(repo.path(place))
    if text is None:
        return [*named, UNKNOWN]
    return named + [name for name in text.replace("\0", "\n").split("\n") if name]


def refused(repo: Repo, changes: Changes) -> bool:
    """Whether git would refuse, because these files have local changes or are in the way."""
    head = repo.head
    if not repo.untouched or head is None:
        return False
    local = {name for _, name in (repo.against(head) or []) + (repo.staged(head) or [])}
    if any(name in local for _, name in changes):
        return True
    new = [name for status, name in changes if status == "D"]
    return bool(new) and not set(new).isdisjoint(repo.untracked() or ())


def settle(repo: Repo, target: str, *, index: bool) -> None:
    """HEAD is at another commit, and the index too, or only HEAD."""
    moves = repo.moves
    moves.head, moves.commits = target, 0
    moves.settled.clear()
    if index:
        moves.index.clear()
        moves.added.clear()
        moves.removed.clear()


# -- checkout, switch, restore ----------------------------------------------------------------------------------

_CHECKOUT = (
    "force quiet patch ours theirs merge detach track? no-track guess orphan= conflict= overlay no-overlay"
    " overwrite-ignore no-overwrite-ignore pathspec-from-file= pathspec-file-nul recurse-submodules? progress"
    " ignore-other-worktrees discard-changes create= force-create= ignore-skip-worktree-bits"
)


def _checkout(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "bB", _CHECKOUT)
    if is_asked(call, options):
        return
    new = options.value("b", "B", "orphan")
    before = options.operands
    if new is not None:
        _switch_to(call, repo, options, before[0] if before else "HEAD", stays=options.has("orphan"))
        return
    tree, paths = _tree_and_paths(repo, options)
    paths = pathspecs(call, repo, options, paths)
    if paths:
        _put_back(call, repo, tree, paths, vanish=options.has("no-overlay"))
    elif tree is not None or options.has("f", "force"):
        _switch_to(call, repo, options, tree or "HEAD")


def is_asked(call: Call, options: Words) -> bool:
    """`-p` asks about every change, and nobody answers."""
    return options.has("p", "patch") and call.world.stdin is None


def _tree_and_paths(repo: Repo, options: Words) -> tuple[str | None, list[str]]:
    """Which of the words is a revision and which are paths, as git finds out."""
    before, after = options.operands, options.paths
    if after is not None:
        return (before[0] if before else None), before[1:] + after
    if not before:
        return None, []
    first = before[0]
    if UNKNOWN in first:
        return None, before  # a branch or a path: nobody knows
    if repo.revision(first, "tree") is None and (len(before) > 1 or not _remote_branch(repo, first)):
        return None, before
    return first, before[1:]


def _remote_branch(repo: Repo, name: str) -> str | None:
    """The only branch of that name that a remote has: it becomes a branch here."""
    if repo.call.disk.exists(repo.path(name)):
        return None
    found = (repo.ask("for-each-ref", "--format=%(refname)", f"refs/remotes/*/{name}") or "").split()
    return found[0] if len(found) == 1 else None


def _switch(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "cC", _CHECKOUT)
    if options.has("orphan"):
        removed(call, repo, repo.tracked() or [])
        return
    new = options.value("c", "C", "create", "force-create")
    before = options.named
    if new is not None or before or options.has("f", "force", "discard-changes"):
        _switch_to(call, repo, options, before[0] if before else "HEAD")


def _switch_to(call: Call, repo: Repo, options: Words, name: str, *, stays: bool = False) -> None:
    name = repo.known_ref(name)
    target = repo.revision(name)
    if target is None:
        target = repo.revision(_remote_branch(repo, name) or "") if UNKNOWN not in name else None
    head = repo.head
    if target is None or head is None:
        return
    if options.has("f", "force", "discard-changes"):
        hard(call, repo, target, current=name in _HEADS)
    elif name not in _HEADS:
        moved_to(call, repo, target, merges=options.has("m", "merge"))
    if stays:
        settle(repo, EMPTY, index=False)
    elif name not in _HEADS:
        settle(repo, target, index=True)


def moved_to(call: Call, repo: Repo, target: str, *, merges: bool = False) -> None:
    """From one commit to another, carrying local changes along."""
    head = repo.head or "HEAD"
    changes = repo.between(target, head)
    if repo.moves.settled:
        changes = (changes or []) + [("M", name) for name in repo.moves.settled]
    if not changes:
        return
    kept = _already(repo, target, changes)
    changes = [change for change in changes if change[1] not in kept]
    if merges or not refused(repo, changes):
        report(call, repo, changes)


def _already(repo: Repo, target: str, changes: Changes) -> set[str]:
    """Files that are as they shall become, in the index too: they are left alone."""
    differing = {name for _, name in (repo.staged(target) or []) + (repo.against(target) or [])}
    return {name for _, name in changes if name not in differing} if repo.untouched else set()


def hard(
    call: Call, repo: Repo, target: str, paths: Iterable[str] = (), *, current: bool = False, vanish: bool = True
) -> None:
    """Everything becomes as it is in a commit; `current` if that is HEAD, in which the line may have put something."""
    changes = repo.against(target, paths)
    if changes is None:
        blind(call, repo, WRITE, list(paths))
        return
    moves = repo.moves
    kept = moves.settled if current else set()
    changes = [change for change in changes if change[1] not in kept]
    report(call, repo, changes, vanish=vanish)
    if vanish:
        new = moves.added - kept
        known = {name for _, name in changes}
        tracked = set(repo.tracked() or ()) if new else set()
        removed(call, repo, sorted(new - tracked - known))


def _put_back(call: Call, repo: Repo, tree: str | None, paths: list[str], *, vanish: bool) -> None:
    """Files as they are in a commit or in the index."""
    if not repo.top or unclear(paths):
        blind(call, repo, WRITE, paths)
        return
    if tree is not None:
        if UNKNOWN in tree:
            blind(call, repo, WRITE, paths)
            return
        target = repo.revision(tree, "tree")
        if target is not None:
            hard(call, repo, repo.revision(tree) or target, paths, current=tree in _HEADS, vanish=vanish)
        return
    changes = repo.unstaged(paths)
    if changes is None:
        return  # no such path
    moves = repo.moves
    changes = [change for change in changes if change[1] not in moves.added]
    for commit, names in moves.index:
        changes += [change for change in repo.against(commit, paths) or [] if change[1] in names and change[0] != "A"]
    report(call, repo, changes, vanish=False)


def _restore(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "s", f"source= staged worktree {_CHECKOUT}")
    if is_asked(call, options):
        return
    paths = pathspecs(call, repo, options, options.named)
    source = options.value("s", "source")
    staged = options.has("S", "staged")
    if not paths:
        return
    if staged:
        index_at(repo, source or "HEAD", paths)
        if not options.has("W", "worktree"):
            return
        source = source or "HEAD"
    _put_back(call, repo, source, paths, vanish=not options.has("overlay"))


def index_at(repo: Repo, revision: str, paths: list[str]) -> None:
    """Files of the index become those of a commit; that of HEAD is what it mostly is."""
    target = repo.revision(revision)
    if target is not None and not unclear(paths):
        names = {name for status, name in repo.against(target, paths) or [] if status != "A"}
        repo.moves.index.append((target, names))
        repo.moves.added -= names
        repo.moves.removed |= {name for status, name in repo.against(target, paths) or [] if status == "A"}


# -- reset ------------------------------------------------------------------------------------------------------


def _reset(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(
        args, "U", "hard merge keep soft mixed quiet patch pathspec-from-file= pathspec-file-nul intent-to-add"
    )
    before = options.operands
    name = before[0] if before else "HEAD"
    if not options.has("hard", "merge", "keep"):
        _reset_index(repo, options, name)
        return
    if options.paths or len(before) > 1:
        return  # git refuses
    if not repo.top or UNKNOWN in name:
        blind(call, repo, WRITE, [])
        return
    name = repo.known_ref(name)
    current = name in _HEADS
    target = repo.revision(name) or (EMPTY if current else None)  # on a branch without commits everything goes
    if target is None:
        return
    if options.has("hard"):
        hard(call, repo, target, current=current)
    elif options.has("merge"):
        merge_reset(call, repo, target)
    elif not current:
        moved_to(call, repo, target)
    if not current and target != EMPTY:
        settle(repo, target, index=True)


def merge_reset(call: Call, repo: Repo, target: str) -> None:
    """What is staged is given up, what is not stays, or stands in the way."""
    names = {name for _, name in repo.staged(target) or []}
    local = repo.unstaged() or []
    unmerged = {name for status, name in local if status == "U"}
    if repo.untouched and any(name in names and name not in unmerged for _, name in local):
        return
    report(call, repo, [change for change in repo.against(target) or [] if change[1] in names])


def _reset_index(repo: Repo, options: Words, name: str) -> None:
    paths = (options.operands[1:] if options.operands else []) + (options.paths or [])
    target = repo.revision(name)
    if target is None:
        return
    if not options.has("soft"):
        index_at(repo, name, paths)
    if not paths and name not in _HEADS:
        settle(repo, target, index=False)


COMMANDS: dict[str, Command] = {
    "checkout": _checkout,
    "reset": _reset,
    "restore": _restore,
    "switch": _switch,
}

"""The git commands that work on the index and on stashes, and what that means for the files."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, MOVE, WRITE
from fusewire.guard.programs.git_state import EMPTY
from fusewire.guard.programs.git_tree import (
    RULES,
    blind,
    file,
    hard,
    index_at,
    is_asked,
    moved_to,
    pathspecs,
    removed,
    report,
    settle,
    unclear,
)
from fusewire.guard.programs.git_words import Words
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Changes, Repo

    Command = Callable[[Call, Repo, list[str]], None]


# -- rm, mv, add, commit ----------------------------------------------------------------------------------------


def _rm(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "", "force dry-run cached ignore-unmatch sparse quiet pathspec-from-file= pathspec-file-nul")
    paths = pathspecs(call, repo, options, options.named)
    if options.has("n", "dry-run") or not paths:
        return
    names = repo.tracked(paths) if not unclear(paths) else None
    if names is None:
        if not options.has("cached"):
            blind(call, repo, DELETE, paths)
        return
    names += sorted(repo.moves.added.intersection(repo.untracked(paths) or ())) if repo.moves.added else []
    recursive = options.has("r")
    if not recursive and any(call.disk.is_folder(repo.path(path)) for path in paths):
        return  # git refuses
    if options.has("cached"):
        repo.moves.removed.update(names)
        return
    if not options.has("f", "force") and names and _is_local(repo, paths):
        return
    removed(call, repo, names)


def _is_local(repo: Repo, paths: list[str]) -> bool:
    """Whether files have changes that are nowhere else, so that git would keep them."""
    head = repo.head
    if not repo.untouched or head is None:
        return False
    gone = {name for status, name in repo.unstaged(paths) or [] if status == "D"}
    changes = (repo.unstaged(paths) or []) + (repo.staged(head, paths) or [])
    return any(name not in gone for _, name in changes)


def _mv(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "", "force dry-run verbose sparse")
    names = options.named
    if options.has("n", "dry-run") or len(names) < 2:
        return
    *sources, target = names
    folder = call.disk.is_folder(repo.path(target))
    for source in sources:
        if not repo.around() or (repo.untouched and repo.top and UNKNOWN not in source and not repo.tracked([source])):
            continue
        name = source.rstrip("/").rsplit("/", 1)[-1]
        place = f"{target.rstrip('/')}/{name}" if folder else target
        if repo.untouched and call.disk.exists(repo.path(place)) and not options.has("f", "force"):
            continue
        call.effect(MOVE, repo.path(source), recursive=True, rule=repo.rule)
        call.effect(WRITE, repo.path(place), follows=False, rule=repo.rule)


def _add(call: Call, repo: Repo, args: list[str]) -> None:
    """Nothing happens to the files; but git knows them from now on."""
    options = Words(args, "", "all update dry-run force pathspec-from-file= pathspec-file-nul chmod= renormalize")
    paths = pathspecs(call, repo, options, options.named)
    adds = paths or options.has("A", "all", "u", "update")
    if options.has("n", "dry-run") or unclear(paths) or not adds:
        return

    def later() -> None:
        names = [name for _, name in repo.unstaged(paths) or []]
        if not options.has("u", "update"):
            names += repo.untracked(paths, ignored=options.has("f", "force")) or []
        repo.moves.added.update(names)
        repo.moves.removed.difference_update(names)

    repo.line.later.append(later)


def _commit(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "mFCctS", "all amend dry-run message= file= patch only include")
    if not options.has("dry-run"):
        repo.line.later.append(lambda: _committed(repo, options))


def _committed(repo: Repo, options: Words) -> None:
    moves = repo.moves
    if options.has("a", "all"):
        moves.added.update(name for _, name in repo.unstaged() or [])
    if options.named and not unclear(options.named):
        moves.added.update(name for _, name in repo.against("HEAD", options.named) or [])
    moves.settled |= moves.added
    if not moves.added and repo.head is not None:  # what was staged before the line
        moves.settled |= {name for _, name in repo.staged(repo.head) or []} - {
            name for _, name in repo.unstaged() or []
        }
    if not options.has("amend"):
        moves.commits += 1


def _update_index(call: Call, repo: Repo, args: list[str]) -> None:
    """Files may be taken out of the index without being touched."""
    options = Words(args, "", "force-remove remove cacheinfo= chmod= stdin index-info")
    if options.has("force-remove", "remove") and not unclear(options.named):
        repo.moves.removed.update(repo.tracked(options.named) or [])


def _update_ref(call: Call, repo: Repo, args: list[str]) -> None:
    """HEAD may go elsewhere without any file changing, also to a branch that has no commits."""
    options = Words(args, "m", "delete short quiet")
    names = options.named
    if len(names) > 1 and names[0].startswith(("refs/heads/", "refs/tags/")) and not options.has("d", "delete"):
        _, kind, name = names[0].split("/", 2)
        repo.make_ref(name, names[1], kind)
    if names[:1] not in (["HEAD"], ["@"]) or (len(names) < 2 and not options.has("d", "delete")):
        return
    target = None if options.has("d", "delete") else repo.revision(names[1])
    settle(repo, target or EMPTY, index=False)


# -- stash ------------------------------------------------------------------------------------------------------

_STASH = (
    "patch staged keep-index no-keep-index quiet include-untracked all message= pathspec-from-file= pathspec-file-nul"
)


def _stash(call: Call, repo: Repo, args: list[str]) -> None:
    verb = args[0] if args and args[0][:1] != "-" else "push"
    rest = args[1:] if args and args[0] == verb else args
    if verb in ("push", "save"):
        _stash_push(call, repo, rest, saves=verb == "save")
    elif verb in ("list", "show"):
        for place in Words(rest, "", "output=").all("output"):
            call.effect(WRITE, repo.path(place), rule=repo.rule)
    elif verb in ("pop", "apply", "branch"):
        names = Words(rest, "", "index quiet").named
        _stash_apply(call, repo, names[1:] if verb == "branch" else names, branch=verb == "branch")


def _stash_push(call: Call, repo: Repo, args: list[str], *, saves: bool) -> None:
    options = Words(args, "m", _STASH)
    if is_asked(call, options):
        return
    paths = [] if saves else pathspecs(call, repo, options, options.named)
    head = repo.head
    if not repo.top or unclear(paths):
        blind(call, repo, DELETE if options.has("u", "a", "include-untracked", "all") else WRITE, paths)
        return
    if head is None:
        return
    if options.has("k", "keep-index"):
        changes = repo.unstaged(paths)
    elif options.has("S", "staged"):
        changes = repo.staged(head, paths)
    else:
        changes = repo.against(head, paths)
    if changes is None:
        return
    moves = repo.moves
    report(call, repo, [change for change in changes if change[1] not in moves.settled])
    everything = options.has("a", "all")
    if everything or options.has("u", "include-untracked"):
        names = set(repo.untracked(paths, ignored=everything or repo.has_changed(*RULES)) or ())
    else:
        names = moves.added.intersection(repo.untracked(paths, ignored=True) or ()) if moves.added else set()
    removed(call, repo, sorted(names - moves.settled))
    moves.added.clear()


def _stash_apply(call: Call, repo: Repo, names: list[str], *, branch: bool) -> None:
    name = names[0] if names else "stash@{0}"
    if name.isdigit():
        name = f"stash@{{{name}}}"
    parents = (repo.ask("rev-list", "--parents", "-n1", repo.revision(name) or "", "--") or "").split()
    if len(parents) < 2:
        return
    stash, base = parents[:2]
    if branch:
        moved_to(call, repo, base)
    changes = repo.between(stash, base) or []
    differing = {other for _, other in repo.against(stash) or []}
    changes = [change for change in changes if change[1] in differing or change[0] == "D"]
    local = {other for _, other in repo.unstaged() or []}
    if repo.untouched and any(other in local for _, other in changes):
        return
    report(call, repo, changes)
    for untracked in parents[3:]:
        for other in repo.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", untracked) or []:
            file(call, repo, WRITE, other)


# -- worktrees and sparse checkouts -----------------------------------------------------------------------------


def _worktree(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args[1:], "bB", "reason= force")
    names = options.named
    verb = args[0] if args else ""
    if not names:
        return
    if verb == "add":
        path = repo.path(names[0])
        if not call.disk.exists(path) or call.disk.is_empty(path):
            call.effect(WRITE, path, rule=repo.rule)
            call.disk.made_folder(normal(path))
    elif verb == "remove":
        call.effect(DELETE, repo.path(names[0]), recursive=True, rule=repo.rule)
    elif verb == "move" and len(names) > 1:
        call.effect(MOVE, repo.path(names[0]), recursive=True, rule=repo.rule)
        call.effect(WRITE, repo.path(names[1]), rule=repo.rule)


def _sparse_checkout(call: Call, repo: Repo, args: list[str]) -> None:
    verb = args[0] if args else ""
    options = Words(args[1:], "", "cone no-cone sparse-index no-sparse-index stdin skip-checks")
    if verb in ("disable", "add"):
        missing = [change for change in _skipped(repo) if verb == "disable" or _is_kept(change[1], options.named, True)]
        report(call, repo, missing, vanish=False)
        return
    if verb not in ("set", "init"):
        return
    folders = options.named if verb == "set" else []
    if options.has("stdin"):
        folders = (call.world.stdin or UNKNOWN).split("\n")
    if unclear(folders):
        blind(call, repo, DELETE, [])
        return
    local = {name for _, name in repo.unstaged() or []}
    cone = not options.has("no-cone")
    names = [name for name in repo.tracked() or [] if name not in local and not _is_kept(name, folders, cone)]
    removed(call, repo, names)


def _skipped(repo: Repo) -> Changes:
    """Files that are in the index but were left out of the working tree."""
    lines = repo.names("ls-files", "-t", "-z", "--full-name", "--", ":/") or []
    return [("D", line[2:]) for line in lines if line[:2] == "S "]


def _is_kept(name: str, folders: list[str], cone: bool) -> bool:
    """With cones a folder brings along the files beside the folders that lead to it."""
    parent = name.rpartition("/")[0]
    for folder in folders:
        folder = folder.strip("/").removesuffix("/**").removesuffix("/*")
        if name == folder or name.startswith(folder + "/") or folder in ("", "*"):
            return True
        if cone and (folder + "/").startswith(parent + "/"):
            return True
        if not cone and folder[:2] == "*." and name.endswith(folder[1:]):
            return True
    return cone and not parent


# -- plumbing -----


def _checkout_index(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "", "all force quiet no-create prefix= stage= temp stdin index")
    paths = options.named
    if options.has("stdin"):
        paths = (call.world.stdin or UNKNOWN).replace("\0", "\n").split("\n")
    prefix = options.value("prefix")
    if options.has("temp") or not (paths or options.has("a", "all")):
        return
    if prefix is not None:
        for name in repo.tracked(paths) or []:
            call.effect(WRITE, f"{repo.top}/{prefix}{name}", rule=repo.rule)
        return
    changes = repo.unstaged(paths) if not unclear(paths) else None
    if changes is None:
        blind(call, repo, WRITE, paths)
        return
    forced = options.has("f", "force")
    report(call, repo, [change for change in changes if forced or change[0] == "D"], vanish=False)


def _read_tree(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "", "reset prefix= index-output= exclude-per-directory= dry-run empty trivial aggressive")
    if options.has("empty"):
        repo.moves.removed.update(repo.tracked() or [])
    if options.has("n", "dry-run") or not options.operands:
        return
    target = repo.revision(options.operands[-1]) or repo.revision(options.operands[-1], "tree")
    if target is None:
        return
    if not options.has("u"):
        index_at(repo, options.operands[-1], [])
        return
    prefix = options.value("prefix")
    if prefix is not None:
        for name in repo.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", target) or []:
            file(call, repo, WRITE, f"{prefix.strip('/')}/{name}")
    elif options.has("reset"):
        hard(call, repo, target)
    else:
        moved_to(call, repo, target)


COMMANDS: dict[str, Command] = {
    "add": _add,
    "checkout-index": _checkout_index,
    "commit": _commit,
    "mv": _mv,
    "read-tree": _read_tree,
    "rm": _rm,
    "sparse-checkout": _sparse_checkout,
    "stage": _add,
    "stash": _stash,
    "symbolic-ref": _update_ref,
    "update-index": _update_index,
    "update-ref": _update_ref,
    "worktree": _worktree,
}

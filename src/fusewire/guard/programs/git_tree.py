"""The git commands that put files of the working tree back, remove them or carry them away."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, MOVE, WRITE
from fusewire.guard.programs.git_state import MOST, Words
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Changes, Repo

    Command = Callable[[Call, Repo, list[str]], None]


def split_words(text: str) -> list[str]:
    """The words of an alias."""
    from shlex import split

    try:
        return split(text)
    except ValueError:
        return text.split()


def quoted(word: str) -> str:
    from shlex import quote

    return quote(word)


# -- reporting --------------------------------------------------------------------------------------------------


def report(call: Call, repo: Repo, changes: Changes, *, vanish: bool = True) -> None:
    """Tell which files would change; what the target has not vanishes, or stays."""
    for status, name in changes[:MOST]:
        if status != "A":
            _file(call, repo, WRITE, name)
        elif vanish:
            _file(call, repo, DELETE, name)


def removed(call: Call, repo: Repo, names: Iterable[str]) -> None:
    for name in list(names)[:MOST]:
        _file(call, repo, DELETE, name)


def _file(call: Call, repo: Repo, kind: str, name: str) -> None:
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


def _settle(repo: Repo, target: str, *, index: bool) -> None:
    """HEAD is at another commit, and the index too, or only HEAD."""
    moves = repo.moves
    moves.head, moves.commits = target, 0
    moves.settled.clear()
    if index:
        moves.index.clear()
        moves.added.clear()
        moves.removed.clear()


# -- clean ------------------------------------------------------------------------------------------------------


def _clean(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "e", "force dry-run quiet interactive exclude=")
    paths = options.named
    if options.has("n", "dry-run") or not _cleans(call, repo, options):
        return
    if unclear(paths) or not repo.top:
        blind(call, repo, DELETE, paths or [repo.folder])
        return
    forces = sum(word.count("f") for word in args if word[:1] == "-" and word[:2] not in ("--", "-e")) + args.count(
        "--force"
    )
    words = ["-f"] * forces + [f"-{letter}" for letter in "dxX" if letter in options.flags]
    words += [part for pattern in options.all("e", "exclude") for part in ("-e", pattern)]
    text = repo.ask("clean", "-n", *words, "--", *paths)
    if text is None:
        blind(call, repo, DELETE, paths or [repo.folder])
        return
    for line in text.split("\n"):
        if line.startswith("Would remove "):
            _gone(call, repo, f"{repo.folder}/{unquoted(line[13:])}")
    _forgotten(call, repo, paths)


def _cleans(call: Call, repo: Repo, options: Words) -> bool:
    if options.has("i", "interactive"):
        return call.world.stdin is not None  # nobody answers otherwise
    if options.has("f", "force"):
        return True
    given = repo.setting("clean.requireforce")
    if given is None:
        given = (repo.ask("config", "--type=bool", "--get", "clean.requireForce") or "").strip()
    return given.lower() in ("false", "no", "off", "0")


def _gone(call: Call, repo: Repo, path: str) -> None:
    """A file, or a folder with all that is in it."""
    if path[-1:] != "/":
        call.effect(DELETE, path, rule=repo.rule)
        return
    count = 0
    for count, inner in enumerate(call.disk.tree(path.rstrip("/")), 1):
        if count > MOST:
            break
        call.effect(DELETE, inner, rule=repo.rule)
    if not count or count > MOST:
        call.effect(DELETE, path, recursive=True, rule=repo.rule)


def _forgotten(call: Call, repo: Repo, paths: list[str]) -> None:
    """Files that the line has taken out of the index are not tracked any more."""
    gone = repo.moves.removed
    if gone:
        removed(call, repo, gone.intersection(repo.tracked(paths or [repo.folder]) or ()))


def unquoted(name: str) -> str:
    """A name as git prints it when it has special characters: "a\\tb"."""
    if name[:1] != '"' or name[-1:] != '"':
        return name
    raw = name[1:-1].encode("utf-8", "surrogateescape")
    return raw.decode("unicode_escape").encode("latin-1", "replace").decode("utf-8", "surrogateescape")


# -- checkout, switch, restore ----------------------------------------------------------------------------------

_CHECKOUT = (
    "force quiet patch ours theirs merge detach track? no-track guess orphan= conflict= overlay no-overlay"
    " overwrite-ignore no-overwrite-ignore pathspec-from-file= pathspec-file-nul recurse-submodules? progress"
    " ignore-other-worktrees discard-changes create= force-create= ignore-skip-worktree-bits"
)


def _checkout(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "bB", _CHECKOUT)
    if _is_asked(call, options):
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


def _is_asked(call: Call, options: Words) -> bool:
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
        return (None, before) if "/" in first else (first, before[1:])
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
    target = repo.revision(name)
    if target is None:
        target = repo.revision(_remote_branch(repo, name) or "") if UNKNOWN not in name else None
    head = repo.head
    if target is None or head is None:
        return
    if options.has("f", "force", "discard-changes"):
        _hard(call, repo, target)
    else:
        moved_to(call, repo, target, merges=options.has("m", "merge"))
    if not stays:
        _settle(repo, target, index=True)


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


def _hard(call: Call, repo: Repo, target: str, paths: Iterable[str] = (), *, vanish: bool = True) -> None:
    """Everything becomes as it is in a commit."""
    changes = repo.against(target, paths)
    if changes is None:
        blind(call, repo, WRITE, list(paths))
        return
    moves = repo.moves
    if target == repo.head:
        changes = [change for change in changes if change[1] not in moves.settled]
    report(call, repo, changes, vanish=vanish)
    if vanish:
        new = moves.added - moves.settled if target == repo.head else moves.added
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
            commit = repo.revision(tree)
            _hard(call, repo, commit or target, paths, vanish=vanish)
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
    if _is_asked(call, options):
        return
    paths = pathspecs(call, repo, options, options.named)
    source = options.value("s", "source")
    staged = options.has("S", "staged")
    if not paths:
        return
    if staged:
        _index_at(repo, source or "HEAD", paths)
        if not options.has("W", "worktree"):
            return
        source = source or "HEAD"
    _put_back(call, repo, source, paths, vanish=not options.has("overlay"))


def _index_at(repo: Repo, revision: str, paths: list[str]) -> None:
    """Files of the index become those of a commit; that of HEAD is what it mostly is."""
    target = repo.revision(revision)
    if target is not None and not unclear(paths):
        names = {name for status, name in repo.against(target, paths) or [] if status != "A"}
        repo.moves.index.append((target, names))
        repo.moves.added -= names
        repo.moves.removed |= {name for status, name in repo.against(target, paths) or [] if status == "A"}


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
    if options.has("n", "dry-run") or not options.operands:
        return
    target = repo.revision(options.operands[-1]) or repo.revision(options.operands[-1], "tree")
    if target is None:
        return
    if not options.has("u"):
        _index_at(repo, options.operands[-1], [])
        return
    prefix = options.value("prefix")
    if prefix is not None:
        for name in repo.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", target) or []:
            _file(call, repo, WRITE, f"{prefix.strip('/')}/{name}")
    elif options.has("reset"):
        _hard(call, repo, target)
    else:
        moved_to(call, repo, target)


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
    target = repo.revision(name)
    if target is None:
        return
    if options.has("hard"):
        _hard(call, repo, target)
    elif options.has("keep"):
        moved_to(call, repo, target)
    else:
        merge_reset(call, repo, target)
    _settle(repo, target, index=True)


def merge_reset(call: Call, repo: Repo, target: str) -> None:
    """What is staged is given up, what is not stays, or stands in the way."""
    staged = repo.staged(target) or []
    names = {name for _, name in staged}
    if repo.untouched and any(name in names for _, name in repo.unstaged() or []):
        return
    report(call, repo, [change for change in repo.against(target) or [] if change[1] in names])


def _reset_index(repo: Repo, options: Words, name: str) -> None:
    paths = (options.operands[1:] if options.operands else []) + (options.paths or [])
    target = repo.revision(name)
    if target is None:
        return
    if not options.has("soft"):
        _index_at(repo, name, paths)
    if not paths and name != "HEAD":
        _settle(repo, target, index=False)


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
        if repo.untouched and UNKNOWN not in source and not repo.tracked([source]):
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
    if (
        options.has("n", "dry-run")
        or unclear(paths)
        or not repo.top
        or not (paths or options.has("A", "all", "u", "update"))
    ):
        return
    names = [name for _, name in repo.unstaged(paths) or []]
    if not options.has("u", "update"):
        names += repo.untracked(paths, ignored=options.has("f", "force")) or []
    repo.moves.added.update(names)
    repo.moves.removed.difference_update(names)


def _commit(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "mFCctS", "all amend dry-run message= file= patch only include")
    if options.has("dry-run") or not repo.top:
        return
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


def _update_ref(call: Call, repo: Repo, args: list[str]) -> None:
    """HEAD may go elsewhere without any file changing."""
    names = Words(args, "m").named
    if len(names) > 1 and names[0] in ("HEAD", "@"):
        target = repo.revision(names[1])
        if target is not None:
            _settle(repo, target, index=False)


# -- stash ------------------------------------------------------------------------------------------------------

_STASH = (
    "patch staged keep-index no-keep-index quiet include-untracked all message= pathspec-from-file= pathspec-file-nul"
)


def _stash(call: Call, repo: Repo, args: list[str]) -> None:
    verb = args[0] if args and args[0][:1] != "-" else "push"
    rest = args[1:] if args and args[0] == verb else args
    if verb in ("push", "save"):
        _stash_push(call, repo, rest, saves=verb == "save")
    elif verb in ("pop", "apply", "branch"):
        names = Words(rest, "", "index quiet").named
        _stash_apply(call, repo, names[1:] if verb == "branch" else names, branch=verb == "branch")


def _stash_push(call: Call, repo: Repo, args: list[str], *, saves: bool) -> None:
    options = Words(args, "m", _STASH)
    if _is_asked(call, options):
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
        names = set(repo.untracked(paths, ignored=everything) or ())
    else:
        names = moves.added.intersection(repo.untracked(paths, ignored=True) or ()) if moves.added else set()
    removed(call, repo, sorted(names - moves.settled))
    moves.added.clear()


def _stash_apply(call: Call, repo: Repo, names: list[str], *, branch: bool) -> None:
    name = names[0] if names else "stash@{0}"
    if name.isdigit():
        name = f"stash@{{{name}}}"
    stash, base = repo.revision(name), repo.revision(f"{name}^1")
    if stash is None or base is None:
        return
    if branch:
        moved_to(call, repo, base)
    changes = repo.between(stash, base) or []
    differing = {other for _, other in repo.against(stash) or []}
    changes = [change for change in changes if change[1] in differing or change[0] == "D"]
    local = {other for _, other in repo.unstaged() or []}
    if repo.untouched and any(other in local for _, other in changes):
        return
    report(call, repo, changes)
    untracked = repo.revision(f"{name}^3", "tree")
    if untracked is not None:
        for other in repo.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", untracked) or []:
            _file(call, repo, WRITE, other)


# -- worktrees and sparse checkouts -----------------------------------------------------------------------------


def _worktree(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args[1:], "bB", "reason= force")
    names = options.named
    verb = args[0] if args else ""
    if not names:
        return
    if verb == "add":
        call.effect(WRITE, repo.path(names[0]), rule=repo.rule)
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


COMMANDS: dict[str, Command] = {
    "add": _add,
    "checkout": _checkout,
    "checkout-index": _checkout_index,
    "clean": _clean,
    "commit": _commit,
    "mv": _mv,
    "read-tree": _read_tree,
    "reset": _reset,
    "restore": _restore,
    "rm": _rm,
    "sparse-checkout": _sparse_checkout,
    "stage": _add,
    "stash": _stash,
    "switch": _switch,
    "symbolic-ref": _update_ref,
    "update-ref": _update_ref,
    "worktree": _worktree,
}

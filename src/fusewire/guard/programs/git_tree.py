"""The git commands that change the working tree, and what each of them would lose.

Moving between committed versions loses nothing: git itself refuses to overwrite a changed or an unknown file, and what
is replaced is in a commit. So these commands report files only where content goes that is committed nowhere, where a
file is removed or moved by name, and where one file is put back to another version than that of HEAD.
"""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE, WRITE
from fusewire.guard.programs.git_repo import IGNORED, UNTRACKED, is_unknown, is_unmerged
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import ProgramCall
    from fusewire.guard.programs.git_repo import Repo, State

    Command = Callable[[ProgramCall, Repo, list[str]], None]

_HEADS = ("HEAD", "@", "")

#: What is in the git directory while a merge, a pick or a rebase waits to be continued.
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")

_CHECKOUT = (
    "force quiet patch ours theirs merge detach track? no-track guess orphan= conflict= overlay no-overlay"
    " overwrite-ignore no-overwrite-ignore pathspec-from-file= pathspec-file-nul recurse-submodules? progress"
    " ignore-other-worktrees discard-changes create= force-create= ignore-skip-worktree-bits source= staged worktree"
)


# -- moving to another commit -----------------------------------------------------------------------------------


def _discard(repo: Repo, target: str, *, staged: bool = False, untracked: bool = True) -> None:
    """Everything becomes as it is in a commit (or only what is `staged`), and what is in its way is overwritten."""
    if repo.line.orphan:
        repo.may_lose(DELETE, [])
        return
    state = repo.state(untracked=True, ignored=True) if repo.top and UNKNOWN not in target else None
    if state is None:
        repo.may_lose(WRITE, [])
        return
    if not state:
        return
    commit = "HEAD" if target in _HEADS else _target(repo, target)
    if not commit and not repo.call.effects.opaque:
        return  # git refuses; but a command before this one may have made the branch
    _lose_changes(repo, {name: letters for name, letters in state.items() if not staged or letters[1] in " U"})
    in_the_way = [name for name in _unknown_to_git(state) if untracked or state[name] == IGNORED]
    repo.loses(WRITE, repo.tracked_by(commit, in_the_way) if commit else ())


def _target(repo: Repo, name: str) -> str:
    """The commit that a name stands for, also if it is a branch that only the remote has."""
    name = name.rpartition("..")[2] or name
    return repo.commit(name) or repo.commit(f"refs/remotes/origin/{name}")


def _lose_changes(repo: Repo, state: State) -> None:
    """Changed and staged files go back; what was only added goes. What git itself has merged can be merged again."""
    merging = repo.is_in(*_UNFINISHED)
    for name, letters in state.items():
        if letters in (UNTRACKED, IGNORED) or letters[1] == "D" or letters == "D " or (merging and letters[1] == " "):
            continue
        if not is_unmerged(letters) or not repo.has_conflict_markers(name):
            repo.loses(DELETE if letters[0] == "A" and letters[1] != "A" else WRITE, [name])


def _unknown_to_git(state: State) -> list[str]:
    return [name for name, letters in state.items() if letters in (UNTRACKED, IGNORED)]


def _move(repo: Repo, *targets: str) -> None:
    """Git carries changes along or refuses; but an ignored file gives way to one that the other commit has."""
    if not repo.top or is_unknown(targets):
        return
    hidden = repo.names("ls-files", "-o", "-i", "--exclude-standard", "-z", "--full-name", "--", *repo.matters())
    hidden = [name for name in hidden if not name.startswith(".fusewire/")]
    for target in targets if hidden else ():
        commit = _target(repo, target)
        repo.loses(WRITE, repo.tracked_by(commit, hidden) if commit else ())


def _checkout(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "bBs", _CHECKOUT)
    before = options.before_dashes
    if options.has("p", "patch") and call.world.stdin is None:
        return  # it asks about every change, and nobody answers
    if options.value("b", "B") is not None:
        _go(repo, options, before[0] if before else "")
        return
    if options.has("orphan"):
        repo.line.orphan = not repo.is_in(*_UNFINISHED)
        return
    tree, paths = _tree_and_paths(repo, options)
    paths = pathspecs(call, repo, options, paths)
    if paths:
        forced = options.has("f", "force", "ours", "theirs", "m", "merge")
        _put_back(repo, tree, paths, vanish=options.has("no-overlay"), force=forced)
    else:
        _go(repo, options, tree or "")


def _go(repo: Repo, options: Argv, target: str) -> None:
    if options.has("f", "force", "discard-changes"):
        _discard(repo, target, untracked=not options.has("discard-changes"))
        return
    if options.has("m", "merge") and target not in _HEADS and repo.top and not repo.is_in(*_UNFINISHED):
        other = {name for _, name in repo.between(_target(repo, target), "HEAD")}
        _lose_changes(repo, {name: letters for name, letters in (repo.state() or {}).items() if name in other})
    if target not in _HEADS and not options.has("no-overwrite-ignore"):
        _move(repo, target)


def _tree_and_paths(repo: Repo, options: Argv) -> tuple[str | None, list[str]]:
    """Which of the words is a revision and which are paths, as git finds out."""
    before, after = options.before_dashes, options.after_dashes
    if after is not None:
        return (before[0] if before else None), before[1:] + after
    if not before or UNKNOWN in before[0]:
        return None, before  # a branch or a path
    first = before[0]
    if repo.call.disk.exists(repo.path(first)):
        return None, before  # git refuses a word that is both
    if (len(before) > 1 or any(mark in first for mark in "*?[:")) and not _is_tree(repo, first):
        return None, before
    return first, before[1:]


def _revision(text: str) -> str:
    return "@{-1}" if text == "-" else text


def _switch(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "cC", _CHECKOUT)
    if repo.is_in(*_UNFINISHED):
        return  # git refuses
    if options.has("orphan"):
        if options.has("f", "force", "discard-changes") or not repo.state([":/"]):
            repo.loses(DELETE, repo.tracked() or ())
        return
    _go(repo, options, options.operands[0] if options.operands else "")


def _reset(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "U", "hard merge keep soft mixed quiet patch pathspec-from-file= pathspec-file-nul")
    target = options.before_dashes[0] if options.before_dashes else ""
    if options.has("hard", "merge") and len(options.operands) < 2:
        _discard(repo, target, staged=not options.has("hard"))
    elif options.has("keep"):
        _move(repo, target)
    elif not options.has("soft"):
        repo.line.forgotten += [repo.top] if target not in _HEADS and repo.commit(target) else []
        repo.line.unstages = True
        repo.line.added.clear()


def _read_tree(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "", "reset prefix= dry-run")
    target = options.before_dashes[-1] if options.before_dashes else ""
    if options.has("n", "dry-run") or not options.has("u") or not target:
        return
    if options.has("reset"):
        _put_back(repo, target, [":/"], vanish=True)
    else:
        _other_version(repo, target, [":/"], vanish=True)


_SEQUENCE = (
    "message= file= strategy= strategy-option= mainline= abort quit continue skip edit-todo show-current-patch? onto="
    " exec= ff ff-only no-ff squash commit no-commit edit no-edit into-name= log? gpg-sign? cleanup= rebase?"
    " interactive upload-pack= depth= jobs= autostash no-autostash keep-base root empty="
)


def _sequence(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    """merge, rebase, cherry-pick, revert, pull, am: they begin where nothing is in their way."""
    valued = {"am": "pC", "rebase": "xsXC", "pull": "sXjo"}.get(repo.command, "mFsX")
    options = Argv(args, valued, _SEQUENCE, optional="S" if repo.command != "pull" else "Sr")
    for text in options.values("x", "exec"):
        call.script(text, cwd=repo.top or repo.folder)
    if options.has("abort", "skip"):
        rebases = repo.command in ("rebase", "am") and repo.is_in("rebase-merge", "rebase-apply")
        state = repo.state() if rebases else None
        changed = [name for name, letters in (state or {}).items() if letters[1] == "M" and not is_unmerged(letters)]
        repo.loses(WRITE, changed)  # it resets; what is staged came from a commit
    elif options.has("quit", "continue", "edit-todo", "show-current-patch") or repo.command == "am":
        return
    elif repo.command == "pull":
        places = options.before_dashes[:2]
        _move(repo, "@{upstream}" if len(places) < 2 else f"refs/remotes/{'/'.join(places)}")
    elif options.value("s", "strategy") != "ours":
        _move(repo, *(options.before_dashes or ["@{upstream}"])[:20], *options.values("onto"))


def _bisect(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    if args[:1] == ["run"]:
        call.run(args[1:], cwd=repo.folder)
    else:
        _move(repo, *(word for word in args[1:] if word[:1] != "-"))


# -- putting files back -----------------------------------------------------------------------------------------


def _restore(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "s", _CHECKOUT)
    if options.has("p", "patch") and call.world.stdin is None:
        return
    paths = pathspecs(call, repo, options, options.operands)
    staged, source = options.has("S", "staged"), options.value("s", "source")
    if paths and (options.has("W", "worktree") or not staged):
        forced = options.has("ignore-unmerged", "ours", "theirs", "m", "merge")
        tree = source or ("HEAD" if staged else None)
        _put_back(repo, tree, paths, vanish=not options.has("overlay"), force=forced)
    repo.line.unstages = repo.line.unstages or staged


def pathspecs(call: ProgramCall, repo: Repo, options: Argv, named: list[str]) -> list[str]:
    """The paths of a command, also those that it is to read from a file."""
    place = options.value("pathspec-from-file")
    if place is None:
        return named
    text = call.world.stdin if place == "-" else call.walk.read_file(repo.path(place))
    return [*named, UNKNOWN] if text is None else named + [one for one in text.replace("\0", "\n").split("\n") if one]


def _put_back(repo: Repo, tree: str | None, paths: list[str], *, vanish: bool = False, force: bool = False) -> None:
    """Files as they are in a commit, or in the index if no tree is named."""
    known = repo.top and not is_unknown([*paths, tree or ""])
    if known and tree not in (None, "HEAD", "@") and not _is_tree(repo, tree or ""):
        return  # git refuses
    state = repo.state(paths, untracked=tree is not None, ignored=tree is not None) if known else None
    if state is None:
        repo.may_lose(WRITE, paths)
        return
    if tree is None and not force and any(is_unmerged(letters) for letters in state.values()):
        return  # git refuses
    if tree is None:
        state = {name: letters for name, letters in state.items() if letters[1] != " "}
    if not vanish:
        state = {name: letters for name, letters in state.items() if tree is None or letters != "A "}
    _lose_changes(repo, state)
    if not os.path.lexists(f"{repo.top}/.git"):  # files of this repository in a folder of another
        repo.loses(WRITE, (name for name, letters in state.items() if "D" in letters))
    if tree is not None:
        repo.loses(WRITE, repo.tracked_by(tree, _unknown_to_git(state)))
    if tree not in (None, *_HEADS):
        _other_version(repo, tree or "", paths, vanish=vanish)


def _is_tree(repo: Repo, name: str) -> bool:
    return bool(repo.ask("rev-parse", "--verify", "-q", "--end-of-options", _revision(name) + "^{tree}"))


def _other_version(repo: Repo, tree: str, paths: list[str], *, vanish: bool) -> None:
    """What the tree has otherwise than HEAD."""
    for status, name in repo.between(_revision(tree), "HEAD", paths):
        if status != "A" or vanish:
            repo.loses(DELETE if status == "A" else WRITE, [name])


def _checkout_index(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "", "all force prefix= temp")
    if options.has("f", "force") and not options.has("temp", "prefix"):
        _put_back(repo, None, options.operands or ["."], force=True)


# -- stash ------------------------------------------------------------------------------------------------------

_STASH = (
    "patch staged keep-index no-keep-index quiet include-untracked all message= pathspec-from-file= pathspec-file-nul"
)


def _stash(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    verb = args[0] if args and args[0][:1] != "-" else "push"
    rest = args[1:] if args[:1] == [verb] else args
    if verb in ("push", "save"):
        _stash_push(call, repo, Argv(rest, "m", _STASH), saves=verb == "save")
    elif verb in ("drop", "clear"):
        _stash_drop(repo, Argv(rest, "", "quiet").operands if verb == "drop" else None)


def _stash_push(call: ProgramCall, repo: Repo, options: Argv, *, saves: bool) -> None:
    """What is not committed is carried away, for an unknown time."""
    if options.has("p", "patch") and call.world.stdin is None:
        return
    paths = [] if saves else pathspecs(call, repo, options, options.operands)
    everything = options.has("a", "all")
    untracked = everything or options.has("u", "include-untracked")
    state = repo.state(paths, untracked=untracked, ignored=everything) if repo.top and not is_unknown(paths) else None
    if state is None:
        if repo.top and not is_unknown(paths) and not repo.line.cut:
            return  # no such path, or nothing to begin with
        repo.may_lose(DELETE if untracked else WRITE, paths)
        return
    if options.has("k", "keep-index"):
        state = {name: letters for name, letters in state.items() if letters[1] != " "}
    elif options.has("S", "staged"):
        state = {name: letters for name, letters in state.items() if letters[1] == " "}
    _lose_changes(repo, state)
    repo.loses(DELETE, _unknown_to_git(state))


def _stash_drop(repo: Repo, names: list[str] | None) -> None:
    """What was stashed is in no branch: the files of a dropped stash are lost as they were."""
    count = len((repo.ask("stash", "list", "--format=%H") or "").split())
    named = range(count) if names is None else [names[0] if names else 0]
    for name in list(named)[:20]:
        stash = f"stash@{{{name}}}" if str(name).isdigit() else str(name)
        commit = repo.commit(stash)
        if commit:
            repo.loses(WRITE, (other for _, other in repo.between(f"{commit}^1", commit)))
            repo.loses(WRITE, repo.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", f"{commit}^3"))


# -- what changes the answers of later commands -----------------------------------------------------------------


def _add(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    """Nothing happens to the files; but git knows them from now on."""
    options = Argv(args, "", "all update dry-run force pathspec-from-file= pathspec-file-nul chmod= renormalize")
    if options.has("n", "dry-run"):
        return
    paths = pathspecs(call, repo, options, options.operands)
    if options.has("A", "all", "u", "update") and not paths:
        paths = [repo.top]
    repo.line.added += [normal(repo.path(path)) for path in paths]


def _commit(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "mFCct", "all amend dry-run message= file= patch only include", optional="uS")
    line = repo.line
    if options.has("dry-run"):
        return
    line.commits = True
    line.commits_all = line.commits_all or options.has("a", "all")
    line.committed += [*line.added, *(normal(repo.path(path)) for path in options.operands)]
    line.added.clear()


COMMANDS: dict[str, Command] = {
    **dict.fromkeys(("am", "cherry-pick", "merge", "pull", "rebase", "revert"), _sequence),
    "add": _add,
    "bisect": _bisect,
    "checkout": _checkout,
    "checkout-index": _checkout_index,
    "commit": _commit,
    "read-tree": _read_tree,
    "reset": _reset,
    "restore": _restore,
    "stage": _add,
    "stash": _stash,
    "switch": _switch,
}

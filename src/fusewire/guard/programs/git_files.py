"""The git commands that remove or rename files, write files of their own choice, rewrite history or apply patches."""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE, MOVE, WRITE
from fusewire.guard.programs.git_repo import UNTRACKED, is_among, is_unknown, setting_key, unquoted
from fusewire.guard.programs.git_tree import pathspecs
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import ProgramCall
    from fusewire.guard.programs.git_repo import Repo

    Command = Callable[[ProgramCall, Repo, list[str]], None]

#: Files of one folder that are listed one by one.
_MOST = 5000


def _config(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    """Settings count for the rest of the line; a file that is named is written."""
    options = Argv(args, "f", "file= get list unset")
    names = options.operands[1:] if options.operands[:1] == ["set"] else options.operands
    if len(names) < 2 or options.has("get", "get-all", "get-regexp", "list", "l", "unset"):
        return
    repo.line.settings[setting_key(names[0])] = names[1]
    for place in options.values("f", "file"):
        call.effect(WRITE, repo.path(place), rule=repo.rule)


def _writes(valued: str, *longs: str) -> Command:
    """Commands with options that name a file or folder to be written."""
    described = " ".join(f"{name}=" for name in longs)

    def command(call: ProgramCall, repo: Repo, args: list[str]) -> None:
        for value in Argv(args, valued, described).values(*valued, *longs):
            call.effect(WRITE, repo.path(value), rule=repo.rule)

    return command


# -- other repositories and working trees -----------------------------------------------------------------------


def _init(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    names = Argv(args, "b", "template= separate-git-dir= object-format= initial-branch=").operands
    inside = f"{names[0] if names else '.'}/.git"
    if not call.disk.exists(repo.path(inside)):
        call.effect(WRITE, repo.path(inside), rule=repo.rule)


def _clone(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    longs = (
        "origin= branch= upload-pack= reference= reference-if-able= separate-git-dir= depth= template= config= jobs="
    )
    names = Argv(args, "obucj", f"{longs} filter= shallow-since= shallow-exclude= server-option= bundle-uri=").operands
    if names:
        url = names[0].rstrip("/").removesuffix("/.git")
        name = url.rsplit("/", 1)[-1].rsplit(":", 1)[-1].removesuffix(".git")
        _made(call, repo, names[1] if len(names) > 1 else name)
        call.world.status = True


def _made(call: ProgramCall, repo: Repo, folder: str) -> None:
    """A folder that git makes, and refuses to if something is in it."""
    path = repo.path(folder)
    if not call.disk.exists(path) or call.disk.is_empty(path):
        call.effect(WRITE, path, rule=repo.rule)
        call.disk.made_folder(normal(path))


def _worktree(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    names = Argv(args[1:], "bB", "reason= force").operands
    verb = args[0] if names else ""
    if verb == "add":
        _made(call, repo, names[0])
    elif verb == "remove":
        call.effect(DELETE, repo.path(names[0]), recursive=True, rule=repo.rule)
    elif verb == "move":
        call.effect(MOVE, repo.path(names[0]), recursive=True, rule=repo.rule)


def _submodule(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "b", "branch= name= reference= depth=")
    if args[:1] == ["add"] and len(options.operands) > 2:
        call.effect(WRITE, repo.path(options.operands[2]), rule=repo.rule)


# -- rewriting history ------------------------------------------------------------------------------------------


def _filter_branch(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    """What its filters take out of every commit is gone from the working tree too, when it has finished."""
    options = Argv(args, "d", "tree-filter= index-filter= subdirectory-filter= env-filter= msg-filter= commit-filter=")
    if repo.top and call.walk.pristine and repo.state([":/"]):
        return  # git refuses while anything is not committed
    repo.line.rewrites = True
    for text in options.values("tree-filter", "index-filter"):
        call.script(text, cwd=repo.top or repo.folder)
    repo.line.rewrites = False
    for folder in options.values("subdirectory-filter"):
        _keep_only(repo, [folder])


def _filter_repo(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "", "path= path-glob= path-regex= subdirectory-filter= invert-paths force")
    paths = options.values("path")
    if options.has("invert-paths"):
        for path in paths:
            call.effect(DELETE, f"{repo.top or repo.folder}/{path}", recursive=True, rule=repo.rule)
    elif paths or options.has("subdirectory-filter"):
        _keep_only(repo, paths)


def _keep_only(repo: Repo, folders: list[str]) -> None:
    places = [f"{repo.top}/{folder.strip('/')}" for folder in folders]
    repo.loses(DELETE, (name for name in repo.tracked() or () if not is_among(f"{repo.top}/{name}", places)))


# -- patches ----------------------------------------------------------------------------------------------------


def _apply(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(
        args,
        "pC",
        "check stat numstat summary apply cached reverse directory= include= exclude= 3way reject whitespace=",
    )
    shows = options.has("check", "stat", "numstat", "summary") and not options.has("apply")
    if shows or options.has("cached"):
        return
    words = ["--check"] * (not options.has("reject", "3way", "3") and call.walk.pristine)
    words += [f"-p{value}" for value in options.values("p")] + ["-R"] * options.has("R", "reverse")
    for name in ("directory", "include", "exclude"):
        words += [f"--{name}={value}" for value in options.values(name)]
    for place in options.operands or ["-"]:
        text = call.world.stdin if place == "-" else _patch_text(call, repo.path(place))
        if text is None or UNKNOWN in text or not repo.top:
            call.effect(WRITE, f"{repo.top or repo.folder}/{UNKNOWN}", rule=repo.rule)
            continue
        listed = repo.ask("apply", "--numstat", "-z", *words, "-", stdin=text) if text else ""
        repo.loses(WRITE, (entry.split("\t", 2)[2] for entry in (listed or "").split("\0") if entry))
        if listed and "\nrename " in text:
            left = "\nrename to " if options.has("R", "reverse") else "\nrename from "
            repo.loses(DELETE, (unquoted(part.partition("\n")[0]) for part in text.split(left)[1:]))


def _patch_text(call: ProgramCall, path: str) -> str | None:
    text = call.walk.read_file(path)
    if text is not None or UNKNOWN in path:
        return text
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(8 * 1024 * 1024)
    except (OSError, ValueError):
        return None if os.path.isdir(path) else ""


# -- removing and renaming --------------------------------------------------------------------------------------


def _clean(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    """What it would remove is what its own dry run says."""
    options = Argv(args, "e", "force dry-run quiet interactive exclude=")
    paths = options.operands
    if options.has("n", "dry-run") or not _cleans(call, repo, options):
        return
    if is_unknown(paths) or not repo.top:
        repo.may_lose(DELETE, paths or [repo.folder])
        return
    forces = len(options.values("f", "force"))
    words = ["-f"] * forces + [f"-{letter}" for letter in "dxX" if options.has(letter)]
    words += [part for pattern in options.values("e", "exclude") for part in ("-e", pattern)]
    text = repo.ask("clean", "-n", *words, "--", *paths)
    if text is None:
        repo.may_lose(DELETE, paths or [repo.folder])
        return
    added = [*repo.line.added, *repo.line.committed]
    hidden = set(repo.names("ls-files", "-o", "-i", "--exclude-standard", "-z", "--", *paths)) if added else set()
    for line in text.split("\n"):
        for path in _removed(call, f"{repo.folder}/{unquoted(line[13:])}") if line.startswith("Would remove ") else ():
            if not is_among(normal(path), added) or path[len(repo.folder) + 1 :] in hidden:
                call.effect(DELETE, path, recursive=path[-1:] == "/", rule=repo.rule)
    if repo.line.unstages:
        state = repo.state(paths or ["."], untracked=True) or {}
        repo.loses(DELETE, (name for name, letters in state.items() if letters == UNTRACKED))
    if repo.line.forgotten:
        tracked = repo.tracked(paths or ["."]) or []
        repo.loses(DELETE, (name for name in tracked if is_among(f"{repo.top}/{name}", repo.line.forgotten)))


def _cleans(call: ProgramCall, repo: Repo, options: Argv) -> bool:
    if options.has("i", "interactive"):
        return call.world.stdin is not None  # without input it asks, and gets no answer
    forced = options.has("f", "force")
    return forced or repo.setting("clean.requireforce").lower() in ("false", "no", "off", "0")


def _removed(call: ProgramCall, path: str) -> list[str]:
    """A file, or all that is in a folder; the folder itself if that is empty or too large."""
    if path[-1:] != "/":
        return [path]
    found = []
    for inner in call.disk.tree(path.rstrip("/")):
        found.append(inner)
        if len(found) > _MOST:
            return [path]
    return found or [path]


def _remove_tracked(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "", "force dry-run cached ignore-unmatch sparse quiet pathspec-from-file= pathspec-file-nul")
    paths = pathspecs(call, repo, options, options.operands)
    if options.has("n", "dry-run") or not paths:
        return
    if options.has("cached") and not repo.line.rewrites:
        repo.line.forgotten += [normal(repo.path(path)) for path in paths]
        return
    names = repo.tracked(paths) if not is_unknown(paths) else None
    if names is None:
        repo.may_lose(DELETE, paths)
    elif options.has("r") or not any(call.disk.is_folder(repo.path(path)) for path in paths):
        repo.loses(DELETE, names)


def _rename_tracked(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    options = Argv(args, "", "force dry-run verbose sparse")
    names = options.operands
    if options.has("n", "dry-run") or len(names) < 2 or not repo.around():
        return
    *sources, target = names
    folder = call.disk.is_folder(repo.path(target))
    for source in sources:
        if repo.top and UNKNOWN not in source and not repo.line.added and not repo.tracked([source]):
            continue  # git refuses
        place = f"{target.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}" if folder else target
        there = call.disk.exists(repo.path(place))
        if not there and _is_renamed(call, repo.path(source), repo.path(place)):
            continue
        if there and call.walk.pristine and not options.has("f", "force"):
            continue  # git refuses
        call.effect(MOVE, repo.path(source), recursive=True, rule=repo.rule)
        call.effect(WRITE, repo.path(place), follows=False, rule=repo.rule)


def _is_renamed(call: ProgramCall, source: str, target: str) -> bool:
    """Whether a document gets another name in the same protected folder: it is still there, and still protected."""
    protected = call.effects.protected
    if protected is None or UNKNOWN in source + target:
        return False
    source, target = call.disk.real(source, last=False), call.disk.real(target, last=False)
    return any(
        kind == "document" and source.startswith(f"{place}/") and target.startswith(f"{place}/")
        for place, kind in protected.places.items()
    )


def _sparse_checkout(call: ProgramCall, repo: Repo, args: list[str]) -> None:
    """Files that fit none of the patterns are taken out of the working tree."""
    options = Argv(args[1:], "", "cone no-cone sparse-index no-sparse-index stdin skip-checks")
    patterns = options.operands
    if args[:1] != ["set"] and args[:1] != ["init"]:
        return
    if is_unknown(patterns) or options.has("stdin"):
        repo.may_lose(DELETE, [])
        return
    names = repo.tracked() or []
    if options.has("no-cone") and patterns:
        chosen = [part for pattern in patterns if pattern for part in ("-x", pattern)]
        kept = set(repo.names("ls-files", "-c", "-i", "-z", "--full-name", *chosen, "--", ":/"))
    else:
        kept = {name for name in names if _is_in_cone(name, [pattern.strip("/") for pattern in patterns])}
    changed = repo.state() or {}
    repo.loses(DELETE, (name for name in names if name not in kept and name not in changed))


def _is_in_cone(name: str, folders: list[str]) -> bool:
    """A folder brings along the files beside the folders that lead to it."""
    parent = name.rpartition("/")[0]
    return not parent or any(
        name.startswith(f"{folder}/") or f"{folder}/".startswith(f"{parent}/") for folder in folders
    )


COMMANDS: dict[str, Command] = {
    **dict.fromkeys(("diff", "log", "shortlog", "show"), _writes("", "output")),
    "apply": _apply,
    "archive": _writes("o", "output"),
    "clean": _clean,
    "clone": _clone,
    "config": _config,
    "filter-branch": _filter_branch,
    "filter-repo": _filter_repo,
    "format-patch": _writes("o", "output-directory", "output"),
    "init": _init,
    "mv": _rename_tracked,
    "rm": _remove_tracked,
    "sparse-checkout": _sparse_checkout,
    "submodule": _submodule,
    "worktree": _worktree,
}

"""The git commands that remove files, rename them, or leave them out of the working tree."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, MOVE, WRITE
from fusewire.guard.programs.git_repo import UNTRACKED, is_among, is_unknown, unquoted
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

#: Files of one folder that are told one by one.
_MOST = 5000


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
        return call.world.stdin is not None  # nobody answers otherwise
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


def _rm(call: ProgramCall, repo: Repo, args: list[str]) -> None:
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


def _mv(call: ProgramCall, repo: Repo, args: list[str]) -> None:
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


COMMANDS: dict[str, Command] = {"clean": _clean, "mv": _mv, "rm": _rm, "sparse-checkout": _sparse_checkout}

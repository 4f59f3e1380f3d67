"""`git clean`: what it would remove is what its own dry run says."""

from __future__ import annotations

from fusewire.guard.effects import DELETE
from fusewire.guard.programs.git_state import MOST
from fusewire.guard.programs.git_tree import RULES, blind, removed, unclear
from fusewire.guard.programs.git_words import Words, unquoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Repo

    Command = Callable[[Call, Repo, list[str]], None]


def _clean(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "e", "force dry-run quiet interactive exclude=")
    paths = options.named
    if options.has("n", "dry-run") or not _cleans(call, repo, options):
        return
    if unclear(paths) or not repo.top:
        if not repo.line.later or repo.around() not in repo.line.made:  # a new repository knows what was added
            blind(call, repo, DELETE, paths or [repo.folder])
        return
    forces = options.all_flags.count("f") + options.all_flags.count("force")
    letters = "dx" if repo.has_changed(*RULES) else "dxX"  # anything may be ignored now, or nothing
    words = ["-f"] * forces + [f"-{letter}" for letter in letters if letter in options.flags]
    words += ["-x"] if letters == "dx" else []
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
        given = repo.configured("clean.requireforce").lower()
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
    gone = set(repo.tracked() or ()) if repo.has_changed("/.git/index") else repo.moves.removed
    if gone:
        removed(call, repo, sorted(gone.intersection(repo.tracked(paths or [repo.folder]) or ())))


COMMANDS: dict[str, Command] = {"clean": _clean}

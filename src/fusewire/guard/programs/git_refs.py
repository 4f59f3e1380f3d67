"""Branches and tags that a line makes, so that it can be followed when it goes there."""

from __future__ import annotations

from fusewire.guard.programs.git_words import Words
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Repo

    Command = Callable[[Call, Repo, list[str]], None]

_BRANCH = (
    "list delete move copy show-current edit-description set-upstream-to= unset-upstream contains= no-contains="
    " merged= no-merged= points-at= format= sort= force track? no-track quiet all remotes verbose color? column?"
)


def _branch(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "u", _BRANCH)
    names = options.named
    if options.has("d", "D", "delete", "l", "list", "a", "r", "all", "remotes", "contains", "merged", "no-merged"):
        return
    if options.has("m", "M", "move", "c", "C", "copy", "u", "set-upstream-to", "edit-description", "show-current"):
        return
    if names:
        repo.make_ref(names[0], names[1] if len(names) > 1 else "HEAD")


def _tag(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(
        args, "mFu", "list delete verify message= file= local-user= sort= format= contains= force annotate", "n"
    )
    names = options.named
    if names and not options.has("d", "delete", "v", "verify", "l", "list", "n", "contains"):
        repo.make_ref(names[0], names[1] if len(names) > 1 else "HEAD", "tags")


def _into_itself(call: Call, repo: Repo, args: list[str]) -> None:
    """`git fetch . HEAD~1:old` and `git push . HEAD~1:old` make a branch here."""
    options = Words(args, "o", "upload-pack= receive-pack= exec= depth= refmap=")
    names = options.named
    for program in options.all("upload-pack", "receive-pack", "exec"):
        call.script(" ".join([program, *map(quoted, names[:1])]), cwd=repo.folder)
    for name in names[1:] if names[:1] == ["."] else []:
        source, _, made = name.lstrip("+").partition(":")
        if made:
            repo.make_ref(made.removeprefix("refs/heads/"), source or "HEAD")


COMMANDS: dict[str, Command] = {
    "branch": _branch,
    "fetch": _into_itself,
    "push": _into_itself,
    "tag": _tag,
}

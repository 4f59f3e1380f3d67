"""What git prints: the commands that can only print are run, so that what reads their output can be judged."""

from __future__ import annotations

from fusewire.guard.programs.git_words import words
from fusewire.shell.expansion import VALUE_LIMIT
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.programs.git_repo import Repo

#: Commands that print whatever they are told, but for the options below.
_PRINTING = words(
    "rev-parse ls-files ls-tree diff diff-tree diff-index diff-files grep show log merge-base rev-list for-each-ref"
    " status"
)

#: Options, also shortened, with which something is written, read or run, or a submodule's own settings count.
_NEVER = (
    *("--out", "-O", "--ext", "--textc", "--op", "--stdin", "--show-sig", "--filters", "--batch", "-o-", "--contents"),
    *("--ign", "--sub", "--recurse"),
)

#: All options that a command may have to be one that prints; one of them it must have.
_ASKING = {
    "branch": words("--show-current --list -l -a -r -v -vv --all --remotes -av -avv -rv"),
    "tag": words("-l --list"),
}

#: Commands that could look into submodules.
_DIFFERENCES = words("diff diff-index diff-files status show log")

#: Questions whose answers no command of a line changes.
_LASTING = words("--show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir")


def printed(repo: Repo, name: str, args: list[str]) -> str:
    """What a command prints; unknown if it does something else too, or if the line has changed what it tells."""
    if not _only_prints(name, args):
        return UNKNOWN
    lasting = name == "rev-parse" and all(word in _LASTING for word in args)
    if not lasting and (repo.line.forgotten or repo.line.added or repo.line.commits):
        return UNKNOWN
    safely = ["--ignore-submodules=all"] if name in _DIFFERENCES else []
    text = repo.ask("--no-pager", name, *safely, *args, limit=VALUE_LIMIT)
    return UNKNOWN if text is None else text


def _only_prints(name: str, args: list[str]) -> bool:
    options = [word for word in args if word[:1] == "-"]
    if any(word.startswith(_NEVER) for word in options) or any(UNKNOWN in word for word in args):
        return False
    if name in _ASKING:
        rest = [word for word in options if not word.startswith("--format=")]
        names = len(options) < len(args)
        return bool(options) and _ASKING[name].issuperset(rest) and (not names or not {"-l", "--list"}.isdisjoint(rest))
    if name == "grep":  # -O may be one letter of many
        return not any("O" in word.partition("=")[0] for word in options if word[:2] != "--")
    return name in _PRINTING

"""What git prints: the commands that can only print are run, so that what reads their output can be judged."""

from __future__ import annotations

from fusewire.guard.programs.git_repo import setting_key
from fusewire.guard.programs.git_words import words
from fusewire.shell.expansion import VALUE_LIMIT
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.programs.git_repo import Repo

#: Commands that print whatever they are told, but for the options below.
_PRINTING = words(
    "rev-parse ls-files ls-tree diff diff-tree diff-index diff-files grep show log merge-base rev-list for-each-ref"
    " name-rev status check-ignore format-patch whatchanged shortlog blame annotate show-ref reflog"
)

#: Options, also shortened, with which something is written, read or run.
_NEVER = (
    "--out",
    "-O",
    "--ext",
    "--textc",
    "--op",
    "--stdin",
    "--show-sig",
    "--filters",
    "--batch",
    "-o-",
    "--contents",
    "--ign",  # a submodule's own settings would count
    "--sub",
    "--recurse",
)

#: command -> all options that it may have to be one that prints
_OPTIONS = {
    "branch": words("--show-current --list -l -a -r -v -vv --all --remotes -av -avv -rv"),
    "cat-file": words("-p -t -s -e"),
    "config": words("--get"),
    "describe": words("--tags --all --long --always --abbrev=0 --contains --exact-match --first-parent"),
    "symbolic-ref": words("-q --quiet --short"),
    "tag": words("-l --list -n"),
}

#: One of these must be among them.
_ASKING = {
    "branch": words("--show-current --list -l -a -r -v -vv --all --remotes -av -avv -rv"),
    "tag": words("-l --list"),
    "status": words("--porcelain -s --short -z --porcelain=v1 --porcelain=v2 -sb -su"),
    "format-patch": words("--stdout"),
}

#: Commands that could look into submodules.
_DIFFERENCES = words("diff diff-index diff-files status show log whatchanged format-patch")

#: Questions whose answers no command of a line changes.
_LASTING = words("--show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir")


def printed(repo: Repo, name: str, args: list[str]) -> str:
    """What a command prints; unknown if it does something else too, or if the line has changed what it tells."""
    if not _only_prints(name, args):
        return UNKNOWN
    lasting = name == "rev-parse" and all(word in _LASTING for word in args)
    if not lasting and repo.line.forgets:
        return UNKNOWN
    if name == "config":
        return _setting(repo, args)
    safely = ["--stdout"] if name == "format-patch" else []
    if name in _DIFFERENCES:
        safely.append("--ignore-submodules=all")
    text = repo.ask("--no-pager", name, *safely, *args, limit=VALUE_LIMIT)
    return UNKNOWN if text is None else text


def _setting(repo: Repo, args: list[str]) -> str:
    """What `git config --get NAME` prints."""
    if args[:1] != ["--get"] or len(args) != 2:
        return UNKNOWN
    value = repo.setting(setting_key(args[1]))
    return f"{value}\n" if value else ""


def _only_prints(name: str, args: list[str]) -> bool:
    options = [word for word in args if word[:1] == "-"]
    operands = len(args) - len(options)
    if any(word.startswith(_NEVER) for word in options) or any(UNKNOWN in word for word in args):
        return False
    if name == "branch" and any(word.startswith("--format=") for word in options):
        return operands == 0 and len(options) == 1
    if name in _ASKING and _ASKING[name].isdisjoint(options):
        return False
    if name in _OPTIONS:
        return _OPTIONS[name].issuperset(options) and _fits(name, options, operands)
    if name == "stash":
        return args[:1] in (["list"], ["show"]) and not any(word[:2] in ("-p", "-u", "-U", "--p") for word in options)
    if name == "remote":
        return args in ([], ["-v"]) or (args[0] == "get-url" and not options)
    if name == "reflog":
        return not args or args[0][:1] == "-" or args[0] == "show"
    if name == "shortlog":  # without a commit it reads
        return operands > 0
    if name == "worktree":
        return args[:1] == ["list"]
    if name == "grep":  # -O may be one letter of many
        return not any("O" in word.partition("=")[0] for word in options if word[:2] != "--")
    if name == "format-patch":
        return not any(word.startswith(("-o", "--cover")) for word in options)
    return name in _PRINTING


def _fits(name: str, options: list[str], operands: int) -> bool:
    """Operands that would make something new."""
    if name == "branch":
        return not operands or "--list" in options or "-l" in options
    if name == "symbolic-ref":
        return operands == 1
    return True

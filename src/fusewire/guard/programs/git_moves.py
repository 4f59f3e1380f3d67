"""Which git commands only move the working tree between committed versions.

Such a command destroys nothing as long as the files that it touches are committed as they are, so a shell that has the
project's documents read-only lets a line of them write. Decided from the words alone: no file is read, no process is
started, and whatever is not on these lists does not qualify.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Node, Redirect, Word

#: Commands that take files of one commit to those of another.
_MOVING = frozenset("am checkout cherry-pick merge pull rebase revert switch".split())

#: Commands that change no file of the working tree.
_HARMLESS = frozenset(
    (
        "add blame branch cat-file cherry commit count-objects describe diff diff-tree fetch for-each-ref grep log"
        " ls-files ls-remote ls-tree merge-base name-rev push range-diff reflog remote rev-list rev-parse shortlog show"
        " show-branch show-ref status symbolic-ref tag version whatchanged"
    ).split()
)

#: Subcommands of the commands that have some.
_STASH = frozenset("push save pop apply branch list show".split())
_BISECT = frozenset("start good bad old new skip reset log view terms visualize".split())
_LFS = frozenset("pull checkout fetch ls-files status".split())

#: Programs that change nothing, whatever they are given.
_LOOKING = frozenset(
    "[ basename cat cd cmp cut date diff dirname du echo false grep head id jq ls nl printf ps pwd sleep stat tail test"
    " tr true uname wc which whoami :".split()
)

#: Starts of options by which git runs a program or writes a file that the line names.
_RUNS = ("--ex", "--upload-p", "--receive-p", "--out", "--open-f", "--textc")

#: Options in front of the command that change neither what git runs nor where it writes; the first ones take a value.
_GLOBAL_VALUED = ("-C", "-c")
_GLOBALS = frozenset("--no-pager -P -p --paginate --no-optional-locks --no-replace-objects --literal-pathspecs".split())

#: Starts of settings that run nothing, for `-c`.
_SETTINGS = ("user.", "author.", "committer.", "advice.", "pull.", "commit.gpgsign=", "color.", "core.quotepath=")

#: Variables in front of a command that change nothing but what it prints, and editors that edit nothing.
_VARIABLES = ("LC_ALL=", "LANG=", "TZ=", "GIT_TERMINAL_PROMPT=", "GIT_MERGE_AUTOEDIT=", "GIT_PAGER=cat", "PAGER=cat")
_EDITORS = frozenset(f"{name}={value}" for name in ("GIT_EDITOR", "GIT_SEQUENCE_EDITOR") for value in ("true", ":"))


def only_moves(commands: list[list[str]]) -> bool:
    """Whether a line moves between committed versions, and does nothing else that could change a file.

    `commands` are its simple commands with their leading assignments; `line_only_moves` finds them in a text.
    """
    moves = False
    for words in commands:
        kind = _kind(words)
        if not kind:
            return False
        moves = moves or kind == "moves"
    return moves


def line_only_moves(line: str) -> bool:
    """The same for a command line, with its assignments, substitutions and redirections."""
    from fusewire.shell.parser import parse

    commands: list[list[str]] = []
    return _collect(parse(line), commands) and only_moves(commands)


def _collect(node: Node, commands: list[list[str]]) -> bool:
    """Add the simple commands of a node; False if it has something else in it."""
    from fusewire.shell import tree

    if any(not _is_harmless(redirect) for redirect in node.redirects):
        return False
    if isinstance(node, tree.Simple):
        given = [*node.words, *(value for _, _, value in node.assignments if not isinstance(value, list))]
        if len(given) < len(node.words) + len(node.assignments) or not node.words:
            return False
        words = [f"{name}={_text(value)}" for name, _, value in node.assignments if not isinstance(value, list)]
        commands.append(words + [_text(word) for word in node.words])
        return all(_collect_substituted(word, commands) for word in given)
    if isinstance(node, tree.Sequence):
        return all(_collect(inner, commands) for inner, _ in node.items)
    if isinstance(node, tree.AndOr):
        return all(_collect(inner, commands) for inner in (node.first, *(other for _, other in node.rest)))
    if isinstance(node, tree.Pipeline):
        return all(_collect(inner, commands) for inner in node.commands)
    return isinstance(node, tree.Group) and _collect(node.body, commands)


def _collect_substituted(word: Word, commands: list[list[str]]) -> bool:
    """The same for `$(...)` in a word; a plain variable has no command in it."""
    from fusewire.shell.tree import COMMAND, PARAMETER, QUOTED, TEXT

    for part in word if not isinstance(word, str) else ():
        if part[0] == COMMAND:
            if not _collect(part[1], commands):
                return False
        elif part[0] not in (TEXT, QUOTED) and (part[0] != PARAMETER or part[2]):
            return False
    return True


def _is_harmless(redirect: Redirect) -> bool:
    """Whether a redirection reads, or writes nowhere."""
    return isinstance(redirect.target, str) and (
        redirect.operator[:1] == "<" or redirect.target in ("/dev/null", "1", "2")
    )


def _text(word: Word) -> str:
    """A word as it stands; NUL is in it where a shell puts something else in its place."""
    from fusewire.shell.tree import QUOTED, TEXT

    if isinstance(word, str):
        return word
    return "".join(part[1] if part[0] in (TEXT, QUOTED) else "\0" for part in word)


def _kind(words: list[str]) -> str:
    """ "moves", "looks", or "" for everything else."""
    at = 0
    while at < len(words) and (words[at].startswith(_VARIABLES) or words[at] in _EDITORS):
        at += 1
    words = words[at:]
    name = words[0].rsplit("/", 1)[-1] if words else ""
    if name in _LOOKING:
        return "looks"
    if words[:3] == ["gh", "pr", "checkout"]:
        return "moves"
    return _git_kind(words[1:]) if name == "git" else ""


def _git_kind(words: list[str]) -> str:
    rest = _behind_globals(words)
    if not rest:
        return ""
    name, args = rest[0], rest[1:]
    options = [word for word in args[: args.index("--") if "--" in args else None] if word[:1] == "-"]
    if any(word.startswith(_RUNS) for word in options):
        return ""
    if name in _HARMLESS:
        return "" if name == "grep" and any(word[:2] == "-O" for word in options) else "looks"
    if name in _MOVING:
        return _moving_kind(name, args, options)
    verb = next((word for word in args if word[:1] != "-"), "")
    if name == "reset":
        return "moves" if {"--hard", "--merge", "--keep"} & set(options) else "looks"
    if name == "restore":
        return "looks" if options in (["-S"], ["--staged"]) else ""
    if name == "stash":
        return "moves" if verb in _STASH or not args or args[0][:1] == "-" else ""
    if (name == "bisect" and verb in _BISECT) or (name == "lfs" and verb in _LFS):
        return "moves"
    return "looks" if name == "worktree" and verb == "list" else ""


def _moving_kind(name: str, args: list[str], options: list[str]) -> str:
    if name == "rebase" and any(word[:2] == "-x" for word in options):
        return ""
    if name == "checkout" and args:
        # single files in another version: what they replace may be nowhere else
        first = next((word for word in args if word[:1] != "-" or word in ("-", "--")), "")
        if "--" in args or first in (".", "..") or first.startswith((":", "./", "../", "*")) or first.endswith("/"):
            return ""
    return "moves"


def _behind_globals(words: list[str]) -> list[str]:
    """The command with its words; nothing if an option in front of it could change what git does."""
    at = 0
    while at < len(words) and words[at][:1] == "-":
        if words[at] == "-c" and not "".join(words[at + 1 : at + 2]).lower().startswith(_SETTINGS):
            return []
        if words[at] in _GLOBAL_VALUED:
            at += 1
        elif words[at] not in _GLOBALS:
            return []
        at += 1
    return words[at:]

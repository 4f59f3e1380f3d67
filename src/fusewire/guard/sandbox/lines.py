"""Decides how much of ring one a command line gets: all of it, writable documents, or none.

Git commands that move between committed versions need the documents writable: with them read-only git would stop
half-way. Programs that are set-uid do not work in a sandbox at all. Both are recognised only where the line shows them
plainly; whatever is in doubt runs inside. The shell reader is not needed for it, because a process is started for every
command, and it would have to load the reader first.
"""

from __future__ import annotations

import os

#: Everything protected is read-only; documents are writable; nothing is read-only.
INSIDE, DOCUMENTS, OUTSIDE = "inside", "documents", "outside"

#: Programs that need more rights than their user has: set-uid themselves, or by way of `newuidmap` and `fusermount`.
_NEEDS_RIGHTS = frozenset(
    (
        "sudo sudoedit su doas pkexec podman buildah fusermount fusermount3 newuidmap newgidmap sshfs "
        "ping mount umount passwd crontab at newgrp sg chsh chfn"
    ).split()
)

#: What stands before the program that is meant.
_WRAPPERS = frozenset("builtin command env exec nice nohup setsid stdbuf time timeout".split())

#: Git commands that replace the tree by a committed one (decision 33), and those that leave it alone.
_MOVES = frozenset("am bisect checkout cherry-pick clone merge pull rebase reset revert stash switch worktree".split())
_STAYS = frozenset(
    (
        "add blame branch commit config describe diff fetch log ls-files ls-remote merge-base push reflog remote "
        "rev-list rev-parse shortlog show status symbolic-ref tag"
    ).split()
)

#: Commands beside them that change no file.
_HARMLESS = frozenset("cat cd cut date echo false grep head ls printf pwd sleep sort tail test true uniq wc".split())

#: Words by which a git command runs another program.
_RUNS = ("-x", "--exec", "run", "--upload-pack", "--config")

#: Redirections that write no file.
_SILENT = ("2>&1", ">/dev/null", "> /dev/null", "2>/dev/null", "2> /dev/null", "&>/dev/null", "&> /dev/null")


def share(line: str, outside: tuple[str, ...] = (), cwd: str = ".") -> str:
    """Which part of ring one a command line gets; `outside` are the commands that a person lets out of it."""
    for quiet in _SILENT:
        line = line.replace(quiet, " ")
    commands, plain = _commands(line)
    if any(_needs_rights(words) or _is_let_out(words, outside) for words in commands) or _only_ours(commands, line):
        return OUTSIDE
    if not plain or "git" not in line:
        return INSIDE
    kinds = {_git(words, cwd) if words[0] == "git" else words[0] in _HARMLESS for words in commands}
    return DOCUMENTS if "moves" in kinds and False not in kinds else INSIDE


def _only_ours(commands: list[list[str]], line: str) -> bool:
    """Whether a line only speaks to Fusewire, which keeps its state in files that are read-only inside."""
    ours = [words[0].rpartition("/")[2] == "fusewire" or words[1:3] == ["-m", "fusewire"] for words in commands]
    others = [words for words, is_ours in zip(commands, ours, strict=True) if not is_ours]
    return any(ours) and ">" not in line and all(words[0] in _HARMLESS for words in others)


def _needs_rights(words: list[str]) -> bool:
    """Whether the program of a command, behind assignments and wrappers, cannot work inside."""
    if _NEEDS_RIGHTS.isdisjoint(word.rpartition("/")[2] for word in words):
        return False
    for word in words:
        name = word.rpartition("/")[2]
        if name in _NEEDS_RIGHTS:
            return True
        if name not in _WRAPPERS and word[:1] != "-" and "=" not in word and not word[:1].isdigit():
            return False
    return False


def _is_let_out(words: list[str], outside: tuple[str, ...]) -> bool:
    from fusewire.globs import matches

    for pattern in outside:
        wanted = pattern.split()
        if wanted and len(words) >= len(wanted) and all(map(matches, words, wanted)):
            return True
    return False


def _git(words: list[str], cwd: str) -> str | bool:
    """`moves` if the command goes to a committed version, True if it leaves the tree alone, False for anything else."""
    at = 1
    while at < len(words) and words[at][:1] == "-":
        if words[at] == "-C":
            cwd = os.path.join(cwd, words[at + 1]) if at + 1 < len(words) else cwd
        elif words[at] == "-c":
            if not "".join(words[at + 1 : at + 2]).startswith(("user.", "color.", "advice.")):
                return False
        elif words[at] not in ("--no-pager", "-P"):
            return False
        at += 2 if words[at] in ("-C", "-c") else 1
    name, rest = "".join(words[at : at + 1]), words[at + 1 :]
    if name in _STAYS:
        return True
    if name not in _MOVES or any(word.partition("=")[0] in _RUNS for word in rest):
        return False
    if name in ("checkout", "reset") and ("--" in rest or _names_files(rest, cwd)):
        return False
    return "moves"


def _names_files(rest: list[str], cwd: str) -> bool:
    """Whether `git checkout` or `git reset` is given files: these are overwritten, whatever is in them."""
    names = [word for word in rest if word[:1] != "-"]
    is_new = any(word in ("-b", "-B", "--orphan") for word in rest)
    return any(os.path.lexists(os.path.join(cwd, name)) for name in names) or (len(names) > 1 and not is_new)


def _commands(line: str) -> tuple[list[list[str]], bool]:
    """The simple commands of a line, and whether that is all there is to it: no expansion, no redirection, no block."""
    head, heredoc, _ = line.partition("<<")  # what follows is data, at least up to its mark
    plain = not heredoc
    commands: list[list[str]] = [[]]
    word: str | None = None
    quote = ""
    escaped = False
    for char in head:
        if escaped or (quote and char != quote and (char != "\\" or quote == "'")):
            plain = plain and not (quote == '"' and char in "$`" and not escaped)
            word, escaped = (word or "") + char, False
        elif char == "\\":
            escaped = True
        elif char in "'\"":
            quote, word = "" if quote else char, word or ""
        elif char in " \t\n;&|(){}`<>$*?[~#!":
            if word is not None and char not in "$*?[~#!":
                commands[-1].append(word)
                word = None
            if char in "\n;&|(){}`":
                commands.append([])
            plain = plain and char in " \t\n;&|"
        else:
            word = (word or "") + char
    if word is not None:
        commands[-1].append(word)
    return [words for words in commands if words], plain and not quote and not escaped

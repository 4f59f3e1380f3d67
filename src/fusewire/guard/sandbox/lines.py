"""Decides how much of ring one a command line gets: all of it, writable documents, or none.

Git commands that move between committed versions need the documents writable: with them read-only git would stop
half-way. Programs that are set-uid do not work in a sandbox at all. Both are recognised only where the line shows them
plainly; whatever is in doubt runs inside. The shell reader is not needed for it, because a process is started for every
command, and it would have to load the reader first.
"""

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

#: Words of which a line has one if it moves between committed versions (decision 33).
_MOVING = tuple("am bisect checkout cherry-pick lfs merge pull rebase reset restore revert stash switch".split())

#: Commands beside ours that change no file.
_HARMLESS = frozenset("cat cd cut date echo false grep head ls printf pwd sleep sort tail test true uniq wc".split())

#: Redirections that write no file.
_SILENT = ("2>&1", ">/dev/null", "> /dev/null", "2>/dev/null", "2> /dev/null", "&>/dev/null", "&> /dev/null")


def share(line: str, outside: "tuple[str, ...]" = ()) -> str:
    """Which part of ring one a command line gets; `outside` are the commands that a person lets out of it."""
    text = line
    for quiet in _SILENT:
        text = text.replace(quiet, " ")
    commands, plain = _commands(text)
    if any(_needs_rights(words) or _is_let_out(words, outside) for words in commands) or _only_ours(commands, text):
        return OUTSIDE
    if "git" not in line or not any(word in line for word in _MOVING):
        return INSIDE
    from fusewire.guard.programs.git_moves import line_only_moves, only_moves

    return DOCUMENTS if (only_moves(commands) if plain else line_only_moves(line)) else INSIDE


def _only_ours(commands: "list[list[str]]", line: str) -> bool:
    """Whether a line only speaks to Fusewire, which keeps its state in files that are read-only inside."""
    ours = [words[0].rpartition("/")[2] == "fusewire" or words[1:3] == ["-m", "fusewire"] for words in commands]
    others = [words for words, is_ours in zip(commands, ours, strict=True) if not is_ours]
    return any(ours) and ">" not in line and all(words[0] in _HARMLESS for words in others)


def _needs_rights(words: "list[str]") -> bool:
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


def _is_let_out(words: "list[str]", outside: "tuple[str, ...]") -> bool:
    if not outside:
        return False
    from fusewire.globs import matches

    for pattern in outside:
        wanted = pattern.split()
        if wanted and len(words) >= len(wanted) and all(map(matches, words, wanted)):
            return True
    return False


def _commands(line: str) -> "tuple[list[list[str]], bool]":
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

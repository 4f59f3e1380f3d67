"""Decide how much of ring one a command line gets: all of it, writable documents, or none.

Git needs the documents writable where it moves between committed versions: with them read-only it would stop half-way.
A commit needs them too, for the hooks of the project that format what is committed. What else such a line does to
documents is left to the reader and the snapshot. Set-uid programs do not work in a sandbox at all. The shell reader is
not used for this, because a process is started for every command, and it would have to load the reader first.
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

#: Git commands that never take a document from one version to another. Whatever is not here may be an alias.
_STAYS = frozenset(
    (
        "add annotate apply archive blame branch bundle cat-file check-ignore clean clone config "
        "count-objects describe diff difftool fetch format-patch fsck gc grep help init log ls-files "
        "ls-remote ls-tree maintenance merge-base mv name-rev notes push range-diff reflog remote rev-list "
        "rev-parse rm shortlog show show-branch show-ref status symbolic-ref tag update-index version "
        "whatchanged worktree"
    ).split()
)

#: Commands beside ours that change no file.
_HARMLESS = frozenset("cat cd cut date echo false grep head ls printf pwd sleep sort tail test true uniq wc".split())


def share(line: str, outside: "tuple[str, ...]" = ()) -> str:
    """Which part of ring one a command line gets; `outside` are the commands that a person lets out of it."""
    head = line.partition("<<")[0]  # what follows is data, at least up to its mark
    commands = [_behind_wrappers(words) for words in simple_commands(head)]
    programs = [words[0].rpartition("/")[2] for words in commands if words]
    if not _NEEDS_RIGHTS.isdisjoint(programs) or any(_is_let_out(words, outside) for words in commands):
        return OUTSIDE
    if _only_ours(commands, line):
        return OUTSIDE
    return DOCUMENTS if any(map(_may_move, commands)) else INSIDE


def _behind_wrappers(words: "list[str]") -> "list[str]":
    """A command without the assignments and the programs in front of it."""
    for at, word in enumerate(words):
        is_name = word[:1] != "-" and "=" not in word and not word[:1].isdigit()
        if is_name and word.rpartition("/")[2] not in _WRAPPERS:
            return words[at:]
    return []


def _may_move(words: "list[str]") -> bool:
    if words[:3] == ["gh", "pr", "checkout"]:
        return True
    if not words or words[0].rpartition("/")[2] != "git":
        return False
    at = 1
    while at < len(words) and words[at][:1] == "-":
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree") else 1
    return at < len(words) and words[at] not in _STAYS


def _only_ours(commands: "list[list[str]]", line: str) -> bool:
    """Whether a line only speaks to Fusewire, which keeps its state in files that are read-only inside."""
    commands = [words for words in commands if words]
    ours = [words[0].rpartition("/")[2] == "fusewire" or words[1:3] == ["-m", "fusewire"] for words in commands]
    others = [words for words, is_ours in zip(commands, ours, strict=True) if not is_ours]
    return any(ours) and ">" not in line and all(words[0] in _HARMLESS for words in others)


def _is_let_out(words: "list[str]", outside: "tuple[str, ...]") -> bool:
    if not outside:
        return False
    from fusewire.util.globs import matches

    for pattern in outside:
        wanted = pattern.split()
        if wanted and len(words) >= len(wanted) and all(map(matches, words, wanted)):
            return True
    return False


def simple_commands(line: str) -> "list[list[str]]":
    """The simple commands of a line, also those of its substitutions; expansions are left out of their words."""
    commands: list[list[str]] = [[]]
    word: str | None = None
    quote = ""
    escaped = False
    for char in line:
        if escaped or (quote and char != quote and (char != "\\" or quote == "'")):
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
        else:
            word = (word or "") + char
    if word is not None:
        commands[-1].append(word)
    return [words for words in commands if words]

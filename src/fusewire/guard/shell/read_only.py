"""List the programs that change no file: the one table for the guard, the hook and the detectors."""

from __future__ import annotations

#: They change no file, whatever their words are.
LOOKING = frozenset(
    (
        "[ basename cat cd cksum cmp comm cut df diff dir dirname du echo egrep expr false fgrep file fold free grep"
        " head hexdump hostname id jq join less ls md5sum more nl nproc od paste printenv printf ps pwd readlink"
        " realpath seq sha1sum sha256sum sleep stat strings tac tail test top tr true type uname uptime wc which whoami"
    ).split()
)

#: Subcommands of git that leave the files of the project as they are.
GIT_LOOKING = frozenset("add blame branch describe diff grep log ls-files rev-parse shortlog show status tag".split())

#: Those that run no program either: a difference may be made by one that the configuration names.
_GIT_ALONE = frozenset("branch describe log ls-files rev-parse shortlog status tag".split())

#: How the options begin with which a program that looks writes a file or runs another program.
_NOT_LOOKING = {
    "date": ("-s", "--s"),
    "find": ("-de", "-ex", "-ok", "-fp", "-fl"),
    "git": ("-p", "-u", "-S", "-G", "-L", "-c", "-m", "--cc", "--ext", "--ou", "--pat", "--remerge", "--te"),
    "less": ("-", "+"),
    "more": ("-", "+"),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("-o", "--o", "--co", "-T"),
    "tree": ("-o", "--o"),
}

#: Commands of the shell that matter to nothing but the shell itself.
_SHELL = frozenset(": break continue exit popd pushd read return set shift wait".split())


def looks(words: list[str], unknown: str = "\0") -> bool:
    """Whether a simple command changes no file and runs no other program; `unknown` stands for an expansion."""
    name = words[0].removeprefix("/usr").removeprefix("/bin/")
    if name == "sed":
        return words[1:2] == ["-n"] and len(words) > 2 and not words[2].strip("0123456789,p$;")
    if name == "uniq":
        return sum(word[:1] != "-" for word in words) <= 2  # a second file is written
    if name == "git":
        at = 3 if words[1:2] == ["-C"] else 2 if words[1:2] == ["--no-pager"] else 1
        if "".join(words[at : at + 1]) not in _GIT_ALONE:
            return False
        words = words[at:]
    starts = _NOT_LOOKING.get(name)
    if starts is None:
        return name in LOOKING or name in _SHELL
    return not any(word.startswith((*starts, unknown)) or "{" in word for word in words[1:])

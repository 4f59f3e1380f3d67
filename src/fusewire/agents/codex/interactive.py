"""Refuse commands that do something later which no hook sees: input typed into a program that already runs."""

from __future__ import annotations

from fusewire.core.decision import Decision
from fusewire.guard.shell.wrappers import SHELLS, program

#: Programs that read from the terminal if they are given nothing to run.
_WAITING = SHELLS | frozenset("fish python python3 ipython node irb php lua perl ruby psql sqlite3 mysql".split())

#: Options with which they still do.
_IDLE = frozenset(
    "-i -l -il -li -s -q -u -B -E -I -S -O -x -a -f -d - /dev/stdin /dev/tty --login --interactive --norc --noprofile"
    " --posix --no-rcs --quiet --noediting --simple-prompt --no-banner".split()
)

#: And those of them that have a value.
_VALUED = ("--rcfile", "--init-file")

#: Programs that start a shell unless an option names a command, and those options.
_SHELLING = {"script": ("-c", "--command"), "su": ("-c", "--command")}

_RULE = "fusewire.unseen"

_PATCH = "apply_patch"

#: All that has to be looked at more closely.
_NAMES = _WAITING | frozenset((*_SHELLING, "sudo", _PATCH))


def check_unseen(line: str, commands: list[list[str]]) -> Decision | None:
    """Refuse a line that leads to something which no hook is shown.

    `commands` is what the line would run.
    """
    for words in commands:
        name = program(words)
        if _waits(words) and not _is_fed(line, name):
            reason = f"`{name}` would wait for what is typed into it, and no hook is shown that"
            step = "give it the commands in the line itself, or in a file"
            return Decision("deny", rule=_RULE, reason=reason, next=(step,))
        if name == _PATCH and "*** Begin Patch" not in line:
            step = "use the apply_patch tool, or put the patch in the line"
            return Decision("deny", rule=_RULE, reason="what the patch changes is not in the line", next=(step,))
    return None


def may_be_unseen(line: str) -> bool:
    """A quick look: whether the line has to be read for it at all."""
    for mark in ";&|()`'\"\n":
        line = line.replace(mark, " ")
    names = (word.rpartition("/")[2] for word in line.split())
    return any(name in _NAMES or name.startswith("python3.") for name in names) or "$" in line


def _waits(words: list[str]) -> bool:
    name = program(words)
    rest = words[1:]
    if name in _SHELLING:
        runs = _SHELLING[name]
        return not any(word.partition("=")[0] in runs or (word[:1] == "-" and word.endswith("c")) for word in rest)
    if name == "sudo":
        return bool(rest) and all(word in ("-i", "-s", "--login", "--shell") for word in rest)
    if name not in _WAITING and not name.startswith("python3."):
        return False
    values = {at + 1 for at, word in enumerate(rest) if word in _VALUED}
    return all(word in _IDLE or word in _VALUED or at in values for at, word in enumerate(rest))


def _is_fed(line: str, name: str) -> bool:
    """Whether it reads what the line itself gives it."""
    before, _, behind = line.replace("||", "&&").partition(name)
    return "|" in before or "<" in behind

"""Commands that do something later which no hook is shown: on Codex, what is typed into a program that already runs."""

from __future__ import annotations

from fusewire.wrappers import SHELLS

#: Programs that wait for somebody to type, if they are given nothing to run.
_WAITING = SHELLS | frozenset("fish python python3 ipython node irb php lua perl ruby psql sqlite3 mysql".split())

_PATCH = "apply_patch"


def unseen(line: str) -> str:
    """Why nobody could see what the line leads to, and what to do instead; empty if there is nothing hidden."""
    words = line.split()
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name in _WAITING and all(word in ("-i", "-l", "-il", "-li", "--login", "--interactive") for word in words[1:]):
        return (
            f"`{name}` would wait for what is typed into it, and no hook is shown that.\n"
            "Next: give it the commands in the line itself, or in a file."
        )
    if name == _PATCH and "*** Begin Patch" not in line:
        return (
            "what the patch changes is not in the line.\nNext: use the apply_patch tool, or put the patch in the line."
        )
    return ""

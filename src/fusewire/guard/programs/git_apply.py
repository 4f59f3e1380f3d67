"""git apply: the files that a patch is about, as git itself reads them from it."""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE, WRITE
from fusewire.guard.programs.git_words import Words, unquoted
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_repo import Repo

    Command = Callable[[Call, Repo, list[str]], None]

_APPLY = (
    "check stat numstat summary apply cached index reverse directory= include= exclude= 3way reject"
    " build-fake-ancestor= whitespace= unidiff-zero recount allow-empty"
)


def _apply(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "pC", _APPLY)
    shows = options.has("check", "stat", "numstat", "summary") and not options.has("apply")
    if shows or options.has("cached"):
        return
    words = ["--check"] * (not options.has("reject", "3way", "3") and call.walk.pristine)
    words += [f"-p{value}" for value in options.all("p")] + ["-R"] * options.has("R", "reverse")
    for name in ("directory", "include", "exclude"):
        words += [f"--{name}={value}" for value in options.all(name)]
    for place in options.named or ["-"]:
        text = call.world.stdin if place == "-" else _patch_text(call, repo.path(place))
        if text is None or UNKNOWN in text or not repo.top:
            call.effect(WRITE, f"{repo.top or repo.folder}/{UNKNOWN}", rule=repo.rule)
            continue
        listed = repo.ask("apply", "--numstat", "-z", *words, "-", stdin=text) if text else ""
        repo.loses(WRITE, (entry.split("\t", 2)[2] for entry in (listed or "").split("\0") if entry))
        if listed and "\nrename " in text:
            left = "\nrename to " if options.has("R", "reverse") else "\nrename from "
            repo.loses(DELETE, (unquoted(part.partition("\n")[0]) for part in text.split(left)[1:]))


def _patch_text(call: Call, path: str) -> str | None:
    text = call.walk.read_file(path)
    if text is not None or UNKNOWN in path:
        return text
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(8 * 1024 * 1024)
    except (OSError, ValueError):
        return None if os.path.isdir(path) else ""


COMMANDS: dict[str, Command] = {"apply": _apply}

"""The git commands that write files of their own choice: archives, patches, settings, other repositories."""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.guard.programs.git_state import line_variable, setting_key, variable
from fusewire.guard.programs.git_words import Words, quoted
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Repo

    Command = Callable[[Call, Repo, list[str]], None]


def _config(call: Call, repo: Repo, args: list[str]) -> None:
    longs = "file= global system local worktree get get-all get-regexp get-urlmatch list edit unset unset-all add"
    options = Words(
        args, "ft", f"{longs} replace-all rename-section remove-section type= default= blob= get-color get-colorbool"
    )
    names = options.named
    new_style = names[:1] and names[0] in ("set", "unset", "get", "list", "edit", "rename-section", "remove-section")
    if new_style:
        verb, names = names[0], names[1:]
        options.flags.add(verb)
    reading = ("get", "get-all", "get-regexp", "get-urlmatch", "list", "l", "get-color", "get-colorbool", "blob")
    if options.has(*reading) or not (names or options.has("edit", "e")):
        return
    if len(names) < 2 and not options.has("unset", "unset-all", "remove-section", "edit", "e"):
        return  # only one name: it is asked for
    place = options.value("f", "file") or line_variable(call, "GIT_CONFIG")
    if options.has("global"):
        place = f"{variable(call, 'HOME') or '~'}/.gitconfig"
    elif options.has("system"):
        place = "/etc/gitconfig"
    if place:
        call.effect(WRITE, repo.path(place), rule=repo.rule)
    if len(names) > 1 and not options.has("unset", "unset-all", "remove-section", "rename-section"):
        repo.line.settings[setting_key(names[0])] = names[1]


def _writes(valued: str, longs: str, *names: str) -> Command:
    """Commands with an option that names a file to be written."""

    def command(call: Call, repo: Repo, args: list[str]) -> None:
        for value in Words(args, valued, longs).all(*names):
            call.effect(WRITE, repo.path(value), rule=repo.rule)

    return command


def _bundle(call: Call, repo: Repo, args: list[str]) -> None:
    names = Words(args, "", "version=").named
    if names[:1] == ["create"] and len(names) > 1 and names[1] != "-":
        call.effect(WRITE, repo.path(names[1]), rule=repo.rule)


def _format_patch(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "o", "output-directory= output= stdout", "v")
    if options.value("output") is not None:
        call.effect(WRITE, repo.path(options.value("output") or ""), rule=repo.rule)
    elif not options.has("stdout"):
        folder = options.value("o", "output-directory") or "."
        call.effect(WRITE, repo.path(f"{folder}/{UNKNOWN}.patch"), rule=repo.rule)


def _init(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "b", "template= separate-git-dir= object-format= initial-branch= shared? bare quiet")
    folder = options.named[0] if options.named else "."
    repo.line.made.add(normal(repo.path(folder)))
    inside = folder if options.has("bare") else f"{folder}/.git"
    if not call.disk.exists(repo.path(inside)) or options.has("bare"):
        call.effect(WRITE, repo.path(inside), rule=repo.rule)
    if options.value("separate-git-dir"):
        call.effect(WRITE, repo.path(options.value("separate-git-dir") or ""), rule=repo.rule)


def _clone(call: Call, repo: Repo, args: list[str]) -> None:
    longs = (
        "origin= branch= upload-pack= reference= reference-if-able= separate-git-dir= depth= template= config= jobs="
    )
    options = Words(
        args, "obucj", f"{longs} filter= shallow-since= shallow-exclude= server-option= bundle-uri= bare mirror"
    )
    names = options.named
    if not names:
        return
    url = names[0].rstrip("/").removesuffix("/.git")
    folder = names[1] if len(names) > 1 else url.rsplit("/", 1)[-1].rsplit(":", 1)[-1].removesuffix(".git")
    path = repo.path(folder)
    if not call.disk.exists(path) or call.disk.is_empty(path):
        call.effect(WRITE, path, rule=repo.rule)
        call.disk.made_folder(normal(path))
        call.world.status = True


def _scripts(valued: str, longs: str, *names: str) -> Command:
    """Commands with options whose value is a command."""

    def command(call: Call, repo: Repo, args: list[str]) -> None:
        for text in Words(args, valued, longs).all(*names):
            call.script(text, cwd=repo.top or repo.folder)

    return command


def _submodule(call: Call, repo: Repo, args: list[str]) -> None:
    given = [word for word in args if word not in ("--recursive", "-q", "--quiet")]
    if given[:1] == ["foreach"]:
        text = given[1] if len(given) == 2 else " ".join(quoted(word) for word in given[1:])
        call.script(text, cwd=repo.top or repo.folder)
    elif given[:1] == ["add"]:
        names = Words(given[1:], "b", "branch= name= reference= depth=").named
        if len(names) > 1:
            call.effect(WRITE, repo.path(names[1]), rule=repo.rule)


def _subtree(call: Call, repo: Repo, args: list[str]) -> None:
    """It brings another repository into a folder."""
    folder = Words(args, "Pm", "prefix= message=").value("P", "prefix")
    if folder and args[0] in ("add", "merge", "pull"):
        call.effect(WRITE, f"{repo.top or repo.folder}/{folder}", recursive=True, rule=repo.rule)


def _interpret_trailers(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "", "in-place trailer= where= if-exists= if-missing=")
    for name in options.named if options.has("in-place") else []:
        call.effect(WRITE, repo.path(name), rule=repo.rule)


def _pack_objects(call: Call, repo: Repo, args: list[str]) -> None:
    for name in Words(args, "", "stdout window= depth= threads=").operands[:1]:
        call.effect(WRITE, repo.path(f"{name}-{UNKNOWN}"), rule=repo.rule)


def _merge_file(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "L", "stdout marker-size=")
    if options.named and not options.has("p", "stdout", "object-id"):
        call.effect(WRITE, repo.path(options.named[0]), rule=repo.rule)


def _mailinfo(call: Call, repo: Repo, args: list[str]) -> None:
    for name in Words(args, "", "encoding=").named[:2]:
        call.effect(WRITE, repo.path(name), rule=repo.rule)


_OUTPUT = _writes("", "output=", "output")

COMMANDS: dict[str, Command] = {
    "archive": _writes("o", "output=", "o", "output"),
    "bundle": _bundle,
    "clone": _clone,
    "config": _config,
    "credential-store": _writes("", "file=", "file"),
    "bugreport": _writes("os", "output-directory= suffix=", "o", "output-directory"),
    "diagnose": _writes("os", "output-directory= suffix= mode=", "o", "output-directory"),
    "diff": _OUTPUT,
    "diff-files": _OUTPUT,
    "diff-index": _OUTPUT,
    "diff-tree": _OUTPUT,
    "difftool": _scripts("xtg", "extcmd= tool=", "x", "extcmd"),
    "fast-export": _writes("", "export-marks=", "export-marks"),
    "fast-import": _writes("", "export-marks= export-pack-edges=", "export-marks", "export-pack-edges"),
    "filter-branch": _scripts(
        "",
        "tree-filter= index-filter= env-filter= parent-filter= msg-filter= commit-filter= tag-name-filter= setup=",
        *("tree-filter", "index-filter", "env-filter", "parent-filter", "msg-filter", "commit-filter", "setup"),
    ),
    "format-patch": _format_patch,
    "init": _init,
    "index-pack": _writes("o", "", "o"),
    "interpret-trailers": _interpret_trailers,
    "log": _OUTPUT,
    "mailinfo": _mailinfo,
    "mailsplit": _writes("o", "", "o"),
    "merge-file": _merge_file,
    "pack-objects": _pack_objects,
    "range-diff": _OUTPUT,
    "reflog": _OUTPUT,
    "rev-list": _OUTPUT,
    "shortlog": _OUTPUT,
    "show": _OUTPUT,
    "submodule": _submodule,
    "subtree": _subtree,
    "whatchanged": _OUTPUT,
}

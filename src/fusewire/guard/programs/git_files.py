"""The git commands that write files of their own choice: archives, patches, settings, other repositories."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, MOVE, WRITE
from fusewire.guard.programs.git_repo import is_among, line_variable, setting_key, variable
from fusewire.guard.programs.git_words import Words
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_repo import Repo

    Command = Callable[[Call, Repo, list[str]], None]


def _config(call: Call, repo: Repo, args: list[str]) -> None:
    longs = "file= global system local worktree get get-all get-regexp get-urlmatch list edit unset unset-all add"
    options = Words(args, "ft", f"{longs} replace-all rename-section remove-section type= default= blob= get-color")
    names = options.named
    if names[:1] and names[0] in ("set", "unset", "get", "list", "edit", "rename-section", "remove-section"):
        options.flags.add(names[0])
        names = names[1:]
    takes_away = ("unset", "unset-all", "remove-section", "rename-section")
    if options.has("get", "get-all", "get-regexp", "get-urlmatch", "list", "l", "get-color", "blob"):
        return
    if len(names) < 2 and not options.has(*takes_away, "edit", "e"):
        return  # only one name: it is asked for
    place = options.value("f", "file") or line_variable(call, "GIT_CONFIG")
    if options.has("global"):
        place = f"{variable(call, 'HOME') or '~'}/.gitconfig"
    elif options.has("system"):
        place = "/etc/gitconfig"
    if place:
        call.effect(WRITE, repo.path(place), rule=repo.rule)
    if len(names) > 1 and not options.has(*takes_away):
        repo.line.settings[setting_key(names[0])] = names[1]


def _writes(valued: str, *longs: str) -> Command:
    """Commands with options that name a file or folder to be written."""
    described = " ".join(f"{name}=" for name in longs)

    def command(call: Call, repo: Repo, args: list[str]) -> None:
        for value in Words(args, valued, described).all(*valued, *longs):
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


# -- other repositories and working trees -----------------------------------------------------------------------


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
    names = Words(args, "obucj", f"{longs} filter= shallow-since= shallow-exclude= server-option= bundle-uri=").named
    if names:
        url = names[0].rstrip("/").removesuffix("/.git")
        name = url.rsplit("/", 1)[-1].rsplit(":", 1)[-1].removesuffix(".git")
        _made(call, repo, names[1] if len(names) > 1 else name)
        call.world.status = True


def _made(call: Call, repo: Repo, folder: str) -> None:
    """A folder that git makes, and refuses to if something is in it."""
    path = repo.path(folder)
    if not call.disk.exists(path) or call.disk.is_empty(path):
        call.effect(WRITE, path, rule=repo.rule)
        call.disk.made_folder(normal(path))


def _worktree(call: Call, repo: Repo, args: list[str]) -> None:
    names = Words(args[1:], "bB", "reason= force").named
    verb = args[0] if names else ""
    if verb == "add":
        _made(call, repo, names[0])
    elif verb == "remove":
        call.effect(DELETE, repo.path(names[0]), recursive=True, rule=repo.rule)
    elif verb == "move" and len(names) > 1:
        call.effect(MOVE, repo.path(names[0]), recursive=True, rule=repo.rule)
        call.effect(WRITE, repo.path(names[1]), rule=repo.rule)


def _submodule(call: Call, repo: Repo, args: list[str]) -> None:
    given = [word for word in args if word not in ("--recursive", "-q", "--quiet")]
    verb = given[0] if given else ""
    options = Words(given[1:], "b", "branch= name= reference= depth= force all")
    if verb == "foreach" and call.disk.exists(f"{repo.top or repo.folder}/.gitmodules"):
        call.script(given[1] if len(given) == 2 else " ".join(map(quoted, given[1:])), cwd=repo.top or repo.folder)
    elif verb == "add" and len(options.named) > 1:
        call.effect(WRITE, repo.path(options.named[1]), rule=repo.rule)
    elif verb == "deinit" and options.has("f", "force"):
        for name in options.named:
            call.effect(DELETE, repo.path(name), recursive=True, rule=repo.rule)


def _subtree(call: Call, repo: Repo, args: list[str]) -> None:
    """It brings another repository into a folder."""
    folder = Words(args, "Pm", "prefix= message=").value("P", "prefix")
    if folder and args[0] in ("add", "merge", "pull"):
        call.effect(WRITE, f"{repo.top or repo.folder}/{folder}", recursive=True, rule=repo.rule)


# -- rewriting history ------------------------------------------------------------------------------------------

_OTHER_FILTERS = ("env-filter", "parent-filter", "msg-filter", "commit-filter", "tag-name-filter", "setup")


def _filter_branch(call: Call, repo: Repo, args: list[str]) -> None:
    """What its filters take out of every commit is gone from the working tree too, when it has finished."""
    longs = " ".join(f"{name}=" for name in ("tree-filter", "index-filter", "subdirectory-filter", *_OTHER_FILTERS))
    options = Words(args, "fd", f"{longs} force prune-empty original=")
    top = repo.top or repo.folder
    repo.line.rewrites = True
    for text in options.all("tree-filter", "index-filter"):
        call.script(text, cwd=top)
    repo.line.rewrites = False
    for text in options.all(*_OTHER_FILTERS):
        call.script(text, cwd=f"{top}/.git-rewrite/t")
    for folder in options.all("subdirectory-filter"):
        _keep_only(repo, [folder])


def _filter_repo(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(
        args, "", "path= path-glob= path-regex= subdirectory-filter= to-subdirectory-filter= invert-paths force"
    )
    paths = options.all("path")
    if options.has("invert-paths"):
        for path in paths + options.all("path-glob"):
            call.effect(DELETE, f"{repo.top or repo.folder}/{path}", recursive=True, rule=repo.rule)
    elif paths or options.has("subdirectory-filter", "to-subdirectory-filter"):
        _keep_only(repo, paths)


def _keep_only(repo: Repo, folders: list[str]) -> None:
    places = [f"{repo.top}/{folder.strip('/')}" for folder in folders]
    repo.loses(DELETE, (name for name in repo.tracked() or () if not is_among(f"{repo.top}/{name}", places)))


# -- files that are named ---------------------------------------------------------------------------------------


def _operands(count: int, *unless: str) -> Command:
    """Commands that write their first operands, unless an option is given."""

    def command(call: Call, repo: Repo, args: list[str]) -> None:
        options = Words(args, "L", "stdout marker-size= object-id encoding= in-place")
        for name in options.named[:count] if not options.has(*unless) else ():
            call.effect(WRITE, repo.path(name), rule=repo.rule)

    return command


def _interpret_trailers(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "", "in-place trailer= where= if-exists= if-missing=")
    for name in options.named if options.has("in-place") else ():
        call.effect(WRITE, repo.path(name), rule=repo.rule)


def _difftool(call: Call, repo: Repo, args: list[str]) -> None:
    for text in Words(args, "xtg", "extcmd= tool=").all("x", "extcmd"):
        call.script(text, cwd=repo.top or repo.folder)


_OUTPUT = _writes("", "output")

COMMANDS: dict[str, Command] = {
    **dict.fromkeys("diff diff-files diff-index diff-tree log range-diff reflog rev-list".split(), _OUTPUT),
    **dict.fromkeys("shortlog show whatchanged".split(), _OUTPUT),
    **dict.fromkeys(("bugreport", "diagnose"), _writes("o", "output-directory")),
    "archive": _writes("o", "output"),
    "bundle": _bundle,
    "clone": _clone,
    "config": _config,
    "credential-store": _writes("", "file"),
    "difftool": _difftool,
    "fast-export": _writes("", "export-marks"),
    "fast-import": _writes("", "export-marks", "export-pack-edges"),
    "filter-branch": _filter_branch,
    "filter-repo": _filter_repo,
    "format-patch": _format_patch,
    "index-pack": _writes("o"),
    "init": _init,
    "interpret-trailers": _interpret_trailers,
    "mailinfo": _operands(2),
    "mailsplit": _writes("o"),
    "merge-file": _operands(1, "p", "stdout", "object-id"),
    "pack-objects": _operands(1, "stdout"),
    "submodule": _submodule,
    "subtree": _subtree,
    "worktree": _worktree,
}

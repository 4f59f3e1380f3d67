"""git: its global options, its aliases, the commands that it runs for others, and what it prints.

What its commands do to the working tree is told by `git_tree` and `git_history`.
"""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.guard.programs import git_history, git_tree
from fusewire.guard.programs.git_state import Repo, Words, words
from fusewire.shell.expansion import VALUE_LIMIT
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call, Program

    Command = Callable[[Call, Repo, list[str]], None]

#: Aliases of aliases that are followed.
_ALIASES = 10

_VALUED_GLOBALS = ("--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source")

_PATHSPEC_GLOBALS = ("--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs")

#: Commands without any effect on files outside of .git, so that nobody looks for an alias of that name.
_QUIET = words(
    "annotate blame branch cat-file check-attr check-ignore check-mailmap check-ref-format cherry commit-graph"
    " commit-tree count-objects credential describe fetch-pack for-each-ref fsck gc get-tar-commit-id help"
    " interpret-trailers ls-files ls-remote ls-tree maintenance merge-base merge-tree mktag mktree multi-pack-index"
    " name-rev notes pack-refs patch-id prune prune-packed reflog remote repack replace rerere rev-list rev-parse"
    " send-pack show-branch show-index show-ref status stripspace tag unpack-objects update-server-info upload-pack"
    " fetch push grep lfs update-index var verify-commit verify-pack verify-tag version write-tree hash-object"
)

#: Settings whose value is a command.
_COMMAND_SETTINGS = words(
    "core.fsmonitor core.pager core.sshcommand core.gitproxy core.askpass core.alternaterefscommand diff.external"
    " gpg.program interactive.difffilter uploadpack.packobjectshook credential.helper sequence.editor"
)
_COMMAND_ENDINGS = (".textconv", ".command", ".cmd", ".driver", ".clean", ".smudge", ".process", ".helper", ".program")

_COMMAND_VARIABLES = (
    *("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS"),
    *("GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR"),
)

_EDITS = words("commit merge revert cherry-pick tag rebase am notes pull")

#: Commands that take a command from the line for the other side, which may be this very machine.
_TRANSPORTS = words("clone fetch pull push ls-remote fetch-pack send-pack archive submodule")


def _git(call: Call) -> None:
    _git_words(call, call.args, [], 0)


def _git_words(call: Call, given: list[str], inherited: list[tuple[str, str]], depth: int) -> None:
    repo, rest = _globals(call, given, inherited)
    if not rest:
        return
    name, args = rest[0], rest[1:]
    repo.command = name
    if _is_alias(call, repo, name, args, depth):
        return
    _traces(call)
    _other_commands(call, repo, name, args)
    command = COMMANDS.get(name)
    if command is not None and not _asks(args):
        command(call, repo, args)
    _hooks(call, repo, name)
    _prints(call, repo, name, args)


def _asks(args: list[str]) -> bool:
    return bool(args) and (args[0] in ("--help", "-h") or "--help" in args)


# -- options before the command ---------------------------------------------------------------------------------


def _globals(call: Call, given: list[str], inherited: list[tuple[str, str]]) -> tuple[Repo, list[str]]:
    """The repository that the global options choose, and the command with its words."""
    folder = call.world.cwd
    options = [f"--{name}={call.path(value)}" for name, value in _places(call)]
    settings = _settings_of_variables(call) + inherited
    at = 0
    while at < len(given) and given[at][:1] == "-":
        word = given[at]
        at += 1
        name, equals, value = word.partition("=")
        if word in ("-C", "-c") or (name in _VALUED_GLOBALS and not equals):
            name, value = word, "".join(given[at : at + 1])
            at += 1
        if name == "-C" and value:
            folder = value if value[:1] == "/" else f"{folder}/{value}"
        elif name == "-c":
            key, _, text = value.partition("=")
            settings.append((_key(key), text))
        elif name == "--config-env":
            key, _, variable = value.rpartition("=")
            settings.append((_key(key), _variable(call, variable) or UNKNOWN))
        elif name in ("--git-dir", "--work-tree") and value:
            options.append(f"{name}={value}")
        elif word in (*_PATHSPEC_GLOBALS, "--bare"):
            options.append(word)
        elif name == "--exec-path" and equals:
            settings.append(("exec-path", value))
    options = [_absolute(word, folder) for word in options]
    return Repo(call, folder, options, settings), given[at:]


def _absolute(word: str, folder: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={folder}/{value}" if value and value[:1] != "/" else word


def _places(call: Call) -> list[tuple[str, str]]:
    """GIT_DIR and GIT_WORK_TREE, if the line sets them; those of the environment reach git by themselves."""
    variables = {"git-dir": "GIT_DIR", "work-tree": "GIT_WORK_TREE"}
    places = [(name, call.world.variables.get(variable)) for name, variable in variables.items()]
    return [(name, value) for name, value in places if isinstance(value, str) and value]


def _key(name: str) -> str:
    """Names of settings do not mind capital letters, but for their middle part."""
    section, _, rest = name.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{last.lower()}"


def _variable(call: Call, name: str) -> str | None:
    value = call.world.variables.get(name, call.walk.environment.get(name))
    return value if isinstance(value, str) else None


def _settings_of_variables(call: Call) -> list[tuple[str, str]]:
    """GIT_CONFIG_COUNT and GIT_CONFIG_PARAMETERS, if the line sets them."""
    variables = call.world.variables
    settings = []
    count = variables.get("GIT_CONFIG_COUNT")
    if isinstance(count, str) and count.isdigit():
        for number in range(min(int(count[:4]), 100)):
            key = _variable(call, f"GIT_CONFIG_KEY_{number}") or ""
            settings.append((_key(key), _variable(call, f"GIT_CONFIG_VALUE_{number}") or ""))
    parameters = variables.get("GIT_CONFIG_PARAMETERS")
    if isinstance(parameters, str):
        for word in git_tree.split_words(parameters):
            key, _, value = word.partition("=")
            settings.append((_key(key), value))
    return settings


# -- aliases ----------------------------------------------------------------------------------------------------


def _is_alias(call: Call, repo: Repo, name: str, args: list[str], depth: int) -> bool:
    """Whether a command is another name for something, which is then followed."""
    folder = repo.setting("exec-path")
    if folder and (
        f"{repo.path(folder)}/git-{name}" in call.walk.files or call.disk.exists(f"{repo.path(folder)}/git-{name}")
    ):
        call.run([f"{repo.path(folder)}/git-{name}", *args])
        return True
    if name in COMMANDS or name in _QUIET or depth >= _ALIASES:
        return False
    text = repo.setting(f"alias.{name.lower()}")
    if text is None:
        text = (repo.ask("config", "--get", f"alias.{name}") or "").rstrip("\n")
    if not text:
        return False
    if text[:1] == "!":
        call.script(f'{text[1:]} "$@"', [text[1:], *args], cwd=repo.top or repo.folder)
        return True
    again = ["-C", repo.folder, *repo.options, *git_tree.split_words(text), *args]
    _git_words(call, again, repo.settings, depth + 1)
    return True


# -- commands that git runs -------------------------------------------------------------------------------------


def _traces(call: Call) -> None:
    """GIT_TRACE=/path: git tells that file what it does."""
    for name, value in call.world.variables.items():
        if name.startswith("GIT_TRACE") and isinstance(value, str) and value[:1] in ("/", UNKNOWN):
            call.effect(WRITE, value, rule="guard.git.trace")


def _other_commands(call: Call, repo: Repo, name: str, args: list[str]) -> None:
    """Settings, variables and options whose value is run by a shell."""
    texts = [value for key, value in repo.settings if key in _COMMAND_SETTINGS or key.endswith(_COMMAND_ENDINGS)]
    texts += [_line_variable(call, variable) for variable in _COMMAND_VARIABLES]
    if name in _TRANSPORTS:
        options = Words(args, "u", "upload-pack= receive-pack= exec=" if name != "archive" else "exec=")
        texts += options.all("upload-pack", "receive-pack", "exec")
        texts += [word[5:].replace("% ", " ") for word in args if word.startswith("ext::")]
    if name == "grep":
        texts += Words(args, "efmABC", "open-files-in-pager?", "O").all("O", "open-files-in-pager")
    for text in texts:
        text = text.removeprefix("!")
        if text and text not in ("true", "false", "0", "1", UNKNOWN):
            call.script(text, cwd=repo.folder)
    if name in _EDITS and _opens_editor(name, args):
        _editor(call, repo)


def _line_variable(call: Call, name: str) -> str:
    value = call.world.variables.get(name)
    return value if isinstance(value, str) else ""


def _opens_editor(name: str, args: list[str]) -> bool:
    options = Words(
        args, "mFCct", "message= file= reuse-message= reedit-message= no-edit edit fixup= template= no-commit", "uS"
    )
    if options.has("no-edit", "abort", "quit", "skip"):
        return False
    if name == "commit" and not options.has("e", "edit", "c", "reedit-message"):
        return not options.has("m", "message", "F", "file", "C", "reuse-message", "fixup")
    return not options.has("m", "message") or options.has("e", "edit")


def _editor(call: Call, repo: Repo) -> None:
    """The editor that the line chooses is run with a file of git's own."""
    variables = [_line_variable(call, name) for name in ("GIT_EDITOR", "VISUAL", "EDITOR")]
    text = variables[0] or repo.setting("core.editor") or variables[1] or variables[2]
    if text:
        call.script(f"{text} .git/COMMIT_EDITMSG", cwd=repo.top or repo.folder)


_HOOKS = {
    "commit": ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    "checkout": ("post-checkout",),
    "switch": ("post-checkout",),
    "merge": ("pre-merge-commit", "post-merge"),
    "pull": ("post-merge",),
    "rebase": ("pre-rebase", "post-rewrite"),
    "push": ("pre-push",),
    "am": ("applypatch-msg", "pre-applypatch", "post-applypatch"),
}


def _hooks(call: Call, repo: Repo, name: str) -> None:
    """Hooks in a folder that the line chooses; those of the repository are somebody's own."""
    folder = repo.setting("core.hookspath")
    if not folder:
        return
    for hook in _HOOKS.get(name, ()):
        path = f"{repo.path(folder) if folder[:1] == '/' else f'{repo.top or repo.folder}/{folder}'}/{hook}"
        if path in call.walk.files or call.disk.exists(path):
            call.run([path])


# -- commands that write elsewhere ------------------------------------------------------------------------------


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
    place = options.value("f", "file") or _line_variable(call, "GIT_CONFIG")
    if options.has("global"):
        place = f"{_variable(call, 'HOME') or '~'}/.gitconfig"
    elif options.has("system"):
        place = "/etc/gitconfig"
    if place:
        call.effect(WRITE, repo.path(place), rule=repo.rule)
    if len(names) > 1 and not options.has("unset", "unset-all", "remove-section", "rename-section"):
        repo.line.settings[_key(names[0])] = names[1]


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


def _scripts(valued: str, longs: str, *names: str) -> Command:
    """Commands with options whose value is a command."""

    def command(call: Call, repo: Repo, args: list[str]) -> None:
        for text in Words(args, valued, longs).all(*names):
            call.script(text, cwd=repo.top or repo.folder)

    return command


def _submodule(call: Call, repo: Repo, args: list[str]) -> None:
    given = [word for word in args if word not in ("--recursive", "-q", "--quiet")]
    if given[:1] == ["foreach"]:
        text = given[1] if len(given) == 2 else " ".join(git_tree.quoted(word) for word in given[1:])
        call.script(text, cwd=repo.top or repo.folder)


def _merge_file(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "L", "stdout marker-size=")
    if options.named and not options.has("p", "stdout", "object-id"):
        call.effect(WRITE, repo.path(options.named[0]), rule=repo.rule)


def _mailinfo(call: Call, repo: Repo, args: list[str]) -> None:
    for name in Words(args, "", "encoding=").named[:2]:
        call.effect(WRITE, repo.path(name), rule=repo.rule)


# -- printing ---------------------------------------------------------------------------------------------------

#: Commands that only print, whatever their options; the others are told apart below.
_PRINTING = words(
    "rev-parse ls-files ls-tree diff diff-tree diff-index diff-files grep show log cat-file merge-base rev-list"
    " for-each-ref name-rev describe status config branch stash remote worktree tag symbolic-ref check-ignore var"
)

_NEVER = (
    "--output",
    "-O",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--filters",
    "--batch",
    "--stdin",
    "--dirty",
    "--broken",
)

#: What makes a command that can also write into one that prints.
_ASKING = {
    "branch": ("--show-current", "--list", "-l", "-a", "-r", "-v", "-vv", "--all", "--remotes"),
    "tag": ("-l", "--list", "--points-at", "--contains", "--merged"),
    "config": ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"),
    "stash": ("list", "show"),
    "remote": ("-v", "get-url", "show"),
    "worktree": ("list",),
    "status": ("--porcelain", "-s", "--short", "-z", "--porcelain=v1", "--porcelain=v2"),
}


def _prints(call: Call, repo: Repo, name: str, args: list[str]) -> None:
    """Run what only prints, so that what reads it can be judged; nobody knows what the others say."""
    call.print(_printed(repo, name, args))


def _printed(repo: Repo, name: str, args: list[str]) -> str:
    if name not in _PRINTING or any(word.startswith(_NEVER) for word in args) or repo.moves.any():
        return UNKNOWN
    asking = _ASKING.get(name)
    if asking is not None and args[:1] and args[0] not in asking:
        return UNKNOWN
    if asking is not None and not args and name != "remote":
        return UNKNOWN
    if name == "symbolic-ref" and len([word for word in args if word[:1] != "-"]) != 1:
        return UNKNOWN
    if name == "symbolic-ref" and ("-d" in args or "--delete" in args or "-m" in args):
        return UNKNOWN
    safely = ["--no-ext-diff", "--no-textconv"] if name in ("diff", "show", "log") else []
    text = repo.ask("--no-pager", name, *safely, *args, limit=VALUE_LIMIT)
    return UNKNOWN if text is None else text


_OUTPUT = _writes("", "output=", "output")

COMMANDS: dict[str, Command] = {
    **git_tree.COMMANDS,
    **git_history.COMMANDS,
    "archive": _writes("o", "output=", "o", "output"),
    "bundle": _bundle,
    "clone": _clone,
    "config": _config,
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
    "log": _OUTPUT,
    "mailinfo": _mailinfo,
    "merge-file": _merge_file,
    "range-diff": _OUTPUT,
    "shortlog": _OUTPUT,
    "show": _OUTPUT,
    "submodule": _submodule,
    "whatchanged": _OUTPUT,
}

PROGRAMS: dict[str, Program] = {"git": _git}

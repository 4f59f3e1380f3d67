"""git: its global options, its aliases, the commands that it runs for others, and what it prints.

What its commands do to files is told by its other modules: `git_tree`, `git_remove`, `git_apply` and `git_files`.
"""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.guard.programs import git_apply, git_files, git_remove, git_tree
from fusewire.guard.programs.git_print import printed
from fusewire.guard.programs.git_repo import Repo, line_variable, setting_key, variable
from fusewire.guard.programs.git_words import Words, split_words, words
from fusewire.paths import normal
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
    " commit-tree count-objects credential describe fetch fetch-pack for-each-ref fsck gc get-tar-commit-id grep"
    " hash-object help lfs ls-files ls-remote ls-tree maintenance merge-base merge-tree mktag mktree multi-pack-index"
    " name-rev notes pack-refs patch-id prune prune-packed push remote repack replace rerere rev-parse send-pack"
    " show-branch show-index show-ref status stripspace tag unpack-objects update-server-info upload-pack var"
    " verify-commit verify-pack verify-tag version write-tree"
)

#: Settings whose value is a command.
_COMMAND_SETTINGS = words(
    "core.fsmonitor core.pager core.sshcommand core.gitproxy core.askpass core.alternaterefscommand diff.external"
    " gpg.program interactive.difffilter uploadpack.packobjectshook credential.helper sequence.editor"
)
_COMMAND_ENDINGS = (".textconv", ".command", ".cmd", ".driver", ".clean", ".smudge", ".process", ".helper", ".program")

_COMMAND_VARIABLES = (
    *("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS"),
    *("GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR", "PAGER"),
)

_EDITS = words("commit merge revert cherry-pick tag rebase am notes pull config branch")

#: Commands that write the index, or remove what is not in it.
_INDEXING = words(
    "add am apply checkout cherry-pick commit merge mv pull read-tree rebase reset restore revert rm stage stash"
    " switch update-index clean"
)

#: Commands that take a command from the line for the other side, which may be this very machine.
_TRANSPORTS = words("clone fetch pull push ls-remote fetch-pack send-pack archive submodule")


def _git(call: Call) -> None:
    written = call.effects.commands[-1][0] if call.effects.commands else call.words
    program = written[0].rsplit("/", 1)[-1]
    _git_words(call, [program[4:], *call.args] if program.startswith("git-") else call.args, [], 0)


def _git_words(call: Call, given: list[str], inherited: list[tuple[str, str]], depth: int) -> None:
    repo, rest = _globals(call, given, inherited)
    if not rest:
        if "--exec-path" in given and call.walk.is_heard:
            call.print(repo.ask("--exec-path") or UNKNOWN)
        return
    name, args = rest[0], rest[1:]
    repo.command = name
    if _is_alias(call, repo, name, args, depth):
        return
    _traces(call)
    index = line_variable(call, "GIT_INDEX_FILE")
    if index and name in _INDEXING:
        call.effect(WRITE, repo.path(index), rule=repo.rule)
    _other_commands(call, repo, name, args)
    command = COMMANDS.get(name)
    if command is not None and not _asks(args):
        repo.line.cut = False
        command(call, repo, args)
        if repo.line.cut and name in _INDEXING:
            repo.may_lose_anything()
        _hooks(call, repo, name)
    call.print(printed(repo, name, args) if call.walk.is_heard else UNKNOWN)


def _asks(args: list[str]) -> bool:
    return args[:1] in (["--help"], ["-h"])


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
            settings.append((setting_key(key), text))
        elif name == "--config-env":
            key, _, source = value.rpartition("=")
            settings.append((setting_key(key), variable(call, source) or UNKNOWN))
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
    """GIT_DIR and GIT_WORK_TREE, of the line or of the environment."""
    places = [("git-dir", variable(call, "GIT_DIR")), ("work-tree", variable(call, "GIT_WORK_TREE"))]
    return [(name, value) for name, value in places if value]


def _settings_of_variables(call: Call) -> list[tuple[str, str]]:
    """GIT_CONFIG_COUNT and GIT_CONFIG_PARAMETERS, of the line or of the environment."""
    settings = []
    count = variable(call, "GIT_CONFIG_COUNT")
    if count and count.isdigit():
        for number in range(min(int(count[:4]), 100)):
            key = variable(call, f"GIT_CONFIG_KEY_{number}") or ""
            settings.append((setting_key(key), variable(call, f"GIT_CONFIG_VALUE_{number}") or ""))
    parameters = variable(call, "GIT_CONFIG_PARAMETERS")
    if parameters:
        for word in split_words(parameters):
            key, _, value = word.partition("=")
            settings.append((setting_key(key), value))
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
    if not text:
        return False
    if text[:1] == "!":
        call.script(f'{text[1:]} "$@"', [text[1:], *args], cwd=repo.top or repo.folder)
        return True
    call.effects.commands.append((["git", *split_words(text), *args], call.world.cwd))
    again = ["-C", repo.folder, *repo.options, *split_words(text), *args]
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
    texts = [value for key, value in repo.given if key in _COMMAND_SETTINGS or key.endswith(_COMMAND_ENDINGS)]
    texts += [line_variable(call, one) for one in _COMMAND_VARIABLES]
    if name in _TRANSPORTS:
        options = Words(args, "u", "upload-pack= receive-pack= exec=" if name != "archive" else "exec=")
        texts += options.all("upload-pack", "receive-pack", "exec")
        texts += [word[5:].replace("% ", " ") for word in args if word.startswith("ext::")]
    if name == "grep":
        _pager(call, repo, args)
    for text in texts:
        text = text.removeprefix("!")
        if text and text not in ("true", "false", "0", "1", UNKNOWN):
            call.script(text, cwd=repo.folder)
    if name in _EDITS and _opens_editor(name, args):
        _editor(call, repo)


def _pager(call: Call, repo: Repo, args: list[str]) -> None:
    """`git grep -O COMMAND`: it gets the files that fit."""
    rest: list[str] = []
    text = ""
    for at, word in enumerate(args):
        if word == "--":
            rest += args[at:]
            break
        if word.startswith(("-O", "--op")):
            text = word[2:] if word[1] == "O" else word.partition("=")[2]
        else:
            rest.append(word)
    if text:
        names = repo.ask("grep", "-l", *rest) if not any(word.startswith("--ext") for word in rest) else None
        files = [UNKNOWN] if names is None else names.splitlines()
        call.script(f'{text} "$@"', [text, *files], cwd=repo.folder)


def _opens_editor(name: str, args: list[str]) -> bool:
    options = Words(
        args, "mFCct", "message= file= reuse-message= reedit-message= no-edit edit fixup= template= no-commit", "uS"
    )
    if options.has("no-edit", "abort", "quit", "skip"):
        return False
    if name in ("config", "branch"):
        return options.has("e", "edit", "edit-description") or args[:1] == ["edit"]
    if name == "commit" and not options.has("e", "edit", "c", "reedit-message"):
        return not options.has("m", "message", "F", "file", "C", "reuse-message", "fixup")
    return not options.has("m", "message") or options.has("e", "edit")


def _editor(call: Call, repo: Repo) -> None:
    """The editor that the line chooses is run with a file of git's own."""
    variables = [line_variable(call, name) for name in ("GIT_EDITOR", "VISUAL", "EDITOR")]
    text = variables[0] or repo.setting("core.editor") or variables[1] or variables[2]
    if text:
        call.script(f"{text} .git/COMMIT_EDITMSG", cwd=repo.top or repo.folder)


def _hooks(call: Call, repo: Repo, name: str) -> None:
    """Hooks that the line writes, or in a folder that it chooses; those that were there are somebody's own."""
    if name == "config":
        return
    paths = [path for path in call.walk.files if "/.git/hooks/" in path]
    folder = repo.setting("core.hookspath")
    if folder:
        place = folder if folder[:1] == "/" else f"{repo.top or repo.folder}/{folder}"
        paths += [path for path in call.walk.files if normal(path).startswith(normal(place) + "/")]
        paths += [f"{place}/{hook}" for hook in call.disk.listing(place)]
    for path in dict.fromkeys(paths):
        call.run([path])


COMMANDS: dict[str, Command] = {
    **git_apply.COMMANDS,
    **git_files.COMMANDS,
    **git_remove.COMMANDS,
    **git_tree.COMMANDS,
}

PROGRAMS: dict[str, Program] = {"git": _git}

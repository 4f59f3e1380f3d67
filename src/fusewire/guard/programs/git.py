"""git: its global options, its aliases, and what it prints.

What its commands do to files is in `git_tree` and `git_files`.
"""

from __future__ import annotations

from fusewire.guard.programs import git_files, git_tree
from fusewire.guard.programs.git_repo import Repo, setting_key, variable
from fusewire.guard.shell.expansion import VALUE_LIMIT
from fusewire.guard.shell.values import UNKNOWN
from fusewire.util.quoting import split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import ProgramCall

    Command = Callable[[ProgramCall, Repo, list[str]], None]

_VALUED_GLOBALS = ("--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source")

_PATHSPEC_GLOBALS = ("--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs")

#: Aliases of aliases that are followed.
_ALIASES = 10

#: Commands without any effect on files outside of .git that are common enough to look for no alias of that name.
_QUIET = frozenset(
    "blame branch cat-file describe fetch gc grep help lfs ls-files push remote rev-parse status tag".split()
)

#: Commands that are run to learn what they print: what reads it may remove files by these names.
_PRINTING = frozenset("branch cat-file diff diff-tree grep log ls-files ls-tree rev-list rev-parse show status".split())

#: How the options begin with which these write, read, run something, or look into submodules.
_NEVER = (
    "--out",
    "--op",
    "--ext",
    "--stdin",
    "--show-sig",
    "--batch",
    "--filters",
    "--recurse",
    "--sub",
    "--ign",
    "-O",
)

#: All options with which `git branch` only prints.
_LISTING = frozenset("--list -l -a -r --all --remotes".split())

#: Commands that could look into submodules.
_DIFFERENCES = frozenset("diff status show log".split())


def run_git(call: ProgramCall) -> None:
    _git_words(call, call.args, _settings_of_variables(call), 0)


def _settings_of_variables(call: ProgramCall) -> list[tuple[str, str]]:
    """What GIT_CONFIG_COUNT and its variables set: constraints see aliases that a line brings along."""
    count = variable(call, "GIT_CONFIG_COUNT") or ""
    numbers = range(min(int(count[:4]), 100)) if count.isdecimal() else ()
    pairs = ((variable(call, f"GIT_CONFIG_KEY_{at}"), variable(call, f"GIT_CONFIG_VALUE_{at}")) for at in numbers)
    return [(setting_key(key), value or "") for key, value in pairs if key]


def _git_words(call: ProgramCall, given: list[str], inherited: list[tuple[str, str]], depth: int) -> None:
    repo, rest = _globals(call, given, inherited)
    if not rest:
        return
    name, args = rest[0], rest[1:]
    repo.command = name
    command = COMMANDS.get(name)
    if command is None and name not in _QUIET and depth < _ALIASES and _is_alias(call, repo, name, args, depth):
        return
    if command is not None and args[:1] not in (["--help"], ["-h"]):
        repo.line.cut = False
        command(call, repo, args)
        if repo.line.cut:
            repo.may_lose_anything()
    call.print(_printed(repo, name, args) if call.walk.is_heard else UNKNOWN)


def _globals(call: ProgramCall, given: list[str], inherited: list[tuple[str, str]]) -> tuple[Repo, list[str]]:
    """The repository that the global options choose, and the command with its words."""
    folder, settings = call.world.cwd, [*inherited]
    places = (("git-dir", variable(call, "GIT_DIR")), ("work-tree", variable(call, "GIT_WORK_TREE")))
    options = [f"--{name}={call.path(value)}" for name, value in places if value]
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
        elif name in ("--git-dir", "--work-tree") and value:
            options.append(f"{name}={value}")
        elif word in (*_PATHSPEC_GLOBALS, "--bare"):
            options.append(word)
    options = [_absolute(word, folder) for word in options]
    return Repo(call, folder, options, settings), given[at:]


def _absolute(word: str, folder: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={folder}/{value}" if value and value[:1] != "/" else word


def _is_alias(call: ProgramCall, repo: Repo, name: str, args: list[str], depth: int) -> bool:
    """Whether a command is another name for something, which is then followed."""
    text = repo.setting(f"alias.{name.lower()}")
    if text[:1] == "!":
        call.script(f'{text[1:]} "$@"', [text[1:], *args], cwd=repo.top or repo.folder)
    elif text:
        call.effects.commands.append((["git", *split_words(text), *args], call.world.cwd, None))
        again = ["-C", repo.folder, *repo.options, *split_words(text), *args]
        _git_words(call, again, repo.settings, depth + 1)
    return bool(text)


def _printed(repo: Repo, name: str, args: list[str]) -> str:
    """What a command prints; unknown if it may do something else too, or if the line has changed the answer."""
    options = [word for word in args if word[:1] == "-"]
    never = any(word.startswith(_NEVER) for word in options) or any(UNKNOWN in word for word in args)
    if name == "grep":  # -O may be one letter of many
        never = never or any("O" in word for word in options if word[:2] != "--")
    elif name == "branch":
        rest = {word for word in args if not word.startswith("--format=")}
        never = never or not args or not _LISTING.issuperset(rest)
    if never or name not in _PRINTING:
        return UNKNOWN
    if (repo.line.forgotten or repo.line.added or repo.line.commits) and "--show-toplevel" not in args:
        return UNKNOWN
    safely = ["--ignore-submodules=all"] if name in _DIFFERENCES else []
    text = repo.ask("--no-pager", name, *safely, *args, limit=VALUE_LIMIT)
    return UNKNOWN if text is None else text


COMMANDS: dict[str, Command] = {**git_files.COMMANDS, **git_tree.COMMANDS}

"""Classify a tool call: which tool, whether it is the same call again, and its nature.

The tool is told with what it works on: `Edit(a.py)` and `Edit(b.py)` are two tools, `Bash(git push)` and
`Bash(git pull)` as well; options make no other tool. All that one program does is a `family`. The nature says what a
repetition means: looking again is nothing, making the same change again is something.
"""

from __future__ import annotations

from fusewire.core.events import changes_files, mark
from fusewire.guard.shell.read_only import GIT_LOOKING, LOOKING
from fusewire.guard.shell.wrappers import SHELLS, is_assignment, is_wrapper, program
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.core.events import Event

    #: what a command line runs: the words of each command
    Commands = list[list[str]]

#: Natures: it only looks; it checks the work; it waits for somebody; it changes something; nobody knows.
LOOK, VERIFY, WAIT, CHANGE, ACT = "look", "verify", "wait", "change", "act"

SPAWNING_TOOLS = frozenset(("Agent", "Task", "spawn_agent"))

_LOOKING_TOOLS = frozenset(
    (
        "Read Grep Glob LS NotebookRead WebFetch WebSearch ToolSearch Skill ListMcpResourcesTool ReadMcpResourceTool "
        "TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet AskUserQuestion EnterPlanMode ExitPlanMode "
        "read_file read_many_files list_directory glob search_file_content grep_search web_fetch google_web_search "
        "write_todos update_plan view view_image update_topic complete_task get_internal_docs "
        "list_background_processes tracker_create_task tracker_update_task tracker_add_dependency tracker_visualize"
    ).split()
)
_WAITING_TOOLS = frozenset("BashOutput TaskOutput AgentOutputTool Monitor Sleep wait wait_agent write_stdin".split())
_LOOKING_VERBS = ("get", "list", "read", "search", "fetch", "query", "find", "view", "show", "status", "describe")

#: They prepare a line; what it is about comes after them.
_PREPARING = frozenset("cd pushd popd export source . set unset ulimit umask echo printf true : sleep mkdir".split())

#: They look, but for some of their options.
_LOOKING_PROGRAMS = LOOKING | frozenset("rg ag find fd tree whereis date env yq sort uniq history sed awk".split())
_WAITING_PROGRAMS = frozenset(("sleep", "wait", "watch"))
_WAITING_WORDS = frozenset(("--watch", "--wait", "watch", "wait"))

#: Stands for all of them among the calls that are refused.
SEARCHES = "searches"

#: They search, and may find nothing; or they read what is named, which may not be there.
SEARCHING = frozenset("Grep Glob find grep egrep fgrep rg ag ack fd locate which whereis".split())
READING = frozenset("LS Read ls dir tree cat head tail wc sed awk stat file".split())

#: Their exit status 1 is an answer: no.
ANSWERING_PROGRAMS = frozenset(
    "grep egrep fgrep rg ag ack diff cmp test [ [[ which command type pgrep git jq hash".split()
)

#: What they show happens elsewhere, and takes its time.
WATCHING_PROGRAMS = frozenset(
    "gh glab curl wget kubectl docker aws gcloud az systemctl ps pgrep tail squeue nvidia-smi terraform".split()
)
_CHECKING_PROGRAMS = frozenset(
    (
        "pytest jest vitest mocha ava tap phpunit rspec tox nox ctest mypy pyright pylint flake8 ruff black isort "
        "eslint prettier tsc golangci-lint shellcheck rubocop clippy"
    ).split()
)
_CHECKING_WORDS = frozenset(
    "test tests check lint build typecheck type-check vet clippy compile pytest unittest mypy verify".split()
)
_BUILDERS = frozenset(
    "npm pnpm yarn bun cargo go make just mvn gradle gradlew mix dotnet swift bazel python python3".split()
)
_CHANGING_PROGRAMS = frozenset(
    (
        "rm mv cp mkdir rmdir touch ln chmod chown tee truncate dd patch rsync tar unzip zip install apt apt-get pip "
        "pip3 npm pnpm yarn brew docker kubectl terraform systemctl kill pkill git gh"
    ).split()
)
_LOOKING_GIT = (GIT_LOOKING - {"add"}) | {"fetch", "remote", "reflog"}

#: They go one step further each time they are called.
_STEPPING_GIT = frozenset("am bisect checkout cherry-pick pull rebase reset revert stash switch".split())
_LOOKING_WORDS = frozenset(
    "get list view status logs log describe ps images show info ls outdated why search checks inspect diff plan".split()
)
_MIXED_PROGRAMS = frozenset("gh glab docker kubectl npm pnpm yarn pip pip3 systemctl terraform aws gcloud az".split())


#: Tools that run a command line.
_SHELL_TOOLS = ("Bash", "PowerShell")

#: What a tool works on is told in so many characters.
_LONGEST = 60

#: Options whose value is no subcommand, script or file, as far as it matters here.
_WITH_VALUE: dict[str, str] = {
    **dict.fromkeys(("python", "python3"), "-c -W -X"),
    **dict.fromkeys(("node", "perl", "ruby", "sh", "bash", "zsh"), "-e -c"),
    "git": "-C -c",
    "make": "-C -f -j",
    "npm": "--prefix -w",
    "pytest": "-k -m -n -p -c -o -W --tb --maxfail --timeout",
    "docker": "-f -H --context",
    "kubectl": "-n --namespace --context -f",
    "go": "-C",
    "cargo": "--manifest-path -p",
}
_INTERPRETERS = frozenset("python python3 node deno ruby perl php sh bash zsh".split())

#: Here the second word is a part of the subcommand, too: `gh pr create`, `npm run lint`, `docker compose up`.
_GROUPING = frozenset("gh glab aws gcloud az".split())
_GROUPS = frozenset("run run-script exec compose".split())

#: What they look for, or do, is given before the file.
_FILE_LAST = frozenset("sed awk grep egrep fgrep rg ag".split())

#: Where a line has one of these, blanks and marks may mean something.
_TELLING = frozenset("'\"\\`$(){}<>|\n")
_NOTHING = frozenset((":", "true"))


def key_words(commands: list[list[str]]) -> list[str]:
    """The command that a line is about: the first that does not merely prepare, without what wraps it."""
    for at, words in enumerate(commands):
        name = program(words)
        if name in _PREPARING or is_assignment(words[0]):
            continue
        if (is_wrapper(name) or name in SHELLS) and at + 1 < len(commands):
            continue  # what it runs is listed behind it
        return words
    return commands[0] if commands else []


def tool_of(event: Event, words: list[str]) -> str:
    """`Bash(pytest)`, `Bash(git push)`, `Edit(src_a.py)`, `mcp__search__query`."""
    if event.command is None:
        folder = f"{event.cwd}/" if event.cwd else ""
        what = " ".join(path.removeprefix(folder) for path in event.paths)
    elif words:
        name, rest = program(words), words[1:]
        if name in ("python", "python3") and rest[:1] == ["-m"] and len(rest) > 1:
            name, rest = rest[1], rest[2:]
        what = " ".join((name[:60], *_works_on(name, rest)))
    else:
        what = ""
    what = " ".join(what.split())
    what = what if len(what) <= _LONGEST else f"{what[: _LONGEST - 13]}~{mark(what)}"
    return f"{event.tool[:100]}({what})".removesuffix("()").replace("/", "_") or "unknown"


def _works_on(name: str, words: list[str]) -> list[str]:
    """The subcommand, the script or the file among the words behind a program; two words where one is a group."""
    with_value = _WITH_VALUE.get(name, "").split()
    found = [
        word.removeprefix("./")
        for before, word in zip(("", *words), words, strict=False)
        if word[:1] not in ("-", "") and before not in with_value and not word.isdigit()
    ]
    if name in _FILE_LAST:
        return found[-1:]
    two = name in _GROUPING or bool(_GROUPS.intersection(found[:1]))
    if name in _INTERPRETERS and len(found) > 1:
        two = found[1].replace("_", "").replace("-", "").isalpha()  # `manage.py migrate`
    return found[: 2 if two else 1]


def family(tool: str) -> str:
    """`Bash(git)` of `Bash(git push)`, `Edit` of `Edit(a.py)`: the program or tool, whatever it works on."""
    name = program_of(tool)
    return f"{bare(tool)}({name})" if name else bare(tool)


def bare(tool: str) -> str:
    """`Bash` of `Bash(git push)`, `Edit` of `Edit(a.py)`."""
    return tool.partition("(")[0]


def name_of(tool: str) -> str:
    """`git` of `Bash(git push)`, `Edit` of `Edit(a.py)`."""
    return program_of(tool) or bare(tool)


def program_of(tool: str) -> str:
    """`git` of `Bash(git push)`; nothing where no program is run."""
    name, _, what = tool.partition("(")
    return what.partition(" ")[0].rstrip(")") if name in _SHELL_TOOLS else ""


def signature(event: Event) -> str:
    """The same for the same call: tool and arguments, whatever the agent says about them."""
    given = dict(event.input or {})
    if event.command is not None:
        given.pop("description", None)
        given.pop("timeout", None)
        if isinstance(given.get("command"), str):
            given["command"] = _same_line(given["command"])
    return mark(event.tool, dumps(given))


def _same_line(line: str) -> str:
    """The line without what makes no difference: more blanks, a remark, a part that does nothing."""
    line = line.strip()
    if not _TELLING.isdisjoint(line):
        return line
    parts = line.partition(" #")[0].replace("&&", ";").split(";")
    words = [" ".join(part.split()) for part in parts]
    return "; ".join(word for word in words if word and word not in _NOTHING) or line


def nature_of(event: Event, commands: list[list[str]], looks: bool) -> str:
    """What a repetition of the call would mean. `looks`: it is known to change nothing."""
    if event.command is not None:
        return _nature_of_line(commands, looks, event.command)
    name = event.tool
    if name in _WAITING_TOOLS:
        return WAIT
    if changes_files(name):
        return CHANGE
    if name in _LOOKING_TOOLS:
        return LOOK
    verb = name.rsplit("__", 1)[-1].lower()
    return LOOK if any(verb.startswith(known) or f"_{known}" in verb for known in _LOOKING_VERBS) else ACT


def _nature_of_line(commands: list[list[str]], looks: bool, line: str) -> str:
    if any(program(words) in _WAITING_PROGRAMS or not _WAITING_WORDS.isdisjoint(words) for words in commands):
        return WAIT
    words = key_words(commands)
    name = program(words) if words else ""
    rest = [word for word in words[1:] if not word.startswith("-")]
    if name in _CHECKING_PROGRAMS or (name in _BUILDERS and not _CHECKING_WORDS.isdisjoint(_parts(rest[:3]))):
        return VERIFY
    if looks:
        return LOOK
    if name in _LOOKING_PROGRAMS:
        changes = _redirects(line) or any(word[:2] == "-i" or word in ("-delete", "-exec") for word in words)
        return CHANGE if changes and (name in ("sed", "find") or _redirects(line)) else LOOK
    if name == "git":
        if words[1:2] in (["-C"], ["-c"]):
            rest = rest[1:]  # its value
        act = rest[0] if rest else ""
        return LOOK if act in _LOOKING_GIT else ACT if act in _STEPPING_GIT else CHANGE
    if name in _MIXED_PROGRAMS:
        return LOOK if not _LOOKING_WORDS.isdisjoint(rest[:2]) else CHANGE
    if name in ("curl", "wget"):
        return ACT if any(word in ("-X", "-d", "--data", "-F", "-T") for word in words) else LOOK
    return CHANGE if name in _CHANGING_PROGRAMS or (name in _PREPARING and _redirects(line)) else ACT


def _redirects(line: str) -> bool:
    """Whether it seems to write a file; what goes nowhere is no file."""
    if ">" not in line:
        return False
    for harmless in ("2>&1", ">&2", "&>/dev/null", "2>/dev/null", ">/dev/null", "> /dev/null", "=>", "->"):
        line = line.replace(harmless, "")
    return ">" in line


def _parts(words: list[str]) -> set[str]:
    """`test:unit` is a test, too."""
    return {part for word in words for part in (word, *word.split(":"))}


def shown(event: Event) -> str:
    """The call in a few words, as evidence."""
    text = " ".join(event.described().split())
    if event.command is None and event.input and not event.paths:
        text = f"{event.tool} {dumps(event.input)}"
    return text if len(text) <= 100 else f"{text[:97]}..."


def is_search(call: Call) -> bool:
    """Whether it looks for something, and changes nothing."""
    return call.nature == LOOK and name_of(call.tool) in SEARCHING


class Call:
    """One call as the breakers see it."""

    __slots__ = ("commands", "mark", "nature", "shown", "tool")

    def __init__(self, tool: str, mark: str, nature: str, shown: str, commands: Commands) -> None:
        self.tool, self.mark, self.nature, self.shown, self.commands = tool, mark, nature, shown, commands


def call_of(event: Event, commands: Commands | None, looks: bool) -> Call:
    commands = commands_of(event) if commands is None else commands
    words = key_words(commands)
    return Call(tool_of(event, words), signature(event), nature_of(event, commands, looks), shown(event), commands)


def commands_of(event: Event) -> Commands:
    """What a command line would run, where nobody has read it yet."""
    if not event.command:
        return []
    from fusewire.guard.plain import plain_commands

    plain = plain_commands(event.command)
    if plain is not None:
        return plain
    from fusewire.guard.shell.commands import simple_commands

    return simple_commands(event.command)

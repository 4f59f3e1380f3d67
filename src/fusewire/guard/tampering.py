"""Refuse what would disarm the breaker: acts that only a person may do."""

from __future__ import annotations

import os

from fusewire.config import user_config_path, user_state_folder
from fusewire.core.decision import Decision
from fusewire.guard.known_agents import (
    AGENT_VARIABLES,
    AGENTS_BY_NAME,
    HOME_VARIABLES,
    KNOWN_AGENTS,
    SCRIPT_RUNTIMES,
    STARTING_PROGRAMS,
    agent_of_package,
)
from fusewire.guard.plain import names_us
from fusewire.guard.shell.wrappers import is_wrapper, program, unwrapped, wrapped_by
from fusewire.util.globs import path_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.core.events import Event
    from fusewire.guard.check import Reading

#: Commands of the program that change a circuit, its rules or its registration by hand.
PERSON_ONLY = frozenset(
    "reset config override archive import install uninstall hook grant wrap halt resume pause allow-once".split()
)

#: Commands with acts of both kinds: those that only a person may do.
PERSON_ONLY_ACTS = {
    "attempt": frozenset(("retry", "restore")),
    "constraints": frozenset(("add", "remove")),
    "guard": frozenset(("snapshot", "restore")),
    "phase": frozenset(("resolve", "start", "import")),
    "scope": frozenset(("set",)),
}

#: Circuits on which only their own breaker, or a person, records.
_JUDGES = ("tool/", "loop/", "phase/", "attempt/", "provider/")

#: Options of the program, and of Python, that take a value.
_VALUED = frozenset(("--project",))
_PYTHON_VALUED = frozenset(("-X", "-W", "--check-hash-based-pycs"))

#: Where Fusewire keeps its state and its rules; relative to the project, and to projects inside it.
OWN_FOLDERS = (
    *("**/.fusewire/**", "**/docs/constraints/**", "**/.prp-session/circuit-breaker*"),
    "**/.claude/memory/circuit_breaker_*",
)

#: Code that imports Fusewire and names one of these could lift a circuit; what stays in memory cannot.
_LIFTING = (
    *("Breaker", "breaker", "cli", "constraints", "engine", "stores", "__main__", "gate"),
    *("attempts", "Attempts", "phases", "Phases", "scope", "ScopeLock", "checkpoints", "runner", "guard.session"),
    *("session", "spending", "janitor", "person", "rules", "hotload"),
    *("fusewire.server", "fusewire.notify", "fusewire.agents.install"),
    *("fusewire import server", "fusewire import notifying", "fusewire import installing"),
)

#: The table of a project's settings, and words of lines that write files.
_TABLE = "tool.fusewire"
_WRITING = ("tee", "sed -i", "write", "patch", "perl -", "ed ", "mv ", "cp ", "toml.dump", "EOF")

_INSTALLING = frozenset("pip pip3 pipx uv poetry conda mamba pdm rye claude".split())
_REMOVING = frozenset("uninstall remove disable rm delete upgrade".split())
_REINSTALLING = frozenset(("-U", "--upgrade", "--force-reinstall", "--reinstall"))
_KILLING = frozenset(("kill", "pkill", "killall"))
_TAKING_AWAY = frozenset(("mv", "rm", "rmdir", "shred", "truncate", "unlink"))
_LOOKING_UP = frozenset(("pgrep", "pidof"))

#: What a path into our state has in it.
_STATE = (".fusewire", "fusewire/user.db", "fusewire/orders")

#: Programs that send requests, and what stands in those that report an event to the server.
_SENDING = frozenset("curl wget http https xh httpie nc ncat socat".split())
_REPORTS = ("3873/hooks/", "fusewire/hooks.token", "X-Fusewire")
_ORDERS = ("fusewire/halt.token", "api/v1/halt", "api/v1/resume")

#: Variables that change where agents look for their settings, and so for their hooks.
_SETTINGS = (
    *("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", *HOME_VARIABLES),
    *(name for agent in KNOWN_AGENTS for name in agent.setting_variables),
)

#: Programs that run a line later or elsewhere, or type it in a person's place.
_HANDING_ON = frozenset(
    "at batch crontab systemd-run tmux screen zellij expect xdotool ydotool wtype osascript ssh docker podman".split()
)

#: Acts that are harmless or refused inside an agent, but not if they run outside of it.
_AS_A_PERSON = ("doctor", "phase", "attempt", "serve")

#: How deep an agent is among agents that started agents, and whether a person is there: one that could change it would
#: start as many as it likes.
_TOLD = frozenset(("FUSEWIRE_DEPTH", "FUSEWIRE_RUN", "CLAUDE_CODE_SESSION_ATTENDED"))
_CLEANING = frozenset(("-i", "-", "--ignore-environment"))

#: Programs that run a command with another clock or other libraries.
_DECEIVING = ("faketime", "datefudge", "ld.so", "ld-linux")

#: Programs that set the system's clock, and the words with which they do; without any, they always do.
_CLOCKS: dict[str, tuple[str, ...]] = {
    "timedatectl": ("set-time", "set-ntp"),
    "hwclock": ("--set", "-s", "--hctosys", "--systz"),
    "chronyc": ("settime", "makestep"),
    "ntpdate": (),
    "rdate": (),
    "sntp": ("-s", "-S"),
}

#: Where checkpoints are kept alive, and the commands of git that could let go of them.
_OWN_REFS = "refs/fusewire"
_GIT_MOVES = frozenset(("update-ref", "push", "fetch", "symbolic-ref", "pack-refs", "replace", "filter-branch"))


#: Programs that could remove us from an environment that we share with the project.
_MANAGERS = frozenset("uv pip pip-sync poetry pdm pipenv pipx conda mamba micromamba virtualenv".split())

_OWN_ENVIRONMENT = "or ask the user to give Fusewire an environment of its own (uv tool install fusewire)"


def check_tampering(event: Event, commands: list[list[str]], changed: tuple[str, ...], root: str) -> Decision | None:
    """Refuse a call that would disarm the breaker; `changed` are the paths that a changing tool names."""
    act = disarming(event, commands, changed, _changes_table(event, changed, root))
    return _refused(act) if act else _check_uninstalling(event, commands, root)


def check_inner_commands(event: Event, reading: Reading) -> Decision | None:
    """The same for what scripts, recipes and aliases of the line would run; the line itself was looked at."""
    inside = [words for words in reading.commands() if any(map(names_us, words))]
    act = disarming(event, inside, ()) or next(filter(None, map(removes_state, inside)), "")
    return _refused(act) if act else None


def _refused(act: str) -> Decision:
    return Decision("deny", rule="fusewire.disarm", reason=act, next=("go on without it, or ask the user to run it",))


def _check_uninstalling(event: Event, commands: list[list[str]], root: str) -> Decision | None:
    """Refuse what would take us out of the environment that we run from."""
    if not any(
        words[0].rsplit("/", 1)[-1].rstrip("0123456789.") in _MANAGERS or "-m" in words for words in commands if words
    ):
        return None
    from fusewire.guard.uninstalling import removal

    act, instead = removal(commands, event.command or "", event.cwd or root)
    return Decision("deny", rule="fusewire.disarm", reason=act, next=(instead, _OWN_ENVIRONMENT)) if act else None


def _changes_table(event: Event, changed: tuple[str, ...], root: str) -> bool | None:
    """Whether an edit of `pyproject.toml` would change our table in it; None if it is no such edit, or a new file."""
    path = next((path for path in changed if os.path.basename(path) == "pyproject.toml"), None)
    if path is None:
        return None
    from fusewire.util.files import read_regular

    try:
        text = read_regular(os.path.join(root, path), 1 << 20).decode("utf-8", "replace")
    except OSError:
        return None
    from fusewire.config.pyproject_table import changes_table

    return changes_table(event, text)


def disarming(
    event: Event, commands: list[list[str]], own_paths: tuple[str, ...], table_changes: bool | None = None
) -> str:
    """What the event would disarm, in words; empty if it is harmless.

    `own_paths` are the paths of the event that a changing tool names, if it is one; `table_changes` says
    whether our table in the `pyproject.toml` among them would be another one, if that is known.
    """
    line = event.command or ""
    for words in commands:
        act = _own_command(words)
        if act:
            return f"`{act}` is for a person at a terminal"
        act = _removes(words, line) or _locks(words) or _changes_clock(words)
        act = act or next((text for test, text in _ACTS if line and test(words, line)), "")
        if act:
            return act
    for path in own_paths:
        if is_own_file(path):
            return f"{path} belongs to Fusewire and is for a person to change"
    if _sets(event, own_paths, table_changes):
        return "the settings of Fusewire in pyproject.toml are for a person to change"
    return ""


def _sets(event: Event, own_paths: tuple[str, ...], table_changes: bool | None) -> bool:
    """Whether the table of ours in `pyproject.toml` would be written: by an edit, or by a line that names both."""
    line = event.command or ""
    if any(path.rsplit("/", 1)[-1] == "pyproject.toml" for path in own_paths):
        if table_changes is not None:
            return table_changes
        given = [value for value in (event.input or {}).values() if isinstance(value, str)]
        edits = [one for one in (event.input or {}).get("edits") or () if isinstance(one, dict)]
        given += [value for one in edits for value in one.values() if isinstance(value, str)]
        return any(_TABLE in value for value in given)
    return _TABLE in line and "pyproject" in line and (">" in line or any(word in line for word in _WRITING))


def _removes(words: list[str], line: str) -> str:
    """Taking our program off the machine, or ending its hooks and its server."""
    ends = program(words) in _KILLING or (program(words) in _LOOKING_UP and "kill" in line)
    if ends and any(_is_ours(part) for word in words[1:] for part in word.split()):
        return "ending the breaker's processes is for a person"
    names = [word for word in words[1:] if _is_ours(word)]
    if not names:
        return ""
    manages = program(words) in _INSTALLING or (_is_python(words) and "pip" in words)
    pinned = any("=" in name or "<" in name for name in names)
    replaces = "install" in words and (pinned or not _REINSTALLING.isdisjoint(words))
    if manages and (replaces or not _REMOVING.isdisjoint(words)):
        return "to remove or replace Fusewire is for a person"
    return ""


def _is_ours(word: str) -> bool:
    name = word.rsplit("/", 1)[-1]
    for mark in "=<>~![@":
        name = name.partition(mark)[0]
    return name in ("fusewire", "hook.py") or "fusewire/hook" in word


def _locks(words: list[str]) -> str:
    """A program that could hold a lock on the state, or write into it, or make git take it for the repository's."""
    adds = program(words) == "git" and not {"add", "stage", "update-index"}.isdisjoint(words)
    holds = adds or program(words).startswith(("sqlite", "flock", "lockf", "litecli"))
    if holds and any(mark in word for word in words[1:] for mark in _STATE) and "-readonly" not in words:
        return ".fusewire/ is Fusewire's state; `fusewire status` shows it"
    return ""


def _changes_clock(words: list[str]) -> str:
    """Another time for our program, or for the whole machine: a cooldown would seem to be over."""
    name = program(words)
    if len(words) > 1 and any(_runs_us(stage) or _agent(stage) for stage in unwrapped(words)[1:]):
        from fusewire.util.environment import alters

        assigned = (word.partition("=")[0] for word in wrapped_by(words)[1])
        variable = next((one for one in assigned if alters(one)), "")
        if variable or name.startswith(_DECEIVING):
            return f"Fusewire and its hooks run with their own clock and libraries, without {variable or name}"
    marks = _CLOCKS.get(name)
    if marks is not None:
        sets = not marks or any(word.partition("=")[0] in marks for word in words[1:])
        sets = sets and not {"-q", "-d", "--help", "--version"}.intersection(words)
    else:
        sets = name == "date" and _sets_date(words)
    return "to set the system's clock is for a person" if sets else ""


def _sets_date(words: list[str]) -> bool:
    """Whether `date` sets the time: `-s TEXT`, `--set=TEXT`, or digits alone; not a value of `-d`, `-f`, `-r`."""
    from fusewire.guard.shell.argv import Argv

    argv = Argv(words[1:], "sdfrvz", "set= date= file= reference=", optional="I")
    digits = any(len(word) > 7 and word.replace(".", "").isdigit() for word in argv.operands)
    return (argv.has("s", "set") or digits) and not argv.has("j")  # BSD: do not set


def _runs_us(words: list[str]) -> bool:
    target = _python_target(words) if _is_python(words) else words
    return bool(target) and _is_fusewire(target[0])


def removes_state(words: list[str]) -> str:
    """A program that would take the state folder away, or a part of it."""
    if program(words) in _TAKING_AWAY and any(".fusewire" in word.split("/") for word in words[1:]):
        return ".fusewire/ is Fusewire's state; `fusewire status` shows it"
    return ""


def is_own_file(path: str) -> bool:
    """Whether it is Fusewire's, in a project or in the person's folders; a path in the project is relative to it."""
    if path[:1] == "/" and any(f"{path}/".startswith(f"{folder}/") for folder in folders_of_ours()):
        return True
    return path == "fusewire.toml" or any(path_matches(path, pattern) for pattern in OWN_FOLDERS)


def folders_of_ours() -> list[str]:
    """Where the person's settings and state lie, under each of their names."""
    found = [os.path.dirname(user_config_path()), user_state_folder(), os.path.expanduser("~/.local/state/fusewire")]
    return list(dict.fromkeys([*found, *map(os.path.realpath, found)]))


def _makes_up(words: list[str], line: str) -> bool:
    """Whether an event is sent to the server as if an agent's hook did."""
    return any(mark in text for mark in _REPORTS for text in (line, *words)) and _sends(words)


def _orders(words: list[str], line: str) -> bool:
    """Whether the server is told to halt agents, or to let them go on."""
    return any(mark in text for mark in _ORDERS for text in (line, *words)) and _sends(words)


def _sends(words: list[str]) -> bool:
    reads_code = _is_python(words) and _python_target(words)[:1] in ([], ["-"])
    return program(words) in _SENDING or reads_code or _runs_code(words)


def _variables_changed(line: str) -> set[str]:
    """The variables that a line sets or takes out of the environment."""
    words = f" {_bare(line)}".replace(" --unset=", " -u ").replace(" --unset", " -u ").replace(" -u", " -u ").split()
    takes_out = not {"unset", "-u", "-n", "+x"}.isdisjoint(words)
    return {word.partition("=")[0] for word in words if takes_out or "=" in word}


def _bare(line: str) -> str:
    """A line without what stands around its words."""
    return line.translate(dict.fromkeys(map(ord, "'\";&|\n(){}$`"), " "))


def _serves_unmarked(words: list[str], line: str) -> bool:
    """Whether our server is started without what says that an agent does it: such a server would act for the agent."""
    serves = "serve" in words and any(map(_is_fusewire, words))
    return serves and not _variables_changed(line).isdisjoint(AGENT_VARIABLES)


def _hides_depth(words: list[str], line: str) -> bool:
    """Whether a line starts an agent that would not know how deep it is, or that nobody is there."""
    if program(words) == "env" and not _CLEANING.isdisjoint(words):
        return any(word.rsplit("/", 1)[-1] in STARTING_PROGRAMS for word in words)
    return program(words) in STARTING_PROGRAMS and not _TOLD.isdisjoint(_variables_changed(line))


def _unhooks(words: list[str], line: str) -> bool:
    """Whether an agent would be started that does not call us."""
    name = _agent(words)
    if not name and _runs_code(words):  # it may start one
        name = next((one for one in AGENTS_BY_NAME if one in line.lower()), "")
        options = AGENTS_BY_NAME[name].unhooked_options if name else ()
        return any(option in line for option in options if option[:2] == "--")
    if not name:
        return False
    agent = AGENTS_BY_NAME[name]
    if any(word.partition("=")[0] in agent.unhooked_options for word in words[1:]):
        return True
    if "features" in words and "disable" in words and any("hook" in word for word in words):
        return True
    for at, word in enumerate(words):
        option, _, joined = word.partition("=")
        value = joined or " ".join(words[at + 1 : at + 2])
        if option in agent.setting_options and "hook" in value.lower():
            return True
        if option == "--settings" and not value.lstrip().startswith("{"):
            return True  # the file may have other content when it is read
        joined_option = word[:2] in agent.setting_options and word[2:3].isalpha()
        if joined_option and "hook" in word.lower():
            return True
    before = line.rpartition(words[0])[0]
    return not _variables_changed(before).isdisjoint(_SETTINGS)


def _agent(words: list[str]) -> str:
    """The agent that these words start, under whatever name; empty if it is none."""
    name = program(words)
    if name in SCRIPT_RUNTIMES:
        words = [word for word in words[1:] if word[:1] != "-"]
        name = program(words).removesuffix(".js")
    if name in AGENTS_BY_NAME:
        return name
    return agent_of_package(words[0]) if words else ""


def _runs_code(words: list[str]) -> bool:
    """Whether a program is given its code in the line."""
    name = program(words)
    codes = name.startswith(("python", "pypy", "perl", "ruby", "php")) or name in SCRIPT_RUNTIMES
    return codes and any(word[:1] == "-" and word[1:2] != "-" and word[-1:] in "ecr" for word in words[1:])


def _speaks_as_person(line: str) -> bool:
    """Whether a text has a command in it that only a person may give, or words that lift a limit."""
    words = _bare(line).split()
    acts = zip(words, words[1:], strict=False)
    if any(_is_fusewire(one) and other in (*PERSON_ONLY, *_AS_A_PERSON) for one, other in acts):
        return True
    writes = any(_is_fusewire(word) for word in words) and "export" in words and "--output" in line
    grants = (words[at + 1 : at + 4] for at, word in enumerate(words) if word.lower() == "grant")
    return writes or "SUDO PARALLEL" in line or any(word in ("another", "more") for few in grants for word in few)


def _hands_on(words: list[str], line: str) -> bool:
    return program(words) in _HANDING_ON and _speaks_as_person(line)


def _moves_refs(words: list[str], line: str) -> bool:
    """Whether git would let go of a checkpoint, or may: what it reads from its input is not known."""
    if program(words) != "git" or _GIT_MOVES.isdisjoint(words):
        return False
    return any(_OWN_REFS in word for word in words) or ("update-ref" in words and "--stdin" in words)


def _lifts(words: list[str], line: str) -> bool:
    """Whether Python is given code that opens the project's breaker."""
    if not _is_python(words) or "fusewire" not in line:
        return False
    if "runpy" in line or "hook.py" in line:
        return True
    imports = "import fusewire" in line or "from fusewire" in line
    return imports and "memory:" not in line and any(name in line for name in _LIFTING)


def _is_python(words: list[str]) -> bool:
    return program(words).startswith(("python", "pypy"))


def _own_command(words: list[str]) -> str:
    """The person-only act of Fusewire that these words run, if any."""
    if _is_python(words):
        words = _python_target(words)
        is_hook = words and words[0].rsplit("/", 1)[-1] in ("hook.py", "fusewire.hook")
        if is_hook and words[1:2] and words[1] in AGENTS_BY_NAME:
            return "fusewire hook"
    elif is_wrapper(program(words)) and not _is_fusewire(words[0]):  # a runner, whatever its options
        at = next((at for at, word in enumerate(words) if at and _is_fusewire(word)), len(words))
        words = words[at:]
    if not words or not _is_fusewire(words[0]) or {"--help", "-h", "--version"} & set(words):
        return ""
    if words[0].endswith("hook.py"):
        return "fusewire hook"
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    command = words[at] if at < len(words) else ""
    looks = (
        command == "pause" and words[at + 1 : at + 2] == ["--list"] and {"--list", "--json"}.issuperset(words[at + 1 :])
    )
    if command in PERSON_ONLY and not looks:
        return f"fusewire {command}"
    judges = _JUDGES if command == "record" else ("tool/",) if command == "check" else ()
    if any(word.startswith(judges) for word in words[at:]):
        return f"fusewire {command} of a circuit that judges an agent"
    act = next((word for word in words[at + 1 :] if not word.startswith("-")), "")
    if act in PERSON_ONLY_ACTS.get(command, ()):
        return f"fusewire {command} {act}"
    if (command, act) == ("attempt", "finish") and "--force" in words:
        return "fusewire attempt finish --force"
    if command == "export" and any(word.partition("=")[0] == "--output" for word in words):
        return "fusewire export --output"
    return "fusewire doctor --acknowledge" if command == "doctor" and "--acknowledge" in words else ""


def _is_fusewire(word: str) -> bool:
    """The program by name or path, with a version, as a module, or as its file."""
    while "//" in word or "/./" in word:
        word = word.replace("//", "/").replace("/./", "/")
    if word.endswith(("fusewire/__main__.py", "fusewire/hook.py")):
        return True
    name = word.rsplit("/", 1)[-1].partition("@")[0].partition("=")[0].removesuffix(".exe")
    return name == "fusewire" or name.startswith("fusewire.")


def _python_target(words: list[str]) -> list[str]:
    """The module or script that Python runs, with its arguments; also as `-Im fusewire` and `-mfusewire`."""
    at = 1
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        word = words[at]
        if word in _PYTHON_VALUED:
            at += 2
            continue
        flags, m, module = word[1:].partition("m")
        if m and not word.startswith("--") and (flags.isalpha() or not flags) and "c" not in flags:
            return [module, *words[at + 1 :]] if module else words[at + 1 :]
        if not word.startswith("--") and "c" in word[1:]:
            return []
        at += 1
    return words[at:]


#: Tests of a command and its line, and why what they find is refused.
_ACTS = (
    (_makes_up, "to report what an agent did is for its hooks"),
    (_orders, "to halt agents, or to let them go on, is for a person"),
    (_serves_unmarked, "to start the server as if no agent did is for a person"),
    (_hides_depth, "how deep agents start agents, and whether a person is there, is for a person to say"),
    (_unhooks, "to start an agent without its hooks is for a person"),
    (_hands_on, "to have it run or typed elsewhere, in a person's place, is for a person"),
    (_moves_refs, f"{_OWN_REFS} keeps the checkpoints, and is for Fusewire to change"),
    (_lifts, "code that opens the project's breaker is for a person to run"),
)

"""Find what programs run: `sudo git push` runs `git push`, `bash -c '...'` runs what stands in the quotes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.shell.argv import Argv

SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "rbash"))

#: Most wrappers around one command that are listed one by one; beyond, only the innermost is.
_LISTED = 8

#: Words in front of a command among which the options of its wrapper are looked for.
_WINDOW = 60

_LOADER = ("", "library-path= inhibit-rpath= audit= preload= argv0= glibc-hwcaps-prepend=")
_RUNNER = ("pe", "with= from= python= extra= group= package= project=")

#: Programs that run the command behind them, and their options that take a value, as `Argv` wants them.
_WRAPPERS = {
    **dict.fromkeys(("builtin", "busybox", "command", "datefudge", "i386", "linux32", "linux64"), ("", "")),
    **dict.fromkeys(("logsave", "nohup", "setarch", "setsid", "taskset", "toybox"), ("", "")),
    "chroot": ("", "userspec= groups="),
    "chrt": ("TPD", "sched-runtime= sched-period= sched-deadline="),
    "choom": ("np", "adjust= pid="),
    "doas": ("uC", ""),
    "env": ("uCaS", "unset= chdir= argv0= split-string="),
    "exec": ("a", ""),
    "faketime": ("p", "pid="),
    "flock": ("wEc", "timeout= wait= conflict-exit-code= command="),
    "ionice": ("cnpPu", "class= classdata= pid= pgid= uid="),
    "ld-linux-x86-64.so.2": _LOADER,
    "ld.so": _LOADER,
    "ltrace": ("oepunsalxADF", "output="),
    "nice": ("n", "adjustment="),
    "nsenter": ("tSGW", "target= setuid= setgid= wdns="),
    "npx": ("pcw", "package= call= workspace="),
    "parallel": ("jInN", "jobs="),
    "prlimit": ("po", "pid= output="),
    "runuser": ("ugGwsc", "user= group= supp-group= whitelist-environment= shell= command= session-command="),
    "script": ("IOBTmcEo", "log-in= log-out= log-io= log-timing= logging-format= command= echo= output-limit="),
    "setpriv": ("", "ambient-caps= inh-caps= bounding-set= ruid= euid= rgid= egid= reuid= regid= groups= pdeathsig="),
    "sg": ("c", ""),
    "stdbuf": ("ioe", "input= output= error="),
    "strace": ("oepEuPasSIbOXU", "output= trace= attach= env= user= trace-path= columns= string-limit= signal="),
    "sudo": (
        "ughpCTrtUDR",
        "user= group= host= prompt= chdir= chroot= role= type= other-user= close-from= command-timeout=",
    ),
    "time": ("fo", "format= output="),
    "timeout": ("sk", "signal= kill-after="),
    "unshare": (
        "RwSG",
        "root= wd= setuid= setgid= propagation= setgroups= map-user= map-group= map-users= map-groups=",
    ),
    "uvx": ("p", "with= from= python="),
    "watch": ("n", "interval="),
    "xargs": ("InPLdEas", "max-args= max-procs= max-lines= max-chars= arg-file= delimiter="),
    # our own program: `fusewire attempt run S-1 t -- COMMAND`, `fusewire run --until SCRIPT -- COMMAND`.
    "fusewire": (
        "",
        "project= prompt= max-iterations= max-time= max-cost= timeout= idle-timeout= until= verify= plan= junit="
        " strategy=",
    ),
}

#: Programs that do so with a word in front (`uv run pytest`).
_RUNNERS = frozenset(("uv", "poetry", "pdm", "pipenv", "rye", "hatch", "pixi", "pipx", "bundle", "composer"))

#: Wrappers that move to a folder first, and the options that say to which.
_FOLDERS = {"env": ("C", "chdir"), "sudo": ("D", "chdir"), "unshare": ("w", "wd"), "nsenter": ("W", "wdns")}

#: Wrappers whose first operand is theirs (`timeout 10 git ...`).
_TAKES_OPERAND = frozenset("timeout faketime datefudge flock taskset chroot chrt sg logsave script".split())

#: Wrappers and others with options that hold a command line.
_SCRIPT_OPTIONS = {
    "env": ("S", "split-string"),
    "flock": ("c", "command"),
    "fusewire": ("until", "verify"),
    "npx": ("c", "call"),
    "runuser": ("c", "command", "session-command"),
    "script": ("c", "command"),
    "sg": ("c",),
    "su": ("c", "command", "session-command"),
}

#: Options of shells that take a value; `-c` takes none, its script is the first operand.
_SHELL_VALUES = frozenset(("--rcfile", "--init-file"))

_EXEC_OPTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))

#: Programs that take a command's words as mere text; behind a wrapper they are what is run.
_TAKES_TEXT = frozenset(
    ("echo", "printf", "grep", "egrep", "fgrep", "rg", "cat", "ls", "man", "which", "type", "test", "true", "sleep")
)


def hidden_starts(words: list[str]) -> range:
    """Where the command of a wrapper may begin that has options we do not know: near where it seems to begin."""
    start = _starts(words)[-1]
    if not start or words[start].rsplit("/", 1)[-1] in _TAKES_TEXT:
        return range(0)
    return range(start, min(start + 3, len(words)))


def is_wrapper(name: str) -> bool:
    return name in _WRAPPERS or name in _RUNNERS


def program(words: list[str]) -> str:
    """The name of the program that the words run, without its folder."""
    return words[0].rsplit("/", 1)[-1] if words else ""


def is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    name = name.removesuffix("+").partition("[")[0]
    return bool(equals and name) and name.replace("_", "a").isalnum() and name[0] not in "0123456789"


def unwrapped(words: list[str], depth: int = 0) -> list[list[str]]:
    """The command as it stands, then what each wrapper runs; the innermost is last. `find -exec` counts too."""
    if not words:
        return []
    starts = _starts(words)
    stages = [words[start:] for start in starts[:_LISTED]]
    if len(starts) > _LISTED:
        stages.append(words[starts[-1] :])
    if program(stages[-1]) == "find" and depth < _LISTED:
        for command in _executed(stages[-1])[:_LISTED]:
            stages += unwrapped(command, depth + 1)
    return stages


def _starts(words: list[str]) -> list[int]:
    """Where the command begins, and where what each of its wrappers runs."""
    starts = [0]
    while (behind := _behind_wrapper(words, starts[-1])) is not None:
        starts.append(behind)
    return starts


def _behind_wrapper(words: list[str], start: int) -> int | None:
    """Where the command begins that a wrapper at `start` runs; None if there is none."""
    name = words[start].rsplit("/", 1)[-1]
    at = start + 1
    if name[:6] == "python" and words[at : at + 2] == ["-m", "fusewire"]:
        return at + 1  # and then it is as below
    if name in _RUNNERS and words[at : at + 1] in (["run"], ["exec"]):
        at = _behind_options(words, at + 1, _RUNNER)
    elif name == "fusewire":
        at = _behind_own_options(words, at)
    elif name in _WRAPPERS:
        argv = _split(words[at : at + _WINDOW], _WRAPPERS[name])
        if (name == "command" and argv.has("v", "V")) or (name == "env" and argv.has("S", "split-string")):
            return None
        at = _behind_options(words, at, _WRAPPERS[name])
        while name in ("env", "sudo") and at < len(words) and (words[at] == "-" or is_assignment(words[at])):
            at += 1
        has_architecture = name == "setarch" and at == start + 1
        if name in _TAKES_OPERAND or has_architecture:
            at = _behind_options(words, at + 1, _WRAPPERS[name])
    else:
        return None
    return at if at < len(words) else None


def _split(words: list[str], described: tuple[str, str], *, permutes: bool = False) -> Argv:
    from fusewire.guard.shell.argv import Argv  # most calls have no wrapper

    return Argv(words, *described, permutes=permutes)


def _behind_options(words: list[str], at: int, described: tuple[str, str]) -> int:
    window = words[at : at + _WINDOW]
    return at + len(window) - len(_split(window, described).operands)


def _behind_own_options(words: list[str], at: int) -> int:
    """Where the command begins that our program runs: `run [--] COMMAND`, `attempt run` or `wrap ... -- COMMAND`."""
    at = _behind_options(words, at, _WRAPPERS["fusewire"])
    rest = words[at:]
    if rest[:1] == ["run"]:
        return _behind_options(words, at + 1, _WRAPPERS["fusewire"])
    runs = "--" in rest and (rest[0] == "wrap" or (rest[0] == "attempt" and "run" in rest))
    return words.index("--", at) + 1 if runs else len(words)


def wrapped_by(words: list[str]) -> tuple[list[str], list[str], str | None]:
    """What a wrapper runs, the variables that it sets, and the folder that it moves to first."""
    start = _behind_wrapper(words, 0)
    if start is None:
        return [], [], None
    name, before = program(words), words[1:start]
    folder = None
    if name in _FOLDERS:
        folder = _split(before, _WRAPPERS[name]).value(*_FOLDERS[name])
    return words[start:], [word for word in before if is_assignment(word)], folder


def _executed(words: list[str]) -> list[list[str]]:
    """What `find ... -exec COMMAND ;` runs."""
    found = []
    for at, word in enumerate(words):
        if word in _EXEC_OPTIONS:
            rest = words[at + 1 :]
            end = next((end for end, other in enumerate(rest) if other in (";", "+")), len(rest))
            found += [rest[:end]] if end else []
    return found


def scripts_of(words: list[str]) -> list[str]:
    """Words of the command that are themselves command lines: `bash -c`, `eval`, `su -c`, `env -S`, `trap`."""
    name = program(words)
    if name == "eval":
        first = 0
        while first < len(words) and words[first] in ("eval", "--"):
            first += 1
        return [" ".join(words[first:])]
    if name == "trap":
        return words[2:3] if words[1:2] == ["--"] else words[1:2]
    if name in SHELLS:
        has_script, operands, _ = shell_operands(words)
        return operands[:1] if has_script else []
    if name not in _SCRIPT_OPTIONS:
        return []
    own = words[1 : _behind_wrapper(words, 0)]
    return _split(own, _WRAPPERS["runuser" if name == "su" else name], permutes=True).values(*_SCRIPT_OPTIONS[name])


def reads_input(words: list[str]) -> bool:
    """Whether the command is a shell that reads its commands from standard input."""
    if program(words) not in SHELLS or "--version" in words or "--help" in words:
        return False
    has_script, operands, runs = shell_operands(words)
    return (
        runs
        and not has_script
        and (not operands or operands[0] in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0") or "-s" in words)
    )


def shell_operands(words: list[str]) -> tuple[bool, list[str], bool]:
    """Whether a shell has `-c` (also as `-lc`, `-euo pipefail -c`), its operands, and whether it runs anything."""
    has_script = False
    runs = True
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word[:1] not in ("-", "+") or len(word) < 2:
            break
        if word.startswith("--"):
            at += 2 if word in _SHELL_VALUES else 1
            continue
        has_script = has_script or "c" in word[1:]
        runs = runs and not (word[0] == "-" and "n" in word[1:])
        at += 2 if "o" in word[1:].lower() else 1
    return has_script and runs, words[at:], runs

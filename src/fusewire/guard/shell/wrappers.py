"""Programs that run other programs: `sudo git push` runs `git push`, `bash -c '...'` runs what stands in the quotes."""

from __future__ import annotations

SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "rbash"))

#: More wrappers around one command than anybody writes; those in between are then not listed one by one.
_LISTED = 8

#: Programs that run the command behind them, and their options that take a value of their own.
_WRAPPERS = {
    "sudo": "-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --chdir --chroot --role --type"
    " --other-user --close-from --command-timeout",
    "doas": "-u -C",
    "env": "-u -C -a --unset --chdir --argv0",
    "time": "-f -o --format --output",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p -P -u --class --classdata --pid --pgid --uid",
    "timeout": "-s -k --signal --kill-after",
    "nohup": "",
    "faketime": "-p --pid",
    "datefudge": "",
    "flock": "-w -E -c --timeout --wait --conflict-exit-code --command",
    "setsid": "",
    "stdbuf": "-i -o -e --input --output --error",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "xargs": "-I -n -P -L -d -E -a -s --max-args --max-procs --max-lines --max-chars --arg-file --delimiter",
    "parallel": "-j --jobs -I -n -N",
    "watch": "-n --interval",
    "busybox": "",
    "chroot": "--userspec --groups",
    "chrt": "-T -P -D --sched-runtime --sched-period --sched-deadline",
    "choom": "-n -p --adjust --pid",
    "i386": "",
    "ld-linux-x86-64.so.2": "--library-path --inhibit-rpath --audit --preload --argv0 --glibc-hwcaps-prepend",
    "ld.so": "--library-path --inhibit-rpath --audit --preload --argv0 --glibc-hwcaps-prepend",
    "linux32": "",
    "linux64": "",
    "logsave": "",
    "ltrace": "-o -e -p -u -n -s -a -l -x -A -D -F --output",
    "nsenter": "-t -S -G -W --target --setuid --setgid --wdns",
    "npx": "-p -c -w --package --call --workspace",
    "prlimit": "-p -o --pid --output",
    "runuser": "-u -g -G -w -s -c --user --group --supp-group --whitelist-environment --shell --command"
    " --session-command",
    "script": "-I -O -B -T -m -c -E -o --log-in --log-out --log-io --log-timing --logging-format --command --echo"
    " --output-limit",
    "setarch": "",
    "setpriv": "--ambient-caps --inh-caps --bounding-set --ruid --euid --rgid --egid --reuid --regid --groups"
    " --securebits --pdeathsig --selinux-label --apparmor-profile",
    "sg": "-c",
    "strace": "-o -e -p -E -u -P -a -s -S -I -b -O -X -U --output --trace --attach --env --user --trace-path --columns"
    " --string-limit --signal --status --detach-on",
    "taskset": "",
    "unshare": "-R -w -S -G --root --wd --setuid --setgid --propagation --setgroups --monotonic --boottime --map-user"
    " --map-group --map-users --map-groups",
    "uvx": "--with --from --python -p",
}

#: Wrappers that move to a folder first, and the options that say to which.
_FOLDERS = {
    "env": ("-C", "--chdir"),
    "sudo": ("-D", "--chdir"),
    "unshare": ("-w", "--wd"),
    "nsenter": ("-w", "--wd", "-W", "--wdns"),
}

#: Programs that do so with a word in front (`uv run pytest`).
_RUNNERS = frozenset(("uv", "poetry", "pdm", "pipenv", "rye", "hatch", "pixi", "pipx", "bundle", "composer"))
_RUNNER_VALUES = "--with --from --python -p --extra --group --package --project -e"

#: Our own program: `fusewire attempt run S-1 t -- COMMAND`, `fusewire run --until SCRIPT -- COMMAND`.
_OWN = "fusewire"
_OWN_VALUES = (
    "--project --prompt --max-iterations --max-time --max-cost --timeout --idle-timeout --until --verify --plan --junit"
    " --strategy".split()
)

#: Wrappers whose first operand is theirs (`timeout 10 git ...`).
_TAKES_OPERAND = frozenset("timeout faketime datefudge flock taskset chroot chrt sg logsave script".split())

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
    return name in _WRAPPERS or name in _RUNNERS or name == _OWN


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
    while True:
        behind = _behind_wrapper(words, starts[-1])
        if behind is None or behind >= len(words):
            return starts
        starts.append(behind)


def _behind_wrapper(words: list[str], start: int) -> int | None:
    """Where the command begins that a wrapper at `start` runs; None if there is no wrapper."""
    name = words[start].rsplit("/", 1)[-1]
    at = start + 1
    if name == _OWN:
        return _behind_own(words, at)
    if name[:6] == "python" and words[at : at + 2] == ["-m", _OWN]:
        return at + 1  # and then it is as above
    if name in _RUNNERS and words[at : at + 1] in (["run"], ["exec"]):
        at += 1
        valued = _RUNNER_VALUES.split()
    elif name in _WRAPPERS:
        valued = _WRAPPERS[name].split()
    else:
        return None
    operands_left = 1 if name in _TAKES_OPERAND else 0
    if name == "setarch" and words[at : at + 1] and words[at][:1] != "-":
        operands_left = 1  # the architecture, which may be left out
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1 + operands_left
        if name == "command" and word in ("-v", "-V"):
            return None
        if name == "env" and word in ("-S", "--split-string"):
            return None  # see `scripts_of`
        if word.startswith("-") and (len(word) > 1 or name == "env"):
            at += 2 if _takes_next(word, valued) else 1
        elif name in ("env", "sudo") and is_assignment(word):
            at += 1
        elif operands_left:
            operands_left -= 1
            at += 1
        else:
            break
    return at


def _behind_own(words: list[str], at: int) -> int | None:
    """Where the command begins that our program runs: `run [--] COMMAND`, `attempt run` or `wrap ... -- COMMAND`."""
    at = _behind_options(words, at)
    if words[at : at + 1] == ["run"]:
        at = _behind_options(words, at + 1)
        at += words[at : at + 1] == ["--"]
    elif _runs_what_follows(words[at:]):
        at = words.index("--", at) + 1
    else:
        return None
    return at if at < len(words) else None


def _runs_what_follows(words: list[str]) -> bool:
    return "--" in words and (words[0] in ("wrap", "wait") or (words[0] == "attempt" and "run" in words))


def _behind_options(words: list[str], at: int) -> int:
    while at < len(words) and words[at][:1] == "-" and words[at] != "--":
        at += 2 if words[at] in _OWN_VALUES else 1
    return at


def _takes_next(word: str, valued: list[str]) -> bool:
    """Whether the value of an option is the next word: `-u`, `-Eu`, but not `-uroot`."""
    if word in valued:
        return True
    if word[:2] == "--":
        return False
    at = next((at for at, letter in enumerate(word[1:], 1) if f"-{letter}" in valued), 0)
    return at > 0 and at == len(word) - 1


def wrapped_by(words: list[str]) -> tuple[list[str], list[str], str | None]:
    """What a wrapper runs, the variables that it sets, and the folder that it moves to first."""
    start = _behind_wrapper(words, 0)
    if start is None or start >= len(words):
        return [], [], None
    before = words[1:start]
    folder = None
    for at, word in enumerate(before):
        for option in _FOLDERS.get(program(words), ()):
            ends = option[:2] != "--" and word[:1] == "-" and word[1:2] != "-" and word[-1] == option[1]
            if (ends or word == option) and at + 1 < len(before):
                folder = before[at + 1]
            elif word.startswith(f"{option}=" if option[:2] == "--" else option) and word != option:
                folder = word[len(option) :].removeprefix("=")
    return words[start:], [word for word in before if is_assignment(word)], folder


def _executed(words: list[str]) -> list[list[str]]:
    """What `find ... -exec COMMAND ;` runs."""
    found = []
    at = 0
    while at < len(words):
        if words[at] in _EXEC_OPTIONS:
            end = at + 1
            while end < len(words) and words[end] not in (";", "+"):
                end += 1
            if end > at + 1:
                found.append(words[at + 1 : end])
            at = end
        at += 1
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
    if name == "env":
        return _values_of(words, "S", "--split-string")
    if name in SHELLS:
        has_script, operands, _ = shell_operands(words)
        return operands[:1] if has_script else []
    if name in ("su", "runuser", "script"):
        return _values_of(words, "c", "--command") + _values_of(words, "", "--session-command")
    if name == _OWN:
        own = words[: words.index("--")] if "--" in words else words
        return [script for option in ("--until", "--verify") for script in _values_of(own, "", option)]
    if name in ("flock", "sg", "npx"):
        own = words[: _behind_wrapper(words, 0)]
        return _values_of(own, "c", "--call" if name == "npx" else "--command") or (words[2:3] if name == "sg" else [])
    return []


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


def _values_of(words: list[str], letter: str, option: str) -> list[str]:
    """What follows `-c` (also as the last of `-qc`), `--command`, or stands behind `--command=` and `-S`."""
    found = []
    for at, word in enumerate(words[1:], 1):
        if word == option or (letter and word[:1] == "-" and word[1:2] != "-" and word[-1:] == letter):
            found += words[at + 1 : at + 2]
        elif word.startswith(f"{option}="):
            found.append(word[len(option) + 1 :])
        elif letter and word.startswith(f"-{letter}") and " " in word:
            found.append(word[2:])
    return found


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

"""Programs that run other programs: `sudo git push` runs `git push`, `bash -c '...'` runs what stands in the quotes."""

from __future__ import annotations

SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "rbash"))

#: More wrappers around one command than anybody writes; those in between are then not listed one by one.
_LISTED = 8

#: Programs that run the command behind them, and their options that take a value of their own.
_WRAPPERS: dict[str, frozenset[str]] = {
    "sudo": frozenset(
        (
            "-u",
            "-g",
            "-h",
            "-p",
            "-C",
            "-T",
            "-r",
            "-t",
            "-U",
            "-D",
            "-R",
            "--user",
            "--group",
            "--host",
            "--prompt",
            "--chdir",
            "--role",
            "--type",
            "--other-user",
        )
    ),
    "doas": frozenset(("-u", "-C")),
    "env": frozenset(("-u", "-C", "--unset", "--chdir")),
    "time": frozenset(("-f", "-o", "--format", "--output")),
    "nice": frozenset(("-n", "--adjustment")),
    "ionice": frozenset(("-c", "-n", "-p", "--class", "--classdata")),
    "timeout": frozenset(("-s", "-k", "--signal", "--kill-after")),
    "nohup": frozenset(),
    "flock": frozenset(("-w", "--timeout", "-E")),
    "setsid": frozenset(),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset(("-a",)),
    "xargs": frozenset(("-I", "-n", "-P", "-L", "-d", "-E", "-a", "-s", "--max-args", "--max-procs", "--replace")),
    "parallel": frozenset(("-j", "--jobs", "-I", "-n", "-N")),
    "watch": frozenset(("-n", "--interval")),
    "busybox": frozenset(),
    "chroot": frozenset(),
    "chrt": frozenset(),
    "choom": frozenset(("-n",)),
    "i386": frozenset(),
    "ld-linux-x86-64.so.2": frozenset(),
    "ld.so": frozenset(),
    "linux32": frozenset(),
    "linux64": frozenset(),
    "logsave": frozenset(),
    "nsenter": frozenset(("-t", "--target")),
    "runuser": frozenset(("-u", "--user", "-g", "--group")),
    "setarch": frozenset(),
    "ltrace": frozenset(("-o", "-e")),
    "prlimit": frozenset(),
    "script": frozenset(),
    "setpriv": frozenset(),
    "sg": frozenset(),
    "strace": frozenset(("-o", "-e", "-p")),
    "taskset": frozenset(("-c",)),
    "unshare": frozenset(),
    "uvx": frozenset(("--with", "--from", "--python", "-p")),
    "npx": frozenset(("-p", "--package")),
}

#: Programs that do so with a word in front (`uv run pytest`).
_RUNNERS = frozenset(("uv", "poetry", "pdm", "pipenv", "rye", "hatch", "pixi", "pipx"))
_RUNNER_VALUES = frozenset(("--with", "--from", "--python", "-p", "--extra", "--group", "--package", "--project", "-e"))

#: Wrappers whose first operand is theirs (`timeout 10 git ...`).
_TAKES_OPERAND = frozenset(("timeout", "flock", "taskset", "chroot", "chrt", "sg", "logsave"))

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
    while True:
        behind = _behind_wrapper(words, starts[-1])
        if behind is None or behind >= len(words):
            return starts
        starts.append(behind)


def _behind_wrapper(words: list[str], start: int) -> int | None:
    """Where the command begins that a wrapper at `start` runs; None if there is no wrapper."""
    name = words[start].rsplit("/", 1)[-1]
    at = start + 1
    if name in _RUNNERS and words[at : at + 1] == ["run"]:
        at += 1
        valued = _RUNNER_VALUES
    elif name in _WRAPPERS:
        valued = _WRAPPERS[name]
    else:
        return None
    operands_left = 1 if name in _TAKES_OPERAND else 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1 + operands_left
        if name == "command" and word in ("-v", "-V"):
            return None
        if name == "env" and word in ("-S", "--split-string"):
            return None  # see `scripts_of`
        if word.startswith("-") and (len(word) > 1 or name == "env"):
            at += 2 if word in valued else 1
        elif name in ("env", "sudo") and is_assignment(word):
            at += 1
        elif operands_left:
            operands_left -= 1
            at += 1
        else:
            break
    return at


def wrapped_by(words: list[str]) -> tuple[list[str], list[str], str | None]:
    """What a wrapper runs, the variables that it sets, and the folder that it moves to first."""
    start = _behind_wrapper(words, 0)
    if start is None or start >= len(words):
        return [], [], None
    before = words[1:start]
    folder = next((before[at + 1] for at, word in enumerate(before[:-1]) if word in ("-C", "--chdir", "-D")), None)
    folder = next((word.partition("=")[2] for word in before if word.startswith("--chdir=")), folder)
    moves = program(words) in ("env", "sudo")
    return words[start:], [word for word in before if is_assignment(word)], folder if moves else None


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
    if name in ("su", "runuser") or name in _WRAPPERS:
        return _values_of(words, "c", "--command")
    return []


def reads_input(words: list[str]) -> bool:
    """Whether the command is a shell that reads its commands from standard input."""
    if program(words) not in SHELLS or "--version" in words or "--help" in words:
        return False
    has_script, operands, runs = shell_operands(words)
    return runs and not has_script and (not operands or operands[0] in ("-", "/dev/stdin") or "-s" in words)


def _values_of(words: list[str], letter: str, option: str) -> list[str]:
    """What follows `-c` (also as the last of `-qc`), `--command`, or stands behind `--command=` and `-S`."""
    found = []
    for at, word in enumerate(words[1:], 1):
        if word == option or (word[:1] == "-" and word[1:2] != "-" and word[-1:] == letter):
            found += words[at + 1 : at + 2]
        elif word.startswith(f"{option}="):
            found.append(word[len(option) + 1 :])
        elif word.startswith(f"-{letter}") and " " in word:
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

"""Run the shell's own commands: they change the world that the next command sees."""

from __future__ import annotations

from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.outputs import printed
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.shell.walk import Walk
    from fusewire.guard.shell.world import World

    Builtin = Callable[[Walk, list[str], World], list[World]]


def _cd(walk: Walk, words: list[str], world: World) -> list[World]:
    walk.runner.command(words, world, walk)
    operands = [word for word in words[1:] if word == "-" or word[:1] not in ("-", "+")]
    target: str | list[str] | None
    if words[0] == "popd" or (words[0] == "pushd" and not operands):
        target = world.stack[-1] if world.stack else world.cwd
        world.stack = world.stack[:-1] if words[0] == "popd" else world.stack
    elif not operands or operands[0] == "-":
        name = "OLDPWD" if operands else "HOME"
        target = world.variables.get(name, walk.environment.get(name) if name == "HOME" else None)
    else:
        target = operands[0]
    if words[0] == "pushd":
        world.stack = [*world.stack, world.cwd]
    path = normal(walk.path(target, world)) if isinstance(target, str) else UNKNOWN
    if "-P" in words and walk.disk is not None:
        path = walk.disk.real(path)
    failed = world.copy() if walk.disk is not None and not walk.disk.is_folder(path) else None
    world.variables["OLDPWD"] = world.cwd
    world.cwd = path
    world.status = True
    if failed is None:
        return [world]
    failed.status = False  # there is no such folder, unless the line makes it
    return [world, failed]


def _declare(walk: Walk, words: list[str], world: World) -> list[World]:
    walk.runner.command(words, world, walk)
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            world.variables[name] = value
        if words[0] == "export":
            world.exported |= {name}
    world.status = True
    return [world]


def _unset(walk: Walk, words: list[str], world: World) -> list[World]:
    for word in words[1:]:
        world.variables[word] = ""
        world.functions.pop(word, None)
    return [world]


#: Options that change what a line does to files.
_SET = {"f": "noglob", "e": "errexit", "C": "noclobber"}


def _set(walk: Walk, words: list[str], world: World) -> list[World]:
    at = 1
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] != "--":
        sign, letters = words[at][:1], words[at][1:]
        names = {_SET[letter] for letter in letters if letter in _SET}
        if letters[-1:] == "o":
            at += 1
            names |= set(words[at : at + 1])
        world.options = world.options - names if sign == "+" else world.options | names
        at += 1
    if at < len(words):
        world.positionals = [world.positionals[0], *words[at + (words[at] == "--") :]]
    return [world]


def _shopt(walk: Walk, words: list[str], world: World) -> list[World]:
    names = {word for word in words[1:] if word[:1] != "-"}
    if "-s" in words or "-u" in words:
        world.options = world.options | names if "-s" in words else world.options - names
    world.status = None
    return [world]


def _shift(walk: Walk, words: list[str], world: World) -> list[World]:
    count = int(words[1][:4]) if len(words) > 1 and words[1].isdigit() else 1
    world.status = len(world.positionals) > count
    world.positionals = [world.positionals[0], *world.positionals[1 + count :]]
    return [world]


def _eval(walk: Walk, words: list[str], world: World) -> list[World]:
    walk.runner.command(words, world, walk)
    text = " ".join(words[2 if words[1:2] == ["--"] else 1 :])
    if text.strip():
        return walk.text(text, world)
    world.status = True
    return [world]


def _source(walk: Walk, words: list[str], world: World) -> list[World]:
    walk.runner.command(words, world, walk)
    operands = words[2:] if words[1:2] == ["--"] else words[1:]
    if not operands:
        return [world]
    path = walk.path(operands[0], world)
    text = world.stdin if operands[0] in ("/dev/stdin", "-") else walk.files.get(normal(path))
    if text is None:
        text = walk.read_file(path)
        if text is not None:
            return walk.runner.sourced(text, world, walk)
    if text is None or UNKNOWN in text:
        world.status = None
        return [world]
    read = text
    return walk.called(lambda: walk.text(read, world), operands[1:] or world.positionals[1:], world)


def _exec(walk: Walk, words: list[str], world: World) -> list[World]:
    operands = Argv(words[1:], "a", permutes=False).operands
    if not operands:
        return [world]
    walk.runner.command(words, world, walk)
    worlds = walk.words(operands, world)
    for one in worlds:
        one.flow = "exit"
    return worlds


def _command(walk: Walk, words: list[str], world: World) -> list[World]:
    """`command NAME`: a program or builtin, not a function; with `-v` it only says where it is."""
    argv = Argv(words[1:], permutes=False)
    if argv.has("v", "V") or not argv.operands:
        world.out += "".join(f"{name if name[:1] == '/' else '/usr/bin/' + name}\n" for name in argv.operands[:1])
        world.status = None
        return [world]
    walk.runner.command(words, world, walk)
    name = argv.operands[0]
    hidden = world.functions.pop(name, None)
    worlds = walk.words(argv.operands, world)
    for one in worlds if hidden is not None else ():
        one.functions[name] = hidden  # type: ignore[assignment]
    return worlds


def _trap(walk: Walk, words: list[str], world: World) -> list[World]:
    """`trap COMMANDS EXIT`, which the walk runs at the end of the line; other signals may never come."""
    walk.runner.command(words, world, walk)
    operands = words[2:] if words[1:2] == ["--"] else words[1:]
    if not {"EXIT", "0"}.isdisjoint(operands[1:]):
        world.variables["trap EXIT"] = operands[0] if operands[0] != "-" else ""
    world.status = True
    return [world]


def _flow(walk: Walk, words: list[str], world: World) -> list[World]:
    inside = {"return": walk.calls, "break": walk.loops, "continue": walk.loops}.get(words[0], 1)
    world.flow = words[0] if inside else ""
    code = "".join(words[1:2])
    world.status = False if not inside else None if not code.isdigit() else int(code[:4]) == 0
    return [world]


def _constant(walk: Walk, words: list[str], world: World) -> list[World]:
    walk.runner.command(words, world, walk)
    world.status = words[0] != "false"
    return [world]


def _read(walk: Walk, words: list[str], world: World) -> list[World]:
    walk.runner.command(words, world, walk)
    argv = Argv(words[1:], "pdntuiN")
    names = argv.operands or ["REPLY"]
    text = world.stdin
    null = argv.value("d") == "" and "\0" in (text or "")
    line, _, rest = (UNKNOWN if text is None else text).partition("\0" if null else "\n")
    world.stdin = text and rest
    if UNKNOWN in line:
        values = [UNKNOWN] * len(names)
        world.status = None
    else:
        world.status = text != ""
        values = _pieces(line, world, len(names) if not argv.has("a") else 10_000)
    if argv.has("a"):
        world.variables[names[0]] = values
    else:
        world.variables.update(zip(names, [*values, *[""] * len(names)], strict=False))
    return [world]


def _pieces(line: str, world: World, count: int) -> list[str]:
    separators = world.variables.get("IFS")
    if separators == "" or count <= 1:
        return [line.strip(" \t") if separators is None else line]
    if isinstance(separators, str) and separators.strip():
        for other in separators[1:]:
            line = line.replace(other, separators[0])
        return line.split(separators[0], count - 1)
    return line.split(None, count - 1)


def _print(walk: Walk, words: list[str], world: World) -> list[World]:
    if words[0] == "printf" and words[1:2] == ["-v"] and len(words) > 3:
        world.variables[words[2]] = printed(["printf", *words[3:]]) or ""
        return [world]
    walk.runner.command(words, world, walk)
    world.status = True if words[0] == "echo" else None
    return [world]


def _test(walk: Walk, words: list[str], world: World) -> list[World]:
    """`[ ... ]`: what is known at once; a file may have come and gone since the line began."""
    walk.runner.command(words, world, walk)
    world.status = tested(words[1:-1] if words[0] == "[" else words[1:], walk, world)
    return [world]


_FILE_TESTS = ("-d", "-e", "-f", "-s", "-L", "-h", "-r", "-w", "-x")

#: What the comparison of two numbers must give: -1, 0 or 1.
_NUMBER_TESTS = {"-eq": (0,), "-ne": (-1, 1), "-gt": (1,), "-ge": (0, 1), "-lt": (-1,), "-le": (-1, 0)}


def tested(operands: list[str], walk: Walk, world: World) -> bool | None:
    if walk.literal or any(UNKNOWN in operand for operand in operands):
        return None
    if operands[:1] == ["!"]:
        inner = tested(operands[1:], walk, world)
        return None if inner is None else not inner
    if len(operands) == 2 and operands[0] in ("-z", "-n"):
        return bool(operands[1]) is (operands[0] == "-n")
    if len(operands) == 2 and operands[0] in _FILE_TESTS:
        return walk.runner.holds(operands[0], walk.path(operands[1], world))
    if len(operands) != 3:
        return None
    left, operator, right = operands
    if operator in _NUMBER_TESTS and left.isdigit() and right.isdigit():
        one, other = int(left[:9]), int(right[:9])
        return (one > other) - (one < other) in _NUMBER_TESTS[operator]
    return (left == right) is (operator != "!=") if operator in ("=", "==", "!=") else None


BUILTINS: dict[str, Builtin] = {
    **dict.fromkeys((".", "source"), _source),
    **dict.fromkeys((":", "true", "false"), _constant),
    **dict.fromkeys(("[", "test"), _test),
    **dict.fromkeys(("break", "continue", "exit", "return"), _flow),
    **dict.fromkeys(("builtin", "command"), _command),
    **dict.fromkeys(("cd", "popd", "pushd"), _cd),
    **dict.fromkeys(("declare", "export", "local", "readonly", "typeset"), _declare),
    **dict.fromkeys(("echo", "printf"), _print),
    "eval": _eval,
    "exec": _exec,
    "read": _read,
    "set": _set,
    "shift": _shift,
    "shopt": _shopt,
    "trap": _trap,
    "unset": _unset,
}

"""The shell's own commands: they change the world that the next command sees."""

from __future__ import annotations

from fusewire.paths import normal
from fusewire.shell.outputs import printed
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.shell.walk import Walk
    from fusewire.shell.world import World

    Builtin = Callable[[Walk, list[str], World], list[World]]


def _told(walk: Walk, words: list[str], world: World) -> None:
    walk.runner.command(words, world, walk)


def _cd(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    operands = [word for word in words[1:] if word == "-" or word[:1] != "-"]
    if words[0] in ("pushd", "popd") and any(word[:1] in "+-" and word[1:].isdigit() for word in words[1:]):
        # Which of them it is depends on the order of the stack: it may be any.
        return [one for target in [*world.stack, world.cwd] for one in _moved(walk, world.copy(), target, False, False)]
    if words[0] == "pushd" and "-n" in words:
        world.stack = [*world.stack, normal(walk.path(operands[-1], world))] if operands else world.stack
        return [world]
    if words[0] == "popd" and not world.stack:
        world.status = None
        return [world]
    if words[0] == "popd":
        target = world.stack[-1] if world.stack else world.cwd
        world.stack = world.stack[:-1]
    elif not operands:
        if words[0] == "pushd":
            target = world.stack[-1] if world.stack else world.cwd
        else:
            home = walk.environment.get("HOME")
            known = world.variables.get("HOME", home)
            target = known if isinstance(known, str) else UNKNOWN
    elif operands[0] == "-":
        old = world.variables.get("OLDPWD")
        target = old if isinstance(old, str) else UNKNOWN
    else:
        target = operands[0]
    physical = "-P" in words and walk.resolves is not None
    return _moved(walk, world, target, pushes=words[0] == "pushd", physical=physical)


def _moved(walk: Walk, world: World, target: str, pushes: bool, physical: bool) -> list[World]:
    """The world in which it went well; also the one in which there is no such folder, if that may be."""
    path = normal(walk.path(target, world))
    search = world.variables.get("CDPATH")
    if isinstance(search, str) and target[:1] not in ("/", "."):
        for folder in search.split(":"):
            inside = normal(walk.path(f"{folder or '.'}/{target}", world))
            if walk.is_folder is not None and walk.is_folder(inside):
                path = inside
                break
    if physical and walk.resolves is not None:
        path = walk.resolves(path)
    there = walk.is_folder(path) if walk.is_folder is not None else True
    variable = world.variables.get(target)
    if not there and "cdable_vars" in world.options and isinstance(variable, str):
        path = normal(walk.path(variable, world))
    failed = world.copy() if not there else None
    if pushes:
        world.stack = [*world.stack, world.cwd]
    world.variables["OLDPWD"] = world.cwd
    world.cwd = path
    world.status = True
    if failed is None:
        return [world]
    failed.status = False
    return [world, failed]


def _declare(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    if walk.locals and words[0] in ("local", "declare", "typeset") and "-g" not in words:
        walk.locals[-1] |= {word.partition("=")[0] for word in words[1:] if word[:1] != "-"}
    refers = any(word[:1] == "-" and "n" in word for word in words[1:]) and words[0] != "export"
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            world.variables[name] = value
    world.status = None if any(word[:1] == "-" for word in words) else True
    if words[0] == "export" or any(word[:1] == "-" and "x" in word for word in words[1:]):
        world.exported |= {word.partition("=")[0] for word in words[1:]}
    if refers:  # the parser took `ref=y` for an assignment
        world.options |= {f"nameref:{name}" for name in list(world.variables)[-1:]}
    return [world]


def _unset(walk: Walk, words: list[str], world: World) -> list[World]:
    for word in words[1:]:
        world.variables.pop(word, None)
        world.options |= {f"unset {word}"}
        world.functions.pop(word, None)
    return [world]


#: Options that change what a line does to files.
_SET = {"f": "noglob", "e": "errexit", "C": "noclobber", "": "pipefail"}


def _set(walk: Walk, words: list[str], world: World) -> list[World]:
    for word in words[1:]:
        if word == "--":
            break
        letters = {_SET[letter] for letter in word[1:] if letter in _SET} if word[:1] in "-+" else set()
        names = letters | ({word} if word in _SET.values() else set())
        world.options = world.options - names if word[:1] == "+" else world.options | names
    at = next((at for at, word in enumerate(words) if at and (word == "--" or word[:1] not in "-+" or not word)), 0)
    if at and words[at - 1] not in ("-o", "+o"):
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
    _told(walk, words, world)
    first = 2 if words[1:2] == ["--"] else 1
    if not "".join(words[first:]).strip():
        world.status = True
        return [world]
    return walk.text(" ".join(words[first:]), world)


def _source(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    operands = words[2:] if words[1:2] == ["--"] else words[1:]
    if not operands:
        return [world]
    if operands[0] in ("/dev/stdin", "/dev/fd/0", "-"):
        text = world.stdin
    else:
        path = walk.path(operands[0], world)
        text = walk.files.get(normal(path))
        if text is None:
            text = walk.read_file(path)
            if text is not None:
                return walk.runner.sourced(text, world, walk)
    if text is None or UNKNOWN in text:
        world.status = None
        return [world]
    positionals = world.positionals
    if len(operands) > 1:
        world.positionals = [positionals[0], *operands[1:]]
    walk.calls += 1
    worlds = walk.text(text, world)
    walk.calls -= 1
    for one in worlds:
        one.positionals = positionals
        one.flow = "" if one.flow == "return" else one.flow
    return worlds


def _exec(walk: Walk, words: list[str], world: World) -> list[World]:
    at = 1
    while at < len(words) and words[at][:1] == "-":
        at += 2 if words[at] == "-a" else 1
    if at >= len(words):
        return [world]
    _told(walk, words, world)
    worlds = walk.words(words[at:], world)
    for one in worlds:
        one.flow = "exit" if "execfail" not in one.options else one.flow
    return worlds


def _command(walk: Walk, words: list[str], world: World) -> list[World]:
    at = 1
    while at < len(words) and words[at][:1] == "-":
        if "v" in words[at] or "V" in words[at]:
            name = words[at + 1] if at + 1 < len(words) else ""
            world.out += f"{name if name[:1] == '/' else '/usr/bin/' + name}\n"
            world.status = None
            return [world]
        at += 1
    if at >= len(words):
        return [world]
    _told(walk, words, world)
    return _not_a_function(walk, words[at:], world)


def _not_a_function(walk: Walk, words: list[str], world: World) -> list[World]:
    hidden = world.functions.pop(words[0], None)
    worlds = walk.words(words, world)
    if hidden is not None:
        for one in worlds:
            one.functions[words[0]] = hidden
    return worlds


def _trap(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    operands = words[2:] if words[1:2] == ["--"] else words[1:]
    if len(operands) > 1 and (operands[0] == "-" or operands[0][:1] != "-"):
        for signal in operands[1:]:
            name = signal.upper().removeprefix("SIG")
            world.traps = {key: value for key, value in world.traps.items() if key != name}
            if operands[0] not in ("", "-"):
                world.traps[name] = operands[0]
    world.status = True
    return [world]


def _getopts(walk: Walk, words: list[str], world: World) -> list[World]:
    """One option a call, from the positionals (or the words behind the name)."""
    given = words[3:] or world.positionals[1:]
    at = world.variables.get("OPTIND", "1")
    index = int(at) - 1 if isinstance(at, str) and at.isdigit() else 0
    word = given[index] if index < len(given) else ""
    world.status = len(word) > 1 and word[0] == "-" and word != "--"
    if world.status and len(words) > 2:
        letter, value = word[1], word[2:]
        takes = f"{letter}:" in words[1]
        world.variables[words[2]] = letter if letter in words[1] else "?"
        world.variables["OPTARG"] = (value or "".join(given[index + 1 : index + 2])) if takes else ""
        world.variables["OPTIND"] = str(index + (3 if takes and not value else 2))
    return [world]


def _flow(walk: Walk, words: list[str], world: World) -> list[World]:
    inside = {"return": walk.calls, "break": walk.loops, "continue": walk.loops}.get(words[0], 1)
    world.flow = words[0] if inside else ""
    code = "".join(words[1:2])
    world.status = None if not code.isdigit() else int(code[:4]) == 0
    if not inside:
        world.status = False
    return [world]


def _true(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    world.status = True
    return [world]


def _false(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    world.status = False
    return [world]


def _type(walk: Walk, words: list[str], world: World) -> list[World]:
    """`type -P rm` gives its path."""
    if any(word[:1] == "-" and word[1:2] in ("P", "p") for word in words):
        world.out += f"/usr/bin/{words[-1]}\n"
    else:
        world.out += UNKNOWN
    world.status = None
    return [world]


def _read(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    names: list[str] = []
    at, array, null = 1, False, False
    while at < len(words):
        word = words[at]
        if word[:1] == "-" and len(word) > 1 and not names:
            array = array or "a" in word
            if word[-1] in "pdntuiN":
                null = null or (word[-1] == "d" and words[at + 1 : at + 2] == [""])
                at += 1
        else:
            names.append(word)
        at += 1
    text = world.stdin
    if text == "":
        world.status = False
        values: list[str] = []
    elif text is None:
        world.status = None
        values = [UNKNOWN] * max(1, len(names))
    else:
        line, _, rest = text.partition("\0" if null and "\0" in text else "\n")
        world.status = None if UNKNOWN in line else True
        if UNKNOWN in line:
            values = [UNKNOWN] * max(1, len(names))
            world.stdin = rest if rest else ""
        else:
            values = _pieces(line, world, len(names) if not array else 10_000)
            world.stdin = rest
    if array and names:
        world.variables[names[0]] = values
    else:
        for number, name in enumerate(names or ["REPLY"]):
            world.variables[name] = values[number] if number < len(values) else ""
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


def _mapfile(walk: Walk, words: list[str], world: World) -> list[World]:
    name = words[-1] if len(words) > 1 and words[-1][:1] != "-" else "MAPFILE"
    text = UNKNOWN if world.stdin is None else world.stdin
    skipped = words[words.index("-s") + 1] if "-s" in words[:-2] else "0"
    world.variables[name] = text.replace("\0", "\n").splitlines()[int(skipped) if skipped.isdigit() else 0 :]
    if "-C" in words[:-2]:
        walk.text(words[words.index("-C") + 1], world.copy())
    world.status = True
    return [world]


def _hash(walk: Walk, words: list[str], world: World) -> list[World]:
    """`hash -p PATH NAME`: from now on the name is that program."""
    if words[1:2] == ["-p"] and len(words) > 3:
        world.variables[f"alias {words[3]}"] = words[2]
        world.options |= {"expand_aliases"}
    return [world]


def _print(walk: Walk, words: list[str], world: World) -> list[World]:
    if words[0] == "printf" and words[1:2] == ["-v"] and len(words) > 3:
        world.variables[words[2]] = printed(["printf", *words[3:]]) or ""
        return [world]
    _told(walk, words, world)
    world.status = True if words[0] == "echo" else None
    return [world]


def _alias(walk: Walk, words: list[str], world: World) -> list[World]:
    _told(walk, words, world)
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            world.variables[f"alias {name}"] = value
    world.status = None
    return [world]


def _test(walk: Walk, words: list[str], world: World) -> list[World]:
    """`[ ... ]`: what is known at once; a file may have come and gone since the line began."""
    _told(walk, words, world)
    operands = words[1:-1] if words[0] == "[" else words[1:]
    world.status = tested(operands, walk, world)
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
    if len(operands) == 2 and walk.holds is not None and len(operands[0]) == 2 and operands[0] in _FILE_TESTS:
        return walk.holds(operands[0], walk.path(operands[1], world))
    if len(operands) == 3 and operands[1] in _NUMBER_TESTS and operands[0].isdigit() and operands[2].isdigit():
        return (int(operands[0][:9]) > int(operands[2][:9])) - (int(operands[0][:9]) < int(operands[2][:9])) in (
            _NUMBER_TESTS[operands[1]]
        )
    if len(operands) == 3 and operands[1] in ("=", "==", "!="):
        return (operands[0] == operands[2]) is (operands[1] != "!=")
    return None


BUILTINS: dict[str, Builtin] = {
    ".": _source,
    ":": _true,
    "[": _test,
    "alias": _alias,
    "break": _flow,
    "builtin": _command,
    "cd": _cd,
    "command": _command,
    "continue": _flow,
    "declare": _declare,
    "echo": _print,
    "eval": _eval,
    "exec": _exec,
    "exit": _flow,
    "export": _declare,
    "false": _false,
    "getopts": _getopts,
    "hash": _hash,
    "local": _declare,
    "mapfile": _mapfile,
    "popd": _cd,
    "printf": _print,
    "pushd": _cd,
    "read": _read,
    "readarray": _mapfile,
    "readonly": _declare,
    "return": _flow,
    "set": _set,
    "shift": _shift,
    "shopt": _shopt,
    "source": _source,
    "test": _test,
    "trap": _trap,
    "true": _true,
    "type": _type,
    "typeset": _declare,
    "unset": _unset,
}

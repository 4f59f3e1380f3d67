"""From a word to the fields that a command gets: tilde, parameters, substitutions, splitting, globs."""

from __future__ import annotations

from fusewire.globs import matches
from fusewire.shell.braces import braced
from fusewire.shell.tree import COMMAND, PARAMETER, PROCESS, QUOTED, TEXT
from fusewire.shell.values import UNKNOWN, activated, deactivated, has_glob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Part, Word
    from fusewire.shell.walk import Walk
    from fusewire.shell.world import World

#: A value that is longer than this is not followed.
VALUE_LIMIT = 65536


def fields_of(words: list[Word], world: World, walk: Walk) -> list[str]:
    """The words of a command, expanded."""
    found: list[str] = []
    for word in words:
        if type(word) is str:
            found.append(word)
            continue
        for parts in braced(word):  # type: ignore[arg-type]
            for field in _fields(parts, world, walk):
                if not has_glob(field):
                    found.append(field)
                elif walk.globs is None or "noglob" in world.options:
                    found.append(deactivated(field))
                else:
                    found += walk.globs(field, world)
    return found


def text_of(word: Word, world: World, walk: Walk) -> str:
    """A word that is not split: a value, a here-document, a file to redirect to."""
    if isinstance(word, str):
        return word
    text = ""
    for at, part in enumerate(word):
        if part[0] == TEXT:
            text += _tilde(part[1], world, walk) if at == 0 else part[1]
        elif part[0] == QUOTED:
            text += part[1]
        else:
            value = _value(part, world, walk, len(word) == 1)
            text += " ".join(value) if isinstance(value, list) else value
        if len(text) > VALUE_LIMIT:
            return UNKNOWN
    return text


def pattern_of(word: Word, world: World, walk: Walk) -> str:
    """A word that is matched against something: its unquoted globs stay active."""
    if isinstance(word, str):
        return _inert(word)
    text = ""
    for part in word:
        if part[0] == TEXT:
            text += part[1]
        elif part[0] == QUOTED:
            text += _inert(part[1])
        else:
            value = _value(part, world, walk, False)
            text += " ".join(value) if isinstance(value, list) else value
    return text


def _inert(text: str) -> str:
    for mark in "[*?":
        if mark in text:
            text = text.replace(mark, f"[{mark}]")
    return text


def _fields(parts: tuple[Part, ...], world: World, walk: Walk) -> list[str]:
    done: list[str] = []
    current, started = "", False
    for at, part in enumerate(parts):
        kind = part[0]
        if kind == TEXT:
            text = part[1]
            current += activated(_tilde(text, world, walk) if at == 0 and text[:1] == "~" else text)
            started = True
            continue
        if kind == QUOTED:
            current += part[1]
            started = True
            continue
        quoted = part[4] if kind == PARAMETER else part[2] is True
        value = _value(part, world, walk, len(parts) == 1)
        if isinstance(value, list):
            values = value if quoted else [piece for one in value for piece in one.split()]
            for number, one in enumerate(values):
                if number:
                    done.append(current)
                    current = ""
                current += one if quoted else activated(one)
                started = True
        elif quoted or kind == PROCESS:
            current += value
            started = True
        else:
            current, started = _split(value, current, started, done, world)
        if len(current) > VALUE_LIMIT:
            current = UNKNOWN
    if started:
        done.append(current)
    return done


def _split(value: str, current: str, started: bool, done: list[str], world: World) -> tuple[str, bool]:
    """An unquoted value: split at blanks (or at IFS), its globs active."""
    separators = world.variables.get("IFS")
    if isinstance(separators, str) and separators.strip(" \t\n"):
        for mark in separators:
            value = value.replace(mark, " ")
    pieces = value.split()
    if not pieces:
        if started and value:
            done.append(current)
            return "", False
        return current, started
    if value[:1].isspace() and started:
        done.append(current)
        current = ""
    current += activated(pieces[0])
    for piece in pieces[1:]:
        done.append(current)
        current = activated(piece)
    if value[-1:].isspace():
        done.append(current)
        return "", False
    return current, True


def _tilde(text: str, world: World, walk: Walk) -> str:
    if text[:1] != "~" or walk.literal:
        return text
    name, slash, rest = text[1:].partition("/")
    if not name:
        home = lookup("HOME", world, walk)
        return (home if isinstance(home, str) else UNKNOWN) + slash + rest
    if name == "+":
        return world.cwd + slash + rest
    if name == "-":
        old = world.variables.get("OLDPWD")
        return (old if isinstance(old, str) else UNKNOWN) + slash + rest
    return UNKNOWN + slash + rest


def _value(part: Part, world: World, walk: Walk, alone: bool) -> str | list[str]:
    """What an expansion stands for; a list where it may be several fields (`"$@"`)."""
    if part[0] == PARAMETER:
        value = _parameter(part, world, walk)
    elif part[0] == COMMAND:
        value = walk.substitute(part[1], world, part[3])
    elif part[0] == PROCESS:
        value = walk.process(part[1], part[2], world)
    else:
        value = _arithmetic(text_of(part[1], world, walk))
    if walk.literal and isinstance(value, str) and UNKNOWN in value:
        # Whoever only wants the words as they stand gets the expansion as it is written.
        return part[-1] if alone else value.replace(UNKNOWN, "")
    return value


def _arithmetic(text: str) -> str:
    """A number that is written out or a simple sum; anything else is some number."""
    for operator in ("+", "-", "*"):
        left, found, right = text.partition(operator)
        if found and left.strip().isdigit() and right.strip().isdigit():
            a, b = int(left.strip()[:9]), int(right.strip()[:9])
            return str(a + b if operator == "+" else a - b if operator == "-" else a * b)
    return text.strip() if text.strip().isdigit() else UNKNOWN


def lookup(name: str, world: World, walk: Walk) -> str | list[str] | None:
    """A variable's value; None if nothing is known of it."""
    if name in world.variables:
        return world.variables[name]
    if name.isdigit():
        at = int(name[:6])
        if at < len(world.positionals):
            return world.positionals[at]
        return "" if not walk.literal else None
    if name in ("@", "*"):
        return world.positionals[1:]
    if name == "#":
        return str(len(world.positionals) - 1)
    if name == "PWD":
        return None if walk.literal else world.cwd
    if name == "SHELL":
        return walk.environment.get(name, "/bin/bash")
    if name == "IFS":
        return " \t\n"
    return walk.environment.get(name)


def _parameter(part: Part, world: World, walk: Walk) -> str | list[str]:
    _, name, operator, argument, quoted, raw = part
    base, bracket, index = name.partition("[")
    value = lookup(base, world, walk)
    if operator[:1] == "!":  # ${!name}
        value = lookup(value, world, walk) if isinstance(value, str) and UNKNOWN not in value else None
        operator = operator[1:]
    elif operator[:1] == "#" and raw.startswith("${#"):
        return str(len(value)) if value is not None and UNKNOWN not in value else UNKNOWN
    if (name == "*" or index == "*]") and quoted and isinstance(value, list):
        separators = world.variables.get("IFS")
        return (separators[:1] if isinstance(separators, str) else " ").join(value)
    if bracket:
        value = _element(value, index.rstrip("]"))
    elif isinstance(value, list) and base not in ("@", "*"):
        value = value[0] if value else ""
    if operator in (":-", "-", ":=", "="):
        if value is None or (operator[0] == ":" and not value):
            value = text_of(argument, world, walk)
            if "=" in operator:
                world.variables[base] = value
        return value
    if operator in (":+", "+"):
        return text_of(argument, world, walk) if value or (operator == "+" and value is not None) else ""
    if value is None:
        return walk.tainted(UNKNOWN)
    if operator == ":?" and not value and not walk.literal:
        world.flow = "exit"
    if not operator or operator in (":?", "?", "*"):
        return value
    if isinstance(value, list):
        return value if operator == ":" else [_changed(one, operator, argument, world, walk) for one in value[:1000]]
    return _changed(value, operator, argument, world, walk)


def _element(value: str | list[str] | None, index: str) -> str | list[str] | None:
    if value is None or (isinstance(value, str) and UNKNOWN in value):
        return value
    values = value if isinstance(value, list) else [value]
    if not index.lstrip("-").isdigit():
        return values  # all, or any of them
    at = int(index[:6])
    return values[at] if -len(values) <= at < len(values) else ""


def _changed(value: str, operator: str, argument: Word, world: World, walk: Walk) -> str:
    """`${name%pattern}`, `${name/a/b}` and changes of case, on a known value."""
    if operator in ("^^", ",,"):
        return value.upper() if operator == "^^" else value.lower()
    if UNKNOWN in value or len(value) > 1000:
        return UNKNOWN
    pattern = pattern_of(argument, world, walk)
    if operator in ("#", "##", "%", "%%"):
        return _trimmed(value, operator, pattern)
    wanted, _, replacement = pattern.partition("/")
    if operator not in ("/", "//") or not wanted or any(mark in wanted for mark in "*?["):
        return UNKNOWN
    return value.replace(wanted, replacement, -1 if operator == "//" else 1)


def _trimmed(value: str, operator: str, pattern: str) -> str:
    sizes = range(len(value) + 1)
    for size in sizes if len(operator) == 1 else reversed(sizes):
        if operator[0] == "#" and matches(value[:size], pattern):
            return value[size:]
        if operator[0] == "%" and matches(value[len(value) - size :], pattern):
            return value[: len(value) - size]
    return value

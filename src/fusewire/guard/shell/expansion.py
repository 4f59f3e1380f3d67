"""Expand a word to the fields that a command gets: braces, tilde, parameters, substitutions, splitting, globs."""

from __future__ import annotations

from fusewire.guard.shell.tree import COMMAND, PARAMETER, PROCESS, QUOTED, TEXT
from fusewire.guard.shell.values import REST, UNKNOWN, activated, deactivated, has_glob
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.shell.tree import Part, Word
    from fusewire.guard.shell.walk import Walk
    from fusewire.guard.shell.world import World

#: A value that is longer than this is not followed.
VALUE_LIMIT = 65536

#: Most alternatives that are expanded in one word.
_ALTERNATIVES = 2000

#: Where a word has braces, its parts that are not plain text stand in the text as one character each.
_FIRST = 0xF0000


def fields_of(words: list[Word], world: World, walk: Walk) -> list[str]:
    """The words of a command, expanded."""
    found: list[str] = []
    for word in words:
        if type(word) is str:
            found.append(word)
            continue
        for parts in _braced(word):  # type: ignore[arg-type]
            for field in _fields(parts, world, walk):
                if not has_glob(field):
                    found.append(field)
                elif walk.disk is None or "noglob" in world.options:
                    found.append(deactivated(field))
                else:
                    found += walk.disk.glob(field, world)
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
    home = world.cwd if name == "+" else lookup("HOME", world, walk) if not name else None
    return (home if isinstance(home, str) else UNKNOWN) + slash + rest


def _value(part: Part, world: World, walk: Walk, alone: bool) -> str | list[str]:
    """What an expansion stands for; a list where it may be several fields (`"$@"`)."""
    if part[0] == PARAMETER:
        value = _parameter(part, world, walk)
    elif part[0] == COMMAND:
        value = walk.substitute(part[1], world, part[3])
    elif part[0] == PROCESS:
        value = walk.process(part[1], part[2], world)
    else:  # arithmetic: some number, but what it substitutes runs
        text_of(part[1], world, walk)
        value = UNKNOWN
    if walk.literal and isinstance(value, str) and UNKNOWN in value:
        # who only wants the words as they stand gets the expansion as it is written
        return part[-1] if alone else value.replace(UNKNOWN, "")
    return value


def lookup(name: str, world: World, walk: Walk) -> str | list[str] | None:
    """A variable's value; None if nothing is known of it."""
    if name in world.variables:
        return world.variables[name]
    if name.isdecimal():
        known = world.positionals[int(name[:6]) :][:1]
        return known[0] if known else None if walk.literal else ""
    if name in ("@", "*"):
        return world.positionals[1:]
    if name == "#":
        return str(len(world.positionals) - 1)
    if name == "PWD":
        return None if walk.literal else world.cwd
    if name == "SHELL":
        return walk.environment.get(name, "/bin/bash")
    return " \t\n" if name == "IFS" else walk.environment.get(name)


def _parameter(part: Part, world: World, walk: Walk) -> str | list[str]:
    _, name, operator, argument, quoted, raw = part
    base, bracket, index = name.partition("[")
    value = lookup(base, world, walk)
    if raw.startswith(("${#", "${!")) and len(raw) > 4:
        known = value is not None and UNKNOWN not in value and raw[2] == "#"
        return str(len(value or "")) if known else UNKNOWN
    if (name == "*" or index == "*]") and quoted and isinstance(value, list):
        return " ".join(value)
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
        walk.unset.add(base)
        return walk.tainted(UNKNOWN)
    if operator == ":?" and not value and not walk.literal:
        world.flow = "exit"
    if not operator or operator in (":?", "?", "*"):
        return value
    return UNKNOWN if isinstance(value, list) else _changed(value, operator, pattern_of(argument, world, walk))


def _element(value: str | list[str] | None, index: str) -> str | list[str] | None:
    if not isinstance(value, list):
        return value
    return "".join(value[int(index[:6]) :][:1]) if index.isdecimal() else value  # all, or any of them


def _changed(value: str, operator: str, pattern: str) -> str:
    """`${name%pattern}` and `${name/a/b}`, on a known value."""
    if UNKNOWN in value or len(value) > 1000:
        return UNKNOWN
    if operator in ("#", "##", "%", "%%"):
        sizes = range(len(value) + 1)
        for size in sizes if len(operator) == 1 else reversed(sizes):
            if operator[0] == "#" and matches(value[:size], pattern):
                return value[size:]
            if operator[0] == "%" and matches(value[len(value) - size :], pattern):
                return value[: len(value) - size]
        return value
    wanted, _, replacement = pattern.partition("/")
    if operator not in ("/", "//") or not wanted or any(mark in wanted for mark in "*?["):
        return UNKNOWN
    return value.replace(wanted, replacement, -1 if operator == "//" else 1)


# -- braces ---------------------------------------------------------------------------------------------------


def _braced(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    """The words that one word with `{a,b}` or `{1..3}` stands for; this comes before everything else."""
    if len(parts) > 1000 or not any(part[0] == TEXT and "{" in part[1] for part in parts):
        return [parts]
    text = "".join(part[1] if part[0] == TEXT else chr(_FIRST + at) for at, part in enumerate(parts))
    words = _alternatives(text)
    return [parts] if words == [text] else [_parts(word, parts) for word in words]


def _parts(word: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    found: list[Part] = []
    for char in word:
        at = ord(char) - _FIRST
        if 0 <= at < len(parts):
            found.append(parts[at])
        elif found and found[-1][0] == TEXT:
            found[-1] = (TEXT, found[-1][1] + char)
        else:
            found.append((TEXT, char))
    return tuple(found)


def _alternatives(text: str, depth: int = 0) -> list[str]:
    """`-{f,u}` as `-f` and `-u`; a text without alternatives as it is."""
    start = text.find("{")
    while start >= 0:
        choices, end = _choices(text, start)
        if choices and depth < 8:
            tails = _alternatives(text[end + 1 :], depth + 1)
            heads = [part for choice in choices for part in _alternatives(choice, depth + 1)]
            words = [f"{text[:start]}{head}{tail}" for head in heads for tail in tails]
            return words if len(words) <= _ALTERNATIVES + 1 else [*words[:_ALTERNATIVES], REST]
        start = text.find("{", start + 1)
    return [text]


def _choices(text: str, start: int) -> tuple[list[str], int]:
    """What stands between the commas of a brace, and where it is closed; nothing if it is only text."""
    depth, pieces, begin = 0, [], start + 1
    for at in range(start, min(len(text), start + 4096)):
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            pieces.append(text[begin:at])
            begin = at + 1
        elif char == "}":
            depth -= 1
            if not depth:
                return [*pieces, text[begin:at]] if pieces else _range(text[begin:at]), at
    return [], 0


def _range(inside: str) -> list[str]:
    first, _, last = inside.partition("..")
    if first.isdecimal() and last.isdecimal() and len(inside) < 20:
        a, b = int(first), int(last)
        width = len(first) if first[0] == "0" else 0
        numbers = range(a, b + 1) if a <= b else range(a, b - 1, -1)
        listed = [str(number).zfill(width) for number in numbers[:_ALTERNATIVES]]
        return listed if len(numbers) <= _ALTERNATIVES else [*listed, REST]
    if len(first) == len(last) == 1 and inside.isascii() and (first + last).isalpha():
        a, b = ord(first), ord(last)
        return [chr(code) for code in (range(a, b + 1) if a <= b else range(a, b - 1, -1))]
    return []

"""The values that Python code is followed with: plain ones where known, a text with unknown parts where not."""

from __future__ import annotations

from itertools import islice, product

from fusewire.guard.code.values import LONGEST, UNKNOWN, clipped, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from typing import Any

#: Loops run this often at most, and as many elements are kept.
ITERATIONS = 200

#: Values that one variable may have after the branches of a program.
_OPTIONS = 16

_NUMBER_LIMIT = 2**63


class Scope:
    """Names and what they stand for, inside of another scope."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent
        self.outside: set[str] = set()  # declared `global` or `nonlocal`

    def find(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope

    def store(self, name: str, value: Any) -> None:
        scope = self.find(name) if name in self.outside else None
        (scope or self).names[name] = value


class Ref:
    """Something of a module, by its full name: `os.remove`; with `()` what a call of it gave."""

    def __init__(self, name: str) -> None:
        self.name = name


class PathText(str):
    """The text of a `pathlib.Path`."""

    __slots__ = ()


class Listing(list[object]):
    """What is in a folder on the disk."""


class Content(str):
    """What was read from a file: unknown, but from where is not."""

    path = UNKNOWN


class Choice:
    """One of several values, according to the branch that was taken."""

    def __init__(self, options: list[Any]) -> None:
        self.options = options


class Opened:
    """An open file, archive or database."""

    def __init__(self, path: str) -> None:
        self.path = path
        #: what is written into it, and what is read from it, as far as that is known
        self.text: str | None = None
        self.given: str | None = None


class Started:
    """A program that runs, as `subprocess.Popen` gives it."""

    def __init__(self, lines: list[str], name: str) -> None:
        self.lines = lines
        self.name = name
        self.printed: str | None = None


class Bound:
    """A method together with its object."""

    def __init__(self, receiver: Any, name: str) -> None:
        self.receiver = receiver
        self.name = name


class Function:
    """A `def` or `lambda`, with arguments that are given already."""

    def __init__(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope, given: list[Any]
    ) -> None:
        self.node = node
        self.scope = scope
        self.given = given


class Partial:
    """What `functools.partial` gives."""

    def __init__(self, callee: Any, arguments: list[Any], keywords: dict[str, Any]) -> None:
        self.callee = callee
        self.arguments = arguments
        self.keywords = keywords


class Class:
    """A class of the code itself."""

    def __init__(self, names: dict[str, Any], bases: list[Any]) -> None:
        self.names = names
        self.bases = bases

    def find(self, name: str, depth: int = 0) -> Any:
        if name in self.names or depth > 8:
            return self.names.get(name)
        found = (base.find(name, depth + 1) for base in self.bases if isinstance(base, Class))
        return next((value for value in found if value is not None), None)


class Thing:
    """An object of such a class."""

    def __init__(self, kind: Class) -> None:
        self.kind = kind
        self.names: dict[str, Any] = {}


def text_of(value: Any) -> str:
    """The value in a text, as `str()` gives it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Opened):
        return value.path
    return str(value) if value is None or isinstance(value, (int, float)) else UNKNOWN


def texts(value: Any) -> list[str]:
    """Every path that the value may be; none for what is no path."""
    if isinstance(value, (Choice, list, tuple)):
        options = value.options if isinstance(value, Choice) else value
        return [text for option in options for text in texts(option)]
    if isinstance(value, bytes):
        return [value.decode("utf-8", "replace")]
    if value is None or isinstance(value, (int, float, dict)):
        return []
    return [text_of(value)]


def is_known(value: Any) -> bool:
    """Whether nothing of a plain value is unknown."""
    if isinstance(value, str):
        return UNKNOWN not in value
    if isinstance(value, (list, tuple)):
        return all(is_known(element) for element in value)
    return value is None or isinstance(value, (int, float, bytes))


def merged(values: list[Any]) -> Any:
    """One value that may be each of them."""
    options: list[Any] = []
    for value in values:
        for option in value.options if isinstance(value, Choice) else [value]:
            if not any(option is other or (type(option) is type(other) and option == other) for other in options):
                options.append(option)
    if len(options) > _OPTIONS:
        options = [*options[:_OPTIONS], UNKNOWN]
    return options[0] if len(options) == 1 else Choice(options)


def merged_names(branches: list[dict[str, Any]]) -> dict[str, Any]:
    """What each name stands for after one of the branches."""
    names = {name for branch in branches for name in branch}
    return {name: merged([branch[name] for branch in branches if name in branch]) for name in sorted(names)}


def spread(function: Callable[..., Any], *values: Any) -> Any:
    """The function's result for every choice among its arguments."""
    if not any(isinstance(value, Choice) for value in values):
        return function(*values)
    rows = product(*[value.options if isinstance(value, Choice) else [value] for value in values])
    return merged([function(*row) for row in islice(rows, _OPTIONS + 1)])


def elements(value: Any) -> list[Any] | None:
    """What a loop over the value meets; None if that is unknown."""
    if isinstance(value, Choice):
        found: list[Any] = []
        for option in value.options:
            inner = elements(option)
            if inner is None:
                return None
            found += inner
        return found[: ITERATIONS + 1]
    if isinstance(value, Opened) and value.given is not None:
        return value.given.splitlines(True)[: ITERATIONS + 1]
    if isinstance(value, (list, tuple, dict, range, bytes)) or (
        type(value) is str and UNKNOWN not in value  # a text of which a part is unknown has unknown characters
    ):
        return list(islice(value, ITERATIONS + 1))
    return None


def subscript(value: Any, index: Any) -> Any:
    """`value[index]` where both are known."""
    if isinstance(value, dict):
        return value.get(index, UNKNOWN) if isinstance(index, (str, int, bytes)) else UNKNOWN
    if isinstance(value, str) and UNKNOWN in value:
        return UNKNOWN
    if isinstance(value, (str, bytes, list, tuple)) and isinstance(index, (int, slice)):
        try:
            return value[index]
        except (IndexError, TypeError, ValueError):
            return UNKNOWN
    return UNKNOWN


def binary(operator: str, left: Any, right: Any) -> Any:
    """The result of an operator of Python, by the name of its node."""
    if operator == "Div" and (isinstance(left, PathText) or (isinstance(right, PathText) and isinstance(left, str))):
        return PathText(joined(str(left), text_of(right)))
    if operator == "Div" and type(left) is str and type(right) is str:
        return PathText(joined(left, right))  # one of them is a path that is unknown
    if operator == "Add":
        return _added(left, right)
    if operator == "Mod" and type(left) is str:
        return _formatted(left, right)
    if operator == "Mult" and isinstance(left, int) and isinstance(right, (str, bytes, list, tuple)):
        left, right = right, left
    if operator == "Mult" and isinstance(left, (str, bytes, list, tuple)) and isinstance(right, int):
        return left * right if len(left) * max(right, 0) <= LONGEST else UNKNOWN
    if isinstance(left, int) and isinstance(right, int):
        return _number(operator, left, right)
    if operator == "BitOr" and isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    return UNKNOWN


def _added(left: Any, right: Any) -> Any:
    """A sum, in which a list or text next to something unknown stays what it is."""
    for kind in (list, tuple):
        if isinstance(left, kind) or isinstance(right, kind):
            parts = [list(part) if isinstance(part, (list, tuple)) else [UNKNOWN] for part in (left, right)]
            return kind((parts[0] + parts[1])[: ITERATIONS + 1])
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left + right if len(left) + len(right) <= LONGEST else UNKNOWN
    if isinstance(left, int) and isinstance(right, int):
        return _number("Add", left, right)
    return clipped(text_of(left) + text_of(right)) if isinstance(left, str) or isinstance(right, str) else UNKNOWN


def _number(operator: str, left: int, right: int) -> Any:
    """Whole numbers, as long as they stay small."""
    if max(abs(left), abs(right)) > _NUMBER_LIMIT or (operator in ("FloorDiv", "Mod") and not right):
        return UNKNOWN
    if operator in ("LShift", "RShift"):
        return (left << right if operator == "LShift" else left >> right) if 0 <= right < 64 else UNKNOWN
    results = {
        "Add": lambda: left + right,
        "Sub": lambda: left - right,
        "Mult": lambda: left * right,
        "FloorDiv": lambda: left // right,
        "Mod": lambda: left % right,
        "BitOr": lambda: left | right,
        "BitAnd": lambda: left & right,
        "BitXor": lambda: left ^ right,
    }
    return results[operator]() if operator in results else UNKNOWN


def _formatted(template: str, right: Any) -> Any:
    """`template % right`; a width may not blow it up."""
    if has_width(template):
        return UNKNOWN
    values = right if isinstance(right, (tuple, dict)) else (right,)
    shown = [part if isinstance(part, (int, float)) else text_of(part) for part in values]
    given = {key: text_of(part) for key, part in right.items()} if isinstance(right, dict) else tuple(shown)
    try:
        return clipped(template % given)
    except (TypeError, ValueError, KeyError, OverflowError):
        return UNKNOWN


def has_width(template: str) -> bool:
    """Whether a format asks for a width of a thousand or more, or for one that is given as a value."""
    run = 0
    for char in template:
        run = run + 1 if char.isdigit() else 0
        if run > 3:
            return True
    return "*" in template and "%" in template

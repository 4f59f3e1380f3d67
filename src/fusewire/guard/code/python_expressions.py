"""Expressions of Python, each with the value that it may have."""

from __future__ import annotations

import ast

from fusewire.guard.code.python_names import is_changing
from fusewire.guard.code.python_special import Special
from fusewire.guard.code.python_values import (
    ITERATIONS,
    Choice,
    Function,
    Listing,
    Ref,
    Thing,
    binary,
    elements,
    has_width,
    is_known,
    merged,
    spread,
    subscript,
    text_of,
)
from fusewire.guard.code.values import UNKNOWN, TooMuch, clipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.guard.code.setting import Setting

#: Parts of the code that are looked at, those in loops and functions each time.
STEPS = 30_000


class Expressions(Special):
    """Evaluates what can be evaluated without running anything."""

    def __init__(self, arguments: list[str], folder: str | None, setting: Setting | None = None) -> None:
        super().__init__(arguments, folder, setting)
        self.steps = 0
        self.stars: list[str] = []
        self.yielded: list[list[Any]] = []

    def value(self, node: ast.AST | None) -> Any:
        """What the expression may be; unknown where nobody can say."""
        self.steps += 1
        if self.steps > STEPS:
            raise TooMuch
        handler = getattr(self, "on_" + type(node).__name__, None)
        if handler is not None:
            return handler(node)
        for child in ast.iter_child_nodes(node) if node is not None else ():
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def on_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def on_Name(self, node: ast.Name) -> Any:
        scope = self.scope.find(node.id)
        if scope is not None:
            return scope.names[node.id]
        for module in self.stars:
            if is_changing(f"{module}.{node.id}") or (module == "ctypes" and "dll" in node.id.lower()):
                return Ref(f"{module}.{node.id}")
        return "__main__" if node.id == "__name__" else Ref(node.id)

    def on_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.value(node.value), node.attr)

    def on_Call(self, node: ast.Call) -> Any:
        callee = self.value(node.func)
        arguments = self.sequence(node.args)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            given = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = given
            elif isinstance(given, dict):
                keywords.update({key: each for key, each in given.items() if isinstance(key, str)})
        return self.call(callee, arguments, keywords)

    def sequence(self, nodes: list[ast.expr]) -> list[Any]:
        """The values one behind the other, those behind a star spread out."""
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = elements(self.value(node.value))
                found += [UNKNOWN] if inner is None else inner
            else:
                found.append(self.value(node))
        return found

    def on_List(self, node: ast.List) -> Any:
        return self.sequence(node.elts)

    def on_Set(self, node: ast.Set) -> Any:
        return self.sequence(node.elts)

    def on_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.sequence(node.elts))

    def on_Dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.value(key) if key is not None else UNKNOWN
            given = self.value(value)
            if key is None and isinstance(given, dict):
                found.update(given)
            elif isinstance(name, (str, int, bytes)):
                found[name] = given
        return found

    def on_BinOp(self, node: ast.BinOp) -> Any:
        operator = type(node.op).__name__
        return spread(lambda left, right: binary(operator, left, right), self.value(node.left), self.value(node.right))

    def on_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(value, bool) and self.speaks_of_entries(node):
            return not value
        return -value if isinstance(node.op, ast.USub) and isinstance(value, int) else UNKNOWN

    def on_BoolOp(self, node: ast.BoolOp) -> Any:
        values = [self.value(part) for part in node.values]
        if self.speaks_of_entries(node) and any(isinstance(value, bool) for value in values):
            ends = isinstance(node.op, ast.Or)
            if any(value is ends for value in values):
                return ends
            return (not ends) if all(isinstance(value, bool) for value in values) else UNKNOWN
        return merged(values)

    def on_IfExp(self, node: ast.IfExp) -> Any:
        self.value(node.test)
        return merged([self.value(node.body), self.value(node.orelse)])

    def on_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.value(node.value)
        self.bind(node.target, value)
        return value

    def on_Compare(self, node: ast.Compare) -> Any:
        values = [self.value(node.left), *[self.value(part) for part in node.comparators]]
        if len(values) == 2 and self.speaks_of_entries(node):
            return self.compared(type(node.ops[0]).__name__, *values)
        if len(values) != 2 or not all(type(value) is int for value in values):
            return UNKNOWN
        left, right = values
        results = {
            "Lt": left < right,
            "Gt": left > right,
            "LtE": left <= right,
            "GtE": left >= right,
            "NotEq": left != right,
        }
        return results.get(type(node.ops[0]).__name__, UNKNOWN)

    def on_JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts = [self.value(part) for part in node.values]
        return spread(lambda *given: clipped("".join(text_of(part) for part in given)), *parts)

    def on_FormattedValue(self, node: ast.FormattedValue) -> Any:
        value = self.value(node.value)
        form = text_of(self.value(node.format_spec)) if node.format_spec is not None else ""
        if node.conversion == ord("r"):
            return repr(value) if is_known(value) and len(str(value)) < 1000 else UNKNOWN
        if not form:
            return value
        if not is_known(value) or has_width(form):
            return UNKNOWN
        try:
            return format(value, form)
        except (TypeError, ValueError):
            return UNKNOWN

    def on_Subscript(self, node: ast.Subscript) -> Any:
        return spread(self.item, self.value(node.value), self.value(node.slice))

    def item(self, value: Any, index: Any) -> Any:
        """`value[index]`, also of the dictionaries that modules are made of."""
        if isinstance(value, Ref) and isinstance(index, str):
            if value.name.endswith(".__dict__") or value.name == "__builtins__":
                return self.constant(f"{value.name.removesuffix('.__dict__')}.{index}")
            if value.name == "sys.modules":
                return Ref(index)
            return self.variable(index) if value.name == "os.environ" else UNKNOWN
        if isinstance(value, list) and not isinstance(index, (int, slice)):
            return merged(value) if value else UNKNOWN
        return subscript(value, index)

    def on_Slice(self, node: ast.Slice) -> Any:
        ends = [self.value(part) if part is not None else None for part in (node.lower, node.upper, node.step)]
        return slice(*ends) if all(end is None or isinstance(end, int) for end in ends) else UNKNOWN

    def on_Await(self, node: ast.Await) -> Any:
        return self.value(node.value)

    def on_Yield(self, node: ast.Yield) -> Any:
        value = self.value(node.value) if node.value is not None else None
        if self.yielded:
            self.yielded[-1].append(value)
        return UNKNOWN

    def on_YieldFrom(self, node: ast.YieldFrom) -> Any:
        value = elements(self.value(node.value))
        if self.yielded:
            self.yielded[-1].extend([UNKNOWN] if value is None else value)
        return UNKNOWN

    def on_Lambda(self, node: ast.Lambda) -> Any:
        return Function(node, self.scope, [])

    def on_ListComp(self, node: ast.ListComp) -> Any:
        return self.comprehended(node.generators, [node.elt])

    def on_SetComp(self, node: ast.SetComp) -> Any:
        return self.comprehended(node.generators, [node.elt])

    def on_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self.comprehended(node.generators, [node.elt])

    def on_DictComp(self, node: ast.DictComp) -> Any:
        self.comprehended(node.generators, [node.key, node.value])
        return UNKNOWN

    def comprehended(self, generators: list[ast.comprehension], parts: list[ast.expr]) -> list[Any]:
        """The elements of a comprehension; its conditions let everything pass."""
        if not generators:
            return [[self.value(part) for part in parts][-1]]
        first = generators[0]
        found: list[Any] = []
        value = self.value(first.iter)
        self.means_entries(first.target, value)
        for element in self.loop_over(value):
            self.bind(first.target, element)
            conditions = [self.decided(condition, self.value(condition)) for condition in first.ifs]
            if False not in conditions:
                found += self.comprehended(generators[1:], parts)
        found = found[: ITERATIONS + 1]
        return Listing(found) if isinstance(value, Listing) else found

    def loop_over(self, value: Any) -> list[Any]:
        """What a loop meets, each once; many or unknown elements are met as one that is unknown."""
        found = elements(value)
        if found is None:
            return [UNKNOWN]
        most = 16 if isinstance(value, range) else ITERATIONS if self.steps < STEPS // 4 else 1
        return found if len(found) <= most else [*found[: 1 if most < ITERATIONS else most], UNKNOWN]

    def bind(self, target: ast.expr, value: Any) -> None:
        """`target = value`."""
        if isinstance(target, ast.Name):
            self.scope.store(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.bind_parts(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            if isinstance(owner, Thing):
                owner.names[target.attr] = value
            elif isinstance(owner, Ref) and f"{owner.name}.{target.attr}" == "sys.argv":
                self.assigned["sys.argv"] = value
        elif isinstance(target, ast.Subscript):
            owner, index = self.value(target.value), self.value(target.slice)
            if isinstance(owner, dict) and isinstance(index, (str, int)):
                owner[index] = merged([owner[index], value]) if index in owner else value
            elif isinstance(owner, Ref) and owner.name == "os.environ" and isinstance(index, str):
                self.variables[index] = text_of(value)
            elif isinstance(owner, list):
                owner.append(value)  # where exactly matters to nobody who loops over it

    def bind_parts(self, targets: list[ast.expr], value: Any) -> None:
        """`a, b = value`."""
        parts = list(value) if isinstance(value, (list, tuple)) else None
        stars = [at for at, target in enumerate(targets) if isinstance(target, ast.Starred)]
        if isinstance(value, Choice) or parts is None or (len(parts) != len(targets) and not stars):
            parts = [UNKNOWN] * len(targets)
        elif stars:
            behind = len(targets) - stars[0] - 1
            end = max(stars[0], len(parts) - behind)
            parts = [*parts[: stars[0]], parts[stars[0] : end], *parts[end:]]
        for target, part in zip(targets, parts, strict=False):
            self.bind(target, part)

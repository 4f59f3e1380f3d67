"""Python code, followed without running it: which files it would change and which commands it would run."""

from __future__ import annotations

import ast

from fusewire.guard.code.python_expressions import STEPS
from fusewire.guard.code.python_functions import SURPRISE, Functions, parsed
from fusewire.guard.code.python_values import (
    ITERATIONS,
    Class,
    Function,
    Opened,
    Ref,
    Scope,
    Thing,
    binary,
    elements,
    merged,
    merged_names,
    spread,
)
from fusewire.guard.code.values import UNKNOWN, Effect, TooMuch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fusewire.guard.code.setting import Setting

#: Decorators that do not call what they decorate.
_HARMLESS_MARKS = (
    "functools.",
    "property",
    "staticmethod",
    "classmethod",
    "dataclass",
    "contextlib.",
    "pytest.",
    "abc.",
)

#: Longer code than anybody writes behind `-c`.
_LONGEST_CODE = 200_000


def python_effects(code: str, arguments: list[str], folder: str | None, setting: Setting | None = None) -> list[Effect]:
    """What the code would do, in the order in which it would; something unknown if it is too much to follow."""
    reader = Reader(arguments, folder, setting)
    if len(code) > _LONGEST_CODE:
        return [SURPRISE]
    try:
        tree = parsed(code)
        if tree is not None:
            reader.block(tree.body)
    except SyntaxError as error:
        # Newer Pythons take quotes in f-strings that this one does not.
        return [SURPRISE] if str(error).startswith("f-string") else []
    except Exception:
        return [*reader.effects, SURPRISE]
    if setting is not None and reader.vague:
        reader.effects.append(("print", UNKNOWN))
    return reader.effects


class Reader(Functions):
    """Follows statements; both sides of every branch, loops a few times."""

    def block(self, statements: Sequence[ast.stmt]) -> bool:
        """Follow the statements; whether they certainly leave the block before its end."""
        for statement in statements:
            self.steps += 1
            if self.steps > STEPS:
                raise TooMuch
            handler = getattr(self, "do_" + type(statement).__name__, None)
            if handler is not None and handler(statement):
                return True
        return False

    def branches(self, blocks: list[Sequence[ast.stmt]]) -> bool:
        """Follow each block from the same start, then go on with what all of them left."""
        before = self.scope.names
        ends = []
        for block in blocks:
            self.scope.names = dict(before)
            self.unsure += 1
            if not self.block(block):
                ends.append(self.scope.names)
            self.unsure -= 1
        self.scope.names = merged_names(ends or [before])
        return not ends

    def repeated(self, block: Sequence[ast.stmt]) -> None:
        """Follow the body of a loop that runs nobody knows how often: once, and again if it changes what it uses."""
        before = dict(self.scope.names)
        self.unsure += 1
        self.block(block)
        changed = [name for name, value in self.scope.names.items() if name in before and before[name] is not value]
        if changed:
            self.scope.names.update(dict.fromkeys(changed, UNKNOWN))
            self.block(block)
            for name in changed:
                self.scope.names[name] = merged([before[name], self.scope.names.get(name, UNKNOWN)])
        self.unsure -= 1

    def do_Expr(self, node: ast.Expr) -> bool:
        self.value(node.value)
        return False

    def do_Assert(self, node: ast.Assert) -> bool:
        self.value(node.test)
        self.value(node.msg)
        return False

    def do_Delete(self, node: ast.Delete) -> bool:
        for target in node.targets:
            self.value(target)
        return False

    def do_Return(self, node: ast.Return) -> bool:
        value = self.value(node.value) if node.value is not None else None
        if self.returned:
            self.returned[-1].append(value)
        return True

    def do_Raise(self, node: ast.Raise) -> bool:
        self.value(node.exc)
        self.value(node.cause)
        return True

    def do_Break(self, node: ast.Break) -> bool:
        return True

    def do_Continue(self, node: ast.Continue) -> bool:
        return True

    def do_Assign(self, node: ast.Assign) -> bool:
        value = self.value(node.value)
        for target in node.targets:
            self.bind(target, value)
            self.means_entries(target, None, node.value)
        return False

    def do_AnnAssign(self, node: ast.AnnAssign) -> bool:
        self.value(node.annotation)
        if node.value is not None:
            self.bind(node.target, self.value(node.value))
        return False

    def do_AugAssign(self, node: ast.AugAssign) -> bool:
        operator = type(node.op).__name__
        before = self.value(node.target)
        value = spread(lambda left, right: binary(operator, left, right), before, self.value(node.value))
        if isinstance(before, list) and isinstance(value, list):
            before[:] = value
        elif isinstance(node.target, ast.Name):
            self.bind(node.target, value)
        return False

    def do_If(self, node: ast.If) -> bool:
        test = self.value(node.test)
        if isinstance(node.test, ast.Constant):
            return self.block(node.body if test else node.orelse)
        decided = self.decided(node.test, test)
        if decided is not None:
            return self.block(node.body if decided else node.orelse)
        return self.branches([node.body, node.orelse])

    def do_For(self, node: ast.For) -> bool:
        value = self.value(node.iter)
        found = elements(value)
        self.means_entries(node.target, value)
        for element in self.loop_over(value) if found is not None else []:
            self.bind(node.target, element)
            self.block(node.body)
        if found is None or len(found) > ITERATIONS:
            self.bind(node.target, UNKNOWN)
            self.repeated(node.body)
        return self.block(node.orelse) and False

    do_AsyncFor = do_For

    def do_While(self, node: ast.While) -> bool:
        rounds = 0
        test = self.value(node.test)
        while (
            test is True and not isinstance(node.test, ast.Constant) and rounds < ITERATIONS and self.steps < STEPS // 4
        ):
            self.block(node.body)
            rounds += 1
            test = self.value(node.test)
        if test is not False and not (isinstance(node.test, ast.Constant) and not test):
            self.repeated(node.body)
        return self.block(node.orelse) and False

    def do_With(self, node: ast.With) -> bool:
        things = []
        for item in node.items:
            value = self.value(item.context_expr)
            if isinstance(value, Thing):
                things.append(value)
                value = self.call(self.member(value, "__enter__"), [], {})
            if isinstance(value, list) and len(value) == 1 and isinstance(item.context_expr, ast.Call):
                value = value[0]  # what a context manager yields
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value.path if self.is_folder(item.context_expr, value) else value)
        before = dict(self.scope.names)
        if self.block(node.body):
            self.scope.names = merged_names([before, self.scope.names])
        for thing in things:
            self.call(self.member(thing, "__exit__"), [None, None, None], {})
        return False

    do_AsyncWith = do_With

    def is_folder(self, node: ast.expr, value: Any) -> bool:
        """Whether `as` gives the path itself, as with a temporary folder."""
        name = ast.unparse(node.func) if isinstance(node, ast.Call) and isinstance(value, Opened) else ""
        return name.endswith("TemporaryDirectory")

    def do_Try(self, node: ast.Try) -> bool:
        before = dict(self.scope.names)
        self.block(node.body)
        self.scope.names = merged_names([before, self.scope.names])
        for handler in node.handlers:
            self.value(handler.type)
            if handler.name is not None:
                self.scope.store(handler.name, UNKNOWN)
        self.branches([*[handler.body for handler in node.handlers], node.orelse])
        return self.block(node.finalbody)

    do_TryStar = do_Try

    def do_Match(self, node: ast.Match) -> bool:
        self.value(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None)
                if isinstance(name, str):
                    self.scope.store(name, UNKNOWN)
            self.value(case.guard)
        return self.branches([*[case.body for case in node.cases], []])

    def do_Global(self, node: ast.Global | ast.Nonlocal) -> bool:
        self.scope.outside.update(node.names)
        for name in node.names:
            if self.scope.find(name) is None:
                self.root().names[name] = UNKNOWN
        return False

    do_Nonlocal = do_Global

    def root(self) -> Scope:
        scope = self.scope
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def do_Import(self, node: ast.Import) -> bool:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.scope.store(alias.asname or name, self.own_module(alias.name) or Ref(name))
        return False

    def do_ImportFrom(self, node: ast.ImportFrom) -> bool:
        module = self.own_module(node.module or "")
        for alias in node.names:
            if module is not None:
                found = module.names if alias.name == "*" else {}
                self.scope.names.update(found or {alias.asname or alias.name: module.find(alias.name) or UNKNOWN})
            elif alias.name == "*":
                self.stars.append(node.module or "")
            else:
                self.scope.store(alias.asname or alias.name, self.constant(f"{node.module}.{alias.name}"))
        return False

    def do_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        function = Function(node, self.scope, [])
        self.scope.store(node.name, function)
        for part in ast.iter_child_nodes(node.args):
            self.value(part.annotation if isinstance(part, ast.arg) else part)  # defaults are evaluated here and now
        self.value(node.returns)
        for mark in reversed(node.decorator_list):
            decorator = self.value(mark)
            harmless = isinstance(decorator, Ref) and decorator.name.partition("(")[0].startswith(_HARMLESS_MARKS)
            if not harmless:
                self.call(decorator, [function], {})
        return False

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node: ast.ClassDef) -> bool:
        bases = [self.value(base) for base in node.bases]
        for part in [*node.decorator_list, *[keyword.value for keyword in node.keywords]]:
            self.value(part)
        outside, self.scope = self.scope, Scope(self.scope)
        self.block(node.body)
        names, self.scope = self.scope.names, outside
        self.scope.store(node.name, Class(names, bases))
        return False

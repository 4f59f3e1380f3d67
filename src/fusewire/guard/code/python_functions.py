"""Functions that the Python code defines itself, and text that it runs as code."""

from __future__ import annotations

import ast
import warnings

from fusewire.guard.code.python_expressions import Expressions
from fusewire.guard.code.python_values import Function, Scope, merged
from fusewire.guard.code.values import UNKNOWN, Effect, TooMuch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fusewire.guard.code.setting import Setting

#: What code may do that cannot be followed.
SURPRISE: Effect = ("write", UNKNOWN)


def parsed(code: str) -> ast.Module | None:
    """The code as a tree; None if no Python takes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except IndentationError:
            return ast.parse("if True:\n" + code) if code[:1] in " \t" else None
        except ValueError:
            return None  # a NUL


class Functions(Expressions):
    """Follows the bodies of functions with the arguments of each call."""

    def __init__(self, arguments: list[str], folder: str | None, setting: Setting | None = None) -> None:
        super().__init__(arguments, folder, setting)
        self.returned: list[list[Any]] = []

    def block(self, statements: Sequence[ast.stmt]) -> bool:
        raise NotImplementedError

    def run_function(self, function: Function, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """The value of a call of the code's own function, whose body is followed with these arguments."""
        node = function.node
        if self.running.count(node) >= 3:
            return UNKNOWN
        scope = Scope(function.scope)
        self.bind_arguments(node.args, scope, [*function.given, *arguments], keywords)
        outside, self.scope = self.scope, scope
        self.running.append(node)
        self.returned.append([])
        self.yielded.append([])
        if isinstance(node, ast.Lambda):
            self.returned[-1].append(self.value(node.body))
        else:
            self.block(node.body)
        self.scope = outside
        self.running.pop()
        results, yielded = self.returned.pop(), self.yielded.pop()
        return yielded or (merged(results) if results else None)

    def bind_arguments(self, wanted: ast.arguments, scope: Scope, given: list[Any], keywords: dict[str, Any]) -> None:
        """Give each parameter its argument, else its default, else something unknown."""
        names = [*wanted.posonlyargs, *wanted.args]
        defaults = [*[None] * (len(names) - len(wanted.defaults)), *wanted.defaults]
        pairs = [*zip(names, defaults, strict=True), *zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True)]
        for at, (parameter, default) in enumerate(pairs):
            if at < len(given) and at < len(names):
                value = given[at]
            elif parameter.arg in keywords:
                value = keywords[parameter.arg]
            else:
                value = self.value(default) if default is not None else UNKNOWN
            scope.names[parameter.arg] = value
        if wanted.vararg is not None:
            scope.names[wanted.vararg.arg] = given[len(names) :]
        if wanted.kwarg is not None:
            scope.names[wanted.kwarg.arg] = dict(keywords)

    def run_text(self, text: str, is_expression: bool) -> Any:
        """`exec(text)`: read like the code around it; what is unknown in it may do anything."""
        try:
            tree = parsed(text.strip() if is_expression else text)
        except SyntaxError:
            tree = None
        if tree is None:
            if UNKNOWN in text:
                self.effects.append(SURPRISE)
            return UNKNOWN
        self.running.append(text)
        if len(self.running) > 12:
            raise TooMuch
        last = tree.body[-1] if tree.body else None
        value = UNKNOWN
        if is_expression and isinstance(last, ast.Expr):
            value = self.value(last.value)
        else:
            self.block(tree.body)
        self.running.pop()
        return value

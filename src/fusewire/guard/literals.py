"""Commands that stand as literals in code: `subprocess.run(["git", "push"])`, `execSync("git push")`.

Nothing is evaluated: strings, lists of strings, their sums, and names that are set to one of them. What else a word is
made of is unknown.
"""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Modules, and beginnings of the names of their functions that start a program.
_STARTING = {
    "subprocess": ("run", "call", "check_", "Popen", "getoutput", "getstatusoutput"),
    "os": ("system", "popen", "exec", "spawn", "posix_spawn"),
}

#: What `compile` is told to give back the tree and nothing else.
_ONLY_TREE = 0x400

#: Names that stand for names, and sums of sums.
_DEPTH = 20

_NODE_CALL = r"\b(?:exec|spawn)(?:File)?(?:Sync)?\s*\(\s*(['\"`])((?:\\.|(?!\1).)*)\1\s*(?:,\s*\[([^\]]*)\])?"
_NODE_TEXT = r"(['\"`])((?:\\.|(?!\1).)*)\1"


def commands_in(language: str, code: str) -> list[str]:
    """The command lines, for a shell, that a piece of code would run."""
    if language == "python" and any(module in code for module in _STARTING):
        return _Python(code).found
    return _in_node(code) if language == "node" and "child_process" in code else []


def _in_node(code: str) -> list[str]:
    import re

    found = []
    for _, text, rest in re.findall(_NODE_CALL, code, re.DOTALL):
        words = [word for _, word in re.findall(_NODE_TEXT, rest, re.DOTALL)]
        found.append(" ".join([text, *map(quoted, words)]))
    return found


class _Python:
    def __init__(self, code: str) -> None:
        self.found: list[str] = []
        #: what a name stands for: a module, a function of one, or the node that it was set to
        self.names: dict[str, Any] = {}
        import warnings

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree: Any = compile(code, "code", "exec", _ONLY_TREE, dont_inherit=True)
            nodes = list(_nodes(tree))
            self.used = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes if _is_read(node)}
            for node in nodes:
                self.learn(node)
            for node in _nodes(tree, self.is_dead):
                if _kind(node) == "Call":
                    self.call(node)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # Python would not run it either

    def is_dead(self, node: Any) -> bool:
        """A function that nothing in the code names."""
        return _kind(node) in ("FunctionDef", "AsyncFunctionDef") and node.name not in self.used

    def learn(self, node: Any) -> None:
        if _kind(node) == "Import":
            self.names.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif _kind(node) == "ImportFrom":
            self.names.update((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        elif _kind(node) == "Assign" and _kind(node.targets[0]) == "Name":
            self.names[node.targets[0].id] = node.value

    def call(self, node: Any) -> None:
        name = ".".join(self.dotted(node.func))
        module, _, function = name.partition(".")
        if not function.startswith(_STARTING.get(module, ("\0",))):
            return
        given = [*node.args, *(one.value for one in node.keywords if one.arg in ("args", "cmd", "command"))]
        listed = next((words for words in map(self.words, given) if words), None)
        if listed is None and function.startswith(("exec", "spawn", "posix_spawn")):
            listed = [text for text in map(self.text, given) if text != UNKNOWN][1:]
        if listed is not None:
            self.found.append(" ".join(map(quoted, listed)))
        elif given:
            self.found.append(self.text(given[0]))

    def dotted(self, node: Any) -> list[str]:
        if _kind(node) == "Attribute":
            return [*self.dotted(node.value), node.attr]
        known = self.names.get(getattr(node, "id", ""))
        return known.split(".") if isinstance(known, str) else []

    def words(self, node: Any, depth: int = 0) -> list[str] | None:
        """The words of a list; None if it is none."""
        kind = _kind(node)
        if kind in ("List", "Tuple"):
            return [self.text(one) for one in node.elts]
        if kind == "Call" and getattr(node.func, "attr", "") == "split":
            text = self.text(node.args[0] if node.args else node.func.value)
            return None if UNKNOWN in text else text.split()
        if kind == "Name" and depth < _DEPTH and not isinstance(self.names.get(node.id, ""), str):
            return self.words(self.names[node.id], depth + 1)
        if kind == "BinOp" and depth < _DEPTH:
            left, right = self.words(node.left, depth + 1), self.words(node.right, depth + 1)
            return None if left is None or right is None else left + right
        return None

    def text(self, node: Any, depth: int = 0) -> str:
        kind = _kind(node)
        if kind == "Constant" and isinstance(node.value, str):
            return node.value
        if kind == "JoinedStr":
            return "".join(self.text(part, depth) for part in node.values)
        if kind == "Name" and depth < _DEPTH and not isinstance(self.names.get(node.id, ""), str):
            return self.text(self.names[node.id], depth + 1)
        if kind == "BinOp" and depth < _DEPTH:
            return self.text(node.left, depth + 1) + self.text(node.right, depth + 1)
        return UNKNOWN


def _kind(node: Any) -> str:
    return type(node).__name__


def _is_read(node: Any) -> bool:
    return _kind(node) in ("Name", "Attribute") and _kind(node.ctx) == "Load"


def _nodes(node: Any, is_left_out: Any = None) -> Iterator[Any]:
    """A node and everything below it, in the order of the code."""
    yield node
    for field in node._fields:
        value = getattr(node, field, None)
        for one in value if isinstance(value, list) else [value]:
            if hasattr(one, "_fields") and not (is_left_out is not None and is_left_out(one)):
                yield from _nodes(one, is_left_out)

"""Folders that Python code lists: what is in them decides conditions about their names."""

from __future__ import annotations

import ast

from fusewire.globs import matches
from fusewire.guard.code.python_setting import Surroundings
from fusewire.guard.code.python_values import Content, Listing, PathText, text_of, texts
from fusewire.guard.code.values import UNKNOWN, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Names that are followed one by one; folders with more are as good as unknown.
_MOST = 190

#: Folders whose content nobody means.
_PASSED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache"))


class Listings(Surroundings):
    """Lists folders, and decides what their entries alone decide."""

    #: names of variables that stand for an entry, or for something made of one
    entries: frozenset[str] = frozenset()

    def tree(self, top: str) -> list[tuple[str, list[str], list[str]]] | None:
        """What `os.walk` meets; None if that is unknown or too much."""
        if self.setting is None or UNKNOWN in top:
            return None
        rows: list[tuple[str, list[str], list[str]]] = []
        waiting, count = [top], 0
        while waiting:
            folder = waiting.pop(0)
            found = self.setting.entries(self.full(folder))
            if found is None:
                return None
            inner = [name for name, is_folder in found if is_folder and name not in _PASSED]
            rows.append((folder, inner, [name for name, is_folder in found if not is_folder]))
            waiting += [joined(folder, name) for name in inner]
            count += len(found)
            if count > _MOST:
                return None
        return rows

    def listed(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`os.listdir`, `os.walk`, `glob.glob` and their kin; None if nothing is known."""
        given = texts(arguments[0]) if arguments else texts(keywords.get("pathname")) or ["."]
        if len(given) != 1 or UNKNOWN in given[0]:
            return None
        if name in ("glob.glob", "glob.iglob"):
            found = self.fitting(".", given[0]) if given[0][:1] != "/" else None
            return None if found is None else Listing(found)
        if name == "os.walk":
            rows = self.tree(given[0])
            return (
                None if rows is None else Listing((top, Listing(inner), Listing(files)) for top, inner, files in rows)
            )
        names = self.setting.entries(self.full(given[0])) if self.setting is not None else None
        if names is None or len(names) > _MOST:
            return None
        if name == "os.scandir":
            return Listing(PathText(joined(given[0], one)) for one, _ in names)
        return Listing(one for one, _ in names)

    def listed_path(self, path: str, name: str, arguments: list[Any]) -> Any:
        """`Path.iterdir`, `Path.glob`, `Path.rglob`; None if nothing is known."""
        pattern = "*" if name == "iterdir" else text_of(arguments[0]) if arguments else UNKNOWN
        found = self.fitting(path, f"**/{pattern}" if name == "rglob" else pattern)
        return None if found is None else Listing(PathText(one) for one in found)

    def fitting(self, top: str, pattern: str) -> list[str] | None:
        """Paths below a folder that fit a pattern."""
        if UNKNOWN in pattern:
            return None
        is_deep = "**" in pattern or "/" in pattern
        if is_deep:
            rows = self.tree(top)
        else:
            names = self.setting.entries(self.full(top)) if self.setting is not None and UNKNOWN not in top else None
            few = names is not None and len(names) <= _MOST
            rows = [(top, [], [name for name, _ in names])] if few and names is not None else None
        if rows is None:
            return None
        found = []
        for folder, inner, files in rows:
            for name in [*inner, *files]:
                path = (name if folder == "." else joined(folder, name)).removeprefix("./")
                own = path if top == "." else path[len(top) :].lstrip("/")
                if matches(own, pattern) if not pattern.startswith("**/") else _fits_deep(own, pattern):
                    found.append(path)
        return found or None  # nothing there yet may mean that something will be

    # -- conditions -----------------------------------------------------------------------------------------

    def speaks_of_entries(self, node: ast.AST) -> bool:
        return bool(self.entries) and any(
            isinstance(part, ast.Name) and part.id in self.entries for part in ast.walk(node)
        )

    def means_entries(self, target: ast.AST, value: Any, source: ast.AST | None = None) -> None:
        """Remember the names that are bound to entries."""
        if isinstance(value, Listing) or (source is not None and self.speaks_of_entries(source)):
            self.entries |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}

    def decided(self, node: ast.expr, value: Any) -> bool | None:
        """Whether a condition certainly holds, or certainly does not."""
        return value if isinstance(value, bool) and self.speaks_of_entries(node) else None

    def compared(self, operator: str, left: Any, right: Any) -> Any:
        """A comparison of texts."""
        if isinstance(right, Content) and self.setting is not None:
            right = self.setting.content(self.full(right.path)) if UNKNOWN not in right.path else None
        if operator in ("In", "NotIn") and isinstance(right, (list, tuple)) and isinstance(left, str):
            if not all(isinstance(one, str) and UNKNOWN not in one for one in right) or UNKNOWN in left:
                return UNKNOWN
            return (str(left) in [str(one) for one in right]) is (operator == "In")
        if not isinstance(left, str) or not isinstance(right, str) or UNKNOWN in left or UNKNOWN in right:
            return UNKNOWN
        results = {"Eq": left == right, "NotEq": left != right, "In": left in right, "NotIn": left not in right}
        return results.get(operator, UNKNOWN)


def _fits_deep(path: str, pattern: str) -> bool:
    rest = pattern.removeprefix("**/")
    parts = path.split("/")
    return any(matches("/".join(parts[at:]), rest) for at in range(len(parts)) if "/" in rest or at == len(parts) - 1)

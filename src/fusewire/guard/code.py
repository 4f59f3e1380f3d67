"""Find the files that code in another language certainly changes, and the commands that it certainly runs.

Nothing is evaluated. Of Python, literal paths are followed through names, loops over lists and `Path`; of every other
language, literals beside a verb that writes are found by their text. What is not literal is unknown, and no reason to
refuse anything.
"""

from __future__ import annotations

import os

from fusewire.guard.shell.values import UNKNOWN
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    #: write, delete, move, mode, shell, or lock (it is opened, and so could be locked); the path or the command;
    #: whether all below is meant, or, of a command, whether it runs in another folder
    Found = tuple[str, str, bool]

#: The flag of `compile` that makes it return only the tree.
_ONLY_TREE = 0x400

#: Names that stand for names, and alternatives that one expression may have.
_DEPTH, _MOST = 12, 50

#: Functions of Python: what they do to their first argument, and to their second.
_FUNCTIONS = {
    **dict.fromkeys(("os.remove", "os.unlink", "os.rmdir", "os.removedirs"), ("delete", "")),
    **dict.fromkeys(("os.rename", "os.replace", "os.renames", "shutil.move"), ("move", "write")),
    **dict.fromkeys(("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree"), ("", "into")),
    **dict.fromkeys(("os.symlink", "os.link"), ("", "write")),
    **dict.fromkeys(("os.truncate", "os.utime", "os.mkdir", "os.makedirs"), ("write", "")),
    **dict.fromkeys(("os.chmod", "os.chown"), ("mode", "")),
    "shutil.rmtree": ("delete_tree", ""),
    "sqlite3.connect": ("lock", ""),
}

#: Methods of paths, likewise: what they do to the path, and to their argument.
_METHODS = {
    **dict.fromkeys(("unlink", "rmdir"), ("delete", "")),
    **dict.fromkeys(("write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to"), ("write", "")),
    **dict.fromkeys(("rename", "replace", "move"), ("move", "write")),
    "chmod": ("mode", ""),
}

#: Functions that give a path for a path, or the names in a folder.
_PATH_FUNCTIONS = frozenset(
    "pathlib.Path Path join str os.fspath abspath realpath expanduser glob.glob glob.iglob os.listdir os.scandir"
    " os.walk sorted list".split()
)

#: Modules, and beginnings of the names of their functions that start a program.
_STARTING = {
    "subprocess": ("run", "call", "check_", "Popen", "getoutput", "getstatusoutput"),
    "os": ("system", "popen", "exec", "spawn", "posix_spawn"),
}

#: Code without any of these words is not looked at any further.
_WORDS = (
    *("open", "write", "remov", "unlink", "rename", "replace", "move", "copy", "trunc", "chmod", "chown", "link", "rm"),
    *(
        "append",
        "dir",
        "touch",
        "system",
        "exec",
        "spawn",
        "subprocess",
        "delete",
        "run",
        "print",
        "popen",
        "`",
        "connect",
    ),
)

_LITERAL = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)"""
_VERBS = (
    ("delete_tree", r"rmSync|rmdirSync|rm_rf|rm_r|remove_tree|rmtree|remove_entry|remove_dir|FileUtils\.rm\w*|fs\.rm"),
    ("delete", r"unlinkSync|unlink(?:\s+glob)?|File\.delete|os\.remove|rmdir|Dir\.(?:rmdir|delete|unlink)"),
    ("move", r"renameSync|rename|os\.rename|File\.rename|FileUtils\.m(?:v|ove)|\bmove"),
    ("write", r"writeFileSync|writeFile|appendFileSync|appendFile|createWriteStream|truncateSync|truncate"),
    ("write", r"file_put_contents|File\.(?:bin)?write|IO\.write|write_file|touch"),
    ("mode", r"chmodSync"),
    ("shell", r"\b(?:system|exec|execSync|shell_exec|passthru|popen|os\.execute|io\.popen|qx)"),
)

#: `open(F, ">x")`, `open(F, ">", "x")`, `fopen("x", "w")`, `copyFileSync("a", "b")`, `spawn("a", ["b"])`.
_OPENS = r"""open\s*\(?[^,;()]*,\s*['"]\s*\+?>>?\s*(?:['"]\s*,\s*)?['"]?([^'",);]+)"""
_MODES = rf"""(?:open|File\.new)\s*\(?\s*({_LITERAL})\s*,\s*['"][waxr]?[+wa]"""
_COPIES = rf"""(?:copyFileSync|cpSync|copyFile|FileUtils\.cp\w*|copy)\s*\(?\s*{_LITERAL}\s*,\s*({_LITERAL})"""
_SPAWNS = rf"(?:spawn|execFile)(?:Sync)?\s*\(\s*({_LITERAL})\s*(?:,\s*\[([^\]]*)\])?"

#: A folder from the environment: of node, of Ruby and Perl, of PHP and Lua; else the home.
_VARIABLE = (
    r"""(?:process\.env\.(\w+)|\$?ENV[\[{]['"]?(\w+)['"]?[\]}]|getenv\(['"](\w+)['"]\)"""
    r"""|Dir\.home(?:\(\))?|(?:os|require\(['"]os['"]\))\.homedir\(\))"""
)

#: awk: `print ... > "file"` and `print ... | "command"`.
_AWK = r"""print[^;}\n]*?(>>?|\|)\s*"([^"]*)\""""


def found_in(language: str, code: str, arguments: list[str]) -> list[Found]:
    """What a piece of code would do, in the order in which it stands there."""
    if not any(word in code for word in _WORDS):
        return []
    return _Python(code, arguments).found if language == "python" else list(_by_text(language, _at_home(code)))


# -- other languages ----------------------------------------------------------------------------------------------


def _at_home(code: str) -> str:
    """The code with the folders that it takes from the environment written out, as far as a text follows on them."""
    if not any(word in code for word in ("env", "ENV", "home")):
        return code
    import re

    def written(match: Any) -> str:
        *names, quote = match.groups("")
        value = _variable("".join(names) or "HOME")
        return match[0] if value == UNKNOWN else f"{quote}{value}"

    code = re.sub(_VARIABLE + r"""\s*(?:\+|\.\.?)\s*(['"`])""", written, code)
    return re.sub(rf"[#$]\{{{_VARIABLE}\}}()|\$ENV\{{(\w+)\}}()", written, code)


def _by_text(language: str, code: str) -> Iterator[Found]:
    import re

    if language == "awk":
        for operator, text in re.findall(_AWK, code):
            yield "shell" if operator == "|" else "write", text, False
    for kind, verb in _VERBS:
        for match in re.finditer(rf"(?:{verb})\b\s*\(?\s*((?:{_LITERAL}\s*,?\s*)+)", code, re.DOTALL):
            texts = [_text(language, one) for one in re.findall(_LITERAL, match[1], re.DOTALL)]
            if kind == "shell":
                if language == "node" and "child_process" not in code:
                    continue  # `exec` of a regular expression
                alone = len(texts) == 1 or language in ("node", "php", "lua")
                yield "shell", texts[0] if alone else " ".join(map(quoted, texts)), False
                continue
            texts = [_inside(text) if "*" in text else text for text in texts] if "glob" in match[0] else texts
            last = len(texts) if kind in ("delete", "delete_tree") and language != "node" else 1
            for text in texts[:last]:
                yield ("delete", text, True) if kind == "delete_tree" else (kind, text, False)
            if kind == "move":
                yield from (("write", text, False) for text in texts[1:2])
    yield from (("write", _text(language, f'"{path}"'), False) for path in re.findall(_OPENS, code))
    yield from (("write", _text(language, literal), False) for literal in re.findall(_MODES, code))
    yield from (("into", _text(language, literal), False) for literal in re.findall(_COPIES, code))
    for literal, rest in re.findall(_SPAWNS, code, re.DOTALL):
        words = [quoted(_text(language, word)) for word in re.findall(_LITERAL, rest, re.DOTALL)]
        yield "shell", " ".join([_text(language, literal), *words]), False
    if language in ("perl", "ruby", "php"):
        yield from (("shell", text, False) for text in re.findall(r"`([^`]+)`", code))


def _text(language: str, literal: str) -> str:
    """What is between the quotes; where a variable stands in it, it is unknown from there on."""
    mark, text = literal[0], literal[1:-1].replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")
    if mark == "'" or language in ("lua", "awk"):
        return text
    signs = ("${",) if language == "node" else ("#{",) if language == "ruby" else ("$", "@")
    starts = [at for at in map(text.find, signs) if at >= 0]
    return text[: min(starts)] + UNKNOWN if starts else text


# -- Python -------------------------------------------------------------------------------------------------------


class _Python:
    def __init__(self, code: str, arguments: list[str]) -> None:
        self.found: list[Found] = []
        self.arguments = ["-", *arguments]
        #: what a name stands for: a module, a function of one, or the nodes that it was set to
        self.names: dict[str, Any] = {}
        #: the folder that the code has moved to
        self.here = ""
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
        kind = _kind(node)
        if kind == "Import":
            self.names.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif kind == "ImportFrom":
            self.names.update((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        elif kind == "Assign" and _kind(node.targets[0]) == "Name":
            self.names.setdefault(node.targets[0].id, []).append(node.value)
        elif kind in ("For", "comprehension") and _kind(node.target) == "Name":
            listed = _kind(node.iter) in ("List", "Tuple", "Set")
            values = node.iter.elts if listed else [("in", node.iter)]
            known = self.names.get(node.target.id)
            self.names[node.target.id] = [*(known if isinstance(known, list) else []), *values]
        elif kind == "withitem" and _kind(node.optional_vars) == "Name":
            self.names[node.optional_vars.id] = [node.context_expr]

    def call(self, node: Any) -> None:
        name = ".".join(self.dotted(node.func))
        module, _, function = name.partition(".")
        if function.startswith(_STARTING.get(module, ("\0",))):
            self.start(function, node)
        elif name == "os.chdir" and node.args:
            self.here = self.texts(node.args[0])[0]
        elif name in _FUNCTIONS:
            self.apply(_FUNCTIONS[name], node.args[:1], node.args[1:2])
        elif name in ("open", "io.open", "os.open", "codecs.open") or getattr(node.func, "id", "") == "open":
            self.apply(("write" if self.writes(node, 1) else "lock", ""), node.args[:1], [])
        elif _kind(node.func) == "Attribute":
            method = node.func.attr
            if method == "open":
                self.apply(("write" if self.writes(node, 0) else "lock", ""), [node.func.value], [])
            elif method in _METHODS and (method != "replace" or len(node.args) == 1):
                self.apply(_METHODS[method], [node.func.value], node.args[:1])

    def writes(self, node: Any, at: int) -> bool:
        """Whether a file is opened to be written, as its mode says."""
        given = [*node.args[at : at + 1], *(one.value for one in node.keywords if one.arg == "mode")]
        names = {getattr(one, "attr", getattr(one, "id", "")) for mode in given for one in _nodes(mode)}
        modes = [text for mode in given for text in self.texts(mode)]
        return any(not set(mode).isdisjoint("wax+") for mode in modes) or not names.isdisjoint(("O_WRONLY", "O_TRUNC"))

    def apply(self, kinds: tuple[str, str], first: list[Any], second: list[Any]) -> None:
        for kind, nodes in zip(kinds, (first, second), strict=True):
            for text in self.texts(nodes[0]) if kind and nodes else []:
                text = f"{self.here}/{text}" if self.here and text[:1] != "/" else text
                if text[:1] != UNKNOWN:
                    self.found.append(("delete", text, True) if kind == "delete_tree" else (kind, text, False))

    def start(self, function: str, node: Any) -> None:
        """A program that is started: its command line."""
        given = [*node.args, *(one.value for one in node.keywords if one.arg in ("args", "cmd", "command"))]
        listed = next((words for words in map(self.words, given) if words), None)
        elsewhere = bool(self.here) or any(one.arg == "cwd" for one in node.keywords)
        if listed is None and function.startswith(("exec", "spawn", "posix_spawn")):
            listed = [text for one in given for text in self.texts(one) if text != UNKNOWN][1:]
        if listed is not None:
            self.found.append(("shell", " ".join(map(quoted, listed)), elsewhere))
        elif given:
            self.found += [("shell", text, elsewhere) for text in self.texts(given[0])]

    def dotted(self, node: Any) -> list[str]:
        if _kind(node) == "Attribute":
            inner = self.dotted(node.value)
            return [*inner, node.attr] if inner else []
        known = self.names.get(getattr(node, "id", ""))
        return known.split(".") if isinstance(known, str) else []

    def words(self, node: Any, depth: int = 0) -> list[str] | None:
        """The words of a list; None if it is none."""
        kind = _kind(node)
        if kind in ("List", "Tuple"):
            return [self.texts(one)[0] for one in node.elts]
        if kind == "Call" and getattr(node.func, "attr", "") == "split":
            text = self.texts(node.args[0] if node.args else node.func.value)[0]
            return None if UNKNOWN in text else text.split()
        if kind == "Name" and depth < _DEPTH and isinstance(self.names.get(node.id), list):
            return self.words(self.names[node.id][0], depth + 1)
        if kind == "BinOp" and depth < _DEPTH:
            left, right = self.words(node.left, depth + 1), self.words(node.right, depth + 1)
            return None if left is None or right is None else left + right
        return None

    def texts(self, node: Any, depth: int = 0) -> list[str]:
        """The texts or paths that an expression may stand for."""
        if depth > _DEPTH:
            return [UNKNOWN]
        if isinstance(node, tuple):  # an element of what a loop goes through
            return [_inside(text) for text in self.texts(node[1], depth + 1)]
        kind = _kind(node)
        if kind == "Constant" and isinstance(node.value, str):
            return [node.value]
        if kind == "FormattedValue":
            return self.texts(node.value, depth + 1)
        if kind == "JoinedStr":
            return self.joined(node.values, "", depth)
        if kind == "BinOp" and _kind(node.op) in ("Add", "Div"):
            return self.joined([node.left, node.right], "/" if _kind(node.op) == "Div" else "", depth)
        if kind == "Name" and isinstance(self.names.get(node.id), list):
            return [text for one in self.names[node.id] for text in self.texts(one, depth + 1)][:_MOST]
        if kind == "Subscript" and self.dotted(node.value) == ["os", "environ"]:
            return [_variable(text) for text in self.texts(node.slice, depth + 1)]
        if kind == "Subscript" and self.dotted(node.value) == ["sys", "argv"]:
            at = getattr(node.slice, "value", None)
            return self.arguments[at : at + 1] or [UNKNOWN] if isinstance(at, int) else [UNKNOWN]
        return self.called(node, depth) if kind == "Call" else [UNKNOWN]

    def called(self, node: Any, depth: int) -> list[str]:
        """Functions and methods that give a path for a path."""
        name = (".".join(self.dotted(node.func)) or getattr(node.func, "id", "")).removeprefix("os.path.")
        if name.endswith(("os.environ.get", "os.getenv")) and node.args:
            return [_variable(text) for text in self.texts(node.args[0], depth + 1)]
        if name == "pathlib.Path.home":
            return [os.path.expanduser("~")]
        method = getattr(node.func, "attr", "")
        if name == "expanduser" or (method == "expanduser" and not node.args):
            return [os.path.expanduser(text) for text in self.texts((node.args or [node.func.value])[0], depth + 1)]
        if name in _PATH_FUNCTIONS:
            return self.joined(node.args, "/", depth) if node.args else ["."]
        if method in ("joinpath", "glob", "rglob", "iterdir", "resolve", "absolute", "expanduser", "strip", "format"):
            return self.joined([node.func.value, *node.args], "/", depth)
        return [UNKNOWN]

    def joined(self, nodes: list[Any], mark: str, depth: int) -> list[str]:
        found = [""]
        for number, one in enumerate(nodes):
            texts = self.texts(one, depth + 1)
            found = [
                text if mark and text[:1] == "/" else f"{before}{mark if number and before else ''}{text}"
                for before in found
                for text in texts
            ][:_MOST]
        return found


def _variable(name: str) -> str:
    """What is in a variable of the environment, as far as it is a path."""
    value = os.environ.get(name, "")
    return value if value[:1] == "/" else UNKNOWN


def _inside(path: str) -> str:
    """One of the files that `glob`, `listdir` or a pattern stands for."""
    marks = [at for at in map(path.find, "*?[") if at >= 0]
    return path[: min(marks)] + UNKNOWN if marks else f"{path.rstrip('/')}/{UNKNOWN}"


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

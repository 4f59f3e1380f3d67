"""Recipes: the targets of a makefile and the scripts of package.json are read as shell."""

from __future__ import annotations

from fusewire.guard.effects import SCRIPT_LIMIT
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN
from fusewire.guard.shell.wrappers import is_assignment
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

_NAMES = ("GNUmakefile", "makefile", "Makefile")
_LONGS = "file= makefile= directory= eval= include-dir= old-file= what-if="

#: Variables inside each other, and targets that one `make` is followed into.
_DEPTH, _TARGETS = 8, 200


def _text(call: ProgramCall, path: str) -> str | None:
    """A file of recipes, if it is not too long."""
    text = call.text_of(path)
    return None if text is None or len(text) > SCRIPT_LIMIT else text


class _Makefile:
    """Variables, and rules with their recipes."""

    def __init__(self, call: ProgramCall, folder: str, argv: Argv) -> None:
        self.call = call
        self.folder = folder
        self.given = dict(one.split("=", 1) for one in argv.operands if is_assignment(one))
        self.goals = [one for one in argv.operands if not is_assignment(one)]
        self.names: dict[str, str] = dict(self.given)
        #: targets, prerequisites and recipe of each rule
        self.rules: list[tuple[list[str], list[str], list[str]]] = []

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder and name[:1] != "/" else name

    def read(self, text: str, depth: int = 0) -> None:
        recipe: list[str] | None = None
        for line in text.replace("\\\n\t", "\\\n").replace("\\\n", "\0").split("\n"):
            if line[:1] == "\t" and recipe is not None:
                recipe.append(line[1:].replace("\0", "\\\n"))
            elif line.strip():
                recipe = self._line(line.replace("\0", " ").strip(), depth, recipe)

    def _line(self, line: str, depth: int, recipe: list[str] | None) -> list[str] | None:
        """A line that is no recipe; the recipe to which the next ones belong."""
        word, _, rest = line.partition(" ")
        if line[:1] == "#" or word in ("ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"):
            return recipe
        if word in ("include", "-include", "sinclude"):
            for name in self.expanded(rest).split():
                text = _text(self.call, self.path(name))
                if text is not None and depth < _DEPTH:
                    self.read(text, depth + 1)
            return None
        while word in ("export", "override", "private", "unexport", "define"):
            line = rest.strip()
            word, _, rest = line.partition(" ")
        colon, equals = line.find(":"), line.find("=")
        if equals > 0 and (colon < 0 or colon >= equals - 1):
            self._assign(line[:equals], line[equals + 1 :].strip())
            return None
        targets, found, after = line.partition(":")
        wanted, semicolon, first = after.lstrip(":").partition(";")
        if not found or "=" in wanted:
            return None
        commands = [first.strip()] if semicolon else []
        self.rules.append((self.expanded(targets).split(), self.expanded(wanted).split(), commands))
        return commands

    def _assign(self, name: str, value: str) -> None:
        kind = name[-1:] if name[-1:] in "?+!:" else ""
        name = name.rstrip("?+!: ").strip()
        if name not in self.given and not (kind == "?" and name in self.names):
            value = UNKNOWN if kind == "!" else value
            self.names[name] = f"{self.names.get(name, '')} {value}".strip() if kind == "+" else value

    def expanded(self, text: str, own: dict[str, str] | None = None, depth: int = 0) -> str:
        """The text with its variables; `$$` is left for the shell."""
        result, at = "", 0
        while at < len(text):
            char, after = text[at], text[at + 1 : at + 2]
            if char != "$" or not after:
                result += char
                at += 1
            elif after == "$":
                result += "$"
                at += 2
            else:
                name, at = (after, at + 2) if after not in "({" else _bracketed(text, at + 1)
                result += self._named(name, own or {}, depth)
            if len(result) > SCRIPT_LIMIT:
                return UNKNOWN
        return result

    def _named(self, name: str, own: dict[str, str], depth: int) -> str:
        if " " in name or depth > _DEPTH:
            return UNKNOWN  # $(shell ...) and other functions
        usual = {"MAKE": "make", "SHELL": "/bin/sh", "CURDIR": self.folder or ".", "RM": "rm -f"} | own
        if name in self.names and name not in own:
            return self.expanded(self.names[name], own, depth + 1)
        if name in usual:
            return usual[name]
        value = self.call.world.variables.get(name, self.call.walk.environment.get(name, ""))
        return value if isinstance(value, str) else UNKNOWN

    def make(self, goals: list[str], done: set[str]) -> None:
        """The recipes of the goals and of what they need."""
        for goal in goals:
            if goal in done or len(done) > _TARGETS:
                continue
            done.add(goal)
            for targets, wanted, recipe in self.rules:
                if goal not in targets:
                    continue
                needs = [one for one in wanted if one != "|"]
                self.make(needs, done)
                own = {"@": goal, "<": "".join(needs[:1]), "^": " ".join(needs), "?": " ".join(needs)}
                for line in recipe:
                    self.call.script(self.expanded(line.lstrip("@-+ \t"), own), cwd=self.folder or None)


def _bracketed(text: str, at: int) -> tuple[str, int]:
    """What is in the brackets that open at `at`, and where they end."""
    depth = 0
    for spot in range(at, len(text)):
        depth += (text[spot] in "({") - (text[spot] in ")}")
        if not depth:
            return text[at + 1 : spot], spot + 1
    return text[at + 1 :], len(text)


def run_make(call: ProgramCall) -> None:
    argv = Argv(call.args, "fCIoWE", _LONGS, optional="jl")
    makefile = _Makefile(call, argv.value("C", "directory") or "", argv)
    call.walk.pristine = False
    call.print(UNKNOWN)
    if argv.has("n", "just-print", "dry-run", "recon", "q", "question"):
        return
    names = argv.values("f", "file", "makefile")
    for given in argv.values("E", "eval"):
        makefile.read(given)
    for name in names or [next((one for one in _NAMES if call.disk.exists(call.path(makefile.path(one)))), _NAMES[2])]:
        text = _text(call, makefile.path(name) if name != "-" else name)
        makefile.read(text or "")
    plain = [targets[0] for targets, _, _ in makefile.rules if targets and targets[0][:1] not in (".", "%")]
    with call.effects.unsure(call.walk):
        makefile.make(makefile.goals or plain[:1], set())


# -- package.json -----------------------------------------------------------------------------------------------------

_SCRIPTS = ("run", "run-script", "rum", "urn")
_NAMED = {"t": "test", "tst": "test", "test": "test", "start": "start", "stop": "stop", "restart": "restart"}

#: Commands that run scripts of certain names by themselves.
_LIFE = {
    **dict.fromkeys(("install", "i", "ci", ""), ("preinstall", "install", "postinstall", "prepare")),
    **dict.fromkeys(("publish", "pack"), ("prepublishOnly", "prepack", "prepare", "postpack")),
}


def run_npm(call: ProgramCall) -> None:
    argv = Argv(call.args, "wC", "prefix= workspace= filter= cwd=", permutes=False)
    folder = argv.value("prefix", "C", "cwd") or ""
    command, *rest = argv.operands or [""]
    call.walk.pristine = False
    call.print(UNKNOWN)
    if command in ("exec", "dlx") or (command == "x" and call.name == "npm"):
        if rest[:1] in (["-c"], ["--call"]):
            call.script("".join(rest[1:2]), cwd=folder or None)
            return
        call.run(rest[1:] if rest[:1] == ["--"] else rest, cwd=folder or None)
        return
    if command in _SCRIPTS:
        command, *rest = [word for word in rest if word[:1] != "-"] or [""]
    elif command in _NAMED:
        command = _NAMED[command]
    elif command in _LIFE or call.name == "npm":
        for name in _LIFE.get(command, ()):
            _run_script(call, folder, name, [])
        return
    for name in (f"pre{command}", command, f"post{command}"):
        _run_script(call, folder, name, rest if name == command else [])


def _run_script(call: ProgramCall, folder: str, name: str, words: list[str]) -> None:
    text = _text(call, f"{folder}/package.json" if folder else "package.json")
    from fusewire.util.fast_json import loads

    try:
        script = loads(text or "")["scripts"][name]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(script, str):
        words = words[1:] if words[:1] == ["--"] else words
        with call.effects.unsure(call.walk):
            call.script(" ".join([script, *map(quoted, words)]), cwd=folder or None)

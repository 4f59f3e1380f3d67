"""make: makefiles that the line has written, feeds in or gives as text; of others, the commands for constraints."""

from __future__ import annotations

from fusewire.guard.effects import Options
from fusewire.guard.programs.running import recipe_text, written
from fusewire.shell.values import UNKNOWN
from fusewire.wrappers import is_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program

_NAMES = ("GNUmakefile", "makefile", "Makefile")
_LONG = ("file", "makefile", "directory", "eval", "include-dir", "jobs", "old-file", "what-if")

#: Text that variables may grow to, and includes inside of each other.
_LONGEST = 20_000
_DEPTH = 8


class Makefile:
    """Variables, and rules with their recipes."""

    def __init__(self, call: Call, folder: str | None, options: Options) -> None:
        self.call = call
        self.folder = folder
        self.dry = options.has("n", "just-print", "dry-run", "recon")
        self.given = dict(one.split("=", 1) for one in options.operands if is_assignment(one))
        self.goals = [one for one in options.operands if not is_assignment(one)]
        self.names: dict[str, str] = dict(self.given)
        #: targets, prerequisites and recipe of each rule
        self.rules: list[tuple[list[str], list[str], list[str]]] = []
        self.prefix = "\t"

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder and name[:1] != "/" else name

    def read(self, text: str, depth: int = 0) -> None:
        recipe: list[str] | None = None
        lines = text.split("\n")
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            while line.endswith("\\") and at < len(lines):
                is_recipe = line.startswith(self.prefix)
                line = line + "\n" + lines[at].removeprefix(self.prefix) if is_recipe else line[:-1] + lines[at]
                at += 1
            if line.startswith(self.prefix) and recipe is not None:
                recipe.append(line[len(self.prefix) :])
            elif line.strip():
                recipe = self.line(line.strip(), depth, recipe)

    def line(self, line: str, depth: int, recipe: list[str] | None) -> list[str] | None:
        """A line that is no recipe; the recipe to which the next ones belong."""
        word, _, rest = line.partition(" ")
        if line[:1] == "#" or word in ("ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"):
            return recipe
        if word in ("include", "-include", "sinclude"):
            for name in self.expanded(rest).split():
                text = recipe_text(self.call, self.path(name))
                if text is not None and depth < _DEPTH:
                    self.read(text, depth + 1)
            return None
        while word in ("export", "override", "private", "unexport", "define"):
            line = rest.strip()
            word, _, rest = line.partition(" ")
        colon, equals = line.find(":"), line.find("=")
        if equals > 0 and not (0 <= colon < equals - 1 and line[colon : equals + 1] not in (":=", "::=", ":::=")):
            self.assign(line[:equals], line[equals + 1 :].strip())
            return None
        if colon < 0:
            self.expanded(line)  # $(shell ...) on a line of its own
            return None
        targets, after = line[:colon], line[colon + 1 :].lstrip(":")
        wanted, semicolon, first = after.partition(";")
        if "=" in wanted:  # a variable of one target
            self.assign(wanted.partition("=")[0], wanted.partition("=")[2].strip())
            return None
        found = [first.strip()] if semicolon else []
        self.rules.append((self.expanded(targets).split(), self.expanded(wanted).split(), found))
        return found

    def assign(self, name: str, value: str) -> None:
        kind = name[-1:] if name[-1:] in "?+!:" else ""
        name = name.rstrip("?+!: ").strip()
        if name == ".RECIPEPREFIX":
            self.prefix = value[:1] or "\t"
        elif kind == "!":
            self.names[name] = self.output(value)
        elif name not in self.given and not (kind == "?" and name in self.names):
            value = self.expanded(value) if kind == ":" or "$(shell" in value else value
            self.names[name] = f"{self.names.get(name, '')} {value}".strip() if kind == "+" else value

    def output(self, line: str) -> str:
        """What a command prints; it runs when the makefile is read."""
        call = self.call
        before, call.world.out = call.world.out, ""
        call.script(line, cwd=self.folder)
        found, call.world.out = call.world.out, before
        return found.strip().replace("\n", " ")

    def expanded(self, text: str, own: dict[str, str] | None = None, depth: int = 0) -> str:
        """The text with its variables; `$$` is left for the shell."""
        result = ""
        at = 0
        while at < len(text):
            char = text[at]
            if char != "$" or at + 1 >= len(text):
                result += char
                at += 1
                continue
            after = text[at + 1]
            if after == "$":
                result += "$"
                at += 2
                continue
            name, at = (after, at + 2) if after not in "({" else _bracketed(text, at + 1)
            result += self.named(name, own or {}, depth)
            if len(result) > _LONGEST:
                return UNKNOWN
        return result

    def named(self, name: str, own: dict[str, str], depth: int) -> str:
        word, space, rest = name.partition(" ")
        if depth > _DEPTH:
            return UNKNOWN
        if space and word == "shell":
            return self.output(self.expanded(rest, own, depth + 1))
        if space and word in ("strip", "sort", "abspath", "realpath", "eval", "info", "value", "wildcard"):
            return self.expanded(rest, own, depth + 1)
        if space:
            self.expanded(rest, own, depth + 1)
            return UNKNOWN
        if name in own:
            return own[name]
        if name in ("MAKE", "SHELL", "CURDIR", "RM"):
            return {"MAKE": "make", "SHELL": "/bin/sh", "CURDIR": self.folder or ".", "RM": "rm -f"}[name]
        if name not in self.names:
            value = self.call.world.variables.get(name, self.call.walk.environment.get(name, ""))
            return value if isinstance(value, str) else UNKNOWN
        return self.expanded(self.names[name], own, depth + 1)

    def run(self) -> None:
        """The recipes of the goals and of what they need."""
        plain = [
            targets[0] for targets, _, _ in self.rules if targets and targets[0][:1] != "." and "%" not in targets[0]
        ]
        self.make(self.goals or plain[:1], set())

    def make(self, goals: list[str], done: set[str]) -> None:
        for goal in goals:
            if goal in done or len(done) > 200:
                continue
            done.add(goal)
            for targets, wanted, recipe in self.rules:
                stem = next((_stem(target, goal) for target in targets if _stem(target, goal) is not None), None)
                if stem is None:
                    continue
                needs = [one.replace("%", stem) for one in wanted if one != "|"]
                self.make(needs, done)
                own = {"@": goal, "<": "".join(needs[:1]), "^": " ".join(needs), "+": " ".join(needs), "*": stem}
                own |= {"?": own["^"], "@D": goal.rpartition("/")[0] or ".", "@F": goal.rpartition("/")[2]}
                for line in recipe:
                    bare = line.lstrip("@-+ \t")
                    if not self.dry or "+" in line[: len(line) - len(bare)] or "$(MAKE)" in line:
                        self.call.script(self.expanded(bare, own), cwd=self.folder)


def _stem(target: str, goal: str) -> str | None:
    """What `%` stands for if the target makes the goal."""
    if "%" not in target:
        return "" if target == goal else None
    head, _, tail = target.partition("%")
    fits = goal.startswith(head) and goal.endswith(tail) and len(goal) >= len(head) + len(tail)
    return goal[len(head) : len(goal) - len(tail)] if fits else None


def _bracketed(text: str, at: int) -> tuple[str, int]:
    """What is in the brackets that open at `at`, and where they end."""
    depth = 0
    for spot in range(at, len(text)):
        depth += (text[spot] in "({") - (text[spot] in ")}")
        if not depth:
            return text[at + 1 : spot], spot + 1
    return text[at + 1 :], len(text)


def _values(words: list[str], letter: str, names: tuple[str, ...]) -> list[str]:
    """Every value of an option that may be given more than once: `-f x`, `-fx`, `--file=x`, `--makef x`."""
    found = []
    for at, word in enumerate(words):
        after = "".join(words[at + 1 : at + 2])
        name, equals, value = word[2:].partition("=") if word[:2] == "--" else ("", "", "")
        if len(name) > 2 and any(one.startswith(name) for one in names):
            found.append(value if equals else after)
        elif word[:1] == "-" and word[1:2] != "-" and letter in word:
            found.append(word.partition(letter)[2] or after)
    return found


def _make(call: Call) -> None:
    options = Options(call.args, "fCIloWE", _LONG)
    folder = options.value("C", "directory")
    makefile = Makefile(call, folder, options)
    for text in _values(call.args, "E", ("eval",)):
        if UNKNOWN not in text:
            makefile.read(text)
    names = _values(call.args, "f", ("file", "makefile"))
    found = [call.world.stdin if name in ("-", "/dev/stdin") else written(call, makefile.path(name)) for name in names]
    if not names:
        found = [written(call, makefile.path(name)) for name in _NAMES]
    texts = [text for text in found if text is not None][: len(names) or 1]
    if not texts and call.effects.follows_recipes:
        _follow(makefile, names)
    for text in texts:
        makefile.read(text)
    with call.effects.unsure():
        makefile.run()
    call.effects.opaque = True
    call.walk.pristine = False
    call.print(UNKNOWN)


def _follow(makefile: Makefile, names: list[str]) -> None:
    """The commands of a makefile on the disk, as far as they can be read."""
    found = [recipe_text(makefile.call, makefile.path(name)) for name in names or _NAMES]
    with makefile.call.effects.only_commands(makefile.call.walk):
        for text in [text for text in found if text is not None][: len(names) or 1]:
            makefile.read(text)
        makefile.run()
    makefile.rules = []


PROGRAMS: dict[str, Program] = {"gmake": _make, "make": _make}

"""Walking through a line as a shell would, without running anything.

What a command does is decided by the `runner`: it is told the words of every command that could run, in the world
in which it would. The walk follows variables, folders, loops, functions and branches; where it cannot know which way
a line goes, it goes both. Nothing here reads the disk: globs and files are asked for through what it is given.
"""

from __future__ import annotations

from fusewire.paths import normal
from fusewire.shell import tree
from fusewire.shell.builtins import BUILTINS
from fusewire.shell.expansion import fields_of, text_of
from fusewire.shell.flow import DEPTH, METHODS, call, cut
from fusewire.shell.lexer import Budget
from fusewire.shell.parser import Parser
from fusewire.shell.values import TAINT, UNKNOWN, cleaned
from fusewire.shell.world import World, distinct
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class Runner(Protocol):
        def command(self, words: list[str], world: World, walk: Walk) -> None:
            """An external command; may set the world's `status` and add to its `out`."""

        def redirect(self, operator: str, path: str, world: World, walk: Walk) -> bool:
            """A file that a redirection opens; False if it cannot be, and the command does not run."""

        def sourced(self, text: str, world: World, walk: Walk) -> list[World]:
            """A file on the disk that the shell reads commands from."""

        def unread(self, text: str, world: World, walk: Walk) -> None:
            """Text that is nested too deeply or too long to be read."""


#: Simple commands that are followed in one line, loops included.
_STEPS = 40_000

#: What stands in a line in which the output of a command can become a word or a command.
_LISTENERS = (
    *("$(", "`", "<(", ">(", "xargs", "read", "mapfile", "parallel", "sh", "eval", "source", ". ", "python", "perl"),
    *("ruby", "node", "make", "patch", "apply", "cpio", "ed ", "ex ", "-f ", "--", "-@", " -"),
)

#: Variables whose values are commands, or prompts in which commands are substituted.
_CODE_VARIABLES = frozenset(("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4"))


class TooMuch(Exception):
    """The line is longer than anybody can judge."""


class Walk:
    def __init__(
        self,
        runner: Runner,
        *,
        environment: Mapping[str, str],
        globs: Callable[[str, World], list[str]] | None = None,
        reads: Callable[[str], str | None] | None = None,
        is_folder: Callable[[str], bool] | None = None,
        holds: Callable[[str, str], bool | None] | None = None,
        resolves: Callable[[str], str] | None = None,
        literal: bool = False,
    ) -> None:
        self.runner = runner
        self.environment = environment
        self.globs = globs
        self.is_folder = is_folder
        #: a test of a file, such as ("-f", path); None if the line may have changed the answer
        self.holds = holds
        self.resolves = resolves
        self._reads = reads
        #: unknown expansions are kept as they are written
        self.literal = literal
        #: files that the line itself has written (without dots in their paths), and what is known to be in them
        self.files: dict[str, str] = {}
        #: how many functions, loops and conditions are around what runs now
        self.calls = self.loops = self.conditions = 0
        #: the variables that each function under way has for itself
        self.locals: list[set[str]] = []
        #: whether somebody reads what is printed now: a pipe, a substitution
        self.heard = 0
        #: whether the line speaks of something protected, so that what it prints may do so too
        self.suspicious = False
        #: `>(...)`: what reads the file, and in which world
        self._sinks: dict[str, tuple[tree.Node, World]] = {}
        #: nothing has run yet that could have changed a file
        self.pristine = True
        #: commands that are still followed
        self.steps = _STEPS
        self.depth = 0
        self._processes = 0
        self._kills = False
        self._listens = True
        self._budget = Budget(0)
        self.unread_nodes: set[int] = set()
        #: texts that were read already: `find -exec sh -c` gives the same one again and again
        self._parsed: dict[str, tree.Node] = {}

    def line(self, text: str, cwd: str) -> list[World]:
        """Walk through a whole line."""
        text = cleaned(text)
        self._budget = Budget(len(text))
        self._kills = "kill" in text
        self._listens = any(mark in text for mark in _LISTENERS)
        worlds = self.text(text, World(cwd))
        for world in worlds:
            self._trapped(world)
        return worlds

    def _trapped(self, world: World, *, ends: bool = True) -> None:
        """Run what `trap` has set: at the end of a shell, or (the other signals) wherever it has got to."""
        for signal, script in world.traps.items():
            at_end = signal in ("EXIT", "0")
            if at_end is ends and (at_end or signal in ("DEBUG", "ERR", "RETURN", "CHLD") or self._kills):
                inner = world.copy()
                inner.flow, inner.traps = "", {}
                self.text(script, inner)

    def text(self, text: str, world: World) -> list[World]:
        """A text as commands of the same shell (`eval`, `source`, the script of `bash -c`)."""
        node = self._parsed.get(text)
        if self.depth >= DEPTH or (node is None and self._budget.left < 0):
            self.runner.unread(text, world, self)
            return [world]
        if node is None:
            self._budget.left -= len(text)
            node = Parser(text, min(self.depth, 8), self._budget).sequence(frozenset(), "")
            self._parsed[text] = node
        self.depth += 1
        worlds = self.run(node, [world])
        self.depth -= 1
        return worlds

    def script(self, text: str, world: World, positionals: list[str]) -> None:
        """A text that another shell runs: it sees our variables, and we see what it prints."""
        inner = world.copy()
        inner.positionals = positionals
        inner.traps = {}
        if not self.literal:
            inner.options, inner.functions = frozenset(), {}
            seen = world.exported | self.environment.keys()
            inner.variables = {name: value for name, value in world.variables.items() if name in seen}
        self.join(world, self.text(text, inner))

    def join(self, world: World, inner: list[World]) -> None:
        """Back from a subshell: its output and its status stay, everything else is gone."""
        for one in inner:
            if one.traps and one.traps is not world.traps:
                self._trapped(one)
        outs = {one.out for one in inner}
        world.out = self.tainted(outs.pop() if len(outs) == 1 else UNKNOWN)
        states = {one.status for one in inner}
        world.status = states.pop() if len(states) == 1 else None

    @property
    def is_heard(self) -> bool:
        """Whether somebody who makes something of it reads what is printed now; else nobody has to know it."""
        return self.heard > 0 and (self._listens or self.literal)

    def tainted(self, text: str) -> str:
        """What is unknown in an output, marked if the line speaks of something protected."""
        if not self.suspicious or UNKNOWN not in text or TAINT in text:
            return text
        return text.replace(UNKNOWN, UNKNOWN + TAINT)

    def read_file(self, path: str) -> str | None:
        """What is in a file that the line has written, or on the disk; None if it is not known."""
        known = self.files.get(normal(path)) if self.files else None
        if known is not None:
            return known
        return self._reads(path) if self._reads is not None and UNKNOWN not in path else None

    # -- nodes ----------------------------------------------------------------------------------------

    def run(self, node: tree.Node, worlds: list[World]) -> list[World]:
        self.steps -= 1
        if self.steps < 0:
            raise TooMuch
        method = _METHODS[type(node)]
        if not node.redirects or type(node) is tree.Simple:
            return distinct(method(self, node, worlds))
        result: list[World] = []
        for world in worlds:
            result += self._redirected(node, method, world)
        return distinct(result)

    def _redirected(self, node: tree.Node, method: Any, world: World) -> list[World]:
        stdin = world.stdin
        worlds, _ = self._within(node.redirects, world, lambda: method(self, node, [world]))
        for one in worlds:
            one.stdin = stdin
        return worlds

    def _within(
        self, redirects: list[tree.Redirect], world: World, act: Callable[[], list[World]], *, stays: bool = False
    ) -> tuple[list[World], str | None]:
        """Do something with the input and the output redirected; where the output went. `stays` keeps the input."""
        stdin, out = world.stdin, world.out
        redirected = self.redirects(redirects, world)
        if redirected is None:
            world.status = False
            return [world], None
        target, given = redirected
        world.stdin = given if given is not None else stdin
        world.out = ""
        self.heard += target is not None
        worlds = act()
        self.heard -= target is not None
        for one in worlds:
            if target is not None:
                self.wrote(target, one.out)
                one.out = ""
            one.out = cut(out + one.out)
            if given is not None and not stays:
                one.stdin = stdin
        return worlds, target[0] if target is not None else None

    def wrote(self, target: tuple[str, bool], text: str) -> None:
        path, appended = target
        sink = self._sinks.get(path)
        if sink is not None:
            inner = sink[1].copy()
            inner.stdin, inner.out = text, ""
            self.run(sink[0], [inner])
            return
        self.files[normal(path)] = cut((self.read_file(path) or "") + text if appended else text)

    # -- simple commands ------------------------------------------------------------------------------

    def _simple(self, node: tree.Simple, worlds: list[World]) -> list[World]:
        result: list[World] = []
        for world in worlds:
            result += self._command(node, world)
        return result

    def _command(self, node: tree.Simple, world: World) -> list[World]:
        self.steps -= 1
        if self.steps < 0:
            raise TooMuch
        words = fields_of(node.words, world, self)
        if world.flow:  # ${name:?message}
            return [world]
        if not node.assignments and not node.redirects:
            return self.words(words, world) if words else [world]
        lasting = not words or words[0] in ("export", "declare", "local", "readonly", "typeset", "exec")
        before = None if lasting else dict(world.variables)
        world.status = True
        exported = world.exported
        for name, appended, value in node.assignments:
            self._assign(name, appended, value, world)
        if words:
            world.exported |= {name for name, _, _ in node.assignments}
            if self.locals and words[0] in ("local", "declare", "typeset") and "-g" not in words:
                self.locals[-1] |= {name.partition("[")[0] for name, _, _ in node.assignments}
        elif any(not isinstance(value, str) for _, _, value in node.assignments):
            world.status = None  # that of the last substitution
        ended, target = self._within(
            node.redirects,
            world,
            lambda: self.words(words, world) if words else [world],
            stays=words == ["exec"],
        )
        for one in ended:
            if one.status and target is not None and not target.startswith("/dev/"):
                one.status = None  # the folder may not be there
            if not lasting:
                one.exported = exported
            if before is not None:
                for name, _, _ in node.assignments:
                    one.variables.pop(name, None)
                    if name in before:
                        one.variables[name] = before[name]
        return ended

    def _assign(self, name: str, appended: bool, value: tree.Word | list[tree.Word], world: World) -> None:
        base, bracket, index = name.partition("[")
        if f"nameref:{base}" in world.options and isinstance(world.variables.get(base), str):
            base = str(world.variables[base])
        if f"unset {base}" in world.options:
            world.options -= {f"unset {base}"}
        new: str | list[str] = fields_of(value, world, self) if isinstance(value, list) else text_of(value, world, self)
        old = world.variables.get(base)
        if base == "BASH_ALIASES" and isinstance(new, str):
            world.variables[f"alias {index.rstrip(']')}"] = new
        elif bracket:
            values = list(old) if isinstance(old, list) else [old] if old else []
            at = index.rstrip("]")
            text = new if isinstance(new, str) else UNKNOWN
            world.variables[f"keys {base}"] = [*_listed(world.variables.get(f"keys {base}")), at.strip("'\"")]
            if at.isdigit() and int(at[:4]) < len(values):
                values[int(at[:4])] = text
            else:
                values.append(text)
            world.variables[base] = values
        elif isinstance(new, list) and any(one[:1] == "[" and "]=" in one for one in new):
            pairs = [one[1:].partition("]=") if one[:1] == "[" else ("", "", one) for one in new]
            world.variables[base] = [value for _, _, value in pairs]
            world.variables[f"keys {base}"] = [key for key, _, _ in pairs]
        elif appended and isinstance(new, list):
            world.variables[base] = [*(old if isinstance(old, list) else [old] if old else []), *new]
        elif appended:
            if old is None:
                old = self.environment.get(base, "")
            first = old if isinstance(old, str) else old[0] if old else ""
            world.variables[base] = cut(first + str(new), 4096)
        else:
            world.variables[base] = new if isinstance(new, list) else cut(new)
        if base in _CODE_VARIABLES and isinstance(new, str) and not self.literal:
            self._run_variable(base, new, world)

    def _run_variable(self, name: str, value: str, world: World) -> None:
        """Variables that a shell takes for commands sooner or later."""
        if name in ("BASH_ENV", "ENV"):
            text = self.files.get(normal(self.path(value, world)))
            self.text(text if text is not None else f'echo "{value}"', world.copy())
        else:
            self.text(value if name == "PROMPT_COMMAND" else f'echo "{value}"', world.copy())

    def words(self, words: list[str], world: World) -> list[World]:
        """A command as words: a function, a builtin, or a program."""
        name = words[0]
        alias = world.variables.get(f"alias {name}") if "expand_aliases" in world.options else None
        if isinstance(alias, str) and alias.split()[:1] != [name]:
            return self.text(" ".join([alias, *map(quoted, words[1:])]), world)
        function = world.functions.get(name)
        if function is not None:
            return call(self, function, words, world)
        builtin = BUILTINS.get(name)
        if builtin is not None:
            worlds = builtin(self, words, world)
            for one in worlds:
                one.variables["_"] = words[-1]
                if one.traps:
                    self._trapped(one, ends=False)
            return worlds
        world.status = None
        self.runner.command(words, world, self)
        world.variables["_"] = words[-1]
        if world.traps:
            self._trapped(world, ends=False)
        return [world]

    # -- redirections and substitutions ---------------------------------------------------------------

    def redirects(
        self, redirects: list[tree.Redirect], world: World
    ) -> tuple[tuple[str, bool] | None, str | None] | None:
        """Where the output goes (and whether it is appended), and what is read instead of the input; None if it
        fails."""
        target: tuple[str, bool] | None = None
        given: str | None = None
        for redirect in redirects:
            operator = redirect.operator
            if operator in ("<<", "<<-", "<<<"):
                text = text_of(redirect.target, world, self) + ("\n" if operator == "<<<" else "")
                if redirect.descriptor in ("", "0"):
                    given = text
                else:
                    self.files[f"/dev/fd/{redirect.descriptor}"] = text
                continue
            paths = fields_of([redirect.target], world, self)
            path = paths[0] if paths else UNKNOWN
            for other in paths[1:]:
                self.runner.redirect(operator, other, world, self)
            if operator == "<&" and f"/dev/fd/{path}" in self.files:
                given = self.files[f"/dev/fd/{path}"]
            if operator in (">&", "<&") and (path.rstrip("-").isdigit() or path in ("-", "")):
                if redirect.descriptor in ("", "1") and operator == ">&" and path == "2":
                    target = ("/dev/stderr", False)
                continue
            if not self.runner.redirect(operator, path, world, self):
                return None
            if operator == "<":
                given = self.read_file(self.path(path, world))
                given = UNKNOWN if given is None else given
            elif redirect.descriptor in ("", "1"):
                target = (self.path(path, world), operator in (">>", "&>>"))
        return target, given

    def path(self, path: str, world: World) -> str:
        """A path as this world understands it; dots are not taken out."""
        if path[:1] == UNKNOWN:
            return path  # it may well be absolute
        if path.startswith("/proc/"):
            parts = normal(path).split("/", 4)
            if len(parts) > 3 and parts[3] == "cwd" and parts[2] in ("self", "thread-self", UNKNOWN):
                return "/".join([world.cwd, *parts[4:]])
        return path if path[:1] == "/" else f"{world.cwd}/{path}"

    def substitute(self, node: tree.Node, world: World, raw: str = "") -> str:
        """What `$(...)` gives; `raw` is how it is written."""
        inner = world.copy()
        inner.out = ""
        if self.depth >= DEPTH:
            self.runner.unread(raw, world, self)
            return UNKNOWN
        self.depth += 1
        read = _read_file_node(node)
        if read is not None:  # $(< file)
            paths = fields_of([read], world, self)
            text = self.read_file(self.path(paths[0], world)) if len(paths) == 1 else None
            result = UNKNOWN if text is None else text
        else:
            self.heard += 1
            ended = self.run(node, [inner])
            self.heard -= 1
            self.join(inner, ended)
            result = inner.out
        self.depth -= 1
        return result.rstrip("\n")

    def expanded(self, text: str, world: World) -> str:
        """A text as in double quotes, expanded once more (`${name@P}`)."""
        parsed = Parser(f'echo "{text}"', min(self.depth, 8), self._budget).sequence(frozenset(), "")
        return self.substitute(parsed, world)

    def process(self, node: tree.Node, direction: str, world: World) -> str:
        """`<(...)` is a file with the output, `>(...)` one that is read."""
        self._processes += 1
        path = f"/dev/fd/{62 + self._processes}"
        inner = world.copy()
        inner.out = ""
        if direction == ">":
            self._sinks[path] = (node, inner.copy())
            if not self.literal:
                return path
        self.heard += 1
        self.join(inner, self.run(node, [inner]))
        self.heard -= 1
        self.files[path] = inner.out
        return path


def _listed(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def _read_file_node(node: tree.Node) -> tree.Word | None:
    if not isinstance(node, tree.Sequence) or len(node.items) != 1:
        return None
    simple = node.items[0][0]
    if isinstance(simple, tree.Simple) and not simple.words and len(simple.redirects) == 1:
        redirect = simple.redirects[0]
        return redirect.target if redirect.operator == "<" else None
    return None


_METHODS: dict[type, Any] = {tree.Simple: Walk._simple, **METHODS}

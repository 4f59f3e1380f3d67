"""Walk through a line as a shell would, without running anything.

What a command does is decided by the `runner`: it gets the words of every command that could run, in the world
in which it would. The walk follows variables, folders, loops, functions and branches; where it cannot know which way
a line goes, it goes both. Globs and files are looked up on the `Disk` that it is given, if any.
"""

from __future__ import annotations

from fusewire.guard.shell import tree
from fusewire.guard.shell.builtins import BUILTINS
from fusewire.guard.shell.expansion import fields_of, text_of
from fusewire.guard.shell.flow import DEPTH, METHODS, call, cut
from fusewire.guard.shell.lexer import Budget
from fusewire.guard.shell.parser import Parser
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import TAINT, UNKNOWN, cleaned
from fusewire.guard.shell.world import World, distinct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from fusewire.guard.disk import Disk

    class Runner(Protocol):
        def command(self, words: list[str], world: World, walk: Walk) -> None:
            """An external command; may set the world's `status` and add to its `out`."""

        def redirect(self, operator: str, path: str, world: World, walk: Walk) -> bool:
            """A file that a redirection opens; False if it cannot be, and the command does not run."""

        def holds(self, test: str, path: str) -> bool | None:
            """A test of a file, such as ("-f", path); None if the line may have changed the answer."""

        def sourced(self, text: str, world: World, walk: Walk) -> list[World]:
            """A file on the disk that the shell reads commands from."""

        def unread(self, text: str, world: World, walk: Walk) -> None:
            """Text that is nested too deeply or too long to be read."""


#: Simple commands that are followed in one line, loops included.
_STEPS = 40_000


class TooMuch(Exception):
    """The line has more steps than are followed."""


class Walk:
    def __init__(
        self,
        runner: Runner,
        environment: Mapping[str, str],
        disk: Disk | None = None,
    ) -> None:
        self.runner = runner
        self.environment = environment
        #: where globs and files are looked up; None to follow the line as its words stand
        self.disk = disk
        #: unknown expansions are kept as they are written
        self.literal = disk is None
        #: files that the line itself has written (without dots in their paths), and what is known to be in them
        self.files: dict[str, str] = {}
        #: how many functions and loops are around what runs now
        self.calls = self.loops = 0
        #: how many pipes and substitutions read what is printed now
        self.heard = 0
        #: whether the line mentions something protected, so that what it prints may do so too
        self.suspicious = False
        #: nothing has run yet that could have changed a file
        self.pristine = True
        #: commands that are still followed
        self.steps = _STEPS
        self.depth = 0
        self._processes = 0
        self._budget = Budget(0)
        self.unread_nodes: set[int] = set()
        #: the line itself, in which `set -e` counts
        self.top: tree.Node | None = None
        #: variables that the line uses and nothing sets
        self.unset: set[str] = set()
        #: texts that were read already: `find -exec sh -c` gives the same one again and again
        self.parsed: dict[str, tree.Node] = {}

    def line(self, text: str, cwd: str) -> list[World]:
        """Walk through a whole line."""
        text = cleaned(text)
        self._budget = Budget(len(text))
        worlds = self.text(text, World(cwd))
        for world in worlds:
            script = world.variables.get("trap EXIT")
            if isinstance(script, str):
                world.flow = ""
                self.text(script, world.copy())
        return worlds

    def text(self, text: str, world: World) -> list[World]:
        """A text as commands of the same shell (`eval`, `source`, the script of `bash -c`)."""
        node = self.parsed.get(text)
        if self.depth >= DEPTH or (node is None and self._budget.left < 0):
            self.runner.unread(text, world, self)
            return [world]
        if node is None:
            self._budget.left -= len(text)
            node = Parser(text, min(self.depth, 8), self._budget).sequence(frozenset(), "")
            self.parsed[text] = node
        self.top = self.top or node
        self.depth += 1
        worlds = self.run(node, [world])
        self.depth -= 1
        return worlds

    def script(self, text: str, world: World, positionals: list[str]) -> None:
        """A text that another shell runs: it sees our variables, and we see what it prints."""
        inner = world.copy()
        inner.positionals = positionals
        if not self.literal:
            inner.options, inner.functions = frozenset(), {}
            seen = world.exported | self.environment.keys()
            inner.variables = {name: value for name, value in world.variables.items() if name in seen}
        self.join(world, self.text(text, inner))

    def called(self, act: Callable[[], list[World]], arguments: list[str], world: World) -> list[World]:
        """Do something as a function, or a file that is sourced, with its own positionals."""
        positionals = world.positionals
        world.positionals = [positionals[0], *arguments]
        self.calls += 1
        worlds = act()
        self.calls -= 1
        for one in worlds:
            one.positionals = positionals
            one.flow = "" if one.flow == "return" else one.flow
        return worlds

    def join(self, world: World, inner: list[World]) -> None:
        """Back from a subshell: its output and its status stay, everything else is gone."""
        outs = {one.out for one in inner}
        world.out = self.tainted(outs.pop() if len(outs) == 1 else UNKNOWN)
        states = {one.status for one in inner}
        world.status = states.pop() if len(states) == 1 else None

    @property
    def is_heard(self) -> bool:
        """Whether another command reads what is printed now; otherwise it need not be known."""
        return self.heard > 0

    def tainted(self, text: str) -> str:
        """What is unknown in an output, marked if the line mentions something protected."""
        if not self.suspicious or UNKNOWN not in text or TAINT in text:
            return text
        return text.replace(UNKNOWN, UNKNOWN + TAINT)

    def read_file(self, path: str) -> str | None:
        """What is in a file that the line has written, or on the disk; None if it is not known."""
        known = self.files.get(normal(path)) if self.files else None
        if known is not None:
            return known
        return self.disk.read(path) if self.disk is not None and UNKNOWN not in path else None

    # -- nodes ----------------------------------------------------------------------------------------

    def run(self, node: tree.Node, worlds: list[World]) -> list[World]:
        self.steps -= 1
        if self.steps < 0:
            raise TooMuch
        method = _METHODS[type(node)]
        if not node.redirects or type(node) is tree.Simple:
            return distinct(method(self, node, worlds))
        return distinct([one for world in worlds for one in self._redirected(node, method, world)])

    def _redirected(self, node: tree.Node, method: Any, world: World) -> list[World]:
        stdin = world.stdin
        worlds = self._within(node.redirects, world, lambda: method(self, node, [world]))
        for one in worlds:
            one.stdin = stdin
        return worlds

    def _within(
        self, redirects: list[tree.Redirect], world: World, act: Callable[[], list[World]], *, stays: bool = False
    ) -> list[World]:
        """Do something with the input and the output redirected; `stays` keeps the input, as for `exec`."""
        stdin, out = world.stdin, world.out
        redirected = self._redirects(redirects, world)
        if redirected is None:
            world.status = False
            return [world]
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
        return worlds

    def wrote(self, target: tuple[str, bool], text: str) -> None:
        path, appended = target
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
        elif any(not isinstance(value, str) for _, _, value in node.assignments):
            world.status = None  # that of the last substitution
        act = (lambda: self.words(words, world)) if words else (lambda: [world])
        ended = self._within(node.redirects, world, act, stays=words == ["exec"])
        for one in ended if before is not None else ():
            one.exported = exported
            for name, _, _ in node.assignments:
                one.variables.pop(name, None)
                if name in before:  # type: ignore[operator]
                    one.variables[name] = before[name]  # type: ignore[index]
        return ended

    def _assign(self, name: str, appended: bool, value: tree.Word | list[tree.Word], world: World) -> None:
        base, bracket, _ = name.partition("[")
        new: str | list[str] = fields_of(value, world, self) if isinstance(value, list) else text_of(value, world, self)
        old = world.variables.get(base, self.environment.get(base, "") if appended else "")
        listed = old if isinstance(old, list) else [old] if old else []
        if bracket or (appended and isinstance(new, list)):  # which element it is does not matter
            world.variables[base] = [*listed, *(new if isinstance(new, list) else [new])]
        elif appended:
            world.variables[base] = cut("".join(listed[:1]) + str(new), 4096)
        else:
            world.variables[base] = new if isinstance(new, list) else cut(new)

    def words(self, words: list[str], world: World) -> list[World]:
        """A command as words: a function, a builtin, or a program."""
        name = words[0]
        function = world.functions.get(name)
        if function is not None:
            return call(self, function, words, world)
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, words, world)
        world.status = None
        self.runner.command(words, world, self)
        return [world]

    # -- redirections and substitutions ---------------------------------------------------------------

    def _redirects(
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
                given = text if redirect.descriptor in ("", "0") else given
                continue
            path = (fields_of([redirect.target], world, self) or [UNKNOWN])[0]
            if operator in (">&", "<&") and (path.rstrip("-").isdigit() or path in ("-", "")):
                if redirect.descriptor in ("", "1") and operator == ">&" and path == "2":
                    target = ("/dev/stderr", False)
            elif not self.runner.redirect(operator, path, world, self):
                return None
            elif operator == "<":
                text_read = self.read_file(self.path(path, world))
                given = UNKNOWN if text_read is None else text_read
            elif redirect.descriptor in ("", "1"):
                target = (self.path(path, world), operator in (">>", "&>>"))
        return target, given

    def path(self, path: str, world: World) -> str:
        """A path as this world understands it; dots are not taken out."""
        absolute = path[:1] in ("/", UNKNOWN)  # what is not known may well be absolute
        return path if absolute else f"{world.cwd}/{path}"

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

    def process(self, node: tree.Node, direction: str, world: World) -> str:
        """`<(...)` is a file with the output, `>(...)` one that is read."""
        self._processes += 1
        path = f"/dev/fd/{62 + self._processes}"
        inner = world.copy()
        inner.out = ""
        self.heard += 1
        self.join(inner, self.run(node, [inner]))
        self.heard -= 1
        self.files[path] = inner.out
        return path


def _read_file_node(node: tree.Node) -> tree.Word | None:
    if not isinstance(node, tree.Sequence) or len(node.items) != 1:
        return None
    simple = node.items[0][0]
    if isinstance(simple, tree.Simple) and not simple.words and len(simple.redirects) == 1:
        redirect = simple.redirects[0]
        return redirect.target if redirect.operator == "<" else None
    return None


_METHODS: dict[type, Any] = {tree.Simple: Walk._simple, **METHODS}

"""Walking through a line as a shell would, without running anything.

What a command does is decided by the `runner`: it is told the words of every command that could run, in the world
in which it would. The walk follows variables, folders, loops, functions and branches; where it cannot know which way
a line goes, it goes both. Nothing here reads the disk: globs and files are asked for through what it is given.
"""

from __future__ import annotations

from fusewire.globs import matches
from fusewire.paths import normal
from fusewire.shell import tree
from fusewire.shell.builtins import BUILTINS, tested
from fusewire.shell.expansion import VALUE_LIMIT, fields_of, pattern_of, text_of
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

#: Functions, scripts and substitutions inside each other.
_DEPTH = 24

#: Variables whose values are commands, or prompts in which commands are substituted.
_CODE_VARIABLES = frozenset(("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4"))

#: Turns of a loop that are followed.
_TURNS = 1000


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
        self._steps = _STEPS
        self._depth = 0
        self._processes = 0
        self._kills = False
        self._budget = Budget(0)
        self._unread_nodes: set[int] = set()
        #: texts that were read already: `find -exec sh -c` gives the same one again and again
        self._parsed: dict[str, tree.Node] = {}

    def line(self, text: str, cwd: str) -> list[World]:
        """Walk through a whole line."""
        text = cleaned(text)
        self._budget = Budget(len(text))
        self._kills = "kill" in text
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
        if self._depth >= _DEPTH or (node is None and self._budget.left < 0):
            self.runner.unread(text, world, self)
            return [world]
        if node is None:
            self._budget.left -= len(text)
            node = Parser(text, min(self._depth, 8), self._budget).sequence(frozenset(), "")
            self._parsed[text] = node
        self._depth += 1
        worlds = self.run(node, [world])
        self._depth -= 1
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
        self._join(world, self.text(text, inner))

    def _join(self, world: World, inner: list[World]) -> None:
        """Back from a subshell: its output and its status stay, everything else is gone."""
        for one in inner:
            if one.traps and one.traps is not world.traps:
                self._trapped(one)
        outs = {one.out for one in inner}
        world.out = self.tainted(outs.pop() if len(outs) == 1 else UNKNOWN)
        states = {one.status for one in inner}
        world.status = states.pop() if len(states) == 1 else None

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
        self._steps -= 1
        if self._steps < 0:
            raise TooMuch
        method = _METHODS[type(node)]
        if not node.redirects or type(node) is tree.Simple:
            return distinct(method(self, node, worlds))
        result: list[World] = []
        for world in worlds:
            result += self._redirected(node, method, world)
        return distinct(result)

    def _redirected(self, node: tree.Node, method: Any, world: World) -> list[World]:
        stdin, out = world.stdin, world.out
        redirected = self.redirects(node.redirects, world)
        if redirected is None:
            world.status = False
            return [world]
        target, given = redirected
        world.stdin = given if given is not None else stdin
        world.out = ""
        self.heard += target is not None
        worlds: list[World] = method(self, node, [world])
        self.heard -= target is not None
        for one in worlds:
            if target is not None:
                self.wrote(target, one.out)
                one.out = ""
            one.out = _cut(out + one.out)
            one.stdin = stdin
        return worlds

    def wrote(self, target: tuple[str, bool], text: str) -> None:
        path, appended = target
        sink = self._sinks.get(path)
        if sink is not None:
            inner = sink[1].copy()
            inner.stdin, inner.out = text, ""
            self.run(sink[0], [inner])
            return
        self.files[normal(path)] = _cut((self.read_file(path) or "") + text if appended else text)

    def _sequence(self, node: tree.Sequence, worlds: list[World]) -> list[World]:
        for item, background in node.items:
            going = [world for world in worlds if not world.flow]
            if not going:
                break
            stopped = [world for world in worlds if world.flow]
            if background:
                self.run(item, [world.copy() for world in going])
                for world in going:
                    world.status = True
                worlds = going + stopped
            else:
                worlds = self.run(item, going) + stopped
                for world in worlds:
                    certain = world.status is False and "errexit" in world.options and type(item) is tree.Simple
                    if certain and not self.conditions and self._depth == 1 and not self.heard:
                        world.flow = world.flow or "exit"
        return worlds

    def _and_or(self, node: tree.AndOr, worlds: list[World]) -> list[World]:
        self.conditions += 1
        worlds = self.run(node.first, worlds)
        self.conditions -= 1
        for operator, item in node.rest:
            skips = operator == "||"
            result: list[World] = []
            for world in worlds:
                if world.flow or world.status is skips:
                    result.append(world)
                    continue
                before = world.copy() if world.status is None else None
                self.conditions += 1
                after = self.run(item, [world])
                self.conditions -= 1
                result += after
                if before is not None and any(before.differs(one) for one in after):
                    before.status = skips
                    result.append(before)
            worlds = distinct(result)
        return worlds

    def _pipeline(self, node: tree.Pipeline, worlds: list[World]) -> list[World]:
        if len(node.commands) == 1:  # only negated: the shell itself runs it
            self.conditions += 1
            worlds = self.run(node.commands[0], worlds)
            self.conditions -= 1
            for world in worlds:
                world.status = None if world.status is None else not world.status
            return worlds
        for world in worlds:
            text = world.stdin
            status: bool | None = None
            for command in node.commands:
                inner = world.copy()
                inner.out, inner.stdin = "", text
                piped = command is not node.commands[-1]
                self.heard += piped
                self.conditions += 1
                ended = self.run(command, [inner])
                self.conditions -= 1
                self.heard -= piped
                joint = World("")
                self._join(joint, ended)
                text, status = joint.out, joint.status
            if "pipefail" in world.options:
                status = None
            if "lastpipe" in world.options and ended:
                world.variables, world.cwd = ended[-1].variables, ended[-1].cwd
            world.out = _cut(world.out + (text or ""))
            world.status = (not status if status is not None else None) if node.negated else status
        return worlds

    def _group(self, node: tree.Group, worlds: list[World]) -> list[World]:
        if not node.subshell:
            return self.run(node.body, worlds)
        for world in worlds:
            inner = world.copy()
            inner.traps = {}
            self.conditions += 1
            self._join(world, self.run(node.body, [inner]))
            self.conditions -= 1
        return worlds

    def _if(self, node: tree.If, worlds: list[World]) -> list[World]:
        done: list[World] = []
        for condition, body in node.branches:
            self.conditions += 1
            worlds = self.run(condition, worlds)
            self.conditions -= 1
            done += [world for world in worlds if world.flow]
            going = [world for world in worlds if not world.flow]
            taken = [world if world.status else world.copy() for world in going if world.status is not False]
            worlds = [world for world in going if world.status is not True]
            done += self.run(body, taken) if taken else []
        if node.otherwise is not None:
            worlds = self.run(node.otherwise, worlds) if worlds else []
        return _unsure(done + worlds)

    def _while(self, node: tree.While, worlds: list[World]) -> list[World]:
        done: list[World] = []
        unsure = 0
        for _ in range(_TURNS):
            self.conditions += 1
            worlds = self.run(node.condition, worlds)
            self.conditions -= 1
            going: list[World] = []
            for world in worlds:
                if world.flow or world.status is node.until:
                    done.append(world)
                elif world.status is None:
                    done.append(world.copy())
                    going.append(world)
                else:
                    going.append(world)
            unsure += any(world.status is None or world.stdin in (None, "", UNKNOWN) for world in going)
            if not going or unsure > 2:  # twice is enough to see what a turn leaves for the next
                return _unsure(done + going)
            worlds, left = self._turn(node.body, going)
            done += left
        return _unsure(done + worlds)

    def _turn(self, body: tree.Node, worlds: list[World]) -> tuple[list[World], list[World]]:
        """One turn of a loop: the worlds that go on, and those that have left it."""
        going, left = [], []
        self.loops += 1
        worlds = self.run(body, worlds)
        self.loops -= 1
        for world in worlds:
            if world.flow == "continue":
                world.flow = ""
            if world.flow:
                world.flow = "" if world.flow == "break" else world.flow
                left.append(world)
            else:
                going.append(world)
        return going, left

    def _for(self, node: tree.For, worlds: list[World]) -> list[World]:
        done: list[World] = []
        for world in worlds:
            if not node.name:
                for word in node.words or []:
                    text_of(word, world, self)
                values = [UNKNOWN, UNKNOWN]
            else:
                values = world.positionals[1:] if node.words is None else fields_of(node.words, world, self)
            if len(values) > _TURNS:
                values = [*values[:_TURNS], UNKNOWN]
            going = [world]
            for value in values:
                for one in going:
                    one.variables[node.name] = value
                going, left = self._turn(node.body, going)
                done += left
            done += going
        return _unsure(done)

    def _case(self, node: tree.Case, worlds: list[World]) -> list[World]:
        done: list[World] = []
        for world in worlds:
            value = text_of(node.word, world, self)
            known = UNKNOWN not in value and (isinstance(node.word, str) or not self.literal)
            falls = False
            for patterns, body, terminator in node.branches:
                texts = [pattern_of(pattern, world, self) for pattern in patterns]
                if "nocasematch" in world.options:
                    value, texts = value.lower(), [text.lower() for text in texts]
                sure = known and not any(UNKNOWN in text for text in texts)
                if falls or (sure and any(matches(value, text) for text in texts)):
                    ended = self.run(body, [world])
                    falls = terminator == ";&"
                    if not falls and terminator != ";;&":
                        done += ended
                        break
                    world = ended[0]
                    done += ended[1:]
                elif not sure:
                    done += self.run(body, [world.copy()])
            else:
                done.append(world)
        return _unsure(done)

    def _function(self, node: tree.Function, worlds: list[World]) -> list[World]:
        for world in worlds:
            world.functions[node.name] = node.body
            world.status = True
            if node.name == "command_not_found_handle":
                self.run(node.body, [world.copy()])
        return worlds

    def _test(self, node: tree.Test, worlds: list[World]) -> list[World]:
        for world in worlds:
            operands = [text_of(word, world, self) for word in node.words]
            unary = len(operands) - (operands[:1] == ["!"]) == 2 and operands[-2][:1] == "-"
            world.status = tested(operands, self, world) if unary else None
        return worlds

    def _unread(self, node: tree.Unread, worlds: list[World]) -> list[World]:
        if worlds and id(node) not in self._unread_nodes:  # once is enough, however many loops are around it
            self._unread_nodes.add(id(node))
            self.runner.unread(node.text, worlds[0], self)
        return worlds

    # -- simple commands ------------------------------------------------------------------------------

    def _simple(self, node: tree.Simple, worlds: list[World]) -> list[World]:
        result: list[World] = []
        for world in worlds:
            result += self._command(node, world)
        return result

    def _command(self, node: tree.Simple, world: World) -> list[World]:
        self._steps -= 1
        if self._steps < 0:
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
        stdin, out = world.stdin, world.out
        redirected = self.redirects(node.redirects, world)
        if redirected is None:
            world.status = False
            return [world]
        target, given = redirected
        world.stdin = given if given is not None else stdin
        world.out = ""
        self.heard += target is not None
        ended = self.words(words, world) if words else [world]
        self.heard -= target is not None
        for one in ended:
            if target is not None:
                self.wrote(target, one.out)
                one.out = ""
            one.out = _cut(out + one.out)
            if given is not None and words != ["exec"]:
                one.stdin = stdin
            if one.status and target is not None and not target[0].startswith("/dev/"):
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
            world.variables[base] = _cut(first + str(new), 4096)
        else:
            world.variables[base] = new if isinstance(new, list) else _cut(new)
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
            return self._call(function, words, world)
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

    def _call(self, body: tree.Node, words: list[str], world: World) -> list[World]:
        if self._depth >= _DEPTH:
            self.runner.unread("eval " + " ".join(words), world, self)
            return [world]
        positionals = world.positionals
        before = dict(world.variables)
        self.locals.append(set())
        world.positionals = [positionals[0], *words[1:]]
        self._depth += 1
        self.calls += 1
        worlds = self.run(body, [world])
        self.calls -= 1
        self._depth -= 1
        local = self.locals.pop()
        for one in worlds:
            one.positionals = positionals
            one.flow = "" if one.flow == "return" else one.flow
            for name in local:
                one.variables.pop(name, None)
                if name in before:
                    one.variables[name] = before[name]
        return worlds

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

    def substitute(self, node: tree.Node, world: World) -> str:
        """What `$(...)` gives."""
        inner = world.copy()
        inner.out = ""
        if self._depth >= _DEPTH:
            return UNKNOWN
        self._depth += 1
        read = _read_file_node(node)
        if read is not None:  # $(< file)
            paths = fields_of([read], world, self)
            text = self.read_file(self.path(paths[0], world)) if len(paths) == 1 else None
            result = UNKNOWN if text is None else text
        else:
            self.heard += 1
            ended = self.run(node, [inner])
            self.heard -= 1
            self._join(inner, ended)
            result = inner.out
        self._depth -= 1
        return result.rstrip("\n")

    def expanded(self, text: str, world: World) -> str:
        """A text as in double quotes, expanded once more (`${name@P}`)."""
        parsed = Parser(f'echo "{text}"', min(self._depth, 8), self._budget).sequence(frozenset(), "")
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
        self._join(inner, self.run(node, [inner]))
        self.heard -= 1
        self.files[path] = inner.out
        return path


def _unsure(worlds: list[World]) -> list[World]:
    """Behind a compound command nobody asks which of its commands was the last."""
    for world in worlds:
        world.status = None
    return worlds


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


def _cut(text: str, limit: int = VALUE_LIMIT) -> str:
    return text if len(text) <= limit else UNKNOWN


_METHODS: dict[type, Any] = {
    tree.Simple: Walk._simple,
    tree.Sequence: Walk._sequence,
    tree.AndOr: Walk._and_or,
    tree.Pipeline: Walk._pipeline,
    tree.Group: Walk._group,
    tree.If: Walk._if,
    tree.While: Walk._while,
    tree.For: Walk._for,
    tree.Case: Walk._case,
    tree.Function: Walk._function,
    tree.Test: Walk._test,
    tree.Unread: Walk._unread,
}

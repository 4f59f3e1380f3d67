"""Derive the effects of commands on paths.

A `ProgramCall` is one program with its words in the world in which it would run. A function in `guard.programs` says
what a program does with its operands; a program without one has no known effects, and the snapshot stands behind it.
"""

from __future__ import annotations

import os

from fusewire.config import user_state_folder
from fusewire.core.events import Noun
from fusewire.guard.disk import Disk
from fusewire.guard.plain import writes_to
from fusewire.guard.programs import program_named
from fusewire.guard.shell.builtins import BUILTINS
from fusewire.guard.shell.outputs import printed
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.read_only import GIT_LOOKING, LOOKING
from fusewire.guard.shell.values import UNKNOWN
from fusewire.guard.shell.walk import TooMuch, Walk
from fusewire.guard.shell.wrappers import SHELLS, is_wrapper, reads_input, scripts_of, shell_operands, wrapped_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.programs.git_repo import GitLine
    from fusewire.guard.protected import Protected
    from fusewire.guard.shell.world import World

    Program = Callable[["ProgramCall"], None]

READ, WRITE, DELETE, MOVE, LINK, MODE = "read", "write", "delete", "move", "link", "mode"

#: A permission is added, which destroys nothing.
PERMIT = "permit"

#: Programs whose effects are all known: what adds none has changed nothing.
_EXACT = LOOKING | frozenset("find rg sort tree uniq xargs".split())

#: Programs that do more than their words say.
_OPAQUE = frozenset("git make npm pnpm yarn python python3 perl ruby node".split())

#: Programs of which `-o` is known to name a file.
_OWN_OUTPUT = frozenset("curl wget gcc g++ cc clang".split())

#: A longer script on the disk is not read; the snapshot stands behind it.
SCRIPT_LIMIT = 50_000

#: Commands of one script on the disk that are followed.
_SCRIPT_STEPS = 5000

#: Programs inside each other that are followed.
_DEPTH = 40


class Effect(Noun):
    """What a command does to a path: absolute, as it is written, links not resolved."""

    kind: str
    path: str
    rule: str
    command: list[str]
    #: everything below is affected too
    recursive: bool = False
    #: a link at the end is followed
    follows: bool = True
    #: files of unknown names are written into a folder: those that are there may be among them
    guess: bool = False


class ProgramCall:
    """One program with its words, with questions about its paths and reports of its effects."""

    __slots__ = ("args", "effects", "name", "rule", "walk", "words", "world")

    def __init__(self, words: list[str], world: World, walk: Walk, effects: Effects) -> None:
        self.words = words
        self.name = words[0].rsplit("/", 1)[-1]
        self.args = words[1:]
        self.world = world
        self.walk = walk
        self.effects = effects
        self.rule = f"guard.{self.name}"

    @property
    def disk(self) -> Disk:
        return self.effects.disk

    def path(self, text: str) -> str:
        """A path as this command understands it."""
        return self.walk.path(text, self.world)

    def effect(
        self, kind: str, text: str, *, recursive: bool = False, follows: bool | None = None, rule: str = ""
    ) -> None:
        if not text:
            return
        if kind == WRITE and self.walk.files:
            known = normal(self.path(text))
            if known in self.walk.files:
                self.walk.files[known] = UNKNOWN
        followed = kind not in (DELETE, MOVE, LINK) if follows is None else follows
        self.effects.add(Effect(kind, self.path(text), rule or self.rule, self.words, recursive, followed))

    def write(self, text: str, *, rule: str = "") -> None:
        self.effect(WRITE, text, rule=rule)

    def write_into(self, folder: str) -> None:
        """Files of unknown names are put into a folder."""
        path = f"{self.path(folder or '.').rstrip('/')}/{UNKNOWN}"
        self.effects.add(Effect(WRITE, path, self.rule, self.words, recursive=True, follows=False, guess=True))

    def delete(self, text: str, *, recursive: bool = False, rule: str = "") -> None:
        self.effect(DELETE, text, recursive=recursive, rule=rule)

    def outputs(self, words: list[str]) -> None:
        """The files that options of a program which is not known here name as its outputs."""
        rule = self.rule if self.name in _OWN_OUTPUT else "guard.output"
        for at, word in enumerate(words):
            name, equals, value = word.partition("=")
            following = "".join(words[at + 1 : at + 2])
            target = ""
            if word[:1] == "-" and writes_to(name if name[:2] == "--" else f"-{name}"):
                target = value if equals else following
            elif word == "-o" or (self.name == "wget" and word == "-O") or (self.name == "curl" and word[-1:] == "o"):
                target = following if word[:1] == "-" else ""
            elif word[:2] == "-o" and not equals:
                target = word[2:]
            if target[:1] != "-" and not target.startswith("/dev/"):
                self.write(target, rule=rule)

    def print(self, text: str) -> None:
        self.world.out += text

    def redirected_to_state(self) -> str:
        """The file of Fusewire's own that the line reads through a redirection, which is enough to lock it."""
        paths = [effect.path for effect in self.effects.found if effect.rule == "guard.redirect"]
        return next((path for path in paths if UNKNOWN not in path and self.is_state(path)), "")

    def is_state(self, path: str) -> bool:
        """Whether a path is in a folder where Fusewire keeps its state: a project's, or the person's."""
        real = f"{self.disk.real(self.path(path))}/"
        return "/.fusewire/" in real or real.startswith(f"{os.path.realpath(user_state_folder())}/")

    def is_missing(self, name: str) -> bool:
        """Whether a file is certainly not there."""
        path = self.path(name)
        known = UNKNOWN in path or not self.walk.pristine or normal(path) in self.walk.files
        return not known and not self.disk.exists(path)

    def text_of(self, name: str) -> str | None:
        """What is in a file, or in the input (`-`); None if it is not known."""
        return self.world.stdin if name in ("-", "/dev/stdin") else self.walk.read_file(self.path(name))

    def run(self, words: list[str], *, cwd: str | None = None, stdin: str | None = None) -> None:
        """Another program that this one starts."""
        if not words:
            return
        inner = self.world.copy()
        inner.out = ""
        if cwd is not None:
            inner.cwd = self.path(cwd)
        if stdin is not None:
            inner.stdin = stdin
        self.effects.command(words, inner, self.walk)
        self.world.out += inner.out

    def script(self, text: str, positionals: list[str] | None = None, *, cwd: str | None = None) -> None:
        """A text that this program gives to a shell."""
        world = self.world
        if cwd is not None:
            world = world.copy()
            world.cwd = self.path(cwd)
        if UNKNOWN not in text.strip()[:1]:
            self.walk.script(text, world, positionals or ["sh"])
            self.world.out = world.out


class Effects:
    """The runner of a walk that wants to know what happens to files."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.found: list[Effect] = []
        #: what is protected, and whether files that are not are to be found as well, for a list of all that change
        self.protected: Protected | None = None
        self.lists = True
        #: those of them that are no reading
        self.changes: list[Effect] = []
        #: commands with folder and input, in the order in which they would run: for `guard explain` and constraints
        self.commands: list[tuple[list[str], str, str | None]] = []
        #: texts that could not be read
        self.unreadable: list[str] = []
        #: a program has run that may have changed any file
        self.opaque = False
        #: what git was asked and would have done; None before the first of its commands
        self.git: GitLine | None = None
        #: scripts on the disk around what is read now: in them only what is certain counts
        self.doubts = 0
        self._depth = 0

    def add(self, effect: Effect) -> None:
        if self.doubts and effect.path[:1] == UNKNOWN:
            return
        if effect.kind in (WRITE, LINK) and UNKNOWN not in effect.path:
            self.disk.made(normal(effect.path))
        self.found.append(effect)
        if effect.kind != READ:
            self.changes.append(effect)

    def holds(self, test: str, path: str) -> bool | None:
        """The answer to `[ -f path ]`; None where the line may have changed it."""
        if UNKNOWN in path or self.opaque or any(_touches(effect, normal(path)) for effect in self.changes):
            return None
        if test == "-d":
            return self.disk.is_folder(path)
        if test in ("-L", "-h"):
            return os.path.islink(path)
        there = os.path.exists(path)
        if test in ("-e", "-r") or not there:
            return there
        if test == "-f":
            return os.path.isfile(path)
        if test == "-s":
            return os.path.getsize(path) > 0
        return os.access(path, os.X_OK if test == "-x" else os.W_OK)

    def unsure(self, walk: Walk) -> _Doubt:
        """While it lasts, only what is certain counts, and what is too much is no reason to refuse the line."""
        return _Doubt(self, walk)

    # -- the runner's part ------------------------------------------------------------------------------

    def redirect(self, operator: str, path: str, world: World, walk: Walk) -> bool:
        if path.startswith(("/dev/fd/", "/dev/null", "/dev/std", "/dev/tty", "/dev/tcp", "/dev/udp")):
            return True
        full = walk.path(path, world)
        if operator == "<":
            self.add(Effect(READ, full, "guard.redirect", [operator, path]))
            return not walk.pristine or UNKNOWN in full or full in walk.files or self.disk.exists(full)
        if self.disk.is_folder(full):
            return False
        if operator == ">" and "noclobber" in world.options and self.disk.exists(full):
            return False
        walk.pristine = False
        self.add(Effect(WRITE, full, "guard.redirect", [operator, path]))
        return True

    def sourced(self, text: str, world: World, walk: Walk) -> list[World]:
        if len(text) > SCRIPT_LIMIT:
            return [world]
        with self.unsure(walk):
            return walk.text(text, world)
        return [world]

    def unread(self, text: str, world: World, walk: Walk) -> None:
        if not self.doubts:
            self.unreadable.append(text)

    def command(self, words: list[str], world: World, walk: Walk) -> None:
        if self._depth >= _DEPTH:
            self.unread(" ".join(words), world, walk)
            return
        self._depth += 1
        self.commands.append((words, world.cwd, world.stdin))
        before = len(self.changes)
        call = ProgramCall(words, world, walk, self)
        program = program_named(call.name)
        if UNKNOWN in words[0]:  # it may be anything, which is no reason to take it for the worst
            walk.pristine = False
            call.print(UNKNOWN)
        elif program is not None and not ("/" in words[0] and normal(call.path(words[0])) in walk.files):
            program(call)
            exact = call.name in _EXACT or (call.name == "git" and "".join(words[1:2]) in GIT_LOOKING)
            self.opaque = self.opaque or (call.name in _OPAQUE and not exact)
            walk.pristine = walk.pristine and exact
        elif not self._shell(call) and not self._wrapper(call):
            self._other(call)
        if len(self.changes) > before:
            walk.pristine = False
        self._depth -= 1

    def _shell(self, call: ProgramCall) -> bool:
        """`bash -c TEXT`, `sh FILE`, `sh < text`."""
        if call.name not in SHELLS:
            return False
        for at, word in enumerate(call.args[:-1]):
            if word in ("--rcfile", "--init-file"):
                self.script_file(call, call.args[at + 1], ["bash"])
        has_script, operands, runs = shell_operands(call.words)
        if has_script and operands:
            call.script(_shopts(call.words) + operands[0], operands[1:] or ["bash"])
        elif reads_input(call.words):
            if call.world.stdin is not None:
                call.script(call.world.stdin, ["bash", *(operands if "-s" in call.words else [])])
        elif operands and runs:
            self.script_file(call, operands[0], operands)
        return True

    def script_file(self, call: ProgramCall, path: str, positionals: list[str]) -> None:
        """A file that a shell runs: what the line itself has written into it, or what is on the disk."""
        full = call.path(path)
        text = call.walk.files.get(normal(full))
        if text is not None:
            call.script(text, positionals)
            return
        text = self.disk.read(full)
        call.walk.pristine = False
        if text is not None and len(text) <= SCRIPT_LIMIT:
            with self.unsure(call.walk):
                call.script(text, positionals)

    def _wrapper(self, call: ProgramCall) -> bool:
        """`sudo`, `env`, `timeout` and the like: what they run is what counts."""
        if not is_wrapper(call.name) and call.name != "su":
            return False
        for script in scripts_of(call.words):
            call.script(script)
        inner, assignments, folder = wrapped_by(call.words)
        for assignment in assignments:
            name, _, value = assignment.partition("=")
            call.world.variables[name] = value
            call.world.exported |= {name}
        if len(inner) == 1 and " " in inner[0]:  # watch 'ls | wc -l'
            call.script(inner[0], cwd=folder)
        else:
            call.run(inner, cwd=folder)
        at = len(call.words) - len(inner)
        if at > 1 and program_named(call.words[at - 1]) is not None:  # an option that takes no value after all
            call.run(call.words[at - 1 :], cwd=folder)
        call.walk.pristine = call.walk.pristine and bool(inner)
        return True

    def _other(self, call: ProgramCall) -> None:
        """A script by its path, a builtin, or a program of which only the words are known."""
        words, world = call.words, call.world
        if "/" in words[0]:
            text = call.walk.files.get(normal(call.path(words[0])))
            text = self.disk.read(call.path(words[0])) if text is None else text
            first = (text or "").partition("\n")[0]
            if first[:2] == "#!" and "sh" not in first.rsplit("/", 1)[-1].split()[:2][-1:][0]:
                call.run([word for word in first[2:].split() if word != "-S"] + words)
                return
            if text is not None:
                self.script_file(call, words[0], words)
                return
        text = printed(words, world.stdin)
        if text is not None:
            call.print(text)
            return
        if call.name in BUILTINS:
            return
        call.outputs(call.args)
        if call.name not in _EXACT:
            self.opaque, call.walk.pristine = True, False
        world.out += UNKNOWN


def _shopts(words: list[str]) -> str:
    """What `bash -O dotglob` sets before its script begins, as a command."""
    names = [name for option, name in zip(words, words[1:], strict=False) if option == "-O"]
    return f"shopt -s {' '.join(names)}; " if names and all(map(str.isidentifier, names)) else ""


def _touches(effect: Effect, path: str) -> bool:
    """Whether an effect may have made, changed or removed what is at a path."""
    other = normal(effect.path)
    return UNKNOWN in other or f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


class _Doubt:
    def __init__(self, effects: Effects, walk: Walk) -> None:
        self.effects = effects
        self.walk = walk
        self.steps = walk.steps

    def __enter__(self) -> None:
        self.effects.doubts += 1
        self.walk.steps = min(self.steps, _SCRIPT_STEPS)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        self.effects.doubts -= 1
        self.walk.steps = self.steps
        return kind is not None and issubclass(kind, (TooMuch, RecursionError))

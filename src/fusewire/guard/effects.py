"""From commands to their effects on paths.

One `Call` is one program with its words in the world in which it would run. What a program does with its operands is
told by a function of `guard.programs`; a program that nobody knows has no effects that could be told, and the
integrity check stands behind it.
"""

from __future__ import annotations

import os

from fusewire.globs import matches
from fusewire.guard.disk import Disk
from fusewire.guard.plain import writes_to
from fusewire.guard.programs import ONLY_PRINT, program_named
from fusewire.paths import normal
from fusewire.shell.builtins import BUILTINS
from fusewire.shell.outputs import is_text_program, printed
from fusewire.shell.values import TAINT, UNKNOWN
from fusewire.shell.walk import TooMuch, Walk
from fusewire.wrappers import SHELLS, is_wrapper, reads_input, scripts_of, shell_operands, wrapped_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.protected import Protected
    from fusewire.shell.world import World

    Program = Callable[["Call"], None]

READ, WRITE, DELETE, MOVE, LINK, MODE, LOCK = "read", "write", "delete", "move", "link", "mode", "lock"

#: Programs of ours that only look.
_LOOKS = frozenset("ls dir pwd realpath readlink which grep egrep fgrep rg find fd fdfind sort uniq".split())

#: What a program whose name is not quite known may be.
_WORST = ("rm", "mv", "unlink", "shred", "truncate", "tee", "bash", "sh")

_GIT_LOOKS = frozenset("blame describe diff grep log ls-files rev-parse shortlog show status".split())

#: Programs that only look; whatever else nobody knows may have changed any file.
_READERS = frozenset(
    (
        "diff cmp df tree less more join od hexdump strings cksum date uname whoami id ps top hostname nproc free"
        " uptime"
    ).split()
)

#: A longer script on the disk is not read; the integrity check stands behind it.
_SCRIPT_LIMIT = 20_000

#: Wrappers inside each other that are looked through.
_DEPTH = 40


class Effect:
    """What a command does to a path: absolute, as it is written, links not resolved."""

    __slots__ = ("command", "follows", "kind", "path", "recursive", "rule", "unsure")

    def __init__(
        self, kind: str, path: str, rule: str, command: list[str], recursive: bool, follows: bool, unsure: bool
    ) -> None:
        self.kind = kind
        self.path = path
        self.rule = rule
        self.command = command
        #: everything below is affected too
        self.recursive = recursive
        #: a link at the end is followed
        self.follows = follows
        #: found in a script that was read without knowing what it is given: only what is certain counts
        self.unsure = unsure


class Options:
    """A command's words, told apart: `-rf` as r and f, `-t DIR`, `--target=DIR`, operands."""

    __slots__ = ("flags", "operands", "values")

    def __init__(self, words: list[str], valued: str = "", long_valued: tuple[str, ...] = ()) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.operands: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                self.operands += words[at:]
                break
            if word[:2] == "--":
                name, equals, value = word[2:].partition("=")
                self.flags.add(name)
                if equals:
                    self.values[name] = value
                elif at < len(words) and any(_means(name, one) for one in long_valued):
                    self.values[name] = words[at]
                    at += 1
            elif word[:1] == "-" and len(word) > 1:
                at = self._short(word, words, at, valued)
            else:
                self.operands.append(word)

    def _short(self, word: str, words: list[str], at: int, valued: str) -> int:
        for number, letter in enumerate(word[1:], 1):
            self.flags.add(letter)
            if letter in valued:
                rest = word[number + 1 :]
                if not rest and at < len(words):
                    rest = words[at]
                    at += 1
                self.values[letter] = rest
                break
        return at

    def has(self, *names: str) -> bool:
        """Whether one of these options is given; long ones may be cut short, as GNU programs take them."""
        return any(_means(flag, name) for name in names for flag in self.flags)

    def value(self, *names: str) -> str | None:
        for name in names:
            for given, value in self.values.items():
                if _means(given, name):
                    return value
        return None


def _means(given: str, name: str) -> bool:
    return given == name or (len(given) > 1 and name.startswith(given))


class Call:
    """One program with its words, and what it can be asked and told."""

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
        if text:
            if text[:1] == UNKNOWN and TAINT not in text and TAINT in (self.world.stdin or ""):
                text = text.replace(UNKNOWN, UNKNOWN + TAINT)
            if kind == WRITE and self.walk.files:
                known = normal(self.path(text))
                if known in self.walk.files:
                    self.walk.files[known] = UNKNOWN
            followed = kind not in (DELETE, MOVE, LINK) if follows is None else follows
            self.effects.add(kind, self.path(text), rule or self.rule, self.words, recursive, followed)

    def locks(self, text: str) -> None:
        """The lock of a file is held: no change of it, but Fusewire waits for its own."""
        self.effects.locked.append(Effect(LOCK, self.path(text), self.rule, self.words, False, True, False))

    def locks_redirected(self) -> None:
        """The lock of a file that the shell has opened; nobody keeps account of which descriptor is which."""
        for effect in self.effects.found:
            if effect.kind == READ and effect.rule == "guard.redirect":
                self.locks(effect.path)

    def write(self, text: str, *, rule: str = "") -> None:
        self.effect(WRITE, text, rule=rule)

    def delete(self, text: str, *, recursive: bool = False, rule: str = "") -> None:
        self.effect(DELETE, text, recursive=recursive, rule=rule)

    def print(self, text: str) -> None:
        self.world.out += text

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
        if any(line.lstrip()[:1] == UNKNOWN for line in text.splitlines()) or TAINT in text:
            self.effects.blind = True
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
        #: files whose locks are held, which changes none of them
        self.locked: list[Effect] = []
        #: commands in the order in which they would run, for `guard explain`
        self.commands: list[tuple[list[str], str]] = []
        #: constraints want to know of them: recipes on the disk and commands in code are followed, too
        self.follows_recipes = False
        #: texts that could not be read
        self.unreadable: list[str] = []
        #: a shell is given text that nobody can know
        self.blind = False
        #: a program has run that may have done anything
        self.opaque = False
        #: nothing found so far changes a file
        self._only_reads = True
        self._doubts = 0
        self._depth = 0

    def add(self, kind: str, path: str, rule: str, command: list[str], recursive: bool, follows: bool) -> None:
        if kind in (WRITE, LINK) and UNKNOWN not in path:
            self.disk.made(normal(path))
        self._only_reads = self._only_reads and kind == READ
        self.found.append(Effect(kind, path, rule, command, recursive, follows, self._doubts > 0))

    def unchanged(self, path: str) -> bool:
        """Whether nothing in the line so far can have made, changed or removed what is at a path."""
        if self.opaque or self._only_reads:
            return not self.opaque
        path = normal(path)
        for effect in self.found:
            if effect.kind == READ:
                continue
            other = normal(effect.path)
            if UNKNOWN in other or f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"):
                return False
        return True

    def holds(self, test: str, path: str) -> bool | None:
        """The answer to `[ -f path ]`, if it is as it was when the line began."""
        if UNKNOWN in path or not self.unchanged(path) or self.disk.was_made(path):
            return None
        if test == "-d":
            return self.disk.is_folder(path)
        if test in ("-L", "-h"):
            return self.disk.exists(path) and self.disk.real(path) != self.disk.real(path, last=False)
        there = os.path.exists(path)
        if test in ("-e", "-r") or not there:
            return there
        if test == "-f":
            return os.path.isfile(path)
        if test in ("-x", "-w"):
            return os.access(path, os.X_OK if test == "-x" else os.W_OK)
        if test == "-s":
            return not self.disk.is_empty_file(path)
        return None

    def unsure(self) -> _Doubt:
        """While it lasts, only what is certain counts."""
        return _Doubt(self)

    def only_commands(self, walk: Walk) -> _OnlyCommands:
        """While it lasts, what runs is noted, and what that does to files is not: it may never get there."""
        return _OnlyCommands(self, walk)

    # -- the runner's part ------------------------------------------------------------------------------

    def redirect(self, operator: str, path: str, world: World, walk: Walk) -> bool:
        if path.startswith(("/dev/fd/", "/dev/null", "/dev/std", "/dev/tty", "/dev/tcp", "/dev/udp")):
            return True
        full = walk.path(path, world)
        if operator == "<":
            self.add(READ, full, "guard.redirect", [operator, path], False, True)
            return not walk.pristine or UNKNOWN in full or full in walk.files or self.disk.exists(full)
        if self.disk.is_folder(full):
            return False
        if operator == ">" and "noclobber" in world.options and self.disk.exists(full):
            return False
        walk.pristine = False
        self.add(WRITE, full, "guard.redirect", [operator, path], False, True)
        return True

    def sourced(self, text: str, world: World, walk: Walk) -> list[World]:
        if len(text) > _SCRIPT_LIMIT:
            return [world]
        with self.unsure():
            return walk.text(text, world)

    def unread(self, text: str, world: World, walk: Walk) -> None:
        self.unreadable.append(text)

    def command(self, words: list[str], world: World, walk: Walk) -> None:
        if self._depth >= _DEPTH:
            self.unreadable.append(" ".join(words))
            return
        self._depth += 1
        self.commands.append((words, world.cwd))
        before = len(self.found)
        call = Call(words, world, walk, self)
        self._rename(call)
        program = program_named(call.name)
        if UNKNOWN in words[0]:
            self._partly_known(call)
        elif words[0].endswith(f"/{call.name}") and normal(call.path(words[0])) in walk.files:
            self._other(call)
        elif program is not None:
            program(call)
        elif not self._shell(call) and not self._wrapper(call):
            self._other(call)
        looks = program is None or call.name in _LOOKS or call.name in ONLY_PRINT
        looks = looks or (call.name == "git" and "".join(words[1:2]) in _GIT_LOOKS)
        self.opaque = self.opaque or (call.name == "git" and not looks)
        if not looks or any(effect.kind != READ for effect in self.found[before:]):
            walk.pristine = False
        self._depth -= 1

    def _partly_known(self, call: Call) -> None:
        """`r${x}m -rf specs`: it is held to be the worst that its name allows."""
        pattern = call.name.replace(UNKNOWN, "*").replace(TAINT, "")
        forced = any(word[:1] == "-" and word[1:2] != "-" and ("r" in word or "f" in word) for word in call.args)
        names = [name for name in _WORST if matches(name, pattern)] if pattern != "*" else ["rm"] if forced else []
        for name in names:
            call.run([name, *call.args])
        self.opaque = True
        call.print(UNKNOWN)

    def _rename(self, call: Call) -> None:
        """A program under another name: a link to it, a copy, one that the line has put into PATH."""
        word = call.words[0]
        if word in ("/proc/self/exe", f"/proc/{UNKNOWN}/exe"):
            call.name = "bash"
            call.words = ["bash", *call.args]
        elif ("/" in word and self.disk.exists(call.path(word))) or self.disk.links:
            ending = f"/{word}"
            made = next((path for path in self.disk.links if path.endswith(ending)), None) if "/" not in word else word
            if made is not None:
                real = self.disk.real(call.path(made)).rsplit("/", 1)[-1]
                if real != call.name and program_named(real) is not None and real != "busybox":
                    call.name = real
                    call.words = [real, *call.args]
        if "PATH" in call.world.variables and "/" not in word:
            made = next((path for path in call.walk.files if path.endswith(f"/{word}")), None)
            if made is not None:
                self.script_file(call, made, call.words)

    def _shell(self, call: Call) -> bool:
        """`bash -c TEXT`, `sh FILE`, `sh < text`."""
        for at, word in enumerate(call.args[:-1]):
            if word in ("--rcfile", "--init-file"):
                self.script_file(call, call.args[at + 1], ["bash"])
        for script in scripts_of(call.words) if call.name not in ("eval", "trap", "env") else ():
            has_script, operands, _ = shell_operands(call.words)
            script = _shopts(call.words) + script
            call.script(script, operands[1:] if has_script and len(operands) > 1 else ["bash"])
            return True
        if reads_input(call.words):
            if call.world.stdin is not None:
                _, operands, _ = shell_operands(call.words)
                call.script(call.world.stdin, ["bash", *(operands if "-s" in call.words else [])])
            return True
        if call.name not in SHELLS:
            return False
        _, operands, runs = shell_operands(call.words)
        if operands and runs:
            self.script_file(call, operands[0], operands)
        return True

    def script_file(self, call: Call, path: str, positionals: list[str]) -> None:
        """A file that a shell runs: what the line itself has written into it, or what is on the disk."""
        full = call.path(path)
        text = call.walk.files.get(normal(full), call.walk.files.get(self.disk.real(full)))
        if text is not None:
            call.script(text, positionals)
            return
        text = self.disk.read(full)
        if text is None or len(text) > _SCRIPT_LIMIT:
            return
        first = text.partition("\n")[0]
        if call.name == path and first[:2] == "#!" and "sh" not in first.rsplit("/", 1)[-1]:
            return
        with self.unsure():
            call.script(text, positionals)

    def _wrapper(self, call: Call) -> bool:
        """`sudo`, `env`, `timeout` and their kind: what they run is what counts."""
        if not is_wrapper(call.name):
            return False
        for script in scripts_of(call.words):
            call.script(script)
        inner, assignments, folder = wrapped_by(call.words)
        at = len(call.words) - len(inner)
        for candidate in (inner, call.words[at - 1 :] if at > 1 else []):
            known = candidate and (candidate is inner or program_named(candidate[0].rsplit("/", 1)[-1]) is not None)
            if not known:
                continue
            world = call.world
            for assignment in assignments:
                name, _, value = assignment.partition("=")
                world.variables[name] = value
                world.exported |= {name}
            call.run(candidate, cwd=folder)
        if not inner:
            self.opaque, call.walk.pristine = True, False
        return True

    def _other(self, call: Call) -> None:
        words, world = call.words, call.world
        if "/" in words[0]:  # a script by its path
            path = call.path(words[0])
            real = self.disk.real(path)
            program = real.rsplit("/", 1)[-1]
            if program != call.name and program_named(program) is not None:  # rm under another name
                call.run([program, *call.args])
                return
            if normal(path) in call.walk.files or self.disk.exists(path):
                text = call.walk.files.get(normal(path))
                if text is None:
                    head = self.disk.read(path) or ""
                    text = head if head[:2] == "#!" else ""
                first = text.partition("\n")[0]
                if text and ("sh" in first.rsplit("/", 1)[-1] or first[:2] != "#!"):
                    self.script_file(call, words[0], words)
                elif first[:2] == "#!":
                    call.run([word for word in first[2:].split() if word != "-S"] + words)
                return
        if call.name in BUILTINS and not is_text_program(call.name):
            return
        if is_text_program(call.name):
            self.text_program(call)
            return
        made = next((path for path in call.walk.files if path.endswith(f"/{call.name}")), None)
        if made is not None:  # found through PATH
            self.script_file(call, made, words)
            return
        for at, word in enumerate(call.args):
            name, equals, value = word.partition("=")
            if writes_to(name) or word == "-o" or (equals and name[:1] == "-" and writes_to(f"-{name}")):
                call.write(value if equals else "".join(call.args[at + 1 : at + 2]), rule="guard.output")
            elif word[:2] == "-o" and not equals:
                call.write(word[2:], rule="guard.output")
        if call.name not in _READERS:
            call.walk.pristine = False
            self.opaque = True
        world.out += UNKNOWN

    def text_program(self, call: Call) -> None:
        """`cat`, `sort` and their kind print what is in their files, or what they read."""
        stdin = call.world.stdin
        if call.name in ("cat", "tac", "head", "tail", "sort", "uniq", "rev", "base64"):
            names = Options(call.args, "ncktwoS").operands
            for name in names:
                call.effect(READ, name)
            if any(n != "-" and self.holds("-e", call.path(n)) is False for n in names):
                call.world.status = False
            if names and call.walk.is_heard:
                texts = [call.walk.read_file(call.path(name)) if name != "-" else stdin for name in names]
                stdin = "".join(UNKNOWN if text is None else text for text in texts)
                words = [call.name, *(word for word in call.args if word not in names)]
                call.print(printed(words, stdin) or "")
                return
        cheap = call.name in ("echo", "printf", "cat")
        call.print(printed(call.words, stdin) or "" if cheap or call.walk.is_heard else UNKNOWN)


def _shopts(words: list[str]) -> str:
    """What `bash -O dotglob` sets before its script begins, as a command."""
    names = [name for option, name in zip(words, words[1:], strict=False) if option == "-O"]
    return f"shopt -s {' '.join(names)}; " if names and all(map(str.isidentifier, names)) else ""


class _Doubt:
    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    def __enter__(self) -> None:
        self.effects._doubts += 1

    def __exit__(self, *error: object) -> None:
        self.effects._doubts -= 1


class _OnlyCommands:
    def __init__(self, effects: Effects, walk: Walk) -> None:
        self.effects = effects
        self.walk = walk

    def __enter__(self) -> None:
        effects = self.effects
        self.blind, self.steps, self.files = effects.blind, self.walk.steps, dict(self.walk.files)
        self.lists = [(found, len(found)) for found in (effects.found, effects.locked, effects.unreadable)]

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        for found, length in self.lists:
            del found[length:]
        self.effects.blind, self.walk.steps, self.walk.files = self.blind, self.steps, self.files
        return kind is not None and issubclass(kind, (TooMuch, RecursionError))

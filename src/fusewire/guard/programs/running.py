"""Code that a program runs: its effects, what it prints, and what it can see of the line around it."""

from __future__ import annotations

from fusewire.guard.code import Setting, code_effects
from fusewire.guard.effects import DELETE, MODE, MOVE, READ, WRITE
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call

#: A longer script on the disk is not read; the integrity check stands behind it.
SCRIPT_LIMIT = 20_000

KINDS = {
    "write": WRITE,
    "delete": DELETE,
    "delete_tree": DELETE,
    "move": MOVE,
    "mode": MODE,
    "link": READ,  # what it points to; where it stands is written
    "read": READ,
}


#: What code says that may hold a lock on a file, which it needs only to read for that.
_LOCKING = ("flock", "lockf", "fcntl", "LOCK_")


def variable(call: Call, name: str) -> str | None:
    """The value of a variable that a program sees."""
    value = call.world.variables.get(name)
    if isinstance(value, str) and (name in call.world.exported or name in call.walk.environment):
        return value
    return call.world.cwd if name == "PWD" else call.walk.environment.get(name)


def written(call: Call, path: str) -> str | None:
    """What the line itself has written into a file."""
    return call.walk.files.get(normal(call.path(path))) if call.walk.files and UNKNOWN not in path else None


def recipe_text(call: Call, path: str) -> str | None:
    """The same, or what is on the disk, if recipes are followed."""
    text = written(call, path)
    return call.disk.read(call.path(path)) if text is None and call.effects.follows_recipes else text


def setting_of(call: Call, folder: str | None, stdin: str | None) -> Setting:
    def output(line: str) -> str | None:
        world = call.world.copy()
        world.out, world.stdin = "", stdin
        found, commands = len(call.effects.found), len(call.effects.commands)
        call.walk.heard += 1
        call.walk.script(line, world, ["sh"])
        call.walk.heard -= 1
        del call.effects.found[found:], call.effects.commands[commands:]
        return world.out

    def entries(path: str) -> list[tuple[str, bool]] | None:
        path = normal(call.path(path))
        names = call.disk.listing(path)
        return [(name, call.disk.is_folder(f"{path}/{name}")) for name in names] if len(names) < 400 else None

    folders = [folder, *(variable(call, "PYTHONPATH") or "").split(":")]
    return Setting(
        stdin=stdin,
        paths=[normal(call.path(one)) for one in folders if one],
        variable=lambda name: variable(call, name),
        read=lambda path: written(call, path),
        output=output,
        content=call.walk.read_file,
        entries=entries,
    )


def run_code(
    call: Call, language: str, code: str, arguments: list[str], *, folder: str | None = ".", reads: bool = True
) -> None:
    """Tell the effects of a piece of code, in the order in which they would come."""
    call.rule = f"guard.{language}"
    setting = setting_of(call, folder, call.world.stdin if reads else None)
    here: str | None = None
    shows = False
    locks = any(word in code for word in _LOCKING)
    if locks:
        call.locks_redirected()
    if call.effects.follows_recipes:
        from fusewire.guard.literals import commands_in

        with call.effects.only_commands(call.walk):
            for line in commands_in(language, code):
                call.script(line)
    for kind, text in code_effects(language, code, arguments, cwd_hint=call.world.cwd, setting=setting):
        if kind == "chdir":
            here = text if here is None or text[:1] == "/" else f"{here}/{text}"
        elif kind == "print":
            shows = True
            call.print(text)
        elif kind == "shell":
            call.script(text, cwd=here)
        else:
            content = ""
            if kind == "file":
                text, _, content = text.partition("\0")
            text = call.walk.tainted(text) if text == UNKNOWN else text
            path = text if here is None or text[:1] == "/" else f"{here}/{text}"
            if kind == "file":
                call.walk.files[normal(call.path(path))] = content
            elif kind != "write" or not call.disk.is_folder(call.path(path)):  # a folder that is there is not written
                call.effect(KINDS[kind], path, recursive=kind in ("delete_tree", "move"))
                if locks and kind == "read":
                    call.locks(path)
    call.walk.pristine = False
    if not shows:
        call.print(UNKNOWN)


def run_script(call: Call, language: str, name: str, arguments: list[str]) -> None:
    """A file of code: what the line has written into it, or what is on the disk and certain."""
    path = call.path(name)
    text = call.walk.files.get(normal(path))
    folder = path.rpartition("/")[0]
    if text is None and not path.startswith("/dev/"):
        text = call.disk.read(path)
        if text is not None and len(text) <= SCRIPT_LIMIT:
            out = call.world.out
            with call.effects.unsure():
                run_code(call, language, text, arguments, folder=folder)
            call.world.out = out
        call.effects.opaque = True
        call.print(UNKNOWN)
    elif text is not None and UNKNOWN not in text:
        run_code(call, language, text, arguments, folder=folder)


def run_input(call: Call, language: str, arguments: list[str]) -> None:
    if call.world.stdin is not None and UNKNOWN not in call.world.stdin:
        run_code(call, language, call.world.stdin, arguments, reads=False)
        return
    call.walk.pristine = False
    call.print(UNKNOWN)

"""Programs that make, change, move and remove files."""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE, LINK, MODE, MOVE, PERMIT, READ, WRITE
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.outputs import printed
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import REST, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

#: Files of a copied folder that are looked at one by one.
MOST = 5000


# -- removing -------------------------------------------------------------------------------------------------


_RM_OPTIONS = "recursive force dir verbose interactive one-file-system no-preserve-root preserve-root".split()


def run_rm(call: ProgramCall) -> None:
    argv = Argv(call.args)
    if any(len(name) > 1 and not any(one.startswith(name) for one in _RM_OPTIONS) for name, _ in argv.options):
        return  # `--help`, or an option that it does not know
    recursive = argv.has("r", "R", "recursive")
    for name in argv.operands:
        if name.rstrip("/").rsplit("/", 1)[-1] in (".", ".."):
            continue  # refused by rm itself
        path = call.path(name)
        is_link = os.path.islink(path.rstrip("/"))
        if name.endswith("/") and call.disk.exists(path.rstrip("/")) and not call.disk.is_folder(path):
            continue
        empties = argv.has("d", "dir") and call.disk.is_empty(path)
        if call.disk.is_folder(path) and not is_link and not recursive and not empties:
            continue
        # `rm -r link/` empties the folder behind the link before it notices that the link is no folder.
        call.effect(DELETE, name, recursive=recursive, follows=recursive and is_link and name.endswith("/"))


def run_rmdir(call: ProgramCall) -> None:
    """`rmdir` removes empty folders, `unlink` files."""
    for name in Argv(call.args).operands:
        path = call.path(name)
        if not call.disk.is_folder(path) or (call.name == "rmdir" and call.disk.is_empty(path)):
            call.delete(name)


def run_trash(call: ProgramCall) -> None:
    for name in Argv(call.args).operands:
        call.delete(name, recursive=True)


# -- moving and copying -----------------------------------------------------------------------------------------


def _targets(call: ProgramCall, argv: Argv, *, whole: bool = False) -> list[tuple[str, str]]:
    """(source, where it ends up) for `mv`, `cp`, `install` and `ln`; `whole`: the last operand is no folder."""
    folder = argv.value("t", "target-directory")
    sources = argv.operands
    if folder is None:
        if len(sources) < 2:
            return []
        *sources, folder = sources
        inside = folder.endswith("/") or len(sources) > 1 or call.disk.is_folder(call.path(folder))
        if whole or argv.has("T", "no-target-directory") or not inside:
            return [(source, folder) for source in sources]
    pairs = []
    for source in sources:
        name = source.lstrip("/") if argv.has("parents") else source.rstrip("/").rsplit("/", 1)[-1]
        pairs.append((source, f"{folder.rstrip('/') or '/'}/{name}" if name not in (".", "..") else folder))
    return pairs


def _keeps(call: ProgramCall, argv: Argv, target: str) -> bool:
    """Whether a file that is there stays as it is."""
    keeps = argv.has("n", "no-clobber") or argv.value("update") in ("none", "none-fail")
    return keeps and not argv.has("f", "force") and call.disk.exists(call.path(target))


def run_mv(call: ProgramCall) -> None:
    argv = Argv(call.args, "tS", "target-directory= suffix=")
    for source, target in _targets(call, argv):
        inside = f"{normal(call.path(target))}/".startswith(f"{normal(call.path(source))}/")
        if _keeps(call, argv, target) or call.is_missing(source) or inside:
            continue
        call.effect(MOVE, source, recursive=True)
        _put(call, source, target)
        _overwritten(call, source, target, argv)


def _put(call: ProgramCall, source: str, target: str, *, follows: bool = False) -> None:
    """A file takes the place of another one; what is in it is then known under the new name."""
    text = call.walk.read_file(call.path(source))
    call.effect(WRITE, target, follows=follows)
    call.walk.files[normal(call.path(target))] = UNKNOWN if text is None else text


def _overwritten(call: ProgramCall, source: str, target: str, argv: Argv) -> None:
    """The files that a folder brings along."""
    path = call.path(source)
    if UNKNOWN in path or not call.disk.is_folder(path):
        return
    size = len(path.rstrip("/")) + 1
    for number, inner in enumerate(call.disk.tree(path.rstrip("/") or "/")):
        if number >= MOST:
            call.effect(WRITE, f"{target.rstrip('/')}/{REST}")
            break
        name = f"{target.rstrip('/')}/{inner[size:]}"
        if not _keeps(call, argv, name):
            call.effect(WRITE, name)


def run_cp(call: ProgramCall) -> None:
    installs = call.name == "install"
    argv = Argv(call.args, "tSgmo" if installs else "tS", "target-directory= suffix= group= mode= owner=")
    if installs and argv.has("d", "directory"):
        for name in argv.operands:
            _make_folder(call, name)
        return
    links = argv.has("l", "s", "link", "symbolic-link")
    for source, target in _targets(call, argv):
        call.effect(READ, source)
        path, full = call.path(source), call.path(target)
        if call.is_missing(source):
            continue
        if not call.disk.is_folder(path):
            if UNKNOWN in path and argv.has("r", "R", "a", "recursive", "archive"):
                call.write_into(target)
            elif not _keeps(call, argv, target) and call.disk.real(path) != call.disk.real(full):
                _put(call, source, target, follows=not installs and not links and not argv.has("remove-destination"))
        elif argv.has("r", "R", "a", "recursive", "archive"):
            _overwritten(call, source, target, argv)
            if not call.disk.exists(full):
                call.effect(WRITE, target)
                call.disk.made_folder(normal(full))
        if links:
            call.disk.links[normal(full)] = normal(path)


def run_ln(call: ProgramCall) -> None:
    argv = Argv(call.args, "tS", "target-directory= suffix=")
    if len(argv.operands) == 1 and argv.value("t") is None:
        argv.operands.append(".")
    last = call.path(argv.operands[-1]) if argv.operands else ""
    stays = argv.has("n", "no-dereference") and os.path.islink(last.rstrip("/"))
    for source, target in _targets(call, argv, whole=stays):
        path = call.path(target)
        if call.disk.exists(path) and not argv.has("f", "force", "i", "b", "backup"):
            continue
        call.effect(LINK, target)
        beside = argv.has("s", "symbolic") and source[:1] != "/" and not argv.has("r", "relative")
        points = f"{path.rpartition('/')[0]}/{source}" if beside else call.path(source)
        call.disk.links[call.disk.real(path, last=False)] = normal(points)


# -- changing -----------------------------------------------------------------------------------------------------

#: Short options of programs like `truncate` that take a value, where they are others.
_VALUED = {"fallocate": "lo", "mkfifo": "mZ", "sponge": "", "shred": "ns"}


def run_truncate(call: ProgramCall) -> None:
    """`truncate`, `touch`, `shred` and others that write what they name."""
    argv = Argv(call.args, _VALUED.get(call.name, "srdt"), "size= reference= date= time= iterations=")
    for name in argv.operands:
        if not (argv.has("c", "no-create") and call.is_missing(name)):
            call.effect(WRITE, name, follows=not argv.has("h", "no-dereference"))
        if call.name == "shred" and argv.has("u", "remove"):
            call.delete(name)


def run_tee(call: ProgramCall) -> None:
    argv = Argv(call.args)
    text = UNKNOWN if call.world.stdin is None else call.world.stdin
    for name in argv.operands:
        call.write(name)
        call.walk.wrote((call.path(name), argv.has("a", "append")), text)
    call.print(text)


def run_dd(call: ProgramCall) -> None:
    reads = any(word.startswith("if=") for word in call.args)
    text = UNKNOWN if call.world.stdin is None or reads else call.world.stdin
    for word in call.args:
        if word.startswith("of="):
            call.write(word[3:])
            call.walk.wrote((call.path(word[3:]), False), text)
    call.print(text)


def run_chmod(call: ProgramCall) -> None:
    """What adds permissions destroys nothing; all else may lock people out of a protected file."""
    flags = [word for word in call.args if _is_mode(word)]
    argv = Argv([word for word in call.args if word not in flags], "", "reference= from=")
    names = list(argv.operands)
    mode = flags[0] if flags else ""
    if not flags and not argv.has("reference"):
        mode, names = "".join(names[:1]), names[1:]
    adds = call.name == "chmod" and "+" in mode and not any(mark in mode for mark in "-=")
    recursive = argv.has("R", "recursive")
    for name in names:
        if recursive or call.name != "chmod" or not _has_mode(call, name, mode):
            call.effect(PERMIT if adds else MODE, name, recursive=recursive)


def _is_mode(word: str) -> bool:
    """`-w`, `-rwx`: a mode that looks like an option."""
    return len(word) > 1 and word[0] == "-" and not word[1:].strip("rwxXst=+,")


def _has_mode(call: ProgramCall, name: str, mode: str) -> bool:
    try:
        return os.stat(call.path(name)).st_mode & 0o7777 == int(mode, 8)
    except (OSError, ValueError):
        return False


def run_mkdir(call: ProgramCall) -> None:
    argv = Argv(call.args, "mZ", "mode= context=")
    for name in argv.operands:
        _make_folder(call, name)
    call.world.status = True if argv.has("p", "parents") else None


def _make_folder(call: ProgramCall, name: str) -> None:
    if not call.disk.exists(call.path(name)):
        call.effect(WRITE, name)
    call.disk.made_folder(normal(call.path(name)))


def run_sort(call: ProgramCall) -> None:
    """`sort -o FILE`, `uniq IN OUT`; otherwise they only print."""
    argv = Argv(call.args, "fsw" if call.name == "uniq" else "oktSTn"[: 6 - (call.name == "sort")], "output= key=")
    target = argv.value("o", "output") if call.name != "uniq" else "".join(argv.operands[1:2]) or None
    if target is not None:
        call.write(target)
    else:
        call.print(printed(call.words, call.world.stdin) or UNKNOWN)


def run_mktemp(call: ProgramCall) -> None:
    """A new file somewhere for temporary files, under a name that no other file has."""
    argv = Argv(call.args, "p", "tmpdir= suffix=")
    template = "".join(argv.operands[:1])
    folder = argv.value("p", "tmpdir") or call.walk.environment.get("TMPDIR") or "/tmp"
    name = template if template and not argv.has("t", "p", "tmpdir") else f"{folder}/{template or 'tmp.XXXXXX'}"
    path = call.path(name.replace("XXX", "new"))
    call.effect(WRITE, path)
    if argv.has("d", "directory"):
        call.disk.made_folder(normal(path))
    call.world.status = True
    call.print(f"{path}\n")


def run_setfacl(call: ProgramCall) -> None:
    """`setfacl` and `chattr` may lock people out as `chmod` does."""
    argv = Argv([word for word in call.args if word[:1] not in "+="], "mxMXvp")
    if not argv.has("test"):
        for name in argv.operands:
            call.effect(MODE, name, recursive=argv.has("R", "recursive"))


def run_sqlite(call: ProgramCall) -> None:
    """A database that is opened to be written is locked or changed by whatever SQL follows."""
    if {"-readonly", "--readonly"}.isdisjoint(call.args):
        for name in call.args:
            if name[:1] != "-" and call.is_state(name):
                call.write(name)


def run_mount(call: ProgramCall) -> None:
    """What lies in a folder cannot be seen once another file system is mounted on it."""
    argv = Argv(call.args, "LNOTUot", "types= options= source= target=")
    for name in (argv.operands[1:2], [argv.value("target") or ""]):
        call.delete("".join(name), recursive=True)


def run_flock(call: ProgramCall) -> None:
    """The lock of a file of Fusewire's own would keep its hook waiting; any other is free."""
    argv = Argv(call.args, "wEc", "timeout= wait= conflict-exit-code= command=", permutes=False)
    name = "".join(argv.operands[:1])
    opened = name.isdigit() or name.startswith(("/dev/fd/", "/proc/self/fd/"))
    locked = call.redirected_to_state() if opened else name
    if locked and call.is_state(locked):
        call.write(locked)
    command = argv.value("c", "command")
    if command is not None:
        call.script(command)
    elif argv.operands[1:2] == ["-c"]:
        call.script("".join(argv.operands[2:3]))
    else:
        call.run(argv.operands[1:])

"""Programs that make, change, move and remove files, and the small ones that print paths."""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE, LINK, MODE, MOVE, READ, WRITE, Options
from fusewire.paths import normal
from fusewire.shell.values import REST, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program

#: Files of a copied folder that are looked at one by one.
_MOST = 5000


def _asks(options: Options) -> bool:
    return options.has("help", "version")


# -- removing -------------------------------------------------------------------------------------------------


_RM_OPTIONS = (
    "recursive",
    "force",
    "dir",
    "verbose",
    "interactive",
    "one-file-system",
    "no-preserve-root",
    "preserve-root",
)


def _rm(call: Call) -> None:
    options = Options(call.args)
    unknown = [flag for flag in options.flags if len(flag) > 1 and not any(n.startswith(flag) for n in _RM_OPTIONS)]
    if _asks(options) or unknown:
        return
    recursive = options.has("r", "R", "recursive")
    for name in options.operands:
        if name.rstrip("/").rsplit("/", 1)[-1] in (".", ".."):
            continue  # refused by rm itself
        path = call.path(name)
        if name.endswith("/") and call.disk.exists(path.rstrip("/")) and not call.disk.is_folder(path):
            continue
        is_folder = call.disk.is_folder(path) and not os.path.islink(path.rstrip("/"))
        if is_folder and not recursive and not (options.has("d", "dir") and call.disk.is_empty(path)):
            continue
        if recursive and name.endswith("/") and os.path.islink(path.rstrip("/")):
            # It empties the folder behind the link before it finds out that the link is none.
            call.effect(DELETE, name, recursive=True, follows=True)
            continue
        call.delete(name, recursive=recursive)


def _rmdir(call: Call) -> None:
    options = Options(call.args)
    for name in options.operands:
        path = call.path(name)
        if call.disk.is_folder(path) and not call.disk.is_empty(path):
            continue
        call.delete(name)


def _unlink(call: Call) -> None:
    for name in Options(call.args, "n").operands:
        if not call.disk.is_folder(call.path(name)):
            call.delete(name)


def _trash(call: Call) -> None:
    for name in Options(call.args).operands:
        call.delete(name, recursive=True)


def _shred(call: Call) -> None:
    options = Options(call.args, "ns", ("iterations", "size"))
    for name in options.operands:
        call.write(name)
        if options.has("u", "remove"):
            call.delete(name)


# -- moving and copying -----------------------------------------------------------------------------------------


def _targets(call: Call, options: Options) -> list[tuple[str, str]]:
    """(source, where it ends up) for `mv`, `cp`, `install` and `ln`."""
    folder = options.value("t", "target-directory")
    sources = options.operands
    if folder is None:
        if len(sources) < 2:
            return []
        *sources, folder = sources
        if options.has("T", "no-target-directory") or not _is_folder(call, folder, len(sources)):
            return [(source, folder) for source in sources]
    pairs = []
    for source in sources:
        name = source.rstrip("/").rsplit("/", 1)[-1]
        if options.has("parents"):
            name = source.lstrip("/")
        pairs.append((source, f"{folder.rstrip('/') or '/'}/{name}" if name not in (".", "..") else folder))
    return pairs


def _is_folder(call: Call, name: str, sources: int) -> bool:
    return name.endswith("/") or sources > 1 or call.disk.is_folder(call.path(name))


def _keeps(call: Call, options: Options, target: str) -> bool:
    """Whether a file that is there stays as it is."""
    keeps = options.has("n", "no-clobber") or options.value("update") in ("none", "none-fail")
    keeps = keeps and not options.has("f", "force")
    return keeps and call.disk.exists(call.path(target))


def _mv(call: Call) -> None:
    options = Options(call.args, "tS", ("target-directory", "suffix"))
    if _asks(options):
        return
    for source, target in _targets(call, options):
        if _keeps(call, options, target):
            continue
        if UNKNOWN not in source and not call.disk.exists(call.path(source)) and _untouched(call, source):
            continue
        if f"{normal(call.path(target))}/".startswith(f"{normal(call.path(source))}/"):
            continue  # into itself
        call.effect(MOVE, source, recursive=True)
        call.effect(WRITE, target, follows=False)
        text = call.walk.read_file(call.path(source))
        call.walk.files[normal(call.path(target))] = UNKNOWN if text is None else text
        _overwritten(call, source, target, options)


def _untouched(call: Call, name: str) -> bool:
    """Nothing in the line has made this file, so that it is as missing as it seems."""
    return call.walk.pristine and normal(call.path(name)) not in call.walk.files


def _overwritten(call: Call, source: str, target: str, options: Options) -> None:
    """The files that a folder brings along."""
    path = call.path(source)
    if UNKNOWN in path or not call.disk.is_folder(path):
        return
    size = len(path.rstrip("/")) + 1
    for number, inner in enumerate(call.disk.tree(path.rstrip("/") or "/")):
        if number >= _MOST:
            call.effect(WRITE, f"{target.rstrip('/')}/{REST}")
            break
        name = f"{target.rstrip('/')}/{inner[size:]}"
        if not _keeps(call, options, name):
            call.effect(WRITE, name)


def _cp(call: Call) -> None:
    options = Options(call.args, "tSgmo", ("target-directory", "suffix", "group", "mode", "owner"))
    if _asks(options):
        return
    if call.name == "install" and options.has("d", "directory"):
        for name in options.operands:
            _make_folder(call, name)
            call.effect(MODE, name)
        return
    recursive = options.has("r", "R", "a", "recursive", "archive")
    if call.name == "cp" and options.has("t") is False and "g" in options.values:
        options.values.clear()
    replaces = options.has("remove-destination", "l", "s", "link", "symbolic-link") or call.name == "install"
    for source, target in _targets(call, options):
        call.effect(READ, source)
        path = call.path(source)
        if UNKNOWN not in source and not call.disk.exists(path) and _untouched(call, source):
            continue
        if call.disk.is_folder(path):
            if recursive:
                if options.has("s", "symbolic-link", "l", "link"):
                    call.disk.links[normal(call.path(target))] = normal(path)
                    continue
                _overwritten(call, source, target, options)
                if not call.disk.exists(call.path(target)):
                    call.effect(WRITE, target)
                    call.disk.made_folder(normal(call.path(target)))
            continue
        if _keeps(call, options, target):
            continue
        if call.disk.real(path) == call.disk.real(call.path(target)):
            continue  # the same file
        call.effect(WRITE, target, follows=not replaces)
        text = call.walk.read_file(path)
        call.walk.files[normal(call.path(target))] = UNKNOWN if text is None else text
        if "/bin/" in path:  # a program under another name
            call.disk.links[normal(call.path(target))] = normal(path)
        if options.has("s", "symbolic-link", "l", "link"):
            call.disk.links[normal(call.path(target))] = normal(path)


def _ln(call: Call) -> None:
    options = Options(call.args, "tS", ("target-directory", "suffix"))
    if len(options.operands) == 1 and options.value("t") is None:
        options.operands.append(".")
    if options.has("n", "no-dereference") and len(options.operands) == 2:
        target = call.path(options.operands[1])
        if os.path.islink(target.rstrip("/")):
            options.flags.add("T")
    for source, target in _targets(call, options):
        path = call.path(target)
        if call.disk.exists(path) and not options.has("f", "force", "i", "b", "backup"):
            continue
        call.effect(LINK, target)
        symbolic = options.has("s", "symbolic")
        relative = options.has("r", "relative")
        base = path.rpartition("/")[0] if symbolic and source[:1] != "/" and not relative else None
        points = normal(f"{base}/{source}" if base is not None else call.path(source))
        call.disk.links[call.disk.real(path, last=False)] = points


def _rename(call: Call) -> None:
    """Perl's `rename 's/a/b/' FILES` and util-linux's `rename a b FILES`."""
    options = Options(call.args)
    if options.has("n", "nono", "dry-run", "no-act"):
        return
    for name in options.operands[1:]:
        if call.disk.exists(call.path(name)):
            call.effect(MOVE, name, recursive=True)


# -- changing -----------------------------------------------------------------------------------------------------


def _writes(valued: str = "", long_valued: tuple[str, ...] = (), skip: int = 0) -> Program:
    def program(call: Call) -> None:
        options = Options(call.args, valued, long_valued)
        if _asks(options):
            return
        for name in options.operands[skip:]:
            call.write(name)

    return program


def _truncate(call: Call) -> None:
    options = Options(call.args, "sr", ("size", "reference"))
    for name in options.operands:
        if not (options.has("c", "no-create") and not call.disk.exists(call.path(name))):
            call.write(name)


def _touch(call: Call) -> None:
    options = Options(call.args, "drt", ("date", "reference", "time"))
    for name in options.operands:
        path = call.path(name)
        if options.has("c", "no-create") and not call.disk.exists(path) and _untouched(call, name):
            continue
        call.effect(WRITE, name, follows=not options.has("h", "no-dereference"))


def _tee(call: Call) -> None:
    options = Options(call.args)
    text = UNKNOWN if call.world.stdin is None else call.world.stdin
    for name in options.operands:
        call.write(name)
        call.walk.wrote((call.path(name), options.has("a", "append")), text)
    call.print(text)


def _dd(call: Call) -> None:
    reads = any(word.startswith("if=") for word in call.args)
    text = UNKNOWN if call.world.stdin is None or reads else call.world.stdin
    target = next((word[3:] for word in call.args if word.startswith("of=")), None)
    if target is None:
        call.print(text)
        return
    call.write(target)
    call.walk.wrote((call.path(target), False), text)


def _chmod(call: Call) -> None:
    """The first operand is the mode, unless it was taken from another file."""
    options = Options([word for word in call.args if not _is_mode(word)], "", ("reference", "from"))
    if _asks(options):
        return
    modes = [word for word in call.args if _is_mode(word)]
    names = options.operands
    if call.name in ("chmod", "chown", "chgrp", "chattr") and not modes and not options.has("reference"):
        modes, names = names[:1], names[1:]
    recursive = options.has("R", "recursive")
    for name in names:
        if not recursive and call.name == "chmod" and _has_mode(call, name, modes):
            continue
        call.effect(MODE, name, recursive=recursive)


def _is_mode(word: str) -> bool:
    """`-w`, `-x`, `-rwx`: a mode that looks like an option."""
    return len(word) > 1 and word[0] == "-" and all(char in "rwxXst=+," for char in word[1:]) and word != "-R"


def _has_mode(call: Call, name: str, modes: list[str]) -> bool:
    try:
        return bool(modes) and os.stat(call.path(name)).st_mode & 0o7777 == int(modes[0], 8)
    except (OSError, ValueError):
        return False


def _mkdir(call: Call) -> None:
    options = Options(call.args, "mZ", ("mode", "context"))
    for name in options.operands:
        _make_folder(call, name)
    call.world.status = True if options.has("p", "parents") else None


def _make_folder(call: Call, name: str) -> None:
    if not call.disk.exists(call.path(name)):
        call.effect(WRITE, name)
    call.disk.made_folder(normal(call.path(name)))


def _sort(call: Call) -> None:
    """`sort -o FILE`; otherwise it only prints."""
    options = Options(call.args, "oktST" if call.name == "sort" else "on", ("output", "key", "field-separator"))
    target = options.value("o", "output")
    if target is not None:
        call.write(target)
        return
    call.effects.text_program(call)


def _uniq(call: Call) -> None:
    options = Options(call.args, "fsw")
    if len(options.operands) > 1:
        call.write(options.operands[1])
    else:
        call.effects.text_program(call)


# -- printing ---------------------------------------------------------------------------------------------------


def _mktemp(call: Call) -> None:
    """A new file somewhere for temporary files: a name that nobody else has."""
    options = Options(call.args, "p", ("tmpdir", "suffix"))
    template = options.operands[0] if options.operands else "tmp.XXXXXXXXXX"
    folder = options.value("p", "tmpdir")
    if folder is None and ("/" in template or (options.operands and not options.has("t"))):
        path = call.path(template)
    else:
        known = call.world.variables.get("TMPDIR", call.walk.environment.get("TMPDIR"))
        folder = folder or (known if isinstance(known, str) and known else "/tmp")
        path = call.path(f"{folder}/{template}")
    name = path.replace("XXX", "new")
    if not options.has("u", "dry-run"):
        call.effect(WRITE, name)
        if options.has("d", "directory"):
            call.disk.made_folder(normal(name))
    call.world.status = True
    call.print(f"{name}\n")


def _pwd(call: Call) -> None:
    path = call.disk.real(call.world.cwd) if "-P" in call.args or call.words[0] != "pwd" else call.world.cwd
    call.print(f"{path}\n")


def _realpath(call: Call) -> None:
    options = Options(call.args)
    for name in options.operands:
        path = call.path(name)
        if call.name == "readlink" and not options.has("f", "e", "m", "canonicalize"):
            try:
                call.print(f"{os.readlink(path)}\n")
            except (OSError, ValueError):
                pass
        else:
            call.print(f"{call.disk.real(path)}\n")


def _which(call: Call) -> None:
    for name in Options(call.args).operands:
        call.print(f"/usr/bin/{name.rsplit('/', 1)[-1]}\n")


def _ls(call: Call) -> None:
    """One name a line, as a pipe gets them; with `-l` nobody can know the columns."""
    options = Options(call.args, "IwT", ("ignore", "width"))
    for name in options.operands:
        call.effect(READ, name)
    long = options.has("l", "g", "o")
    if options.has("s", "i", "Z"):
        call.print(UNKNOWN)
        return
    names = []
    folders = []
    if any(call.effects.holds("-e", call.path(name)) is False for name in options.operands):
        call.world.status = False
    for name in options.operands or ["."]:
        if call.disk.is_folder(call.path(name)) and not options.has("d", "directory"):
            folders.append(name)
        elif UNKNOWN in name or call.disk.exists(call.path(name)):
            names.append(name)
    for folder in folders:
        inside = call.disk.listing(call.path(folder))
        hidden = options.has("a", "A", "all", "almost-all")
        names += [name for name in inside if hidden or name[:1] != "."]
    if long:
        from fusewire.guard.programs.texts import long_line

        call.print("".join(long_line(name) for name in names))
        return
    mark = "/" if options.has("p", "F", "classify") else ""
    call.print("".join(f"{name}{mark if call.disk.is_folder(call.path(name)) else ''}\n" for name in names))


def _busybox(call: Call) -> None:
    call.run(call.args)


PROGRAMS: dict[str, Program] = {
    "busybox": _busybox,
    "chattr": _chmod,
    "chgrp": _chmod,
    "chmod": _chmod,
    "chown": _chmod,
    "cp": _cp,
    "dd": _dd,
    "del-cli": _trash,
    "dir": _ls,
    "install": _cp,
    "link": _ln,
    "ln": _ln,
    "ls": _ls,
    "mkdir": _mkdir,
    "mkfifo": _writes("mZ"),
    "mknod": _writes("mZ"),
    "mktemp": _mktemp,
    "mv": _mv,
    "prename": _rename,
    "pwd": _pwd,
    "readlink": _realpath,
    "realpath": _realpath,
    "rename": _rename,
    "rimraf": _trash,
    "rm": _rm,
    "rmdir": _rmdir,
    "setfacl": _chmod,
    "setfattr": _chmod,
    "shred": _shred,
    "shuf": _sort,
    "sort": _sort,
    "sponge": _writes(),
    "srm": _trash,
    "tee": _tee,
    "touch": _touch,
    "toybox": _busybox,
    "trash": _trash,
    "trash-put": _trash,
    "truncate": _truncate,
    "uniq": _uniq,
    "unlink": _unlink,
    "which": _which,
    "wipe": _trash,
}

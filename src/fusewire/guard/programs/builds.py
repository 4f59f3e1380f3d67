"""Programs that build and look into what was built: cmake, assembler and linker tools, gdb, and other languages."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, WRITE
from fusewire.guard.programs.packages import written_by_options
from fusewire.guard.programs.places import last, under
from fusewire.guard.programs.sqlite import split
from fusewire.guard.programs.words import told_apart
from fusewire.paths import normal
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program

# -- cmake --------------------------------------------------------------------------------------------------------

#: `cmake -E` -> the program that does the same
_SAME = {
    "touch": ["touch"],
    "touch_nocreate": ["touch", "-c"],
    "rm": ["rm"],
    "remove": ["rm", "-f"],
    "remove_directory": ["rm", "-rf"],
    "copy": ["cp"],
    "copy_if_different": ["cp"],
    "rename": ["mv", "-T"],
    "make_directory": ["mkdir", "-p"],
    "create_symlink": ["ln", "-sfT"],
    "create_hardlink": ["ln", "-fT"],
    "tar": ["tar"],
    "cat": ["cat"],
    "echo": ["echo"],
    "env": ["env"],
    "time": [],
}


def _cmake(call: Call) -> None:
    args = call.args
    if "-E" in args:
        at = args.index("-E")
        _cmake_command(call, args[at + 1 :])
        return
    variables = {}
    for at, word in enumerate(args):
        if word[:2] == "-D":
            setting = word[2:] or "".join(args[at + 1 : at + 2])
            name, _, value = setting.partition("=")
            variables[name.partition(":")[0]] = value
    if "-P" in args[:-1]:
        _cmake_script(call, args[args.index("-P") + 1], variables)
        return
    found = told_apart(args, "SBDCGTAU", "build= install= prefix= graphviz= open= parallel= target= config= preset=")
    values = dict(found)
    words = [value for name, value in found if not name]
    if values.keys() & {"help", "version"}:
        return
    if "install" in values:
        call.write(under(values.get("prefix") or "/usr/local", UNKNOWN))
    elif "build" not in values:
        source = values.get("S") or (words[0] if words else ".")
        folder = values.get("B") or ("." if "S" not in values else "")
        for name in ("CMakeCache.txt", "Makefile", "CMakeFiles") if folder else ():
            call.write(under(folder, name))
        _cmake_script(call, under(source, "CMakeLists.txt"), variables)
    written_by_options(call)


def _cmake_command(call: Call, words: list[str]) -> None:
    name, rest = (words[0], words[1:]) if words else ("", [])
    if name in _SAME:
        call.run([*_SAME[name], *rest])
    elif name == "chdir" and len(rest) > 1:
        call.run(rest[1:], cwd=rest[0])
    elif name.startswith("copy_directory") and len(rest) > 1:
        for folder in rest[:-1]:
            call.run(["cp", "-rT", folder, rest[-1]])
    else:
        call.print(UNKNOWN)


def _cmake_script(call: Call, name: str, variables: dict[str, str]) -> None:
    """What a script says that the line itself has written."""
    path = normal(call.path(name))
    text = call.walk.files.get(path)
    if text is None:
        return
    folder = path.rpartition("/")[0]
    for known in ("CMAKE_CURRENT_LIST_DIR", "CMAKE_CURRENT_SOURCE_DIR", "CMAKE_SOURCE_DIR"):
        variables.setdefault(known, folder if known.endswith("LIST_DIR") or name.endswith(".txt") else call.world.cwd)
    call.effects.blind = call.effects.blind or UNKNOWN in text
    for command, words in _cmake_calls(text):
        words = [_cmake_value(word, variables) for word in words]
        kind = words[0].upper() if words else ""
        if command == "set" and len(words) > 1:
            variables[words[0]] = words[1]
        elif command == "execute_process":
            for run in _after(words, "COMMAND"):
                call.run(run)
        elif command != "file":
            continue
        elif kind in ("WRITE", "APPEND", "TOUCH", "TOUCH_NOCREATE", "GENERATE", "CONFIGURE", "MAKE_DIRECTORY"):
            named = _after(words, "OUTPUT")
            for target in named[0][:1] if named else words[1:] if kind[0] in "TM" else words[1:2]:
                call.write(target)
        elif kind in ("REMOVE", "REMOVE_RECURSE"):
            for target in words[1:]:
                call.effect(DELETE, target, recursive=kind != "REMOVE")
        elif kind == "RENAME":
            call.run(["mv", "-T", *words[1:3]])
        elif kind in ("COPY_FILE", "CREATE_LINK"):
            call.run([*(("cp",) if kind == "COPY_FILE" else ("ln", "-sfT")), *words[1:3]])
        elif kind in ("COPY", "INSTALL") and "DESTINATION" in words[:-1]:
            at = words.index("DESTINATION")
            call.run(["cp", "-r", *words[1:at], f"{words[at + 1]}/"])
        elif kind == "DOWNLOAD":
            call.write("".join(words[2:3]))


def _after(words: list[str], mark: str) -> list[list[str]]:
    """The words behind each mark, up to the next word in capitals."""
    found: list[list[str]] = []
    inside = False
    for word in words:
        if word == mark:
            found.append([])
            inside = True
        elif word.isupper() and "_" in word and inside:
            inside = False
        elif inside:
            found[-1].append(word)
    return found


def _cmake_calls(text: str) -> list[tuple[str, list[str]]]:
    """(command, its words) for everything in a script."""
    text = "\n".join(line for line in text.split("\n") if line.lstrip()[:1] != "#")
    found = []
    for part in text.split(")"):
        head, bracket, inside = part.partition("(")
        if bracket and head.split():
            found.append((head.split()[-1].lower(), split(inside)))
    return found


def _cmake_value(word: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        word = word.replace(f"${{{name}}}", value)
    while "${" in word and "}" in word.partition("${")[2]:
        head, _, rest = word.partition("${")
        word = head + UNKNOWN + rest.partition("}")[2]
    return word


# -- objects ------------------------------------------------------------------------------------------------------


def _compile(call: Call) -> None:
    """`-o FILE`, `-oFILE`; without it, the names that a compiler gives."""
    found = told_apart(_without_rules(call), "oILlDUxe", "output=", optional="WOfmgsnM")
    values = dict(found)
    target = values.get("o", values.get("output"))
    for name, value in found:
        if name == "W" and value.startswith("l,-Map="):
            call.write(value[7:])
    sources = [value for name, value in found if not name]
    stems = [name.rsplit("/", 1)[-1].rpartition(".")[0] or name.rsplit("/", 1)[-1] for name in sources]
    makes = not values.keys() & {"E", "version", "help"} and values.get("M") not in ("", "M")
    if ("M", "D") in found or ("M", "MD") in found:
        for stem in [target.rpartition(".")[0]] if target else stems if "-MF" not in call.args else []:
            call.write(f"{stem}.d")
    if target is not None:
        if target not in ("-", "/dev/null"):
            call.write(target)
    elif makes and values.get("f") != "syntax-only":
        if "c" in values or "S" in values:
            for stem in stems:
                call.write(stem + (".s" if "S" in values else ".o"))
        elif sources:
            call.write("a.out")


def _without_rules(call: Call) -> list[str]:
    """The words without `-MF FILE`, which writes rules for make, and its kind."""
    words: list[str] = []
    at = 0
    while at < len(call.args):
        word = call.args[at]
        at += 1
        if word[:3] not in ("-MF", "-MT", "-MQ"):
            words.append(word)
            continue
        value = word[3:] or "".join(call.args[at : at + 1])
        at += 0 if word[3:] else 1
        call.write(value if word[:3] == "-MF" else "")
    return words


def _as(call: Call) -> None:
    found = told_apart(call.args, "oI", "MD= defsym= version help", optional="aWmgK")
    values = dict(found)
    if values.keys() & {"version", "help"}:
        return
    call.write(values.get("o", "a.out"))
    call.write(values.get("MD", ""))
    if "=" in values.get("a", ""):
        call.write(values["a"].partition("=")[2])


_OBJECT_LONGS = (
    "input-target= output-target= target= remove-section= strip-all strip-debug strip-unneeded keep-symbol="
    " strip-symbol= only-keep-debug add-section= set-section-flags= dump-section= rename-section= only-section="
    " add-gnu-debuglink= binary-architecture= split-dwo= preserve-dates version help"
)


def _objcopy(call: Call) -> None:
    found = told_apart(call.args, "oIOFRKNjBGWLX" if call.name != "strip" else "oIOFRKN", _OBJECT_LONGS)
    values = dict(found)
    names = [value for name, value in found if not name]
    if values.keys() & {"version", "help", "V"}:
        return
    for name, value in found:
        if name == "dump-section" and "=" in value:
            call.write(value.partition("=")[2])
    if call.name == "strip":
        for name in [values["o"]] if "o" in values else names:
            call.write(name)
    else:
        call.write(names[-1] if names else "")


# -- gdb ----------------------------------------------------------------------------------------------------------

_GDB_TEXTS = ("ex", "iex", "eval-command", "init-eval-command")
_GDB_FILES = ("x", "ix", "command", "init-command")


def _gdb(call: Call) -> None:
    lines: list[str] = []
    command: list[str] = []
    at = 0
    while at < len(call.args):
        word = call.args[at]
        at += 1
        name, equals, value = word.lstrip("-").partition("=")
        if word[:1] != "-":
            continue
        if name == "args":
            command = call.args[at:]
            break
        if name in (*_GDB_TEXTS, *_GDB_FILES):
            value = value if equals else "".join(call.args[at : at + 1])
            at += 0 if equals else 1
            if name in _GDB_FILES:
                value = call.walk.files.get(normal(call.path(value)), "")
            lines += value.split("\n")
    for line in [*lines, *(call.world.stdin or "").split("\n")]:
        _gdb_command(call, line.strip(), command)
    call.print(UNKNOWN)


def _gdb_command(call: Call, line: str, command: list[str]) -> None:
    name, _, rest = line.partition(" ")
    rest = rest.strip()
    words = rest.split()
    if line[:1] == "!":
        call.script(line[1:])
    elif name == "shell":
        call.script(rest)
    elif name == "make":
        call.script(line)
    elif name in ("pipe", "|") or line[:1] == "|":
        text = rest if name in ("pipe", "|") else line[1:]
        mark = words[1] if words[:1] == ["-d"] and len(words) > 1 else "|"
        call.script(text.partition(f" {mark} ")[2] if words[:1] != ["-d"] else text.split(f" {mark} ")[-1])
    elif name in ("python", "py", "python-interactive", "pi"):
        call.run(["python3", "-c", rest])
    elif words[:2] == ["logging", "file"] and name == "set":
        call.write(" ".join(words[2:]))
    elif name in ("dump", "save", "append") and len(words) > 1:
        call.write(words[1] if name == "save" or words[0] not in ("binary", "ihex", "srec", "tekhex") else words[-1])
    elif name in ("generate-core-file", "gcore"):
        call.write(rest or f"core.{UNKNOWN}")
    elif name in ("run", "r", "start", "starti") and command:
        call.run(command)


# -- languages that are not read ------------------------------------------------------------------------------------

_ACTING = "delete open exec rename copy write spawn system shell process save temp-file link unlink syscmd".split()


def _language(call: Call) -> None:
    """Code that nobody here can read, but for whether it could change a file."""
    texts = [call.world.stdin or ""]
    for at, word in enumerate(call.args):
        following = "".join(call.args[at + 1 : at + 2])
        if word in ("-c", "-e", "--eval", "-eval", "--execute", "-f", "--expr"):
            texts.append(following)
        texts.append(word.partition("=")[2] if word.startswith("--eval=") else "")
        texts.append(call.walk.files.get(normal(call.path(word)), "") if word else "")
    code = "\n".join(texts)
    if any(word in code for word in _ACTING):
        call.effects.blind = True
    quiet = call.name == "m4" and not any(mark in code for mark in ("(", "dnl", "`")) and not call.args
    call.print(call.world.stdin if quiet and call.world.stdin is not None else UNKNOWN)


def _tags(call: Call) -> None:
    """ctags and cscope: one file for everything that they find."""
    found = told_apart(call.args, "fohILt" if call.name != "cscope" else "FfIiPpsn")
    values = dict(found)
    if values.keys() & {"x", "help", "version", "V"} or "d" in values or any("list" in name for name in values):
        call.print(UNKNOWN)
        return
    default = "cscope.out" if call.name == "cscope" else "TAGS" if "e" in values or call.name == "etags" else "tags"
    target = values.get("f", values.get("o", default))
    if target == "-":
        call.print(UNKNOWN)
    else:
        call.effect(WRITE, target)
        if "q" in values and call.name == "cscope":
            call.write(f"{last(target)}.in" if "/" not in target else f"{target}.in")


PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(("gcc", "cc", "g++", "c++", "clang", "clang++", "ld"), _compile),
    **dict.fromkeys(
        ("tclsh", "wish", "expect", "emacs", "guile", "m4", "Rscript", "julia", "groovy", "swipl"), _language
    ),
    **dict.fromkeys(("ctags", "etags", "cscope"), _tags),
    "as": _as,
    "cmake": _cmake,
    "gdb": _gdb,
    "objcopy": _objcopy,
    "strip": _objcopy,
}

"""Editors and awk: what their scripts do to files."""

from __future__ import annotations

from fusewire.guard.effects import READ, WRITE, Options
from fusewire.guard.programs.awk_output import awk_prints
from fusewire.guard.programs.running import KINDS, run_code
from fusewire.guard.programs.sed_output import sed_prints
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program


def _text_of(call: Call, name: str) -> str:
    """A script from a file, which may be the input."""
    if name in ("-", "/dev/stdin"):
        return call.world.stdin or ""
    return call.walk.read_file(call.path(name)) or ""


def text_read(call: Call, names: list[str]) -> str | None:
    """What a filter reads: its files, or its input."""
    if not names:
        return call.world.stdin
    texts = [call.walk.read_file(call.path(name)) if name != "-" else call.world.stdin for name in names]
    return "".join(UNKNOWN if text is None else text for text in texts)


def _awk(call: Call) -> None:
    codes: list[str] = []
    variables: list[str] = []
    inplace = False
    args = call.args
    at = 0
    while at < len(args) and args[at][:1] == "-" and len(args[at]) > 1:
        word = args[at]
        at += 1
        if word == "--":
            break
        option, value = word[:2], word[2:]
        if option == "--" and "=" in word:
            word, _, value = word.partition("=")
        elif word in ("--include", "--assign", "--file", "--source", "--field-separator") or (
            option in ("-i", "-v", "-f", "-e", "-F") and not value
        ):
            value = "".join(args[at : at + 1])
            at += 1
        inplace = inplace or (option in ("-i", "--") and "inplace" in value)
        if option == "-v" or word == "--assign":
            variables.append(value)
        elif option == "-e" or word == "--source":
            codes.append(value)
        elif option == "-F" or word == "--field-separator":
            variables.append(f"FS={value}")
        elif option == "-f" or word == "--file":
            codes.append(_text_of(call, value))
    operands = args[at:]
    if not codes:
        codes, operands = operands[:1], operands[1:]
    if inplace:
        for name in operands:
            call.effect(WRITE, name, follows=False)
    out = call.world.out
    code = "\n".join(codes)
    run_code(call, "awk", code, [*variables, *operands])
    files = [name for name in operands if "=" not in name]
    known = awk_prints(code, args[: max(0, at)], text_read(call, files), files[0] if len(files) == 1 else "")
    if known is not None and not inplace:
        call.world.out = out + known


_SED_OPTIONS = ("in-place", "follow-symlinks", "expression", "file")


def _sed(call: Call) -> None:
    scripts: list[str] = []
    operands: list[str] = []
    inplace = follows = False
    suffix = ""
    args = call.args
    at = 0
    while at < len(args):
        word = args[at]
        at += 1
        if word == "--":
            operands += args[at:]
            break
        if word[:2] == "--":
            name, equals, value = word[2:].partition("=")
            name = next((one for one in _SED_OPTIONS if one.startswith(name)), name)
            if name == "in-place":
                inplace, suffix = True, value
            follows = follows or name == "follow-symlinks"
            if name in ("expression", "file"):
                if not equals:
                    value = "".join(args[at : at + 1])
                    at += 1
                scripts.append(value if name == "expression" else _text_of(call, value))
        elif word[:1] == "-" and len(word) > 1:
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter == "i":
                    inplace, suffix = True, letters
                    break
                if letter in "efl":
                    value = letters
                    if not value:
                        value = "".join(args[at : at + 1])
                        at += 1
                    if letter != "l":
                        scripts.append(value if letter == "e" else _text_of(call, value))
                    break
        else:
            operands.append(word)
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    for name in operands:
        if not inplace:
            call.effect(READ, name)
        elif call.disk.exists(call.path(name)) or UNKNOWN in name or not call.walk.pristine:
            call.effect(WRITE, name, follows=follows)
            if suffix:
                folder, slash, base = name.rpartition("/")
                backup = suffix.replace("*", base) if "*" in suffix else base + suffix
                call.effect(WRITE, backup if "/" in backup else folder + slash + backup)
    script = "\n".join(scripts)
    stdin = text_read(call, operands)
    if "w" in script or "e" in script or "W" in script:
        from fusewire.guard.code import Setting, code_effects

        for kind, text in code_effects("sed", script, operands, setting=Setting(stdin=stdin)):
            if kind == "shell":
                call.script(text)
            elif text not in ("/dev/stdout", "/dev/stderr"):
                call.effect(KINDS[kind], text)
    if not inplace:
        flags = [word for word in args if word[:1] == "-" and word not in scripts]
        known = sed_prints(script, ["-n"] if _is_quiet(flags) else [], stdin)
        call.print(UNKNOWN if known is None else known)


def _is_quiet(args: list[str]) -> bool:
    return any(
        word in ("--quiet", "--silent") or (word[:1] == "-" and word[1:2] != "-" and "n" in word) for word in args
    )


def _ed(call: Call) -> None:
    """`ed FILE < script`: the script decides whether it writes."""
    options = Options(call.args, "p")
    if call.world.stdin is None:
        return
    if UNKNOWN in call.world.stdin:
        for name in options.operands:
            call.write(name)
        return
    run_code(call, "ed", call.world.stdin, options.operands)


def _vi(call: Call) -> None:
    """`vim -es -c CMD FILE`, `ex FILE < script`."""
    commands: list[str] = []
    operands: list[str] = []
    args = call.args
    at = 0
    while at < len(args):
        word = args[at]
        at += 1
        is_ex = call.name == "ex" or "-e" in args or "-es" in args
        if word in ("-sc", "-esc", "-ec"):
            word, is_ex = "-c", True
        if word in ("-c", "--cmd", "-S", "-s", "-u", "-i", "-W", "-w", "--startuptime"):
            value = "".join(args[at : at + 1])
            if word == "-s" and is_ex:
                continue
            if word in ("-W", "-w", "--startuptime") and not value.isdigit():
                call.write(value, rule="guard.vim")
            at += 1
            if word in ("-c", "--cmd"):
                commands.append(value)
            elif word in ("-S", "-s"):
                commands.append(_text_of(call, value))
        elif word[:1] == "+" and len(word) > 1:
            commands.append(word[1:])
        elif word[:1] != "-":
            operands.append(word)
    if not commands or "-e" in args or "-es" in args or call.name == "ex":
        commands.append(call.world.stdin or "")
    script = "\n".join(commands)
    if UNKNOWN in script:
        for name in operands:
            call.write(name)
    elif script.strip():
        run_code(call, "ed", script, operands)


PROGRAMS: dict[str, Program] = {
    "awk": _awk,
    "ed": _ed,
    "ex": _vi,
    "gawk": _awk,
    "gsed": _sed,
    "mawk": _awk,
    "nawk": _awk,
    "nvim": _vi,
    "sed": _sed,
    "vi": _vi,
    "view": _vi,
    "vim": _vi,
}

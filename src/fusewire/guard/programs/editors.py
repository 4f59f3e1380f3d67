"""sed, ed, ex and vim: the files that they edit in place, and those that their scripts write."""

from __future__ import annotations

from fusewire.guard.effects import READ, WRITE
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

#: `w file` as a command of sed, and behind `s/a/b/`.
_SED_WRITES = r"(?:^|[;{}\n\d$/])\s*[wW]\s+([^\n;}]+)|[/|,#][gpiI0-9]*w\s+([^\n;}]+)"

#: Commands of ed, ex and vim that write the file they are in (or the one that is named), or run a shell.
_WRITES = r"^[\s%\d,.$;:]*(?:w|wq|x|xit|exit|up|update|write|wa|wqa|xa|wall|wn|saveas|sav)(!?)(?:\s+(?!!)(\S+))?$"
_RUNS = r"^[\s%\d,.$;:]*(?:w|r|silent|sil)?\s*!+\s*(.+)$"
_CALLS = r"(delete|writefile|rename|system)\s*\((?:\[[^\]]*\]\s*,\s*)?\s*(['\"])(.*?)\2"

#: Options of vim that have commands, or name a file of them.
_SCRIPTS = ("c", "cmd", "S")


def run_sed(call: ProgramCall) -> None:
    argv = Argv(call.args, "efl", "expression= file= line-length=", optional="i")
    scripts = [
        value if name in ("e", "expression") else call.text_of(value) or ""
        for name, value in argv.given
        if name in ("e", "f", "expression", "file")
    ]
    operands = argv.operands
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    inplace = argv.value("i", "in-place")
    for name in operands:
        if inplace is None:
            call.effect(READ, name)
        elif not call.is_missing(name):
            call.effect(WRITE, name, follows=argv.has("follow-symlinks"))
            if inplace:
                folder, slash, base = name.rpartition("/")
                backup = inplace.replace("*", base) if "*" in inplace else base + inplace
                call.effect(WRITE, backup if "/" in backup else folder + slash + backup)
    script = "\n".join(scripts)
    if "w" in script.lower():
        import re

        for match in re.finditer(_SED_WRITES, script):
            target = (match[1] or match[2]).strip()
            if not target.startswith("/dev/std"):
                call.write(target)
    call.print(UNKNOWN)


def run_ed(call: ProgramCall) -> None:
    """`ed FILE < script`: the script decides whether it writes."""
    _edit(call, call.world.stdin or "", Argv(call.args, "p").operands)


def run_vi(call: ProgramCall) -> None:
    """`vim -es -c CMD FILE`, `ex FILE < script`."""
    words = ["-c" if word in ("-sc", "-esc", "-ec") else word for word in call.args]
    argv = Argv(words, "cSuiwW", "cmd=")
    scripts = [call.text_of(value) or "" if name == "S" else value for name, value in argv.options if name in _SCRIPTS]
    scripts += [word[1:] for word in argv.operands if word[:1] == "+"]
    if call.name == "ex" or argv.has("e"):
        scripts.append(call.world.stdin or "")
    _edit(call, "\n".join(scripts), [word for word in argv.operands if word[:1] != "+"])


def _edit(call: ProgramCall, script: str, names: list[str]) -> None:
    """What the commands of an editor write and run; text that is inserted is none of them."""
    import re

    inserts = False
    parts = re.split(r"\n|\|(?!\|)|\bexe(?:cute)?\b", script)
    for line in map(str.strip, parts):
        if inserts:
            inserts = line != "."
            continue
        inserts = re.fullmatch(r"[\d,.$/%]*(?:a|i|c|append|insert|change)", line) is not None
        if written := re.search(_WRITES, line.strip("'\" ")):
            for name in [written[2]] if written[2] else names:
                call.write(name.replace("%", names[0] if names else UNKNOWN))
        elif runs := re.search(_RUNS, line.strip("'\" ")):
            call.script(runs[1])
        for function, _, value in re.findall(_CALLS, line):
            if function == "system":
                call.script(value)
            elif function == "writefile":
                call.write(value)
            else:
                call.delete(value, recursive=True)
    if UNKNOWN in script:
        for name in names:
            call.write(name)

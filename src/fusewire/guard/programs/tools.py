"""Programs that write where one option or operand says, and those that keep a record of what they run."""

from __future__ import annotations

from fusewire.guard.effects import MOVE
from fusewire.guard.programs.words import told_apart
from fusewire.shell.outputs import is_text_program
from fusewire.shell.values import UNKNOWN
from fusewire.wrappers import scripts_of, wrapped_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program


def _run_wrapped(call: Call) -> None:
    for script in scripts_of(call.words):
        call.script(script)
    inner, _, folder = wrapped_by(call.words)
    call.run(inner, cwd=folder)


def _own(call: Call) -> list[str]:
    """The words of a wrapper without the command that it runs."""
    inner = wrapped_by(call.words)[0]
    return call.words[1 : len(call.words) - len(inner)]


# -- records of what runs -------------------------------------------------------------------------------------------


def _traced(call: Call) -> None:
    """`strace -o F`, `time -o F`: F may also be a pipe."""
    valued = "of" if call.name == "time" else "oepEuPasSIbOXUlxAD"
    for name, value in told_apart(_own(call), valued, "output= format= trace= env="):
        if name in ("o", "output"):
            if value[:1] in ("|", "!"):
                call.script(value[1:])
            else:
                call.write(value)
    _run_wrapped(call)


def _script(call: Call) -> None:
    longs = "log-in= log-out= log-io= log-timing= timing= logging-format= command= echo= output-limit= append quiet"
    found = told_apart(_own(call), "IOBTmcEo", longs, optional="t")
    if any(name in ("h", "V", "help", "version") for name, _ in found):
        return
    logs = [
        v for n, v in found if n in ("I", "O", "B", "T", "t", "log-in", "log-out", "log-io", "log-timing", "timing")
    ]
    names = [value for name, value in found if not name]
    recorded = any(name in ("O", "B", "I", "log-out", "log-io", "log-in") for name, _ in found)
    for name in [*logs, *(names[:1] or ([] if recorded else ["typescript"]))]:
        if not name.startswith("/dev/"):
            call.write(name)
    _run_wrapped(call)
    if not scripts_of(call.words) and len(names) < 2 and call.world.stdin is not None:
        call.script(call.world.stdin)


def _logsave(call: Call) -> None:
    names = [value for name, value in told_apart(_own(call), "", permutes=False) if not name]
    call.write("".join(names[:1]))
    _run_wrapped(call)


def _flock(call: Call) -> None:
    """The lock is made if it is missing; a number is one that the shell has opened."""
    longs = "timeout= wait= conflict-exit-code= command="
    names = [value for name, value in told_apart(_own(call), "wEc", longs) if not name]
    if names and (names[0].isdigit() or names[0].startswith(("/dev/fd/", "/proc/"))):
        call.locks_redirected()
    elif names:
        call.locks(names[0])
        if not call.disk.exists(call.path(names[0])):
            call.write(names[0])
    _run_wrapped(call)


def _lockf(call: Call) -> None:
    """`lockf`, `lckdo`, `setlock`: a file, then the command that runs while its lock is held."""
    words = [value for name, value in told_apart(call.args, "tWE", permutes=False) if not name]
    call.locks("".join(words[:1]))
    call.run(words[1:])


def _capsh(call: Call) -> None:
    """Behind `--` are the words for a shell."""
    for mark in ("--", "=="):
        if mark in call.args:
            call.run(["bash", *call.args[call.args.index(mark) + 1 :]])
            return


# -- one output -----------------------------------------------------------------------------------------------------


def _writes_option(valued: str, longs: str, *names: str) -> Program:
    def program(call: Call) -> None:
        written = False
        for name, value in told_apart(call.args, valued, longs):
            if name in names and value not in ("-", ""):
                call.write(value)
                written = True
        if not written:
            call.print(UNKNOWN)

    return program


_GPG_LONGS = (
    "output= log-file= logger-file= status-file= attribute-file= homedir= recipient= local-user= passphrase="
    " passphrase-fd= passphrase-file= pinentry-mode= keyring= default-key= cipher-algo= digest-algo= compress-algo="
    " batch yes armor symmetric encrypt sign detach-sign clear-sign clearsign decrypt dearmor enarmor verify list-keys"
    " export import store trust-model= keyserver= options= hidden-recipient="
)
#: What gpg does to a file that it is given, and the ending of what it makes of it.
_GPG_MADE = {
    **dict.fromkeys(("symmetric", "c", "encrypt", "e", "sign", "s", "store", "dearmor"), ".gpg"),
    **dict.fromkeys(("clear-sign", "clearsign", "enarmor"), ".asc"),
    **dict.fromkeys(("detach-sign", "b"), ".sig"),
}


def _gpg(call: Call) -> None:
    found = told_apart(call.args, "oruRzN", _GPG_LONGS)
    values = dict(found)
    names = [value for name, value in found if not name]
    for name in ("log-file", "logger-file", "status-file", "attribute-file"):
        call.write(values.get(name, ""))
    target = values.get("o", values.get("output"))
    if target is not None:
        call.write(target if target != "-" else "")
        return
    endings = [ending for name, ending in _GPG_MADE.items() if name in values]
    if names and endings:
        call.write(names[0] + (".asc" if values.keys() & {"a", "armor"} else endings[-1]))
    elif names and not values.keys() - {"batch", "yes", "homedir", "q", "quiet", "passphrase", "passphrase-file"}:
        call.write(names[0].removesuffix(".gpg").removesuffix(".asc") if names[0].endswith((".gpg", ".asc")) else "")
    call.print(UNKNOWN)


_XXD_VALUED = ("-c", "-cols", "-g", "-groupsize", "-l", "-len", "-n", "-name", "-o", "-s", "-seek", "-skip", "-R")


def _xxd(call: Call) -> None:
    names: list[str] = []
    at = 0
    while at < len(call.args):
        word = call.args[at]
        at += 1
        if word[:1] != "-" or word == "-":
            names.append(word)
        elif word.replace("--", "-") in _XXD_VALUED:
            at += 1
    if len(names) > 1 and names[1] != "-":
        call.write(names[1])
    elif is_text_program(call.name):
        call.effects.text_program(call)
    else:
        call.print(UNKNOWN)


def _fallocate(call: Call) -> None:
    for name, value in told_apart(call.args, "lo", "length= offset="):
        if not name:
            call.write(value)


def _ssh_keygen(call: Call) -> None:
    found = told_apart(call.args, "abCDEFfIJjKMmNnOPRrsSTtVwWYzZ")
    values = dict(found)
    if values.keys() & set("lyBFLQeDi"):
        call.print(UNKNOWN)
        return
    if values.get("s"):
        for name in (value for option, value in found if not option):
            call.write(name.removesuffix(".pub") + "-cert.pub")
    elif values.get("Y") == "sign":
        for name in (value for option, value in found if not option):
            call.write(f"{name}.sig")
    elif values.get("f") and "Y" not in values:
        call.write(values["f"])
        call.write(f"{values['f']}.pub")


def _savelog(call: Call) -> None:
    for name, value in told_apart(call.args, "mugcrDx"):
        if name == "x":
            call.script(value)
        elif not name:
            call.effect(MOVE, value)


def _ptx(call: Call) -> None:
    found = told_apart(call.args, "FMSWbgiow", "traditional")
    names = [value for name, value in found if not name]
    if any(name in ("G", "traditional") for name, _ in found) and len(names) > 1:
        call.write(names[1])
    else:
        call.print(UNKNOWN)


def _rename(call: Call) -> None:
    """util-linux's: FROM TO FILES."""
    found = told_apart(call.args, "")
    flags = {name for name, _ in found}
    old, new, *names = [*(value for name, value in found if not name), "", ""]
    if flags & {"n", "no-act", "h", "help", "V", "version"}:
        return
    for name in names:
        if name and old in name and call.disk.exists(call.path(name)):
            folder, slash, own = name.rpartition("/")
            target = own.replace(old, new) if flags & {"a", "all"} else own.replace(old, new, 1)
            if target != own:
                call.effect(MOVE, name, recursive=True)
                call.write(f"{folder}{slash}{target}")


_SPLIT_LONGS = (
    "filter= suffix-length= additional-suffix= bytes= line-bytes= lines= number= separator= numeric-suffixes"
    " hex-suffixes elide-empty-files unbuffered verbose prefix= suffix-format= digits= keep-files help version"
)


def _split(call: Call) -> None:
    found = told_apart(call.args, "fbn" if call.name == "csplit" else "abClnt", _SPLIT_LONGS)
    values = dict(found)
    names = [value for name, value in found if not name]
    if values.keys() & {"help", "version"}:
        return
    if call.name == "csplit":
        prefix = values.get("f") or values.get("prefix") or "xx"
    else:
        prefix = names[1] if len(names) > 1 else "x"
    if "filter" in values:
        variables, exported = call.world.variables, call.world.exported
        call.world.variables = {**variables, "FILE": prefix + UNKNOWN}
        call.world.exported = exported | {"FILE"}
        call.script(values["filter"])
        call.world.variables, call.world.exported = variables, exported
        return
    call.write(prefix + UNKNOWN + values.get("additional-suffix", ""))


def _history(call: Call) -> None:
    """`history -w`: into a file, or into the one that the shell has for it."""
    for at, word in enumerate(call.args):
        if word in ("-w", "-a"):
            known = call.world.variables.get("HISTFILE", call.walk.environment.get("HISTFILE", "~/.bash_history"))
            call.write("".join(call.args[at + 1 : at + 2]) or (known if isinstance(known, str) else UNKNOWN))
            return
    call.print(UNKNOWN)


def _envsubst(call: Call) -> None:
    """What it reads, with variables filled in."""
    text = call.world.stdin
    if text is None or any(word[:1] != "-" for word in call.args):
        call.print(UNKNOWN)
        return
    for name in [*call.world.exported, *call.walk.environment] if "$" in text else ():
        value = call.world.variables.get(name, call.walk.environment.get(name, ""))
        if isinstance(value, str):
            text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    call.print(text)


PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(("strace", "ltrace", "time"), _traced),
    **dict.fromkeys(("split", "csplit"), _split),
    **dict.fromkeys(("gpg", "gpg2"), _gpg),
    "capsh": _capsh,
    "envsubst": _envsubst,
    "fallocate": _fallocate,
    "flock": _flock,
    **dict.fromkeys(("lockf", "lckdo", "setlock"), _lockf),
    "history": _history,
    "logsave": _logsave,
    "ptx": _ptx,
    "rename.ul": _rename,
    "savelog": _savelog,
    "script": _script,
    "ssh-keygen": _ssh_keygen,
    "utmpdump": _writes_option("o", "output= file= reverse follow", "o", "output"),
    "xxd": _xxd,
}

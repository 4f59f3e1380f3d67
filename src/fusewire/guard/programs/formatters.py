"""Programs that rewrite the files they are given, that write one output file, or that run a text later or elsewhere."""

from __future__ import annotations

from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import REST, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program

_WEB = ".js .jsx .ts .tsx .mjs .cjs .mts .cts .json .jsonc .css .vue"

#: Files of one folder that are looked at.
_MOST = 5000


class _Tool:
    """How a formatter is called: what makes it write, what keeps it from doing so, and which files it takes."""

    def __init__(
        self, endings: str, *, writes: str = "", spares: str = "", valued: str = "", longs: str = "", skips: int = 0
    ) -> None:
        self.endings = tuple(endings.split())
        #: options without one of which nothing is written; none if it writes anyway
        self.writes = writes.split()
        #: options with which nothing is written
        self.spares = ["help", "version", *spares.split()]
        self.valued = valued
        self.longs = longs
        #: operands in front that are no files
        self.skips = skips


_PYTHON_LONGS = (
    "check diff line-length= target-version= config= include= exclude= extend-exclude= force-exclude= code= profile="
    " settings-path= settings-file= sp= skip= skip-glob= src= stdin-filename= workers= jobs= select= ignore="
    " extend-select= fixable= unfixable= output-format= cache-dir= range= style= in-place recursive max-line-length="
    " aggressive show-settings show-files stdout check-only fix fix-only unsafe-fixes no-fix add-noqa watch statistics"
)
_WEB_LONGS = (
    "write check list-different config= ignore-path= parser= plugin= log-level= stdin-filepath= tab-width= print-width="
    " fix fix-dry-run fix-type= ext= rule= ignore-pattern= format= output-file= max-warnings= ignore= apply"
    " apply-unsafe unsafe config-path= stdin-file-path= resolve-plugins-relative-to= cache-location= end-of-line="
    " prose-wrap="
)

_TOOLS = {
    "prettier": _Tool(
        f"{_WEB} .md .mdx .html .yml .yaml .scss .less", writes="w write", spares="c check", longs=_WEB_LONGS
    ),
    "black": _Tool(".py .pyi .ipynb", spares="check diff c code", valued="lCtcjW", longs=_PYTHON_LONGS),
    "isort": _Tool(
        ".py .pyi .pyx",
        spares="check check-only c diff d stdout show-settings",
        valued="lwsmoptbaj",
        longs=_PYTHON_LONGS,
    ),
    "autopep8": _Tool(".py .pyi", writes="i in-place", spares="d diff", valued="pj", longs=_PYTHON_LONGS),
    "yapf": _Tool(".py .pyi", writes="i in-place", spares="d diff q quiet", valued="el", longs=_PYTHON_LONGS),
    "clang-format": _Tool(".c .h .cc .cpp .hpp .cxx", writes="i", spares="n dry-run"),
    "gofmt": _Tool(".go", writes="w", valued="r"),
    "goimports": _Tool(".go", writes="w", valued="r", longs="local= srcdir="),
    "rustfmt": _Tool(".rs", spares="check", longs="check edition= config= config-path= emit= color="),
    "mdformat": _Tool(
        ".md", spares="check", longs="check wrap= end-of-line= number exclude= extensions= codeformatters="
    ),
    "markdownlint": _Tool(".md .markdown", writes="f fix", valued="cipro", longs="fix config= ignore= rules= output="),
    "markdownlint-cli2": _Tool(".md .markdown", writes="fix", longs="fix config="),
    "dos2unix": _Tool("", spares="i info h V", valued="c", longs="convmode= info"),
    "unix2dos": _Tool("", spares="i info h V", valued="c", longs="convmode= info"),
    "yq": _Tool(
        "", writes="i inplace in-place", valued="oIps", longs="inplace in-place output-format= indent=", skips=1
    ),
    "sd": _Tool("", spares="p preview", valued="nf", longs="preview max-replacements= flags= fixed-strings", skips=2),
    "rpl": _Tool("", spares="s simulate dry-run", valued="x", longs="simulate", skips=2),
    "eslint": _Tool(_WEB, writes="fix", spares="fix-dry-run", valued="cf", longs=_WEB_LONGS),
    "ruff": _Tool(".py .pyi .ipynb", spares="check diff", valued="", longs=_PYTHON_LONGS),
    "biome": _Tool(f"{_WEB} .html .graphql", writes="write fix apply apply-unsafe", longs=_WEB_LONGS),
}

#: Folders that formatters leave alone.
_LEFT_ALONE = ("node_modules", ".git", ".hg", ".svn", ".venv", "venv", ".tox", "__pycache__")


def _format(call: Call) -> None:
    tool = _TOOLS[call.name]
    found = _without_command(call, told_apart(call.args, tool.valued, tool.longs))
    flags = {name for name, _ in found}
    names = [value for name, value in found if not name]
    if tool.writes and not flags & set(tool.writes):
        call.print(UNKNOWN)
        return
    if flags & set(tool.spares):
        return
    new_file = {"n", "newfile"} & flags and call.name.endswith(("2unix", "2dos"))
    _rewrite(call, tool, names[1::2] if new_file else names[tool.skips :])
    output = dict(found).get("o", dict(found).get("output-file", ""))
    if call.name in ("eslint", "markdownlint") and output:
        call.write(output)


def _without_command(call: Call, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """`yq eval -i EXPRESSION FILE`, `biome format --write FILE`: the first word is none of the operands."""
    operands = [pair for pair in found if not pair[0]]
    if call.name == "yq" and operands[:1] and operands[0][1] in ("eval", "e", "eval-all", "ea"):
        found.remove(operands[0])
    if call.name == "biome" and operands[:1]:
        found.remove(operands[0])
        if operands[0][1] not in ("format", "lint", "check"):
            return [("help", "")]
    return found


def _rewrite(call: Call, tool: _Tool, names: list[str]) -> None:
    for name in names:
        if name == "-":
            continue
        path = call.path(name)
        if any(mark in name for mark in "*?") and not call.disk.exists(path):
            _rewrite_fitting(call, name)
        elif not call.disk.is_folder(path):
            if UNKNOWN in path or not call.walk.pristine or path in call.walk.files or call.disk.exists(path):
                call.write(name)
        elif tool.endings:
            for number, inner in enumerate(call.disk.tree(path.rstrip("/"))):
                below = inner[len(path.rstrip("/")) + 1 :]
                if number >= _MOST:
                    for ending in tool.endings:
                        call.write(f"{name.rstrip('/')}/{REST}{ending}")
                    break
                if inner.endswith(tool.endings) and not any(part in _LEFT_ALONE for part in below.split("/")):
                    call.write(f"{name.rstrip('/')}/{below}")


def _rewrite_fitting(call: Call, pattern: str) -> None:
    """A quoted glob that the program itself expands."""
    from fusewire.globs import path_matches
    from fusewire.shell.braces import alternatives

    base = call.world.cwd.rstrip("/")
    patterns = [one.removeprefix("./") for one in alternatives(pattern)]
    for number, path in enumerate(call.disk.tree(base)):
        name = path[len(base) + 1 :]
        if number >= _MOST:
            for one in patterns:
                call.write(one.replace("**/", REST).replace("*", REST).replace("?", REST))
            break
        if "node_modules/" in name or name.startswith(".git/"):
            continue
        if any(
            path_matches(name, one) if "/" in one else "/" not in name and path_matches(name, one) for one in patterns
        ):
            call.write(name)


def _ruff(call: Call) -> None:
    """`ruff format`, `ruff check --fix`: the folder here if none is given."""
    found = told_apart(call.args, "", _PYTHON_LONGS)
    flags = {name for name, _ in found}
    names = [value for name, value in found if not name]
    if flags & {"diff", "help", "version", "show-files", "show-settings"}:
        return
    writes = flags & {"fix", "fix-only", "add-noqa"} if names[:1] == ["check"] else "check" not in flags
    if names[:1] in (["check"], ["format"]) and writes:
        _rewrite(call, _TOOLS["ruff"], names[1:] or ["."])
    else:
        call.print(UNKNOWN)


# -- one output file ----------------------------------------------------------------------------------------------


def _output(valued: str, longs: str) -> Program:
    """A program that only writes where `-o` says."""

    def program(call: Call) -> None:
        values = dict(told_apart(call.args, valued, longs))
        target = values.get("o", values.get("output"))
        if target in (None, "-", "/dev/stdout"):
            call.print(UNKNOWN)
        elif target is not None:
            call.write(target)
        for name in ("extract-media", "log"):
            if values.get(name):
                call.write(f"{values[name]}/{UNKNOWN}" if name == "extract-media" else values[name])

    return program


def _openssl(call: Call) -> None:
    """Every command of it writes where `-out` says, some also elsewhere."""
    names = ("-out", "-keyout", "-writerand", "-CAserial", "-signer_out", "-outform_file", "-sess_out", "-keylogfile")
    written = False
    for at, word in enumerate(call.args[:-1]):
        if word in names:
            written = written or word == "-out"
            call.write(call.args[at + 1])
    if call.args[:1] in (["base64"], ["enc"]) and not written and "-in" not in call.args and "-d" in call.args:
        from fusewire.shell.outputs import printed

        if "base64" in call.args or "-base64" in call.args or "-a" in call.args:
            call.print(printed(["base64", "-d"], call.world.stdin) or UNKNOWN)
            return
    if not written:
        call.print(UNKNOWN)


# -- texts that are run ---------------------------------------------------------------------------------------------


def _at(call: Call) -> None:
    found = told_apart(call.args, "fqt")
    values = dict(found)
    if values.keys() & {"l", "r", "d", "c", "V"}:
        return
    text = call.walk.read_file(call.path(values["f"])) if values.get("f") else call.world.stdin
    if text is not None:
        call.script(text)


def _watch(call: Call) -> None:
    """Its words are one text, unless `-x` says that they are a command."""
    longs = "interval= exec differences no-title precise beep errexit chgexit color equexit= help version shotsdir="
    found = told_apart(call.args, "nqs", longs, optional="d", permutes=False)
    words = [value for name, value in found if not name]
    if any(name in ("x", "exec") for name, _ in found):
        call.run(words)
    else:
        call.script(" ".join(words))


def _su(call: Call) -> None:
    longs = "command= session-command= login preserve-environment shell= group= supp-group= user= pty fast help version"
    found = told_apart(call.args, "cgGsuwC", longs)
    for name, value in found:
        if name in ("c", "C", "command", "session-command"):
            call.script(value)
            return
    if any(name in ("help", "version", "h", "V") for name, _ in found) or call.world.stdin is None:
        return
    call.script(call.world.stdin)


#: What tmux makes, and its options that take a value.
_TMUX = {
    "new": "cefFnstxy",
    "new-session": "cefFnstxy",
    "neww": "ceFnSt",
    "new-window": "ceFnSt",
    "split-window": "ceFlptX",
    "splitw": "ceFlptX",
    "respawn-pane": "cet",
    "respawn-window": "cet",
    "run-shell": "cdt",
    "run": "cdt",
    "send-keys": "cNt",
    "send": "cNt",
    "if-shell": "t",
    "if": "t",
    "pipe-pane": "t",
    "pipep": "t",
    "display-popup": "bcdehsStTwxy",
    "popup": "bcdehsStTwxy",
}
_KEYS = ("Enter", "C-m", "KPEnter", "C-j", "^M")


def _tmux(call: Call) -> None:
    found = told_apart(call.args, "cfLSTD", permutes=False)
    words = [value for name, value in found if not name]
    while words:
        end = words.index(";") if ";" in words else len(words)
        _tmux_command(call, words[:end])
        words = words[end + 1 :]


def _tmux_command(call: Call, words: list[str]) -> None:
    valued = _TMUX.get(words[0]) if words else None
    if valued is None:
        return
    found = told_apart(words[1:], valued, permutes=False)
    folder = dict(found).get("c") if words[0][:2] in ("ne", "sp", "re") else None
    operands = [value for name, value in found if not name]
    if words[0] in ("send-keys", "send"):
        texts = [word for word in operands if word not in _KEYS]
        call.script("\n".join(texts) if len(texts) > 1 and " " in texts[0] else " ".join(texts))
    elif words[0] in ("if-shell", "if"):
        call.script(operands[0] if operands else "")
        for command in operands[1:]:
            _tmux_command(call, [command.partition(" ")[0], command.partition(" ")[2].strip("\"'")])
    elif len(operands) == 1:
        call.script(operands[0], cwd=folder)
    else:
        call.run(operands, cwd=folder)


def _screen(call: Call) -> None:
    """`screen -dm COMMAND`, `screen -S NAME -X stuff 'TEXT'`."""
    found = told_apart(call.args, "cehpsStT", permutes=False)
    words = [value for name, value in found if not name]
    names = {name for name, _ in found}
    if "X" not in names:
        call.run(words)
    elif words[:1] == ["stuff"]:
        call.script(" ".join(words[1:]).replace("\\n", "\n").replace("^M", "\n").replace("\\r", "\n"))
    elif words[:1] == ["exec"]:
        call.run(words[1:])


PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(_TOOLS, _format),
    "at": _at,
    "batch": _at,
    "iconv": _output("ftolc", "output= from-code= to-code="),
    "openssl": _openssl,
    "pandoc": _output(
        "ofrtwMVHBADTLFcN", "output= from= to= read= write= extract-media= log= metadata= variable= filter="
    ),
    "ruff": _ruff,
    "screen": _screen,
    "su": _su,
    "tmux": _tmux,
    "watch": _watch,
}

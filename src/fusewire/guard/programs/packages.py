"""Programs that build and install: npm and its kind, pip, go, cargo, tsc, docker."""

from __future__ import annotations

from fusewire.guard.plain import writes_to
from fusewire.guard.programs.places import last, under
from fusewire.guard.programs.running import recipe_text, written
from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import UNKNOWN
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program


def written_by_options(call: Call) -> None:
    """`--output F`, `--junitxml=F`: what the names of options say, as of a program that nobody knows."""
    for at, word in enumerate(call.args):
        name, equals, value = word.partition("=")
        if writes_to(name):
            call.write(value if equals else "".join(call.args[at + 1 : at + 2]), rule="guard.output")
    call.print(UNKNOWN)


def _given(call: Call, *names: str) -> list[str]:
    """The values of options however many dashes they have: `-o F`, `-o=F`, `--out-dir F`."""
    found: list[str] = []
    for at, word in enumerate(call.args):
        name, equals, value = word.partition("=")
        if name in names:
            found += [value] if equals else call.args[at + 1 : at + 2]
        else:
            found += [word[2:] for one in names if len(one) == 2 and word.startswith(one) and word[1] != "-"]
    return [value for value in found if value]


# -- npm ----------------------------------------------------------------------------------------------------------

_NPM_LONGS = (
    "call= prefix= dir= cwd= cache= pack-destination= workspace= package= logs-dir= userconfig= globalconfig= location="
    " registry= tag= loglevel= script-shell= otp= omit= include= save-dev save-exact global silent yes offline"
    " if-present workspaces dry-run json filter="
)
_INSTALLING = ("preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare")
_LIFE = {
    **dict.fromkeys(("install", "i", "ci", "add", "in", "isntall", "clean-install", "link", "rebuild"), _INSTALLING),
    "pack": ("prepack", "prepare", "postpack"),
    "publish": ("prepublishOnly", "prepack", "prepare", "postpack", "publish", "postpublish"),
    "version": ("preversion", "version", "postversion"),
}
_CHANGING = frozenset(("install", "i", "ci", "add", "in", "update", "up", "uninstall", "remove", "rm", "un"))


def _npm(call: Call) -> None:
    found = told_apart(call.args, "cwC", _NPM_LONGS)
    values = dict(found)
    words = [value for name, value in found if not name]
    folder = values.get("prefix") or values.get("C") or values.get("dir") or values.get("cwd") or ""
    command, rest = (words[0], words[1:]) if words else ("", [])
    if values.get("cache"):
        call.write(under(values["cache"], "_cacache"))
    if values.get("logs-dir"):
        call.write(under(values["logs-dir"], UNKNOWN))
    text = values.get("call", values.get("c"))
    if command in ("exec", "dlx") or (command == "x" and call.name == "npm"):
        if text is not None:
            call.script(text, cwd=folder or None)
        else:
            call.run(rest, cwd=folder or None)
    elif command in ("run", "run-script", "rum", "urn"):
        _run_scripts(call, folder, rest[0] if rest else "", rest[1:])
    elif command in ("test", "t", "tst", "start", "stop", "restart"):
        _run_scripts(call, folder, "test" if command[0] == "t" else command, rest)
    elif command == "pkg" and rest[:1] == ["set"]:
        call.write(under(folder, "package.json"))
        _may_run(call, rest[1:])
    elif command in ("set-script",) and len(rest) > 1:
        _may_run(call, [f"scripts.{rest[0]}={rest[1]}"])
    elif command in ("init", "create", "innit") and not rest:
        call.write(under(folder, "package.json"))
    elif command in _LIFE or command in _CHANGING or (not command and call.name != "npm"):
        _install(call, folder, command or "install", rest, values)
    elif call.name != "npm":
        _run_scripts(call, folder, command, rest)
    call.print(UNKNOWN)


def _may_run(call: Call, settings: list[str]) -> None:
    for setting in settings:
        key, _, text = setting.partition("=")
        if key.startswith("scripts") and text:
            with call.effects.unsure():
                call.script(text)


def _install(call: Call, folder: str, command: str, names: list[str], values: dict[str, str]) -> None:
    for name in _LIFE.get(command, ()):
        _run_script(call, folder, name, [])
    if command == "pack" and "dry-run" not in values:
        call.write(under(values.get("pack-destination") or ".", f"{UNKNOWN}.tgz"))
    if command in _CHANGING and not values.keys() & {"g", "global", "dry-run"}:
        call.write(under(folder, "node_modules"))
        call.write(under(folder, "package-lock.json"))
        if names:
            call.write(under(folder, "package.json"))


def _run_scripts(call: Call, folder: str, name: str, words: list[str]) -> None:
    _run_script(call, folder, f"pre{name}", [])
    _run_script(call, folder, name, words)
    _run_script(call, folder, f"post{name}", [])


def _run_script(call: Call, folder: str, name: str, words: list[str]) -> None:
    """A script of package.json, if the line itself has written it; of one on the disk, its commands for constraints."""
    text = written(call, under(folder, "package.json"))
    if text is None and call.effects.follows_recipes:
        text = recipe_text(call, under(folder, "package.json"))
        with call.effects.only_commands(call.walk):
            _run_text(call, folder, name, words, text or "")
    elif text is not None:
        _run_text(call, folder, name, words, text)


def _run_text(call: Call, folder: str, name: str, words: list[str], text: str) -> None:
    from fusewire.quickjson import loads

    try:
        script = loads(text)["scripts"][name]
    except (ValueError, KeyError, TypeError):
        call.effects.blind = call.effects.blind or UNKNOWN in text
        return
    if isinstance(script, str):
        call.script(" ".join([script, *map(quoted, words)]), cwd=folder or None)


# -- others -------------------------------------------------------------------------------------------------------


def _pip(call: Call) -> None:
    for folder in _given(call, "-t", "--target", "--prefix", "--root", "--src", "--cache-dir"):
        if "install" in call.args or folder not in _given(call, "-t"):
            call.write(under(folder, UNKNOWN))
    for folder in _given(call, "-d", "--dest", "-w", "--wheel-dir"):
        if "download" in call.args or "wheel" in call.args:
            call.write(under(folder, UNKNOWN))
    for name in _given(call, "--log", "--log-file", "--local-log", "--report"):
        call.write(name)
    call.print(UNKNOWN)


def _go(call: Call) -> None:
    words = [word for word in call.args if word[:1] != "-"]
    profiles = ("coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace")
    for name in _given(call, *(f"{dash}{one}" for one in profiles for dash in ("-", "--"))):
        call.write(name)
    for name in _given(call, "-outputdir", "--outputdir"):
        call.write(under(name, UNKNOWN))
    command = words[0] if words else ""
    for at, word in enumerate(call.args):
        target = call.args[at + 1] if word in ("-o", "--o") and at + 1 < len(call.args) else ""
        target = target or (word.partition("=")[2] if word.startswith(("-o=", "--o=")) else "")
        if target and command in ("build", "test", "list", "tool", "mod"):
            call.write(under(target, UNKNOWN) if call.disk.is_folder(call.path(target)) else target)
    if words[:2] in (["mod", "init"], ["mod", "tidy"], ["mod", "edit"]) or command == "get":
        call.write("go.mod")
        call.write("go.sum")
    call.print(UNKNOWN)


def _cargo(call: Call) -> None:
    for folder in _given(call, "--target-dir", "--root"):
        call.write(under(folder, UNKNOWN))
    words = [word for word in call.args if word[:1] not in "-+"]
    if words[:1] in (["new"], ["init"]):
        call.write(under(words[-1] if len(words) > 1 else "", "Cargo.toml"))
    written_by_options(call)


def _tsc(call: Call) -> None:
    options = [word.lower() if word[:1] == "-" else word for word in call.args]
    values: dict[str, str] = {}
    names: list[str] = []
    at = 0
    while at < len(options):
        word = options[at]
        at += 1
        if word[:1] != "-":
            names.append(word)
            continue
        name = word.lstrip("-")
        values[name] = ""
        if at < len(options) and name not in ("init", "noemit", "watch", "w", "strict", "b", "build", "declaration"):
            values[name] = options[at]
            at += 1
    if values.keys() & {"help", "h", "version", "v", "showconfig", "listfilesonly"}:
        return
    for name in ("outfile", "out", "tsbuildinfofile"):
        call.write(values.get(name, ""))
    for name in ("outdir", "declarationdir", "generatetrace", "d"):
        if values.get(name) and name != "d":
            call.write(under(values[name], f"{UNKNOWN}.js"))
    if "init" in values:
        call.write("tsconfig.json")
    elif "noemit" not in values and "outdir" not in values and "outfile" not in values:
        for name in names:
            if name.endswith((".ts", ".tsx")):
                call.write(name.rpartition(".")[0] + ".js")
    call.print(UNKNOWN)


def _docker(call: Call) -> None:
    found = told_apart(call.args, "ofuewvptHlc", "output= file= iidfile= cidfile= metadata-file= tag= format= name=")
    words = [value for name, value in found if not name]
    if words[:1] == ["container"]:
        words = words[1:]
    if words[:1] == ["cp"] and len(words) > 2 and ":" not in words[2].partition("/")[0] and words[2] != "-":
        target = words[2]
        if call.disk.is_folder(call.path(target)):
            target = under(target, last(words[1].partition(":")[2]) or UNKNOWN)
        call.write(target)
    values = dict(found)
    if words[:1] in (["save"], ["export"]) or words[:2] == ["image", "save"]:
        call.write(values.get("o", values.get("output", "")))
    for name in ("iidfile", "cidfile", "metadata-file"):
        call.write(values.get(name, ""))
    call.print(UNKNOWN)


PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(("npm", "pnpm", "yarn"), _npm),
    **dict.fromkeys(("pip", "pip3"), _pip),
    **dict.fromkeys(("docker", "podman"), _docker),
    "cargo": _cargo,
    "go": _go,
    "tsc": _tsc,
}

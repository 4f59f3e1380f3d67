"""What the functions of Perl, Ruby, JavaScript, PHP and Lua do to the files that they are given."""

from __future__ import annotations

#: What happens to which arguments: the kind, the first of them, whether to all that follow too.
Doing = tuple[str, int, bool]

_WRITE: tuple[Doing, ...] = (("write", 0, False),)
_DELETE: tuple[Doing, ...] = (("delete", 0, False),)
_DELETE_ALL: tuple[Doing, ...] = (("delete", 0, True),)
_TREE: tuple[Doing, ...] = (("delete_tree", 0, False),)
_TREES: tuple[Doing, ...] = (("delete_tree", 0, True),)
_MOVE: tuple[Doing, ...] = (("move", 0, False), ("write", 1, False))
_COPY: tuple[Doing, ...] = (("read", 0, False), ("write", 1, False))
_LINK: tuple[Doing, ...] = (("link", 0, False), ("write", 1, False))
_MODE: tuple[Doing, ...] = (("mode", 0, False),)
_READ: tuple[Doing, ...] = (("read", 0, False),)
_CHDIR: tuple[Doing, ...] = (("chdir", 0, False),)

_PERL: dict[str, tuple[Doing, ...]] = {
    "unlink": _DELETE_ALL,
    "rmdir": _DELETE,
    "rename": _MOVE,
    "truncate": _WRITE,
    "mkdir": _WRITE,
    "chmod": (("mode", 1, True),),
    "chown": (("mode", 2, True),),
    "utime": (("write", 2, True),),
    "symlink": _LINK,
    "link": _LINK,
    "chdir": _CHDIR,
    "remove_tree": _TREES,
    "rmtree": _TREES,
    "File.Path.remove_tree": _TREES,
    "File.Path.rmtree": _TREES,
    "POSIX.remove": _DELETE,
    "POSIX.creat": _WRITE,
    "POSIX.rename": _MOVE,
    "dbmopen": (("write", 1, False),),
    "make_path": (("write", 0, True),),
    "mkpath": (("write", 0, True),),
    "File.Path.make_path": (("write", 0, True),),
}

#: Of a module that the code must name: these words alone mean many things.
_PERL_COPY = {"copy": _COPY, "cp": _COPY, "move": _MOVE, "mv": _MOVE, "syscopy": _COPY}

_RUBY_FILES: dict[str, tuple[Doing, ...]] = {
    "rm": _DELETE,
    "rm_f": _DELETE,
    "remove": _DELETE,
    "safe_unlink": _DELETE,
    "remove_file": _DELETE,
    "rm_r": _TREE,
    "rm_rf": _TREE,
    "rmtree": _TREE,
    "remove_dir": _TREE,
    "remove_entry": _TREE,
    "remove_entry_secure": _TREE,
    "rmdir": _DELETE,
    "mv": _MOVE,
    "move": _MOVE,
    "cp": _COPY,
    "copy": _COPY,
    "cp_r": _COPY,
    "copy_file": _COPY,
    "copy_entry": _COPY,
    "install": _COPY,
    "touch": _WRITE,
    "mkdir": _WRITE,
    "mkdir_p": _WRITE,
    "makedirs": _WRITE,
    "mkpath": _WRITE,
    "chmod": (("mode", 1, False),),
    "chmod_R": (("mode", 1, False),),
    "chown": (("mode", 2, False),),
    "chown_R": (("mode", 2, False),),
    "ln": _LINK,
    "ln_s": _LINK,
    "ln_sf": _LINK,
    "link": _LINK,
    "symlink": _LINK,
    "cd": _CHDIR,
    "chdir": _CHDIR,
}

_RUBY: dict[str, tuple[Doing, ...]] = {
    **{f"FileUtils.{name}": doings for name, doings in _RUBY_FILES.items()},
    **{f"{kind}.{name}": _WRITE for kind in ("File", "IO") for name in ("write", "binwrite")},
    **{f"{kind}.{name}": _READ for kind in ("File", "IO") for name in ("read", "binread", "readlines", "foreach")},
    "File.delete": _DELETE_ALL,
    "File.unlink": _DELETE_ALL,
    "File.rename": _MOVE,
    "File.truncate": _WRITE,
    "File.mkfifo": _WRITE,
    "File.chmod": (("mode", 1, True),),
    "File.lchmod": (("mode", 1, True),),
    "File.chown": (("mode", 2, True),),
    "File.utime": (("write", 2, True),),
    "File.symlink": _LINK,
    "File.link": _LINK,
    "IO.copy_stream": _COPY,
    "Dir.mkdir": _WRITE,
    "Dir.rmdir": _DELETE,
    "Dir.delete": _DELETE,
    "Dir.unlink": _DELETE,
    "Dir.chdir": _CHDIR,
}

#: Methods of Ruby's `Pathname`.
PATHNAME: dict[str, str] = {
    **dict.fromkeys(("write", "binwrite", "mkdir", "mkpath", "truncate", "utime"), "write"),
    **dict.fromkeys(("delete", "unlink", "rmdir"), "delete"),
    "rmtree": "delete_tree",
    "rename": "move",
    "chmod": "mode",
    "read": "read",
}

_NODE_FILES: dict[str, tuple[Doing, ...]] = {
    "writeFile": _WRITE,
    "appendFile": _WRITE,
    "createWriteStream": _WRITE,
    "unlink": _DELETE,
    "rmdir": _DELETE,
    "rm": _DELETE,
    "rename": _MOVE,
    "copyFile": _COPY,
    "cp": _COPY,
    "truncate": _WRITE,
    "mkdir": _WRITE,
    "mkdtemp": (("write", 0, False),),
    "utimes": _WRITE,
    "lutimes": _WRITE,
    "chmod": _MODE,
    "lchmod": _MODE,
    "chown": _MODE,
    "lchown": _MODE,
    "symlink": _LINK,
    "link": _LINK,
    "readFile": _READ,
    "createReadStream": _READ,
    "outputFile": _WRITE,
    "ensureFile": _WRITE,
    "writeJson": _WRITE,
    "remove": _TREE,
    "emptyDir": _TREE,
    "move": _MOVE,
}

#: Names that mean a file wherever they stand.
_NODE_CLEAR = frozenset(("writeFile", "appendFile", "createWriteStream", "copyFile", "readFile", "createReadStream"))

_NODE: dict[str, tuple[Doing, ...]] = {
    **{f"fs.{name}": doings for name, doings in _NODE_FILES.items()},
    **{f"fs.{name}Sync": doings for name, doings in _NODE_FILES.items()},
    **{f"*.{name}Sync": doings for name, doings in _NODE_FILES.items()},
    **{f"*.{name}": _NODE_FILES[name] for name in _NODE_CLEAR},
    "process.chdir": _CHDIR,
    "rimraf": _TREE,
    "rimraf.sync": _TREE,
    "rimraf.rimrafSync": _TREE,
    "Bun.write": _WRITE,
    "Deno.remove": _DELETE,
    "Deno.writeTextFile": _WRITE,
    "Deno.writeTextFileSync": _WRITE,
}

_PHP: dict[str, tuple[Doing, ...]] = {
    "file_put_contents": _WRITE,
    "file_get_contents": _READ,
    "readfile": _READ,
    "file": _READ,
    "unlink": _DELETE,
    "rmdir": _DELETE,
    "rename": _MOVE,
    "copy": _COPY,
    "touch": _WRITE,
    "mkdir": _WRITE,
    "chmod": _MODE,
    "chown": _MODE,
    "chgrp": _MODE,
    "symlink": _LINK,
    "link": _LINK,
    "chdir": _CHDIR,
}

_LUA: dict[str, tuple[Doing, ...]] = {
    "os.remove": _DELETE,
    "os.rename": _MOVE,
    "io.output": _WRITE,
    "io.lines": _READ,
    "io.input": _READ,
    "lfs.mkdir": _WRITE,
    "lfs.rmdir": _DELETE,
    "lfs.touch": _WRITE,
    "lfs.chdir": _CHDIR,
}

FUNCTIONS: dict[str, dict[str, tuple[Doing, ...]]] = {
    "perl": {**_PERL, **{f"File.Copy.{name}": doings for name, doings in _PERL_COPY.items()}},
    "ruby": _RUBY,
    "node": _NODE,
    "php": _PHP,
    "lua": _LUA,
}

#: Functions that run a program: a line for a shell, or words if there is more than one.
COMMANDS: dict[str, frozenset[str]] = {
    "perl": frozenset(("system", "exec", "readpipe")),
    "ruby": frozenset(
        (
            "system",
            "exec",
            "spawn",
            "Kernel.system",
            "Kernel.exec",
            "Kernel.spawn",
            "Process.spawn",
            "IO.popen",
            "PTY.spawn",
            "Open3.capture2",
            "Open3.capture2e",
            "Open3.capture3",
            "Open3.popen2",
            "Open3.popen2e",
            "Open3.popen3",
        )
    ),
    "node": frozenset(
        (
            *tuple(
                f"child_process.{name}{end}" for name in ("exec", "execFile", "spawn", "fork") for end in ("", "Sync")
            ),
            "*.execSync",
            "*.spawnSync",
            "*.execFileSync",
            "Bun.spawn",
            "Bun.spawnSync",
        )
    ),
    "php": frozenset(("system", "exec", "shell_exec", "passthru", "popen", "proc_open", "pcntl_exec")),
    "lua": frozenset(("os.execute", "io.popen")),
}

#: Functions like `open(path, mode)`: where the path is and where the mode.
OPENERS: dict[str, dict[str, tuple[int, int]]] = {
    "perl": {"IO.File.new": (0, 1)},
    "ruby": {"File.open": (0, 1), "File.new": (0, 1), "open": (0, 1), "Kernel.open": (0, 1), "IO.sysopen": (0, 1)},
    "node": {"fs.open": (0, 1), "fs.openSync": (0, 1), "*.openSync": (0, 1)},
    "php": {"fopen": (0, 1), "splfileobject": (0, 1)},
    "lua": {"io.open": (0, 1)},
}

#: Functions that print, and what they put behind it.
PRINTS: dict[str, dict[str, str]] = {
    "perl": {"print": "", "say": "\n"},
    "ruby": {"print": "", "puts": "\n"},
    "node": {"console.log": "\n", "process.stdout.write": ""},
    "php": {"echo": "", "print": ""},
    "lua": {"print": "\n"},
}

#: Functions that run text as code.
RUNNING: dict[str, frozenset[str]] = {
    "perl": frozenset(("eval",)),
    "ruby": frozenset(("eval", "Kernel.eval", "instance_eval", "class_eval")),
    "node": frozenset(("eval", "Function", "vm.runInThisContext", "vm.runInNewContext")),
    "php": frozenset(("eval", "assert")),
    "lua": frozenset(("load", "loadstring")),
}


def functions_of(language: str, code: str) -> dict[str, tuple[Doing, ...]]:
    """The functions that the code may call by these names."""
    known = FUNCTIONS[language]
    if language == "perl" and ("File::Copy" in code or "POSIX" in code):
        copies = _PERL_COPY if "File::Copy" in code else {}
        return {**known, **copies, **({"remove": _DELETE, "creat": _WRITE} if "POSIX" in code else {})}
    if language == "ruby" and "FileUtils" in code:
        return {**known, **_RUBY_FILES}
    return known

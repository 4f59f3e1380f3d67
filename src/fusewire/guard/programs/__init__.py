"""Describe what programs do to the paths that they are given: one family a file, one function a program.

A module is imported when a line runs one of its programs, so that a line of `ls` and `pytest` pays for none of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Program

#: function -> the programs that it knows
_PROGRAMS = {
    "archives.run_pack": "bunzip2 bzip2 gunzip gzip unxz xz zstd",
    "archives.run_tar": "bsdtar tar",
    "archives.run_unzip": "unzip",
    "archives.run_zip": "zip",
    "code.run_interpreter": "awk bun deno gawk lua mawk nawk node nodejs perl php pypy pypy3 python ruby",
    "editors.run_ed": "ed",
    "editors.run_sed": "gsed sed",
    "editors.run_vi": "ex nvim vi vim",
    "files.run_chmod": "chgrp chmod chown",
    "files.run_cp": "cp install",
    "files.run_dd": "dd",
    "files.run_flock": "flock",
    "files.run_ln": "link ln",
    "files.run_mkdir": "mkdir",
    "files.run_mktemp": "mktemp",
    "files.run_mount": "mount",
    "files.run_mv": "mv",
    "files.run_rm": "rm",
    "files.run_rmdir": "rmdir unlink",
    "files.run_setfacl": "chattr setfacl",
    "files.run_sort": "shuf sort uniq",
    "files.run_sqlite": "sqlite3",
    "files.run_tee": "tee",
    "files.run_trash": "del-cli rimraf srm trash trash-put",
    "files.run_truncate": "fallocate mkfifo shred sponge touch truncate",
    "find.run_find": "find",
    "git.run_git": "git",
    "listing.run_busybox": "busybox toybox",
    "listing.run_cat": "cat",
    "listing.run_ls": "dir ls",
    "listing.run_pwd": "pwd",
    "listing.run_realpath": "readlink realpath",
    "listing.run_which": "which",
    "patches.run_patch": "patch",
    "recipes.run_make": "gmake make",
    "recipes.run_npm": "npm pnpm yarn",
    "rsync.run_rsync": "rsync",
    "xargs.run_xargs": "xargs",
}

_FUNCTION_OF = {name: function for function, names in _PROGRAMS.items() for name in names.split()}


def program_named(name: str) -> Program | None:
    """Find the function that knows a program; None if there is none."""
    if name.startswith("git-"):  # git-checkout, as it is in git's own folder
        name = "git"
    elif name.startswith("python"):  # python3.12
        name = "python"
    module, _, function = _FUNCTION_OF.get(name, "").partition(".")
    if not module:
        return None
    family = __import__(f"fusewire.guard.programs.{module}", fromlist=[function])
    program: Program = getattr(family, function)
    return program

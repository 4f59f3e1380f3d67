"""What programs do to the paths that they are given: one family a file, one function a program.

A module is imported when a line runs one of its programs, so that a line of `ls` and `pytest` pays for none of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Program

#: module -> its programs
_FAMILIES = {
    "files": (
        "rm rmdir unlink shred srm trash trash-put rimraf del-cli mv cp install ln link truncate dd tee sponge"
        " touch chmod chown chgrp mkdir mkfifo sort shuf uniq mktemp flock"
    ),
    "listing": "ls dir pwd realpath readlink which cat busybox toybox",
    "find": "find",
    "xargs": "xargs",
    "archives": "tar bsdtar unzip zip gzip gunzip bzip2 bunzip2 xz unxz zstd",
    "rsync": "rsync",
    "patches": "patch",
    "git": "git",
    "code": "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua awk gawk mawk nawk",
    "editors": "sed gsed ed ex vi vim nvim",
    "recipes": "make gmake npm pnpm yarn",
}

_MODULE_OF = {name: module for module, names in _FAMILIES.items() for name in names.split()}


def program_named(name: str) -> Program | None:
    """The function that knows a program; None if there is none."""
    module = _MODULE_OF.get(name)
    if module is None:
        if name.startswith("git-"):  # git-checkout, as it is in git's own folder
            module, name = "git", "git"
        elif name.startswith("python"):  # python3.12
            module, name = "code", "python"
        else:
            return None
    family = __import__(f"fusewire.guard.programs.{module}", fromlist=["PROGRAMS"])
    program: Program | None = family.PROGRAMS.get(name)
    return program

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
        "rm rmdir unlink shred srm wipe trash trash-put mv rename prename cp install ln link truncate dd tee sponge"
        " touch chmod chown chgrp chattr setfacl setfattr mkdir mkfifo mknod split csplit sort shuf uniq"
        " mktemp pwd realpath readlink which ls dir busybox toybox"
    ),
    "search": "find fd fdfind grep egrep fgrep rg xargs parallel",
    "archives": "tar bsdtar unzip zip gzip gunzip bzip2 bunzip2 xz unxz zstd cpio ar 7z 7za pigz lzma unlzma"
    " unzstd lz4 rsync patch curl wget",
    "git": "git",
    "code": (
        "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua awk gawk mawk nawk sed gsed ed ex vi"
        " vim nvim view make gmake"
    ),
    "formatters": (
        "prettier black isort autopep8 yapf clang-format gofmt goimports rustfmt mdformat markdownlint"
        " markdownlint-cli2 dos2unix unix2dos yq sd rpl eslint ruff biome gcc cc g++ c++ clang ld pandoc iconv openssl"
        " at batch watch tmux screen su"
    ),
}

_MODULE_OF = {name: module for module, names in _FAMILIES.items() for name in names.split()}


def program_named(name: str) -> Program | None:
    """The function that knows a program; None if nobody does."""
    module = _MODULE_OF.get(name)
    if module is None:
        if not name.startswith("python"):  # python3.12
            return None
        module, name = "code", "python"
    family = __import__(f"fusewire.guard.programs.{module}", fromlist=["PROGRAMS"])
    program: Program | None = family.PROGRAMS.get(name)
    return program

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
        "rm rmdir unlink shred srm wipe trash trash-put rimraf del-cli "
        "mv rename prename cp install ln link truncate dd tee sponge"
        " touch chmod chown chgrp chattr setfacl setfattr mkdir mkfifo mknod sort shuf uniq"
        " mktemp pwd realpath readlink which ls dir busybox toybox"
    ),
    "find": "find",
    "fd": "fd fdfind",
    "grep": "grep egrep fgrep rg",
    "xargs": "xargs parallel",
    "texts": (
        "column comm cut du expand expr file fold gzcat jq nl paste pr printenv stat unexpand wc zcat"
        " md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum"
    ),
    "archives": "unzip zip zipsplit gzip gunzip bzip2 bunzip2 xz unxz zstd cpio ar 7z 7za pigz lzma unlzma unzstd lz4",
    "tar": "tar bsdtar",
    "rsync": "rsync",
    "patches": "patch",
    "downloads": "curl wget",
    "git": "git",
    "code": "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua pytest py.test",
    "editors": "awk gawk mawk nawk sed gsed ed ex vi vim nvim view",
    "make": "make gmake",
    "formatters": (
        "prettier black isort autopep8 yapf clang-format gofmt goimports rustfmt mdformat markdownlint"
        " markdownlint-cli2 dos2unix unix2dos yq sd rpl eslint ruff biome pandoc iconv openssl"
        " at batch watch tmux screen su"
    ),
    "tools": (
        "strace ltrace time split csplit gpg gpg2 capsh envsubst fallocate flock history lckdo lockf logsave ptx"
        " rename.ul savelog setlock script ssh-keygen utmpdump xxd"
    ),
    "builds": (
        "gcc cc g++ c++ clang clang++ ld as cmake gdb objcopy strip ctags etags cscope"
        " tclsh wish expect emacs guile m4 Rscript julia groovy swipl"
    ),
    "packages": "npm pnpm yarn pip pip3 docker podman cargo go tsc",
    "sqlite": "sqlite3",
}

#: Programs that turn text into text, and files into text about them.
ONLY_PRINT = frozenset(_FAMILIES["texts"].split())

_MODULE_OF = {name: module for module, names in _FAMILIES.items() for name in names.split()}


def program_named(name: str) -> Program | None:
    """The function that knows a program; None if nobody does."""
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

"""Programs that change no file, whatever their words are: the one table for the guard, the hook and the detectors."""

from __future__ import annotations

LOOKING = frozenset(
    (
        "[ basename cat cd cksum cmp comm cut df diff dir dirname du echo egrep expr false fgrep file fold free grep"
        " head hexdump hostname id jq join less ls md5sum more nl nproc od paste printenv printf ps pwd readlink"
        " realpath sha1sum sha256sum sleep stat strings tac tail test top tr true type uname uptime wc which whoami"
    ).split()
)

#: Subcommands of git that leave the files of the project as they are.
GIT_LOOKING = frozenset("add blame branch describe diff grep log ls-files rev-parse shortlog show status tag".split())

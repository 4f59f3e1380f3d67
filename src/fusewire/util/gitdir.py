"""Find a repository, and build a private git directory that stands in for it.

Git obeys what a repository's own directory says: filters, hooks, monitors, helpers, aliases. So git is never shown that
directory. For each call it gets one of ours, which is gone afterwards: its configuration has nothing but plain values
from an allow-list, and links lead to the objects, refs, logs and patterns of the repository. Attributes are read as
they are: they choose among drivers that a configuration defines, and ours defines none.
"""

from __future__ import annotations

import os
import stat

from fusewire.util.gitconfig import config_home, expand_home, persons_settings, read_small, settings_of
from fusewire.util.programs import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.util.gitconfig import Settings

#: Values that say how files are compared and named, and can neither run nor write anything.
_COPIED = frozenset(
    (
        *("core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.trustctime"),
        *("core.checkstat", "core.autocrlf", "core.eol", "core.sparsecheckout", "core.sparsecheckoutcone"),
        *("core.protecthfs", "core.protectntfs", "core.untrackedcache", "core.splitindex"),
        *("core.sharedrepository", "core.excludesfile", "core.attributesfile", "core.abbrev", "index.sparse"),
        *("extensions.objectformat", "extensions.refstorage"),
    )
)
_COPIED_ENDINGS = {"branch.": (".merge", ".remote"), "remote.": (".url", ".fetch")}

#: For every call, after what was copied.
_ALWAYS = {
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.quotepath": "false",
    "core.safecrlf": "false",
    "diff.autorefreshindex": "false",
    "gc.autodetach": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}

#: What is looked up by name in the directory of a worktree, and in the one that all worktrees share.
_OF_WORKTREE = (
    *("logs", "refs", "ORIG_HEAD", "MERGE_HEAD", "FETCH_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
    *("BISECT_HEAD", "AUTO_MERGE", "rebase-merge", "rebase-apply", "BISECT_LOG", "BISECT_START", "sequencer"),
)
_OF_ALL = ("logs", "refs", "packed-refs", "reftable", "shallow", "worktrees")
_INFO = ("exclude", "attributes", "sparse-checkout")

#: How private directories are named, and the seconds after which one was left by a process that was killed.
PREFIX = "fusewire-git-"
_LEFT = 3600

_NO_HEAD = b"ref: refs/heads/none\n"


class GitDir:
    """A repository as git is shown it; whatever is not given is looked up in its own directory."""

    def __init__(self, folder: str, top: str, settings: Settings, common: str = "") -> None:
        #: its git directory, and the one that its worktrees share
        self.folder = folder
        self.common = common or folder
        #: its working tree; empty if it has none
        self.top = top
        #: everything that its configuration says, as data
        self.settings = settings
        self.index = f"{folder}/index"
        self.objects = f"{self.common}/objects"
        #: instead of those in its directory
        self.info: dict[str, bytes] = {}

    @property
    def format(self) -> str:
        return self.settings.get("extensions.objectformat", "sha1").lower()

    def config(self) -> str:
        copied = {name: value for name, value in self.settings.items() if _is_copied(name)}
        home = f"{config_home()}/git"
        for name, usual in (("core.excludesfile", "ignore"), ("core.attributesfile", "attributes")):
            copied[name] = expand_home(copied.get(name, f"{home}/{usual}"))
        newer = any(name.startswith("extensions.") for name in copied)
        made = {"core.repositoryformatversion": str(int(newer)), "core.bare": "false" if self.top else "true"}
        return "".join(map(_written, (made | copied | _ALWAYS).items()))

    def build(self, base: str) -> str:
        """Make the private directory in a folder of ours; its path."""
        shared = own = f"{base}/.git"
        os.mkdir(shared, 0o700)
        os.mkdir(f"{shared}/info", 0o700)
        if self.common != self.folder:
            own = f"{base}/worktree"
            os.mkdir(own, 0o700)
            _write(f"{own}/commondir", b"../.git\n")
            _write(f"{shared}/HEAD", _NO_HEAD)
        _write(f"{shared}/config", self.config().encode("utf-8", "surrogateescape"))
        _write(f"{own}/HEAD", _head(self.folder) or _NO_HEAD)
        names = _OF_ALL if own != shared else dict.fromkeys((*_OF_ALL, *_OF_WORKTREE))
        _link(self.common, shared, names)
        _link(f"{self.common}/info", f"{shared}/info", [name for name in _INFO if name not in self.info])
        for name, content in self.info.items():
            _write(f"{shared}/info/{name}", content)
        if own != shared:
            _link(self.folder, own, _OF_WORKTREE)
        shared_index = [name for name in _listed(self.folder) if name.startswith("sharedindex.")]
        _link(self.folder, own, shared_index)
        return own

    def restored(self, text: bytes, base: str) -> bytes:
        """What git printed, with the repository's own directory in place of the private one."""
        start = os.fsencode(base)
        if start not in text:
            return text
        text = text.replace(start + b"/worktree", os.fsencode(self.folder))
        if self.common.endswith("/.git"):
            return text.replace(start, os.fsencode(self.common[:-5]))
        return text.replace(start + b"/.git", os.fsencode(self.common))


def find(top: str) -> GitDir | None:
    """The repository whose working tree begins at a folder; None if there is none."""
    folder = resolve(f"{top.rstrip('/')}/.git")
    return _opened(folder, top, {}) if folder else None


def choose(folder: str, git_dir: str, work_tree: str, settings: Settings) -> GitDir | None:
    """The repository that git would use in a folder, by its own rules, with settings of the line on top."""
    top = os.path.realpath(folder)
    if git_dir:
        chosen = resolve(git_dir)
    else:
        while not (chosen := resolve(f"{top.rstrip('/')}/.git")):
            if is_git_dir(top):
                chosen, top = top, ""
                break
            if top == "/":
                break
            top = os.path.dirname(top)
    if not chosen:
        return None
    found = _opened(chosen, top, settings)
    named = work_tree or (found.settings.get("core.worktree", "") if found.folder == found.common else "")
    if named:
        found.top = os.path.realpath(os.path.join(found.folder, named))
    return found


def _opened(folder: str, top: str, more: Settings) -> GitDir:
    common = common_of(folder)
    settings = settings_of(folder, common) | more
    bare = folder == common and settings.get("core.bare", "").lower() in ("true", "yes", "on", "1")
    return GitDir(folder, "" if bare else top, settings, common)


def persons_excludes() -> Settings:
    """For a folder that is in no repository: the patterns that the person never wants to see."""
    return {name: value for name, value in persons_settings().items() if name == "core.excludesfile"}


def resolve(path: str) -> str:
    """The git directory that a path is, or that a file there names; empty if there is none."""
    if os.path.isdir(path):
        folder = os.path.realpath(path)
    else:
        text = os.fsdecode(read_small(path, 8192))
        if not text.startswith("gitdir: "):
            return ""
        folder = os.path.realpath(os.path.join(os.path.dirname(path), text[8:].rstrip("\r\n")))
    return folder if is_git_dir(folder) else ""


def is_git_dir(folder: str) -> bool:
    common = common_of(folder)
    return bool(_head(folder)) and os.path.isdir(f"{common}/objects") and os.path.isdir(f"{common}/refs")


def make_git_dir(folder: str) -> None:
    """Start an empty repository in a folder of ours, without templates and hooks."""
    for name in ("", "objects", "refs", "refs/heads", "info"):
        os.mkdir(f"{folder}/.git/{name}")
    _write(f"{folder}/.git/config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    _write(f"{folder}/.git/HEAD", b"ref: refs/heads/main\n")


def private_place(project: str) -> str:
    """A folder for private directories that git does not see as a part of the project."""
    for place in _places():
        if os.access(place, os.W_OK | os.X_OK) and not is_inside(os.path.realpath(place), project):
            return place
    return "/tmp"


def _places() -> list[str]:
    # in memory first: the names cost 0.2 ms there, and 15 ms on a busy disk
    wanted = (os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm", os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp")
    return [place for place in wanted if place[:1] == "/"]


def sweep(now: float) -> None:
    """Remove what processes that were killed have left: none needs its private directory for long."""
    for place in _places():
        for path in (f"{place}/{name}" for name in _listed(place) if name.startswith(PREFIX)):
            try:
                facts = os.lstat(path)
            except OSError:
                continue
            if facts.st_uid == os.geteuid() and now - facts.st_mtime > _LEFT:
                remove(path)


def remove(folder: str) -> None:
    """Remove a private directory; what is left of it if that fails leads nowhere."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        pass


def common_of(folder: str) -> str:
    """The directory that the worktrees of a repository share; the same one if it has no others."""
    text = os.fsdecode(read_small(f"{folder}/commondir", 8192)).rstrip("\r\n")
    return os.path.realpath(os.path.join(folder, text)) if text else folder


def _head(folder: str) -> bytes:
    """HEAD as git would accept it; empty if it would not."""
    path = f"{folder}/HEAD"
    try:
        link = os.readlink(path)
    except OSError:
        head = read_small(path, 4096)
    else:
        head = b"ref: " + os.fsencode(link) + b"\n"
    if head.startswith(b"ref:"):
        return head if head[4:].lstrip().startswith(b"refs/") else b""
    text = head.strip()
    return head if len(text) in (40, 64) and not text.strip(b"0123456789abcdef") else b""


def _is_copied(name: str) -> bool:
    section = name.partition(".")[0] + "."
    return name in _COPIED or name.endswith(_COPIED_ENDINGS.get(section, "\0"))


def _written(setting: tuple[str, str]) -> str:
    name, value = setting
    section, _, rest = name.partition(".")
    middle, dot, key = rest.rpartition(".")
    if "\n" in name or "\0" in name + value:
        return ""
    head = f'[{section} "{_escaped(middle)}"]' if dot else f"[{section}]"
    return f'{head}\n\t{key} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(source: str, target: str, names: Iterable[str]) -> None:
    """Link what is there; refs may also be packed for the first time by this very call."""
    for name in names:
        if name == "packed-refs" or os.path.lexists(f"{source}/{name}"):
            os.symlink(f"{source}/{name}", f"{target}/{name}")


def _write(path: str, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)


def top_above(root: str) -> str | None:
    """The top of the repository that a folder lies in."""
    folder = root
    while not is_top(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def is_top(folder: str) -> bool:
    """A folder `.git` without HEAD is no repository to git, and so none to us."""
    inside = os.path.join(folder, ".git")
    try:
        if stat.S_ISREG(os.stat(inside).st_mode):
            with open(inside, "rb") as file:
                return file.read(8) == b"gitdir: "
        return os.path.lexists(os.path.join(inside, "HEAD"))
    except OSError:
        return False

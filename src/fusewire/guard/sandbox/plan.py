"""Plan what must be mounted for the protected paths of a project."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX

from fusewire.guard.known_agents import KNOWN_AGENTS
from fusewire.guard.protected import CONFIGURATION
from fusewire.guard.sandbox.namespaces import MountPlan as MountPlan
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.protected import Protected

#: Entries of folders that are looked at to expand the patterns of one project, and paths that they may stand for.
_MOST_ENTRIES = 20_000
_MOST_PATHS = 500

#: What a git directory may hold read-only; git itself writes the rest of it with every commit.
_OF_GIT = ("hooks", "config", "info")

#: Where an agent reads its settings in a project, and how to tell that this person uses that agent. A folder that does
#: not exist could be created with settings in it.
_SETTINGS_FOLDERS = tuple(
    (agent.project_folder, agent.home_variable, agent.home) for agent in KNOWN_AGENTS if agent.project_folder
)


def plan(protected: Protected, *, documents: bool, writable: tuple[str, ...] = ()) -> MountPlan:
    """What to mount so that configuration, and with `documents` everything protected, is read-only.

    What is in `writable` (absolute) stays writable, also inside a folder that is not.
    """
    warnings: list[str] = []
    scanned: list[str] = []
    wanted = {place: documents or kind == CONFIGURATION for place, kind in protected.places.items()}
    for base, pattern, kind in protected.patterns:
        for path in _expand(base, pattern, warnings, scanned):
            if protected.kind_of(path) is not None:
                wanted.setdefault(path, documents or kind == CONFIGURATION)
    for pattern in protected.ignored:
        folder = pattern.removesuffix("/**")
        path = os.path.normpath(os.path.join(protected.root, os.path.expanduser(folder)))
        if not any(mark in folder for mark in "*?["):
            if protected.kind_of(f"{path}/any" if folder != pattern else path) is None:
                wanted[path] = False
        else:
            warnings.append(f"{pattern} is ignored, but inside of a protected folder it is read-only")
    for path in writable:
        wanted[os.path.realpath(path)] = False
    links = [link for folder, real in protected._folders.items() if folder != real for link in _links_in(folder)]
    return _plan(protected.root, wanted, links, warnings, scanned)


def _links_in(folder: str) -> Iterator[str]:
    """The links on the way to a folder: who replaces one leads to another folder."""
    while folder != "/":
        if os.path.islink(folder):
            yield os.path.join(os.path.realpath(os.path.dirname(folder)), os.path.basename(folder))
        folder = os.path.dirname(folder)


def _plan(root: str, wanted: dict[str, bool], links: list[str], warnings: list[str], scanned: list[str]) -> MountPlan:
    mounts: list[tuple[str, bool]] = []
    absent: list[str] = []
    looked_at = sorted(wanted, key=lambda path: path.split("/")) + links
    missing = _missing_folders(root, looked_at)
    around: list[tuple[str, bool]] = []
    for path in sorted(wanted, key=lambda path: path.split("/")):
        if path in missing or any(path.startswith(f"{folder}/") for folder in missing):
            continue
        while around and not path.startswith(f"{around[-1][0]}/"):
            around.pop()
        is_read_only = wanted[path]
        if is_read_only == (around[-1][1] if around else False) or not _is_fit(path):
            continue
        try:
            facts = os.lstat(path)
        except OSError:
            if is_read_only and not (absent and path.startswith(f"{absent[-1]}/")):
                absent.append(path)
            continue
        if S_ISLNK(facts.st_mode):
            links += [path] if is_read_only else []
        elif S_ISDIR(facts.st_mode) or S_ISREG(facts.st_mode):
            if is_read_only and not around and _is_out_of_reach(path, facts):
                continue
            if is_read_only and facts.st_nlink > 1 and S_ISREG(facts.st_mode):
                warnings.append(f"{path} has {facts.st_nlink} names (hard links): under the others it can be changed")
            mounts.append((path, is_read_only))
            around.append(mounts[-1])
    links = [link for link in dict.fromkeys(links) if _may_rename(link)]
    pins = _pins([path for path, is_read_only in mounts if is_read_only] + links + missing)
    points = {path for path, _ in mounts}
    kept = [path for path in pins if path not in points]
    made = MountPlan(root, tuple(mounts), (*kept, *links), tuple(missing), tuple(absent), tuple(warnings))
    made.looked_at, made.scanned = looked_at, scanned
    return made


def _is_fit(path: str) -> bool:
    """Whether it can be read-only without breaking git."""
    inside = path.partition("/.git/")[2]
    return not inside or inside.split("/")[0] in _OF_GIT


def _missing_folders(root: str, looked_at: list[str]) -> list[str]:
    """Settings folders that do not exist, or only as what an earlier command put there and could not remove."""
    missing = []
    for name, variable, usual in _SETTINGS_FOLDERS:
        path = os.path.join(root, name)
        looked_at.append(path)
        try:
            if not os.lstat(path).st_mode & S_ISVTX or os.listdir(path):
                continue
        except FileNotFoundError:
            pass
        except OSError:
            continue
        home = os.environ.get(variable) or os.path.expanduser(usual)
        looked_at.append(home)
        if os.path.isdir(home):
            missing.append(path)
    return missing


def _is_out_of_reach(path: str, facts: os.stat_result) -> bool:
    """Whether this user can neither write nor replace it anyway."""
    user = os.geteuid()
    return bool(user) and user != facts.st_uid and not os.access(path, os.W_OK) and not _may_rename(path)


def _may_rename(path: str) -> bool:
    folder = os.path.dirname(path)
    try:
        return os.stat(folder).st_uid == os.geteuid() or os.access(folder, os.W_OK)
    except OSError:
        return False


def _pins(paths: list[str]) -> list[str]:
    """The folders above these paths that this user could rename."""
    seen: dict[str, bool] = {}
    for path in paths:
        folder = os.path.dirname(path)
        while folder != "/" and folder not in seen:
            seen[folder] = _may_rename(folder)
            folder = os.path.dirname(folder)
    return [folder for folder, is_movable in seen.items() if is_movable]


def _expand(base: str, pattern: str, warnings: list[str], scanned: list[str]) -> Iterator[str]:
    """The existing paths that a pattern below a folder stands for; what is in a folder that fits is not listed."""
    parts = [part for part in pattern.split("/") if part]
    waiting = [(base, 0)]
    looked_at = found = 0
    while waiting:
        folder, at = waiting.pop()
        scanned.append(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        looked_at += len(entries)
        is_deep = parts[at] == "**"
        for entry in entries:
            if looked_at > _MOST_ENTRIES or found == _MOST_PATHS:
                warnings.append(f"{pattern} stands for more files than can be read-only; some of them are writable")
                return
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_deep and is_folder and entry.name != ".git":
                waiting.append((entry.path, at))
            own = at + 1 if is_deep and at + 1 < len(parts) else at
            if not matches(entry.name, parts[own]):
                continue
            if own == len(parts) - 1:
                found += 1
                yield entry.path
            elif is_folder:
                waiting.append((entry.path, own + 1))


def hard_links(plan: MountPlan) -> tuple[list[str], bool]:
    """Files of the project that are read-only under this name and not under another; whether there are too many."""
    waiting = [path for path in plan.read_only() if path.startswith(f"{plan.root}/")]
    found: list[str] = []
    looked_at = 0
    while waiting and looked_at < _MOST_ENTRIES:
        path = waiting.pop()
        looked_at += 1
        try:
            facts = os.lstat(path)
            if S_ISDIR(facts.st_mode):
                waiting += [entry.path for entry in os.scandir(path)]
            elif S_ISREG(facts.st_mode) and facts.st_nlink > 1:
                found.append(path)
        except OSError:
            continue
    return sorted(found), bool(waiting)

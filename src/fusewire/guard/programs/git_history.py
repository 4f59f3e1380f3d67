"""The git commands that bring changes of others into the working tree: merges, rebases, picks and patches."""

from __future__ import annotations

import os

from fusewire.guard.effects import DELETE, WRITE
from fusewire.guard.programs.git_state import MOST
from fusewire.guard.programs.git_tree import merge_reset, moved_to, refused, report
from fusewire.guard.programs.git_words import Words, quoted, unquoted
from fusewire.shell.values import REST, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call
    from fusewire.guard.programs.git_state import Changes, Repo

    Command = Callable[[Call, Repo, list[str]], None]

#: Commits of one cherry-pick that are looked at.
_PICKED = 200

_ENDS = ("abort", "quit", "continue", "skip", "edit-todo", "show-current-patch")


def _ends(call: Call, repo: Repo, options: Words) -> bool:
    """Whether this is about something that was begun before; giving it up puts files back."""
    if options.has("abort"):
        begun = _read(f"{repo.git_dir}/rebase-merge/orig-head") or _read(f"{repo.git_dir}/rebase-apply/orig-head")
        target = repo.revision(begun or "HEAD")
        under_way = begun or any(
            os.path.exists(f"{repo.git_dir}/{name}")
            for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer", "rebase-apply")
        )
        if target is not None and under_way:
            if begun:
                report(call, repo, repo.against(target) or [])
            else:
                merge_reset(call, repo, target)
    return options.has(*_ENDS)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return None


# -- merge, pull, rebase ----------------------------------------------------------------------------------------

_MERGE = (
    "message= file= strategy= strategy-option= abort quit continue ff ff-only no-ff squash commit no-commit edit"
    " no-edit allow-unrelated-histories autostash no-autostash into-name= log? gpg-sign? cleanup= stat rebase? quiet"
    " upload-pack= depth= jobs= force tags prune unshallow"
)


def _merge(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "mFsX", _MERGE, "S")
    if _ends(call, repo, options) or options.value("s", "strategy") == "ours":
        return
    for name in options.operands or ["@{upstream}"]:
        target = repo.revision(name)
        if target is not None:
            _merged(call, repo, target, stops=not options.has("autostash"))


def _merged(call: Call, repo: Repo, target: str, *, stops: bool = True, objects: str = "") -> None:
    """The files that somebody else has changed since both had the same."""
    head = repo.head
    if head is None:
        return
    base = (repo.ask("merge-base", head, target, objects=objects) or "").strip()
    changes = repo.between(target, base or head, objects=objects) or []
    same = {name for _, name in repo.between(target, head, objects=objects) or []}
    changes = [change for change in changes if change[1] in same]
    if changes and not (stops and refused(repo, changes)):
        report(call, repo, changes)


def _pull(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "sXjo", f"{_MERGE} server-option=", "Sr")
    target, objects = _fetched(repo, options.operands)
    if target:
        _merged(call, repo, target, stops=not options.has("autostash"), objects=objects)


def _fetched(repo: Repo, operands: list[str]) -> tuple[str, str]:
    """The commit that would come, as far as it is known here, and where its objects are if not here."""
    remote = operands[0] if operands else _remote(repo)
    branch = operands[1].partition(":")[0].lstrip("+") if len(operands) > 1 else ""
    if remote == ".":
        return repo.revision(branch or "@{upstream}") or "", ""
    place = remote if "/" in remote else repo.configured(f"remote.{remote}.url")
    merges = repo.configured(f"branch.{_branch(repo)}.merge")
    found, objects = _elsewhere(repo, place.removeprefix("file://"), branch or merges or "HEAD")
    if found:
        return found, objects
    known = f"refs/remotes/{remote}/{branch}" if branch else "@{upstream}"
    return repo.revision(known) or "", ""


def _branch(repo: Repo) -> str:
    return (repo.ask("symbolic-ref", "-q", "--short", "HEAD") or "").strip()


def _remote(repo: Repo) -> str:
    return repo.configured(f"branch.{_branch(repo)}.remote") or "origin"


def _elsewhere(repo: Repo, place: str, branch: str) -> tuple[str, str]:
    """A commit of another repository on this disk."""
    from fusewire.util.gitdir import resolve

    path = repo.path(place) if place else ""
    if not path or UNKNOWN in path or not os.path.isdir(path):
        return "", ""
    folder = resolve(path) or resolve(f"{path}/.git")
    found = repo.ask("rev-parse", "--verify", "-q", branch + "^{commit}", at=folder) if folder else None
    return (found.strip(), f"{folder}/objects") if found else ("", "")


_REBASE = (
    "exec= onto= interactive abort quit continue skip edit-todo show-current-patch autostash no-autostash keep-base"
    " root strategy= strategy-option= merge autosquash no-autosquash update-refs quiet apply empty= rebase-merges?"
)


def _rebase(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "xsXC", _REBASE, "Sr")
    for text in options.all("x", "exec"):
        call.script(text, cwd=repo.top or repo.folder)
    if _ends(call, repo, options):
        return
    names = options.operands
    if len(names) > 1:
        branch = repo.revision(names[1])
        if branch is not None:
            moved_to(call, repo, branch)
    upstream, head = repo.revision(names[0] if names else "@{upstream}"), repo.head
    if upstream is None or head is None:
        return
    base = (repo.ask("merge-base", upstream, head) or "").strip() or upstream
    onto = repo.revision(options.value("onto") or "") or (base if options.has("keep-base") else upstream)
    changes = repo.between(onto, base) or []
    if options.has("i", "interactive") and _edits_plan(call, repo):
        changes += repo.between(base, head) or []  # a commit may be left out
    if changes and repo.untouched and repo.against(head) and not options.has("autostash"):
        return  # git refuses
    report(call, repo, changes)


def _edits_plan(call: Call, repo: Repo) -> bool:
    text = call.world.variables.get("GIT_SEQUENCE_EDITOR") or repo.setting("sequence.editor") or ""
    text = text or call.world.variables.get("GIT_EDITOR") or repo.setting("core.editor") or ""
    return bool(text) and text not in ("true", ":", "cat", "/bin/true")


# -- cherry-pick and revert -------------------------------------------------------------------------------------


def _pick(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(
        args, "msX", "mainline= strategy= strategy-option= abort quit continue skip edit no-commit cleanup=", "S"
    )
    if _ends(call, repo, options) or not options.operands:
        return
    commits = (repo.ask("rev-list", "--no-walk", *options.operands, "--") or "").split()[:_PICKED]
    parent = options.value("m", "mainline") or "1"
    reverts = repo.command == "revert"
    changes: Changes = []
    for commit in commits:
        changes += _own(repo, commit, parent, reverts, alone=len(commits) == 1)
    if changes and not refused(repo, changes):
        report(call, repo, changes)


def _own(repo: Repo, commit: str, parent: str, reverts: bool, *, alone: bool) -> Changes:
    """What one commit has changed; without what is so already."""
    before = repo.revision(f"{commit}^{parent}")
    if before is None:
        names = repo.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit) or []
        return [("A" if reverts else "D", name) for name in names]
    target, base = (before, commit) if reverts else (commit, before)
    changes = repo.between(target, base) or []
    if not alone:
        return changes
    differing = {name for _, name in repo.between(target, repo.head or "HEAD") or []}
    return [change for change in changes if change[1] in differing]


# -- patches ----------------------------------------------------------------------------------------------------

_APPLY = (
    "check stat numstat summary apply cached index reverse directory= include= exclude= 3way reject"
    " build-fake-ancestor= whitespace= abort quit continue skip show-current-patch? resolved signoff keep"
    " patch-format="
)


def _apply(call: Call, repo: Repo, args: list[str]) -> None:
    options = Words(args, "pC", _APPLY)
    shows = options.has("check", "stat", "numstat", "summary") and not options.has("apply")
    if shows or options.has("cached") or _ends(call, repo, options):
        return
    strip = options.value("p") or "1"
    folder = (options.value("directory") or "").strip("/")
    for place in options.named or ["-"]:
        text = call.world.stdin if place == "-" else _patch_text(call, repo.path(place))
        if text is None or UNKNOWN in text:
            call.effect(WRITE, f"{repo.top or repo.folder}/{UNKNOWN}", rule=repo.rule)
        steps = int(strip) if strip.isdigit() else 1
        for kind, name, from_top in patched(text or "", steps, options.has("R", "reverse")):
            base = (repo.top or repo.folder) if from_top or folder or repo.command == "am" else repo.folder
            path = "/".join(part for part in (base, folder, name) if part)
            if repo.command == "am" or not from_top or _is_below(path, repo):
                call.effect(kind, path, follows=False, rule=repo.rule)


def _is_below(path: str, repo: Repo) -> bool:
    """In a folder of the repository, `git apply` passes over what is outside of it."""
    here = os.path.realpath(repo.folder)
    return not here.startswith(f"{repo.top}/") or path.startswith(here + "/")


def _patch_text(call: Call, path: str) -> str | None:
    text = call.walk.read_file(path)
    if text is not None or UNKNOWN in path:
        return text
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(8 * 1024 * 1024)
    except (OSError, ValueError):
        return None if os.path.isdir(path) else ""


def patched(text: str, strip: int = 1, reverse: bool = False) -> list[tuple[str, str, bool]]:
    """(kind, name, whether it is seen from the top) of all files that a patch changes."""
    found: dict[tuple[str, str, bool], None] = {}
    old, header, from_top, left = "", "", False, [0, 0]
    for line in text.split("\n"):
        if left[0] > 0 or left[1] > 0:  # inside of a hunk
            left[0] -= line[:1] in (" ", "-", "")
            left[1] -= line[:1] in (" ", "+", "")
            continue
        if line.startswith("@@ "):
            left = _hunk(line)
        elif line.startswith("diff --git "):
            from_top = True
        elif line.startswith("--- "):
            old = _stripped(line[4:], strip)
        elif line.startswith("+++ "):
            new = _stripped(line[4:], strip)
            if reverse:
                old, new = new, old
            found[(WRITE, new, from_top) if new else (DELETE, old, from_top)] = None
            if old and new and old != new and not from_top:
                found[WRITE, old, from_top] = None
        elif line.startswith(("rename from ", "rename to ", "copy to ")):
            goes = line.startswith("rename from ") != (reverse and line.startswith("rename "))
            found[DELETE if goes else WRITE, unquoted(line.partition(" ")[2].partition(" ")[2]), from_top] = None
        if line.startswith("diff --git "):
            header = line
        elif (
            line.startswith(("new file mode", "deleted file mode", "old mode", "GIT binary patch", "Binary files"))
            and from_top
        ):
            gone = line.startswith("new" if reverse else "deleted")
            found.setdefault((DELETE if gone else WRITE, _from_header(header, strip), from_top), None)
        if len(found) >= MOST:
            found[WRITE, REST, from_top] = None
            break
    return [one for one in found if one[1]]


def _hunk(line: str) -> list[int]:
    """How many old and new lines follow `@@ -a,b +c,d @@`."""
    counts = []
    for part in line.split(" ")[1:3]:
        _, comma, count = part.partition(",")
        counts.append(int(count) if comma and count.isdigit() else 1)
    return counts if len(counts) == 2 else [0, 0]


def _stripped(name: str, strip: int) -> str:
    """A name of a patch without its first folders; "" for no file."""
    name = unquoted(name.partition("\t")[0].rstrip("\r"))
    if name == "/dev/null":
        return ""
    return "/".join(part for part in name.split("/")[strip:] if part)


def _from_header(line: str, strip: int) -> str:
    """The name in `diff --git a/x b/x`, which is there twice."""
    rest = line[len("diff --git ") :]
    if rest[:1] == '"':
        return _stripped(rest.partition('" ')[0] + '"', strip)
    return _stripped(rest[: len(rest) // 2], strip)


# -- bisect -----------------------------------------------------------------------------------------------------


def _bisect(call: Call, repo: Repo, args: list[str]) -> None:
    """It checks out a commit between the good and the bad ones."""
    verb, rest = (args[0], args[1:]) if args else ("", [])
    names = Words(rest, "", "term-old= term-new= no-checkout first-parent").operands
    if verb == "run":
        call.script(" ".join(quoted(word) for word in rest), cwd=repo.folder)
    elif verb == "reset":
        target = repo.revision(names[0] if names else _read(f"{repo.git_dir}/BISECT_START") or "")
        if target is not None:
            moved_to(call, repo, target)
    elif verb in ("start", "good", "bad", "old", "new", "skip") and "--no-checkout" not in rest:
        _bisected(call, repo, verb, names)


def _bisected(call: Call, repo: Repo, verb: str, names: list[str]) -> None:
    refs = (repo.ask("for-each-ref", "--format=%(refname)", "refs/bisect/") or "").split() if verb != "start" else []
    bad = [ref for ref in refs if ref.endswith(("/bad", "/new"))]
    good = [ref for ref in refs if "/good-" in ref or "/old-" in ref]
    if verb == "start":
        bad, good = names[:1], names[1:]
    elif verb in ("bad", "new"):
        bad = names or ["HEAD"]
    elif verb in ("good", "old"):
        good += names or ["HEAD"]
    if not bad or not good:
        return
    between = (repo.ask("rev-list", "--bisect", *bad, "--not", *good, "--") or "").strip()
    if between:
        moved_to(call, repo, between)


COMMANDS: dict[str, Command] = {
    "am": _apply,
    "apply": _apply,
    "bisect": _bisect,
    "cherry-pick": _pick,
    "merge": _merge,
    "pull": _pull,
    "rebase": _rebase,
    "revert": _pick,
}

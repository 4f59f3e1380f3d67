"""Decide what a change of protected files means: who made it, and whether it is accepted, reported or undone.

What changed while no call of an agent ran is a person's, and becomes the baseline. What changed while one ran is looked
at: git may have moved to another version, which is the new baseline; an edit tool may update a document. A file that is
missing, emptied or replaced, and configuration that was changed, is restored and the agent is halted. A document that
was changed by something else stays, is reported with a diff, and its earlier version is kept.
"""

from __future__ import annotations

import os
import time

from fusewire.core.decision import Decision, strictest
from fusewire.guard import calls
from fusewire.guard.allowed_changes import brought_by_git, content_of, in_progress, is_granted
from fusewire.guard.baseline import rules_key, signature
from fusewire.guard.integrity import Integrity
from fusewire.guard.manifest import is_below, lstat
from fusewire.guard.policy import AGENT_SETTINGS
from fusewire.guard.protected import CONFIGURATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fusewire.config.rules import Rules
    from fusewire.guard.calls import NotedCall
    from fusewire.guard.manifest_transaction import ManifestTransaction, RestoredFile
    from fusewire.guard.protected import Protected

#: Seconds for recording what is new or was changed; the rest waits for the next call. The hook has ten.
_PATIENCE = 3.0

#: Paths that a message names, and lines of a diff that it shows.
_NAMED = 8
_DIFF_LINES = 12

#: Seconds in which a file that an editor is replacing is complete again.
_SETTLES = 0.25

#: What a loop around the agent writes all the time; only its loss is a finding.
_LOOP_STATE = ".ralph/"

#: Settings to which an agent itself adds what a person has permitted for ever.
_PERMISSIONS = (".claude/settings.json", ".claude/settings.local.json")

#: The rule of everything that is found here.
RULE = calls.INTEGRITY

_LOSSES = ("missing", "emptied", "type")
_WORDS = {
    "missing": "is gone",
    "emptied": "was emptied",
    "type": "was replaced by something else",
    "mode": "got another mode",
    "new": "was added",
}


class IntegrityCheck:
    """The protected files of one project."""

    def __init__(self, protected: Protected, rules: Rules | None = None) -> None:
        self.protected = protected
        self.root = protected.root
        key = rules_key(rules) if rules is not None else ""
        self.integrity = Integrity(
            self.root, protected.entries, lambda: protected.places, key, anywhere=bool(protected.patterns)
        )

    # -- moments ------------------------------------------------------------------------------------------

    def renew(self, now: float) -> Decision | None:
        """Before a call, at a prompt, at the start or end of a session: what has changed is a person's.

        It is not if it was still to be looked at, or was lost while a background command of an agent ran: then it is
        judged as by `after`. Nothing is renewed while a call is running.
        """
        folder = calls.folder_of(self.root, make=True)
        with self.integrity.transact(_PATIENCE) as work:
            if calls.running(folder, now):
                return None
            kinds = work.compare()
            jobs = calls.running(folder, now, "job")
            looked = {
                name: kind
                for name, kind in kinds.items()
                if name in work.manifest.pending or (jobs and kind in _LOSSES and name[-1] != "/")
            }
            work.accept(now, kinds.keys() - looked.keys(), theirs=True)
            cause = next((job.text for job in jobs), "an earlier call")
            return self._judge(work, looked, jobs, cause, now)

    def after(
        self,
        cause: str,
        now: float,
        *,
        windows: Collection[NotedCall] = (),
        permitted: Iterable[str] = (),
        took: float | None = None,
    ) -> Decision | None:
        """After a call: halt or tell; None if everything is as it should be.

        `windows` are the calls that have ended, one of which `took` so long; if all that ran could change named files
        only, everything else is a person's. `permitted` are the paths that a tool was allowed to update.
        """
        if not self.integrity.exists():
            problem = self.integrity.problem
            if not problem:
                return None
            return Decision("tell", rule=RULE, reason=f"{problem}; a new snapshot is taken before the next call")
        with self.integrity.transact(_PATIENCE) as work:
            kinds = work.compare()
            windows = [*windows, *calls.running(self.integrity.folder, now)]
            named = {self.integrity.name(path) for path in map(self._full, permitted) if _has_content(path)}
            right = {name for name, kind in kinds.items() if name in named and kind != "mode"}
            right |= {name for name in kinds if not self._in_windows(name, kinds[name], windows, took, now, work)}
            work.accept(now, right)
            looked = {name: kind for name, kind in kinds.items() if name not in right}
            return self._judge(work, looked, windows, cause, now)

    def accept(self, cause: str, now: float) -> Decision | None:
        """After a call that a person has allowed: what it changed is right. What would have been undone is logged."""
        if not self.integrity.exists():
            return None
        with self.integrity.transact(_PATIENCE) as work:
            kinds = work.compare()
            bad = [name for name, kind in kinds.items() if self._is_bad(name, kind)]
            work.manifest.pending.clear()
            work.accept(now, kinds.keys())
        reason = f"{cause[:200]} changed {', '.join(bad[:_NAMED])}, which a person allowed"
        return Decision("allow", rule=RULE, logged=(Decision("halt", rule=RULE, reason=reason),)) if bad else None

    def halt(self, session: str | None, text: str) -> None:
        """Halt a session until a person lifts it; `text` is its message."""
        calls.write(self.root, "halt", f"{session or ''}\n{text}")

    def lift(self) -> None:
        """A person has spoken, or another session has begun."""
        calls.forget(self.root, "halt")

    # -- who did it ---------------------------------------------------------------------------------------

    def _in_windows(
        self, name: str, kind: str, windows: list[NotedCall], took: float | None, now: float, work: ManifestTransaction
    ) -> bool:
        """Whether a call of an agent can have changed this."""
        if kind == "new" and (not windows or not self._is_setting(name)):
            return name in work.manifest.pending
        if name in work.manifest.writing and kind in ("changed", "emptied"):
            return False  # it was being written before the call began, or had yet to be recorded
        if name in work.manifest.pending or not windows:
            return True
        if all(one.paths is not None for one in windows):
            paths = [self._full(path) for one in windows for path in one.paths or ()]
            return is_below(name, [self.integrity.name(path) for path in (*paths, *map(os.path.realpath, paths))])
        started = min(one.start for one in windows)
        if took is None or len(windows) > 1 or now - started < took + 2:
            return True
        return self._time_of(name, kind) >= now - took - 1  # before that, the call waited for a person's permission

    def _time_of(self, name: str, kind: str) -> float:
        """When something was changed or, at the latest, removed."""
        path = self._full(name.rstrip("/"))
        if kind == "missing":
            path = os.path.dirname(path)
            while not os.path.lexists(path):
                path = os.path.dirname(path)
            return os.lstat(path).st_mtime
        return os.lstat(path).st_ctime

    def _judge(
        self, work: ManifestTransaction, kinds: dict[str, str], windows: Collection[NotedCall], cause: str, now: float
    ) -> Decision | None:
        """Restore what is to be restored, record what is right, and say both."""
        pending = work.manifest.pending
        since = min((*(one.start for one in windows), *pending.values()), default=now)
        log = 0 if pending else min((one.log for one in windows), default=0)
        pending.clear()
        if not kinds:
            return None
        before = {name: self._content(work, name) for name in kinds if name in work.files}
        right = self._brought(kinds, before, windows, since, log)
        left = {name: kind for name, kind in kinds.items() if name not in right}
        if left and in_progress(self.root):
            pending |= dict.fromkeys((name for name in left if name[0] != "/"), since)
        bad = {name: kind for name, kind in left.items() if name not in pending and self._is_bad(name, kind)}
        bad = self._settled(work, bad, since) if bad else bad
        restored = [one for one in work.bring_back(bad, now) if one.path not in pending] if bad else []
        changed = {name: kind for name, kind in left.items() if name not in bad and name not in pending}
        reported = self._report(
            {name: kind for name, kind in changed.items() if _LOOP_STATE not in name}, before, cause
        )
        work.accept(now, {*right, *changed})
        halts = any(bad[one.path] != "mode" and one.path[-1] != "/" for one in restored)
        return strictest((_report_restored(restored, bad, cause, halts), reported))

    def _brought(
        self,
        kinds: dict[str, str],
        before: dict[str, bytes | None],
        windows: Collection[NotedCall],
        since: float,
        log: int,
    ) -> set[str]:
        """What git has moved to another version, and settings to which a person's answer was added."""
        added = {name: self._now(name) for name, kind in kinds.items() if kind == "new"}
        right = brought_by_git(self.root, {**before, **added}, since, log)
        if right:
            right |= {name for name in kinds if name[-1] == "/"}  # git removes folders that become empty
        for name in kinds.keys() - right:
            content = b"" if name in added else before.get(name)
            if content is not None and kinds[name] in ("changed", "new") and name.endswith(_PERMISSIONS):
                right |= {name} if is_granted(content, self._now(name), windows) else set()
        return right

    def _is_setting(self, name: str) -> bool:
        """Whether this is where an agent's settings are, perhaps through a link."""
        for place in AGENT_SETTINGS:
            real = self.integrity.name(os.path.realpath(self._full(place)))
            if is_below(name, [real, place.rstrip("/")]):
                return True
        return False

    def _is_bad(self, name: str, kind: str) -> bool:
        """Whether a change is undone: any loss, another mode, and every change of the project's configuration."""
        if kind in _LOSSES or kind == "new":
            return True
        if name[0] == "/" or name.startswith(_LOOP_STATE):
            return False
        return kind == "mode" or self._kind(self._full(name)) == CONFIGURATION

    def _settled(self, work: ManifestTransaction, bad: dict[str, str], since: float) -> dict[str, str]:
        """Those that are still the same after a moment: an editor may be about to write what it has removed."""
        first = {name: lstat(name, work.way.root) for name in bad}
        time.sleep(_SETTLES)
        found = dict(bad)
        for name, was in first.items():
            now = lstat(name, work.way.root)
            if (now and signature(now)) != (was and signature(was)):
                del found[name]
                known = work.files.get(name)
                if known is None or now is None or known.compare(name, now, work.way.root):
                    work.manifest.pending[name] = since
        return found

    # -- words --------------------------------------------------------------------------------------------

    def _report(self, changed: dict[str, str], before: dict[str, bytes | None], cause: str) -> Decision | None:
        """Tell what was changed and stays, with a short diff of each."""
        names = sorted(changed)
        if not names:
            return None
        lines: list[str] = []
        for name in names[:_NAMED]:
            if changed[name] == "changed":
                lines += _diff(name, before.get(name), self._now(name))
        return Decision(
            "tell",
            rule=RULE,
            reason=f"{_list(names)} was changed outside of the edit tools, during: {cause[:300]}",
            evidence=tuple(lines),
            next=("if that was not intended, tell the user",),
            by_person=(
                "the change stays, and the earlier version is kept: a person can run:"
                f" fusewire guard restore {names[0]}",
            ),
        )

    def _content(self, work: ManifestTransaction, name: str) -> bytes | None:
        """The recorded content of a file, if it is kept."""
        entry = work.files.get(name)
        return (content_of(work.vault.path(entry.digest)) or b"") if entry and entry.kept else None

    def _now(self, name: str) -> bytes:
        return content_of(self._full(name)) or b""

    def _kind(self, path: str) -> str | None:
        return self.protected.kind_of(os.path.realpath(path))

    def _full(self, path: str) -> str:
        return os.path.join(self.root, path)


def _report_restored(restored: list[RestoredFile], bad: dict[str, str], cause: str, halts: bool) -> Decision | None:
    if not restored:
        return None
    names = [one.path for one in restored]
    word = (
        _WORDS.get(bad[names[0]], "was changed") if len({bad[name] for name in names}) == 1 else "was changed or lost"
    )
    if len(names) > 1:
        word = word.replace("is ", "are ", 1).replace("was ", "were ", 1)
    lines = []
    for one in restored[:_NAMED]:
        kept = f" (what was there is kept in {one.kept})" if one.kept else ""
        problem = f"could not be restored: {one.problem}" if one.problem else ""
        done = "taken away" if bad[one.path] == "new" else "restored"
        lines.append(f"{one.path}: {problem or f'{done}{kept}'}")
    return Decision(
        "halt" if halts else "tell",
        rule=RULE,
        reason=f"{_list(names)} {word} after: {cause[:300]}",
        evidence=tuple(lines),
        next=("do not do it again", "find out what in it removes or changes protected files", "ask the user"),
    )


def _diff(name: str, before: bytes | None, now: bytes) -> list[str]:
    from difflib import unified_diff

    from fusewire.util.text import visible

    if before is None or b"\0" in before + now or len(before) + len(now) > 1 << 20:
        return []
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, now))
    lines = [str(visible(line[:200])) for line in unified_diff(old, new, name, name, lineterm="", n=1)][2:]
    more = [f"... and {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    return [f"{name}:", *lines[:_DIFF_LINES], *more]


def _has_content(path: str) -> bool:
    """A file that is gone or empty was not updated, whatever tool claims to have done it."""
    try:
        return os.path.isfile(path) and os.stat(path).st_size > 0
    except OSError:
        return False


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

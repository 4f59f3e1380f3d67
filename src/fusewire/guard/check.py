"""Judge a command line: may it run, which protected paths would it change, and what could be done instead."""

from __future__ import annotations

import os

from fusewire.core.decision import Decision
from fusewire.core.events import Noun
from fusewire.guard.disk import MOST, Disk
from fusewire.guard.effects import DELETE, LINK, MODE, MOVE, PERMIT, READ, WRITE, Effects
from fusewire.guard.protected import CONFIGURATION, DOCUMENT
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import TAINT, UNKNOWN, deactivated
from fusewire.guard.shell.walk import TooMuch, Walk
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fusewire.guard.effects import Effect
    from fusewire.guard.protected import Protected

#: Files that a verdict lists.
_LISTED = 1000

#: Protected paths that a message names.
_NAMED = 5

_VERBS = {
    DELETE: "delete",
    MOVE: "move away",
    WRITE: "change",
    LINK: "replace by a link",
    MODE: "change the mode of",
}

#: Words that a text which cannot be read must not have, if it is to pass.
_CHANGING = frozenset(
    (
        "rm mv cp dd ln tee sed perl python python3 node ruby git find xargs truncate shred unlink rmdir chmod "
        "chown install rsync tar unzip patch ed vim ex touch sponge curl wget awk eval sh bash"
    ).split()
)


class Hit(Noun):
    """One effect on one protected path."""

    effect: Effect
    path: str
    kind: str

    @property
    def is_certain(self) -> bool:
        """Whether it is known to destroy or overwrite a protected file."""
        return UNKNOWN not in self.effect.path and self.effect.kind in (DELETE, MOVE, WRITE)


class Reading:
    """A command line, read: what it runs, what that does, and what of it hits something protected."""

    def __init__(
        self, command: str, cwd: str, protected: Protected, environment: Mapping[str, str], *, lists: bool = False
    ) -> None:
        self.command, self.cwd = command, cwd
        self.protected = protected
        #: a protected path that the line mentions: then what it prints and runs unseen may, too
        self.mentions = protected.mentioned_in(command)
        self.disk = Disk()
        self.effects = Effects(self.disk)
        self.effects.protected, self.effects.lists = protected, lists
        self.walk = Walk(self.effects, environment, self.disk)
        self.walk.suspicious = bool(self.mentions)
        try:
            self.walk.line(command, cwd)
        except (TooMuch, RecursionError):
            self.effects.unreadable.append(command)

    def commands(self) -> list[list[str]]:
        """Everything that would run, also by way of aliases, scripts, recipes and code."""
        return [list(words) for words in dict.fromkeys(tuple(words) for words, _, _ in self.effects.commands)]

    def hits(self) -> list[Hit]:
        """Effects on protected paths."""
        found: list[Hit] = []
        seen: set[tuple[str, str, bool]] = set()
        for effect in self.effects.found:
            key = (effect.path, effect.kind, effect.follows)
            if effect.kind in (READ, PERMIT) or key in seen:
                continue
            seen.add(key)
            for path in self.hit(effect):
                found.append(Hit(effect, path, self.protected.kind_of(path) or CONFIGURATION))
            if len(found) > _LISTED:
                break
        return found

    def hit(self, effect: Effect) -> list[str]:
        """The protected paths that one effect changes."""
        protected, disk = self.protected, self.disk
        if UNKNOWN in effect.path:
            return self._unknown_hit(effect)
        destroys = effect.kind in (DELETE, MOVE)
        real = disk.real(effect.path, last=effect.follows)
        written = normal(effect.path)
        for path in dict.fromkeys((real, written)):
            if protected.kind_of(path) is not None:
                return [] if destroys and self._is_nothing(path) else [path]
        if effect.recursive:
            return protected.below(real)
        if effect.kind in (WRITE, MODE):
            same = protected.same_file(real)
            return [same] if same else []
        return []

    def _unknown_hit(self, effect: Effect) -> list[str]:
        """A path that is partly unknown counts where the known part points to something protected.

        A bare unknown operand (`rm -rf "$DIR"`) counts only where its value comes from a line that mentions something
        protected: the snapshot stands behind the rest.
        """
        path = self.disk.real(normal(effect.path)).replace(TAINT, "")
        if effect.guess:
            folder = path.partition(UNKNOWN)[0].rstrip("/") or "/"
            return [folder] if self.protected.kind_of(folder) else self.protected.below(folder)
        place = self.protected.may_be(path, open_ended=TAINT in effect.path, recursive=effect.recursive)
        return [place] if place else []

    def _is_nothing(self, path: str) -> bool:
        """A file that is not there cannot be removed; a protected place that was named counts all the same."""
        return path not in self.protected.places and not os.path.lexists(path) and path not in self.walk.files

    def affected(self) -> list[str]:
        """Every file that the command would change, protected or not."""
        found: dict[str, None] = {}
        for effect in self.effects.found:
            if effect.kind == READ:
                continue
            real = self.disk.real(normal(effect.path), last=effect.follows)
            paths = self.disk.tree(real) if effect.recursive and UNKNOWN not in real else [real]
            for path in paths:
                found[deactivated(self.protected.shown(path)).replace(UNKNOWN, "*")] = None
                if len(found) >= _LISTED:
                    return list(found)
        return list(found)


def read_command(
    command: str,
    *,
    cwd: str,
    protected: Protected,
    environment: Mapping[str, str] | None = None,
    lists: bool = False,
) -> Reading:
    """Read a command line, with the scripts, recipes and code that it runs."""
    return Reading(command, cwd, protected, os.environ if environment is None else environment, lists=lists)


def check_command(
    command: str,
    *,
    cwd: str,
    root: str,
    protected: Protected | None = None,
    environment: Mapping[str, str] | None = None,
    lists: bool = True,
) -> Decision:
    """May a shell command run? `lists` asks for every file that it would change."""
    if protected is None:
        from fusewire.guard.policy import protected_of

        protected = protected_of(root)
    reading = read_command(command, cwd=cwd, protected=protected, environment=environment, lists=lists)
    return judge_reading(reading, lists=lists)


def judge_reading(
    reading: Reading, *, lists: bool = False, kernel_decides: Callable[[], bool] = lambda: False
) -> Decision:
    """May a command that was read run?

    Where `kernel_decides`, the protected files are read-only to what the command starts: only what is certain is
    refused, for its explanation, and what is not runs. It is asked only about what would be refused.
    """
    hits = reading.hits()
    affected = tuple(reading.affected()) if lists else ()
    unreadable = not hits and any(_could_write(text) for text in reading.effects.unreadable)
    if (hits or unreadable) and kernel_decides():
        hits, unreadable = [hit for hit in hits if hit.is_certain], False
    if hits:
        return _blocked(hits, reading.protected, affected, cut=reading.disk.cut)
    if unreadable:
        return Decision(
            "deny",
            rule="guard.unreadable",
            reason="the command is too long or nested too deeply to be judged, and it could change files",
            next=("run it in smaller parts",),
        )
    return Decision("allow", affected=affected)


def _could_write(text: str) -> bool:
    for mark in "'\"`$(){};&|\\<":
        text = text.replace(mark, " ")
    return ">" in text or any(word.rsplit("/", 1)[-1] in _CHANGING for word in text.split())


def _blocked(hits: list[Hit], protected: Protected, affected: tuple[str, ...], *, cut: bool) -> Decision:
    first = hits[0]
    names = list(dict.fromkeys(protected.shown(hit.path) for hit in hits))
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    verb = _VERBS.get(first.effect.kind, "change")
    unknown = UNKNOWN in first.effect.path
    may = "may" if unknown else "would"
    many = "are" if len(names) > 1 else "is"
    reason = f"it {may} {verb} {shown}, which {many} protected"
    cut = cut and unknown
    if cut:
        reason += f" (its pattern fits {MOST:,} names or more, and those beyond are not known)"
    elif unknown:
        reason += " (what it works on cannot be known before it runs)"
    evidence = []
    for hit in hits[:_NAMED]:
        words = " ".join(quoted(deactivated(word).replace(UNKNOWN, "…")) for word in hit.effect.command)
        target = protected.shown(hit.path)
        evidence.append(f"{hit.effect.kind} {target}: {words[:200]}")
    return Decision(
        "deny",
        rule=first.effect.rule,
        reason=reason,
        evidence=tuple(dict.fromkeys(evidence)),
        affected=tuple(dict.fromkeys([*names, *affected]))[:_LISTED],
        next=(*(("name the files, or use a narrower pattern",) if cut else ()), *_next(hits, names)),
    )


def _cleaner(words: list[str], tops: list[str]) -> list[str]:
    """The same `git clean` without the protected paths; if it names where to clean, only its author can mend it."""
    if words[:2] != ["git", "clean"] or any(UNKNOWN in word for word in words):
        return []
    rest = words[2:]
    named = [
        word for at, word in enumerate(rest) if word[:1] != "-" and rest[at - 1 : at] not in (["-e"], ["--exclude"])
    ]
    if named:
        return [f"clean other folders than {', '.join(tops[:_NAMED])}"]
    kept = [part for name in tops for part in ("-e", quoted(name))]
    return [" ".join(["git", "clean", *map(quoted, rest), *kept])]


def _next(hits: list[Hit], names: list[str]) -> tuple[str, ...]:
    """The safer way, in the words of the command that was refused."""
    rule = hits[0].effect.rule
    tops = list(dict.fromkeys(name.split("/")[0] for name in names if name[:1] != "/"))
    advice: list[str] = []
    if rule == "guard.git.clean":
        advice += _cleaner(hits[0].effect.command, tops)
    elif rule in ("guard.git.checkout", "guard.git.restore", "guard.git.reset"):
        advice.append("git restore --source=HEAD -- src/ (name the files that you mean)")
    elif rule == "guard.git.stash":
        advice.append("git stash push -- src/ (name the files that you mean)")
    elif rule in ("guard.rm", "guard.find", "guard.mv"):
        advice.append("name exactly the files that you mean, without " + ", ".join(tops[:_NAMED] or names[:1]))
    if any("-packages/fusewire" in name for name in names):
        advice.append("ask the user to give Fusewire an environment of its own first (uv tool install fusewire)")
    if all(hit.kind == DOCUMENT for hit in hits) and hits[0].effect.kind == WRITE:
        advice.append("update it with your edit tool, not with a shell command")
    else:
        advice.append("go on without it, or ask the user to do it")
    return tuple(advice)

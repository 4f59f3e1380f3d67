"""Load the compiled rules of a project from a blob, so that the hook parses nothing.

The blob is `marshal` data in `.fusewire/`, with the size, time and inode of every file that it was made from.
When one of them differs, the rules are compiled again; no command is needed for that.
"""

from __future__ import annotations

import marshal
import os
import sys
from _imp import source_hash

from fusewire.config import CONSTRAINTS_FOLDER as CONSTRAINTS_FOLDER
from fusewire.config import SESSION_CONFIG as SESSION_CONFIG
from fusewire.config import user_config_path as user_config_path
from fusewire.util.errors import NotFound
from fusewire.util.files import STATE_FOLDER as STATE_FOLDER
from fusewire.util.files import claim, fits_mark, make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.core.decision import Decision
    from fusewire.core.events import Matcher, PackEntry
    from fusewire.core.state import Policy

    Stamp = tuple[str, int, int, int, int]
    Signature = tuple[Stamp, ...]

#: Raised when the shape of the blob changes.
_FORMAT = 11

#: Circuits whose template is remembered, where one process asks for many.
_MOST_TEMPLATES = 1000

#: Bytes of the hash in front of sealed data.
_HASH = 8

#: Where the circuits are.
DATABASE = os.path.join(STATE_FOLDER, "state.db")

#: The constraints' circuits in the seed's format, a mirror of the database.
STATE_FILE = os.path.join(CONSTRAINTS_FOLDER, ".circuit-state.json")

#: The phases' circuit in the seed's format, likewise.
PHASE_FILE = os.path.join(".prp-session", "circuit-breaker.json")

#: It is there while a slice is under way, so that one look tells whether the scope lock has to be asked.
SCOPE_FILE = os.path.join(STATE_FOLDER, "scope.bin")

#: What a blob depends on in Fusewire itself, beside the policies.
_SHAPES = ("config/rules.py", "core/state.py", "core/meters.py", "core/budget.py")


class Constraint:
    """One constraint, compiled."""

    __slots__ = ("file", "matchers", "pack", "policy_data", "retired", "severity", "title")

    def __init__(
        self,
        policy_data: tuple[Any, ...],
        matchers: tuple[Matcher, ...],
        file: str,
        title: str,
        severity: str,
        retired: bool,
        pack: tuple[PackEntry, ...] = (),
    ) -> None:
        self.policy_data = policy_data
        self.matchers = matchers
        self.file = file
        self.title = title
        self.severity = severity
        self.retired = retired
        #: what a rule of a bundled pack looks for; empty for a constraint of the project's own
        self.pack = pack

    def to_data(self) -> tuple[Any, ...]:
        return self.policy_data, self.matchers, self.file, self.title, self.severity, self.retired, self.pack


class Rules:
    """Which policy serves which circuit. Policies are built from their data when one is asked for."""

    def __init__(
        self,
        policies: dict[str, tuple[Any, ...]],
        constraints: dict[str, tuple[Any, ...]],
        warnings: tuple[str, ...],
        any_constraint: bool,
        guard: tuple[Any, ...] = ((), (), (), (".",), ()),
        tool: dict[str, Any] | None = None,
        prices: Any = (),
        notify: tuple[str, ...] = (),
        sandbox: tuple[str, tuple[str, ...]] = ("auto", ()),
        modes: tuple[tuple[str, str], ...] = (),
        budgets: tuple[tuple[Any, ...], ...] = (),
        plans: dict[str, str] | None = None,
    ) -> None:
        self.policies = policies
        self.constraints = {name: Constraint(*data) for name, data in constraints.items()}
        self.warnings = warnings
        #: what is protected: documents, configuration, what is ignored, roots, grants
        self.guard = guard
        #: the settings of the breakers inside a session, by name
        self.tool = tool or {}
        #: what the tokens of each model cost
        self.prices = prices
        #: the names of those who are told what happened
        self.notify = notify
        #: "auto", "require" or "off", and the command lines that run outside
        self.sandbox = sandbox
        #: patterns of rules that a person has set to "off", "log" or "enforce"; the last one that fits holds
        self.modes = modes
        #: what may be spent, as `SpendBudget` has it; and the names of the person's subscriptions, by agent
        self.budgets = budgets
        self.plans = plans or {}
        #: without a project to look in, every bare id is a constraint of its own
        self.any_constraint = any_constraint
        #: the project's files were read for it, because something in them had changed
        self.just_compiled = False
        self._built: dict[str, Policy] = {}
        #: the template of each circuit that was asked for
        self._templates: dict[str, str] = {}

    def to_data(self) -> tuple[Any, ...]:
        constraints = {name: constraint.to_data() for name, constraint in self.constraints.items()}
        return (
            *(self.policies, constraints, self.warnings, self.any_constraint),
            *(self.guard, self.tool, self.prices, self.notify, self.sandbox, self.modes),
            *(self.budgets, self.plans),
        )

    def mode(self, rule: str) -> str:
        """`off`, `log` (decided and recorded, never spoken) or `enforce`."""
        from fusewire.util.globs import matches

        family = rule.partition(":")[0]
        fitting = (mode for pattern, mode in reversed(self.modes) if matches(family, pattern) or matches(rule, pattern))
        return next(fitting, "enforce")

    def is_softened(self, rule: str) -> bool:
        """Whether a rule only logs, or is off; never one that keeps Fusewire itself."""
        return bool(self.modes) and not rule.startswith("fusewire.") and self.mode(rule) != "enforce"

    def as_set(self, decision: Decision) -> Decision:
        """What may be said of a decision: of a rule in `log` mode nothing, of one that is off there is none."""
        mode = self.mode(decision.rule) if self.modes and decision.rule else "enforce"
        if mode == "enforce":
            return decision
        speaks = mode == "log" and (decision.tripped or decision.verdict != "allow")
        quiet: Decision = decision.replace(
            verdict="allow", tripped=False, alert=False, phase="closed", logged=(decision,) if speaks else ()
        )
        return quiet

    def policy(self, circuit: str) -> Policy:
        """The policy of a circuit; NotFound if there is no such circuit."""
        constraint = self.constraints.get(circuit)
        if constraint is not None and not constraint.retired:
            return self._build(circuit, constraint.policy_data)
        if "/" not in circuit:
            if constraint is not None:
                raise NotFound(f"Constraint not found: {circuit} (retired in {constraint.file})")
            if not self.any_constraint or not circuit:
                raise NotFound(f"Constraint not found: {circuit}")
            return self._build("{constraint}", self.policies["{constraint}"])
        template = self._templates.get(circuit)
        if template is not None:
            return self._build(template, self.policies[template])
        for template, data in self.policies.items():
            if key_of(template, circuit) is not None:
                if len(self._templates) >= _MOST_TEMPLATES:
                    self._templates.clear()
                self._templates[circuit] = template
                return self._build(template, data)
        raise NotFound(f"Circuit not found: {circuit}")

    def define(self, policy: Policy) -> None:
        """Add a circuit that a program defines; what the project's files say about it stays in force."""
        if policy.id not in self.policies:
            self.policies[policy.id] = policy.to_data()

    def constraint_policy(self, name: str) -> Policy:
        """The policy of a constraint's circuit even if it is retired or its file is gone."""
        constraint = self.constraints.get(name)
        if constraint is None:
            return self._build("{constraint}", self.policies["{constraint}"])
        return self._build(name, constraint.policy_data)

    def group(self, name: str) -> list[str]:
        """The circuits that are reset together under this name; none if it is no such name."""
        policies = ((key, self._build(key, data)) for key, data in self.policies.items())
        return [key for key, policy in policies if name and policy.group == name and name not in self.constraints]

    def replace_policy(self, key: str, data: tuple[Any, ...]) -> None:
        self.policies[key] = data
        self._built.pop(key, None)

    def _build(self, key: str, data: tuple[Any, ...]) -> Policy:
        policy = self._built.get(key)
        if policy is None:
            from fusewire.core.state import Policy

            policy = self._built[key] = Policy.from_data(data)
        return policy

    def matchers(self) -> tuple[tuple[str, tuple[Matcher, ...]], ...]:
        """What the active constraints forbid."""
        return tuple(
            (name, constraint.matchers)
            for name, constraint in self.constraints.items()
            if constraint.matchers and not constraint.retired
        )

    def pack_rules(self) -> list[tuple[str, tuple[PackEntry, ...]]]:
        """The rules of the bundled packs that are switched on."""
        return [(name, one.pack) for name, one in self.constraints.items() if one.pack and not one.retired]


def key_of(template: str, circuit: str) -> str | None:
    """The variable part of a circuit id: `Bash` for `tool/x/{tool}` and `tool/x/Bash`; None if it does not fit.

    The last variable takes the rest, slashes and all, because names of tests have some.
    """
    wanted, given = template.split("/"), circuit.split("/")
    if len(given) < len(wanted) or (len(given) > len(wanted) and "{" not in wanted[-1]):
        return None
    if len(given) > len(wanted) and len(wanted) < 3:
        return None  # attempt/S-1/test is not the slice "S-1/test", and no constraint has a slash
    key = []
    for at, part in enumerate(wanted):
        value = "/".join(given[at:]) if at == len(wanted) - 1 else given[at]
        if part.startswith("{"):
            if not value:
                return None
            key.append(value)
        elif part != value:
            return None
    return "/".join(key)


def rule_id(policy: Policy, circuit: str) -> str:
    """`loop.no_progress`, or `constraint:git-safety` where one policy serves many circuits."""
    if policy.id == "{constraint}":
        return f"{policy.name}:{circuit}"
    key = key_of(policy.id, circuit)
    return f"{policy.name}:{key}" if key else policy.name


def find_project(start: str) -> str:
    """The git top level above a folder, else the folder itself; on the way up, the first that has constraints."""
    folder = here = os.path.abspath(start)
    guarded = None
    while True:
        guarded = guarded or (folder if has_constraints(folder) else None)
        if os.path.lexists(os.path.join(folder, ".git")):
            return guarded or folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return here
        folder = parent


def find_guarded(start: str) -> str:
    """The project whose constraints hold for an agent that was started in a folder.

    The nearest folder above that has any, not the nearest repository: an agent can make a `.git` in a subfolder. But
    none outside the outermost repository: an agent can make a folder there, too.
    """
    folder = os.path.abspath(start)
    nearest = inside = None
    while True:
        nearest = nearest or (folder if has_constraints(folder) else None)
        if os.path.lexists(os.path.join(folder, ".git")):
            inside = nearest
        parent = os.path.dirname(folder)
        if parent == folder:
            return inside or find_project(start)
        folder = parent


def shared_root(root: str) -> str | None:
    """The folder whose state a linked worktree shares with the others of its repository; None for any other folder."""
    if os.path.isdir(os.path.join(root, ".git")):
        return None
    from fusewire.util.worktrees import project_key

    main = project_key(root)
    is_other = os.path.isdir(main) and os.access(main, os.W_OK) and main != os.path.realpath(root)
    return main if is_other else None


def is_shared(circuit: str) -> bool:
    """Whether all worktrees of a repository have a circuit together: constraints, breakers of one's own, and the hourly
    limit. What belongs to a session, or to the work in one tree (loop, phase, attempt), is kept beside that work."""
    return "/" not in circuit or circuit.startswith("own/") or circuit == "loop/rate"


def has_constraints(root: str) -> bool:
    """Whether there is anything that the hook could enforce; one look, no parsing."""
    return os.path.isdir(os.path.join(root, CONSTRAINTS_FOLDER))


def load_rules(root: str, *, keeps: bool = False) -> Rules:
    """The project's rules: from the blob if nothing has changed since, compiled otherwise.

    The blob is kept where Fusewire has been at work already; `keeps` makes the folder for it in a repository.
    """
    made_from = _signature(root)
    last, signature = _kept(root)
    if last is not None and signature == made_from:
        return last
    rules = compile_rules(root, last)
    rules.just_compiled = True
    if rules.constraints and "yaml" not in sys.modules:
        return rules  # none of them could be read: another Python, or this one tomorrow, may do better
    keeps = keeps and os.path.lexists(os.path.join(root, ".git"))
    if keeps or os.path.isdir(os.path.join(root, STATE_FOLDER)) or has_constraints(root):
        _save(root, _blob(root), (_FORMAT, made_from, rules.to_data()))
    return rules


def rules_as_they_lie(root: str) -> Rules | None:
    """What was compiled last, be it current or not; None if nothing was that could be read. Nothing is made."""
    return _kept(root)[0] if fits_mark(os.path.join(root, STATE_FOLDER)) else None


def _blob(root: str) -> str:
    return os.path.join(root, STATE_FOLDER, f"rules.{sys.implementation.cache_tag}.bin")


def _kept(root: str) -> tuple[Rules | None, Any]:
    """The rules of the blob, and what they were made from."""
    try:
        claim(os.path.join(root, STATE_FOLDER))
        form, signature, data = unsealed(read_file(_blob(root)))
        if form == _FORMAT:
            return Rules(*data), signature
    except (OSError, ValueError, EOFError, TypeError):
        pass
    return None, None


def sealed(data: Any, version: int = marshal.version) -> bytes:
    """`marshal` data behind its hash."""
    content = marshal.dumps(data, version)
    return source_hash(0, content) + content


def unsealed(content: bytes) -> Any:
    """The data behind it; ValueError if it is damaged: for a few wrong bytes `marshal` takes minutes, or all memory."""
    if source_hash(0, content[_HASH:]) != content[:_HASH]:
        raise ValueError("damaged")
    return marshal.loads(content[_HASH:])


def compile_rules(root: str | None, last: Rules | None = None, instead: str = "") -> Rules:
    """Compile a project's files; without a project the policies as shipped, where every bare id is a constraint.

    A constraint whose front matter is broken keeps the patterns and the mode that `last` had for it.
    """
    from pathlib import Path

    from fusewire.config.rulebook import read_rulebook

    constraints = last.constraints if last else {}
    known = {name: (one.matchers, last.constraint_policy(name).mode) for name, one in constraints.items() if last}
    return Rules(*read_rulebook(None if root is None else Path(root), instead).compile(known))


def _save(root: str, path: str, blob: tuple[Any, ...]) -> None:
    """Best effort: without the blob everything works, only slower."""
    try:
        make_folder(root, STATE_FOLDER)
        replace_file(path, sealed(blob))
    except OSError:
        pass


def _signature(root: str) -> Signature:
    own = (os.path.join(root, name) for name in ("fusewire.toml", "pyproject.toml", SESSION_CONFIG))
    found = [_stat(path) for path in (user_config_path(), *own)]
    _walk(os.path.join(root, CONSTRAINTS_FOLDER), found)
    package = os.path.dirname(os.path.dirname(__file__))
    shapes = [os.path.join(package, name) for name in _SHAPES]
    shapes += sorted(entry.path for entry in os.scandir(os.path.join(package, "config", "policies")))
    return (*map(_stat, shapes), *found)


def _walk(folder: str, found: list[Stamp]) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            _walk(entry.path, found)
        elif entry.name.endswith(".md"):
            found.append(_stat(entry.path))


def _stat(path: str) -> Stamp:
    try:
        facts = os.stat(path)
    except OSError:
        return path, 0, 0, 0, 0
    return path, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino

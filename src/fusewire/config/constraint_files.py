"""Read constraints: Markdown files with YAML front matter under `docs/constraints/`."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.config import CONSTRAINTS_FOLDER
from fusewire.config.settings import read_policy_file
from fusewire.core.events import NAME_LIMIT
from fusewire.util.errors import ConfigError

if TYPE_CHECKING:
    from fusewire.core.events import Matcher, PackEntry

#: Front matter is a few lines; this much of a file is read for it.
_FRONT_MATTER_LIMIT = 65536

#: A draft is not enforced yet, a retired one no longer; violations of a draft can be recorded by hand.
STATUSES = ("draft", "active", "retiring", "retired")

_MATCH_KEYS = ("tool", "command", "path")

#: What front matter may say, and the keys of it that are long enough to be told from others by their letters.
_KEYS = ("id", "severity", "status", "mode", "circuit_breaker", "match", "pack")
_LONG_KEYS = ("severity", "status", "circuit_breaker")


@dataclass(frozen=True)
class ConstraintFile:
    """One constraint as its file describes it."""

    id: str
    file: str
    title: str
    severity: str | None
    retired: bool
    overrides: Mapping[str, Any]
    matchers: tuple[Matcher, ...]
    #: its front matter cannot be read: its patterns are unknown, not gone
    broken: bool = False
    #: the bundled pack that the file switches on; then each of its rules is a constraint of its own
    pack_name: str = ""
    pack: tuple[PackEntry, ...] = ()
    safer_way: str = ""


def read_constraints(root: Path) -> tuple[list[ConstraintFile], list[ConfigError]]:
    """All constraints of a project in the order of their ids, and what is wrong with the files."""
    found: dict[str, ConstraintFile] = {}
    problems: list[ConfigError] = []
    for path in constraint_paths(root):
        constraint, wrong = _read(path, path.relative_to(root).as_posix())
        problems += wrong
        for one in [] if constraint is None else rules_of(constraint) if constraint.pack_name else [constraint]:
            if one.id in found:
                problems.append(ConfigError(one.file, "id", one.id, f"{found[one.id].file} has this id already"))
                continue
            found[one.id] = one
    return [found[key] for key in sorted(found)], problems


def rules_of(file: ConstraintFile) -> Iterator[ConstraintFile]:
    """The rules of the pack that a file switches on; what the file says holds for all of them."""
    for rule in packs()[file.pack_name]["rules"]:
        entries = tuple(
            (_patterns(one.get("command", ())), tuple(one.get("unless", ())), one.get("when", ""))
            for one in rule["match"]
        )
        yield replace(
            file,
            id=f"{file.pack_name}-{rule['id']}",
            title=rule["title"],
            overrides={"mode": rule["mode"], **file.overrides},
            pack=entries,
            safer_way=rule["next"],
        )


def _patterns(commands: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(text.split()) for text in commands)


@functools.cache
def packs() -> dict[str, Any]:
    """The bundled packs by name."""
    return tomllib.loads(resources.files("fusewire.config").joinpath("policies/packs.toml").read_text("utf-8"))


def constraint_paths(root: Path) -> Iterator[Path]:
    folder = root / CONSTRAINTS_FOLDER
    return (path for path in sorted(folder.rglob("*.md")) if path.is_file())


class _Problems(list[ConfigError]):
    """What is wrong with one file."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def add(self, key: str, value: object, allowed: str) -> None:
        self.append(ConfigError(self.file, key, value, allowed))


def _read(path: Path, shown: str) -> tuple[ConstraintFile | None, list[ConfigError]]:
    problems = _Problems(shown)
    try:
        with path.open("rb") as file:
            raw = file.read(_FRONT_MATTER_LIMIT)
    except OSError as error:
        problems.add("file", path.name, f"a file that can be read ({error.strerror})")
        return ConstraintFile(path.stem, shown, "", None, False, {}, (), broken=True), problems
    text = raw.decode("utf-8", "replace")
    front, body = _split(text)
    if front is None:  # a README beside the constraints is none
        return None, []
    if "\ufffd" in text and "\ufffd".encode() not in raw:
        problems.add("file", path.name, "UTF-8 text; what is not was replaced")
    matter = _parse(front, problems)
    if matter is None:
        # The rule still exists, so its circuit goes on with the defaults.
        name, pack = _id_line(front) or path.stem, _id_line(front, "pack") or ""
        pack = pack if pack in packs() else ""
        return ConstraintFile(name, shown, _title(body), None, False, {}, (), broken=True, pack_name=pack), problems
    name = matter.get("id", path.stem)
    name = str(name) if isinstance(name, int) else name
    if not isinstance(name, str) or not _is_id(name):
        problems.add("id", name, "up to 200 letters, digits, '-', '_' and '.'; using the file's name")
        name = path.stem
    if not _is_id(name):
        problems.add("file", path.name, "a name that can be an id, or an id; it is left out")
        return None, problems
    overrides = matter.get("circuit_breaker")
    overrides = {} if overrides is None else overrides
    if not isinstance(overrides, dict):
        problems.add("circuit_breaker", overrides, "a table of settings; using the defaults")
        overrides = {}
    if "mode" in matter:
        overrides = {**overrides, "mode": matter["mode"]}
    severity = matter.get("severity")
    if severity is not None and not isinstance(severity, str):
        problems.add("severity", severity, "a word, such as CRITICAL")
        severity = None
    status = str(matter.get("status", "active")).strip().lower()
    if status not in STATUSES:
        problems.add("status", status, f"{', '.join(STATUSES)}; taken as active")
    pack = matter.get("pack", "")
    if pack not in ("", *packs()):
        problems.add("pack", pack, f"{', '.join(packs())}; this file switches on nothing")
        pack = ""
    matchers = tuple(_matchers(matter.get("match"), problems))
    problems += _misspelt(matter, shown)
    return (
        ConstraintFile(
            name,
            shown,
            _title(body),
            None if severity is None else str(severity).upper(),
            status == "retired",
            {str(key): value for key, value in overrides.items()},
            () if status == "draft" else matchers,
            pack_name="" if status == "draft" else pack,
        ),
        problems,
    )


def _misspelt(matter: Mapping[Any, Any], file: str) -> Iterator[ConfigError]:
    """Keys that stand for one of ours. Front matter may have others: only what is near one, or has such a value."""
    for key, value in matter.items():
        if key in _KEYS:
            continue
        near = difflib.get_close_matches(str(key).lower(), _LONG_KEYS, n=1, cutoff=0.8)
        if key in read_policy_file("constraint").settings:
            meant = f"circuit_breaker: {key}"
        elif near:
            meant = near[0]
        elif _is_match(value) and difflib.get_close_matches(str(key).lower(), ("match",)):
            meant = "match"
        else:
            continue
        yield ConfigError(file, str(key), value, "", f"no such key (did you mean {meant}?)")


def _is_match(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    return all(isinstance(one, dict) and not set(one).isdisjoint(_MATCH_KEYS) for one in entries)


def _split(text: str) -> tuple[str | None, str]:
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return None, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in ("---", "..."):
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    return "".join(lines[1:]), ""


def _parse(front: str, problems: _Problems) -> dict[Any, Any] | None:
    try:
        matter = _load(front)
    except ImportError:
        lacks = "Python with PyYAML (pip install PyYAML); until then only its last good patterns are enforced"
        problems.add("front matter", "PyYAML is missing", lacks)
        return None
    except Exception as error:  # PyYAML lets KeyError, AttributeError and others through for bad tags
        where = getattr(error, "problem_mark", None)
        line = f"line {where.line + 2}: " if where else ""
        what = getattr(error, "problem", None) or str(error) or "not YAML"
        problems.add("front matter", f"{line}{what}", "YAML; using the defaults, and its last good patterns")
        return None
    if matter is None:
        return {}
    if not isinstance(matter, dict):
        problems.add("front matter", matter, "a table of keys; using the defaults, and its last good patterns")
        return None
    return matter


def _load(front: str) -> Any:
    """The front matter as data. Aliases are refused: ten lines of them can stand for more than fits into memory."""
    yaml = _yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.composer.ComposerError(None, None, "an alias (*)", self.peek_event().start_mark)
            return super().compose_node(parent, index)

    return yaml.load(front, Loader)


def _yaml() -> Any:
    """Loaded where there is a constraint: a hook whose Python lacks it guards everything else all the same."""
    try:
        import yaml
    except ImportError:
        # Under -S, as the hook runs, installed libraries are out of reach until `site` has had its turn.
        import site

        site.main()
        import yaml
    return yaml


def _id_line(front: str, wanted: str = "id") -> str | None:
    """The id (or the pack) of front matter that is not YAML as a whole: a typing error must not rename a circuit."""
    for line in front.splitlines():
        key, colon, value = line.partition(":")
        if colon and key == wanted and _is_id(value.strip().strip("'\"")):
            return value.strip().strip("'\"")
    return None


def _is_id(name: str) -> bool:
    letters = all(char.isalnum() or char in "-_." for char in name)
    return letters and name.strip(".") != "" and len(name.encode()) <= NAME_LIMIT


def _title(body: str) -> str:
    return next((line.lstrip("# ").strip() for line in body.splitlines() if line.startswith("#")), "")


def _matchers(match: Any, problems: _Problems) -> Iterator[Matcher]:
    """`match:` as one table or a list of them; within a table everything that is given must fit."""
    if match is None:
        return
    for entry in match if isinstance(match, list) else [match]:
        if not isinstance(entry, dict) or not entry or not set(entry) <= set(_MATCH_KEYS):
            allowed = f"a table with {', '.join(_MATCH_KEYS)}; this entry matches nothing"
            problems.add("match", entry, allowed)
            continue
        fields = {key: _texts(entry.get(key)) for key in _MATCH_KEYS}
        broken = next((key for key in entry if not fields[key]), None)
        if broken:
            allowed = "a pattern or a list of patterns; this entry matches nothing"
            problems.add(f"match.{broken}", entry[broken], allowed)
            continue
        yield fields["tool"], _patterns(fields["command"]), fields["path"]


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(values) if all(isinstance(text, str) and text.strip() for text in values) else ()

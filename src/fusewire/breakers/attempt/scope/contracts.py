"""The contracts of a slice: which sections and files they are, and what those put in scope.

Markdown is read by its headings. A section reaches to the next heading of its own level or above; what a file says
before its first heading, and its name, speak for the whole file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.files import read_source
from fusewire.breakers.attempt.scope.patterns import normal_pattern, package_patterns
from fusewire.breakers.attempt.scope.places import CONTRACT_FILES, CONTRACT_FOLDERS, contract_files
from fusewire.breakers.attempt.scope.references import prose, references
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.boundary import Entry

_LIMIT = 5_000_000

#: Lines below a heading that may say whose section it is.
_FIRST = 6

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_EXCLUDED = re.compile(r"out[- ]of[- ]scope|not in scope|non-?goals?", re.IGNORECASE)


@dataclass
class Section:
    """A part of a contract file."""

    file: str
    heading: str
    level: int
    #: its own lines, without those of the sections in it
    lines: list[str]
    parent: Section | None = None

    def says(self, name: str, labels: str) -> bool:
        """Whether the heading, or a labelled line right below it (`Slice: S-1`), has this name."""
        return has_word(name, self.heading) or any(has_word(name, text) for text in self.labelled(labels))

    def labelled(self, labels: str) -> list[str]:
        """What stands behind these labels in the first lines; a list below one counts too."""
        label = re.compile(rf"[\s>*_|+-]*(?:{labels})(?:[ _-]?ids?)?[*_`\s]*[:|=](.*)", re.IGNORECASE)
        found = []
        listing = False
        first = [line for line in self.lines if line.strip()][: _FIRST if self.level else 3 * _FIRST]
        for line in first:
            match = label.fullmatch(line)
            if match:
                found.append(match[1])
            elif listing and line.lstrip().startswith(("-", "*")):
                found.append(line)
                continue
            listing = bool(match) and not match[1].strip() if match else False
        return found

    def shown(self) -> str:
        return f"{self.file}: {self.heading[:60]}" if self.level else self.file


def has_word(name: str, text: str) -> bool:
    """Whether a name stands in a text as a word of its own: S-1 is not in S-10, S-1.2 or XS-1."""
    return bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])(?!\.\w)", text))


def contract_entries(root: str, slice: str, named: list[str], graph: str) -> list[Entry]:
    """What the contracts of a slice put in scope; `named` are those that its entry in the graph names."""
    sections = [section for file in contract_files(root) for section in read_sections(root, file)]
    chosen = [section for section in sections if section.says(slice, "slices?")]
    for name in named:
        found = [section for section in sections if section.says(name, "contracts?|id|name")]
        if not found:
            places = ", ".join((*CONTRACT_FILES, *(f"{folder}/*.md" for folder in CONTRACT_FOLDERS)))
            raise FusewireError(
                f"{graph}: slice {slice}: contract {name!r} is not to be found; allowed: a contract whose heading or"
                f" file name has it, in {places}"
            )
        chosen += found
    entries: dict[Entry, None] = {}
    for section in sections:
        if _belongs(section, chosen, slice):
            for pattern in _patterns(section, root):
                entries[pattern, section.shown()] = None
    return list(entries)


def _belongs(section: Section, chosen: list[Section], slice: str) -> bool:
    """Whether a section is one of the chosen or inside of one, and not somebody else's or expressly left out."""
    here: Section | None = section
    while here is not None:
        if here.level and _EXCLUDED.search(here.heading):
            return False
        if any(here is one for one in chosen):
            return True
        if _is_others(here, slice):
            return False
        here = here.parent
    return False


def _is_others(section: Section, slice: str) -> bool:
    """Whether a section says that it is another slice's."""
    if section.labelled("slices?"):
        return True
    shape = re.sub(r"\d+", r"\\d+", re.escape(slice))
    return shape != re.escape(slice) and bool(re.search(rf"(?<![\w.-]){shape}(?![\w-])", section.heading))


def _patterns(section: Section, root: str) -> list[str]:
    paths, packages = references([section.heading, "", *section.lines] if section.level else section.lines)
    found = [normal_pattern(path, root, section.shown()) for path in paths]
    for package in packages:
        try:
            found += package_patterns(package, root, section.shown())
        except FusewireError:
            continue  # a text may speak of packages elsewhere; that puts nothing of this project in scope
    return found


def read_sections(root: str, file: str) -> list[Section]:
    """A contract file, by its headings; the file itself is the first section."""
    data = read_source(root, file, _LIMIT, "a Markdown file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FusewireError(f"{file}: it is not UTF-8; allowed: a Markdown file") from None
    whole = Section(file, os.path.basename(file).removesuffix(".md"), 0, [])
    sections = [whole]
    for line in prose(text.splitlines()):
        match = _HEADING.fullmatch(line)
        if not match:
            sections[-1].lines.append(line)
            continue
        level = len(match[1])
        parent = sections[-1]
        while parent.level >= level and parent.parent is not None:
            parent = parent.parent
        sections.append(Section(file, match[2], level, [], parent))
    return sections

"""Read the contracts of a slice: their sections and files, and the files and packages that they refer to.

Markdown is read by its headings. A section reaches to the next heading of its own level or above; what a file says
before its first heading, and its name, speak for the whole file. A text is mostly prose, so what is no clear reference
is none: code blocks, routes (`/users`), media types, addresses, words with a slash between them, and sentences that
say what must not be touched.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.patterns import ENDINGS, ending, normal_pattern, package_patterns
from fusewire.breakers.attempt.scope.places import CONTRACT_FILES, CONTRACT_FOLDERS, contract_files
from fusewire.util.errors import FusewireError
from fusewire.util.files import read_regular

if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.boundary import Entry

#: Bytes that a contract may have.
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
    """Whether a section is one of the chosen or inside of one, and not another slice's or expressly left out."""
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


def read_source(root: str, file: str, limit: int, allowed: str) -> bytes:
    """Read a file of the project that defines a scope; one line says why that cannot be done."""
    try:
        data = read_regular(os.path.join(root, file), limit + 1)
    except OSError as error:
        raise FusewireError(f"{file}: it cannot be read: {error.strerror or error}; allowed: {allowed}") from None
    if len(data) > limit:
        raise FusewireError(f"{file}: it is larger than {limit // 1_000_000} MB; allowed: {allowed}")
    return data


# -- references ---------------------------------------------------------------------------------------------

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+|\s*\|")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s`)>\]]+", re.IGNORECASE)
_SPAN = re.compile(r"(`+)([^`]+)\1")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
_PACKAGES = re.compile(
    r"\bpackages?\b[\s:*_]*(?P<names>`[^`\s]+`(?:(?:\s*,\s*|\s+)(?:and\s+|or\s+|&\s+)?`[^`\s]+`)*)", re.IGNORECASE
)
_WORD = re.compile(r"[\w.@+*?\[\]/-]+")
_TOP_LEVEL = re.compile(r"[\w-]+(?:\.[\w-]+)*\.(?:com|dev|io|net|org)")
_BRAND = re.compile(r"[A-Z][A-Za-z]*\.(?:js|ts|io)")

_VERBS = r"(?:touch|modify|change|edit|alter|write|create|delete|remove|rename|move)"
_DONE = r"(?:touched|modified|changed|edited|altered|written|created|deleted|removed|renamed|moved)"
_FORBIDDEN = re.compile(
    rf"(?:\bnot|n't|\bnever)\s+{_VERBS}\b(?:\s+(?:to|the|any|anything|file|files|folder|package|code|in|of))*"
    rf"\s+[`*_\[]*[\w.@-]+[/.]\w"
    rf"|(?:\bnot|n't|\bnever)\s+be\s+{_DONE}\b"
    r"|\bwithout\s+(?:touching|modifying|changing|editing)\b"
    r"|\bout[- ]of[- ]scope\b|\bnot\s+(?:in|within|part\s+of)\s+(?:the\s+)?(?:scope|slice)\b"
    r"|\boutside\s+(?:of\s+)?(?:the\s+|this\s+)?(?:scope|slice)\b|\boff[- ]limits\b"
    r"|\b(?:remains?|stays?|left|leave\s+\S+)\s+(?:as\s+(?:it|they)\b|unchanged|untouched|alone)",
    re.IGNORECASE,
)

_MEDIA = frozenset(("application", "audio", "font", "image", "message", "model", "multipart", "text", "video"))
_NAMES = frozenset(("Dockerfile", "Makefile", "Rakefile", "Gemfile", "Procfile", "Justfile", "Jenkinsfile"))


def prose(lines: list[str]) -> list[str]:
    """The lines without blocks of code."""
    kept = []
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and fence and mark[1].startswith(fence):
            fence = ""
        elif not fence:
            kept.append(line)
    return kept


def references(lines: list[str]) -> tuple[list[str], list[str]]:
    """The paths and the packages that lines of prose refer to, as they are written there."""
    paths: dict[str, None] = {}
    packages: dict[str, None] = {}
    for sentence in _sentences(lines):
        if _FORBIDDEN.search(sentence):
            continue
        for found in _PACKAGES.finditer(sentence):
            packages |= dict.fromkeys(name for name in found["names"].split("`")[1::2] if _WORD.fullmatch(name))
        sentence = _PACKAGES.sub(" ", sentence)
        for span in _SPAN.finditer(sentence):
            path = _path(span[2].strip(), quoted=True)
            if path:
                paths[path] = None
        rest = _LINK.sub(r" \1 \2 ", _SPAN.sub(" ", sentence))
        for word in re.split(r"[\s,;|]+", rest):
            path = _path(word.lstrip("(\"'[<*_").rstrip(".:!?)\"'>*_"), quoted=False)
            if path:
                paths[path] = None
    return list(paths), list(packages)


def _sentences(lines: list[str]) -> list[str]:
    """Lines that belong together as one, and then apart again where a sentence ends."""
    paragraphs = [""]
    for line in lines:
        if not line.strip() or _ITEM.match(line):
            paragraphs.append("")
        paragraphs[-1] += f" {_ADDRESS.sub(' ', line).strip()}"
    return [sentence for paragraph in paragraphs for sentence in _SENTENCE.split(paragraph) if sentence.strip()]


def _path(word: str, *, quoted: bool) -> str:
    """The path that a word is; empty if it is none."""
    word = word.partition("#")[0].partition("::")[0]
    word = re.sub(r"(?::\d+)+$", "", word).removeprefix("./")
    if not _WORD.fullmatch(word) or word.startswith(("/", "-", "@")) or ".." in word.split("/"):
        return ""
    parts = [part for part in word.split("/") if part]
    known = ending(word) in ENDINGS or (bool(parts) and parts[-1] in _NAMES)
    if "/" not in word:
        if quoted:
            return word if known else ""
        return word if known and len(ending(word)) > 1 and not _BRAND.fullmatch(word) else ""
    if not parts or parts[0] in _MEDIA or _TOP_LEVEL.fullmatch(parts[0]):
        return ""
    if known or word.endswith("/") or "*" in word:
        return word
    return word if quoted and not word.isupper() and not parts[0].isdigit() else ""
